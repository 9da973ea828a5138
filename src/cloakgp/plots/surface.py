"""The numbers of a surface over two inputs: what a map shows, whoever draws it. Without matplotlib.

>>> surface = surface_of(release)                                        # doctest: +SKIP
>>> view = surface.views["prediction"]                                   # doctest: +SKIP
>>> view.values.shape == (len(surface.up), len(surface.across))          # doctest: +SKIP

What is known of land without houses is what was known before: there the std is that of the prior, and
nothing is to be shown as if it were known. `surface.unknown` says where that is. All of it is free, and may
be published.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError
from cloakgp.data.chunks import spread_evenly
from cloakgp.data.columns import listed
from cloakgp.kernels.base import Constant, Kernel, Sum
from cloakgp.model.outcome import Outcome
from cloakgp.plots import shown
from cloakgp.plots.numbers import nice_ticks, tick_words
from cloakgp.release.plan import Plan
from cloakgp.release.release import Release
from cloakgp.release.showing import inputs_of

NEAR_PRIOR = 0.9
"""Total std, as a share of the prior's, from which on nothing is known but the level of all outcomes.

At 0.9 a fifth of the prior variance is gone.
"""
PREDICTION, UNCERTAINTY, PRIVACY = VIEWS = ("prediction", "uncertainty", "privacy")
_PLACES = (  # words across and up: in degrees, and in metres
    ({"lon", "long", "lng", "longitude"}, {"lat", "latitude"}),
    ({"easting", "eastings", "east"}, {"northing", "northings", "north"}),
)


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
        middle = max(-85.0, min(85.0, (low + high) / 2))  # beyond, no map like this is of use
        return 1.0 / math.cos(math.radians(middle))


def plane(plan: Plan, coordinates: Sequence[str] | None = None) -> Plane:
    """The columns of a surface: those given, or whose names are of places, or the first two of numbers.

    Degrees and metres are such by their names in each case.
    """
    names, numeric = [one.name for one in inputs_of(plan)], shown.numeric_inputs(plan)
    words = [set(re.split(r"[^a-z]+", name.lower())) for name in names]
    if coordinates is not None:
        pair = [coordinates] if isinstance(coordinates, str) else list(coordinates)
        known = {names[place]: place for place in numeric}
        if len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(known):
            expected = "must be the names of two inputs that are numbers, across and up"
            raise ArgumentError("coordinates", expected, repr(pair), f"There are {listed(list(known))}.")
        across, up = (known[name] for name in pair)
        return Plane(
            across, up, *(bool(words[across] & east and words[up] & north) for east, north in _PLACES)
        )
    for pairs, degrees in zip(_PLACES, (True, False), strict=True):
        found = [[place for place in numeric if words[place] & one] for one in pairs]
        if all(len(one) == 1 for one in found) and found[0] != found[1]:
            return Plane(found[0][0], found[1][0], degrees, not degrees)
    if len(numeric) < 2:
        raise ArgumentError("release", "must have two inputs that are numbers, for a surface over them")
    return Plane(numeric[0], numeric[1])


@dataclass(frozen=True, eq=False)
class View:
    """One picture of a surface."""

    name: str
    values: FloatArray
    """(rows, columns) as `up` and `across`."""
    low: float
    high: float
    """Where colours begin and end."""
    ticks: list[float]
    tick_words: list[str]
    label: str
    """Of the colour bar."""
    colours: str
    """The name that matplotlib and plotly have for the colour map."""
    hides_unknown: bool
    """Whether nothing is to be shown where nothing is known."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Prediction and std over a grid of two inputs, the others held. Made by :func:`surface_of`."""

    across: FloatArray
    """(n,) one input, in increasing order: longitude, where there is one."""
    up: FloatArray
    """(m,) the other."""
    names: tuple[str, str]
    """Of the two axes."""
    geographic: bool
    """Whether they are longitude and latitude."""
    aspect: float | None
    """How long a unit of `up` is drawn, in units of `across`; None if that is of no matter."""
    prediction: FloatArray
    """(m, n) denoised: a probability for yes/no outcomes, a rate for counts."""
    std: FloatArray
    """(m, n) of the prediction in total: GP and privacy together."""
    prior_std: FloatArray
    """(m, n) what it would be if nothing were known there but the level that all outcomes share."""
    inputs: FloatArray | None
    """(k, 2) public inputs, some thousands at most; None where inputs are private."""
    held: dict[str, Any]
    """What the other inputs are held at, by name."""
    views: dict[str, View]
    """The pictures: prediction, uncertainty, privacy; or those of them that were asked for."""

    @property
    def near_prior(self) -> FloatArray:
        """(m, n) std as a share of the prior's; unknown from :data:`NEAR_PRIOR` on."""
        return self.std / self.prior_std

    @cached_property
    def unknown(self) -> NDArray[np.bool_]:
        """(m, n) where `std` is at least 90 % of `prior_std`: nothing to speak of was learned there."""
        return np.asarray(self.std >= NEAR_PRIOR * self.prior_std)


def surface_of(
    release: Release,
    *,
    coordinates: Sequence[str] | None = None,
    geographic: bool | None = None,
    held: Mapping[str, Any] | None = None,
    units: str = "",
    of: Any = None,
    points: int = 48,
    views: Sequence[str] = VIEWS,
) -> Surface:
    """The numbers of a surface over two inputs.

    Parameters
    ----------
    release : Release
        With two inputs at least that are numbers.
    coordinates : (str, str), optional
        Names of two inputs: across and up. If absent, those whose names are of places (lon, long, lng or
        longitude; lat or latitude; easting and northing), or the first two.
    geographic : bool, optional
        Whether the two are longitude and latitude, so that a degree up is drawn as long as it is. If absent,
        their names say.
    held : mapping of names to values, optional
        Where the other inputs are held; at their medians or first levels if absent.
    units : str
        Of the outcomes: "£" for £420k on the colour bar.
    of : a class, optional
        Whose probability is wanted, where outcomes are one of several classes; the first if absent.
    points : int
        Of the grid, along its longer side.
    views : names out of {"prediction", "uncertainty", "privacy"}
        Which pictures are wanted. Privacy's share takes longest.

    Returns
    -------
    Surface
    """
    for name in views:
        checks.choice(name, "views", VIEWS)
    plan = release.plan
    columns = inputs_of(plan)
    axes = plane(plan, coordinates)
    if geographic is not None:
        axes = replace(axes, degrees=geographic, metres=axes.metres and not geographic)
    (west, east), (south, north) = (_range(release, place) for place in (axes.across, axes.up))
    aspect = axes.aspect(south, north)
    n, m = _sizes(points, (east - west, (north - south) * aspect) if aspect else None)
    across, up = np.linspace(west, east, n), np.linspace(south, north, m)
    middle, others = _held(plan, axes, held or {})
    where = _over(middle, axes, across, up)
    which = _class(release, of)
    found = (*_predicted(release, where, which), prior_std(release, where, which))
    mean, std, prior = (part.reshape(m, n) for part in found)
    values = {PREDICTION: mean, UNCERTAINTY: std}
    if PRIVACY in views:
        values[PRIVACY] = _privacy(release, middle, axes, (across, up), which)
    words = shown.predicted_words(plan, units)
    if which is not None:
        words = f"probability of {release.classes[which]}"
    unknown = std >= NEAR_PRIOR * prior
    known = mean if unknown.all() else mean[~unknown]
    asked = {name: one for name, one in values.items() if name in views}
    drawn = _views(asked, (float(known.min()), float(known.max())), words, units, plan.outcome)
    public, inputs = shown.public_inputs(plan), None
    if public is not None:
        inputs = public[0][:, [axes.across, axes.up]]
        inputs = inputs[((inputs >= [west, south]) & (inputs <= [east, north])).all(axis=1)]
    return Surface(
        across=across,
        up=up,
        names=(columns[axes.across].label, columns[axes.up].label),
        geographic=axes.degrees,
        aspect=aspect,
        prediction=mean,
        std=std,
        prior_std=prior,
        inputs=inputs,
        held=others,
        views=drawn,
    )


def _class(release: Release, of: Any) -> int | None:
    """The number of a class; None where outcomes are not of several."""
    classes = shown.classes_of(release)
    if not classes:
        if of is not None:
            raise ArgumentError("of", "must be left out: outcomes are not one of several classes", repr(of))
        return None
    if of is not None and of not in classes:
        raise ArgumentError("of", f"must be one of the classes, {listed(classes)}", repr(of))
    return 0 if of is None else classes.index(of)


def prior_std(release: Release, X: FloatArray, which: int | None = None) -> FloatArray:
    """(n,) std at X of what is predicted if nothing were known there but the level that all outcomes share.

    The level is soon known, and says nothing of one place rather than of another; so it does not count.
    """
    learned: Any = release.learned if release.plan.denoises else None
    if learned is None:
        return prior_std_of_plan(release.plan, X)
    learned = learned if which is None else learned.each[which]
    each = np.array([_varying(one.gp.kernel, X) for one in learned.posteriors])
    if release.plan.outcome.link is None:
        return np.asarray(np.sqrt(learned.weights @ each))
    inputs = spread_evenly(release.plan.rule.inputs.X, 200)  # enough to see the level of all
    level = learned.latent.predict(inputs).mean() - learned.law.middle
    means, variances, _ = learned.law.moments(np.full_like(each, level), each, learned.noise)
    apart = means - learned.weights @ means
    return np.asarray(np.sqrt(learned.weights @ (variances + apart**2)))


def prior_std_of_plan(plan: Plan, X: FloatArray) -> FloatArray:
    """(n,) the same before a release: of the one model with the covariances of all that may be learned."""
    varying = _varying(plan.gp.kernel, X)
    if plan.outcome.link is None:
        return np.sqrt(varying)
    return np.asarray(np.sqrt(plan.rule.law.moments(np.zeros(len(X)), varying, plan.gp.noise)[1]))


def will_be_unknown(plan: Plan, X: FloatArray, expected_error: FloatArray) -> NDArray[np.bool_]:
    """(n,) whether nothing to speak of will be learned at X, where a plan expects this error."""
    return np.asarray(expected_error >= NEAR_PRIOR * prior_std_of_plan(plan, X))


def _varying(kernel: Kernel, X: FloatArray) -> FloatArray:
    """(n,) prior variance, without that of a constant."""
    parts = kernel.kernels if isinstance(kernel, Sum) else (kernel,)
    differ = [part for part in parts if not isinstance(part, Constant)] or parts
    return np.asarray(np.sum([np.asarray(part.diag(X), dtype=np.float64) for part in differ], axis=0))


def is_unknown(release: Release, X: FloatArray, of: Any = None) -> NDArray[np.bool_]:
    """(n,) whether nothing to speak of was learned at X: the total std is about the prior's.

    Of several classes, of one of them; the first if absent.
    """
    which = _class(release, of)
    return np.asarray(_predicted(release, X, which)[1] >= NEAR_PRIOR * prior_std(release, X, which))


def _over(middle: FloatArray, axes: Plane, across: FloatArray, up: FloatArray) -> FloatArray:
    """(m n, D) the points of a grid, row by row."""
    where = np.tile(middle, (len(across) * len(up), 1))
    where[:, axes.across], where[:, axes.up] = (part.ravel() for part in np.meshgrid(across, up))
    return where


def _predicted(release: Release, X: FloatArray, which: int | None) -> tuple[FloatArray, FloatArray]:
    """Prediction and its total std, of one class if there are several.

    Of a function that hides its inputs, its values and the std of their noise.
    """
    mean, std = release.predict(X, return_std=True) if release.plan.denoises else release.released_at(X)
    return (mean, std) if which is None else (mean[:, which], std[:, which])


def _privacy(
    release: Release,
    middle: FloatArray,
    axes: Plane,
    sides: tuple[FloatArray, FloatArray],
    which: int | None,
) -> FloatArray:
    """(m, n) privacy's share of the variance."""
    from scipy.interpolate import RegularGridInterpolator

    across, up = sides
    if not release.plan.denoises:
        return np.ones((len(up), len(across)))
    # At fewer points: it takes longer to work out, and is smoother.
    coarse = [np.linspace(each[0], each[-1], min(len(each), 14)) for each in (up, across)]
    found = release.uncertainty(_over(middle, axes, coarse[1], coarse[0]), include_noise=False)
    share = (found.privacy / np.maximum(found.total, 1e-300)) ** 2
    share = share if which is None else share[:, which]
    method: Any = "cubic" if min(map(len, coarse)) > 3 else "linear"
    between = RegularGridInterpolator(coarse, share.reshape([len(each) for each in coarse]), method)
    everywhere = np.stack(np.meshgrid(up, across, indexing="ij"), axis=-1)
    return np.asarray(np.clip(between(everywhere), 0.0, 1.0))


def _range(release: Release, place: int) -> tuple[float, float]:
    """From where to where a column is drawn: the box, the test points, or, if these are few, the inputs."""
    plan, grid = release.plan, release.plan.grid
    if grid is not None:
        return grid.axes[place].low, grid.axes[place].high
    found = release.X_star if plan.function is None else plan.shown_inputs
    if len(np.unique(found[:, place])) < 3:
        found = np.concatenate([found, plan.shown_inputs])
    low, high = float(found[:, place].min()), float(found[:, place].max())
    room = 0.02 * (high - low) or 0.5
    return low - room, high + room


def _sizes(points: int, lengths: tuple[float, float] | None) -> tuple[int, int]:
    """How many points across and up."""
    points = checks.whole(points, "points", 2, 500)
    if lengths is None:
        return points, points
    longer = max(lengths)
    n, m = (max(points // 4, 2, round(points * length / longer)) for length in lengths)
    return n, m


def _held(plan: Plan, axes: Plane, given: Mapping[str, Any]) -> tuple[FloatArray, dict[str, Any]]:
    """(D,) where all inputs are but for two; and the same in words."""
    middle, said, columns = shown.middle_of(plan), dict[str, Any](), inputs_of(plan)
    others = {one.name: place for place, one in enumerate(columns) if place not in (axes.across, axes.up)}
    unknown = [name for name in given if name not in others]
    if unknown:
        raise ArgumentError("held", "must name inputs other than the two axes", repr(unknown[0]))
    for name, place in others.items():
        levels = columns[place].levels
        if not levels:
            said[name] = middle[place] = float(given.get(name, middle[place]))
            continue
        said[name] = given.get(name, levels[int(middle[place])])
        if said[name] not in levels:
            raise ArgumentError("held", f"must be a level of {name!r}", repr(said[name]))
        middle[place] = levels.index(said[name])
    return middle, said


def _views(
    parts: Mapping[str, FloatArray], ends: tuple[float, float], what: str, unit: str, outcome: Outcome
) -> dict[str, View]:
    """Each of these numbers as a picture; `ends` are those of the predictions that are known."""
    of_std = f"std of the {what}" if outcome.percent else f"std of {what}"
    how = {  # colour maps that are uniform, and safe for the colour-blind
        PREDICTION: (what, unit, outcome.percent, "viridis"),
        UNCERTAINTY: (of_std, unit, outcome.percent, "magma"),
        PRIVACY: ("privacy's share of the variance", "", True, "cividis"),
    }
    views = {}
    for name, values in parts.items():
        label, unit_of, percent, colours = how[name]
        low, high = 0.0, 1.0 if name == PRIVACY else float(values.max())
        if name == PREDICTION:
            low, high = ends
            if high - low <= 1e-9 * max(abs(low), abs(high)):  # a flat surface is one colour, in the middle
                room = abs(low) * 0.05 or 0.5
                low, high = low - room, high + room
        ticks = nice_ticks(low, high)
        words = tick_words(ticks, unit_of, percent)
        views[name] = View(name, values, low, high, ticks, words, label, colours, name == PREDICTION)
    return views
