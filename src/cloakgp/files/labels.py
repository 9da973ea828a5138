"""What a custodian calls a release: its title, the unit of its outcomes, its source and date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from cloakgp.core import checks
from cloakgp.core.errors import ArgumentError


@dataclass(frozen=True)
class Labels:
    """Words for pictures and reports, in the custodian's own: short, printable, and checked by nobody."""

    title: str = ""
    units: str = ""
    """Of outcomes: "cm", or "£" for £420k."""
    source: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            word = getattr(self, field.name)
            if not checks.is_printable(word, blank=True):
                expected = f"must be printable text of at most {checks.LONGEST_NAME} characters"
                raise ArgumentError(field.name, expected, f"{word!r:.100}")

    def changed(self, **given: str | None) -> Labels:
        """These, but for what is given."""
        return replace(self, **{name: word for name, word in given.items() if word is not None})

    def words(self) -> dict[str, str]:
        """For files: what is empty is left out."""
        return {name: word for name, word in asdict(self).items() if word}

    @classmethod
    def from_words(cls, words: Mapping[str, Any]) -> Labels:
        """What :meth:`words` gave, beside other words."""
        return cls(**{name: words[name] for name in NAMES if name in words})


NAMES = tuple(field.name for field in fields(Labels))
NONE = Labels()
