"""Numbers as people type them: 2,000,000 and 50,5. What may be two numbers is not guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cloakgp.errors import InputError

_OPTIONS = {
    **dict.fromkeys(("--noise", "--mean", "--epsilon", "--delta", "--within", "--level", "--loss-clip"), 1),
    **dict.fromkeys(("--then-epsilon", "--then-delta"), 1),
    "--bounds": 2,
}
"""Those that take numbers, and how many."""
_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?:,\d{3}){2,}(?:\.\d*)?|,\d{3}\.\d+)")  # 2,000,000 or 2,000.5
_POINT_GROUPS = re.compile(
    r"[+-]?[1-9]\d{0,2}(?:(?:\.\d{3}){2,}(?:,\d+)?|\.\d{3},\d+)"
)  # 2.000.000 or 2.000,5
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_DECIMAL = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")


def plain(word: str, option: str) -> str:
    """A number without commas, as every option takes it; what is none stays as it is."""
    if _GROUPS.fullmatch(word):
        return word.replace(",", "")
    if _POINT_GROUPS.fullmatch(word):
        return word.replace(".", "").replace(",", ".")
    if _EITHER.fullmatch(word):
        thousands, decimal = word.replace(",", ""), f"{float(word.replace(',', '.')):g}"
        raise InputError(f"{option}: {word} may be {thousands} or {decimal}. Write {thousands} or {decimal}.")
    return word.replace(",", ".") if _DECIMAL.fullmatch(word) else word


def plain_words(typed: Sequence[str]) -> list[str]:
    """A command line with plain numbers behind the options that take some."""
    words, option, left = [], "", 0
    for word in typed:
        name, sign, value = word.partition("=")
        if name in _OPTIONS:
            option, left = name, 0 if sign else _OPTIONS[name]
            words.append(f"{name}={plain(value, name)}" if sign else word)
            continue
        words.append(plain(word, option) if left else word)
        left = max(left - 1, 0)
    return words
