"""The minimiser on functions whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.designs.lbfgs import minimise


class Recorded:
    """A function that remembers where it has been."""

    def __init__(self, function):
        self.function, self.values, self.points = function, [], []

    def __call__(self, x):
        value, gradient = self.function(x)
        self.values.append(value)
        self.points.append(x.copy())
        return value, gradient


def never():
    return False


def rosenbrock(x):
    a, b = x
    value = (1 - a) ** 2 + 100 * (b - a**2) ** 2
    return value, np.array([-2 * (1 - a) - 400 * a * (b - a**2), 200 * (b - a**2)])


def test_rosenbrock():
    f = Recorded(rosenbrock)
    minimise(f, np.array([-1.2, 1.0]), first_step=1e-3, done=never, evaluations=300)
    np.testing.assert_allclose(f.points[int(np.argmin(f.values))], [1.0, 1.0], atol=1e-5)


def test_it_stops_when_done():
    f = Recorded(rosenbrock)
    done = lambda: min(f.values) < 1.0  # noqa: E731
    minimise(f, np.array([-1.2, 1.0]), first_step=1e-3, done=done, evaluations=300)
    assert f.values[-1] < 1.0
    assert all(value >= 1.0 for value in f.values[:-1])


@pytest.mark.parametrize("budget", [1, 2, 7, 40])
def test_it_stays_within_its_evaluations(budget):
    f = Recorded(rosenbrock)
    minimise(f, np.array([-1.2, 1.0]), first_step=1e-3, done=never, evaluations=budget)
    assert len(f.values) == budget


def test_it_returns_at_a_minimum_and_on_nan():
    for function in (lambda x: (0.0, np.zeros(2)), lambda x: (np.nan, np.full(2, np.nan))):
        f = Recorded(function)
        minimise(f, np.ones(2), first_step=1.0, done=never, evaluations=100)
        assert len(f.values) == 1


def test_it_gives_up_where_no_step_helps():
    f = Recorded(lambda x: (0.0, np.ones(2)))  # a gradient that lies
    minimise(f, np.ones(2), first_step=1.0, done=never, evaluations=1000)
    assert len(f.values) < 50
