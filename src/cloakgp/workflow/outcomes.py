"""What a column of outcomes holds: numbers, yes and no, or counts; said by the user, never found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cloakgp.model.outcome import CHANCES, CLASSES, COUNT, REAL, YES_NO
from cloakgp.plans.opening import AnyPlan, AnyRelease
from cloakgp.plans.staged import StagedPlan, StagedRelease

_WORDS = {
    YES_NO: "yes or no, told as the probability of yes",
    COUNT: "counts, told as their rate",
    CLASSES: "one of several classes, told as their probabilities",
}


def bounds_of(plan: AnyPlan) -> tuple[float, float]:
    """The lowest and the highest that an outcome can be."""
    return plan.rule.bounds if isinstance(plan, StagedPlan) else plan.gp.limits


def outcome_words(outcome: str, classes: Sequence[Any] = ()) -> list[tuple[str, str]]:
    """(name, value) for a table of settings; nothing for real numbers."""
    if outcome == REAL:
        return []
    named = f": {', '.join(map(str, classes))}" if classes else ""
    if classes and outcome == YES_NO:
        named = f"; {classes[1]!r} is yes, and {classes[0]!r} is no"
    return [("outcomes are", _WORDS[outcome] + named)]


def noise_words(outcome: str, noise: Any) -> list[tuple[str, str]]:
    """(name, value) of a known model's scatter; nothing where it follows from the probability."""
    if outcome in CHANCES:
        return []
    of_rate = " times the rate" if outcome == COUNT else ""
    return [("observation noise", f"variance {1.0 if noise is None else noise:.6g}{of_rate}")]


def unit_words(outcome: str, output: str) -> str:
    """In what a std is told."""
    return {YES_NO: "as a probability", CLASSES: "as a probability", COUNT: "as a rate"}.get(
        outcome, f"in {output}'s unit"
    )


def named_predictions(release: AnyRelease, found: Mapping[str, Any]) -> dict[str, Any]:
    """Predictions by names that say what they are; of yes and no, std and interval are that of yes."""
    if not isinstance(release, StagedRelease) or release.plan.rule.outcome == REAL:
        return dict(found)
    rule = release.plan.rule
    if rule.outcome == CLASSES:
        return {_told(name, rule.classes): values for name, values in found.items()}
    rest = {name: values for name, values in found.items() if name != "mean"}
    if rule.outcome == COUNT:
        return {"rate": found["mean"], **rest}
    no, yes = rule.classes or ("no", "yes")
    return {f"probability_{no}": 1 - found["mean"], f"probability_{yes}": found["mean"], **rest}


def _told(name: str, classes: Sequence[Any]) -> str:
    """A column of predictions of one class: ``bus`` or ``bus lower``, as probability_bus or lower_bus."""
    if name in map(str, classes):
        return f"probability_{name}"
    of, _, what = name.rpartition(" ")
    return f"{what}_{of}"
