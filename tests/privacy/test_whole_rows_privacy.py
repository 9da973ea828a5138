"""Whole rows are private: attacked as outcomes are, with inputs and ids as well.

Neighbours differ in one row, which may go anywhere, or in all rows of one person. For any choices of stages
they move all answers together by no more than the noise was made for; and nothing but answers, for which
noise was drawn, depends on any of it.
"""

from __future__ import annotations

import gc
import logging
import warnings
import weakref
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_helpers import fails, require, seeded, squared_distance
from test_control_flow import trace
from test_no_trace_of_y import Secrets, library_modules, reachable

from cloakgp import AutoGP, Grid, Ledger
from cloakgp.measurements import whole_rows
from cloakgp.measurements.lattice import Part
from cloakgp.measurements.whole_rows import Counts, Population
from cloakgp.plans import staged_encoding
from cloakgp.private import room, rows
from cloakgp.private.rows import PrivateRows

pytestmark = pytest.mark.usefixtures("few_models")  # privacy does not depend on how well models are learned

N, PEOPLE, MOST = 8, 5, 2
GRID = Grid({"a": (0.0, 1.0), "k": ["x", "y", "z"]}, cells=4)
NAN = float("nan")


@cache
def a_plan(max_rows=None, stages=3, epsilon=1.0):
    n = N if max_rows is None else PEOPLE
    model = AutoGP((0.0, 1.0), stages=stages)
    return model.plan_rows(
        GRID, n, X_star=[[0.2, 0], [0.8, 2]], epsilon=epsilon, delta=0.01, max_rows=max_rows
    )


def a_table(seed=0, n=N):
    random = np.random.default_rng(seed)
    return {"a": random.uniform(-0.2, 1.2, n), "k": random.choice(["x", "y", "z"], n)}, random.uniform(size=n)


def ids_of(n=N):
    return [f"person {number % PEOPLE}" for number in range(n)]


def released(plan, X, y, **options):
    people = ids_of(len(y)) if plan.rule.population.max_rows else None
    return plan.release(X, y, people=people, **options)


@cache
def parts_of(max_rows=None, seed=0):
    """What all stages measure, for answers that some rows and noise from a seed have given."""
    with seeded(seed):
        stages = released(a_plan(max_rows), *a_table(seed)).stages
    require(len(stages) == 3 and stages[2].plan.spread is not None, "a stage was left out")
    return [part for stage in stages for part in stage.plan.parts]


# ------------------------------------------------------------------------------------- neighbours


def exact(part, table):
    return room._times(part, PrivateRows(*table), "midpoint").tolist()


def check_moves(parts, mu, table, other):
    """Each part moves by at most its sensitivity, all together by at most mu, in exact fractions."""
    moved = Fraction(0)
    for part in parts:
        squared = squared_distance(exact(part, table), exact(part, other))
        assert squared <= part.sensitivity() ** 2, "a part moves further than it says"
        moved += Fraction(squared, part.sigma**2)
    assert moved <= Fraction(mu) ** 2, "all stages together move further than the promise allows"
    return moved


NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-1.0, 2.0) | st.sampled_from([0.0, 1.0])
ROW = st.tuples(NUMBERS, st.sampled_from(["x", "y", "z", "other", None]), NUMBERS)
ROWS = st.lists(ROW, min_size=N, max_size=N)


def as_table(found, people=None):
    a, k, y = zip(*found, strict=True)
    return {"a": np.array(a), "k": np.array(k, dtype=object)}, np.array(y), people


@given(found=ROWS, row=ROW, place=st.integers(0, N - 1), seed=st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_a_row_that_goes_anywhere_moves_all_stages_by_no_more_than_mu(found, row, place, seed):
    other = [*found[:place], row, *found[place + 1 :]]
    check_moves(parts_of(None, seed), a_plan().rule.promise.mu, as_table(found), as_table(other))


THEIRS = st.lists(ROW, min_size=1, max_size=4)


@given(
    everyone=st.lists(THEIRS, min_size=PEOPLE, max_size=PEOPLE), other=THEIRS, who=st.integers(0, PEOPLE - 1)
)
@settings(max_examples=40, deadline=None)
def test_a_person_with_other_rows_more_or_fewer_moves_all_stages_by_no_more_than_mu(everyone, other, who):
    changed = [*everyone[:who], other, *everyone[who + 1 :]]
    tables = []
    for lists in (everyone, changed):
        people = [number for number, theirs in enumerate(lists) for _ in theirs]
        tables.append(as_table([row for theirs in lists for row in theirs], people))
    check_moves(parts_of(MOST), a_plan(MOST).rule.promise.mu, *tables)


def worst_pairs(people=None):
    """One row, or one person's two, from each cell to each other, from one end of its window to the other."""
    places = [(a, k) for a in (0.1, 0.4, 0.6, 0.9) for k in ("x", "y", "z")]
    own = [0] if people is None else [row for row, who in enumerate(people) if who == people[0]]
    for one in places:
        for another in places:
            pair = []
            for place, y in ((one, -1e9), (another, 1e9)):
                found = [(0.5, "x", 0.5)] * N
                for row in own:
                    found[row] = (*place, y)
                pair.append(as_table(found, people))
            yield pair


@pytest.mark.parametrize("most", [None, MOST])
def test_the_worst_neighbours_come_near_mu(most):
    """So that the tests above are not passed by noise that is far too large."""
    parts, mu = parts_of(most), a_plan(most).rule.promise.mu
    people = None if most is None else ids_of()
    moves = [check_moves(parts, mu, *pair) for pair in worst_pairs(people)]
    assert max(moves) > 0.7 * mu**2


def _uncentred(y, lattice):
    return _right(y, lattice._replace(centred=False))


_right = room.to_integers


def _all_kept(labels, cells, most):
    return np.ones(len(labels), dtype=np.int64)


def _of_norms(matrix, origin):
    return whole_rows.largest_squared_norm(matrix)


def test_planted_bugs_are_caught(monkeypatch):
    """A person's rows that all count, counts with noise for one column."""
    people = [0, 0, 0, 0, 1, 2, 3, 4]
    for most, ids in ((None, None), (MOST, people)):
        parts, mu = parts_of(most), a_plan(most).rule.promise.mu
        pairs = list(worst_pairs(ids))
        for pair in pairs:
            check_moves(parts, mu, *pair)
        with monkeypatch.context() as patch:
            patch.setattr(rows, "evenly_kept", _all_kept)
            caught = [fails(check_moves, parts, mu, *pair, because="further") for pair in pairs]
            assert any(caught) == (most is not None)
        with monkeypatch.context() as patch:
            patch.setattr(whole_rows, "furthest_squared", _of_norms)
            assert any(fails(check_moves, parts, mu, *pair, because="further") for pair in pairs)


def test_a_row_at_the_top_of_its_window_that_goes_to_an_opposite_cell_is_caught_if_y_is_not_centred(
    monkeypatch,
):
    """Uncentred, it would move the sums twice as far as noise is for."""
    signs = np.where(np.arange(len(GRID)) % 2 == 0, 1.0, -1.0)[None]
    given = (0.0, 1.0), np.ones(len(GRID)), GRID, Population(N), 1.0, 0.01, 0.3, Part(0.5, 100)
    part = whole_rows.make_sums(signs, *given)
    found = [(0.5, "x", 0.5)] * N
    pair = [as_table([(0.1, level, 1.0), *found[1:]]) for level in ("x", "y")]
    assert check_moves([part], 1.0, *pair) > 0
    monkeypatch.setattr(room, "to_integers", _uncentred)
    assert fails(check_moves, [part], 1.0, *pair, because="further")


def test_headroom_is_for_all_rows_in_one_cell():
    """Real counts decide nothing: a matrix that has room for the estimates alone is refused."""
    part = parts_of()[1]
    q, M = part.matrix.shape
    large = np.zeros((q, M), dtype=np.int64)
    large[0, 0] = 2 ** (61 - part.y_bits)
    tight = replace(part, matrix=large, estimated=np.full(M, 1e-9))
    require(int(np.abs(large).max()) << part.y_bits < 2**62, "one row alone has no room")
    with pytest.raises(AssertionError, match="overflow"):
        tight.check()


@pytest.mark.parametrize("most", [1, 2, 3])
def test_which_rows_count_depends_on_ones_own_rows_alone(most):
    random = np.random.default_rng(most)
    labels, cells = random.integers(0, 6, 60), random.integers(0, 9, 60)
    kept = rows.evenly_kept(labels, cells, most)
    own = np.bincount(labels, minlength=6)
    assert np.array_equal(np.bincount(labels, kept, 6), np.minimum(own, most))
    for person in range(6):
        theirs = labels == person
        alone = rows.evenly_kept(np.zeros(own[person], dtype=np.intp), cells[theirs], most)
        assert np.array_equal(kept[theirs], alone)


# ----------------------------------------------------------------------------- the same steps


TABLES = [
    a_table(1),
    a_table(2),
    ({"a": np.full(N, 1e308), "k": np.array(["x"] * N)}, np.full(N, -1e308)),
    ({"a": np.full(N, NAN), "k": np.array(["?"] * N)}, np.full(N, NAN)),
    ({"a": np.full(N, 5e-324), "k": np.array(["z"] * N)}, np.full(N, np.inf)),
]


def check_same_steps(plan, tables):
    """A first stage runs the same instructions on every table, and warns on none."""
    people = ids_of() if plan.rule.population.max_rows else None
    parts = parts_of(plan.rule.population.max_rows)

    def measured(table):
        for part in parts:
            room.measure(part, PrivateRows(*table, people), "midpoint")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        measured(tables[0])
        traces = [trace(measured, table) for table in tables]
    require(any(step[0].endswith("private/rows.py") for step in traces[0]), "the private room was not traced")
    for other in traces[1:]:
        assert other == traces[0], "what is executed depends on the rows"
    assert [str(w.message) for w in caught] == [], "a warning tells of the rows"


@pytest.mark.parametrize("most", [None, MOST])
def test_the_same_instructions_run_whatever_the_rows_hold(most):
    plan, _ = a_plan(most), parts_of(most)  # what is public, without strictness
    with np.errstate(all="raise"):
        check_same_steps(plan, TABLES)


def test_the_same_instructions_run_for_whatever_should_be_dates():
    held = (["2024-05-31", "2024-06-01T12:00Z"], ["soon", "2024-13-45"], [None, ""])
    traces = [trace(rows._days, np.array(cells, dtype=object)) for cells in held]
    require(any(step[0].endswith("rows/dates.py") for step in traces[0]), "dates were not traced")
    assert traces[1] == traces[2] == traces[0]


def test_a_planted_branch_on_inputs_is_caught(monkeypatch):
    right = rows._places
    same = "def planted(axis, column):\n    return right(axis, column)\n"
    branch = same.replace("return", "if (column == 'x').all():\n        pass\n    return")
    for text, caught in ((same, False), (branch, True)):
        names = {"right": right}
        exec(compile(text, rows.__file__, "exec"), names)
        monkeypatch.setattr(rows, "_places", names["planted"])
        assert fails(check_same_steps, a_plan(), TABLES, because="what is executed") == caught


# ------------------------------------------------------------------ nothing else depends on rows


def everything_public(most, table, monkeypatch, tmp_path, caplog, capfd):
    """All that a release leaves anywhere, for answers that are given."""
    plan, random, times = a_plan(most), np.random.default_rng(0), room._times

    def answered(part, y, missing, *public):
        times(part, y, missing, *public)
        return np.rint(random.normal(size=part.n_measurements) * part.sigma).astype(np.int64)

    with monkeypatch.context() as patch:
        patch.setattr(room, "measure", answered)
        ledger = Ledger(f"sqlite:///{tmp_path / f'{len(list(tmp_path.iterdir()))}.db'}", who="me")
        ledger.create("d", epsilon=5.0, delta=0.1)
        caplog.clear()
        caplog.set_level(logging.DEBUG)
        made = released(plan, *table, ledger=ledger, dataset="d", missing="midpoint")
    made = replace(made, receipt=None)
    entries = [(e.number, e.kind, e.what, e.why, e.plan, e.answer) for e in ledger.entries()[1:]]
    return {
        "plan": (plan.digest, repr(plan), plan.inputs_digest),
        "stages": [stage.plan.to_bytes() for stage in made.stages],
        "file": staged_encoding.encode(made),
        "text": repr(made) + str(made.learned) + str(made.certificate),
        "density": made.density.counts.tobytes() + made.density.std.tobytes(),
        "entries": entries,
        "said": [record.getMessage() for record in caplog.records] + list(capfd.readouterr()),
    }


@pytest.mark.parametrize("most", [None, MOST])
def test_the_same_answers_give_the_same_bytes_whatever_the_rows_are(
    most, monkeypatch, tmp_path, caplog, capfd
):
    made = [everything_public(most, table, monkeypatch, tmp_path, caplog, capfd) for table in TABLES[::2]]
    require(len(made[0]["stages"]) == 3 and len(made[0]["entries"]) == 8, "not all stages are there")
    for other in made[1:]:
        for name, value in made[0].items():
            assert value == other[name], f"{name}: depends on the rows by another way than the answers"


def test_no_object_holds_an_input_an_outcome_a_count_or_an_id():
    (X, y), ids = a_table(3), [f"somebody-{number}-7351" for number in range(N)]
    plan = AutoGP((0.0, 1.0), stages=3).plan_rows(GRID, N, epsilon=1.0, delta=0.01, max_rows=1)
    gone = [weakref.ref(X["a"]), weakref.ref(y)]
    with seeded(3):
        made = plan.release(X, y, people=ids)
    made.predict({"a": [0.5], "k": ["y"]}, return_std=True)
    secrets = Secrets.__new__(Secrets)
    parts = [part for stage in made.stages for part in stage.plan.parts]
    integers = [number for part in parts for number in exact(part, (X, y, ids))]
    secrets.spell([*X["a"], *y, X["a"].sum(), y.sum(), y.mean()], integers, {0})
    secrets.texts += tuple(ids)
    for thing in reachable(made, plan, *library_modules()):
        assert thing is not y
        assert thing is not X
        assert not secrets.found_in(thing), f"a {type(thing).__name__} holds a secret"
    del X, y
    gc.collect()
    assert [ref() for ref in gone] == [None, None], "something still refers to the rows"


def test_errors_quote_nothing_and_do_not_say_where():
    plan, (X, y) = a_plan(), a_table()
    odd = {**X, "k": np.array(["a secret level"] + ["x"] * (N - 1))}
    odder = {**X, "a": np.array([NAN] + [0.5] * (N - 1))}
    last = {**X, "a": np.array([0.5] * (N - 1) + [NAN])}
    bad = [(odd, y), (odder, y), (last, y), (X, np.where(np.arange(N) == 3, NAN, y))]
    wrong = [({"a": X["a"]}, y), (X, y[:-1]), ({**X, "a": np.array(["secret"] * N)}, y), (X, ["secret"] * N)]
    wrong += [(np.ones((N, 3)), y), ({"a": 0.5, "k": "x"}, y), (0.5, y)]
    fewer = [({name: column[:end] for name, column in X.items()}, y[:end]) for end in (-1, -2)]
    for tables in (bad, wrong, fewer):
        said = set()
        for table in tables:
            with pytest.raises(ValueError, match="Nothing was spent") as error:
                plan.release(*table)
            assert error.value.__cause__ is None
            assert error.value.__context__ is None
            said.add(str(error.value))
        assert len(said) == 1
        assert "secret" not in said.pop()


def test_whoever_gives_ids_where_none_belong_or_of_another_number_of_people_is_refused():
    X, y = a_table()
    with pytest.raises(ValueError, match="people"):
        a_plan().release(X, y, people=ids_of())
    for ids in (None, list(range(N)), [None, *ids_of()[1:]], ids_of()[1:]):
        with pytest.raises(ValueError, match="people"):
            a_plan(MOST).release(X, y, people=ids)


def test_counts_are_refused_that_do_not_count_one_for_each_row():
    counts = parts_of()[0]
    assert isinstance(counts, Counts)
    counts.check()
    for change in (
        {"y_bits": 1},
        {"upper": 2.0},
        {"population": Population(0)},
        {"sigma": counts.sigma // 2},
    ):
        with pytest.raises(AssertionError):
            replace(counts, **change).check()


def test_sums_of_outcomes_without_a_middle_are_refused():
    """With no bits, an outcome would count as 0 or 1, uncentred, and a row that moves as two."""
    sums = next(part for part in parts_of() if type(part) is whole_rows.RowSums)
    flat = replace(sums, y_bits=0, sigma=sums.sigma)
    with pytest.raises(AssertionError, match="no middle"):
        flat.check()
