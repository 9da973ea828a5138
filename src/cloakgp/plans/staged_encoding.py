"""How a release in stages becomes the arrays and words of a file, and back."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.files import container, reading, schema, signing
from cloakgp.files.container import Array, ReleaseFileError
from cloakgp.files.schema import FORMAT, SCHEMA
from cloakgp.files.staged_schema import STAGE_ARRAYS, STAGED
from cloakgp.ledger.charge import Receipt
from cloakgp.measurements.staged_certificate import StagedCertificate
from cloakgp.model.hyperprior import Hyperprior, Setting
from cloakgp.plans.stages import Rule, Stage, StagePlan
from cloakgp.posterior.staging import Schedule

if TYPE_CHECKING:
    from cloakgp.plans.staged import StagedPlan, StagedRelease


def encode(release: StagedRelease, sign_with: Any = None) -> bytes:
    """The bytes of a release file."""
    receipt = release.receipt
    manifest, arrays = _described(release.plan)
    manifest["ledger"] = None if receipt is None else {"entry": receipt.entry, "head": receipt.head}
    manifest[schema.CUSTODIANS_WORDS] = {} if receipt is None else {"dataset": receipt.dataset}
    manifest["learned"] = [
        {**asdict(setting), "lengthscale": list(setting.lengthscale), "weight": weight}
        for setting, weight in zip(release.settings, release.weights.tolist(), strict=True)
    ]
    manifest["stages"] = []
    for number, stage in enumerate(release.stages):
        words, own = stage.plan.described()
        manifest["stages"].append(words)
        arrays |= _numbered(own | {"z": stage.answer}, number)
    signature = None
    if sign_with is not None:
        signature = signing.sign(container.sealed(manifest, arrays)["sha256"], sign_with)
    return container.pack(manifest, arrays, signature)


def encode_plan(plan: StagedPlan) -> bytes:
    """The bytes of a plan's file."""
    manifest, arrays = _described(plan)
    return container.pack({**manifest, "format": schema.PLAN_FORMAT}, arrays)


def digest(plan: StagedPlan) -> str:
    """SHA-256 of what the plan's file will hold."""
    return reading.plan_digest(*_described(plan))


def _numbered(arrays: dict[str, Array], number: int) -> dict[str, Array]:
    return {f"{name}_{number}": np.asarray(a, dtype=STAGE_ARRAYS[name][0]) for name, a in arrays.items()}


def _described(plan: StagedPlan) -> tuple[dict[str, Any], dict[str, Array]]:
    """A plan as words and arrays."""
    rule = plan.rule
    words, own = plan.first.described()
    arrays = {"X": rule.X, "X_star": rule.X_star, "weights": rule.weights}
    if rule.support is not None:
        arrays["inducing"] = rule.support
    prior = {name: list(value) for name, value in asdict(rule.prior).items()}
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "release": STAGED,
        "unit": plan.certificate.unit,
        "certificate": plan.certificate.to_dict(),
        "model": {"prior": prior, "bounds": list(rule.bounds)},
        "kappa": rule.schedule.kappa,
        "stages": [words],
    }
    floats = {name: np.asarray(array, dtype="<f8") for name, array in arrays.items()}
    return manifest, floats | _numbered(own, 0)


def read(path: str | os.PathLike[str]) -> StagedRelease:
    """The release in a file."""
    manifest, arrays, _ = reading.read(path)
    _expect_staged(manifest)
    return release_of(manifest, arrays)


def read_plan(path: str | os.PathLike[str]) -> StagedPlan:
    """The plan in a plan's file."""
    manifest, arrays = reading.read_plan(path)
    _expect_staged(manifest)
    return plan_of(manifest, arrays)


def _expect_staged(manifest: dict[str, Any]) -> None:
    if manifest["release"] != STAGED:
        raise ReleaseFileError("path: this file holds no release in stages; use cloakgp.load.")


def plan_of(manifest: dict[str, Any], arrays: dict[str, Array]) -> StagedPlan:
    """The plan that a manifest and arrays describe which fit the schema."""
    from cloakgp.plans.staged import StagedPlan

    words = manifest["certificate"]
    certificate = StagedCertificate(**{**words, "shares": tuple(words["shares"])})
    prior = {name: tuple(value) for name, value in manifest["model"]["prior"].items()}
    try:
        rule = Rule(
            prior=Hyperprior(**prior),
            bounds=tuple(manifest["model"]["bounds"]),
            X=arrays["X"],
            X_star=arrays["X_star"],
            weights=arrays["weights"],
            support=arrays.get("inducing"),
            schedule=Schedule(certificate.shares, manifest["kappa"]),
            epsilon=certificate.epsilon,
            delta=certificate.delta,
            mu=certificate.mu,
            most=certificate.n_measurements,
        )
    except (TypeError, ValueError) as error:
        raise ReleaseFileError(f"release file has a model that makes no sense: {error}") from None
    if arrays["matrix_0"].shape[1] != len(rule.inputs):
        raise ReleaseFileError("release file: its matrices do not have a column for each distinct row of X.")
    return StagedPlan(rule, _stage_plan(manifest, arrays, rule, 0), certificate)


def release_of(manifest: dict[str, Any], arrays: dict[str, Array]) -> StagedRelease:
    """The release that a manifest and arrays describe which fit the schema."""
    from cloakgp.plans.staged import StagedRelease

    plan = plan_of(manifest, arrays)
    stages = tuple(
        Stage(_stage_plan(manifest, arrays, plan.rule, number), arrays[f"z_{number}"])
        for number in range(len(manifest["stages"]))
    )
    settings, weights = [], []
    for one in manifest["learned"]:
        words = {name: value for name, value in one.items() if name != "weight"}
        settings.append(Setting(**{**words, "lengthscale": tuple(words["lengthscale"])}))
        weights.append(one["weight"])
    receipt = None
    if manifest["ledger"] is not None:
        receipt = Receipt(manifest[schema.CUSTODIANS_WORDS]["dataset"], **manifest["ledger"])
    return StagedRelease(plan, stages, tuple(settings), np.array(weights), receipt)


def _stage_plan(manifest: dict[str, Any], arrays: dict[str, Array], rule: Rule, number: int) -> StagePlan:
    own = {name: arrays[key] for name in STAGE_ARRAYS if (key := f"{name}_{number}") in arrays}
    return StagePlan.from_described(manifest["stages"][number], own, rule, number)
