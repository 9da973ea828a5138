"""What requests and answers look like. Requests are strict: no key too many, nothing longer than need be."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Json

from cloakgp.app import defaults, limits
from cloakgp.app.plan_settings import (
    COLUMNS,
    PRINTABLE,
    SETTINGS,
    Asked,
    Bounds,
    Cell,
    Class,
    Column,
    Delta,
    Encoding,
    Epsilon,
    Ids,
    Inputs,
    Levels,
    Points,
    Range,
    Row,
    Settings,
    Written,
    example,
)

__all__ = ["COLUMNS", "Encoding", "Ids", "Levels", "Points", "Range", "Settings", "Written"]

Words = Annotated[str, Field(min_length=1, max_length=80, pattern=PRINTABLE)]
Why = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Label = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Token = Annotated[str, Field(min_length=16, max_length=200, pattern=r"^[A-Za-z0-9_\-]+$")]


class SignIn(Asked):
    """A person's token, or that of the one-time link."""

    token: Token


class AskInputs(Written):
    """Which columns are public inputs; `output`, if given, must not be one; `bounds` helps to suggest."""

    model_config = example(inputs=["age"], output="height", bounds=[50.0, 170.0])

    inputs: Inputs
    output: Column | None = None
    bounds: Bounds | None = None


class AskPeople(Asked):
    """Which column says whose a row is: public."""

    model_config = example(people="person")

    people: Column
    encoding: Encoding | None = None
    ids: Ids = "alike"


class AskCurve(Asked):
    """Noise against epsilon."""

    model_config = example(settings=SETTINGS, epsilons=[0.1, 0.3, 1.0, 3.0])

    settings: Settings
    epsilons: Annotated[list[Epsilon], Field(min_length=1, max_length=limits.EPSILONS)]


class AskPlan(Asked):
    """Keep a plan under a name."""

    model_config = example(settings=SETTINGS, name="growth curve")

    settings: Settings
    name: Words


Which = Annotated[int, Field(ge=1, le=1000)]


class AskQuote(Asked):
    """Whose budget would pay; `number` 2 asks what a second release of the same plan would cost."""

    model_config = example(dataset="kung", number=1)

    dataset: Words
    number: Which = 1


class AskRelease(Asked):
    """The private step. `confirm` repeats the data set's name; `number` says which release is meant.

    `title`, `units`, `source` and `date` are words for pictures and reports, which the release file keeps.

    A number that was released before gets the same answer for nothing, however often it is asked for; the
    next one, as the quote's `next` says, is a new spend.
    """

    model_config = example(dataset="kung", confirm="kung", why="growth curve", missing="error", number=1)

    dataset: Words
    confirm: Annotated[str, Field(max_length=80)]
    why: Why = ""
    title: Label = ""
    units: Label = ""
    source: Label = ""
    date: Label = ""
    missing: Literal["error", "midpoint"] = "error"
    number: Which = 1


Private = Annotated[list[Column], Field(max_length=100)]


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
    people: Column | None = None
    """The id column, for a unit of people; the first spend fixes it, if absent."""
    private: Private = Field(default_factory=list)
    """All columns that may be read privately; the first spend fixes them, if absent."""
    largest_delta: Delta | None = None
    """Of one release; the budget's, if absent."""
    ids: Literal["alike", "exact"] = "alike"
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

    points: Annotated[list[Row], Field(min_length=1, max_length=limits.QUERY_POINTS, fail_fast=True)]
    level: Annotated[float, Field(allow_inf_nan=False, gt=0.0, lt=1.0)] = 0.95
    include_noise: bool = False


Pair = Annotated[list[Column], Field(min_length=2, max_length=2)]
Held = Annotated[dict[Column, Cell], Field(max_length=COLUMNS)]


class AskMap(Asked):
    """Which two inputs are across and up, and where the others are held; all as suggested, if absent."""

    model_config = example(coordinates=["lon", "lat"], geographic=True, held={"bedrooms": 3.0}, coarse=True)

    coordinates: Pair | None = None
    geographic: bool | None = None
    """Whether these are longitude and latitude; their names say if absent."""
    held: Held = Field(default_factory=dict)
    of: Class | None = None
    """Of several classes: whose probability is drawn; the first one's if absent."""
    coarse: bool = False
    """Of few points, without privacy's share, unless the whole is there; ask again for that."""


class AskPicture(BaseModel):
    """What a picture is to show, in an address: the most telling one if nothing is said, else a map."""

    model_config = ConfigDict(extra="forbid")

    view: Literal["prediction", "uncertainty", "privacy"] = "prediction"
    coordinates: Pair | None = None
    """Twice: which inputs are across and up."""
    geographic: bool | None = None
    held: Json[Held] = Field(default_factory=dict)
    """Where other inputs are held, as JSON: {"bedrooms": 3}."""
    of: Class | None = None

    def map(self) -> AskMap | None:
        """The map that is meant; None if nothing is said."""
        if not self.model_fields_set:
            return None
        return AskMap.model_validate(self.model_dump(exclude={"view"}))


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
    most_classes: int
    """That outcomes may be one of."""


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
    latent_spread: float = defaults.LATENT_SPREAD
    latent_level: float = defaults.LATENT_LEVEL
    """Of f, where outcomes are not real numbers."""
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


class Plane(BaseModel):
    """How two inputs are drawn as a map."""

    places: tuple[int, int]
    """Which inputs are across and up."""
    aspect: float | None
    """How long a unit up is drawn, in units across; null if that is of no matter."""


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
    plane: Plane | None
    """Where there are two inputs, and both are numbers."""
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


class Reads(BaseModel):
    """The columns that a release reads."""

    private: list[str]
    """For the private step alone."""
    public: list[str]
    """Inputs, which are published."""
    people: str | None
    """The id column."""


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
    reads: Reads
    unit: str
    epsilon: float
    delta: float
    lists: list[str]
    """Lists among the settings, which nobody reads through: how long they are."""


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


class ClassNumbers(BaseModel):
    """One class: its probability at each point, and within which that lies with probability 95 %."""

    name: str
    probability: list[float]
    std: list[float]
    lower: list[float]
    upper: list[float]
    noise_std: list[float] | None = None
    unknown: list[bool] | None = None


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
    by_class: list[ClassNumbers] | None = None
    """Where outcomes are one of several classes; the numbers below are null then."""
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
    """All three; the first two, of one that is coarse."""


class Released(BaseModel):
    release: Release
    receipt: PaidReceipt


class Predictions(BaseModel):
    """Where outcomes are one of several classes, `by_class` has them, and the rest is null."""

    mean: list[float] | None
    std: list[float] | None
    lower: list[float] | None
    upper: list[float] | None
    by_class: list[ClassNumbers] | None


class EarlierPromise(BaseModel):
    epsilon: float
    delta: float


class Verified(BaseModel):
    ok: bool
    complete: bool
    words: str
    earlier: list[EarlierPromise] = []
    """What earlier releases promised that this one was given: with these, its own is not the total."""


class Dataset(BaseModel):
    name: str
    epsilon: float
    delta: float
    pure: float
    unit: str | None
    """Whom all that is spent must protect; None until the first spend fixes it."""
    people: str | None
    """The id column; None until a spend fixes it."""
    private: list[str]
    """What the private step may read; none until a spend fixes them."""
    public: list[str]
    """What was published as inputs."""
    largest_delta: float | None
    """Of one release."""
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
