"""The settings of a release whose model is learned: bounds, the promise, and little else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.model.auto_gp import AutoGP
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.model.outcome import REAL
from cloakgp.plans.staged import StagedPlan
from cloakgp.plans.staged_planner import points_covering
from cloakgp.rows.columns import Columns
from cloakgp.rows.formats import Format
from cloakgp.rows.people import ALIKE, as_ids, as_within
from cloakgp.workflow import points
from cloakgp.workflow.inputs import complete_rows
from cloakgp.workflow.row_settings import RowSettings
from cloakgp.workflow.settings import (
    Settings,
    check_description,
    check_output,
    check_roles,
    described,
    inducing_of,
    of_table,
)


@dataclass(frozen=True, eq=False)
class LearnedSettings:
    """Everything that decides a plan of :class:`cloakgp.AutoGP` but the data themselves; all of it public.

    As :class:`Settings`; `at` is None for points that cover the inputs and their surroundings. `outcome` is
    what outcomes are, and `classes` how they are written, if they are one of some: public.
    """

    inputs: tuple[str, ...]
    output: str
    bounds: tuple[float, float]
    epsilon: float
    delta: float
    at: str | FloatArray | None = None
    kernels: tuple[str, ...] = Hyperprior().kernels
    stages: int | None = None
    inducing: int | FloatArray | None = None
    people: str | None = None
    within: float = 1.0
    columns: Columns | None = None
    reading: Format | None = None
    missing_inputs: str = "error"
    seasons: Mapping[str | int, Any] | None = None
    outcome: str = REAL
    classes: tuple[str, ...] = ()
    ids: str = ALIKE

    def __post_init__(self) -> None:
        check_output(self.inputs, self.output, self.people)
        check_roles(self.columns, self.inputs, self.output, self.people)
        as_ids(self.ids, self.people is not None)
        object.__setattr__(self, "within", as_within(self.within))
        gp = self.gp()
        for name, value in (("bounds", gp.bounds), ("kernels", gp.prior.kernels), ("inducing", gp.inducing)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "epsilon", checks.positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", checks.number(self.delta, "delta", above=0.0, below=1.0))

    def gp(self) -> AutoGP:
        """The model."""
        return AutoGP(
            self.bounds,
            outcome=self.outcome,
            classes=self.classes or None,
            kernels=self.kernels,
            stages=self.stages,
            inducing=self.inducing,
            seasons=self.seasons,
        )

    @property
    def in_stages(self) -> bool:
        """Whether the release is one in stages: always."""
        return True

    @property
    def may_stream(self) -> bool:
        """Whether the inputs may be read a chunk at a time."""
        return True

    def points(self, X: Any) -> FloatArray:
        """The test points, for these inputs."""
        if isinstance(self.at, np.ndarray):
            return self.at
        X, _ = complete_rows(X, None, self.missing_inputs)
        if self.at is None:
            return points_covering(X, () if self.columns is None else self.columns.categories)
        return points.grid(self.at, X, self.columns)

    def plan(self, X: Any, people: Any = None) -> StagedPlan:
        """The plan, for these inputs and ids: public, and without y."""
        return self.gp().plan(
            X,
            X_star=None if self.at is None else self.points(X),
            epsilon=self.epsilon,
            delta=self.delta,
            people=people,
            within=self.within,
            ids=self.ids,
            columns=self.columns,
            missing_inputs=self.missing_inputs,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, ready for JSON."""
        return described(self) | {
            "inputs": list(self.inputs),
            "bounds": list(self.bounds),
            "kernels": list(self.kernels),
            "at": self.at.tolist() if isinstance(self.at, np.ndarray) else self.at,
            "inducing": self.inducing.tolist() if isinstance(self.inducing, np.ndarray) else self.inducing,
        }

    @classmethod
    def from_dict(cls, values: Any) -> LearnedSettings:
        """Settings from :meth:`to_dict`'s description, or an error that says what is wrong with it."""
        values = check_description(values, {field.name for field in fields(cls)})
        at, kernels = values["at"], values["kernels"]
        if at is not None and type(at) not in (str, list):
            raise InputError("settings: at must be grid:n, a list of points, or null.")
        if not isinstance(kernels, list):
            raise InputError("settings: kernels must be a list of names.")
        try:
            where = points.as_matrix(at) if isinstance(at, list) else at
            changed = {"inputs": tuple(values["inputs"]), "at": where, "kernels": tuple(kernels)}
            return cls(**values | changed | of_table(values) | {"inducing": inducing_of(values)})
        except (TypeError, KeyError, ValueError) as error:
            raise InputError(f"settings: {error}") from None


PublicSettings = Settings | LearnedSettings
"""Of plans that read the inputs."""
AnySettings = PublicSettings | RowSettings


def settings_from(values: Any) -> AnySettings:
    """Settings of whichever kind from their description."""
    if isinstance(values, dict) and "grid" in values:
        return RowSettings.from_dict(values)
    learned = isinstance(values, dict) and "kernel" not in values
    return LearnedSettings.from_dict(values) if learned else Settings.from_dict(values)
