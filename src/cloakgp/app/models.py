"""What requests and answers look like. Requests are strict: no key too many, nothing longer than need be."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cloakgp.app import defaults, limits
from cloakgp.app.folder import ID, UPLOAD_NAME

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e30, le=1e30)]
Positive = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e30)]
Epsilon = Annotated[float, Field(allow_inf_nan=False, ge=1e-4, le=100)]
Delta = Annotated[float, Field(allow_inf_nan=False, ge=1e-12, le=0.5)]
_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]+$"
COLUMNS = 20
Column = Annotated[str, Field(min_length=1, max_length=200, pattern=_PRINTABLE)]
Inputs = Annotated[list[Column], Field(min_length=1, max_length=COLUMNS)]
Bounds = Annotated[list[Number], Field(min_length=2, max_length=2)]
Cell = Number | Annotated[str, Field(min_length=1, max_length=200, pattern=_PRINTABLE)]
"""Of a point: a number, a level by its name, or a date such as 2024-05-31."""
Row = Annotated[list[Cell], Field(min_length=1, max_length=COLUMNS, fail_fast=True)]
Words = Annotated[str, Field(min_length=1, max_length=80, pattern=_PRINTABLE)]
Why = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Label = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Id = Annotated[str, Field(pattern=ID)]
Level = Annotated[str, Field(min_length=1, max_length=100, pattern=_PRINTABLE)] | int
Class = Annotated[str, Field(min_length=1, max_length=100, pattern=_PRINTABLE)]
Encoding = Literal["utf-8", "latin-1", "utf-16-le", "utf-16-be"]
Token = Annotated[str, Field(min_length=16, max_length=200, pattern=r"^[A-Za-z0-9_\-]+$")]

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
_AS_WRITTEN = ("categories", "missing_inputs", "decimal", "encoding")
_LATER = (
    "given",
    "protect",
    "people",
    "within",
    "box",
    "n_people",
    "max_rows",
    "outcome",
    "classes",
    *_AS_WRITTEN,
)
"""Settings that there were not always: unsaid, a plan is the one that it was before."""
_OF_A_KERNEL = ("kernel", "noise", "mean", "design", "inducing")


class _Asked(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


def _example(*more: dict[str, Any], **values: Any) -> ConfigDict:
    return ConfigDict(strict=True, extra="forbid", json_schema_extra={"examples": [*more, values]})


class Points(_Asked):
    """Test points of one's own, one list for each. Levels are texts; a number there counts levels from 0."""

    points: Annotated[list[Row], Field(min_length=1, max_length=limits.POINTS, fail_fast=True)]


class Range(_Asked):
    """Where a private input lies, from public knowledge, and how many cells that is cut into."""

    low: Number
    high: Number
    cells: Annotated[int, Field(ge=1, le=limits.CELLS)] = defaults.CELLS


class Levels(_Asked):
    """What a private input can be, from public knowledge, if it is a category."""

    levels: Annotated[list[Level], Field(min_length=2, max_length=limits.LEVELS, fail_fast=True)]


class Written(_Asked):
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

    `outcome` says what outcomes are, and is never found out from them. Yes or no needs no bounds.
    """

    model_config = _example(LEARNED, PEOPLE, ROWS, YES_NO, **SETTINGS)

    data: Annotated[str, Field(pattern=UPLOAD_NAME, max_length=100)]
    inputs: Inputs
    output: Column
    outcome: Literal["real", "yes/no", "count"] = "real"
    classes: Annotated[list[Class], Field(min_length=2, max_length=2)] | None = None
    """How no and yes are written in the table, if not as 0 and 1, or false and true."""
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
    box: Annotated[dict[Column, Range | Levels], Field(min_length=1, max_length=COLUMNS)] | None = None
    n_people: Annotated[int, Field(ge=2, le=limits.INDUCING_ROWS)] | None = None
    """How many people there are, which is public; their rows are not counted."""
    max_rows: Annotated[int, Field(ge=1, le=limits.PERSON_ROWS)] | None = None
    """Rows of each person that count, at most; others are left out by a rule that looks at no one else."""

    @model_validator(mode="after")
    def _bounded(self) -> Settings:
        """Bounds are typed, but for yes or no, where they are known."""
        if self.outcome == "yes/no" and self.bounds in ([], [0.0, 1.0]):
            self.bounds = [0.0, 1.0]
        elif self.outcome == "yes/no":
            raise ValueError("bounds: must be left out where outcomes are yes or no")
        elif not self.bounds:
            raise ValueError("bounds: must be given, two numbers from public knowledge")
        if self.classes and (self.outcome != "yes/no" or self.classes[0] == self.classes[1]):
            raise ValueError("classes: must be two different texts, no and then yes, of a yes/no outcome")
        if self.outcome != "real" and self.kernel is not None:
            raise ValueError("kernel: must be left out where outcomes are yes or no, or counts")
        return self

    @model_validator(mode="after")
    def _one_unit(self) -> Settings:
        """What is said must be enough for the protection, and not more: nothing is ignored in silence."""
        needed = {"outcomes": set(), "people": {"people"}, "rows": {"box"}}[self.protect]
        if self.protect == "rows" and self.people is not None:
            needed |= {"people", "n_people", "max_rows"}
        allowed = needed | ({"within"} if self.protect == "people" else set())
        for name in ("people", "within", "box", "n_people", "max_rows"):
            there = getattr(self, name) != type(self).model_fields[name].default
            if there and name not in allowed:
                raise ValueError(f"{name}: must be left out where this is protected: {self.protect}")
            if not there and name in needed:
                raise ValueError(f"{name}: must be given where this is protected: {self.protect}")
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
            if self.kernel is None or self.noise is None:
                raise ValueError("kernel and noise: both must be given, or neither, and the model is learned")
            if self.given is not None:
                raise ValueError("given: must be left out where the model is not learned")
            return self
        fresh = type(self).model_fields
        given = [name for name in (*_OF_A_KERNEL, "kind") if getattr(self, name) != fresh[name].default]
        if given:
            raise ValueError(f"{given[0]}: must be left out where the model is learned")
        return self

    def plain(self) -> dict[str, Any]:
        """What decides the plan, for JSON; with a kernel as it was before a model could be learned."""
        left_out = set(_OF_A_KERNEL) if self.model == "learn" else {"model"}
        fresh = type(self).model_fields
        unsaid = {name for name in _LATER if getattr(self, name) == fresh[name].default}
        return self.model_dump(exclude=left_out | unsaid)


class SignIn(_Asked):
    """A person's token, or that of the one-time link."""

    token: Token


class AskInputs(Written):
    """Which columns are public inputs; `output`, if given, must not be one; `bounds` helps to suggest."""

    model_config = _example(inputs=["age"], output="height", bounds=[50.0, 170.0])

    inputs: Inputs
    output: Column | None = None
    bounds: Bounds | None = None


class AskPeople(_Asked):
    """Which column says whose a row is: public."""

    model_config = _example(people="person")

    people: Column
    encoding: Encoding | None = None


class AskCurve(_Asked):
    """Noise against epsilon."""

    model_config = _example(settings=SETTINGS, epsilons=[0.1, 0.3, 1.0, 3.0])

    settings: Settings
    epsilons: Annotated[list[Epsilon], Field(min_length=1, max_length=limits.EPSILONS)]


class AskPlan(_Asked):
    """Keep a plan under a name."""

    model_config = _example(settings=SETTINGS, name="growth curve")

    settings: Settings
    name: Words


Which = Annotated[int, Field(ge=1, le=1000)]


class AskQuote(_Asked):
    """Whose budget would pay; `number` 2 asks what a second release of the same plan would cost."""

    model_config = _example(dataset="kung", number=1)

    dataset: Words
    number: Which = 1


class AskRelease(_Asked):
    """The private step. `confirm` repeats the data set's name; `number` says which release is meant.

    `title`, `units`, `source` and `date` are words for pictures and reports, which the release file keeps.

    A number that was released before gets the same answer for nothing, however often it is asked for; the
    next one, as the quote's `next` says, is a new spend.
    """

    model_config = _example(dataset="kung", confirm="kung", why="growth curve", missing="error", number=1)

    dataset: Words
    confirm: Annotated[str, Field(max_length=80)]
    why: Why = ""
    title: Label = ""
    units: Label = ""
    source: Label = ""
    date: Label = ""
    missing: Literal["error", "midpoint"] = "error"
    number: Which = 1


class AskDataset(_Asked):
    """A budget for the people that data are about; for good."""

    model_config = _example(name="kung", epsilon=1.0, delta=0.01, pure=0.0, why="census of 1969")

    name: Words
    epsilon: Epsilon
    delta: Delta
    pure: Annotated[float, Field(allow_inf_nan=False, ge=0, le=100)] = 0.0
    why: Why = ""
    unit: Literal["one row", "one person", "one whole row", "one person's whole rows"] | None = None
    """Whom all that is spent must protect; the first spend fixes it, if absent."""


class AskPerson(_Asked):
    """Somebody who gets a token."""

    model_config = _example(name="Ada", role="analyst", days=90)

    name: Words
    role: Literal["custodian", "analyst"]
    days: Annotated[int, Field(ge=1, le=3650)]


class AskPredictions(_Asked):
    """Where predictions are wanted; free."""

    model_config = _example(points=[[12.5], [80.0]], level=0.95, include_noise=False)

    points: Annotated[list[Row], Field(min_length=1, max_length=limits.QUERY_POINTS, fail_fast=True)]
    level: Annotated[float, Field(allow_inf_nan=False, gt=0.0, lt=1.0)] = 0.95
    include_noise: bool = False


class AskMap(_Asked):
    """Which two inputs are across and up, and where the others are held; all as suggested, if absent."""

    model_config = _example(coordinates=["lon", "lat"], geographic=True, held={"bedrooms": 3.0}, coarse=True)

    coordinates: Annotated[list[Column], Field(min_length=2, max_length=2)] | None = None
    geographic: bool | None = None
    """Whether these are longitude and latitude."""
    held: Annotated[dict[Column, Cell], Field(max_length=COLUMNS)] = Field(default_factory=dict)
    coarse: bool = False
    """Of few points, within about a second, unless the whole is there; ask again for that."""


class Refusal(BaseModel):
    """Why a request was not granted."""

    error: str = Field(examples=["there is no such plan."])
    code: str = Field(examples=["not_found"])


class Done(BaseModel):
    ok: bool


class Work(BaseModel):
    """What a request does now, how many steps of that are done, and of how many; 0 if that is not known."""

    under_way: bool
    doing: str
    done: int
    total: int


class Me(BaseModel):
    name: str
    role: str
    version: str
    ledger: bool
    demo: bool
    upload_bytes: int
    exact_rows: int
    most_rows: int
    most_inducing: int
    learned_inputs: int
    """Input columns of which a model can be learned."""
    most_cells: int
    """Of a box, where inputs are private."""


class Defaults(BaseModel):
    """What the pages suggest; shares are of an input's range or of the bounds' width."""

    epsilon: float = defaults.EPSILON
    model: str = defaults.MODEL
    design: str = defaults.DESIGN
    kind: str = defaults.KIND
    family: str = defaults.FAMILY
    lengthscale_share: float = defaults.LENGTHSCALE
    spread_share: float = defaults.SPREAD
    scatter_share: float = defaults.SCATTER
    points_per_axis: tuple[int, ...] = defaults.POINTS_PER_AXIS
    inducing: int = defaults.INDUCING
    cells: int = defaults.CELLS


class Table(BaseModel):
    name: str
    shown: str
    """What the file was called; `name` is what it is kept under."""
    columns: list[str]
    rows: int | None
    """None where a plan says that the number of people is public, and that of their rows is not."""
    who: list[str]
    """Columns that tell whose a row is, going by their names."""
    bytes: int


class Suggested(BaseModel):
    lengthscale: list[float]
    kernel: str
    noise: float | None
    spread: float | None


class InputColumn(BaseModel):
    """What a public input is: numbers, levels of a category (by their numbers from 0), or days since."""

    name: str
    kind: Literal["number", "level", "date"]
    levels: list[str | int | bool] = []
    origin: str = ""
    """The day that dates are counted from."""


class InputFacts(BaseModel):
    rows: int
    dropped: int
    """Rows that are left out, since an input is missing."""
    columns: list[InputColumn]
    written: str | None
    """How the table is written; None of Parquet."""
    decimals_unseen: bool
    """Whether no public column shows how decimals are written, and it may well be with a comma."""
    ranges: dict[str, list[float]]
    suggested: Suggested | None
    sample: list[list[float]]


class PeopleFacts(BaseModel):
    people: int
    rows: int
    most_rows: int
    """Of the person who has most."""


class NoiseSummary(BaseModel):
    smallest: float
    median: float
    rms: float
    largest: float
    bounds_width: float


class Preview(BaseModel):
    points: list[list[float]]
    noise_std: list[float]
    gp_std: list[float]
    expected_error: list[float]
    """Std of what a reader will be off by, privacy and model together; a forecast, if that is learned."""
    unknown: list[bool]
    """Where hardly more will be known than before."""
    summary: NoiseSummary
    error_summary: NoiseSummary
    """Of the expected error; the other is of the privacy noise."""
    certificate: dict[str, Any] | None
    """Null unless a plan was made for just this promise."""
    promise: list[str]
    epsilon: float
    delta: float
    """As asked, or the default."""
    milliseconds: int
    exact: bool
    rough: bool
    """About; ask again, and not for a rough one."""


class CurvePoint(BaseModel):
    epsilon: float
    rms: float
    largest: float
    """Of the expected error."""
    noise_rms: float
    """Of the privacy noise alone."""
    paper_rms: float | None
    """Of the privacy noise by the paper's method."""


class Designs(BaseModel):
    design: list[str]
    expected_error: list[float]
    worst_expected_error: list[float]
    noise_std: list[float]
    worst_noise_std: list[float]
    best: str
    notes: list[str]


class Plan(BaseModel):
    id: str
    name: str
    settings: dict[str, Any]
    certificate: dict[str, Any]
    summary: NoiseSummary
    error_summary: NoiseSummary | None = None
    """Of the expected error; absent from plans of earlier versions."""
    created: str
    by: str


class Left(BaseModel):
    release: float
    selection: float


class Quote(BaseModel):
    fits: bool
    cost: dict[str, Any]
    left_before: Left
    left_after: Left
    spent_before: float
    spent_after: float
    known: str | None
    next: int
    words: str


class Density(BaseModel):
    """How many rows there are where, about: of inputs that are private."""

    points: list[list[float]]
    rows: list[float]
    std: list[float]


class Receipt(BaseModel):
    dataset: str
    entry: int
    head: str


class PaidReceipt(Receipt):
    spent: bool
    left_release: float
    left_selection: float


class LearnedRow(BaseModel):
    """One thing that was learned: about how much, and between which numbers most likely."""

    what: str
    unit: str
    """Whose unit it has: a column; empty if it is a share."""
    about: float
    low: float
    high: float


class StageRow(BaseModel):
    share: float
    """Of the budget."""
    width: float | None
    """Mean width of its windows, in the outcome's unit; None of one that counts rows."""


class ModelCheck(BaseModel):
    fits: bool
    words: str


class Release(BaseModel):
    id: str
    name: str
    kind: str
    plan: str
    created: str
    by: str
    settings: dict[str, Any]
    certificate: dict[str, Any]
    summary: NoiseSummary
    promise: list[str]
    limits: list[str]
    receipt: Receipt
    points: list[list[float]] | None = None
    released: list[float] | None = None
    noise_std: list[float] | None = None
    denoised: list[float] | None = None
    denoised_std: list[float] | None = None
    inputs_sample: list[list[float]] | None = None
    lower: list[float] | None = None
    """Within which the curve lies with probability 95 %, if the model is right."""
    upper: list[float] | None = None
    columns: list[InputColumn] | None = None
    """What the inputs are, where that is known."""
    unknown: list[bool] | None = None
    """Where hardly more is known than before the release: privacy noise and model together."""
    model_check: ModelCheck | None = None
    learned: list[LearnedRow] | None = None
    """Where the model was learned."""
    stages: list[StageRow] | None = None
    has_map: bool | None = None
    density: Density | None = None
    """Where whole rows are protected."""


class MapView(BaseModel):
    """One picture of a surface: its values by row, and its colour bar."""

    values: list[list[float]]
    low: float
    high: float
    ticks: list[float]
    tick_words: list[str]
    label: str
    hides_unknown: bool
    """Whether nothing is to be shown where nothing is known."""


class Map(BaseModel):
    """A surface over two inputs, in three views."""

    places: tuple[int, int]
    """Which inputs are across and up."""
    coarse: bool
    across: list[float]
    up: list[float]
    aspect: float | None
    """How long a unit up is drawn, in units across; null if that is of no matter."""
    geographic: bool
    """Whether they are longitude and latitude."""
    near_prior: list[list[float]]
    """Total std as a share of the prior's."""
    unknown_from: float
    """From which share on nothing to speak of is known."""
    inputs: list[list[float]] | None
    """Some public inputs; null where they are private."""
    held: dict[str, float | str]
    """What the other inputs are held at."""
    views: dict[Literal["prediction", "uncertainty", "privacy"], MapView]


class Released(BaseModel):
    release: Release
    receipt: PaidReceipt


class Predictions(BaseModel):
    mean: list[float]
    std: list[float]
    lower: list[float]
    upper: list[float]


class Verified(BaseModel):
    ok: bool
    complete: bool
    words: str


class Dataset(BaseModel):
    name: str
    epsilon: float
    delta: float
    pure: float
    unit: str | None
    """Whom all that is spent must protect; None until the first spend fixes it."""
    spent: float
    left_release: float
    left_selection: float
    events: int


class LedgerEntry(BaseModel):
    number: int
    kind: str
    dataset: str
    who: str
    why: str
    when: str
    what: dict[str, Any]
    plan: str
    inputs: str
    request: str | None
    hash: str


class LedgerBook(BaseModel):
    verified: bool
    problem: str | None
    """What is wrong with the ledger."""
    read_only: bool
    """Whether nothing can be spent: the ledger was changed, or is not the one that paid for the releases."""
    remedy: str | None
    """What to do then."""
    head: str
    datasets: list[Dataset]
    entries: list[LedgerEntry]


class Person(BaseModel):
    id: str
    name: str
    role: str
    created: str
    expires: str
    revoked: bool


class NewPerson(BaseModel):
    person: Person
    token: str
