"""Our bounds beside those of Google's dp-accounting, which goes other ways (grids of losses, Renyi orders).

Its privacy loss distributions are the tightest there are, up to their grid; so ours may not be below its
optimistic estimates, and where ours is exact it may not be above its pessimistic ones by more than the grid.
"""

import math

import pytest

from cloakgp.core.accounting import Exponential, Gaussian, Laplace, compose, split

GRID = 1e-4


@pytest.fixture(scope="module", autouse=True)
def imported():
    """By the one test process that has these tests."""
    global dp, pld
    reason = "dp-accounting is not installed, our accounting is NOT compared with it"
    dp = pytest.importorskip("dp_accounting", reason=reason)
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


def gaussian(mu, pessimistic=True):
    return pld.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=GRID, pessimistic_estimate=pessimistic
    )


def test_composition_is_not_below_a_lower_estimate():
    """Laplace and Gaussian together, against the true composition estimated from below."""
    for laplace, mu in ((0.5, 0.4), (0.1, 1.0), (1.0, 0.1)):
        low = pld.from_laplace_mechanism(
            1 / laplace, value_discretization_interval=GRID, pessimistic_estimate=False
        ).compose(gaussian(mu, pessimistic=False))
        spend = compose([Laplace(laplace), Gaussian(mu, 10)])
        for delta in (1e-2, 1e-4, 1e-6):
            assert spend.epsilon(delta) >= low.get_epsilon_for_delta(delta) - GRID


def worst_selections(epsilon, steps=20):
    """The two-point losses of an exponential mechanism: t, or t - epsilon."""
    from dp_accounting.pld import pld_pmf

    for step in range(1, steps):
        t = epsilon * step / steps
        p = math.expm1(t - epsilon) / math.expm1(-epsilon)
        losses = {math.floor(t / GRID): p, math.floor((t - epsilon) / GRID): 1 - p}
        yield pld.PrivacyLossDistribution(pld_pmf.create_pmf(losses, GRID, 0.0, pessimistic_estimate=False))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.5, 1e-4), (3.0, 1e-6)])
def test_a_selection_and_a_release_fill_the_budget_and_do_not_exceed_it(epsilon, delta):
    """Each worst-case selection, composed with the Gaussian that split allows, stays within delta."""
    parts = split(epsilon, delta)
    release = gaussian(parts.release.mu, pessimistic=False)
    deltas = [
        law.compose(release).get_delta_for_epsilon(epsilon) for law in worst_selections(parts.selection)
    ]
    assert max(deltas) <= delta * (1 + 1e-6)
    assert max(deltas) >= 0.97 * delta  # tight: the grid and the missing t's are all that is lost


def test_concentrated_bounds_match_their_accountant():
    """zCDP of many selections: theirs converts Renyi orders; ours must not be below, nor far above."""
    accountant = dp.rdp.RdpAccountant(orders=[1 + 0.05 * k for k in range(1, 2000)])
    rho = 40 * 0.2**2 / 8
    accountant.compose(dp.ZCDpEvent(rho))
    ours = compose([Exponential(0.2)] * 40).epsilon(1e-6)
    assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=5e-3)
