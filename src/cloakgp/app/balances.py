"""What is left of a budget, as numbers and in words."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cloakgp.app.cache import Cache
from cloakgp.ledger import Balance
from cloakgp.workflow.spending import Request

Left = tuple[float, float, float]
_LEFT: Cache[Left] = Cache(1000)


def left(balance: Balance) -> Left:
    """What is left for a release and for a selection, and what was spent, as epsilon."""
    return _LEFT.get(
        (balance.budget, balance.events),
        lambda: (balance.left_for_release(), balance.left_for_selection(), balance.spent),
    )


def quote_words(dataset: str, fits: bool, known: bool, before: Left, after: Left) -> str:
    """What a quote says to people."""
    if known:
        return f"This was released before from the budget of {dataset}: the same answer again costs nothing."
    if not fits:
        return (
            f"This does not fit: {dataset} has epsilon {_down(before[0])} left for one more release. Plan "
            "with a smaller epsilon."
        )
    return (
        f"{dataset} has epsilon {_down(before[0])} left for one more release now, and {_down(after[0])} "
        "after this one. It cannot be undone."
    )


def told(asked: Request) -> dict[str, Any]:
    """What a release would read and promise, beside a quote."""
    promise = {"unit": asked.unit, "epsilon": asked.epsilon, "delta": asked.delta}
    return {"reads": asdict(asked.reads), **promise, "lists": list(asked.lists)}


def _down(epsilon: float) -> str:
    """Four digits, rounded down: what is said to be left must fit."""
    return f"{int(epsilon * 1e4 * (1 + 2e-9)) / 1e4:g}"
