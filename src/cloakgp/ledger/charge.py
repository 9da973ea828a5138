"""What a charge is made of: who pays, what for, and the receipt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from cloakgp import checks
from cloakgp.accounting import Event
from cloakgp.measurements.lattice import IntArray


class Chargeable(Protocol):
    """What a ledger needs to know of a plan."""

    @property
    def cost(self) -> Event: ...
    @property
    def digest(self) -> str: ...
    @property
    def inputs_digest(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def partition(self) -> str: ...
    @property
    def delta(self) -> float: ...
    @property
    def question_digest(self) -> str:
        """SHA-256 of what is asked, of whom: the same on every machine, unlike the integers' own digest."""

    def to_bytes(self) -> bytes | None:
        """All that an answer is read by, the first stage's integers among it; None if that is not needed."""


class ChargeableInStages(Chargeable, Protocol):
    """What a ledger needs to know of a plan that is paid for once, and answered in stages."""

    @property
    def stages(self) -> int:
        """How many there are at most; the digest covers it."""


@dataclass(frozen=True)
class Receipt:
    """Where a release stands in a ledger: lets the ledger be checked against the release later."""

    dataset: str
    entry: int
    head: str
    """The hash of that entry, and so of everything up to it."""


@dataclass
class Charge:
    """A charge in the making: give it the answer."""

    answer: IntArray | None = None
    receipt: Receipt | None = None
    plan: bytes | None = None
    """The plan that was charged for, if the answer was there already and that plan has other digits."""


@dataclass(frozen=True)
class Account:
    """Who pays: the ledger, the data set, why, and the caller's name for the request."""

    ledger: Any = None
    dataset: str | None = None
    why: str = ""
    request: str | None = None

    def __post_init__(self) -> None:
        if self.ledger is None and (self.dataset is not None or self.why or self.request is not None):
            raise ValueError("ledger must be given with dataset, why or request. Nothing was spent.")
        if self.ledger is not None and self.dataset is None:
            raise ValueError("dataset must be given with ledger: whose budget pays? Nothing was spent.")
        if self.dataset is not None:  # or the release could not be saved once it is paid for
            checks.text(self.dataset, "dataset", checks.LONGEST_NAME)
