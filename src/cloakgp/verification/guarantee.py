"""The promise, from the file's integers alone.

Every sum is exact: integers are split so that no 64-bit sum can wrap, and put together again as Python's,
which cannot. The formula for delta is its own. Nothing here plans, measures or reads an input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.calibration import CALIBRATIONS, DELTA_FLOOR, EPSILON_LIMIT, calibrate, delta_slack
from cloakgp.designs import DESIGNS
from cloakgp.files.schema import FUNCTION, PEOPLE, PER_ROW, PREDICTIONS, WITHHELD
from cloakgp.measurements.certificate import CLOSED_FORM, DIGITS, SPEND, STATUSES, short
from cloakgp.measurements.unit import OUTCOME, PERSON, UNITS, Unit
from cloakgp.plans.function_planner import HIDES_INPUTS
from cloakgp.verification import people, reasons
from cloakgp.verification.reasons import Reason

IntArray = NDArray[np.int64]
_BLOCK = 2**17  # entries of a matrix looked at together
RANGES = {  # both ends included
    "epsilon": (math.nextafter(0, 1), math.nextafter(EPSILON_LIMIT, 0)),
    "delta": (DELTA_FLOOR, math.nextafter(1, 0)),
    "y_bits": (1, 24),
    "matrix_bits": (1, 30),
    "sigma": (1, 2**62),
    "iterations": (0, 10**6),
    "n_rows": (1, 2**40),
    "objective": (1e-300, 1e300),
    "lower_bound": (1e-300, 1e300),
    "bias": (0.0, 1e300),
    "jitter": (0.0, 1e300),
    "delta_slack": (0.0, 0.01),
}


def check_words(manifest: dict[str, Any]) -> None:
    """The terms of the promise, and the words for how it was reached: each from a closed list."""
    claim, predictions = manifest["certificate"], manifest["release"] == PREDICTIONS
    check_terms(claim, protected(manifest))
    kind = manifest["measurement"]["kind"]
    shown = ("exact",) if predictions or PEOPLE in manifest else ("exact", "infinity", "paper")
    bounds = HIDES_INPUTS if kind == WITHHELD else shown
    reasons.refuse(claim["bound"] not in bounds, Reason.BOUND)
    designs = tuple(DESIGNS) if predictions else (FUNCTION,)
    reasons.refuse(claim["design"] not in designs, Reason.DESIGN)
    statuses = STATUSES if predictions else (CLOSED_FORM,)
    reasons.refuse(claim["status"] not in statuses, Reason.STATUS)


def protected(manifest: dict[str, Any]) -> tuple[Unit, ...]:
    """Whom a file's contents can protect."""
    return (PERSON,) if PEOPLE in manifest else (OUTCOME,)


def check_terms(claim: dict[str, Any], units: Sequence[Unit] = (OUTCOME,)) -> None:
    """Those that every release has; its unit must be among those that its contents can protect."""
    reasons.refuse(claim["insecure"], Reason.INSECURE)
    reasons.refuse(claim["unit"] not in [unit.name for unit in units], Reason.UNIT)
    reasons.refuse(claim["neighbours"] != UNITS[claim["unit"]].neighbours, Reason.NEIGHBOURS)
    reasons.refuse(claim["spend"] != SPEND, Reason.SPEND)


def check_guarantee(manifest: dict[str, Any], arrays: dict[str, Any]) -> float:
    """The delta that the integers prove; raises if it, or a number beside it, is not as claimed.

    For a recipe, and where the matrix is withheld, the sensitivity is the one that is claimed.
    """
    claim, model = manifest["certificate"], manifest["model"]
    check_numbers(claim)
    width = checked_width(model, arrays)
    q, sigma, steps = len(arrays["z"]), claim["sigma"], claim["sensitivity_steps"]
    sensitivity, largest_sum = _sensitivity(manifest, arrays)
    reasons.refuse(steps != sensitivity, Reason.SENSITIVITY)
    reasons.refuse(sigma < 2**30, Reason.NOISE_FLOOR)
    far = max(map(abs, arrays["z"].tolist())) >= 2**62
    reasons.refuse(largest_sum * 2 ** claim["y_bits"] + 64 * sigma >= 2**62 or far, Reason.OVERFLOW)
    mu = _ratio_rounded_up(steps, sigma)
    reasons.refuse(claim["mu"] != mu, Reason.MU)
    proven = discrete_delta(mu, claim["epsilon"], claim["delta"], q)
    wrong = f"delta is {proven:.3g} at epsilon {claim['epsilon']:g}, not {claim['delta']:.3g}"
    reasons.refuse(not proven <= claim["delta"], Reason.DELTA, wrong)
    _check_calibration(claim, mu, q, enough=proven <= claim["delta"])
    step = math.ldexp(width, -(claim["y_bits"] + claim["matrix_bits"]))
    _check_figures(claim, arrays, mu, step)
    return proven


def checked_width(model: dict[str, Any], arrays: dict[str, Any]) -> float:
    """Of the bounds; of the widest, where rows have their own."""
    low, high = model["bounds"] if model["bounds"] != PER_ROW else (arrays["lower"], arrays["upper"])
    with np.errstate(over="ignore"):  # what is out of range is refused
        width = float(np.max(np.subtract(high, low)))
    reasons.refuse(not 1e-100 < width < 1e100, Reason.RANGE, "bounds")
    return width


def check_numbers(numbers: dict[str, Any], where: str = "") -> None:
    """Ranges, and no more digits than are written."""
    for name, (least, most) in RANGES.items():
        fine = name not in numbers or least <= numbers[name] <= most
        reasons.refuse(not fine, Reason.RANGE, where + name)
    for name, how in DIGITS.items():
        fine = name not in numbers or short(numbers[name], *how) == numbers[name]
        reasons.refuse(not fine, Reason.DIGITS, where + name)


def _sensitivity(manifest: dict[str, Any], arrays: dict[str, Any]) -> tuple[int, int]:
    """Sensitivity in lattice steps, and the largest sum of a measurement's absolute entries."""
    claim, q = manifest["certificate"], len(arrays["z"])
    sensitivity, largest_sum = claim["sensitivity_steps"], manifest["measurement"].get("extent", 0)
    if "matrix" in arrays:
        labels, columns = arrays.get("labels"), arrays["matrix"].shape[1]
        counts = np.ones(columns) if labels is None else np.bincount(labels, minlength=columns)
        longest, largest_sum = longest_column(arrays["matrix"], counts.astype(np.int64))
        if "people" in arrays:
            named = np.arange(columns) if labels is None else labels
            longest = people.longest_squared(arrays["matrix"], named, arrays["people"])
        sensitivity = root_rounded_up(longest * 4 ** claim["y_bits"])
    if claim["bound"] == "exact":
        return sensitivity, largest_sum
    # Noise for the longest columns that were promised: of norm 1, and what rounding can add.
    most = (2 ** claim["matrix_bits"] + math.isqrt(q) + 1) * 2 ** claim["y_bits"]
    if "matrix" in arrays:
        reasons.refuse(sensitivity > most, Reason.ABOVE_BOUND)
    return most, largest_sum


def longest_column(matrix: IntArray, counts: IntArray) -> tuple[int, int]:
    """Largest squared column norm; largest sum of a row's absolute entries, over all rows of y. Exact."""
    longest, sums = 0, np.zeros(len(matrix), dtype=object)
    width = max(1, _BLOCK // len(matrix))
    for start in range(0, matrix.shape[1], width):
        block, n = matrix[:, start : start + width], counts[start : start + width]
        longest = max(longest, *squared_norms(block))
        sums = sums + absolute_sums(block, n)
    return longest, max(sums.tolist())


def squared_norms(columns: IntArray) -> list[int]:
    """Squared norm of each column, exactly, whatever its entries are.

    An entry below 2^31 is h 2^16 + l with |h| <= 2^15 and 0 <= l < 2^16, so that sums of h^2, h l and l^2
    over fewer than 2^28 entries stay below 2^61.
    """
    if columns.min() <= -(2**31) or columns.max() >= 2**31 or len(columns) >= 2**28:
        return [sum(entry**2 for entry in column) for column in columns.T.tolist()]
    h, low = columns >> 16, columns & 0xFFFF
    sums = ((a * b).sum(axis=0).tolist() for a, b in ((h, h), (h, low), (low, low)))
    return [(hh << 32) + (hl << 17) + ll for hh, hl, ll in zip(*sums, strict=True)]


def absolute_sums(columns: IntArray, counts: IntArray) -> NDArray[Any]:
    """(q,) sums of each row's absolute entries, each times its count, exactly: Python's integers."""
    largest = max(abs(int(columns.min())), abs(int(columns.max())))
    if largest * int(counts.sum()) < 2**62:
        return (np.abs(columns) @ counts).astype(object)
    sums: NDArray[Any] = abs(columns.astype(object)) @ counts.astype(object)
    return sums


def root_rounded_up(value: int) -> int:
    """The smallest integer whose square is at least this."""
    return math.isqrt(value - 1) + 1 if value > 0 else 0


def _ratio_rounded_up(numerator: int, denominator: int) -> float:
    """The smallest float that is at least this ratio."""
    exact = Fraction(numerator, denominator)
    value = float(exact)
    return value if Fraction(value) >= exact else math.nextafter(value, math.inf)


def discrete_delta(mu: float, epsilon: float, delta: float, q: int) -> float:
    """Theorem 1 of docs/proofs.md for a discrete Gaussian with std of at least 2^30 steps."""
    from scipy.special import erfcx

    x = epsilon + math.log(1e6 / delta)
    eta = q / (24 * 2**60)
    eta_ball = (math.sqrt(q + 2 * math.sqrt(q * x) + 2 * x) + math.sqrt(q) / 2**31) ** 2 / (24 * 2**60)
    left = math.nextafter(epsilon - eta - eta_ball, 0.0)
    if left <= 0:
        return 1.0
    if mu <= 0:
        return math.exp(eta + left - x)
    # Phi(a) - e^left Phi(b), with e^left phi(b) = phi(a): both terms are phi(a) times a Mills ratio.
    above, below = left / mu - mu / 2, left / mu + mu / 2
    if above < -30:
        return 1.0  # hardly any noise
    near, far = float(erfcx(above / math.sqrt(2))), float(erfcx(below / math.sqrt(2)))
    # Each is good to some units in the last place; so is the exponential, whose argument is rounded too.
    rounding = 1e-15 * (near + far) + 1e-15 * (1 + above**2) * (near - far)
    gaussian = math.exp(-(above**2) / 2) * (near - far + rounding) / 2
    return math.exp(eta) * (gaussian + math.exp(left - x)) * (1 + 1e-14)


def _check_calibration(claim: dict[str, Any], mu: float, q: int, enough: bool) -> None:
    """Not for privacy: noise of another size, if it is enough, was not made for this epsilon and delta."""
    method, sigma, steps = claim["calibration"], claim["sigma"], claim["sensitivity_steps"]
    unproven = method == "classic" and claim["epsilon"] > 1
    reasons.refuse(method not in CALIBRATIONS or unproven, Reason.CALIBRATION)
    try:
        wanted = calibrate(claim["epsilon"], claim["delta"], method, q)
    except ValueError:  # too small a promise for this library
        wanted = math.inf
    too_much = sigma > steps / wanted * (1 + 1e-12) + 1  # a whole number of steps
    reasons.refuse(too_much or (enough and mu > wanted * (1 + 1e-12)), Reason.CALIBRATION)


def _check_figures(claim: dict[str, Any], arrays: dict[str, Any], mu: float, step: float) -> None:
    """The certificate's other numbers: to the bit where every machine must find the same."""
    sigma, q = claim["sigma"], len(arrays["z"])
    reasons.refuse(claim["lower_bound"] > claim["objective"], Reason.BELOW_BOUND)
    to_the_bit = {
        "sensitivity": claim["sensitivity_steps"] * step,
        "noise_scale": sigma * step,
        "n_measurements": q,
        "gap": claim["objective"] / claim["lower_bound"] - 1,
    }
    for name, value in to_the_bit.items():
        reasons.refuse(claim[name] != value, Reason.FIGURE, name)
    check_slack(claim, mu)
    if "weights" not in arrays:
        return
    weights, variances = arrays["weights"], (sigma * step) ** 2 * (arrays["reconstruction"] ** 2).sum(axis=1)
    ignored = claim["design"] == "volume" and bool((weights != 1).any())
    reasons.refuse(not relative(weights) or ignored, Reason.WEIGHTS)
    if claim["design"] == "posterior":
        return  # needs the model
    if claim["design"] == "volume":
        spread = np.linalg.svd(arrays["reconstruction"], compute_uv=False) * sigma * step
        objective = float(np.exp(2 * np.mean(np.log(np.maximum(spread, 1e-300)))))
    else:
        weighted = variances * weights
        objective = float(weighted.mean() if claim["design"] == "mse" else weighted.max())
    reasons.refuse(not math.isclose(claim["objective"], objective, rel_tol=1e-5), Reason.FIGURE, "objective")


def check_slack(claim: dict[str, Any], mu: float) -> None:
    """What is set aside of delta, to the digits that are written."""
    slack = delta_slack(mu, claim["epsilon"], claim["delta"], claim["n_measurements"])
    reasons.refuse(not math.isclose(claim["delta_slack"], slack, rel_tol=0.011), Reason.FIGURE, "delta_slack")


def relative(weights: NDArray[Any]) -> bool:
    """Whether weights are 1 on average."""
    return math.isclose(float(weights.mean()), 1.0, rel_tol=1e-12)
