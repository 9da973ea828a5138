"""The release file's closed schema: which keys, arrays, types and words there may be, and no others.

What is not listed here cannot be in a file. ``docs/release-file.md`` describes the schema for readers in
other languages, and says which numbers are left to the custodian. Whether the numbers follow from each
other is a question for :mod:`cloakgp.verification`.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from cloakgp import checks
from cloakgp.errors import Message, Phrase
from cloakgp.files import labels, staged_schema
from cloakgp.files.container import Array, ReleaseFileError
from cloakgp.kernels.base import Kernel
from cloakgp.kernels.specs import from_spec
from cloakgp.measurements.certificate import FIELDS, Certificate, has_fields
from cloakgp.measurements.unit import PERSON
from cloakgp.model.inducing import APPROXIMATIONS, MOST_INDUCING
from cloakgp.rows.columns import Columns
from cloakgp.rows.inputs import MOST_DROPPED, TableRows

FORMAT, PLAN_FORMAT, SCHEMA = "cloakgp-release", "cloakgp-charged-plan", 4
"""Of a release file; of a plan's, which is the same without an answer; the number of the schema of both."""
PREDICTIONS, FUNCTION, STAGED = "predictions", "function", staged_schema.STAGED
DENSE, FACTORED, WITHHELD = "dense", "factored", "withheld"
PEOPLE = "people"
"""The key that is there where the promise is to people, and nowhere else."""
COLUMNS, TABLE_ROWS = "columns", "table_rows"
"""Keys that are there where X was a table with names, and where rows of it were left out."""
PER_ROW = "per row"
"""In place of a model's number: there is an array with one for each row of X."""
CUSTODIANS_WORDS = "custodians_words_unchecked"
"""The manifest's one member with words that the custodian chose: bounded, and checked by nobody."""
LONGEST_WORDS = 4096  # bytes of all of them

DTYPES = {  # little-endian whatever the machine; the number of dimensions
    "X": ("<f8", 2),
    "X_star": ("<f8", 2),
    "points": ("<f8", 2),
    "weights": ("<f8", 1),
    "noise": ("<f8", 1),
    "lower": ("<f8", 1),
    "upper": ("<f8", 1),
    "mean_rows": ("<f8", 1),
    "mean_star": ("<f8", 1),
    "middle_less_mean": ("<f8", 1),
    "inducing": ("<f8", 2),
    "features": ("<f8", 2),
    "factors": ("<i8", 2),
    "information": ("<f8", 2),
    "labels": ("<i8", 1),
    "people": ("<i8", 1),
    "matrix": ("<i8", 2),
    "centre": ("<i8", 1),
    "sums": ("<i8", 1),
    "z": ("<i8", 1),
    "reconstruction": ("<f8", 2),
    "offset": ("<f8", 1),
    "gp_std": ("<f8", 1),
}
_PREDICTED = {"X_star", "weights", "z", "reconstruction", "offset", "gp_std"}
_FUNCTION = {"points", "z", "reconstruction", "centre"}
_RECIPE = {"inducing", "features", "factors", "information", "sums"}
_WINDOWS = {"lower", "upper", "mean_rows", "mean_star"}
_ARRAYS = {  # for each release and kind of measurement: which arrays there must be, and may be
    (PREDICTIONS, DENSE): (_PREDICTED | {"X", "matrix"}, {"noise", "inducing", "labels"} | _WINDOWS),
    (PREDICTIONS, FACTORED): (_PREDICTED | _RECIPE, {"X", "noise", "middle_less_mean"} | _WINDOWS),
    (FUNCTION, DENSE): (_FUNCTION | {"X", "matrix"}, {"noise", "labels"}),
    (FUNCTION, WITHHELD): (_FUNCTION, {"noise"}),
}
_OF_EACH = {"noise": {"noise"}, "bounds": {"lower", "upper"}, "mean": {"mean_rows", "mean_star"}}
_SHA256 = re.compile("[0-9a-f]{64}")
_MANIFEST = {
    "format",
    "schema",
    "unit",
    "release",
    "certificate",
    "measurement",
    "model",
    "ledger",
    CUSTODIANS_WORDS,
    "members",
    "sha256",
}


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
    if manifest.get("release") == STAGED:
        return _checked_stages(manifest, arrays, wanted == PLAN_FORMAT)
    expected = _MANIFEST | ({"function"} if manifest.get("release") == FUNCTION else set())
    expected |= set(manifest) & {PEOPLE, COLUMNS, TABLE_ROWS}
    if wanted == PLAN_FORMAT:
        expected -= {"ledger", CUSTODIANS_WORDS}
    if set(manifest) != expected or manifest["release"] not in (PREDICTIONS, FUNCTION):
        raise ReleaseFileError("release file: the manifest lacks a key or has one too many.")
    _check_measurement(manifest)
    _check_certificate(manifest)
    _check_model(manifest["model"])
    if wanted == FORMAT:
        _check_ledger(manifest["ledger"], manifest[CUSTODIANS_WORDS])
    _check_function(manifest)
    check_people(manifest, arrays)
    _check_arrays(manifest, arrays)
    check_table(manifest, arrays["X_star" if manifest["release"] == PREDICTIONS else "points"].shape[1])
    return manifest, arrays


def _checked_stages(
    manifest: dict[str, Any], arrays: dict[str, Array], plan: bool
) -> tuple[dict[str, Any], dict[str, Array]]:
    expected = staged_schema.keys(manifest, plan) | (set() if plan else {"ledger", CUSTODIANS_WORDS})
    # Nothing is told of private rows, nor of whose they are.
    expected |= set() if "grid" in manifest else set(manifest) & {PEOPLE, COLUMNS, TABLE_ROWS}
    if set(manifest) != expected:
        raise ReleaseFileError("release file: the manifest lacks a key or has one too many.")
    if not {"X_star", "matrix_0"} <= set(arrays):
        raise ReleaseFileError("release file: an array is missing, or one is not in the schema.")
    if any(arrays[name].ndim != 2 for name in ("X_star", "matrix_0")):
        raise ReleaseFileError("release file: X_star and matrix_0 must have two dimensions.")
    check_people(manifest, arrays)
    staged_schema.check(manifest, arrays, plan)
    check_table(manifest, arrays["X_star"].shape[1])
    if "kernel" in manifest["model"]:
        _check_kernel(manifest["model"]["kernel"])
    if not plan:
        _check_ledger(manifest["ledger"], manifest[CUSTODIANS_WORDS])
    return manifest, arrays


def rounded_std(std: Array) -> Array:
    """Standard deviations to four digits: more could not be checked on another machine."""
    return np.array([float(f"{value:.3e}") for value in std.tolist()])


def _check_measurement(manifest: dict[str, Any]) -> None:
    words = manifest["measurement"]
    kind = words.get("kind") if isinstance(words, dict) else None
    if not isinstance(kind, str) or (manifest["release"], kind) not in _ARRAYS:
        raise ReleaseFileError("release file has a measurement of a kind that this version does not know.")
    types: dict[str, type] = {"kind": str}
    if kind == FACTORED:
        types |= {"factor_bits": int, "inputs_sha256": str, "extent": int}
    if {name: type(value) for name, value in words.items()} != types:
        raise ReleaseFileError("release file: the measurement lacks a key or has one too many.")
    if kind == FACTORED and not (
        abs(words["factor_bits"]) < 2000
        and _SHA256.fullmatch(words["inputs_sha256"])
        and 0 < words["extent"] < 2**62
    ):
        raise ReleaseFileError("release file: the measurement's recipe makes no sense.")


def _check_certificate(manifest: dict[str, Any]) -> None:
    certificate = manifest["certificate"]
    if not has_fields(certificate, FIELDS):
        raise ReleaseFileError("release file: the certificate lacks a key or has one too many.")
    for name in FIELDS:
        kind, value = Certificate.__annotations__[name], certificate[name]
        if type(value).__name__ != kind or (kind == "int" and abs(value) >= 2**63):
            raise ReleaseFileError(f"release file: the certificate's {name} must be a {kind}.")
    if manifest["unit"] != certificate["unit"]:
        raise ReleaseFileError("release file: two units of protection are named.")


def _check_model(model: Any) -> None:
    if not isinstance(model, dict) or set(model) != {"kernel", "noise", "bounds", "mean", "approximation"}:
        raise ReleaseFileError("release file: the model lacks a key or has one too many.")
    numbers = [model[name] for name in ("mean", "noise") if model[name] != PER_ROW]
    bounds = [0.0, 1.0] if model["bounds"] == PER_ROW else model["bounds"]
    numbers += bounds if isinstance(bounds, list) and len(bounds) == 2 else [None]
    if not all(type(number) is float for number in numbers) or not bounds[0] < bounds[1]:
        raise ReleaseFileError("release file: the model's bounds, mean and noise must be numbers.")
    if model["approximation"] not in (None, *APPROXIMATIONS):
        raise ReleaseFileError("release file has an approximation that this version does not know.")
    _check_kernel(model["kernel"])


def _check_kernel(spec: Any) -> None:
    if not _same_json(stored_kernel(spec).to_spec(), spec):
        raise ReleaseFileError("release file: its kernel is not described as this version would.")


def _check_ledger(ledger: Any, words: Any) -> None:
    """Where the release stands in a ledger, and what the custodian calls things."""
    paid = {"dataset"} if ledger is not None else set()
    if not isinstance(words, dict) or set(words) - set(labels.NAMES) != paid:
        raise ReleaseFileError(f"release file: {CUSTODIANS_WORDS} lacks a key or has one too many.")
    if not all(map(_is_short, words.values())) or len(json.dumps(words)) > LONGEST_WORDS:
        raise ReleaseFileError(f"release file: {CUSTODIANS_WORDS} must be short printable words.")
    if ledger is None:
        return
    if not isinstance(ledger, dict) or {key: type(value) for key, value in ledger.items()} != {
        "entry": int,
        "head": str,
    }:
        raise ReleaseFileError("release file: the ledger's receipt lacks a key or has one too many.")
    if not 0 <= ledger["entry"] < 2**53 or not _SHA256.fullmatch(ledger["head"]):
        raise ReleaseFileError("release file: the ledger's receipt makes no sense.")


def _is_short(word: Any) -> bool:
    try:
        checks.text(word, "word", checks.LONGEST_NAME)
    except ValueError:
        return False
    return True


def _check_function(manifest: dict[str, Any]) -> None:
    function = manifest.get("function")
    if "function" in manifest and (
        not isinstance(function, dict)
        or set(function) != {"reach", "prior_seed"}
        or type(function["reach"]) is not float
        or not (function["prior_seed"] is None or _is_seed(function["prior_seed"]))
    ):
        raise ReleaseFileError("release file: the function's description lacks a key or has one too many.")


def check_people(manifest: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Words on the people to whom the promise is; who has which rows, wherever X is."""
    words, labels = manifest.get(PEOPLE), arrays.get("people")
    if PEOPLE in manifest and (
        not isinstance(words, dict)
        or {name: type(value) for name, value in words.items()} != {"sha256": str, "within": float}
        or not _SHA256.fullmatch(words["sha256"])
        or not 0 <= words["within"] <= 1
    ):
        raise ReleaseFileError("release file: its people make no sense.")
    if manifest["format"] == PLAN_FORMAT and (manifest["unit"] == PERSON.name) != (words is not None):
        raise ReleaseFileError("file of a plan: a promise to people must name them, and no other may.")
    if (labels is not None) != (words is not None and "X" in arrays):
        raise ReleaseFileError("release file: who has which rows must be shown where X is, and only then.")
    if labels is None:
        return
    good = labels.dtype.str == "<i8" and labels.ndim == 1 and len(labels) > 0
    # A person's number is the next one that is free where their first row is.
    if not good or labels[0] != 0 or labels.min() < 0 or (np.diff(np.maximum.accumulate(labels)) > 1).any():
        raise ReleaseFileError("release file: people must be numbered by their first rows.")


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


def check_table(manifest: dict[str, Any], width: int) -> None:
    """Names, levels and origins that are bounded and printable; numbers of rows that were left out."""
    if COLUMNS in manifest:
        try:
            columns = Columns.from_words(manifest[COLUMNS])
            good = len(columns.inputs) == width and "grid" not in manifest
            good = good and _same_json(columns.words(), manifest[COLUMNS])
        except (AttributeError, KeyError, TypeError, ValueError):
            good = False
        if not good:
            raise ReleaseFileError("release file: the names of its columns make no sense.")
    if TABLE_ROWS in manifest:
        words = manifest[TABLE_ROWS]
        good = isinstance(words, dict) and set(words) == {"rows", "dropped"} and "grid" not in manifest
        size, dropped = (words["rows"], words["dropped"]) if good else (0, [])
        good = type(size) is int and isinstance(dropped, list) and 0 < len(dropped) <= MOST_DROPPED
        good = good and all(type(row) is int and 0 <= row < size for row in dropped)
        good = good and dropped == sorted(set(dropped))
        if not good or size != manifest["certificate"]["n_rows"] + len(dropped):
            raise ReleaseFileError("release file: the rows that were left out make no sense.")


def _same_json(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _is_seed(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _check_arrays(manifest: dict[str, Any], arrays: dict[str, Array]) -> None:
    kind, names = manifest["release"], set(arrays)
    needed, allowed = _ARRAYS[kind, manifest["measurement"]["kind"]]
    if manifest["format"] == PLAN_FORMAT:
        needed = needed - {"z"}
    if not needed <= names <= needed | allowed | {"people"}:
        raise ReleaseFileError("release file: an array is missing, or one is not in the schema.")
    for setting, of_each in _OF_EACH.items():
        if names & of_each != (of_each if manifest["model"][setting] == PER_ROW else set()):
            raise ReleaseFileError(f"release file: {setting} per row must be an array, and only then.")
    if not np.all(arrays.get("upper", 1.0) > arrays.get("lower", 0.0)):
        raise ReleaseFileError("release file: a row's bounds hold nothing.")
    differ = PER_ROW in (manifest["model"]["bounds"], manifest["model"]["mean"])
    if ("middle_less_mean" in names) != (differ and manifest["measurement"]["kind"] == FACTORED):
        raise ReleaseFileError("release file: middle_less_mean is for recipes of rows that differ.")
    if ("inducing" in names) != (manifest["model"]["approximation"] is not None):
        raise ReleaseFileError("release file: inducing inputs must come with an approximation.")
    if len(arrays.get("inducing", ())) > MOST_INDUCING:
        raise ReleaseFileError(f"release file: there are more than {MOST_INDUCING} inducing inputs.")
    if any(0 in array.shape for array in arrays.values()):
        raise ReleaseFileError("release file: an array is empty.")
    for name, array in arrays.items():
        dtype, dimensions = DTYPES[name]
        if array.dtype.str != dtype or array.ndim != dimensions:
            raise ReleaseFileError(
                f"release file: {name} must have dtype {dtype}, {dimensions} dimension(s)."
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ReleaseFileError(f"release file: {name} must be finite.")
        if name in ("weights", "noise") and not (array > 0).all():
            raise ReleaseFileError(f"release file: {name} must be above 0.")
    q, N = arrays["reconstruction"].shape[1], manifest["certificate"]["n_rows"]
    P, D = arrays["X_star" if kind == PREDICTIONS else "points"].shape
    U, m, r = N, len(arrays.get("inducing", ())), len(arrays.get("features", ()))
    if "labels" in names:
        U = arrays["matrix"].shape[1]
        if not np.array_equal(np.unique(arrays["labels"]), np.arange(U)):
            raise ReleaseFileError("release file: labels must name every column of the matrix.")
    shapes = {
        "X": (N, D),
        "matrix": (q, U),
        "labels": (N,),
        "people": (N,),
        "noise": (N,),
        "reconstruction": (P, q),
        "centre": (q,),
    }
    shapes |= {"sums": (q,), "inducing": (m, D), "features": (r, m), "factors": (q, m), "information": (r, r)}
    shapes |= {"X_star": (P, D), "points": (P, D), "weights": (P,), "offset": (P,), "gp_std": (P,)}
    shapes |= {"lower": (N,), "upper": (N,), "mean_rows": (N,), "mean_star": (P,), "middle_less_mean": (q,)}
    shapes["z"] = (q,)
    for name, array in arrays.items():
        if array.shape != shapes[name]:
            raise ReleaseFileError(f"release file: {name} has shape {array.shape}, expected {shapes[name]}.")


def is_custom(spec: Any) -> bool:
    """Whether a kernel's description, already checked, has a part that no file can hold."""
    return spec["kind"] == "Custom" or any(map(is_custom, spec.get("kernels", ())))


def fits(given: Any, stored: Any) -> bool:
    """Whether a kernel can be the one that a file describes: equal, but for parts that no file can hold."""
    if stored["kind"] == "Custom":
        return True
    parts, others = stored.get("kernels"), given.get("kernels")
    if given["kind"] != stored["kind"] or not isinstance(parts, list) or not isinstance(others, list):
        return bool(given == stored)
    return len(parts) == len(others) and all(map(fits, others, parts))


def stored_kernel(spec: Any) -> Kernel:
    """The kernel of a manifest, with a stand-in for each part that no file can hold."""
    try:
        return from_spec(spec, custom=WithheldKernel())
    except (TypeError, ValueError) as error:
        raise ReleaseFileError(f"release file has a model that makes no sense: {error}") from None


class WithheldKernel(Kernel):
    """Stands for a custom kernel that was not given; everything but new predictions works."""

    def to_spec(self) -> dict[str, Any]:
        return {"kind": "Custom"}

    def _matrix(self, X: Any, Z: Any) -> Any:
        raise ValueError(
            Message(
                "kernel: this release was made with a custom kernel, which its file cannot hold. ",
                Phrase.LOAD_WITH_KERNEL,
            )
        )

    def _diag(self, X: Any) -> Any:
        return self._matrix(X, X)

    def __repr__(self) -> str:
        return "<custom kernel, not in file>"
