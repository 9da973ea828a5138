"""Check a release whose measurement is a recipe: make its columns again, row by row.

Another processor may round a kernel's value differently, and with it an entry of a column by one unit. So
an entry found here may have been one unit larger where it met y: every sensitivity below counts that unit.
The plan left room for it (:data:`cloakgp.factored.MARGIN`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cloakgp.factored import FactoredMeasurement, bias, digest_of
from cloakgp.gp import GP
from cloakgp.inducing import SparseGP, information
from cloakgp.plan import Plan
from cloakgp.rows import Inputs
from cloakgp.smoothers import kernel_matrix

_STEP = 4096  # rows made at once


def column_faults(gp: GP, measurement: FactoredMeasurement, inputs: Inputs) -> list[str]:
    """What the columns of these inputs say against the measurement."""
    if digest_of(inputs) != measurement.digest:
        return ["its inputs are not those that it names"]
    shortest, longest, centre, reach = 0, 0, 0, 0
    counts, variances = inputs.counts.astype(np.int64), inputs.variances
    for start in range(0, len(inputs), _STEP):
        rows = slice(start, start + _STEP)
        rounded = _columns(gp, measurement, np.asarray(inputs.X[rows], dtype=np.float64), variances[rows])
        # Before they become integers, which would wrap. "not <": it must fail for NaN too.
        if not np.abs(rounded).max() < 2.0**62:
            return ["its columns are out of range"]
        columns = rounded.astype(np.int64)
        sizes = np.abs(columns)
        whole = sizes.astype(object) if sizes.max() >= 2**28 else sizes  # Python integers cannot wrap
        shortest = max(shortest, int(((whole + 1) ** 2).sum(axis=0).max()))
        longest = max(longest, int(((whole + 3) ** 2).sum(axis=0).max()))
        n = counts[rows]
        if (int(sizes.max()) + 1) * int(n.sum()) >= 2**62:
            return ["its integers could overflow"]
        centre = centre + (columns @ n).astype(object)
        reach = reach + ((sizes + 1) @ n).astype(object)
    faults = []
    declared, most_y = measurement.declared, 4**measurement.y_bits
    if not shortest * most_y <= declared**2 <= (math.isqrt(longest * most_y) + 1) ** 2:
        faults.append("its sensitivity is not that of its columns")
    if int(np.max(reach)) * 2**measurement.y_bits + 64 * measurement.sigma >= 2**62:
        faults.append("its integers could overflow")
    if not 0 <= int(np.max(reach)) - measurement.extent <= 2 * measurement.n_rows:
        faults.append("its extent is not that of its columns")
    # A unit for each row, as above: it moves predictions by no more than rounding does.
    if np.abs(centre - measurement.centre.astype(object)).max() > measurement.n_rows:
        faults.append("its centre is not that of its columns")
    return faults


def _columns(gp: GP, measurement: FactoredMeasurement, X: Any, noise: Any) -> Any:
    """The recipe, followed: whole numbers, as floats."""
    recipe = measurement.recipe
    K = kernel_matrix(gp.kernel, X, recipe.features.Z, "X, inducing")
    with np.errstate(all="ignore"):  # what is out of range is refused
        scaled = np.ldexp(recipe.factors.astype(np.float64), recipe.matrix_bits - recipe.factor_bits)
        if recipe.approximation == "fitc":
            phi = recipe.features.W @ K.T
            noise = noise + np.maximum(gp.kernel.diag(X) - (phi**2).sum(axis=0), 0.0)
        return np.rint(scaled @ K.T / noise)


def prediction_faults(plan: Plan, inputs: Inputs | None) -> list[str]:
    """What the model says against the predictions, as far as the file shows it."""
    gp, m, certificate = plan.gp, plan.measurement, plan.certificate
    assert isinstance(m, FactoredMeasurement)
    features = m.recipe.features
    faults = []
    gram = kernel_matrix(gp.kernel, features.Z, features.Z, "inducing, inducing")
    if not np.allclose(features.W @ gram @ features.W.T, np.eye(len(features.W)), rtol=0, atol=1e-3):
        faults.append("its features are not those of its inducing inputs")
    eigenvalues = np.linalg.eigvalsh((m.information + m.information.T) / 2)
    if not np.allclose(m.information, m.information.T, rtol=0, atol=1e-9 * float(eigenvalues[-1])):
        return [*faults, "its information is not symmetric"]
    if eigenvalues[0] < -1e-6 * max(eigenvalues[-1], 1.0):
        return [*faults, "its information is not that of any inputs"]
    if inputs is not None:
        found = information(features, gp.approximation, inputs)
        if not np.allclose(found, m.information, rtol=0, atol=1e-6 * float(eigenvalues[-1])):
            faults.append("its information is not that of its inputs")
    model = SparseGP(features, gp.approximation, m.information, plan.X_star)
    if not certificate.unbiased:
        faults.append("it is not as unbiased as it says")
    q = m.n_measurements
    least = bias(gp, model, m, plan.reconstruction, np.zeros((q, q)))
    # At most half a unit is rounded away from each entry of each column.
    rounded = np.abs(plan.reconstruction).sum(axis=1) * m.n_rows * 2.0 ** -(m.matrix_bits + 1)
    most = least + rounded * gp.farthest
    slack = 1e-6 * (m.upper - m.lower)
    if not least.max() * 0.999 - slack <= certificate.bias <= most.max() * 1.01 + slack:
        faults.append("its measurements do not add up to its predictions")
    std = np.sqrt(model.posterior_variance)
    if not np.allclose(std, plan.gp_std, rtol=1e-3, atol=1e-5 * float(std.max())):
        faults.append("its GP std is not the model's")
    return faults
