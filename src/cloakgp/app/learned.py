"""What a release in stages learned, and how its stages went: small tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.measurements.whole_rows import Counts
from cloakgp.model.hyperprior import Hyperprior, Setting
from cloakgp.model.outcome import COUNT, REAL
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.staged import StagedRelease
from cloakgp.plans.whole_rows import RowsRelease

_LIKELY = 0.9  # of the weight, which the range given for a number holds


def learned_tables(release: AnyRelease, inputs: Sequence[str], output: str) -> dict[str, Any]:
    """What was learned, None for a release whose model was given; and the stages, where there are any."""
    if not isinstance(release, StagedRelease):
        return {"learned": None, "stages": None}
    prior = release.plan.rule.prior
    learned = _learned(release, inputs, output) if isinstance(prior, Hyperprior) else None
    return {"learned": learned, "stages": _stages(release)}


def density_of(release: AnyRelease) -> dict[str, Any] | None:
    """How many rows each cell has, about, where inputs are private; None elsewhere."""
    if not isinstance(release, RowsRelease):
        return None
    found = release.density
    cells = {"points": release.plan.grid.centres, "rows": found.counts, "std": found.std}
    return {name: values.tolist() for name, values in cells.items()}


def _learned(release: StagedRelease, inputs: Sequence[str], output: str) -> list[dict[str, Any]]:
    settings, best = release.settings, release.settings[0]
    numeric = best.numeric if isinstance(best, Setting) else range(len(best.lengthscale))
    outcome = release.plan.rule.outcome
    unit = output if outcome == REAL else ""  # else it is of a function behind the probability, or the rate
    found = [("size of the signal", unit, [one.signal**0.5 for one in settings])]
    for place, column in enumerate(numeric):
        what = "lengthscale" if len(inputs) == 1 else f"lengthscale of {inputs[column]}"
        found.append((what, inputs[column], [one.lengthscale[place] for one in settings]))
    for place, part in enumerate(best.parts(inputs) if isinstance(best, Setting) else ()):
        found.append((f"share of {part}", "", [one.form[2][place] for one in settings]))
    if outcome == REAL:
        found.append(("noise", output, [one.noise**0.5 for one in settings]))
    elif outcome == COUNT:
        found.append(("variance of a count", "", [one.noise for one in settings]))
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


def _stages(release: StagedRelease) -> list[dict[str, float | None]]:
    rule = release.rule if isinstance(release, RowsRelease) else release.plan.rule
    counts = rule.inputs.counts
    rows: list[dict[str, float | None]] = []
    for stage, share in zip(release.stages, release.plan.shares, strict=False):  # it may have stopped early
        if isinstance(stage.plan.measurement, Counts):
            rows.append({"share": share, "width": None})
            continue
        widths = np.broadcast_to(np.asarray(stage.upper) - np.asarray(stage.lower), counts.shape)
        rows.append({"share": share, "width": float(np.average(widths, weights=counts))})
    return rows
