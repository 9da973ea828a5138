"""Pictures of plans and releases, for inputs of one or two columns. Extra ``plots`` (matplotlib).

A picture of a plan or of a release may be published: it is drawn from public numbers and from the
noisy measurements. Only :func:`plot_release` and :func:`plot_stages` with ``private_data=`` show y, and
then the picture says so in large letters. Where a function's plan hides X, its pictures do too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.files import schema
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import FAMILIES, Hyperprior, Setting
from cloakgp.plans.functions import FunctionPlan, FunctionRelease
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.predictions import Plan, Release
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.plans.whole_rows import RowsPlan, RowsRelease
from cloakgp.posterior.learning import Learned
from cloakgp.private.room import custodian_view
from cloakgp.rows.chunks import spread_evenly
from cloakgp.rows.grid import Axis
from cloakgp.rows.inputs import as_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Predicted = Plan | StagedPlan | Release | StagedRelease
"""What has test points of its own."""

INSECURE = "INSECURE: not private"
NOT_FOR_RELEASE = "NOT FOR RELEASE: shows private data"
FADED = 0.4
"""Noise std, as a share of the bounds' width, at which a number says nothing: that of a blind guess is less.

A map does not show such a circle.
"""

# From Okabe & Ito's palette, told apart by colour-blind readers; the line styles differ too.
_BLUE, _ORANGE, _GREEN, _BLACK, _GREY = "#0072B2", "#D55E00", "#009E73", "#000000", "#6E6E6E"
_INPUTS = "training inputs (public)"
_STAND_INS = {
    schema.PREDICTIONS: "inducing inputs (public)",
    schema.FUNCTION: "basis points (public)",
    schema.STAGED: "cells of training inputs (public)",
}
_DOTS = 3000  # inputs that are drawn, spread evenly over all of them
_AREAS = (12.0, 260.0)  # of a map's circles, at the lower and the upper bound, in square points
_HEAVIEST = 1200.0  # area of a circle for all the weight
_TWO_SIDED_95 = 1.959964


def plot_plan(plan: Predicted, ax: Axes | None = None) -> Axes:
    """Draw how much privacy noise a release from this plan will have, and where.

    The solid line is the noise's std at each test point. The dotted line is the GP's own posterior
    std, which is there without privacy too: where the noise is below it, privacy is cheap. The
    ticks at the bottom are the training inputs, which are public: some of them, if there are
    thousands, or the inducing inputs, if the file of a release holds no others.

    Of a plan in stages it is a forecast: the median over models that might be true.

    Parameters
    ----------
    plan : Plan or StagedPlan
        With inputs of one column; for two see :func:`plot_map` and :func:`plot_noise_map`. Or a release: then
        the noise that it has.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.

    Returns
    -------
    matplotlib Axes
    """
    x, order = _test_inputs(plan)
    ax = _axes(ax)
    label = "privacy noise, forecast" if isinstance(plan, StagedPlan) else "privacy noise"
    ax.plot(x, plan.noise_std[order], color=_BLUE, linewidth=2, label=label)
    ax.plot(x, plan.gp_std[order], color=_BLACK, linestyle=":", label="GP's own uncertainty")
    _from_zero(ax, max(plan.noise_std.max(), plan.gp_std.max()))
    _finish_curve(ax, plan_of(plan))
    return ax


def plot_release(
    release: Release | StagedRelease, ax: Axes | None = None, private_data: Any = None, denoised: bool = True
) -> Axes:
    """Draw released predictions, with the std of the privacy noise around them.

    The solid line is the released mean. The dashed lines are one std of the privacy noise away from
    it, the dotted ones a quarter. The dash-dotted line is the denoised prediction, and the shaded
    band where the GP itself lies with probability 95 %, given the release and if the model is
    right. The ticks at the bottom are the training inputs, which are public. All of it may be
    published, unless `private_data` is given.

    Of a release in stages, what is released is the denoised prediction: solid, with its band, and dashed one
    std of what privacy adds.

    Parameters
    ----------
    release : Release or StagedRelease
        With inputs of one column; for two see :func:`plot_map` and :func:`plot_noise_map`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.
    private_data : (X, y), optional
        For the custodian's eyes only: also draw these private points. The picture is then marked
        NOT FOR RELEASE, and the figure object holds y.
    denoised : bool
        Whether to draw the denoised prediction and its band.

    Returns
    -------
    matplotlib Axes
    """
    x, order = _test_inputs(release)
    ax = _axes(ax)
    label = "released mean" if release.unbiased else "released mean, denoised already"
    steps: Sequence[Any] = _STEPS
    if isinstance(release, StagedRelease):
        label, steps = "prediction", _STEPS[:1]
    _draw_bands(ax, x, release.mean[order], release.noise_std[order], label, steps)
    if denoised:
        _draw_denoised(ax, release, np.linspace(x[0], x[-1], 300))
    if private_data is not None:
        _draw_private(ax, private_data, release.plan)
    ax.set_ylabel(response(release.plan))
    _finish_curve(ax, release.plan)
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
    x, order = _test_inputs(plan)
    ax = _axes(ax)
    m = plan.measurement
    normals = np.random.default_rng(seed).normal(size=(m.n_measurements, n)) * m.noise_scale
    samples = plan.reconstruction[order] @ normals
    colours = (_BLUE, _ORANGE, _GREEN, "#CC79A7", "#56B4E9")
    for i, sample in enumerate(samples.T):
        label = "simulated noise" if i == 0 else None
        ax.plot(x, sample, color=colours[i % len(colours)], linewidth=1.3, label=label)
    for sign, label in ((1, "±1 std of the privacy noise"), (-1, None)):
        std = sign * plan.noise_std[order]
        ax.plot(x, std, color=_BLACK, linestyle="--", linewidth=1.2, label=label)
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
    _expect_columns(plan.points, 1, "plot_function")
    X = np.sort(as_points(X, "X", 1, plan.columns), axis=0)
    ax = _axes(ax)
    if isinstance(plan_or_release, FunctionRelease):
        values, std = plan_or_release.query(X, return_std=True)
        _draw_bands(ax, X[:, 0], values, std, "released function")
        ax.set_ylabel(response(plan))
    else:
        std = plan.noise_at(X)
        ax.plot(X[:, 0], std, color=_BLUE, linewidth=2, label="privacy noise")
        _from_zero(ax, std.max())
    _finish_curve(ax, plan)
    return ax


def plot_map(plan_or_release: Predicted, ax: Axes | None = None) -> Axes:
    """Draw a map of predictions: large circles are large values, faint ones are noisy.

    A circle's area grows with the released mean, from the lower to the upper bound of the
    outcomes. Without privacy noise it would be opaque; where the noise's std is 40 % of the bounds'
    width or more it cannot be seen. The dots are the training inputs, which are public. From a
    plan, which has no values yet, all circles are alike in size.

    Parameters
    ----------
    plan_or_release : Plan, StagedPlan, Release or StagedRelease
        With inputs of two columns.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.

    Returns
    -------
    matplotlib Axes
    """
    from matplotlib.colors import to_rgb

    plan = plan_of(plan_or_release)
    _expect_columns(plan.X_star, 2, "plot_map")
    ax = _axes(ax)
    low, high = plan.gp.limits
    shares = np.full(len(plan.X_star), 0.5)
    if isinstance(plan_or_release, Release | StagedRelease):
        shares = (plan_or_release.mean - low) / (high - low)
    opacity = np.clip(1 - plan_or_release.noise_std / (FADED * (high - low)), 0.0, 1.0)
    colours = np.column_stack([np.tile(to_rgb(_BLUE), (len(opacity), 1)), opacity])
    _draw_dots(ax, plan)
    east, north = plan.X_star.T
    ax.scatter(east, north, s=_areas(shares), c=colours, linewidths=0, zorder=3)
    if isinstance(plan_or_release, Release | StagedRelease):
        for value in np.linspace(low, high, 3):
            _key(ax, _areas((value - low) / (high - low)), 1.0, f"value {value:.4g}")
    for share in (0.0, 0.1, 0.2, 0.3):
        _key(ax, _areas(0.5), 1 - share / FADED, f"noise std {share * (high - low):.3g}")
    ax.plot([], [], linestyle="", label=f"noise std {FADED * (high - low):.3g} or more: not seen")
    _finish_map(ax, plan, loc="upper left", bbox_to_anchor=(1.0, 1.0), labelspacing=0.9)
    return ax


def plot_noise_map(plan_or_release: Predicted, ax: Axes | None = None) -> Axes:
    """Draw a map of the privacy noise's std, by contours between the test points.

    The dots are the training inputs, which are public; those beyond the test points are left out.

    Parameters
    ----------
    plan_or_release : Plan, StagedPlan, Release or StagedRelease
        With inputs of two columns, and test points that are not all on one line.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.

    Returns
    -------
    matplotlib Axes
    """
    plan = plan_of(plan_or_release)
    _expect_columns(plan.X_star, 2, "plot_noise_map")
    ax, (east, north) = _axes(ax), plan.X_star.T
    try:
        contours = ax.tricontourf(east, north, plan_or_release.noise_std, levels=10, cmap="Blues")
    except (RuntimeError, ValueError):
        raise ValueError(
            "plot_noise_map needs at least three test points, not all on one line. Use plot_map."
        ) from None
    ax.figure.colorbar(contours, ax=ax, label="std of the privacy noise, in y's unit")
    limits = ax.axis()
    _draw_dots(ax, plan)
    ax.axis(limits)
    _finish_map(ax, plan, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
    return ax


def plot_stages(
    release: StagedRelease,
    figure: Figure | None = None,
    private_data: Any = None,
    labels: tuple[str, str] | None = None,
) -> Figure:
    """Draw how a release in stages came about: windows that close in, one panel for each stage.

    Outcomes count only within a stage's window, the shaded band, which was chosen from what came out of the
    stages before: the narrower it is, the less noise is needed. The line is the prediction after the stage,
    at the training inputs; at the cells' centres where inputs are private. A stage that counts rows is not
    drawn: see :func:`plot_density`.

    Parameters
    ----------
    release : StagedRelease
        With inputs of one column.
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    private_data : (X, y), optional
        As for :func:`plot_release`.
    labels : (str, str), optional
        Of the axes; the names of the columns if absent.

    Returns
    -------
    matplotlib Figure
    """
    if not isinstance(release, StagedRelease):
        raise ArgumentTypeError("release", "must be a StagedRelease, made by AutoGP", type(release).__name__)
    counting = int(isinstance(release, RowsRelease))  # such a release begins with counts, not outcomes
    rule, n = release.plan.rule, len(release.stages) - counting
    labels = (axis_label(release.plan, 0), response(release.plan)) if labels is None else labels
    _expect_columns(rule.X_star, 1, "plot_stages")
    across = 2 if n == 4 else min(n, 3 if n <= 6 else 4)
    down = -(-n // across)
    figure = _new_figure(figure, (3.1 * across + 0.4, 2.4 * down + 0.9))
    axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    order = np.argsort(rule.inputs.X[:, 0], kind="stable")
    x, walk = rule.inputs.X[order, 0], rule.walk(release.plan.start)
    for stage in release.stages[:counting]:
        walk.take(stage)
    for number, (ax, stage) in enumerate(zip(axes, release.stages[counting:], strict=False), start=counting):
        walk.take(stage)
        lower, upper = (np.broadcast_to(edge, x.shape)[order] for edge in (stage.lower, stage.upper))
        ax.fill_between(
            x, lower, upper, color=_BLUE, alpha=0.2, linewidth=0, label="window: outcomes count within"
        )
        ax.plot(x, rule.middle + walk.state.mean[order], color=_BLUE, linewidth=2, label="prediction so far")
        if private_data is not None:
            _draw_private(ax, private_data, release.plan, at=(0.98, 0.04), fontsize=7)
        share = f"{100 * release.plan.shares[number]:.0f} % of the promise"
        ax.set_title(f"Stage {number + 1}: {share}", loc="left", fontsize="medium")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    for ax in axes[n - across : n]:  # the lowest of each column
        ax.tick_params(labelbottom=True)
        ax.set_xlabel(labels[0])
    for ax in axes[::across]:
        ax.set_ylabel(labels[1])
    for ax in axes[n:]:
        ax.set_visible(False)
    low, high = rule.bounds
    axes[0].set_ylim(low - 0.03 * (high - low), high + 0.03 * (high - low))
    _finish_panels(figure, release, private_data is not None)
    keys = axes[0].get_legend_handles_labels()
    figure.legend(*keys, loc="outside lower right", ncols=3, frameon=False, fontsize="small")
    return figure


def plot_density(
    release: RowsRelease, figure: Figure | None = None, labels: Sequence[str] | None = None
) -> Figure:
    """Draw how many rows there are, where inputs are private: estimates, with their uncertainty.

    For inputs of two ranges a map of the cells, beside it the std of what each estimate may be wrong by. For
    others one panel for each input, summed over the rest: the line, or the dots of a category, with 95 %
    bands. All of it comes from noisy counts, and may be published.

    Parameters
    ----------
    release : RowsRelease
        Made from a plan of :meth:`AutoGP.plan_rows` or :meth:`GP.plan_rows`.
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    labels : names of the inputs, optional
        The grid's if absent.

    Returns
    -------
    matplotlib Figure
    """
    if not isinstance(release, RowsRelease):
        raise ArgumentTypeError("release", "must be a RowsRelease, made by plan_rows", type(release).__name__)
    grid, density = release.plan.grid, release.density
    names = list(grid.names if labels is None else labels)
    if len(grid.axes) == 2 and not any(axis.category for axis in grid.axes):
        figure = _new_figure(figure, (8.6, 3.9))
        east, north = (np.linspace(axis.low, axis.high, axis.cells + 1) for axis in grid.axes)
        drawn = ((density.counts, "rows in a cell, estimated"), (density.std, "std of the estimate"))
        for ax, (values, words) in zip(figure.subplots(1, 2, sharex=True, sharey=True), drawn, strict=True):
            mesh = ax.pcolormesh(east, north, values.reshape(grid.shape).T, cmap="Blues", vmin=0)
            figure.colorbar(mesh, ax=ax, label=words)
            ax.set(xlabel=names[0], ylabel=names[1])
    else:
        across = min(len(names), 3)
        down = -(-len(names) // across)
        # A single one is as wide as the curve above it, so that places can be compared.
        figure = _new_figure(figure, (max(3.3 * across + 0.6, 7.0), 2.6 * down + 0.7))
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for place, (ax, axis) in enumerate(zip(axes, grid.axes, strict=False)):
            _draw_counts(ax, axis, *density.along(grid, place))
            ax.set_xlabel(names[place])
        axes[0].set_ylabel("rows, estimated")
        for ax in axes[len(names) :]:
            ax.set_visible(False)
    _finish_panels(figure, release, False)
    return figure


def _draw_counts(ax: Axes, axis: Axis, counts: FloatArray, std: FloatArray) -> None:
    """How many rows each cell along one input has, with 95 % bands."""
    if axis.category:
        ax.errorbar(axis.centres, counts, _TWO_SIDED_95 * std, fmt="o", color=_BLUE, capsize=4)
        ax.set_xticks(axis.centres, [str(level) for level in axis.levels])
        ax.margins(x=0.15)
    else:
        edges = np.linspace(axis.low, axis.high, axis.cells + 1)
        lower, upper = counts - _TWO_SIDED_95 * std, counts + _TWO_SIDED_95 * std
        ax.stairs(counts, edges, color=_BLUE, linewidth=2)
        ax.stairs(upper, edges, baseline=np.maximum(lower, 0), fill=True, color=_BLUE, alpha=0.18)
    ax.set_ylim(0, None)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def plot_learned(release_or_learned: StagedRelease | Learned, figure: Figure | None = None) -> Figure:
    """Draw which models were learned, by lengthscale and noise: one panel for each input column.

    A circle is a model, or several that differ only in their signal; its area is their weight. Of a release
    in stages, the frame is what was thought possible beforehand.

    Parameters
    ----------
    release_or_learned : StagedRelease or Learned
        Such as ``release.learn()`` gives.
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.

    Returns
    -------
    matplotlib Figure
    """
    release = release_or_learned if isinstance(release_or_learned, StagedRelease) else None
    if release is None and not isinstance(release_or_learned, Learned):
        expected = "must be a StagedRelease or what learn() gives"
        raise ArgumentTypeError("release_or_learned", expected, type(release_or_learned).__name__)
    settings, weights = learned_settings(release_or_learned), release_or_learned.weights
    if not settings:
        raise ArgumentError(
            "release_or_learned", "must have learned a model; the one of this release was known"
        )
    numeric = settings[0].numeric
    columns = max(len(numeric), 1)
    table = plan_of(release_or_learned).columns
    across = min(columns, 3)
    down = -(-columns // across)
    figure = _new_figure(figure, (3.6 * across + 1.4, 3.2 * down + 0.6))
    axes = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for column, ax in enumerate(axes[:columns]):
        _draw_weights(ax, settings, weights, column)
        ax.set(xscale="log", yscale="log", xlabel="lengthscale" if numeric else "signal std")
        if columns > 1:
            place = numeric[column]
            ax.set_xlabel(f"lengthscale of {f'column {place + 1}' if table is None else table.names[place]}")
        if column % across == 0:
            ax.set_ylabel("noise std, in y's unit")
        if release is not None:
            rule = release.plan.rule
            assert isinstance(rule.prior, Hyperprior)
            width = rule.bounds[1] - rule.bounds[0]
            span, ends = width, rule.prior.signal
            if numeric:
                span, ends = float(np.ptp(rule.inputs.X[:, numeric[column]])) or 1.0, rule.prior.lengthscale
            ax.set_xlim(*_around(span * end for end in ends))
            ax.set_ylim(*_around(width * end for end in rule.prior.noise))
        _plain_ticks(ax)
    for ax in axes[columns:]:
        ax.set_visible(False)
    for share in (0.05, 0.2, 0.5):
        axes[0].scatter([], [], s=_HEAVIEST * share, color=_GREY, alpha=0.4, label=f"weight {share:.0%}")
    keys = axes[0].get_legend_handles_labels()
    figure.legend(*keys, loc="outside right upper", frameon=False, fontsize="small", labelspacing=1.2)
    if release is not None:
        _finish_panels(figure, release, False)
    return figure


def learned_settings(release_or_learned: StagedRelease | Learned) -> list[Setting]:
    """The models that hold the weight; none if the model was known."""
    return [setting for setting in release_or_learned.settings if isinstance(setting, Setting)]


def _draw_weights(ax: Axes, settings: Sequence[Setting], weights: FloatArray, column: int) -> None:
    """Circles at (lengthscale, noise std), a colour for each family; of levels alone, (signal, noise)."""
    from matplotlib.colors import to_rgba

    for colour, family in zip((_BLUE, _ORANGE, _GREEN), FAMILIES, strict=True):
        found: dict[tuple[float, float], float] = {}
        for setting, weight in zip(settings, weights.tolist(), strict=True):
            if setting.family == family:
                across = setting.lengthscale[column] if setting.lengthscale else setting.signal**0.5
                place = (across, setting.noise**0.5)
                found[place] = found.get(place, 0.0) + weight
        if found:
            places, area = np.array(list(found)), _HEAVIEST * np.array(list(found.values()))
            style: dict[str, Any] = {"facecolors": to_rgba(colour, 0.3), "edgecolors": colour}
            ax.scatter(places[:, 0], places[:, 1], s=area, **style)
            ax.scatter([], [], s=60, label=family, **style)


_STEPS = ((1.0, _BLACK, "--", "±1"), (0.25, _GREY, ":", "±¼"))  # stds of the privacy noise


def _draw_bands(
    ax: Axes, x: FloatArray, mean: FloatArray, std: FloatArray, label: str, steps: Sequence[Any] = _STEPS
) -> None:
    """A curve, and how far the privacy noise may have moved it."""
    ax.plot(x, mean, color=_BLUE, linewidth=2.2, zorder=3, label=label)
    for share, colour, style, words in steps:
        label = f"{words} std of the privacy noise"
        ax.plot(x, mean + share * std, color=colour, linestyle=style, linewidth=1.2, label=label)
        ax.plot(x, mean - share * std, color=colour, linestyle=style, linewidth=1.2)


def _draw_denoised(ax: Axes, release: Release | StagedRelease, x: FloatArray) -> None:
    """The denoised prediction with its 95 % band; the band alone if the released mean is that."""
    mean, std = release.predict(x, return_std=True)
    low, high = mean - _TWO_SIDED_95 * std, mean + _TWO_SIDED_95 * std
    if release.unbiased:
        ax.plot(x, mean, color=_GREEN, linestyle="-.", linewidth=1.8, zorder=2, label="denoised prediction")
    label = "95 % band" if isinstance(release, StagedRelease) else "denoised, 95 % band"
    ax.fill_between(x, low, high, color=_GREEN, alpha=0.18, linewidth=0, label=label)


def _draw_private(
    ax: Axes, private_data: Any, plan: AnyPlan, at: tuple[float, float] = (0.99, 1.03), fontsize: float = 13
) -> None:
    """Scatter the custodian's own points, on the custodian's explicit word, and mark the picture."""
    try:
        X, y = private_data
    except (TypeError, ValueError):
        X = y = None
    if y is None:
        raise ArgumentError("private_data", "must be (X, y): inputs, and a vector of real numbers")
    X = as_points(X, "X in private_data", 1, plan.columns)
    outcomes = custodian_view(y, len(X))
    ax.scatter(
        X[:, 0], outcomes, s=12, color=_ORANGE, alpha=0.5, linewidths=0, zorder=1, label="private data"
    )
    _stamp(ax, *at, NOT_FOR_RELEASE, fontsize=fontsize, ha="right", va="bottom")


def _test_inputs(plan: Predicted) -> tuple[FloatArray, Any]:
    """The test inputs in increasing order, and that order."""
    if plan.X_star.shape[1] != 1:
        raise ValueError(
            f"this picture is for inputs of one column; this plan's X has {plan.X_star.shape[1]}. "
            "For two use plot_map or plot_noise_map; for more draw slices of plan.noise_std or release.mean."
        )
    order = np.argsort(plan.X_star[:, 0], kind="stable")
    return plan.X_star[order, 0], order


def _expect_columns(inputs: FloatArray, columns: int, name: str) -> None:
    if inputs.shape[1] != columns:
        raise ValueError(f"{name} draws inputs of {columns} column(s); this plan has {inputs.shape[1]}.")


def axis_label(plan: AnyPlan, column: int) -> str:
    """What a column of X is called on an axis."""
    if plan.columns is not None:
        return plan.columns.inputs[column].label
    only = np.shape(plan.shown_inputs)[1] == 1
    return "x" if only else f"{('first', 'second')[column]} column of X"


def response(plan: AnyPlan) -> str:
    """What is predicted, on an axis."""
    return "y" if plan.columns is None or not plan.columns.response else plan.columns.response


def plan_of(thing: Any) -> Any:
    """The plan of a release; a plan is its own."""
    return getattr(thing, "plan", thing)


def _from_zero(ax: Axes, top: float) -> None:
    """An axis of stds: from 0, with room for the rug."""
    ax.set_ylim(-0.05 * top, 1.05 * top)
    ax.set_ylabel("std, in y's unit")


def _areas(shares: Any) -> Any:
    """Areas of circles for values that are so far up from the lower to the upper bound."""
    smallest, largest = _AREAS
    return smallest + (largest - smallest) * np.clip(shares, 0.0, 1.0)


def _draw_dots(ax: Axes, plan: Plan | StagedPlan) -> None:
    if isinstance(plan, RowsPlan):
        return  # its inputs are private
    inputs, words = _shown_inputs(plan)
    ax.plot(*inputs.T, ".", color=_BLACK, markersize=3.5, markeredgewidth=0, zorder=4, label=words)


def _shown_inputs(plan: AnyPlan) -> tuple[FloatArray, str]:
    """Inputs to draw, and what they are called; those of a plan that holds no X stand for it."""
    if plan.X is not None:
        return some_inputs(plan.X), _INPUTS
    return plan.shown_inputs, _STAND_INS[plan.kind]


def some_inputs(X: Any) -> FloatArray:
    """A few thousand rows of X, spread evenly; all of them if they are no more than that."""
    return spread_evenly(X, _DOTS)


def inducing_words(gp: GP) -> str | None:
    """How many inducing inputs a model has, and of which kind; None for an exact GP."""
    if gp.inducing is None:
        return None
    number = gp.inducing if isinstance(gp.inducing, int) else len(gp.inducing)
    return f"{number} inducing inputs ({gp.approximation})"


def title(plan: AnyPlan) -> str:
    """The promise of a plan, and its approximation if it is one."""
    c = plan.certificate
    model = None if isinstance(plan, StagedPlan) else inducing_words(plan.gp)
    promise = f"({c.epsilon:g}, {c.delta:g})-DP, unit: {c.unit}"
    return promise if model is None else f"{promise}; {model}"


def _key(ax: Axes, area: float, opacity: float, label: str) -> None:
    """A circle for the legend alone."""
    size = float(np.sqrt(area))
    ax.plot([], [], "o", color=_BLUE, markersize=size, markeredgewidth=0, alpha=opacity, label=label)


def _finish_map(ax: Axes, plan: Plan | StagedPlan, **legend: Any) -> None:
    ax.set(xlabel=axis_label(plan, 0), ylabel=axis_label(plan, 1))
    _finish(ax, plan, **legend)


def _finish_curve(ax: Axes, plan: AnyPlan) -> None:
    ax.set_xlabel(axis_label(plan, 0))
    if not isinstance(plan, RowsPlan):  # whose inputs are private
        _draw_rug(ax, plan)
    _finish(ax, plan)


def _draw_rug(ax: Axes, plan: AnyPlan) -> None:
    drawn, words = _shown_inputs(plan)
    inputs = np.unique(drawn[:, 0])
    ax.plot(
        inputs,
        np.full(len(inputs), 0.015),
        linestyle="",
        marker="|",
        markersize=7,
        markeredgewidth=0.8,
        color=_GREY,
        alpha=0.7,
        transform=ax.get_xaxis_transform(),
        label=words,
    )


def _finish(ax: Axes, plan: AnyPlan, **legend: Any) -> None:
    """The legend, the promise, and the mark of insecure releases."""
    ax.set_title(title(plan), loc="left", fontsize="medium")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if ax.get_legend_handles_labels()[1]:
        # Clear of the axes' edges, where the ticks of the training inputs stand.
        ax.legend(frameon=False, fontsize="small", **{"borderaxespad": 1.6, **legend})
    if plan.certificate.insecure:
        _stamp(ax, 0.5, 0.5, INSECURE, fontsize=30, ha="center", va="center", rotation=15)


def _stamp(ax: Axes, x: float, y: float, words: str, **style: Any) -> None:
    """Words that cannot be overlooked."""
    frame = {"facecolor": "white", "edgecolor": _ORANGE, "alpha": 0.85, "boxstyle": "square,pad=0.2"}
    ax.text(x, y, words, transform=ax.transAxes, color=_ORANGE, weight="bold", zorder=10, bbox=frame, **style)


def _axes(ax: Axes | None) -> Axes:
    return _new_figure(None, (7.0, 4.2)).subplots() if ax is None else ax


def _new_figure(figure: Figure | None, size: tuple[float, float]) -> Figure:
    """The figure given, or a new one of pyplot's, which notebooks show by themselves."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "pictures need matplotlib: install the extra cloakgp[plots] (in a clone: pip install '.[plots]')."
        ) from None
    if figure is None:
        return plt.figure(figsize=size, layout="constrained")
    figure.set_size_inches(*size)
    return figure


def _finish_panels(figure: Figure, release: StagedRelease, private: bool) -> None:
    """The promise above several panels, and the marks of what must not be published."""
    figure.suptitle(title(release.plan), x=0.01, ha="left", fontsize="medium")
    marks = [INSECURE] * release.certificate.insecure + [NOT_FOR_RELEASE] * private
    if marks:
        words = "; ".join(marks)
        figure.text(0.99, 0.99, words, color=_ORANGE, weight="bold", fontsize=12, ha="right", va="top")


def _around(ends: Iterable[float]) -> tuple[float, float]:
    """Limits of a logarithmic axis that leave room for circles at its ends."""
    low, high = ends
    room = (high / low) ** 0.08
    return low / room, high * room


def _plain_ticks(ax: Axes) -> None:
    """A logarithmic axis with 2, 5, 10, 20 and so on, and not powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
