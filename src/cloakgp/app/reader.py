"""What is read of releases: numbers, predictions, maps, pictures, reports. Free, and the same each time."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from cloakgp.app.errors import bad_input, public_work
from cloakgp.app.limits import Most
from cloakgp.app.releases import Releases
from cloakgp.app.settings import AskMap, AskPicture, Drawn, as_points, coded, level
from cloakgp.app.work import Cache, current
from cloakgp.core.checks import FloatArray
from cloakgp.data.chunks import spread_evenly
from cloakgp.data.columns import Columns
from cloakgp.ledger import Ledger
from cloakgp.measure.statistics import Bin, Present
from cloakgp.plots import surface_of
from cloakgp.plots.shown import classes_of
from cloakgp.plots.surface import VIEWS, is_unknown, plane
from cloakgp.release.release import Release
from cloakgp.verification import verify
from cloakgp.workflow import releases as release_files
from cloakgp.workflow import report, tables
from cloakgp.workflow.pictures import has_map, release_map, release_pictures

_NUMBERS = {"denoised": "mean", "denoised_std": "std", "lower": "lower", "upper": "upper"}
_drawing = threading.Lock()
"""One picture at a time: matplotlib is not made for several threads."""


class Reader:
    """Reads the releases in the data folder; what takes a while is kept."""

    def __init__(self, releases: Releases) -> None:
        self._releases = releases
        self._arrays: Cache[dict[str, Any]] = Cache(16)
        self._reports: Cache[str] = Cache(16)
        self._verified: Cache[dict[str, Any]] = Cache(256)
        self._maps: Cache[dict[str, Any]] = Cache(64)

    def with_arrays(self, release_id: str) -> dict[str, Any]:
        """What is known about a release, and its numbers."""
        self._releases.get(release_id)
        return self._arrays.get(release_id, lambda: self._with_arrays(release_id))

    def _with_arrays(self, release_id: str) -> dict[str, Any]:
        release = self._releases.load(release_id)
        with public_work():
            where = release_files.default_points(release)
            released, noise = release.released_at(where)
            denoised = release_files.can_denoise(release)
            found = release_files.predictions(release, where) if denoised else {}
            numbers: dict[str, Any] = {"by_class": _by_class(release, found)}
            if numbers["by_class"]:
                for each, own, one in zip(numbers["by_class"], noise.T, classes_of(release), strict=True):
                    each |= {"noise_std": own, "unknown": is_unknown(release, where, one)}
            else:
                numbers |= {"released": released, "noise_std": noise}
                numbers |= {name: found.get(own) for name, own in _NUMBERS.items()}
                numbers["unknown"] = is_unknown(release, where) if denoised else None
            X = where[:0] if release.plan.hides_inputs else release.plan.shown_inputs
            return {
                **self._releases.get(release_id),
                **numbers,
                **learned_tables(release),
                "model_check": release_files.model_check(release),
                "has_map": has_map(release, coordinates=()),  # of any two
                "points": where,
                "columns": _columns(release).inputs,
                "inputs_sample": spread_evenly(X, Most.sample),
                "density": _density_of(release),
            }

    def predict(
        self, release_id: str, points: list[list[Any]], level: float, include_noise: bool
    ) -> dict[str, Any]:
        """Mean, std and interval anywhere, or each class's; one question has one answer for ever."""
        release = self._releases.load(release_id)
        with public_work():
            X = as_points(_columns(release), points)
            found = release_files.predictions(release, X, level, include_noise)
            if not all(np.isfinite(values).all() for values in found.values()):
                raise bad_input("points: the prediction is not a finite number at some of them.")
            of_classes = _by_class(release, found)
        numbers = {name: None if of_classes else found[name].tolist() for name in _NUMBERS.values()}
        return {**numbers, "by_class": of_classes}

    def table(self, release_id: str) -> bytes:
        """The released numbers as CSV."""
        release = self._releases.load(release_id)
        with public_work():
            return tables.encoded(
                release_files.released_table(release, release_files.default_points(release))
            )

    def picture(self, release_id: str, kind: str, asked: AskPicture) -> bytes:
        """The most telling picture, or a map that somebody chose, as .png, .svg or .pdf."""
        if not asked.model_fields_set:
            with public_work(), _drawing:
                return next(release_pictures(self._releases.load(release_id))).encoded(kind)
        release, chosen = self._chosen(release_id, asked)
        with public_work(), _drawing:
            return release_map(release, asked.view, **chosen).encoded(kind)

    def report(self, release_id: str, ledger: Ledger | None) -> str:
        """The report, as HTML; with what is left of the budget, if there is a ledger to ask."""
        record = self._releases.get(release_id)
        spends = None if ledger is None else len(ledger.balance(record["dataset"]).events)

        def draw() -> str:
            with public_work(), _drawing:
                title = record.get("labels", {}).get("title", record["name"])
                return report.html(self._releases.path(release_id), title=title, ledger=ledger)

        return self._reports.get((release_id, spends), draw)

    def verified(self, release_id: str) -> dict[str, Any]:
        """Whether the release file keeps what it promises; worked out once for each state of the file."""
        path = self._releases.path(release_id)
        if not path.exists():
            return {
                "ok": False,
                "complete": False,
                "words": "the release file is gone. Start the server again: it will be made anew.",
            }

        def check() -> dict[str, Any]:
            try:
                found = verify(path)
            except ValueError as error:
                return {"ok": False, "complete": False, "words": str(error)}
            earlier = [{"epsilon": epsilon, "delta": delta} for epsilon, delta in found.earlier]
            return {"ok": True, "complete": found.complete, "words": str(found), "earlier": earlier}

        seen = path.stat()
        return self._verified.get((release_id, seen.st_ino, seen.st_mtime_ns, seen.st_size), check)

    def map(self, release_id: str, asked: AskMap) -> dict[str, Any]:
        """The map of a release; a coarse one, to begin with, unless the fine one is there."""
        release, chosen = self._chosen(release_id, asked)
        current().doing = ("map", 0, 0)
        which = (release_id, asked.model_dump_json(exclude={"coarse"}))
        coarse = asked.coarse and not self._maps.has((False, *which))

        def make() -> dict[str, Any]:
            with public_work():
                surface = surface_of(
                    release,
                    **chosen,
                    units=release.labels.units,
                    points=16 if coarse else 48,  # along the longer side
                    views=VIEWS[:2] if coarse else VIEWS,  # privacy's share takes longest
                )
                axes = plane(release.plan, asked.coordinates)
            near, inputs = surface.near_prior, surface.inputs
            if not all(
                np.isfinite(each).all() for each in (near, *(v.values for v in surface.views.values()))
            ):
                raise bad_input("this release has no map: the prediction is not a finite number somewhere.")
            return {
                **vars(surface),
                "places": [axes.across, axes.up],
                "coarse": coarse,
                "near_prior": near,
                "inputs": None if inputs is None else spread_evenly(inputs, 1500),
                "held": {
                    name: one if isinstance(one, float) else str(one) for name, one in surface.held.items()
                },
            }

        return self._maps.get((coarse, *which), make)

    def _chosen(self, release_id: str, asked: Drawn) -> tuple[Release, dict[str, Any]]:
        """A release that has a map, and what is to be on it."""
        release = self._releases.load(release_id)
        if not has_map(release, coordinates=()):  # of any two
            raise bad_input("this release has no map: it needs two inputs that are numbers.")
        with public_work():
            held = _held(release, asked.held)
        axes = asked.model_dump(include=set(Drawn.model_fields))
        return release, {**axes, "held": held}


def _by_class(release: Release, found: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Predictions for each class by its public name; None where outcomes are not of classes, or unknown."""
    if not found:
        return None
    return [
        {
            "name": str(one),
            "probability": found[str(one)].tolist(),
            **{part: found[f"{one} {part}"].tolist() for part in ("std", "lower", "upper")},
        }
        for one in classes_of(release)
    ] or None


def _density_of(release: Release) -> dict[str, Any] | None:
    """How many rows each cell has, about, where inputs are private; None elsewhere."""
    grid = release.plan.grid
    if grid is None:
        return None
    return {"points": grid.centres, "rows": release.density.counts, "std": release.density.std}


def learned_tables(release: Release) -> dict[str, Any]:
    """What was learned, None for a release whose model was given; and how its stages went, if it has any."""
    if release.plan.alone:
        return {"learned": None, "stages": None}
    counts, stages = release.rule.inputs.counts, []
    for stage, share in zip(release.stages, release.plan.shares, strict=False):  # it may have stopped early
        width = None
        if not isinstance(stage.measurement.statistic, (Bin, Present)):
            widths = np.broadcast_to(np.asarray(stage.upper) - np.asarray(stage.lower), counts.shape)
            width = float(np.average(widths, weights=counts))
        outside = None if stage.outside is None or stage.outside.part is None else stage.outside.part.share
        stages.append({"share": share, "width": width, "outside": outside})
    learned = [
        {"what": what, "unit": unit, **_range(values, release.weights)}
        for what, unit, values in release_files.learned(release)
    ]
    return {"learned": learned or None, "stages": stages}


def _range(values: FloatArray, weights: FloatArray, likely: float = 0.9) -> dict[str, float]:
    """About how much, and the least and the most among the models that hold nearly all of the weight."""
    heaviest = np.argsort(-weights, kind="stable")
    held = np.cumsum(weights[heaviest])
    kept = values[heaviest[: 1 + int(np.searchsorted(held, likely * held[-1]))]]
    about = np.exp(np.average(np.log(values), weights=weights))
    return {"about": float(about), "low": float(kept.min()), "high": float(kept.max())}


def _columns(release: Release) -> Columns:
    assert release.plan.columns is not None  # a table has names
    return release.plan.columns


def _held(release: Release, held: dict[str, Any]) -> dict[str, Any]:
    """Where inputs are held, as the library has it: levels by themselves, dates as numbers."""
    found = {}
    for column in _columns(release).inputs:
        if column.name in held:
            cell = held[column.name]
            if column.levels:
                found[column.name] = level(column, cell)
            else:
                found[column.name] = float(coded(column, [cell], "held")[0])
    return held | found
