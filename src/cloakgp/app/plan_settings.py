"""The settings of a plan, as a request has them. Strict: no key too many, nothing longer than need be."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cloakgp.app import defaults, limits
from cloakgp.app.folder import ID, UPLOAD_NAME
from cloakgp.model.outcome import CHANCES

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e30, le=1e30)]
Positive = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e30)]
Epsilon = Annotated[float, Field(allow_inf_nan=False, ge=1e-4, le=100)]
Delta = Annotated[float, Field(allow_inf_nan=False, ge=1e-12, le=0.5)]
PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]+$"
COLUMNS = 20
Column = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTABLE)]
Inputs = Annotated[list[Column], Field(min_length=1, max_length=COLUMNS)]
Bounds = Annotated[list[Number], Field(min_length=2, max_length=2)]
Cell = Number | Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTABLE)]
"""Of a point: a number, a level by its name, or a date such as 2024-05-31."""
Row = Annotated[list[Cell], Field(min_length=1, max_length=COLUMNS, fail_fast=True)]
Id = Annotated[str, Field(pattern=ID)]
Level = Annotated[str, Field(min_length=1, max_length=100, pattern=PRINTABLE)] | int
Class = Annotated[str, Field(min_length=1, max_length=100, pattern=PRINTABLE)]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Encoding = Literal["utf-8", "latin-1", "utf-16-le", "utf-16-be"]
Ids = Literal["alike", "exact"]

LEARNED: dict[str, Any] = {
    "data": "heights.csv",
    "inputs": ["age"],
    "output": "height",
    "bounds": [50.0, 170.0],
    "model": "learn",
    "at": "grid:200",
    "epsilon": 1.0,
    "delta": 0.01,
}
SETTINGS: dict[str, Any] = {
    **{name: value for name, value in LEARNED.items() if name != "model"},
    "kernel": "EQ(20, variance=625)",
    "noise": 196.0,
    "mean": None,
    "design": "mse",
    "kind": "predictions",
    "inducing": None,
}
PEOPLE: dict[str, Any] = {**LEARNED, "protect": "people", "people": "person"}
ROWS: dict[str, Any] = {**LEARNED, "protect": "rows", "box": {"age": {"low": 0.0, "high": 90.0, "cells": 45}}}
YES_NO: dict[str, Any] = {
    **{name: value for name, value in LEARNED.items() if name != "bounds"},
    "outcome": "yes/no",
    "inputs": ["age", "clinic"],
    "categories": ["clinic"],
    "missing_inputs": "drop",
}
CLASSES: dict[str, Any] = {
    **{name: value for name, value in LEARNED.items() if name != "bounds"},
    "output": "by",
    "outcome": "classes",
    "classes": ["car", "bus", "train"],
}
DESCRIBED_CLASSES: dict[str, Any] = {
    **{name: value for name, value in CLASSES.items() if name != "model"},
    "kernel": "EQ(20, variance=0.5) + Constant(2)",
}
_AS_WRITTEN = ("categories", "missing_inputs", "decimal", "encoding")
_LATER = (
    "given",
    "protect",
    "people",
    "within",
    "ids",
    "box",
    "n_people",
    "max_rows",
    "outcome",
    "classes",
    *_AS_WRITTEN,
)
"""Settings that there were not always: unsaid, a plan is the one that it was before."""
_OUTCOMES = {"count": "counts", "yes/no": "yes or no", "classes": "one of several classes"}
_OF_A_KERNEL = ("kernel", "noise", "mean", "design", "inducing")


class Asked(BaseModel):
    """What somebody asks for."""

    model_config = ConfigDict(strict=True, extra="forbid")


def example(*more: dict[str, Any], **values: Any) -> ConfigDict:
    """A strict request with examples, for the description of the API."""
    return ConfigDict(strict=True, extra="forbid", json_schema_extra={"examples": [*more, values]})


class Points(Asked):
    """Test points of one's own, one list for each. Levels are texts; a number there counts levels from 0."""

    points: Annotated[list[Row], Field(min_length=1, max_length=limits.POINTS, fail_fast=True)]


class Range(Asked):
    """Where a private input lies, from public knowledge, and how many cells that is cut into.

    Two numbers, or two dates such as 2024-05-31.
    """

    low: Number | Day
    high: Number | Day
    cells: Annotated[int, Field(ge=1, le=limits.CELLS)] = defaults.CELLS


class Levels(Asked):
    """What a private input can be, from public knowledge, if it is a category."""

    levels: Annotated[list[Level], Field(min_length=2, max_length=limits.LEVELS, fail_fast=True)]


class Written(Asked):
    """How a table is written, as far as somebody says so: the rest is found out from header and inputs."""

    decimal: Literal[".", ","] | None = None
    encoding: Encoding | None = None
    categories: Annotated[list[Column], Field(min_length=1, max_length=COLUMNS)] | None = None
    """Inputs that are categories though they look like numbers. Texts are by themselves."""
    missing_inputs: Literal["error", "drop"] = "error"
    """Refuse rows of which an input is missing, or leave them out: inputs are public."""


class Settings(Written):
    """Everything that decides a plan but the data themselves; all of it public.

    The model is learned, privately, unless `kernel` and `noise` say what it is. `mean`, `design`, `kind` and
    `inducing` are for those only.

    `protect` says who is protected. `"outcomes"`: the outcome of each row. `"people"`: all outcomes of each
    person; the column `people` says whose a row is, and is public. `"rows"`: whole rows, inputs included; all
    that is known of inputs is the `box`. With `people`, `n_people` and `max_rows`: all rows of each person.

    `outcome` says what outcomes are, and is never found out from them; nor are the names of their `classes`.
    Yes or no needs no bounds, and classes need none. Where outcomes are not real numbers, `kernel` and `mean`
    are of f, with probability Phi(f) or rate exp(f). `noise` is then left out, or of counts their variance
    over the rate, 1 if absent; `design` and `kind` are left out, too.
    """

    model_config = example(LEARNED, PEOPLE, ROWS, YES_NO, CLASSES, DESCRIBED_CLASSES, **SETTINGS)

    data: Annotated[str, Field(pattern=UPLOAD_NAME, max_length=100)]
    inputs: Inputs
    output: Column
    outcome: Literal["real", "yes/no", "count", "classes"] = "real"
    classes: Annotated[list[Class], Field(min_length=2, max_length=limits.CLASSES)] | None = None
    """How no and yes are written in the table, if not as 0 and 1, or false and true; or the public names of
    three or more classes, all that an outcome may be, as the table has them."""
    bounds: Bounds = Field(default_factory=list)
    model: Literal["learn", "kernel"] = defaults.MODEL
    kernel: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    noise: Positive | None = None
    mean: Number | None = None
    at: Annotated[str, Field(pattern=r"^grid:[0-9]{1,4}$")] | Points
    epsilon: Epsilon
    delta: Delta | None = None
    """If absent, the largest power of ten below 1 / (10 n), where n is the rows, or the people."""
    design: Literal["mse", "posterior", "max", "volume"] = defaults.DESIGN
    kind: Literal["predictions", "function"] = defaults.KIND
    inducing: Annotated[int, Field(ge=1, le=limits.INDUCING)] | None = None
    given: Annotated[list[Id], Field(min_length=1, max_length=limits.GIVEN)] | None = None
    """Earlier releases of the same column, to be taken into account; for a model that is learned."""
    protect: Literal["outcomes", "people", "rows"] = "outcomes"
    people: Column | None = None
    within: Annotated[float, Field(allow_inf_nan=False, ge=0, le=1)] = 1.0
    """How alike the outcomes of one person are: a correlation, from public knowledge."""
    ids: Ids = "alike"
    """Whether an id is the same however it is written, or only if it is written exactly so."""
    box: Annotated[dict[Column, Range | Levels], Field(min_length=1, max_length=COLUMNS)] | None = None
    n_people: Annotated[int, Field(ge=2, le=limits.INDUCING_ROWS)] | None = None
    """How many people there are, which is public; their rows are not counted."""
    max_rows: Annotated[int, Field(ge=1, le=limits.PERSON_ROWS)] | None = None
    """Rows of each person that count, at most; others are left out by a rule that looks at no one else."""

    @model_validator(mode="after")
    def _bounded(self) -> Settings:
        """Bounds are typed, but for yes or no and for classes, where they are known."""
        if self.outcome in CHANCES and self.bounds in ([], [0.0, 1.0]):
            self.bounds = [0.0, 1.0]
        elif self.outcome in CHANCES:
            raise ValueError("bounds: must be left out where outcomes are yes or no, or classes")
        elif not self.bounds:
            raise ValueError("bounds: must be given, two numbers from public knowledge")
        self._check_classes(self.classes or [])
        return self

    def _check_classes(self, named: list[str]) -> None:
        fine = {"yes/no": len(named) in (0, 2), "classes": len(named) > 2}.get(self.outcome, not named)
        if not fine or len(set(named)) < len(named):
            raise ValueError(
                "classes: must be two different texts, no and then yes, of a yes/no outcome; or three or "
                "more of an outcome that is one of several classes"
            )

    @model_validator(mode="after")
    def _one_unit(self) -> Settings:
        """What is said must be enough for the protection, and not more: nothing is ignored in silence."""
        needed = {"outcomes": set(), "people": {"people"}, "rows": {"box"}}[self.protect]
        if self.protect == "rows" and self.people is not None:
            needed |= {"people", "n_people", "max_rows"}
        allowed = needed | ({"within"} if self.protect == "people" else set())
        allowed |= set() if self.people is None else {"ids"}
        for name in ("people", "within", "ids", "box", "n_people", "max_rows"):
            there = getattr(self, name) != type(self).model_fields[name].default
            if there and name not in allowed:
                raise ValueError(f"{name}: must be left out where this is protected: {self.protect}")
            if not there and name in needed:
                raise ValueError(f"{name}: must be given where this is protected: {self.protect}")
        # By what is public: how many rows the table has is not, where people have several.
        if (self.n_people or 0) * (self.max_rows or 0) > limits.INDUCING_ROWS:
            raise ValueError(
                f"max_rows: times n_people must be at most {limits.INDUCING_ROWS} in the app; let fewer rows "
                "of each person count, or use the library on a larger machine"
            )
        if self.people == self.output:
            raise ValueError("people: must be another column than the private outcome")
        return self if self.box is None else self._checked_box(self.box)

    def _checked_box(self, box: dict[str, Range | Levels]) -> Settings:
        if set(box) != set(self.inputs):
            raise ValueError("box: must have a range, or levels, for each input and for nothing else")
        if self.people in self.inputs:
            raise ValueError("people: must not be an input where whole rows are protected")
        for name in ("inducing", "given", "categories"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name}: must be left out where whole rows are protected")
        for name in ("design", "kind", "missing_inputs"):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name}: must be left out where whole rows are protected")
        return self

    @property
    def hides_inputs(self) -> bool:
        """Whether nothing of the table but its header and its size may be looked at before the release."""
        return self.protect == "rows"

    @model_validator(mode="after")
    def _one_model(self) -> Settings:
        """Clients that send a kernel need not say that it is not learned."""
        if self.kernel is not None and "model" not in self.model_fields_set:
            self.model = "kernel"
        if self.model == "kernel":
            if self.kernel is None or (self.noise is None and self.outcome == "real"):
                raise ValueError("kernel and noise: both must be given, or neither, and the model is learned")
            self._check_linked()
            if self.given is not None:
                raise ValueError("given: must be left out where the model is not learned")
            return self
        fresh = type(self).model_fields
        given = [name for name in (*_OF_A_KERNEL, "kind") if getattr(self, name) != fresh[name].default]
        if given:
            raise ValueError(f"{given[0]}: must be left out where the model is learned")
        return self

    def _check_linked(self) -> None:
        """Refuse what only a described model of numbers has a choice of."""
        left_out = {"real": (), "count": ("design", "kind")}.get(self.outcome, ("design", "kind", "noise"))
        for name in left_out:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name}: must be left out where outcomes are {_OUTCOMES[self.outcome]}")

    def plain(self) -> dict[str, Any]:
        """What decides the plan, for JSON; with a kernel as it was before a model could be learned."""
        left_out = set(_OF_A_KERNEL) if self.model == "learn" else {"model"}
        fresh = type(self).model_fields
        unsaid = {name for name in _LATER if getattr(self, name) == fresh[name].default}
        return self.model_dump(exclude=left_out | unsaid)
