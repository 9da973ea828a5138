"""Whole functions: the sensitivity in the kernel's own space, its bounds, the noise, and what is released."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloakgp
from cloakgp import GP, Plan, verify
from cloakgp.files import container
from cloakgp.kernels import EQ, Constant, Kernel, Linear, Matern12, Matern32, Matern52, as_kernel

PROMISE = {"epsilon": 1.0, "delta": 0.01}
BASIS = np.linspace(0, 10, 6)[:, None]
QUERIES = np.array([[-20.0], [-1.0], [0.0], [2.2], [7.7], [10.5], [60.0]])
KERNELS = {
    "EQ": EQ(2.0, variance=1.5),
    "Matern12": Matern12(3.0, variance=20.0),
    "Matern32 + Constant": Matern32(1.0, variance=0.2) + Constant(5.0),
    "Linear": Linear(variance=0.3) + Constant(1.0),
}


def squared_norms(kernel: Any, noise: Any, X: Any) -> Any:
    """[K^-1 Kff K^-1]_ii: how far a unit of y_i moves f in the kernel's space, squared."""
    K_ff = np.asarray(as_kernel(kernel)(X))
    inverse = np.linalg.inv(K_ff + np.diag(np.broadcast_to(np.asarray(noise, dtype=float), (len(X),))))
    return np.diag(inverse @ K_ff @ inverse)


def sensitivities(kernel: Any, noise: Any, X: Any, **options: Any) -> dict[str, float]:
    gp = GP(kernel, noise, bounds=(-1.0, 4.0))
    return {
        bound: gp.plan_function(X, bound=bound, **PROMISE, **options).function.reach
        for bound in ("exact", "paper", "infinity")
    }


@st.composite
def models(draw: Any) -> tuple[Any, Any, Any]:
    """A kernel with values in [0, v], noise and inputs."""
    variance = 10.0 ** draw(st.floats(-3, 3))
    lengthscale = 10.0 ** draw(st.floats(-1, 1.5))
    kernel = draw(st.sampled_from([EQ, Matern12, Matern32]))(lengthscale, variance=variance)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 25))
    noise: Any = variance * 10.0 ** draw(st.floats(-2, 1.5))
    if draw(st.booleans()):
        noise = noise * rng.uniform(0.3, 3.0, size=n)
    return kernel, noise, rng.uniform(0, 10, size=(n, draw(st.integers(1, 2))))


@pytest.mark.parametrize("noise", [0.4, np.linspace(0.1, 2.0, 12)], ids=["one noise", "noise per row"])
@pytest.mark.parametrize("name", KERNELS)
def test_column_norms_are_the_norms_in_the_kernels_space(setting, name, noise):
    plan = GP(KERNELS[name], noise, bounds=(-1.0, 4.0)).plan_function(setting.X, **PROMISE)
    expected = squared_norms(KERNELS[name], noise, setting.X)
    columns = plan.measurement.real_matrix() * plan.function.reach
    np.testing.assert_allclose((columns**2).sum(axis=0), expected, rtol=1e-6, atol=1e-9 * expected.max())
    assert plan.function.reach == pytest.approx(math.sqrt(expected.max()), rel=1e-8)
    assert plan.certificate.bound == "exact"
    assert plan.certificate.unbiased


@pytest.mark.parametrize("noise", [0.4, np.tile([0.1, 0.1, 2.0], 8)], ids=["one noise", "noise per row"])
def test_equal_rows_share_a_column_and_a_point(tmp_path, noise):
    """With 8 of each, half of them noisier in one case: the same norms, and a file that can be verified."""
    X = np.repeat([[0.0], [4.0], [9.0]], 8, axis=0)
    plan = GP(EQ(2.0), noise, bounds=(-1.0, 4.0)).plan_function(X, **PROMISE)
    assert (plan.measurement.matrix.shape[1], len(plan.X_star)) == (3 if isinstance(noise, float) else 6, 3)
    expected = squared_norms(EQ(2.0), noise, X)
    columns = plan.measurement.by_row() * plan.function.reach
    np.testing.assert_allclose((columns**2).sum(axis=0), expected, rtol=1e-6)
    plan.release(np.linspace(0.0, 3.0, 24)).save(tmp_path / "a.cloak")
    verify(tmp_path / "a.cloak")  # refuses what does not fit


@pytest.mark.parametrize("bound", ["exact", "paper", "infinity"])
@pytest.mark.parametrize("name", KERNELS)
def test_noise_std_is_that_of_a_prior_draw_given_nothing_outside_the_data(setting, name, bound):
    if name == "Linear" and bound != "exact":
        return
    kernel = KERNELS[name]
    gp = GP(kernel, 0.4, bounds=(-1.0, 4.0))
    plan = gp.plan_function(setting.X, bound=bound, **PROMISE)
    level = plan.function.reach * plan.measurement.noise_scale
    cross, K_ff = kernel(QUERIES, setting.X), kernel(setting.X)
    explained = np.einsum("ij,jk,ik->i", cross, np.linalg.pinv(K_ff, rcond=1e-12, hermitian=True), cross)
    np.testing.assert_allclose(plan.noise_at(QUERIES), level * np.sqrt(explained), rtol=1e-4)
    assert (plan.noise_at(QUERIES) <= level * np.sqrt(kernel.diag(QUERIES)) * (1 + 1e-9)).all()
    at_data = plan.noise_at(setting.X)
    np.testing.assert_allclose(at_data, level * np.sqrt(kernel.diag(setting.X)), rtol=1e-4)


def test_noise_on_a_basis(setting):
    plan = setting.gp.plan_function(setting.X, basis=BASIS, **PROMISE)
    k, level = setting.gp.kernel, plan.function.reach * plan.measurement.noise_scale
    cross = k(QUERIES, BASIS)
    explained = np.einsum("ij,ij->i", cross, np.linalg.solve(k(BASIS), cross.T).T)
    np.testing.assert_allclose(plan.noise_at(QUERIES), level * np.sqrt(explained), rtol=1e-6)
    # Bessel: a projection is never longer.
    assert plan.function.reach <= math.sqrt(squared_norms(k, 0.4, setting.X).max()) * (1 + 1e-9)


def test_few_points_span_many_inputs():
    X = np.random.default_rng(0).uniform(0, 10, size=(300, 1))
    plan = GP(EQ(4.0), 0.5, bounds=(0.0, 1.0)).plan_function(X, **PROMISE)
    assert plan.certificate.n_measurements < 25
    assert {tuple(point) for point in plan.X_star} <= {tuple(x) for x in X}
    assert plan.function.reach == pytest.approx(math.sqrt(squared_norms(EQ(4.0), 0.5, X).max()), rel=1e-6)


@given(models())
def test_the_bounds_hold_and_are_in_order(model):
    kernel, noise, X = model
    exact = math.sqrt(squared_norms(kernel, noise, X).max())
    got = sensitivities(kernel, noise, X)
    assert got["exact"] <= exact * (1 + 1e-5)
    assert got["exact"] == pytest.approx(exact, rel=1e-4)
    assert got["infinity"] >= got["paper"] * (1 - 1e-12)
    assert got["paper"] >= exact * (1 - 1e-7)


def test_the_papers_bounds_are_as_printed_times_the_kernels_std(setting):
    kernel, X = EQ(2.0, variance=7.0), setting.X
    inverse = np.linalg.inv(kernel(X) + 0.4 * np.eye(12))
    got = sensitivities(kernel, 0.4, X)
    one_sided = max(inverse.clip(min=0).sum(axis=0).max(), (-inverse).clip(min=0).sum(axis=0).max())
    assert got["paper"] == pytest.approx(math.sqrt(7.0) * one_sided)
    assert got["infinity"] == pytest.approx(math.sqrt(7.0) * np.linalg.norm(inverse, np.inf))


class Cosine(Kernel):
    """A kernel with negative values and a known range."""

    range = (-1.0, 1.0)

    def _matrix(self, X: Any, Z: Any) -> Any:
        return np.cos(X[:, :1] - Z[:, :1].T)

    def _diag(self, X: Any) -> Any:
        return np.ones(len(X))

    def __repr__(self) -> str:
        return "Cosine()"


def test_the_other_bound_holds_for_negative_kernels_too(setting):
    exact = math.sqrt(squared_norms(Cosine(), 0.4, setting.X).max())
    plan = GP(Cosine(), 0.4, (-1.0, 4.0)).plan_function(setting.X, bound="infinity", **PROMISE)
    assert plan.function.reach >= exact


VARAH = {"bound": "varah", "basis": BASIS, "margin": 0.1}
HIDDEN = {"bound": "input-free", "basis": BASIS}
UNRANGED = {"linear": Linear(), "a sum": EQ(1.0) + Linear(), "custom": lambda X, Z: np.exp(-np.abs(X - Z.T))}
REFUSED = {  # what is wrong with the model and the options, and what the refusal begins with
    **{
        f"{options['bound']} of {name}": (
            {"kernel": kernel},
            options,
            f"bound='{options['bound']}' needs a ker",
        )
        for options in ({"bound": "paper"}, {"bound": "infinity"}, VARAH)
        for name, kernel in UNRANGED.items()
    },
    "paper of negative values": ({"kernel": Cosine()}, {"bound": "paper"}, "bound='paper' needs kernel"),
    "input-free without a basis": ({}, {"bound": "input-free"}, "basis must be given"),
    "varah without a basis": ({}, {**VARAH, "basis": None}, "basis must be given"),
    "varah without a margin": ({}, {**VARAH, "margin": None}, "margin must be given for bound='varah'"),
    **{f"a margin of {bad}": ({}, {**VARAH, "margin": bad}, "margin must be") for bad in (0.0, -1.0, np.nan)},
    **{
        f"a margin for {bound}": (
            {},
            {**VARAH, "bound": bound},
            "margin must be given for bound='varah', and o",
        )
        for bound in ("exact", "paper", "infinity", "input-free")
    },
    "a far mean of hidden inputs": ({"mean": 1e6}, HIDDEN, "mean must lie within the bounds"),
    "a basis without influence": ({}, {"basis": [[1e6]]}, "basis: the data have no influence"),
    "a basis of two columns": ({}, {"basis": [[0.0, 1.0]]}, "basis must have 1 column"),
    "no such bound": ({}, {"bound": "best"}, "bound must be one of"),
    "no promise": ({}, {"epsilon": 0.0}, "epsilon must"),
    "inputs that are a number": ({}, {"X": 3.0}, "X must be a matrix"),
    "no inputs": ({}, {"X": None}, "X must hold real numbers"),
    "inputs that are missing": ({}, {"X": [[np.nan]]}, "X must be finite"),
    "noise for other rows": ({"noise": np.ones(5)}, {}, "noise must be one number or one per row"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(setting, name):
    model, options, words = REFUSED[name]
    gp = GP(**{"kernel": EQ(2.0, variance=1.5), "noise": 0.4, "bounds": (-1.0, 4.0), **model})
    with pytest.raises(ValueError, match=f"^{words}"):
        gp.plan_function(**{"X": setting.X, **PROMISE, **options})


def test_a_basis_on_which_the_kernel_breaks_down_is_refused(setting):
    gp = GP(lambda X, Z: np.exp(-((X - Z.T) ** 2) / 8).astype(np.float32), 0.4, bounds=(-1.0, 4.0))
    dense = np.linspace(0, 10, 60)
    with pytest.raises(ValueError, match=r"too close together|positive semi-definite"):
        gp.plan_function([[0.0], [4.0], [9.0]], basis=dense, **PROMISE)
    gp.plan_function([[0.0], [4.0], [9.0]], basis=dense[::12], **PROMISE)


@pytest.mark.parametrize("basis", [[1.0, 1.0, 6.0], np.linspace(0, 10, 200)], ids=["twice", "dense"])
def test_a_crowded_basis_adds_no_noise_and_no_bias(setting, basis):
    plan = setting.gp.plan_function(setting.X, basis=basis, **PROMISE)
    top = plan.function.reach * plan.measurement.noise_scale * math.sqrt(1.5)
    assert (plan.noise_at(QUERIES) <= top * (1 + 1e-6)).all()
    assert plan.certificate.bias < 1e-5


@given(models(), st.booleans())
def test_the_input_free_bound_holds_for_every_x(model, linear):
    kernel, noise, X = model
    if linear:
        kernel = Linear(variance=kernel.variance)
    least = float(np.min(noise))
    exact = squared_norms(kernel, noise, X).max()
    assert exact <= (1 + 1e-9) / (4 * least)  # which one lone row attains, where k(x, x) is the noise
    basis = np.eye(X.shape[1]) if linear else np.array([[-50.0] * X.shape[1], [5.0] * X.shape[1]])
    plan = GP(kernel, noise, (-1.0, 4.0)).plan_function(X, bound="input-free", basis=basis, **PROMISE)
    assert plan.function.reach == pytest.approx(0.5 / math.sqrt(least), rel=1e-12)
    columns = plan.measurement.real_matrix() * plan.function.reach
    assert (columns**2).sum(axis=0).max() <= exact * (1 + 1e-4) + 1e-6 * plan.function.reach**2


@pytest.mark.parametrize("noise", [0.4, np.linspace(0.4, 2.0, 12)], ids=["one noise", "noise per row"])
@pytest.mark.parametrize("bound", ["input-free", "varah"])
def test_the_numbers_of_a_hiding_plan_tell_nothing_of_x(bound, noise):
    gp = GP(EQ(0.5, variance=1.5), noise, bounds=(-1.0, 4.0))
    options = {"bound": bound, "basis": BASIS, **({"margin": 0.3} if bound == "varah" else {})}
    inputs = [np.linspace(0, 60, 12), np.geomspace(1, 3000, 12), -5.0 * np.arange(12)]
    if bound == "input-free":
        inputs += [np.zeros(12), np.repeat([1.0, 2.0], 6), np.full(12, 1e7)]
    one, *others = [gp.plan_function(X, **options, **PROMISE) for X in inputs]
    assert one.X is None
    for other in others:
        assert other.certificate == one.certificate
        assert other.function.reach == one.function.reach
        assert other.measurement.declared == one.measurement.declared
        np.testing.assert_array_equal(other.X_star, one.X_star)
        np.testing.assert_array_equal(other.reconstruction, one.reconstruction)
        np.testing.assert_array_equal(other.noise_at(QUERIES), one.noise_at(QUERIES))
    assert one.certificate.bias == one.certificate.jitter == 0


def test_the_lattice_of_a_hiding_plan_tells_nothing_of_x():
    """At an epsilon where a bit hangs on the size of the matrix, if one lets it."""
    gp = GP(EQ(2.0), 300.0, bounds=(-1.0, 4.0))
    options = {"bound": "input-free", "basis": [0.0], "epsilon": 0.934, "delta": 0.01}
    near, far = (gp.plan_function(np.full(300, x), **options) for x in (0.0, 1e6))
    assert np.abs(near.measurement.real_matrix()).sum() > 10
    assert not far.measurement.matrix.any()
    assert near.certificate == far.certificate
    assert near.certificate.y_bits + near.certificate.matrix_bits < 53


def test_a_hiding_plan_covers_the_matrix_that_is_used():
    gp = GP(EQ(2.0), 1.0, bounds=(0.0, 1.0))
    plan = gp.plan_function([[5.0]], bound="input-free", basis=[[5.0]], **PROMISE)  # attains the bound
    own = int((plan.measurement.matrix.astype(object) ** 2).sum(axis=0).max())
    assert own > 4 ** (plan.measurement.matrix_bits - 1)
    assert own * 4**plan.measurement.y_bits <= plan.measurement.sensitivity() ** 2


def test_varahs_promise_kept_and_broken():
    gp = GP(EQ(1.0, variance=4.0), 0.1, bounds=(0.0, 1.0))
    apart = 3.0 * np.arange(8.0)
    K = gp.kernel(apart) + 0.1 * np.eye(8)
    margin = float((2 * np.diag(K) - np.abs(K).sum(axis=1)).min())
    plan = gp.plan_function(apart, bound="varah", basis=apart, margin=margin, **PROMISE)
    assert plan.function.reach == pytest.approx(2.0 / margin)
    assert plan.function.reach >= math.sqrt(squared_norms(gp.kernel, 0.1, apart[:, None]).max())
    pair = [[0.0], [0.22]]  # one row moves f further than 2/3.9 in the kernel's space
    assert squared_norms(gp.kernel, 0.1, np.array(pair)).max() > (2.0 / 3.9) ** 2
    with pytest.raises(ValueError, match=r"margin: the inputs do not keep the promised margin.*input-free"):
        gp.plan_function(pair, bound="varah", basis=pair, margin=3.9, **PROMISE)


# ---------------------------------------------------------------------------- what was released

KINDS: dict[str, dict[str, Any]] = {
    "exact": {},
    "paper": {"bound": "paper"},
    "infinity": {"bound": "infinity"},
    "on a basis": {"basis": BASIS},
    "input-free": {"bound": "input-free", "basis": BASIS},
    "varah": {"bound": "varah", "basis": BASIS, "margin": 0.02},
}


@pytest.fixture(scope="module")
def plans(setting: Any) -> dict[str, Plan]:
    return {
        kind: setting.gp.plan_function(setting.X, **options, **PROMISE) for kind, options in KINDS.items()
    }


@pytest.mark.parametrize("noise", [0.4, np.linspace(0.2, 3.0, 12)], ids=["one noise", "noise per row"])
@pytest.mark.parametrize("mean", [0.7, None, -20.0])
@pytest.mark.parametrize("bound", ["exact", "paper", "infinity"])
@pytest.mark.parametrize("kernel", [EQ(2.0, variance=1.5), Matern12(3.0) + Constant(4.0)], ids=repr)
def test_without_noise_it_is_the_gps_posterior_mean(setting, textbook, noiseless, kernel, bound, mean, noise):
    gp = GP(kernel, noise, bounds=(-1.0, 4.0), mean=mean)
    plan = gp.plan_function(setting.X, bound=bound, **PROMISE)
    y = np.clip(setting.y, -1.0, 4.0)
    for X_new in (plan.X_star, QUERIES):
        expected, _ = textbook(kernel, noise, gp.mean, setting.X, X_new, y)
        got = noiseless(plan, setting.y).query(X_new)
        np.testing.assert_allclose(got, expected, rtol=0, atol=20 * plan.certificate.bias + 1e-9)
    assert plan.certificate.bias < 1e-5


@pytest.mark.parametrize("kind", ["on a basis", "input-free", "varah"])
def test_on_a_basis_it_is_the_projection_of_the_posterior_mean(setting, plans, noiseless, kind):
    """It agrees with the GP at the basis, and in between is what the GP knows from there."""
    k, y = setting.gp.kernel, np.clip(setting.y, -1.0, 4.0)
    at_basis = k(BASIS, setting.X) @ np.linalg.solve(k(setting.X) + 0.4 * np.eye(12), y - 0.7)
    expected = 0.7 + k(QUERIES, BASIS) @ np.linalg.solve(k(BASIS), at_basis)
    release = noiseless(plans[kind], setting.y)
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


@pytest.mark.parametrize("kind", ["exact", "input-free"])
def test_the_noise_is_as_large_as_was_said(setting, plans, noiseless, seeded, kind):
    plan, n, X_new = plans[kind], 3000, QUERIES[1:6]
    exact = noiseless(plan, setting.y).query(X_new)
    with seeded(2):
        noise = [plan.release(setting.y).query(X_new) - exact for _ in range(n)]
    spread = np.sqrt(np.mean(np.square(noise), axis=0))
    # A std from n draws has a relative error of 1/√(2n).
    np.testing.assert_allclose(spread / plan.noise_at(X_new), 1, atol=5 / math.sqrt(2 * n))
    assert (np.abs(np.mean(noise, axis=0)) < 5 * plan.noise_at(X_new) / math.sqrt(n)).all()


@pytest.mark.parametrize("kind", ["input-free", "varah"])
def test_a_hiding_file_has_no_array_of_x_nor_predictions_that_need_one(setting, plans, tmp_path, kind):
    release = plans[kind].release(setting.y)
    release.save(tmp_path / "f.cloak")
    manifest, arrays, _ = container.read(tmp_path / "f.cloak")
    assert set(arrays) == {"z_0", "X_star", "weights", "reconstruction_0"}
    assert manifest["inputs_sha256"] is None
    assert cloakgp.load(tmp_path / "f.cloak").plan.measurement.matrix.size == 0
    for one in (release, cloakgp.load(tmp_path / "f.cloak")):
        for ask in (one.predict, one.uncertainty, lambda X, one=one: one.sample(X, 2)):
            with pytest.raises(ValueError, match="does not show"):
                ask(QUERIES)
        assert np.isfinite(one.query(QUERIES)).all()


def test_queries_of_other_columns_are_refused(setting, plans):
    release = plans["exact"].release(setting.y)
    for ask in (release.query, release.plan.noise_at, release.predict):
        with pytest.raises(ValueError, match="X must have 1 column"):
            ask(np.zeros((3, 2)))


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
