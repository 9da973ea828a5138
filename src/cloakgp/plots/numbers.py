"""Numbers as readers want them on an axis: £420k and 35 %, never 4.2e+05."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_MARKS = "£$€¥₹₽₩₺₪฿₴₫₦"


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """About so many round numbers from `low` to `high`."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / max(about, 1)))
    found = []
    for step in (power * one for one in (1.0, 2.0, 2.5, 5.0, 10.0)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        found.append([k * step for k in range(first, last + 1)])
    return min(found, key=lambda ticks: abs(len(ticks) - about))


def tick_words(ticks: Sequence[float], unit: str = "", percent: bool = False) -> list[str]:
    """Numbers with a common size: 50k, 100k; with a sign of money before them, or % behind.

    Other units are said once, on the axis: see :func:`in_unit`. `percent` is for probabilities.
    """
    if percent:
        return [f"{text} %" for text in _plain([100 * tick for tick in ticks])]
    largest = max((abs(tick) for tick in ticks), default=0.0)
    sizes = ((1e9, 1e9, "bn"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))  # 4,000 is no longer than 4k
    size, word = next(((size, word) for least, size, word in sizes if largest >= least), (1.0, ""))
    texts = _plain([tick / size for tick in ticks])
    if unit == "%":
        return [f"{text}{word} %" for text in texts]
    texts = ["0" if tick == 0 else f"{text}{word}" for tick, text in zip(ticks, texts, strict=True)]
    mark = unit if unit in _MARKS else ""
    return [f"−{mark}{text[1:]}" if text.startswith("−") else f"{mark}{text}" for text in texts]


def in_unit(name: str, unit: str) -> str:
    """What an axis is called, with the unit unless its numbers have that."""
    return name if unit == "%" or unit in _MARKS else f"{name}, {unit}"


def _plain(numbers: Sequence[float]) -> list[str]:
    """With as many decimals as tell them apart, and no more; thousands apart."""
    step = min((abs(b - a) for a, b in pairwise(numbers)), default=0.0)
    for decimals in range(7):
        near = all(abs(round(one, decimals) - one) <= max(1e-3 * step, 1e-9 * abs(one)) for one in numbers)
        if near:
            break
    return [f"{one:,.{decimals}f}".replace("-", "−") for one in numbers]
