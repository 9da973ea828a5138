"""The promise of a release in stages, from the file's integers alone: each stage, and all together.

As :mod:`cloakgp.verification.guarantee` for the other kinds: exact, and with nothing that plans or measures.
A stage's noise is for what one row can move its sums, and the squares of the stages' mu add up if each stage
was chosen by what the ones before it made public. Whether it was is for :mod:`cloakgp.verification.replay`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cloakgp.calibration import calibrate
from cloakgp.files.staged_schema import n_curves
from cloakgp.measurements.staged_certificate import DESIGN
from cloakgp.measurements.unit import PERSON_ROWS, ROW, Unit
from cloakgp.plans.rows_planner import most_row_numbers
from cloakgp.plans.staged_planner import most_numbers
from cloakgp.posterior.staging import SCALE_SHARE
from cloakgp.verification import guarantee, people, reasons
from cloakgp.verification.guarantee import IntArray
from cloakgp.verification.reasons import Reason
from cloakgp.verification.whole_rows import COUNT_BITS, MOST_COUNTED, Lattice
from cloakgp.verification.whole_rows import lattices as lattices_of_rows

_ROUNDING = Fraction(1, 10**12)  # relative, of what floating point made


def check_words(manifest: dict[str, Any]) -> None:
    """The terms of the promise, and the words for how it was reached: each from a closed list."""
    claim = manifest["certificate"]
    guarantee.check_terms(claim, _units(manifest))
    reasons.refuse(claim["design"] != DESIGN, Reason.DESIGN)
    reasons.refuse(claim["calibration"] != "analytic", Reason.CALIBRATION)
    reasons.refuse(claim["unbiased"], Reason.UNBIASED)


def _units(manifest: dict[str, Any]) -> tuple[Unit, ...]:
    """What its contents can protect."""
    if "grid" not in manifest:
        return guarantee.protected(manifest)
    return (ROW if manifest["grid"]["max_rows"] is None else PERSON_ROWS,)


class Rows(NamedTuple):
    """Which rows of y each column of the matrices is for."""

    counts: IntArray  # (U,)
    labels: IntArray | None = None
    """(N,) the column of each row; None if it does not matter, or is not known."""
    people: IntArray | None = None
    """(N,) whose row each is, if the promise is to people and they are known."""
    claimed: bool = False
    """Whether the promise is to people who are not known: then sensitivities are those that are claimed."""
    classes: bool = False
    """Whether outcomes are one of several classes: one that changes moves the sums of two (lemma 22)."""

    def sensitivity(self, matrix: IntArray, longest: int, words: dict[str, Any]) -> int:
        """In steps; `longest` is the largest squared norm of a column."""
        if self.claimed:
            return int(words["sensitivity_steps"])
        if self.people is not None and self.labels is not None:
            longest = people.longest_squared(matrix, self.labels, self.people, signs=not self.classes)
        return guarantee.root_rounded_up((2 if self.classes else 1) * longest * 4 ** words["y_bits"])

    def of_distances(self, words: dict[str, Any]) -> int:
        """Of each row an integer from 0 to 2^y_bits, times 2^matrix_bits."""
        if self.claimed:
            return int(words["sensitivity_steps"])
        most = 1 if self.people is None else int(np.bincount(self.people).max())
        return int(most << words["y_bits"] + words["matrix_bits"])


def check_guarantee(manifest: dict[str, Any], arrays: dict[str, Any], rows: Rows) -> float:
    """The delta that all stages' integers prove; raises if it, or a number beside it, is not as claimed."""
    claim, shares = manifest["certificate"], manifest["certificate"]["shares"]
    guarantee.check_numbers(claim)
    guarantee.checked_width(manifest["model"], arrays)
    reasons.refuse(not guarantee.relative(arrays["weights"]), Reason.WEIGHTS)
    _check_calibration(claim)
    before = check_given(manifest, arrays, rows)
    own = range(before, len(manifest["stages"]))
    points, whole = len(arrays["X_star"]), "grid" in manifest
    curves = n_curves(manifest["model"])
    rows = rows._replace(classes=curves > 1)
    most = (most_row_numbers if whole else most_numbers)(points, len(rows.counts), len(shares), curves)
    wrong = claim["n_measurements"] != most or sum(len(arrays[f"z_{number}"]) for number in own) > most
    reasons.refuse(wrong, Reason.FIGURE, "n_measurements")
    if whole:
        grid = manifest["grid"]
        total = grid["size"] * (grid["max_rows"] or 1)
        reasons.refuse(claim["n_rows"] != total, Reason.FIGURE, "n_rows")
    spent = [_spent(manifest, arrays, number, rows, f"stage {number - before + 1}") for number in own]
    proven = _proven(spent, claim, claim["n_measurements"])
    reasons.refuse(sum(map(Fraction, shares)) > 1 + _ROUNDING, Reason.SHARES)
    for number, parts in zip(own, spent, strict=True):
        share = Fraction(shares[number - before]) * Fraction(claim["mu"]) ** 2
        _check_share(manifest["stages"][number], share, parts, f"stage {number - before + 1}")
    return proven


def check_given(manifest: dict[str, Any], arrays: dict[str, Any], rows: Rows) -> int:
    """The stages of earlier releases, each against the promise of its own; returns how many there are."""
    before = 0
    for one in manifest["given"]:
        guarantee.check_numbers(one, "given: ")
        guarantee.checked_width(one, arrays)
        own = range(before, before + one["stages"])
        before = own.stop
        spent = [_spent(manifest, arrays, number, rows, "given") for number in own]
        released = sum(len(arrays[f"z_{number}"]) for number in own)
        reasons.refuse(released > one["most"], Reason.FIGURE, "most")
        _proven(spent, one, one["most"])
    return before


def _proven(spent: list[list[Fraction]], claim: dict[str, Any], most: int) -> float:
    """The delta of stages together that spent so much; raises if it is above the one that is claimed."""
    total = sum((part for parts in spent for part in parts), Fraction(0))
    reasons.refuse(total > Fraction(claim["mu"]) ** 2 * (1 + _ROUNDING), Reason.MU)
    proven = guarantee.discrete_delta(_root_rounded_up(total), claim["epsilon"], claim["delta"], most)
    wrong = f"delta is {proven:.3g} at epsilon {claim['epsilon']:g}, not {claim['delta']:.3g}"
    reasons.refuse(not proven <= claim["delta"], Reason.DELTA, wrong)
    return proven


def _check_calibration(claim: dict[str, Any]) -> None:
    try:
        wanted = calibrate(claim["epsilon"], claim["delta"], "analytic", claim["n_measurements"])
    except ValueError:  # too small a promise for this library
        wanted = math.inf
    reasons.refuse(not math.isclose(claim["mu"], wanted, rel_tol=1e-12), Reason.CALIBRATION)
    guarantee.check_slack(claim, claim["mu"])


def _spent(
    manifest: dict[str, Any], arrays: dict[str, Any], number: int, rows: Rows, where: str
) -> list[Fraction]:
    """A stage's mu squared: of its measurements, and of the noise level if it measures that."""
    words, matrix, z = manifest["stages"][number], arrays[f"matrix_{number}"], arrays[f"z_{number}"]
    if "grid" in manifest:
        return _noisy(_row_lattices(manifest, arrays, number, where), z, where)
    guarantee.check_numbers(words, f"{where}: ")
    squared, largest_sum = guarantee.longest_column(matrix, rows.counts)
    sensitivity = rows.sensitivity(matrix, squared, words)
    lattices = [(words, sensitivity, largest_sum * 2 ** words["y_bits"])]
    spread = words["spread"]
    if spread is not None:
        guarantee.check_numbers({**spread, "matrix_bits": 1}, f"{where}: ")
        bits = spread["y_bits"] + spread["matrix_bits"]
        lattices.append((spread, rows.of_distances(spread), int(rows.counts.sum()) * 2**bits))
    return _noisy(lattices, z, where)


def _row_lattices(manifest: dict[str, Any], arrays: dict[str, Any], number: int, where: str) -> list[Lattice]:
    words, matrix = manifest["stages"][number], arrays[f"matrix_{number}"]
    near = int(matrix.min()) > -MOST_COUNTED and int(matrix.max()) < MOST_COUNTED
    reasons.refuse(n_curves(manifest["model"]) > 1 and not near, Reason.RANGE, where)
    if number == 0:
        counts = near and words["y_bits"] == 0 and 1 <= words["matrix_bits"] <= COUNT_BITS
        reasons.refuse(not counts, Reason.RANGE, where)
    else:
        guarantee.check_numbers(words, f"{where}: ")
    if words["spread"] is not None:
        guarantee.check_numbers({**words["spread"], "matrix_bits": 1}, f"{where}: ")
    return lattices_of_rows(manifest, arrays, number)


def _noisy(lattices: list[Lattice], z: IntArray, where: str) -> list[Fraction]:
    """mu squared of each, once its noise is found to be for what it says."""
    far = max(map(abs, z.tolist())) >= 2**62
    for lattice, steps, reach in lattices:
        reasons.refuse(lattice["sensitivity_steps"] != steps, Reason.SENSITIVITY, where)
        reasons.refuse(lattice["sigma"] < 2**30, Reason.NOISE_FLOOR, where)
        reasons.refuse(reach + 64 * lattice["sigma"] >= 2**62 or far, Reason.OVERFLOW, where)
    return [Fraction(steps, lattice["sigma"]) ** 2 for lattice, steps, _ in lattices]


def _check_share(words: dict[str, Any], share: Fraction, spent: list[Fraction], where: str) -> None:
    """Neither less noise than a stage's share of mu squared asks for, nor more: it was made for another."""
    lattices = [words] if words["spread"] is None else [words, words["spread"]]
    level = share * Fraction(SCALE_SHARE) if len(lattices) > 1 else Fraction(0)
    for allowed, mu_squared, lattice in zip((share - level, level), spent, lattices, strict=False):
        # A whole number of steps, which is also a floating-point number.
        least = mu_squared * (1 + Fraction(1, lattice["sigma"])) ** 2
        fine = least * (1 + _ROUNDING) >= allowed and mu_squared <= allowed * (1 + _ROUNDING)
        reasons.refuse(not fine, Reason.SHARE, where)


def _root_rounded_up(value: Fraction) -> float:
    """A float whose square is at least this, and hardly more."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def as_counts(counts: Any) -> IntArray:
    """How many rows each column is for, as integers."""
    return np.asarray(counts).astype(np.int64)
