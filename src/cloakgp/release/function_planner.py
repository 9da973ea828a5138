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

from cloakgp.core import calibration as calibrate
from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import ArgumentError
from cloakgp.data.inputs import PublicInputs, as_points
from cloakgp.data.merging import Inputs, distinct
from cloakgp.data.people import for_people
from cloakgp.measure.certificate import CLOSED_FORM, certify_one, designed
from cloakgp.measure.measurement import measurement_of
from cloakgp.measure.statistics import Inside
from cloakgp.model.build import downweighted, smoother_for
from cloakgp.model.smoothers import check_covariance, diagonal, gentle_cholesky, kernel_matrix, sites
from cloakgp.model.windows import check_variance
from cloakgp.release.plan import Plan, plan_alone
from cloakgp.release.readouts import FUNCTION, Function
from cloakgp.release.reconstruction import largest_bias
from cloakgp.release.settings import Settings

if TYPE_CHECKING:
    from cloakgp.model.gp import GaussianProcess


HIDES_INPUTS = ("input-free", "varah")
BOUNDS = ("exact", "infinity", "paper", "input-free", "varah")
UNBIASED = 1e-3  # share of the bounds' width up to which the function counts as the GP's own mean
_RANK_CUT = 1e-11  # relative to the largest k(x, x)


def make_function_plan(gp: GaussianProcess, chosen: Settings, table: PublicInputs) -> Plan:
    """See :meth:`GP.plan_function`."""
    gp.check_real("a function release")
    if gp.inducing is not None:
        raise ValueError(
            "inducing: a function release needs an exact GP. Leave inducing out, or use plan(), whose "
            "release also predicts anywhere."
        )
    bound, calibration = checks.choice(chosen.bound, "bound", BOUNDS), chosen.calibration
    X, basis, hidden = checks.matrix(table.X, "X"), chosen.basis, bound in HIDES_INPUTS
    gp.check_rows(len(X))
    shared = table.shared(len(X))
    n = len(X) if shared is None else shared.n_people
    epsilon, delta = calibrate.promise(chosen.epsilon, chosen.delta, n)
    calibrate.calibrate(epsilon, delta, calibration)
    if basis is not None:
        basis = as_points(basis, "basis", X.shape[1], table.columns)
    low, high = gp.one_pair("a function release")
    _check(gp, bound, shared is not None, basis, chosen.margin)
    if shared is not None:
        gp = replace(gp, noise=for_people(gp.noise, shared, chosen.within))
    outcome_std = max(high - low, float(np.sqrt(np.min(gp.noise))))
    for points in (None if hidden else X, basis):  # a refusal would tell of hidden inputs
        if points is not None:
            check_variance(diagonal(gp.kernel, points), outcome_std)
    gp = downweighted(gp, distinct(X, gp.noise))
    # Equal rows once, unless a bound looks at all of them, or their number is not to be shown.
    inputs = distinct(X, gp.noise) if bound == "exact" else Inputs(X, gp.noise, None)
    B, R, points, exact, sensitivity, jitter = _measured(gp, inputs, basis, bound, chosen.margin)
    if exact > sensitivity * (1 + 1e-9):
        raise ValueError(
            "margin: the inputs do not keep the promised margin (they are closer together than it says), "
            "so its bound would not protect y. Promise a smaller margin, or use bound='input-free'."
        )
    mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(B))
    whole: Any = {"full_scale": bound != "exact", "hide_inputs": hidden}
    m = measurement_of(
        B / sensitivity, Inside(low, high), epsilon, delta, mu, groups=inputs.groups, people=shared, **whole
    )
    variance = (sensitivity * m.noise_scale) ** 2
    reconstruction = frozen(solve_triangular(R, np.eye(len(R))) * sensitivity)
    # Known where X is shown: the largest error at the points themselves, noise aside.
    bias = 0.0
    if not hidden:
        matrix = np.asarray(gp.kernel(points)) @ reconstruction
        bias = largest_bias(gp, smoother_for(gp, inputs, points), m, matrix)
    part = designed(
        m,
        bound=bound,
        objective=variance,
        lower_bound=variance if hidden else variance * min(1.0, (exact / sensitivity) ** 2),
        iterations=0,
        status=CLOSED_FORM,
        jitter=0.0 if hidden else jitter,
        bias=bias,
    )
    unbiased = not hidden and bias <= UNBIASED * (high - low)
    made = plan_alone(
        gp,
        m,
        Function(gp, points, reconstruction, sensitivity),
        certify_one(m, mu, part, calibration=calibration, design=FUNCTION, unbiased=unbiased),
        X=None if hidden else X,
        inputs=Inputs(points[:0], 0.0, None) if hidden else inputs,
        X_star=points,
        weights=frozen(np.ones(len(points))),
        within=chosen.within,
        columns=table.columns,
        rows=table.rows,
    )
    return chosen.attach(made, basis=basis)


def _check(gp: GaussianProcess, bound: str, people: bool, basis: Any, margin: Any) -> None:
    """Raise unless the options go together with the bound."""
    hidden = bound in HIDES_INPUTS
    if people and bound != "exact":
        remedy = "That bound is on what one row can do; bound='exact' adds up a person's rows."
        raise ArgumentError("people", f"must be left out for bound={bound!r}", remedy=remedy)
    if hidden and basis is None:
        expected = f"must be given for bound={bound!r}: inputs are not to be shown then"
        remedy = "Give public points that cover where queries will be made."
        raise ArgumentError("basis", expected, remedy=remedy)
    low, high = gp.limits
    if hidden and not low <= gp.level <= high:
        expected = f"must lie within the bounds for bound={bound!r}"
        raise ArgumentError("mean", expected, f"{gp.level:g}", "Give GP another mean.")
    if (margin is not None) != (bound == "varah"):
        raise ArgumentError("margin", "must be given for bound='varah', and only for that")
    if hidden and gp.downweight is not None:
        remedy = "Its variances follow from X and would be in the file, and X is not to be shown."
        raise ArgumentError("downweight", f"must be None for bound={bound!r}", repr(gp.downweight), remedy)


def _measured(
    gp: GaussianProcess, inputs: Inputs, basis: Any, bound: str, margin: Any
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
        points = _spanning(kernel_matrix(gp.kernel, basis, basis, "basis, basis"), basis, "basis")
    try:
        R = cholesky(kernel_matrix(gp.kernel, points, points, "points, points"), check_finite=False)
    except LinAlgError:
        raise ValueError(
            "basis: some of these points are too close together for this kernel. Use fewer, further apart."
        ) from None
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


def sensitivities(gp: GaussianProcess, X: FloatArray, points: FloatArray, bound: str) -> tuple[float, float]:
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


def _bound(gp: GaussianProcess, bound: str, factor: Any, margin: Any) -> float:
    """A bound on how far one unit of y moves f in the kernel's space (proofs: lemma 8)."""
    if bound == "input-free":
        return 1 / (2 * math.sqrt(float(np.min(gp.noise))))
    if gp.kernel.range is None:
        raise ValueError(
            f"bound={bound!r} needs a kernel whose values are known to lie in a range; {gp.kernel!r} has "
            "none. Use bound='exact', which needs no such thing."
        )
    low, high = gp.kernel.range
    if bound == "paper" and low < 0:
        raise ValueError(
            "bound='paper' needs kernel values in [0, v]; this kernel can be negative. Use bound='exact'."
        )
    size = math.sqrt(max(abs(low), high))
    if bound == "varah":
        return size / checks.positive(margin, "margin")
    inverse = cho_solve(factor, np.eye(len(factor[0])), check_finite=False)
    if bound == "infinity":
        return size * float(np.abs(inverse).sum(axis=0).max())
    positive, negative = np.maximum(inverse, 0).sum(axis=0), np.maximum(-inverse, 0).sum(axis=0)
    return size * float(np.maximum(positive, negative).max())
