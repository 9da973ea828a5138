"""Curves over one input: plans, releases, functions, simulated noise; and slices along each of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentTypeError
from cloakgp.data.columns import Column
from cloakgp.data.inputs import as_points
from cloakgp.files.labels import NONE, Labels
from cloakgp.plots import page, shown
from cloakgp.plots.page import BLACK, BLUE, CLASS_COLOURS, GREY, ORANGE
from cloakgp.plots.private_data import draw_private
from cloakgp.plots.shown import Predicted, classes_of, expect_one_curve, in_order, plan_of
from cloakgp.release.plan import Plan
from cloakgp.release.release import Release
from cloakgp.release.showing import inputs_of, interval_at, response

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_plan(plan: Predicted, ax: Axes | None = None) -> Axes:
    """Draw what predictions from this plan will be off by, and how much of it privacy noise is.

    The solid line is the error to expect of the predictions that a reader uses. The dashed one is the std of
    the privacy noise at each test point, as it is released. The dotted line is the GP's own posterior
    std, which is there without privacy too: where the noise is below it, privacy is cheap. The
    ticks at the bottom are the training inputs, which are public: some of them, if there are
    thousands, or the inducing inputs, if the file of a release holds no others.

    Of a plan in stages it is a forecast: the median over models that might be true.

    Parameters
    ----------
    plan : Plan
        With inputs of one column; for two see :func:`plot_map` and :func:`plot_noise_map`. Or a release: then
        the noise that it has, and no error to expect.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.

    Returns
    -------
    matplotlib Axes
    """
    expect_one_curve(plan)
    x, order = in_order(plan)
    ax = page.new_axes(ax)
    own: Any = plan_of(plan)
    is_plan = own is plan
    forecast = ", forecast" if is_plan and not own.alone else ""
    lines = [plan.noise_std, plan.gp_std]
    # A plan from a file of a release may be without inputs, which the error hangs on.
    if is_plan and (forecast or own.X is not None):
        lines.append(own.expected_error)
        ax.plot(x, lines[-1][order], color=BLUE, linewidth=2, label="expected error" + forecast)
    ax.plot(x, plan.noise_std[order], color=ORANGE, linestyle="--", label="privacy noise" + forecast)
    ax.plot(x, plan.gp_std[order], color=BLACK, linestyle=":", label="GP's own uncertainty")
    _from_zero(ax, own, max(line.max() for line in lines))
    _finish_curve(ax, own)
    return ax


def plot_release(
    release: Release,
    ax: Axes | None = None,
    private_data: Any = None,
    denoised: bool = True,
    *,
    released: bool = False,
    privacy: bool = False,
) -> Axes:
    """Draw a release: the denoised prediction, and the band in which the truth lies with probability 95 %.

    The band counts the GP's own uncertainty and the privacy noise together, if the model is right. For yes/no
    outcomes it is about the probability of a yes, for counts about their rate; of several classes each has a
    curve and a band. The ticks at the bottom are
    the training inputs, where these are public. A category has a dot and a bar for each level. All of it
    may be published, unless `private_data` is given. Title, unit, source and date are those of the release
    (:meth:`cloakgp.Release.labelled`); with "£" as the unit an axis reads £420k. :func:`darken` is for dark
    paper.

    Parameters
    ----------
    release : Release
        With inputs of one column; for two see :func:`plot_map`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.
    private_data : (X, y), optional
        For the custodian's eyes only: also draw these private points. The picture is then marked
        NOT FOR RELEASE, and the figure object holds y.
    denoised : bool
        False for what was released as it came out, with its noise, and nothing else.
    released : bool
        Also draw the released mean, which is the GP's own mean plus privacy noise.
    privacy : bool
        Also draw one std of the privacy noise, around what was released.

    Returns
    -------
    matplotlib Axes
    """
    x, order = in_order(release)
    levels = inputs_of(release.plan)[0].levels
    if released or privacy or not denoised or private_data is not None:
        expect_one_curve(release)
    ax = page.new_axes(ax)
    if released or not denoised:
        label = "released mean" if release.certificate.unbiased else "released mean, denoised already"
        style_of: dict[str, Any] = {"marker": "x", "linestyle": ""} if levels else {}
        ax.plot(x, release.mean[order], color=ORANGE, linewidth=1.4, zorder=3, label=label, **style_of)
    if denoised:
        where = np.arange(float(len(levels))) if levels else np.linspace(x[0], x[-1], 300)
        mean, _, *ends = interval_at(release, where[:, None])
        page.draw_prediction(ax, where, (mean, *ends), classes_of(release), bars=bool(levels))
    if privacy or not denoised:
        _draw_noise(ax, x, release.mean[order], release.noise_std[order])
    if private_data is not None:
        draw_private(ax, private_data, release.plan)
    ax.set_ylabel(shown.predicted_words(release.plan, release.labels.units))
    _finish_curve(ax, release.plan, release.labels, below=bool(classes_of(release)))  # curves are everywhere
    page.readable_up(ax, release.labels.units, release.plan.outcome)
    return ax


def plot_noise_samples(plan: Plan, ax: Axes | None = None, n: int = 5, seed: int = 0) -> Axes:
    """Draw what the privacy noise of a release may look like, before anything is spent.

    A release adds one curve like these to the GP's mean. The curves are simulated with public
    randomness from the plan's noise covariance; no release will use them.

    Parameters
    ----------
    plan : Plan
        With inputs of one column.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.
    n : int
        How many curves.
    seed : int
        The same seed gives the same curves.

    Returns
    -------
    matplotlib Axes
    """
    if not getattr(plan, "alone", False):
        remedy = "Of a plan in stages, whose noise depends on what comes out, draw plot_plan."
        raise ArgumentTypeError("plan", "must be a Plan, made by GP.plan", type(plan).__name__, remedy)
    x, order = in_order(plan)
    ax = page.new_axes(ax)
    m = plan.measurement
    normals = np.random.default_rng(seed).normal(size=(m.n_measurements, n)) * m.noise_scale
    samples = plan.reconstruction[order] @ normals
    for i, sample in enumerate(samples.T):
        label = "simulated noise" if i == 0 else None
        ax.plot(x, sample, color=CLASS_COLOURS[i % len(CLASS_COLOURS)], linewidth=1.3, label=label)
    _draw_noise(ax, x, np.zeros_like(x), plan.noise_std[order])
    ax.set_ylabel("noise, in y's unit")
    _finish_curve(ax, plan)
    return ax


def plot_function(plan_or_release: Any, X: Any, ax: Axes | None = None) -> Axes:
    """Draw a released function at `X`, or the noise that it will have.

    From a release: its values, with one std and a quarter of a std of the privacy noise around
    them. From a plan: the noise's std alone.

    Parameters
    ----------
    plan_or_release : Plan or Release
        With inputs of one column.
    X : (n, 1) array
        Where to draw it: anywhere, at no cost.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.

    Returns
    -------
    matplotlib Axes
    """
    plan = plan_of(plan_or_release)
    shown.expect_columns(plan.X_star, 1, "plot_function")
    X = np.sort(as_points(X, "X", 1, plan.columns), axis=0)
    ax = page.new_axes(ax)
    if plan is not plan_or_release:
        values, std = plan_or_release.query(X, return_std=True)
        ax.plot(X[:, 0], values, color=BLUE, linewidth=2.2, zorder=3, label="released function")
        _draw_noise(ax, X[:, 0], values, std)
        _draw_noise(ax, X[:, 0], values, std / 4, "±¼", color=GREY, linestyle=":")
        ax.set_ylabel(response(plan))
    else:
        std = plan.noise_at(X)
        ax.plot(X[:, 0], std, color=BLUE, linewidth=2, label="privacy noise")
        _from_zero(ax, plan, std.max())
    _finish_curve(ax, plan)
    return ax


@dataclass(frozen=True, eq=False)
class Slice:
    """The prediction along one input."""

    place: int
    column: Column
    X: FloatArray
    found: Sequence[FloatArray]
    """The prediction, and the ends of its 95 % band."""


def slices_of(release: Release) -> list[Slice]:
    """The denoised prediction with its 95 % band along each of the first six inputs, the others held.

    These are held at their medians, in the middle of the box where inputs are private, or at their first
    level.
    """
    plan, middle = release.plan, shown.middle_of(release.plan)
    if plan.grid is None:
        X = shown.some_inputs(plan)
        low, high = X.min(axis=0), X.max(axis=0)
    else:
        low, high = np.array([(axis.low, axis.high) for axis in plan.grid.axes]).T
    found = []
    for place, column in enumerate(inputs_of(plan)[:6]):
        levels = column.levels
        along = np.arange(float(len(levels))) if levels else np.linspace(low[place], high[place], 120)
        where = np.tile(middle, (len(along), 1))
        where[:, place] = along
        mean, _, *ends = interval_at(release, where)
        found.append(Slice(place, column, where, (mean, *ends)))
    return found


def plot_slices(
    release: Release,
    figure: Figure | None = None,
    *,
    across: int | None = None,
    slices: Sequence[Slice] | None = None,
) -> Figure:
    """Draw the prediction along each input, the others held, with its 95 % band: for any number of inputs.

    A category has a dot and a bar for each level.

    Parameters
    ----------
    release : Release
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    across : int, optional
        How many panels are beside each other.
    slices : what :func:`slices_of` gave, optional
        So that it is not worked out again.

    Returns
    -------
    matplotlib Figure
    """
    plan, units = release.plan, release.labels.units
    drawn = slices_of(release) if slices is None else slices
    n = len(drawn)
    across = min(2 if n in (2, 4) else 3, n) if across is None else min(across, n)
    size = (7.4, 4.4, 0.0, 0.0) if n == 1 else (3.2, 2.7, 1.0, 0.5)
    figure, axes = page.panels(figure, n, across, size, sharey=True)
    for ax, one in zip(axes, drawn, strict=True):
        along, levels = one.X[:, one.place], one.column.levels
        page.draw_prediction(ax, along, one.found, classes_of(release), bars=bool(levels))
        if levels:
            page.name_levels(ax, levels)
        ax.set_xlabel(one.column.name)
        page.name_dates(ax, plan, one.place)
        page.bare(ax)
    for ax in axes[::across]:
        ax.set_ylabel(shown.predicted_words(plan, units))
    page.readable_up(axes[0], units, plan.outcome)
    if classes_of(release):
        axes[0].legend(frameon=False, fontsize="small")
    page.finish_panels(figure, release)
    return figure


def _draw_noise(
    ax: Axes, x: FloatArray, mean: FloatArray, std: FloatArray, share: str = "±1", **style: Any
) -> None:
    """The privacy noise on either side: one std of it, or a share."""
    style = {"color": BLACK, "linestyle": "--", "linewidth": 1.2, **style}
    ax.plot(x, mean + std, label=f"{share} std of the privacy noise", **style)
    ax.plot(x, mean - std, **style)


def _from_zero(ax: Axes, plan: Plan, top: float) -> None:
    """An axis of stds: from 0, with room for the rug."""
    ax.set_ylim(-0.05 * top, 1.05 * top)
    ax.set_ylabel(f"std, in the unit of {response(plan)}")


def _finish_curve(ax: Axes, plan: Plan, labels: Labels = NONE, below: bool = False) -> None:
    column, found = inputs_of(plan)[0], shown.public_inputs(plan)
    ax.set_xlabel(column.label)
    if column.levels:
        page.name_levels(ax, column.levels)
    elif found is not None:
        rug, across = np.unique(found[0][:, 0]), ax.get_xaxis_transform()
        style: dict[str, Any] = {"linestyle": "", "marker": "|", "markersize": 7, "markeredgewidth": 0.8}
        style |= {"color": GREY, "alpha": 0.7, "transform": across, "label": found[1]}
        ax.plot(rug, np.full(len(rug), 0.015), **style)
    page.finish(ax, plan, labels, below=below)
    page.name_dates(ax, plan, 0)
