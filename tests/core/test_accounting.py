"""What events cost together: exact where a formula is known, and never below what it is."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.stats import norm

from cloakgp.core import calibration
from cloakgp.core.accounting import (
    Approximate,
    Exponential,
    Gaussian,
    Laplace,
    compose,
    from_spec,
    split,
    to_spec,
)
from cloakgp.core.errors import ArgumentError

EVENTS = [Gaussian(0.4, 3), Exponential(0.3), Laplace(0.2), Approximate(0.5, 1e-6), Approximate(0.1)]


def test_a_calibrated_release_costs_what_was_asked_for():
    mu = calibration.calibrate(1.0, 0.01, n_measurements=12)
    assert compose([Gaussian(mu, 12)]).epsilon(0.01) == pytest.approx(1.0, rel=1e-5)


def test_gaussians_add_their_squares():
    together = compose([Gaussian(0.3, 5), Gaussian(0.4, 7)])
    assert together.mu == pytest.approx(0.5)
    assert together.rho == pytest.approx(0.125)
    assert together.epsilon(0.01) == pytest.approx(compose([Gaussian(0.5, 12)]).epsilon(0.01), rel=1e-9)


def test_pure_events_add_their_epsilons_at_tiny_deltas():
    assert compose([Laplace(0.5), Approximate(0.25)]).epsilon(1e-12) == pytest.approx(0.75, rel=1e-9)


def test_many_pure_events_are_cheaper_concentrated():
    assert compose([Exponential(0.1)] * 100).epsilon(1e-6) < 3.0 < 10.0


def test_no_mu_is_made_of_an_exponential_mechanism_and_no_rho_of_a_delta():
    assert compose([Gaussian(0.4, 1), Exponential(0.3)]).mu is None
    assert compose([Gaussian(0.4, 1), Approximate(0.3, 1e-6)]).rho is None


def test_one_selection_then_a_release_known_value():
    """At (1, 0.01) a selection with 0.3 leaves mu = 0.511; zCDP alone would leave 0.429."""
    parts = split(1.0, 0.01, 0.3)
    gaussian = parts.release
    assert parts.selection == pytest.approx(0.3)
    assert parts.delta == 0.01
    assert gaussian.mu == pytest.approx(0.511, abs=5e-4)
    assert compose([Exponential(0.3), gaussian]).fits(1.0, 0.01)
    assert not compose([Exponential(0.3), Gaussian(gaussian.mu * 1.001, 1)]).fits(1.0, 0.01)


def test_split_gives_epsilons_for_the_two_plans():
    """A release planned with the split's epsilon fits after the selection, and nearly fills the budget."""
    for epsilon, delta in ((1.0, 0.01), (0.1, 1e-6), (5.0, 1e-9)):
        parts = split(epsilon, delta)
        mu = calibration.calibrate(parts.epsilon, parts.delta, n_measurements=50)
        assert mu <= parts.release.mu
        assert mu == pytest.approx(parts.release.mu, rel=1e-5)
        assert compose([Exponential(parts.selection), Gaussian(mu, 50)]).fits(epsilon, delta)


def test_split_fits_even_when_the_lattice_counts():
    """At tiny epsilons the slack for many numbers is no longer small beside them."""
    parts = split(1e-6, 1e-9)
    assert calibration.calibrate(parts.epsilon, parts.delta, n_measurements=12) <= parts.release.mu


def two_point_selection_delta(t, chosen, mu, epsilon, n=200_001):
    """delta of a worst-case selection followed by a Gaussian, by integrating the densities."""
    p = -math.expm1(t - chosen) / -math.expm1(-chosen)
    z = np.linspace(-14, 14 + mu, n)
    total = 0.0
    for share, loss in ((p, t), (1 - p, t - chosen)):
        first, second = norm.pdf(z, mu), math.exp(epsilon - loss) * norm.pdf(z)
        total += share * trapezoid(np.maximum(first - second, 0.0), z)
    return total


@settings(deadline=None, max_examples=20)
@given(st.floats(0.05, 2), st.floats(0.05, 2), st.floats(0.1, 3), st.floats(0.01, 0.99))
def test_no_selection_and_release_exceed_the_exact_bound(chosen, mu, epsilon, share):
    real = two_point_selection_delta(share * chosen, chosen, mu, epsilon)
    assert compose([Exponential(chosen), Gaussian(mu, 1)]).delta(epsilon) >= real - 1e-9


@settings(deadline=None, max_examples=20)
@given(st.floats(0.05, 1.5), st.floats(0.05, 2), st.floats(0.1, 3))
def test_the_exact_bound_is_reached(chosen, mu, epsilon):
    def reached(share):
        return two_point_selection_delta(share * chosen, chosen, mu, epsilon, n=5001)

    best = max(np.linspace(0, 1, 41), key=reached)
    most = max(map(reached, np.linspace(max(best - 0.025, 0), min(best + 0.025, 1), 41)))
    assert compose([Exponential(chosen), Gaussian(mu, 1)]).delta(epsilon) <= most * 1.1 + 1e-9


def test_the_exact_bound_is_for_a_selection_that_came_first():
    late = compose([Gaussian(0.5, 1), Exponential(0.3)])
    assert late.epsilon(0.01) > compose([Exponential(0.3), Gaussian(0.5, 1)]).epsilon(0.01) + 0.05


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=5), st.sampled_from(EVENTS))
def test_another_event_never_makes_it_cheaper(events, another):
    assert compose([*events, another]).delta(2.0) >= compose(events).delta(2.0) * (1 - 1e-9)


def test_epsilon_and_delta_agree():
    spend = compose([Exponential(0.3), Gaussian(0.5, 10)])
    epsilon = spend.epsilon(0.01)
    assert spend.delta(epsilon) <= 0.01 < spend.delta(epsilon * (1 - 1e-6))


def test_nothing_costs_nothing():
    assert compose([]).epsilon(1e-5) == 0.0
    assert compose([]).fits(0.1, 1e-5)
    assert compose([]).delta(0.1) == 0.0


def test_a_delta_that_was_spent_already_cannot_be_had_at_any_epsilon():
    assert compose([Approximate(0.1, 0.5)]).epsilon(0.01) == math.inf


SIZES = [0.0, -1.0, 1e-200, 1e200, math.nan, math.inf]
REFUSED = [
    *(("mu", lambda size=size: Gaussian(size, 1)) for size in SIZES),
    *(("epsilon", lambda k=kind, s=s: k(s)) for kind in (Exponential, Laplace, Approximate) for s in SIZES),
    *(("n_measurements", lambda count=count: Gaussian(0.5, count)) for count in (0, True, 1.5)),
    *(("delta", lambda delta=delta: Approximate(1.0, delta)) for delta in (1.0, -0.1, math.nan)),
    *(("selection", lambda share=share: split(1.0, 0.01, share)) for share in (0.0, 1.5)),
    ("n_measurements", lambda: split(1.0, 0.01, n_measurements=10**8)),
    ("events", lambda: compose(Gaussian(0.4, 3))),
    # A certificate has an epsilon too: counted as a pure event, its delta would be lost.
    ("events", lambda: compose([Approximate(1.0), calibration])),
]


@pytest.mark.parametrize(("argument", "make"), REFUSED)
def test_what_makes_no_sense_is_refused(argument, make):
    with pytest.raises(ArgumentError) as refused:
        make()
    assert refused.value.name == argument


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_survive_json(event):
    assert from_spec(to_spec(event)) == event


@pytest.mark.parametrize("spec", [{"kind": "Magic"}, {}, {"kind": "Gaussian", "sigma": 1.0}])
def test_unknown_events_are_refused(spec):
    with pytest.raises(ValueError, match="event"):
        from_spec(spec)
