"""The settings of a release, as words and numbers: what a plan file stores and a release repeats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from cloakgp import checks, designs
from cloakgp.calibration import CALIBRATIONS
from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.kernels import Kernel, from_spec
from cloakgp.model.gp import GP
from cloakgp.model.outcome import REAL
from cloakgp.plans import out_of_core
from cloakgp.plans.comparison import Comparison
from cloakgp.plans.predictions import Plan
from cloakgp.plans.staged import StagedPlan
from cloakgp.rows.columns import Columns
from cloakgp.rows.formats import Format
from cloakgp.rows.inputs import MISSING_INPUTS
from cloakgp.rows.people import ALIKE, as_ids, as_within
from cloakgp.workflow import points
from cloakgp.workflow.inputs import complete_rows, is_small

_OF_PEOPLE: dict[str, Any] = {"people": None, "within": 1.0}
_OF_TABLE: dict[str, Any] = {
    "columns": None,
    "reading": None,
    "missing_inputs": "error",
    "seasons": None,
    "outcome": REAL,
    "classes": (),
    "ids": ALIKE,
}


@dataclass(frozen=True, eq=False)
class Settings:
    """Everything that decides a plan but the data themselves; all of it public.

    `at` is ``"grid:n"`` or the test points themselves. `output` is the name of the private column, and
    stands for nothing else here. `inducing` is a number of inducing inputs, or these themselves. `people` is
    the name of the public column that says whose row each is; None if the promise is to each row. `within` is
    the correlation of the noise of one person's outcomes, and `ids` how ids are compared. `columns` says how
    levels and dates of the table became numbers, and `reading` how it is written: both found out from public
    columns when it was planned. `outcome` is what outcomes are, and `classes` how they are written, if they
    are one of some: public. Where they are no numbers, `kernel` and `mean` are of f behind probabilities or
    rates, as for :class:`GP`.
    """

    inputs: tuple[str, ...]
    output: str
    bounds: tuple[float, float]
    kernel: Kernel
    noise: float | None
    at: str | FloatArray
    epsilon: float
    delta: float
    mean: float | None = None
    design: str = "mse"
    calibration: str = "analytic"
    inducing: int | FloatArray | None = None
    approximation: str = "dtc"
    device: str | None = None
    people: str | None = None
    within: float = 1.0
    columns: Columns | None = None
    reading: Format | None = None
    missing_inputs: str = "error"
    outcome: str = REAL
    classes: tuple[str, ...] = ()
    ids: str = ALIKE

    def __post_init__(self) -> None:
        check_output(self.inputs, self.output, self.people)
        check_roles(self.columns, self.inputs, self.output, self.people)
        as_ids(self.ids, self.people is not None)
        object.__setattr__(self, "within", as_within(self.within))
        if self.outcome == REAL:
            remedy = "It is the variance of the observation noise, one number here."
            checks.positive(self.noise, "noise", remedy)
        gp = self.gp()
        for name in ("bounds", "noise", "mean", "inducing"):
            object.__setattr__(self, name, getattr(gp, name))
        object.__setattr__(self, "epsilon", checks.positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", checks.number(self.delta, "delta", above=0.0, below=1.0))
        checks.choice(self.design, "design", designs.DESIGNS)
        checks.choice(self.calibration, "calibration", CALIBRATIONS)

    def gp(self) -> GP:
        """The model."""
        return GP(
            self.kernel,
            self.noise,
            self.bounds,
            self.mean,
            self.inducing,
            self.approximation,
            outcome=self.outcome,
            classes=self.classes or None,
        )

    @property
    def in_stages(self) -> bool:
        """Whether the release is one in stages, though the model is known: it has a single one."""
        return self.outcome != REAL

    @property
    def may_stream(self) -> bool:
        """Whether the inputs may be read a chunk at a time."""
        return self.inducing is not None and not self.in_stages

    def points(self, X: Any) -> FloatArray:
        """The test points, for these inputs."""
        if isinstance(self.at, str):
            return points.grid(self.at, complete_rows(X, None, self.missing_inputs)[0], self.columns)
        return self.at

    def plan(self, X: Any, people: Any = None) -> Plan | StagedPlan:
        """The plan, for these inputs and ids: public, without y, and the same wherever inputs are kept."""
        where = self.points(X)
        plan: Plan | StagedPlan = self.gp().plan(
            X if self._is_streamed(X, where) else np.asarray(X),
            X_star=where,
            epsilon=self.epsilon,
            delta=self.delta,
            design=self.design,
            calibration=self.calibration,
            device=self.device,
            people=people,
            within=self.within,
            ids=self.ids,
            columns=self.columns,
            missing_inputs=self.missing_inputs,
        )
        if isinstance(plan, StagedPlan) or isinstance(plan.X, np.ndarray) or not is_small(X):
            return plan
        return replace(plan, X=checks.frozen(np.asarray(X)))

    def compare(self, X: Any, people: Any = None) -> Comparison:
        """The designs side by side, for these inputs: public, and without y."""
        where = self.points(X)
        return self.gp().compare(
            X if self._is_streamed(X, where) else np.asarray(X),
            X_star=where,
            epsilon=self.epsilon,
            delta=self.delta,
            calibration=self.calibration,
            people=people,
            within=self.within,
            ids=self.ids,
            columns=self.columns,
            missing_inputs=self.missing_inputs,
        )

    def _is_streamed(self, X: Any, where: FloatArray) -> bool:
        """Whether a plan passes over X a chunk at a time, unless equal rows make it smaller."""
        if self.inducing is None or not self.may_stream:
            return False
        inducing = self.inducing if isinstance(self.inducing, int) else len(self.inducing)
        return len(X) * min(len(where), inducing) > out_of_core.DENSE

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, ready for JSON."""
        return described(self) | {
            "inputs": list(self.inputs),
            "bounds": list(self.bounds),
            "kernel": self.kernel.to_spec(),
            "at": self.at if isinstance(self.at, str) else self.at.tolist(),
            "inducing": self.inducing.tolist() if isinstance(self.inducing, np.ndarray) else self.inducing,
        }

    @classmethod
    def from_dict(cls, values: Any) -> Settings:
        """Settings from :meth:`to_dict`'s description, or an error that says what is wrong with it."""
        values = check_description(values, {field.name for field in fields(cls)})
        inputs, at = values["inputs"], values["at"]
        if values["device"] is not None and not _is_name(values["device"]):
            raise InputError("settings: device must be a name, or null.")
        _check_numbers(values, ("noise", "mean"))
        try:
            kernel = from_spec(values["kernel"])
            where = at if isinstance(at, str) else points.as_matrix(at)
            changed = {"inputs": tuple(inputs), "kernel": kernel, "at": where, **of_table(values)}
            return cls(**values | changed | {"inducing": inducing_of(values)})
        except (TypeError, KeyError, ValueError) as error:
            raise InputError(f"settings: {error}") from None


def described(settings: Any) -> dict[str, Any]:
    """The fields of settings; nothing of people, or of a table's own ways, where there is nothing to say."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    left_out = set(_OF_PEOPLE) if values["people"] is None and "within" in values else set()
    left_out |= {name for name, absent in _OF_TABLE.items() if values.get(name, absent) == absent}
    kept = {name: value for name, value in values.items() if name not in left_out}
    kept |= {"classes": list(kept["classes"])} if "classes" in kept else {}
    return kept | {name: kept[name].words() for name in ("columns", "reading") if name in kept}


def of_table(values: dict[str, Any]) -> dict[str, Any]:
    """What a description says of a table, as it was."""
    found: dict[str, Any] = {}
    if values.get("columns") is not None:
        found["columns"] = Columns.from_words(values["columns"])
    if values.get("reading") is not None:
        found["reading"] = Format.from_words(values["reading"])
    if "classes" in values:
        if not all(isinstance(name, str) for name in values["classes"]):
            raise InputError("classes must be a list of texts.")
        found["classes"] = tuple(values["classes"])
    return found


def absent_of_table(names: set[str]) -> dict[str, Any]:
    """What those of these settings are that a description leaves out if there is nothing to say."""
    return {name: absent for name, absent in _OF_TABLE.items() if name in names}


def check_description(values: Any, names: set[str]) -> dict[str, Any]:
    """A description with all of these keys; raises unless it has them, names its columns, and promises."""
    if isinstance(values, dict):
        values = absent_of_table(names) | values
        values = values if "people" in values else values | _OF_PEOPLE
    if not isinstance(values, dict) or set(values) != names:
        found = set(values) if isinstance(values, dict) else set()
        wrong = ", ".join(sorted(names ^ found))
        raise InputError(f"settings: a key is absent or one too many ({wrong}).")
    inputs = values["inputs"]
    if not isinstance(inputs, list) or not inputs or not all(_is_name(name) for name in inputs):
        raise InputError("settings: inputs must be a list of column names.")
    if not _is_name(values["output"]):
        raise InputError("settings: output must be a column's name.")
    if values["people"] is not None and not _is_name(values["people"]):
        raise InputError("settings: people must be a column's name, or be left out.")
    if values["inducing"] is not None and type(values["inducing"]) not in (int, list):
        raise InputError("settings: inducing must be a whole number, a list of them, or null.")
    _check_numbers(values, ("epsilon", "delta", "within"))
    if values.get("missing_inputs", "error") not in MISSING_INPUTS:
        raise InputError("settings: missing_inputs must be 'error' or 'drop'.")
    return values


def _check_numbers(values: dict[str, Any], names: Sequence[str]) -> None:
    for name in names:
        if type(values[name]) is not float or not math.isfinite(values[name]):
            raise InputError(f"settings: {name} must be a number such as 1.0.")


def inducing_of(values: dict[str, Any]) -> int | FloatArray | None:
    """Inducing inputs as a description has them."""
    given = values["inducing"]
    return points.as_matrix(given) if isinstance(given, list) else given


def check_output(inputs: Sequence[str], output: str, people: str | None = None) -> None:
    """Raise if the private column is among the public ones."""
    if output == people:
        raise InputError(
            f"the output column {output!r} must not be that of people: who has which rows is public."
        )
    if output in inputs:
        raise InputError(f"the output column {output!r} must not be an input: inputs are published.")


def check_roles(columns: Columns | None, inputs: Sequence[str], output: str, people: str | None) -> None:
    """Raise if `columns`, by which levels and dates are read, is about others than those that are named."""
    if columns is None:
        return
    same = columns.names == tuple(inputs) and columns.response in ("", output)
    if not same or columns.people not in ("", people):
        raise InputError(
            "settings: columns must be about the inputs, the output and the people that are named."
        )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""
