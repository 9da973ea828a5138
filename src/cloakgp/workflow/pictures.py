"""Pictures of plans and releases for any number of input columns, as PNG. All may be published."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import plots
from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.measurements.staged_certificate import AnyCertificate
from cloakgp.plans.functions import FunctionRelease
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.predictions import Release
from cloakgp.plans.staged import StagedRelease
from cloakgp.plans.whole_rows import RowsPlan, RowsRelease
from cloakgp.rows.columns import DATE
from cloakgp.workflow.releases import box_of, can_denoise, inputs_of, n_inputs, predictions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_SLICES = 6
_MOST_LEVELS = 12  # whose names fit below an axis
_BLUE, _GREY = "#0072B2", "#6E6E6E"


def noise_picture(predicted: plots.Predicted, inputs: list[str], output: str) -> Figure:
    """How much privacy noise there will be, or is, and where."""
    columns = predicted.X_star.shape[1]
    figure, plan = _figure(), plots.plan_of(predicted)
    if any(_levels(plan)):
        _sorted_noise(figure, predicted)
    elif columns == 1:
        ax = plots.plot_plan(predicted, figure.subplots())
        ax.set(xlabel=inputs[0], ylabel=f"std, in the unit of {output}")
    elif columns == 2 and _spread(predicted.X_star):
        ax = plots.plot_noise_map(predicted, figure.subplots())
        ax.set(xlabel=inputs[0], ylabel=inputs[1])
    else:
        _sorted_noise(figure, predicted)
    return figure


def release_pictures(release: AnyRelease, inputs: list[str], output: str) -> list[tuple[str, Figure]]:
    """(caption, picture) of what was released, for one, two or more input columns."""
    columns = n_inputs(release)
    if isinstance(release, RowsRelease):
        return _of_rows(release, inputs, output)
    categories = any(_levels(release.plan))
    if columns == 1 and not categories:
        pictures = [_curve(release, inputs[0], output)]
        return [*pictures, *_of_stages(release, inputs, output)]
    if isinstance(release, FunctionRelease):
        return [_slices(release, inputs, output)]
    pictures = _maps(release, inputs) if columns == 2 and not categories else []
    if can_denoise(release):
        pictures.append(_slices(release, inputs, output))
    if not pictures:
        figure = _figure()
        _sorted_noise(figure, release)
        pictures.append(("The std of the privacy noise over the test points, from small to large.", figure))
    return [*pictures, *_of_stages(release, inputs, output)]


def _of_rows(release: RowsRelease, inputs: list[str], output: str) -> list[tuple[str, Figure]]:
    """Of a release whose inputs are private: none of them is drawn, and how many there are is estimated."""
    categories = [axis.category for axis in release.plan.grid.axes]
    if len(inputs) == 1 and not any(categories):
        pictures = [_curve(release, inputs[0], output)]
    else:
        pictures = _maps(release, inputs) if len(inputs) == 2 and not any(categories) else []
        pictures.append(_slices(release, inputs, output))
    caption = (
        "How many rows there are, estimated from noisy counts, with 95 % bands or the std beside it: no "
        "input is shown. Rows outside the box count in the cells at its edge."
    )
    density = plots.plot_density(release, _figure(), inputs)
    stages = [] if any(categories) else _of_stages(release, inputs, output)
    return [*pictures, (caption, density), *stages]


def _of_stages(release: AnyRelease, inputs: list[str], output: str) -> list[tuple[str, Figure]]:
    """How a release in stages came about, and what it learned."""
    if not isinstance(release, StagedRelease):
        return []
    pictures = []
    if len(inputs) == 1 and not any(_levels(release.plan)):
        caption = (
            "How it came about. Outcomes count only within the shaded windows; each stage closes them in "
            "from what came out before it, so that less noise is needed. Line: the prediction so far."
        )
        if isinstance(release, RowsRelease):
            caption += " The first stage counted rows."
        pictures.append((caption, plots.plot_stages(release, _figure(), labels=(inputs[0], output))))
    if not plots.learned_settings(release):
        return pictures
    figure = plots.plot_learned(release, _figure())
    if not any(_levels(release.plan)):  # else not every column has a panel
        for name, ax in zip(inputs, figure.axes, strict=False):
            ax.set_xlabel(f"lengthscale of {name}")
    caption = "The models that were learned: large circles hold much weight. The frame is what was possible."
    return [*pictures, (caption, figure)]


def check_path(path: Path) -> None:
    """Raise unless a picture can be written there."""
    if path.suffix.lower() != ".png":
        raise InputError(f"{path}: pictures are written as .png.")


def png(figure: Figure, dpi: int = 130) -> bytes:
    """A picture's bytes; the same picture gives the same."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
    return out.getvalue()


def _curve(release: AnyRelease, name: str, output: str) -> tuple[str, Figure]:
    figure = _figure()
    if isinstance(release, StagedRelease):
        ax = plots.plot_release(release, figure.subplots())
        caption = (
            "Solid: the prediction. Green: the band in which the curve lies with probability 95 %. Dashed: "
            f"one std of what privacy adds.{_inputs_words(release, 'Ticks')}"
        )
    elif isinstance(release, Release):
        denoised = can_denoise(release)
        ax = plots.plot_release(release, figure.subplots(), denoised=denoised)
        caption = (
            "Solid: what was released. Dashed and dotted: one std, and a quarter of a std, of the privacy "
            f"noise.{_inputs_words(release, 'Ticks')}"
        )
        if denoised:
            caption += (
                " Green: the denoised prediction and the band in which the curve lies with probability 95 %."
            )
    else:
        inputs = inputs_of(release)
        where = np.linspace(inputs.min(), inputs.max(), 300)
        ax = plots.plot_function(release, where, figure.subplots())
        caption = (
            "Solid: the released function. Dashed and dotted: one std, and a quarter of a std, of the "
            "privacy noise."
        )
    ax.set(xlabel=name, ylabel=output)
    return caption, figure


def _maps(release: Release | StagedRelease, inputs: list[str]) -> list[tuple[str, Figure]]:
    drawn: list[tuple[str, Callable[..., Any]]] = [
        (
            f"Large circles are large values; faint ones are noisy.{_inputs_words(release, 'Dots')}",
            plots.plot_map,
        )
    ]
    if _spread(release.X_star):
        drawn.append(("The std of the privacy noise over the map.", plots.plot_noise_map))
    result = []
    for caption, draw in drawn:
        figure = _figure(width=8.4)
        draw(release, figure.subplots()).set(xlabel=inputs[0], ylabel=inputs[1])
        result.append((caption, figure))
    return result


def _slices(release: AnyRelease, inputs: list[str], output: str) -> tuple[str, Figure]:
    """The prediction along each input in turn, the others held at their medians."""
    X = plots.some_inputs(inputs_of(release))
    shown = min(X.shape[1], _MOST_SLICES)
    across = 2 if shown == 4 else min(shown, 3)
    down = -(-shown // across)
    figure = _figure(width=3.2 * across + 0.6, height=2.7 * down + 0.5)
    axes = np.atleast_1d(figure.subplots(down, across, sharey=True, squeeze=False)).ravel()
    box, levels, dates = box_of(release), _levels(release.plan), _dates(release.plan)
    middle = np.median(X, axis=0) if box is None else box.centres[box.spare]
    middle = np.where([bool(some) for some in levels], 0.0 if box is None else middle, middle)
    for column in range(shown):
        ends = X[:, column].min(), X[:, column].max()
        along = np.arange(float(len(levels[column]))) if levels[column] else np.linspace(*ends, 120)
        where = np.tile(middle, (len(along), 1))
        where[:, column] = along
        table = predictions(release, where)
        ax, x = axes[column], where[:, column]
        if levels[column]:
            half = table["mean"] - table["lower"]
            ax.errorbar(x, table["mean"], half, fmt="o", color=_BLUE, capsize=4)
            if len(x) <= _MOST_LEVELS:
                ax.set_xticks(x, [str(level) for level in levels[column]])
        else:
            ax.plot(x, table["mean"], color=_BLUE, linewidth=2)
            ax.fill_between(x, table["lower"], table["upper"], color=_BLUE, alpha=0.18, linewidth=0)
        ax.set_xlabel(dates.get(column, inputs[column]))
        if column % across == 0:
            ax.set_ylabel(output)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    for ax in axes[shown:]:
        ax.set_visible(False)
    figure.suptitle(plots.title(release.plan), x=0.01, ha="left", fontsize="medium")
    _stamp_insecure(axes[0], release.certificate)
    what = "denoised prediction" if can_denoise(release) else "released function"
    held = "at their medians" if box is None else "in the middle of the box"
    held += ", or at their first level" if any(levels) else ""
    caption = f"The {what} along each input, the others {held}, with its 95 % band."
    if shown < X.shape[1]:
        caption += f" The first {shown} of {X.shape[1]} inputs."
    return caption, figure


def _levels(plan: Any) -> list[tuple[Any, ...]]:
    """The levels of each input; none where it is no category."""
    if isinstance(plan, RowsPlan):
        return [axis.levels if axis.category else () for axis in plan.grid.axes]
    if plan.columns is None:
        return [()] * int(plan.shown_inputs.shape[1])
    return [column.levels for column in plan.columns.inputs]


def _dates(plan: Any) -> dict[int, str]:
    """Labels for the axes of dates, which say what their numbers are."""
    inputs = () if plan.columns is None else plan.columns.inputs
    return {place: column.label for place, column in enumerate(inputs) if column.kind == DATE}


def _inputs_words(release: Release | StagedRelease, drawn_as: str) -> str:
    """What is drawn of the inputs: nothing, where they are private."""
    if isinstance(release, RowsRelease):
        return ""
    what = "inducing inputs" if isinstance(release, Release) else "cells of the inputs"
    return f" {drawn_as}: the {'inputs' if release.plan.X is not None else what}, which are public."


def _sorted_noise(figure: Figure, predicted: plots.Predicted) -> None:
    """For inputs that cannot be drawn: how much noise at how many of the test points."""
    ax, noise = figure.subplots(), predicted.noise_std
    share = 100 * np.arange(1, len(noise) + 1) / len(noise)
    ax.plot(share, np.sort(noise), color=_BLUE, linewidth=2, label="privacy noise")
    ax.plot(share, np.sort(predicted.gp_std), color=_GREY, linestyle=":", label="GP's own uncertainty")
    ax.set(xlabel="share of the test points, %", ylabel="std, at most", ylim=(0, None))
    ax.set_title(plots.title(plots.plan_of(predicted)), loc="left", fontsize="medium")
    ax.legend(frameon=False, fontsize="small")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    _stamp_insecure(ax, predicted.certificate)


def _stamp_insecure(ax: Any, certificate: AnyCertificate) -> None:
    if certificate.insecure:
        ax.text(0.02, 0.95, plots.INSECURE, transform=ax.transAxes, color="#D55E00", weight="bold", va="top")


def _spread(points: FloatArray) -> bool:
    """Whether points of two columns are not all on one line, so that contours can be drawn."""
    return len(points) >= 3 and int(np.linalg.matrix_rank(points - points.mean(axis=0))) == 2


def _figure(width: float = 7.4, height: float = 4.4) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "pictures need matplotlib: install the extra cloakgp[plots] (in a clone: pip install '.[plots]')."
        ) from None
    return Figure(figsize=(width, height), layout="constrained")
