"""A budget holds: what it lets through, in any order and however it was chosen, is (epsilon, delta)-DP.

The checks here do not use the bounds that the budget uses. The pairs of distributions that are worst for each
mechanism are written down (two points for pure ones, two normal distributions for Gaussian noise), and the
exact delta of what happened is summed up from them.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from statistics import NormalDist

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp.core import calibration
from cloakgp.core.accounting import Approximate, Exponential, Gaussian, Laplace, compose, split
from cloakgp.core.budget import Budget, gaussian_mu

TOLERANCE = 1 + 1e-6


# what is true of events, written down without the library


def two_points(event, tilt=0.5):
    """(loss, probability) of the worst pair; for a selection, losses that span epsilon up to tilt epsilon."""
    e = event.epsilon
    if isinstance(event, Exponential):
        top = e * tilt  # losses top and top - e, so that probabilities add up to 1 under both
        p = math.expm1(top - e) / math.expm1(-e) if tilt < 1 else 0.0
        return [(top, p), (top - e, 1 - p)]
    p = 1 / (1 + math.exp(-e))
    left = 1 - getattr(event, "delta", 0.0)
    return [(math.inf, 1 - left), (e, left * p), (-e, left * (1 - p))]


def gaussian_delta(mu, epsilon):
    """Exact delta of continuous Gaussian noise (Balle & Wang 2018, theorem 8), of any epsilon."""
    if mu == 0:
        return max(0.0, -math.expm1(epsilon))
    normal = NormalDist()
    return normal.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal.cdf(-mu / 2 - epsilon / mu)


def true_delta(events, epsilon, tilt=0.5):
    """Delta of these events together, if none depends on the others' answers."""
    mu = math.sqrt(sum(event.mu**2 for event in events if isinstance(event, Gaussian)))
    losses = {0.0: 1.0}
    for event in events:
        if not isinstance(event, Gaussian):
            spread = {}
            for (a, p), (b, q) in itertools.product(losses.items(), two_points(event, tilt)):
                spread[round(a + b, 12)] = spread.get(round(a + b, 12), 0.0) + p * q
            losses = spread
    total = 0.0
    for loss, p in losses.items():
        total += p if loss == math.inf else p * gaussian_delta(mu, epsilon - loss)
    return total


def worst_delta(events, epsilon):
    return max(true_delta(events, epsilon, tilt) for tilt in (0.3, 0.5, 0.7, 0.9, 0.99))


# sequences

sizes = st.floats(1e-3, 1.5)
pure_events = st.one_of(sizes.map(Exponential), sizes.map(Laplace), sizes.map(Approximate))
events = st.one_of(
    pure_events,
    st.builds(Gaussian, st.floats(1e-3, 1.0), st.integers(1, 1000)),
    st.builds(Approximate, sizes, st.floats(0, 0.02)),
)
budgets = st.tuples(
    st.floats(0.2, 3.0), st.sampled_from([1e-6, 1e-3, 0.01, 0.1]), st.sampled_from([0, 0, 0.2, 0.5, 0.9])
).map(
    lambda t: Budget(t[0], t[1], t[0] * t[2])
)  # fmt: skip


def let_through(budget, offered):
    """Those that the budget allows, one after another."""
    spent = []
    for event in offered:
        if budget.allows(spent, event):
            spent.append(event)
    return spent


@given(budgets, st.lists(events, min_size=1, max_size=7), st.data())
@settings(max_examples=150)
def test_what_is_let_through_keeps_the_promise(budget, offered, data):
    """The exact delta of what happened is within the budget's, for every sequence, filled up or not."""
    spent = let_through(budget, offered)
    kinds = st.sampled_from([Exponential, Laplace, lambda mu: Gaussian(mu, 5)])
    for kind in data.draw(st.lists(kinds, max_size=3)):
        size = budget.largest(spent, kind)
        if size > 0:
            assert budget.allows(spent, kind(size))
            assert not budget.allows(spent, kind(size * (1 + 1e-6) + 1e-12))
            spent.append(kind(size))
    assert worst_delta(spent, budget.epsilon) <= budget.delta * TOLERANCE + 1e-13


@given(budgets, st.lists(pure_events, min_size=1, max_size=7))
def test_pure_events_alone_add_up(budget, offered):
    """Pure events that together cost no more than epsilon always fit, whatever was set aside."""
    kept, total = [], 0.0
    for event in offered:
        if total + event.epsilon <= budget.epsilon * (1 - 1e-12):
            assert budget.allows(kept, event)
            kept.append(event)
            total += event.epsilon


@given(budgets, st.lists(events, min_size=1, max_size=6), events, st.floats(0.01, 0.999))
def test_less_is_allowed_where_more_is(budget, offered, event, share):
    spent = let_through(budget, offered)
    if budget.allows(spent, event):
        if isinstance(event, Gaussian):
            smaller = Gaussian(event.mu * share, event.n_measurements)
        elif isinstance(event, Approximate):
            smaller = Approximate(event.epsilon * share, event.delta * share)
        else:
            smaller = type(event)(event.epsilon * share)
        assert budget.allows(spent, smaller)


@pytest.mark.parametrize("event", [Laplace(0.4), Exponential(0.5), Approximate(0.4)])
@pytest.mark.parametrize("times", [2, 3])
def test_an_event_that_happens_again(event, times):
    """An event stands for what it says, not for where it lies in memory."""
    budget = Budget(2.0, 0.01, 0.5)
    apart = [type(event)(event.epsilon) for _ in range(times)]
    mu = budget.largest(apart, lambda mu: Gaussian(mu, 2))
    assert mu > 0
    assert budget.largest([event] * times, lambda mu: Gaussian(mu, 2)) == mu


# questions that depend on earlier answers

MENU = [Exponential(0.3), Exponential(0.7), Laplace(0.2), Laplace(0.5), Gaussian(0.15, 2), Gaussian(0.3, 2)]


def outcomes(event):
    """(loss, probability) of an answer as the adversary sees it: Gaussian noise through two thresholds."""
    if not isinstance(event, Gaussian):
        return [pair for pair in two_points(event) if pair[1] > 0]
    normal, cuts = NormalDist(), [-math.inf, event.mu / 2 - 0.7, event.mu / 2 + 0.7, math.inf]
    found = []
    for low, high in itertools.pairwise(cuts):
        p = normal.cdf(high - event.mu) - normal.cdf(low - event.mu)
        q = normal.cdf(high) - normal.cdf(low)
        found.append((math.log(p / q), p))
    return found


def best_attack(budget, depth):
    """The largest delta that somebody reaches who chooses each question and its cost by the answers so far.

    At each step the adversary may stop, ask something of the menu that the budget allows, or spend all that
    is left at once, on Gaussian noise or on a pure mechanism.
    """

    @cache
    def last(spent):
        mu = budget.largest(spent, lambda mu: Gaussian(mu, 2))
        return mu, budget.largest(spent, Laplace)

    @cache
    def allowed(spent, event):
        return budget.allows(spent, event)

    def value(spent, loss, depth):
        left = budget.epsilon - loss
        mu, epsilon = last(spent)
        best = max(0.0, -math.expm1(left)) if left < 0 else 0.0
        if mu > 0:
            best = max(best, gaussian_delta(mu, left))
        if epsilon > 0:
            ends = two_points(Laplace(epsilon))
            best = max(best, sum(p * max(0.0, -math.expm1(left - step)) for step, p in ends if p > 0))
        if depth:
            for event in MENU:
                if allowed(spent, event):
                    ahead = sum(
                        p * value((*spent, event), loss + step, depth - 1) for step, p in outcomes(event)
                    )
                    best = max(best, ahead)
        return best

    return value((), 0.0, depth)


@pytest.mark.parametrize(
    "budget", [Budget(1.0, 0.01), Budget(1.0, 0.01, 0.5), Budget(1.0, 1e-4), Budget(2.0, 0.05, 0.3)]
)
def test_an_adversary_who_adapts_gains_nothing(budget):
    """Costs chosen by the answers seen so far: still (epsilon, delta)."""
    assert best_attack(budget, 2) <= budget.delta * TOLERANCE


def test_the_adversary_finds_a_budget_that_does_not_hold():
    """The check has teeth: two budgets that are each kept, but not together, are found out."""

    class Naive(Budget):
        def allows(self, spent, event):
            events = [*spent, event]
            gaussians = compose([e for e in events if isinstance(e, Gaussian)])
            pure = math.fsum(e.epsilon for e in events if e.pure)
            return gaussians.fits(self.epsilon, self.delta) and pure <= self.epsilon

    assert best_attack(Naive(1.0, 0.01), 1) > 0.011


# the mu of a pure mechanism


def type_two(mu, alpha):
    """The trade-off curve of mu-Gaussian-DP."""
    quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * alpha)
    return mpmath.ncdf(quantile - mu)


@pytest.mark.parametrize("epsilon", [1e-6, 9.9e-4, 1.01e-3, 0.01, 0.3, 1.0, 3.0, 10.0, 40.0])
def test_pure_mechanisms_are_gaussian_dp(epsilon):
    """Their trade-off curve lies above the Gaussian one of their mu, and touches it but for rounding."""
    with mpmath.workdps(60):
        mu = mpmath.mpf(gaussian_mu(Laplace(epsilon)))
        e = mpmath.mpf(epsilon)
        corner = 1 / (1 + mpmath.exp(e))
        assert type_two(mu, corner) <= corner
        for alpha in [corner * k / 7 for k in range(1, 7)]:
            assert type_two(mu, alpha) <= max(1 - mpmath.exp(e) * alpha, mpmath.exp(-e) * (1 - alpha))
        if epsilon > 1e-3:
            assert type_two(mu * (1 - mpmath.mpf(10) ** -8), corner) > corner


@pytest.mark.parametrize("epsilon", [1e-6, 1.9e-3, 2.1e-3, 0.01, 0.3, 1.0, 3.0, 10.0, 40.0])
def test_selections_are_gaussian_dp(epsilon):
    """The same for losses that span epsilon, wherever that span lies."""
    with mpmath.workdps(60):
        mu, e = mpmath.mpf(gaussian_mu(Exponential(epsilon))), mpmath.mpf(epsilon)
        for share in [mpmath.mpf(k) / 40 for k in range(1, 40)]:
            top = e * share
            p = mpmath.expm1(top - e) / mpmath.expm1(-e)
            q = p * mpmath.exp(-top)
            assert abs((1 - p) - (1 - q) * mpmath.exp(top - e)) < mpmath.mpf(10) ** -40
            assert type_two(mu, q) <= 1 - p
        assert gaussian_mu(Exponential(epsilon)) == gaussian_mu(Laplace(epsilon / 2))


def test_events_without_a_mu():
    assert gaussian_mu(Approximate(0.1, 1e-9)) == math.inf
    assert gaussian_mu(Laplace(601.0)) == math.inf
    assert gaussian_mu(Laplace(599.0)) < math.inf
    assert gaussian_mu(Gaussian(0.7, 3)) == 0.7
    assert gaussian_mu(Approximate(0.1)) == gaussian_mu(Laplace(0.1))


# rules


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.1, 1.0, 3.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3, 0.01, 0.3, 0.9])
@pytest.mark.parametrize("n_measurements", [1, 1000])
def test_a_plan_of_the_whole_budget_fits(epsilon, delta, n_measurements):
    """Alone, and after what was set aside was used; a second one does not."""
    mu = calibration.calibrate(epsilon, delta, n_measurements=n_measurements)
    whole = Gaussian(mu, n_measurements)
    assert Budget(epsilon, delta).allows([], whole)
    assert not Budget(epsilon, delta).allows([whole], whole)
    assert not Budget(epsilon, delta).allows([], Gaussian(mu * 1.001, n_measurements))
    assert Budget(2 * epsilon, delta, epsilon).allows([], whole)
    assert Budget(2 * epsilon, delta, epsilon).allows([Laplace(epsilon)], whole)
    assert Budget(2 * epsilon, delta, epsilon).allows([whole], Laplace(epsilon))


@pytest.mark.parametrize(
    ("epsilon", "delta", "share"),
    [(0.1, 1e-6, 0.1), (1.0, 1e-6, 0.3), (4.0, 1e-6, 0.8), (0.1, 0.01, 0.8), (1.0, 0.01, 0.1)],
)  # fmt: skip
def test_a_split_fits(epsilon, delta, share):
    """The parts of accounting.split, in their order; and the plan that is made from the second."""
    budget, parts = Budget(epsilon, delta), split(epsilon, delta, share)
    selection = Exponential(parts.selection)
    assert budget.allows([], selection)
    assert budget.allows([selection], parts.release)
    mu = calibration.calibrate(parts.epsilon, delta, n_measurements=1000)
    assert budget.allows([selection], Gaussian(mu, 1000))
    assert not budget.allows([selection, parts.release], Gaussian(0.05, 1))


def test_an_approximate_mechanism_comes_first_or_not_at_all():
    budget = Budget(1.0, 0.01)
    first = Approximate(0.5, 0.005)
    assert budget.allows([], first)
    assert not budget.allows([Gaussian(0.01, 1)], first)
    assert not budget.allows([Laplace(0.01)], first)
    assert not budget.allows([first], Approximate(0.1, 0.001))
    assert budget.allows([first], Gaussian(0.1, 2))
    assert not budget.allows([], Approximate(0.5, 0.011))
    assert not budget.allows([], Approximate(1.01, 0.001))


def test_what_was_set_aside_is_for_pure_mechanisms():
    budget = Budget(1.0, 0.01, 0.5)
    whole = Gaussian(calibration.calibrate(1.0, 0.01), 1)
    assert not budget.allows([], whole)
    half = Gaussian(calibration.calibrate(0.5, 0.01), 1)
    assert budget.allows([], half)
    assert budget.allows([half, Laplace(0.25)], Exponential(0.24))
    assert not budget.allows([half, Laplace(0.25)], Exponential(0.26))
    assert not budget.allows([half], Approximate(0.1, 1e-6))


def test_too_many_numbers():
    budget = Budget(100.0, 0.01)
    assert budget.allows([], Gaussian(1e-3, 10**7))
    assert not budget.allows([], Gaussian(1e-3, 10**7 + 1))
    assert not budget.allows([Gaussian(1e-3, 10**7)], Gaussian(1e-3, 1))


@pytest.mark.parametrize(
    ("values", "name"),
    [((0, 0.1), "epsilon"), ((1, 0), "delta"), ((1, 1), "delta"), ((math.nan, 0.1), "epsilon"),
     ((1, 0.1, 1), "pure"), ((1, 0.1, -0.1), "pure"), ((1, 0.1, math.nan), "pure")],
)  # fmt: skip
def test_budgets_that_make_no_sense(values, name):
    with pytest.raises(ValueError, match=name):
        Budget(*values)
