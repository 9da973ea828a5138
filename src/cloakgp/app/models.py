"""What answers look like. They may be made of the library's objects: what is not named here is not sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from cloakgp.app.limits import Most
from cloakgp.data.columns import Column
from cloakgp.ledger.balances import Reads
from cloakgp.plots import NEAR_PRIOR
from cloakgp.release.staged_planner import MOST_COLUMNS

_plain = BeforeValidator(lambda values: values.tolist() if hasattr(values, "tolist") else values)
Numbers = Annotated[list[float], _plain]
Flags = Annotated[list[bool], _plain]
Rows = Annotated[list[list[float]], _plain]
Summary = dict[Literal["smallest", "median", "rms", "largest", "bounds_width"], float]
"""Of noise, or of an error."""


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
    demo: bool
    upload_bytes: int
    exact_rows: int = Most.exact_rows
    most_rows: int = Most.rows
    most_inducing: int = Most.inducing
    learned_inputs: int = MOST_COLUMNS
    """Input columns of which a model can be learned."""
    most_cells: int = Most.cells
    """Of a box, where inputs are private."""
    most_classes: int = Most.classes
    """That outcomes may be one of."""


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


class InputFacts(BaseModel):
    rows: int
    dropped: int
    """Rows that are left out, since an input is missing."""
    columns: list[Column]
    written: str | None
    """How the table is written; None of Parquet."""
    decimals_unseen: bool
    """Whether no public column shows how decimals are written, and it may well be with a comma."""
    ranges: dict[str, Numbers]
    sample: Rows


class PeopleFacts(BaseModel):
    people: int
    rows: int
    most_rows: int
    """Of the person who has most."""


class Plane(BaseModel):
    """How two inputs are drawn as a map."""

    places: tuple[int, int]
    """Which inputs are across and up."""
    aspect: float | None
    """How long a unit up is drawn, in units across; null if that is of no matter."""


class Preview(BaseModel):
    points: Rows
    noise_std: Numbers
    gp_std: Numbers
    expected_error: Numbers
    """Std of what a reader will be off by, privacy and model together; a forecast, if that is learned."""
    unknown: Flags
    """Where hardly more will be known than before."""
    summary: Summary
    error_summary: Summary
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
    expected_error: Numbers
    worst_expected_error: Numbers
    noise_std: Numbers
    worst_noise_std: Numbers
    best: str
    notes: list[str]


class Kept(BaseModel):
    """What plans and releases have in common."""

    id: str
    name: str
    settings: dict[str, Any]
    certificate: dict[str, Any]
    summary: Summary
    created: str
    by: str


class Plan(Kept):
    error_summary: Summary
    """Of the expected error."""


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
    reads: Reads
    """The columns: private ones, inputs, which are published, and the id column."""
    unit: str
    epsilon: float
    delta: float
    lists: list[str]
    """Lists among the settings, which nobody reads through: how long they are."""


class Density(BaseModel):
    """How many rows there are where, about: of inputs that are private."""

    points: Rows
    rows: Numbers
    std: Numbers


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
    outside: float | None
    """Of the budget, for what its windows cut off; None if that is not measured."""


class ModelCheck(BaseModel):
    fits: bool
    words: str


class ClassNumbers(BaseModel):
    """One class: its probability at each point, and within which that lies with probability 95 %."""

    name: str
    probability: Numbers
    std: Numbers
    lower: Numbers
    upper: Numbers
    noise_std: Numbers | None = None
    unknown: Flags | None = None


class Release(Kept):
    kind: str
    plan: str
    promise: list[str]
    limits: list[str]
    receipt: Receipt
    points: Rows | None = None
    by_class: list[ClassNumbers] | None = None
    """Where outcomes are one of several classes; the numbers below are null then."""
    released: Numbers | None = None
    noise_std: Numbers | None = None
    denoised: Numbers | None = None
    denoised_std: Numbers | None = None
    inputs_sample: Rows | None = None
    lower: Numbers | None = None
    """Within which the curve lies with probability 95 %, if the model is right."""
    upper: Numbers | None = None
    columns: list[Column] | None = None
    """What the inputs are, where that is known."""
    unknown: Flags | None = None
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

    values: Rows
    low: float
    high: float
    ticks: Numbers
    tick_words: list[str]
    label: str
    hides_unknown: bool
    """Whether nothing is to be shown where nothing is known."""


class Map(Plane):
    """A surface over two inputs, in three views."""

    coarse: bool
    across: Numbers
    up: Numbers
    geographic: bool
    """Whether they are longitude and latitude."""
    near_prior: Rows
    """Total std as a share of the prior's."""
    unknown_from: float = NEAR_PRIOR
    """From which share on nothing to speak of is known."""
    inputs: Rows | None
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

    mean: Numbers | None
    std: Numbers | None
    lower: Numbers | None
    upper: Numbers | None
    by_class: list[ClassNumbers] | None


class Verified(BaseModel):
    ok: bool
    complete: bool
    words: str
    earlier: list[dict[Literal["epsilon", "delta"], float]] = []
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
