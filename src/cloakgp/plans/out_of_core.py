"""A plan for more rows than fit into memory: three passes over X, and nothing needs to be held of its length.

The first pass sums what the rows tell the model. The noise is then designed for a pilot: rows spread
evenly over X, and those that stand most alone. The second pass makes every row's integer column and
finds the longest, exactly: that is the sensitivity, whatever the pilot missed. Where the pilot missed too
much, the rows with the longest columns join it, and design and pass are repeated. (A pilot alone would
understate the sensitivity: a lone row that it lacks may have a column many times longer than any in it.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cloakgp import calibration as calibrate
from cloakgp.calibration import SIGMA_FLOOR
from cloakgp.checks import FloatArray, frozen
from cloakgp.designs.solution import Solution
from cloakgp.measurements.certificate import certify
from cloakgp.measurements.lattice import NOISE_SCALES, integer_float_at_least
from cloakgp.measurements.recipes import (
    FactoredMeasurement,
    Recipe,
    Scan,
    bias,
    chunk_digest,
    combined_digest,
    declared_sensitivity,
    lengths,
    longest_together,
    recipe,
    scan,
    summed,
)
from cloakgp.measurements.rounding import LARGEST_ERROR, allowance
from cloakgp.model.factors import Root, turn_to_triangle
from cloakgp.model.inducing import Features, Gram, SparseGP, triangular_whitening, unexplained
from cloakgp.model.smoothers import Rows
from cloakgp.plans.pilot import Pilot, first_pilot, rough_design, solved, space_of
from cloakgp.plans.predictions import Plan
from cloakgp.plans.reconstruction import noise_objective, offset
from cloakgp.posterior.links import FactoredLinks
from cloakgp.rows.chunks import one_blas_thread, steps
from cloakgp.rows.merging import Chunk, Inputs, first_of_equal
from cloakgp.rows.passes import sweep

if TYPE_CHECKING:
    from cloakgp.model.gp import GP
    from cloakgp.plans.planner import Planner

DENSE = 2**18
"""Entries of a measurement matrix that are written down; larger ones are kept as a recipe."""
LARGER = 64
"""Times as many are written down where a recipe would cost something.

`posterior` is better off with a matrix of its own choice, and what a custom kernel makes, not everybody can
make again.
"""
_PILOT, _WHOLE = 2**21, 2**23  # entries of the pilot's columns; so many are all rows', rather than a part's
_LONERS = 2**13  # rows that stand most alone near their inducing input
_SPREAD = 2**14  # rows that are spread over the space
_LONGEST = 2**14  # rows whose columns would be longest
_DIRECTIONS = 16  # by which a row seems to be one of them
_ROUNDS = 5  # of design and pass
_DESIGN = 0.6  # share of the gap that the pilot's design may use up
_MANY = 2**17  # rows: of more, those in reserve are looked at before all are
_RESERVE, _PARTS = 2**17, 8  # rows in reserve, at most, and at most a part of all so large
_LOOSE = 64  # times that a bound may be too large before it is worth another pass
_Y_BITS, _MATRIX_BITS = 24, 26  # finest lattice


@dataclass(frozen=True, eq=False)
class Survey:
    """What the first pass over X tells."""

    model: SparseGP
    pilot: Pilot
    reserve: Inputs
    """More rows, about evenly over the space: what the pilot lacks shows on them."""
    rough: Solution | None
    """The `mse` design for the pilot's first rows, to start from; None if they are all rows there are."""
    digest: str


def survey(planner: Planner) -> Survey:
    """The first pass."""
    with one_blas_thread():
        return _surveyed(planner)


def _surveyed(planner: Planner) -> Survey:
    gp, inputs = planner.gp, planner.inputs
    assert isinstance(gp.inducing, np.ndarray)
    features = Features(gp.kernel, gp.inducing, triangular_whitening(gp.kernel, gp.inducing))
    width = max(len(planner.X_star), len(features.W))
    whole = len(inputs) <= _WHOLE // width
    even = inputs.spread_evenly(len(inputs) if whole else max(2**12, _PILOT // width))
    crowd = np.zeros(len(features.used))  # rows near each inducing input, going by the pilot
    for rows in steps(len(even)):
        near = np.abs(features.kernel_rows(even.X[rows]))
        crowd += (near / np.maximum(near.sum(axis=1, keepdims=True), 1e-300)).sum(axis=0)
    alone = np.concatenate(
        [_alone(features.kernel_rows(even.X[rows]), crowd)[1] for rows in steps(len(even))]
    )
    kept = _SPREAD, min(_RESERVE, len(inputs) // _PARTS)
    shares = [_share_for(n * len(even) / len(inputs), alone) for n in kept]
    # Where they are all rows there are, there is none to look for.
    rough = None if len(even) == len(inputs) else rough_design(planner, features, even)
    measured = np.zeros((1, len(features.W))) if rough is None else rough.measured
    total, shared = np.zeros((len(features.W),) * 2), np.zeros((len(features.W),) * 2)
    digests = []
    # As good as random, and the same everywhere.
    angles = np.outer(np.sqrt(5) * np.arange(1, _DIRECTIONS + 1), np.arange(1, len(measured) + 1) ** 2)
    function = partial(
        _survey,
        features,
        Root(features.factor.A),
        gp.approximation,
        crowd,
        shares,
        measured @ features.factor.A,
        np.sin(angles) @ measured @ features.factor.A,
        planner.widest,
    )
    most, columns = max(4, _LONERS // len(features.Z)), planner.X_star.shape[1]
    width = 3 + columns + (0 if inputs.windows is None else 3)
    lone, longest = np.empty((0, width)), np.empty((0, width))
    spread, reserve = [np.empty((0, width))], [np.empty((0, width))]
    parts = sweep(
        function, inputs.X, inputs.noise, inputs.group_counts, inputs.windows, label="summing over rows"
    )
    for part in parts:
        total += part.information
        shared += part.shared
        lone = np.vstack([lone, part.loners])
        lone = lone[_first_of_each(lone[:, 0], lone[:, 1], most)]
        longest = np.vstack([longest, part.longest])
        longest = longest[np.argsort(-longest[:, 1], kind="stable")[:_LONGEST]]
        spread.append(part.spread)
        reserve.append(part.reserve)
        digests.append(part.digest)

    def rows_in(tables: list[FloatArray]) -> Inputs:
        table = first_of_equal(np.vstack(tables)[:, 2:])
        windows = None if inputs.windows is None else table[:, 1 + columns :]
        return Inputs(np.ascontiguousarray(table[:, 1 : 1 + columns]), table[:, 0].copy(), None, windows)

    model = SparseGP(features, gp.approximation, total, planner.X_star)
    digest = combined_digest(digests, inputs.groups)
    if rough is None:
        return Survey(model, first_pilot(planner, model, shared, even), rows_in(reserve), None, digest)
    more = rows_in([lone, longest, *spread])
    pilot = first_pilot(planner, model, shared, even, rough.pilot).joined_by(planner, more)
    return Survey(model, pilot, rows_in(reserve), rough.solution, digest)


class _Surveyed(NamedTuple):
    """What one chunk of rows tells."""

    information: FloatArray
    shared: FloatArray
    """The same for outcomes in units of their bounds over the widest's width."""
    loners: FloatArray
    """Each with its nearest inducing input, how much it stands alone, its noise, itself, its bounds."""
    longest: FloatArray
    """The same of rows whose columns would be longest in a rough design, with how long they are."""
    spread: FloatArray
    """The same of rows that are drawn the likelier the more they stand alone: about evenly over the space."""
    reserve: FloatArray
    """More of these."""
    digest: bytes


def _alone(K: FloatArray, crowd: FloatArray) -> tuple[Rows, FloatArray]:
    """Each row's nearest inducing input, and how much the row stands alone there."""
    nearest = K.argmax(axis=1)
    return nearest, K[np.arange(len(K)), nearest] / np.maximum(np.abs(K @ crowd), 1e-300)


def _share_for(n: float, alone: FloatArray) -> float:
    """The s for which min(1, s alone) adds up to about n."""
    order = np.sort(np.maximum(alone, 1e-300))[::-1]  # no row at all may be near an inducing input
    least = np.maximum(n - np.arange(len(order)), 0) / np.cumsum(order[::-1])[::-1]  # if so many count as 1
    fits = np.flatnonzero(least * order <= 1)
    return float(least[fits[0]]) if len(fits) else 1 / float(order[-1])


def _survey(
    features: Features,
    root: Root,
    approximation: str,
    crowd: FloatArray,
    shares: Sequence[float],
    measured: FloatArray,
    directions: FloatArray,
    widest: float,
    X: FloatArray,
    noise: Any,
    counts: Any,
    windows: Any,
) -> _Surveyed:
    alone, nearest, length, scale = np.empty((4, len(X)))
    total, chunk = Gram(len(features.W), root), Chunk(X, noise, counts, windows)
    shared = total if windows is None else Gram(len(features.W), root)
    for rows in steps(len(chunk)):
        step = chunk[rows]
        K = features.kernel_rows(step.X)
        nearest[rows], alone[rows] = _alone(K, crowd)
        phi = features.factor.times(K) if approximation == "fitc" else np.empty((0, len(K)))
        D = unexplained(features, approximation, step.X, phi, step.noise)
        share = 1.0 if step.windows is None else (step.windows[:, 1] - step.windows[:, 0]) / widest
        scale[rows] = share / D
        seen = directions @ K.T
        length[rows] = np.einsum("ij,ij->j", seen, seen) * scale[rows] ** 2
        weights = np.sqrt(step.group_counts / D)
        total.add(K, weights)
        if step.windows is not None:
            shared.add(K, weights * share)
    first = _first_of_each(nearest, alone, 4)
    own = [] if windows is None else [windows]
    table = np.column_stack([nearest, alone, chunk.variances, X, *own])
    # Those that seem to have the longest columns, going by some directions, are looked at in all.
    n = min(len(X), max(1, _LONGEST // 4))
    some = np.sort(np.argpartition(-length, n - 1)[:n])
    moved = measured @ features.kernel_rows(X[some]).T
    longest = table[some]
    longest[:, 1] = np.einsum("ij,ij->j", moved, moved) * scale[some] ** 2
    longest = longest[np.argsort(-longest[:, 1], kind="stable")[: _LONGEST // 8]]
    drawn = [np.floor(np.cumsum(np.minimum(1.0, share * alone))) for share in shares]
    spread, reserve = (table[np.diff(one, prepend=0.0) > 0] for one in drawn)
    digest = chunk_digest(X, noise, counts, windows)
    return _Surveyed(total.sum(), shared.sum(), table[first], longest, spread, reserve, digest)


def _first_of_each(kind: FloatArray, score: FloatArray, n: int) -> Rows:
    """Indices of the `n` largest scores of each kind."""
    order = np.lexsort((-score, kind))
    start = np.searchsorted(kind[order], kind[order])  # where a kind begins
    return order[np.arange(len(order)) - start < n]


def plan_streamed(
    planner: Planner, epsilon: float, delta: float, design: str, calibration: str, gap: float
) -> Plan:
    """As :meth:`Planner.plan`, with a measurement that is a recipe."""
    found = planner.survey
    with one_blas_thread():  # for a plan that is the same to the last bit whatever the machine's cores
        return _plan(planner, found, epsilon, delta, design, calibration, gap)


def _plan(
    planner: Planner,
    found: Survey,
    epsilon: float,
    delta: float,
    design: str,
    calibration: str,
    gap: float,
) -> Plan:
    gp, model, pilot = planner.gp, found.model, found.pilot
    expected_mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(planner.X_star))
    s = (planner.widest / expected_mu) ** 2
    space = space_of(planner, model)

    def reached(solution: Solution, length: float) -> float:
        """A design's objective if its longest column has this length."""
        if solution.features is None:
            return solution.objective * length**2
        return space.left(solution.features @ space.up, s * length**2) / s

    solution = solved(planner, pilot, design, _DESIGN * gap, s, found.rough)
    lower, iterations = solution.lower_bound, solution.iterations

    def good_enough(value: float) -> bool:
        return value <= max(lower * (1 + gap), reached(solution, 1.0) * (1 + gap / 4))

    def joined_by(worst: Inputs) -> None:
        nonlocal pilot, solution, lower, iterations
        pilot = pilot.joined_by(planner, worst)
        solution = solved(planner, pilot, design, _DESIGN * gap, s, solution)
        lower, iterations = max(lower, solution.lower_bound), iterations + solution.iterations

    if len(planner.inputs) > _MANY:  # most of what the pilot lacks shows on some of the rows already
        for _ in range(_ROUNDS):
            made = recipe(model.features, model.approximation, _turned(solution, model)[1], 0, planner.widest)
            length, worst = lengths(made, found.reserve)
            if good_enough(reached(solution, length)):
                break
            joined_by(worst)
    best: tuple[float, Solution, FactoredMeasurement, Scan] | None = None
    for _ in range(_ROUNDS):
        measurement, seen = _measured(planner, model, solution, epsilon, delta, calibration)
        value = reached(
            solution, measurement.sensitivity() * 2.0 ** -(measurement.y_bits + measurement.matrix_bits)
        )
        if best is None or value < best[0]:
            best = value, solution, measurement, seen
        if good_enough(best[0]):
            break
        joined_by(seen.worst)
    assert best is not None
    value, solution, measurement, seen = best
    weights, unbiased = planner.weights_for(design), solution.unbiased
    if unbiased:
        reconstruction = solution.reconstruction @ _turned(solution, model)[0].T
        objective = noise_objective(design, weights, reconstruction, measurement.noise_scale)
    else:
        reconstruction, objective = _denoising(gp, model, measurement, planner.X_star, weights)
    unit = measurement.width / measurement.mu()  # std of the noise for unit columns
    certificate = certify(
        measurement,
        calibration,
        planner.unit,
        design=design,
        bound="exact",
        objective=objective,
        lower_bound=min(lower, value) * (unit**2 if unbiased else min(unit**2, s)),
        iterations=iterations,
        status="converged" if value <= lower * (1 + gap) else "stopped before the gap was reached",
        jitter=0.0,
        bias=float(bias(gp, model, measurement, reconstruction, seen.rounding).max()),
        unbiased=unbiased,
    )
    return Plan(
        columns=planner.columns,
        rows=planner.rows,
        gp=gp,
        X=planner.X,
        X_star=planner.X_star,
        weights=weights,
        measurement=measurement,
        reconstruction=frozen(reconstruction),
        offset=frozen(offset(gp, measurement, reconstruction)),
        gp_std=frozen(np.sqrt(model.posterior_variance)),
        certificate=certificate,
        within=None if planner.people is None else planner.within,
    )


def _denoising(
    gp: GP, model: SparseGP, measurement: FactoredMeasurement, X_star: FloatArray, weights: FloatArray
) -> tuple[FloatArray, float]:
    """(P, q) how the posterior mean at X* moves with the measurements; its weighted mean squared error.

    The error beside what y itself leaves unknown.
    """
    linked = FactoredLinks(gp, [measurement])
    H = linked.at(X_star)
    noise = measurement.noise_scale**2 * np.eye(len(linked.covariance))
    gain = np.asarray(np.linalg.solve(linked.covariance + noise, H.T).T, dtype=np.float64)
    left = model.explained_variance - np.einsum("ij,ij->i", gain, H)
    return gain, float(weights @ left / weights.sum())


def _turned(solution: Solution, model: SparseGP) -> tuple[FloatArray, FloatArray]:
    """A rotation U (q, q), and measurements in terms of kernel values, R (q, m), turned by it.

    Noise is the same in all directions, so they are as good; and a triangle is multiplied in half the time.
    """
    reduced = solution.features if solution.reduce is None else solution.reduce @ model.T
    assert reduced is not None
    used = model.features.used
    R = np.zeros((len(reduced), model.features.W.shape[1]))
    U, R[:, used] = turn_to_triangle(reduced @ model.features.factor.A)
    return U, R


def _measured(
    planner: Planner, model: SparseGP, solution: Solution, epsilon: float, delta: float, calibration: str
) -> tuple[FactoredMeasurement, Scan]:
    """Quantise the measurements, look at every column of all rows, and scale the noise to the longest."""
    gp, inputs, n_rows = planner.gp, planner.inputs, len(planner.X)
    reduced = solution.features if solution.reduce is None else solution.reduce @ model.T
    assert reduced is not None
    U, R = _turned(solution, model)
    mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(reduced))

    def look(sums: float) -> tuple[int, Recipe, Scan]:
        """On a lattice for columns whose absolute values sum to this at most."""
        # Bits such that sums of |column| y_int and 64 sigma stay below 2^60, also for columns of norm 2.
        total = math.floor(60 - math.log2(sums + 2 * NOISE_SCALES / mu))
        y_bits = min(_Y_BITS, total * 4 // 9)
        bits = min(_MATRIX_BITS, total - y_bits)
        added_up = planner.people is not None
        made = recipe(model.features, model.approximation, R, bits, planner.widest, added_up)
        return y_bits, made, scan(made, inputs)

    sums = float(summed(gp, model, U @ reduced, n_rows).max())
    y_bits, made, seen = look(sums)
    found = (float(seen.absolute_sums.max()) + n_rows / 2) * 2.0**-made.matrix_bits
    if found < sums / _LOOSE:  # uneven noise: there is room for more bits
        y_bits, made, seen = look(found)
    if not seen.error < LARGEST_ERROR:
        raise ValueError(
            "inducing: the model's weights are so large that they cancel, and what is left is mostly "
            "rounding. Use fewer inducing inputs, farther apart, or a larger noise variance."
        )
    if not seen.absolute_sums.max():
        raise ValueError(
            "X_star: the data have hardly any influence at these points, so there is nothing to release. "
            "Choose points nearer to X, or a kernel that reaches further."
        )
    declared = declared_sensitivity(seen.longest, y_bits) + allowance(seen.error, len(reduced), y_bits)
    if planner.people is not None:
        together = longest_together(seen.norms, inputs.groups, planner.people) << y_bits
        declared = together + planner.people.most_rows * allowance(seen.error, len(reduced), y_bits)
    measurement = FactoredMeasurement(
        recipe=made,
        inputs=inputs,
        information=model.information,
        rows=n_rows,
        digest=planner.survey.digest,
        declared=declared,
        sums=frozen(seen.column_sum),
        extent=int(seen.absolute_sums.max()),
        y_bits=y_bits,
        sigma=0,
        lower=planner.bounds[0],
        upper=planner.bounds[1],
        epsilon=epsilon,
        delta=delta,
        moved=None if inputs.windows is None else frozen(np.ldexp(seen.moved, -made.matrix_bits)),
        people=planner.people,
        partition="" if planner.people is None else planner.people.digest,
    )
    sigma = integer_float_at_least(Fraction(measurement.sensitivity()) / Fraction(mu))
    if sigma < SIGMA_FLOOR or made.matrix_bits < 8:
        remedy = "smaller epsilon" if sigma < SIGMA_FLOOR else "larger epsilon or delta"
        raise ValueError(
            f"epsilon={epsilon:g} and delta={delta:g} with {n_rows} rows leave too few bits for exact noise; "
            f"use a {remedy}."
        )
    measurement = replace(measurement, sigma=sigma)
    measurement.check()
    return measurement, seen
