"""A measurement too large to be written down: a public recipe that makes its integer columns from X.

With inducing inputs, the column of a row needs that row alone,

    column(x) = rint( 2^a R k(Z, x) / D(x) ),

with R an integer matrix over a power of two, and D as in :mod:`cloakgp.model.inducing`; times the width of
the row's bounds over the widest, where they differ. One pass over X, when the plan is made, finds the longest
column, exactly; and, where the promise is to people, whose columns are longest together. The pass that meets
y has the columns again, kept or made anew, and refuses if they are longer, so that the promise rests on the
very integers that are multiplied with y.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakgp.checks import FloatArray, frozen
from cloakgp.measurements import kept_columns
from cloakgp.measurements.columns import Seen
from cloakgp.measurements.kept_columns import Steps
from cloakgp.measurements.lattice import (
    HEADROOM,
    NOISE_SCALES,
    IntArray,
    Limits,
    Measured,
    Part,
    largest_squared_norm,
)
from cloakgp.measurements.rounding import Rounding
from cloakgp.measurements.unit import OUTCOME, PERSON, Unit
from cloakgp.model.factors import Factor
from cloakgp.model.inducing import Features, SparseGP, unexplained
from cloakgp.model.smoothers import Rows, kernel_matrix
from cloakgp.model.windows import distances
from cloakgp.rows.chunks import is_dask, steps
from cloakgp.rows.merging import Chunk, Groups, Inputs, stacked
from cloakgp.rows.passes import sweep
from cloakgp.rows.people import People

if TYPE_CHECKING:
    from cloakgp.model.gp import GP

FACTOR_BITS = 52  # of R's largest entry, so that every entry is a float64
MARGIN = 2
"""Units that the declared sensitivity allows each entry of a column to be longer, at least.

Another processor may round k(Z, x) differently, and with it an entry of a column by one unit, or by more
where large terms cancel (:meth:`Recipe.evaluated`). So who recomputes the columns finds them at most so many
units apart, allows for as many more, and is within what was declared.
"""
_WORST = 256  # rows of a chunk that are handed back as the longest


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a row of X becomes a column of integers."""

    features: Features
    approximation: str
    factors: IntArray  # (q, m): R times 2^factor_bits
    factor_bits: int
    matrix_bits: int
    widest: float
    """Width of the widest bounds of a row, where rows have their own."""
    added_up: bool = False
    """Whether norms are kept, 8 bytes for each row, since people's columns are added up."""

    @cached_property
    def _used(self) -> Rows:
        """Inducing inputs that the features use, and others that have factors."""
        others = np.asarray(self.factors.any(axis=0))
        others[self.features.used] = False
        return np.concatenate([self.features.used, np.flatnonzero(others)])

    @cached_property
    def _factor(self) -> Factor:
        """R, in units, of the inducing inputs that are used."""
        used = self.factors[:, self._used].astype(np.float64)
        return Factor(np.ldexp(used, self.matrix_bits - self.factor_bits))

    @cached_property
    def _rounding(self) -> Rounding:
        W = self.features.W[:, self._used] if self.approximation == "fitc" else None
        span = getattr(self.features.kernel, "range", None) or (-math.inf, math.inf)
        return Rounding(self._factor.A, W, len(self.features.Z), span)

    @property
    def reduced(self) -> FloatArray:
        """(q, r) the same in terms of features: R k(Z, x) = reduced phi(x)."""
        return self.reduced_to(self.features)

    def reduced_to(self, features: Features) -> FloatArray:
        """The same in terms of other features of the same Z: their directions are no machine's alone."""
        R, Z = np.ldexp(self.factors.astype(np.float64), -self.factor_bits), self.features.Z
        unused = np.ones(len(Z), dtype=bool)
        unused[features.used] = False
        if R[:, unused].any():  # another machine found others too alike: what these functions have in common
            gram = kernel_matrix(features.kernel, Z, Z, "inducing, inducing")
            return np.asarray(R @ gram @ features.W.T, dtype=np.float64)
        return np.asarray(np.linalg.lstsq(features.W.T, R.T, rcond=None)[0].T, dtype=np.float64)

    def real_columns(
        self, X: FloatArray, noise: float | FloatArray, windows: FloatArray | None = None
    ) -> FloatArray:
        """(q, n) columns before rounding, in units."""
        return self._made(X, noise, windows)[0]

    def evaluated(
        self,
        X: FloatArray,
        noise: float | FloatArray,
        windows: FloatArray | None = None,
        known: float = 0.0,
    ) -> tuple[FloatArray, float]:
        """(q, n) columns before rounding, in units; and at least the error of any of their entries.

        See :class:`Rounding`. Narrower bounds make a column shorter, and its error with it. Other rows' error
        may be `known`: it is that, then, if it is larger.
        """
        columns, K, phi, D = self._made(X, noise, windows)
        return columns, self._rounding.largest(K, phi, D, known)

    def _made(
        self, X: FloatArray, noise: float | FloatArray, windows: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray, float | FloatArray]:
        """Columns before rounding, and what they are made from: kernel values, features, D."""
        K = self.features.kernel_rows(X, self._used)
        phi = np.empty((0, len(X)))
        if self.approximation == "fitc":
            phi = self.features.factor.times(K[:, : len(self.features.used)])
        D = unexplained(self.features, self.approximation, X, phi, noise)
        columns = self._factor.times(K)
        columns /= D
        if windows is not None:
            columns *= self.shares(windows)
        return columns, K, phi, D

    def shares(self, windows: FloatArray) -> FloatArray:
        """(n,) the width of each row's bounds over the widest."""
        shares: FloatArray = (windows[:, 1] - windows[:, 0]) / self.widest
        return shares

    def columns(
        self, X: FloatArray, noise: float | FloatArray, windows: FloatArray | None = None
    ) -> IntArray:
        """(q, n) integer columns."""
        real = self.real_columns(X, noise, windows)
        return np.rint(real, out=real).astype(np.int64)

    @property
    def n_measurements(self) -> int:
        return len(self.factors)

    def over(
        self, X: FloatArray, noise: Any, counts: Any, windows: Any, seen: Seen
    ) -> Iterator[tuple[slice, IntArray]]:
        """The columns of a chunk of rows, step by step; what they were like is noted in `seen`."""
        chunk = Chunk(X, noise, counts, windows)
        seen.digest = chunk_digest(X, noise, counts, windows)
        seen.absolute_sums = np.zeros(self.n_measurements)
        for rows, columns in self._steps(chunk, seen.digest):
            real = columns.astype(np.float64)
            seen.longest = max(seen.longest, largest_squared_norm(columns, real))
            if self.added_up:
                seen.norms.append(whole_norms(real))
            seen.absolute_sums += np.abs(real, out=real) @ chunk[rows].counts
            columns.setflags(write=False)  # what was looked at is what is multiplied
            yield rows, columns

    def _steps(self, chunk: Chunk, digest: bytes) -> Iterator[tuple[slice, IntArray]]:
        """The columns that were kept, or made anew."""
        known = kept_columns.kept(self, digest)
        if known is not None:
            yield from ((rows, columns.astype(np.int64)) for rows, columns in known)
            return
        for rows in steps(len(chunk)):
            step = chunk[rows]
            yield rows, self.columns(step.X, step.noise, step.windows)


def recipe(
    features: Features,
    approximation: str,
    R: FloatArray,
    matrix_bits: int,
    widest: float = 1.0,
    added_up: bool = False,
) -> Recipe:
    """The recipe for R (q, m) in terms of kernel values."""
    bits = FACTOR_BITS - int(np.frexp(np.abs(R).max())[1])
    factors = frozen(np.rint(np.ldexp(R, bits)).astype(np.int64))
    return Recipe(features, approximation, factors, bits, matrix_bits, widest, added_up)


class Scan(NamedTuple):
    """What a pass over the rows finds out about their columns."""

    longest: int
    """Largest sum of (|entry| + margin)^2 over a column."""
    column_sum: IntArray
    """(q,) sum of the columns over all rows of y."""
    absolute_sums: NDArray[Any]
    """(q,) sum of their absolute values, in Python's integers, which cannot wrap."""
    rounding: FloatArray
    """(q, q) sum of e e', e being what rounding took from a column."""
    worst: Inputs
    """Rows with the longest columns of each chunk."""
    error: float
    """At least the error of any entry, in units: see :meth:`Recipe.evaluated`."""
    moved: FloatArray
    """(q,) in units: what would be measured of how far the middle of a row's bounds is from its mean."""
    norms: IntArray
    """At least the norm of each column with its margin, in whole units; empty if none are added up."""
    kept: tuple[bytes, Steps] | None
    """A chunk's digest and columns, on their way to :mod:`cloakgp.measurements.kept_columns`."""


def scan(recipe: Recipe, inputs: Inputs, margin: int = MARGIN) -> Scan:
    """Look at every column once, and keep them all for the release if they are few enough."""
    kept_columns.forget()  # to make room
    few = len(inputs) * recipe.n_measurements <= kept_columns.ENTRIES and not is_dask(inputs.X)
    function = partial(_scan, recipe, margin, few)
    parts = list(
        sweep(
            function, inputs.X, inputs.noise, inputs.group_counts, inputs.windows, label="measuring columns"
        )
    )
    chunks = dict(part.kept for part in parts if part.kept is not None)
    if len(chunks) == len(parts):
        kept_columns.keep(recipe, chunks)
    return Scan(
        longest=max(part.longest for part in parts),
        column_sum=np.sum([part.column_sum for part in parts], axis=0),
        absolute_sums=np.sum([part.absolute_sums for part in parts], axis=0),
        rounding=np.sum([part.rounding for part in parts], axis=0),
        worst=stacked([part.worst for part in parts]),
        error=float(np.max([part.error for part in parts])),  # NaN stays NaN
        moved=np.sum([part.moved for part in parts], axis=0),
        norms=np.concatenate([part.norms for part in parts]),
        kept=None,
    )


def _scan(
    recipe: Recipe, margin: int, keep: bool, X: FloatArray, noise: Any, counts: Any, windows: Any
) -> Scan:
    q, chunk = len(recipe.factors), Chunk(X, noise, counts, windows)
    longest, norms, most, error = 0, np.empty(len(X)), 0.0, 0.0  # exact; about; at least any sum; any error
    whole = np.empty(len(X) if recipe.added_up else 0, np.int64)
    column_sum, absolute_sums = np.zeros(q, np.int64), np.zeros(q, np.int64)
    rounding, moved = np.zeros((q, q), np.float32), np.zeros(q)
    kept: list[tuple[slice, NDArray[np.int32]]] = []
    for rows in steps(len(chunk)):
        step = chunk[rows]
        real, error = recipe.evaluated(step.X, step.noise, step.windows, error)
        norms[rows] = length = np.sqrt(np.einsum("ij,ij->j", real, real))
        weights = step.counts.astype(np.int64)
        most += length.max() * float(weights.sum())
        if not most < 2**62:
            raise ValueError("X: a row's column is out of range; is its noise variance far below others'?")
        rounded = np.rint(real)
        keep = keep and length.max() < kept_columns.LARGEST - 1
        if keep:
            kept.append((rows, rounded.astype(np.int32)))
        # An entry's rounding and margin change a length by at most this; the rest cannot be the longest.
        near = length >= length.max() - 2 * (margin + 1) * np.sqrt(q)
        longest = max(longest, largest_squared_norm(np.abs(rounded[:, near]).astype(np.int64) + margin))
        if recipe.added_up:
            whole[rows] = whole_norms(np.abs(rounded) + margin)
        if step.windows is not None:
            moved += rounded @ (step.counts * middles(step.windows) / recipe.shares(step.windows))
        real -= rounded
        if np.ndim(step.group_counts):
            real *= np.sqrt(step.group_counts)
        single = real.astype(np.float32)
        rounding += single @ single.T
        # Whole numbers whose sums are below 2^53 are added exactly in float64, in whatever order.
        exact = length.max() * float(weights.sum()) < 2**52
        entries, each = (rounded, step.counts) if exact else (rounded.astype(np.int64), weights)
        column_sum += (entries @ each).astype(np.int64)
        absolute_sums += (np.abs(entries, out=entries) @ each).astype(np.int64)
    return Scan(
        longest,
        column_sum,
        absolute_sums.astype(object),
        rounding.astype(np.float64),
        _longest_rows(chunk, norms),
        error,
        moved,
        whole,
        (chunk_digest(X, noise, counts, windows), kept) if keep else None,
    )


def lengths(recipe: Recipe, inputs: Inputs) -> FloatArray:
    """(U,) about the length of each column, in units."""
    parts = sweep(partial(_lengths, recipe), inputs.X, inputs.noise, inputs.windows, label="")
    return np.concatenate(list(parts))


def _lengths(recipe: Recipe, X: FloatArray, noise: Any, windows: Any) -> FloatArray:
    chunk, squares = Chunk(X, noise, 1.0, windows), np.empty(len(X))
    for rows in steps(len(chunk)):
        step = chunk[rows]
        real = recipe.real_columns(step.X, step.noise, step.windows)
        squares[rows] = np.einsum("ij,ij->j", real, real)
    return np.sqrt(squares, out=squares)


def _longest_rows(chunk: Chunk, norms: FloatArray) -> Inputs:
    return stacked([chunk[np.sort(np.argsort(-norms, kind="stable")[:_WORST])]])


def whole_norms(columns: FloatArray) -> IntArray:
    """At least the norm of each column, in whole units: rounding errors are far below the last factor."""
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    return np.asarray(np.ceil(lengths * (1 + (len(columns) + 16) * 2.0**-52)), dtype=np.int64)


def longest_together(norms: IntArray, groups: Groups | None, people: People) -> int:
    """The largest sum of one person's norms, given that of each distinct row."""
    totals = np.zeros(people.n_people, dtype=np.int64)
    np.add.at(totals, people.labels, norms if groups is None else norms[groups.labels])
    return int(totals.max())


def middles(windows: FloatArray) -> FloatArray:
    """(n,) how far the middle of each row's bounds is from its prior mean."""
    lower, upper, mean = windows.T
    result: FloatArray = lower + (upper - lower) / 2 - mean
    return result


@dataclass(frozen=True, eq=False)
class FactoredMeasurement(Measured):
    """Release ``columns(X) @ y_int + noise``, a chunk of rows at a time."""

    recipe: Recipe
    inputs: Inputs | None
    """Distinct rows of X; None if a file holds only their digest."""
    information: FloatArray
    """(r, r) sum of phi phi' / D over the rows of y: all that denoising needs of X."""
    rows: int
    digest: str
    """SHA-256 of the inputs: see :func:`digest_of`."""
    declared: int
    """Sensitivity in lattice steps."""
    sums: IntArray  # (q,)
    extent: int
    """Largest sum of an entry's absolute values over all rows."""
    y_bits: int
    sigma: int
    lower: Limits  # of each distinct row, where they differ
    upper: Limits
    epsilon: float
    delta: float
    part: Part | None = None
    moved: FloatArray | None = None
    """(q,) :meth:`middle_less` the planned model's mean, where rows differ in bounds or mean."""
    people: People | None = None
    partition: str = ""
    """The digest of who has which rows, if the promise is to people; a file may hold no more of them."""

    @property
    def matrix_bits(self) -> int:  # type: ignore[override]
        return self.recipe.matrix_bits

    @property
    def groups(self) -> Groups | None:  # type: ignore[override]
        return None if self.inputs is None else self.inputs.groups

    @property
    def n_measurements(self) -> int:
        return len(self.recipe.factors)

    @property
    def n_rows(self) -> int:
        return self.rows

    @property
    def unit(self) -> Unit:
        return PERSON if self.partition else OUTCOME

    @property
    def column_sum(self) -> IntArray:
        return self.sums

    def sensitivity(self) -> int:
        return self.declared

    def largest_sum(self) -> int:
        return self.extent << self.y_bits

    def middle_less(self, mean: Limits) -> FloatArray:
        return super().middle_less(mean) if self.moved is None else self.moved

    def check(self) -> None:
        shared = self.people
        if shared is not None and (shared.n_rows, shared.digest) != (self.rows, self.partition):
            raise AssertionError("people are not those whom the noise was made for")
        if shared is None and self.partition and self.inputs is not None:
            raise AssertionError("who has which rows is not known")
        super().check()

    def confirm(self, chunks: Sequence[Seen], inputs: Inputs) -> None:
        """Raise unless the columns of these inputs, made again, keep the promise that the noise was made for.

        Neither the plan's word for the longest column is relied on, nor that for how large sums become.
        """
        # Merged rows were copied when the plan was made; others may be anywhere.
        digests = [chunk.digest for chunk in chunks]
        if inputs.groups is self.groups and combined_digest(digests, inputs.groups) != self.digest:
            raise ValueError("X has changed since the plan was made; plan again. Nothing was spent.")
        if declared_sensitivity(max(chunk.longest for chunk in chunks), self.y_bits) > self.declared:
            raise AssertionError("a column is longer than the noise was made for")
        if self.people is not None:
            norms = np.concatenate([step for chunk in chunks for step in chunk.norms])
            if longest_together(norms, inputs.groups, self.people) << self.y_bits > self.declared:
                raise AssertionError("a person's columns are longer than the noise was made for")
        largest = float(np.sum([chunk.absolute_sums for chunk in chunks], axis=0).max())
        # "not <" rather than ">=": it must fail for NaN too.
        if not largest * (1 + 1e-6) * 2.0**self.y_bits + NOISE_SCALES * self.sigma < HEADROOM:
            raise AssertionError("measurement could overflow 64-bit integers")
        kept_columns.forget()  # a release has no more use for them, and holds its plan


def declared_sensitivity(longest: int, y_bits: int) -> int:
    """Root of the longest column's square, rounded up, times y's largest value."""
    squared = longest * 4**y_bits
    return math.isqrt(squared - 1) + 1 if squared else 0


def digest_of(inputs: Inputs) -> str:
    """SHA-256 over the chunks' own: what the rows and their noise are, in order."""
    parts = sweep(
        chunk_digest, inputs.X, inputs.noise, inputs.group_counts, inputs.windows, label="reading X"
    )
    return combined_digest(parts, inputs.groups)


def combined_digest(parts: Iterable[bytes], groups: Groups | None) -> str:
    """One digest of the chunks' and of which rows of y belong to which row of them."""
    whole = hashlib.sha256(b"".join(parts))
    if groups is not None:
        whole.update(np.ascontiguousarray(groups.labels, dtype="<i8").tobytes())
    return whole.hexdigest()


def chunk_digest(X: FloatArray, noise: Any, counts: Any, windows: Any = None) -> bytes:
    whole = hashlib.sha256()
    for array in (X, noise, counts, *([] if windows is None else [windows])):
        whole.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return whole.digest()


def summed(gp: GP, model: SparseGP, R: FloatArray, n_rows: int) -> FloatArray:
    """At least sum_i |R phi_i / D_i| for each row of R, over all rows of y.

    By Cauchy and Schwarz it is at most the root of sum_i 1 / D_i times sum_i (R phi_i)^2 / D_i, and D_i is
    at least the noise variance.
    """
    precision = n_rows / gp.noise if isinstance(gp.noise, float) else float(np.sum(1 / gp.noise))
    squares = np.einsum("ij,ij->i", R @ model.information, R)
    result: FloatArray = np.sqrt(precision * np.maximum(squares, 0.0))
    return result


def bias(
    gp: GP,
    model: SparseGP,
    measurement: FactoredMeasurement,
    reconstruction: FloatArray,
    rounding: FloatArray,
) -> FloatArray:
    """(P,) at least the largest error of the mean, noise aside, for any y within the bounds.

    As :func:`cloakgp.plans.reconstruction.largest_bias`, with sums over rows bounded by Cauchy and Schwarz.
    `rounding` is that of a :class:`Scan`. What the measurements get wrong, they get wrong of y less the prior
    mean.
    """
    width, n_rows = measurement.width, measurement.n_rows
    cut = summed(gp, model, reconstruction @ measurement.recipe.reduced - model.T, n_rows)
    squares = np.einsum("ij,ij->i", reconstruction @ rounding, reconstruction)
    rounded = np.sqrt(n_rows * np.maximum(squares, 0.0)) * 1.001 * 2.0**-measurement.matrix_bits
    influence = summed(gp, model, model.T, n_rows)
    off = width * 2.0 ** -(measurement.y_bits + 1)
    result: FloatArray = cut * gp.farthest + rounded * farthest_in_units(gp, width) + influence * off
    return result


def farthest_in_units(gp: GP, widest: float) -> float:
    """The same in units of each row's own bounds, times the widest's width: columns are rounded in these."""
    windows = gp.windows
    if windows is None or isinstance(gp.bounds[0], float):
        return gp.farthest
    return float(np.max(distances(windows.T) / (windows[:, 1] - windows[:, 0]))) * widest
