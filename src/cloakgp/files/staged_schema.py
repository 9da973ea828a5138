"""The closed schema of a release in stages: which keys, arrays, types and words there may be, and no others.

As :mod:`cloakgp.files.schema` for the other kinds. Each stage has its words in a list, and its arrays under
names that end with its number; the first stage belongs to the plan, the others to the release.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from cloakgp.files.container import Array, ReleaseFileError
from cloakgp.measurements.certificate import has_fields
from cloakgp.measurements.staged_certificate import FIELDS, StagedCertificate
from cloakgp.model.hyperprior import FAMILIES, MOST_SEASONS, n_parts
from cloakgp.model.inducing import MOST_INDUCING
from cloakgp.model.outcome import CHANCES, CLASSES, LINKS, MOST_CLASSES, YES_NO, as_classes
from cloakgp.rows.columns import ORIGIN
from cloakgp.rows.grid import MOST_CELLS

STAGED = "staged"
MOST_STAGES, MOST_GIVEN, MOST_LEARNED = 12, 100, 200
MOST_IN_ALL = 100
"""Stages in a file, those of earlier releases included: their arrays' names have numbers of two digits."""
MOST_AXES = 100
WIDEST = 100.0
"""Half a window's width must be below so many standard deviations."""
STAGE_ARRAYS = {  # little-endian whatever the machine; the number of dimensions
    "matrix": ("<i8", 2),
    "lower": ("<f8", 1),
    "upper": ("<f8", 1),
    "slope": ("<f8", 1),
    "shift": ("<f8", 1),
    "extra": ("<f8", 2),
    "centre": ("<f8", 1),
    "counts": ("<f8", 1),
    "z": ("<i8", 1),
}
_PLAN_ARRAYS = {
    "X": ("<f8", 2),
    "X_star": ("<f8", 2),
    "weights": ("<f8", 1),
    "inducing": ("<f8", 2),
    "cells": ("<f8", 2),
    "counts": ("<i8", 1),
    "people": ("<i8", 1),
    "rows_each": ("<f8", 1),
}
_WINDOWS = {"lower", "upper", "slope", "shift", "extra"}  # of a stage with windows
_KEYS = {
    "format",
    "schema",
    "unit",
    "release",
    "certificate",
    "model",
    "inputs_sha256",
    "kappa",
    "rule",
    "given",
    "stages",
    "members",
    "sha256",
}
_LATTICE = {"y_bits": int, "matrix_bits": int, "sigma": int, "sensitivity_steps": int}
_MOST_BITS = 62  # so that powers of two are integers of 64 bits
_NUMBERED = re.compile(r"([a-z]+)_(0|[1-9][0-9]?)")


def keys(manifest: dict[str, Any], plan: bool) -> set[str]:
    """Of the manifest, but for those that every release file has; with a grid if inputs are private."""
    return _KEYS | (set() if plan else {"learned"}) | (manifest.keys() & {"grid"})


def check(manifest: dict[str, Any], arrays: dict[str, Array], plan: bool) -> None:
    """Raise unless manifest and arrays fit; `plan` tells whether it is a plan's file, without answers."""
    digest = manifest["inputs_sha256"]
    good = digest is None or (isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None)
    _expect(good, "its inputs' digest makes no sense")
    _expect(type(manifest["rule"]) is int and 0 < manifest["rule"] < 2**31, "its rule makes no sense")
    before = _check_given(manifest["given"])
    _check_grid(manifest, before)
    _check_certificate(manifest)
    _check_model(manifest)
    stages = manifest["stages"]
    _expect(isinstance(stages, list), "it must list its stages")
    own = len(stages) - before
    _expect(
        1 <= own <= (1 if plan else len(manifest["certificate"]["shares"])),
        "it has too many or too few stages",
    )
    for number, words in enumerate(stages):
        _check_stage(words)
        if "grid" in manifest:  # the first counts rows, the others have windows
            good = words["windows"] is (number > 0) and (number > 1 or words["spread"] is None)
            _expect(good, "its stages are not those of whole rows")
    if not plan:
        _check_learned(manifest, arrays)
    _check_arrays(manifest, arrays, before if plan else len(stages))


def _check_given(given: Any) -> int:
    """How many stages earlier releases had that are told of."""
    _expect(isinstance(given, list) and len(given) <= MOST_GIVEN, "it must list what was given")
    stages = 0
    for one in given:
        kinds = {"epsilon": float, "delta": float, "mu": float, "most": int, "stages": int}
        names = {*kinds, "shares", "bounds"}
        _expect(isinstance(one, dict) and set(one) == names, "what was given lacks a key or has one too many")
        good = all(type(one[name]) is kind and 0 < one[name] < 2**63 for name, kind in kinds.items())
        good = good and _numbers(one["shares"]) and all(0 < share <= 1 for share in one["shares"])
        good = good and _numbers(one["bounds"], 2) and one["bounds"][0] < one["bounds"][1]
        _expect(good and one["stages"] <= len(one["shares"]) <= MOST_STAGES, "what was given makes no sense")
        stages += one["stages"]
    return stages


def _check_grid(manifest: dict[str, Any], before: int) -> None:
    """Where inputs are private: nothing is told of them."""
    if "grid" not in manifest:
        return
    grid = manifest["grid"]
    good = isinstance(grid, dict) and set(grid) == {"axes", "size", "max_rows"}
    _expect(
        good and isinstance(grid["axes"], list) and 1 <= len(grid["axes"]) <= MOST_AXES,
        "its grid makes no sense",
    )
    for axis in grid["axes"]:
        good = isinstance(axis, dict) and set(axis) - {"origin"} in (
            {"name", "levels"},
            {"name", "low", "high", "cells"},
        )
        _expect(good and type(axis["name"]) is str, "its grid makes no sense")
        if "levels" in axis:
            good = isinstance(axis["levels"], list) and len(axis["levels"]) <= MOST_CELLS
            good = good and all(type(level) in (str, int) for level in axis["levels"])
        else:
            good = _numbers([axis["low"], axis["high"]]) and type(axis["cells"]) is int
        good = good and axis.get("origin", ORIGIN) == ORIGIN and not {"levels", "origin"} <= set(axis)
        _expect(good, "its grid makes no sense")
    size, most = grid["size"], grid["max_rows"]
    good = (
        type(size) is int
        and 1 <= size < 2**40
        and (most is None or (type(most) is int and 1 <= most < 2**40))
    )
    _expect(good, "its population makes no sense")
    _expect(before == 0 and manifest["inputs_sha256"] is None, "it tells of private inputs")


def _expect(fine: bool, what: str) -> None:
    if not fine:
        raise ReleaseFileError(f"release file: {what}.")


def _numbers(value: Any, n: int | None = None) -> bool:
    return (
        isinstance(value, list)
        and (n is None or len(value) == n)
        and all(type(number) is float and math.isfinite(number) for number in value)
    )


def _check_certificate(manifest: dict[str, Any]) -> None:
    certificate = manifest["certificate"]
    _expect(
        has_fields(certificate, FIELDS),
        "the certificate lacks a key or has one too many",
    )
    for name in FIELDS:
        kind, value = StagedCertificate.__annotations__[name], certificate[name]
        if name == "before":
            good = isinstance(value, list) and all(_numbers(pair, 2) for pair in value)
            good = good and value == [[one["epsilon"], one["delta"]] for one in manifest["given"]]
        elif name == "shares":
            good = (
                _numbers(value) and 1 <= len(value) <= MOST_STAGES and all(0 < share <= 1 for share in value)
            )
        else:
            good = type(value).__name__ == kind and not (kind == "int" and abs(value) >= 2**63)
        _expect(good, f"the certificate's {name} must be a {kind}")
    _expect(manifest["unit"] == certificate["unit"], "two units of protection are named")


def _check_model(manifest: dict[str, Any]) -> None:
    model, kappa = manifest["model"], manifest["kappa"]
    known = {"kernel", "noise", "mean", "bounds"}
    good = isinstance(model, dict) and set(model) - {"outcome", "classes"} in ({"prior", "bounds"}, known)
    _expect(good, "the model lacks a key")
    _expect(_numbers(model["bounds"], 2) and model["bounds"][0] < model["bounds"][1], "bounds make no sense")
    _check_outcome(model)
    _expect(
        len(manifest["given"]) == 0 or n_curves(model) == 1, "nothing can be given where there are classes"
    )
    good = kappa is None or (type(kappa) is float and 0 < kappa < WIDEST)
    _expect(good, f"kappa must be above 0 and below {WIDEST:g}")
    if "prior" not in model:
        good = _numbers([model["noise"], model["mean"]]) and model["noise"] > 0
        _expect(good and isinstance(model["kernel"], dict), "the model makes no sense")
        return
    prior = model["prior"]
    ends = ("lengthscale", "signal", "noise")
    good = isinstance(prior, dict) and set(prior) - {"categories", "seasons"} == {"kernels", *ends}
    columns = prior.get("categories", [0]) if good else []
    good = good and isinstance(columns, list) and 1 <= len(columns) <= MOST_AXES
    good = good and all(type(column) is int and 0 <= column < MOST_AXES for column in columns)
    good = good and columns == sorted(set(columns))
    _expect(good, "the prior lacks a key or has one too many")
    _check_seasons(prior)
    families = prior["kernels"]
    # No more than there are, or a file could ask for endless work.
    good = isinstance(families, list) and 1 <= len(families) <= len(FAMILIES)
    good = good and all(type(name) is str and name in FAMILIES for name in families)
    _expect(good, "the prior names no families")
    good = all(_numbers(prior[name], 2) and 0 < prior[name][0] <= prior[name][1] for name in ends)
    _expect(good, "the prior's ends make no sense")


def _check_outcome(model: dict[str, Any]) -> None:
    """Real outcomes are not named; others are, and have bounds and classes of their own."""
    outcome, classes = model.get("outcome"), model.get("classes", [])
    _expect(outcome is None or (type(outcome) is str and outcome in LINKS), "its outcome makes no sense")
    try:
        named = list(as_classes(classes)) if isinstance(classes, list) else None
    except ValueError:
        named = None
    most = {YES_NO: (0, 2), CLASSES: range(3, MOST_CLASSES + 1)}.get(outcome, (0,))  # type: ignore[arg-type]
    _expect(named == classes and len(classes) in most, "its classes make no sense")
    if outcome is None:
        return
    low, high = model["bounds"]
    good = (low, high) == (0.0, 1.0) if outcome in CHANCES else low >= 0
    _expect(good, "bounds are not such as its outcome has")


def n_curves(model: dict[str, Any]) -> int:
    """How many functions there are: one for each of several classes."""
    return len(model["classes"]) if model.get("outcome") == CLASSES else 1


def _check_seasons(prior: dict[str, Any]) -> None:
    if "seasons" not in prior:
        return
    pairs, levels = prior["seasons"], prior.get("categories", [])
    good = isinstance(pairs, list) and 1 <= len(pairs) <= MOST_SEASONS
    good = good and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    good = good and all(type(column) is int and column not in levels for column, _ in pairs)
    good = good and all(0 <= column < MOST_AXES for column, _ in pairs)
    good = good and all(_numbers([period]) and period > 0 for _, period in pairs)
    _expect(good and len({tuple(pair) for pair in pairs}) == len(pairs), "the prior's seasons make no sense")


def _check_stage(words: Any) -> None:
    names = {*_LATTICE, "windows", "spread"}
    _expect(isinstance(words, dict) and set(words) == names, "a stage lacks a key or has one too many")
    _check_lattice(words)
    _expect(type(words["windows"]) is bool, "a stage's windows must be true or false")
    spread = words["spread"]
    if spread is not None:
        good = isinstance(spread, dict) and set(spread) == {*_LATTICE, "limit"}
        _expect(good, "a stage's noise level lacks a key or has one too many")
        _check_lattice(spread)
        limit = spread["limit"]
        _expect(type(limit) is float and 0 < limit < math.inf, "a stage's limit must be above 0")


def _check_lattice(words: dict[str, Any]) -> None:
    for name, kind in _LATTICE.items():
        most = _MOST_BITS if name.endswith("_bits") else 2**63 - 1
        _expect(
            type(words[name]) is kind and 0 <= words[name] <= most, f"a stage's {name} must be a whole number"
        )


def _check_learned(manifest: dict[str, Any], arrays: dict[str, Array]) -> None:
    columns = arrays["X_star"].shape[1]
    prior = manifest["model"].get("prior", {})
    categories, seasons = len(prior.get("categories", ())), len(prior.get("seasons", ()))
    lengths, parts = columns - categories, n_parts(columns - categories, categories, seasons)
    optional = {"shares"} if parts > 1 else set()
    learned, known = manifest["learned"], "prior" not in manifest["model"]
    good = isinstance(learned, list) and (len(learned) == 0 if known else 1 <= len(learned) <= MOST_LEARNED)
    _expect(good, "it must list what was learned")
    for one in learned:
        names = {"family", "lengthscale", "signal", "level", "noise", "weight"} | optional
        _expect(
            isinstance(one, dict) and set(one) == names, "what was learned lacks a key or has one too many"
        )
        family, numbers = one["family"], [one["signal"], one["level"], one["noise"]]
        good = type(family) is str and family in FAMILIES and _numbers(one["lengthscale"], lengths)
        good = good and _numbers(numbers) and all(number > 0 for number in one["lengthscale"] + numbers)
        if optional:
            good = good and _numbers(one["shares"], parts) and all(share > 0 for share in one["shares"])
            good = good and abs(math.fsum(one["shares"]) - 1) <= 1e-9
        weight = one["weight"]
        good = good and type(weight) is float and 0 <= weight <= 1
        _expect(good, "what was learned makes no sense")


def wanted(manifest: dict[str, Any], answered: int) -> set[str]:
    """Names of the arrays that there must be, if so many stages were answered."""
    names, rows = {"X_star", "weights"}, "grid" in manifest
    if not rows:
        names |= {"X"} if manifest["inputs_sha256"] is None else {"cells", "counts"}
    for number, words in enumerate(manifest["stages"]):
        own = (
            {"matrix"}
            | (_WINDOWS if words["windows"] else set())
            | ({"counts"} if rows and number else set())
        )
        own |= ({"centre"} if words["spread"] else set()) | ({"z"} if number < answered else set())
        names |= {f"{name}_{number}" for name in own}
    return names


def _check_arrays(manifest: dict[str, Any], arrays: dict[str, Array], answered: int) -> None:
    needed = wanted(manifest, answered)
    _expect(
        needed
        <= set(arrays)
        <= needed | {"inducing"} | (set() if "grid" in manifest else {"X", "people", "rows_each"}),
        "an array is missing, or one is not in the schema",
    )
    _expect(not any(0 in array.shape for array in arrays.values()), "an array is empty")
    for name, array in arrays.items():
        found = _NUMBERED.fullmatch(name)
        plain = _PLAN_ARRAYS.get(name)
        dtype, dimensions = plain if plain is not None else STAGE_ARRAYS[found[1]]  # type: ignore[index]
        _expect(
            array.dtype.str == dtype and array.ndim == dimensions,
            f"{name} must have dtype {dtype}, {dimensions} dimension(s)",
        )
        _expect(array.dtype.kind != "f" or bool(np.isfinite(array).all()), f"{name} must be finite")
    _expect(bool((arrays["weights"] > 0).all()), "weights must be above 0")
    (P, D), N = arrays["X_star"].shape, manifest["certificate"]["n_rows"]
    columns = manifest["model"].get("prior", {}).get("categories", [0])
    _expect(max(columns) < D, "a category is no column of X")
    seasons = manifest["model"].get("prior", {}).get("seasons", [[0, 1.0]])
    _expect(max(column for column, _ in seasons) < D, "a season is of no column of X")
    shapes: dict[str, tuple[int, ...]] = {"X": (N, D), "X_star": (P, D), "weights": (P,), "people": (N,)}
    if "inducing" in arrays:
        _expect(len(arrays["inducing"]) <= MOST_INDUCING, "there are too many inducing inputs")
        shapes["inducing"] = (len(arrays["inducing"]), D)
    U = arrays["matrix_0"].shape[1]
    if "cells" in arrays:
        shapes |= {"cells": (U, D), "counts": (U,)}
        counts = arrays["counts"]
        _expect(counts.shape == (U,) and bool((counts > 0).all()), "every cell must have a row")
        _expect(sum(counts.tolist()) == N, "the cells' rows must add up to all rows")
    if "rows_each" in arrays:
        shapes["rows_each"] = (U,)
        _expect("cells" in arrays and "people" in manifest, "rows of each person are for people in cells")
        _expect(bool((arrays["rows_each"] >= 1).all()), "everybody in a cell must have a row")
    for number, words in enumerate(manifest["stages"]):
        q = len(arrays[f"matrix_{number}"])
        curves = 1 if "grid" in manifest and number == 0 else n_curves(manifest["model"])  # counts have none
        each = {
            "matrix": (q, U),
            "shift": (q,),
            "extra": (q, q),
            "z": (curves * q + (words["spread"] is not None),),
        }
        each |= dict.fromkeys(("lower", "upper", "slope", "centre", "counts"), (U,))
        shapes |= {f"{name}_{number}": shape for name, shape in each.items()}
    for name, array in arrays.items():
        _expect(array.shape == shapes[name], f"{name} has shape {array.shape}, expected {shapes[name]}")
    for name, array in arrays.items():
        if name.startswith("counts_"):
            _expect(bool((array > 0).all()), "a cell's estimate must be above 0")
        if name.startswith("upper_"):
            _expect(bool((array > arrays[name.replace("upper", "lower")]).all()), "a window holds nothing")
