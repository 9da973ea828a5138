"""What the released numbers are made into, against the model, within rounding on another machine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cloakgp.data.merging import take
from cloakgp.designs import DENOISED, DESIGNS
from cloakgp.measure.certificate import DIGITS, short
from cloakgp.model.gp import smoother_for
from cloakgp.model.smoothers import Smoother, jitters
from cloakgp.posterior.conditioning import links
from cloakgp.release.plan import Plan
from cloakgp.release.planner import UNBIASED, reach_of
from cloakgp.release.readouts import Function, Means, largest_bias, offset, rounded_std
from cloakgp.verification import reasons
from cloakgp.verification.reasons import Findings, Reason


def compare(shown: Any, X: Any) -> None:
    """Refuse unless X is what the file shows."""
    X = X if hasattr(X, "shape") else np.asarray(X, dtype=np.float64)
    fits = tuple(X.shape) in (shown.shape, shown[:, 0].shape if shown.shape[1] == 1 else shown.shape)
    same = fits and np.array_equal(np.asarray(X[:]).reshape(shown.shape), shown)
    reasons.refuse(not same, Reason.OTHER_INPUTS)


def check(plan: Plan, found: Findings) -> None:
    """Of a stage that stands alone: its predictions, or its function and, where X is shown, its values."""
    gp, m, function = plan.gp, plan.measurement, plan.function
    if function is not None:
        _check_shape(plan, function)
        smoother = smoother_for(gp, take(plan.X, gp.noise, m.groups), function.points)
        _check_bias(plan, largest_bias(gp, smoother, m, function.weights(function.points)))
        found.checked.append("the function's shape and values, from the model and the measurements")
    else:
        smoother = smoother_for(gp, plan.rule.inputs, plan.X_star)
        _check_bias(plan, largest_bias(gp, smoother, m, plan.reconstruction))
        _check_means(plan, smoother)
        found.checked.append("predictions, from the model and the measurements")
    # Nothing, or a power of ten of the diagonal: which one, depends on how a machine rounds.
    ladder = [short(value, *DIGITS["jitter"]) for value in jitters(smoother.scale)]
    added = any(math.isclose(plan.certificate.jitter, value, rel_tol=0.011) for value in ladder)
    reasons.refuse(not added, Reason.JITTER)


def _check_bias(plan: Plan, bias: float) -> None:
    tolerance = 1e-6 * plan.measurement.width
    near = math.isclose(bias, plan.certificate.bias, rel_tol=0.011, abs_tol=tolerance)
    reasons.refuse(not near, Reason.PREDICTIONS)


def _check_means(plan: Plan, smoother: Smoother) -> None:
    """The offset to the bit; std to a unit of the fourth digit, and what cancels; and what is denoised."""
    m, readout, certificate = plan.measurement, plan.first.readout, plan.certificate
    assert isinstance(readout, Means)
    denoised = DESIGNS[certificate.design].objective == DENOISED
    reasons.refuse(certificate.unbiased == denoised, Reason.UNBIASED)
    if denoised:
        linked = links(plan.gp, plan.X, [m], inputs=plan.rule.inputs)
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
    """Reach, reconstruction and objective of a function."""
    gp, certificate, points = plan.gp, plan.certificate, function.points
    rebuilt, reach = function.reconstruction, function.reach
    reasons.refuse(not 1e-100 < reach < 1e100, Reason.RANGE, "reach")
    reasons.refuse(not math.isclose(reach_of(gp, plan.X, points), reach, rel_tol=1e-6), Reason.REACH)
    product = rebuilt.T @ gp.kernel(points, points)
    identity = product @ rebuilt / reach**2  # R^-T K_ZZ R^-1
    near = np.allclose(identity, np.eye(len(identity)), rtol=0, atol=1e-3)
    triangular = not np.tril(rebuilt, -1).any() and bool(np.all(np.diag(rebuilt) > 0))
    reasons.refuse(not near or not triangular, Reason.SHAPE)
    objective = (reach * certificate.noise_scale) ** 2
    near = math.isclose(objective, certificate.objective, rel_tol=1e-5)
    reasons.refuse(not near, Reason.FIGURE, "objective")
    near = math.isclose(objective, certificate.lower_bound, rel_tol=2e-5)
    reasons.refuse(not near, Reason.LOWER_BOUND)
    unbiased = certificate.bias <= UNBIASED * (gp.limits[1] - gp.limits[0])
    reasons.refuse(certificate.unbiased != unbiased, Reason.UNBIASED)
