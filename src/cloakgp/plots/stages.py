"""How a release in stages came about: windows that close in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.errors import ArgumentTypeError
from cloakgp.plans.staged import StagedRelease
from cloakgp.plans.whole_rows import RowsRelease
from cloakgp.plots.labels import axis_label, response
from cloakgp.plots.page import BLUE, bare, finish_panels, new_figure
from cloakgp.plots.predicted import expect_columns
from cloakgp.plots.private_data import draw_private

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_stages(
    release: StagedRelease,
    figure: Figure | None = None,
    private_data: Any = None,
    labels: tuple[str, str] | None = None,
    *,
    across: int | None = None,
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
    across : int, optional
        How many panels are beside each other.

    Returns
    -------
    matplotlib Figure
    """
    if not isinstance(release, StagedRelease):
        raise ArgumentTypeError("release", "must be a StagedRelease, made by AutoGP", type(release).__name__)
    counting = int(isinstance(release, RowsRelease))  # such a release begins with counts, not outcomes
    rule, n = release.plan.rule, len(release.stages) - counting
    labels = (axis_label(release.plan, 0), response(release.plan)) if labels is None else labels
    expect_columns(rule.X_star, 1, "plot_stages")
    across = min(n, across or (2 if n == 4 else 3 if n <= 6 else 4))
    down = -(-n // across)
    figure = new_figure(figure, (3.1 * across + 0.4, 2.4 * down + 0.9))
    axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    order = np.argsort(rule.inputs.X[:, 0], kind="stable")
    x, walk = rule.inputs.X[order, 0], rule.walk(release.plan.start)
    for stage in release.stages[:counting]:
        walk.take(stage)
    for number, (ax, stage) in enumerate(zip(axes, release.stages[counting:], strict=False), start=counting):
        walk.take(stage)
        lower, upper = (np.broadcast_to(edge, x.shape)[order] for edge in (stage.lower, stage.upper))
        ax.fill_between(
            x, lower, upper, color=BLUE, alpha=0.2, linewidth=0, label="window: outcomes count within"
        )
        ax.plot(x, rule.middle + walk.state.mean[order], color=BLUE, linewidth=2, label="prediction so far")
        if private_data is not None:
            draw_private(ax, private_data, release.plan, at=(0.98, 0.04), fontsize=7)
        share = f"{100 * release.plan.shares[number]:.0f} % of the promise"
        ax.set_title(f"Stage {number + 1}: {share}", loc="left", fontsize="medium")
        bare(ax)
    for ax in axes[n - across : n]:  # the lowest of each column
        ax.tick_params(labelbottom=True)
        ax.set_xlabel(labels[0])
    for ax in axes[::across]:
        ax.set_ylabel(labels[1])
    for ax in axes[n:]:
        ax.set_visible(False)
    low, high = rule.bounds
    axes[0].set_ylim(low - 0.03 * (high - low), high + 0.03 * (high - low))
    finish_panels(figure, release, private_data is not None)
    keys = axes[0].get_legend_handles_labels()
    figure.legend(*keys, loc="outside lower right", ncols=3, frameon=False, fontsize="small")
    return figure
