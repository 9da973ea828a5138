"""Names of columns, and the public rules by which levels and dates become numbers.

Inputs are public, and so are their names, the levels of a category and the day that dates are counted from. A
plan keeps these as :class:`Columns`, so that a reader can ask for predictions with a table of the same kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError, ArgumentTypeError, Message, Phrase
from cloakgp.data.dates import ORIGIN, moment
from cloakgp.data.frames import Cells, Level, objects, plain, read
from cloakgp.data.people import is_missing

NUMBER, LEVEL, DATE = KINDS = ("number", "level", "date")
_LIKE_A_DATE = re.compile(
    r"\s*(\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))([ T].*)?"
)


@dataclass(frozen=True)
class Column:
    """One input: what it is called, and how it becomes a number."""

    name: str
    kind: str = NUMBER
    """"number", "level" (of a category) or "date"."""
    levels: tuple[Level, ...] = ()
    """Of a category: the first is coded as 0, and so on. Levels that are not listed are new ones."""
    origin: str = ""
    """Of dates: the day that they are counted from, in days."""
    unit: str = ""
    """In words, for pictures."""

    def __post_init__(self) -> None:
        _check_text(self.name, "the name of a column")
        if self.unit:
            _check_text(self.unit, f"the unit of {self.name!r}")
        checks.choice(self.kind, "kind", KINDS)
        object.__setattr__(self, "levels", tuple(self.levels))
        if (self.kind == LEVEL) != bool(self.levels) or (self.kind == DATE) != bool(self.origin):
            raise ArgumentError("columns", f"must have levels or an origin for {self.name!r} by its kind")
        _check_levels(self.name, self.levels)
        if self.origin and not _is_day(self.origin):
            raise ArgumentError(
                "columns", f"must have a day as origin, such as {ORIGIN}", f"{self.origin!r:.100}"
            )

    @property
    def label(self) -> str:
        """For an axis of a picture."""
        if self.origin:
            return f"{self.name}, days since {self.origin}"
        return f"{self.name}, {self.unit}" if self.unit else self.name

    def words(self) -> dict[str, Any]:
        """For files: what is empty is left out."""
        found: dict[str, Any] = {name: value for name, value in vars(self).items() if value}
        return found | ({"levels": list(self.levels)} if self.levels else {})


@dataclass(frozen=True)
class Columns:
    """The names of a table's columns, and how each input becomes a number. All of it is public.

    Made by :meth:`of`, or by a plan from the table that it is given.

    Parameters
    ----------
    inputs : sequence of Column
        In the order of the columns of X.
    response : str
        What the outcome is called, for pictures and reports.
    people : str
        The column that says whose row each is, which is not an input.
    """

    inputs: tuple[Column, ...]
    response: str = ""
    people: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        if not 1 <= len(self.inputs) <= 1000:  # each of which a release file describes
            raise ArgumentError("columns", "must be from 1 to 1,000 inputs", str(len(self.inputs)))
        others = [name for name in (self.response, self.people) if name]
        for name in others:
            _check_text(name, "the name of a column")
        names = [*self.names, *others]
        twice = [name for place, name in enumerate(names) if name in names[:place]]
        if twice:
            raise ArgumentError("columns", "must have a name and a role of its own for each", repr(twice[0]))

    @classmethod
    def of(
        cls,
        X: Any,
        *,
        levels: Mapping[str, Sequence[Level]] | None = None,
        units: Mapping[str, str] | None = None,
        response: str = "",
        people: str = "",
    ) -> Columns:
        """The columns of a public table.

        Numbers stay as they are; texts, booleans and categories become levels; dates, also as text in ISO's
        form, become days since 2000-01-01.

        Parameters
        ----------
        X : pandas, polars or pyarrow table, or mapping of names to columns
            Public.
        levels : mapping of names to levels, optional
            Of these columns, which may hold numbers, too: from public knowledge, in the order in which they
            are coded. Else those of a pandas or polars category, or those in X, sorted.
        units : mapping of names to texts, optional
            For pictures, such as ``{"age": "years"}``.
        response, people : str
            Names of the outcome, and of the column that says whose row each is.

        Examples
        --------
        >>> Columns.of({"age": [31, 45], "sex": ["m", "f"]}).inputs[1].levels
        ('f', 'm')
        """
        table = read(X)
        if table is None:
            raise ArgumentTypeError("X", "must be a table with named columns", type(X).__name__)
        levels, units = dict(levels or {}), dict(units or {})
        names = [name for name in table if name != people]
        for given, what in ((levels, "levels"), (units, "units")):
            for name in given:
                if name not in names:
                    raise ArgumentError(what, "must be of inputs in X", repr(name), there(names))
        made = (_column(name, table[name], levels.get(name), units.get(name, "")) for name in names)
        return cls(tuple(made), response, people)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the inputs."""
        return tuple(column.name for column in self.inputs)

    @property
    def categories(self) -> tuple[int, ...]:
        """Which columns of X hold levels."""
        return tuple(place for place, column in enumerate(self.inputs) if column.levels)

    def place(self, name: str) -> int:
        """Which column of X has this name."""
        if name not in self.names:
            raise ArgumentError("columns", "must be named as in X", repr(name), there(self.names))
        return self.names.index(name)

    def numbers(self, X: Any, name: str = "X", *, new_levels: bool = True) -> FloatArray:
        """(n, D) a table with these columns, in any order, as numbers; NaN where something is missing."""
        table = read(X)
        if table is None:
            raise ArgumentTypeError(name, "must be a table with named columns", type(X).__name__)
        expected = f"must have the columns {listed(self.names)}"
        for absent in [one for one in self.names if one not in table]:
            raise ArgumentError(name, expected, f"none named {absent!r}")
        if unknown := [one for one in table if one not in (*self.names, self.people, self.response)]:
            remedy = f"Leave it out, such as with {name}[{list(self.names[:5])!r}]."
            raise ArgumentError(name, f"{expected}, and no others", listed(unknown), remedy)
        coded = [_CODED[one.kind](one, table[one.name].values, name, new_levels) for one in self.inputs]
        return np.column_stack(coded)

    def shown(self, X: Any) -> dict[str, NDArray[Any]]:
        """Columns of numbers as a table has them: levels and dates as they were."""
        values = np.asarray(X).T
        return {one.name: _SHOWN[one.kind](one, row) for one, row in zip(self.inputs, values, strict=False)}

    def words(self) -> dict[str, Any]:
        """For files."""
        return {"inputs": [c.words() for c in self.inputs], "response": self.response, "people": self.people}

    @classmethod
    def from_words(cls, words: Mapping[str, Any]) -> Columns:
        """What :meth:`words` gave."""
        return cls(tuple(Column(**one) for one in words["inputs"]), words["response"], words["people"])


def names_in(columns: Columns | None) -> tuple[str, ...]:
    """What columns are called that a plan takes for public, ids included: an outcome must be none of them."""
    return () if columns is None else (*columns.names, *filter(None, [columns.people]))


def common(found: Iterable[Columns | None]) -> Columns | None:
    """The columns of several releases, as far as they are known; or an error where their inputs differ."""
    known = [one for one in found if one is not None]
    for other in known[1:]:
        for mine, its in zip(known[0].inputs, other.inputs, strict=False):
            if replace(mine, unit="") != replace(its, unit=""):
                raise ArgumentError(
                    "releases",
                    "must have the same columns, with the same levels in the same order",
                    f"{mine.name!r} in one and {its.name!r} in another, or coded otherwise",
                    "Agree on names, and on levels with cloakgp.Columns.of(X, levels=...), before planning.",
                )
    return known[0] if known else None


def _column(name: str, cells: Cells, levels: Sequence[Level] | None, unit: str) -> Column:
    """What a column is, by what it holds."""
    values, levels = cells.values, cells.levels if levels is None else levels
    if levels is not None:
        return Column(name, LEVEL, tuple(map(plain, levels)), unit=unit)
    if values.dtype.kind == "f":
        return Column(name, unit=unit)
    known = [one for one in values.tolist() if one is not None] if values.dtype.kind == "O" else []
    if values.dtype.kind == "M" or (known and None not in map(moment, known)):
        return Column(name, DATE, origin=ORIGIN, unit=unit)
    if not known:
        raise ArgumentError("X", f"must hold something in {name!r}", "nothing", "Leave that column out.")
    _check_no_dates(name, values)
    found = set(known)
    if found <= {False, True}:
        return Column(name, LEVEL, (False, True), unit=unit)
    if len(found) > 1000:  # which are likely to tell people apart
        remedy = Message(
            "If it tells people apart, give people=; else leave it out or ", Phrase.NAME_LEVELS, "."
        )
        raise ArgumentError("X", f"must have at most 1,000 levels in {name!r}", f"{len(found):,}", remedy)
    _check_levels(name, tuple(found))
    return Column(name, LEVEL, tuple(sorted(found, key=lambda one: (isinstance(one, str), one))), unit=unit)


def _check_no_dates(name: str, values: NDArray[Any]) -> None:
    """Raise if texts that would become levels look like dates: 31/05/2024, or a slip of the pen in one."""
    if not any(isinstance(one, str) and _LIKE_A_DATE.fullmatch(one) for one in values.tolist()):
        return
    row, wrong = next((row, one) for row, one in enumerate(values) if one is not None and moment(one) is None)
    raise ArgumentError(
        "X",
        f"must have all dates as 2024-05-31 or 2024-05-31T12:00 in {name!r}",
        f"{wrong!r:.60} in row {row} (counted from 0), so that all would be levels of a category",
        Message("Write them so; or ", Phrase.NAME_LEVELS, " if it is a category all the same."),
    )


def _plain_numbers(column: Column, values: NDArray[Any], name: str, new_levels: bool) -> FloatArray:
    if values.dtype.kind == "f":
        return values
    if values.dtype.kind == "O" and all(one is None or isinstance(one, bool) for one in values):
        return np.array([np.nan if one is None else float(one) for one in values])
    raise ArgumentTypeError(name, f"must hold numbers in {column.name!r}", "something else")


def _codes(column: Column, values: NDArray[Any], name: str, new_levels: bool) -> FloatArray:
    codes = {level: float(code) for code, level in enumerate(column.levels)}
    texts = all(isinstance(level, str) for level in column.levels)
    result = np.empty(len(values))
    for row, one in enumerate(values.tolist()):
        if is_missing(one):
            result[row] = np.nan
        elif one in codes:
            result[row] = codes[one]
        elif not new_levels or isinstance(one, str) != texts:
            expected = f"must hold levels of {column.name!r}, {listed(column.levels)}"
            raise ArgumentError(name, expected, f"{one!r:.100} in row {row} (counted from 0)")
        else:  # a new level, unlike all others
            result[row] = codes.setdefault(one, float(len(codes)))
    return result


def _days(column: Column, values: NDArray[Any], name: str, new_levels: bool) -> FloatArray:
    if values.dtype.kind == "O":
        moments = [moment(one) for one in values.tolist()]  # None of None
        if len({one.tzinfo is None for one in moments if one is not None}) > 1:
            expected = f"must have a time zone in all or in none of the dates in {column.name!r}"
            raise ArgumentError(name, expected, "both")
        for row in [row for row, one in enumerate(moments) if one is None and values[row] is not None]:
            expected = f"must hold dates in {column.name!r}, such as 2024-05-31 or 2024-05-31T12:00Z"
            raise ArgumentError(name, expected, f"{values[row]!r:.100} in row {row} (counted from 0)")
        aware = [one.astimezone(UTC).replace(tzinfo=None) if one and one.tzinfo else one for one in moments]
        values = np.array(aware, dtype="datetime64[us]")
    if values.dtype.kind != "M":
        raise ArgumentTypeError(name, f"must hold dates in {column.name!r}", "numbers")
    return np.asarray((values - np.datetime64(column.origin, "us")) / np.timedelta64(1, "D"))


def _levels(column: Column, values: FloatArray) -> NDArray[Any]:
    known = dict(enumerate(column.levels))
    return objects([known.get(int(code)) if code == int(code) else None for code in values.tolist()])


def _moments(column: Column, values: FloatArray) -> NDArray[Any]:
    since = np.rint(values * 86_400e6).astype("timedelta64[us]")
    return np.asarray(np.datetime64(column.origin, "us") + since)


_CODED: dict[str, Callable[[Column, NDArray[Any], str, bool], FloatArray]]
_CODED = {NUMBER: _plain_numbers, LEVEL: _codes, DATE: _days}
"""A column's cells as numbers, NaN where they are missing; new levels are refused, or numbered on."""
_SHOWN: dict[str, Callable[[Column, FloatArray], NDArray[Any]]]
_SHOWN = {NUMBER: lambda _, values: values, LEVEL: _levels, DATE: _moments}
"""Numbers as a table has them."""


def _check_text(value: Any, what: str) -> None:
    """Printable and not too long: files hold it."""
    if not checks.is_printable(value):
        expected = f"must have printable text of 1 to {checks.LONGEST_NAME} characters as {what}"
        raise ArgumentError("columns", expected, f"{value!r:.100}")


def _check_levels(name: str, levels: Sequence[Any]) -> None:
    longest, most = checks.LONGEST_NAME, 100_000  # levels, all of which a release file lists
    # Whole numbers as a float holds them.
    whole = [isinstance(one, int) and abs(one) < 2**53 for one in levels]
    if not all(fine or checks.is_printable(one, blank=True) for fine, one in zip(whole, levels, strict=True)):
        expected = (
            f"must have printable texts of up to {longest} characters or integers as levels of {name!r}"
        )
        raise ArgumentError("columns", expected)
    if len(levels) > most or len(set(levels)) < len(levels):
        raise ArgumentError("columns", f"must have up to {most:,} different levels for {name!r}")


def _is_day(value: Any) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def listed(names: Iterable[Any]) -> str:
    names = list(names)
    shown = ", ".join(f"{name!r:.60}" for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def there(names: Iterable[str]) -> str:
    return f"There are {listed(names)}."
