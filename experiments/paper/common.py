"""What the paper's figures share: data or look-alikes, seeded noise, exact expectations, and a style.

Predictions are linear in the privacy noise, so that their expected squared errors need no draws:
that of the prediction without noise, plus the noise's variance.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np

from cloakgp.core.calibration import WeakPromiseWarning
from cloakgp.testing import InsecureWarning, insecure_seed

warnings.simplefilter("ignore", WeakPromiseWarning)  # the paper's delta is compared here, not advised

# Okabe & Ito's palette, told apart by colour-blind readers.
BLUE, ORANGE, GREEN, PINK, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
BLACK, GREY, PALE = "#000000", "#6E6E6E", "#B4B4B4"
OUTPUT = Path(__file__).resolve().parent / "output"
SEEDED = "Privacy noise from a fixed public seed, to draw the same picture each time: not private."


class Noisy(NamedTuple):
    """Predictions `mean` + `root` @ (independent standard normals)."""

    mean: np.ndarray  # (P,) without privacy noise
    root: np.ndarray  # (P, q)

    @property
    def std(self):
        return np.linalg.norm(self.root, axis=1)

    def at(self, matrix):
        """The same for linear combinations, such as interpolated values."""
        return Noisy(matrix @ self.mean, matrix @ self.root)

    def expected_rmse(self, y):
        """Root of the expected mean squared error."""
        return float(np.sqrt(self.squared_errors(y).mean()))

    def squared_errors(self, y):
        return (self.mean - y) ** 2 + self.std**2

    def drawn_rmses(self, y, n, seed):
        """RMSEs of n single releases, by simulated noise."""
        noise = self.root @ np.random.default_rng(seed).normal(size=(self.root.shape[1], n))
        return np.sqrt(np.mean((self.mean[:, None] + noise - y[:, None]) ** 2, axis=0))


def released(plan, y):
    """What a plan's release would say at its test points."""
    mean = plan.first.readout.offset + plan.reconstruction @ _measured(plan, y)
    return Noisy(mean, plan.measurement.noise_scale * plan.reconstruction)


def released_function(plan, y, X):
    """What a release of the whole function would answer at X."""
    weights = plan.function.weights(X)
    return Noisy(plan.gp.mean + weights @ _measured(plan, y), plan.measurement.noise_scale * weights)


def denoised(plan, y, X):
    """What `release.predict(X)` would say, of a plan for test points or for the function."""
    gp, B, scale = plan.gp, plan.measurement.by_row(), plan.measurement.noise_scale
    K = gp.kernel(plan.X) + gp.noise * np.eye(len(plan.X))
    gain = np.linalg.solve(B @ K @ B.T + scale**2 * np.eye(len(B)), B @ gp.kernel(plan.X, X)).T
    shift = B.sum(axis=1) * (gp.mean - _middle(gp))
    return Noisy(gp.mean + gain @ (_measured(plan, y) - shift), scale * gain)


def exact_mean(gp, X, y, X_star):
    """The GP's own posterior mean: no privacy."""
    K = gp.kernel(X) + gp.noise * np.eye(len(X))
    return gp.mean + gp.kernel(X_star, X) @ np.linalg.solve(K, np.clip(y, *gp.bounds) - gp.mean)


def posterior_std(gp, X, X_star):
    K = gp.kernel(X) + gp.noise * np.eye(len(X))
    cross = gp.kernel(X, X_star)
    return np.sqrt(np.maximum(gp.kernel.diag(X_star) - np.sum(cross * np.linalg.solve(K, cross), axis=0), 0))


def _measured(plan, y):
    """The measurements without noise, about the middle of the bounds."""
    return plan.measurement.by_row() @ (np.clip(y, *plan.gp.bounds) - _middle(plan.gp))


def _middle(gp):
    return gp.bounds[0] + (gp.bounds[1] - gp.bounds[0]) / 2


def interpolation(grid, x):
    """(len(x), len(grid)): values at x by straight lines between those on the grid."""
    return np.array([np.interp(x, grid, unit) for unit in np.eye(len(grid))]).T


def splits(n_rows, n_test, n_splits, seed=0):
    """Pairs (train, test) of row numbers, from a public seed."""
    rng = np.random.default_rng(seed)
    for _ in range(n_splits):
        order = rng.permutation(n_rows)
        yield order[n_test:], order[:n_test]


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def load(fetch, make, real):
    """A data set and words for it: the real one if CLOAKGP_DATA names a folder with it, else look-alikes."""
    if os.environ.get("CLOAKGP_DATA"):
        try:
            return fetch(), real
        except FileNotFoundError as error:
            print(f"No real data: {error}\n", file=sys.stderr)
    return make(), "GENERATED look-alikes, not the paper's data (set CLOAKGP_DATA for real ones)"


@contextmanager
def seeded(seed):
    """Reproducible privacy noise, for pictures only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureWarning)
        with insecure_seed(seed):
            yield


def parser(doc):
    made = argparse.ArgumentParser(description=doc.splitlines()[0])
    made.add_argument("--out", type=Path, default=OUTPUT, help="folder for the picture")
    return made


def pyplot():
    """Matplotlib without a screen, in the figures' style."""
    mpl.use("Agg")
    mpl.rcParams.update(
        {
            "font.size": 9.5,
            "axes.titlesize": 10.5,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
            "mathtext.default": "regular",
        }
    )
    import matplotlib.pyplot as plt

    return plt


def caption(figure, *lines):
    """Small print below a figure with constrained layout."""
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8, color="#404040", linespacing=1.35)


def letter(ax, words):
    """A panel's letter, outside its upper left corner."""
    ax.text(-0.02, 1.03, words, transform=ax.transAxes, weight="bold", fontsize=13, ha="right", va="bottom")


def save(figure, path, dpi=140, colours=None):
    """Write a PNG; with `colours`, a small one of so many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi, metadata={"Software": None})
    if colours:
        from PIL import Image

        Image.open(path).convert("RGB").quantize(colours).save(path, optimize=True)
    print(f"\nPicture: {path.name}, {path.stat().st_size / 1000:.0f} kB")
