"""Which inputs are places on the earth: longitude across, latitude up. Without matplotlib."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cloakgp.errors import ArgumentError
from cloakgp.rows.columns import listed

_PLACES = (  # words across and up: in degrees, and in metres
    ({"lon", "long", "lng", "longitude"}, {"lat", "latitude"}),
    ({"easting", "eastings", "east"}, {"northing", "northings", "north"}),
)
_STEEPEST = 85.0  # degrees of latitude, beyond which no map like this is of use


@dataclass(frozen=True)
class Plane:
    """Two input columns as the axes of a surface."""

    across: int
    up: int
    degrees: bool = False
    """Whether they are longitude and latitude."""
    metres: bool = False
    """Whether a unit is as long across as up."""

    def aspect(self, low: float, high: float) -> float | None:
        """How long a unit up is, in units across, if it goes from `low` to `high`; None if that is no matter.

        A degree of latitude is 1 / cos(latitude) times as long as one of longitude.
        """
        if self.metres:
            return 1.0
        if not self.degrees:
            return None
        middle = max(-_STEEPEST, min(_STEEPEST, (low + high) / 2))
        return 1.0 / math.cos(math.radians(middle))


def plane(names: Sequence[str], numeric: Sequence[int], coordinates: Sequence[str] | None = None) -> Plane:
    """The columns of a surface: those given, those whose names are of places, or the first two.

    Parameters
    ----------
    names : of all inputs
    numeric : which of these are numbers
    coordinates : (str, str), optional
        The pair's names, across and up. Degrees and metres are such by their names here, too.
    """
    if coordinates is not None:
        return _given(list(names), numeric, coordinates)
    parts = [_words(name) for name in names]
    for (across, up), degrees in zip(_PLACES, (True, False), strict=True):
        found = [[place for place in numeric if parts[place] & words] for words in (across, up)]
        if all(len(one) == 1 for one in found) and found[0] != found[1]:
            return Plane(found[0][0], found[1][0], degrees, not degrees)
    if len(numeric) < 2:
        raise ArgumentError("release", "must have two inputs that are numbers, for a surface over them")
    return Plane(numeric[0], numeric[1])


def _given(names: list[str], numeric: Sequence[int], coordinates: Sequence[str]) -> Plane:
    pair = [coordinates] if isinstance(coordinates, str) else list(coordinates)
    known = [names[place] for place in numeric]
    if len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(known):
        raise ArgumentError(
            "coordinates",
            "must be the names of two inputs that are numbers, across and up",
            repr(pair),
            f"There are {listed(known)}.",
        )
    across, up = names.index(pair[0]), names.index(pair[1])
    words = [_words(name) for name in pair]
    degrees, metres = (bool(words[0] & east and words[1] & north) for east, north in _PLACES)
    return Plane(across, up, degrees, metres)


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z]+", name.lower()))
