"""Honest files of every kind, and the tools of a careful liar: every digest is right again afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloakgp import GP, AutoGP, Grid, Hyperprior, ReleaseFileError, VerificationError, verify
from cloakgp.core.calibration import calibrate, delta_slack
from cloakgp.data import cells
from cloakgp.files import container
from cloakgp.kernels import EQ, Category, Constant
from cloakgp.measure.certificate import DIGITS, short
from cloakgp.testing import InsecureWarning, insecure_seed

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 10, size=(12, 1))
Y = RNG.normal(2.0, 3.0, size=12)
X_STAR = np.linspace(0, 10, 4)[:, None]
BASIS = np.linspace(0.0, 10.0, 5)[:, None]
REPEATED = X[[0, 1, 2, 3, 4, 0, 1, 2, 8, 9, 10, 0]]
PER_ROW = np.resize([0.4, 0.4, 0.9], 12)
WITH_LEVELS = np.hstack([X, np.resize([[0.0], [1.0], [2.0]], (12, 1))])
IDS = list("abcabcddeebb")
PROMISE = {"epsilon": 1.0, "delta": 0.01}
WEIGHTS = [1, 2, 3, 4]
KERNEL = EQ(2.0, variance=1.5)
SETTING = GP(KERNEL, noise=0.4, bounds=(-1.0, 4.0), mean=0.7)
SPARSE = GP(KERNEL, 0.4, (-1.0, 4.0), 0.7, X_STAR + 0.1, "fitc")
FEW = Hyperprior(lengthscale=(0.2, 1.0))  # models: they are gone through again in every check
CLASSES = ["a", "b", "c", "d"]
OF_CLASSES = GP(EQ(2.0) + Constant(1.0), classes=CLASSES)
LABELS = np.array(CLASSES)[np.arange(12) % 4]
GRID = Grid({"a": (0, 10), "k": ["x", "y"]}, cells=5)
TABLE = {"a": X[:, 0], "k": np.resize(["x", "y", "y"], 12)}
POINTS = {"a": [1, 5, 9, 5], "k": ["x", "x", "y", "y"]}


def curve(X: Any) -> Any:
    return 0.7 + 0.1 * X[:, 0]


WINDOWED = GP(KERNEL, 0.4, (lambda X: curve(X) - 1, lambda X: curve(X) + 2 + X[:, 0] / 9), curve)
SPARSE_WINDOWED = GP(KERNEL, 0.4, WINDOWED.bounds, curve, X_STAR + 0.1, "fitc")


def function(**options: Any) -> Any:
    return lambda: SETTING.plan_function(X, **PROMISE, **options)


def design(name: str) -> Any:
    return lambda: SETTING.plan(X, X_star=X_STAR, design=name, weights=WEIGHTS, **PROMISE)


def learned(X: Any = X, X_star: Any = X_STAR, stages: int = 3, **options: Any) -> Any:
    own = {name: options.pop(name) for name in ("categories", "outcome", "classes") if name in options}
    model = AutoGP(**own, stages=stages) if "outcome" in own else AutoGP((-1.0, 4.0), **own, stages=stages)
    return model.plan(X, X_star=X_star, **PROMISE, **options)


def in_cells(model: Any = None, **options: Any) -> Any:
    """Twelve rows in five cells or fewer: it takes many rows otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "MOST_CELLS", 5)
        model = AutoGP((-1.0, 4.0), stages=2) if model is None else model
        return model.plan(X, X_star=X_STAR, **PROMISE, **options)


def of_rows(model: Any, **options: Any) -> Any:
    return model.plan_rows(GRID, 6 if "max_rows" in options else 12, X_star=POINTS, **PROMISE, **options)


KNOWN_ROWS = GP(EQ(2.0, variance=1.5, active_dims=[0]) * Category(0.5, active_dims=[1]), 0.4, (-1.0, 4.0))
LEARNED_ROWS = AutoGP((-1.0, 4.0), stages=3, prior=FEW)
PLANS = {
    "mse": design("mse"),
    "max": design("max"),
    "posterior": design("posterior"),
    "volume": design("volume"),
    "shared columns": lambda: GP(EQ(2.0) + Constant(3.0), PER_ROW, (-1.0, 4.0), 0.7).plan(
        REPEATED, X_star=X_STAR, **PROMISE
    ),
    "inducing": lambda: SPARSE.plan(X, X_star=X_STAR, **PROMISE),
    "inducing, cells": lambda: in_cells(SPARSE),
    "windows": lambda: WINDOWED.plan(REPEATED, X_star=X_STAR, **PROMISE),
    "cells with windows": lambda: in_cells(SPARSE_WINDOWED),
    "one point": lambda: SETTING.plan(X, X_star=X_STAR[1:2], **PROMISE),
    "people": lambda: SETTING.plan(REPEATED, X_star=X_STAR, people=IDS, **PROMISE),
    "people, cells": lambda: in_cells(SPARSE, people=IDS, within=0.5),
    "function": function(),
    "paper": function(bound="paper"),
    "hidden": function(bound="input-free", basis=BASIS),
    "function for people": function(people=IDS),
    "staged": lambda: learned(weights=WEIGHTS),
    "after another": lambda: SETTING.plan(
        X, X_star=X_STAR, given=[design("mse")().release(Y)], windows=2.0, **PROMISE
    ),
    "people in stages": lambda: learned(people=IDS),
    "categories": lambda: learned(WITH_LEVELS, WITH_LEVELS[:4], stages=2, categories=[1]),
    "yes/no": lambda: learned(stages=1, outcome="yes/no"),
    "cells": in_cells,
    "cells of people": lambda: in_cells(people=IDS),
    "classes": lambda: OF_CLASSES.plan(X, X_star=X_STAR, **PROMISE),
    "classes of people": lambda: OF_CLASSES.plan(X, X_star=X_STAR, people=IDS, **PROMISE),
    "whole rows": lambda: of_rows(LEARNED_ROWS),
    "people's whole rows": lambda: of_rows(LEARNED_ROWS, max_rows=2),
    "rows of a known model": lambda: of_rows(KNOWN_ROWS),
    "rows of classes": lambda: of_rows(OF_CLASSES),
    "people's rows of classes": lambda: of_rows(OF_CLASSES, max_rows=2),
}
FOR_PEOPLE = ("people", "function for people", "people, cells", "people in stages")
PEOPLES_ROWS = ("people's whole rows", "people's rows of classes")
WITH_WINDOWS = ("windows", "cells with windows")
IN_PART = ("hidden", "shared columns", *WITH_WINDOWS, *PEOPLES_ROWS)
PREDICTIONS = ("mse", "max", "posterior", "volume", "shared columns", "inducing", "inducing, cells")
FUNCTIONS = ("function", "paper", "hidden")
ALONE = tuple(PLANS)[: tuple(PLANS).index("staged")]
STAGED = tuple(kind for kind in PLANS if kind not in ALONE)
SHOWN = tuple(kind for kind in ALONE if kind != "hidden")
FILE = "release file"
_made: dict[str, bytes] = {}


def answered(kind: str, plan: Any) -> Any:
    """A release of such a plan, with a receipt's and a title's words or without."""
    y = LABELS if "classes" in kind else np.arange(12) % 3 == 0 if kind == "yes/no" else Y
    if "rows" not in kind.split() and kind != "rows of classes":
        return plan.release(y)
    return plan.release(TABLE, y, people=np.arange(12) % 6 if kind in PEOPLES_ROWS else None)


def honest(kind: str, folder: Path) -> Path:
    """A file of this kind."""
    path = folder / f"{kind.replace('/', ' ')}.cloak"
    if kind not in _made:
        if kind in STAGED:
            save_staged(PLANS[kind](), path, kind)
        else:
            PLANS[kind]().release(Y).save(path)
        _made[kind] = path.read_bytes()
    path.write_bytes(_made[kind])
    return path


def save_staged(plan: Any, path: Path, kind: str = "staged") -> None:
    """A release whose windows are the same in every run of the tests."""
    with hidden_seed(path):
        answered(kind, plan).save(path)


@contextmanager
def hidden_seed(path: Path) -> Iterator[Path]:
    """The noise of what is saved there is by a seed, which the file hides."""
    with pytest.warns(InsecureWarning), insecure_seed(5):
        yield path
    rewrite(path, certificate(insecure=False))


def refusal(path: Path, **given: Any) -> str:
    """Why a file is refused: a reason of the verifier's, or that it is no file of this schema."""
    with pytest.raises((VerificationError, ReleaseFileError)) as caught:
        verify(path, **given)
    return getattr(caught.value, "reason", FILE)


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
    """Change what is said of a stage that stands alone, and every number that follows."""
    c, stage, bounds = manifest["certificate"], manifest["stages"][0], manifest["model"]["bounds"]
    own = c["parts"][0]
    step = own["noise_scale"] / own["sigma"]
    for words in (c, own, stage):
        words.update({name: value for name, value in changes.items() if name in words})
    if bounds != "per row":
        step = math.ldexp(bounds[1] - bounds[0], -(own["y_bits"] + own["matrix_bits"]))
    with suppress(ValueError):  # too small a promise
        c["mu"] = calibrate(c["epsilon"], c["delta"], c["calibration"], c["n_measurements"])
    own["sensitivity"], own["noise_scale"] = own["sensitivity_steps"] * step, own["sigma"] * step
    c["delta_slack"] = delta_slack(c["mu"], c["epsilon"], c["delta"], c["n_measurements"])
    for words in (c, own):
        words.update({name: short(words[name], *how) for name, how in DIGITS.items() if name in words})
    own["gap"] = own["objective"] / own["lower_bound"] - 1


def scale_noise(manifest: dict[str, Any], factor: float, *, sensitivity: bool = False) -> None:
    """Another noise scale, with all that follows; the sensitivity is scaled too, if that is asked for."""
    own, mu = manifest["certificate"]["parts"][0], manifest["certificate"]["mu"]
    sigma = int(float(int(own["sigma"] * factor)))
    steps = math.floor(mu * sigma) if sensitivity else own["sensitivity_steps"]
    size = (sigma / own["sigma"]) ** 2
    sizes = {name: own[name] * size for name in ("objective", "lower_bound")}
    settle(manifest, sigma=sigma, sensitivity_steps=steps, **sizes)


# Changes, by what they touch


def words(*place: Any, **changes: Any) -> Any:
    """Of the manifest: at this place, each a value, or what is to be done with the one that is there."""

    def change(manifest: Any, arrays: Any) -> None:
        holder = manifest
        for key in place:
            holder = holder[key]
        for name, how in changes.items():
            holder[name] = how(holder[name]) if callable(how) else how

    return change


def certificate(**changes: Any) -> Any:
    return words("certificate", **changes)


def part(**changes: Any) -> Any:
    return words("certificate", "parts", 0, **changes)


def stage(number: int, **changes: Any) -> Any:
    return words("stages", number, **changes)


def spread(number: int, **changes: Any) -> Any:
    return words("stages", number, "spread", **changes)


def outside(number: int, **changes: Any) -> Any:
    return words("stages", number, "outside", **changes)


def both(**changes: Any) -> Any:
    """In a stage's words and in the certificate's part alike."""
    return done(part(**changes), stage(0, **changes))


def model(**changes: Any) -> Any:
    return words("model", **changes)


def done(*changes: Any) -> Any:
    def change(manifest: Any, arrays: Any) -> None:
        for one in changes:
            one(manifest, arrays)

    return change


def array(name: str, change: Any) -> Any:
    def edit(manifest: Any, arrays: Any) -> None:
        arrays[name] = np.ascontiguousarray(change(arrays[name]), dtype=arrays[name].dtype)

    return edit


def entry(name: str, index: Any, change: Any) -> Any:
    def edit(manifest: Any, arrays: Any) -> None:
        arrays[name][index] = change(arrays[name][index])

    return edit


def protects(unit: Any) -> Any:
    """Everything that says what is protected."""
    return done(words(unit=unit.name), certificate(unit=unit.name, neighbours=unit.neighbours))
