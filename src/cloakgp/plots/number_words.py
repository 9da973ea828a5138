"""Numbers as readers want them on an axis: £420k and 35 %, never 4.2e+05. Without matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from cloakgp.model.outcome import CHANCES

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_SIZES = ((1e9, "bn"), (1e6, "M"), (1e4, "k"))  # from where on a number is told in these
_MARKS = "£$€¥₹₽₩₺₪฿₴₫₦"


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """About so many round numbers from `low` to `high`."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / max(about, 1)))
    found = []
    for step in (power * one for one in _STEPS):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        found.append([k * step for k in range(first, last + 1)])
    return min(found, key=lambda ticks: abs(len(ticks) - about))


def tick_words(ticks: Sequence[float], unit: str = "", outcome: str = "") -> list[str]:
    """Numbers with a common size: 50k, 100k; with a sign of money before them, or % behind.

    Other units are said once, on the axis: see :func:`in_unit`. Probabilities are percentages.
    """
    largest = max((abs(tick) for tick in ticks), default=0.0)
    if outcome in CHANCES:
        return [f"{text} %" for text in _plain([100 * tick for tick in ticks])]
    size, word = next(((s, w) for s, w in _SIZES if largest >= s), (1.0, ""))
    if word == "k":
        size = 1e3
    texts = _plain([tick / size for tick in ticks])
    if unit == "%":
        return [f"{text}{word} %" for text in texts]
    return [
        _marked("0" if tick == 0 else f"{text}{word}", unit) for tick, text in zip(ticks, texts, strict=True)
    ]


def number_words(value: float, unit: str = "", outcome: str = "") -> str:
    """One number in a sentence, to three digits, with its unit: £420k, 172 cm, 35 %."""
    digits = value if value == 0 else round(value, 2 - math.floor(math.log10(abs(value))))
    (text,) = tick_words([digits], unit, outcome)
    return text if outcome in CHANCES or not in_unit("", unit) else f"{text} {unit}"


def in_unit(name: str, unit: str) -> str:
    """What an axis is called, with the unit unless its numbers have that."""
    said = not unit or unit == "%" or unit in _MARKS
    return name if said else f"{name}, {unit}" if name else unit


def _marked(text: str, unit: str) -> str:
    """With a sign of money, behind the minus."""
    if not unit or unit not in _MARKS:
        return text
    return f"−{unit}{text[1:]}" if text.startswith("−") else f"{unit}{text}"


def _plain(numbers: Sequence[float]) -> list[str]:
    """With as many decimals as tell them apart, and no more; thousands apart."""
    step = min((abs(b - a) for a, b in pairwise(numbers)), default=0.0)
    for decimals in range(7):
        near = all(abs(round(one, decimals) - one) <= max(1e-3 * step, 1e-9 * abs(one)) for one in numbers)
        if near:
            break
    return [f"{one:,.{decimals}f}".replace("-", "−") for one in numbers]
