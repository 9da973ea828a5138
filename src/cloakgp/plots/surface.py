"""The numbers of a surface over two inputs: what a map shows, whoever draws it. Without matplotlib.

>>> surface = surface_of(release)                                        # doctest: +SKIP
>>> view = surface.views["prediction"]                                   # doctest: +SKIP
>>> view.values.shape == (len(surface.up), len(surface.across))          # doctest: +SKIP

What is known of land without houses is what was known before: there the std is that of the prior, and
nothing is to be shown as if it were known. `surface.unknown` says where that is. All of it is free, and may
be published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.kernels.base import Constant, Kernel, Sum
from cloakgp.model.outcome import CHANCES, YES_NO
from cloakgp.plans.functions import FunctionRelease
from cloakgp.plans.opening import AnyPlan, AnyRelease
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.plots.labels import classes_of, columns_of, numeric_inputs, outcome_of, predicted_words
from cloakgp.plots.number_words import nice_ticks, tick_words
from cloakgp.plots.places import Plane, plane
from cloakgp.plots.shown_inputs import public_inputs
from cloakgp.posterior.classes import ClassLearned
from cloakgp.posterior.outcomes import LinkedLearned
from cloakgp.rows.chunks import spread_evenly
from cloakgp.rows.columns import listed

NEAR_PRIOR = 0.9
"""Total std, as a share of the prior's, from which on nothing is known but the level of all outcomes.

At 0.9 a fifth of the prior variance is gone.
"""
PREDICTION, UNCERTAINTY, PRIVACY = VIEWS = ("prediction", "uncertainty", "privacy")
_COLOURS = {PREDICTION: "viridis", UNCERTAINTY: "magma", PRIVACY: "cividis"}  # uniform, and colour-blind safe
_POINTS = 48  # along the longer side
_COARSE = 14  # of these for privacy's share, which takes longer to work out and is smoother
_LEVEL = 200  # inputs at which the level of probabilities or rates is looked at
_BEYOND = 0.02  # of the range, on each side of public inputs


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
    privacy_share: FloatArray
    """(m, n) of the variance that is due to privacy, from 0 to 1; NaN if nobody asked for its view."""
    unknown: NDArray[np.bool_]
    """(m, n) where `std` is at least 90 % of `prior_std`: nothing to speak of was learned there."""
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


def surface_of(
    release: AnyRelease,
    *,
    coordinates: Sequence[str] | None = None,
    geographic: bool | None = None,
    held: Mapping[str, Any] | None = None,
    units: str = "",
    names: Sequence[str] | None = None,
    output: str | None = None,
    of: Any = None,
    points: int = _POINTS,
    views: Sequence[str] = VIEWS,
) -> Surface:
    """The numbers of a surface over two inputs.

    Parameters
    ----------
    release : Release, StagedRelease, RowsRelease or FunctionRelease
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
    names, output : names of the inputs and of the outcome, optional
        As the release has them, if absent.
    of : a class, optional
        Whose probability is wanted, where outcomes are one of several classes; the first if absent.
    points : int
        Of the grid, along its longer side.
    views : names out of {"prediction", "uncertainty", "privacy"}
        Which pictures are wanted. Privacy's share takes longest; without its view it is NaN.

    Returns
    -------
    Surface
    """
    for name in views:
        checks.choice(name, "views", VIEWS)
    plan = release.plan
    columns = columns_of(plan)
    width = int(plan.shown_inputs.shape[1])
    if names is None:
        names = [f"x{place + 1}" for place in range(width)] if columns is None else columns.names
    axes = plane(names, numeric_inputs(plan), coordinates)
    if geographic is not None:
        axes = replace(axes, degrees=geographic, metres=axes.metres and not geographic)
    (west, east), (south, north) = (_range(release, place) for place in (axes.across, axes.up))
    aspect = axes.aspect(south, north)
    n, m = _sizes(points, (east - west, (north - south) * aspect) if aspect else None)
    across, up = np.linspace(west, east, n), np.linspace(south, north, m)
    middle, others = _held(release, names, axes, held or {})
    where = _over(middle, axes, across, up)
    which = _class(release, of)
    found = (*_predicted(release, where, which), prior_std(release, where, which))
    mean, std, prior = (part.reshape(m, n) for part in found)
    privacy = np.full((m, n), np.nan)
    if PRIVACY in views:
        privacy = _privacy(release, middle, axes, (across, up), which)
    words = predicted_words(plan, units, output)
    if which is not None:
        words = f"probability of {release.classes[which]}"  # type: ignore[union-attr]
    unknown = std >= NEAR_PRIOR * prior
    drawn = _views((mean, std, privacy), unknown, words, units, outcome_of(plan))
    dots = public_inputs(plan)
    shown = None
    if dots is not None:
        inputs = dots[0][:, [axes.across, axes.up]]
        inside = ((inputs >= [west, south]) & (inputs <= [east, north])).all(axis=1)
        shown = inputs[inside]
    return Surface(
        across,
        up,
        (_label(columns, names, axes.across), _label(columns, names, axes.up)),
        axes.degrees,
        aspect,
        mean,
        std,
        prior,
        privacy,
        unknown,
        shown,
        others,
        {name: view for name, view in drawn.items() if name in views},
    )


def _class(release: AnyRelease, of: Any) -> int | None:
    """The number of a class; None where outcomes are not of several."""
    classes = classes_of(release)
    if not classes:
        if of is not None:
            raise ArgumentError("of", "must be left out: outcomes are not one of several classes", repr(of))
        return None
    if of is not None and of not in classes:
        raise ArgumentError("of", f"must be one of the classes, {listed(classes)}", repr(of))
    return 0 if of is None else classes.index(of)


def prior_std(release: AnyRelease, X: FloatArray, which: int | None = None) -> FloatArray:
    """(n,) std at X of what is predicted if nothing were known there but the level that all outcomes share.

    The level is soon known, and says nothing of one place rather than of another; so it does not count.
    """
    if not isinstance(release, StagedRelease):
        return prior_std_of_plan(release.plan, X)
    learned = release.learned
    if isinstance(learned, ClassLearned):
        learned = learned.each[which or 0]
    each = np.array([_varying(one.gp.kernel, X) for one in learned.posteriors])
    if not isinstance(learned, LinkedLearned):
        return np.asarray(np.sqrt(learned.weights @ each))
    level = learned.latent.predict(spread_evenly(release.rule.inputs.X, _LEVEL)).mean() - learned.link.middle
    means, variances, _ = learned.link.moments(np.full_like(each, level), each, learned.noise)
    apart = means - learned.weights @ means
    return np.asarray(np.sqrt(learned.weights @ (variances + apart**2)))


def prior_std_of_plan(plan: AnyPlan, X: FloatArray) -> FloatArray:
    """(n,) the same before a release: of the one model with the covariances of all that may be learned."""
    varying = _varying(plan.gp.kernel, X)
    link = plan.rule.link if isinstance(plan, StagedPlan) else None
    if link is None:
        return np.sqrt(varying)
    return np.sqrt(link.moments(np.zeros(len(X)), varying, plan.gp.noise)[1])


def will_be_unknown(plan: AnyPlan, X: FloatArray, expected_error: FloatArray) -> NDArray[np.bool_]:
    """(n,) whether nothing to speak of will be learned at X, where a plan expects this error."""
    return np.asarray(expected_error >= NEAR_PRIOR * prior_std_of_plan(plan, X))


def _varying(kernel: Kernel, X: FloatArray) -> FloatArray:
    """(n,) prior variance, without that of a constant."""
    parts = kernel.kernels if isinstance(kernel, Sum) else (kernel,)
    differ = [part for part in parts if not isinstance(part, Constant)] or parts
    return np.asarray(np.sum([np.asarray(part.diag(X), dtype=np.float64) for part in differ], axis=0))


def is_unknown(release: AnyRelease, X: FloatArray, of: Any = None) -> NDArray[np.bool_]:
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


def _hides_gp(release: AnyRelease) -> bool:
    """Whether a function hides its inputs, and with them what the GP itself left unknown."""
    return isinstance(release, FunctionRelease) and release.plan.hides_inputs


def _predicted(release: AnyRelease, X: FloatArray, which: int | None) -> tuple[FloatArray, FloatArray]:
    """Prediction and its total std."""
    mean, std = release.released_at(X) if _hides_gp(release) else release.predict(X, return_std=True)
    return (mean, std) if which is None else (mean[:, which], std[:, which])


def _privacy(
    release: AnyRelease,
    middle: FloatArray,
    axes: Plane,
    sides: tuple[FloatArray, FloatArray],
    which: int | None,
) -> FloatArray:
    """(m, n) privacy's share of the variance."""
    from scipy.interpolate import RegularGridInterpolator

    across, up = sides
    if _hides_gp(release):
        return np.ones((len(up), len(across)))
    coarse = [np.linspace(each[0], each[-1], min(len(each), _COARSE)) for each in (up, across)]
    found = release.uncertainty(_over(middle, axes, coarse[1], coarse[0]), include_noise=False)
    share = (found.privacy / np.maximum(found.total, 1e-300)) ** 2
    share = share if which is None else share[:, which]
    method: Any = "cubic" if min(map(len, coarse)) > 3 else "linear"
    between = RegularGridInterpolator(coarse, share.reshape([len(each) for each in coarse]), method)
    everywhere = np.stack(np.meshgrid(up, across, indexing="ij"), axis=-1)
    return np.asarray(np.clip(between(everywhere), 0.0, 1.0))


def _range(release: AnyRelease, place: int) -> tuple[float, float]:
    """From where to where a column is drawn: the box, the test points, or, if these are few, the inputs."""
    plan = release.plan
    if isinstance(plan, RowsPlan):
        axis = plan.grid.axes[place]
        return axis.low, axis.high
    found = plan.shown_inputs if isinstance(release, FunctionRelease) else release.X_star
    if len(np.unique(found[:, place])) < 3:
        found = np.concatenate([found, plan.shown_inputs])
    low, high = float(found[:, place].min()), float(found[:, place].max())
    room = _BEYOND * (high - low) or 0.5
    return low - room, high + room


def _sizes(points: int, lengths: tuple[float, float] | None) -> tuple[int, int]:
    """How many points across and up."""
    if isinstance(points, bool) or not isinstance(points, (int, np.integer)) or not 2 <= points <= 500:
        raise ArgumentError("points", "must be a whole number from 2 to 500", repr(points))
    if lengths is None:
        return points, points
    longer = max(lengths)
    n, m = (max(points // 4, 2, round(points * length / longer)) for length in lengths)
    return n, m


def _held(
    release: AnyRelease, names: Sequence[str], axes: Plane, given: Mapping[str, Any]
) -> tuple[FloatArray, dict[str, Any]]:
    """(D,) where all inputs are but for two; and the same in words."""
    plan, columns = release.plan, columns_of(release.plan)
    levels = [()] * len(names) if columns is None else [one.levels for one in columns.inputs]
    X = plan.grid.centres if isinstance(plan, RowsPlan) else plan.shown_inputs
    middle = np.median(X, axis=0)
    others = [place for place in range(len(names)) if place not in (axes.across, axes.up)]
    unknown = [name for name in given if name not in [names[place] for place in others]]
    if unknown:
        raise ArgumentError("held", "must name inputs other than the two axes", repr(unknown[0]))
    said: dict[str, Any] = {}
    for place in others:
        name = names[place]
        if not levels[place]:
            said[name] = middle[place] = float(given.get(name, middle[place]))
            continue
        level = given.get(name, levels[place][0])
        if level not in levels[place]:
            raise ArgumentError("held", f"must be a level of {name!r}", repr(level))
        said[name], middle[place] = level, levels[place].index(level)
    return middle, said


def _label(columns: Any, names: Sequence[str], place: int) -> str:
    if columns is None or columns.names[place] != names[place]:
        return names[place]
    label: str = columns.inputs[place].label
    return label


def _views(
    parts: Sequence[FloatArray], unknown: NDArray[np.bool_], what: str, unit: str, outcome: str
) -> dict[str, View]:
    prediction, std, share = parts
    known = prediction[~unknown] if not unknown.all() else prediction.ravel()
    of_std = f"std of the {what}" if outcome in CHANCES else f"std of {what}"
    made = [
        (PREDICTION, prediction, *_ends(known), what, unit, outcome, True),
        (UNCERTAINTY, std, 0.0, float(std.max()), of_std, unit, outcome, False),
        (PRIVACY, share, 0.0, 1.0, "privacy's share of the variance", "", YES_NO, False),
    ]
    views = {}
    for name, values, low, high, label, unit_of, outcome_of_it, hides in made:
        ticks = nice_ticks(low, high)
        words = tick_words(ticks, unit_of, outcome_of_it)
        views[name] = View(name, values, low, high, ticks, words, label, _COLOURS[name], hides)
    return views


def _ends(values: FloatArray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if high - low > 1e-9 * max(abs(low), abs(high)):
        return low, high
    room = abs(low) * 0.05 or 0.5  # a flat surface is one colour, in the middle
    return low - room, high + room
