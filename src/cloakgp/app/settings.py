"""What requests may ask for, settings of a plan among it. Strict: no key too many, nothing too long.

What settings mean, what goes together and what is usual is the library's (:mod:`cloakgp.release.settings`),
which every request is tried on. Here is what this face has besides: a table by its name, texts for kernels,
levels and dates, and limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence, Sized
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, Json, PrivateAttr, model_validator

from cloakgp.app.errors import bad_input, public_work
from cloakgp.app.folder import ID, UPLOAD_NAME
from cloakgp.app.limits import Most
from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError
from cloakgp.data.columns import Column, Columns
from cloakgp.data.frames import Cells, Table, objects
from cloakgp.data.grid import Grid
from cloakgp.designs import DESIGNS, DesignName
from cloakgp.kernels.specs import parse
from cloakgp.model.outcome import OutcomeName, outcome_named
from cloakgp.release import points
from cloakgp.release.settings import ROWS, check_together
from cloakgp.release.settings import Settings as Chosen
from cloakgp.workflow.tables import numbers_named

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e30, le=1e30)]
Positive = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e30)]
Epsilon = Annotated[float, Field(allow_inf_nan=False, ge=1e-4, le=100)]
Delta = Annotated[float, Field(allow_inf_nan=False, ge=1e-12, le=0.5)]
PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]+$"
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTABLE)]
"""Of a column."""
Inputs = Annotated[list[Name], Field(min_length=1, max_length=Most.inputs)]
Bounds = Annotated[list[Number], Field(min_length=2, max_length=2)]
Cell = Number | Name
"""Of a point: a number, a level by its name, or a date such as 2024-05-31."""
Row = Annotated[list[Cell], Field(min_length=1, max_length=Most.inputs, fail_fast=True)]
Id = Annotated[str, Field(pattern=ID)]
Class = Annotated[str, Field(min_length=1, max_length=100, pattern=PRINTABLE)]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Encoding = Literal["utf-8", "latin-1", "utf-16-le", "utf-16-be"]
Ids = Literal["alike", "exact"]
Outcome = Literal[OutcomeName, "classes"]

Words = Annotated[str, Field(min_length=1, max_length=80, pattern=PRINTABLE)]
Why = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Label = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Token = Annotated[str, Field(min_length=16, max_length=200, pattern=r"^[A-Za-z0-9_\-]+$")]
Which = Annotated[int, Field(ge=1, le=1000)]
Private = Annotated[list[Name], Field(max_length=100)]
Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]
Held = Annotated[dict[Name, Cell], Field(max_length=Most.inputs)]

EXAMPLES: list[Any] = json.loads(Path(__file__).with_name("examples.json").read_bytes())
"""Settings for the description of the API."""


class Defaults(BaseModel):
    """What the pages suggest, from public knowledge; shares are of an input's range or the bounds' width."""

    epsilon: float = 1.0
    model: Literal["learn", "kernel"] = "learn"
    design: str = Chosen.design
    designs: dict[str, str] = {name: design.text for name, design in DESIGNS.items()}
    """All there are, and what for."""
    kind: str = Chosen.kind
    family: str = "EQ"
    lengthscale_share: float = 1 / 4
    spread_share: float = 1 / 4
    """Std of the curve."""
    scatter_share: float = 1 / 8
    """Std of single outcomes around it."""
    latent_spread: float = 0.7
    latent_level: float = 2.0
    """Where outcomes are not real numbers: std of f behind them, and the variance of its level."""
    points_per_axis: tuple[int, ...] = (100, 15, 6, 3)
    """Of a grid over one, two, three, or more inputs."""
    inducing: int = 200
    cells: int = 40
    """Of a private input's range."""


USUAL = Defaults()


class Asked(BaseModel):
    """What somebody asks for."""

    model_config = ConfigDict(strict=True, extra="forbid")


def example(**values: Any) -> ConfigDict:
    """A strict request with an example, for the description of the API."""
    return ConfigDict(strict=True, extra="forbid", json_schema_extra={"examples": [values]})


class Points(Asked):
    """Test points of one's own, one list for each. Levels are texts; a number there counts levels from 0."""

    points: Annotated[list[Row], Field(min_length=1, max_length=Most.points, fail_fast=True)]


class Range(Asked):
    """Where a private input lies, from public knowledge, and how many cells that is cut into.

    Two numbers, or two dates such as 2024-05-31.
    """

    low: Number | Day
    high: Number | Day
    cells: Annotated[int, Field(ge=1, le=Most.cells)] = USUAL.cells


class Levels(Asked):
    """What a private input can be, from public knowledge, if it is a category."""

    levels: Annotated[list[Class | int], Field(min_length=2, max_length=Most.levels, fail_fast=True)]


class Written(Asked):
    """How a table is written, as far as somebody says so: the rest is found out from header and inputs."""

    decimal: Literal[".", ","] | None = None
    encoding: Encoding | None = None
    categories: Inputs | None = None
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

    model_config = ConfigDict(strict=True, extra="forbid", json_schema_extra={"examples": EXAMPLES})

    data: Annotated[str, Field(pattern=UPLOAD_NAME, max_length=100)]
    inputs: Inputs
    output: Name
    outcome: Outcome = "real"
    classes: Annotated[list[Class], Field(min_length=2, max_length=Most.classes)] | None = None
    """How no and yes are written in the table, if not as 0 and 1, or false and true; or the public names of
    three or more classes, all that an outcome may be, as the table has them."""
    bounds: Bounds | None = None
    model: Literal["learn", "kernel"] = USUAL.model
    kernel: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    noise: Positive | None = None
    mean: Number | None = None
    at: Annotated[str, Field(pattern=r"^grid:[0-9]{1,4}$")] | Points
    epsilon: Epsilon
    delta: Delta | None = None
    """If absent, the largest power of ten below 1 / (10 n), where n is the rows, or the people."""
    design: DesignName = "mse"
    kind: Literal["predictions", "function"] = "predictions"
    inducing: Annotated[int, Field(ge=1, le=Most.inducing)] | None = None
    given: Annotated[list[Id], Field(min_length=1, max_length=Most.given)] | None = None
    """Earlier releases of the same column, to be taken into account; for a model that is learned."""
    protect: Literal["outcomes", "people", "rows"] = "outcomes"
    people: Name | None = None
    within: Annotated[float, Field(allow_inf_nan=False, ge=0, le=1)] = Chosen.within
    """How alike the outcomes of one person are: a correlation, from public knowledge."""
    ids: Ids = "alike"
    """Whether an id is the same however it is written, or only if it is written exactly so."""
    box: Annotated[dict[Name, Range | Levels], Field(min_length=1, max_length=Most.inputs)] | None = None
    n_people: Annotated[int, Field(ge=2, le=Most.rows)] | None = None
    """How many people there are, which is public; their rows are not counted."""
    max_rows: Annotated[int, Field(ge=1, le=Most.rows_of_a_person)] | None = None
    """Rows of each person that count, at most; others are left out by a rule that looks at no one else."""

    _library: Chosen = PrivateAttr()

    @model_validator(mode="after")
    def _together(self) -> Settings:
        """What is said must go together, and be what the library's own settings may be."""
        if self.kernel is not None and "model" not in self.model_fields_set:
            self.model = "kernel"  # clients that send a kernel need not say that it is not learned
        usual = type(self).model_fields
        said = {name: value for name, value in self if value != usual[name].default}
        with public_work():
            check_together(said | {"protect": self.protect, "classes": (), "outcome": self.outcome})
            self._check_own()
            self._library = self._as_library()
        self.bounds = list(self._library.bounds)
        return self

    def _check_own(self) -> None:
        """What this face has besides: a box by input, fewer options, and limits."""
        learned, hidden = self.kernel is None, self.hides_inputs
        numbers, rows = outcome_named(self.outcome).class_numbers, (self.n_people or 0) * (self.max_rows or 0)
        classes = "must be no and yes of a yes/no outcome, or three or more of one of several classes"
        model = f"does not go with a model that is {'learned' if learned else 'described'}"
        needed = "must be given where whole rows are protected"
        # By what is public: how many rows the table has is not, where people have several.
        many = f"times n_people must be at most {Most.rows} in the app; the library may do more"
        each = "must have a range, or levels, for each input and for nothing else"
        for name, is_wrong, expected in (
            ("classes", len(self.classes or ()) not in numbers, classes),
            ("kernel", learned == (self.model == "kernel"), model),
            ("given", self.given is not None and not learned, model),
            ("inducing", self.inducing is not None and (learned or hidden), model),
            ("box", hidden and self.box is None, needed),
            ("max_rows", rows > Most.rows, many),
            ("box", self.box is not None and set(self.box) != set(self.inputs), each),
        ):
            if is_wrong:
                raise ArgumentError(name, expected)

    @property
    def hides_inputs(self) -> bool:
        """Whether nothing of the table but its header and its size may be looked at before the release."""
        return self.protect == ROWS

    @property
    def library(self) -> Chosen:
        """The same as the library has it."""
        return self._library

    @property
    def names(self) -> list[str]:
        """All columns that a plan needs, by name."""
        return list(dict.fromkeys([*self.inputs, self.output, *([self.people] if self.people else [])]))

    @property
    def private(self) -> set[str]:
        """Columns that nothing but the private step may read."""
        return set(self.names) if self.hides_inputs else {self.output}

    def _as_library(self) -> Chosen:
        own = {
            one.name: value for one in fields(Chosen) if (value := getattr(self, one.name, None)) is not None
        }
        own["at"] = self.at if isinstance(self.at, str) else self.at.points
        if self.box is None:
            own["columns"] = numbers_named(self.inputs, self.output, self.people)
        else:
            own["grid"] = self._grid(self.box)
        if self.kernel is not None:
            own["kernel"] = parse(self.kernel)
        return Chosen(**{**own, "classes": tuple(self.classes or ())})

    def _grid(self, box: dict[str, Range | Levels]) -> Grid:
        """The cells of the box, which are all that is known of private inputs."""
        said = {name: box[name].model_dump() for name in self.inputs}
        extents = {name: each.get("levels") or (each["low"], each["high"]) for name, each in said.items()}
        grid = Grid(extents, {name: each["cells"] for name, each in said.items() if "cells" in each})
        if len(grid) > Most.cells:
            expected, remedy = f"must have at most {Most.cells} cells in the app", "Leave an input out."
            raise ArgumentError("box", expected, str(len(grid)), remedy)
        return grid

    def test_points(self, columns: Columns, X: Sized = ()) -> FloatArray:
        """Where predictions are wanted, if that is not too many points. `X` are the inputs, where public."""
        grid = self.library.grid
        if not isinstance(self.at, str):
            where = checks.matrix(as_points(columns, self.at.points), "points")
        else:
            where = points.grid(self.at, X, columns) if grid is None else points.over(grid, self.at)
        many = len(X) > Most.rows_of_many_points
        points.check_number("at", len(where), Most.points_of_many_rows if many else Most.points)
        return where


class SignIn(Asked):
    """A person's token, or that of the one-time link."""

    token: Token


class AskInputs(Written):
    """Which columns are public inputs; `output`, if given, must not be one."""

    model_config = example(inputs=["age"], output="height")

    inputs: Inputs
    output: Name | None = None


class AskPeople(Asked):
    """Which column says whose a row is: public."""

    model_config = example(people="person")

    people: Name
    encoding: Encoding | None = None
    ids: Ids = "alike"


class AskCurve(Asked):
    """Noise against epsilon."""

    model_config = example(settings=EXAMPLES[0], epsilons=[0.1, 0.3, 1.0, 3.0])

    settings: Settings
    epsilons: Annotated[list[Epsilon], Field(min_length=1, max_length=Most.epsilons)]


class PlanAsked(Asked):
    """Keep a plan under a name."""

    model_config = example(settings=EXAMPLES[0], name="growth curve")

    settings: Settings
    name: Words


class AskQuote(Asked):
    """Whose budget would pay; `number` 2 asks what a second release of the same plan would cost."""

    model_config = example(dataset="kung", number=1)

    dataset: Words
    number: Which = 1


class ReleaseAsked(AskQuote):
    """The private step. `confirm` repeats the data set's name; `number` says which release is meant.

    `title`, `units`, `source` and `date` are words for pictures and reports, which the release file keeps.

    A number that was released before gets the same answer for nothing, however often it is asked for; the
    next one, as the quote's `next` says, is a new spend.
    """

    model_config = example(dataset="kung", confirm="kung", why="growth curve", missing="error", number=1)

    confirm: Annotated[str, Field(max_length=80)]
    why: Why = ""
    title: Label = ""
    units: Label = ""
    source: Label = ""
    date: Label = ""
    missing: Literal["error", "midpoint"] = "error"


class AskDataset(Asked):
    """A budget for the people that data are about; for good."""

    model_config = example(name="kung", epsilon=1.0, delta=0.01, pure=0.0, why="census of 1969")

    name: Words
    epsilon: Epsilon
    delta: Delta
    pure: Annotated[float, Field(allow_inf_nan=False, ge=0, le=100)] = 0.0
    why: Why = ""
    unit: Literal["one row", "one person", "one whole row", "one person's whole rows"] | None = None
    """Whom all that is spent must protect; the first spend fixes it, if absent."""
    people: Name | None = None
    """The id column, for a unit of people; the first spend fixes it, if absent."""
    private: Private = Field(default_factory=list)
    """All columns that may be read privately; the first spend fixes them, if absent."""
    largest_delta: Delta | None = None
    """Of one release; the budget's, if absent."""
    ids: Ids = "alike"
    """Whether a release may take each way of writing an id for another person."""


class AskPrivate(Asked):
    """More private columns that a data set's budget pays for."""

    model_config = example(dataset="kung", private=["weight"], why="asked for by the clinic")

    dataset: Words
    private: Annotated[Private, Field(min_length=1)]
    why: Why = ""


class AskPerson(Asked):
    """Somebody who gets a token."""

    model_config = example(name="Ada", role="analyst", days=90)

    name: Words
    role: Literal["custodian", "analyst"]
    days: Annotated[int, Field(ge=1, le=3650)]


class AskPredictions(Asked):
    """Where predictions are wanted; free."""

    model_config = example(points=[[12.5], [80.0]], level=0.95, include_noise=False)

    points: Annotated[list[Row], Field(min_length=1, max_length=Most.query_points, fail_fast=True)]
    level: Annotated[float, Field(allow_inf_nan=False, gt=0.0, lt=1.0)] = 0.95
    include_noise: bool = False


class Drawn(BaseModel):
    """Which two inputs are across and up, and whose probability is drawn; as suggested, if absent."""

    coordinates: Pair | None = None
    geographic: bool | None = None
    """Whether these are longitude and latitude; their names say if absent."""
    held: Held = Field(default_factory=dict)
    """Where the other inputs are held."""
    of: Class | None = None
    """Of several classes: which one; the first if absent."""


class AskMap(Drawn):
    """Which two inputs are across and up, and where the others are held; all as suggested, if absent."""

    model_config = example(coordinates=["lon", "lat"], geographic=True, held={"bedrooms": 3.0}, coarse=True)

    coarse: bool = False
    """Of few points, without privacy's share, unless the whole is there; ask again for that."""


class AskPicture(Drawn):
    """What a picture is to show, in an address: the most telling one if nothing is said, else a map."""

    model_config = ConfigDict(extra="forbid")

    view: Literal["prediction", "uncertainty", "privacy"] = "prediction"
    held: Json[Held] = Field(default_factory=dict)
    """As JSON: {"bedrooms": 3}."""


def as_points(columns: Columns, rows: list[list[Any]]) -> FloatArray:
    """(n, D) points as they were sent: levels and dates by texts, and numbers as they are."""
    if {len(row) for row in rows} != {len(columns.inputs)}:
        raise bad_input(f"points: each must have {len(columns.inputs)} number(s), one for each input.")
    sent = zip(columns.inputs, zip(*rows, strict=True), strict=True)
    return np.column_stack([coded(column, cells) for column, cells in sent])


def coded(column: Column, cells: Sequence[Any], what: str = "points") -> FloatArray:
    """(n,) numbers for the cells of one column: levels and dates by texts, and numbers as they are."""
    if not any(isinstance(cell, str) for cell in cells):
        return np.asarray(cells, dtype=np.float64)
    table = Table({column.name: Cells(objects(level(column, cell) for cell in cells))})
    return np.asarray(Columns((column,)).numbers(table, what)[:, 0])


def level(column: Column, cell: Any) -> Any:
    """A level by its name, as its column has it; what is no text as it is."""
    if not isinstance(cell, str):
        return cell
    kind, text = type(next(iter(column.levels), "")), cell.strip()
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    return int(text) if kind is int and re.fullmatch(r"[+-]?[0-9]+", text) else text
