"""Maps of releases: a surface over two inputs, worked out once and kept. Free, and public."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp.app import models
from cloakgp.app.cache import Cache
from cloakgp.app.current_request import current
from cloakgp.app.errors import bad_input, public_work
from cloakgp.app.public_inputs import coded
from cloakgp.app.releases import Releases, drawing, known_columns
from cloakgp.plans.opening import AnyRelease
from cloakgp.plots import NEAR_PRIOR, Surface, plane, surface_of
from cloakgp.plots.labels import classes_of, numeric_inputs
from cloakgp.plots.surface import VIEWS
from cloakgp.rows.chunks import spread_evenly
from cloakgp.rows.columns import Column
from cloakgp.workflow.pictures import has_map, release_map

_FINE, _COARSE = 48, 16  # points along the longer side
_DOTS = 1500


class Maps:
    """The maps of the releases in the data folder."""

    def __init__(self, releases: Releases) -> None:
        self._releases = releases
        self._kept: Cache[dict[str, Any]] = Cache(64)

    def get(self, release_id: str, asked: models.AskMap) -> dict[str, Any]:
        """The map of a release; a coarse one, to begin with, unless the fine one is there."""
        release, chosen = self._chosen(release_id, asked)
        current().doing = ("map", 0, 0)
        which = (release_id, asked.model_dump_json(exclude={"coarse"}))
        coarse = asked.coarse and not self._kept.has((False, *which))

        def make() -> dict[str, Any]:
            with public_work():
                surface = surface_of(
                    release,
                    **chosen,
                    units=release.labels.units,
                    points=_COARSE if coarse else _FINE,
                    views=VIEWS[:2] if coarse else VIEWS,  # privacy's share takes longest
                )
                axes = plane(chosen["names"], numeric_inputs(release.plan), asked.coordinates)
            return {"places": [axes.across, axes.up], "coarse": coarse, **_shown(surface)}

        return self._kept.get((coarse, *which), make)

    def picture(self, release_id: str, kind: str, view: str, asked: models.AskMap) -> bytes:
        """The same map as .png, .svg or .pdf."""
        release, chosen = self._chosen(release_id, asked)
        with drawing():
            return release_map(release, view, **chosen).encoded(kind)

    def _chosen(self, release_id: str, asked: models.AskMap) -> tuple[AnyRelease, dict[str, Any]]:
        """A release that has a map, and what is to be on it."""
        settings, release = self._releases.get(release_id)["settings"], self._releases.load(release_id)
        names = settings["inputs"]
        if not has_map(release, names, coordinates=()):  # of any two
            raise bad_input("this release has no map: it needs two inputs that are numbers.")
        with public_work():
            held = _held(release, names, asked.held)
        axes = {"coordinates": asked.coordinates, "geographic": asked.geographic, "held": held}
        named = {"names": names, "output": settings["output"], "of": _class(release, asked.of)}
        return release, {**axes, **named}


def _class(release: AnyRelease, of: str | None) -> str | None:
    """The class that is meant: the first if nobody says; none where there are no classes."""
    named = [str(one) for one in classes_of(release)]
    if of is not None and of not in named:
        raise bad_input("of: must be one of the release's classes, or be left out where it has none.")
    return of or next(iter(named), None)


def _held(release: AnyRelease, names: list[str], held: dict[str, Any]) -> dict[str, Any]:
    """Where inputs are held, as the library has it: levels by themselves, dates as numbers."""
    columns, found = known_columns(release), {}
    for name, cell in held.items():
        if name not in names:
            raise bad_input(f"held: there is no input {name!r:.100}.")
        column = Column(name) if columns is None else columns.inputs[names.index(name)]
        number = float(coded(column, [cell], "held")[0])
        if column.levels and number not in range(len(column.levels)):
            raise bad_input(f"held: must be a level of {name!r}; got {cell!r:.100}.")
        found[name] = column.levels[int(number)] if column.levels else number
    return found


def _shown(surface: Surface) -> dict[str, Any]:
    parts = [view.values for view in surface.views.values()]
    if not all(np.isfinite(values).all() for values in (*parts, surface.near_prior)):
        raise bad_input("this release has no map: the prediction is not a finite number somewhere.")
    inputs = surface.inputs
    return {
        "across": surface.across.tolist(),
        "up": surface.up.tolist(),
        "aspect": surface.aspect,
        "geographic": surface.geographic,
        "near_prior": surface.near_prior.tolist(),
        "unknown_from": NEAR_PRIOR,
        "inputs": None if inputs is None else spread_evenly(inputs, _DOTS).tolist(),
        "held": {
            name: value if isinstance(value, float) else str(value) for name, value in surface.held.items()
        },
        "views": {
            name: {
                "values": view.values.tolist(),
                "low": view.low,
                "high": view.high,
                "ticks": view.ticks,
                "tick_words": view.tick_words,
                "label": view.label,
                "hides_unknown": view.hides_unknown,
            }
            for name, view in surface.views.items()
        },
    }
