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
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpstrf

from cloakgp.core import calibration as calibrate
from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.data.inputs import PublicInputs, as_points
from cloakgp.data.merging import Inputs, distinct
from cloakgp.data.people import for_people
from cloakgp.measure.certificate import CLOSED_FORM, certify_one, designed
from cloakgp.measure.measurement import measurement_of
from cloakgp.measure.statistics import Inside
from cloakgp.model.gp import GaussianProcess, downweighted, smoother_for
from cloakgp.model.smoothers import check_covariance, gentle_cholesky, sites
from cloakgp.model.windows import check_variance
from cloakgp.release.plan import Plan, plan_alone
from cloakgp.release.readouts import FUNCTION, Function, largest_bias
from cloakgp.release.settings import Settings

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
    X, basis, calibration = checks.matrix(table.X, "X"), chosen.basis, chosen.calibration
    gp.check_rows(len(X))
    shared = table.shared(len(X))
    n = len(X) if shared is None else shared.n_people
    epsilon, delta = calibrate.promise(chosen.epsilon, chosen.delta, n)
    calibrate.calibrate(epsilon, delta, calibration)
    if basis is not None:
        basis = as_points(basis, "basis", X.shape[1], table.columns)
    low, high = gp.one_pair("a function release")
    if shared is not None:
        gp = replace(gp, noise=for_people(gp.noise, shared, chosen.within))
    outcome_std = max(high - low, float(np.sqrt(np.min(gp.noise))))
    for points in (X, basis):
        if points is not None:
            check_variance(gp.kernel.diag(points), outcome_std)
    gp = downweighted(gp, distinct(X, gp.noise))
    inputs = distinct(X, gp.noise)
    B, R, points, reach, jitter = _measured(gp, inputs, basis)
    mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(B))
    m = measurement_of(B / reach, Inside(low, high), epsilon, delta, mu, groups=inputs.groups, people=shared)
    variance = (reach * m.noise_scale) ** 2
    reconstruction = frozen(solve_triangular(R, np.eye(len(R))) * reach)
    # The largest error at the points themselves, noise aside.
    matrix = np.asarray(gp.kernel(points)) @ reconstruction
    bias = largest_bias(gp, smoother_for(gp, inputs, points), m, matrix)
    found: Any = {"objective": variance, "lower_bound": variance, "jitter": jitter, "bias": bias}
    part = designed(m, iterations=0, status=CLOSED_FORM, **found)
    made = plan_alone(
        gp,
        m,
        Function(gp, points, reconstruction, reach),
        certify_one(
            m, mu, part, calibration=calibration, design=FUNCTION, unbiased=bias <= UNBIASED * (high - low)
        ),
        X=X,
        inputs=inputs,
        X_star=points,
        weights=frozen(np.ones(len(points))),
        within=chosen.within,
        columns=table.columns,
        rows=table.rows,
    )
    return chosen.attach(made, basis=basis)


def _measured(
    gp: GaussianProcess, inputs: Inputs, basis: Any
) -> tuple[FloatArray, FloatArray, FloatArray, float, float]:
    """B, R and the points of the docstring above; how far one row can move the function; and the jitter."""
    X, site, noise = sites(inputs)
    gram = gp.kernel(X, X)
    check_covariance(gram)
    factor, jitter = gentle_cholesky(gram, noise)
    of_basis = (gram, X, "X") if basis is None else (gp.kernel(basis, basis), basis, "basis")
    points = _spanning(*of_basis)
    try:
        R = cholesky(gp.kernel(points, points), check_finite=False)
    except LinAlgError:
        raise ValueError(
            "basis: some of these points are too close together for this kernel. Use fewer, further apart."
        ) from None
    cross = gp.kernel(points, X)
    B = cho_solve(factor, solve_triangular(R, cross, trans="T").T, check_finite=False).T
    B = B[:, site] * (noise[site] / inputs.variances)  # (q, U)
    reach = math.sqrt(float(np.einsum("ij,ij->j", B, B).max()))
    if reach < 1e-100:
        raise ValueError(
            "basis: the data have no influence on the function at these points, so there is nothing to "
            "release. Choose points nearer to X, or a kernel that reaches further."
        )
    return B, R, points, reach, jitter


def reach_of(gp: GaussianProcess, X: FloatArray, points: FloatArray) -> float:
    """How far one row can move a function that stands on these points."""
    return _measured(gp, distinct(X, gp.noise), points)[3]


def _spanning(gram: FloatArray, X: FloatArray, name: str) -> FloatArray:
    """Inputs whose kernels span all others', to rounding: the pivots of a pivoted Cholesky."""
    largest = float(np.diag(gram).max())
    if largest <= 0:
        raise ValueError(
            f"{name}: the kernel is zero at all of these inputs, so there is nothing to release."
        )
    _, pivots, rank, _ = dpstrf(gram, tol=_RANK_CUT * largest)
    return frozen(X[np.sort(pivots[:rank] - 1)])
