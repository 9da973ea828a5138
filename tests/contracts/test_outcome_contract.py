"""The contract of every outcome: what all others ask it, and a link that is what it says."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from cloakgp import GP, AutoGP
from cloakgp.core.errors import ArgumentError
from cloakgp.kernels import EQ
from cloakgp.model.outcome import OUTCOMES, REAL, OutcomeName, as_outcome, outcome_named
from cloakgp.posterior.clipping import law_of

CASES = {
    **{name: as_outcome(name) for name in get_args(OutcomeName)},
    "yes/no with names": as_outcome("real", ("well", "ill")),
    "classes": as_outcome("real", ("car", "bus", "train")),
}
BOUNDS = (0.0, 40.0)
every_outcome = pytest.mark.parametrize("outcome", CASES.values(), ids=CASES)
every_link = pytest.mark.parametrize(
    "outcome", [one for one in CASES.values() if one.link], ids=[name for name in CASES if CASES[name].link]
)


def test_all_are_here():
    assert {type(one) for one in CASES.values()} == set(OUTCOMES.values())
    assert all(name == kind.name for name, kind in OUTCOMES.items())


@every_outcome
def test_it_is_what_its_name_and_classes_say(outcome):
    assert (
        outcome_named(outcome.name, outcome.classes) == as_outcome("real", outcome.classes)
        or not outcome.classes
    )
    assert outcome_named(outcome.name, outcome.classes) == outcome
    assert len(outcome.classes) in outcome.class_numbers
    assert outcome.curves in (1, len(outcome.classes))
    assert str(outcome) == outcome.name
    for words in (
        outcome.words,
        outcome.plural,
        outcome.lead,
        outcome.unit_words("y"),
        outcome.told_of("age"),
    ):
        assert words
    assert outcome.words in outcome.in_detail
    assert all(str(one) in outcome.in_detail for one in outcome.classes)


@every_outcome
def test_models_take_it_with_bounds_that_go_with_it(outcome):
    named = {"outcome": outcome.name} if not outcome.classes else {"classes": outcome.classes}
    bounds = None if outcome.fixed_bounds else BOUNDS
    for model in (
        GP(EQ(1.0), noise=None if outcome.link else 1.0, bounds=bounds, **named),
        AutoGP(bounds, **named),
    ):
        assert (model.outcome, model.classes) == (outcome.name, outcome.classes)
        assert model.bounds == (outcome.fixed_bounds or BOUNDS)
    low, high = outcome.axis(0.2, 0.9)
    assert low <= 0.2 < 0.9 <= high
    if outcome != REAL:
        assert outcome.least == 0.0
        with pytest.raises(ArgumentError) as error:
            AutoGP((-1.0, 9.0), **named)
        assert error.value.name == "bounds"


@every_outcome
def test_only_numbers_have_a_choice_of_designs(outcome):
    for option in ({"design": "volume"}, {"calibration": "classic"}, {"device": "cpu"}):
        if outcome == REAL:
            outcome.check_options(**option)
            continue
        with pytest.raises(ArgumentError) as error:
            outcome.check_options(**option)
        assert error.value.name in option


@every_link
def test_its_mean_rises_with_f_within_the_bounds_and_its_variance_is_no_less_than_0(outcome):
    bounds = outcome.fixed_bounds or BOUNDS
    low, high = outcome.latent(bounds)
    f = np.linspace(low - outcome.beyond, high + outcome.beyond, 400)
    mean = outcome.mean(f, bounds)
    assert (np.diff(mean) >= 0).all()
    assert bounds[0] <= mean.min() < mean.max() <= bounds[1]
    ends = outcome.mean(np.array([low, high]), bounds)  # of where f is expected, in all of the bounds
    np.testing.assert_allclose(ends, bounds, atol=0.002 * bounds[1])
    assert (outcome.variance(mean, outcome.noise[0]) >= 0).all()
    assert outcome.scattered == (outcome.noise[0] < outcome.noise[1])
    line, own = law_of(outcome, bounds, (low + high) / 2).linearise(
        np.linspace(-1, 1, 5), np.full(5, 0.3), 1.0, (np.full(5, -np.inf), np.full(5, np.inf))
    )
    assert (line.slope > 0).all()
    assert (own > 0).all()
    assert (own < line.left).all()  # which has in it what the link bends
