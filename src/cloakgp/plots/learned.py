"""Which models were learned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.model.hyperprior import FAMILIES, Hyperprior, Setting
from cloakgp.model.outcome import CHANCES
from cloakgp.plans.staged import StagedRelease
from cloakgp.plots.labels import outcome_of, plan_of
from cloakgp.plots.page import BLUE, GREEN, GREY, ORANGE, finish_panels, new_figure
from cloakgp.posterior.learning import Learned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEAVIEST = 1200.0  # area of a circle for all the weight


def plot_learned(
    release_or_learned: StagedRelease | Learned, figure: Figure | None = None, *, across: int | None = None
) -> Figure:
    """Draw which models were learned, by lengthscale and noise: one panel for each input column.

    A circle is a model, or several that differ only in their signal; its area is their weight. Of a release
    in stages, the frame is what was thought possible beforehand.

    Parameters
    ----------
    release_or_learned : StagedRelease or Learned
        Such as ``release.learn()`` gives.
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    across : int, optional
        How many panels are beside each other.

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
    no_noise = outcome_of(plan_of(release_or_learned)) in CHANCES if release else False  # of its own
    table = plan_of(release_or_learned).columns
    across = min(columns, across or 3)
    down = -(-columns // across)
    figure = new_figure(figure, (3.6 * across + 1.4, 3.2 * down + 0.6))
    axes = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for column, ax in enumerate(axes[:columns]):
        _draw_weights(ax, settings, weights, column, "signal" if no_noise else "noise")
        ax.set(xscale="log", yscale="log", xlabel="lengthscale" if numeric else "signal std")
        if columns > 1:
            place = numeric[column]
            ax.set_xlabel(f"lengthscale of {f'column {place + 1}' if table is None else table.names[place]}")
        if column % across == 0:
            ax.set_ylabel("signal std, in f's unit" if no_noise else "noise std, in y's unit")
        if release is not None:
            rule = release.plan.rule
            assert isinstance(rule.prior, Hyperprior)
            width = rule.latent[1] - rule.latent[0]
            span, ends = width, rule.prior.signal
            if numeric:
                span, ends = float(np.ptp(rule.inputs.X[:, numeric[column]])) or 1.0, rule.prior.lengthscale
            ax.set_xlim(*_around(span * end for end in ends))
            above = rule.prior.signal if no_noise else rule.prior.noise
            ax.set_ylim(*_around(width * end for end in above))
        _plain_ticks(ax)
    for ax in axes[columns:]:
        ax.set_visible(False)
    for share in (0.05, 0.2, 0.5):
        axes[0].scatter([], [], s=_HEAVIEST * share, color=GREY, alpha=0.4, label=f"weight {share:.0%}")
    keys = axes[0].get_legend_handles_labels()
    figure.legend(*keys, loc="outside right upper", frameon=False, fontsize="small", labelspacing=1.2)
    if release is not None:
        finish_panels(figure, release, False)
    return figure


def learned_settings(release_or_learned: StagedRelease | Learned) -> list[Setting]:
    """The models that hold the weight; none if the model was known."""
    return [setting for setting in release_or_learned.settings if isinstance(setting, Setting)]


def _draw_weights(
    ax: Axes, settings: Sequence[Setting], weights: FloatArray, column: int, above: str
) -> None:
    """Circles at (lengthscale, noise or signal), a colour for each family; of levels at (signal, noise)."""
    from matplotlib.colors import to_rgba

    for colour, family in zip((BLUE, ORANGE, GREEN), FAMILIES, strict=True):
        found: dict[tuple[float, float], float] = {}
        for setting, weight in zip(settings, weights.tolist(), strict=True):
            if setting.family == family:
                across = setting.lengthscale[column] if setting.lengthscale else setting.signal**0.5
                place = (across, float(getattr(setting, above)) ** 0.5)
                found[place] = found.get(place, 0.0) + weight
        if found:
            places, area = np.array(list(found)), _HEAVIEST * np.array(list(found.values()))
            style: dict[str, Any] = {"facecolors": to_rgba(colour, 0.3), "edgecolors": colour}
            ax.scatter(places[:, 0], places[:, 1], s=area, **style)
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
