"""What a person chooses: one record, by which the library, plan files, the command line and the app plan.

It holds everything that decides a plan but the table: the promise, what outcomes are, the model, what is
asked, and by which names and codes a table is read. All of it is public. A plan file holds settings, not the
matrices of a plan (``release/plan_file``): what others worked out is never multiplied with y. And a ledger
knows a question again whatever the last digits of a machine are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from cloakgp.core import checks
from cloakgp.core.errors import Argument, ArgumentError, Message
from cloakgp.data.columns import Columns
from cloakgp.data.formats import Format
from cloakgp.data.grid import Grid
from cloakgp.data.inputs import as_inputs
from cloakgp.data.people import ALIKE, as_ids, as_within
from cloakgp.kernels import Kernel, from_spec
from cloakgp.kernels.specs import is_custom
from cloakgp.model.auto_gp import LearnedGP
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.model.outcome import REAL, outcome_named
from cloakgp.model.windows import Middle
from cloakgp.release import points

P = TypeVar("P")
OUTCOMES, PEOPLE, ROWS = "outcomes", "people", "rows"
"""What stays private: each row's outcome; all outcomes of a person; whole rows, inputs included."""
PREDICTIONS, FUNCTION = "predictions", "function"
"""What is released."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Settings:
    """Everything that decides a plan but the table. What is None was not chosen.

    `kernel`, `noise` and what follows them are a model that is known, as for :class:`cloakgp.GP`; without a
    kernel it is learned, as :class:`cloakgp.AutoGP` does. `at` is ``"grid:n"``, or the test points. `columns`
    are public inputs and how they become numbers; `grid` is the public box of private ones, and `n_rows` the
    number of rows or people. `output` and `people` name columns of a table, and `reading` says how its file
    is written. The rest are arguments of :meth:`cloakgp.GP.plan`, ``plan_rows`` and ``plan_function``, with
    their defaults.
    """

    epsilon: float
    delta: Any = None  # a number, once it is known to how many the promise is made
    within: float = 1.0
    ids: str = ALIKE
    max_rows: int | None = None
    bounds: Any = None
    outcome: str = REAL.name
    classes: tuple[Any, ...] = ()
    kernel: Any = None
    noise: Any = None
    mean: Any = None
    approximation: str = "dtc"
    downweight: str | None = None
    noise_function: Callable[..., Any] | None = None
    kernels: tuple[str, ...] | None = None
    prior: Hyperprior | None = None
    stages: int | None = None
    seasons: Any = ()
    inducing: Any = None
    kind: str = PREDICTIONS
    at: Any = None
    weights: Any = None
    design: str = "mse"
    calibration: str = "analytic"
    gap: float = 0.01
    device: str | None = None
    given: Sequence[Any] = ()
    windows: float | None = None
    bound: str = "exact"
    basis: Any = None
    margin: float | None = None
    columns: Columns | None = None
    missing_inputs: str = "error"
    grid: Grid | None = None
    n_rows: int | None = None
    output: str = ""
    people: str | None = None
    reading: Format | None = None

    def __post_init__(self) -> None:
        set_own = object.__setattr__
        set_own(self, "epsilon", checks.positive(self.epsilon, "epsilon", "1 is a common choice."))
        if self.delta is not None:  # else the default for so many rows, which are not known yet
            set_own(self, "delta", checks.number(self.delta, "delta", above=0.0, below=1.0))
        set_own(self, "within", as_within(self.within))
        checks.choice(self.kind, "kind", (PREDICTIONS, FUNCTION))
        as_ids(self.ids, people=True)
        model = self.model
        for name in _of_model(model):
            set_own(self, name, getattr(model, name))
        if self.kernel is None:  # its families say all of a prior that nobody gave
            set_own(self, "kernels", model.prior.kernels)
            set_own(self, "prior", None)
            set_own(self, "prior", None if self.model.prior == model.prior else model.prior)
        check_names(self.inputs, self.output, self.people, self.hides_inputs)
        if self.columns is not None:
            own = self.columns.response in ("", self.output), self.columns.people in ("", self.people)
            if not all(own):
                expected = "must be about the output and the people that are named"
                raise ArgumentError("columns", expected)

    @classmethod
    def of(cls, model: GaussianProcess | LearnedGP, **options: Any) -> Settings:
        """A model's settings, and what else was chosen."""
        return cls(**_of_model(model) | options)

    @property
    def model(self) -> Any:
        """The model, known or to be learned; raises if one of its arguments cannot be used."""
        own = {"inducing": self.inducing, "outcome": self.outcome, "classes": self.classes or None}
        if self.kernel is None:
            families = None if self.prior is not None else self.kernels or None
            own |= {"kernels": families, "prior": self.prior, "stages": self.stages}
            own |= {"seasons": self.seasons or None}
            return LearnedGP(self.bounds, **own)
        own |= {"downweight": self.downweight, "noise_function": self.noise_function}
        return GaussianProcess(
            self.kernel, self.noise, self.bounds, self.mean, approximation=self.approximation, **own
        )

    @property
    def hides_inputs(self) -> bool:
        """Whether inputs are private, too: nothing of the table is looked at for a plan."""
        return self.grid is not None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs; none if they were an array."""
        if self.grid is not None:
            return self.grid.names
        return () if self.columns is None else self.columns.names

    @property
    def in_stages(self) -> bool:
        """Whether the release is made in stages, be it one: its error can be forecast, and not more."""
        return self.kernel is None or self.hides_inputs or self.outcome != REAL.name or bool(self.given)

    @property
    def may_stream(self) -> bool:
        """Whether inputs may be read a chunk at a time."""
        known = self.kernel is not None
        return not self.hides_inputs and (
            not known or (self.inducing is not None and self.outcome == REAL.name)
        )

    def points(self, X: Any) -> Any:
        """The test points, for these inputs; None if the plan chooses such as cover them."""
        if not isinstance(self.at, str):
            return self.at
        if self.grid is not None:
            return points.over(self.grid, self.at)
        found = as_inputs(X, None, self.columns, self.missing_inputs)
        return points.grid(self.at, found.X, found.columns)

    def chosen(self) -> dict[str, Any]:
        """What is not as it would be if nobody said anything."""
        values = ((one, getattr(self, one.name)) for one in fields(self))
        return {one.name: value for one, value in values if not _is_usual(value, one.default)}

    def attach(self, plan: P, **more: Any) -> P:
        """A plan that was just made, with these settings: without them, nothing can be released from it.

        They are as the plan has them: its promise and its test points, and how its table was read.
        """
        known: Any = plan
        c, names = known.certificate, known.columns
        more |= {"epsilon": c.epsilon, "delta": c.delta}
        more |= {} if self.at is None else {"at": known.X_star}
        if known.population is None:
            dropped = known.rows is not None and known.rows.kept is not None
            more |= {"columns": names, "missing_inputs": "drop" if dropped else "error"}
            more |= {"within": known.within if known.people else 1.0, "ids": c.ids}
            if names is not None:
                more |= {"output": names.response, "people": names.people or None}
        object.__setattr__(plan, "question", replace(self, **more))
        return plan

    def words(self) -> dict[str, Any]:
        """What was chosen as plain numbers and texts, ready for JSON; raises if a function is among it."""
        chosen = self.chosen().items()
        return {name: json.loads(json.dumps(value, default=partial(_plain, name))) for name, value in chosen}

    @classmethod
    def from_words(cls, words: Any) -> Settings:
        """What :meth:`words` gave, through the model's own checks; or an error that says what is wrong."""
        try:
            # X and ids of people have no names here: a file that brought them would be taken at its word.
            wrong = {"epsilon", "delta"} - set(words) or set(words) - {one.name for one in fields(cls)}
            if wrong:
                raise ArgumentError("settings", "must be those of a plan", ", ".join(map(str, wrong))[:100])
            return cls(
                **{name: _READ[name](value) if name in _READ else value for name, value in words.items()}
            )
        except (TypeError, KeyError, AttributeError, ValueError, OverflowError, RecursionError) as error:
            said = str(error) if isinstance(error, ArgumentError) else f"{type(error).__name__}: {error}"
            raise ArgumentError("settings", "must be those of a plan", said[:200]) from None

    def digest(self, inputs: str, people: str) -> str | None:
        """SHA-256 of what is asked, of whom: the same on every machine. None if it holds a function."""
        try:
            asked = {"settings": self.words(), "inputs": inputs, "people": people}
        except ArgumentError:
            return None
        return hashlib.sha256(json.dumps(asked, sort_keys=True, allow_nan=False).encode()).hexdigest()

    def rows(self) -> list[tuple[str, str]]:
        """Each setting's name and value; of arrays, how large they are."""
        return [(name, _shown(value)) for name, value in self.chosen().items()]

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.rows())


def _of_model(model: GaussianProcess | LearnedGP) -> dict[str, Any]:
    return {one.name: getattr(model, one.name) for one in fields(model)}


def digest_of(release: Any) -> str:
    """SHA-256 of what a release promised and answered."""
    whole = hashlib.sha256(release.plan.digest.encode())
    for stage in release.stages:
        whole.update(np.asarray(stage.answer, dtype="<i8").tobytes())
    return whole.hexdigest()


# ------------------------------------------------------------------------- which options go together

_SET = Message("Leave it out, or set the model with ", Argument("kernel"), " and ", Argument("noise"), ".")
_CASES: dict[str, tuple[str, Any]] = {
    "known": ("the model is learned, and does without it", _SET),
    "learned": ("the model is not learned: a kernel sets it", ""),
    "inducing": ("there are no inducing inputs", ""),
    "scattered": ("outcomes are yes or no, or classes", "How they scatter follows from their probability."),
    "real": ("outcomes are {outcome}", "There is one way to release them, on this machine."),
    "public": (
        "whole rows are protected",
        "Inputs are private then: say what is publicly known of them. They are released in stages, on this "
        "machine.",
    ),
    "rows": (
        "inputs are public, and read",
        Message("It is for private ones: ", Argument("protect", ROWS), "."),
    ),
    "people": (
        "nobody says whose row each is",
        Message("The column is named with ", Argument("people"), "."),
    ),
    "alone": (
        "people are protected with all of their rows",
        Message("Their number is private then. Say how many people there are: ", Argument("n_people"), "."),
    ),
    "predictions": ("a function is released", ""),
}
"""What is said where a case does not hold, and what to do then."""
_MEANT = {
    "mean": "known",
    "noise": "known scattered",
    "approximation": "known inducing",
    **dict.fromkeys(("design", "device", "gap"), "known public real predictions"),
    **dict.fromkeys(("calibration", "dask", "kind"), "known public real"),
    **dict.fromkeys(("kernels", "prior", "stages", "seasons"), "learned"),
    **dict.fromkeys(("categories", "missing_inputs", "given"), "public"),
    "within": "public people",
    "ids": "people",
    **dict.fromkeys(("box", "levels", "cells", "grid"), "rows"),
    "rows": "rows alone",
    **dict.fromkeys(("max_rows", "n_people"), "rows people"),
}
"""Each option with the cases in which it has a meaning: all that is written of which go together."""
_NEEDED: dict[str, tuple[str, Any]] = {
    "bounds": (
        "where outcomes are publicly known to lie",
        "However generous; there is no safe default. Outcomes that are yes or no go without.",
    ),
    "people": ("the column that says whose row each is", ""),
    "max_rows": ("how many rows of each person count, at most", ""),
    "n_people": ("how many people there are, which is public", ""),
    "noise": (
        "the variance of outcomes at one input",
        Message("Or leave out ", Argument("kernel"), ", too, and the model is learned."),
    ),
    "at": ("where predictions are wanted", "Such as grid:200."),
}
"""What may be needed, and what is said where it is missing."""


def check_together(asked: Mapping[str, Any]) -> None:
    """Raise unless what is asked goes together: nothing is ignored in silence, and nothing is missing.

    `asked` holds settings by name; `protect`, `inputs`; and options that only some faces have. What is None,
    or empty, counts as not asked for.
    """
    chosen = {name: value for name, value in asked.items() if not _is_absent(value)}
    protect = chosen.setdefault("protect", PEOPLE if "people" in chosen else OUTCOMES)
    outcome = outcome_named(chosen.get("outcome", REAL.name), chosen.get("classes", ()))
    known, rows, people = "kernel" in chosen, protect == ROWS, "people" in chosen
    holds = {"known": known, "learned": not known, "rows": rows, "public": not rows, "people": people}
    holds["alone"] = not people
    holds |= {"inducing": "inducing" in chosen, "predictions": "kind" not in chosen}
    holds |= {"real": outcome.link is None, "scattered": outcome.scattered}
    for name in chosen:
        for case in _MEANT.get(name, "").split():
            if not holds[case]:
                where, remedy = _CASES[case]
                expected = f"must be left out where {where.format(outcome=outcome.words)}"
                raise ArgumentError(name, expected, remedy=remedy)
    if protect == OUTCOMES and people:
        expected = "must be left out where each row's outcome is protected by itself"
        raise ArgumentError("people", expected, remedy=Message("Or leave out ", Argument("protect"), "."))
    needed = {
        "bounds": not outcome.fixed_bounds,
        "people": protect == PEOPLE,
        "max_rows": rows and people,
        "n_people": rows and people,
        "noise": known and holds["real"],
        "at": known and holds["predictions"],
    }
    for name, (what, remedy) in _NEEDED.items():
        if needed[name] and name not in chosen:
            raise ArgumentError(name, f"must be given: {what}", remedy=remedy)
    check_names(asked.get("inputs", ()), asked.get("output", ""), asked.get("people"), rows)


def check_names(inputs: Sequence[str], output: str, people: str | None, hides_inputs: bool = False) -> None:
    """Raise unless each column has one role: the private one must not be among the public ones."""
    for name, value in (("output", output), ("people", people or "")):
        if not isinstance(value, str):
            raise ArgumentError(name, "must be the name of a column", f"{value!r:.100}")
    if output and output == people:
        expected = "must be another column than the private outcome: who has which rows is public"
        raise ArgumentError("people", expected, repr(output))
    if output in inputs:
        raise ArgumentError(
            "output", "must not be an input: it is private, and inputs are published", repr(output)
        )
    if hides_inputs and people in inputs:
        raise ArgumentError("people", "must not be an input where whole rows are protected", repr(people))


# ---------------------------------------------------------------------------------- values and words


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, (tuple, list, dict)) and not value)


def _is_usual(value: Any, usual: Any) -> bool:
    """Whether all is as if nobody had chosen it."""
    if _is_absent(value):
        return True
    return isinstance(value, (str, float, bool)) and isinstance(usual, type(value)) and value == usual


def _plain(name: str, value: Any) -> Any:
    """What JSON has no form for, in numbers and texts."""
    if isinstance(value, Middle):  # what an absent mean stands for
        return None
    if isinstance(value, Hyperprior):
        return asdict(value)
    if isinstance(value, Kernel) and not is_custom(value.to_spec()):
        return value.to_spec()
    for form in ("words", "tolist", "to_numpy"):  # of our own; of numpy; of a frame's column
        if hasattr(value, form):
            return getattr(value, form)()
    if hasattr(value, "plan"):
        return digest_of(value)
    raise ArgumentError(
        name,
        "must be numbers or texts in a plan that is saved",
        "a function" if callable(value) else type(value).__name__,
        "No file can hold it. Give its values at the rows of X, or release from this plan now.",
    )


_READ: dict[str, Callable[[Any], Any]] = {
    "kernel": from_spec,
    "prior": lambda words: Hyperprior(**words),
    "kernels": tuple,
    "classes": tuple,
    "seasons": tuple,
    "columns": Columns.from_words,
    "grid": Grid.from_words,
    "reading": lambda words: Format(**words),
}
"""What is more than numbers, texts and lists of them."""


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{' x '.join(map(str, value.shape))} numbers"
    arrays = isinstance(value, list) and any(isinstance(one, np.ndarray) for one in value)
    if arrays or isinstance(value, tuple):
        return ", ".join(map(_shown, value))
    if isinstance(value, list):
        return f"{len(value)} entries"
    return "a function" if callable(value) and not isinstance(value, Kernel) else str(value)
