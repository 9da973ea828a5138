"""What the program does while it releases does not depend on what y holds.

Every bytecode instruction that the library runs during a release is recorded, not only every line: a
branch inside one line (``a if b else c``, ``and``) shows too. Two data sets of the same length must leave
the same trace and no warning, whatever they hold; otherwise timing, logs or warnings would tell of y.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from privacy_helpers import KINDS, fails, require, small_merged_plan, small_plan

import cloakgp
from cloakgp.kernels import EQ
from cloakgp.private import room
from cloakgp.rows import chunks

ROOT = str(Path(cloakgp.__file__).parent)


def trace(function, *args, **kwargs):
    """Every instruction of cloakgp's own code that a call runs, in order."""
    steps = []

    def local(frame, event, arg):
        if event in ("line", "opcode", "exception"):
            code = frame.f_code
            steps.append((code.co_filename, code.co_qualname, event, frame.f_lineno, frame.f_lasti))
        return local

    def enter(frame, event, arg):
        if not frame.f_code.co_filename.startswith(ROOT):
            return None
        frame.f_trace_opcodes = True
        return local

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        function(*args, **kwargs)
    finally:
        sys.settrace(before)
    return steps


def check_same_steps(plan, datasets, missing="error"):
    """A release runs the same instructions on every data set, and warns on none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):  # imports, and caches that are made again after these
            plan.release(datasets[0], missing=missing)
        traces = [trace(plan.release, y, missing=missing) for y in datasets]
    require(len(traces[0]) > 500, "nothing was traced")
    require(any(step[0].endswith("private/room.py") for step in traces[0]), "the private room was not traced")
    for y_trace in traces[1:]:
        assert y_trace == traces[0], "what is executed depends on y"
    assert [str(w.message) for w in caught] == [], "a warning tells of y"


def neighbours(low, high, *, missing=False):
    """One row takes every kind of value; the others stay."""
    width = high - low
    values = [low, high, low + width / 2, low + width / 3, low - width, high + width, -0.0, 0.0]
    values += [np.nextafter(high, np.inf), np.nextafter(low, -np.inf), 1e308, -1e308, 5e-324, -5e-324]
    values += [np.nan, np.inf, -np.inf] if missing else []
    datasets = []
    for value in values:
        y = np.linspace(low, high, 6)
        y[2] = value
        datasets.append(y)
    return datasets


BOUNDS = [(0.0, 1.0), (-3.0, 5.0), (1e6, 1e6 + 1e-3), (-1e-100, 1e-100), (-2e99, 3e99)]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_same_instructions_run_whatever_y_holds(bounds):
    """Clipped or not, at a bound, huge or denormal: same instructions, no warning."""
    check_same_steps(small_plan(bounds=bounds), neighbours(*bounds))


@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_same_instructions_run_whether_or_not_outcomes_are_missing(bounds):
    """With missing="midpoint", NaN and infinities run the same instructions as numbers do."""
    check_same_steps(small_plan(bounds=bounds), neighbours(*bounds, missing=True), missing="midpoint")


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_instructions_run_for_merged_and_sparse_plans(kind):
    """Sums over equal rows add no branch."""
    plan = small_merged_plan(**KINDS[kind])
    check_same_steps(plan, neighbours(0.0, 1.0))
    check_same_steps(plan, neighbours(0.0, 1.0, missing=True), missing="midpoint")


def test_the_same_instructions_run_when_every_outcome_is_clipped_or_missing():
    """Not only one row: nothing within the bounds, nothing outside, nothing there at all."""
    rows = [np.full(6, v) for v in (0.5, -7.0, 7.0, np.nan, np.inf, 1e308, 5e-324, 0.0, 1.0)]
    check_same_steps(small_plan(), rows, missing="midpoint")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble, np.int64, np.int8, np.uint64, bool])
def test_the_same_instructions_run_for_every_numeric_dtype(dtype):
    """Values at the ends of each dtype are as quiet as values in the middle."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        ends = [np.finfo(kind).max, np.finfo(kind).min, np.finfo(kind).smallest_subnormal, kind.type(0.3)]
    elif kind.kind == "b":
        ends = [False, True]
    else:
        ends = [np.iinfo(kind).max, np.iinfo(kind).min, 0, 1]
    datasets = [np.array([0, 1, end, 0, 1, 0], dtype=kind) for end in ends]
    check_same_steps(small_plan(), datasets, missing="midpoint")


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_instructions_run_whichever_chunk_holds_a_missing_outcome(monkeypatch, kind):
    """In the first chunk, the last, all or none: what is found in one does not shorten the look at others."""
    monkeypatch.setattr(chunks, "CHUNK", 2)
    first, last = np.full(6, 0.5), np.full(6, 0.5)
    first[0] = last[-1] = np.nan
    rows = [first, last, np.full(6, 0.5), np.full(6, np.nan)]
    check_same_steps(small_merged_plan(**KINDS[kind]), rows, missing="midpoint")


def check_quiet_under(errstate, plan, datasets):
    """A custodian's numpy settings do not make a release speak of y."""
    with np.errstate(**errstate):
        check_same_steps(plan, datasets, missing="midpoint")


@pytest.mark.parametrize("classes", [("a", "b", "c"), "yes/no"])
def test_the_same_instructions_run_whatever_a_label_is(classes):
    of = {"outcome": classes} if classes == "yes/no" else {"classes": classes}
    m = (
        cloakgp.GP(EQ(0.5), **of)
        .plan(np.arange(6.0), X_star=[2.0], epsilon=1.0, delta=0.01)
        .first.measurement
    )
    labels = [["a", "b", one, "c", "c", "b"] for one in ("a", "b", "c", "no class", None, np.nan, 3)]
    if classes == "yes/no":
        labels = [[0, 1, one, 1, 0, 1] for one in (0, 1, 2, -1e300, np.nan, np.inf, 0.5)]
    datasets = [np.array(y, dtype=float if classes == "yes/no" else object) for y in labels]
    given = "midpoint", None, classes
    for _ in range(2):  # as above
        room._times(m, datasets[0], *given)
    traces = [trace(room._times, m, y, *given) for y in datasets]
    require(len(traces[0]) > 50, "nothing was traced")
    assert all(steps == traces[0] for steps in traces), "what is executed depends on y"


@pytest.mark.parametrize("setting", ["warn", "raise"])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_strict_floating_point_settings_do_not_make_a_release_speak(bounds, setting):
    """numpy may be told to warn or raise on underflow; which y underflow must still not show."""
    check_quiet_under({"all": setting}, small_plan(bounds=bounds), neighbours(*bounds, missing=True))


@pytest.mark.parametrize("setting", ["warn", "raise"])
@pytest.mark.parametrize("width", [1e308, 9e99, 2e-100])
def test_very_wide_or_narrow_measurements_do_not_make_a_release_speak(width, setting):
    """Scaling within the private room is silent even for bounds that no model may have."""
    plan = small_plan()
    extreme = replace(plan.measurement, lower=0.0, upper=width)
    plan = replace(plan, measurement=extreme)
    check_quiet_under({"all": setting}, plan, neighbours(0.0, width, missing=True))


@pytest.mark.parametrize("width", [9.9e99, 1.1e-100])
def test_the_widest_and_narrowest_bounds_that_are_accepted_are_quiet(width):
    """Bounds of any accepted size release without a word."""
    gp = cloakgp.GP(small_plan().gp.kernel, 0.3, (0.0, width))
    plan = gp.plan(small_plan().X, X_star=small_plan().X_star, epsilon=1.0, delta=0.01)
    check_same_steps(plan, neighbours(0.0, width, missing=True), missing="midpoint")


@pytest.mark.parametrize("width", [1e308, 1e100, 1e-100, 1e-300, 1e-305, 1e-310, 5e-324])
def test_bounds_that_scaling_could_trip_over_are_refused_with_the_model(width):
    """So wide or narrow that scaling could overflow: refused before there is a plan."""
    with pytest.raises(ValueError, match="bounds must be apart by an ordinary number"):
        cloakgp.GP(small_plan().gp.kernel, 0.3, (0.0, width))


# ---------------------------------------------------------------------------------- planted bugs

_right = room.to_integers


def _planted(source):
    """A function that counts as the library's own code, so that it is traced."""
    names = {"np": np, "right": _right, "warnings": warnings}
    exec(compile(source, ROOT + "/private/room.py", "exec"), names)
    return names["planted"]


BUGS = {
    "branch when something is clipped": """
def planted(y, m):
    if (y > m.upper).any():
        y = np.minimum(y, m.upper)
    return right(y, m)
""",
    "branch within one line": """
def planted(y, m):
    return right(np.minimum(y, m.upper) if (y > m.upper).any() else y, m)
""",
    "loop only over missing rows": """
def planted(y, m):
    y = y.copy()
    for row in np.flatnonzero(np.isnan(y)):
        y[row] = (m.lower + m.upper) / 2
    return right(y, m)
""",
    "warn when something is clipped": """
def planted(y, m):
    list(map(warnings.warn, ["outcomes were clipped"] * int((y > m.upper).any())))
    return right(y, m)
""",
    "numpy warns on values that overflow": """
def planted(y, m):
    with np.errstate(over="warn"):
        np.square(y)
    return right(y, m)
""",
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_dependence_on_y_is_caught(monkeypatch, bug):
    """A branch, a conditional expression, a loop over special rows or a warning is seen."""
    monkeypatch.setattr(room, "to_integers", _planted(BUGS[bug]))
    because = "a warning tells" if "warn" in bug else "what is executed"
    datasets = neighbours(0.0, 1.0, missing=True)
    assert fails(check_same_steps, small_plan(), datasets, missing="midpoint", because=because)


def test_a_patch_that_changes_nothing_is_not_caught(monkeypatch):
    """So that what the planted bugs show is the bug, not the patching."""
    monkeypatch.setattr(room, "to_integers", _planted("def planted(y, m): return right(y, m)"))
    check_same_steps(small_plan(), neighbours(0.0, 1.0, missing=True), missing="midpoint")
