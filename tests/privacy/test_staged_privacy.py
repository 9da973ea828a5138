"""A release in stages is attacked as every mechanism is; where inputs are private as well, through these too.

Answers are given, or noise is, and everything else that a release leaves anywhere may not depend on what is
private: the choices of later stages, files, texts, the ledger, what is said, and the instructions that run.
How far neighbours move all answers together is in ``test_stage_neighbours``.
"""

from __future__ import annotations

import gc
import logging
import pickle
import weakref
from dataclasses import replace
from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from privacy_helpers import fails, parts_of, require, seeded, small_staged_plan, some_parts
from test_control_flow import BUGS as BRANCHES
from test_control_flow import _planted, check_same_steps, neighbours, trace
from test_no_trace_of_y import (
    PLANS,
    Secrets,
    library_modules,
    private_outcomes,
    reachable,
    whole_rows_in_bins,
)

from cloakgp import AutoGP, Grid, Ledger, Plan
from cloakgp.core import accounting
from cloakgp.files import container
from cloakgp.private import room, rows
from cloakgp.private.rows import PrivateRows
from cloakgp.release import encoding
from cloakgp.release.stages import Session, Stage
from measured import exact

pytestmark = pytest.mark.usefixtures("few_models")  # privacy does not depend on how well models are learned

ROWS, NAN = 6, float("nan")
STAGED = PLANS["stages"]
GRID = Grid({"a": (0.0, 1.0), "k": ["x", "y", "z"]}, cells=4)


def whole_rows_plan(max_rows=None):
    """For eight rows, or five people with up to two each."""
    n = 8 if max_rows is None else 5
    model = AutoGP((0.0, 1.0), stages=3)
    return model.plan_rows(GRID, n, X_star=[[0.2, 0], [0.8, 2]], epsilon=1.0, delta=0.01, max_rows=max_rows)


def table(seed=0, n=8):
    random = np.random.default_rng(seed)
    return {"a": random.uniform(-0.2, 1.2, n), "k": random.choice(["x", "y", "z"], n)}, random.uniform(size=n)


def odd_tables(n=8):
    return [
        table(1),
        ({"a": np.full(n, 1e308), "k": np.array(["x"] * n)}, np.full(n, -1e308)),
        ({"a": np.full(n, NAN), "k": np.array(["?"] * n)}, np.full(n, NAN)),
        ({"a": np.full(n, 5e-324), "k": np.array(["z"] * n)}, np.full(n, np.inf)),
    ]


def odd_outcomes(n=ROWS):
    return [
        (y,) for y in (np.linspace(0, 1, n), np.full(n, 1e300), np.array([NAN, -np.inf] + [0.2] * (n - 2)))
    ]


KINDS = {  # what is private with y, and ids where people have rows
    "outcomes": (small_staged_plan, odd_outcomes(), None),
    "whole rows": (whole_rows_plan, odd_tables(), None),
    "whole rows of people": (lambda: whole_rows_plan(2), odd_tables(), [f"person {i % 5}" for i in range(8)]),
}


def released(kind, private, **options):
    make, _, ids = KINDS[kind]
    return make().release(*private, **options, **({} if ids is None else {"people": ids}))


def given(kind, private):
    """As the room is given it."""
    return private[0] if len(private) == 1 else PrivateRows(*private, KINDS[kind][2])


@cache
def parts_for(kind):
    with seeded(0):
        return parts_of(released(kind, KINDS[kind][1][0]))


every_kind = pytest.mark.parametrize("kind", KINDS)

# ----------------------------------------------------------------- choices depend on answers alone


def everything_public(kind, private, monkeypatch, tmp_path, caplog, capfd):
    """All that a release leaves anywhere, for answers that are given."""
    random, right = np.random.default_rng(0), room.measure

    def answered(parts, y, *more):
        right(parts, y, *more)  # through the room as always
        drawn = [np.rint(random.normal(size=m.n_measurements) * m.sigma) for m in parts]
        return np.concatenate([m.midpoint + z.astype(np.int64) for m, z in zip(parts, drawn, strict=True)])

    with monkeypatch.context() as patch:
        patch.setattr(room, "measure", answered)
        ledger = Ledger(f"sqlite:///{tmp_path / f'{len(list(tmp_path.iterdir()))}.db'}", who="me")
        ledger.create("d", epsilon=5.0, delta=0.1)
        caplog.clear()
        caplog.set_level(logging.DEBUG)
        release = released(kind, private, ledger=ledger, dataset="d", missing="midpoint")
    release = replace(release, receipt=None)  # it names the ledger, which has a name of its own
    entries = [(e.number, e.kind, e.what, e.why, e.plan, e.answer) for e in ledger.entries()[1:]]
    at = np.array([[0.5]]) if kind == "outcomes" else {"a": [0.5], "k": ["y"]}
    return {
        "plan": (release.plan.digest, repr(release.plan), release.plan.inputs_digest),
        "stages": [stage.to_bytes() for stage in release.stages],
        "file": encoding.encode(release),
        "pickle": [pickle.dumps(part) for part in (release.settings, release.weights.tobytes())],
        "text": repr(release) + str(release.learned) + str(release.certificate),
        "predictions": [a.tobytes() for a in (*release.predict(at, return_std=True), release.noise_std)],
        "samples": release.sample(at, 2, 0).tobytes(),
        "entries": entries,
        "said": [record.getMessage() for record in caplog.records] + list(capfd.readouterr()),
    }


def check_same(first, second):
    for name, value in first.items():
        assert value == second[name], f"{name}: depends on y by another way than the answers"


@every_kind
def test_the_same_answers_give_the_same_bytes_whatever_is_private(kind, monkeypatch, tmp_path, caplog, capfd):
    """Stage plans, file, predictions, texts, the ledger's entries and what is said."""
    made = [everything_public(kind, one, monkeypatch, tmp_path, caplog, capfd) for one in KINDS[kind][1][:3]]
    require(len(made[0]["stages"]) == 4 and len(made[0]["entries"]) == 5, "not all stages are there")
    for other in made[1:]:
        check_same(made[0], other)


def test_planted_looks_at_y_between_stages_are_caught(monkeypatch, tmp_path, caplog, capfd):
    """A window or a log that knows y."""
    right_stage, right_measure, seen = Session.next_stage, Plan._measure, []

    def wider(walk, number):
        found = right_stage(walk, number)
        s = found.measurement.statistic
        move = 1e-9 * float(np.nan_to_num(seen[-1], posinf=1, neginf=1).mean() > 0.6)
        return replace(
            found, measurement=replace(found.measurement, statistic=replace(s, upper=s.upper + move))
        )

    def log(self, stage, y, missing):
        logging.getLogger("cloakgp").info("clipped %d", int((np.asarray(seen[-1]) > 1).sum()))
        return right_measure(self, stage, y, missing)

    for name, change in (("next_stage", wider), ("_measure", log)):
        made = []
        for (y,) in odd_outcomes()[:2]:
            seen.append(y)
            with monkeypatch.context() as patch:
                patch.setattr(Session if name == "next_stage" else Plan, name, change)
                made.append(everything_public("outcomes", (y,), patch, tmp_path, caplog, capfd))
        assert fails(check_same, *made, because="depends on y")


# ----------------------------------------------------------------------------------- no trace of y


def test_a_release_of_whole_rows_holds_no_input_outcome_count_or_id():
    (X, y), ids = table(3), [f"somebody-{number}-7351" for number in range(8)]
    plan = AutoGP((0.0, 1.0), stages=3).plan_rows(GRID, 8, epsilon=1.0, delta=0.01, max_rows=1)
    gone = [weakref.ref(X["a"]), weakref.ref(y)]
    with seeded(3):
        made = plan.release(X, y, people=ids)
    made.predict({"a": [0.5], "k": ["y"]}, return_std=True)
    secrets = Secrets.__new__(Secrets)
    integers = [number for part in parts_of(made) for number in exact(part, PrivateRows(X, y, ids))]
    public = {0}.union(*map(whole_rows_in_bins, parts_of(made)))
    secrets.spell([*X["a"], *y, X["a"].sum(), y.sum(), y.mean()], integers, public)
    secrets.texts += tuple(ids)
    for thing in reachable(made, plan, *library_modules()):
        assert thing is not y
        assert thing is not X
        assert not secrets.found_in(thing), f"a {type(thing).__name__} holds a secret"
    del X, y
    gc.collect()
    assert [ref() for ref in gone] == [None, None], "something still refers to the rows"


def test_errors_about_whole_rows_quote_nothing_and_do_not_say_where():
    plan, (X, y), n = whole_rows_plan(), table(), 8
    odd = {**X, "k": np.array(["a secret level"] + ["x"] * (n - 1))}
    odder, last = ({**X, "a": np.where(np.arange(n) == row, NAN, 0.5)} for row in (0, n - 1))
    bad = [(odd, y), (odder, y), (last, y), (X, np.where(np.arange(n) == 3, NAN, y))]
    wrong = [({"a": X["a"]}, y), (X, y[:-1]), ({**X, "a": np.array(["secret"] * n)}, y), (X, ["secret"] * n)]
    wrong += [(np.ones((n, 3)), y), ({"a": 0.5, "k": "x"}, y), (0.5, y)]
    fewer = [({name: column[:end] for name, column in X.items()}, y[:end]) for end in (-1, -2)]
    for tables in (bad, wrong, fewer):
        said = set()
        for one in tables:
            with pytest.raises(ValueError, match="Nothing was spent") as error:
                plan.release(*one)
            assert (error.value.__cause__, error.value.__context__) == (None, None)
            said.add(str(error.value))
        assert len(said) == 1
        assert "secret" not in said.pop()
    ids = KINDS["whole rows of people"][2]
    for ids_given in (None, list(range(n)), [None, *ids[1:]], ids[1:]):
        with pytest.raises(ValueError, match="people"):
            whole_rows_plan(2).release(X, y, people=ids_given)
    with pytest.raises(ValueError, match="people"):
        plan.release(X, y, people=ids)


def test_the_ledger_holds_nothing_of_y_but_the_answers(tmp_path):
    """Its file, byte by byte, with the stages' plans and answers in it."""
    plan, y = STAGED(), private_outcomes()
    ledger = Ledger(f"sqlite:///{tmp_path / 'l.db'}")
    ledger.create("d", epsilon=9.0, delta=0.1)
    release = plan.release(y, ledger=ledger, dataset="d")
    secrets = Secrets(plan, y, parts_of(release))
    secrets.texts = tuple(text for text in secrets.texts if len(text) > 9)  # short ones occur by chance
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    require(all(stage.answer[:1].tobytes() in held for stage in release.stages), "the answers are not there")
    assert not secrets.found_in(held)
    assert secrets.found_in(held + np.array(exact(release.stages[1].spread, y)).tobytes())


# ------------------------------------------------------------------------------------ control flow


def check_same_stages(kind, private, missing="midpoint"):
    """The private steps of stages whose plans are given; what is between them sees answers alone."""

    def release(one, missing):
        room.measure(parts, room.Outcomes(given(kind, one)), missing)

    parts = parts_for(kind)
    check_same_steps(SimpleNamespace(release=release), private, missing)


@every_kind
def test_the_same_instructions_run_in_every_stage_whatever_is_private(kind):
    """Under strict floating-point settings, too."""
    datasets = list(KINDS[kind][1])
    if kind == "outcomes":
        datasets += [(y,) for y in neighbours(0.0, 1.0, missing=True)]
        check_same_stages(kind, [(y,) for y in neighbours(0.0, 1.0)], missing="error")
    with np.errstate(all="raise"):
        check_same_stages(kind, datasets)


def test_the_same_instructions_run_for_whatever_should_be_dates():
    held = (["2024-05-31", "2024-06-01T12:00Z"], ["soon", "2024-13-45"], [None, ""])
    traces = [trace(rows._days, np.array(cells, dtype=object)) for cells in held]
    require(any(step[0].endswith("data/dates.py") for step in traces[0]), "dates were not traced")
    assert traces[1] == traces[2] == traces[0]


DISTANCES = """
def planted(s, y):
    if hasattr(s, "centre") and (np.abs(y - s.centre) > s.limit).any():
        y = y + 0
    return right(s, y)
"""


BEYOND = """
def planted(s, y):
    if hasattr(s, "below") and (y > s.bounds[1]).any():
        y = y + 0
    return right(s, y)
"""


@pytest.mark.parametrize(
    "bug", [*BRANCHES.values(), DISTANCES, BEYOND], ids=[*BRANCHES, "distances", "beyond windows"]
)
def test_planted_dependence_on_y_in_a_stage_is_caught(monkeypatch, bug):
    private, _ = [(y,) for y in neighbours(0.0, 1.0, missing=True)], parts_for("outcomes")
    monkeypatch.setattr(room, "integers_of", _planted(bug))
    assert fails(check_same_stages, "outcomes", private)


def test_a_planted_branch_on_inputs_is_caught(monkeypatch):
    right = rows._places
    same = "def planted(axis, column):\n    return right(axis, column)\n"
    branch = same.replace("return", "if (column == 'x').all():\n        pass\n    return")
    for text, caught in ((same, False), (branch, True)):
        names = {"right": right}
        exec(compile(text, rows.__file__, "exec"), names)
        monkeypatch.setattr(rows, "_places", names["planted"])
        assert fails(check_same_stages, "whole rows", odd_tables(), because="what is executed") == caught


# ------------------------------------------------------------------------------------ what is on record


def test_the_certificate_names_what_all_stages_spend():
    """Dearer than any one stage; as one measurement with the same mu."""
    plan = small_staged_plan()
    spent = sum(Fraction(part.mu()) ** 2 for part in some_parts(plan))
    assert 0.999 * plan.certificate.mu**2 < spent <= Fraction(plan.certificate.mu) ** 2
    assert plan.cost == accounting.Gaussian(plan.certificate.mu, plan.certificate.n_measurements)


def test_a_stage_read_back_from_its_bytes_has_the_same_integers():
    """What is on record is what the private room will be given."""
    plan, y = small_staged_plan(), np.linspace(-0.5, 1.5, ROWS)
    with seeded(0):
        stages = plan.release(y).stages
    for number, stage in enumerate(stages):
        words, arrays, _ = container.unpack(stage.to_bytes())
        again = Stage.from_described(words, arrays, plan.rule, number)
        assert again.to_bytes() == stage.to_bytes()
        assert exact(list(again.parts), y).tolist() == exact(list(stage.parts), y).tolist()
