"""A release in stages keeps one promise: attacked as every mechanism is, through all of its stages.

A stage is chosen from the answers before it. So every attack here is given the choices, as plans of stages:
for any choices, one row moves the answers of all stages together by no more than the noise was made for; and
the choices are functions of the answers.
"""

from __future__ import annotations

import gc
import logging
import pickle
import weakref
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_helpers import (
    fails,
    require,
    seeded,
    small_staged_plan,
    some_stages,
    squared_distance,
)
from test_control_flow import BUGS as BRANCHES
from test_control_flow import _planted, check_same_steps, neighbours
from test_empirical_epsilon import epsilon_lower_limit
from test_no_trace_of_y import (
    BAD,
    BOUNDS,
    N,
    Secrets,
    check_errors_tell_nothing,
    library_modules,
    private_outcomes,
    reachable,
)

from cloakgp import Ledger, accounting
from cloakgp.files import container
from cloakgp.measurements.lattice import Part, to_integers
from cloakgp.measurements.spread import make_spread
from cloakgp.plans import staged_encoding
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.plans.stages import StagePlan, Walk
from cloakgp.private import room
from cloakgp.rows.merging import Groups

pytestmark = pytest.mark.usefixtures("few_models")  # privacy does not depend on how well models are learned

PLANS = {
    "distinct rows": {},
    "equal rows": {"repeats": 3},
    "other bounds": {"bounds": (-40.0, 60.0), "stages": 4},
    "large epsilon": {"epsilon": 8.0, "stages": 2},
    "small epsilon": {"epsilon": 0.02, "stages": 5},
}
every_plan = pytest.mark.parametrize("options", PLANS.values(), ids=PLANS)

# ------------------------------------------------------------------------------------- neighbours


def exact(part, y):
    """What a part would answer without noise, in Python integers."""
    return room._times(part, np.asarray(y, dtype=float), "midpoint").tolist()


def check_moves(parts, mu, y, other):
    """Each part moves by at most its sensitivity, and all together by at most mu, in exact fractions."""
    moved = Fraction(0)
    for part in parts:
        squared = squared_distance(exact(part, y), exact(part, other))
        assert squared <= part.sensitivity() ** 2, "a part moves further than it says"
        moved += Fraction(squared, part.sigma**2)
    assert moved <= Fraction(mu) ** 2, "all stages together move further than the promise allows"
    return moved


ANY = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-3.0, 3.0) | st.sampled_from([0.0, 1.0])
ROWS = 6


def outcomes():
    return st.lists(ANY, min_size=ROWS, max_size=ROWS)


@every_plan
@given(y=outcomes(), value=ANY, row=st.integers(0, ROWS - 1), seed=st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_one_row_moves_all_stages_together_by_no_more_than_mu(options, y, value, row, seed):
    """Whatever the outcomes are, missing ones and ones outside of windows included."""
    plan = small_staged_plan(**options)
    parts = [part for stage in some_stages(plan, seed) for part in stage.parts]
    require(sum(part.lattice.centre is not None for part in parts) == plan.stages - 1, "nothing to look at")
    check_moves(parts, plan.rule.promise.mu, y, [*y[:row], value, *y[row + 1 :]])


@every_plan
def test_the_neighbours_that_move_windows_most_come_near_mu(options):
    """So that the test above is not passed by noise that is far too large. A tenth is for the noise level."""
    plan = small_staged_plan(**options)
    low, high = plan.rule.bounds
    y = np.full(ROWS, low + (high - low) / 2)
    parts = [part for stage in some_stages(plan) for part in stage.parts]
    moves = []
    for row in range(ROWS):
        below, above = y.copy(), y.copy()
        below[row], above[row] = low - 1e9, high + 1e9
        moves.append(check_moves(parts, plan.rule.promise.mu, below, above))
    assert max(moves) > 0.85 * plan.rule.promise.mu**2


@st.composite
def windowed(draw):
    """A measurement in windows of any place and width, its rows shared or not, and a sum of distances."""
    n, q = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    numbers = st.floats(-1e6, 1e6)
    lower = np.array(draw(st.lists(numbers, min_size=n, max_size=n)))
    width = np.array(draw(st.lists(st.floats(1e-3, 1e6), min_size=n, max_size=n)))
    B = np.array(draw(st.lists(st.floats(-1, 1), min_size=n * q, max_size=n * q))).reshape(q, n)
    B = B + np.eye(q, n) * 1e-3  # not all zero
    B /= max(1.0, np.linalg.norm(B, axis=0).max())
    labels = np.array(draw(st.permutations([*range(n), *draw(st.lists(st.integers(0, n - 1), max_size=3))])))
    groups = Groups(labels, np.bincount(labels)) if draw(st.booleans()) else None
    promise, mu = (1.0, 0.01), 0.3
    part = Part(0.5, 100)
    bounds = float(lower.min()), float((lower + width).max())
    centre = np.array(draw(st.lists(numbers, min_size=n, max_size=n)))
    limit = draw(st.floats(1e-3, 2e6))
    measurement = to_integers(B, (lower, lower + width), *promise, mu, groups=groups, part=part)
    spread = make_spread(centre, limit, bounds, groups, *promise, mu, part)
    return measurement, spread


@given(parts=windowed(), seed=st.integers(0, 2**32), value=ANY | st.floats(-3e6, 3e6))
@settings(max_examples=150, deadline=None)
def test_one_row_moves_any_windows_and_distances_by_no_more_than_they_say(parts, seed, value):
    random = np.random.default_rng(seed)
    y = random.uniform(-3e6, 3e6, parts[0].n_rows)
    other = y.copy()
    other[random.integers(len(y))] = value
    check_moves(parts, np.hypot(parts[0].mu(), parts[1].mu()) * (1 + 1e-15), y, other)


def _unclipped(y, lattice):
    share = (np.nan_to_num(y, posinf=0, neginf=0) - lattice.lower) / (lattice.upper - lattice.lower)
    return np.rint(np.clip(share, -4, 4) * 2**lattice.y_bits).astype(np.int64)


def _unlimited(y, lattice):
    if lattice.centre is None:
        return _right_integers(y, lattice)
    return np.rint(
        np.abs(np.clip(y, lattice.lower, lattice.upper) - lattice.centre) / lattice.limit * 2**24
    ).astype(np.int64)


def _in_the_bounds(y, lattice):
    """Clipped to the widest bounds that there are, but in units of the window."""
    share = (np.clip(y, np.min(lattice.lower), np.max(lattice.upper)) - lattice.lower) / (
        lattice.upper - lattice.lower
    )
    return np.rint(share * 2**lattice.y_bits).astype(np.int64)


_right_integers = room.to_integers


@pytest.mark.parametrize("bug", [_unclipped, _unlimited, _in_the_bounds])
def test_planted_bugs_in_windows_and_distances_are_caught(monkeypatch, bug):
    plan = small_staged_plan(epsilon=8.0, stages=2, bounds=(-40.0, 60.0))
    stages = some_stages(plan)
    near = replace(stages[1].spread, limit=stages[1].spread.limit / 5)  # so that much is beyond it
    parts = [stages[0].measurement, stages[1].measurement, near]
    y = np.zeros(ROWS)
    pairs = [
        ([*y[:row], 60.0, *y[row + 1 :]], [*y[:row], value, *y[row + 1 :]])
        for row in range(ROWS)
        for value in (-40.0, *np.ravel(stages[1].spread.centre), 1e9)
    ]
    for pair in pairs:
        check_moves(parts, plan.rule.promise.mu, *pair)
    monkeypatch.setattr(room, "to_integers", bug)
    with np.errstate(all="ignore"):
        assert any(fails(check_moves, parts, plan.rule.promise.mu, *pair) for pair in pairs)


# ----------------------------------------------------------------- choices depend on answers alone


def test_with_frozen_noise_the_first_answer_moves_by_no_more_than_its_sensitivity(monkeypatch):
    """As released; later stages differ, since they were chosen from it."""
    plan, answers = small_staged_plan(), []
    for value in (-7.0, 7.0):
        draws = np.random.default_rng(0)
        monkeypatch.setattr(
            room, "add_noise", lambda e, s, d=draws: e + np.rint(d.normal(size=e.shape) * s).astype(np.int64)
        )
        answers.append(plan.release(np.array([0.1, value, 0.4, 0.5, 0.3, 0.9])).stages[0].answer.tolist())
    assert 0 < squared_distance(*answers) <= plan.first.measurement.sensitivity() ** 2


def fixed(monkeypatch, seed=0):
    """Every measurement is answered as from a seed, after y went through the room as always."""
    random, times = np.random.default_rng(seed), room._times

    def answered(part, y, *given):
        times(part, y, *given)
        return part.midpoint + np.rint(random.normal(size=part.n_measurements) * part.sigma).astype(np.int64)

    monkeypatch.setattr(room, "measure", answered)


def everything_public(plan, y, monkeypatch, tmp_path, caplog, capfd):
    """All that a release leaves anywhere, for answers that are given."""
    with monkeypatch.context() as patch:
        fixed(patch)
        ledger = Ledger(f"sqlite:///{tmp_path / f'{len(list(tmp_path.iterdir()))}.db'}", who="me")
        ledger.create("d", epsilon=5.0, delta=0.1)
        caplog.clear()
        caplog.set_level(logging.DEBUG)
        release = plan.release(y, ledger=ledger, dataset="d", missing="midpoint")
    release = replace(release, receipt=None)  # it names the ledger, which has a name of its own
    mean, std = release.predict(np.linspace(-1, 2, 5)[:, None], return_std=True)
    said = [record.getMessage() for record in caplog.records]
    entries = [(e.number, e.kind, e.what, e.why, e.plan, e.answer) for e in ledger.entries()[1:]]
    return {
        "stages": [stage.plan.to_bytes() for stage in release.stages],
        "file": staged_encoding.encode(release),
        "pickle": [pickle.dumps(part) for part in (release.settings, release.weights.tobytes())],
        "text": repr(release) + str(release.learned) + str(release.certificate),
        "predictions": [a.tobytes() for a in (mean, std, release.noise_std, release.gp_std)],
        "samples": release.sample([[0.5]], 2, 0).tobytes(),
        "entries": entries,
        "said": said + list(capfd.readouterr()),
    }


def check_same(first, second):
    for name, value in first.items():
        assert value == second[name], f"{name}: depends on y by another way than the answers"


def odd_outcomes(n=ROWS):
    return [np.linspace(0, 1, n), np.full(n, 1e300), np.array([np.nan, -np.inf] + [0.2] * (n - 2))]


def test_the_same_answers_give_the_same_bytes_whatever_y_is(monkeypatch, tmp_path, caplog, capfd):
    """Stage plans, file, predictions, texts, the ledger's entries and what is said."""
    plan = small_staged_plan()
    made = [everything_public(plan, y, monkeypatch, tmp_path, caplog, capfd) for y in odd_outcomes()]
    require(len(made[0]["stages"]) == 3 and len(made[0]["entries"]) == 8, "not all stages are there")
    for other in made[1:]:
        check_same(made[0], other)


def test_planted_looks_at_y_between_stages_are_caught(monkeypatch, tmp_path, caplog, capfd):
    """A window, a schedule, a text or a log that knows y."""
    plan, right_stage, right_measure = small_staged_plan(), Walk.next_stage, StagedPlan._measure_stage

    def wider(walk, number):
        found = right_stage(walk, number)
        move = 1e-9 * float(np.nan_to_num(seen[-1], posinf=1, neginf=1).mean() > 0.6)
        return replace(found, measurement=replace(found.measurement, upper=found.measurement.upper + move))

    def log(self, stage, y, missing):
        logging.getLogger("cloakgp").info("clipped %d", int((np.asarray(y) > 1).sum()))
        return right_measure(self, stage, y, missing)

    def remember(self, stage, y, missing):
        seen.append(y)
        return right_measure(self, stage, y, missing)

    for changes in ({"next_stage": wider, "_measure_stage": remember}, {"_measure_stage": log}):
        seen = []
        with monkeypatch.context() as patch:
            for name, change in changes.items():
                patch.setattr(Walk if name == "next_stage" else StagedPlan, name, change)
            made = [everything_public(plan, y, patch, tmp_path, caplog, capfd) for y in odd_outcomes()[:2]]
        assert fails(check_same, *made, because="depends on y")


# ----------------------------------------------------------------------------------- no trace of y


class StagedSecrets(Secrets):
    """Every number that y passes through in any stage, before noise hides it."""

    def __init__(self, stages, y):
        floats, integers, public = [*y, y.sum(), y.mean(), y.std(), y.min(), y.max()], [], {0}
        for part in (part for stage in stages for part in stage.parts):
            lattice = part.lattice.at(part.labels)
            clipped = np.clip(y, lattice.lower, lattice.upper)
            inside = (clipped > lattice.lower) & (clipped < lattice.upper)
            moved = clipped - lattice.lower
            if lattice.centre is not None:
                moved = np.minimum(np.abs(clipped - lattice.centre), lattice.limit)
                inside &= moved < lattice.limit
            floats += [*moved[inside], clipped.sum(), clipped.mean(), moved.sum(), moved.mean()]
            integers += [*room.to_integers(y, lattice).tolist(), *exact(part, y)]
            public.add(2**lattice.y_bits)
        self.spell(floats, integers, public)


def a_staged_plan():
    return small_staged_plan(n_rows=N, n_outputs=4, bounds=BOUNDS, epsilon=4.0)


def check_no_trace(release, plan, secrets, y):
    things = reachable(release, plan, *library_modules())
    require(any(thing is plan.first.measurement.matrix for thing in things), "the walk did not get there")
    require(any(thing is room.measure for thing in things), "the walk did not get to the private room")
    for thing in things:
        assert thing is not y, "y itself is still referred to"
        if isinstance(thing, np.ndarray):
            assert not np.shares_memory(thing, y), "y's memory is still referred to"
        assert not secrets.found_in(thing), f"a {type(thing).__name__} holds a secret"


@pytest.fixture(scope="module")
def made():
    """A release, with all that was made of it."""
    plan, y = a_staged_plan(), private_outcomes()
    with seeded(0):
        release = plan.release(y)
    release.predict(np.linspace(0, 1, 5)[:, None], return_std=True)
    return plan, y, release, StagedSecrets([stage.plan for stage in release.stages], y)


def test_a_staged_release_and_the_library_hold_nothing_of_y(made, tmp_path):
    plan, y, release, secrets = made
    require(len(secrets.integers) > 2 * N, "there is nothing to look for")
    check_no_trace(release, plan, secrets, y)
    release.save(tmp_path / "r.cloak")
    loaded = StagedRelease.load(tmp_path / "r.cloak")
    check_no_trace(loaded, loaded.plan, secrets, y)
    texts = [repr(release), str(release.learned), str(release.certificate), str(plan), repr(release.stages)]
    for output in (pickle.dumps(release), pickle.dumps(plan), (tmp_path / "r.cloak").read_bytes(), *texts):
        assert not secrets.found_in(output)


KEPT = {
    "a stage's measurements before noise": lambda release, y: exact(release.stages[1].plan.measurement, y),
    "summed distances before noise": lambda release, y: exact(release.stages[2].plan.spread, y),
    "y": lambda release, y: y,
    "its mean": lambda release, y: [float(y.mean())],
}


@pytest.mark.parametrize("kept", KEPT)
def test_planted_keeping_of_y_by_a_stage_is_caught(made, kept):
    plan, y, release, secrets = made
    keeper = replace(release)
    object.__setattr__(keeper.stages[2], "_kept", KEPT[kept](release, y))
    try:
        assert fails(check_no_trace, keeper, plan, secrets, y)
    finally:
        object.__delattr__(keeper.stages[2], "_kept")


def test_the_ledger_holds_nothing_of_y_but_the_answers(tmp_path):
    """Its file, byte by byte, with the stages' plans and answers in it."""
    plan, y = a_staged_plan(), private_outcomes()
    ledger = Ledger(f"sqlite:///{tmp_path / 'l.db'}")
    ledger.create("d", epsilon=9.0, delta=0.1)
    release = plan.release(y, ledger=ledger, dataset="d")
    secrets = StagedSecrets([stage.plan for stage in release.stages], y)
    secrets.texts = tuple(text for text in secrets.texts if len(text) > 9)  # short ones occur by chance
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    require(all(stage.answer[:1].tobytes() in held for stage in release.stages), "the answers are not there")
    assert not secrets.found_in(held)
    assert secrets.found_in(held + np.array(exact(release.stages[1].plan.spread, y)).tobytes())


@pytest.mark.parametrize("case", BAD)
def test_errors_of_a_staged_release_tell_nothing_and_nothing_is_paid(tmp_path, case):
    """Whether y is found to be unusable before the payment, or by the first stage."""
    plan, ledger = a_staged_plan(), Ledger(f"sqlite:///{tmp_path / 'l.db'}")
    ledger.create("d", epsilon=9.0, delta=0.1)
    check_errors_tell_nothing(lambda y: plan.release(y, ledger=ledger, dataset="d"), BAD[case])
    assert len(ledger.entries()) == 2
    check_errors_tell_nothing(plan.release, BAD[case])


def test_looking_whether_y_is_usable_leaves_nothing_behind():
    """No noise is drawn, nothing comes back, and y is let go."""
    plan, y = a_staged_plan(), private_outcomes()
    secrets, alive = StagedSecrets(some_stages(plan), y), weakref.ref(y)
    assert room.check_usable(plan.first.measurement, y, "error") is None
    check_no_trace(plan, plan, secrets, y)
    del y
    gc.collect()
    assert alive() is None


def test_y_is_let_go_after_all_stages():
    y = private_outcomes()
    alive = weakref.ref(y)
    release = a_staged_plan().release(y)
    del y
    gc.collect()
    assert alive() is None
    assert all(stage.answer.base is None for stage in release.stages)


# ------------------------------------------------------------------------------------ control flow


def as_plan(stages):
    """The private steps of stages whose plans are given; what is between them sees answers alone."""

    def release(y, missing):
        room.check_usable(stages[0].measurement, y, missing)
        for stage in stages:
            for part in stage.parts:
                room.measure(part, y, missing)

    return SimpleNamespace(release=release)


@every_plan
def test_the_same_instructions_run_in_every_stage_whatever_y_holds(options):
    plan = small_staged_plan(**options)
    steps, bounds = as_plan(some_stages(plan)), plan.rule.bounds
    check_same_steps(steps, neighbours(*bounds))
    check_same_steps(steps, neighbours(*bounds, missing=True), missing="midpoint")


def test_strict_floating_point_settings_do_not_make_stages_speak():
    steps, datasets = as_plan(some_stages(small_staged_plan())), neighbours(0.0, 1.0, missing=True)
    with np.errstate(all="raise"):
        check_same_steps(steps, datasets, missing="midpoint")


BRANCHES = BRANCHES | {
    "loop only over missing rows": """
def planted(y, m):
    y = y.copy()
    for row in np.flatnonzero(np.isnan(y)):
        y[row] = 0.5
    return right(y, m)
""",
    "branch on distances alone": """
def planted(y, m):
    if m.centre is not None and (np.abs(y - m.centre) > m.limit).any():
        y = y + 0
    return right(y, m)
""",
}


@pytest.mark.parametrize("bug", BRANCHES)
def test_planted_dependence_on_y_in_a_stage_is_caught(monkeypatch, bug):
    steps = as_plan(some_stages(small_staged_plan()))
    monkeypatch.setattr(room, "to_integers", _planted(BRANCHES[bug]))
    assert fails(check_same_steps, steps, neighbours(0.0, 1.0, missing=True), missing="midpoint")


# --------------------------------------------------------------------------------- empirical epsilon


def worst_pair(plan):
    """One row beyond either bound: of all rows, the one that moves the first stage most."""
    low, high = plan.rule.bounds
    y = np.full(plan.certificate.n_rows, low + (high - low) / 2)
    norms = (plan.first.measurement.matrix.astype(float) ** 2).sum(axis=0)
    below, above = y.copy(), y.copy()
    row = int(np.argmax(norms))
    below[row], above[row] = low - 1, high + 1
    return below, above


def log_ratio(parts, answers, pair):
    """The log of the likelihood ratio of the second to the first, given all choices: the best test there is.

    `answers` has a row for each release.
    """
    total, start = np.zeros(len(answers)), 0
    for part in parts:
        first, second = (np.array(exact(part, y)) for y in pair)
        z, start = answers[:, start : start + len(first)], start + len(first)
        move = (second - first).astype(float) / part.sigma
        total += (z - first).astype(float) / part.sigma @ move - move @ move / 2
    return total


def in_bulk(plan, pair, which, n):
    """Answers of stages whose plans are given, many at a time, through the private room's own functions."""
    parts = [part for stage in some_stages(plan) for part in stage.parts]
    drawn = []
    for part in parts:
        repeated = np.tile(np.array(exact(part, pair[which])), n)
        drawn.append(room.add_noise(repeated, part.sigma).reshape(n, -1))
    return log_ratio(parts, np.hstack(drawn), pair)


def from_a_seed(plan, pair, which, n):
    """The same with noise that is drawn faster."""
    with seeded(which):
        return in_bulk(plan, pair, which, n)


def whole(plan, pair, which, n):
    """Whole releases, each stage chosen from the answers before it."""
    ratios = []
    with seeded(which):  # fast noise
        for _ in range(n):
            stages = plan.release(pair[which]).stages
            parts = [part for stage in stages for part in stage.plan.parts]
            answers = np.concatenate([stage.answer for stage in stages])
            ratios.append(log_ratio(parts, answers[None], pair)[0])
    return np.array(ratios)


def check_epsilon(plan, draw, n, least=0.0):
    """The lower limit from n releases of each neighbour is below the promise, and not far below."""
    pair, c = worst_pair(plan), plan.certificate
    null, alternative = (draw(plan, pair, which, n) for which in (0, 1))
    # The best threshold by Neyman and Pearson is epsilon; lower ones see more positives.
    thresholds = [c.epsilon - less * c.mu for less in (0.4, 0.7, 1.0)]
    limit = epsilon_lower_limit(null, alternative, thresholds, c.delta)
    assert limit <= c.epsilon, "releases tell neighbours apart better than promised"
    require(limit > least, f"the attack finds {limit} only")


def less_noise(times):
    """Drawn by numpy, which is faster."""
    random = np.random.default_rng()

    def add_noise(exact, sigma):
        return exact + np.rint(random.normal(size=exact.shape) * times * sigma).astype(np.int64)

    return add_noise


@pytest.mark.parametrize(("stages", "draw"), [(2, in_bulk), (3, from_a_seed), (5, from_a_seed)])
def test_the_best_attack_on_all_stages_together_stays_below_the_promise(monkeypatch, stages, draw):
    """Given the choices; and noise that is forty percent too small in every stage is caught."""
    plan = small_staged_plan(epsilon=1.0, delta=0.1, n_rows=3, n_outputs=1, stages=stages)
    check_epsilon(plan, draw, 12_000, least=0.35)
    monkeypatch.setattr(room, "add_noise", less_noise(0.6))
    assert fails(check_epsilon, plan, draw, 12_000)


def test_planted_shares_of_a_whole_promise_each_are_caught(monkeypatch):
    """Noise in every stage as if it were the only one: right for each, and too little for all."""
    plan = small_staged_plan(epsilon=1.0, delta=0.1, stages=3)
    right, shares = room.add_noise, {}
    for part in (part for stage in some_stages(plan) for part in stage.parts):
        shares[part.sigma] = part.part.share
    monkeypatch.setattr(room, "add_noise", lambda e, sigma: right(e, int(sigma * shares[sigma] ** 0.5)))
    assert fails(check_epsilon, plan, from_a_seed, 12_000)


@pytest.mark.slow
def test_the_best_attack_on_whole_adaptive_releases_stays_below_the_promise(monkeypatch):
    """Every stage chosen anew from the answers before it; and halved noise is caught."""
    plan = small_staged_plan(epsilon=1.0, delta=0.1, stages=2, n_rows=3, n_outputs=1)
    check_epsilon(plan, whole, 1500, least=0.1)
    monkeypatch.setattr(room, "add_noise", less_noise(0.5))
    assert fails(check_epsilon, plan, whole, 1500)


def test_the_certificate_names_what_all_stages_spend():
    """Dearer than any one stage; as one measurement with the same mu."""
    plan = small_staged_plan()
    spent = sum(Fraction(part.mu()) ** 2 for stage in some_stages(plan) for part in stage.parts)
    assert 0.999 * plan.rule.promise.mu**2 < spent <= Fraction(plan.rule.promise.mu) ** 2
    assert plan.cost == accounting.Gaussian(plan.certificate.mu, plan.certificate.n_measurements)


def test_a_stage_read_back_from_its_bytes_has_the_same_integers():
    """What is on record is what the private room will be given."""
    plan = small_staged_plan()
    for number, stage in enumerate(some_stages(plan)):
        again = StagePlan.from_bytes(stage.to_bytes(), plan.rule, number)
        assert container.pack(*again.described()) == stage.to_bytes()
        y = np.linspace(-0.5, 1.5, ROWS)
        assert [exact(p, y) for p in again.parts] == [exact(p, y) for p in stage.parts]
