"""Check a release file without trusting the program that made it.

The guarantee is worked out again from the file's integers alone, with Python integers and its own
formula for delta; none of the code that planned or measured is used for that. The predictions are
then worked out again from the model in the file, with the library's GP.

What no reader of the file can see: whether y was the real data, whether the noise was really
drawn at random, and what else was released about the same people. A signature says who vouches.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp import files, signing
from cloakgp.calibration import calibrate
from cloakgp.certificate import NEIGHBOURS, SPEND, UNIT
from cloakgp.container import ReleaseFileError
from cloakgp.designs import DESIGNS
from cloakgp.designs.posterior import denoising_gain
from cloakgp.factored import FactoredMeasurement
from cloakgp.function import HIDES_INPUTS, UNBIASED, FunctionPlan, reaches
from cloakgp.lattice import Measurement
from cloakgp.models import smoother_for
from cloakgp.plan import Plan, largest_bias, offset
from cloakgp.rows import distinct, take
from cloakgp.smoothers import Smoother, kernel_matrix
from cloakgp.sources import as_source
from cloakgp.verify_recipe import column_faults, prediction_faults


class VerificationError(ValueError):
    """A release file's contents do not support what it claims."""


@dataclass(frozen=True)
class Verification:
    """What was checked, and the guarantee that follows from the file's contents."""

    epsilon: float
    delta: float
    unit: str
    proven_delta: float
    """The delta that the integers in the file prove for its epsilon; at most `delta`."""
    checks: tuple[str, ...]
    signed_by: str | None

    def __str__(self) -> str:
        signed = f"signed by key {self.signed_by}" if self.signed_by else "not signed"
        lines = [f"verified: ({self.epsilon:g}, {self.delta:g})-DP, unit {self.unit}; {signed}"]
        return "\n".join(lines + [f"  - {check}" for check in self.checks])


def verify(
    path: str | os.PathLike[str], *, signed_by: Any = None, kernel: Any = None, X: Any = None
) -> Verification:
    """Recompute a release file's guarantee from its contents, or raise.

    Parameters
    ----------
    path : path
    signed_by : Ed25519 public key, optional
        Refuse the file unless it was signed with this key (extra ``sign``). Also as bytes or hex.
    kernel : callable, optional
        Needed to check the predictions of a release made with a custom kernel.
    X : (N, D) array, optional
        The public inputs, to check the sensitivity of a release of so many rows that its file holds only
        their digest. An array, a memory map, a Parquet file's columns or a Dask array.

    Raises
    ------
    VerificationError
        If the guarantee, or a number derived from it, does not follow from the contents.
    ReleaseFileError
        If the file is damaged or not a release file.
    SignatureError
        If the signature does not fit, or `signed_by` asks for one that is not there.
    """
    manifest, arrays, signature = files.read(Path(path).read_bytes())
    claim, model, kind = manifest["certificate"], manifest["model"], manifest["measurement"]["kind"]
    _refuse(claim["insecure"], "it was made in INSECURE mode: its noise came from a seed")
    words = {"unit": UNIT, "neighbours": NEIGHBOURS, "spend": SPEND}
    known = {files.PREDICTIONS: tuple(DESIGNS), files.FUNCTION: ("function",)}[manifest["release"]]
    shown = ("exact",) if manifest["release"] == files.PREDICTIONS else ("exact", "infinity", "paper")
    _refuse(
        claim["bound"] not in (HIDES_INPUTS if kind == files.WITHHELD else shown),
        "its bound is not one that this library has for such a release",
    )
    _refuse(claim["design"] not in known, "its design is not one that this library has")
    for name, word in words.items():
        _refuse(claim[name] != word, f"its {name} is not one that this library promises")
    signer = None
    if signature is not None or signed_by is not None:
        signer = signing.check(manifest["sha256"], signature, signed_by)

    extent = manifest["measurement"].get("extent", 0)
    proven = _check_guarantee(claim, model, arrays, extent)
    done = ["digests and canonical form", "integer sensitivity, noise scale, mu, epsilon and delta"]
    if kind == files.WITHHELD:
        done[1] = (
            "noise scale, mu, epsilon and delta, for the bound that is named; the matrix is NOT in the file"
        )
    if kind == files.FACTORED:
        done[1] = "noise scale, mu, epsilon and delta, for the sensitivity that is named"
    if kernel is None and files.is_custom(model["kernel"]):
        done.append("predictions NOT checked: the kernel is a custom one (give kernel=)")
    else:
        try:
            plan = files.load(path, kernel)[0]
            done += _check_recipe(plan, X) if kind == files.FACTORED else [_check_predictions(plan)]
        except (VerificationError, ReleaseFileError):
            raise
        except ValueError as error:
            raise VerificationError(f"do not trust this release file: its model fails: {error}") from None
    if manifest["ledger"] is not None:
        receipt = manifest["ledger"]
        done.append(
            f"ledger receipt: entry {receipt['entry']} of {receipt['dataset']!r}, NOT checked here "
            "(Ledger.verify(releases=[...]) does)"
        )
    return Verification(claim["epsilon"], claim["delta"], claim["unit"], proven, tuple(done), signer)


def _check_recipe(plan: Plan | FunctionPlan, X: Any) -> list[str]:
    """Sensitivity and predictions of a release whose measurement is made from its inputs."""
    assert isinstance(plan, Plan)
    assert isinstance(plan.measurement, FactoredMeasurement)
    inputs = plan.measurement.inputs
    if X is not None:
        X = as_source(X, "X", columns=plan.X_star.shape[1])
        _refuse(len(X) != plan.measurement.n_rows, "its number of rows is not that of X")
        inputs = distinct(X, plan.gp.noise)
    if inputs is None:
        sensitivity = "sensitivity NOT checked: the file holds only X's digest (give X=)"
    else:
        _refuse_all(column_faults(plan.gp, plan.measurement, inputs))
        sensitivity = "integer sensitivity, from X, each entry of a column counted one unit larger"
    _refuse_all(prediction_faults(plan, inputs))
    tolerance = 1e-6 * (plan.gp.bounds[1] - plan.gp.bounds[0])
    expected = offset(plan.gp, plan.measurement, plan.reconstruction)
    _refuse(not np.allclose(expected, plan.offset, rtol=0, atol=tolerance), "its offset is not the model's")
    return [sensitivity, "predictions, from the model and the measurements"]


def _refuse_all(faults: list[str]) -> None:
    for fault in faults:
        _refuse(True, fault)


def _check_guarantee(
    claim: dict[str, Any], model: dict[str, Any], arrays: dict[str, Any], extent: int
) -> float:
    """The delta that the integers prove; raises if it, or a number beside it, is not as claimed."""
    epsilon, delta, sigma = claim["epsilon"], claim["delta"], claim["sigma"]
    y_bits, matrix_bits = claim["y_bits"], claim["matrix_bits"]
    _refuse(not (0 < epsilon < math.inf and 0 < delta < 1), "its epsilon or delta is out of range")
    _refuse(not (1 <= y_bits <= 62 and 1 <= matrix_bits <= 62), "its lattice is out of range")
    q, sensitivity, reach = len(arrays["z"]), 0, 64 * sigma
    if "matrix" in arrays:
        matrix = arrays["matrix"].astype(object)  # Python integers: they cannot wrap
        squared = max((matrix**2).sum(axis=0)) * 4**y_bits
        sensitivity = math.isqrt(squared - 1) + 1 if squared else 0  # square root, rounded up
        labels = arrays.get("labels", np.arange(matrix.shape[1]))
        counts = np.bincount(labels, minlength=matrix.shape[1]).astype(object)
        reach += max((abs(matrix) * counts).sum(axis=1)) * 2**y_bits
    if "factors" in arrays:  # the columns are looked at later, if X is there to make them from
        sensitivity = claim["sensitivity_steps"]
        reach += extent * 2**y_bits
    if claim["bound"] != "exact":  # noise for the longest columns that were promised, not for the matrix's
        longest = (2**matrix_bits + math.isqrt(q) + 1) * 2**y_bits
        _refuse(sensitivity > longest, "its sensitivity is above the bound that it names")
        sensitivity = longest
    _refuse(sigma < 2**30, "its noise is too small for the lattice's proof")
    _refuse(reach >= 2**62 or max(map(abs, arrays["z"].tolist())) >= 2**62, "its integers could overflow")
    _refuse(sensitivity == 0, "it measures nothing")
    _refuse(claim["sensitivity_steps"] != sensitivity, "its sensitivity is not that of its matrix")
    exact_mu = Fraction(sensitivity, sigma)
    mu = float(exact_mu) * (1 + 2e-16)
    _refuse(not exact_mu <= Fraction(claim["mu"]) <= exact_mu * (1 + Fraction(1, 10**12)), "its mu is wrong")

    proven = _discrete_delta(mu, epsilon, delta, q)
    _refuse(
        not proven <= delta,
        f"its noise gives delta = {proven:.3g} at epsilon = {epsilon:g}, not {delta:.3g}",
    )
    try:  # not for privacy: noise of another size was not made for this epsilon and delta
        wanted = calibrate(epsilon, delta, claim["calibration"], q)
    except ValueError as error:
        raise VerificationError(f"do not trust this release file: {error}") from None
    _refuse(not math.isclose(mu, wanted, rel_tol=1e-6), "its noise does not belong to its epsilon and delta")

    width = model["bounds"][1] - model["bounds"][0]
    step = width / 2 ** (y_bits + matrix_bits)
    variances = (sigma * step) ** 2 * (arrays["reconstruction"] ** 2).sum(axis=1)
    weights = arrays.get("weights", np.ones(len(variances)))
    derived = {
        "sensitivity": sensitivity * step,
        "noise_scale": sigma * step,
        "n_measurements": q,
    }
    _refuse(not 0 < claim["lower_bound"] <= claim["objective"] < math.inf, "its objective is below its bound")
    derived["gap"] = claim["objective"] / claim["lower_bound"] - 1
    if claim["design"] == "mse":
        derived["objective"] = float(weights @ variances / weights.sum())
    if claim["design"] == "max":
        derived["objective"] = float((variances * weights).max() / weights.mean())
    if claim["design"] == "volume":
        spread = np.linalg.svd(arrays["reconstruction"], compute_uv=False)
        derived["objective"] = float(np.exp(2 * np.mean(np.log(spread * sigma * step))))
    for name, value in derived.items():
        near = math.isclose(claim[name], value, rel_tol=1e-6, abs_tol=1e-9 if name == "gap" else 0.0)
        _refuse(not near, f"its {name} does not follow from its contents")
    _refuse(not 0 <= claim["delta_slack"] <= delta / 100, "its delta slack is out of range")
    return proven


def _discrete_delta(mu: float, epsilon: float, delta: float, q: int) -> float:
    """Theorem 1 of docs/proofs.md for a discrete Gaussian with std of at least 2^30 steps."""
    from scipy.special import erfcx

    x = epsilon + math.log(1e6 / delta)
    eta = q / (24 * 2**60)
    eta_ball = (math.sqrt(q + 2 * math.sqrt(q * x) + 2 * x) + math.sqrt(q) / 2**31) ** 2 / (24 * 2**60)
    left = math.nextafter(epsilon - eta - eta_ball, 0.0)
    # Phi(a) - e^left Phi(b), with e^left phi(b) = phi(a): both terms are phi(a) times a Mills ratio.
    above, below = left / mu - mu / 2, left / mu + mu / 2
    if above < -30:
        return 1.0  # hardly any noise
    mills = float(erfcx(above / math.sqrt(2)) - erfcx(below / math.sqrt(2)))
    gaussian = math.exp(-(above**2) / 2) * mills / 2
    return math.exp(eta) * (gaussian + math.exp(left - x))


def _check_predictions(plan: Plan | FunctionPlan) -> str:
    """What the released numbers are made into, against the model, within rounding on another machine."""
    gp, certificate = plan.gp, plan.certificate
    tolerance = 1e-6 * (gp.bounds[1] - gp.bounds[0])
    if isinstance(plan, FunctionPlan):
        _check_function(plan)
        if plan.X is None:
            return "the function's shape, from the model and its points; its values NOT: X is not in the file"
    assert plan.X is not None
    assert isinstance(plan.measurement, Measurement)
    asked = plan.X_star if isinstance(plan, Plan) else plan.points
    reconstruction = plan.reconstruction if isinstance(plan, Plan) else plan.weights(asked)
    groups = plan.measurement.groups
    inputs = take(plan.X, gp.noise, groups)
    if groups is not None:
        _refuse(not np.array_equal(inputs.X[groups.labels], plan.X), "its labels join unequal rows")
        same = isinstance(inputs.noise, float) or np.array_equal(inputs.noise[groups.labels], gp.noise)
        _refuse(not same, "its labels join rows with unequal noise")
    smoother = smoother_for(gp, inputs, asked)
    bias = largest_bias(gp, smoother, plan.measurement, reconstruction)
    near = math.isclose(bias, certificate.bias, rel_tol=1e-3, abs_tol=tolerance)
    _refuse(not near, "its measurements do not add up to its predictions")
    if isinstance(plan, FunctionPlan):
        _refuse(not np.array_equal(plan.centre, plan.measurement.midpoint), "its centre is not its matrix's")
        return "the function's values, from the model and the measurements"
    _refuse(certificate.unbiased == (certificate.design == "posterior"), "it is not as unbiased as it says")
    if certificate.design == "posterior":
        _check_denoising(plan, smoother)
    expected = offset(gp, plan.measurement, reconstruction)
    _refuse(not np.allclose(expected, plan.offset, rtol=0, atol=tolerance), "its offset is not the model's")
    std = np.sqrt(smoother.posterior_variance)
    close = np.allclose(std, plan.gp_std, rtol=1e-3, atol=1e-5 * float(std.max()))
    _refuse(not close, "its GP std is not the model's")
    return "predictions, from the model and the measurements"


def _check_function(plan: FunctionPlan) -> None:
    """Reach, reconstruction and objective of a function, as far as what the file shows determines them."""
    gp, certificate, bound = plan.gp, plan.certificate, plan.certificate.bound
    exact = reach = plan.reach
    _refuse(not 1e-100 < reach < 1e100, "its reach is out of range")
    if plan.X is not None:
        exact, reach = reaches(gp, plan.X, plan.points, bound)
    elif bound == "input-free":
        exact = reach = 1 / (2 * math.sqrt(float(np.min(gp.noise))))
    _refuse(not math.isclose(reach, plan.reach, rel_tol=1e-6), "its reach is not its bound's")
    product = plan.reconstruction.T @ kernel_matrix(gp.kernel, plan.points, plan.points, "points, points")
    identity = product @ plan.reconstruction / plan.reach**2  # R^-T K_ZZ R^-1
    near = np.allclose(identity, np.eye(len(identity)), rtol=0, atol=1e-3)
    triangular = not np.tril(plan.reconstruction, -1).any() and bool(np.all(np.diag(plan.reconstruction) > 0))
    _refuse(not near or not triangular, "its reconstruction is not its points'")
    objective = (plan.reach * certificate.noise_scale) ** 2
    _refuse(
        not math.isclose(objective, certificate.objective, rel_tol=1e-6), "its objective is not its noise's"
    )
    lower = objective * (exact / reach) ** 2
    _refuse(not math.isclose(lower, certificate.lower_bound, rel_tol=1e-6), "its lower bound is not exact")
    hidden_bias = certificate.bias != 0 or plan.centre.any()
    _refuse(plan.X is None and bool(hidden_bias), "it tells of inputs that it says it hides")
    width = gp.bounds[1] - gp.bounds[0]
    unbiased = plan.X is not None and certificate.bias <= UNBIASED * width
    _refuse(certificate.unbiased != unbiased, "it is not as unbiased as it says")


def _check_denoising(plan: Plan | FunctionPlan, smoother: Smoother) -> None:
    """The reconstruction and the objective of a release that is denoised to begin with."""
    assert isinstance(plan.measurement, Measurement)
    B = plan.measurement.real_matrix()
    gain = denoising_gain(smoother, B, plan.measurement.noise_scale**2)
    near = np.allclose(gain, plan.reconstruction, rtol=0, atol=1e-6 * float(np.abs(gain).max()))
    _refuse(not near, "its reconstruction is not the one that denoises best")
    assert isinstance(plan, Plan)
    left = smoother.explained_variance - np.einsum("ij,ji->i", gain, B @ smoother.cross)
    objective = float(plan.weights @ left / plan.weights.sum())
    near = math.isclose(objective, plan.certificate.objective, rel_tol=1e-3)
    _refuse(not near, "its objective does not follow from its contents")


def _refuse(wrong: bool, reason: str) -> None:
    if wrong:
        raise VerificationError(f"do not trust this release file: {reason}.")
