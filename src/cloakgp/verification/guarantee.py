"""The promise, from the file's integers alone: each stage, and all together.

Every sum is exact, by arithmetic of its own (:mod:`cloakgp.verification.exact`), and the formula for delta is
its own, too. Nothing here plans, measures or reads an input. A stage's
noise is for what one unit of protection can move its sums, and the squares of the stages' mu add up if each
stage was chosen by what the ones before it made public. Whether it was is for
:mod:`cloakgp.verification.replay`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cloakgp.core.calibration import CALIBRATIONS, DELTA_FLOOR, EPSILON_LIMIT, calibrate, delta_slack
from cloakgp.core.checks import IntArray
from cloakgp.designs import DENOISED, DESIGNS, MEAN, VOLUME
from cloakgp.files.schema import FUNCTION, GRID, PEOPLE, PER_ROW, n_curves
from cloakgp.measure.certificate import DIGITS, SPEND, short
from cloakgp.measure.sensitivity import MOST_COUNTED
from cloakgp.measure.statistics import COUNT_BITS
from cloakgp.measure.unit import OUTCOME, PERSON, PERSON_ROWS, ROW
from cloakgp.posterior.staging import SCALE_SHARE
from cloakgp.release.planner import HIDES_INPUTS
from cloakgp.release.staged_planner import most_numbers, most_row_numbers
from cloakgp.verification import reasons
from cloakgp.verification.exact import (
    furthest_squared,
    largest_entry,
    largest_sum,
    longest_squared,
    longest_together,
    root_rounded_up,
)
from cloakgp.verification.reasons import Reason

Words = dict[str, Any]
"""A manifest, or what is in it."""
Arrays = dict[str, Any]
_ROUNDING = Fraction(1, 10**12)  # relative, of what floating point made
_RANGES = {  # both ends included
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


class Rows(NamedTuple):
    """Which rows of y each column of the matrices is for, and how many go together."""

    counts: IntArray  # (U,)
    labels: IntArray | None = None
    """(N,) the column of each row; None if it does not matter, or is not known."""
    people: IntArray | None = None
    """(N,) whose row each is, if the promise is to people and they are known."""
    each: int = 1
    """Rows of one unit of protection, at most."""
    total: int = 0
    """Rows of all."""

    @classmethod
    def of(cls, manifest: Words, counts: IntArray, labels: Any, people: Any) -> Rows:
        if GRID in manifest:
            each = manifest[GRID]["max_rows"] or 1
            return cls(counts, None, None, each, each * manifest[GRID]["size"])
        each = 1 if people is None else int(np.bincount(people).max())
        return cls(counts, labels, people, each, int(counts.sum()))


class Lattice(NamedTuple):
    """A lattice's words, how far one unit can move sums, and how large these can be; both in steps."""

    words: Words
    steps: int
    reach: int


def check_words(manifest: Words, arrays: Arrays) -> None:
    """The terms of the promise: the unit is what the contents can protect, and the bound is one for it."""
    claim, own = manifest["certificate"], PERSON if PEOPLE in manifest else OUTCOME
    if GRID in manifest:
        own = ROW if manifest[GRID]["max_rows"] is None else PERSON_ROWS
    reasons.refuse(claim["insecure"], Reason.INSECURE)
    reasons.refuse(claim["unit"] != own.name, Reason.UNIT)
    reasons.refuse(claim["neighbours"] != own.neighbours, Reason.NEIGHBOURS)
    reasons.refuse(claim["spend"] != SPEND, Reason.SPEND)
    bounds: tuple[str, ...] = ("exact",)
    if claim["design"] == FUNCTION and "X" not in arrays:
        bounds = () if PEOPLE in manifest else HIDES_INPUTS  # which are on what one row can do
    elif claim["design"] == FUNCTION and PEOPLE not in manifest:
        bounds = ("exact", "infinity", "paper")
    reasons.refuse(any(part["bound"] not in bounds for part in claim["parts"]), Reason.BOUND)


def check_guarantee(manifest: Words, arrays: Arrays, rows: Rows) -> float:
    """The delta that all stages' integers prove; raises if it, or a number beside it, is not as claimed."""
    claim, stages, at = manifest["certificate"], manifest["stages"], 0
    check_numbers(claim)
    width = _checked_width(manifest["model"], arrays)
    for one in manifest["given"]:  # each against the promise of its own
        check_numbers(one, "given: ")
        _checked_width(one, arrays)
        spent = [_spent(manifest, arrays, at + number, rows, "given") for number in range(one["stages"])]
        at += len(spent)
        released = sum(len(arrays[f"z_{number}"]) for number in range(at - len(spent), at))
        reasons.refuse(released > one["most"], Reason.FIGURE, "most")
        _proven(spent, one, one["most"])
    _check_calibration(claim)
    most, own = _most(manifest, arrays, rows), range(at, len(stages))
    released = sum(len(arrays[f"z_{number}"]) for number in own)
    reasons.refuse(claim["n_measurements"] != most or released > most, Reason.FIGURE, "n_measurements")
    reasons.refuse(GRID in manifest and claim["n_rows"] != rows.total, Reason.FIGURE, "n_rows")
    spent = [_spent(manifest, arrays, number, rows, f"stage {number - at + 1}") for number in own]
    proven = _proven(spent, claim, most)
    reasons.refuse(sum(map(Fraction, claim["shares"])) > 1 + _ROUNDING, Reason.SHARES)
    for number, parts, share in zip(own, spent, map(Fraction, claim["shares"]), strict=False):
        _check_share(stages[number], share, Fraction(claim["mu"]) ** 2, parts, f"stage {number - at + 1}")
    relative = math.isclose(float(arrays["weights"].mean()), 1.0, rel_tol=1e-12)
    reasons.refuse(not relative, Reason.WEIGHTS)
    for part in claim["parts"]:
        _check_figures(claim, part, stages[at], arrays, width)
    return proven


def _most(manifest: Words, arrays: Arrays, rows: Rows) -> int:
    """At most how many numbers are released: as many as there are, of one stage that stands alone."""
    points, stages = len(arrays["X_star"]), len(manifest["certificate"]["shares"])
    if manifest["stages"][-1]["readout"] is not None:
        return len(arrays["z_0"])
    count = most_row_numbers if GRID in manifest else most_numbers
    return count(points, len(rows.counts), stages, n_curves(manifest["model"]))


def _checked_width(model: Words, arrays: Arrays) -> float:
    """Of the bounds; of the widest, where rows have their own."""
    low, high = model["bounds"] if model["bounds"] != PER_ROW else (arrays["lower"], arrays["upper"])
    with np.errstate(over="ignore"):  # what is out of range is refused
        width = float(np.max(np.subtract(high, low)))
    reasons.refuse(not 1e-100 < width < 1e100, Reason.RANGE, "bounds")
    return width


def check_numbers(numbers: Words, where: str = "") -> None:
    """Ranges, and no more digits than are written."""
    for name, (least, most) in _RANGES.items():
        fine = name not in numbers or least <= numbers[name] <= most
        reasons.refuse(not fine, Reason.RANGE, where + name)
    for name, how in DIGITS.items():
        fine = name not in numbers or short(numbers[name], *how) == numbers[name]
        reasons.refuse(not fine, Reason.DIGITS, where + name)


def _proven(spent: list[list[Fraction]], claim: Words, most: int) -> float:
    """The delta of stages together that spent so much; raises if it is above the one that is claimed."""
    total = sum((part for parts in spent for part in parts), Fraction(0))
    proven = discrete_delta(_root_rounded_up(total), claim["epsilon"], claim["delta"], most)
    wrong = f"delta is {proven:.3g} at epsilon {claim['epsilon']:g}, not {claim['delta']:.3g}"
    reasons.refuse(not proven <= claim["delta"], Reason.DELTA, wrong)
    reasons.refuse(total > Fraction(claim["mu"]) ** 2 * (1 + _ROUNDING), Reason.MU)
    return proven


def _check_calibration(claim: Words) -> None:
    """Not for privacy: another mu was not made for this epsilon and delta."""
    method = claim["calibration"]
    unproven = method == "classic" and claim["epsilon"] > 1
    reasons.refuse(method not in CALIBRATIONS or unproven, Reason.CALIBRATION)
    try:
        wanted = calibrate(claim["epsilon"], claim["delta"], method, claim["n_measurements"])
    except ValueError:  # too small a promise for this library
        wanted = math.inf
    reasons.refuse(not math.isclose(claim["mu"], wanted, rel_tol=1e-12), Reason.CALIBRATION)
    slack = delta_slack(claim["mu"], claim["epsilon"], claim["delta"], claim["n_measurements"])
    reasons.refuse(not math.isclose(claim["delta_slack"], slack, rel_tol=0.011), Reason.FIGURE, "delta_slack")


def _spent(manifest: Words, arrays: Arrays, number: int, rows: Rows, where: str) -> list[Fraction]:
    """A stage's mu squared: of its measurements; if it measures them, of what windows cut off and the noise
    level."""
    words, z = manifest["stages"][number], arrays[f"z_{number}"]
    spread, outside = words["spread"], words["outside"]
    lattices = [(_of_rows if GRID in manifest else _of_outcomes)(manifest, arrays, number, rows, where)]
    if outside is not None:
        check_numbers(outside, f"{where}: ")
        lattices.append(_beyond(outside, arrays[f"outside_{number}"], rows, _is_claimed(manifest, rows)))
    if spread is not None:
        check_numbers({**spread, "matrix_bits": 1}, f"{where}: ")
        step = 2 ** (spread["y_bits"] + spread["matrix_bits"])
        steps = spread["sensitivity_steps"] if _is_claimed(manifest, rows) else rows.each * step
        lattices.append(Lattice(spread, steps, rows.total * step))
    if words["bins"]:  # no row counts for more than another
        reasons.refuse(len(np.unique(arrays[f"matrix_{number}"])) > 1, Reason.BINS, where)
    far = max(map(abs, z.tolist())) >= 2**62
    for lattice in lattices:
        reasons.refuse(lattice.words["sensitivity_steps"] != lattice.steps, Reason.SENSITIVITY, where)
        reasons.refuse(lattice.words["sigma"] < 2**30, Reason.NOISE_FLOOR, where)
        reasons.refuse(lattice.reach + 64 * lattice.words["sigma"] >= 2**62 or far, Reason.OVERFLOW, where)
    return [Fraction(lattice.steps, lattice.words["sigma"]) ** 2 for lattice in lattices]


def _beyond(words: Words, matrix: IntArray, rows: Rows, claimed: bool) -> Lattice:
    """Of what a stage's windows cut off: one integer for each row, in a range of 2^y_bits. Lemma 25."""
    longest = longest_squared(matrix)
    if rows.people is not None and rows.labels is not None:
        longest = longest_together(matrix, rows.labels, rows.people)
    found = root_rounded_up(longest * 4 ** words["y_bits"])
    steps = words["sensitivity_steps"] if claimed else found
    return Lattice(words, steps, largest_sum(matrix, rows.counts) * 2 ** words["y_bits"])


def _is_claimed(manifest: Words, rows: Rows) -> bool:
    """Whether the sensitivity is the one that is claimed, since people or their columns are not known."""
    return PEOPLE in manifest and (rows.people is None or rows.labels is None)


def _of_outcomes(manifest: Words, arrays: Arrays, number: int, rows: Rows, where: str) -> Lattice:
    """Of a stage's measurements: lemmas 19 and 22."""
    words, matrix = manifest["stages"][number], arrays.get(f"matrix_{number}")
    several = n_curves(manifest["model"]) > 1 or words["bins"]
    # Of integers, squared, in units of 4^y_bits: from one class, or bin, to another.
    change = 2 if several else 1
    check_numbers(words, f"{where}: ")
    steps, reach = words["sensitivity_steps"], 0
    if matrix is not None:
        longest, reach = longest_squared(matrix), largest_sum(matrix, rows.counts)
        if rows.people is not None and rows.labels is not None:
            longest = longest_together(matrix, rows.labels, rows.people, signs=not several)
        found = root_rounded_up(change * longest * 4 ** words["y_bits"])
        steps = steps if _is_claimed(manifest, rows) else found
    if words["readout"] is not None and manifest["certificate"]["parts"][0]["bound"] != "exact":
        # Noise for the longest columns that were promised: of norm 1, and what rounding can add.
        q = len(arrays[f"z_{number}"])
        most = (2 ** words["matrix_bits"] + math.isqrt(q) + 1) * 2 ** words["y_bits"]
        reasons.refuse(matrix is not None and steps > most, Reason.ABOVE_BOUND)
        steps = most
    return Lattice(words, steps, reach * 2 ** words["y_bits"])


def _of_rows(manifest: Words, arrays: Arrays, number: int, rows: Rows, where: str) -> Lattice:
    """The same where whole rows are private: theorems 20 and 21, lemma 23."""
    words, matrix = manifest["stages"][number], arrays[f"matrix_{number}"]
    curves, bits, entry = n_curves(manifest["model"]), words["y_bits"], largest_entry(matrix)
    reasons.refuse(curves > 1 and entry >= MOST_COUNTED, Reason.RANGE, where)
    if number == 0:
        counts = entry < MOST_COUNTED and bits == 0 and 1 <= words["matrix_bits"] <= COUNT_BITS
        reasons.refuse(not counts, Reason.RANGE, where)
        apart = furthest_squared(matrix, manifest[GRID]["max_rows"] is not None)
    elif words["bins"]:
        check_numbers(words, f"{where}: ")
        apart = 2 * longest_squared(matrix) << 2 * bits
    else:
        check_numbers(words, f"{where}: ")
        apart = longest_squared(matrix) << 2 * bits
        if curves > 1:  # of each class 2^b or 0, less the same for all
            less = 2**bits // curves
            own = (2**bits - less) ** 2 + (curves - 1) * less**2
            apart = max(2 * apart, own * furthest_squared(matrix, False))
    return Lattice(words, root_rounded_up(rows.each**2 * apart), entry * rows.total * 2**bits)


def _check_share(words: Words, part: Fraction, whole: Fraction, spent: list[Fraction], where: str) -> None:
    """Neither less noise than a stage's part of mu squared asks for, nor more: it was made for another.

    What it spends on the noise level and on what windows cut off is taken from that, so they add up to it.
    """
    share = part * whole
    spread, outside = words["spread"], words["outside"]
    each: list[tuple[Fraction, Words]] = []
    if spread is not None:
        each.append((share * Fraction(SCALE_SHARE), spread))
    if outside is not None:
        each.append((whole * Fraction(outside["share"]), outside))
    each.append((share - sum((part for part, _ in each), Fraction(0)), words))
    for (allowed, lattice), mu_squared in zip(each[::-1], spent, strict=True):
        # A whole number of steps, which is also a floating-point number.
        least = mu_squared * (1 + Fraction(1, lattice["sigma"])) ** 2
        fine = least * (1 + _ROUNDING) >= allowed and mu_squared <= allowed * (1 + _ROUNDING)
        reasons.refuse(not fine, Reason.SHARE, where)


def _check_figures(claim: Words, part: Words, words: Words, arrays: Arrays, width: float) -> None:
    """A single stage's other numbers: to the bit where every machine must find the same."""
    check_numbers(part)
    step = math.ldexp(width, -(words["y_bits"] + words["matrix_bits"]))
    scale = words["sigma"] * step
    reasons.refuse(part["lower_bound"] > part["objective"], Reason.BELOW_BOUND)
    to_the_bit = {
        **{name: words[name] for name in ("y_bits", "matrix_bits", "sigma", "sensitivity_steps")},
        "sensitivity": words["sensitivity_steps"] * step,
        "noise_scale": scale,
        "gap": part["objective"] / part["lower_bound"] - 1,
    }
    for name, value in to_the_bit.items():
        reasons.refuse(part[name] != value, Reason.FIGURE, name)
    aim = None if claim["design"] == FUNCTION else DESIGNS[claim["design"]].objective
    weights, rebuilt = arrays["weights"], arrays["reconstruction_0"]
    reasons.refuse(aim in (VOLUME, None) and bool((weights != 1).any()), Reason.WEIGHTS)
    if aim in (DENOISED, None):
        return  # needs the model
    if aim == VOLUME:
        spread = np.linalg.svd(rebuilt, compute_uv=False) * scale
        objective = float(np.exp(2 * np.mean(np.log(np.maximum(spread, 1e-300)))))
    else:
        weighted = scale**2 * (rebuilt**2).sum(axis=1) * weights
        objective = float(weighted.mean() if aim == MEAN else weighted.max())
    reasons.refuse(not math.isclose(part["objective"], objective, rel_tol=1e-5), Reason.FIGURE, "objective")


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


def _root_rounded_up(value: Fraction) -> float:
    """A float whose square is at least this, and hardly more."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root
