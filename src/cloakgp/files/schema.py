"""The release file's closed schema: which keys, arrays, types and words there may be, and no others.

What is not listed here cannot be in a file. Each stage has its words in a list, and its arrays under names
that end with its number; those of earlier releases that were given come first. Where words are a record's
(columns, a grid, a kernel, a prior), it is the record that checks them: they must be what it would write
again. ``docs/release-file.md`` describes the schema for readers in other languages, and says which numbers
are left to the custodian. Whether the numbers follow from each other is a question for
:mod:`cloakgp.verification`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from cloakgp.core import checks
from cloakgp.data.columns import Columns
from cloakgp.data.grid import Grid
from cloakgp.data.inputs import TableRows
from cloakgp.designs import DESIGNS
from cloakgp.files import labels
from cloakgp.files.container import Array, ReleaseFileError
from cloakgp.kernels.specs import stored_kernel
from cloakgp.measure import certificate
from cloakgp.measure.statistics import BIN_ENDS, PLACES, WHOLE
from cloakgp.measure.unit import PERSON
from cloakgp.model.hyperprior import FAMILIES, Hyperprior, n_parts
from cloakgp.model.inducing import APPROXIMATIONS, MOST_INDUCING
from cloakgp.model.outcome import OUTCOMES, REAL, as_classes, outcome_named

FORMAT, PLAN_FORMAT, SCHEMA = "cloakgp-release", "cloakgp-charged-plan", 6
"""Of a release file; of a plan's, which is the same without an answer; the number of the schema of both."""
MEANS, FUNCTION = "means", "function"
"""How a stage that stands alone is read; others are read by the model."""
PEOPLE = "people"
"""The key that is there where the promise is to people, and nowhere else."""
COLUMNS, TABLE_ROWS, GRID = "columns", "table_rows", "grid"
"""Keys that are there where X was a table with names; where rows of it were left out; where X is private."""
PER_ROW = "per row"
"""In place of a model's number: there is an array with one for each row of X."""
CUSTODIANS_WORDS = "custodians_words_unchecked"
"""The manifest's one member with words that the custodian chose: bounded, and checked by nobody."""
MOST_STAGES, MOST_GIVEN, MOST_LEARNED, MOST_AXES = 12, 100, 200, 100
MOST_IN_ALL = 100
"""Stages in a file, those of earlier releases included: their arrays' names have numbers of two digits."""
WIDEST = 100.0
"""Half a window's width must be below so many standard deviations."""

# ------------------------------------------------------------------------------------------------- arrays


def _arrays(dtype: str, **shapes: str) -> dict[str, tuple[str, str]]:
    return {name: (dtype, shape) for name, shape in shapes.items()}


# Little-endian whatever the machine; and the shape: N rows, D columns of X, P test points, U distinct rows or
# cells, R rows or, if there are some, cells, m inducing inputs, q measurements of a stage, o of what its
# windows cut off, s of both, z numbers in its answer, e edges of bins, a bounds.
PLAN_ARRAYS = _arrays("<f8", X="ND", X_star="PD", weights="P", noise="R", lower="R", upper="R")
PLAN_ARRAYS |= _arrays("<f8", mean_rows="R", mean_star="P", inducing="mD", rows_each="U")
PLAN_ARRAYS |= _arrays("<f8", cells="UD", scale="D", means="UD", spreads="UD")
PLAN_ARRAYS |= _arrays("<i8", counts="U", people="N")
STAGE_ARRAYS = _arrays("<f8", lower="U", upper="U", slope="U", shift="s", extra="ss", centre="U", counts="U")
STAGE_ARRAYS |= _arrays("<f8", reconstruction="Pq", offset="P", gp_std="P")  # of a stage alone
STAGE_ARRAYS |= _arrays("<i8", matrix="qU", outside="oU", z="z", edges="Ue", atoms="Ua")
_POSITIVE = {"weights", "noise", "counts", "rows_each", "atoms"}
_WINDOWS = {"lower", "upper", "slope", "shift", "extra"}  # of a stage with windows
_BINS = {"edges", "atoms"}  # of the stage that counts where outcomes fell
_CELLS = {"cells", "scale", "counts", "means", "spreads"}
_OF_EACH = {"noise": {"noise"}, "bounds": {"lower", "upper"}, "mean": {"mean_rows", "mean_star"}}
_NUMBERED = re.compile(r"([a-z_]+)_(0|[1-9][0-9]?)")

# -------------------------------------------------------------------------------------------------- words
# A form is a type, a function, a word, a list of a form, keys with a form each, or several in a tuple.


def _between(kind: Any, least: float, most: float) -> Callable[[Any], bool]:
    """A number of this type within these ends, both included."""
    return lambda value: type(value) is kind and bool(least <= value <= most)


def _digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _one(form: Any) -> Callable[[Any], bool]:
    """A list of just one."""
    return lambda value: isinstance(value, list) and len(value) == 1 and _fits(value[0], form)


def _record(read: Callable[[Any], Any], write: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """What a record would write again that is read from it: its own checks say what that may be."""

    def fine(words: Any) -> bool:
        try:
            return _json(write(read(words))) == _json(words)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return False

    return fine


def _json(words: Any) -> str:
    return json.dumps(words, sort_keys=True)


_TINY = math.nextafter(0.0, 1.0)
_SHARE, _POSITIVE_NUMBER = _between(float, _TINY, 1.0), _between(float, _TINY, 1.7e308)
_WHOLE, _NATURAL = _between(int, 1 - 2**63, 2**63 - 1), _between(int, 0, 2**63 - 1)
_COUNT, _PAIR, _SEED = _between(int, 1, 2**40), [float, float], _between(int, 0, 2**53 - 1)
_BITS = _between(int, 0, 62)  # so that powers of two are integers of 64 bits
_LATTICE = {"y_bits": _BITS, "matrix_bits": _BITS, "sigma": _NATURAL, "sensitivity_steps": _NATURAL}
_SPREAD, _OUTSIDE = {**_LATTICE, "limit": _POSITIVE_NUMBER}, {**_LATTICE, "share": _SHARE}
_MORE = {"outside": (None, _OUTSIDE), "spread": (None, _SPREAD)}
_ALONE = {**_LATTICE, "windows": False, **dict.fromkeys(_MORE), "bins": False}
_STAGES = (
    [{**_LATTICE, "windows": bool, **_MORE, "bins": bool, "readout": None}],
    _one({**_ALONE, "readout": {"kind": MEANS}}),
    _one({**_ALONE, "readout": {"kind": FUNCTION, "reach": float}}),
)
_PROMISE: dict[str, Any] = {"epsilon": _POSITIVE_NUMBER, "delta": _POSITIVE_NUMBER, "mu": _POSITIVE_NUMBER}
_TYPES = {"str": str, "float": float, "int": _WHOLE, "bool": bool}
_PART = {name: _TYPES[kind] for name, kind in certificate.Designed.__annotations__.items()}
_CERTIFICATE = {n: _TYPES.get(kind, list) for n, kind in certificate.Certificate.__annotations__.items()}
_OF_STAGES = {"shares": [_SHARE], "before": [_PAIR], "design": certificate.STAGED, "parts": []}
_OF_STAGES |= {"calibration": "analytic", "unbiased": False}  # predictions are shrunk, all of them
_OF_ONE = {"shares": _one(1.0), "before": []}
_OF_MEANS = {"design": tuple(DESIGNS), "parts": _one({**_PART, "status": certificate.STATUSES})}
_OF_FUNCTION = {"design": FUNCTION, "parts": _one({**_PART, "status": certificate.CLOSED_FORM})}
_KERNEL = _record(stored_kernel, lambda kernel: kernel.to_spec())
_OUTCOME = {"bounds": _PAIR, "outcome": tuple(OUTCOMES), "classes": _record(as_classes, list)}
_PRIOR = _record(lambda words: Hyperprior(**words), asdict)
_KNOWN = {**_OUTCOME, "kernel": _KERNEL, "noise": _POSITIVE_NUMBER, "mean": float}
_KNOWN |= {"approximation": (None, tuple(APPROXIMATIONS))}
_KNOWN_ALONE = {**_KNOWN, "outcome": REAL.name, "classes": [], "noise": (_POSITIVE_NUMBER, PER_ROW)}
_LEARNED = {"family": tuple(FAMILIES), "lengthscale": [_POSITIVE_NUMBER], "signal": _POSITIVE_NUMBER}
_LEARNED |= {"level": _POSITIVE_NUMBER, "noise": _POSITIVE_NUMBER, "skew": _POSITIVE_NUMBER}
_LEARNED |= {"weight": _between(float, 0.0, 1.0)}
_MANIFEST = {
    "format": str,
    "schema": SCHEMA,
    "unit": str,
    "inputs_sha256": (None, _digest),
    "rule": _between(int, 1, 2**31 - 1),
    "stages": _STAGES,
    "members": dict,
    "sha256": _digest,
}
_NOT_IN_STAGES: dict[str, Any] = {"kappa": None, "given": []}
_BY_READOUT: dict[str | None, dict[str, Any]] = {
    None: {
        "certificate": {**_CERTIFICATE, **_OF_STAGES},
        "model": ({**_OUTCOME, "prior": _PRIOR}, _KNOWN),
        "kappa": (None, _between(float, _TINY, math.nextafter(WIDEST, 0))),
        "given": [{**_PROMISE, "most": _COUNT, "stages": _COUNT, "shares": [_SHARE], "bounds": _PAIR}],
    },
    MEANS: {
        **_NOT_IN_STAGES,
        "certificate": {**_CERTIFICATE, **_OF_ONE, **_OF_MEANS},
        "model": {**_KNOWN_ALONE, "bounds": (_PAIR, PER_ROW), "mean": (float, PER_ROW)},
    },
    FUNCTION: {
        **_NOT_IN_STAGES,
        "certificate": {**_CERTIFICATE, **_OF_ONE, **_OF_FUNCTION},
        "model": {**_KNOWN_ALONE, "approximation": None},
        "inputs_sha256": None,
    },
}
_RELEASED = {
    "learned": [(_LEARNED, {**_LEARNED, "shares": [_POSITIVE_NUMBER]})],
    "ledger": (None, {"entry": _SEED, "head": _digest}),
    CUSTODIANS_WORDS: dict,
}
_OPTIONAL = {
    PEOPLE: {"sha256": _digest, "within": _between(float, 0.0, 1.0)},
    COLUMNS: _record(Columns.from_words, Columns.words),
    TABLE_ROWS: _record(TableRows.from_words, TableRows.words),
    GRID: {"axes": _record(Grid.from_words, Grid.words), "size": _COUNT, "max_rows": (None, _COUNT)},
}


def _expect(fine: bool, what: str) -> None:
    if not fine:
        raise ReleaseFileError(f"release file: {what}.")


def _fits(value: Any, form: Any) -> bool:
    """Whether words have a form."""
    if isinstance(form, dict):
        same = isinstance(value, dict) and value.keys() == form.keys()
        return same and all(_fits(value[name], own) for name, own in form.items())
    if isinstance(form, list):
        own = form * len(value) if isinstance(value, list) and len(form) == 1 else form
        return isinstance(value, list) and len(value) == len(own) and all(map(_fits, value, own))
    if isinstance(form, tuple):
        return any(_fits(value, one) for one in form)
    if isinstance(form, type):
        return type(value) is form and (type(value) is not float or math.isfinite(value))
    if callable(form):
        return bool(form(value))
    return type(value) is type(form) and bool(value == form)


def checked(
    manifest: dict[str, Any], arrays: dict[str, Array], wanted: str = FORMAT
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Manifest and arrays in today's schema, or an error that says what does not belong there."""
    if manifest.get("format") == PLAN_FORMAT != wanted:
        raise ReleaseFileError("not a release file: it holds a plan, of which nothing was released.")
    if manifest.get("format") != wanted:
        what = "a release file" if wanted == FORMAT else "the file of a plan"
        raise ReleaseFileError(f"not {what}: its format is not {wanted!r}.")
    if type(manifest.get("schema")) is not int or manifest["schema"] != SCHEMA:
        raise ReleaseFileError(
            f"release file has schema {str(manifest.get('schema'))[:20]}; this version of cloakgp reads "
            f"schema {SCHEMA} alone. Use the version that wrote it."
        )
    stages: Any = manifest.get("stages")
    _expect(bool(stages) and _fits(stages, _STAGES), "its stages make no sense")
    form = _MANIFEST | _BY_READOUT[kind_of(manifest)] | (_RELEASED if wanted == FORMAT else {})
    form |= {key: own for key, own in _OPTIONAL.items() if key in manifest}
    _expect(manifest.keys() == form.keys(), "the manifest lacks a key or has one too many")
    for key, own in form.items():
        _expect(_fits(manifest[key], own), f"its {key.replace('_', ' ')} makes no sense")
    _check_words(manifest)
    _check_arrays(manifest, arrays, plan=wanted == PLAN_FORMAT)
    _check_people(manifest, arrays)
    if wanted == FORMAT:
        _check_custodians_words(manifest["ledger"], manifest[CUSTODIANS_WORDS])
        _check_learned(manifest, arrays["X_star"].shape[1])
    return manifest, arrays


def kind_of(manifest: dict[str, Any]) -> str | None:
    """How its stage is read that stands alone; None if the model reads all stages."""
    readout = manifest["stages"][-1]["readout"]
    return None if readout is None else str(readout["kind"])


def n_curves(model: dict[str, Any]) -> int:
    """How many functions there are: one for each of several classes."""
    return outcome_named(model["outcome"], model["classes"]).curves


def _check_words(manifest: dict[str, Any]) -> None:
    """What the manifest's parts say of each other."""
    c, given, stages, model = (manifest[name] for name in ("certificate", "given", "stages", "model"))
    _expect(manifest["unit"] == c["unit"], "two units of protection are named")
    _expect(certificate.check_ids(c["ids"], c["unit"]), "its certificate's ids make no sense")
    _expect(c["before"] == [[one["epsilon"], one["delta"]] for one in given], "its given releases are others")
    outcome, (low, high) = OUTCOMES[model["outcome"]], (0.0, 1.0)
    _expect(len(model["classes"]) in outcome.class_numbers, "its classes make no sense")
    if model["bounds"] != PER_ROW:
        low, high = model["bounds"]
    fine = outcome.least <= low < high and outcome.fixed_bounds in (None, (low, high))
    _expect(fine, "bounds are not such as its outcome has")
    fine = len(given) <= MOST_GIVEN and all(one["bounds"][0] < one["bounds"][1] for one in given)
    fine = fine and all(one["stages"] <= len(one["shares"]) <= MOST_STAGES + 1 for one in given)
    _expect(fine and not (given and n_curves(model) > 1), "what was given makes no sense")
    own = len(stages) - sum(one["stages"] for one in given)
    most = 1 if manifest["format"] == PLAN_FORMAT else len(c["shares"])
    fine = 1 <= own <= most and len(c["shares"]) <= MOST_STAGES + 1 and len(stages) <= MOST_IN_ALL
    _expect(fine, "it has too many or too few stages")
    shaped = outcome.shaped and "prior" in model
    bins = [shaped and number == len(stages) - own + len(c["shares"]) - 1 for number in range(len(stages))]
    fine = [stage["bins"] for stage in stages] == bins
    fine = fine and not any(one["bins"] and (one["windows"] or one["spread"]) for one in stages)
    _expect(fine, "its last stage alone counts where outcomes fell, if one does")
    linked = outcome_named(model["outcome"], model["classes"]).link is not None
    beyond = [stage for stage in stages if stage["outside"]]
    fine = not (beyond and (linked or GRID in manifest)) and all(stage["windows"] for stage in beyond)
    _expect(fine, "what is outside of windows is not measured of such outcomes")
    if TABLE_ROWS in manifest:
        rows = manifest[TABLE_ROWS]
        _expect(rows["rows"] == c["n_rows"] + len(rows["dropped"]), "the rows left out make no sense")
    if GRID in manifest:
        fine = len(manifest[GRID]["axes"]) <= MOST_AXES and kind_of(manifest) is None
        _expect(fine and not given and manifest["inputs_sha256"] is None, "its grid makes no sense")
        counts_first = [number > 0 and not bins[number] for number in range(len(stages))]
        fine = [stage["windows"] for stage in stages] == counts_first
        fine = fine and all(stage["spread"] is None for stage in stages[:2])
        _expect(fine, "its stages are not those of whole rows")
        _expect(not {PEOPLE, COLUMNS, TABLE_ROWS} & manifest.keys(), "it tells of private inputs")


def _check_learned(manifest: dict[str, Any], columns: int) -> None:
    learned, prior = manifest["learned"], manifest["model"].get("prior")
    if prior is None:
        _expect(not learned, "a model that is known is not learned")
        return
    lengths = columns - len(prior["categories"])
    parts = n_parts(lengths, len(prior["categories"]), len(prior["seasons"]))
    _expect(1 <= len(learned) <= MOST_LEARNED, "it must list what was learned")
    for one in learned:
        shares = one.get("shares", [1.0])
        fine = len(one["lengthscale"]) == lengths and ("shares" in one) == (parts > 1)
        fine = fine and len(shares) == max(parts, 1) and abs(math.fsum(shares) - 1) <= 1e-9
        _expect(fine, "what was learned makes no sense")


def _check_custodians_words(ledger: Any, words: Any) -> None:
    """Where the release stands in a ledger, and what the custodian calls things: bounded, and no more."""
    paid, longest = {"dataset"} if ledger is not None else set(), 4096  # bytes of all of them
    try:
        for word in words.values():
            checks.text(word, "word", checks.LONGEST_NAME)
        fine = set(words) - set(labels.NAMES) == paid and len(json.dumps(words)) <= longest
    except ValueError:
        fine = False
    _expect(fine, f"{CUSTODIANS_WORDS} must be short printable words")


def _check_people(manifest: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Who has which rows, wherever X is."""
    words, found = manifest.get(PEOPLE), arrays.get("people")
    _expect((manifest["unit"] == PERSON.name) == (words is not None), "a promise to people must name them")
    fine = (found is not None) == (words is not None and "X" in arrays)
    _expect(fine, "who has which rows must be shown where X is, and only then")
    if found is not None:  # a person's number is the next one that is free where their first row is
        fine = found[0] == 0 and found.min() >= 0 and not (np.diff(np.maximum.accumulate(found)) > 1).any()
        _expect(bool(fine), "people must be numbered by their first rows")


def table_words(columns: Columns | None, rows: TableRows | None) -> dict[str, Any]:
    """What a manifest says of the table that X was."""
    words = {} if columns is None else {COLUMNS: columns.words()}
    return words if rows is None or rows.kept is None else words | {TABLE_ROWS: rows.words()}


def table_of(manifest: dict[str, Any]) -> tuple[Columns | None, TableRows | None]:
    """What :func:`table_words` was made of."""
    columns, rows = manifest.get(COLUMNS), manifest.get(TABLE_ROWS)
    return (
        None if columns is None else Columns.from_words(columns),
        None if rows is None else TableRows.from_words(rows),
    )


def wanted(manifest: dict[str, Any], shown: bool, answered: int) -> tuple[set[str], set[str]]:
    """Names of the arrays that there must be, if so many stages were answered; and of those that may be."""
    model, whole, kind = manifest["model"], GRID in manifest, kind_of(manifest)
    hidden = whole or (kind == FUNCTION and not shown)
    needed, allowed = {"X_star", "weights"}, set() if whole else {"X", "people"}
    needed |= {name for key, names in _OF_EACH.items() if model.get(key) == PER_ROW for name in names}
    if not hidden and manifest["inputs_sha256"] is None:
        needed |= {"X"}
    elif not hidden:
        needed, allowed = needed | _CELLS, allowed | {"rows_each"}
    if "prior" in model:
        allowed |= {"inducing"}
    elif model["approximation"] is not None:
        needed |= {"inducing"}
    for number, words in enumerate(manifest["stages"]):
        own = _WINDOWS if words["windows"] else set()
        own = own | ({"matrix"} if whole or not hidden else set())
        own |= {"counts"} if whole and number else set()
        own |= _BINS if words["bins"] else set()
        own |= {"outside"} if words["outside"] else set()
        own |= {"centre"} if words["spread"] else set()
        own |= {"z"} if number < answered else set()
        own |= set() if kind is None else {"reconstruction"}
        own |= {"offset", "gp_std"} if kind == MEANS else set()
        needed |= {f"{name}_{number}" for name in own}
    return needed, allowed


def _check_arrays(manifest: dict[str, Any], arrays: dict[str, Array], plan: bool) -> None:
    stages, model, N = manifest["stages"], manifest["model"], manifest["certificate"]["n_rows"]
    needed, allowed = wanted(manifest, "X" in arrays, len(stages) - plan)
    _expect(needed <= set(arrays) <= needed | allowed, "an array is missing, or one is not in the schema")
    shapes = {}
    for name, array in arrays.items():
        found = _NUMBERED.fullmatch(name)
        stem, number = (name, None) if found is None else found.groups()
        dtype, shape = PLAN_ARRAYS[stem] if number is None else STAGE_ARRAYS[stem]
        shapes[name] = shape, number
        _expect(array.size > 0, "an array is empty")
        fine = array.dtype.str == dtype and array.ndim == len(shape)
        _expect(fine, f"{name} must have dtype {dtype}, {len(shape)} dimension(s)")
        _expect(array.dtype.kind != "f" or bool(np.isfinite(array).all()), f"{name} must be finite")
        _expect(stem not in _POSITIVE or bool((array > 0).all()), f"{name} must be above 0")
        most = {"edges": PLACES, "atoms": WHOLE}.get(stem, array.max())
        fine = stem not in _BINS or (array.min() >= 0 and array.max() <= most)
        _expect(bool(fine), f"{name} must be within the bounds")
    (P, D), m = arrays["X_star"].shape, len(arrays.get("inducing", ()))
    _expect(m <= MOST_INDUCING, f"there are more than {MOST_INDUCING} inducing inputs")
    prior = model.get("prior", {"categories": [], "seasons": []})
    used = [*prior["categories"], *(column for column, _ in prior["seasons"])]
    _expect(max(used, default=0) < D, "its prior is of no column of X")
    fine = COLUMNS not in manifest or len(manifest[COLUMNS]["inputs"]) == D
    _expect(fine, "the names of its columns make no sense")
    U = arrays["matrix_0"].shape[1] if "matrix_0" in arrays else 0
    sizes = {"N": N, "R": U if "cells" in arrays else N, "P": P, "D": D, "m": m, "U": U}
    sizes |= {"e": len(BIN_ENDS), "a": 2}
    for name, (shape, number) in shapes.items():
        own = sizes
        if number is not None:
            matrix = arrays.get(f"matrix_{number}")
            q = arrays[f"reconstruction_{number}"].shape[1] if matrix is None else len(matrix)
            curves = 1 if GRID in manifest and number == "0" else n_curves(model)  # rows are counted first
            words = stages[int(number)]
            curves = len(BIN_ENDS) + 1 if words["bins"] else curves
            o = len(arrays[f"outside_{number}"]) if words["outside"] else 0
            in_all = curves * q + o + (words["spread"] is not None)
            own = sizes | {"q": q, "o": o, "s": q + o, "z": in_all}
        expected = tuple(own[letter] for letter in shape)
        _expect(arrays[name].shape == expected, f"{name} has shape {arrays[name].shape}, expected {expected}")
        fine = "upper" not in name or (arrays[name] > arrays[name.replace("upper", "lower")]).all()
        _expect(bool(fine), "a row's bounds hold nothing")
    if "cells" in arrays:
        _expect(sum(arrays["counts"].tolist()) == N, "the cells' rows must add up to all rows")
        fine = bool((arrays["spreads"] >= 0).all()) and bool((arrays["scale"] >= 0).all())
        _expect(fine, "a cell's spread is below 0")
    if "rows_each" in arrays:
        fine = PEOPLE in manifest and (arrays["rows_each"] >= 1).all()
        _expect(bool(fine), "rows of each person are for people in cells, who have one at least")
