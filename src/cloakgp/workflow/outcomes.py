"""What a column of outcomes holds: numbers, yes and no, or counts; said by the user, never found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cloakgp.errors import ArgumentError
from cloakgp.model.outcome import CLASSES, COUNT, REAL, YES_NO
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.staged import StagedPlan

_WORDS = {
    YES_NO: "yes or no, told as the probability of yes",
    COUNT: "counts, told as their rate",
    CLASSES: "one of several classes, told as their probabilities",
}


def check_classes(outcome: str, classes: Sequence[str]) -> None:
    """Raise unless these are how the answers to a yes/no question are written, or nothing."""
    if not classes:
        return
    if outcome != YES_NO:
        raise ArgumentError("classes", f"must be left out for {outcome} outcomes: they are for yes/no")
    if len(set(classes)) != len(classes) or "" in classes or len(classes) != 2:
        remedy = "For more of them, ask one question of each: is it this one, or not?" * (len(classes) > 2)
        raise ArgumentError("classes", "must be two texts, no and then yes", ", ".join(classes), remedy)


def bounds_of(plan: AnyPlan) -> tuple[float, float]:
    """The lowest and the highest that an outcome can be."""
    return plan.rule.bounds if isinstance(plan, StagedPlan) else plan.gp.limits


def outcome_words(outcome: str, classes: Sequence[str] = ()) -> list[tuple[str, str]]:
    """(name, value) for a table of settings; nothing for real numbers."""
    if outcome == REAL:
        return []
    named = f"; {classes[1]!r} is yes, and {classes[0]!r} is no" if classes else ""
    return [("outcomes are", _WORDS[outcome] + named)]


def unit_words(outcome: str, output: str) -> str:
    """In what a std is told."""
    return {YES_NO: "as a probability", CLASSES: "as a probability", COUNT: "as a rate"}.get(
        outcome, f"in {output}'s unit"
    )


def named_predictions(outcome: str, found: Mapping[str, Any], classes: Sequence[str] = ()) -> dict[str, Any]:
    """Predictions by names that say what they are; std and interval are that of the last one."""
    rest = {name: values for name, values in found.items() if name != "mean"}
    if outcome == COUNT:
        return {"rate": found["mean"], **rest}
    if outcome == YES_NO:
        no, yes = classes or ("no", "yes")
        return {f"probability_{no}": 1 - found["mean"], f"probability_{yes}": found["mean"], **rest}
    return dict(found)
