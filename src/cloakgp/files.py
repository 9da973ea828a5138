"""The release file's inside: which arrays and which words make up a plan and its measurements.

:mod:`cloakgp.schema` says what may be there, and ``docs/release-file.md`` describes it for readers in
other languages.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from cloakgp import container, schema, signing
from cloakgp.certificate import Certificate
from cloakgp.charging import Receipt
from cloakgp.container import Array, ReleaseFileError
from cloakgp.factored import FactoredMeasurement, Recipe
from cloakgp.function import FunctionPlan
from cloakgp.gp import GP
from cloakgp.inducing import Features
from cloakgp.kernels import as_kernel
from cloakgp.lattice import IntArray, Measurement
from cloakgp.plan import Plan, offset
from cloakgp.rows import Groups, distinct
from cloakgp.schema import DENSE, DTYPES, FACTORED, FORMAT, FUNCTION, PREDICTIONS, SCHEMA, WITHHELD

LARGEST_INPUTS = 2**26
"""Bytes of X up to which a file with a recipe holds it, and not only its digest."""


def encode(
    plan: Plan | FunctionPlan, z: IntArray, receipt: Receipt | None = None, sign_with: Any = None
) -> bytes:
    """The bytes of a release file."""
    manifest, arrays = _described(plan)
    manifest["ledger"] = None if receipt is None else {"entry": receipt.entry, "head": receipt.head}
    manifest[schema.CUSTODIANS_WORDS] = {} if receipt is None else {"dataset": receipt.dataset}
    arrays["z"] = np.asarray(z, dtype=DTYPES["z"][0])
    signature = None
    if sign_with is not None:
        signature = signing.sign(container.sealed(manifest, arrays)["sha256"], sign_with)
    return container.pack(manifest, arrays, signature)


def digest(plan: Plan | FunctionPlan) -> str:
    """SHA-256 of what the plan's release file will hold, without the answer and the receipt."""
    manifest, arrays = _described(plan)
    if isinstance(
        plan.measurement, FactoredMeasurement
    ):  # has the inputs' own digest, wherever they are kept
        arrays.pop("X", None)
    sha256: str = container.sealed(manifest, arrays)["sha256"]
    return sha256


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
    if isinstance(plan, Plan):
        arrays["gp_std"] = schema.rounded_std(plan.gp_std)
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
    return manifest, {name: np.asarray(array, dtype=DTYPES[name][0]) for name, array in arrays.items()}


Contents = tuple[Plan | FunctionPlan, IntArray, Receipt | None]
"""What a release file holds: the plan, the noisy measurements, and where they stand in a ledger."""


def plan_of(manifest: dict[str, Any], arrays: dict[str, Array], kernel: Any = None) -> Contents:
    """What a manifest and arrays that fit the schema describe."""
    certificate, model = Certificate(**manifest["certificate"]), manifest["model"]
    z = arrays["z"]
    words = manifest[schema.CUSTODIANS_WORDS]
    receipt = None if manifest["ledger"] is None else Receipt(words["dataset"], **manifest["ledger"])
    given = None if kernel is None else as_kernel(kernel)
    if given is None or not schema.is_custom(model["kernel"]):
        given = schema.stored_kernel(model["kernel"])
    try:
        gp = GP(
            given,
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
    unfinished = path.with_name(f".{path.name[:100]}.{uuid4().hex}.part")
    try:
        with unfinished.open("xb") as file:  # a new file, with the permissions that the process gives to such
            file.write(contents)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def load(path: str | os.PathLike[str], kernel: Any = None) -> Contents:
    """What is in a release file."""
    manifest, arrays, _ = read(path)
    return plan_of(manifest, arrays, kernel)


def read(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, Array], dict[str, str] | None]:
    """Manifest, arrays and signature of a release file, in today's schema."""
    return _todays(*container.read(path))


def read_bytes(contents: bytes) -> tuple[dict[str, Any], dict[str, Array], dict[str, str] | None]:
    """The same from a release file's bytes."""
    return _todays(*container.unpack(contents))


def _todays(
    manifest: dict[str, Any], arrays: dict[str, Array], signature: dict[str, str] | None
) -> tuple[dict[str, Any], dict[str, Array], dict[str, str] | None]:
    old = manifest.get("schema") == 1
    manifest, arrays = schema.checked(manifest, arrays)
    if old and "offset" in arrays:  # whose last bits were the machine's
        plan = plan_of(manifest, arrays)[0]
        assert isinstance(plan, Plan)
        exact, width = offset(plan.gp, plan.measurement, plan.reconstruction), np.diff(plan.gp.bounds)
        if np.allclose(exact, plan.offset, rtol=0, atol=1e-9 * width):
            arrays["offset"] = exact
    return manifest, arrays, signature
