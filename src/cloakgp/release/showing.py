"""Plans and releases as tables: a frame of the test points, and a few lines for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from statistics import NormalDist
from typing import Any

import numpy as np

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError
from cloakgp.data.columns import Column, Columns
from cloakgp.posterior.learning import check_level

BACKENDS = ("pandas", "polars", "pyarrow")


def inputs_of(plan: Any) -> tuple[Column, ...]:
    """The columns of X; x, or x1, x2, ... if they have no names."""
    if plan.columns is not None:
        return tuple(plan.columns.inputs)
    return tuple(map(Column, unnamed(plan.shown_inputs.shape[1])))


def unnamed(width: int) -> list[str]:
    """What columns are called that have no names."""
    return ["x"] if width == 1 else [f"x{place + 1}" for place in range(width)]


def response(plan: Any) -> str:
    """What is predicted."""
    return "y" if plan.columns is None or not plan.columns.response else str(plan.columns.response)


def interval_at(
    release: Any, X: FloatArray, level: float = 0.95, include_noise: bool = False
) -> tuple[FloatArray, ...]:
    """Prediction at `X`, its std, and the ends between which the truth lies with this probability.

    Of several classes, (n, K) of each. Of a function that hides its inputs, its values and their noise.
    """
    if not release.plan.denoises:
        mean, std = release.released_at(X)
        return tuple(interval(mean, std, level).values())
    ends = np.moveaxis(release.interval(X, level, include_noise=include_noise), -1, 0)
    return *release.predict(X, return_std=True, include_noise=include_noise), *ends


def interval(mean: FloatArray, std: FloatArray, level: Any) -> dict[str, FloatArray]:
    """A prediction, its std, and the two ends between which f lies with this probability."""
    half = NormalDist().inv_cdf(0.5 + check_level(level) / 2) * std
    return {"prediction": mean, "std": std, "lower": mean - half, "upper": mean + half}


def by_class(classes: Any, chances: FloatArray, **more: FloatArray) -> dict[str, FloatArray]:
    """Each class's probability by its name, and what else there is beside it: columns of (n, K) arrays."""
    found = {}
    for place, name in enumerate(classes):
        found[f"{name}"] = chances[:, place]
        found |= {f"{name} {what}": values[:, place] for what, values in more.items()}
    return found


def frame(columns: Columns | None, X: FloatArray, numbers: dict[str, FloatArray], backend: Any) -> Any:
    """A table with the inputs, named and coded as they were given, and these numbers beside them."""
    named = zip(unnamed(X.shape[1]), X.T, strict=True)
    table: dict[str, Any] = dict(named) if columns is None else columns.shown(X)
    return framed(beside(table, numbers), backend)


def beside(table: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs and numbers in one table; a number whose name an input has gets another."""
    return dict(table) | {f"{name}_" if name in table else name: one for name, one in numbers.items()}


def framed(table: dict[str, Any], backend: Any) -> Any:
    """Columns as a table of one of the libraries."""
    checks.choice(backend, "backend", BACKENDS)
    import narwhals.stable.v2 as nw  # late: it need not be loaded for arrays

    plain = {name: list(one) if one.dtype.kind == "O" else np.array(one) for name, one in table.items()}
    try:
        return nw.from_dict(plain, backend=backend).to_native()
    except ImportError:
        others = " or ".join(repr(other) for other in BACKENDS if other != backend)
        remedy = f"Install {backend}, or give backend={others}."
        raise ArgumentError("backend", "must be a library that is installed", repr(backend), remedy) from None


def html(*shown: Any) -> str:
    """For notebooks: as it is printed, and nothing that is not escaped."""
    text = "\n".join(map(str, shown))
    return f"<pre>{escape(text)}</pre>"
