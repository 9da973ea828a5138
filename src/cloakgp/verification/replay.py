"""Make again what was made from a file's integers, with its model: predictions, or each stage's windows.

A window that was not chosen by the stages before it alone could tell of y by where it is, and no noise would
hide that. So every window is worked out again, with all else that a stage takes from the ones before it, and
what was learned from them all. Matrices are not: a design's choice, as in every release file. Nor is how much
of its share a stage spends on what its windows cut off, which is the best by a narrow margin sometimes: it is
one of a few numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from cloakgp.data.blas import one_blas_thread
from cloakgp.designs import DENOISED, DESIGNS
from cloakgp.measure.certificate import DIGITS, short
from cloakgp.measure.statistics import PLACES, WHOLE, Bin, Distance, Outside
from cloakgp.model.gp import smoother_for
from cloakgp.model.hyperprior import Candidate
from cloakgp.model.smoothers import Smoother, jitters
from cloakgp.posterior import staging
from cloakgp.posterior.conditioning import Line, links
from cloakgp.release.plan import Plan
from cloakgp.release.planner import UNBIASED, input_free, reaches
from cloakgp.release.readouts import Function, Means, largest_bias, offset, rounded_std
from cloakgp.release.release import Release
from cloakgp.release.stages import Rule, Session, Stage
from cloakgp.verification import reasons
from cloakgp.verification.reasons import Findings, Reason, VerificationError

TOLERANCE = 1e-6
"""Of the bounds' width, for windows; of 1 for weights; of the largest numbers for what is added up.

Machines that round differently were seen to differ by less than a thousandth of this.
"""
WINDOWS = "the windows"


def check(release: Release, found: Findings) -> None:
    """Windows, distances and what was learned; or why they could not be worked out."""
    rule, missing = release.plan.rule, ""
    if rule.version != staging.RULE:
        missing = f"they follow rule {rule.version}, and this version of cloakgp knows rule {staging.RULE}"
    elif max(map(abs, rule.bounds)) > 1e7 * _width(rule):  # which leaves too few digits
        missing = "the bounds are too far from 0 for floating point to work them out again"
    else:
        try:
            with one_blas_thread(), np.errstate(all="ignore"):
                _go_through(release)
        except VerificationError:
            raise
        except (ValueError, TypeError, ArithmeticError, LinAlgError, AssertionError) as error:
            missing = f"they could not be worked out again here ({type(error).__name__})"
    if missing:
        found.unchecked.append(f"{WINDOWS}: {missing}")
        return
    if any(stage.line is not None or stage.spread is not None for stage in release.stages):
        told = f"to {TOLERANCE:g} of the bounds' width"
        found.checked.append(f"windows and distances of each stage, from the answers before it, {told}")
    if rule.population is not None:
        found.checked.append("how many rows each cell is taken to have, from the first answer")
    if any(stage.counts_bins for stage in release.stages):
        found.checked.append("the bins that outcomes are counted in, from all answers before")
    found.checked.append("what was learned, from all answers")
    if any(stage.line is not None or stage.spread is not None for stage in rule.all_stages(())):
        found.unchecked.append(f"{WINDOWS} of earlier releases: only their own files tell; verify these")


def _go_through(release: Release) -> None:
    rule = release.plan.rule
    session = rule.session()
    for number, stage in enumerate(release.stages):
        where = f"stage {number + 1}"
        reasons.refuse((stage.line is not None) != rule.has_windows(number), Reason.WINDOWS, where)
        reasons.refuse((stage.spread is not None) != rule.measures_noise(number), Reason.DISTANCES, where)
        if stage.counts_bins:
            _check_bins(session, stage, where)
        if rule.population is not None and number > 0:
            expected = session.rule.inputs.counts
            near = _near(stage.measurement.counts, expected, TOLERANCE * float(np.max(expected)))
            reasons.refuse(not near, Reason.COUNTS, where)
        reasons.refuse(stage.outside is not None and stage.line is None, Reason.OUTSIDE, where)
        if stage.line is not None:
            _check_windows(session, number, stage, stage.line, where)
        if stage.spread is not None:
            told = stage.spread.statistic
            assert isinstance(told, Distance)
            (centre, limit), edge = session.distances(), TOLERANCE * _width(rule)
            near = _near(told.centre, centre, edge) and _near(told.limit, limit, edge)
            reasons.refuse(not near, Reason.DISTANCES, where)
        session.learn(stage)
    if rule.prior.gp is None:
        _check_learned(session, release.settings, release.weights)


def _check_bins(session: Session, stage: Stage, where: str) -> None:
    told, found = stage.measurement.statistic, session.bins()
    assert isinstance(told, Bin)
    edges = _near(told.edges, found.edges, TOLERANCE * PLACES)
    atoms = _near(told.atoms, found.atoms, TOLERANCE * WHOLE)
    reasons.refuse(not (edges and atoms), Reason.BINS, where)


def _check_windows(session: Session, number: int, stage: Stage, line: Line, where: str) -> None:
    rule, m = session.rule, stage.measurement
    edge = TOLERANCE * _width(rule)
    lower, upper = session.windows()
    reasons.refuse(not (_near(m.lower, lower, edge) and _near(m.upper, upper, edge)), Reason.WINDOWS, where)
    made = session.stage(m.lower, m.upper, 1.0)  # by the file's windows, which are near
    _check_outside(session, number, stage, made, where)
    expected, q = session.line(made, stage.rows), len(m.matrix)
    sizes, stds = np.ones(len(line.shift)), np.ones(len(line.shift))
    for own, place in zip(stage.sums, (slice(q), slice(q, None)), strict=False):  # which may differ in size
        largest = (np.abs(own.real_matrix()) @ own.counts).max()
        sizes[place] = largest * max(_width(rule), *map(abs, rule.bounds))
        stds[place] = np.sqrt(np.abs(expected.extra[place, place]).max() + own.noise_scale**2)
    near = (
        _near(line.slope, expected.slope, TOLERANCE)
        and _near(line.shift, expected.shift, TOLERANCE * sizes)
        and _near(line.extra, expected.extra, TOLERANCE * np.outer(stds, stds))
    )
    reasons.refuse(not near, Reason.LINE, where)


def _check_outside(session: Session, number: int, stage: Stage, made: staging.Stage, where: str) -> None:
    """What windows cut off is measured if something is, where something is, and for a part that there is."""
    bounds, m, outside = session.rule.bounds, stage.measurement, stage.outside
    asked = session.tails(number, made, Outside(m.lower, m.upper, bounds=bounds))
    wrong = (outside is not None) != (len(asked) > 0)
    if outside is not None:
        assert isinstance(outside.statistic, Outside)
        assert outside.part is not None
        parts = stage.share * np.array(staging.OUTSIDE)
        wrong |= not np.isclose(outside.part.share, parts, rtol=1e-9, atol=0).any()
        wrong |= bool(outside.matrix[:, outside.statistic.nothing].any())
    reasons.refuse(wrong, Reason.OUTSIDE, where)


def _check_learned(session: Session, settings: tuple[Candidate, ...], weights: Any) -> None:
    """The same models with the same weights, in any order: nearly equal ones may change places.

    Of two such at the list's end either may be left out.
    """
    kept = session.state.weights.tolist()
    others = session.mixture.settings[len(kept) :]
    left = [*zip(session.state.settings, kept, strict=True), *((one, min(kept)) for one in others)]
    near = len(settings) == len(kept) and abs(float(np.sum(weights)) - 1) <= TOLERANCE
    for setting, weight in zip(settings, weights.tolist(), strict=True):
        found = next((pair for pair in left if _same(setting, pair[0])), None)
        near = near and found is not None and abs(weight - found[1]) <= TOLERANCE
        if found is not None:
            left.remove(found)
    reasons.refuse(not near, Reason.LEARNED)


def _same(one: Any, other: Any) -> bool:
    found, expected = (
        [*each.lengthscale, *each.shares, each.signal, each.level, each.noise, each.skew]
        for each in (one, other)
    )
    return bool(one.family == other.family and np.allclose(found, expected, rtol=TOLERANCE, atol=0))


def _width(rule: Rule) -> float:
    return rule.bounds[1] - rule.bounds[0]


def _near(found: Any, expected: Any, tolerance: Any) -> bool:
    return bool(np.all(np.abs(np.asarray(found) - expected) <= tolerance))


# A stage that stands alone: what its measurements are made into, within rounding on another machine


def compare(shown: Any, X: Any) -> None:
    """Refuse unless X is what the file shows."""
    X = X if hasattr(X, "shape") else np.asarray(X, dtype=np.float64)
    fits = tuple(X.shape) in (shown.shape, shown[:, 0].shape if shown.shape[1] == 1 else shown.shape)
    same = fits and np.array_equal(np.asarray(X[:]).reshape(shown.shape), shown)
    reasons.refuse(not same, Reason.OTHER_INPUTS)


def check_alone(plan: Plan, found: Findings) -> None:
    """Of a stage that stands alone: its predictions, or its function and its values."""
    gp, m, function = plan.gp, plan.measurement, plan.function
    if function is not None:
        _check_shape(plan, function)
        if plan.X is None:
            found.checked.append("the function's shape, from the model and its points")
            hidden = "the function's values: X is withheld, so only the custodian can; a signature vouches"
            found.unchecked.append(hidden)
            return
    smoother = smoother_for(gp, plan.inputs, plan.X_star)
    matrix = plan.reconstruction if function is None else function.weights(plan.X_star)
    bias = largest_bias(gp, smoother, m, matrix)
    near = math.isclose(bias, plan.certificate.bias, rel_tol=0.011, abs_tol=1e-6 * m.width)
    reasons.refuse(not near, Reason.PREDICTIONS)
    if function is None:
        _check_means(plan, smoother)
    what = "predictions" if function is None else "the function's shape and values"
    found.checked.append(f"{what}, from the model and the measurements")
    # Nothing, or a power of ten of the diagonal: which one, depends on how a machine rounds.
    ladder = [short(value, *DIGITS["jitter"]) for value in jitters(smoother.scale)]
    added = any(math.isclose(plan.certificate.jitter, value, rel_tol=0.011) for value in ladder)
    reasons.refuse(not added, Reason.JITTER)


def _check_means(plan: Plan, smoother: Smoother) -> None:
    """The offset to the bit; std to a unit of the fourth digit, and what cancels; and what is denoised."""
    m, readout, certificate = plan.measurement, plan.first.readout, plan.certificate
    assert isinstance(readout, Means)
    denoised = DESIGNS[certificate.design].objective == DENOISED
    reasons.refuse(certificate.unbiased == denoised, Reason.UNBIASED)
    if denoised:
        linked = links(plan.gp, plan.inputs, m.real_matrix())
        H = linked.at(plan.X_star)  # (P, q)
        gain = np.linalg.solve(linked.covariance + m.noise_scale**2 * np.eye(m.n_measurements), H.T).T
        near = np.allclose(gain, readout.reconstruction, rtol=0, atol=1e-6 * float(np.abs(gain).max()))
        reasons.refuse(not near, Reason.DENOISING)
        left = smoother.explained_variance - np.einsum("ij,ij->i", gain, H)
        near = math.isclose(float(plan.weights @ left) / len(left), certificate.objective, rel_tol=1e-3)
        reasons.refuse(not near, Reason.FIGURE, "objective")
    expected = offset(plan.gp, m, readout.reconstruction)
    reasons.refuse(not np.array_equal(expected, readout.offset), Reason.OFFSET)
    claimed, std = readout.gp_std, np.sqrt(smoother.posterior_variance)
    reasons.refuse(not np.array_equal(rounded_std(claimed), claimed), Reason.DIGITS, "gp_std")
    close = np.allclose(std, claimed, rtol=1.1e-3, atol=1e-5 * float(std.max()))
    reasons.refuse(not close, Reason.STD)


def _check_shape(plan: Plan, function: Function) -> None:
    """Reach, reconstruction and objective of a function, as far as what the file shows determines them."""
    gp, certificate, points = plan.gp, plan.certificate, function.points
    rebuilt, reach = function.reconstruction, function.reach
    exact = bound = reach
    reasons.refuse(not 1e-100 < reach < 1e100, Reason.RANGE, "reach")
    if plan.X is not None:
        exact, bound = reaches(gp, plan.X, points, certificate.bound)
    elif certificate.bound == "input-free":
        exact = bound = input_free(gp)
    reasons.refuse(not math.isclose(bound, reach, rel_tol=1e-6), Reason.REACH)
    product = rebuilt.T @ gp.kernel(points, points)
    identity = product @ rebuilt / reach**2  # R^-T K_ZZ R^-1
    near = np.allclose(identity, np.eye(len(identity)), rtol=0, atol=1e-3)
    triangular = not np.tril(rebuilt, -1).any() and bool(np.all(np.diag(rebuilt) > 0))
    reasons.refuse(not near or not triangular, Reason.SHAPE)
    objective = (reach * certificate.noise_scale) ** 2
    near = math.isclose(objective, certificate.objective, rel_tol=1e-5)
    reasons.refuse(not near, Reason.FIGURE, "objective")
    lower = objective * min(1.0, exact / bound) ** 2
    reasons.refuse(not math.isclose(lower, certificate.lower_bound, rel_tol=2e-5), Reason.LOWER_BOUND)
    told = certificate.bias != 0 or certificate.jitter != 0
    reasons.refuse(plan.X is None and told, Reason.HIDDEN)
    unbiased = plan.X is not None and certificate.bias <= UNBIASED * (gp.limits[1] - gp.limits[0])
    reasons.refuse(certificate.unbiased != unbiased, Reason.UNBIASED)
