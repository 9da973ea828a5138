"""Cross-validation without y: folds, what they make of y, and losses in public integers.

In a fold of a candidate the tested outcomes are predicted by ``mean + C (y[train] - mean)`` with a public
matrix C. Folds may depend on X, never on y: no stratifying. So all residuals of a candidate are R (y - mean)
with one public matrix R: a row for each test of each fold, with 1 where the outcome is tested and -C where
others train. Its score is the sum of min(e^2, T^2) or min(|e|, T) over these residuals e. With
R_int = rint(2^a R) and y_int in [0, 2^b],

    residual = R_int y_int - offset,        score = (sum of losses + cost) >> c

are exact integers, so that no rounding can add to what one row of y can change. How much that is
(lemma 11 of ``docs/proofs.md``) depends on |R_int| alone: if a residual moves by at most s, its loss moves
by at most h(s) = t (2T - t), t = min(s, T), for squared loss and h(s) = min(s, T) for absolute loss. Where
the promise is to people, s counts all rows of one person.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_solve

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.blas import blas_threads
from cloakgp.data.chunks import steps
from cloakgp.data.people import People
from cloakgp.measure.statistics import Inside
from cloakgp.measure.unit import OUTCOME, PERSON, Unit
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.smoothers import Rows, check_covariance, gentle_cholesky

LOSSES = ("squared", "absolute")
Y_BITS, MATRIX_BITS = 18, 26  # finest lattice: beyond it nothing is gained
CLIP_BITS = 48  # the clip T stays below 2^48, so that squares split into two 24-bit limbs
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
        if rows.size and rows.dtype.kind not in "iu":
            remedy = "For a mask m, use m.nonzero()[0]."
            raise ArgumentTypeError(name, "must hold whole numbers", f"dtype {rows.dtype}", remedy)
        if rows.ndim != 1 or not 0 < len(np.intersect1d(rows, np.arange(n_rows))) == rows.size:
            expected = f"must be a vector of row numbers from 0 to {n_rows - 1}, at least one and none twice"
            raise ArgumentError(name, expected, reprlib.repr(rows))
    if np.isin(test, train).any():
        raise ArgumentError(f"folds[{number}]", "must not test rows that it trains on; some are in both")
    return Fold(frozen(train.astype(np.intp)), frozen(test.astype(np.intp)))


def residuals(
    gps: Sequence[GaussianProcess], X: FloatArray, folds: Sequence[Fold], advance: Callable[[], None]
) -> Iterator[FloatArray]:
    """For each model, its matrix R, (tests of all folds, N). `advance` is called after each model."""
    for kernel, several in groupby(gps, lambda gp: gp.kernel):  # those with one should stand side by side
        with blas_threads(len(X)):
            gram = kernel(X, X)
            check_covariance(gram)
        for gp in several:
            with blas_threads(len(X)):
                R = _residuals(gram, np.broadcast_to(gp.noise, len(X)), folds)
            yield R
            advance()


def _residuals(gram: FloatArray, noise: FloatArray, folds: Sequence[Fold]) -> FloatArray:
    R, first = np.zeros((sum(len(test) for _, test in folds), len(gram))), 0
    for train, test in folds:
        rows = R[first : first + len(test)]
        # C = K_t,train (K_train + S_train)^-1 (Rasmussen & Williams 2006, algorithm 2.1)
        factor, _ = gentle_cholesky(gram[np.ix_(train, train)], noise[train])
        rows[:, train] = -cho_solve(factor, gram[np.ix_(train, test)], check_finite=False).T
        rows[np.arange(len(test)), test] = 1.0
        first += len(test)
    return R


# Scores


@dataclass(frozen=True, eq=False)
class Scores:
    """The integers from which y becomes one score per candidate, and the promise about them."""

    matrices: tuple[SmallIntArray, ...]
    """For each candidate, (tests, N): R_int."""
    offsets: tuple[IntArray, ...]
    """For each candidate, (tests,): what the prior mean adds."""
    loss: str
    clip: int
    statistic: Inside
    """How outcomes become integers."""
    matrix_bits: int
    epsilon: float
    people: People | None = None
    """Who has which rows, if the promise is to each person; None if it is to each row."""
    costs: tuple[int, ...] = ()
    """For each candidate, what is added to its loss in public."""
    shift: int = 0
    sensitivity: int = 0
    """How far one row of y, or all of one person's, can move a score: what the noise is scaled to."""

    @property
    def n_tested(self) -> int:
        """Residuals per candidate, over all folds."""
        return len(self.matrices[0])

    @property
    def n_rows(self) -> int:
        """Rows of y."""
        return int(self.matrices[0].shape[1])

    @property
    def unit(self) -> Unit:
        """Whom the noise is made for."""
        return OUTCOME if self.people is None else PERSON

    @property
    def step(self) -> float:
        """What one step of a score is worth, in y's unit (squared, for squared loss)."""
        residual = math.ldexp(self.statistic.span, -(self.statistic.y_bits + self.matrix_bits))
        return (residual**2 if self.loss == "squared" else residual) * 2.0**self.shift

    @property
    def largest_total(self) -> int:
        """No candidate's score, before the shift, can be larger."""
        worst: int = self.clip**2 if self.loss == "squared" else self.clip
        return self.n_tested * worst + max(self.costs, default=0)

    @property
    def scale(self) -> float:
        """Scale of the Gumbel noise: 2 sensitivity / epsilon, rounded up."""
        exact = 2 * Fraction(self.sensitivity) / Fraction(self.epsilon)
        value = float(exact)
        return value if Fraction(value) >= exact else math.nextafter(value, math.inf)

    def check(self) -> None:
        """Raise unless the sensitivity provably holds for these integers; y is not needed to tell."""
        if not len(self.matrices) == len(self.offsets) == len(self.costs) > 0:
            raise AssertionError("candidates do not match")
        shape = self.n_tested, self.n_rows
        if any(matrix.shape != shape for matrix in self.matrices):
            raise AssertionError("matrices are not for the same tests of the same rows")
        if any(offset.shape != shape[:1] for offset in self.offsets):
            raise AssertionError("an offset does not match its tests")
        if self.loss not in LOSSES:
            raise AssertionError("loss is not a known one")
        if self.people is not None and self.people.n_rows != self.n_rows:
            raise AssertionError("people are not those of as many rows")
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

    def _check_exactness(self) -> None:
        """No product or sum in the private room can round or wrap, in whatever order it is formed."""
        y_bits = self.statistic.y_bits
        if not (0 < self.clip < 2**CLIP_BITS and 0 < y_bits <= 30 and 0 <= self.matrix_bits <= 30):
            raise AssertionError("the lattice is too fine")
        for matrix in self.matrices:
            if matrix.dtype != np.int32 or _row_sum(matrix) << y_bits >= 2**53:  # floats hold all below
                raise AssertionError("a matrix is too large for exact products")
        for offset in self.offsets:
            if offset.dtype != np.int64 or offset.min() < -_OFFSET_LIMIT or offset.max() > _OFFSET_LIMIT:
                raise AssertionError("an offset is too large")
        if min(self.costs) < 0 or self.largest_total >> self.shift >= 2 * 2**_SCORE_BITS:
            raise AssertionError("scores could overflow")

    def _largest_effect(self, matrix: SmallIntArray) -> int:
        """How far one row, or one person, can move the summed loss of a candidate: in steps, rounded up."""
        labels = np.arange(self.n_rows) if self.people is None else self.people.labels
        at = np.arange(self.n_rows), labels
        whose = sparse.csr_array((np.ones(self.n_rows), at))
        effect = np.zeros(whose.shape[1])
        for some in steps(len(matrix)):
            # How far the rows of each together move each residual: integers below 2^53, which floats hold.
            moves = np.abs(matrix[some].astype(np.float64)) @ whose
            moves = np.ldexp(moves, self.statistic.y_bits)
            effect += _loss_change(moves, self.clip, self.loss).sum(axis=0)
        # Each loss change is one product of exact integers, rounded once, and no term of the sums is
        # negative, so n terms sum to within a relative (n + 1) 2^-53 of the exact value: below 5e-10 for
        # n up to 2^22. The factor covers that, and the rounding of the product with it.
        if len(matrix) > 2**22:
            raise AssertionError("too many losses to bound the rounding of their sum")
        return math.ceil(float(effect.max()) * (1 + 1e-9))


def _loss_change(move: FloatArray, clip: int, loss: str) -> FloatArray:
    """h: how far the loss of a residual can move when the residual moves by `move`."""
    bounded = np.minimum(move, float(clip))
    return bounded * (2.0 * clip - bounded) if loss == "squared" else bounded


def make_scores(
    residuals: Iterable[FloatArray],
    *,
    means: Sequence[float],
    costs: Sequence[float],
    bounds: tuple[float, float],
    loss: str,
    clip: float,
    epsilon: float,
    people: People | None = None,
) -> Scores:
    """Quantise every candidate's matrix R on one lattice, and find the sensitivity of the integers.

    `costs` are per tested point, in the loss's unit; `clip` is in y's unit.
    """
    quantised = [quantise(R) for R in residuals]
    matrix_bits = min(bits for _, bits in quantised)
    matrices = tuple(coarsen(matrix, bits - matrix_bits) for matrix, bits in quantised)
    lower, upper = bounds
    shares = ((mean - lower) / (upper - lower) for mean in means)
    offsets = tuple(offset_of(matrix, share) for matrix, share in zip(matrices, shares, strict=True))
    # No residual is larger than this, so a larger clip would be the same loss with a worse bound.
    largest_residual = max(map(_row_sum, matrices)) << Y_BITS
    largest_residual += max(int(np.abs(offset).max()) for offset in offsets)
    draft = Scores(
        matrices=matrices,
        offsets=offsets,
        loss=loss,
        clip=min(round(math.ldexp(clip / (upper - lower), matrix_bits + Y_BITS)), largest_residual),
        statistic=Inside(lower, upper, Y_BITS),
        matrix_bits=matrix_bits,
        epsilon=epsilon,
        people=people,
    )
    # Of 1,000 clips per tested point, at most: who costs more is not chosen anyway.
    steps_each = draft.n_tested / Fraction(draft.step)
    exact = tuple(min(1000 * draft.largest_total, int(Fraction(cost) * steps_each)) for cost in costs)
    costly = replace(draft, costs=exact)
    shift = max(0, costly.largest_total.bit_length() - _SCORE_BITS)  # as fine as floats of scores allow
    return replace(costly, shift=shift, sensitivity=draft.least_sensitivity(shift))


def quantise(R: FloatArray) -> tuple[SmallIntArray, int]:
    """R in integers, as finely as keeps products with y_int exact, and the bits after the point."""
    size = np.abs(R)
    rows = float(size.sum(axis=1).max())
    # |R_int| below 2^31 and its row sums, times 2^Y_BITS, below 2^53; one bit is for rounding.
    room = min(30.0 - math.log2(size.max()), 52.0 - Y_BITS - math.log2(rows))
    bits = math.floor(min(MATRIX_BITS, room))
    if bits < 8:
        raise ArgumentError(
            "candidates",
            f"must not predict with weights as large as {rows:.2g} in sum; such a model passes "
            "on far more noise than signal",
            remedy="Give it a larger noise variance.",
        )
    return np.rint(np.ldexp(R, bits)).astype(np.int32), bits


def coarsen(matrix: SmallIntArray, by: int) -> SmallIntArray:
    """The same matrix with fewer bits after the point."""
    if by > 0:
        matrix = np.rint(np.ldexp(matrix.astype(np.float64), -by)).astype(np.int32)
    matrix.setflags(write=False)  # in place: these are the bulk of a plan
    return matrix


def offset_of(matrix: SmallIntArray, share: float) -> IntArray:
    """What a prior mean, given as a share of the bounds, contributes to each residual."""
    limit, sums = float(_OFFSET_LIMIT), matrix.sum(axis=1, dtype=np.int64).astype(np.float64)
    offset: IntArray = frozen(np.rint(np.clip(share * 2.0**Y_BITS * sums, -limit, limit)).astype(np.int64))
    return offset


def _row_sum(matrix: SmallIntArray) -> int:
    """Largest sum of absolute values in a row, exactly."""
    sums = (np.abs(matrix[some].astype(np.int64)).sum(axis=1).max() for some in steps(len(matrix)))
    return int(max(sums))
