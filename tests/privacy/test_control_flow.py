"""What the program does while it releases does not depend on what y holds.

Every bytecode instruction that the library runs during a release is recorded, not only every line: a
branch inside one line (``a if b else c``, ``and``) shows too. Two data sets of the same length must leave
the same trace and no warning, whatever they hold; otherwise timing, logs or warnings would tell of y.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from privacy_helpers import BIN_NOISE, KINDS, fails, require, small_bins, small_merged_plan, small_plan

import cloakgp
from cloakgp.data import chunks
from cloakgp.kernels import EQ
from cloakgp.private import room
from measured import exact

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


PLANS = {
    **{f"bounds {bounds}": (partial(small_plan, bounds=bounds), bounds) for bounds in BOUNDS},
    **{kind: (partial(small_merged_plan, **KINDS[kind]), (0.0, 1.0)) for kind in KINDS},
    **{f"bins, {law}": (partial(small_bins, law), (0.0, 1.0)) for law in BIN_NOISE},
    "wide bins": (partial(small_bins, bounds=BOUNDS[-1]), BOUNDS[-1]),
    "each row by itself": (partial(small_bins, local=True), (0.0, 1.0)),
}


@pytest.mark.parametrize("kind", PLANS)
def test_the_same_instructions_run_whatever_y_holds(kind):
    """Clipped or not, at a bound, huge, denormal or missing, one row or all; and no warning is given."""
    make, (low, high) = PLANS[kind]
    plan, middle = make(), low + (high - low) / 2
    check_same_steps(plan, neighbours(low, high))
    everywhere = (middle, low, high, -1e308, 1e308, np.nan, np.inf, 5e-324)
    datasets = [*neighbours(low, high, missing=True), *(np.full(6, value) for value in everywhere)]
    check_same_steps(plan, datasets, missing="midpoint")


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
    plan = cloakgp.GP(EQ(0.5), **of).plan(np.arange(6.0), X_star=[2.0], epsilon=1.0, delta=0.01)
    m, outcome = plan.first.measurement, plan.outcome
    labels = [["a", "b", one, "c", "c", "b"] for one in ("a", "b", "c", "no class", None, np.nan, 3)]
    if classes == "yes/no":
        labels = [[0, 1, one, 1, 0, 1] for one in (0, 1, 2, -1e300, np.nan, np.inf, 0.5)]
    datasets = [np.array(y, dtype=float if classes == "yes/no" else object) for y in labels]
    for _ in range(2):  # as above
        exact(m, datasets[0], outcome=outcome)
    traces = [trace(exact, m, y, outcome=outcome) for y in datasets]
    require(len(traces[0]) > 50, "nothing was traced")
    assert all(steps == traces[0] for steps in traces), "what is executed depends on y"


@pytest.mark.parametrize("setting", ["warn", "raise"])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_strict_floating_point_settings_do_not_make_a_release_speak(bounds, setting):
    """numpy may be told to warn or raise on underflow; which y underflow must still not show."""
    check_quiet_under({"all": setting}, small_plan(bounds=bounds), neighbours(*bounds, missing=True))


@pytest.mark.parametrize("width", [1e308, 1e100, 1e-100, 1e-300, 1e-305, 1e-310, 5e-324])
def test_bounds_that_scaling_could_trip_over_are_refused_with_the_model(width):
    """So wide or narrow that scaling could overflow: refused before there is a plan."""
    with pytest.raises(ValueError, match="bounds must be apart by an ordinary number"):
        cloakgp.GP(small_plan().gp.kernel, 0.3, (0.0, width))


# ---------------------------------------------------------------------------------- planted bugs

_right = room.integers_of


def _planted(source):
    """A function that counts as the library's own code, so that it is traced."""
    names = {"np": np, "right": _right, "warnings": warnings}
    exec(compile(source, ROOT + "/private/room.py", "exec"), names)
    return names["planted"]


BUGS = {
    "branch when something is clipped": """
def planted(s, y):
    if (y > s.upper).any():
        y = np.minimum(y, s.upper)
    return right(s, y)
""",
    "branch within one line": """
def planted(s, y):
    return right(s, np.minimum(y, s.upper) if (y > s.upper).any() else y)
""",
    "loop only over missing rows": """
def planted(s, y):
    y = y.copy()
    for row in np.flatnonzero(np.isnan(y)):
        y[row] = 0.5
    return right(s, y)
""",
    "warn when something is clipped": """
def planted(s, y):
    list(map(warnings.warn, ["outcomes were clipped"] * int((y > s.upper).any())))
    return right(s, y)
""",
    "numpy warns on values that overflow": """
def planted(s, y):
    with np.errstate(over="warn"):
        np.square(y)
    return right(s, y)
""",
}


@pytest.mark.parametrize("bug", [*BUGS, None])
def test_planted_dependence_on_y_is_caught(monkeypatch, bug):
    """A branch, a conditional expression, a loop over special rows or a warning; and not the patch itself."""
    source = BUGS.get(bug, "def planted(s, y): return right(s, y)")
    monkeypatch.setattr(room, "integers_of", _planted(source))
    because = "a warning tells" if "warn" in source else "what is executed"
    datasets = neighbours(0.0, 1.0, missing=True)
    caught = fails(check_same_steps, small_plan(), datasets, missing="midpoint", because=because)
    assert caught == (bug is not None)
