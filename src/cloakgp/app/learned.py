"""What a release in stages learned, and how its stages went: small tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.model.hyperprior import Setting
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.staged import StagedRelease

_LIKELY = 0.9  # of the weight, which the range given for a number holds


def learned_tables(release: AnyRelease, inputs: Sequence[str], output: str) -> dict[str, Any]:
    """What was learned and the stages; None for a release whose model was given."""
    if not isinstance(release, StagedRelease):
        return {"learned": None, "stages": None}
    return {"learned": _learned(release, inputs, output), "stages": _stages(release)}


def _learned(release: StagedRelease, inputs: Sequence[str], output: str) -> list[dict[str, Any]]:
    settings, best = release.settings, release.settings[0]
    numeric = best.numeric if isinstance(best, Setting) else range(len(best.lengthscale))
    found = [("size of the signal", output, [one.signal**0.5 for one in settings])]
    for place, column in enumerate(numeric):
        what = "lengthscale" if len(inputs) == 1 else f"lengthscale of {inputs[column]}"
        found.append((what, inputs[column], [one.lengthscale[place] for one in settings]))
    for place, part in enumerate(best.parts(inputs) if isinstance(best, Setting) else ()):
        found.append((f"share of {part}", "", [one.form[2][place] for one in settings]))
    found.append(("noise", output, [one.noise**0.5 for one in settings]))
    return [
        {"what": what, "unit": unit, **_range(np.array(values), release.weights)}
        for what, unit, values in found
    ]


def _range(values: FloatArray, weights: FloatArray) -> dict[str, float]:
    """About how much, and the least and the most among the models that hold nearly all of the weight."""
    heaviest = np.argsort(-weights, kind="stable")
    held = np.cumsum(weights[heaviest])
    likely = values[heaviest[: 1 + int(np.searchsorted(held, _LIKELY * held[-1]))]]
    about = np.exp(np.average(np.log(values), weights=weights))
    return {"about": float(about), "low": float(likely.min()), "high": float(likely.max())}


def _stages(release: StagedRelease) -> list[dict[str, float]]:
    counts = release.plan.rule.inputs.counts
    rows = []
    for stage, share in zip(release.stages, release.plan.shares, strict=False):  # it may have stopped early
        widths = np.broadcast_to(np.asarray(stage.upper) - np.asarray(stage.lower), counts.shape)
        rows.append({"share": share, "width": float(np.average(widths, weights=counts))})
    return rows
