"""A plan that names more than its noise hides is refused before anything is read or paid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from privacy_helpers import fails

from cloakgp import GP, AutoGP, Grid, Ledger
from cloakgp.files import container
from cloakgp.kernels import EQ
from cloakgp.measurements.unit import OUTCOME, PERSON_ROWS, ROW
from cloakgp.plans.opening import charged_plan
from cloakgp.private import room

X = np.linspace(0.0, 1.0, 12)
Y = np.linspace(0.1, 0.9, 12)
IDS = np.repeat(np.arange(4), 3)
ASKED = {"epsilon": 1.0, "delta": 0.01}
STAR = [0.2, 0.8]


def whole_rows(**options):
    return AutoGP((0.0, 1.0), stages=2).plan_rows(
        Grid({"a": (0.0, 1.0)}, 4), 12, X_star=STAR, **ASKED, **options
    )


PLANS = {
    "predictions": (lambda: GP(EQ(0.3), 0.1, (0.0, 1.0)).plan(X, X_star=STAR, **ASKED), (Y,)),
    "recipe": (lambda: GP(EQ(0.3), 0.1, (0.0, 1.0), inducing=5).plan(X, X_star=STAR, **ASKED), (Y,)),
    "function": (lambda: GP(EQ(0.3), 0.1, (0.0, 1.0)).plan_function(X, **ASKED), (Y,)),
    "stages": (lambda: AutoGP((0.0, 1.0), stages=2).plan(X, X_star=STAR, **ASKED), (Y,)),
    "whole rows": (whole_rows, (X, Y)),
}


def forged(plan, change):
    """A plan with other words or integers, which its maker takes for the own one."""
    words, arrays, _ = container.unpack(plan.to_bytes())
    words = container.bare(words)
    change(words, arrays)
    return replace(charged_plan(container.pack(words, arrays)), question=plan.question)


def check_refused(plan, private, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(room, "add_noise", lambda exact, sigma: drawn.append(sigma) or exact)
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger.create("d", epsilon=9.0, delta=0.1)
    before = len(ledger.entries())
    for options in ({}, {"ledger": ledger, "dataset": "d"}):
        try:
            plan.release(*private, **options)
        except AssertionError:
            continue
        raise AssertionError("it was released")
    assert (drawn, len(ledger.entries())) == ([], before)


def named(unit):
    def change(words, arrays):
        words["unit"] = unit.name
        words["certificate"] |= {"unit": unit.name, "neighbours": unit.neighbours}

    return change


def neighbours(words, arrays):
    words["certificate"]["neighbours"] = "anything at all"


def test_whole_rows_of_another_number_are_refused(tmp_path, monkeypatch):
    def change(words, arrays):
        words["certificate"]["n_rows"] += 1

    check_refused(forged(whole_rows(), change), (X, Y), tmp_path, monkeypatch)


@pytest.mark.parametrize("change", [named(PERSON_ROWS), neighbours])
@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_for_one_unit_does_not_promise_another(tmp_path, monkeypatch, kind, change):
    made, private = PLANS[kind]
    check_refused(forged(made(), change), private, tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_that_was_not_forged_is_released(tmp_path, monkeypatch, kind):
    """So that what is refused above is the forgery."""
    made, private = PLANS[kind]
    plan = forged(made(), named(ROW if kind == "whole rows" else OUTCOME))
    assert fails(check_refused, plan, private, tmp_path, monkeypatch, because="released")


def test_stages_for_other_people_do_not_pass_for_those_that_the_ledger_knows(tmp_path, monkeypatch):
    """Noise for people with one row each, under the name of people with three."""
    model = AutoGP((0.0, 1.0), stages=2)
    true = model.plan(X, X_star=STAR, **ASKED, people=IDS).partition

    def change(words, arrays):
        words["people"]["sha256"] = true

    plan = forged(model.plan(X, X_star=STAR, **ASKED, people=np.arange(12)), change)
    check_refused(plan, (Y,), tmp_path, monkeypatch)


WRAPPING = {  # entries whose squares, or whose size, leave 64 bits
    "squares": lambda m: m.__setitem__((0, slice(3)), 2**48 + 1),
    "the least integer": lambda m: (m.__setitem__((0, 0), -(2**63)), m.__setitem__((1, 1), 1)),
}


@pytest.mark.parametrize("entries", WRAPPING)
def test_counts_whose_squares_wrap_are_refused(tmp_path, monkeypatch, entries):
    """Or they would pass for short, and so little noise for enough."""

    def change(words, arrays):
        arrays["matrix_0"] = np.zeros_like(arrays["matrix_0"])
        WRAPPING[entries](arrays["matrix_0"])
        words["stages"][0] |= {"sigma": 2**30}

    check_refused(forged(whole_rows(), change), (X, Y), tmp_path, monkeypatch)
