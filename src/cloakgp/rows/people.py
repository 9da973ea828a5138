"""Who has which rows: public, and all that is kept of ids is who is the same as who."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp import checks
from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.rows.merging import Inputs, Labels, distinct

_NUMBER = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]{0,300})?")
_REMEDY = "Give one id per row of X, in the order of its rows."


@dataclass(frozen=True, eq=False)
class People:
    """Rows by person. Persons are numbered by their first rows: the ids themselves are forgotten."""

    labels: Labels  # (N,): the person of each row

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many rows each person has."""
        return frozen(np.bincount(self.labels).astype(np.int64))

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def n_people(self) -> int:
        return len(self.counts)

    @property
    def most_rows(self) -> int:
        """Of the person who has most."""
        return int(self.counts.max())

    @cached_property
    def own(self) -> NDArray[np.int64]:
        """(N,) how many rows the person of each row has."""
        return frozen(self.counts[self.labels])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the partition: the same people in the same rows give the same, whatever their ids."""
        return hashlib.sha256(np.ascontiguousarray(self.labels, dtype="<i8").tobytes()).hexdigest()


def as_within(within: Any) -> float:
    """A correlation from 0 to 1."""
    value = checks.number(within, "within")
    if not 0 <= value <= 1:
        raise ArgumentError("within", "must be a correlation from 0 to 1", repr(within))
    return value


def times_noise(k: Any, within: float) -> FloatArray:
    """What the noise variance of a row is multiplied by whose person has k rows: 1 + (k - 1) within.

    That is the variance of the mean of k outcomes, each with noise of variance 1 and correlation `within`,
    times k: with 1, all rows of a person count as one; with 0, each as another person's.
    """
    return np.asarray(1.0 + (k - 1) * within)


def distinct_rows(X: Any, people: People | None) -> Inputs:
    """X without its repetitions; with people, equal rows of such as have equally many, told as `noise`."""
    return distinct(X, 0.0 if people is None or people.most_rows == 1 else people.own.astype(np.float64))


def for_people(noise: float | FloatArray, people: People, within: float) -> float | FloatArray:
    """A model's noise variances, one for each row where people have several that go together."""
    if people.most_rows == 1 or not within:
        return noise
    return frozen(noise * times_noise(people.own, within))


def as_people(ids: Any, n_rows: int) -> People:
    """The people whom these ids name: whole numbers, texts, or anything hashable; one for each row.

    A number is the same however it is written, as 7, "07" and "7.0 ".
    """
    if hasattr(ids, "compute"):  # a Dask array or series: ids are public
        ids = ids.compute()
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__len__"):
        raise ArgumentTypeError("people", "must be one id per row of X", type(ids).__name__, _REMEDY)
    if len(getattr(ids, "shape", ())) == 2 and ids.shape[1] == 1:
        ids = np.asarray(ids)[:, 0]
    if len(ids) != n_rows:
        raise ArgumentError("people", f"must have {n_rows} ids, one per row of X", str(len(ids)), _REMEDY)
    _refuse_missing(bool(np.ma.getmaskarray(ids).any()) if isinstance(ids, np.ma.MaskedArray) else False)
    array = np.asarray(ids) if getattr(ids, "dtype", None) is not None else None
    if array is not None and array.ndim != 1:
        raise ArgumentError("people", "must be one id per row of X", f"shape {array.shape}", _REMEDY)
    if array is not None and array.dtype.kind in "iubM":
        _refuse_missing(array.dtype.kind == "M" and bool(np.isnat(array).any()))
        return People(_by_first(np.unique(array, return_inverse=True)[1].reshape(-1)))
    if array is not None and array.dtype.kind == "f":
        _refuse_missing(bool(np.isnan(array).any()))
        return People(_by_first(np.unique(array, return_inverse=True)[1].reshape(-1)))
    known: dict[Any, int] = {}
    labels = np.empty(n_rows, dtype=np.intp)
    for row, one in enumerate(ids):
        own = same_id(one)
        _refuse_missing(is_missing(own) or (isinstance(own, str) and not own))
        try:
            labels[row] = known.setdefault(own, len(known))
        except TypeError:
            raise ArgumentTypeError(
                "people", "must be whole numbers, texts or other ids that can be compared", type(one).__name__
            ) from None
    return People(frozen(labels))


def same_id(one: Any) -> Any:
    """What is equal for equal ids: spaces around a text do not count, nor how a number is written.

    Each id counts by itself. Who was taken for two people would be protected as half of one.
    """
    if isinstance(one, str):
        text = one.strip()
        return Decimal(text).normalize() if _NUMBER.fullmatch(text) else text
    return one


def same_people(ids: Any, n_rows: int, partition: str) -> People | None:
    """The people whom a plan was made for, whose digest this is; None where its promise is to each row."""
    if not partition:
        if ids is not None:
            raise ArgumentError("people", "must be left out: the plan's promise is to each row")
        return None
    if ids is None:
        raise ArgumentError("people", "must be given: the plan's promise is to people", remedy=_REMEDY)
    found = as_people(ids, n_rows)
    if found.digest != partition:
        raise ArgumentError("people", "must be whom the plan was made for; these have other rows")
    return found


def _by_first(labels: Labels) -> Labels:
    """The same numbered by first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return frozen(rank[inverse.reshape(-1)])


def _refuse_missing(missing: bool) -> None:
    if missing:
        remedy = "Rows of an unknown person cannot be protected together: leave them out, or give them an id."
        raise ArgumentError("people", "must name someone in every row; an id is missing", remedy=remedy)


def is_missing(one: Any) -> bool:
    """Whether it is None, a NaN or like one."""
    same = one == one
    return one is None or not (same is True or (isinstance(same, np.bool_) and bool(same)))
