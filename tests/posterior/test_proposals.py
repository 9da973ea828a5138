"""Hypotheses that are drawn where the weight is: sums over them stand for integrals over the box."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from cloakgp.model.point_sets import sobol
from cloakgp.posterior.evidence import Hypotheses
from cloakgp.posterior.proposals import Normal, Proposals

ENDS = np.array([[-3.0, 1.0], [2.0, 2.0], [0.0, 10.0], [-1.0, 1.0]])
FREE = [0, 2, 3]
CENTRE, STD = np.array([-2.0, 8.0, 0.2]), np.array([0.1, 0.25, 0.03])


class Point:
    """As much of a setting as proposals ask for."""

    def __init__(self, family):
        self.family = family


def hypotheses(families, points):
    return Hypotheses(tuple(Point(one) for one in families), points, np.zeros(len(points), dtype=bool))


def bump(points, centre=CENTRE):
    """Log density of a Gaussian within the box."""
    return norm.logpdf(points[:, FREE], centre, STD).sum(axis=1)


def started(families=("a",), n=512):
    points = ENDS[:, 0] + (sobol(4, n) + 0.5 / n) * np.diff(ENDS).T
    return Proposals(ENDS, n), hypotheses(np.repeat(families, n), np.tile(points, (len(families), 1)))


def rounds(proposals, found, log_density, n=2):
    for _ in range(n):
        total = log_density(found) + proposals.log_weights(found)
        found = found.join(hypotheses(*proposals.draw(found, total, 128)))
    return found


def integral(proposals, found, values):
    """Mean over the box times its volume."""
    volume = np.prod(np.diff(ENDS)[FREE])
    return volume * np.exp(proposals.log_weights(found)) @ values


def test_weights_integrate_a_known_density():
    proposals, found = started()
    before = integral(proposals, found, np.exp(bump(found.points)))
    found = rounds(proposals, found, lambda some: bump(some.points))
    density = np.exp(bump(found.points))
    total = integral(proposals, found, density)
    assert total == pytest.approx(1.0, abs=0.07)
    assert abs(before - 1.0) > 0.1  # the first points alone hardly see it
    assert len(found) > 512 + 200
    for at, (centre, std) in zip(FREE, zip(CENTRE, STD, strict=True), strict=True):
        mean = integral(proposals, found, density / total * found.points[:, at])
        assert mean == pytest.approx(centre, abs=0.2 * std)
    assert (found.points[:, 1] == 2.0).all()


def test_a_law_that_was_off_the_mark_costs_little():
    """Its points count as what they are: drawn where the density is small."""
    proposals, found = started()
    off = Normal("a", np.array([0.5, 2.0, -0.8]), np.diag([0.05, 0.1, 0.05]), 400)
    proposals.laws.append(off)
    normals = np.random.default_rng(0).normal(size=(400, 3))
    drawn = np.full((400, 4), 2.0)
    drawn[:, FREE] = off.centre + normals @ off.factor.T
    found = rounds(proposals, found.join(hypotheses(["a"] * 400, drawn)), lambda some: bump(some.points))
    assert integral(proposals, found, np.exp(bump(found.points))) == pytest.approx(1.0, abs=0.05)
    assert integral(proposals, found, np.ones(len(found))) == pytest.approx(80.0, rel=0.1)


def test_each_family_is_integrated_by_its_own_points():
    """One has three times the density of the other, elsewhere."""
    other = np.array([0.0, 3.0, -0.5])

    def log_density(some):
        is_a = np.array(some.families) == "a"
        return np.where(is_a, bump(some.points), np.log(3) + bump(some.points, other))

    proposals, found = started(("a", "b"))
    found = rounds(proposals, found, log_density, 3)
    density, is_a = np.exp(log_density(found)), np.array(found.families) == "a"
    assert integral(proposals, found, density * is_a) == pytest.approx(1.0, abs=0.1)
    assert integral(proposals, found, density * ~is_a) == pytest.approx(3.0, abs=0.3)


def test_modes_that_are_far_apart_have_a_law_each():
    far = np.array([0.5, 1.0, -0.7])
    proposals, found = started()

    def log_density(some):
        return np.logaddexp(bump(some.points), bump(some.points, far))

    found = rounds(proposals, found, log_density)
    at = np.array([law.centre for law in proposals.laws])
    assert all((np.abs(at - mode) < 5 * STD).all(axis=1).any() for mode in (CENTRE, far))
    assert integral(proposals, found, np.exp(log_density(found))) == pytest.approx(2.0, abs=0.1)


def test_where_nothing_is_open_nothing_is_drawn():
    fixed = np.repeat(ENDS[:, :1], 2, axis=1)
    proposals, found = Proposals(fixed, 1), hypotheses(["a"], fixed[:, :1].T)
    families, points = proposals.draw(found, np.zeros(1), 128)
    assert families == []
    assert points.shape == (0, 4)
    np.testing.assert_allclose(proposals.log_weights(found), 0.0)
