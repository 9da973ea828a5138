"""Errors with fields, and messages that a shell or a page can tell in words of its own.

``str(error)`` speaks Python: it names arguments as Python callers write them. A message knows which of its
parts do (:class:`Argument`, :class:`Phrase`), so that :func:`tell` need not look for them in its text.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any


class Phrase(StrEnum):
    """What is said in Python's words and must be said otherwise to people who do not write Python."""

    CREATE_LEDGER = "Ledger.create"
    ALLOW_COLUMNS = "Ledger.allow"
    COMPARE_RECEIPTS = "Ledger.verify(receipts=[...])"
    LOOK_FOR_CHARGE = "look at ledger.entries(); if it was, recover(...) on the plan gives the answer."
    GO_ON = "recover(ledger, entry, y) on the plan goes on where it stopped, for nothing"
    NEW_REQUEST = "another request name"
    GIVE_INPUTS = "give X="
    GIVE_PEOPLE = "give X= and people="
    GIVE_KERNEL = "give kernel="
    LOAD_WITH_KERNEL = "Give it when loading, load(path, kernel=...); or, for a picture, denoised=False."
    NOT_READ = "y was not read"
    MIDPOINT = "missing = midpoint"
    PUBLIC_KEY = ": an Ed25519PublicKey, its 32 bytes, or their 64 hex digits"
    GIVE_TLS = "tls="
    SET_MODEL = "use GP with a kernel of your choice"
    LEARN_MODEL = "use AutoGP, which learns the model in the release itself, of any number of rows"
    DROP_INPUTS = "missing_inputs='drop'"
    NAME_LEVELS = "name its levels with Columns.of"


class Argument(str):
    """An argument in a message: its name, or with a value ``calibration='classic'``."""

    name: str
    value: Any

    def __new__(cls, name: str, value: Any = None) -> Argument:
        made = super().__new__(cls, name if value is None else f"{name}={value!r}")
        made.name, made.value = name, value
        return made


class Message(str):
    """A text that knows its parts."""

    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Message:
        made = super().__new__(cls, "".join(parts))
        made.parts = tuple(inner for part in parts for inner in parts_of(part))
        return made


def parts_of(said: BaseException | str) -> tuple[str, ...]:
    """The parts of a message, or of an error's; plain text is its own only part."""
    if isinstance(said, ArgumentError):
        said = said.message
    elif isinstance(said, BaseException):
        said = said.args[0] if len(said.args) == 1 and isinstance(said.args[0], Message) else str(said)
    return said.parts if isinstance(said, Message) else (said,)


def tell(said: BaseException | str, otherwise: Callable[[Argument | Phrase], str]) -> str:
    """What was said, with every argument and phrase in it as `otherwise` puts it."""
    parts = parts_of(said)
    return "".join(otherwise(part) if isinstance(part, (Argument, Phrase)) else part for part in parts)


class ArgumentError(ValueError):
    """An argument cannot be used as it is.

    Its text is put together from its fields: ``epsilon must be finite and above 0; got -1. 1 is common.``

    Parameters
    ----------
    name : str
        The argument, as in ``bounds`` or ``bounds[0]``.
    expected : str
        What it must be, as the rest of a sentence: ``must be finite and above 0``.
    got : str, optional
        What it was. Never a value of y.
    remedy : str, optional
        What to do, in whole sentences.
    """

    def __init__(self, name: str, expected: str, got: str = "", remedy: str = "") -> None:
        super().__init__(name, expected, got, remedy)  # all of them, or it could not be pickled
        self.name, self.expected, self.got, self.remedy = name, expected, got, remedy

    @property
    def message(self) -> Message:
        """The text, with the argument's name as a part of its own."""
        got = ["; got ", self.got] if self.got else []
        remedy = [" ", self.remedy] if self.remedy else []
        return Message(Argument(self.name), " ", self.expected, *got, ".", *remedy)

    def __str__(self) -> str:
        return str(self.message)

    def inside(self, owner: str) -> ArgumentError:
        """The same of an argument that holds this one: ``plan_for: epsilon must ...``."""
        return type(self)(f"{owner}: {self.name}", self.expected, self.got, self.remedy)


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of a kind that cannot be used."""


def missing_extra(what: str, package: str, extra: str) -> ImportError:
    """The error for an optional package that is not installed. `what` needs it: an argument, or a noun."""
    return ImportError(
        Message(
            what,
            f" needs {package}: install the extra cloakgp[{extra}] ",
            f"(in a clone: pip install '.[{extra}]').",
        )
    )


class InputError(ValueError):
    """A file, a column or a setting cannot be used as it is; the message says what to change."""


class OtherSize(ValueError):
    """Another number of rows, or of people, than a plan is for. The message has the plan's alone."""


class Refused(RuntimeError):
    """The request is understood and not granted: a check failed, or somebody said no. Nothing was spent."""
