"""Kernels as plain JSON, for release files: read through a closed list, never executed."""

from __future__ import annotations

import reprlib
from dataclasses import fields
from typing import Any

from cloakgp.errors import ArgumentError
from cloakgp.kernels.base import MAX_DEPTH, Combination, Constant, Kernel, Product, Sum
from cloakgp.kernels.category import Category
from cloakgp.kernels.families import (
    EQ,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
)
from cloakgp.kernels.gibbs import Gibbs
from cloakgp.kernels.integral import Integral

_STATIONARY: list[type[Kernel]] = [EQ, Matern12, Matern32, Matern52, Periodic, RationalQuadratic]
_OTHERS: list[type[Kernel]] = [Category, Gibbs, Linear, Polynomial, Constant, Integral, Sum, Product]
KINDS = {kind.__name__: kind for kind in [*_STATIONARY, *_OTHERS]}
"""The list of kernels: all that a spec may name. Texts, exports and documentation follow it."""

_KNOTS = 3  # how deep lists are in each other: positions and lengthscales, of positions, of coordinates


def from_spec(spec: Any, custom: Kernel | None = None) -> Kernel:
    """Rebuild a kernel from :meth:`Kernel.to_spec`'s description.

    Only this module's kernels can come out, each through its own constructor's checks, so a
    description from an untrusted file is safe to read.

    Parameters
    ----------
    spec : dict
    custom : Kernel, optional
        What to put in the place of each :class:`Custom` kernel, whose function no description holds.

    Raises
    ------
    ValueError
        If the description is not one that `to_spec` writes, or holds a :class:`Custom` kernel and `custom`
        is not given.
    """
    return _from_spec(spec, 0, custom)


def _from_spec(spec: Any, depth: int, custom: Kernel | None) -> Kernel:
    if depth > MAX_DEPTH:
        raise ValueError(f"kernel spec must be nested at most {MAX_DEPTH} deep.")
    if not isinstance(spec, dict) or not isinstance(spec.get("kind"), str):
        raise ValueError(f"kernel spec must be a dict with a kind; got {reprlib.repr(spec)}.")
    if spec["kind"] == "Custom" and custom is not None and len(spec) == 1:
        return custom
    if spec["kind"] == "Custom":
        raise ValueError(
            "a custom kernel cannot be rebuilt from a file, which does not hold its function. "
            "The reader must give the kernel."
        )
    kind = KINDS.get(spec["kind"])
    if kind is None:
        raise ValueError(
            f"kernel spec kind must be one of {', '.join(KINDS)}; got {reprlib.repr(spec['kind'])}."
        )
    values = {name: value for name, value in spec.items() if name != "kind"}
    wanted = {f.name for f in fields(kind)}
    if values.keys() != wanted:
        raise ValueError(
            f"kernel spec of kind {kind.__name__} must have exactly the keys {sorted(wanted)}; "
            f"got {reprlib.repr(list(values))}."
        )
    if issubclass(kind, Combination):
        if not isinstance(values["kernels"], list):
            raise ArgumentError("kernels", "must be a list", reprlib.repr(values["kernels"]))
        return kind([_from_spec(part, depth + 1, custom) for part in values["kernels"]])
    if kind is Integral:
        if type(values["normalise"]) is not bool:
            raise ArgumentError("normalise", "must be true or false", reprlib.repr(values["normalise"]))
        values["kernel"] = _from_spec(values["kernel"], depth + 1, custom)
    else:
        # What a category's levels are called, its own constructor checks.
        numbers = {name: value for name, value in values.items() if name != "levels"}
        _check_numbers(numbers, _KNOTS if kind is Gibbs else 1)
    try:
        return kind(**values)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"kernel spec of kind {kind.__name__} is not valid: {error}") from error


def _check_numbers(values: dict[str, Any], depth: int) -> None:
    for name, value in values.items():
        if not _numbers(value, depth):
            raise ValueError(f"{name} in a kernel spec must hold numbers; got {reprlib.repr(value)}.")


def _numbers(value: Any, depth: int) -> bool:
    """Whether this is a number or None, or lists of them inside each other, at most so deep."""
    if isinstance(value, list):
        return depth > 0 and all(_numbers(entry, depth - 1) for entry in value)
    return type(value) in (int, float, type(None))
