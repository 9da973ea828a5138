"""The release file's inside: which arrays and which words make up a plan and its measurements.

``docs/release-file.md`` describes the schema for readers in other languages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp import container, signing
from cloakgp.certificate import FIELDS, Certificate
from cloakgp.container import Array, ReleaseFileError
from cloakgp.gp import GP
from cloakgp.kernels import Custom, Kernel, as_kernel, from_spec
from cloakgp.lattice import IntArray, Measurement
from cloakgp.plan import Plan

FORMAT, SCHEMA = "cloakgp-release", 1

_ARRAYS = {  # name: (dtype, dimensions), little-endian whatever the machine
    "X": ("<f8", 2),
    "X_star": ("<f8", 2),
    "weights": ("<f8", 1),
    "noise": ("<f8", 1),
    "matrix": ("<i8", 2),
    "z": ("<i8", 1),
    "reconstruction": ("<f8", 2),
    "offset": ("<f8", 1),
    "gp_std": ("<f8", 1),
}
_OPTIONAL = {"noise"}


def encode(plan: Plan, z: IntArray, sign_with: Any = None) -> bytes:
    """The bytes of a release file."""
    arrays: dict[str, Array] = {
        "X": plan.X,
        "X_star": plan.X_star,
        "weights": plan.weights,
        "matrix": plan.measurement.matrix,
        "z": z,
        "reconstruction": plan.reconstruction,
        "offset": plan.offset,
        "gp_std": plan.gp_std,
    }
    noise = plan.gp.noise
    if not isinstance(noise, float):
        arrays["noise"] = noise
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "unit": plan.certificate.unit,
        "certificate": plan.certificate.to_dict(),
        "measurement": {"kind": "dense"},
        "model": {
            "kernel": plan.gp.kernel.to_spec(),
            "noise": noise if isinstance(noise, float) else "per row",
            "bounds": list(plan.gp.bounds),
            "mean": plan.gp.mean,
        },
    }
    arrays = {name: np.asarray(array, dtype=_ARRAYS[name][0]) for name, array in arrays.items()}
    contents = container.pack(manifest, arrays)
    if sign_with is None:
        return contents
    digest = container.unpack(contents)[0]["sha256"]
    return container.pack(manifest, arrays, signing.sign(digest, sign_with))


def decode(contents: bytes, kernel: Any = None) -> tuple[Plan, IntArray]:
    """The plan and the noisy measurements in a release file's bytes."""
    manifest, arrays = read(contents)[:2]
    certificate, model = Certificate(**manifest["certificate"]), manifest["model"]
    try:
        gp = GP(
            as_kernel(kernel) if kernel is not None else stored_kernel(model["kernel"]),
            arrays["noise"] if model["noise"] == "per row" else model["noise"],
            model["bounds"],
            model["mean"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseFileError(f"release file has a model that makes no sense: {error}") from None
    measurement = Measurement(
        matrix=arrays["matrix"],
        y_bits=certificate.y_bits,
        matrix_bits=certificate.matrix_bits,
        sigma=certificate.sigma,
        lower=gp.bounds[0],
        upper=gp.bounds[1],
        epsilon=certificate.epsilon,
        delta=certificate.delta,
    )
    plan = Plan(
        gp=gp,
        X=arrays["X"],
        X_star=arrays["X_star"],
        weights=arrays["weights"],
        measurement=measurement,
        reconstruction=arrays["reconstruction"],
        offset=arrays["offset"],
        gp_std=arrays["gp_std"],
        certificate=certificate,
    )
    return plan, arrays["z"]


def read(contents: bytes) -> tuple[dict[str, Any], dict[str, Array], dict[str, str] | None]:
    """Manifest, arrays and signature of a release file that fits the schema."""
    manifest, arrays, signature = container.unpack(contents)
    if manifest.get("format") != FORMAT:
        raise ReleaseFileError(f"not a release file: its format is not {FORMAT!r}.")
    if manifest.get("schema") != SCHEMA:
        raise ReleaseFileError(
            f"release file has schema {manifest.get('schema')!r}; this version of cloakgp reads {SCHEMA}. "
            "Update cloakgp."
        )
    if manifest.get("measurement") != {"kind": "dense"}:
        raise ReleaseFileError("release file has a measurement of a kind that this version does not know.")
    expected = {"format", "schema", "unit", "certificate", "measurement", "model", "members", "sha256"}
    if set(manifest) != expected or set(manifest["model"]) != {"kernel", "noise", "bounds", "mean"}:
        raise ReleaseFileError("release file: the manifest lacks a key or has one too many.")
    certificate = manifest["certificate"]
    if set(certificate) != set(FIELDS) or manifest["unit"] != certificate["unit"]:
        raise ReleaseFileError("release file: the certificate lacks a key or has one too many.")
    for name in FIELDS:
        kind = Certificate.__annotations__[name]
        if type(certificate[name]).__name__ != kind:
            raise ReleaseFileError(f"release file: the certificate's {name} must be a {kind}.")
    _check_arrays(arrays)
    return manifest, arrays, signature


def stored_kernel(spec: Any) -> Kernel:
    """The kernel of a manifest, or a stand-in for a custom one, which no file can hold."""
    return Custom(_Missing()) if is_custom(spec) else from_spec(spec)


def is_custom(spec: Any) -> bool:
    """Whether a kernel's description holds a function that no file can hold."""
    if not isinstance(spec, dict):
        return False
    parts = spec.get("kernels")
    return spec.get("kind") == "Custom" or (isinstance(parts, list) and any(map(is_custom, parts)))


class _Missing:
    """Stands for a custom kernel that was not given; everything but new predictions works."""

    def __call__(self, X: Any, Z: Any) -> Any:
        raise ValueError(
            "kernel: this release was made with a custom kernel, which its file cannot hold. "
            "Use Release.load(path, kernel=...)."
        )

    def __repr__(self) -> str:
        return "not in file"


def _check_arrays(arrays: dict[str, Array]) -> None:
    names = set(arrays)
    if not set(_ARRAYS) - _OPTIONAL <= names <= set(_ARRAYS):
        raise ReleaseFileError("release file: an array is missing, or one is not in the schema.")
    for name, array in arrays.items():
        dtype, dimensions = _ARRAYS[name]
        if array.dtype.str != dtype or array.ndim != dimensions:
            raise ReleaseFileError(
                f"release file: {name} must have dtype {dtype} and {dimensions} dimension(s)."
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ReleaseFileError(f"release file: {name} must be finite.")
    (q, N), (P, D) = arrays["matrix"].shape, arrays["X_star"].shape
    shapes = {"X": (N, D), "weights": (P,), "noise": (N,), "z": (q,), "offset": (P,), "gp_std": (P,)}
    shapes["reconstruction"] = (P, q)
    for name, shape in shapes.items():
        if name in arrays and arrays[name].shape != shape:
            raise ReleaseFileError(f"release file: {name} has shape {arrays[name].shape}, expected {shape}.")
