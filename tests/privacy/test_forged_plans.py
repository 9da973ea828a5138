"""A plan that would spend or name more than its noise hides is refused before anything is read or paid.

That the room refuses every measurement by itself is in ``tests/contracts/test_measurement_contract.py``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from privacy_helpers import fails, seeded, small_staged_plan

from cloakgp import GP, AutoGP, Grid, Ledger, Plan
from cloakgp.files import container
from cloakgp.files.container import ReleaseFileError
from cloakgp.kernels import EQ
from cloakgp.measure.measurement import Part
from cloakgp.measure.unit import OUTCOME, PERSON_ROWS, ROW
from cloakgp.private import room
from cloakgp.release.stages import Session

X, Y, IDS = np.linspace(0.0, 1.0, 12), np.linspace(0.1, 0.9, 12), np.repeat(np.arange(4), 3)
SIX = np.linspace(0.1, 0.9, 6)
ASKED, STAR = {"epsilon": 1.0, "delta": 0.01}, [0.2, 0.8]
LEARNED = AutoGP((0.0, 1.0), stages=2)


def whole_rows():
    return LEARNED.plan_rows(Grid({"a": (0.0, 1.0)}, 4), 12, X_star=STAR, **ASKED)


PLANS = {
    "predictions": (lambda: GP(EQ(0.3), 0.1, (0.0, 1.0)).plan(X, X_star=STAR, **ASKED), (Y,)),
    "inducing": (lambda: GP(EQ(0.3), 0.1, (0.0, 1.0), inducing=5).plan(X, X_star=STAR, **ASKED), (Y,)),
    "function": (lambda: GP(EQ(0.3), 0.1, (0.0, 1.0)).plan_function(X, **ASKED), (Y,)),
    "stages": (lambda: LEARNED.plan(X, X_star=STAR, **ASKED), (Y,)),
    "whole rows": (whole_rows, (X, Y)),
}


def forged(plan, change):
    """A plan with other words, which its maker takes for the own one."""
    words, arrays, _ = container.unpack(plan.to_bytes())
    words = container.bare(words)
    change(words)
    return replace(Plan.from_charged(container.pack(words, arrays)), question=plan.question)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create("d", epsilon=9.0, delta=0.1)
    return made


@pytest.fixture
def check_refused(ledger, monkeypatch):
    def check(plan_of, *private):
        """No noise is drawn and nothing is paid."""
        drawn, before = [], len(ledger.entries())
        monkeypatch.setattr(room, "add_noise", lambda exact, sigma: drawn.append(sigma) or exact)
        refusals = 0
        for options in ({}, {"ledger": ledger, "dataset": "d"}):
            try:
                plan_of().release(*private, **options)
            except (AssertionError, ReleaseFileError):
                refusals += 1
        assert (refusals, drawn, len(ledger.entries())) == (2, [], before), "it was released"

    return check


# ------------------------------------------------------------------------------------ another unit


def named(unit):
    def change(words):
        words["unit"] = unit.name
        words["certificate"] |= {"unit": unit.name, "neighbours": unit.neighbours}

    return change


def certified(**changes):
    return lambda words: words["certificate"].update(changes)


@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_for_one_unit_does_not_promise_another(check_refused, kind):
    make, private = PLANS[kind]
    for change in (named(PERSON_ROWS), certified(neighbours="anything at all")):
        check_refused(lambda change=change: forged(make(), change), *private)
    honest = named(ROW if kind == "whole rows" else OUTCOME)  # so that what is refused is the forgery
    assert fails(check_refused, lambda: forged(make(), honest), *private, because="released")


def test_whole_rows_of_another_number_are_refused(check_refused):
    check_refused(lambda: forged(whole_rows(), certified(n_rows=13)), X, Y)


def test_stages_for_other_people_do_not_pass_for_those_that_the_ledger_knows(check_refused):
    """Noise for people with one row each, under the name of people with three."""
    true = LEARNED.plan(X, X_star=STAR, **ASKED, people=IDS).partition
    plan = LEARNED.plan(X, X_star=STAR, **ASKED, people=np.arange(12))
    check_refused(lambda: forged(plan, lambda words: words["people"].update(sha256=true)), Y)


# ----------------------------------------------------------------------- stages that spend too much


def stage(**changes):
    return lambda words: words["stages"][0].update(changes)


def scaled(times):
    return lambda words: words["certificate"].update(mu=times * words["certificate"]["mu"])


def and_mu(words):
    certified(shares=[1.0, 1.0, 1.0])(words)
    scaled(2)(words)


FILES = {  # what is written into the manifest of a plan's file
    "shares of all, and a large mu": and_mu,
    "shares of more than all": certified(shares=[1.0, 1.0, 1.0]),
    "one stage more": lambda words: words["certificate"]["shares"].append(0.01),
    "a larger mu": scaled(1.001),
    "a smaller mu": scaled(0.4),
    "a smaller epsilon": certified(epsilon=0.5),
    "a smaller delta": certified(delta=1e-9),
    "no numbers": certified(n_measurements=0),
    "hardly any numbers": certified(n_measurements=-5),
    "less noise": lambda words: stage(sigma=words["stages"][0]["sigma"] // 2)(words),
    "no noise": stage(sigma=0),
    "shares of nothing": certified(shares=[0.0, 0.5, 0.5]),
    "shares below nothing": certified(shares=[-1.0, 1.0, 1.0]),
    "bits that take all memory": stage(y_bits=2**40),
}


@pytest.mark.parametrize("forgery", FILES)
def test_a_forged_plan_is_refused_before_noise_is_drawn_or_anything_paid(check_refused, forgery):
    check_refused(lambda: forged(small_staged_plan(), FILES[forgery]), SIX)


def _certificate(plan, **changes):
    return replace(plan, certificate=replace(plan.certificate, **changes))


HANDMADE = {
    "shares": lambda p: _certificate(p, shares=(1.0, 1.0)),
    "mu": lambda p: _certificate(p, mu=2 * p.certificate.mu),
    "mu that is paid": lambda p: _certificate(p, mu=0.4 * p.certificate.mu),
    "epsilon": lambda p: _certificate(p, epsilon=0.1),
}


@pytest.mark.parametrize("change", HANDMADE)
def test_a_plan_put_together_by_hand_is_refused(check_refused, change):
    check_refused(lambda: HANDMADE[change](small_staged_plan()), SIX)


def test_a_plan_that_was_not_paid_for_is_not_recovered(monkeypatch, ledger):
    """Neither is one whose later stages would spend more than was paid for."""
    plan = small_staged_plan()
    plan.release(SIX, ledger=ledger, dataset="d")
    monkeypatch.setattr(room, "add_noise", lambda *args: pytest.fail("noise was drawn"))
    with pytest.raises(AssertionError):
        HANDMADE["mu"](plan).recover(ledger, 2, SIX)


def _generous(walk, number, right=Session.next_stage):
    """A stage with a part as large as the whole promise."""
    found = right(walk, number)
    m = found.measurement
    if not number:
        return found
    whole = replace(
        m, part=Part(1.0, walk.rule.certificate.n_measurements), sigma=int(m.sigma * m.part.share**0.5)
    )
    return replace(found, measurement=whole)


def _talkative(walk, number, right=Session.next_stage):
    """A stage with more numbers than were counted."""
    found = right(walk, number)
    m = found.measurement
    matrix = np.vstack(
        [m.matrix, np.zeros((walk.rule.certificate.n_measurements, m.matrix.shape[1]), dtype=np.int64)]
    )
    return replace(found, measurement=replace(m, matrix=matrix))


@pytest.mark.parametrize("bug", [_generous, _talkative])
def test_a_later_stage_that_would_spend_too_much_is_left_out(monkeypatch, bug):
    """The private room would take each for what it says; the sum is what is refused."""
    plan = small_staged_plan()
    monkeypatch.setattr(Session, "next_stage", bug)
    with seeded(0):
        release = plan.release(SIX)
    assert 1 <= len(release.stages) < plan.stages
    plan.check(release.stages)
