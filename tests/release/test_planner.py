"""Many plans from one planner are the plans that one would make one by one."""

import numpy as np
import pytest

import cloakgp
from cloakgp import designs
from cloakgp.kernels import EQ, Polynomial
from cloakgp.measure import statistics

X = np.linspace(0.0, 10.0, 30)
GP = cloakgp.GP(EQ(2.0), 0.3, (-1.0, 1.0))


@pytest.mark.parametrize("design", designs.DESIGNS)
def test_a_planner_makes_the_same_plan_whatever_it_made_before(design):
    planner = GP.planner(X, X_star=X[:7], weights=np.arange(1.0, 8.0))
    for epsilon in (2.0, 0.5):
        planner.plan(epsilon=epsilon, delta=0.01, design=design)
    alone = GP.plan(X, X_star=X[:7], epsilon=0.5, delta=0.01, design=design, weights=np.arange(1.0, 8.0))
    assert planner.plan(epsilon=0.5, delta=0.01, design=design).digest == alone.digest


def test_a_planner_may_serve_several_threads():
    planner = GP.planner(X, X_star=X[:7])
    planner._posteriors._anchors = Emptied()
    assert planner.plan(epsilon=1.0, delta=0.01, design="posterior").certificate.status == "converged"


class Emptied(dict):
    """As if other threads had kept newer ones in the meantime."""

    def __setitem__(self, key, value):
        pass


def test_a_bad_promise_is_refused_before_the_heavy_work(monkeypatch):
    monkeypatch.setattr("cloakgp.release.planner.smoother_for", None)
    with pytest.raises(ValueError, match="epsilon"):
        GP.planner(X, X_star=X).plan(epsilon=-1.0, delta=0.01)
    with pytest.raises(ValueError, match="classic"):
        GP.planner(X, X_star=X).plan(epsilon=2.0, delta=0.01, calibration="classic")


@pytest.mark.parametrize(("people", "cost"), [(None, 1.02), (np.arange(400) % 2, 1.002)])
def test_a_coarse_lattice_costs_little_and_raises_no_lower_bound(people, cost, monkeypatch):
    X = np.linspace(0, 1, 400)[:, None]
    planner = cloakgp.GP(0.05 * EQ(0.3), 1.0, (0, 1)).planner(X, X_star=X[::40], people=people)
    fine = planner.plan(epsilon=1.0, delta=1e-3, design="posterior").certificate
    split = statistics.bits_within

    def few(total, entries=0, n_rows=0, of_each=1):
        """Of a matrix that counts as large, with three bits where it would have 13."""
        matrix_bits = max(3 + (of_each - 1).bit_length(), n_rows.bit_length() - 2)
        return (min(statistics.Y_BITS, total - matrix_bits), matrix_bits) if entries else split(total)

    monkeypatch.setattr(statistics, "bits_within", few)
    coarse = planner.plan(epsilon=1.0, delta=1e-3, design="posterior").certificate
    assert coarse.lower_bound <= fine.objective
    assert coarse.objective < cost * fine.objective  # people's columns are short, and get more bits


def test_an_outlier_for_which_the_kernel_is_huge_is_refused_with_a_remedy():
    """(x x' + 1)^3 is 1e30 there: to the last bit of that, all that is within the bounds is nothing."""
    inputs = np.append(X, 1e5)
    gp = cloakgp.GP(Polynomial(degree=3), 1.0, (0.0, 10.0))
    for design in ("posterior", "mse"):
        with pytest.raises(cloakgp.ArgumentError, match=r"kernel must give f a std of at most .* move them"):
            gp.plan(inputs, X_star=[1.0, 2.0], epsilon=1.0, delta=1e-3, design=design)
    with pytest.raises(cloakgp.ArgumentError, match="kernel must give f a std"):
        gp.plan_function(inputs, epsilon=1.0, delta=1e-3)
