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
from cloakgp.core.errors import ArgumentError
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
from cloakgp.kernels.base import registered

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
        Category(0.4, variance=3.0),
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


def test_the_mark_on_its_class_is_all_that_a_new_kernel_needs():
    """Files and texts ask the classes that are marked, and have no lists of their own."""

    @registered
    class Triangle(kernels.Stationary):
        def _shape(self, r2: Any, xp: Any) -> Any:
            return xp.maximum(1.0 - xp.sqrt(r2), 0.0 * r2)

    try:
        assert from_spec(Triangle(0.7).to_spec()) == Triangle(0.7)
        assert Triangle(2.0)([[0.0]], [[1.0]]) == 0.5
    finally:
        del kernels.KINDS["Triangle"]
    with pytest.raises(ValueError, match="kind must be one of"):
        from_spec(Triangle(0.7).to_spec())


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
        assert hasattr(kernels, name)
        assert f"cloakgp.kernels.{name}" in documented


@pytest.mark.parametrize(("kernel", "reference"), CASES, ids=BY_NAME)
def test_agrees_with_a_reference(kernel, reference, X, Z):
    np.testing.assert_allclose(kernel(X, Z), reference(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X), reference(X, X), rtol=1e-12, atol=1e-14)


@every_kernel
def test_matrices_are_exactly_symmetric_with_their_diagonal_and_inputs_are_left_alone(kernel, X, Z):
    before = X.copy(), Z.copy()
    K, diag = kernel(X), kernel.diag(X)
    assert (kernel(X, Z).shape, K.shape, diag.shape, kernel(X[:1], Z[:1]).shape) == (
        (9, 5),
        (9, 9),
        (9,),
        (1, 1),
    )
    for values in (kernel(X, Z), diag):
        assert type(values) is np.ndarray
        assert values.dtype == np.float64
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(kernel(X, Z), kernel(Z, X).T)
    np.testing.assert_array_equal(K, kernel(X, X.copy()))
    np.testing.assert_array_equal(diag, np.diagonal(K))
    if isinstance(kernel, kernels.Stationary | Constant):
        np.testing.assert_array_equal(diag, np.full(9, kernel.variance))
    np.testing.assert_array_equal(np.vstack([X, Z]), np.vstack(before))


@every_kernel
@settings(max_examples=25, deadline=None)
@given(X=arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=st.floats(-50, 50)))
def test_is_positive_semi_definite_within_its_range(kernel, X):
    K = kernel(np.sort(X, axis=1))
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -1e-12 * max(1.0, abs(eigenvalues[-1]))
    if kernel.range is not None:
        low, high = kernel.range
        assert low <= K.min()
        assert K.max() <= high


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
def test_it_comes_back_from_json_text_pickle_and_copy(kernel):
    awkward = replace(kernel, variance=math.pi / 7) if hasattr(kernel, "variance") else kernel
    for one in (kernel, awkward, 0.1 * kernel, kernel + Constant(1 / 3), kernel * (Constant(2.0) + kernel)):
        ways = {
            "JSON": from_spec(json.loads(json.dumps(one.to_spec(), allow_nan=False))),
            "Python": eval(repr(one), {"__builtins__": {}, **kernels.KINDS}),  # noqa: S307 (our own text)
            "text": kernels.parse(repr(one)),
            "pickle": pickle.loads(pickle.dumps(one)),  # noqa: S301
            "deep copy": copy.deepcopy(one),
            "copy": copy.copy(one),
        }
        for way, twin in ways.items():
            assert twin == one, way
            assert (type(twin), hash(twin)) == (type(one), hash(one)), way
    assert kernel != 2.0 * kernel
    assert len({kernel, from_spec(kernel.to_spec()), *BY_NAME.values()}) == len(BY_NAME)


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


BAD: dict[str, list[Any]] = {
    "lengthscale": [0.0, -1.0, math.inf, "1.0", None, [], [1.0, 0.0], [1.0, math.nan], [[1.0, 2.0]]],
    "variance": [0.0, -1.0, math.nan, True, "1", [1.0]],
    "active_dims": [1, [0.5, 1], "01", [True, False], [0, -1], [1, 1], [], [0, 2**31]],
    "period": [0.0, "year", None],
    "alpha": [-1.0, math.inf],
    "degree": [0, 2.0, True, 2**31],
    "offset": [-0.5, math.nan],
    "correlation": [1.01, -0.1, math.nan],
}


@pytest.mark.parametrize(("name", "value"), [(name, bad) for name, each in BAD.items() for bad in each])
def test_bad_parameters_are_refused_at_once_and_in_files(name, value):
    having = [one for one in BY_NAME.values() if hasattr(one, name) and not isinstance(one, Gibbs)]
    assert having
    for kernel in having:
        with pytest.raises(ArgumentError) as error:
            replace(kernel, **{name: value})
        assert error.value.name == name
        with pytest.raises(ValueError, match=name):
            from_spec(kernel.to_spec() | {name: value})


def test_a_lengthscale_for_each_column():
    for kernel in SCALED.values():
        with pytest.raises(ArgumentError, match="one entry per column in active_dims, 3"):
            replace(kernel, active_dims=[0, 1, 2])


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


ARRAYS = [
    *(kernel for kernel in BY_NAME.values() if not isinstance(kernel, Integral)),
    Gibbs(([0.5, 1.0, 2.5], [0.2, 1.0, 0.4]), variance=3.0, active_dims=[1]),
    kernels.Custom(lambda X, Z: X @ Z.T),
]
of_any_arrays = pytest.mark.parametrize("kernel", ARRAYS, ids=lambda k: type(k).__name__)


@of_any_arrays
def test_strict_array_api(kernel, X, Z):
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    K = kernel(xp.asarray(X), xp.asarray(Z))
    assert type(K) is type(xp.asarray(X))
    np.testing.assert_allclose(np.asarray(K), kernel(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.asarray(kernel.diag(xp.asarray(X))), kernel.diag(X), rtol=1e-12)


@pytest.mark.torch
@of_any_arrays
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch(kernel, dtype, X, Z):
    import torch

    X, Z = abs(X) / 2 + 0.1, abs(Z) / 2 + 0.1  # of a size at which single precision is enough
    tX, tZ = (torch.asarray(A, dtype=getattr(torch, dtype)) for A in (X, Z))
    if isinstance(kernel, kernels.Category):
        X, Z = tX.double().numpy(), tZ.double().numpy()  # levels are equal or not
    rtol = 1e-12 if dtype == "float64" else 1e-4
    assert isinstance(kernel(tX, tZ), torch.Tensor)
    assert kernel(tX, tZ).dtype == kernel.diag(tX).dtype == tX.dtype
    np.testing.assert_allclose(kernel(tX, tZ).numpy(), kernel(X, Z), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(kernel.diag(tX).numpy(), kernel.diag(X), rtol=rtol)
    # To the last bit, unless a function of the user's own multiplies matrices: not every processor does.
    rtol = rtol if isinstance(kernel, kernels.Custom) else 0.0
    np.testing.assert_allclose(kernel(tX).numpy(), kernel(tX).numpy().T, rtol=rtol)
