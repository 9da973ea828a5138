"""Pictures of plans and releases, for inputs of one column. Extra ``plots`` (matplotlib).

A picture of a plan or of a release may be published: it is drawn from public numbers and from the
noisy measurements. Only :func:`plot_release` with ``private_data=`` shows y, and then the picture
says so in large letters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import checks
from cloakgp.certificate import Certificate
from cloakgp.checks import FloatArray
from cloakgp.measure import custodian_view
from cloakgp.plan import Plan
from cloakgp.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INSECURE = "INSECURE: not private"
NOT_FOR_RELEASE = "NOT FOR RELEASE: shows private data"

# From Okabe & Ito's palette, told apart by colour-blind readers; the line styles differ too.
_BLUE, _ORANGE, _BLACK, _GREY = "#0072B2", "#D55E00", "#000000", "#6E6E6E"


def plot_plan(plan: Plan, ax: Axes | None = None) -> Axes:
    """Draw how much privacy noise a release from this plan will have, and where.

    The solid line is the noise's std at each test point. The dotted line is the GP's own posterior
    std, which is there without privacy too: where the noise is below it, privacy is cheap. The
    ticks at the bottom are the training inputs, which are public.

    Parameters
    ----------
    plan : Plan
        With inputs of one column.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.

    Returns
    -------
    matplotlib Axes
    """
    x, order = _test_inputs(plan)
    ax = _axes(ax)
    ax.plot(x, plan.noise_std[order], color=_BLUE, linewidth=2, label="privacy noise")
    ax.plot(x, plan.gp_std[order], color=_BLACK, linestyle=":", label="GP's own uncertainty")
    top = max(plan.noise_std.max(), plan.gp_std.max())
    ax.set_ylim(-0.05 * top, 1.05 * top)  # from 0, and room for the rug
    ax.set_ylabel("std, in y's unit")
    _finish(ax, plan.X, plan.certificate)
    return ax


def plot_release(release: Release, ax: Axes | None = None, private_data: Any = None) -> Axes:
    """Draw released predictions, with the std of the privacy noise around them.

    The solid line is the released mean. The dashed lines are one std of the privacy noise away from
    it, the dotted ones a quarter. The ticks at the bottom are the training inputs, which are
    public. All of it may be published, unless `private_data` is given.

    Parameters
    ----------
    release : Release
        With inputs of one column.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.
    private_data : (X, y), optional
        For the custodian's eyes only: also draw these private points. The picture is then marked
        NOT FOR RELEASE, and the figure object holds y.

    Returns
    -------
    matplotlib Axes
    """
    x, order = _test_inputs(release.plan)
    ax = _axes(ax)
    mean, std = release.mean[order], release.noise_std[order]
    ax.plot(x, mean, color=_BLUE, linewidth=2.2, zorder=3, label="released mean")
    for share, colour, style, words in ((1.0, _BLACK, "--", "±1"), (0.25, _GREY, ":", "±¼")):
        label = f"{words} std of the privacy noise"
        ax.plot(x, mean + share * std, color=colour, linestyle=style, linewidth=1.2, label=label)
        ax.plot(x, mean - share * std, color=colour, linestyle=style, linewidth=1.2)
    if private_data is not None:
        _draw_private(ax, private_data)
    ax.set_ylabel("y")
    _finish(ax, release.plan.X, release.certificate)
    return ax


def _draw_private(ax: Axes, private_data: Any) -> None:
    """Scatter the custodian's own points, on the custodian's explicit word, and mark the picture."""
    try:
        X, y = private_data
    except (TypeError, ValueError):
        X = y = None
    if y is None:
        raise ValueError("private_data must be (X, y): inputs, and a vector of real numbers.")
    X = checks.matrix(X, "X in private_data", columns=1)
    outcomes = custodian_view(y, len(X))
    ax.scatter(
        X[:, 0], outcomes, s=12, color=_ORANGE, alpha=0.5, linewidths=0, zorder=1, label="private data"
    )
    _stamp(ax, 0.99, 1.03, NOT_FOR_RELEASE, fontsize=13, ha="right", va="bottom")


def _test_inputs(plan: Plan) -> tuple[FloatArray, Any]:
    """The test inputs in increasing order, and that order."""
    if plan.X.shape[1] != 1:
        raise ValueError(
            f"pictures of 1-d inputs only; this plan's X has {plan.X.shape[1]} columns. "
            "Draw slices of plan.noise_std or release.mean yourself."
        )
    order = np.argsort(plan.X_star[:, 0], kind="stable")
    return plan.X_star[order, 0], order


def _finish(ax: Axes, X: FloatArray, certificate: Certificate) -> None:
    """Rug, labels, legend, the promise, and the mark of insecure releases."""
    inputs = np.unique(X[:, 0])
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
        label="training inputs (public)",
    )
    ax.set_xlabel("x")
    promise = f"({certificate.epsilon:g}, {certificate.delta:g})-DP, unit: {certificate.unit}"
    ax.set_title(promise, loc="left", fontsize="medium")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=False, fontsize="small")
    if certificate.insecure:
        _stamp(ax, 0.5, 0.5, INSECURE, fontsize=30, ha="center", va="center", rotation=15)


def _stamp(ax: Axes, x: float, y: float, words: str, **style: Any) -> None:
    """Words that cannot be overlooked."""
    frame = {"facecolor": "white", "edgecolor": _ORANGE, "alpha": 0.85, "boxstyle": "square,pad=0.2"}
    ax.text(x, y, words, transform=ax.transAxes, color=_ORANGE, weight="bold", zorder=10, bbox=frame, **style)


def _axes(ax: Axes | None) -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "pictures need matplotlib: install the extra cloakgp[plots] (in a clone: pip install '.[plots]')."
        ) from None
    return plt.subplots(figsize=(7.0, 4.2), layout="constrained")[1] if ax is None else ax
