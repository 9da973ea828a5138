"""Honest files of every kind, and the tools of a careful liar: every digest is right again afterwards."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloakgp import GP, AutoGP, Grid, Hyperprior
from cloakgp.calibration import delta_slack
from cloakgp.files import container
from cloakgp.kernels import EQ, Category, Constant
from cloakgp.measurements.certificate import DIGITS, short
from cloakgp.plans import out_of_core
from cloakgp.testing import InsecureWarning, insecure_seed

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 10, size=(12, 1))
Y = RNG.normal(2.0, 3.0, size=12)
X_STAR = np.linspace(0, 10, 4)[:, None]
BASIS = np.linspace(0.0, 10.0, 5)[:, None]
REPEATED = X[[0, 1, 2, 3, 4, 0, 1, 2, 8, 9, 10, 0]]
PER_ROW = np.resize([0.4, 0.4, 0.9], 12)
IDS = list("abcabcddeebb")
PROMISE = {"epsilon": 1.0, "delta": 0.01}
SETTING = GP(EQ(2.0, variance=1.5), noise=0.4, bounds=(-1.0, 4.0), mean=0.7)
SPARSE = GP(EQ(2.0, variance=1.5), 0.4, (-1.0, 4.0), 0.7, X_STAR + 0.1, "fitc")


def function(**options: Any) -> Any:
    return lambda: SETTING.plan_function(X, **PROMISE, **options)


def design(name: str) -> Any:
    return lambda: SETTING.plan(X, X_star=X_STAR, design=name, weights=[1, 2, 3, 4], **PROMISE)


def shared_columns() -> Any:
    gp = GP(EQ(2.0) + Constant(3.0), PER_ROW, (-1.0, 4.0), 0.7)
    return gp.plan(REPEATED, X_star=X_STAR, **PROMISE)


def curve(X: Any) -> Any:
    return 0.7 + 0.1 * X[:, 0]


WINDOWED = GP(
    EQ(2.0, variance=1.5), 0.4, (lambda X: curve(X) - 1, lambda X: curve(X) + 2 + X[:, 0] / 9), curve
)
SPARSE_WINDOWED = GP(WINDOWED.kernel, 0.4, WINDOWED.bounds, curve, X_STAR + 0.1, "fitc")


def recipe(gp: GP = SPARSE, **options: Any) -> Any:
    kept, out_of_core.DENSE = out_of_core.DENSE, 1
    try:
        return gp.plan(X, X_star=X_STAR, **PROMISE, **options)
    finally:
        out_of_core.DENSE = kept


PLANS = {
    "mse": design("mse"),
    "max": design("max"),
    "posterior": design("posterior"),
    "volume": design("volume"),
    "shared columns": shared_columns,
    "inducing": lambda: SPARSE.plan(X, X_star=X_STAR, **PROMISE),
    "recipe": recipe,
    "windows": lambda: WINDOWED.plan(REPEATED, X_star=X_STAR, **PROMISE),
    "recipe with windows": lambda: recipe(SPARSE_WINDOWED),
    "function": function(),
    "paper": function(bound="paper"),
    "hidden": function(bound="input-free", basis=BASIS),
    "one point": lambda: SETTING.plan(X, X_star=X_STAR[1:2], **PROMISE),
    "staged": lambda: AutoGP((-1.0, 4.0), stages=3).plan(X, X_star=X_STAR, weights=[1, 2, 3, 4], **PROMISE),
    "after another": lambda: SETTING.plan(
        X, X_star=X_STAR, given=[design("mse")().release(Y)], windows=2.0, **PROMISE
    ),
    "people": lambda: SETTING.plan(REPEATED, X_star=X_STAR, people=IDS, **PROMISE),
    "recipe for people": lambda: recipe(people=IDS, within=0.5),
    "function for people": lambda: function(people=IDS)(),
    "people in stages": lambda: AutoGP((-1.0, 4.0), stages=3).plan(X, X_star=X_STAR, people=IDS, **PROMISE),
}
FOR_PEOPLE = ("people", "function for people", "recipe for people", "people in stages")
WITH_WINDOWS = ("windows", "recipe with windows")
STAGED = ("staged", "after another", "people in stages")
PREDICTIONS = ("mse", "max", "posterior", "volume", "shared columns", "inducing", "recipe")
FUNCTIONS = ("function", "paper", "hidden")
SHOWN = tuple(kind for kind in PLANS if kind not in ("hidden", *STAGED))
WITH_MATRIX = tuple(kind for kind in SHOWN if "recipe" not in kind)
_made: dict[str, bytes] = {}


def honest(kind: str, folder: Path) -> Path:
    """A file of this kind."""
    path = folder / f"{kind}.cloak"
    if kind not in _made:
        if kind in STAGED:
            save_staged(PLANS[kind](), path)
        else:
            PLANS[kind]().release(Y).save(path)
        _made[kind] = path.read_bytes()
    path.write_bytes(_made[kind])
    return path


def save_staged(plan: Any, path: Path, y: Any = Y) -> None:
    """A release whose windows are the same in every run of the tests: by a seed, which the file hides."""
    with pytest.warns(InsecureWarning), insecure_seed(5):
        plan.release(y).save(path)
    rewrite(path, certificate(insecure=False))


FEW = Hyperprior(lengthscale=(0.2, 1.0))  # models: they are gone through again in every check
ROWS_GRID = Grid({"a": (0, 10), "k": ["x", "y"]}, cells=5)


def honest_rows(folder: Path, *, max_rows: int | None = None, known: bool = False) -> Path:
    """A file of whole rows: of twelve, or of six people with at most so many each."""
    path = folder / "rows.cloak"
    name = f"rows {max_rows} {known}"
    if name not in _made:
        kernel = EQ(2.0, variance=1.5, active_dims=[0]) * Category(0.5, active_dims=[1])
        gp: Any = GP(kernel, 0.4, (-1.0, 4.0)) if known else AutoGP((-1.0, 4.0), stages=3, prior=FEW)
        points = {"a": [1, 5, 9, 5], "k": ["x", "x", "y", "y"]}
        plan = gp.plan_rows(
            ROWS_GRID, 12 if max_rows is None else 6, X_star=points, max_rows=max_rows, **PROMISE
        )
        table = {"a": X[:, 0], "k": np.resize(["x", "y", "y"], 12)}
        with pytest.warns(InsecureWarning), insecure_seed(5):
            plan.release(table, Y, people=None if max_rows is None else np.arange(12) % 6).save(path)
        rewrite(path, certificate(insecure=False))
        _made[name] = path.read_bytes()
    path.write_bytes(_made[name])
    return path


def opened(path: Path) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """A file's contents, to be changed."""
    manifest, arrays, signature = container.read(path)
    return container.bare(manifest), {name: array.copy() for name, array in arrays.items()}, signature


def rewrite(path: Path, change: Any) -> None:
    """Change a file's contents, and put all digests right."""
    manifest, arrays, signature = opened(path)
    change(manifest, arrays)
    path.write_bytes(container.pack(manifest, arrays, signature))


def settle(manifest: dict[str, Any], **changes: Any) -> None:
    """Change a certificate, and every number in it that follows."""
    c, bounds = manifest["certificate"], manifest["model"]["bounds"]
    step = c["noise_scale"] / c["sigma"]
    c.update(changes)
    if bounds != "per row":
        step = math.ldexp(bounds[1] - bounds[0], -(c["y_bits"] + c["matrix_bits"]))
    exact = Fraction(c["sensitivity_steps"], c["sigma"])
    c["mu"] = float(exact) if Fraction(float(exact)) >= exact else math.nextafter(float(exact), 9)
    c["sensitivity"], c["noise_scale"] = c["sensitivity_steps"] * step, c["sigma"] * step
    c["delta_slack"] = delta_slack(c["mu"], c["epsilon"], c["delta"], c["n_measurements"])
    for name, how in DIGITS.items():
        c[name] = short(c[name], *how)
    c["gap"] = c["objective"] / c["lower_bound"] - 1


def scale_noise(manifest: dict[str, Any], factor: float, *, sensitivity: bool = False) -> None:
    """Another noise scale, with all that follows; the sensitivity is scaled too, if that is asked for."""
    c = manifest["certificate"]
    sigma = int(float(int(c["sigma"] * factor)))
    steps = math.floor(c["mu"] * sigma) if sensitivity else c["sensitivity_steps"]
    size = (sigma / c["sigma"]) ** 2
    settle(
        manifest,
        sigma=sigma,
        sensitivity_steps=steps,
        objective=c["objective"] * size,
        lower_bound=c["lower_bound"] * size,
    )


# Changes, by what they touch


def certificate(**changes: Any) -> Any:
    return lambda manifest, arrays: manifest["certificate"].update(changes)


def scaled(name: str, factor: float) -> Any:
    def change(manifest: Any, arrays: Any) -> None:
        value = manifest["certificate"][name]
        manifest["certificate"][name] = type(value)(value * factor)

    return change


def added(name: str, amount: int) -> Any:
    def change(manifest: Any, arrays: Any) -> None:
        manifest["certificate"][name] += amount

    return change


def flipped(name: str) -> Any:
    def change(manifest: Any, arrays: Any) -> None:
        manifest["certificate"][name] = not manifest["certificate"][name]

    return change


def part(name: str, key: str, change: Any) -> Any:
    def edit(manifest: Any, arrays: Any) -> None:
        manifest[name][key] = change(manifest[name][key])

    return edit


def model(**changes: Any) -> Any:
    return lambda manifest, arrays: manifest["model"].update(changes)


def array(name: str, change: Any) -> Any:
    def edit(manifest: Any, arrays: Any) -> None:
        arrays[name] = np.ascontiguousarray(change(arrays[name]), dtype=arrays[name].dtype)

    return edit


def entry(name: str, index: Any, change: Any) -> Any:
    def edit(manifest: Any, arrays: Any) -> None:
        arrays[name][index] = change(arrays[name][index])

    return edit


def unit(word: str) -> Any:
    def change(manifest: Any, arrays: Any) -> None:
        manifest["unit"] = manifest["certificate"]["unit"] = word

    return change
