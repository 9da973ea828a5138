"""Releases of outcomes that are one of several classes: numbers for each of them, by its public name."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.plans.opening import AnyRelease
from cloakgp.plots import is_unknown
from cloakgp.plots.labels import classes_of

_PARTS = ("std", "lower", "upper")


def by_class(release: AnyRelease, found: dict[str, FloatArray]) -> list[dict[str, Any]] | None:
    """Predictions as ``workflow.releases.predictions`` has them; None where outcomes are not of classes."""
    classes = classes_of(release)
    if not classes:
        return None
    return [
        {
            "name": str(one),
            "probability": found[str(one)].tolist(),
            **{part: found[f"{one} {part}"].tolist() for part in _PARTS},
        }
        for one in classes
    ]


def with_noise(
    release: AnyRelease, found: dict[str, FloatArray], where: FloatArray, noise: FloatArray
) -> list[dict[str, Any]] | None:
    """The same with the noise that privacy adds, and where hardly more is known than before the release."""
    return [
        {**each, "noise_std": own.tolist(), "unknown": np.asarray(is_unknown(release, where, one)).tolist()}
        for each, own, one in zip(by_class(release, found) or (), noise.T, classes_of(release), strict=False)
    ] or None
