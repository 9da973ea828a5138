"""The integral kernel: its values against high-precision ones, typed inputs, and models of bins."""

from __future__ import annotations

import math
from functools import cache

import mpmath as mp
import numpy as np
import pytest

import cloakgp
from cloakgp.kernels import EQ, Boxes, Constant, Integral, Matern32, Points

UNIT = Integral(EQ(1.0))


def side(lower, upper):
    """One side in one dimension; a point if its ends are equal."""
    return np.array([[lower, upper]])


def random_boxes(count, dimensions, seed=0):
    rng = np.random.default_rng(seed)
    lower = rng.normal(scale=2.0, size=(count, dimensions))
    return Boxes(lower, lower + 10.0 ** rng.uniform(-3, 1, (count, dimensions)))


def boxes_and_points(seed=0):
    """Seven boxes and five points in two dimensions, encoded."""
    points = Points(np.random.default_rng(seed + 100).normal(size=(5, 2)))
    return np.vstack([random_boxes(7, 2, seed), points])


# Values. The reference is the textbook formula with so many digits that its cancellation is harmless.


def exact(first, second):
    """The mean of exp(−(x − z)²/2) over x in the first side and z in the second, as an mpf."""
    gap = max(0.0, second[0] - first[1], first[0] - second[1])
    with mp.workdps(50 + int(gap * gap / 4)):
        (p, q), (r, s) = ([mp.mpf(float(end)) for end in ends] for ends in (first, second))
        if p == q and r == s:
            return mp.exp(-((p - r) ** 2) / 2)
        if p == q:
            p, q, r, s = r, s, p, q
        if r == s:
            return (_once(q - r) - _once(p - r)) / (q - p)
        return (_twice(q - r) - _twice(q - s) - _twice(p - r) + _twice(p - s)) / ((q - p) * (s - r))


def _once(t):
    return _once_with(mp.mp.dps, t)


@cache  # the same ends are met again and again
def _once_with(digits, t):
    return mp.sqrt(mp.pi / 2) * mp.erf(t / mp.sqrt(2))


def _twice(t):
    return t * _once(t) + mp.exp(-t * t / 2)


def assert_accurate(kernel, first, second, expected, rtol):
    value = kernel(side(*first), side(*second))[0, 0]
    assert value == kernel(side(*second), side(*first))[0, 0]
    if expected < mp.mpf("1e-300"):
        assert abs(value - expected) < 1e-300
    else:
        assert abs(value / expected - 1) < rtol, (first, second, value, float(expected))


SIZES = [0.0, 1e-7, 1e-5, 1e-3, 0.1, 0.7, 1.5, 3.0, 10.0, 100.0, 1000.0]
GAPS = [0.0, 1e-8, 1e-3, 0.3, 1.0, 2.0, 5.0, 12.3, 20.0, 30.0, 36.0]


@pytest.mark.parametrize("size", SIZES)
def test_relative_accuracy_at_any_size_and_separation(size):
    for other in [s for s in SIZES if s <= size]:
        apart = [size + gap for gap in GAPS]  # the first of them touches
        before = [-other - gap for gap in GAPS[:4]]
        within = [share * (size - other) for share in (0.0, 0.1, 0.5, 1.0)]
        overlapping = [size - share * other for share in (0.1, 0.9)]
        for start in {*apart, *before, *within, *overlapping}:
            first, second = (0.0, size), (start, start + other)
            assert_accurate(UNIT, first, second, exact(first, second), rtol=1e-12)


def test_relative_accuracy_where_the_formulas_meet():
    rng = np.random.default_rng(4)
    for _ in range(150):  # the length times the distance of a ramp is near 2, where the rule changes
        width, gap = 10.0 ** rng.uniform(-7, 3), rng.uniform(0, 36)
        start = width + gap
        first, second = (0.0, width), (start, start + 2.0 / (gap + 1.4) * rng.uniform(0.9, 1.1))
        assert_accurate(UNIT, first, second, exact(first, second), rtol=2e-12)


def test_lengthscales_and_variance_multiply_over_dimensions():
    X, Z, scales = random_boxes(6, 3), random_boxes(4, 3, seed=1), (0.4, 2.5, 1.0)
    expected = np.full((6, 4), 3.0)
    for d, scale in enumerate(scales):
        one, other = (Boxes(B.lower[:, d] / scale, B.upper[:, d] / scale) for B in (X, Z))
        expected *= UNIT(one, other)
    np.testing.assert_allclose(Integral(EQ(scales, variance=3.0))(X, Z), expected, rtol=1e-12)


def test_points_have_the_base_kernel():
    rng = np.random.default_rng(2)
    x, z = rng.normal(size=(9, 3)), rng.normal(size=(5, 3))
    kernel = EQ([0.5, 1.0, 3.0], variance=2.0)
    np.testing.assert_allclose(Integral(kernel)(Points(x), Points(z)), kernel(x, z), rtol=1e-14)
    np.testing.assert_array_equal(Integral(kernel).diag(Points(x)), np.full(9, 2.0))


# What makes it a kernel


@pytest.mark.parametrize("seed", range(5))
def test_boxes_mixed_with_points_are_positive_semi_definite(seed):
    eigenvalues = np.linalg.eigvalsh(Integral(EQ([0.8, 5.0]))(boxes_and_points(seed)))
    assert eigenvalues[0] >= -1e-13 * eigenvalues[-1]


# Sides and dimensions


def test_a_side_of_no_length_is_evaluated():
    X = np.array([[0.0, 1.0, 2.0, 1.0]])  # from 0 to 2, at 1
    mean = Integral(EQ(1.0))
    expected = mean([[0.0, 2.0]]) * EQ(1.0)([[1.0]], [[1.5]])
    np.testing.assert_allclose(mean(X, [[0.0, 1.5, 2.0, 1.5]]), expected, rtol=1e-14)


def test_dimensions_that_are_not_read_do_not_count():
    X = random_boxes(5, 2)
    one = Boxes(X.lower[:, 1], X.upper[:, 1])
    np.testing.assert_array_equal(Integral(EQ(1.3, active_dims=[1]))(X), Integral(EQ(1.3))(one))


def test_range():
    assert Integral(EQ(1.0, variance=3.0)).range == (0.0, 3.0)


# As a kernel among others


class Derived(EQ):
    """Might be another function."""

    __slots__ = ()


@pytest.mark.parametrize(
    "kernel", [Matern32(1.0), EQ(1.0) + EQ(2.0), 2.0 * EQ(1.0), Derived(1.0), UNIT, EQ, None, 1.0, np.minimum]
)
def test_other_kernels_are_refused_with_the_remedy(kernel):
    with pytest.raises(TypeError, match=r"kernel must be EQ.*Integral\(a\) \+ Integral\(b\)"):
        Integral(kernel)


# Inputs


def test_encoding():
    boxes, points = Boxes([[0, 1], [2, 3]], [[5, 6], [7, 8]]), Points([[1, 2]])
    np.testing.assert_array_equal(np.asarray(boxes), [[0, 1, 5, 6], [2, 3, 7, 8]])
    np.testing.assert_array_equal(np.asarray(points), [[1, 2, 1, 2]])
    assert np.asarray(boxes).dtype == np.float64
    assert np.asarray(points, dtype=np.float32).dtype == np.float32
    for rows in (boxes, points):
        with pytest.raises(ValueError, match="cannot become an array without a copy"):
            rows.__array__(copy=False)
        np.asarray(rows)[...] = 9.0  # a copy: nothing inside changes
    np.testing.assert_array_equal(points.lower, [[1, 2]])
    np.testing.assert_array_equal(UNIT(boxes, points), UNIT(np.asarray(boxes), np.asarray(points)))
    np.testing.assert_array_equal(UNIT.diag(boxes), UNIT.diag(np.asarray(boxes)))
    np.testing.assert_array_equal(UNIT(boxes), UNIT(boxes, boxes))


@pytest.mark.parametrize(
    ("build", "name", "got"),
    [
        (lambda: Boxes([0.0], [0.0]), "lower", "0.0 and 0.0 in row 0, dimension 0"),
        (lambda: Boxes([[0, 1], [0, 3]], [[1, 2], [1, 2]]), "lower", "3.0 and 2.0 in row 1, dimension 1"),
        (lambda: Boxes([0.0], [1.0, 2.0]), "upper", "(2, 1)"),
        (lambda: Boxes([math.nan], [1.0]), "lower", None),
        (lambda: Boxes([0.0], [math.inf]), "upper", None),
        (lambda: Points([[math.inf]]), "x", None),
        (lambda: UNIT([1.0, 2.0]), "X", "1"),
        (lambda: UNIT.diag(np.zeros((2, 3))), "X", "3"),
        (lambda: UNIT([[0, 1], [2, 1]]), "X", "2.0 and 1.0 in row 1, dimension 0"),
        (lambda: UNIT([[0, 1]], [[2, 1]]), "Z", "2.0 and 1.0 in row 0, dimension 0"),
        (lambda: UNIT(Points([1.0]), Points([[1.0, 2.0]])), "Z", None),
        (lambda: UNIT([[0.0, math.nan]]), "X", None),
        (lambda: Integral(EQ([1.0, 2.0]))(Points([1.0])), "lengthscale", None),
        (lambda: Integral(EQ(1.0, active_dims=[1]))([[0.0, 1.0]]), "active_dims", None),
    ],
)
def test_bad_inputs_are_named(build, name, got):
    with pytest.raises(cloakgp.ArgumentError) as caught:
        build()
    assert caught.value.name == name
    assert got in (None, caught.value.got)


def test_strict_array_api():
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    X = boxes_and_points()
    K = UNIT(xp.asarray(X))
    assert type(K) is type(xp.asarray(X))
    np.testing.assert_array_equal(np.asarray(K), UNIT(X))
    np.testing.assert_array_equal(np.asarray(UNIT.diag(xp.asarray(X))), UNIT.diag(X))


@pytest.mark.torch
def test_torch():
    import torch

    X = boxes_and_points()
    for dtype, rtol in ((torch.float64, 1e-15), (torch.float32, 1e-4)):
        K = UNIT(torch.asarray(X, dtype=dtype), torch.asarray(X[:3], dtype=dtype))
        assert K.dtype == dtype
        np.testing.assert_allclose(K.numpy(), UNIT(X, X[:3]), rtol=rtol, atol=rtol)


# Models of bins

KERNELS = {
    "mean": Integral(EQ(2.0, variance=1.5)),
    "sum": Integral(EQ(2.0)) + Integral(EQ(0.5)) * 0.3 + Constant(2.0),
}


def bins(n=12):
    edges = np.concatenate([[0.0], np.cumsum(np.random.default_rng(3).uniform(0.3, 2.0, n))])
    return Boxes(edges[:-1], edges[1:])


def model(kernel):
    return cloakgp.GP(kernel, noise=0.4, bounds=(-1.0, 4.0), mean=0.7)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("design", ["mse", "volume"])
def test_releases_of_binned_outcomes(kernel, design, tmp_path, noiseless, textbook):
    boxes, points = bins(), Points(np.linspace(0.0, 12.0, 5))
    y = np.random.default_rng(4).uniform(-1.0, 4.0, len(boxes))
    gp = model(kernel)
    with pytest.raises(ValueError, match="must have two columns per dimension"):
        gp.plan([0.0, 1.0], X_star=[2.0], epsilon=1.0, delta=0.01)
    plan = gp.plan(boxes, X_star=points, epsilon=1.0, delta=0.01, design=design)
    np.testing.assert_array_equal(plan.X, np.asarray(boxes))
    np.testing.assert_array_equal(plan.X_star, np.asarray(points))
    expected, std = textbook(kernel, 0.4, 0.7, np.asarray(boxes), np.asarray(points), y)
    np.testing.assert_allclose(noiseless(plan, y).mean, expected, atol=2e-4)
    np.testing.assert_allclose(plan.gp_std, std, rtol=1e-8)

    release, path = plan.release(y), tmp_path / "bins.cloak"
    release.save(path)
    loaded = cloakgp.load(path)
    assert loaded.plan.gp.kernel == kernel
    np.testing.assert_array_equal(loaded.mean, release.mean)
    elsewhere = Points([0.5, 7.0])
    np.testing.assert_array_equal(loaded.predict(elsewhere), release.predict(np.asarray(elsewhere)))
    np.testing.assert_array_equal(loaded.predict(boxes[:2]), release.predict(np.asarray(boxes)[:2]))
    assert not any("NOT" in check for check in cloakgp.verify(path).checks)


def test_whole_functions_of_binned_outcomes(tmp_path):
    boxes, path = bins(), tmp_path / "function.cloak"
    for bound in ("exact", "paper"):
        plan = model(Integral(EQ(0.5))).plan_function(boxes, epsilon=1.0, delta=0.01, bound=bound)
        release = plan.release(np.linspace(0, 3, len(boxes)))
        release.save(path)
        points = Points([1.0, 5.0])
        loaded = cloakgp.load(path)
        np.testing.assert_array_equal(loaded.query(points), release.query(np.asarray(points)))
        cloakgp.verify(path)
