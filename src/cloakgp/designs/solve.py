"""The designs by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from array_api_compat import array_namespace

from cloakgp.core.checks import FloatArray
from cloakgp.designs.columns import Columns, reduced
from cloakgp.designs.largest import JointClimb, WorstPoint
from cloakgp.designs.multipliers import Found, search
from cloakgp.designs.posterior import Aim, posterior
from cloakgp.designs.shapes import Shape
from cloakgp.designs.solution import Solution
from cloakgp.model.arrays import Array, column_dots, like, on_host
from cloakgp.model.smoothers import Smoother

ROUGH = 0.05
"""Gap of an `mse` design that `posterior` starts from."""


def mse(smoother: Smoother, weights: FloatArray, gap: float, noise_variance: float) -> Solution:
    """Least weighted mean noise variance: the L2 factorisation ("matrix") mechanism.

    The coordinates are orthogonal for the weighted predictions, and of one unit, so tr M / sum(w) is their
    weighted mean noise variance, times that unit's square.
    """
    columns = reduced(smoother, weights)
    squared_unit = float(weights @ on_host(columns.up[:, 0]) ** 2)
    return _solution(
        "mse",
        columns,
        search(columns, _Trace(), gap),
        scale=squared_unit / float(weights.sum()),
    )


def volume(smoother: Smoother, weights: FloatArray, gap: float, noise_variance: float) -> Solution:
    """Smallest noise volume, the paper's choice: the minimum-volume enclosing ellipsoid.

    Its optimum depends neither on the weights nor on the coordinates, so these are whitened for
    accuracy, and the objective is brought back to the coordinates of the predictions. Weights
    change nothing.
    """
    columns = reduced(smoother, weights, whiten=True)
    squared_scales = on_host((columns.up**2).sum(axis=0))
    found = search(columns, _Volume(), gap)
    return _solution("volume", columns, found, scale=float(np.exp(np.mean(np.log(squared_scales)))))


def largest(smoother: Smoother, weights: FloatArray, gap: float, noise_variance: float) -> Solution:
    """Smallest largest weighted noise variance, w_j M_jj."""
    columns = reduced(smoother, weights)
    points = columns.up * like(columns.up, np.sqrt(weights))[:, None]
    found = search(columns, WorstPoint(points), gap, JointClimb)
    return _solution("max", columns, found, scale=1.0)


def denoised(smoother: Smoother, weights: FloatArray, gap: float, noise_variance: float) -> Solution:
    """Least weighted mean squared error of denoised predictions, given the noise to come."""
    start = mse(smoother, weights, ROUGH, noise_variance)
    assert start.reduce is not None
    return posterior(Aim(smoother, weights), start.reduce, gap, noise_variance)


@dataclass(frozen=True)
class Design:
    """How measurements are chosen, and all that others ask of it."""

    solve: Callable[[Smoother, FloatArray, float, float], Solution]
    objective: str
    """What it minimises: one of `OBJECTIVES`."""
    text: str
    """In a few words, for reports."""


DesignName = Literal["mse", "max", "posterior", "volume"]
MEAN, LARGEST, VOLUME, DENOISED = OBJECTIVES = ("mean", "largest", "volume", "denoised")
"""Of the noise variances at the test points, weighted; the geometric mean over measured directions; and the
error of predictions that are denoised, for which the model is needed."""
DESIGNS = {
    "mse": Design(mse, MEAN, "least noise on average over the test points"),
    "max": Design(largest, LARGEST, "least noise at the worst test point"),
    "posterior": Design(denoised, DENOISED, "least error of denoised predictions"),
    "volume": Design(volume, VOLUME, "the paper's smallest noise volume"),
}
"""A closed set: a new design is a change to this library, reviewed like the others."""


def solve(
    name: str,
    smoother: Smoother,
    weights: FloatArray,
    gap: float,
    noise_variance: float = 1.0,
) -> Solution:
    """The named design's measurements for this smoother.

    `noise_variance` is that of the noise to come on measurements with unit columns; only
    `posterior` depends on it.
    """
    with np.errstate(under="ignore"):  # what is next to nothing is nothing
        return DESIGNS[name].solve(smoother, weights, gap, noise_variance)


class _Trace:
    """M = Q^(1/2), size tr M."""

    degree = 0.5

    def shape(self, Q: Array) -> Shape:
        eigenvalues, vectors = _spectrum(Q)
        quarter = eigenvalues**0.25
        return Shape(float((quarter**2).sum()), (vectors / quarter).T, vectors * quarter)

    def curvature(self, shape: Shape) -> Array:
        """Lemma 4: 1 / (s_k + s_l) for the eigenvalues s of M, as a sum of exp(-t (s_k + s_l))."""
        return _over_sums(column_dots(shape.inverse, shape.inverse))


class _Volume:
    """M = Q, size |M|^(1/r)."""

    degree = 1.0

    def shape(self, Q: Array) -> Shape:
        eigenvalues, vectors = _spectrum(Q)
        xp = array_namespace(Q)
        half = xp.sqrt(eigenvalues)
        size = float(np.exp(2 * float(xp.log(half).mean())))
        return Shape(size, (vectors / half).T, vectors * half)

    def curvature(self, shape: Shape) -> Array:
        return like(shape.inverse, np.ones((1, len(shape.inverse))))


_STEP = 2.5  # of log t: the sum is within 16 %


def _over_sums(s: Array) -> Array:
    """(q, r) whose columns have dot products near 1 / (s_k + s_l), the integral of exp(-t (s_k + s_l))."""
    xp = array_namespace(s)
    low, high = -np.log(2 * float(s.max())) - 1.5 * _STEP, -np.log(2 * float(s.min())) + 0.75 * _STEP
    t = like(s, np.exp(np.arange(low, high + _STEP, _STEP)))[:, None]
    return xp.sqrt(_STEP * t) * xp.exp(-t * s)


def _spectrum(Q: Array) -> tuple[Array, Array]:
    xp = array_namespace(Q)
    eigenvalues, vectors = xp.linalg.eigh(Q)
    return xp.maximum(eigenvalues, 1e-16 * eigenvalues[-1]), vectors


def _solution(design: str, columns: Columns, found: Found, scale: float) -> Solution:
    norm = np.sqrt(found.largest)
    return Solution(
        design=design,
        reduce=found.shape.transform @ columns.down / norm,
        reconstruction=columns.up @ found.shape.inverse * norm,
        objective=found.upper * scale,
        lower_bound=min(found.lower, found.upper) * scale,  # at the optimum, up to rounding
        iterations=found.iterations,
        status="converged" if found.converged else "stopped before the gap was reached",
    )
