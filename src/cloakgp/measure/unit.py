"""Units of protection: what two data sets may differ in that no one can tell apart."""

from __future__ import annotations

from typing import Any, NamedTuple

from cloakgp.data.grid import Grid


class Unit(NamedTuple):
    """Whom a promise is about, in words that files and ledgers hold."""

    name: str
    neighbours: str
    """What may differ between two data sets that the promise makes indistinguishable."""


OUTCOME = Unit("one row", "y of one row replaced by any other value; X and all else the same")
PERSON = Unit(
    "one person",
    "every y of one person's rows replaced by any other values; X, who has which rows, and all else the same",
)
ROW = Unit(
    "one whole row",
    "one row, inputs and outcome, replaced by any other; the number of rows and all else the same",
)
PERSON_ROWS = Unit(
    "one person's whole rows",
    "all rows of one person, however many, inputs and outcomes, replaced by any others; "
    "the number of people and all else the same",
)
UNITS = {unit.name: unit for unit in (OUTCOME, PERSON, ROW, PERSON_ROWS)}
"""All that this library promises, by name."""


class Population(NamedTuple):
    """Whose whole rows are protected: so many rows; or so many people, each with at most `max_rows`.

    All that is public of them, with the box that their inputs are in.
    """

    grid: Grid
    size: int
    """How many there are."""
    max_rows: int | None = None
    """Rows of one person; None if each row is protected by itself."""

    @property
    def each(self) -> int:
        """Rows that go together, at most."""
        return 1 if self.max_rows is None else self.max_rows

    @property
    def most(self) -> int:
        """Rows in all, at most."""
        return self.size * self.each

    @property
    def unit(self) -> Unit:
        return ROW if self.max_rows is None else PERSON_ROWS


def check_unit(certificate: Any, unit: Unit) -> None:
    """Raise unless a certificate promises what noise was made for: a plan's file may say anything."""
    if (certificate.unit, certificate.neighbours) != unit:
        raise AssertionError(f"certificate promises more than noise for {unit.name} keeps, or another thing")
