"""More observation noise for rows that stand alone, as the paper suggests, judged by X only.

The leverage of a row is how far the model's prediction at it follows its own outcome: [Kff (Kff + S)^-1]_ii.
Rows with much of it need much privacy noise near them. Here a row's noise variance is multiplied by its
leverage over the median row's, but by no less than 1 and no more than `MOST`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from cloakgp.checks import FloatArray
from cloakgp.model.arrays import on_host
from cloakgp.model.build import smoother_for
from cloakgp.model.inducing import Features, information, unexplained
from cloakgp.rows.chunks import steps
from cloakgp.rows.merging import Chunk, Inputs
from cloakgp.rows.passes import sweep

if TYPE_CHECKING:
    from cloakgp.model.gp import GP

MOST = 50.0
_DECIMALS = 2  # of a factor: another machine, which rounds otherwise, finds the same one


def downweighted(gp: GP, inputs: Inputs, device: Any = None) -> GP:
    """The model with the variances that its `downweight` asks for, one for each row; itself if for none.

    `inputs` are X without repetitions under `gp.noise`, so that equal rows keep equal variances.
    """
    if gp.downweight is None:
        return gp
    found, own = leverage(gp, inputs, device), inputs.variances
    if inputs.groups is not None:
        found, own = found[inputs.groups.labels], own[inputs.groups.labels]
    relative = found / max(float(np.median(found)), np.finfo(float).tiny)
    return replace(gp, noise=own * np.clip(relative, 1.0, MOST).round(_DECIMALS), downweight=None)


def leverage(gp: GP, inputs: Inputs, device: Any = None) -> FloatArray:
    """(U,) leverage of one row of y at each of the inputs; nothing of y is needed."""
    if gp.inducing is None:
        # Kff (Kff + S)^-1 S is the posterior covariance of f at the rows.
        variance = smoother_for(gp, inputs, inputs.X, device).posterior_variance
        return np.asarray(on_host(variance) / inputs.variances)
    assert isinstance(gp.inducing, np.ndarray)
    features = Features(gp.kernel, gp.inducing)
    total = information(features, gp.approximation, inputs)
    root = cholesky(np.eye(len(total)) + total, lower=True, check_finite=False)
    function = partial(_of_chunk, features, gp.approximation, root)
    return np.concatenate(list(sweep(function, inputs.X, inputs.noise, label="finding outliers")))


def _of_chunk(
    features: Features, approximation: str, root: FloatArray, X: FloatArray, noise: Any
) -> FloatArray:
    """phi' (I + information)^-1 phi / D, which is the same of the model with inducing inputs."""
    found, chunk = np.empty(len(X)), Chunk(X, noise, 1.0)
    for rows in steps(len(chunk)):
        step = chunk[rows]
        phi = features.at(step.X)
        white = solve_triangular(root, phi, lower=True, check_finite=False)
        rest = unexplained(features, approximation, step.X, phi, step.noise)
        found[rows] = np.einsum("ij,ij->j", white, white) / rest
    return found
