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
from cloakgp.certificate import NEIGHBOURS, SPEND, UNIT
from cloakgp.plan import Plan, influence_and_bias
from cloakgp.smoothers import ExactGP


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


def verify(path: str | os.PathLike[str], *, signed_by: Any = None, kernel: Any = None) -> Verification:
    """Recompute a release file's guarantee from its contents, or raise.

    Parameters
    ----------
    path : path
    signed_by : Ed25519 public key, optional
        Refuse the file unless it was signed with this key (extra ``sign``). Also as bytes or hex.
    kernel : callable, optional
        Needed to check the predictions of a release made with a custom kernel.

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
    claim, model = manifest["certificate"], manifest["model"]
    _refuse(claim["insecure"], "it was made in INSECURE mode: its noise came from a seed")
    words = {"unit": UNIT, "neighbours": NEIGHBOURS, "spend": SPEND}
    for name, word in words.items():
        _refuse(claim[name] != word, f"its {name} is not one that this library promises")
    signer = None
    if signature is not None or signed_by is not None:
        signer = signing.check(manifest["sha256"], signature, signed_by)

    proven = _check_guarantee(claim, model, arrays)
    done = ["digests and canonical form", "integer sensitivity, noise scale, mu, epsilon and delta"]
    if kernel is None and files.is_custom(model["kernel"]):
        done.append("predictions NOT checked: the kernel is a custom one (give kernel=)")
    else:
        _check_predictions(*files.decode(Path(path).read_bytes(), kernel))
        done.append("predictions, from the model and the measurements")
    return Verification(claim["epsilon"], claim["delta"], claim["unit"], proven, tuple(done), signer)


def _check_guarantee(claim: dict[str, Any], model: dict[str, Any], arrays: dict[str, Any]) -> float:
    """The delta that the integers prove; raises if it, or a number beside it, is not as claimed."""
    epsilon, delta, sigma = claim["epsilon"], claim["delta"], claim["sigma"]
    y_bits, matrix_bits = claim["y_bits"], claim["matrix_bits"]
    _refuse(not (0 < epsilon < math.inf and 0 < delta < 1), "its epsilon or delta is out of range")
    _refuse(not (1 <= y_bits <= 62 and 1 <= matrix_bits <= 62), "its lattice is out of range")
    matrix = arrays["matrix"].astype(object)  # Python integers: they cannot wrap
    squared = max((matrix**2).sum(axis=0)) * 4**y_bits
    sensitivity = math.isqrt(squared - 1) + 1 if squared else 0  # square root, rounded up
    reach = max(abs(matrix).sum(axis=1)) * 2**y_bits + 64 * sigma
    _refuse(sigma < 2**30, "its noise is too small for the lattice's proof")
    _refuse(reach >= 2**62 or max(map(abs, arrays["z"].tolist())) >= 2**62, "its integers could overflow")
    _refuse(claim["sensitivity_steps"] != sensitivity, "its sensitivity is not that of its matrix")
    exact_mu = Fraction(sensitivity, sigma)
    mu = float(exact_mu) * (1 + 2e-16)
    _refuse(not exact_mu <= Fraction(claim["mu"]) <= exact_mu * (1 + Fraction(1, 10**12)), "its mu is wrong")

    proven = _discrete_delta(mu, epsilon, delta, len(matrix))
    _refuse(
        not proven <= delta,
        f"its noise gives delta = {proven:.3g} at epsilon = {epsilon:g}, not {delta:.3g}",
    )
    classic = epsilon / math.sqrt(2 * math.log(2 / delta))
    tight = proven > delta * (1 - 1e-4) or epsilon > 600  # planning rounds the other way up there
    if claim["calibration"] == "classic":
        tight = tight or math.isclose(mu, classic, rel_tol=1e-6)
    else:
        _refuse(claim["calibration"] != "analytic", "its calibration is not one that this library has")
    _refuse(not tight, "its noise does not belong to its epsilon and delta")

    width = model["bounds"][1] - model["bounds"][0]
    step = width / 2 ** (y_bits + matrix_bits)
    weights, reconstruction = arrays["weights"], arrays["reconstruction"]
    variances = (sigma * step) ** 2 * (reconstruction**2).sum(axis=1)
    derived = {
        "sensitivity": sensitivity * step,
        "noise_scale": sigma * step,
        "n_rows": arrays["X"].shape[0],
        "n_measurements": len(matrix),
        "gap": claim["objective"] / claim["lower_bound"] - 1,
    }
    if claim["design"] == "mse":
        derived["objective"] = float(weights @ variances / weights.sum())
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
    mills = float(erfcx(above / math.sqrt(2)) - erfcx(below / math.sqrt(2)))
    gaussian = math.exp(-(above**2) / 2) * mills / 2
    return math.exp(eta) * (gaussian + math.exp(left - x))


def _check_predictions(plan: Plan, z: Any) -> None:
    """Offset, GP std and reconstruction against the model, within rounding on another machine."""
    gp = plan.gp
    smoother = ExactGP(gp.kernel, gp.noise, plan.X, plan.X_star)
    influence, bias = influence_and_bias(smoother, plan.measurement, plan.reconstruction)
    low, high = gp.bounds
    offset = gp.mean + influence * (low + (high - low) / 2 - gp.mean)
    tolerance = 1e-6 * (high - low)
    _refuse(bias > plan.certificate.bias + tolerance, "its measurements do not add up to its predictions")
    _refuse(not np.allclose(offset, plan.offset, rtol=0, atol=tolerance), "its offset is not the model's")
    std = np.sqrt(smoother.posterior_variance)
    close = np.allclose(std, plan.gp_std, rtol=1e-3, atol=1e-5 * float(std.max()))
    _refuse(not close, "its GP std is not the model's")


def _refuse(wrong: bool, reason: str) -> None:
    if wrong:
        raise VerificationError(f"do not trust this release file: {reason}.")
