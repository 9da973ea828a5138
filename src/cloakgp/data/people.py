"""Who has which rows: public, and all that is kept of ids is who is the same as who."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.merging import Groups, Labels, by_first

ALIKE, EXACT = "alike", "exact"
IDS = (ALIKE, EXACT)
"""How ids are compared: those written in several ways are one person's, or each way is another person."""
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that leave no trace on paper, though they are neither control nor format characters."""
_MARKS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u02b9\u2032\uff07", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\uff02", '"')
)
"""Dashes, apostrophes and quotes, which a word processor writes otherwise than a keyboard does."""
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?|[+-]?inf(inity)?")
_REMEDY = "Give one id per row of X, in the order of its rows."


@dataclass(frozen=True, eq=False)
class People:
    """Rows by person. Persons are numbered by their first rows: the ids themselves are forgotten."""

    labels: Labels  # (N,): the person of each row
    ids: str = ALIKE
    """How their ids were compared: one of `IDS`."""

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

    def rows_at(self, groups: Groups | None) -> FloatArray | None:
        """(U,) how many rows the person has whose row each distinct one is; None if everybody has one."""
        if self.most_rows == 1:
            return None
        own = self.own.astype(np.float64)
        if groups is None:
            return own
        most = np.ones(len(groups.counts))  # rows of different people's may be equal, if noise is, too
        np.maximum.at(most, groups.labels, own)
        return most

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the partition: the same people in the same rows give the same, whatever their ids."""
        return hashlib.sha256(np.ascontiguousarray(self.labels, dtype="<i8").tobytes()).hexdigest()


def as_within(within: Any) -> float:
    """A correlation from 0 to 1."""
    return checks.number(within, "within", least=0.0, most=1.0, remedy="It is a correlation.")


def times_noise(k: Any, within: float) -> FloatArray:
    """What the noise variance of a row is multiplied by whose person has k rows: 1 + (k - 1) within.

    That is the variance of the mean of k outcomes, each with noise of variance 1 and correlation `within`,
    times k: with 1, all rows of a person count as one; with 0, each as another person's.
    """
    return np.asarray(1.0 + (k - 1) * within)


def rows_each(people: People | None) -> float | FloatArray:
    """(N,) how many rows the person of each row has; 0 for all where everybody has one."""
    return 0.0 if people is None or people.most_rows == 1 else people.own.astype(np.float64)


def for_people(noise: float | FloatArray, people: People, within: float) -> float | FloatArray:
    """A model's noise variances, one for each row where people have several that go together."""
    if people.most_rows == 1 or not within:
        return noise
    return frozen(noise * times_noise(people.own, within))


def as_people(ids: Any, n_rows: int, how: str = ALIKE) -> People:
    """The people whom these ids name: whole numbers, texts, or anything hashable; one for each row.

    However an id is written, it is the same: see :func:`same_id`. With `how` "exact", only equal ones are.
    """
    if hasattr(ids, "compute"):  # a Dask array or series: ids are public
        ids = ids.compute()
    if hasattr(ids, "to_pylist"):  # of pyarrow, whose values are objects of its own
        ids = ids.to_pylist()
    expected = f"must have {n_rows} ids, one per row of X"
    if isinstance(ids, (str, bytes, Mapping, Set)) or not hasattr(ids, "__len__"):
        raise ArgumentTypeError("people", expected, type(ids).__name__, _REMEDY)
    if not hasattr(ids, "shape"):
        ids = list(ids)
        if len(ids) != n_rows:
            raise ArgumentError("people", expected, str(len(ids)), _REMEDY)
    else:
        _refuse_missing(bool(np.ma.getmaskarray(ids).any()))
        ids = np.asarray(ids)
        ids = ids[:, 0] if ids.ndim == 2 and ids.shape[1] == 1 else ids
        if ids.shape != (n_rows,):
            raise ArgumentError("people", expected, f"shape {ids.shape}", _REMEDY)
        if ids.dtype.kind in "iubfM":
            _refuse_missing(ids.dtype.kind in "fM" and bool((ids != ids).any()))
            if how == ALIKE and ids.dtype.kind in "iuf" and ids.dtype.itemsize >= 8:
                ids = ids.astype(np.float64)  # as same_id compares numbers
            return People(by_first(ids), how)
    known: dict[Any, int] = {}
    texts: dict[str, int] = {}  # as they were written: most are there many times
    found: list[int] = []
    for one in ids:
        label = texts.get(one) if isinstance(one, str) else None
        if label is None:
            label = _number_of(one, known, how)
            if isinstance(one, str):
                texts[one] = label
        found.append(label)
    return People(frozen(np.array(found, dtype=np.intp)), how)


def _number_of(one: Any, known: dict[Any, int], how: str) -> int:
    """The number of a person by an id: the next one, if nobody is known by it."""
    own = same_id(one)
    _refuse_missing(names_nobody(own))
    try:
        return known.setdefault(own if how == ALIKE else one, len(known))
    except TypeError:
        expected = "must be whole numbers, texts or other ids that can be compared"
        raise ArgumentTypeError("people", expected, type(one).__name__) from None


def as_ids(ids: Any, people: bool) -> str:
    """How ids are compared: as somebody said who also said whose the rows are."""
    checks.choice(ids, "ids", IDS)
    if ids == EXACT and not people:
        raise ArgumentError("ids", "must be left out: no people are named, so there are no ids to compare")
    return str(ids)


def same_id(one: Any) -> Any:
    """What is equal for all ways of writing one id.

    Who was taken for two people would be protected as half of one; two who are taken for one have more noise
    than they need. So whatever might be the same is. Texts are compared after compatibility normalisation and
    case folding, without control and format characters, and with one space for any white space inside. Bytes
    are texts. Numbers, and texts that are numbers, are compared as the nearest double: that is one for 7,
    "007", "7,0" and "7e0", costs nothing for "1e999999999", and is the same for a whole number beyond 2^53
    and the float that someone has made of it.
    """
    if isinstance(one, (bytes, bytearray)):
        one = decoded(bytes(one))
    if isinstance(one, str):
        text = _folded(one).lstrip("'")  # which spreadsheets write before a number that is a text
        if _NUMBER.fullmatch(closed := text.replace(" ", "")):  # as in 1 000
            return float(closed.replace(",", "."))
        truth = {"true": 1.0, "false": 0.0}
        return truth.get(text, re.sub(r"[t ]00:00(:00(\.0*)?)?$", "", text))
    if isinstance(one, tuple):
        return tuple(map(same_id, one))
    if isinstance(one, np.datetime64):
        one = one.astype("datetime64[us]").item()
    if isinstance(one, date) and not is_missing(one):
        return _folded(one.isoformat().removesuffix("T00:00:00"))
    if isinstance(one, np.floating):
        return float(str(one))  # its own digits: those of a float32 are fewer
    return _nearest(one) if isinstance(one, (Number, np.number, np.bool_)) else one


def _nearest(number: Any) -> Any:
    """The double that is nearest to a real number."""
    if isinstance(number, complex | np.complexfloating | np.timedelta64):
        return number
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def decoded(one: bytes) -> str:
    """Bytes as the text that they are most likely to be."""
    try:
        return one.decode()
    except UnicodeDecodeError:
        return one.decode("latin-1")


def _folded(text: str) -> str:
    """A text by what it says: as the Unicode standard matches texts without case (section 3.13, D146)."""
    if not text.isascii():
        # A small dotless i is a capital I.
        text = unicodedata.normalize("NFD", _visible(text)).upper().casefold()
        text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).upper().casefold())
        text = text.replace("i\u0307", "i")  # as is one with a dot
    return " ".join(_visible(text).casefold().split())


def _visible(text: str) -> str:
    """Without control and format characters; white space is neither."""
    if text.isascii() and text.isprintable():
        return text
    text = _UNSEEN.sub("", text).translate(_MARKS)
    return "".join(c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf"))


def _refuse_missing(missing: bool) -> None:
    if missing:
        remedy = "Rows of an unknown person cannot be protected together: leave them out, or give them an id."
        raise ArgumentError("people", "must name someone in every row; an id is missing", remedy=remedy)


def names_nobody(own: Any) -> bool:
    """Whether an id is missing, once it is what :func:`same_id` makes of it: an empty text is, too."""
    return is_missing(own) or (isinstance(own, str) and not own)


def is_missing(one: Any) -> bool:
    """Whether it is None, a NaN or like one."""
    same = one == one
    return one is None or not (same is True or (isinstance(same, np.bool_) and bool(same)))
