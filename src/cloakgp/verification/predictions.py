"""What the released numbers are made into, against the model, within rounding on another machine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cloakgp.files.schema import rounded_std
from cloakgp.measurements.certificate import DIGITS, short
from cloakgp.measurements.lattice import Measurement
from cloakgp.model.build import smoother_for
from cloakgp.model.inducing import SparseGP, SparseRows
from cloakgp.model.smoothers import Smoother, jitters, kernel_matrix
from cloakgp.plans.function_planner import UNBIASED, sensitivities
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.predictions import Plan
from cloakgp.plans.reconstruction import largest_bias, offset
from cloakgp.posterior.links import links
from cloakgp.rows.merging import Groups, distinct, take
from cloakgp.verification import reasons
from cloakgp.verification.reasons import Reason

_ROWS = 2**16  # of X compared at once


def check(plan: Plan) -> list[str]:
    """Predictions whose matrix is in the file."""
    gp, m, certificate = plan.gp, plan.measurement, plan.certificate
    assert isinstance(m, Measurement)
    reasons.refuse(not _same_labels(m.groups, distinct(plan.X, gp.noise, gp.windows).groups), Reason.LABELS)
    smoother = smoother_for(gp, take(plan.X, gp.noise, m.groups, gp.windows), plan.X_star)
    if isinstance(smoother, SparseRows):
        smoother.keep = False  # for memory: each column is looked at once
    denoised = certificate.design == "posterior"
    reasons.refuse(certificate.unbiased == denoised, Reason.UNBIASED)
    _check_bias(plan, largest_bias(gp, smoother, m, plan.reconstruction))
    _check_jitter(certificate.jitter, smoother)
    if denoised:
        check_denoising(plan, smoother)
    check_offset(plan)
    check_std(plan.gp_std, np.sqrt(smoother.posterior_variance))
    return ["predictions, from the model and the measurements"]


def compare(shown: Any, X: Any) -> None:
    """Refuse unless X is what the file shows."""
    shape = getattr(X, "shape", None)
    if shape is None:
        X = np.asarray(X, dtype=np.float64)
        shape = X.shape
    if len(shape) == 1 and isinstance(X, np.ndarray):
        X = X[:, None]
    same = tuple(X.shape) == shown.shape and all(
        np.array_equal(np.asarray(X[start : start + _ROWS]), shown[start : start + _ROWS])
        for start in range(0, len(shown), _ROWS)
    )
    reasons.refuse(not same, Reason.OTHER_INPUTS)


def _same_labels(one: Groups | None, other: Groups | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one.labels, other.labels)


def _check_bias(plan: Plan | FunctionPlan, bias: float) -> None:
    tolerance = 1e-6 * plan.measurement.width
    near = math.isclose(bias, plan.certificate.bias, rel_tol=0.011, abs_tol=tolerance)
    reasons.refuse(not near, Reason.PREDICTIONS)


def _check_jitter(jitter: float, smoother: Smoother) -> None:
    """Nothing, or a power of ten of the diagonal: which one, depends on how a machine rounds."""
    ladder = [short(value, *DIGITS["jitter"]) for value in jitters(smoother.scale)]
    near = any(math.isclose(jitter, value, rel_tol=0.011) for value in ladder)
    reasons.refuse(not near, Reason.JITTER)


def check_offset(plan: Plan) -> None:
    """To the bit."""
    expected = offset(plan.gp, plan.measurement, plan.reconstruction)
    reasons.refuse(not np.array_equal(expected, plan.offset), Reason.OFFSET)


def check_std(claimed: Any, found: Any) -> None:
    """To a unit of the fourth digit, and what cancels."""
    reasons.refuse(not np.array_equal(rounded_std(claimed), claimed), Reason.DIGITS, "gp_std")
    close = np.allclose(found, claimed, rtol=1.1e-3, atol=1e-5 * float(found.max()))
    reasons.refuse(not close, Reason.STD)


def check_denoising(plan: Plan, smoother: Smoother | SparseGP) -> None:
    """The reconstruction and the objective of a release that is denoised to begin with."""
    linked = links(plan.gp, plan.X, [plan.measurement])
    H = linked.at(plan.X_star)  # (P, q)
    noise = plan.measurement.noise_scale**2 * np.eye(len(linked.covariance))
    gain = np.linalg.solve(linked.covariance + noise, H.T).T
    near = np.allclose(gain, plan.reconstruction, rtol=0, atol=1e-6 * float(np.abs(gain).max()))
    reasons.refuse(not near, Reason.DENOISING)
    left = smoother.explained_variance - np.einsum("ij,ij->i", gain, H)
    near = math.isclose(float(plan.weights @ left) / len(left), plan.certificate.objective, rel_tol=1e-3)
    reasons.refuse(not near, Reason.FIGURE, "objective")


def check_function(plan: FunctionPlan) -> tuple[list[str], list[str]]:
    """A whole function: its shape, and where X is shown its values."""
    _check_shape(plan)
    if plan.X is None:
        hidden = "the function's values: X is withheld, so only the custodian can; a signature vouches"
        return ["the function's shape, from the model and its points"], [hidden]
    m, noise = plan.measurement, plan.gp.noise
    # Older files have a column for each row, equal or not.
    merged = m.groups is not None
    reasons.refuse(merged and not _same_labels(m.groups, distinct(plan.X, noise).groups), Reason.LABELS)
    smoother = smoother_for(plan.gp, take(plan.X, noise, m.groups), plan.points)
    _check_bias(plan, largest_bias(plan.gp, smoother, plan.measurement, plan.weights(plan.points)))
    _check_jitter(plan.certificate.jitter, smoother)
    reasons.refuse(not np.array_equal(plan.midpoint_measurements, plan.measurement.midpoint), Reason.CENTRE)
    return ["the function's shape and values, from the model and the measurements"], []


def _check_shape(plan: FunctionPlan) -> None:
    """Reach, reconstruction and objective of a function, as far as what the file shows determines them."""
    gp, certificate, bound = plan.gp, plan.certificate, plan.certificate.bound
    exact = sensitivity = plan.rkhs_sensitivity
    reasons.refuse(not 1e-100 < sensitivity < 1e100, Reason.RANGE, "reach")
    if plan.X is not None:
        exact, sensitivity = sensitivities(gp, plan.X, plan.points, bound)
    elif bound == "input-free":
        exact = sensitivity = 1 / (2 * math.sqrt(float(np.min(gp.noise))))
    reasons.refuse(not math.isclose(sensitivity, plan.rkhs_sensitivity, rel_tol=1e-6), Reason.REACH)
    product = plan.reconstruction.T @ kernel_matrix(gp.kernel, plan.points, plan.points, "points, points")
    identity = product @ plan.reconstruction / plan.rkhs_sensitivity**2  # R^-T K_ZZ R^-1
    near = np.allclose(identity, np.eye(len(identity)), rtol=0, atol=1e-3)
    triangular = not np.tril(plan.reconstruction, -1).any() and bool(np.all(np.diag(plan.reconstruction) > 0))
    reasons.refuse(not near or not triangular, Reason.SHAPE)
    objective = (plan.rkhs_sensitivity * certificate.noise_scale) ** 2
    near = math.isclose(objective, certificate.objective, rel_tol=1e-5)
    reasons.refuse(not near, Reason.FIGURE, "objective")
    lower = objective * min(1.0, exact / sensitivity) ** 2
    reasons.refuse(not math.isclose(lower, certificate.lower_bound, rel_tol=2e-5), Reason.LOWER_BOUND)
    told = certificate.bias != 0 or certificate.jitter != 0 or bool(plan.midpoint_measurements.any())
    reasons.refuse(plan.X is None and told, Reason.HIDDEN)
    unbiased = plan.X is not None and certificate.bias <= UNBIASED * (gp.limits[1] - gp.limits[0])
    reasons.refuse(certificate.unbiased != unbiased, Reason.UNBIASED)
