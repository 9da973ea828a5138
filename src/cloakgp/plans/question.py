"""What a plan was asked for: the model and every option, which are settings, and nothing that was computed.

A plan file holds a question, not the matrices of a plan (``plans/plan_file``): what others worked out is
never multiplied with y. And a ledger knows a question again whatever the last digits of a machine are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from inspect import signature
from typing import Any

import numpy as np

from cloakgp.errors import ArgumentError
from cloakgp.files.schema import is_custom
from cloakgp.kernels import Kernel, from_spec
from cloakgp.model.auto_gp import AutoGP
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.model.outcome import CHANCES
from cloakgp.model.windows import Middle
from cloakgp.rows.columns import Columns
from cloakgp.rows.grid import Grid
from cloakgp.rows.inputs import TableRows
from cloakgp.rows.people import ALIKE, People

_OF_TABLE = {"self", "X", "people"}
METHODS = ("plan", "plan_rows", "plan_function")
_MODELS: dict[str, type[GP] | type[AutoGP]] = {"GP": GP, "AutoGP": AutoGP}
_OUTCOMES = ["outcome", "classes"]
_FIELDS = {
    "GP": ["kernel", "noise", "bounds", "mean", "inducing", "approximation", "downweight", *_OUTCOMES],
    "AutoGP": ["bounds", "prior", "seasons", "stages", "inducing", *_OUTCOMES],
}


@dataclass(frozen=True, eq=False)
class Question:
    """All that decides a plan but the table: public, and chosen by somebody."""

    model: GP | AutoGP
    method: str
    """Which of the model's methods made the plan."""
    options: Mapping[str, Any]
    """That method's arguments, but for X and people."""

    def words(self) -> dict[str, Any]:
        """Plain numbers and texts, ready for JSON; raises if a function is among them."""
        kind = type(self.model).__name__
        _words(getattr(self.model, "noise_function", None), "noise_function")
        own = {name: _words(getattr(self.model, name), name) for name in _FIELDS[kind]}
        options = {name: _words(value, name) for name, value in self.options.items()}
        return {"model": {"kind": kind, **own}, "method": self.method, "options": options}

    @classmethod
    def from_words(cls, words: Any) -> Question:
        """What :meth:`words` gave, through the model's own checks; or an error that says what is wrong."""
        try:
            own, options = dict(words["model"]), dict(words["options"])
            kind, method = own.pop("kind"), words["method"]
            if set(words) != {"model", "method", "options"} or set(own) != set(_FIELDS[kind]):
                raise ArgumentError("settings", "must have exactly the keys of a plan's settings")
            if method not in METHODS or not hasattr(_MODELS[kind], method):
                raise ArgumentError("settings", f"must have a method out of {', '.join(METHODS)}")
            # The table's own are not among them: a file that brought X or people would be taken at its word.
            unknown = set(options) - (set(signature(getattr(_MODELS[kind], method)).parameters) - _OF_TABLE)
            if unknown:
                expected = f"must have options of {method} only, and none of {', '.join(sorted(_OF_TABLE))}"
                raise ArgumentError("settings", expected, ", ".join(sorted(map(str, unknown)))[:100])
            if kind == "GP":
                own["kernel"] = from_spec(own["kernel"])
                own["noise"] = None if own["outcome"] in CHANCES else own["noise"]
            else:
                own["prior"] = Hyperprior(**{name: _tuples(v) for name, v in own["prior"].items()})
                own["seasons"] = _by_column(own["seasons"])
            own["classes"] = own["classes"] or None
            for name, read in (("columns", Columns.from_words), ("grid", Grid.from_words)):
                if options.get(name) is not None:
                    options[name] = read(options[name])
            return cls(_MODELS[kind](**own), method, options)
        except ArgumentError:
            raise
        except (TypeError, KeyError, AttributeError, ValueError, OverflowError, RecursionError) as error:
            said = f"{type(error).__name__}: {error}"[:200]
            raise ArgumentError("settings", f"must be those of a plan ({said})") from None

    def digest(self, inputs: str, people: str) -> str | None:
        """SHA-256 of what is asked, of whom: the same on every machine. None if it holds a function."""
        try:
            asked = {"settings": self.words(), "inputs": inputs, "people": people}
        except ArgumentError:
            return None
        return hashlib.sha256(json.dumps(asked, sort_keys=True, allow_nan=False).encode()).hexdigest()

    def ask(self, X: Any = None, people: Any = None, given: Sequence[Any] = (), ids: str = ALIKE) -> Any:
        """The plan, made again for this table."""
        options = dict(self.options)
        if options.get("ids", ALIKE) != ids:
            remedy = "It takes each way of writing an id for another person. Say so, too, if that is right."
            raise ArgumentError("ids", f"must be {options.get('ids', ALIKE)!r}, as in the plan", ids, remedy)
        if self.method == "plan_rows":
            if X is not None or people is not None:
                remedy = "The plan protects whole rows, and must not see them: give them to release."
                raise ArgumentError("X, people", "must be left out", remedy=remedy)
        elif X is None:
            raise ArgumentError("X", "must be given: the inputs of your own table, which the plan is for")
        else:
            options = {**options, "X": X, "people": people}
        wanted = options.pop("given", None)
        if wanted is not None or given:
            if _words(given, "given") != _words(wanted or (), "given"):
                raise ArgumentError("given", "must be the releases that the plan was made for, in order")
            options["given"] = given
        return getattr(self.model, self.method)(**options)

    def __str__(self) -> str:
        """One line for each setting; of arrays, how large they are."""
        names = _FIELDS[type(self.model).__name__]
        own = {name: getattr(self.model, name) for name in names} | dict(self.options)
        lines = [f"{name}: {_shown(value)}" for name, value in own.items() if not _is_empty(value)]
        return "\n".join([f"{type(self.model).__name__}.{self.method}", *(f"  {line}" for line in lines)])


def question_digest(plan: Any) -> str:
    """SHA-256 of what a plan asks, of whom; the plan's own digest where a function is part of it."""
    found = None
    if plan.question is not None:
        found = plan.question.digest(plan.inputs_digest, plan.partition)
    return str(plan.digest) if found is None else found


def check_own(plan: Any) -> None:
    """Raise if a plan was read from a file: its matrix is somebody else's, and may be for other rows."""
    if plan.question is None:
        raise ArgumentError(
            "plan",
            "must be made from your own table, not read from a release",
            remedy="Plan again: what others computed is not multiplied with outcomes. Nothing was spent.",
        )


def attach(plan: Any, question: Question) -> None:
    """Let a plan that was just made know its question: without one, nothing can be released from it."""
    object.__setattr__(plan, "question", question)


def table_options(
    people: People | None, within: float, columns: Columns | None, rows: TableRows | None
) -> dict[str, Any]:
    """The options by which a table was read."""
    dropped = rows is not None and rows.kept is not None
    found = {"columns": columns, "missing_inputs": "drop" if dropped else "error"}
    return found if people is None else {**found, "within": within, "ids": people.ids}


def digest_of(release: Any) -> str:
    """SHA-256 of what a release promised and answered."""
    answers = [stage.answer for stage in getattr(release, "stages", ())] or [release.z]
    whole = hashlib.sha256(release.plan.digest.encode())
    for answer in answers:
        whole.update(np.asarray(answer, dtype="<i8").tobytes())
    return whole.hexdigest()


def _words(value: Any, name: str) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Kernel) and not is_custom(value.to_spec()):
        return value.to_spec()
    if isinstance(value, Hyperprior):
        return {name: _words(own, name) for name, own in asdict(value).items()}
    if isinstance(value, (Columns, Grid)):
        return value.words()
    if isinstance(value, Middle):  # what an absent mean stands for
        return None
    if isinstance(value, (list, tuple)):
        return [_words(one, name) for one in value]
    if hasattr(value, "to_numpy"):  # a column of a frame
        return value.to_numpy().tolist()
    if hasattr(value, "plan") and hasattr(value, "z"):
        return digest_of(value)
    raise ArgumentError(
        name,
        "must be numbers or texts in a plan that is saved",
        "a function" if callable(value) else type(value).__name__,
        "No file can hold it. Give its values at the rows of X, or release from this plan now.",
    )


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _by_column(pairs: Sequence[Sequence[Any]]) -> dict[Any, list[Any]] | None:
    found: dict[Any, list[Any]] = {}
    for name, period in pairs:
        found.setdefault(name, []).append(period)
    return found or None


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (tuple, list)) and not value)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{' x '.join(map(str, value.shape))} numbers"
    if isinstance(value, (tuple, list)) and any(isinstance(one, np.ndarray) for one in value):
        return ", ".join(map(_shown, value))
    if isinstance(value, list):
        return f"{len(value)} entries"
    return "a function" if callable(value) and not isinstance(value, Kernel) else str(value)
