"""Released functions: one function, asked anywhere, in any order, now or from a file."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

import cloakgp
from cloakgp import GP, FunctionPlan, FunctionRelease, Release, ReleaseFileError
from cloakgp.files import container
from cloakgp.kernels import EQ, Constant, Linear, Matern12, Matern52

PROMISE = {"epsilon": 1.0, "delta": 0.01}
BASIS = np.linspace(0, 10, 6)[:, None]
QUERIES = np.array([[-20.0], [-1.0], [0.0], [2.2], [7.7], [10.5], [60.0]])
KINDS: dict[str, dict[str, Any]] = {
    "exact": {},
    "paper": {"bound": "paper"},
    "infinity": {"bound": "infinity"},
    "on a basis": {"basis": BASIS},
    "prior noise": {"prior_noise": True},
    "input-free": {"bound": "input-free", "basis": BASIS},
    "varah": {"bound": "varah", "basis": BASIS, "margin": 0.02},
    "input-free with prior noise": {"bound": "input-free", "basis": BASIS, "prior_noise": True},
}
HIDING = [kind for kind in KINDS if KINDS[kind].get("bound") in ("input-free", "varah")]


@pytest.fixture(scope="module")
def plans(setting: Any) -> dict[str, FunctionPlan]:
    return {
        kind: setting.gp.plan_function(setting.X, **options, **PROMISE) for kind, options in KINDS.items()
    }


@pytest.fixture(scope="module")
def exact_z(noiseless: Callable[..., Release]) -> Callable[..., Any]:
    """The measurements that no noise would give."""
    return lambda plan, y: noiseless(plan, y).z


def same(a: Any, b: Any) -> None:
    for got, wanted in zip(a, b, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("noise", [0.4, np.linspace(0.2, 3.0, 12)], ids=["one noise", "noise per row"])
@pytest.mark.parametrize("mean", [0.7, None, -20.0])
@pytest.mark.parametrize("bound", ["exact", "paper", "infinity"])
@pytest.mark.parametrize("kernel", [EQ(2.0, variance=1.5), Matern12(3.0) + Constant(4.0)], ids=repr)
def test_without_noise_it_is_the_gps_posterior_mean(setting, textbook, exact_z, kernel, bound, mean, noise):
    gp = GP(kernel, noise, bounds=(-1.0, 4.0), mean=mean)
    plan = gp.plan_function(setting.X, bound=bound, **PROMISE)
    y = np.clip(setting.y, -1.0, 4.0)
    for X_new in (plan.points, QUERIES):
        expected, _ = textbook(kernel, noise, gp.mean, setting.X, X_new, y)
        got = FunctionRelease(plan, exact_z(plan, setting.y)).query(X_new)
        np.testing.assert_allclose(got, expected, rtol=0, atol=20 * plan.certificate.bias + 1e-9)
    assert plan.certificate.bias < 1e-5


def test_without_noise_a_linear_kernel_gives_the_bayesian_line(exact_z, textbook):
    X, y = np.linspace(-3, 3, 9)[:, None], np.linspace(-1, 2, 9)
    gp = GP(Linear() + Constant(4.0), 0.3, bounds=(-2.0, 2.0))
    plan = gp.plan_function(X, **PROMISE)
    assert plan.certificate.n_measurements == 2
    expected, _ = textbook(gp.kernel, 0.3, 0.0, X, QUERIES, y)
    got = FunctionRelease(plan, exact_z(plan, y)).query(QUERIES)
    np.testing.assert_allclose(got, expected, atol=20 * plan.certificate.bias)


@pytest.mark.parametrize("kind", ["on a basis", "input-free", "varah"])
def test_on_a_basis_it_is_the_projection_of_the_posterior_mean(setting, plans, exact_z, kind):
    """It agrees with the GP at the basis, and in between is what the GP knows from there."""
    k, y = setting.gp.kernel, np.clip(setting.y, -1.0, 4.0)
    at_basis = k(BASIS, setting.X) @ np.linalg.solve(k(setting.X) + 0.4 * np.eye(12), y - 0.7)
    expected = 0.7 + k(QUERIES, BASIS) @ np.linalg.solve(k(BASIS), at_basis)
    release = FunctionRelease(plans[kind], exact_z(plans[kind], setting.y))
    np.testing.assert_allclose(release.query(QUERIES), expected, atol=1e-5)
    np.testing.assert_allclose(release.query(BASIS), 0.7 + at_basis, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_agree_with_each_other(setting, plans, kind):
    release = plans[kind].release(setting.y)
    whole = release.query(QUERIES)
    np.testing.assert_array_equal(release.query(QUERIES), whole)
    scale = np.abs(whole).max()
    np.testing.assert_allclose(release.query(QUERIES[::-1])[::-1], whole, rtol=0, atol=1e-8 * scale)
    each = [release.query(x[None])[0] for x in QUERIES]
    np.testing.assert_allclose(each, whole, rtol=0, atol=1e-8 * scale)
    many = release.query(np.vstack([np.linspace(0, 9, 1000)[:, None], QUERIES]))[1000:]
    np.testing.assert_allclose(many, whole, rtol=0, atol=1e-8 * scale)
    values, std = release.query(QUERIES, return_std=True)
    np.testing.assert_array_equal(values, whole)
    np.testing.assert_array_equal(std, plans[kind].noise_at(QUERIES))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_same_function_after_saving_and_loading(setting, plans, tmp_path, kind):
    release = plans[kind].release(setting.y)
    release.save(tmp_path / "f.cloak")
    loaded = FunctionRelease.load(tmp_path / "f.cloak")
    same(loaded.query(QUERIES, return_std=True), release.query(QUERIES, return_std=True))
    assert loaded.certificate == release.certificate
    assert repr(loaded) == repr(release)
    loaded.save(tmp_path / "again.cloak")
    assert (tmp_path / "again.cloak").read_bytes() == (tmp_path / "f.cloak").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_verify_passes(setting, plans, tmp_path, kind):
    plans[kind].release(setting.y).save(tmp_path / "f.cloak")
    result = cloakgp.verify(tmp_path / "f.cloak")
    assert result.complete == (kind not in HIDING)  # what cannot be checked without X is said
    assert result.proven_delta is None if kind in HIDING else result.proven_delta <= 0.01


def test_verify_refuses_a_function_with_too_little_noise(setting, plans, tmp_path, tamper):
    for kind in ("exact", "infinity", "input-free"):
        plans[kind].release(setting.y).save(tmp_path / "f.cloak")

        def halve(manifest: Any, _arrays: Any) -> None:
            manifest["certificate"]["sigma"] //= 2

        tamper(tmp_path / "f.cloak", halve)
        with pytest.raises(cloakgp.VerificationError, match="do not trust"):
            cloakgp.verify(tmp_path / "f.cloak")


def test_a_custom_kernel_is_given_again_at_loading(setting, tmp_path):
    def kernel(X: Any, Z: Any) -> Any:
        return np.exp(-np.abs(X - Z.T))

    gp = GP(kernel, 0.4, bounds=(-1.0, 4.0))
    release = gp.plan_function(setting.X, **PROMISE).release(setting.y)
    release.save(tmp_path / "f.cloak")
    loaded = FunctionRelease.load(tmp_path / "f.cloak", kernel=kernel)
    np.testing.assert_array_equal(loaded.query(QUERIES), release.query(QUERIES))
    with pytest.raises(ValueError, match=r"custom kernel.*Give it when loading"):
        FunctionRelease.load(tmp_path / "f.cloak").query(QUERIES)


def test_files_of_the_other_kind_are_refused(setting, plans, make_plan, tmp_path):
    make_plan().release(setting.y).save(tmp_path / "p.cloak")
    plans["exact"].release(setting.y).save(tmp_path / "f.cloak")
    with pytest.raises(ReleaseFileError, match=r"read it with Release\.load"):
        FunctionRelease.load(tmp_path / "p.cloak")
    with pytest.raises(ReleaseFileError, match=r"read it with FunctionRelease\.load"):
        Release.load(tmp_path / "f.cloak")


@pytest.mark.parametrize("kind", ["exact", "input-free", "prior noise"])
def test_the_noise_is_as_large_as_was_said(setting, plans, exact_z, seeded, kind):
    """Over releases, and over public seeds where there are any."""
    plan, n = plans[kind], 400 if kind == "prior noise" else 3000
    X_new = QUERIES[1:6]
    exact = FunctionRelease(replace(plan, prior_seed=None), exact_z(plan, setting.y)).query(X_new)
    noise = []
    with seeded(2):
        for number in range(n):
            seed = None if plan.prior_seed is None else number
            noise.append(replace(plan, prior_seed=seed).release(setting.y).query(X_new) - exact)
    spread = np.sqrt(np.mean(np.square(noise), axis=0))
    # A std from n draws has a relative error of 1/√(2n).
    np.testing.assert_allclose(spread / plan.noise_at(X_new), 1, atol=5 / math.sqrt(2 * n))
    assert (np.abs(np.mean(noise, axis=0)) < 5 * plan.noise_at(X_new) / math.sqrt(n)).all()


def test_prior_noise_has_the_kernels_covariance(setting, plans, seeded, exact_z):
    plan, n, X_new = plans["prior noise"], 600, np.array([[5.0], [12.0], [13.0], [40.0]])
    exact = FunctionRelease(replace(plan, prior_seed=None), exact_z(plan, setting.y)).query(X_new)
    with seeded(3):
        releases = [replace(plan, prior_seed=seed).release(setting.y) for seed in range(n)]
    noise = np.array([release.query(X_new) - exact for release in releases])
    scale = (plan.rkhs_sensitivity * plan.measurement.noise_scale) ** 2
    expected = setting.gp.kernel(X_new) / 1.5
    np.testing.assert_allclose(noise.T @ noise / n / scale / 1.5, expected, atol=5 * math.sqrt(2 / n))


def test_each_release_is_a_new_spend_with_new_noise(setting, plans):
    one, two = plans["exact"].release(setting.y), plans["exact"].release(setting.y)
    assert (one.z != two.z).any()
    assert (one.query(QUERIES[2:5]) != two.query(QUERIES[2:5])).all()


@pytest.mark.parametrize("kind", KINDS)
def test_y_is_not_kept(plans, tmp_path, kind):
    marked = np.array([1.2345678901 + 0.01 * i for i in range(12)])
    release = plans[kind].release(marked)
    release.query(QUERIES)
    if kind not in HIDING:
        release.predict(QUERIES)
    release.save(tmp_path / "f.cloak")
    _, arrays, _ = container.unpack((tmp_path / "f.cloak").read_bytes())
    kept = pickle.dumps(release)
    kept += b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    for value in marked:
        assert value.tobytes() not in kept
        assert value.astype(">f8").tobytes() not in kept


@pytest.mark.parametrize("kind", HIDING)
def test_a_hiding_file_holds_neither_x_nor_the_matrix(setting, plans, tmp_path, kind):
    release = plans[kind].release(setting.y)
    release.save(tmp_path / "f.cloak")
    contents = (tmp_path / "f.cloak").read_bytes()
    manifest, arrays, _ = container.unpack(contents)
    assert set(arrays) == {"z", "points", "reconstruction", "centre"}
    assert manifest["measurement"] == {"kind": "withheld"}
    everything = contents + b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    for x in setting.X[:, 0]:
        assert x.tobytes() not in everything
    for column in plans[kind].measurement.matrix.T:
        assert column.tobytes() not in everything
    loaded = FunctionRelease.load(tmp_path / "f.cloak")
    assert loaded.plan.X is None
    assert loaded.plan.measurement.matrix.size == 0


@pytest.mark.parametrize("kind", HIDING)
def test_predictions_that_need_x_are_refused_where_it_is_hidden(setting, plans, tmp_path, kind):
    release = plans[kind].release(setting.y)
    release.save(tmp_path / "f.cloak")
    for hidden in (release, FunctionRelease.load(tmp_path / "f.cloak")):
        with pytest.raises(ValueError, match=r"need the inputs X, which.*does not show\. Use query"):
            hidden.predict(QUERIES)
        with pytest.raises(ValueError, match="does not show"):
            hidden.uncertainty(QUERIES)
        with pytest.raises(ValueError, match="does not show"):
            hidden.sample(QUERIES, 2)
        assert np.isfinite(hidden.query(QUERIES)).all()


@pytest.mark.parametrize("kind", ["exact", "infinity", "on a basis", "prior noise"])
def test_denoised_predictions_are_the_textbooks(setting, plans, kind):
    """Bayes on the measurements; the public rest of a prior draw says nothing, so it is not in them."""
    release = plans[kind].release(setting.y)
    m, k, X = release.plan.measurement, setting.gp.kernel, setting.X
    B, unit = m.matrix / 2.0**m.matrix_bits, 5.0 / 2.0 ** (m.matrix_bits + m.y_bits)
    D = B @ (k(X) + 0.4 * np.eye(12)) @ B.T + (m.sigma * unit) ** 2 * np.eye(len(B))
    G = np.linalg.solve(D, B @ k(X, QUERIES)).T
    expected = 0.7 + G @ (release.z * unit - 1.0 * B.sum(axis=1) - 0.7 * B.sum(axis=1))
    mean, std = release.predict(QUERIES, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(std**2, 1.5 - np.einsum("ij,ji->i", G, B @ k(X, QUERIES)), rtol=1e-8)
    parts = release.uncertainty(QUERIES)
    np.testing.assert_allclose(parts.total**2, std**2 + 0.4, rtol=1e-12)
    assert release.sample(QUERIES, 3, seed=0).shape == (3, 7)
    np.testing.assert_array_equal(release.sample(QUERIES, 3, seed=0), release.sample(QUERIES, 3, seed=0))


def test_two_columns(exact_z, textbook):
    rng = np.random.default_rng(1)
    X, y, X_new = rng.uniform(0, 4, size=(30, 2)), rng.uniform(-1, 1, size=30), rng.uniform(0, 4, size=(7, 2))
    gp = GP(Matern52((1.0, 3.0), variance=2.0), 0.2, bounds=(-1.0, 1.0))
    plan = gp.plan_function(X, **PROMISE)
    expected, _ = textbook(gp.kernel, 0.2, 0.0, X, X_new, y)
    exact = FunctionRelease(plan, exact_z(plan, y)).query(X_new)
    np.testing.assert_allclose(exact, expected, atol=20 * plan.certificate.bias)
    with pytest.raises(ValueError, match="X must have 2 column"):
        plan.release(y).query([[1.0]])


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (np.zeros((3, 2)), ValueError, "X must have 1 column"),
        (np.zeros((0, 1)), ValueError, "at least one row"),
        ([[np.nan]], ValueError, "X must be finite"),
        ([["a"]], TypeError, "X must hold real numbers"),
    ],
)
def test_bad_queries_are_refused(setting, plans, bad, error, words):
    release = plans["exact"].release(setting.y)
    for ask in (release.query, release.plan.noise_at, release.plan.weights, release.predict):
        with pytest.raises(error, match=words):
            ask(bad)


def test_missing_outcomes(setting, plans, seeded):
    y, filled = setting.y.copy(), setting.y.copy()
    y[3], filled[3] = np.nan, 1.5
    with pytest.raises(ValueError, match="y must be finite"):
        plans["exact"].release(y)
    with seeded(1):
        one = plans["exact"].release(y, missing="midpoint")
    with seeded(1):
        two = plans["exact"].release(filled)
    np.testing.assert_array_equal(one.z, two.z)


def test_a_seeded_release_is_marked(setting, plans, seeded, tmp_path):
    with seeded(0):
        release = plans["exact"].release(setting.y)
    assert "INSECURE" in repr(release)
    release.save(tmp_path / "f.cloak")
    with pytest.raises(cloakgp.VerificationError, match="INSECURE"):
        cloakgp.verify(tmp_path / "f.cloak")
    assert "INSECURE" not in repr(plans["exact"].release(setting.y))


def test_it_is_read_only(setting, plans):
    release = plans["exact"].release(setting.y)
    with pytest.raises(ValueError, match="read-only"):
        release.z[...] = 0
    with pytest.raises(FrozenInstanceError):
        release.z = np.zeros(3)
    for name in ("points", "reconstruction", "midpoint_measurements", "X"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(release.plan, name)[...] = 0


@pytest.mark.parametrize("seed", range(24))
def test_whatever_can_be_released_can_be_verified(tmp_path, seed):
    """A release that its own verify refuses would be a spend for nothing."""
    rng = np.random.default_rng(seed)
    n, width = int(rng.integers(1, 30)), int(rng.integers(1, 3))
    kernel = [EQ(float(rng.uniform(0.3, 20)), variance=3.0), Matern52(2.0) + Constant(2.0)][seed % 2]
    bound = ["exact", "infinity", "paper", "input-free"][seed % 4]
    X, y = rng.uniform(0, 10, (n, width)), rng.uniform(0, 1, n)
    crowded = np.repeat(rng.uniform(0, 10, (int(rng.integers(1, 25)), width)), 2, axis=0)
    basis = {"basis": crowded} if bound == "input-free" or seed % 3 == 0 else {}
    plan = GP(kernel, float(rng.uniform(0.01, 2)), (0.0, 1.0)).plan_function(
        X, bound=bound, **basis, **PROMISE
    )
    plan.release(y).save(tmp_path / "function.cloak")
    cloakgp.verify(tmp_path / "function.cloak")


def test_a_hidden_function_with_a_far_mean_is_refused_before_anything_is_spent(setting):
    gp = GP(EQ(1.0), 0.1, (0.0, 1.0), mean=1e6)
    with pytest.raises(ValueError, match="mean must lie within the bounds"):
        gp.plan_function(setting.X, bound="input-free", basis=BASIS, **PROMISE)


def test_a_basis_without_influence_is_refused(setting):
    with pytest.raises(ValueError, match="basis: the data have no influence"):
        setting.gp.plan_function(setting.X, basis=[[1e6]], **PROMISE)
