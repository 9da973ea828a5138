"""How a release in stages came about: windows that close in, models that were learned, rows counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentTypeError
from cloakgp.data.grid import Axis
from cloakgp.model.hyperprior import FAMILIES, Setting
from cloakgp.plots import page
from cloakgp.plots.page import BLUE, GREEN, GREY, ORANGE
from cloakgp.plots.shown import expect_columns, plan_of
from cloakgp.plots.surface import plane
from cloakgp.release.release import Release
from cloakgp.release.showing import inputs_of, interval, response

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_stages(
    release: Release,
    figure: Figure | None = None,
    *,
    across: int | None = None,
) -> Figure:
    """Draw how a release in stages came about: windows that close in, one panel for each stage.

    Outcomes count only within a stage's window, the shaded band, which was chosen from what came out of the
    stages before: the narrower it is, the less noise is needed. The line is the prediction after the stage,
    at the training inputs; at the cells' centres where inputs are private. A stage that counts rows is not
    drawn (see :func:`plot_density`), nor one that counts where outcomes fell.

    Parameters
    ----------
    release : Release
        With inputs of one column.
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    across : int, optional
        How many panels are beside each other.

    Returns
    -------
    matplotlib Figure
    """
    if plan_of(release) is release or release.plan.alone:
        raise ArgumentTypeError("release", "must be a release in stages, made by AutoGP")
    counting = int(release.plan.grid is not None)  # such a release begins with counts, not outcomes
    sums = [stage for stage in release.stages[counting:] if not stage.counts_bins]
    rule, n = release.plan.rule, len(sums)
    expect_columns(rule.X_star, 1, "plot_stages")
    across = min(n, across or (2 if n == 4 else 3 if n <= 6 else 4))
    figure, axes = page.panels(figure, n, across, (3.1, 2.4, 0.4, 0.9), sharex=True, sharey=True)
    order = np.argsort(rule.inputs.X[:, 0], kind="stable")
    x, session = rule.inputs.X[order, 0], rule.session(release.plan.start)
    for stage in release.stages[:counting]:
        session.learn(stage)
    for number, (ax, stage) in enumerate(zip(axes, sums, strict=True), start=counting):
        session.learn(stage)
        lower, upper = (np.broadcast_to(edge, x.shape)[order] for edge in (stage.lower, stage.upper))
        ax.fill_between(
            x, lower, upper, color=BLUE, alpha=0.2, linewidth=0, label="window: outcomes count within"
        )
        mean = rule.middle + session.state.mean[order]
        ax.plot(x, mean, color=BLUE, linewidth=2, label="prediction so far")
        share = f"{100 * release.plan.shares[number]:.0f} % of the promise"
        ax.set_title(f"Stage {number + 1}: {share}", loc="left", fontsize="medium")
        page.bare(ax)
    for ax in axes[n - across :]:  # the lowest of each column
        ax.tick_params(labelbottom=True)
        ax.set_xlabel(inputs_of(release.plan)[0].label)
    for ax in axes[::across]:
        ax.set_ylabel(response(release.plan))
    low, high = rule.bounds
    axes[0].set_ylim(low - 0.03 * (high - low), high + 0.03 * (high - low))
    page.finish_panels(figure, release)
    keys = axes[0].get_legend_handles_labels()
    figure.legend(*keys, loc="outside lower right", ncols=3, frameon=False, fontsize="small")
    return figure


def plot_learned(release: Release, figure: Figure | None = None, *, across: int | None = None) -> Figure:
    """Draw which models were learned, by lengthscale and noise: one panel for each input column.

    A circle is a model, or several that differ only in their signal; its area is their weight. The frame is
    what was thought possible beforehand.

    Parameters
    ----------
    release : Release
        Of a model that was learned.
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    across : int, optional
        How many panels are beside each other.

    Returns
    -------
    matplotlib Figure
    """
    if plan_of(release) is release or not (settings := learned_settings(release)):
        raise ArgumentTypeError("release", "must be a release whose model was learned, made by AutoGP")
    rule: Any = release.plan.rule
    numeric = settings[0].numeric
    columns = max(len(numeric), 1)
    no_noise, inputs = not release.plan.outcome.scattered, inputs_of(release.plan)
    width = rule.latent[1] - rule.latent[0]
    across, heaviest = min(columns, across or 3), 1200.0  # the area of a circle for all the weight
    figure, axes = page.panels(figure, columns, across, (3.6, 3.2, 1.4, 0.6), sharey=True)
    for column, ax in enumerate(axes):
        _draw_weights(ax, settings, heaviest * release.weights, column, "signal" if no_noise else "noise")
        lengthscale = f"lengthscale of {inputs[numeric[column]].name}" if numeric else "signal std"
        ax.set(xscale="log", yscale="log", xlabel=lengthscale)
        if column % across == 0:
            ax.set_ylabel("signal std, in f's unit" if no_noise else "noise std, in y's unit")
        span, ends = width, rule.prior.signal
        if numeric:
            span, ends = float(np.ptp(rule.inputs.X[:, numeric[column]])) or 1.0, rule.prior.lengthscale
        ax.set_xlim(*_around(span * end for end in ends))
        ax.set_ylim(*_around(width * end for end in (rule.prior.signal if no_noise else rule.prior.noise)))
        _plain_ticks(ax)
    for share in (0.05, 0.2, 0.5):
        axes[0].scatter([], [], s=heaviest * share, color=GREY, alpha=0.4, label=f"weight {share:.0%}")
    keys = axes[0].get_legend_handles_labels()
    figure.legend(*keys, loc="outside right upper", frameon=False, fontsize="small", labelspacing=1.2)
    page.finish_panels(figure, release)
    return figure


def learned_settings(release: Release) -> list[Setting]:
    """The models that hold the weight; none if the model was known."""
    settings: Any = release.settings
    return [setting for setting in settings if not setting.known]


def _draw_weights(ax: Axes, settings: Sequence[Setting], areas: FloatArray, column: int, above: str) -> None:
    """Circles at (lengthscale, noise or signal), a colour for each family; of levels at (signal, noise)."""
    from matplotlib.colors import to_rgba

    for colour, family in zip((BLUE, ORANGE, GREEN), FAMILIES, strict=True):
        found: dict[tuple[float, float], float] = {}
        for setting, area in zip(settings, areas.tolist(), strict=True):
            if setting.family == family:
                across = setting.lengthscale[column] if setting.lengthscale else setting.signal**0.5
                place = (across, float(getattr(setting, above)) ** 0.5)
                found[place] = found.get(place, 0.0) + area
        if found:
            style: dict[str, Any] = {"facecolors": to_rgba(colour, 0.3), "edgecolors": colour}
            horizontal, vertical = np.array(list(found)).T
            ax.scatter(horizontal, vertical, s=list(found.values()), **style)
            ax.scatter([], [], s=60, label=family, **style)


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


def plot_density(
    release: Release,
    figure: Figure | None = None,
    *,
    across: int | None = None,
) -> Figure:
    """Draw how many rows there are, where inputs are private: estimates, with their uncertainty.

    For inputs of two ranges a map of the cells, beside it the std of what each estimate may be wrong by. For
    others one panel for each input, summed over the rest: the line, or the dots of a category, with 95 %
    bands. All of it comes from noisy counts, and may be published.

    Parameters
    ----------
    release : Release
        Made from a plan of :meth:`AutoGP.plan_rows` or :meth:`GP.plan_rows`.
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    across : int, optional
        How many panels are beside each other.

    Returns
    -------
    matplotlib Figure
    """
    if plan_of(release) is release or release.plan.grid is None:
        raise ArgumentTypeError("release", "must be one of whole rows, made by plan_rows")
    grid, density = release.plan.grid, release.density
    names = [one.name for one in inputs_of(release.plan)]
    if len(grid.axes) == 2 and not any(axis.category for axis in grid.axes):
        across = min(across or 2, 2)
        figure = page.new_figure(figure, (4.3 * across, 3.9 * (3 - across)))
        sides = plane(release.plan)  # longitude goes across, whichever column it is
        order = (sides.up, sides.across)
        edges = [np.linspace(axis.low, axis.high, axis.cells + 1) for axis in grid.axes]
        up, east = (edges[side] for side in order)
        drawn = ((density.counts, "rows in a cell, estimated"), (density.std, "std of the estimate"))
        sheets = figure.subplots(3 - across, across, sharex=True, sharey=True)
        for ax, (values, words) in zip(sheets, drawn, strict=True):
            shown = values.reshape(grid.shape).transpose(order)
            mesh = ax.pcolormesh(east, up, shown, cmap="cividis", vmin=0)
            bar = figure.colorbar(mesh, cax=ax.inset_axes((1.03, 0.0, 0.04, 1.0)), label=words)
            bar.outline.set_visible(False)
            ax.set(xlabel=names[sides.across], ylabel=names[sides.up])
            aspect = sides.aspect(up[0], up[-1])
            if aspect is not None:
                ax.set_aspect(aspect)
    else:
        across = min(len(names), across or 3)
        # A single one is as wide as the curve above it, so that places can be compared.
        size = (7.0, 2.6, 0.0, 0.7) if len(names) == 1 else (3.3, 2.6, 0.6, 0.7)
        figure, axes = page.panels(figure, len(names), across, size)
        for place, (ax, axis) in enumerate(zip(axes, grid.axes, strict=True)):
            _draw_counts(ax, axis, *density.along(grid, place))
            ax.set_xlabel(names[place])
        axes[0].set_ylabel("rows, estimated")
    page.finish_panels(figure, release)
    return figure


def _draw_counts(ax: Axes, axis: Axis, counts: FloatArray, std: FloatArray) -> None:
    """How many rows each cell along one input has, with 95 % bands."""
    _, _, *ends = interval(counts, std, 0.95).values()
    if axis.category:
        page.draw_prediction(ax, axis.centres, (counts, *ends), bars=True)
        page.name_levels(ax, axis.levels)
    else:
        edges = np.linspace(axis.low, axis.high, axis.cells + 1)
        ax.stairs(counts, edges, color=BLUE, linewidth=2)
        ax.stairs(ends[1], edges, baseline=np.maximum(ends[0], 0), fill=True, color=BLUE, alpha=0.18)
    ax.set_ylim(0, None)
    page.bare(ax)
