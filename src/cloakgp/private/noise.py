"""The noise: OpenDP's discrete Gaussian, discrete Laplace and noisy minimum.

Inside ``insecure_seed`` it comes from a seed instead, and whatever is released is marked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cloakgp import testing
from cloakgp.core.checks import IntArray
from cloakgp.measure.cross_validation import Scores


def add_noise(exact: IntArray, sigma: int) -> IntArray:
    """exact + discrete Gaussian noise with std `sigma`."""
    insecure = testing.insecure_generator()
    if insecure is not None:
        return exact + np.rint(insecure.normal(size=exact.shape) * sigma).astype(np.int64)
    from opendp import measurements, metrics

    gaussian = measurements.make_gaussian(_integers(), metrics.l2_distance(T="i64"), scale=float(sigma))
    return np.asarray(drawn(gaussian, exact), dtype=np.int64)


def add_laplace(exact: IntArray, scale: int) -> IntArray:
    """exact + discrete Laplace noise of this scale."""
    insecure = testing.insecure_generator()
    if insecure is not None:
        return exact + np.rint(insecure.laplace(size=exact.shape) * scale).astype(np.int64)
    from opendp import measurements, metrics

    laplace = measurements.make_laplace(_integers(), metrics.l1_distance(T="i64"), scale=float(scale))
    return np.asarray(drawn(laplace, exact), dtype=np.int64)


def _integers() -> Any:
    """OpenDP's space of integer vectors."""
    from opendp import domains, mod

    mod.enable_features("contrib")
    return domains.vector_domain(domains.atom_domain(T="i64"))


def drawn(mechanism: Callable[[IntArray], Any], exact: IntArray) -> Any:
    """What a mechanism makes of exact values; if it fails, nothing of them."""
    try:
        answer = mechanism(exact)
    except Exception:  # OpenDP's message might hold the exact values
        answer = None
    if answer is None:
        raise RuntimeError("OpenDP failed to add noise; nothing was released.")
    return answer


def noisy_minimum(scores: Scores) -> Callable[[IntArray], Any]:
    """Index of the smallest score after Gumbel noise: the exponential mechanism with these losses."""
    insecure = testing.insecure_generator()
    if insecure is not None:
        return lambda exact: np.argmin(exact - insecure.gumbel(size=len(exact)) * scores.scale)
    from opendp import measurements, measures, metrics

    # With this divergence OpenDP draws Gumbel noise, and says what it costs; with max_divergence it would
    # permute and flip, whose rho is larger.
    mechanism: Any = measurements.make_noisy_max(
        _integers(),
        metrics.linf_distance(T="i64"),
        measures.zero_concentrated_divergence(),
        scale=scores.scale,
        negate=True,
    )
    # An exponential mechanism at epsilon has rho = epsilon^2 / 8. "not <=": it must fail for NaN too.
    if not mechanism.map(scores.sensitivity) <= scores.epsilon**2 / 8 * (1 + 1e-9):
        raise AssertionError("noise is too small for epsilon")
    return mechanism  # type: ignore[no-any-return]
