"""The contract of every kernel: one set of tests, run on every class that from_spec can build."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.gaussian_process import kernels as sk

from cloakgp import kernels
from cloakgp.kernels import (
    EQ,
    Category,
    Constant,
    Gibbs,
    Integral,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Sum,
    from_spec,
)

# Each kernel, and the same function of two points by another hand: one of scikit-learn's kernels,
# or the formula on Python floats. No two parameters of a kernel are equal, and none is 1.
SCALES = (0.7, 2.5)


def r2(x: Any, z: Any, scales: tuple[float, ...] = SCALES) -> float:
    return sum(((a - b) / s) ** 2 for a, b, s in zip(x, z, scales, strict=True))


def dot(x: Any, z: Any, scales: tuple[float, ...] = SCALES) -> float:
    return sum(a * b / s**2 for a, b, s in zip(x, z, scales, strict=True))


def sines(x: Any, z: Any) -> float:
    gaps = [(abs(a - b), s) for a, b, s in zip(x, z, SCALES, strict=True)]
    return sum(math.sin(math.pi * gap / 1.7) ** 2 / s**2 for gap, s in gaps)


def gibbs(x: Any, z: Any) -> float:
    """With log lengthscales weighted by inverse squared distance from two knots, in units of their box."""

    def scale(x: Any) -> float:
        x = [min(max(x[0], -1.0), 2.0), min(max(x[1], 0.0), 3.0)]
        d, e = ((x[0] + 1) / 3) ** 2 + (x[1] / 3) ** 2, ((x[0] - 2) / 3) ** 2 + ((x[1] - 3) / 3) ** 2
        return 0.7 if d == 0 else 2.5 if e == 0 else 0.7 ** (e / (d + e)) * 2.5 ** (d / (d + e))

    a, b = scale(x), scale(z)
    s = a**2 + b**2
    return 3.0 * (2 * a * b / s) * math.exp(-r2(x, z, (1.0, 1.0)) / s)


def mean_over_sides(x: Any, z: Any) -> float:
    """The mean of exp(−r²/2) over two intervals, given by their ends, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    a, b = (low + (high - low) * (nodes + 1) / 2 for low, high in (x, z))
    return float(weights @ np.exp(-(((a[:, None] - b) / 0.7) ** 2) / 2) @ weights) / 4


def pointwise(k: Callable[[Any, Any], float]) -> Callable[..., Any]:
    return lambda X, Z: np.array([[k(x, z) for z in Z] for x in X])


CASES: list[tuple[Kernel, Callable[..., Any]]] = [
    (EQ(SCALES, variance=3.0), 3.0 * sk.RBF(SCALES)),
    (Matern12(SCALES, variance=3.0), 3.0 * sk.Matern(SCALES, nu=0.5)),
    (Matern32(SCALES, variance=3.0), 3.0 * sk.Matern(SCALES, nu=1.5)),
    (Matern52(SCALES, variance=3.0), 3.0 * sk.Matern(SCALES, nu=2.5)),
    (Periodic(SCALES, period=1.7, variance=3.0), pointwise(lambda x, z: 3.0 * math.exp(-2 * sines(x, z)))),
    (
        RationalQuadratic(SCALES, alpha=0.6, variance=3.0),
        pointwise(lambda x, z: 3.0 / (1 + r2(x, z) / 1.2) ** 0.6),
    ),
    (
        Category(0.4, levels=["a", 'say "b"', 7], variance=3.0),
        pointwise(lambda x, z: 3.0 * 0.4 ** sum(a != b for a, b in zip(x, z, strict=True))),
    ),
    (Gibbs(([(-1.0, 0.0), (2.0, 3.0)], SCALES), variance=3.0), pointwise(gibbs)),
    (Linear(SCALES, variance=3.0), pointwise(lambda x, z: 3.0 * dot(x, z))),
    (
        Polynomial(SCALES, degree=3, offset=0.4, variance=3.0),
        pointwise(lambda x, z: 3.0 * (dot(x, z) + 0.4) ** 3),
    ),
    (Constant(3.0), sk.ConstantKernel(3.0)),
    (Integral(EQ(0.7, variance=3.0)), pointwise(lambda x, z: 3.0 * mean_over_sides(x, z))),
    (Sum((EQ(SCALES), Linear(2.0))), pointwise(lambda x, z: math.exp(-r2(x, z) / 2) + dot(x, z, (2.0, 2.0)))),
    (
        Product((EQ(SCALES, variance=3.0), Sum((Constant(2.0), Matern12(4.0))))),
        pointwise(
            lambda x, z: 3 * math.exp(-r2(x, z) / 2) * (2 + math.exp(-math.sqrt(r2(x, z, (4.0, 4.0)))))
        ),
    ),
]
BY_NAME = {type(kernel).__name__: kernel for kernel, _ in CASES}

every_kernel = pytest.mark.parametrize("kernel", BY_NAME.values(), ids=BY_NAME)
SCALED = {  # by numbers, not by knots
    name: kernel
    for name, kernel in BY_NAME.items()
    if hasattr(kernel, "lengthscale") and not isinstance(kernel, Gibbs)
}
every_scaled = pytest.mark.parametrize("kernel", SCALED.values(), ids=SCALED)


# Rows are sorted so that they are intervals too, as Integral takes them: lower end, upper end.


@pytest.fixture
def X() -> np.ndarray:
    return np.sort(np.random.default_rng(7).normal(scale=2.0, size=(9, 2)), axis=1)


@pytest.fixture
def Z() -> np.ndarray:
    return np.sort(np.random.default_rng(8).normal(scale=2.0, size=(5, 2)), axis=1)


def test_every_registered_kernel_is_covered():
    assert len(CASES) == len(BY_NAME)
    assert {type(kernel) for kernel, _ in CASES} == set(kernels.KINDS.values())


def test_every_kernel_class_but_custom_is_registered():
    public = {
        value
        for name, value in vars(kernels).items()
        if isinstance(value, type) and issubclass(value, Kernel) and not name.startswith("_")
    }
    assert public - set(kernels.KINDS.values()) == {Kernel, kernels.Custom, kernels.Stationary}


def test_every_registered_kernel_is_exported_and_documented():
    documented = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8").split()
    for name in kernels.KINDS:
        assert name in kernels.__all__
        assert f"cloakgp.kernels.{name}" in documented


@pytest.mark.parametrize(("kernel", "reference"), CASES, ids=BY_NAME)
def test_agrees_with_a_reference(kernel, reference, X, Z):
    np.testing.assert_allclose(kernel(X, Z), reference(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X), reference(X, X), rtol=1e-12, atol=1e-14)


@every_kernel
def test_shapes_and_types(kernel, X, Z):
    assert kernel(X, Z).shape == (9, 5)
    assert kernel(X).shape == (9, 9)
    assert kernel.diag(X).shape == (9,)
    assert kernel(X[:1], Z[:1]).shape == (1, 1)
    for values in (kernel(X, Z), kernel.diag(X)):
        assert type(values) is np.ndarray
        assert values.dtype == np.float64


@every_kernel
def test_is_exactly_symmetric(kernel, X, Z):
    np.testing.assert_array_equal(kernel(X), kernel(X).T)
    np.testing.assert_array_equal(kernel(X, Z), kernel(Z, X).T)
    np.testing.assert_array_equal(kernel(X), kernel(X, X.copy()))


@every_kernel
def test_diag_is_the_matrix_diagonal(kernel, X):
    np.testing.assert_array_equal(kernel.diag(X), np.diagonal(kernel(X)))
    if isinstance(kernel, kernels.Stationary | Constant):
        np.testing.assert_array_equal(kernel.diag(X), np.full(9, kernel.variance))


@every_kernel
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(X=arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=st.floats(-50, 50)))
def test_is_positive_semi_definite_within_its_range(kernel, X):
    K = kernel(np.sort(X, axis=1))
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -1e-12 * max(1.0, abs(eigenvalues[-1]))
    if kernel.range is not None:
        low, high = kernel.range
        assert low <= K.min()
        assert K.max() <= high


@every_kernel
def test_inputs_are_left_alone(kernel, X, Z):
    before = X.copy(), Z.copy()
    kernel(X, Z)
    kernel.diag(X)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Z, before[1])


@every_scaled
def test_lengthscales_per_column_are_isotropic_on_rescaled_inputs(kernel, X, Z):
    one = replace(kernel, lengthscale=2.0)
    np.testing.assert_array_equal(replace(kernel, lengthscale=(2.0, 2.0))(X, Z), one(X, Z))
    assert not np.allclose(kernel(X, Z), one(X, Z))
    if isinstance(kernel, Periodic):  # here the lengthscale acts on the sine, not on the inputs
        parts = [replace(kernel, lengthscale=s, active_dims=[d], variance=1.0) for d, s in enumerate(SCALES)]
        expected = 3.0 * parts[0](X, Z) * parts[1](X, Z)
    else:
        expected = replace(kernel, lengthscale=1.0)(X / SCALES, Z / SCALES)
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12, atol=1e-14)


@every_scaled
def test_active_dims_are_a_slice(kernel, X, Z):
    wide_X, wide_Z = (np.column_stack([A[:, 1], np.full(len(A), 1e6), A[:, 0]]) for A in (X, Z))
    chosen = replace(kernel, active_dims=(2, 0))
    np.testing.assert_array_equal(chosen(wide_X, wide_Z), kernel(X, Z))
    np.testing.assert_array_equal(chosen.diag(wide_X), kernel.diag(X))


@every_kernel
def test_scaling_by_a_number(kernel, X, Z):
    for scaled in (2.5 * kernel, kernel * 2.5, np.float64(2.5) * kernel, kernel * np.float32(2.5)):
        np.testing.assert_allclose(scaled(X, Z), 2.5 * kernel(X, Z), rtol=1e-14)
        np.testing.assert_allclose(scaled.diag(X), 2.5 * kernel.diag(X), rtol=1e-14)
    if hasattr(kernel, "variance"):
        bigger = replace(kernel, variance=2.5 * kernel.variance)
        np.testing.assert_allclose(bigger(X, Z), 2.5 * kernel(X, Z), rtol=1e-14)


@every_kernel
def test_spec_round_trip_is_exact_through_json(kernel):
    awkward = replace(kernel, variance=math.pi / 7) if hasattr(kernel, "variance") else kernel
    for one in (kernel, awkward, 0.1 * kernel, kernel + Constant(1 / 3)):
        rebuilt = from_spec(json.loads(json.dumps(one.to_spec(), allow_nan=False)))
        assert rebuilt == one
        assert type(rebuilt) is type(one)


@every_kernel
def test_repr_is_the_python_that_rebuilds_it(kernel):
    names = {"__builtins__": {}, **kernels.KINDS}
    for one in (kernel, kernel + Constant(2.0), Constant(2.0) * kernel, kernel * (Constant(2.0) + kernel)):
        assert eval(repr(one), names) == one  # noqa: S307 (our own text, no builtins)


@every_kernel
def test_equality_and_hash_are_by_value(kernel):
    twin = from_spec(kernel.to_spec())
    assert twin is not kernel
    assert twin == kernel
    assert hash(twin) == hash(kernel)
    assert kernel != 2.0 * kernel
    others = [other for other in BY_NAME.values() if other is not kernel]
    assert all(kernel != other for other in others)
    assert len({kernel, twin, *others}) == len(BY_NAME)


@every_kernel
def test_cannot_be_changed(kernel):
    for name in [f.name for f in fields(kernel)]:
        with pytest.raises(FrozenInstanceError):
            setattr(kernel, name, 5.0)
        with pytest.raises(FrozenInstanceError):
            delattr(kernel, name)
    with pytest.raises((AttributeError, TypeError)):
        kernel.something_new = 5.0
    assert not hasattr(kernel, "__dict__")


@every_kernel
def test_pickles_and_copies(kernel, X):
    for twin in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel), copy.copy(kernel)):  # noqa: S301
        assert twin == kernel
        np.testing.assert_array_equal(twin(X), kernel(X))


@every_scaled
def test_wrong_number_of_columns_is_named(kernel, X):
    with pytest.raises(ValueError, match=r"lengthscale must have one entry per column of X, which has 1"):
        kernel(X[:, :1])
    with pytest.raises(ValueError, match=r"lengthscale must have one entry per column of X, which has 1"):
        kernel.diag(X[:, :1])
    with pytest.raises(ValueError, match=r"active_dims must name columns of X, which has 2; got \(0, 2\)"):
        replace(kernel, active_dims=[0, 2])(X)
    with pytest.raises(ValueError, match=r"Z must have 2 column\(s\), as X has; got 1"):
        kernel(X, X[:, :1])


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"lengthscale": 0.0}, ValueError, "lengthscale must be finite and above 0"),
        ({"lengthscale": -1.0}, ValueError, "lengthscale must be finite and above 0"),
        ({"lengthscale": math.inf}, ValueError, "lengthscale must be finite"),
        ({"lengthscale": "1.0"}, TypeError, "lengthscale must be a number"),
        ({"lengthscale": None}, TypeError, "lengthscale must be a number"),
        ({"lengthscale": []}, ValueError, "lengthscale must be a number or one per input column"),
        ({"lengthscale": [1.0, 0.0]}, ValueError, "lengthscale must be above 0 everywhere"),
        ({"lengthscale": [1.0, math.nan]}, ValueError, "lengthscale must be finite"),
        ({"lengthscale": [[1.0, 2.0]]}, ValueError, "lengthscale must be one-dimensional"),
        ({"lengthscale": [[1.0], [1.0, 2.0]]}, ValueError, "lengthscale must be an array of numbers"),
        ({"variance": 0.0}, ValueError, "variance must be finite and above 0"),
        ({"variance": math.nan}, ValueError, "variance must be finite"),
        ({"variance": True}, TypeError, "variance must be a number"),
        ({"active_dims": 1}, TypeError, r"active_dims must be a sequence of column indices"),
        ({"active_dims": [0.5, 1]}, TypeError, r"active_dims must be a sequence of column indices"),
        ({"active_dims": "01"}, TypeError, r"active_dims must be a sequence of column indices"),
        ({"active_dims": [True, False]}, TypeError, r"active_dims must be a sequence of column indices"),
        ({"active_dims": [0, -1]}, ValueError, "active_dims must be distinct columns counted from 0"),
        ({"active_dims": [1, 1]}, ValueError, "active_dims must be distinct columns"),
        ({"active_dims": []}, ValueError, "active_dims must be distinct columns"),
        (
            {"active_dims": [0, 1, 2]},
            ValueError,
            "lengthscale must have one entry per column in active_dims, 3",
        ),
    ],
)
def test_bad_parameters_are_refused_at_once(changes, error, match):
    for kernel in SCALED.values():
        with pytest.raises(error, match=match):
            replace(kernel, **changes)


@every_kernel
def test_far_apart_and_wide_inputs_never_warn_or_give_nan(kernel):
    X = np.array([[0.0, 0.0], [-1e300, 1e300], [-1.7e308, 1.7e308], [1.6e308, 1.7e308], [0.0, 1e-320]])
    if kernel.range is None:
        with pytest.raises(ValueError, match="kernel must be finite on these inputs"):
            kernel(X)
        return
    K = kernel(X)
    assert np.isfinite(K).all()
    np.testing.assert_array_equal(np.diagonal(K), kernel.diag(X))
    if isinstance(kernel, kernels.Stationary) and not isinstance(kernel, Periodic):
        assert K[0, 2] < 1e-150
