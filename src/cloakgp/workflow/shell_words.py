"""The library's messages for people who type commands: its calls and arguments as commands and options."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cloakgp.core.errors import Argument, Phrase, tell

PHRASES = {
    Phrase.CREATE_LEDGER: "cloakgp ledger create",
    Phrase.ALLOW_COLUMNS: "cloakgp ledger allow",
    Phrase.COMPARE_RECEIPTS: "cloakgp ledger verify --release",
    Phrase.LOOK_FOR_CHARGE: (
        "look at cloakgp ledger show --entries; if it was, the same command gives the answer, for nothing."
    ),
    Phrase.GO_ON: "the same command goes on where it stopped, for nothing",
    Phrase.NEW_REQUEST: "--again LABEL for a new answer",
    Phrase.GIVE_INPUTS: "give --inputs-from",
    Phrase.GIVE_PEOPLE: "give --inputs-from and --people",
    Phrase.GIVE_KERNEL: "in Python, cloakgp.verify takes it as kernel=",
    Phrase.LOAD_WITH_KERNEL: "In Python, Release.load takes it as kernel=.",
    Phrase.NOT_READ: "the output column was not read",
    Phrase.MIDPOINT: "--missing midpoint",
    Phrase.PUBLIC_KEY: ", as 64 hex digits",
    Phrase.GIVE_TLS: "--tls CERT KEY",
    Phrase.SET_MODEL: "give --kernel and --noise",
    Phrase.LEARN_MODEL: (
        "plan without --kernel: the model is learned in the release itself, of any number of rows"
    ),
    Phrase.DROP_INPUTS: "--missing-inputs drop",
    Phrase.NAME_LEVELS: "name it with --categories",
}
"""What the library says, and what is said here instead."""

PARAMETERS = {
    "X": "inputs",
    "seasons": "season",
    "X_star": "at",
    "grid": "box",
    "n_rows": "rows",
    "plan_for: X_star": "then_at",
    "plan_for: epsilon": "then_epsilon",
    "plan_for: delta": "then_delta",
    "plan_for: design": "then_design",
    "receipts": "release",
    "url": "ledger",
}
"""Arguments of the library's that commands take under another name."""

_PART = re.compile(r"(.*)\[(\d+)\]")


def in_shell_words(said: BaseException | str, options: Mapping[str, str] | None = None) -> str:
    """What the library said, for somebody who types commands.

    `options` are those of the command at hand, by the names of its parameters: an argument that it does not
    take keeps its own name.
    """
    known = {} if options is None else options
    return tell(said, lambda part: PHRASES[part] if isinstance(part, Phrase) else _option(part, known))


def _option(argument: Argument, options: Mapping[str, str]) -> str:
    name, place = argument.name, ""
    if found := _PART.fullmatch(name):
        name, place = found[1], f"[{found[2]}]"
        if name == "candidates":  # which no option names: every kernel with every noise
            return f"candidate {int(found[2]) + 1}"
    # Where both are options, X is what is compared with a file's.
    option = options.get("inputs_from") if name == "X" else None
    option = option or options.get(PARAMETERS.get(name, name))
    if option is None:
        return argument
    return f"{option}{place}" if argument.value in (None, True) else f"{option} {argument.value}"
