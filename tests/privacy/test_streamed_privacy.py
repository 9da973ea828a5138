"""A recipe keeps the promise that a matrix keeps: what one row can move, what is refused, what is left of y.

The columns are made again in the pass that meets y. So what is attacked here is that pass: rows in many
chunks and threads, inputs that are not what the plan saw, recipes that are not what the noise was made for.
"""

from __future__ import annotations

import gc
import math
import weakref
from concurrent.futures import Future
from dataclasses import replace
from itertools import cycle, product

import numpy as np
import pytest
from privacy_helpers import fails, frozen_noise, require, squared_distance
from test_control_flow import check_same_steps, neighbours
from test_no_trace_of_y import (
    BAD,
    BOUNDS,
    GRID,
    N,
    Secrets,
    check_errors_tell_nothing,
    check_no_bytes,
    everything_said,
    library_modules,
    private_outcomes,
    reachable,
)

from cloakgp import GP, Ledger, Release
from cloakgp.kernels import EQ
from cloakgp.measurements import kept_columns, recipes
from cloakgp.measurements.lattice import Measurement
from cloakgp.measurements.recipes import MARGIN, FactoredMeasurement, Recipe
from cloakgp.plans import encoding, out_of_core
from cloakgp.private import room
from cloakgp.rows import chunks, sources

X = np.random.default_rng(2).uniform(0, 1, size=(N, 1))
PLACES = np.array([[0.1], [0.5], [0.9]])
NOISE = np.resize([0.3, 0.6], N) * 1e4
FULLEST = "merged fitc, noise per row"
KINDS = {
    "dtc": {},
    "fitc": {"approximation": "fitc"},
    "noise per row": {"noise": NOISE},
    "merged": {"data": np.resize(X[:5], (N, 1))},
    FULLEST: {
        "data": np.resize(X[:5], (N, 1)),
        "noise": NOISE,
        "approximation": "fitc",
    },
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    """Every plan with inducing inputs has a recipe; rows come in three chunks, of steps of two."""
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    monkeypatch.setattr(out_of_core, "LARGER", 1)  # else so few rows are copied, and cannot change
    monkeypatch.setattr(chunks, "CHUNK", 5)
    monkeypatch.setattr(chunks, "STEP", 2)


def a_plan(kind="dtc", data=None, bounds=BOUNDS, **options):
    settings = {**KINDS[kind], **options}
    data = settings.pop("data", X) if data is None else data
    scale = (bounds[1] - bounds[0]) ** 2
    gp = GP(
        EQ(0.3, variance=scale),
        settings.pop("noise", 3e3) / 1e4 * scale,
        bounds,
        bounds[0] + 0.4 * (bounds[1] - bounds[0]),
        PLACES,
        settings.pop("approximation", "dtc"),
    )
    plan = gp.plan(data, X_star=np.linspace(0, 1, 4)[:, None], **{"epsilon": 1.0, "delta": 0.01, **settings})
    require(isinstance(plan.measurement, FactoredMeasurement), "the plan has no recipe")
    return plan


def columns(plan):
    """The integers that each row's y is multiplied with, made step by step as the pass does."""
    m, found = plan.measurement, []
    for chunk in chunks.chunks(len(m.inputs)):
        rows, noise = m.inputs.X[chunk], m.inputs.variances[chunk]
        for step in chunks.steps(len(rows)):
            found += m.recipe.columns(rows[step], noise[step]).T.tolist()
    return found if m.groups is None else [found[label] for label in m.groups.labels.tolist()]


def written_out(plan):
    """The same plan with its measurement as a matrix."""
    m = plan.measurement
    shared = ("y_bits", "matrix_bits", "sigma", "lower", "upper", "epsilon", "delta")
    matrix = Measurement(
        np.array(columns(plan)).T, **{name: getattr(m, name) for name in shared}, declared=m.declared
    )
    return replace(plan, measurement=matrix)


def exact(plan, y, missing="midpoint"):
    """What the private room adds noise to."""
    with frozen_noise() as seen:
        plan.release(y, missing=missing)
    assert seen.sigma == [plan.measurement.sigma]
    return seen.exact[0]


ANY = [*BOUNDS, 0.0, -0.0, 17.3, 1e308, -1e308, 5e-324, np.nan, np.inf, -np.inf]


# -------------------------------------------------------------------------------- what one row can move


def check_neighbours(plan, row, values):
    """Replacing one row's y moves the sums by that row's column and no further than declared."""
    m, column = plan.measurement, columns(plan)[row]
    for seed, value in enumerate(values):
        y, other = private_outcomes(seed), private_outcomes(seed)
        other[row] = value
        one, two = exact(plan, y), exact(plan, other)
        assert squared_distance(one, two) <= m.sensitivity() ** 2, "further than declared"
        y_int = [int(room.to_integers(v, m.lattice)[row]) for v in (y, other)]
        moved = [(y_int[1] - y_int[0]) * entry for entry in column]
        assert [b - a for a, b in zip(one, two, strict=True)] == moved, "not by the row's own column"


@every_kind
def test_replacing_one_outcome_by_anything_stays_within_the_declared_sensitivity(kind):
    plan = a_plan(kind)
    for row in range(N):
        check_neighbours(plan, row, ANY[row % 3 :: 3])


@every_kind
def test_the_declared_sensitivity_is_reached_up_to_the_margin(kind):
    plan = a_plan(kind)
    m, lengths = plan.measurement, [sum(entry**2 for entry in column) for column in columns(plan)]
    row = int(np.argmax(lengths))
    y, other = private_outcomes(), private_outcomes()
    y[row], other[row] = BOUNDS
    distance = squared_distance(exact(plan, y), exact(plan, other))
    assert distance == lengths[row] * 4**m.y_bits
    assert distance <= m.declared**2
    spare = m.declared - math.isqrt(distance)
    assert spare <= (MARGIN * math.sqrt(m.n_measurements) + 1) * 2**m.y_bits
    assert m.declared < 1.00001 * math.isqrt(distance)


@every_kind
def test_the_sums_are_every_rows_column_times_its_outcome(kind, tmp_path):
    """In Python's integers; for an array, a list and a memory map."""
    plan, y = a_plan(kind), private_outcomes()
    y_int = room.to_integers(y, plan.measurement.lattice).tolist()
    wanted = [
        sum(v * entry for v, entry in zip(y_int, row, strict=True))
        for row in zip(*columns(plan), strict=True)
    ]
    np.save(tmp_path / "y.npy", y)
    for given in (y, y.tolist(), np.load(tmp_path / "y.npy", mmap_mode="r"), np.repeat(y, 2)[::2]):
        assert exact(plan, given, "error") == wanted


@every_kind
def test_missing_outcomes_stand_at_the_middle_row_by_row(kind, tmp_path):
    plan, y = a_plan(kind), private_outcomes()
    middle = y.copy()
    y[[0, 7, 11]], middle[[0, 7, 11]] = [np.nan, np.inf, -np.inf], sum(BOUNDS) / 2
    np.save(tmp_path / "y.npy", y)
    assert exact(plan, y) == exact(plan, middle)
    assert exact(plan, np.load(tmp_path / "y.npy", mmap_mode="r")) == exact(plan, middle)
    assert exact(plan, np.ma.masked_invalid(y)) == exact(plan, middle)


@every_kind
def test_outcomes_at_the_ends_do_not_wrap(kind):
    plan = a_plan(kind, epsilon=1e-6, delta=1e-9)
    m = plan.measurement
    signs = np.sign(np.array(columns(plan)).T)
    for direction in (*signs, *-signs):
        y = np.where(direction > 0, *BOUNDS[::-1])
        y_int = [2**m.y_bits if v == BOUNDS[1] else 0 for v in y]
        wanted = [
            sum(v * b for v, b in zip(y_int, row, strict=True)) for row in zip(*columns(plan), strict=True)
        ]
        assert exact(plan, y) == wanted
        assert max(map(abs, wanted)) <= m.largest_sum()
    assert m.largest_sum() + 64 * m.sigma < 2**62


# ------------------------------------------------------------------------------------- what is refused


def check_refused(plan, y, error, message, monkeypatch, missing="error"):
    """No noise is drawn, and what is said tells nothing of y."""
    drawn = []

    def draw(exact, sigma):
        drawn.append(sigma)
        return exact

    with monkeypatch.context() as patch:
        patch.setattr(room, "add_noise", draw)
        with pytest.raises(error, match=message) as caught:
            plan.release(y, missing=missing)
    assert not drawn, "noise was drawn"
    return "\n".join(everything_said(caught.value))


@pytest.fixture
def ledger(tmp_path):
    pytest.importorskip("sqlalchemy")
    book = Ledger(f"sqlite:///{tmp_path}/budget.db", who="a test")
    book.create("people", epsilon=2.0, delta=0.05)
    return book


def check_nothing_spent(ledger, plan, y, error, message):
    before = str(ledger.balance("people")), ledger.head
    with pytest.raises(error, match=message):
        plan.release(y, ledger=ledger, dataset="people", why="a test")
    assert (str(ledger.balance("people")), ledger.head) == before
    assert not ledger.balance("people").events


@pytest.fixture
def mapped(tmp_path):
    def store(array, name="X.npy"):
        np.save(tmp_path / name, array)
        return np.load(tmp_path / name, mmap_mode="r+")

    return store


@pytest.mark.parametrize("row", [0, 4, 5, N - 1])
@pytest.mark.parametrize("change", [0.3, 1e-15])
@pytest.mark.parametrize("approximation", ["dtc", "fitc"])
def test_inputs_that_changed_since_the_plan_are_refused(
    monkeypatch, mapped, ledger, approximation, change, row
):
    """Wherever and however little; nothing is spent. Put right again, they are taken."""
    data = mapped(X)
    plan, right = a_plan(approximation, data), X[row].copy()
    data[row] += change
    said = check_refused(plan, private_outcomes(), ValueError, "X has changed since the plan", monkeypatch)
    assert said == check_refused(plan, private_outcomes(1), ValueError, "X has changed", monkeypatch)
    check_nothing_spent(ledger, plan, private_outcomes(), ValueError, "X has changed .* Nothing was spent")
    data[row] = right
    plan.release(private_outcomes(), ledger=ledger, dataset="people", why="a test")
    assert len(ledger.balance("people").events) == 1


def test_a_large_array_that_changed_since_the_plan_is_refused(monkeypatch):
    """Too large to be copied: so it is looked at again."""
    monkeypatch.setattr(sources, "_COPIED", 0)
    data = X.copy()
    plan = a_plan(data=data)
    assert plan.measurement.inputs.X is data
    data[3] += 0.1
    check_refused(plan, private_outcomes(), ValueError, "X has changed since the plan", monkeypatch)


def changed(plan, **changes):
    return replace(plan, measurement=replace(plan.measurement, **changes))


def with_recipe(plan, **changes):
    return changed(plan, recipe=replace(plan.measurement.recipe, **changes))


TAMPERED = {
    "factors": lambda p: with_recipe(p, factors=p.measurement.recipe.factors * 2),
    "one factor": lambda p: with_recipe(p, factors=_larger(p.measurement.recipe.factors)),
    "factor bits": lambda p: with_recipe(p, factor_bits=p.measurement.recipe.factor_bits - 1),
    "matrix bits": lambda p: with_recipe(p, matrix_bits=p.measurement.matrix_bits + 1),
    "sensitivity": lambda p: changed(p, declared=p.measurement.declared // 2),
    "sensitivity by little": lambda p: changed(p, declared=int(p.measurement.declared * (1 - 2**-22))),
    "noise": lambda p: changed(p, sigma=p.measurement.sigma // 2),
    "y bits": lambda p: changed(p, y_bits=p.measurement.y_bits + 1),
    "epsilon": lambda p: changed(p, epsilon=0.5),
    "delta": lambda p: changed(p, delta=0.001),
    "digest": lambda p: changed(p, digest="0" * 64),
    "inputs": lambda p: changed(p, inputs=replace(p.measurement.inputs, X=p.measurement.inputs.X * 1.01)),
    "noise variances": lambda p: changed(p, inputs=replace(p.measurement.inputs, noise=1e-3)),
}


REFUSALS = "longer than the noise was made for|noise is too small|X has changed since the plan"


def _larger(factors):
    factors = factors.copy()
    factors[0] += np.sign(factors[0]) * 2**48
    return factors


@pytest.mark.parametrize(  # each lie in the fullest kind, and in one other
    ("how", "kind"), sorted({*product(TAMPERED, [FULLEST]), *zip(TAMPERED, cycle(KINDS), strict=False)})
)
def test_a_recipe_that_the_noise_was_not_made_for_is_refused(monkeypatch, ledger, how, kind):
    """Longer columns, less noise, other inputs: refused before noise is drawn, and nothing is spent."""
    plan = a_plan(kind)
    plan.release(private_outcomes())
    tampered = TAMPERED[how](plan)
    check_refused(tampered, private_outcomes(), (AssertionError, ValueError), REFUSALS, monkeypatch)
    check_nothing_spent(ledger, tampered, private_outcomes(), (AssertionError, ValueError), REFUSALS)


@pytest.mark.parametrize("repeats", [1, 400])
def test_sums_that_could_wrap_are_refused_whatever_the_plan_says_of_them(monkeypatch, repeats):
    """The plan's word for how large sums become is not relied on: the columns are added up again."""
    monkeypatch.setattr(chunks, "CHUNK", 500)
    monkeypatch.setattr(chunks, "STEP", 100)
    plan = a_plan(data=np.repeat(np.linspace(0.4, 0.6, 2000 // repeats), repeats)[:, None])
    m, more = plan.measurement, 6
    wide = changed(plan, y_bits=m.y_bits + more, declared=m.declared << more, sigma=m.sigma << more)
    require(m.extent << wide.measurement.y_bits >= 2**62, "the sums would not wrap")
    y = np.full(2000, BOUNDS[1])
    check_refused(wide, y, AssertionError, "could overflow", monkeypatch)
    hidden = changed(wide, extent=1)
    hidden.measurement.check()
    check_refused(hidden, y, AssertionError, "could overflow", monkeypatch)


@every_kind
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_missing_outcomes_are_refused_with_one_message_wherever_they_are(monkeypatch, mapped, bad, kind):
    plan, heard = a_plan(kind), set()
    for rows in ([0], [4], [5], [N - 1], [0, N - 1], range(N)):
        y = private_outcomes()
        y[list(rows)] = bad
        heard.add(check_refused(plan, y, ValueError, "^y must be finite", monkeypatch))
        stored = check_refused(plan, mapped(y, "y.npy"), ValueError, "^y must be finite", monkeypatch)
        assert room.INCOMPLETE in stored
    assert len(heard) == 1


def test_missing_outcomes_cost_nothing(ledger):
    for kind in KINDS:
        for row in (0, N - 1):
            y = private_outcomes()
            y[row] = np.nan
            check_nothing_spent(ledger, a_plan(kind), y, ValueError, "Nothing was spent")


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("kind", ["dtc", "merged"])
def test_errors_about_unusable_outcomes_tell_nothing_of_their_values(kind, case):
    check_errors_tell_nothing(a_plan(kind).release, BAD[case])


@pytest.mark.parametrize(
    "case", ["numpy strings", "bytes", "complex", "dates", "NaN", "two columns", "one short"]
)
def test_errors_about_unusable_memory_maps_tell_nothing_of_their_values(mapped, case):
    check_errors_tell_nothing(a_plan().release, lambda values: mapped(np.asarray(BAD[case](values)), "y.npy"))


def test_more_outcomes_than_rows_are_refused_wherever_they_are(monkeypatch, mapped):
    """Also by a memory map, of which the first rows alone would be read."""
    for extra in (1, 5, N):
        y = np.concatenate([private_outcomes(), private_outcomes(1)[:extra]])
        for given in (y, y.tolist(), mapped(y, "y.npy")):
            check_refused(a_plan(), given, ValueError, r"^y must have shape \(12,\)", monkeypatch)


def test_a_plan_whose_x_is_not_in_its_file_spends_nothing(monkeypatch, tmp_path, ledger):
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 0)
    a_plan().release(private_outcomes()).save(tmp_path / "file")
    plan = Release.load(tmp_path / "file").plan
    assert plan.X is None
    check_nothing_spent(ledger, plan, private_outcomes(), ValueError, "made from your own table")


# --------------------------------------------------------------------------------- what is left of y


def check_no_trace(release, plan, secrets, y):
    """As in test_no_trace_of_y, for a plan that has no matrix."""
    things = reachable(release, plan, *library_modules())
    require(any(thing is plan.measurement.recipe.factors for thing in things), "the walk did not get far")
    require(any(thing is room._swept for thing in things), "the walk did not get to the private room")
    for thing in things:
        assert thing is not y, "y itself is still referred to"
        if isinstance(thing, np.ndarray):
            assert not np.shares_memory(thing, y), "y's memory is still referred to"
        assert not secrets.found_in(thing), f"a {type(thing).__name__} holds a secret"


@every_kind
def test_a_release_its_plan_and_the_library_hold_nothing_of_y(tmp_path, kind):
    plan, y = a_plan(kind), private_outcomes()
    secrets = Secrets(written_out(plan), y)
    release = plan.release(y)
    check_no_trace(release, plan, secrets, y)
    release.predict(GRID, return_std=True)
    check_no_trace(release, plan, secrets, y)
    check_no_bytes(release, plan, secrets, tmp_path)
    loaded = Release.load(tmp_path / "release.cloak")
    check_no_trace(loaded, loaded.plan, secrets, y)


def test_a_release_of_a_memory_map_holds_nothing_of_y(tmp_path, mapped):
    plan, y = a_plan(), private_outcomes()
    stored = mapped(y, "y.npy")
    release = plan.release(stored)
    check_no_trace(release, plan, Secrets(written_out(plan), y), stored)
    check_no_bytes(release, plan, Secrets(written_out(plan), y), tmp_path)


@pytest.mark.parametrize("kind", ["dtc", "merged"])
def test_y_is_let_go_once_the_release_is_made_or_refused(kind):
    plan = a_plan(kind)
    for spoil in (False, True):
        y = private_outcomes()
        y[3] = np.nan if spoil else y[3]
        alive = weakref.ref(y)
        if spoil:
            with pytest.raises(ValueError, match="finite"):
                plan.release(y)
        else:
            plan.release(y)
        del y
        gc.collect()
        assert alive() is None


class _Inline:
    """Threads that are not: tasks run as they are handed over, so that they can be traced."""

    def __init__(self, workers):
        pass

    def submit(self, function, *arguments):
        done = Future()
        done.set_result(function(*arguments))
        return done

    def shutdown(self, **options):
        pass


@pytest.mark.parametrize(
    ("kind", "bounds"), list(zip(KINDS, cycle([(0.0, 1.0), (-3.0, 5.0), (1e6, 1e6 + 1e-3)]), strict=False))
)
def test_the_same_instructions_run_whatever_y_holds(monkeypatch, bounds, kind):
    """Clipped or not, missing or not, in the first chunk or the last: not an instruction differs."""
    monkeypatch.setattr(chunks, "ThreadPoolExecutor", _Inline)
    plan = a_plan(kind, bounds=bounds)
    for missing in ("error", "midpoint"):
        rows = [np.concatenate([y, y]) for y in neighbours(*bounds, missing=missing == "midpoint")]
        check_same_steps(plan, rows, missing=missing)
    late, early = np.full(N, bounds[0]), np.full(N, bounds[0])
    late[-1] = early[0] = np.nan
    check_same_steps(plan, [late, early, np.full(N, bounds[1]), np.full(N, np.nan)], missing="midpoint")


def test_a_release_in_passes_says_nothing(capfd, monkeypatch):
    plan = a_plan()
    capfd.readouterr()
    for y in (private_outcomes(), np.full(N, 1e300), np.full(N, np.nan), np.full(N, BOUNDS[0])):
        plan.release(y, missing="midpoint")
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------- planted bugs


def _longer(recipe, X, noise, windows=None, right=Recipe.columns):
    columns = right(recipe, X, noise, windows)
    return columns + 2 * MARGIN * np.sign(columns)


def test_planted_columns_that_grow_when_they_meet_y_are_caught(monkeypatch):
    """As if the pass that meets y rounded otherwise than the one that planned, by more than the margin."""
    plan = a_plan()
    kept_columns.forget()
    monkeypatch.setattr(Recipe, "columns", _longer)
    check_refused(plan, private_outcomes(), AssertionError, "longer than the noise was made for", monkeypatch)


def test_planted_columns_that_were_kept_and_grew_are_caught(monkeypatch):
    """What a plan looked at is looked at again when it meets y."""
    plan = a_plan()

    def longer(recipe, digest, right=kept_columns.kept):
        return [(rows, columns + 2 * MARGIN * np.sign(columns)) for rows, columns in right(recipe, digest)]

    monkeypatch.setattr(kept_columns, "kept", longer)
    check_refused(plan, private_outcomes(), AssertionError, "longer than the noise was made for", monkeypatch)


def _longest_of_the_first_chunk(recipe, inputs, margin=MARGIN, right=recipes.scan):
    rows = slice(0, 5)
    some = replace(inputs, X=inputs.X[rows], noise=inputs.noise, groups=None)
    return right(recipe, inputs, margin)._replace(longest=right(recipe, some, margin).longest)


def test_planted_sensitivity_of_some_rows_is_caught(monkeypatch):
    """A design and its noise for some rows alone: the pass that meets y sees the others."""
    data = np.sort(X, axis=0)
    data[-1] = 1.6
    monkeypatch.setattr(out_of_core, "scan", _longest_of_the_first_chunk)
    plan = a_plan(data=data)
    check_refused(plan, private_outcomes(), AssertionError, "longer than the noise was made for", monkeypatch)


def test_planted_pass_that_does_not_look_is_caught(monkeypatch):
    """Without the look at the columns, the neighbours would tell."""
    data = np.sort(X, axis=0)
    data[-1] = 1.6
    monkeypatch.setattr(out_of_core, "scan", _longest_of_the_first_chunk)
    plan = a_plan(data=data)
    monkeypatch.setattr(recipes, "largest_squared_norm", lambda columns, real=None: 0)
    row = int(np.argmax([sum(entry**2 for entry in column) for column in columns(plan)]))
    y, other = private_outcomes(), private_outcomes()
    y[row], other[row] = BOUNDS
    assert squared_distance(exact(plan, y), exact(plan, other)) > plan.measurement.declared**2


def test_planted_keeping_of_y_by_a_pass_is_caught(monkeypatch):
    right = room._part

    def keeping(recipe, *arguments):
        object.__setattr__(recipe, "_last", arguments[-1])
        return right(recipe, *arguments)

    plan, y = a_plan(), private_outcomes()
    secrets = Secrets(written_out(plan), y)
    monkeypatch.setattr(room, "_part", keeping)
    release = plan.release(y)
    assert fails(check_no_trace, release, plan, secrets, y)


def test_planted_branch_on_y_in_a_pass_is_caught(monkeypatch):
    right = room._part

    def branching(*arguments):
        part = right(*arguments)
        return part if part.complete else replace_part(part)

    def replace_part(part):
        chunks.n_rows((np.zeros(1),))  # an instruction of the library's own
        return part

    monkeypatch.setattr(chunks, "ThreadPoolExecutor", _Inline)
    plan, late = a_plan(), private_outcomes()
    late[-1] = np.nan
    check_same_steps(plan, [private_outcomes(), late], missing="midpoint")
    monkeypatch.setattr(room, "_part", branching)
    assert fails(check_same_steps, plan, [private_outcomes(), late], missing="midpoint")
