"""How a plan and its measurements become the arrays and words of a release file, and back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.files import container, schema, signing
from cloakgp.files.container import Array, ReleaseFileError
from cloakgp.files.labels import NONE, Labels
from cloakgp.files.reading import plan_digest, read, read_charged
from cloakgp.files.schema import DENSE, DTYPES, FACTORED, FORMAT, PER_ROW, SCHEMA, WITHHELD
from cloakgp.kernels import Kernel, as_kernel
from cloakgp.ledger.charge import Receipt
from cloakgp.measurements.certificate import Certificate
from cloakgp.measurements.lattice import IntArray, Measurement, of_rows
from cloakgp.measurements.recipes import FactoredMeasurement, Recipe
from cloakgp.model.gp import GP
from cloakgp.model.inducing import Features
from cloakgp.model.windows import RowMeans, evaluated
from cloakgp.rows.columns import Columns
from cloakgp.rows.inputs import TableRows
from cloakgp.rows.merging import Groups, distinct
from cloakgp.rows.people import People

LARGEST_INPUTS = 2**26
"""Bytes of X up to which a file with a recipe holds it, and not only its digest."""


class Encodable(Protocol):
    """What every plan has that a file holds."""

    @property
    def gp(self) -> GP: ...
    @property
    def X(self) -> Any: ...
    @property
    def measurement(self) -> Measurement | FactoredMeasurement: ...
    @property
    def reconstruction(self) -> FloatArray: ...
    @property
    def certificate(self) -> Certificate: ...
    @property
    def partition(self) -> str: ...
    @property
    def within(self) -> float | None: ...
    @property
    def columns(self) -> Columns | None: ...
    @property
    def rows(self) -> TableRows | None: ...
    def own_contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Words and arrays that plans of this kind have, and others have not."""
        ...


def encode(
    plan: Encodable,
    z: IntArray,
    receipt: Receipt | None = None,
    sign_with: Any = None,
    labels: Labels = NONE,
) -> bytes:
    """The bytes of a release file."""
    manifest, arrays = _described(plan)
    manifest["ledger"] = None if receipt is None else {"entry": receipt.entry, "head": receipt.head}
    manifest[schema.CUSTODIANS_WORDS] = custodians_words(receipt, labels)
    arrays["z"] = np.asarray(z, dtype=DTYPES["z"][0])
    signature = None
    if sign_with is not None:
        signature = signing.sign(container.sealed(manifest, arrays)["sha256"], sign_with)
    return container.pack(manifest, arrays, signature)


def custodians_words(receipt: Receipt | None, labels: Labels) -> dict[str, str]:
    """All words that the custodian chose."""
    return labels.words() | ({} if receipt is None else {"dataset": receipt.dataset})


def encode_plan(plan: Encodable) -> bytes:
    """A plan as a ledger keeps it with its charge: all that the release file will hold, but no answer."""
    manifest, arrays = _described(plan)
    return container.pack(manifest | {"format": schema.PLAN_FORMAT}, arrays)


def digest(plan: Encodable) -> str:
    """SHA-256 of what the plan's release file will hold, without the answer and the receipt."""
    return plan_digest(*_described(plan))


def _described(plan: Encodable) -> tuple[dict[str, Any], dict[str, Array]]:
    """A plan as words and arrays."""
    words, own = plan.own_contents()
    arrays: dict[str, Array] = {"reconstruction": plan.reconstruction, **own}
    manifest: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA, "unit": plan.certificate.unit, **words}
    noise, measurement = plan.gp.noise, plan.measurement
    if not isinstance(noise, float):
        arrays["noise"] = noise
    (lower, upper), mean = plan.gp.bounds, plan.gp.mean
    if not isinstance(lower, float):
        arrays |= {"lower": np.asarray(lower), "upper": np.asarray(upper)}
    if isinstance(mean, RowMeans):
        arrays |= {"mean_rows": mean.rows, "mean_star": np.asarray(mean.star)}
    if isinstance(measurement, FactoredMeasurement):
        kind, recipe = {"kind": FACTORED} | _recipe_words(measurement), measurement.recipe
        arrays |= {"features": recipe.features.W, "factors": recipe.factors}
        arrays |= {"information": measurement.information, "sums": measurement.column_sum}
        if measurement.moved is not None:
            arrays["middle_less_mean"] = measurement.moved
        if isinstance(plan.X, np.ndarray) and plan.X.nbytes <= LARGEST_INPUTS:
            arrays["X"] = plan.X
    elif plan.X is None:
        kind = {"kind": WITHHELD}
    else:
        kind = {"kind": DENSE}
        arrays |= {"X": plan.X, "matrix": measurement.matrix}
        if measurement.groups is not None:
            arrays["labels"] = measurement.groups.labels
    if plan.partition:
        manifest[schema.PEOPLE] = {"sha256": plan.partition, "within": plan.within}
        if "X" in arrays and measurement.people is not None:
            arrays["people"] = measurement.people.labels
    manifest |= schema.table_words(plan.columns, plan.rows)
    if plan.gp.inducing is not None:
        arrays["inducing"] = np.asarray(plan.gp.inducing)
    manifest |= {
        "certificate": plan.certificate.to_dict(),
        "measurement": kind,
        "model": {
            "kernel": plan.gp.kernel.to_spec(),
            "noise": noise if isinstance(noise, float) else PER_ROW,
            "bounds": [lower, upper] if isinstance(lower, float) else PER_ROW,
            "mean": mean if isinstance(mean, float) else PER_ROW,
            "approximation": None if plan.gp.inducing is None else plan.gp.approximation,
        },
    }
    return manifest, {name: np.asarray(array, dtype=DTYPES[name][0]) for name, array in arrays.items()}


@dataclass(frozen=True, eq=False)
class Contents:
    """What a release file holds, whichever plan it is of."""

    manifest: dict[str, Any]
    arrays: dict[str, Array]
    gp: GP
    measurement: Measurement | FactoredMeasurement
    certificate: Certificate
    receipt: Receipt | None

    @property
    def z(self) -> IntArray:
        """The noisy measurements."""
        return self.arrays["z"]

    @property
    def labels(self) -> Labels:
        """Title, units, source and date, as far as the custodian gave them."""
        return Labels.from_words(self.manifest[schema.CUSTODIANS_WORDS])

    @property
    def within(self) -> float | None:
        """Correlation of the noise within a person, if the promise is to people."""
        words = self.manifest.get(schema.PEOPLE)
        return None if words is None else float(words["within"])

    @property
    def columns(self) -> Columns | None:
        """Names of the columns of X, if it was a table."""
        return schema.table_of(self.manifest)[0]

    @property
    def rows(self) -> TableRows | None:
        """Which rows of the table count."""
        return schema.table_of(self.manifest)[1]

    @property
    def kind(self) -> str:
        """Whether it is a release of predictions or of a function."""
        return str(self.manifest["release"])


def read_contents(path: str | os.PathLike[str], kernel: Any = None, mean: Any = None) -> Contents:
    """What is in a release file."""
    manifest, arrays, _ = read(path)
    _expect_one_step(manifest)
    return contents_of(manifest, arrays, kernel, mean)


def charged_contents(contents: bytes) -> Contents:
    """What :func:`encode_plan` wrote."""
    return contents_of(*read_charged(contents))


def _expect_one_step(manifest: dict[str, Any]) -> None:
    if manifest["release"] == schema.STAGED:
        raise ReleaseFileError(
            "path: this file holds a release in stages; read it with cloakgp.load, which reads every kind."
        )


def contents_of(
    manifest: dict[str, Any], arrays: dict[str, Array], kernel: Any = None, mean: Any = None
) -> Contents:
    """What a manifest and arrays that fit the schema describe."""
    certificate, model = Certificate(**manifest["certificate"]), manifest["model"]
    receipt = None
    if manifest.get("ledger") is not None:
        receipt = Receipt(manifest[schema.CUSTODIANS_WORDS]["dataset"], **manifest["ledger"])
    given = given_kernel(model["kernel"], kernel)
    row_means = _row_means(arrays, mean) if model["mean"] == PER_ROW else model["mean"]
    try:
        gp = GP(
            given,
            arrays["noise"] if model["noise"] == PER_ROW else model["noise"],
            (arrays["lower"], arrays["upper"]) if model["bounds"] == PER_ROW else model["bounds"],
            row_means,
            *([] if model["approximation"] is None else [arrays["inducing"], model["approximation"]]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseFileError(f"release file has a model that makes no sense: {error}") from None
    measurement = _measurement(manifest, arrays, certificate, gp)
    return Contents(manifest, arrays, gp, measurement, certificate, receipt)


def given_kernel(spec: dict[str, Any], kernel: Any) -> Kernel:
    """The kernel that a file describes; where it is a custom one, the one that is given, if it fits."""
    given = None if kernel is None else as_kernel(kernel)
    if given is None or not schema.is_custom(spec):
        return schema.stored_kernel(spec)
    if not schema.fits(given.to_spec(), spec):
        raise ValueError(
            "kernel: the file's has parts that it can hold, and the one given has not the same. Give the "
            "whole kernel, as it was when the release was made."
        )
    return given


def _row_means(arrays: dict[str, Array], given: Any) -> RowMeans:
    """The prior mean at the rows and the test points; elsewhere by the function that a reader gives."""
    X, X_star, rows, star = arrays.get("X"), arrays["X_star"], arrays["mean_rows"], arrays["mean_star"]
    if given is None:
        return RowMeans(rows, None, X, X_star, star)
    if not callable(given):
        raise ArgumentTypeError("mean", "must be the function of X that the release was planned with")
    for where, known in ((X_star, star), (X, rows)):
        if where is not None and not np.allclose(evaluated(given, "mean", where), known, rtol=1e-9):
            raise ArgumentError("mean", "must be the function of X that the release was planned with")
    return RowMeans(rows, given, None, X_star, star)


def _measurement(
    manifest: dict[str, Any], arrays: dict[str, Array], certificate: Certificate, gp: GP
) -> Measurement | FactoredMeasurement:
    groups, lower, upper = _groups(arrays), *gp.bounds
    assert not callable(lower) and not callable(upper)  # noqa: PT018
    inputs = None
    words = manifest["measurement"]
    if words["kind"] == FACTORED and "X" in arrays:
        inputs = distinct(arrays["X"], gp.noise, gp.windows)
        groups = inputs.groups
    if groups is not None:
        lower, upper = of_rows(lower, groups.first), of_rows(upper, groups.first)
    lattice: dict[str, Any] = {
        "y_bits": certificate.y_bits,
        "sigma": certificate.sigma,
        "lower": lower,
        "upper": upper,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "declared": certificate.sensitivity_steps,
        "people": People(arrays["people"].astype(np.intp)) if "people" in arrays else None,
    }
    if words["kind"] != FACTORED:
        return Measurement(
            matrix=arrays.get("matrix", np.zeros((arrays["reconstruction"].shape[1], 0), dtype=np.int64)),
            matrix_bits=certificate.matrix_bits,
            groups=groups,
            **lattice,
        )
    features = Features(gp.kernel, arrays["inducing"], arrays["features"])
    return FactoredMeasurement(
        recipe=Recipe(
            features,
            gp.approximation,
            arrays["factors"],
            words["factor_bits"],
            certificate.matrix_bits,
            float(np.max(upper - lower)),
            schema.PEOPLE in manifest,
        ),
        inputs=inputs,
        information=arrays["information"],
        rows=certificate.n_rows,
        digest=words["inputs_sha256"],
        sums=arrays["sums"],
        extent=words["extent"],
        moved=arrays.get("middle_less_mean"),
        partition=manifest[schema.PEOPLE]["sha256"] if schema.PEOPLE in manifest else "",
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
