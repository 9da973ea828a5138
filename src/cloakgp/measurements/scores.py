"""The losses by which models are compared, in integers: public, exact, and checked before y is there.

In fold k of a candidate the residuals are ``y[test] - mean - C (y[train] - mean)``, and its score is their
summed loss, min(e^2, T^2) or min(|e|, T), over all folds. With C_int = rint(2^a C) and y_int in [0, 2^b],

    residual = 2^a y_int[test] - C_int y_int[train] - offset,        score = (sum of losses + cost) >> c

are exact integers, so that no rounding can add to what one row of y can change. How much that is
(lemma 11 of ``docs/proofs.md``) depends on |C_int| alone: if a residual moves by at most s, its loss moves
by at most h(s) = t (2T - t), t = min(s, T), for squared loss and h(s) = min(s, T) for absolute loss. Where
the promise is to people, s counts all rows of one person.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError
from cloakgp.measurements.folds import Fold
from cloakgp.measurements.lattice import IntArray, Lattice
from cloakgp.rows.merging import Labels
from cloakgp.rows.people import People

LOSSES = ("squared", "absolute")
Y_BITS = 18
MATRIX_BITS = 26
CLIP_BITS = 48  # the clip T stays below 2^48, so that squares split into two 24-bit limbs
FOLD_LIMIT = 2**13
"""Tested rows of a fold are fewer, so that sums of its limbs stay below 2^61."""
_FLOAT_EXACT = 2**53  # floats hold every integer up to here
_OFFSET_LIMIT = 2**60  # beyond it a residual is clipped whatever y is
_SCORE_BITS = 52
_FEWEST_MATRIX_BITS = 8
_LARGEST_COST = 1000  # clips per tested point

SmallIntArray = NDArray[np.int32]


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
    y_bits: int
    matrix_bits: int
    shift: int
    sensitivity: int
    """How far one row of y, or all of one person's, can move a score: what the noise is scaled to."""
    lower: float
    upper: float
    n_rows: int
    epsilon: float
    people: People | None = None
    """Who has which rows, if the promise is to each person; None if it is to each row."""

    @property
    def n_tested(self) -> int:
        """Residuals per candidate, over all folds."""
        return sum(len(test) for _, test in self.folds)

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.lower, self.upper, self.y_bits)

    @property
    def step(self) -> float:
        """What one step of a score is worth, in y's unit (squared, for squared loss)."""
        return (
            lattice_step(self.lower, self.upper, self.y_bits + self.matrix_bits, self.loss) * 2.0**self.shift
        )

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
        effects = [self._largest_effect(matrices) for matrices in self.matrices]
        if self.sensitivity < in_steps(max(effects), self.shift):
            raise AssertionError("y can move a score further than the declared sensitivity")

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
        if not (0 < self.clip < 2**CLIP_BITS and 0 < self.y_bits <= 30 and 0 <= self.matrix_bits <= 30):
            raise AssertionError("the lattice is too fine")
        for matrix in (matrix for matrices in self.matrices for matrix in matrices):
            if matrix.dtype != np.int32 or _row_sum(matrix) << self.y_bits >= _FLOAT_EXACT:
                raise AssertionError("a matrix is too large for exact products")
        for offset in (offset for offsets in self.offsets for offset in offsets):
            if offset.dtype != np.int64 or offset.min() < -_OFFSET_LIMIT or offset.max() > _OFFSET_LIMIT:
                raise AssertionError("an offset is too large")
        if min(self.costs) < 0 or largest_total(self) >> self.shift >= 2 * 2**_SCORE_BITS:
            raise AssertionError("scores could overflow")

    def _largest_effect(self, matrices: Sequence[SmallIntArray]) -> int:
        """How far one row, or one person, can move the summed loss of a candidate: in steps, rounded up."""
        effect = np.zeros(self.n_rows if self.people is None else self.people.n_people)
        for matrix, (train, test) in zip(matrices, self.folds, strict=True):
            moves = np.abs(matrix.astype(np.float64))
            if self.people is None:
                moves = np.ldexp(moves, self.y_bits)  # exact: below 2^53
                effect[train] += _loss_change(moves, self.clip, self.loss).sum(axis=0)
                effect[test] += _loss_change(2.0 ** (self.matrix_bits + self.y_bits), self.clip, self.loss)
            else:
                moves = _added_up(moves, self.people.labels[train], len(effect))
                moves[np.arange(len(test)), self.people.labels[test]] += 2.0**self.matrix_bits  # exact, too
                effect += _loss_change(np.ldexp(moves, self.y_bits), self.clip, self.loss).sum(axis=0)
        # Each loss change is one product of exact integers, rounded once, and no term of the sums is
        # negative, so n terms sum to within a relative (n + 1) 2^-53 of the exact value: below 5e-10 for
        # n up to 2^22. The factor covers that, and the rounding of the product with it.
        if self.n_tested + len(self.folds) > 2**22:
            raise AssertionError("too many losses to bound the rounding of their sum")
        return math.ceil(float(effect.max()) * (1 + 1e-9))


def _added_up(moves: FloatArray, labels: Labels, n_people: int) -> FloatArray:
    """(n tested, n people): how far each person's rows together move each residual, in exact integers."""
    from scipy import sparse

    shape = (len(labels), n_people)
    whose = sparse.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)), shape=shape)
    return np.asarray(moves @ whose)


def _loss_change(move: Any, clip: int, loss: str) -> Any:
    """h: how far the loss of a residual can move when the residual moves by `move`."""
    bounded = np.minimum(move, float(clip))
    return bounded * (2.0 * clip - bounded) if loss == "squared" else bounded


def in_steps(effect: int, shift: int) -> int:
    """A change of at most `effect` before the shift, after it: floors of numbers that differ by
    q 2^c + r, 0 <= r < 2^c, differ by q or q + 1.
    """
    return (effect >> shift) + 1


def largest_total(scores: Scores) -> int:
    """No candidate's score, before the shift, can be larger."""
    worst: int = scores.clip**2 if scores.loss == "squared" else scores.clip
    return scores.n_tested * worst + max(scores.costs)


def lattice_step(lower: float, upper: float, bits: int, loss: str) -> float:
    """One lattice step of a residual's loss, in y's unit."""
    residual = math.ldexp(upper - lower, -bits)
    return residual**2 if loss == "squared" else residual


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
    clip_steps = round(math.ldexp(clip / (upper - lower), matrix_bits + Y_BITS))
    # No residual is larger than this, so a larger clip would be the same loss with a worse bound.
    clip_steps = min(clip_steps, _largest_residual(matrices, offsets, matrix_bits))
    draft = Scores(
        matrices=matrices,
        offsets=offsets,
        folds=folds,
        costs=tuple(0 for _ in means),
        loss=loss,
        clip=clip_steps,
        y_bits=Y_BITS,
        matrix_bits=matrix_bits,
        shift=0,
        sensitivity=0,
        lower=lower,
        upper=upper,
        n_rows=n_rows,
        epsilon=epsilon,
        people=people,
    )
    return _scaled(draft, costs)


def _scaled(draft: Scores, costs: Sequence[float]) -> Scores:
    """Add public costs, then choose the shift and the sensitivity that goes with it."""
    worst = largest_total(draft)
    in_lattice_steps = [
        min(_LARGEST_COST * worst, int(Fraction(cost) / Fraction(draft.step) * draft.n_tested))
        for cost in costs
    ]
    total = worst + max(in_lattice_steps)
    shift = max(0, total.bit_length() - _SCORE_BITS)  # as fine as exact floats of the scores allow
    effect = max(draft._largest_effect(matrices) for matrices in draft.matrices)
    return replace(draft, costs=tuple(in_lattice_steps), shift=shift, sensitivity=in_steps(effect, shift))


def quantise(C: FloatArray) -> tuple[SmallIntArray, int]:
    """C in integers, as finely as keeps products with y_int exact, and the bits after the point."""
    rows = float(np.abs(C).sum(axis=1).max())
    # |C_int| below 2^31 and its row sums, times 2^Y_BITS, below 2^53; one bit is for rounding.
    room = min(30.0 - _log2(float(np.abs(C).max())), 52.0 - Y_BITS - _log2(rows))
    bits = math.floor(min(MATRIX_BITS, room))
    if bits < _FEWEST_MATRIX_BITS:
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


def _largest_residual(
    matrices: Iterable[Sequence[SmallIntArray]], offsets: Iterable[Sequence[IntArray]], matrix_bits: int
) -> int:
    rows = max(_row_sum(matrix) for candidate in matrices for matrix in candidate)
    offset = max(int(np.abs(offset).max()) for candidate in offsets for offset in candidate)
    return (((1 << matrix_bits) + rows) << Y_BITS) + offset


def _row_sum(matrix: SmallIntArray) -> int:
    """Largest sum of absolute values in a row, exactly."""
    return int(np.abs(matrix.astype(np.int64)).sum(axis=1).max())


def _log2(value: float) -> float:
    return math.log2(value) if value > 0 else -math.inf
