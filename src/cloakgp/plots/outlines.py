"""The outline of a country or a city, from a GeoJSON file: nothing else is needed for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError

_LARGEST = 50_000_000  # bytes
_DEEPEST = 20  # collections within collections


def outline_of(path: str | os.PathLike[str]) -> list[FloatArray]:
    """The lines of a GeoJSON file, each as (n, 2) points: longitude and latitude, or as its inputs are.

    Borders of areas, and lines; points are left out.
    """
    expected = "must be a GeoJSON file with areas or lines"
    if not Path(path).is_file() or Path(path).stat().st_size > _LARGEST:
        raise ArgumentError("outline", f"{expected}, of at most {_LARGEST // 10**6} MB", str(path))
    try:
        lines = list(_lines(json.loads(Path(path).read_text(encoding="utf-8-sig")), 0))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        lines = []
    if not lines:
        raise ArgumentError("outline", expected, str(path))
    return lines


def _lines(found: Any, depth: int) -> Iterator[FloatArray]:
    if found is None or depth > _DEEPEST:
        return
    kind = found["type"]
    if kind == "FeatureCollection":
        for feature in found["features"]:
            yield from _lines(feature, depth + 1)
    elif kind == "Feature":
        yield from _lines(found["geometry"], depth + 1)
    elif kind == "GeometryCollection":
        for geometry in found["geometries"]:
            yield from _lines(geometry, depth + 1)
    elif kind in _NESTED:
        yield from _nested(found["coordinates"], _NESTED[kind])


_NESTED = {"LineString": 0, "MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}  # lists around a line


def _nested(coordinates: Any, depth: int) -> Iterator[FloatArray]:
    if depth:
        for part in coordinates:
            yield from _nested(part, depth - 1)
        return
    line = np.array([place[:2] for place in coordinates], dtype=np.float64)
    if line.ndim != 2 or line.shape[1] != 2 or not np.isfinite(line).all():
        raise ValueError
    yield line
