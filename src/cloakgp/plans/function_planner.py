"""Release the whole function: ask anywhere, as often as you like, after one spend.

The GP's posterior mean lies in the span of k(., x_i), so the whole function is one more set of
measurements of y (lemma 7 of ``docs/proofs.md``). With Z the inputs that span it (chosen by pivoted
Cholesky: far fewer than N for a smooth kernel) and K_ZZ = R'R,

    B = R^-T K_ZX (Kff + S)^-1,      f(x) = m0 + k(x, Z) R^-1 B (y - m0),

and the norm of column i of B is how far row i of y can move the function in the kernel's own
space: the sensitivity of the paper's "standard" method, exactly, where the paper has bounds.
Nothing of y is kept but the noisy measurements, and no queries are counted.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpstrf

from cloakgp import calibration as calibrate
from cloakgp import checks
from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError
from cloakgp.measurements.certificate import CLOSED_FORM, certify
from cloakgp.measurements.lattice import to_integers
from cloakgp.measurements.unit import OUTCOME, PERSON
from cloakgp.model.build import smoother_for
from cloakgp.model.leverage import downweighted
from cloakgp.model.prior_draws import draw_prior
from cloakgp.model.smoothers import check_covariance, diagonal, gentle_cholesky, kernel_matrix, sites
from cloakgp.model.windows import check_variance
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.question import Question, table_options
from cloakgp.plans.reconstruction import largest_bias
from cloakgp.rows.inputs import PublicInputs, as_points
from cloakgp.rows.merging import Inputs, distinct
from cloakgp.rows.people import as_within, for_people

if TYPE_CHECKING:
    from cloakgp.model.gp import GP


HIDES_INPUTS = ("input-free", "varah")
BOUNDS = ("exact", "infinity", "paper", "input-free", "varah")
UNBIASED = 1e-3  # share of the bounds' width up to which the function counts as the GP's own mean
_RANK_CUT = 1e-11  # relative to the largest k(x, x)
_KIND = "function"


def make_function_plan(
    gp: GP,
    inputs: PublicInputs,
    *,
    epsilon: float,
    delta: float | None,
    bound: str,
    calibration: str,
    basis: Any,
    margin: Any,
    prior_noise: bool,
    within: float = 1.0,
) -> FunctionPlan:
    """See :meth:`GP.plan_function`."""
    model = gp
    checks.choice(bound, "bound", BOUNDS)
    X = checks.matrix(inputs.X, "X")
    gp.check_rows(len(X))
    shared = inputs.shared(len(X))
    epsilon, delta = calibrate.promise(epsilon, delta, len(X) if shared is None else shared.n_people)
    calibrate.calibrate(epsilon, delta, calibration)
    if basis is not None:
        basis = as_points(basis, "basis", X.shape[1], inputs.columns)
    within = as_within(within)
    if shared is not None and bound != "exact":
        raise ArgumentError(
            "people",
            f"must be left out for bound={bound!r}",
            remedy="That bound is on what one row can do; bound='exact' adds up a person's rows.",
        )
    hidden = bound in HIDES_INPUTS
    if hidden and basis is None:
        raise ValueError(
            f"basis: bound={bound!r} is for inputs that are not to be shown, so the function must stand on "
            "public points. Give basis=, an array of inputs that covers where queries will be made."
        )
    bounds = gp.one_pair("a function release")
    if hidden and not bounds[0] <= gp.level <= bounds[1]:
        raise ArgumentError(
            "mean",
            f"must lie within the bounds for bound={bound!r}",
            f"{gp.level:g}",
            "Give GP another mean.",
        )
    if (margin is not None) != (bound == "varah"):
        raise ArgumentError("margin", "must be given for bound='varah', and only for that")
    if hidden and gp.downweight is not None:
        raise ArgumentError(
            "downweight",
            f"must be None for bound={bound!r}",
            repr(gp.downweight),
            "Its variances follow from X and would be in the file, and X is not to be shown.",
        )
    if shared is not None:
        gp = replace(gp, noise=for_people(gp.noise, shared, within))
    outcome_std = max(bounds[1] - bounds[0], float(np.sqrt(np.min(gp.noise))))
    for points in (None if hidden else X, basis):  # a refusal would tell of hidden inputs
        if points is not None:
            check_variance(diagonal(gp.kernel, points), outcome_std)
    gp = downweighted(gp, distinct(X, gp.noise))
    # Equal rows once, unless a bound looks at all of them, or their number is not to be shown.
    merged = distinct(X, gp.noise) if bound == "exact" else Inputs(X, gp.noise, None)
    B, R, points, exact, sensitivity, jitter = _measured(gp, merged, basis, bound, margin)
    if exact > sensitivity * (1 + 1e-9):
        raise ValueError(
            "margin: the inputs do not keep the promised margin (they are closer together than it says), "
            "so its bound would not protect y. Promise a smaller margin, or use bound='input-free'."
        )
    if prior_noise:
        draw_prior(gp.kernel, X.shape[1], 0)  # refuse a kernel without draws now, before anything is spent
    mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(B))
    measurement = to_integers(
        B / sensitivity,
        bounds,
        epsilon,
        delta,
        mu,
        groups=merged.groups,
        full_scale=bound != "exact",
        hide_inputs=hidden,
        people=shared,
    )
    variance = (sensitivity * measurement.noise_scale) ** 2
    reconstruction = frozen(solve_triangular(R, np.eye(len(R))) * sensitivity)
    # Known where X is shown: the largest error at the points themselves, noise aside.
    bias = 0.0
    if not hidden:
        smoother = smoother_for(gp, merged, points)
        bias = largest_bias(gp, smoother, measurement, np.asarray(gp.kernel(points)) @ reconstruction)
    certificate = certify(
        measurement,
        calibration,
        OUTCOME if shared is None else PERSON,
        design=_KIND,
        bound=bound,
        objective=variance,
        lower_bound=variance if hidden else variance * min(1.0, (exact / sensitivity) ** 2),
        iterations=0,
        status=CLOSED_FORM,
        jitter=0.0 if hidden else jitter,
        bias=bias,
        unbiased=not hidden and bias <= UNBIASED * (bounds[1] - bounds[0]),
    )
    options = {"epsilon": epsilon, "delta": delta, "bound": bound, "calibration": calibration}
    options |= {"basis": basis, "margin": margin, "prior_noise": prior_noise}
    options |= table_options(shared, within, inputs.columns, inputs.rows)
    return FunctionPlan(
        question=Question(model, "plan_function", options),
        gp=gp,
        X=None if hidden else X,
        points=points,
        measurement=measurement,
        reconstruction=reconstruction,
        midpoint_measurements=frozen(measurement.midpoint),
        rkhs_sensitivity=sensitivity,
        prior_seed=_public_seed() if prior_noise else None,
        certificate=certificate,
        within=None if shared is None else within,
        columns=inputs.columns,
        rows=inputs.rows,
    )


def _measured(
    gp: GP, inputs: Inputs, basis: Any, bound: str, margin: Any
) -> tuple[FloatArray, FloatArray, FloatArray, float, float, float]:
    """B, R and the points of the docstring above; the exact sensitivity, the bound's, and the jitter."""
    everything = inputs.X, np.arange(len(inputs)), inputs.variances
    X, site, noise = sites(inputs) if bound == "exact" else everything
    gram = kernel_matrix(gp.kernel, X, X, "X, X")
    check_covariance(gram)
    factor, jitter = gentle_cholesky(gram, noise)
    if basis is None:
        points = _spanning(gram, X, "X")
    else:
        basis = checks.matrix(basis, "basis", columns=X.shape[1])
        points = _spanning(kernel_matrix(gp.kernel, basis, basis, "basis, basis"), basis, "basis")
    R = _root(gp, points)
    cross = kernel_matrix(gp.kernel, points, X, "points, X")
    B = cho_solve(factor, solve_triangular(R, cross, trans="T").T, check_finite=False).T
    B = B[:, site] * (noise[site] / inputs.variances)  # (q, U)
    exact = math.sqrt(float(np.einsum("ij,ij->j", B, B).max()))
    if exact < 1e-100 and bound not in HIDES_INPUTS:
        raise ValueError(
            "basis: the data have no influence on the function at these points, so there is nothing to "
            "release. Choose points nearer to X, or a kernel that reaches further."
        )
    sensitivity = exact if bound == "exact" else _bound(gp, bound, factor, margin)
    return B, R, points, exact, sensitivity, jitter


def sensitivities(gp: GP, X: FloatArray, points: FloatArray, bound: str) -> tuple[float, float]:
    """The exact sensitivity and the bound's, for a function that stands on these points."""
    inputs = distinct(X, gp.noise) if bound == "exact" else Inputs(X, gp.noise, None)
    return _measured(gp, inputs, points, bound, None)[3:5]


def _spanning(gram: FloatArray, X: FloatArray, name: str) -> FloatArray:
    """Inputs whose kernels span all others', to rounding: the pivots of a pivoted Cholesky."""
    largest = float(np.diag(gram).max())
    if largest <= 0:
        raise ValueError(
            f"{name}: the kernel is zero at all of these inputs, so there is nothing to release."
        )
    _, pivots, rank, _ = dpstrf(gram, tol=_RANK_CUT * largest)
    return frozen(X[np.sort(pivots[:rank] - 1)])


def _root(gp: GP, points: FloatArray) -> FloatArray:
    """R with R'R = the kernel matrix at the points, upper triangular."""
    gram = kernel_matrix(gp.kernel, points, points, "points, points")
    try:
        root: FloatArray = cholesky(gram, check_finite=False)
    except LinAlgError:
        raise ValueError(
            "basis: some of these points are too close together for this kernel. Use fewer, further apart."
        ) from None
    return root


def _bound(gp: GP, bound: str, factor: Any, margin: Any) -> float:
    """A bound on how far one unit of y moves f in the kernel's space (proofs: lemma 8)."""
    if bound == "input-free":
        return 1 / (2 * math.sqrt(float(np.min(gp.noise))))
    low, high = _kernel_range(gp, bound)
    size = math.sqrt(max(abs(low), high))
    if bound == "varah":
        return size / checks.positive(margin, "margin")
    inverse = cho_solve(factor, np.eye(len(factor[0])), check_finite=False)
    if bound == "infinity":
        return size * float(np.abs(inverse).sum(axis=0).max())
    positive, negative = np.maximum(inverse, 0).sum(axis=0), np.maximum(-inverse, 0).sum(axis=0)
    return size * float(np.maximum(positive, negative).max())


def _kernel_range(gp: GP, bound: str) -> tuple[float, float]:
    if gp.kernel.range is None:
        raise ValueError(
            f"bound={bound!r} needs a kernel whose values are known to lie in a range; {gp.kernel!r} has "
            "none. Use bound='exact', which needs no such thing."
        )
    if bound == "paper" and gp.kernel.range[0] < 0:
        raise ValueError(
            "bound='paper' needs kernel values in [0, v]; this kernel can be negative. Use bound='exact'."
        )
    return gp.kernel.range


def _public_seed() -> int:
    """Public randomness for a picture: never for privacy noise."""
    return int(np.random.default_rng().integers(2**53))
