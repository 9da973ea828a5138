"""Cross-validation without y: folds, the weights between their rows, and losses in public integers.

In fold k of a candidate the tested outcomes are predicted by ``mean + C (y[train] - mean)`` with a public
matrix C. Folds may depend on X, never on y: no stratifying. A candidate's score is the summed loss of its
residuals ``y[test] - mean - C (y[train] - mean)``, min(e^2, T^2) or min(|e|, T), over all folds. With
C_int = rint(2^a C) and y_int in [0, 2^b],

    residual = 2^a y_int[test] - C_int y_int[train] - offset,        score = (sum of losses + cost) >> c

are exact integers, so that no rounding can add to what one row of y can change. How much that is
(lemma 11 of ``docs/proofs.md``) depends on |C_int| alone: if a residual moves by at most s, its loss moves
by at most h(s) = t (2T - t), t = min(s, T), for squared loss and h(s) = min(s, T) for absolute loss. Where
the promise is to people, s counts all rows of one person.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_solve

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.blas import blas_threads
from cloakgp.data.people import People
from cloakgp.kernels import Kernel
from cloakgp.measure.statistics import Inside
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.smoothers import Rows, check_covariance, gentle_cholesky

LOSSES = ("squared", "absolute")
Y_BITS, MATRIX_BITS = 18, 26  # finest lattice: beyond it nothing is gained
CLIP_BITS = 48  # the clip T stays below 2^48, so that squares split into two 24-bit limbs
FOLD_LIMIT = 2**13
"""Tested rows of a fold are fewer, so that sums of its limbs stay below 2^61."""
_OFFSET_LIMIT = 2**60  # beyond it a residual is clipped whatever y is
_SCORE_BITS = 52  # floats hold scores and the noise on them exactly

SmallIntArray = NDArray[np.int32]

# Folds

_REMEDY = (
    "Give a number of folds, a scikit-learn splitter that needs neither y nor groups, such as "
    "ShuffleSplit(100, test_size=0.2, random_state=0), or pairs (train, test) of row numbers."
)


class Fold(NamedTuple):
    train: Rows
    test: Rows


def as_folds(folds: Any, X: FloatArray, people: People | None = None) -> tuple[Fold, ...]:
    """The folds in full, drawn once: a splitter's own randomness ends here, in public.

    A number of folds keeps a person's rows together: else a model would be tested on people whom it knows.
    Rows are shuffled by a public seed: else a sorted X would be tested by extrapolation.
    """
    pairs = folds
    if isinstance(folds, (int, np.integer)) and not isinstance(folds, bool):
        n, whose = (len(X), np.arange(len(X))) if people is None else (people.n_people, people.labels)
        parts = np.array_split(np.random.RandomState(0).permutation(n), checks.whole(folds, "folds", 2, n))
        tested = [np.isin(whose, part) for part in parts]
        pairs = [(np.flatnonzero(~rows), np.flatnonzero(rows)) for rows in tested]
    elif hasattr(folds, "split") and not isinstance(folds, (str, bytes)):
        pairs = _split(folds, X, people)
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise ArgumentTypeError("folds", "must be a number or say how to split", reprlib.repr(folds), _REMEDY)
    checked = tuple(_checked(pair, number, len(X)) for number, pair in enumerate(pairs))
    if not checked:
        raise ArgumentError("folds", "must hold at least one pair (train, test)", "none", _REMEDY)
    return checked


def _split(splitter: Any, X: FloatArray, people: People | None) -> list[Any]:
    """A splitter's pairs; one that needs to know whose rows they are is told of people."""
    for told in [{}] if people is None else [{}, {"groups": people.labels}]:
        try:
            return list(splitter.split(X, **told))
        except (TypeError, ValueError) as error:
            failed = str(error)
    expected = "must split X alone: a splitter that looks at y is not private"
    raise ArgumentError("folds", expected, f"{type(splitter).__name__}, which said: {failed}", _REMEDY)


def _checked(pair: Any, number: int, n_rows: int) -> Fold:
    try:
        train, test = map(np.asarray, pair)
    except (TypeError, ValueError):
        expected = "must be a pair (train, test) of vectors"
        raise ArgumentError(f"folds[{number}]", expected, reprlib.repr(pair), _REMEDY) from None
    for rows, which in ((train, "[0] (train)"), (test, "[1] (test)")):
        name = f"folds[{number}]{which}"
        if rows.ndim != 1 or rows.size == 0:
            raise ArgumentError(name, "must be a vector of row numbers, at least one", reprlib.repr(rows))
        if rows.dtype.kind not in "iu":
            remedy = "For a mask m, use m.nonzero()[0]."
            raise ArgumentTypeError(name, "must hold whole numbers", f"dtype {rows.dtype}", remedy)
        if rows.min() < 0 or rows.max() >= n_rows:
            expected = f"must be from 0 to {n_rows - 1}, the rows of X"
            raise ArgumentError(name, expected, f"{rows.min()} to {rows.max()}")
        if len(np.unique(rows)) < len(rows):
            raise ArgumentError(name, "must not repeat a row; some are there twice")
    if np.isin(test, train).any():
        raise ArgumentError(f"folds[{number}]", "must not test rows that it trains on; some are in both")
    return Fold(frozen(train.astype(np.intp)), frozen(test.astype(np.intp)))


def weights(
    gps: Sequence[GaussianProcess], X: FloatArray, folds: Sequence[Fold], advance: Callable[[], None]
) -> Iterator[list[FloatArray]]:
    """For each model, the matrices C of its folds. `advance` is called after each model."""
    kernel: Kernel | None = None
    gram = np.empty((0, 0))
    for gp in gps:
        with blas_threads(len(X)):
            if kernel is None or gp.kernel != kernel:  # models with one kernel should stand side by side
                kernel = gp.kernel
                gram = kernel(X, X)
                check_covariance(gram)
            noise = np.broadcast_to(np.asarray(gp.noise, dtype=np.float64), (len(X),))
            matrices = [_weights(gram, noise, *fold) for fold in folds]
        yield matrices
        advance()


def _weights(gram: FloatArray, noise: FloatArray, train: Rows, test: Rows) -> FloatArray:
    """C = K_t,train (K_train + S_train)^-1 (Rasmussen & Williams 2006, algorithm 2.1)."""
    factor, _ = gentle_cholesky(gram[np.ix_(train, train)], noise[train])
    C: FloatArray = cho_solve(factor, gram[np.ix_(train, test)], check_finite=False).T
    return C


# Scores


@dataclass(frozen=True, eq=False)
class Scores:
    """The integers from which y becomes one score per candidate, and the promise about them."""

    matrices: tuple[tuple[SmallIntArray, ...], ...]
    """For each candidate and fold, (n tested, n trained): C_int."""
    offsets: tuple[tuple[IntArray, ...], ...]
    """For each candidate and fold, (n tested,): what the prior mean adds."""
    folds: tuple[Fold, ...]
    costs: tuple[int, ...]
    """For each candidate, what is added to its loss in public."""
    loss: str
    clip: int
    statistic: Inside
    """How outcomes become integers."""
    matrix_bits: int
    shift: int
    sensitivity: int
    """How far one row of y, or all of one person's, can move a score: what the noise is scaled to."""
    n_rows: int
    epsilon: float
    people: People | None = None
    """Who has which rows, if the promise is to each person; None if it is to each row."""

    @property
    def n_tested(self) -> int:
        """Residuals per candidate, over all folds."""
        return sum(len(test) for _, test in self.folds)

    @property
    def step(self) -> float:
        """What one step of a score is worth, in y's unit (squared, for squared loss)."""
        residual = math.ldexp(self.statistic.span, -(self.statistic.y_bits + self.matrix_bits))
        return (residual**2 if self.loss == "squared" else residual) * 2.0**self.shift

    @property
    def largest_total(self) -> int:
        """No candidate's score, before the shift, can be larger."""
        worst: int = self.clip**2 if self.loss == "squared" else self.clip
        return self.n_tested * worst + max(self.costs)

    @property
    def scale(self) -> float:
        """Scale of the Gumbel noise: 2 sensitivity / epsilon, rounded up."""
        exact = 2 * Fraction(self.sensitivity) / Fraction(self.epsilon)
        value = float(exact)
        return value if Fraction(value) >= exact else math.nextafter(value, math.inf)

    def check(self) -> None:
        """Raise unless the sensitivity provably holds for these integers; y is not needed to tell."""
        self._check_shapes()
        self._check_exactness()
        if not 0 < self.epsilon < math.inf:
            raise AssertionError("epsilon is not a positive number")
        if self.sensitivity < self.least_sensitivity(self.shift):
            raise AssertionError("y can move a score further than the declared sensitivity")

    def least_sensitivity(self, shift: int) -> int:
        """The largest effect on any candidate, in steps after the shift.

        Floors of numbers that differ by q 2^c + r, 0 <= r < 2^c, differ by q or q + 1.
        """
        return (max(map(self._largest_effect, self.matrices)) >> shift) + 1

    def _check_shapes(self) -> None:
        if not len(self.matrices) == len(self.offsets) == len(self.costs) > 0:
            raise AssertionError("candidates do not match")
        if self.loss not in LOSSES:
            raise AssertionError("loss is not a known one")
        if self.people is not None and self.people.n_rows != self.n_rows:
            raise AssertionError("people are not those of as many rows")
        for train, test in self.folds:
            used = np.concatenate([train, test])
            if used.min() < 0 or used.max() >= self.n_rows or len(np.unique(used)) < len(used):
                raise AssertionError("a fold uses a row twice, or one that is not there")
            if len(test) >= FOLD_LIMIT:
                raise AssertionError("a fold tests too many rows")
        shapes = [(len(test), len(train)) for train, test in self.folds]
        for matrices, offsets in zip(self.matrices, self.offsets, strict=True):
            if [matrix.shape for matrix in matrices] != shapes:
                raise AssertionError("a matrix does not match its fold")
            if [offset.shape for offset in offsets] != [shape[:1] for shape in shapes]:
                raise AssertionError("an offset does not match its fold")

    def _check_exactness(self) -> None:
        """No product or sum in the private room can round or wrap, in whatever order it is formed."""
        y_bits = self.statistic.y_bits
        if not (0 < self.clip < 2**CLIP_BITS and 0 < y_bits <= 30 and 0 <= self.matrix_bits <= 30):
            raise AssertionError("the lattice is too fine")
        for matrix in (matrix for matrices in self.matrices for matrix in matrices):
            if matrix.dtype != np.int32 or _row_sum(matrix) << y_bits >= 2**53:  # floats hold all below
                raise AssertionError("a matrix is too large for exact products")
        for offset in (offset for offsets in self.offsets for offset in offsets):
            if offset.dtype != np.int64 or offset.min() < -_OFFSET_LIMIT or offset.max() > _OFFSET_LIMIT:
                raise AssertionError("an offset is too large")
        if min(self.costs) < 0 or self.largest_total >> self.shift >= 2 * 2**_SCORE_BITS:
            raise AssertionError("scores could overflow")

    def _largest_effect(self, matrices: Sequence[SmallIntArray]) -> int:
        """How far one row, or one person, can move the summed loss of a candidate: in steps, rounded up."""
        n = self.n_rows if self.people is None else self.people.n_people
        labels = np.arange(n) if self.people is None else self.people.labels
        effect = np.zeros(n)
        for matrix, (train, test) in zip(matrices, self.folds, strict=True):
            # How far the rows of each together move each residual: integers below 2^53, which floats hold.
            at = np.arange(len(train)), labels[train]
            whose = sparse.csr_array((np.ones(len(train)), at), shape=(len(train), n))
            moves = np.asarray(np.abs(matrix.astype(np.float64)) @ whose)
            moves[np.arange(len(test)), labels[test]] += 2.0**self.matrix_bits
            moves = np.ldexp(moves, self.statistic.y_bits)
            effect += _loss_change(moves, self.clip, self.loss).sum(axis=0)
        # Each loss change is one product of exact integers, rounded once, and no term of the sums is
        # negative, so n terms sum to within a relative (n + 1) 2^-53 of the exact value: below 5e-10 for
        # n up to 2^22. The factor covers that, and the rounding of the product with it.
        if self.n_tested + len(self.folds) > 2**22:
            raise AssertionError("too many losses to bound the rounding of their sum")
        return math.ceil(float(effect.max()) * (1 + 1e-9))


def _loss_change(move: FloatArray, clip: int, loss: str) -> FloatArray:
    """h: how far the loss of a residual can move when the residual moves by `move`."""
    bounded = np.minimum(move, float(clip))
    return bounded * (2.0 * clip - bounded) if loss == "squared" else bounded


def make_scores(
    weights: Iterable[list[FloatArray]],
    folds: tuple[Fold, ...],
    *,
    means: Sequence[float],
    costs: Sequence[float],
    bounds: tuple[float, float],
    n_rows: int,
    loss: str,
    clip: float,
    epsilon: float,
    people: People | None = None,
) -> Scores:
    """Quantise every candidate's weights on one lattice, and find the sensitivity of the integers.

    `costs` are per tested point, in the loss's unit; `clip` is in y's unit.
    """
    quantised = [[quantise(C) for C in candidate] for candidate in weights]
    matrix_bits = min(bits for candidate in quantised for _, bits in candidate)
    matrices = tuple(
        tuple(coarsen(matrix, bits - matrix_bits) for matrix, bits in candidate) for candidate in quantised
    )
    lower, upper = bounds
    offsets = tuple(
        tuple(offset_of(matrix, (mean - lower) / (upper - lower), matrix_bits) for matrix in candidate)
        for candidate, mean in zip(matrices, means, strict=True)
    )
    # No residual is larger than this, so a larger clip would be the same loss with a worse bound.
    rows = max(_row_sum(matrix) for candidate in matrices for matrix in candidate)
    offset = max(int(np.abs(offset).max()) for candidate in offsets for offset in candidate)
    largest_residual = (((1 << matrix_bits) + rows) << Y_BITS) + offset
    draft = Scores(
        matrices=matrices,
        offsets=offsets,
        folds=folds,
        costs=(0,) * len(matrices),
        loss=loss,
        clip=min(round(math.ldexp(clip / (upper - lower), matrix_bits + Y_BITS)), largest_residual),
        statistic=Inside(lower, upper, Y_BITS),
        matrix_bits=matrix_bits,
        shift=0,
        sensitivity=0,
        n_rows=n_rows,
        epsilon=epsilon,
        people=people,
    )
    # Of 1,000 clips per tested point, at most: who costs more is not chosen anyway.
    steps = Fraction(draft.step)
    exact = tuple(
        min(1000 * draft.largest_total, int(Fraction(cost) / steps * draft.n_tested)) for cost in costs
    )
    costly = replace(draft, costs=exact)
    shift = max(0, costly.largest_total.bit_length() - _SCORE_BITS)  # as fine as floats of scores allow
    return replace(costly, shift=shift, sensitivity=draft.least_sensitivity(shift))


def quantise(C: FloatArray) -> tuple[SmallIntArray, int]:
    """C in integers, as finely as keeps products with y_int exact, and the bits after the point."""
    rows = float(np.abs(C).sum(axis=1).max())
    # |C_int| below 2^31 and its row sums, times 2^Y_BITS, below 2^53; one bit is for rounding.
    tiny = 1e-300  # of no weights at all
    largest = float(np.abs(C).max())
    room = min(30.0 - math.log2(largest + tiny), 52.0 - Y_BITS - math.log2(rows + tiny))
    bits = math.floor(min(MATRIX_BITS, room))
    if bits < 8:
        raise ArgumentError(
            "candidates",
            f"must not predict with weights as large as {rows:.2g} in sum; such a model passes "
            "on far more noise than signal",
            remedy="Give it a larger noise variance.",
        )
    return np.rint(np.ldexp(C, bits)).astype(np.int32), bits


def coarsen(matrix: SmallIntArray, by: int) -> SmallIntArray:
    """The same matrix with fewer bits after the point."""
    if by > 0:
        matrix = np.rint(np.ldexp(matrix.astype(np.float64), -by)).astype(np.int32)
    matrix.setflags(write=False)  # in place: these are the bulk of a plan
    return matrix


def offset_of(matrix: SmallIntArray, share: float, matrix_bits: int) -> IntArray:
    """What a prior mean, given as a share of the bounds, contributes to each residual."""
    left = 2.0**matrix_bits - matrix.sum(axis=1, dtype=np.int64).astype(np.float64)
    limit = float(_OFFSET_LIMIT)
    offset: IntArray = frozen(np.rint(np.clip(share * 2.0**Y_BITS * left, -limit, limit)).astype(np.int64))
    return offset


def _row_sum(matrix: SmallIntArray) -> int:
    """Largest sum of absolute values in a row, exactly."""
    return int(np.abs(matrix.astype(np.int64)).sum(axis=1).max())
