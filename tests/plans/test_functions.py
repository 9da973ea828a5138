"""Plans for a whole function: the sensitivity in the kernel's own space, its bounds, and the noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp import GP, verify
from cloakgp.kernels import EQ, Constant, Kernel, Linear, Matern12, Matern32, Periodic, as_kernel

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
        bound: gp.plan_function(X, bound=bound, **PROMISE, **options).rkhs_sensitivity
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
    columns = plan.measurement.real_matrix() * plan.rkhs_sensitivity
    np.testing.assert_allclose((columns**2).sum(axis=0), expected, rtol=1e-6, atol=1e-9 * expected.max())
    assert plan.rkhs_sensitivity == pytest.approx(math.sqrt(expected.max()), rel=1e-8)
    assert plan.certificate.bound == "exact"
    assert plan.certificate.unbiased


@pytest.mark.parametrize("noise", [0.4, np.tile([0.1, 0.1, 2.0], 8)], ids=["one noise", "noise per row"])
def test_equal_rows_share_a_column(tmp_path, setting, noise):
    """With 8 of each, half of them noisier in one case: the same norms, and a file that can be verified."""
    X = np.repeat([[0.0], [4.0], [9.0]], 8, axis=0)
    plan = GP(EQ(2.0), noise, bounds=(-1.0, 4.0)).plan_function(X, **PROMISE)
    assert plan.measurement.matrix.shape[1] == (3 if isinstance(noise, float) else 6)
    expected = squared_norms(EQ(2.0), noise, X)
    columns = plan.measurement.by_row() * plan.rkhs_sensitivity
    np.testing.assert_allclose((columns**2).sum(axis=0), expected, rtol=1e-6)
    plan.release(np.linspace(0.0, 3.0, 24)).save(tmp_path / "a.cloak")
    verify(tmp_path / "a.cloak")  # refuses what does not fit


def test_noise_is_scaled_to_the_bounds_width_and_the_promise(setting):
    """Std of the noise in the kernel's space: d · sensitivity / mu."""
    plan = setting.gp.plan_function(setting.X, **PROMISE)
    level = plan.rkhs_sensitivity * plan.measurement.noise_scale
    assert level == pytest.approx(5.0 * plan.rkhs_sensitivity / plan.certificate.mu, rel=1e-6)
    assert plan.certificate.objective == pytest.approx(level**2)
    assert plan.certificate.gap == pytest.approx(0)


@pytest.mark.parametrize("bound", ["exact", "paper", "infinity"])
@pytest.mark.parametrize("name", KERNELS)
def test_noise_std_is_that_of_a_prior_draw_given_nothing_outside_the_data(setting, name, bound):
    if name == "Linear" and bound != "exact":
        return
    kernel = KERNELS[name]
    gp = GP(kernel, 0.4, bounds=(-1.0, 4.0))
    plan = gp.plan_function(setting.X, bound=bound, **PROMISE)
    level = plan.rkhs_sensitivity * plan.measurement.noise_scale
    cross, K_ff = kernel(QUERIES, setting.X), kernel(setting.X)
    explained = np.einsum("ij,jk,ik->i", cross, np.linalg.pinv(K_ff, rcond=1e-12, hermitian=True), cross)
    np.testing.assert_allclose(plan.noise_at(QUERIES), level * np.sqrt(explained), rtol=1e-4)
    assert (plan.noise_at(QUERIES) <= level * np.sqrt(kernel.diag(QUERIES)) * (1 + 1e-9)).all()
    at_data = plan.noise_at(setting.X)
    np.testing.assert_allclose(at_data, level * np.sqrt(kernel.diag(setting.X)), rtol=1e-4)


def test_noise_on_a_basis(setting):
    plan = setting.gp.plan_function(setting.X, basis=BASIS, **PROMISE)
    k, level = setting.gp.kernel, plan.rkhs_sensitivity * plan.measurement.noise_scale
    cross = k(QUERIES, BASIS)
    explained = np.einsum("ij,ij->i", cross, np.linalg.solve(k(BASIS), cross.T).T)
    np.testing.assert_allclose(plan.noise_at(QUERIES), level * np.sqrt(explained), rtol=1e-6)
    # Bessel: a projection is never longer.
    assert plan.rkhs_sensitivity <= math.sqrt(squared_norms(k, 0.4, setting.X).max()) * (1 + 1e-9)


def test_few_points_span_many_inputs():
    X = np.random.default_rng(0).uniform(0, 10, size=(300, 1))
    plan = GP(EQ(4.0), 0.5, bounds=(0.0, 1.0)).plan_function(X, **PROMISE)
    assert plan.certificate.n_measurements < 25
    assert {tuple(point) for point in plan.points} <= {tuple(x) for x in X}
    assert plan.rkhs_sensitivity == pytest.approx(math.sqrt(squared_norms(EQ(4.0), 0.5, X).max()), rel=1e-6)


def test_equal_inputs_share_a_point():
    X = np.repeat([[0.0], [1.0], [4.0]], 5, axis=0)
    plan = GP(EQ(1.0), 0.5, bounds=(0.0, 1.0)).plan_function(X, **PROMISE)
    assert len(plan.points) == 3
    assert plan.rkhs_sensitivity == pytest.approx(math.sqrt(squared_norms(EQ(1.0), 0.5, X).max()), rel=1e-8)


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


def test_the_papers_bound_as_printed_is_violated():
    """Without the kernel's std it promises too little as soon as the variance is above 1."""
    X, kernel = np.array([[0.0], [100.0]]), EQ(1.0, variance=25.0)
    exact = math.sqrt(squared_norms(kernel, 1.0, X).max())
    printed = np.linalg.inv(kernel(X) + np.eye(2)).clip(min=0).sum(axis=0).max()
    assert printed < exact / 4
    assert sensitivities(kernel, 1.0, X)["paper"] >= exact


@pytest.mark.parametrize("bound", ["paper", "infinity"])
def test_a_looser_bound_only_means_more_noise(setting, bound):
    exact = setting.gp.plan_function(setting.X, **PROMISE)
    loose = setting.gp.plan_function(setting.X, bound=bound, **PROMISE)
    ratio = loose.rkhs_sensitivity / exact.rkhs_sensitivity
    assert ratio > 1.05
    np.testing.assert_allclose(loose.noise_at(QUERIES), ratio * exact.noise_at(QUERIES), rtol=1e-6)
    assert loose.certificate.gap == pytest.approx(ratio**2 - 1, rel=1e-4)
    assert loose.certificate.bound == bound
    assert loose.certificate.epsilon == 1.0


@pytest.mark.parametrize("kernel", [Linear(), EQ(1.0) + Linear(), lambda X, Z: np.exp(-np.abs(X - Z.T))])
@pytest.mark.parametrize("bound", ["paper", "infinity", "varah"])
def test_a_kernel_without_a_known_range_is_refused(setting, kernel, bound):
    gp = GP(kernel, 0.4, bounds=(-1.0, 4.0))
    options = {"basis": [[1.0], [2.0]], "margin": 0.1} if bound == "varah" else {}
    with pytest.raises(ValueError, match=rf"bound='{bound}' needs a kernel whose values.*Use bound='exact'"):
        gp.plan_function(setting.X, bound=bound, **options, **PROMISE)
    gp.plan_function(setting.X, **PROMISE)


class Cosine(Kernel):
    """A kernel with negative values and a known range."""

    range = (-1.0, 1.0)

    def _matrix(self, X: Any, Z: Any) -> Any:
        return np.cos(X[:, :1] - Z[:, :1].T)

    def _diag(self, X: Any) -> Any:
        return np.ones(len(X))

    def __repr__(self) -> str:
        return "Cosine()"


def test_the_papers_bound_is_refused_for_negative_kernels(setting):
    gp = GP(Cosine(), 0.4, bounds=(-1.0, 4.0))
    with pytest.raises(ValueError, match=r"bound='paper' needs kernel values in \[0, v\]"):
        gp.plan_function(setting.X, bound="paper", **PROMISE)
    exact = math.sqrt(squared_norms(gp.kernel, 0.4, setting.X).max())
    assert gp.plan_function(setting.X, bound="infinity", **PROMISE).rkhs_sensitivity >= exact


@pytest.mark.parametrize("bound", ["input-free", "varah"])
def test_bounds_that_hide_x_need_a_basis(setting, bound):
    margin = {"margin": 0.1} if bound == "varah" else {}
    with pytest.raises(ValueError, match=r"basis.*public points"):
        setting.gp.plan_function(setting.X, bound=bound, **margin, **PROMISE)


def test_varah_and_nothing_else_needs_a_margin(setting):
    with pytest.raises(ValueError, match="margin must be given for bound='varah'"):
        setting.gp.plan_function(setting.X, bound="varah", basis=BASIS, **PROMISE)
    for bound in ("exact", "paper", "infinity", "input-free"):
        with pytest.raises(ValueError, match="and only for that"):
            setting.gp.plan_function(setting.X, bound=bound, basis=BASIS, margin=0.1, **PROMISE)
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="margin must be finite and above 0"):
            setting.gp.plan_function(setting.X, bound="varah", basis=BASIS, margin=bad, **PROMISE)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bound": "best"}, "bound must be one of 'exact', 'infinity', 'paper', 'input-free', 'varah'"),
        ({"basis": [[0.0, 1.0]]}, "basis must have 1 column"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"calibration": "guess"}, "calibration must be one of"),
        ({"calibration": "classic", "epsilon": 2.0}, "epsilon"),
        ({"X": [[np.nan]]}, "X must be finite"),
    ],
)
def test_bad_arguments_are_refused(setting, changes, words):
    with pytest.raises(ValueError, match=words):
        setting.gp.plan_function(**{"X": setting.X, **PROMISE, **changes})


def test_a_basis_on_which_the_kernel_breaks_down_is_refused(setting):
    gp = GP(lambda X, Z: np.exp(-((X - Z.T) ** 2) / 8).astype(np.float32), 0.4, bounds=(-1.0, 4.0))
    dense = np.linspace(0, 10, 60)
    with pytest.raises(ValueError, match=r"too close together|positive semi-definite"):
        gp.plan_function([[0.0], [4.0], [9.0]], basis=dense, **PROMISE)
    gp.plan_function([[0.0], [4.0], [9.0]], basis=dense[::12], **PROMISE)


@pytest.mark.parametrize("basis", [[1.0, 1.0, 6.0], np.linspace(0, 10, 200)], ids=["twice", "dense"])
def test_a_crowded_basis_adds_no_noise_and_no_bias(setting, basis):
    plan = setting.gp.plan_function(setting.X, basis=basis, **PROMISE)
    top = plan.rkhs_sensitivity * plan.measurement.noise_scale * math.sqrt(1.5)
    assert (plan.noise_at(QUERIES) <= top * (1 + 1e-6)).all()
    assert plan.certificate.bias < 1e-5


def test_noise_must_fit_the_rows(setting):
    gp = GP(EQ(1.0), np.ones(5), bounds=(0.0, 1.0))
    with pytest.raises(ValueError, match="one per row"):
        gp.plan_function(setting.X, **PROMISE)


@given(models(), st.booleans())
def test_the_input_free_bound_holds_for_every_x(model, linear):
    kernel, noise, X = model
    if linear:
        kernel = Linear(variance=kernel.variance)
    least = float(np.min(noise))
    exact = squared_norms(kernel, noise, X).max()
    assert exact <= (1 + 1e-9) / (4 * least)
    basis = np.eye(X.shape[1]) if linear else np.array([[-50.0] * X.shape[1], [5.0] * X.shape[1]])
    plan = GP(kernel, noise, (-1.0, 4.0)).plan_function(X, bound="input-free", basis=basis, **PROMISE)
    assert plan.rkhs_sensitivity == pytest.approx(0.5 / math.sqrt(least), rel=1e-12)
    columns = plan.measurement.real_matrix() * plan.rkhs_sensitivity
    assert (columns**2).sum(axis=0).max() <= exact * (1 + 1e-4) + 1e-6 * plan.rkhs_sensitivity**2


def test_the_input_free_bound_is_attained():
    """k(x, x) = S makes one lone row move f by exactly the bound."""
    assert squared_norms(EQ(1.0, variance=3.0), 3.0, np.zeros((1, 1))).max() == pytest.approx(1 / 12)


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
        assert other.rkhs_sensitivity == one.rkhs_sensitivity
        assert other.measurement.declared == one.measurement.declared
        np.testing.assert_array_equal(other.points, one.points)
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
    assert plan.rkhs_sensitivity == pytest.approx(2.0 / margin)
    assert plan.rkhs_sensitivity >= math.sqrt(squared_norms(gp.kernel, 0.1, apart[:, None]).max())
    pair = [[0.0], [0.22]]  # one row moves f further than 2/3.9 in the kernel's space
    assert squared_norms(gp.kernel, 0.1, np.array(pair)).max() > (2.0 / 3.9) ** 2
    with pytest.raises(ValueError, match=r"margin: the inputs do not keep the promised margin.*input-free"):
        gp.plan_function(pair, bound="varah", basis=pair, margin=3.9, **PROMISE)


def test_prior_noise_has_the_priors_std_everywhere(setting):
    plan = setting.gp.plan_function(setting.X, prior_noise=True, **PROMISE)
    scale = plan.rkhs_sensitivity * plan.measurement.noise_scale
    np.testing.assert_allclose(plan.noise_at(QUERIES), scale * np.full(7, math.sqrt(1.5)), rtol=1e-12)
    plain = setting.gp.plan_function(setting.X, **PROMISE)
    assert (plain.noise_at(QUERIES) <= plan.noise_at(QUERIES) * (1 + 1e-9)).all()
    assert plain.prior_seed is None
    assert plan.prior_seed != setting.gp.plan_function(setting.X, prior_noise=True, **PROMISE).prior_seed
    assert plan.certificate == plain.certificate


def test_prior_noise_is_the_rest_of_a_prior_draw(setting):
    """Nothing is added where the measurements carry a whole draw: at the points themselves."""
    plan = setting.gp.plan_function(setting.X, prior_noise=True, **PROMISE)
    np.testing.assert_allclose(plan.remainder(plan.points), 0, atol=1e-4 * plan.noise_at(plan.points).max())
    assert np.abs(plan.remainder(np.array([[60.0]])))[0] > 0
    plain = setting.gp.plan_function(setting.X, **PROMISE)
    np.testing.assert_array_equal(plain.remainder(QUERIES), np.zeros(7))


def test_prior_noise_is_refused_for_kernels_without_draws(setting):
    gp = GP(Periodic(1.0, period=3.0), 0.4, bounds=(-1.0, 4.0))
    with pytest.raises(ValueError, match="prior_noise: draws of the prior are not available"):
        gp.plan_function(setting.X, prior_noise=True, **PROMISE).remainder(QUERIES)


def test_repr_tells_the_promise(setting):
    text = repr(setting.gp.plan_function(setting.X, **PROMISE))
    assert text.startswith("<FunctionPlan: (1, 0.01)-DP, unit ")
    assert "exact bound, 12 rows" in text
