"""From measurements to predictions: the offset, the weights, and the largest bias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import ArgumentError
from cloakgp.data.chunks import in_threads
from cloakgp.designs import DESIGNS, MEAN, VOLUME
from cloakgp.measure.measurement import Measurement, exact_product
from cloakgp.model.smoothers import Smoother, blocks
from cloakgp.model.windows import RowMeans, distances

if TYPE_CHECKING:
    from cloakgp.model.gp import GaussianProcess


def relative_weights(weights: Any, n: int) -> FloatArray:
    """(n,) weights with mean 1, the same for weights that differ by a factor; all alike if absent."""
    remedy = "To ignore a test point, leave it out of X_star."
    weights = np.ones(n) if weights is None else weights
    weights = checks.vector(weights, "weights", n, positive=True, remedy=remedy)
    scaled = weights / weights.max()
    if scaled.min() < 1e-12:
        raise ArgumentError("weights", "must be within a factor of 1e12 of each other", remedy=remedy)
    return frozen(scaled / scaled.mean())


def noise_objective(
    design: str, weights: FloatArray, reconstruction: FloatArray, noise_scale: float
) -> float:
    """What a design minimises that looks at noise alone, for the measurements that will be released."""
    objective = DESIGNS[design].objective
    if objective == VOLUME:
        spread = np.linalg.svd(reconstruction, compute_uv=False)
        return float(np.exp(2 * np.mean(np.log(spread * noise_scale))))
    weighted = weights * noise_scale**2 * np.einsum("ij,ij->i", reconstruction, reconstruction)
    return float(weighted.mean() if objective == MEAN else weighted.max())


def offset(gp: GaussianProcess, measurement: Measurement, reconstruction: FloatArray) -> FloatArray:
    """The prediction if every y were the middle of its bounds and no noise were added."""
    if gp.windows is None:
        low, high = gp.one_pair("this")
        middle = low + (high - low) / 2
        return np.asarray(gp.level + exact_product(reconstruction, measurement.total) * (middle - gp.level))
    moved = exact_product(reconstruction, measurement.middle_less(gp.mean_of(measurement.groups)))
    star = gp.mean.star if isinstance(gp.mean, RowMeans) else gp.mean
    assert not callable(star)
    assert star is not None
    result: FloatArray = star + moved
    return result


def largest_bias(
    gp: GaussianProcess, smoother: Smoother, measurement: Measurement, reconstruction: FloatArray
) -> float:
    """The largest error of the mean, noise aside, for any y within the bounds.

    Two errors add up: the measurements reconstruct C only up to rounding and the rank cut (or, for
    `posterior`, up to what denoising shrinks away), which multiplies y less the prior mean; and y
    itself is rounded to half a lattice step.
    """
    counts, windows = measurement.counts, gp.windows_of(measurement.groups)
    width = np.broadcast_to(measurement.upper - measurement.lower, counts.shape)
    far = np.broadcast_to(gp.farthest if windows is None else distances(windows.T), counts.shape)

    def of_rows(block: slice) -> FloatArray:
        C, n = smoother.columns(block), counts[block]
        off = reconstruction @ measurement.real_matrix(block)
        off -= C
        error: FloatArray = np.abs(off, out=off) @ (n * far[block])
        error += np.abs(C) @ (n * width[block]) * 2.0 ** -(measurement.y_bits + 1)
        return error

    total = sum(in_threads(of_rows, list(blocks(smoother.n_rows))), np.zeros(smoother.n_outputs))
    return float(total.max())
