"""From measurements to predictions: the offset, the weights, and the largest bias."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.measurements.lattice import Measured, Measurement, exact_offset
from cloakgp.model.smoothers import Smoother, blocks

if TYPE_CHECKING:
    from cloakgp.model.gp import GP


def relative_weights(weights: FloatArray) -> FloatArray:
    """Weights with mean 1, the same for weights that differ by a factor."""
    scaled = weights / weights.max()
    if scaled.min() < 1e-12:
        raise ArgumentError(
            "weights",
            "must be within a factor of 1e12 of each other",
            remedy="To ignore a test point, leave it out of X_star.",
        )
    result: FloatArray = scaled / scaled.mean()
    return result


def noise_objective(
    design: str, weights: FloatArray, reconstruction: FloatArray, noise_scale: float
) -> float:
    """What `mse`, `max` and `volume` minimise, for the measurements that will be released."""
    if design == "volume":
        spread = np.linalg.svd(reconstruction, compute_uv=False)
        return float(np.exp(2 * np.mean(np.log(spread * noise_scale))))
    weighted = weights * noise_scale**2 * np.einsum("ij,ij->i", reconstruction, reconstruction)
    return float(weighted.mean() if design == "mse" else weighted.max())


def offset(gp: GP, measurement: Measured, reconstruction: FloatArray) -> FloatArray:
    """The prediction if every y were the middle of the bounds and no noise were added."""
    return exact_offset(reconstruction, measurement.total, gp.mean, gp.bounds)


def largest_bias(gp: GP, smoother: Smoother, measurement: Measurement, reconstruction: FloatArray) -> float:
    """The largest error of the mean, noise aside, for any y within the bounds.

    Two errors add up: the measurements reconstruct C only up to rounding and the rank cut (or, for
    `posterior`, up to what denoising shrinks away), which multiplies y less the prior mean; and y
    itself is rounded to half a lattice step.
    """
    width, counts = measurement.upper - measurement.lower, measurement.counts
    error = np.zeros(smoother.n_outputs)
    for block in blocks(smoother.n_rows):
        C = smoother.columns(block)
        error += np.abs(reconstruction @ measurement.real_matrix(block) - C) @ counts[block] * gp.farthest
        error += np.abs(C) @ counts[block] * width * 2.0 ** -(measurement.y_bits + 1)
    return float(error.max())
