"""Nothing that outlives a release can give y back: no object, no file, no text, no error, no log.

The secrets that are searched for are not only y's numbers but everything on the way to the noise: y shifted
and scaled, y in integers, the measurements and predictions before noise, and y's sum, mean and range.
"""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import math
import pickle
import re
import struct
import sys
import traceback
import types
import warnings
import weakref
import zipfile
from collections import Counter
from functools import cache, partial

import numpy as np
import pytest
from privacy_helpers import (
    BIN_NOISE,
    KINDS,
    exact_measurements,
    fails,
    integers,
    parts_of,
    require,
    small_bins,
    small_function_plan,
    small_merged_plan,
    small_plan,
    small_staged_plan,
    with_answer,
)

import cloakgp
import measured
from cloakgp import Plan, Release, binning, estimators
from cloakgp.kernels import EQ
from cloakgp.measure.statistics import Bin, Distance, Outside
from cloakgp.private import outcomes, room
from cloakgp.release.planner import BOUNDS as FUNCTION_BOUNDS

pytestmark = pytest.mark.usefixtures("few_models")  # privacy does not depend on how well models are learned
N = 12
BOUNDS = (-40.0, 60.0)


def private_outcomes(seed=0):
    """Numbers that occur nowhere else, some outside the bounds."""
    y = np.random.default_rng(seed).uniform(-55.0, 75.0, N)
    assert len(np.unique(y)) == N
    return y


def a_plan():
    return small_plan(n_rows=N, n_outputs=4, bounds=BOUNDS)


def a_function_plan(bound="exact", **options):
    return small_function_plan(bound, n_rows=N, bounds=BOUNDS, **options)


GRID = np.linspace(-0.1, 1.1, 7)[:, None]


def without_noise(plan, z):
    """The predictions that a release would hold."""
    if hasattr(plan, "bin_noise_std"):
        return binning.BinningRelease(plan, z).bin_means
    release = with_answer(plan, z)
    return release.mean if plan.function is None else release.query(GRID)


CONTAINERS = {dict, list, tuple, set, frozenset, types.CodeType, types.CellType}
PLAIN = {str, bytes, int, float, bool, type(None)}
"""Nothing can be reached from these."""


@cache
def any_of(texts):
    """A pattern that finds any of them: faster than one after another."""
    require(texts and all(texts), "there is nothing to look for")
    return re.compile("|".join(map(re.escape, texts)))


def whole_rows_in_bins(part):
    """Few rows, on the lattice: such round numbers are in other numbers' bytes; and bounds' shares."""
    if not isinstance(part.statistic, Bin):
        return set()
    shares = set(part.statistic.shares.ravel().tolist())
    return shares | {
        rows << bits for rows in range(N + 1) for bits in (part.y_bits, part.y_bits + part.matrix_bits)
    }


class Secrets:
    """Every number that y passes through before noise hides it."""

    def __init__(self, plan, y, parts=None):
        floats, integers, public = [*y, y.sum(), y.mean(), y.std(), y.min(), y.max()], [], {0}
        for part in parts or [plan.measurement]:
            s, groups = part.statistic.at(part.labels), part.groups
            y_int, sums = outcomes.integers_of(s, y)[0][:, 0], measured.exact(part, y)
            clipped = np.clip(y, s.lower, s.upper)
            inside, moved = (clipped > s.lower) & (clipped < s.upper), clipped - s.lower
            if isinstance(s, Distance):
                moved = np.minimum(np.abs(clipped - s.centre), s.limit)
                inside &= moved < s.limit
            if isinstance(s, Outside):  # what is beyond on the whole of a side is the window's
                within = np.clip(y, *s.bounds)
                moved, inside = within - clipped, (within == y) & (y != clipped)
                public |= {int(v) for ends in (s.below, s.largest - s.below) for v in np.ravel(ends)}
            scaled = moved[inside] * (s.largest / s.span)
            floats += [*(y - s.lower), *moved[inside], *scaled, moved.sum(), moved.mean()]
            floats += [clipped.sum(), clipped.mean()]
            integers += [*y_int, *sums]
            if groups is not None:
                each = [groups.labels == g for g in range(len(part.counts))]
                integers += [y_int[own].sum() for own in each]
                floats += [y[own].sum() for own in each]
            public |= {s.largest, 2**part.y_bits} | whole_rows_in_bins(part)
        if parts is None:
            floats += [*without_noise(plan, np.array(measured.exact(plan.measurement, y)))]
        floats = set(map(float, floats)) - {*BOUNDS, 0.0}  # what is clipped tells nothing
        self.spell(floats, integers, public)

    def spell(self, floats, integers, public):
        """All ways to write these numbers down; small integers, and public ones, may be anywhere."""
        self.floats = {float(v) for v in floats}
        self.integers = {int(v) for v in integers if abs(int(v)) > 1000} - public
        patterns = [struct.pack("<d", v) for v in self.floats] + [struct.pack("<q", v) for v in self.integers]
        self.patterns = [*patterns, *(pattern[::-1] for pattern in patterns)]  # either byte order
        self.words = np.frombuffer(b"".join(self.patterns), np.int64)
        texts = [form(v) for v in self.floats for form in (repr, "{:.6g}".format, "{:.4f}".format, float.hex)]
        texts = [text for text in texts if len(text.strip("-0.")) > 4] + [str(v) for v in self.integers]
        self.texts = tuple(texts)

    def found_in(self, thing):
        """Whether one object holds a secret by itself."""
        if type(thing) in CONTAINERS or isinstance(thing, (bool, type(None))):
            return False
        if isinstance(thing, str):
            return any_of(self.texts).search(thing) is not None
        if isinstance(thing, np.timedelta64):  # an integer to numpy
            thing = thing.astype(np.int64)
        if isinstance(thing, (int, np.integer)):
            return int(thing) in self.integers
        if isinstance(thing, (float, np.floating)):
            return float(thing) in self.floats
        if isinstance(thing, np.ndarray) and thing.dtype.kind in "iuf" and thing.itemsize == 8:
            # Number by number: the end of one and zeros after it are some integer of three bytes by chance.
            return bool(np.isin(np.frombuffer(thing.tobytes(), np.int64), self.words).any())
        if isinstance(thing, np.ndarray):
            return thing.dtype != object and self.found_in(thing.tobytes())
        if isinstance(thing, (bytes, bytearray, memoryview)):
            raw = bytes(thing)
            return any(pattern in raw for pattern in self.patterns) or self.found_in(raw.decode("latin-1"))
        return False


def is_ours(thing):
    """Whether a module, class or function belongs to cloakgp or OpenDP; others lead all over Python."""
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
    return str(name).split(".")[0] in ("cloakgp", "opendp")


@cache
def slots(kind):
    return [slot for parent in kind.__mro__ for slot in getattr(parent, "__slots__", ())]


def reachable(*roots):
    """All objects that can be reached from the roots, through arrays' bases too."""
    seen, queue = {}, list(roots)
    while queue:
        thing = queue.pop()
        kind = type(thing)
        if id(thing) in seen or kind is types.FrameType:
            continue
        seen[id(thing)] = thing
        if kind in PLAIN:
            continue
        if kind in CONTAINERS:
            queue += gc.get_referents(thing)
            continue
        if isinstance(thing, (types.ModuleType, type, types.FunctionType)) and not is_ours(thing):
            # Not its globals, but what was put into it from outside.
            queue += [
                getattr(thing, name, None) for name in ("__closure__", "__defaults__", "__kwdefaults__")
            ]
            continue
        queue += gc.get_referents(thing)
        if isinstance(thing, types.FunctionType):
            queue.append(thing.__globals__)
        if isinstance(thing, np.ndarray):
            queue.append(thing.base)
            if thing.dtype == object:
                queue += thing.ravel().tolist()
        if hasattr(thing, "__dict__") and not isinstance(thing, type):
            queue.append(vars(thing))
        for slot in slots(kind):
            with contextlib.suppress(Exception):  # some libraries' slots cannot be read
                queue.append(getattr(thing, slot))
    return list(seen.values())


def library_modules():
    return [module for name, module in sys.modules.items() if name.split(".")[0] in ("cloakgp", "opendp")]


# ---------------------------------------------------------------------------------------- checks


def check_no_trace(release, plan, secrets, y):
    """No object that can be reached from a release, its plan or the library holds a secret."""
    things = reachable(release, plan, *library_modules())
    require(sum(isinstance(thing, np.ndarray) for thing in things) >= 5, "the walk did not get anywhere")
    require(any(thing is plan.measurement.matrix for thing in things), "the walk did not get to the plan")
    require(any(thing is room.measure for thing in things), "the walk did not get to the private room")
    for thing in things:
        assert thing is not y, "y itself is still referred to"
        if isinstance(thing, np.ndarray):
            assert not np.shares_memory(thing, y), "y's memory is still referred to"
        assert not secrets.found_in(thing), f"a {type(thing).__name__} holds a secret"


def check_no_bytes(release, plan, secrets, folder):
    """Pickles, files and texts made from a release, its plan and its certificate hold no secret."""
    shown, outputs = [release, plan, release.plan, release.certificate, release.certificate.to_dict()], {}
    if hasattr(release, "save"):
        release.save(folder / "release.cloak")
        outputs["file"] = (folder / "release.cloak").read_bytes()
        members = zipfile.ZipFile(io.BytesIO(outputs["file"]))
        outputs |= {name: members.read(name) for name in members.namelist()}
        shown += [cloakgp.verify(folder / "release.cloak"), plan.gp]
    outputs |= {"pickled release": pickle.dumps(release), "pickled plan": pickle.dumps(plan)}
    outputs["texts"] = "\n".join(repr(thing) + str(thing) for thing in shown)
    for name, output in outputs.items():
        assert not secrets.found_in(output), f"{name} holds a secret"


# ----------------------------------------------------------------------------------------- tests


def merged(kind):
    options = {**KINDS[kind], "repeats": (4, 1, N - 5), "bounds": BOUNDS}
    if "noise" in options:
        options["noise"] = np.resize(options["noise"], N)
    return small_merged_plan(**options)


def an_estimator(**options):
    return estimators.PrivateGPRegressor(
        EQ(0.5, variance=1e4), 3e3, BOUNDS, 1.0, 0.01, query=np.linspace(0, 1, 4)[:, None], **options
    )


PLANS = {
    "predictions": a_plan,
    **{kind: partial(merged, kind) for kind in KINDS if "merged" in kind},
    **{f"function, {bound}": partial(a_function_plan, bound) for bound in FUNCTION_BOUNDS},
    **{f"bins, {law}": partial(small_bins, law, n_rows=N, bounds=BOUNDS) for law in BIN_NOISE},
    **{
        f"bins, {curve}": partial(small_bins, n_rows=N, bounds=BOUNDS, predict=curve, kernel=EQ(1.0))
        for curve in ("gp", "integral")
    },
    "each row by itself": partial(small_bins, n_rows=N, bounds=BOUNDS, local=True),
    "stages": partial(small_staged_plan, n_rows=N, n_outputs=4, bounds=BOUNDS, epsilon=4.0),
}


def secrets_of(plan, y, release):
    stages = getattr(release, "stages", ())
    return Secrets(plan, y, parts_of(release) if len(stages) > 1 else None)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", PLANS)
def test_a_release_its_plan_and_the_library_hold_nothing_of_y(tmp_path, kind, missing):
    """Walked object by object, pickled, saved, printed and loaded: y and what it was before noise are gone.

    Neither a row's outcome nor the sum over equal rows; before and after it was asked.
    """
    plan, y = PLANS[kind](), private_outcomes()
    known = y.copy()
    y[3] = np.nan if missing else y[3]
    release = plan.release(y, missing="midpoint")
    secrets = secrets_of(plan, known, release)
    check_no_trace(release, plan, secrets, y)
    check_no_bytes(release, plan, secrets, tmp_path)
    kept = hasattr(release, "save")
    for made in (release, cloakgp.load(tmp_path / "release.cloak")) if kept else (release,):
        if not kept or made.plan.X is not None:
            made.predict(GRID, return_std=True)
        if kept and made.plan.function is not None:
            made.query(GRID, return_std=True)
        check_no_trace(made, made.plan, secrets, y)


@pytest.mark.parametrize("bound", ["input-free", "varah"])
def test_a_file_that_hides_inputs_holds_neither_them_nor_the_matrix(tmp_path, bound):
    """What depends on X is withheld; only sums over rows are left (the centre)."""
    plan, y = a_function_plan(bound), private_outcomes()
    plan.release(y).save(tmp_path / "file")
    members = zipfile.ZipFile(tmp_path / "file")
    assert {"X.npy", "matrix.npy"}.isdisjoint(members.namelist())
    raw = b"".join(members.read(name) for name in members.namelist())
    X = np.linspace(0.0, 1.0, N)[1:-1]
    shared = set(plan.function.points.ravel().tolist())
    assert not any(struct.pack("<d", v) in raw for v in X if v not in shared)
    assert not any(struct.pack("<q", int(b)) in raw for b in plan.measurement.matrix.ravel() if abs(b) > 1000)


@pytest.mark.parametrize("design", ["mse", "posterior"])
def test_a_fitted_estimator_holds_nothing_of_y(monkeypatch, tmp_path, design):
    """Walked object by object, pickled and printed, before and after predicting; what is kept, is found."""
    monkeypatch.setattr(estimators, "_fits", Counter())
    X, y = np.linspace(0, 1, N)[:, None], private_outcomes()
    model = an_estimator(design=design).fit(X, y)
    plan = model.release_.plan
    secrets = Secrets(plan, y)
    check_no_trace(model, plan, secrets, y)
    model.predict(GRID, return_std=True)
    model.sample_y(GRID, 2)
    check_no_trace(model, plan, secrets, y)
    check_no_bytes(model.release_, plan, secrets, tmp_path)
    for output in (pickle.dumps(model), repr(model), str(model.get_params()), repr(vars(model))):
        assert not secrets.found_in(output)
    assert set(vars(model)) == {"release_", "n_features_in_", *model.get_params(deep=False)}
    for kept in (y, float(y.mean()), y[:2].copy()):
        model.kept_ = kept
        assert fails(check_no_trace, model, plan, secrets, y)


@pytest.mark.parametrize("kind", [np.array, np.ma.array, lambda y: np.array(y)[::-1]])
def test_y_is_let_go_once_the_release_is_made(kind):
    """Nobody keeps y alive: it is collected as soon as its owner drops it."""
    for plan in (a_plan(), a_function_plan(), PLANS["stages"]()):
        y = kind(private_outcomes())
        alive = weakref.ref(y)
        release = plan.release(y)
        del y
        gc.collect()
        assert alive() is None
        assert all(stage.answer.base is None for stage in release.stages)


def test_y_is_not_changed_by_a_release():
    """The custodian's data are read, never written."""
    plan, y = a_plan(), private_outcomes()
    y[2] = np.nan
    before = y.tobytes()
    plan.release(y, missing="midpoint")
    assert y.tobytes() == before


def test_a_plan_is_the_same_after_a_release_as_before():
    """No counter, cache or last result is kept on the public plan."""
    plan = a_plan()
    plan.release(np.zeros(N))  # whatever is cached for public reasons
    before, parts = pickle.dumps(plan), dict(vars(plan))
    plan.release(private_outcomes())
    assert pickle.dumps(plan) == before
    assert list(vars(plan)) == list(parts)
    assert all(vars(plan)[name] is part for name, part in parts.items())


def test_a_release_says_nothing(capfd, caplog):
    """No output, log or warning while y is released, whatever it holds."""
    plan = a_plan()
    caplog.set_level(logging.DEBUG)
    plan.release(np.zeros(N))
    capfd.readouterr()
    caplog.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for y in (private_outcomes(), np.full(N, 1e300), np.full(N, np.nan), np.full(N, BOUNDS[0])):
            plan.release(y, missing="midpoint")
    assert [caught, caplog.records, *capfd.readouterr()] == [[], [], "", ""]


# ---------------------------------------------------------------------------------------- errors


class Hostile:
    """An array-like that fails with its contents in the message."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        raise ValueError(f"cannot convert {self.values}")

    def __repr__(self):
        return f"Hostile({self.values})"


def _with(value, others):
    return [value, *others[1:]]


BAD = {  # how to spoil a list of secret numbers; each kind must give one message whatever the numbers
    "strings": lambda v: [str(x) for x in v],
    "numpy strings": lambda v: np.array([str(x) for x in v]),
    "bytes": lambda v: np.array([str(x).encode() for x in v]),
    "objects": lambda v: np.array([str(x) for x in v], dtype=object),
    "one None": lambda v: _with(None, v),
    "one string": lambda v: _with(f"n/a {v[0]}", v),
    "NaN": lambda v: np.array(_with(np.nan, v)),
    "infinity": lambda v: np.array(_with(np.inf, v)),
    "minus infinity": lambda v: np.array(_with(-np.inf, v)),
    "masked": lambda v: np.ma.array(v, mask=[True] + [False] * (N - 1)),
    "one short": lambda v: np.array(v[1:]),
    "two columns": lambda v: np.array([v, v]).T,
    "one row": lambda v: np.array([v]),
    "a scalar": lambda v: v[0],
    "ragged": lambda v: [v, v[1:]],
    "ragged in one row": lambda v: [[v[0]], *v[1:]],
    "complex": lambda v: np.array(v) + 1j,
    "dates": lambda v: (np.array(v) * 1e9).astype("datetime64[s]"),
    "durations": lambda v: (np.array(v) * 1e9).astype("timedelta64[s]"),
    "records": lambda v: np.array([(x,) for x in v], dtype=[("y", float)]),
    "a dictionary": lambda v: dict(enumerate(v)),
    "a set": lambda v: set(v),
    "a generator": lambda v: (x for x in v),
    "None": lambda v: None,
    "hostile": Hostile,
    "a list with something hostile": lambda v: _with(Hostile(v), v),
    "masked strings": lambda v: np.ma.array([f"id {x}" for x in v]),
    "masked objects": lambda v: np.ma.array(_with(f"id {v[0]}", v), dtype=object),
    "masked complex": lambda v: np.ma.array(np.array(v) + 1j),
    "masked dates": lambda v: np.ma.array((np.array(v) * 1e9).astype("datetime64[s]")),
    "masked records": lambda v: np.ma.array([(x,) for x in v], dtype=[("y", float)]),
}


def everything_said(error):
    """All that an error tells: messages, arguments, notes, attributes, causes, and the printed traceback."""
    said, queue = [], [error]
    while queue:
        e = queue.pop()
        said += [str(e), repr(e), repr(e.args), repr(getattr(e, "__notes__", [])), repr(vars(e))]
        shown = [e.__cause__] + ([] if e.__suppress_context__ else [e.__context__])
        queue += [other for other in shown if other is not None]
    # Numbers of lines are about the source: 115 is no quotation of a 15.
    return said + [re.sub(r"line \d+", "line", text) for text in traceback.format_exception(error)]


def check_errors_tell_nothing(release, spoil):
    """The error is the same, word for word, for any data set, and has no number of it."""
    heard = []
    for seed in (1, 2, 3):
        values = private_outcomes(seed).tolist()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                release(spoil(values))
            except (TypeError, ValueError) as error:
                said = everything_said(error)
            else:
                said = ["accepted"]
        assert said != ["accepted"], "unusable outcomes were accepted"
        assert not caught, "a warning was given"
        for value in values:
            forms = (repr(value), str(int(value * 1e9)), f"{value:.4f}", f"{value:.3g}", repr(value)[:6])
            assert not any(form in text for text in said for form in forms), "an error quotes the data"
        heard.append(said)
    assert heard[0] == heard[1] == heard[2], "an error depends on the data"


@cache
def a_selection():
    gps = [cloakgp.GP(EQ(lengthscale), 900.0, BOUNDS) for lengthscale in (0.5, 5.0)]
    return cloakgp.plan_selection(gps, np.arange(float(N)), epsilon=1.0, folds=3)


@pytest.mark.parametrize("case", BAD)
def test_errors_about_unusable_outcomes_tell_nothing_of_their_values_and_nothing_is_paid(tmp_path, case):
    """Strings, objects, NaN, wrong shapes, dates, hostile objects: one message each, no value in it."""
    ledger = cloakgp.Ledger(f"sqlite:///{tmp_path / 'l.db'}")
    ledger.create("d", epsilon=9.0, delta=0.1)
    for plan in (a_plan(), a_function_plan(), PLANS["stages"]()):
        check_errors_tell_nothing(plan.release, BAD[case])
        check_errors_tell_nothing(partial(plan.release, ledger=ledger, dataset="d"), BAD[case])
    assert len(ledger.entries()) == 2
    check_errors_tell_nothing(a_selection().select, BAD[case])
    X = np.linspace(0, 1, N)[:, None]
    check_errors_tell_nothing(lambda spoiled: an_estimator().fit(X, spoiled), BAD[case])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_error_about_missing_outcomes_tells_neither_how_many_nor_which(bad):
    """One missing outcome, or all of them, anywhere: the same message."""
    plan, messages = a_plan(), set()
    for rows in ([0], [7], [1, 2, 3], range(N)):
        y = private_outcomes()
        y[list(rows)] = bad
        with pytest.raises(ValueError, match="finite") as caught:
            plan.release(y)
        messages.add("\n".join(everything_said(caught.value)))
    assert len(messages) == 1


def test_nothing_is_drawn_before_outcomes_are_known_to_be_usable(monkeypatch):
    """An error costs no privacy: no noise is drawn, and the private sum is never formed."""
    drawn = []
    monkeypatch.setattr(room, "add_noise", lambda *args: drawn.append(args))
    for name, spoil in BAD.items():
        with pytest.raises((TypeError, ValueError)):
            a_plan().release(spoil(private_outcomes().tolist()))
        assert not drawn, name


@pytest.mark.parametrize("kind", ["predictions", "bins, laplace", "bins, gaussian"])
def test_a_failure_inside_opendp_tells_nothing(monkeypatch, kind):
    """OpenDP's errors can hold the exact measurements; what comes out is one fixed sentence."""
    from opendp import measurements

    plan, y = PLANS[kind](), private_outcomes()
    secrets = Secrets(plan, y)

    def broken(*args, **kwargs):
        def fail(exact):
            raise OverflowError(f"cannot convert {list(exact)}")

        return fail

    monkeypatch.setattr(measurements, "make_gaussian", broken)
    monkeypatch.setattr(measurements, "make_laplace", broken)
    with pytest.raises(RuntimeError, match="nothing was released") as caught:
        plan.release(y)
    assert not any(secrets.found_in(text) for text in everything_said(caught.value))


# ---------------------------------------------------------------------------------- planted bugs

_right_release = Plan.release


def _keep(how):
    """A release that keeps something of y in some place."""

    def release(plan, y, **options):
        result = _right_release(plan, y, **options)
        how(plan, y, result)
        return result

    return release


def _integers(plan, y):
    return np.array(integers(plan.measurement, y))


BUGS = {
    "y on the release": lambda plan, y, r: object.__setattr__(r, "_y", y),
    "y on the plan": lambda plan, y, r: object.__setattr__(plan, "_y", y),
    "a view of y": lambda plan, y, r: object.__setattr__(r, "_y", y[::-1][2:4]),
    "a copy of y in another byte order": lambda plan, y, r: object.__setattr__(r, "_y", y.astype(">f8")),
    "one number of y": lambda plan, y, r: object.__setattr__(r, "first", float(y[0])),
    "one number of y, in a list in a dictionary": lambda p, y, r: object.__setattr__(r, "d", {1: [y[0]]}),
    "y's mean": lambda plan, y, r: object.__setattr__(r, "centre", y.mean()),
    "y in integers": lambda plan, y, r: object.__setattr__(r, "_y", _integers(plan, y)),
    "the measurements before noise": lambda plan, y, r: object.__setattr__(
        r, "exact", plan.measurement.matrix @ _integers(plan, y)
    ),
    "the predictions before noise": lambda plan, y, r: object.__setattr__(
        r, "exact", with_answer(plan, plan.measurement.matrix @ _integers(plan, y)).mean
    ),
    "y in a closure": lambda plan, y, r: object.__setattr__(r, "again", lambda: y),
    "y in a module": lambda plan, y, r: setattr(room, "_last", y),
    "y in a default argument": lambda plan, y, r: setattr(room.measure, "__defaults__", (None, None, y)),
    "y in text": lambda plan, y, r: object.__setattr__(r, "note", f"largest {y.max():.6g}"),
}


KEPT = {
    "a stage's measurements before noise": lambda r, y: measured.exact(r.stages[1].measurement, y),
    "summed distances before noise": lambda r, y: measured.exact(r.stages[2].spread, y),
    "y": lambda r, y: y,
    "its mean": lambda r, y: [float(y.mean())],
}


@pytest.mark.parametrize("kept", KEPT)
def test_planted_keeping_of_y_by_a_stage_is_caught(kept):
    plan, y = PLANS["stages"](), private_outcomes()
    release = plan.release(y)
    secrets = secrets_of(plan, y, release)
    check_no_trace(release, plan, secrets, y)
    object.__setattr__(release.stages[2], "_kept", KEPT[kept](release, y))
    assert fails(check_no_trace, release, plan, secrets, y)


@pytest.mark.parametrize("bug", BUGS)
def test_planted_keeping_of_y_is_caught(monkeypatch, bug):
    """Wherever it is kept, the walk finds it."""
    monkeypatch.setattr(Plan, "release", _keep(BUGS[bug]))
    monkeypatch.setattr(room, "_last", None, raising=False)
    defaults = room.measure.__defaults__
    plan, y = a_plan(), private_outcomes()
    secrets = Secrets(plan, y)
    try:
        release = plan.release(y)
        assert fails(check_no_trace, release, plan, secrets, y)
    finally:
        room.measure.__defaults__ = defaults


def test_planted_secret_in_the_file_or_the_text_is_caught(monkeypatch, tmp_path):
    """A manifest or a repr that quotes y's mean is found."""
    plan, y = a_plan(), private_outcomes()
    secrets, release = Secrets(plan, y), plan.release(y)
    check_no_bytes(release, plan, secrets, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Release, "__repr__", lambda r: f"<Release of outcomes around {y.mean():.6g}>")
        assert fails(check_no_bytes, release, plan, secrets, tmp_path)
    release = with_answer(plan, exact_measurements(plan, y))
    assert fails(check_no_bytes, release, plan, secrets, tmp_path)


QUOTING = """
def quoting(y, n_rows):
    try:
        return np.array([float(v) for v in y])
    except (TypeError, ValueError) as error:
        {}
"""
IN = {
    "the message": "raise TypeError(f'y must be numbers; got {y[0]}') from None",
    "the cause": "raise TypeError('y must be numbers') from error",
    "the context": "raise TypeError('y must be numbers')",
    "a note": "new = TypeError('y must be numbers'); new.add_note(f'as {y[0]}'); raise new from None",
    "a count": "raise TypeError(f'{sum(float(v[3:]) > 20.0 for v in y)} are no numbers') from None",
}


@pytest.mark.parametrize("place", IN)
def test_planted_errors_that_tell_of_y_are_caught(monkeypatch, place):
    names = {"np": np}
    exec(QUOTING.format(IN[place]), names)
    monkeypatch.setattr(room, "kept", names["quoting"])
    assert fails(check_errors_tell_nothing, a_plan().release, lambda v: [f"id {x}" for x in v])


def test_the_secrets_are_many_and_none_is_found_in_a_plan_that_never_saw_y():
    """The search has something to look for, and does not cry wolf."""
    plan = a_plan()
    secrets = Secrets(plan, private_outcomes())
    assert len(secrets.floats) > 2 * N
    assert len(secrets.integers) > N // 2
    assert not secrets.found_in(pickle.dumps(plan))
    assert math.isfinite(sum(secrets.floats))
