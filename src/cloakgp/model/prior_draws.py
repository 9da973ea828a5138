"""Draws of a GP prior as functions that can be asked anywhere, for pictures: public randomness.

A draw is a sum of many random waves (Rahimi & Recht 2008) whose frequencies follow the kernel's
spectral density, so that two queries of the same point always agree. Its covariance is the
kernel's up to an error of about 1/sqrt(waves). Privacy never rests on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cloakgp import kernels
from cloakgp.checks import FloatArray

_WAVES = 4096

Draw = Callable[[FloatArray], FloatArray]


def draw_prior(kernel: kernels.Kernel, n_columns: int, seed: int) -> Draw:
    """A function drawn from the GP with this kernel; the same seed gives the same function."""
    return _draw(kernel, n_columns, np.random.default_rng(seed))


def _draw(kernel: kernels.Kernel, n_columns: int, rng: np.random.Generator) -> Draw:
    if isinstance(kernel, kernels.Sum):
        parts = [_draw(part, n_columns, rng) for part in kernel.kernels]
        return lambda X: np.sum([part(X) for part in parts], axis=0)
    variance, frequencies = _waves(kernel, n_columns, rng)
    phases = rng.uniform(0, 2 * np.pi, _WAVES)
    heights = rng.normal(size=_WAVES) * np.sqrt(2 * variance / _WAVES)
    return lambda X: np.cos(X @ frequencies.T + phases) @ heights


def _waves(kernel: kernels.Kernel, n_columns: int, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """Variance, and frequencies (waves, columns) from the spectral density. Products add frequencies."""
    if isinstance(kernel, kernels.Product):
        parts = [_waves(part, n_columns, rng) for part in kernel.kernels]
        return float(np.prod([v for v, _ in parts])), np.sum([w for _, w in parts], axis=0)
    if isinstance(kernel, kernels.Sum):  # inside a product: each wave from one of the parts
        parts = [_waves(part, n_columns, rng) for part in kernel.kernels]
        total = float(np.sum([v for v, _ in parts]))
        chosen = rng.choice(len(parts), size=_WAVES, p=[v / total for v, _ in parts])
        return total, np.stack([w for _, w in parts])[chosen, np.arange(_WAVES)]
    if isinstance(kernel, kernels.Constant):
        return kernel.variance, np.zeros((_WAVES, n_columns))
    normals = rng.normal(size=(_WAVES, n_columns)) / _scales(kernel, n_columns)
    if isinstance(kernel, kernels.EQ):
        return kernel.variance, normals
    if isinstance(kernel, kernels.RationalQuadratic):  # a mixture of EQs over a gamma law
        return kernel.variance, normals * np.sqrt(rng.gamma(kernel.alpha, 1 / kernel.alpha, (_WAVES, 1)))
    for matern, degrees in ((kernels.Matern12, 1), (kernels.Matern32, 3), (kernels.Matern52, 5)):
        if isinstance(kernel, matern):  # a multivariate t law with 2 nu degrees of freedom
            return kernel.variance, normals / np.sqrt(rng.chisquare(degrees, (_WAVES, 1)) / degrees)
    raise ValueError(
        f"prior_noise: draws of the prior are not available for {kernel!r}. Use EQ, Matérn, "
        "RationalQuadratic, Constant, and sums and products of them, or leave prior_noise out."
    )


def _scales(kernel: Any, n_columns: int) -> FloatArray:
    """A lengthscale per column; infinite for columns that the kernel does not read."""
    scales = np.full(n_columns, np.inf)
    if not hasattr(kernel, "active_dims"):
        return scales
    scales[list(kernel.active_dims) if kernel.active_dims is not None else slice(None)] = kernel.lengthscale
    return scales
