"""Public inputs, however they are given: a table with names, or an array; all rows, or complete ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.chunks import is_dask
from cloakgp.data.columns import Column, Columns, listed, there
from cloakgp.data.frames import Table, read
from cloakgp.data.people import ALIKE, People, as_ids, as_people
from cloakgp.data.sources import is_lazy

P = ParamSpec("P")
R = TypeVar("R")
MISSING_INPUTS = ("error", "drop")
MOST_DROPPED = 100_000


@dataclass(frozen=True, eq=False)
class TableRows:
    """Which rows of a table are those of X: all, but for such as were dropped. Public."""

    size: int
    dropped: NDArray[np.int64]
    """Numbers of rows that do not count, counted from 0."""
    index: Any = None
    """The rows' labels, where the table has some; in no file and no pickle: they may be names."""

    def __reduce__(self) -> Any:
        return type(self), (self.size, self.dropped)

    @cached_property
    def kept(self) -> NDArray[np.int64] | None:
        """Numbers of the rows that count; None if all do."""
        return np.setdiff1d(np.arange(self.size), self.dropped) if len(self.dropped) else None

    def of(self, values: Any) -> Any:
        """The same rows of something else that has one for each row of the table; if it has."""
        if self.kept is None or not hasattr(values, "__len__") or len(values) != self.size:
            return values
        if hasattr(values, "iloc"):
            return values.iloc[self.kept]
        array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
        return array[self.kept]

    def words(self) -> dict[str, Any]:
        """For files."""
        return {"rows": self.size, "dropped": self.dropped.tolist()}

    @classmethod
    def from_words(cls, words: Mapping[str, Any]) -> TableRows:
        """What :meth:`words` gave."""
        size, dropped = checks.whole(words["rows"], "rows"), words["dropped"]
        fine = 0 < len(dropped) <= MOST_DROPPED and dropped == sorted(set(dropped))
        if not (fine and dropped[0] >= 0 and dropped[-1] < size):
            raise ArgumentError("dropped", f"must be up to {MOST_DROPPED:,} rows of the table, in order")
        return cls(size, np.array(dropped, dtype=np.int64))


class PublicInputs(NamedTuple):
    """Public inputs as a plan takes them."""

    X: Any
    """An array, or whatever else was given that is no table."""
    columns: Columns | None
    rows: TableRows | None
    """None where all count, and none has a label."""
    people: Any
    """Ids, if there are any."""
    ids: str = ALIKE
    """How they are compared."""

    def shared(self, n_rows: int) -> People | None:
        """Who has which rows; None if the promise is to each row."""
        return None if self.people is None else as_people(self.people, n_rows, self.ids)

    @property
    def size(self) -> int:
        """To how many a promise is made: people, or rows if none are named."""
        people = self.shared(len(self.X))
        return len(self.X) if people is None else people.n_people


def named(planning: Callable[P, R]) -> Callable[P, R]:
    """Refuse whatever else comes without a name.

    ``plan(X, y)`` is a habit from other libraries, and would publish y as test points.
    """
    parameters = inspect.signature(planning).parameters
    most = sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters.values())
    points = "X_star" in parameters
    remedy = "Test points are X_star=." if points else "All else has a name, such as epsilon=."

    @wraps(planning)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > most:
            expected = "never sees outcomes: give them to release"
            name = planning.__name__.removesuffix("_learned")  # what users call: AutoGP.plan
            raise ArgumentTypeError(name, expected, remedy=remedy)
        return planning(*args, **kwargs)

    return checked


def as_inputs(
    X: Any, people: Any = None, columns: Any = None, missing_inputs: str = "error", ids: str = ALIKE
) -> PublicInputs:
    """Public inputs, people and names, however they were given.

    Parameters
    ----------
    X : table or array
    people : ids, or the name of the column of X that holds them
    columns : Columns, optional
        Names and codes; found out from X if absent.
    missing_inputs : {"error", "drop"}
        Refuse rows of which an input is missing, or leave them out.
    ids : {"alike", "exact"}
        How the ids of people are compared.
    """
    checks.choice(missing_inputs, "missing_inputs", MISSING_INPUTS)
    if columns is not None and not isinstance(columns, Columns):
        remedy = "Make them with cloakgp.Columns.of(X, ...)."
        raise ArgumentTypeError("columns", "must be a cloakgp.Columns", type(columns).__name__, remedy)
    table, index, numbers, rows = read(X), _index(X), X, None
    if table is not None:
        columns, people = _with_roles(table, columns, people)
        numbers = columns.numbers(table, "X", new_levels=False)
    else:
        columns = _check_array(X, people, _on_cluster(X) if columns is None else columns)
    if missing_inputs == "drop":
        numbers, rows = _without_missing(numbers, index)
    elif index is not None:
        rows = TableRows(len(numbers), np.empty(0, dtype=np.int64), index)
    if table is not None:
        remedy = ", or leave such rows out with missing_inputs='drop'" if missing_inputs == "error" else ""
        _check_complete(numbers, "X", columns.names, remedy)
    _check_labels(people, index)
    people = people if rows is None else rows.of(people)
    return PublicInputs(numbers, columns, rows, people, as_ids(ids, people is not None))


def _check_labels(people: Any, index: Any) -> None:
    """Raise if ids have other labels than X's rows: who has which rows would be wrong, and so the promise."""
    own: Any = getattr(people, "index", None)
    labelled = hasattr(own, "equals") and hasattr(index, "equals") and not is_dask(people)
    if labelled and len(own) == len(index) and not own.equals(index):
        remedy = "Use people.loc[X.index]; or, if they are in the order of X's rows, people.to_numpy()."
        raise ArgumentError("people", "must have the labels of X's rows, in the same order", "others", remedy)


def _with_roles(table: Table, columns: Columns | None, people: Any) -> tuple[Columns, Any]:
    """A table's columns, with the name of the one that holds ids, if it is known; and the ids."""
    name = people if isinstance(people, str) else "" if columns is None else columns.people
    if isinstance(people, str) or (people is None and name):
        people = _ids(table, name)
    called = getattr(people, "name", None)  # of a series beside the table: a ledger compares it
    if not name and isinstance(called, str) and called not in table:
        name = called
    columns = Columns.of(table, people=name) if columns is None else replace(columns, people=name)
    if columns.response and columns.response in table:
        got = f"the outcome {columns.response!r} among them"
        raise ArgumentError("X", "must hold public inputs only", got, "Leave it out.")
    return columns, people


def _check_array(X: Any, people: Any, columns: Columns | None) -> Columns | None:
    """What is no table has no names, unless they are given with it: a plan is the same wherever X is kept."""
    if isinstance(people, str):
        remedy = "A name is for a table with named columns."
        raise ArgumentTypeError("people", "must be one id per row of X", repr(people), remedy)
    shape: tuple[int, ...] = np.shape(X) if columns is not None else ()
    if columns is not None and len(columns.inputs) != (shape[1] if len(shape) == 2 else 1):
        got = str(len(columns.inputs))
        raise ArgumentError("columns", f"must be as many as X has, whose shape is {shape}", got)
    return columns


def as_points(X: Any, name: str, n_columns: int, columns: Columns | None) -> FloatArray:
    """(n, D) where predictions are wanted: a table with a plan's columns, or an array with as many."""
    table = read(X)
    if table is None:
        return checks.matrix(X, name, columns=n_columns)
    if columns is not None:
        numbers = columns.numbers(table, name)
        _check_complete(numbers, name, columns.names, "")
        return frozen(numbers)
    # Planned with an array, which has no names: by position.
    if not table:
        raise ArgumentError(name, "must have columns", "a table without any")
    other = [listed([one]) for one, cells in table.items() if cells.values.dtype.kind not in "fb"]
    if other:
        expected = "must hold numbers: the plan was made with an array"
        raise ArgumentTypeError(name, expected, f"something else in {other[0]}")
    return checks.matrix(np.column_stack([cells.values for cells in table.values()]), name, columns=n_columns)


def same_inputs(X: Any, columns: Columns | None, rows: TableRows | None) -> Any:
    """The inputs that a plan was made for, as an array, if they are given as a table; else as they are."""
    table = read(X)
    if table is None:
        numbers = X
    elif columns is None:
        numbers = np.column_stack([cells.values for cells in table.values()])
    else:
        numbers = columns.numbers(table, "X", new_levels=False)
    if rows is not None and rows.kept is not None and len(numbers) == rows.size and not is_lazy(numbers):
        numbers = np.asarray(numbers)[rows.kept]
    return numbers


def same_ids(people: Any, X: Any, rows: TableRows | None) -> Any:
    """The people of a plan's rows: ids, or the name of their column of X."""
    if isinstance(people, str):
        table = read(X)
        if table is None:
            raise ArgumentTypeError("people", "must be ids: X has no named columns", repr(people))
        people = _ids(table, people)
    return people if rows is None else rows.of(people)


def _index(X: Any) -> Any:
    """The labels of a pandas table's rows."""
    index = getattr(X, "index", None)
    return index if hasattr(index, "equals") and not is_dask(X) else None


def _on_cluster(X: Any) -> Columns | None:
    """The columns of a Dask table, which holds numbers; None for arrays, whose columns have no names."""
    names = list(getattr(X, "columns", ())) if is_dask(X) else []
    named = names and all(isinstance(name, str) for name in names)
    return Columns(tuple(map(Column, names))) if named else None


def _ids(table: Table, name: str) -> Any:
    if name not in table:
        raise ArgumentError("people", "must be ids, or the name of a column of X", repr(name), there(table))
    return table[name].values


def _check_complete(X: FloatArray, name: str, names: Sequence[str], or_else: str) -> None:
    """Raise where a number is missing or infinite, and say where that is."""
    bad = ~np.isfinite(X)
    if not bad.any():
        return
    row, place = np.argwhere(bad)[0]
    more = int(bad.any(axis=1).sum()) - 1
    others = f", and {more} more row{'s' if more > 1 else ''}" if more else ""
    what = "is missing" if np.isnan(X[row, place]) else "is infinite"
    expected = f"must be complete; {names[place]!r} {what} in row {row} (counted from 0){others}"
    raise ArgumentError(name, expected, remedy=f"Fill it in, using public information only{or_else}.")


def _without_missing(X: Any, index: Any) -> tuple[Any, TableRows | None]:
    """The rows of which nothing is missing, and which these are."""
    if is_lazy(X) or getattr(X, "is_cuda", False):
        remedy = "Give a table or an array that is in memory, or leave such rows out of X and y, by X alone."
        expected = "must be 'error' for X that is left where it is"
        raise ArgumentError("missing_inputs", expected, "'drop'", remedy)
    array = np.asarray(X)
    if array.dtype.kind not in "iuf":
        return X, None  # to be refused as such
    array = array.astype(np.float64)
    array = array[:, None] if array.ndim == 1 else array
    dropped = np.flatnonzero(np.isnan(array).any(axis=1)).astype(np.int64)
    if len(dropped) == len(array):
        raise ArgumentError("X", "must have a row of which nothing is missing", "none")
    if len(dropped) > MOST_DROPPED:
        remedy = "Leave out the columns in which most is missing, or drop rows of X and y alike, by X alone."
        expected = f"must drop at most {MOST_DROPPED:,} rows"
        raise ArgumentError("missing_inputs", expected, f"{len(dropped):,}", remedy)
    rows = TableRows(len(array), frozen(dropped), index)
    return (array if rows.kept is None else array[rows.kept]), rows
