"""A plan for more rows than fit into memory: three passes over X, and nothing needs to be held of its length.

The first pass sums what the rows tell the model. The noise is then designed for a pilot: rows spread
evenly over X, and others whose columns would be long in a rough design. The second pass makes every row's
integer column and finds the longest, exactly: that is the sensitivity, whatever the pilot missed. Where it
missed too much, the rows with the longest columns join it, and design and pass are repeated. (A pilot alone
would understate the sensitivity: a lone row that it lacks may have a column many times longer than any in
it.)
"""

from __future__ import annotations

import math
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
from cloakgp.plans.pilot import Pilot, first_pilot, rough_design, solved, space_of
from cloakgp.plans.predictions import Plan
from cloakgp.plans.reconstruction import noise_objective, offset
from cloakgp.plans.screening import Screen, longest, screen
from cloakgp.posterior.links import FactoredLinks
from cloakgp.rows.blas import one_blas_thread
from cloakgp.rows.chunks import steps
from cloakgp.rows.merging import Chunk, Inputs, first_of_equal, stacked
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
_LONG = 2**14  # rows whose columns seem to be long
_ROUNDS = 5  # of design and pass
_DESIGN = 0.6  # share of the gap that the pilot's design may use up
_MANY = 2**17  # rows: of more, those in reserve are looked at before all are
_RESERVE, _PARTS = 2**18, 4  # rows in reserve, at most, and at most a part of all so large
_JOINING, _NEAR = 2**11, 0.8  # rows in reserve that join the pilot; length of those that stay
_LOOSE = 64  # times that a bound may be too large before it is worth another pass
_Y_BITS, _MATRIX_BITS = 24, 26  # finest lattice


@dataclass(frozen=True, eq=False)
class Survey:
    """What the first pass over X tells."""

    model: SparseGP
    pilot: Pilot
    reserve: Inputs
    """More rows with long columns: what the pilot lacks shows on them."""
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
    root = Root(features.factor.A)
    rough = None if len(even) == len(inputs) else rough_design(planner, features, even)
    wanted = _LONG, min(_RESERVE, len(inputs) // _PARTS)
    screened = None if rough is None else screen(rough, root, len(inputs), wanted)
    function = partial(_survey, features, root, gp.approximation, screened, planner.widest)
    total, shared = np.zeros((len(features.W),) * 2), np.zeros((len(features.W),) * 2)
    columns = planner.X_star.shape[1]
    drawn, digests = [np.empty((0, 2 + columns + (0 if inputs.windows is None else 3)))] * 2, []
    parts = sweep(
        function, inputs.X, inputs.noise, inputs.group_counts, inputs.windows, label="summing over rows"
    )
    for part in parts:
        total += part.information
        shared += part.shared
        # Rows that are ordered in some way may be unlike those at even distances, and too many are drawn.
        more = zip(drawn, part.drawn, wanted, strict=True)
        drawn = [longest(np.vstack([known, new]), 2 * n) for known, new, n in more]
        digests.append(part.digest)

    def rows_in(table: FloatArray) -> Inputs:
        windows = None if inputs.windows is None else table[:, 2 + columns :]
        return Inputs(np.ascontiguousarray(table[:, 2 : 2 + columns]), table[:, 1].copy(), None, windows)

    long, reserve = (rows_in(first_of_equal(table, aside=1)) for table in drawn)
    model = SparseGP(features, gp.approximation, total, planner.X_star)
    digest = combined_digest(digests, inputs.groups)
    if rough is None:
        return Survey(model, first_pilot(planner, model, shared, even), reserve, None, digest)
    pilot = first_pilot(planner, model, shared, even, rough.pilot).joined_by(planner, long)
    return Survey(model, pilot, reserve, rough.solution, digest)


class _Surveyed(NamedTuple):
    """What one chunk of rows tells."""

    information: FloatArray
    shared: FloatArray
    """The same for outcomes in units of their bounds over the widest's width."""
    drawn: list[FloatArray]
    """Tables of rows: their columns' squared lengths in a rough design, noise, themselves, their bounds."""
    digest: bytes


def _survey(
    features: Features,
    root: Root,
    approximation: str,
    screened: Screen | None,
    widest: float,
    X: FloatArray,
    noise: Any,
    counts: Any,
    windows: Any,
) -> _Surveyed:
    squares, chunk = np.zeros(len(X)), Chunk(X, noise, counts, windows)
    total, shared = Gram(len(features.W)), Gram(len(features.W))
    for rows in steps(len(chunk)):
        step = chunk[rows]
        K = features.kernel_rows(step.X)
        phi = features.factor.times(K) if approximation == "fitc" else np.empty((0, len(K)))
        D = unexplained(features, approximation, step.X, phi, step.noise)
        begun, weights = root.begin(K), np.sqrt(step.group_counts / D)
        total.add(begun, weights)
        share = 1.0 if step.windows is None else (step.windows[:, 1] - step.windows[:, 0]) / widest
        if step.windows is not None:
            shared.add(begun, weights * share)
        if screened is not None:
            squares[rows] = screened.squares(begun, share / D)
    table = np.column_stack([squares, chunk.variances, X, *([] if windows is None else [windows])])
    return _Surveyed(
        root.end(total.total),
        root.end(total.total if windows is None else shared.total),
        [table[:0]] * 2 if screened is None else screened.drawn(table),
        chunk_digest(X, noise, counts, windows),
    )


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

    def settled() -> None:
        """Most of what the pilot lacks shows on some of the rows already."""
        reserve = found.reserve
        for _ in range(_ROUNDS):
            made = recipe(model.features, model.approximation, _turned(solution, model)[1], 0, planner.widest)
            length = lengths(made, reserve)
            if good_enough(reached(solution, float(length.max()))):
                break
            order = np.argsort(-length, kind="stable")
            joined_by(stacked([reserve[np.sort(order[:_JOINING])]]))
            # The next design is much like this one, unless it missed much: what is short now stays so.
            reserve = stacked([reserve[length >= _NEAR / max(1.0, float(length.max()))]])

    best: tuple[float, Solution, FactoredMeasurement, Scan] | None = None
    for _ in range(_ROUNDS):
        if len(planner.inputs) > _MANY and len(found.reserve):
            settled()
        measurement, seen = _measured(planner, model, solution, epsilon, delta, calibration)
        value = reached(
            solution, measurement.sensitivity() * 2.0 ** -(measurement.y_bits + measurement.matrix_bits)
        )
        if best is None or value < best[0]:
            best = value, solution, measurement, seen
        if good_enough(best[0]):
            break
        joined_by(seen.worst)
        if good_enough(best[0]):  # what was thought to be possible was not
            break
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
