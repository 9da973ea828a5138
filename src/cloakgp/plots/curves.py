"""Curves over one input: plans, releases, functions, and what the privacy noise may look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentTypeError
from cloakgp.files.labels import NONE, Labels
from cloakgp.plans.functions import FunctionPlan, FunctionRelease
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.predictions import Plan, Release
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.plots.axes import dates_across, name_levels, readable_up
from cloakgp.plots.bands import draw_band
from cloakgp.plots.labels import (
    axis_label,
    classes_of,
    levels_of,
    outcome_of,
    plan_of,
    predicted_words,
    response,
)
from cloakgp.plots.levels import draw_levels
from cloakgp.plots.page import BLACK, BLUE, GREEN, GREY, ORANGE, check_style, darken, finish, new_axes
from cloakgp.plots.predicted import Predicted, denoised_at, expect_columns, expect_one_curve, in_order
from cloakgp.plots.private_data import draw_private
from cloakgp.plots.shown_inputs import draw_rug
from cloakgp.rows.inputs import as_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEPS = ((1.0, BLACK, "--", "±1"), (0.25, GREY, ":", "±¼"))  # stds of the privacy noise


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
    plan : Plan or StagedPlan
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
    ax = new_axes(ax)
    forecast = ", forecast" if isinstance(plan, StagedPlan) else ""
    lines = [plan.noise_std, plan.gp_std]
    # A plan from a file of a release may be without inputs, which the error hangs on.
    if isinstance(plan, StagedPlan) or (isinstance(plan, Plan) and plan.X is not None):
        lines.append(plan.expected_error)
        ax.plot(x, lines[-1][order], color=BLUE, linewidth=2, label="expected error" + forecast)
    ax.plot(x, plan.noise_std[order], color=ORANGE, linestyle="--", label="privacy noise" + forecast)
    ax.plot(x, plan.gp_std[order], color=BLACK, linestyle=":", label="GP's own uncertainty")
    _from_zero(ax, max(line.max() for line in lines))
    _finish_curve(ax, plan_of(plan))
    return ax


def plot_release(
    release: Release | StagedRelease,
    ax: Axes | None = None,
    private_data: Any = None,
    denoised: bool = True,
    *,
    released: bool = False,
    privacy: bool = False,
    style: str = "light",
    title: str | None = None,
    units: str | None = None,
    source: str | None = None,
    date: str | None = None,
) -> Axes:
    """Draw a release: the denoised prediction, and the band in which the truth lies with probability 95 %.

    The band counts the GP's own uncertainty and the privacy noise together, if the model is right. For yes/no
    outcomes it is about the probability of a yes, for counts about their rate; of several classes each has a
    curve and a band. The ticks at the bottom are
    the training inputs, where these are public. A category has a dot and a bar for each level. All of it
    may be published, unless `private_data` is given.

    Parameters
    ----------
    release : Release or StagedRelease
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
    style : {"light", "dark"}
        Dark changes the colours of all that is on the figure.
    title, units, source, date : str, optional
        Words for the picture; those of ``release.labels`` if absent. Units are of the outcomes, such as "cm";
        with "£" an axis reads £420k.

    Returns
    -------
    matplotlib Axes
    """
    check_style(style)
    x, order = in_order(release)
    labels = release.labels.changed(title=title, units=units, source=source, date=date)
    levels = levels_of(release.plan, 0)
    if released or privacy or not denoised or private_data is not None:
        expect_one_curve(release)
    ax = new_axes(ax)
    if released or not denoised:
        label = "released mean" if release.unbiased else "released mean, denoised already"
        style_of: dict[str, Any] = {"marker": "x", "linestyle": ""} if levels else {}
        ax.plot(x, release.mean[order], color=ORANGE, linewidth=1.4, zorder=3, label=label, **style_of)
    if denoised and levels:
        draw_levels(ax, release, levels)
    elif denoised:
        _draw_denoised(ax, release, np.linspace(x[0], x[-1], 300))
    if privacy or not denoised:
        _draw_noise(ax, x, release.mean[order], release.noise_std[order])
    if private_data is not None:
        draw_private(ax, private_data, release.plan)
    ax.set_ylabel(predicted_words(release.plan, labels.units))
    _finish_curve(ax, release.plan, labels, below=bool(classes_of(release)))  # curves are everywhere
    readable_up(ax, labels.units, outcome_of(release.plan))
    if style == "dark":
        darken(ax.get_figure(root=True))  # type: ignore[arg-type]
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
    if not isinstance(plan, Plan):
        remedy = "Of a plan in stages, whose noise depends on what comes out, draw plot_plan."
        raise ArgumentTypeError("plan", "must be a Plan, made by GP.plan", type(plan).__name__, remedy)
    x, order = in_order(plan)
    ax = new_axes(ax)
    m = plan.measurement
    normals = np.random.default_rng(seed).normal(size=(m.n_measurements, n)) * m.noise_scale
    samples = plan.reconstruction[order] @ normals
    colours = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9")
    for i, sample in enumerate(samples.T):
        label = "simulated noise" if i == 0 else None
        ax.plot(x, sample, color=colours[i % len(colours)], linewidth=1.3, label=label)
    for sign, label in ((1, "±1 std of the privacy noise"), (-1, None)):
        std = sign * plan.noise_std[order]
        ax.plot(x, std, color=BLACK, linestyle="--", linewidth=1.2, label=label)
    ax.set_ylabel("noise, in y's unit")
    _finish_curve(ax, plan)
    return ax


def plot_function(plan_or_release: FunctionPlan | FunctionRelease, X: Any, ax: Axes | None = None) -> Axes:
    """Draw a released function at `X`, or the noise that it will have.

    From a release: its values, with one std and a quarter of a std of the privacy noise around
    them. From a plan: the noise's std alone.

    Parameters
    ----------
    plan_or_release : FunctionPlan or FunctionRelease
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
    expect_columns(plan.points, 1, "plot_function")
    X = np.sort(as_points(X, "X", 1, plan.columns), axis=0)
    ax = new_axes(ax)
    if isinstance(plan_or_release, FunctionRelease):
        values, std = plan_or_release.query(X, return_std=True)
        _draw_bands(ax, X[:, 0], values, std, "released function")
        ax.set_ylabel(response(plan))
    else:
        std = plan.noise_at(X)
        ax.plot(X[:, 0], std, color=BLUE, linewidth=2, label="privacy noise")
        _from_zero(ax, std.max())
    _finish_curve(ax, plan)
    return ax


def _draw_bands(
    ax: Axes, x: FloatArray, mean: FloatArray, std: FloatArray, label: str, steps: Sequence[Any] = _STEPS
) -> None:
    """A curve, and how far the privacy noise may have moved it."""
    ax.plot(x, mean, color=BLUE, linewidth=2.2, zorder=3, label=label)
    for share, colour, style, words in steps:
        label = f"{words} std of the privacy noise"
        ax.plot(x, mean + share * std, color=colour, linestyle=style, linewidth=1.2, label=label)
        ax.plot(x, mean - share * std, color=colour, linestyle=style, linewidth=1.2)


def _draw_noise(ax: Axes, x: FloatArray, mean: FloatArray, std: FloatArray) -> None:
    """One std of the privacy noise on either side."""
    for sign, label in ((1, "±1 std of the privacy noise"), (-1, None)):
        ax.plot(x, mean + sign * std, color=BLACK, linestyle="--", linewidth=1.2, label=label)


def _draw_denoised(ax: Axes, release: Release | StagedRelease, x: FloatArray) -> None:
    """The denoised prediction with its 95 % band."""
    draw_band(ax, x, *denoised_at(release, x), classes_of(release))


def _from_zero(ax: Axes, top: float) -> None:
    """An axis of stds: from 0, with room for the rug."""
    ax.set_ylim(-0.05 * top, 1.05 * top)
    ax.set_ylabel("std, in y's unit")


def _finish_curve(ax: Axes, plan: AnyPlan, labels: Labels = NONE, below: bool = False) -> None:
    ax.set_xlabel(axis_label(plan, 0))
    levels = levels_of(plan, 0)
    if levels:
        name_levels(ax, levels)
    else:
        draw_rug(ax, plan)
    finish(ax, plan, labels, below=below)
    dates_across(ax, plan, 0)
