"""Walk through a release's stages again: from its public numbers to each stage's windows.

A window that was not chosen by the stages before it alone could tell of y by where it is, and no noise would
hide that. So every window is worked out again, with all else that a stage takes from the ones before it, and
what was learned from them all. Matrices are not: a design's choice, as in every release file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from cloakgp.measurements.lattice import Measurement
from cloakgp.model.hyperprior import Candidate, Known
from cloakgp.plans.row_stages import RowRule, RowWalk
from cloakgp.plans.staged import StagedRelease
from cloakgp.plans.stages import Rule, StagePlan, Walk
from cloakgp.posterior import staging
from cloakgp.posterior.conditioning import Line
from cloakgp.rows.blas import one_blas_thread
from cloakgp.verification import reasons
from cloakgp.verification.reasons import Reason, VerificationError

TOLERANCE = 1e-6
"""Of the bounds' width, for windows; of 1 for weights; of the largest numbers for what is added up.

Machines that round differently were seen to differ by less than a thousandth of this.
"""
WINDOWS = "the windows"
GIVEN = "what was given"
_FAR = 1e7  # bounds so many widths from 0 leave too few digits


def check(release: StagedRelease) -> tuple[list[str], list[str]]:
    """What was checked, and what could not be."""
    rule = release.plan.rule
    if rule.version != staging.RULE:
        said = f"they follow rule {rule.version}, and this version of cloakgp knows rule {staging.RULE}"
        return [], [f"{WINDOWS}: {said}"]
    if max(map(abs, rule.bounds)) > _FAR * _width(rule):
        return [], [f"{WINDOWS}: the bounds are too far from 0 for floating point to work them out again"]
    try:
        with one_blas_thread(), np.errstate(all="ignore"):
            _walk(release)
    except VerificationError:
        raise
    except (ValueError, TypeError, ArithmeticError, LinAlgError, AssertionError) as error:
        return [], [f"{WINDOWS}: they could not be worked out again here ({type(error).__name__})"]
    done = ["what was learned, from all answers"]
    if isinstance(rule, RowRule):
        done.insert(0, "how many rows each cell is taken to have, from the first answer")
    if any(stage.plan.line is not None or stage.plan.spread is not None for stage in release.stages):
        told = f"to {TOLERANCE:g} of the bounds' width"
        done.insert(0, f"windows and distances of each stage, from the answers before it, {told}")
    left = []
    if any(stage.plan.line is not None or stage.plan.spread is not None for stage in rule.all_stages(())):
        left.append(f"{WINDOWS} of earlier releases: only their own files tell; verify these")
    return done, left


def _walk(release: StagedRelease) -> None:
    rule = release.plan.rule
    walk = rule.walk()
    for number, stage in enumerate(release.stages):
        where, plan = f"stage {number + 1}", stage.plan
        reasons.refuse((plan.line is not None) != rule.has_windows(number), Reason.WINDOWS, where)
        reasons.refuse((plan.spread is not None) != rule.measures_noise(number), Reason.DISTANCES, where)
        if isinstance(walk, RowWalk) and number > 0:
            _check_counts(walk, plan, where)
        if plan.line is not None:
            _check_windows(walk, plan.measurement, plan.line, where)
        if plan.spread is not None:
            centre, limit = walk.distances()
            edge = TOLERANCE * _width(rule)
            near = _near(plan.spread.centre, centre, edge) and _near(plan.spread.limit, limit, edge)
            reasons.refuse(not near, Reason.DISTANCES, where)
        walk.take(stage)
    if not isinstance(rule.prior, Known):
        _check_learned(walk, release.settings, release.weights)


def _check_counts(walk: RowWalk, plan: StagePlan, where: str) -> None:
    """How many rows each cell is taken to have: what follows from the first stage's answer."""
    expected = walk.rule.counts
    assert expected is not None
    near = _near(plan.measurement.counts, expected, TOLERANCE * float(np.max(expected)))
    reasons.refuse(not near, Reason.COUNTS, where)


def _check_windows(walk: Walk, m: Measurement, line: Line, where: str) -> None:
    edge = TOLERANCE * _width(walk.rule)
    lower, upper = walk.windows()
    reasons.refuse(not (_near(m.lower, lower, edge) and _near(m.upper, upper, edge)), Reason.WINDOWS, where)
    expected = walk.line(walk.stage(m.lower, m.upper, 1.0), m)  # by the file's windows, which are near
    largest = (np.abs(m.real_matrix()) @ m.counts).max() * max(_width(walk.rule), *map(abs, walk.rule.bounds))
    variance = np.abs(expected.extra).max() + m.noise_scale**2
    near = (
        _near(line.slope, expected.slope, TOLERANCE)
        and _near(line.shift, expected.shift, TOLERANCE * largest)
        and _near(line.extra, expected.extra, TOLERANCE * variance)
    )
    reasons.refuse(not near, Reason.LINE, where)


def _check_learned(walk: Walk, settings: tuple[Candidate, ...], weights: Any) -> None:
    """The same models with the same weights, in any order: nearly equal ones may change places.

    Of two such at the list's end either may be left out.
    """
    kept = walk.state.weights.tolist()
    others = walk.mixture.settings[len(kept) :]
    left = [*zip(walk.state.settings, kept, strict=True), *((one, min(kept)) for one in others)]
    near = len(settings) == len(kept) and abs(float(np.sum(weights)) - 1) <= TOLERANCE
    for setting, weight in zip(settings, weights.tolist(), strict=True):
        found = next((pair for pair in left if _same(setting, pair[0])), None)
        near = near and found is not None and abs(weight - found[1]) <= TOLERANCE
        if found is not None:
            left.remove(found)
    reasons.refuse(not near, Reason.LEARNED)


def _same(one: Candidate, other: Candidate) -> bool:
    (family, *parts), (other_family, *others) = one.form, other.form
    numbers = [*parts[0], *parts[1], one.signal, one.level, one.noise]
    expected = [*others[0], *others[1], other.signal, other.level, other.noise]
    return family == other_family and all(
        math.isclose(a, b, rel_tol=TOLERANCE) for a, b in zip(numbers, expected, strict=True)
    )


def _width(rule: Rule) -> float:
    return rule.bounds[1] - rule.bounds[0]


def _near(found: Any, expected: Any, tolerance: float) -> bool:
    return bool(np.all(np.abs(np.asarray(found) - expected) <= tolerance))
