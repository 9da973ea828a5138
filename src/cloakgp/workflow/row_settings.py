"""The settings of a release of whole rows, whose inputs are private: a box stands for them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError, InputError
from cloakgp.kernels import Kernel, from_spec
from cloakgp.model.auto_gp import AutoGP
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.model.outcome import REAL
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.rows.formats import Format
from cloakgp.rows.grid import Grid
from cloakgp.rows.people import ALIKE, as_ids
from cloakgp.workflow import boxes, points
from cloakgp.workflow.settings import (
    absent_of_table,
    check_description,
    check_output,
    described,
    inducing_of,
    of_table,
)


@dataclass(frozen=True, eq=False)
class RowSettings:
    """Everything that decides a plan of whole rows; all of it public, and none of it read from the table.

    Parameters
    ----------
    grid : Grid
        The inputs' box, by the names of their columns.
    output : str
        The private column of outcomes.
    size : int
        How many rows there are; with `people`, how many people.
    people : str, optional
        The column that says whose row each is: private, too. Then a person's rows are protected together.
    max_rows : int, optional
        With `people`: how many rows of each person count, at most.
    ids : {"alike", "exact"}
        With `people`: how their ids are compared.
    kernel, noise, mean
        The model, if it is known; else it is learned, as `kernels` and `stages` say.
    reading : Format, optional
        How the table is written, by its header and what was said; no column is asked.
    outcome, classes
        As for :class:`LearnedSettings`.
    """

    grid: Grid
    output: str
    bounds: tuple[float, float]
    epsilon: float
    delta: float
    size: int
    people: str | None = None
    max_rows: int | None = None
    at: str | FloatArray | None = None
    kernels: tuple[str, ...] = Hyperprior().kernels
    stages: int | None = None
    inducing: int | FloatArray | None = None
    kernel: Kernel | None = None
    noise: float | None = None
    mean: float | None = None
    reading: Format | None = None
    outcome: str = REAL
    classes: tuple[str, ...] = ()
    ids: str = ALIKE

    def __post_init__(self) -> None:
        check_output(self.grid.names, self.output, self.people)
        as_ids(self.ids, self.people is not None)
        if (self.people is None) != (self.max_rows is None):
            raise InputError(
                "people and max_rows go together: the column that says whose row each is, and how many rows "
                "of each person count at most."
            )
        for name, value in (("size", self.size), ("max_rows", 1 if self.max_rows is None else self.max_rows)):
            if type(value) is not int or value < 1:
                raise ArgumentError(name, "must be a whole number above 0", repr(value)[:100])
        if self.people in self.grid.names:
            raise InputError(f"the column of people, {self.people!r}, must not be an input, too.")
        object.__setattr__(self, "bounds", self.gp().bounds)
        object.__setattr__(self, "epsilon", checks.positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", checks.number(self.delta, "delta", above=0.0, below=1.0))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the private inputs' columns."""
        return self.grid.names

    @property
    def in_stages(self) -> bool:
        """Whether the release is one in stages: always."""
        return True

    @property
    def may_stream(self) -> bool:
        """Whether the inputs may be read a chunk at a time: they are not read at all."""
        return False

    def gp(self) -> GP | AutoGP:
        """The model."""
        own: Any = {"inducing": self.inducing, "outcome": self.outcome, "classes": self.classes or None}
        if self.kernel is None:
            return AutoGP(self.bounds, kernels=self.kernels, stages=self.stages, **own)
        return GP(self.kernel, self.noise, self.bounds, self.mean, **own)

    def plan(self) -> RowsPlan:
        """The plan: public, and made without X and y."""
        where = boxes.over(self.grid, self.at) if isinstance(self.at, str) else self.at
        return self.gp().plan_rows(
            self.grid,
            self.size,
            X_star=where,
            epsilon=self.epsilon,
            delta=self.delta,
            max_rows=self.max_rows,
            ids=self.ids,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, ready for JSON."""
        return described(self) | {
            "grid": self.grid.words(),
            "bounds": list(self.bounds),
            "kernels": list(self.kernels),
            "kernel": None if self.kernel is None else self.kernel.to_spec(),
            "at": self.at.tolist() if isinstance(self.at, np.ndarray) else self.at,
            "inducing": self.inducing.tolist() if isinstance(self.inducing, np.ndarray) else self.inducing,
        }

    @classmethod
    def from_dict(cls, values: Any) -> RowSettings:
        """Settings from :meth:`to_dict`'s description, or an error that says what is wrong with it."""
        names = {field.name for field in fields(cls)}
        values = absent_of_table(names) | values if isinstance(values, dict) else values
        if not isinstance(values, dict) or set(values) != names:
            raise InputError("settings: a key is absent or one too many.")
        try:
            grid = Grid.from_words(values["grid"])
            check_description(
                {**values, "inputs": list(grid.names), "within": 1.0}, names | {"inputs", "within"}
            )
            at, kernel = values["at"], values["kernel"]
            if at is not None and type(at) not in (str, list):
                raise InputError("at must be grid:n, a list of points, or null.")
            changed = {
                "grid": grid,
                "kernels": tuple(values["kernels"]),
                "at": points.as_matrix(at) if isinstance(at, list) else at,
                "kernel": None if kernel is None else from_spec(kernel),
                "inducing": inducing_of(values),
                **of_table(values),
            }
            return cls(**values | changed)
        except (TypeError, KeyError, ValueError) as error:
            raise InputError(f"settings: {error}") from None
