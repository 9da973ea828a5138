"""What would break the promise of a release in stages is refused before y is measured or anything is paid.

And the other way round: what was planned can be released, whatever y is. A release that fails once it is paid
for would be a loss, and, if it depended on y, a leak.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_helpers import fails, require, seeded, small_staged_plan, some_stages

from cloakgp import AutoGP, Ledger
from cloakgp.files import container
from cloakgp.files.container import ReleaseFileError
from cloakgp.measurements.lattice import Part
from cloakgp.plans.opening import charged_plan
from cloakgp.plans.stages import Walk
from cloakgp.private import room
from cloakgp.rows.merging import Groups

ROWS = 6
Y = np.linspace(0.1, 0.9, ROWS)

# ------------------------------------------------------------------- the room refuses a stage's parts

FORGED = {  # of any part of a stage: what makes its noise too small for what it may spend
    "less noise": lambda p: replace(p, sigma=int(0.99 * p.sigma)),
    "a finer lattice": lambda p: replace(p, y_bits=p.y_bits + 1),
    "a longer column": lambda p: replace(p, matrix=p.matrix + np.sign(p.matrix) * 2 ** (p.matrix_bits - 5)),
    "a smaller share": lambda p: replace(p, part=Part(0.95 * p.part.share, p.part.n_measurements)),
    "a stricter promise": lambda p: replace(p, epsilon=0.97 * p.epsilon),
    "more numbers to come": lambda p: replace(p, part=Part(p.part.share, 10**17)),
    "no share": lambda p: replace(p, part=Part(float("nan"), 10)),
    "numbers that are not integers": lambda p: replace(p, matrix=p.matrix.astype(float)),
    "little noise on a coarse lattice": lambda p: replace(p, sigma=2**20),
    "a window that holds nothing": lambda p: replace(p, lower=p.upper),
}


def parts():
    first, second, *_ = some_stages(small_staged_plan())
    return {"first stage": first.measurement, "windows": second.measurement, "distances": second.spread}


@pytest.mark.parametrize("door", [room.measure, room.check_usable])
@pytest.mark.parametrize("part", ["first stage", "windows", "distances"])
@pytest.mark.parametrize("forged", FORGED)
def test_the_room_refuses_a_part_whose_noise_is_too_small(monkeypatch, forged, part, door):
    """Before y is looked at."""
    drawn, part = [], parts()[part]
    door(part, Y, "error")
    monkeypatch.setattr(room, "add_noise", lambda *args: drawn.append(args))
    monkeypatch.setattr(room, "kept", lambda *args: drawn.append(args))
    with pytest.raises(AssertionError):
        door(FORGED[forged](part), Y, "error")
    assert not drawn


def test_the_room_refuses_columns_that_are_for_more_rows_than_was_counted(monkeypatch):
    """With a column of many rows counted as one, sums could wrap, which no noise hides."""
    part, looked, n = parts()["first stage"], [], ROWS
    labels = np.array([0] * (n - 1) + [1])
    true = replace(part, matrix=part.matrix[:, :2], groups=Groups(labels, np.array([n - 1, 1])))
    room.check_usable(true, Y, "error")
    monkeypatch.setattr(room, "kept", lambda *args: looked.append(args))
    with pytest.raises(AssertionError, match="as many rows"):
        room.check_usable(replace(true, groups=Groups(labels, np.array([1, n - 1]))), Y, "error")
    assert not looked


# -------------------------------------------------------------------------------- a plan file is forged


def _words(words, **changes):
    return words | {"certificate": words["certificate"] | changes}


def _sigma(words, sigma):
    (first,) = words["stages"]
    return words | {"stages": [first | {"sigma": sigma}]}


FILES = {  # what is written into the manifest of a plan's file
    "shares of all, and a large mu": lambda w: _words(
        w, shares=[1.0, 1.0, 1.0], mu=2 * w["certificate"]["mu"]
    ),
    "shares of more than all": lambda w: _words(w, shares=[1.0, 1.0, 1.0]),
    "one stage more": lambda w: _words(w, shares=[*w["certificate"]["shares"], 0.01]),
    "a larger mu": lambda w: _words(w, mu=1.001 * w["certificate"]["mu"]),
    "a smaller mu": lambda w: _words(w, mu=0.4 * w["certificate"]["mu"]),
    "a smaller epsilon": lambda w: _words(w, epsilon=0.5),
    "a smaller delta": lambda w: _words(w, delta=1e-9),
    "no numbers": lambda w: _words(w, n_measurements=0),
    "hardly any numbers": lambda w: _words(w, n_measurements=-5),
    "less noise": lambda w: _sigma(w, w["stages"][0]["sigma"] // 2),
    "no noise": lambda w: _sigma(w, 0),
    "shares of nothing": lambda w: _words(w, shares=[0.0, 0.5, 0.5]),
    "shares below nothing": lambda w: _words(w, shares=[-1.0, 1.0, 1.0]),
    "bits that take all memory": lambda w: w | {"stages": [w["stages"][0] | {"y_bits": 2**40}]},
}


def forged(plan, forge):
    """A plan with other words, which its maker takes for the own one."""
    words, arrays, _ = container.unpack(plan.to_bytes())
    return replace(charged_plan(container.pack(forge(container.bare(words)), arrays)), question=plan.question)


def check_refused(plan_of, ledger, monkeypatch):
    """No noise is drawn and nothing is paid."""
    drawn = []
    monkeypatch.setattr(room, "add_noise", lambda exact, sigma: drawn.append(sigma) or exact)
    before = len(ledger.entries())
    refusals = 0
    for options in ({}, {"ledger": ledger, "dataset": "d"}):
        try:
            plan_of().release(Y, **options)
        except (AssertionError, ReleaseFileError):
            refusals += 1
    assert (refusals, drawn, len(ledger.entries())) == (2, [], before), "it was released"


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create("d", epsilon=9.0, delta=0.1)
    return made


@pytest.mark.parametrize("forgery", FILES)
def test_a_forged_plan_is_refused_before_noise_is_drawn_or_anything_paid(
    monkeypatch, tmp_path, ledger, forgery
):
    check_refused(lambda: forged(small_staged_plan(), FILES[forgery]), ledger, monkeypatch)


def test_a_plan_that_is_not_forged_is_released(monkeypatch, tmp_path, ledger):
    """So that what is refused above is the forgery."""
    honest = forged(small_staged_plan(), lambda words: words)
    assert fails(check_refused, lambda: honest, ledger, monkeypatch, because="released")


def _promise(plan, **changes):
    return replace(plan, rule=replace(plan.rule, promise=replace(plan.rule.promise, **changes)))


HANDMADE = {
    "shares": lambda p: _promise(p, shares=(1.0, 1.0)),
    "mu": lambda p: _promise(p, mu=2 * p.rule.promise.mu),
    "mu that is paid": lambda p: replace(p, certificate=replace(p.certificate, mu=0.5 * p.rule.promise.mu)),
    "epsilon that is shown": lambda p: replace(p, certificate=replace(p.certificate, epsilon=0.1)),
    "shares that are shown": lambda p: replace(p, certificate=replace(p.certificate, shares=(0.5, 0.5))),
}


@pytest.mark.parametrize("change", HANDMADE)
def test_a_plan_put_together_by_hand_is_refused(monkeypatch, ledger, change):
    check_refused(lambda: HANDMADE[change](small_staged_plan()), ledger, monkeypatch)


def test_a_plan_that_was_not_paid_for_is_not_recovered(monkeypatch, ledger):
    """Neither is one whose later stages would spend more than was paid for."""
    plan = small_staged_plan()
    plan.release(Y, ledger=ledger, dataset="d")
    monkeypatch.setattr(room, "add_noise", lambda *args: pytest.fail("noise was drawn"))
    with pytest.raises(AssertionError):
        HANDMADE["mu"](plan).recover(ledger, 2, Y)


def _generous(walk, number, right=Walk.next_stage):
    """A stage with a part as large as the whole promise."""
    found = right(walk, number)
    if not number:
        return found
    m = found.measurement
    whole = replace(m, part=Part(1.0, walk.rule.promise.most), sigma=int(m.sigma * m.part.share**0.5))
    return replace(found, measurement=whole)


def _talkative(walk, number, right=Walk.next_stage):
    """A stage with more numbers than were counted."""
    found = right(walk, number)
    m = found.measurement
    matrix = np.vstack([m.matrix, np.zeros((walk.rule.promise.most, m.matrix.shape[1]), dtype=np.int64)])
    return replace(found, measurement=replace(m, matrix=matrix))


@pytest.mark.parametrize("bug", [_generous, _talkative])
def test_a_later_stage_that_would_spend_too_much_is_left_out(monkeypatch, bug):
    """The private room would take each for what it says; the sum is what is refused."""
    plan = small_staged_plan()
    monkeypatch.setattr(Walk, "next_stage", bug)
    with seeded(0):
        release = plan.release(Y)
    assert 1 <= len(release.stages) < plan.stages
    plan.rule.promise.check([stage.plan for stage in release.stages])


# ---------------------------------------------------------- what was planned can be released, and counted


@st.composite
def odd_releases(draw):
    """Small data sets in odd places, and outcomes that are odder."""
    n, columns = draw(st.sampled_from([1, 2, 5, 8])), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = random.normal(size=(n, columns)) * 10.0 ** random.integers(-3, 4, size=columns)
    kind = draw(st.sampled_from(["as it is", "a column without range", "duplicates", "all equal"]))
    if kind == "a column without range":
        X[:, 0] = 3.0
    if kind == "duplicates":
        X = X[random.integers(0, n, size=n)]
    if kind == "all equal":
        X[:] = 0.0
    width = draw(st.sampled_from([1e-90, 1e-9, 1.0, 250.0, 1e9]))
    low = draw(st.sampled_from([0.0, -width, width]))
    y = draw(
        st.sampled_from(
            [
                np.full(n, low),
                np.full(n, low + width / 2),
                np.full(n, 1e308),
                np.full(n, -np.inf),
                np.full(n, np.nan),
                random.uniform(low, low + width, n),
                random.choice([low, low + width], n),
            ]
        )
    )
    X_star = X[:2] if draw(st.booleans()) else random.normal(size=(draw(st.integers(1, 4)), columns))
    model = AutoGP(bounds=(low, low + width), stages=draw(st.integers(1, 4)))
    epsilon, delta = draw(st.floats(0.01, 10.0)), draw(st.sampled_from([0.01, 1e-5, 1e-9]))
    return model.plan(X, X_star=X_star, epsilon=epsilon, delta=delta), y, draw(st.integers(0, 2**32))


def check_released(plan, y, seed):
    """All stages, no more numbers than were counted, finite predictions."""
    with seeded(seed):
        release = plan.release(y, missing="midpoint")
    assert len(release.stages) == plan.stages, "a stage was left out"
    assert sum(len(stage.answer) for stage in release.stages) <= plan.certificate.n_measurements
    mean, std = release.predict(plan.X, return_std=True)
    assert np.isfinite([*mean, *std, *release.mean]).all(), "a prediction is not finite"
    repr(release)


@pytest.mark.usefixtures("few_models")
@given(odd=odd_releases())
@settings(max_examples=25, deadline=None)
def test_what_was_planned_is_released_whatever_y_is(odd):
    """Constant, missing or far outside outcomes; one row; bounds of any size; columns without range."""
    check_released(*odd)


def test_planted_failures_between_stages_are_caught(monkeypatch):
    """A design that cannot be made costs its stage, which shows."""
    plan, right = small_staged_plan(), Walk.next_stage

    def singular(walk, number):
        if number == 2:
            raise np.linalg.LinAlgError("singular")
        return right(walk, number)

    check_released(plan, Y, 0)
    monkeypatch.setattr(Walk, "next_stage", singular)
    assert fails(check_released, plan, Y, 0, because="left out")
    with seeded(0):
        assert len(plan.release(Y).stages) == 2


def test_the_count_is_fixed_before_the_first_answer_and_is_enough_for_the_largest_design():
    """At most a number for each test point or row, a few to fill columns up, and a distance."""
    plan = small_staged_plan(n_rows=12, n_outputs=5)
    require(len(some_stages(plan)) == 3, "a stage was left out")
    for seed in range(4):
        stages = some_stages(plan, seed)
        assert all(stage.n_measurements <= plan.certificate.n_measurements / 3 for stage in stages)
