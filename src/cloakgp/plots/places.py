"""Which inputs are places on the earth: longitude across, latitude up. Without matplotlib."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cloakgp.errors import ArgumentError
from cloakgp.rows.columns import listed

_ACROSS = {"lon", "long", "lng", "longitude"}
_UP = {"lat", "latitude"}
_METRES = ({"easting", "eastings", "east"}, {"northing", "northings", "north"})
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
    coordinates : (longitude, latitude), optional
        Their names, or those of any other pair.
    """
    if coordinates is not None:
        return _given(list(names), numeric, coordinates)
    parts = [set(re.split(r"[^a-z]+", name.lower())) for name in names]
    for (across, up), degrees in (((_ACROSS, _UP), True), (_METRES, False)):
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
            "must be the names of two inputs that are numbers, longitude first",
            repr(pair),
            f"There are {listed(known)}.",
        )
    across, up = names.index(pair[0]), names.index(pair[1])
    words = [set(re.split(r"[^a-z]+", name.lower())) for name in pair]
    metres = bool(words[0] & _METRES[0] and words[1] & _METRES[1])
    return Plane(across, up, not metres, metres)
