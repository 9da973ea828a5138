"""The release file's inside: which arrays and which words make up a plan and its measurements.

``docs/release-file.md`` describes the schema for readers in other languages.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp import container, signing
from cloakgp.certificate import FIELDS, Certificate
from cloakgp.charging import Receipt
from cloakgp.container import Array, ReleaseFileError
from cloakgp.factored import FactoredMeasurement, Recipe
from cloakgp.function import FunctionPlan
from cloakgp.gp import GP
from cloakgp.inducing import APPROXIMATIONS, Features
from cloakgp.kernels import Kernel, as_kernel, from_spec
from cloakgp.lattice import IntArray, Measurement
from cloakgp.plan import Plan
from cloakgp.rows import Groups, distinct

FORMAT, SCHEMA = "cloakgp-release", 1
PREDICTIONS, FUNCTION = "predictions", "function"

_DTYPES = {  # little-endian whatever the machine; the number of dimensions
    "X": ("<f8", 2),
    "X_star": ("<f8", 2),
    "points": ("<f8", 2),
    "weights": ("<f8", 1),
    "noise": ("<f8", 1),
    "inducing": ("<f8", 2),
    "features": ("<f8", 2),
    "factors": ("<i8", 2),
    "information": ("<f8", 2),
    "labels": ("<i8", 1),
    "matrix": ("<i8", 2),
    "centre": ("<i8", 1),
    "sums": ("<i8", 1),
    "z": ("<i8", 1),
    "reconstruction": ("<f8", 2),
    "offset": ("<f8", 1),
    "gp_std": ("<f8", 1),
}
DENSE, FACTORED, WITHHELD = "dense", "factored", "withheld"
_PREDICTED = {"X_star", "weights", "z", "reconstruction", "offset", "gp_std"}
_FUNCTION = {"points", "z", "reconstruction", "centre"}
_RECIPE = {"inducing", "features", "factors", "information", "sums"}
_ARRAYS = {  # for each release and kind of measurement: which arrays there must be, and may be
    (PREDICTIONS, DENSE): (_PREDICTED | {"X", "matrix"}, {"noise", "inducing", "labels"}),
    (PREDICTIONS, FACTORED): (_PREDICTED | _RECIPE, {"X", "noise"}),
    (FUNCTION, DENSE): (_FUNCTION | {"X", "matrix"}, {"noise"}),
    (FUNCTION, WITHHELD): (_FUNCTION, {"noise"}),
}
LARGEST_INPUTS = 2**26
"""Bytes of X up to which a file with a recipe holds it, and not only its digest."""


def encode(
    plan: Plan | FunctionPlan, z: IntArray, receipt: Receipt | None = None, sign_with: Any = None
) -> bytes:
    """The bytes of a release file."""
    manifest, arrays = _described(plan)
    manifest["ledger"] = None if receipt is None else asdict(receipt)
    arrays["z"] = np.asarray(z, dtype=_DTYPES["z"][0])
    contents = container.pack(manifest, arrays)
    if sign_with is None:
        return contents
    return container.pack(manifest, arrays, signing.sign(container.manifest_digest(contents), sign_with))


def digest(plan: Plan | FunctionPlan) -> str:
    """SHA-256 of what the plan's release file will hold, without the answer and the receipt."""
    manifest, arrays = _described(plan)
    if isinstance(
        plan.measurement, FactoredMeasurement
    ):  # has the inputs' own digest, wherever they are kept
        arrays.pop("X", None)
    return container.manifest_digest(container.pack(manifest, arrays))


def _described(plan: Plan | FunctionPlan) -> tuple[dict[str, Any], dict[str, Array]]:
    """A plan as words and arrays."""
    arrays: dict[str, Array] = {"reconstruction": plan.reconstruction}
    manifest: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA, "unit": plan.certificate.unit}
    if isinstance(plan, Plan):
        manifest["release"] = PREDICTIONS
        names = ["X_star", "weights", "offset", "gp_std"]
    else:
        manifest["release"] = FUNCTION
        manifest["function"] = {"reach": plan.reach, "prior_seed": plan.prior_seed}
        names = ["centre", "points"]
    arrays |= {name: getattr(plan, name) for name in names}
    noise, measurement = plan.gp.noise, plan.measurement
    if not isinstance(noise, float):
        arrays["noise"] = noise
    if isinstance(measurement, FactoredMeasurement):
        kind, recipe = {"kind": FACTORED} | _recipe_words(measurement), measurement.recipe
        arrays |= {"features": recipe.features.W, "factors": recipe.factors}
        arrays |= {"information": measurement.information, "sums": measurement.centre}
        if isinstance(plan.X, np.ndarray) and plan.X.nbytes <= LARGEST_INPUTS:
            arrays["X"] = plan.X
    elif plan.X is None:
        kind = {"kind": WITHHELD}
    else:
        kind = {"kind": DENSE}
        arrays |= {"X": plan.X, "matrix": measurement.matrix}
        if measurement.groups is not None:
            arrays["labels"] = measurement.groups.labels
    if plan.gp.inducing is not None:
        arrays["inducing"] = np.asarray(plan.gp.inducing)
    manifest |= {
        "certificate": plan.certificate.to_dict(),
        "measurement": kind,
        "model": {
            "kernel": plan.gp.kernel.to_spec(),
            "noise": noise if isinstance(noise, float) else "per row",
            "bounds": list(plan.gp.bounds),
            "mean": plan.gp.mean,
            "approximation": None if plan.gp.inducing is None else plan.gp.approximation,
        },
    }
    return manifest, {name: np.asarray(array, dtype=_DTYPES[name][0]) for name, array in arrays.items()}


Contents = tuple[Plan | FunctionPlan, IntArray, Receipt | None]
"""What a release file holds: the plan, the noisy measurements, and where they stand in a ledger."""


def decode(contents: bytes, kernel: Any = None) -> Contents:
    """What is in a release file's bytes."""
    manifest, arrays, _ = read(contents)
    certificate, model = Certificate(**manifest["certificate"]), manifest["model"]
    z = arrays["z"]
    receipt = None if manifest["ledger"] is None else Receipt(**manifest["ledger"])
    given = None if kernel is None else as_kernel(kernel)
    try:
        gp = GP(
            given if given is not None and is_custom(model["kernel"]) else stored_kernel(model["kernel"]),
            arrays["noise"] if model["noise"] == "per row" else model["noise"],
            model["bounds"],
            model["mean"],
            *([] if model["approximation"] is None else [arrays["inducing"], model["approximation"]]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseFileError(f"release file has a model that makes no sense: {error}") from None
    measurement = _measurement(manifest, arrays, certificate, gp)
    if manifest["release"] == FUNCTION:
        assert isinstance(measurement, Measurement)
        return FunctionPlan(
            gp=gp,
            X=arrays.get("X"),
            points=arrays["points"],
            measurement=measurement,
            reconstruction=arrays["reconstruction"],
            centre=arrays["centre"],
            reach=manifest["function"]["reach"],
            prior_seed=manifest["function"]["prior_seed"],
            certificate=certificate,
        ), z, receipt  # fmt: skip
    return Plan(
        gp=gp,
        X=arrays.get("X"),
        X_star=arrays["X_star"],
        weights=arrays["weights"],
        measurement=measurement,
        reconstruction=arrays["reconstruction"],
        offset=arrays["offset"],
        gp_std=arrays["gp_std"],
        certificate=certificate,
    ), z, receipt  # fmt: skip


def _measurement(
    manifest: dict[str, Any], arrays: dict[str, Array], certificate: Certificate, gp: GP
) -> Measurement | FactoredMeasurement:
    lattice: dict[str, Any] = {
        "y_bits": certificate.y_bits,
        "sigma": certificate.sigma,
        "lower": gp.bounds[0],
        "upper": gp.bounds[1],
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "declared": certificate.sensitivity_steps,
    }
    words = manifest["measurement"]
    if words["kind"] != FACTORED:
        return Measurement(
            matrix=arrays.get("matrix", np.zeros((len(arrays["z"]), 0), dtype=np.int64)),
            matrix_bits=certificate.matrix_bits,
            groups=_groups(arrays),
            **lattice,
        )
    features = Features(gp.kernel, arrays["inducing"], arrays["features"])
    return FactoredMeasurement(
        recipe=Recipe(
            features, gp.approximation, arrays["factors"], words["factor_bits"], certificate.matrix_bits
        ),
        inputs=distinct(arrays["X"], gp.noise) if "X" in arrays else None,
        information=arrays["information"],
        rows=certificate.n_rows,
        digest=words["inputs_sha256"],
        sums=arrays["sums"],
        extent=words["extent"],
        **lattice,
    )


def _recipe_words(measurement: FactoredMeasurement) -> dict[str, Any]:
    return {
        "factor_bits": measurement.recipe.factor_bits,
        "inputs_sha256": measurement.digest,
        "extent": measurement.extent,
    }


def _groups(arrays: dict[str, Array]) -> Groups | None:
    if "labels" not in arrays:
        return None
    labels = arrays["labels"].astype(np.intp)
    return Groups(labels, np.bincount(labels, minlength=arrays["matrix"].shape[1]).astype(np.int64))


def write(path: str | os.PathLike[str], contents: bytes) -> None:
    """Write a file whole or not at all."""
    path = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        unfinished.write_bytes(contents)
        unfinished.chmod(0o666 & ~_umask())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _umask() -> int:
    """What new files are not allowed to permit; the system tells it only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def load(path: str | os.PathLike[str], kernel: Any = None) -> Contents:
    """What is in a release file."""
    return decode(Path(path).read_bytes(), kernel)


def read(contents: bytes) -> tuple[dict[str, Any], dict[str, Array], dict[str, str] | None]:
    """Manifest, arrays and signature of a release file that fits the schema."""
    manifest, arrays, signature = container.unpack(contents)
    if manifest.get("format") != FORMAT:
        raise ReleaseFileError(f"not a release file: its format is not {FORMAT!r}.")
    if type(manifest.get("schema")) is not int or manifest["schema"] != SCHEMA:
        raise ReleaseFileError(
            f"release file has schema {manifest.get('schema')!r}; this version of cloakgp reads {SCHEMA}. "
            "Update cloakgp."
        )
    expected = {
        "format",
        "schema",
        "unit",
        "release",
        "certificate",
        "measurement",
        "model",
        "ledger",
        "members",
        "sha256",
    }
    if manifest.get("release") == FUNCTION:
        expected.add("function")
    if set(manifest) != expected or manifest["release"] not in (PREDICTIONS, FUNCTION):
        raise ReleaseFileError("release file: the manifest lacks a key or has one too many.")
    _check_measurement(manifest)
    _check_words(manifest)
    _check_arrays(manifest, arrays)
    return manifest, arrays, signature


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
        and re.fullmatch("[0-9a-f]{64}", words["inputs_sha256"])
        and 0 < words["extent"] < 2**62
    ):
        raise ReleaseFileError("release file: the measurement's recipe makes no sense.")


def stored_kernel(spec: Any) -> Kernel:
    """The kernel of a manifest, or a stand-in for a custom one, which no file can hold."""
    return _Withheld(spec) if is_custom(spec) else from_spec(spec)


def is_custom(spec: Any) -> bool:
    """Whether a kernel's description holds a function that no file can hold."""
    if not isinstance(spec, dict):
        return False
    parts = spec.get("kernels")
    return spec.get("kind") == "Custom" or (isinstance(parts, list) and any(map(is_custom, parts)))


class _Withheld(Kernel):
    """Stands for a custom kernel that was not given; everything but new predictions works."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec

    def to_spec(self) -> dict[str, Any]:
        return self.spec

    def _matrix(self, X: Any, Z: Any) -> Any:
        raise ValueError(
            "kernel: this release was made with a custom kernel, which its file cannot hold. "
            "Give it when loading, load(path, kernel=...); or, for a picture, denoised=False."
        )

    def _diag(self, X: Any) -> Any:
        return self._matrix(X, X)

    def __repr__(self) -> str:
        return "<custom kernel, not in file>"


def _check_words(manifest: dict[str, Any]) -> None:
    """Every key of the manifest's parts is there, no other is, and the types are right."""
    certificate, model, function = manifest["certificate"], manifest["model"], manifest.get("function")
    if not isinstance(model, dict) or set(model) != {"kernel", "noise", "bounds", "mean", "approximation"}:
        raise ReleaseFileError("release file: the model lacks a key or has one too many.")
    if not isinstance(certificate, dict) or set(certificate) != set(FIELDS):
        raise ReleaseFileError("release file: the certificate lacks a key or has one too many.")
    for name in FIELDS:
        kind, value = Certificate.__annotations__[name], certificate[name]
        if type(value).__name__ != kind or (kind == "int" and abs(value) >= 2**63):
            raise ReleaseFileError(f"release file: the certificate's {name} must be a {kind}.")
    bounds = model["bounds"]
    numbers = [*(bounds if isinstance(bounds, list) and len(bounds) == 2 else [None]), model["mean"]]
    if model["noise"] != "per row":
        numbers.append(model["noise"])
    if not all(type(number) is float for number in numbers) or not bounds[0] < bounds[1]:
        raise ReleaseFileError("release file: the model's bounds, mean and noise must be numbers.")
    if model["approximation"] not in (None, *APPROXIMATIONS):
        raise ReleaseFileError("release file has an approximation that this version does not know.")
    if manifest["unit"] != certificate["unit"]:
        raise ReleaseFileError("release file: two units of protection are named.")
    _check_receipt(manifest["ledger"])
    if "function" in manifest and (
        not isinstance(function, dict)
        or set(function) != {"reach", "prior_seed"}
        or type(function["reach"]) is not float
        or not (function["prior_seed"] is None or _is_seed(function["prior_seed"]))
    ):
        raise ReleaseFileError("release file: the function's description lacks a key or has one too many.")


def _check_receipt(receipt: Any) -> None:
    if receipt is None:
        return
    if not isinstance(receipt, dict) or {key: type(value) for key, value in receipt.items()} != {
        "dataset": str,
        "entry": int,
        "head": str,
    }:
        raise ReleaseFileError("release file: the ledger's receipt lacks a key or has one too many.")
    if receipt["entry"] < 0 or not re.fullmatch("[0-9a-f]{64}", receipt["head"]):
        raise ReleaseFileError("release file: the ledger's receipt makes no sense.")


def _is_seed(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _check_arrays(manifest: dict[str, Any], arrays: dict[str, Array]) -> None:
    kind, names = manifest["release"], set(arrays)
    needed, allowed = _ARRAYS[kind, manifest["measurement"]["kind"]]
    if not needed <= names <= needed | allowed:
        raise ReleaseFileError("release file: an array is missing, or one is not in the schema.")
    if ("noise" in names) != (manifest["model"]["noise"] == "per row"):
        raise ReleaseFileError("release file: noise per row must be an array, and only then.")
    if ("inducing" in names) != (manifest["model"]["approximation"] is not None):
        raise ReleaseFileError("release file: inducing inputs must come with an approximation.")
    if any(0 in array.shape for array in arrays.values()):
        raise ReleaseFileError("release file: an array is empty.")
    for name, array in arrays.items():
        dtype, dimensions = _DTYPES[name]
        if array.dtype.str != dtype or array.ndim != dimensions:
            raise ReleaseFileError(
                f"release file: {name} must have dtype {dtype}, {dimensions} dimension(s)."
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ReleaseFileError(f"release file: {name} must be finite.")
        if name in ("weights", "noise") and not (array > 0).all():
            raise ReleaseFileError(f"release file: {name} must be above 0.")
    q, N = len(arrays["z"]), manifest["certificate"]["n_rows"]
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
        "noise": (N,),
        "reconstruction": (P, q),
        "centre": (q,),
    }
    shapes |= {"sums": (q,), "inducing": (m, D), "features": (r, m), "factors": (q, m), "information": (r, r)}
    shapes |= {"X_star": (P, D), "points": (P, D), "weights": (P,), "offset": (P,), "gp_std": (P,)}
    for name, array in arrays.items():
        if name != "z" and array.shape != shapes[name]:
            raise ReleaseFileError(f"release file: {name} has shape {array.shape}, expected {shapes[name]}.")
