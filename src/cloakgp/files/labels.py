"""What a custodian calls a release: its title, the unit of its outcomes, its source and date."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from cloakgp import checks
from cloakgp.errors import ArgumentError

Labelled_ = TypeVar("Labelled_", bound="Labelled")


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
            fine = isinstance(word, str) and len(word) <= checks.LONGEST_NAME and word.isprintable()
            if not fine:
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


class Labelled:
    """A release that may be given words for pictures and reports."""

    labels: Labels

    def labelled(
        self: Labelled_,
        *,
        title: str | None = None,
        units: str | None = None,
        source: str | None = None,
        date: str | None = None,
    ) -> Labelled_:
        """The same release with a title and more, which its file keeps and its pictures and reports show.

        Parameters
        ----------
        title, source, date : str, optional
            In your own words. What is absent stays as it is.
        units : str, optional
            Of the outcomes, such as "cm"; with a sign of money, such as "£", prices read £420k.
        """
        labels = self.labels.changed(title=title, units=units, source=source, date=date)
        other = copy.copy(self)  # with all that was worked out already
        object.__setattr__(other, "labels", labels)
        return other
