"""Plans: the textbook's predictions, the noise that is promised, and refusals before anything is spent."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk

import cloakgp
from cloakgp import GP
from cloakgp.designs import multipliers, newton
from cloakgp.kernels import EQ, Constant, Gibbs, Linear, Matern12, Matern32

RNG = np.random.default_rng(0)
LINE, PLANE = RNG.uniform(0, 10, size=(30, 1)), RNG.uniform(0, 10, size=(30, 2))
GRID = np.linspace(-1, 11, 7)[:, None]

# kernel, noise, X, X_star, mean
MODELS = {
    "one noise": (EQ(2.0, variance=3.0), 0.5, LINE, GRID, 1.0),
    "noise per row": (EQ(2.0, variance=3.0), np.geomspace(0.01, 10, 30), LINE, GRID, 1.0),
    "mean from the bounds": (EQ(2.0), 0.5, LINE, GRID, None),
    "mean outside the bounds": (EQ(2.0), 0.5, LINE, GRID, -300.0),
    "duplicate rows": (EQ(2.0), 0.1, np.repeat(LINE[:6], 5, axis=0), GRID, 0.0),
    "duplicate rows, noise per row": (
        EQ(2.0),
        np.linspace(0.1, 2, 30),
        np.repeat(LINE[:6], 5, axis=0),
        GRID,
        0.0,
    ),
    "one row": (EQ(2.0), 0.5, LINE[:1], GRID, 0.5),
    "one test point": (EQ(2.0), 0.5, LINE, GRID[3:4], 0.5),
    "one row, one test point": (EQ(2.0), 0.5, LINE[:1], LINE[:1] + 1, 0.5),
    "fewer rows than test points": (EQ(2.0), 0.5, LINE[:4], np.linspace(0, 10, 40)[:, None], 0.5),
    "test points at the data": (Matern32(1.0), 0.01, LINE, LINE[:9], 0.5),
    "repeated test points": (EQ(2.0), 0.5, LINE, np.repeat(GRID, 2, axis=0), 0.5),
    "two columns": (EQ(3.0), 0.5, PLANE, PLANE[:8] + 0.3, 0.5),
    "a lengthscale per column": (EQ([1.0, 4.0], variance=2.0), 0.5, PLANE, PLANE[:8] + 0.3, 0.5),
    "sum": (Matern12(2.0) + Constant(9.0), 0.5, LINE, GRID, 0.5),
    "linear": (Linear(3.0), 0.5, LINE, GRID, 0.5),
    "scikit-learn": (2.0 * sk.RBF(1.5), 0.5, LINE, GRID, 0.5),
    "scikit-learn, not ours": (2.0 * sk.RBF(1.5) + sk.Matern(nu=0.7), 0.5, LINE, GRID, 0.5),
    "lengthscales that differ": (Gibbs(([0.0, 9.0], [1.0, 4.0])), 0.5, LINE, GRID, 0.5),
    "function": (lambda X, Z: np.minimum(X, Z.T) + 5.0, 0.5, LINE, np.abs(GRID), 0.5),
    "mostly noise": (EQ(2.0), 1e4, LINE, GRID, 0.5),
    "mostly signal": (Matern12(2.0, variance=1e4), 0.5, LINE, GRID, 0.5),
}
every_model = pytest.mark.parametrize(("kernel", "noise", "X", "X_star", "mean"), MODELS.values(), ids=MODELS)
BOUNDS = (-1.0, 4.0)


def outcomes(n):
    """Some outside the bounds, some exactly on them."""
    y = np.random.default_rng(n).normal(1.5, 4.0, size=n)
    y[0] = BOUNDS[1]
    return y


# Predictions


@every_model
def test_without_noise_the_mean_is_the_textbooks(design, kernel, noise, X, X_star, mean, noiseless, textbook):
    plan = GP(kernel, noise, BOUNDS, mean).plan(X, X_star=X_star, epsilon=1.0, delta=0.01, design=design)
    y = outcomes(len(X))
    expected, std = textbook(kernel, noise, 1.5 if mean is None else mean, X, X_star, np.clip(y, *BOUNDS))
    np.testing.assert_allclose(plan.gp_std, std, rtol=1e-5, atol=1e-6 * std.max())
    away = np.abs(noiseless(plan, y).mean - expected).max()
    assert away <= plan.certificate.bias + 1e-9 * (1 + np.abs(expected).max())
    assert plan.certificate.bias <= 2e-5 * (BOUNDS[1] - BOUNDS[0])
    assert plan.certificate.jitter == 0.0
    assert "jitter" not in str(plan.certificate)
    np.testing.assert_allclose(plan.noise_std**2, np.diag(plan.noise_cov), rtol=1e-12)
    np.testing.assert_array_equal(plan.noise_cov, plan.noise_cov.T)
    assert np.linalg.eigvalsh(plan.noise_cov)[0] >= -1e-9 * plan.noise_cov.max()


@settings(max_examples=25)
@given(y=st.lists(st.one_of(st.floats(-1e300, 1e300), st.sampled_from(BOUNDS)), min_size=12, max_size=12))
def test_the_bias_bounds_the_error_for_any_y(make_plan, setting, noiseless, textbook, y):
    plan = make_plan()
    gp = setting.gp
    expected, _ = textbook(gp.kernel, gp.noise, gp.mean, setting.X, setting.X_star, np.clip(y, *gp.bounds))
    assert np.abs(noiseless(plan, y).mean - expected).max() <= plan.certificate.bias + 1e-12


@pytest.mark.parametrize("mean", [BOUNDS[0], BOUNDS[1], BOUNDS[1] + 3.0])
def test_the_bias_is_a_bound_wherever_the_prior_mean_is(setting, noiseless, textbook, mean):
    """Denoising shrinks towards it, so outcomes far from it lose most."""
    gp = GP(setting.gp.kernel, setting.gp.noise, BOUNDS, mean)
    plan = gp.plan(setting.X, X_star=setting.X_star, epsilon=0.5, delta=0.01, design="posterior")
    worst = 0.0
    for bound in BOUNDS:
        y = np.full(len(setting.X), bound)
        expected, _ = textbook(gp.kernel, gp.noise, gp.mean, setting.X, setting.X_star, y)
        worst = max(worst, float(np.abs(noiseless(plan, y).mean - expected).max()))
    assert worst <= plan.certificate.bias + 1e-12
    assert worst > 0.5 * plan.certificate.bias  # and not a loose one


def test_the_bias_is_a_bound_on_a_coarse_lattice_too(make_plan, setting, noiseless, textbook):
    """At a minute epsilon few bits are left, and the certificate says what that costs."""
    plan = make_plan(epsilon=1e-5, delta=1e-8)
    fine = make_plan()
    assert plan.certificate.y_bits < fine.certificate.y_bits
    assert plan.certificate.bias > 2 * fine.certificate.bias
    gp = setting.gp
    for seed in range(20):
        y = np.random.default_rng(seed).choice(gp.bounds, size=12)
        expected, _ = textbook(gp.kernel, gp.noise, gp.mean, setting.X, setting.X_star, y)
        assert np.abs(noiseless(plan, y).mean - expected).max() <= plan.certificate.bias + 1e-12


# Noise


def test_noise_hides_every_row(design, make_plan, textbook, setting):
    """The paper's constraint, in the predictions' own terms: d² c_i' cov⁺ c_i <= mu² for each row."""
    plan = make_plan(design=design)
    gp = setting.gp
    columns = [
        textbook(gp.kernel, gp.noise, 0.0, setting.X, setting.X_star, row)[0] * 5.0 for row in np.eye(12)
    ]
    squared = [c @ np.linalg.solve(plan.noise_cov, c) for c in columns]
    assert max(squared) == pytest.approx(plan.certificate.mu**2, rel=1e-5)


def test_noise_is_as_the_bounds_and_the_promise_ask_for(make_plan):
    plain = make_plan()
    one, two = make_plan(bounds=(0.0, 1.0)), make_plan(bounds=(-5.0, 5.0), mean=77.0)
    np.testing.assert_allclose(two.noise_std, 10 * one.noise_std, rtol=1e-9)
    for weaker in ({"epsilon": 1.1}, {"delta": 0.02}):
        assert (make_plan(**weaker).noise_std < plain.noise_std).all()
    ratio = make_plan(calibration="classic").noise_std / plain.noise_std  # of the two multipliers
    np.testing.assert_allclose(ratio, 3.2552 / 1.8779, rtol=1e-4)


def test_equal_weights_change_nothing(design, make_plan):
    plain = make_plan(design=design)
    for weights in ([1, 1, 1, 1], np.full(4, 0.1), np.full(4, 1e30)):
        weighted = make_plan(design=design, weights=weights)
        np.testing.assert_allclose(weighted.noise_cov, plain.noise_cov, rtol=1e-5)
        assert weighted.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-5)


@pytest.mark.parametrize(
    "weights", [[1, 1, 1, 1e-13], [1, 1, 1, 1e-25], [1e20, 1, 1, 1], [1e308, 1e308, 1, 1]]
)
def test_extreme_weights_are_refused_or_harmless(make_plan, setting, weights):
    """A point of hardly any weight may be noisy; it must not silently be predicted as something else."""
    try:
        plan = make_plan(weights=weights)
    except ValueError as error:
        assert "weights" in str(error)  # noqa: PT017
        return
    assert plan.certificate.bias <= 1e-4 * 5.0


def test_a_search_that_is_cut_short_still_plans_and_says_so(make_plan, setting, monkeypatch, tmp_path):
    monkeypatch.setattr(multipliers, "_ROUNDS", 1)
    monkeypatch.setattr(newton, "_LOOKS", 1)
    plan = make_plan(gap=1e-9)
    assert plan.certificate.status == "stopped before the gap was reached"
    assert plan.certificate.gap > 1e-9
    plan.release(setting.y).save(tmp_path / "file")
    cloakgp.verify(tmp_path / "file")


# Jitter


def test_a_nearly_singular_gram_matrix_gets_jitter_and_the_certificate_says_so(make_plan):
    plan = make_plan(kernel=EQ(100.0), noise=1e-18)
    assert 0 < plan.certificate.jitter < 1e-6
    assert "jitter 0" not in str(plan.certificate)
    assert np.isfinite(plan.noise_std).all()


# Inputs of every kind


@pytest.mark.parametrize(
    "convert",
    [lambda a: a[:, 0], lambda a: a.tolist(), np.asfortranarray, lambda a: np.repeat(a, 2, axis=0)[::2]],
    ids=["vector", "list", "Fortran order", "strided"],
)
def test_inputs_of_every_kind_plan_the_same(make_plan, setting, convert):
    plan, plain = make_plan(X=convert(setting.X), X_star=convert(setting.X_star)), make_plan()
    assert plan.certificate == plain.certificate
    np.testing.assert_array_equal(plan.measurement.matrix, plain.measurement.matrix)
    np.testing.assert_array_equal(plan.reconstruction, plain.reconstruction)
    whole, same = (make_plan(X=np.arange(12, dtype=kind), X_star=[1, 2]) for kind in (int, float))
    np.testing.assert_array_equal(whole.noise_std, same.noise_std)


def test_plans_do_not_change_with_the_callers_arrays(make_plan, setting, noiseless):
    X, X_star = setting.X.copy(), setting.X_star.copy()
    noise, weights = np.full(12, 0.4), np.ones(4)
    plan = make_plan(X=X, X_star=X_star, noise=noise, weights=weights)
    before = noiseless(plan, setting.y).mean, plan.noise_std.copy()
    for array in (X, X_star, noise, weights):
        array[:] = 1e3
    np.testing.assert_array_equal(noiseless(plan, setting.y).mean, before[0])
    np.testing.assert_array_equal(plan.noise_std, before[1])
    np.testing.assert_array_equal(plan.X, setting.X)
    np.testing.assert_array_equal(plan.X_star, setting.X_star)
    assert plan.gp.noise.tolist() == [0.4] * 12
    assert plan.weights.tolist() == [1.0] * 4


# Promises of every size


PROMISES = [*product([1e-6, 1e-3, 0.5, 20.0, 100.0, 700.0, 1e3, 1e6], [1e-12, 1e-6, 0.5, 0.999])]
PROMISES += [(1e-8, 1e-12), (1e-8, 1e-15), (1e-6, 1e-100), (1.0, 1e-299), (100.0, 1e-299), (999_999.0, 0.01)]


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_what_can_be_released_can_be_verified(make_plan, setting, tmp_path, epsilon, delta):
    """A promise that cannot be checked later must be refused before it is spent."""
    try:
        plan = make_plan(epsilon=epsilon, delta=delta)
    except ValueError as error:
        assert "epsilon" in str(error)  # noqa: PT017
        return
    plan.release(setting.y).save(tmp_path / "file")
    assert cloakgp.verify(tmp_path / "file").proven_delta <= delta


@pytest.mark.parametrize(
    "bounds", [(0.0, 5e-324), (0.0, 1e-310), (0.0, 1e-200), (0.0, 1e160), (-8e307, 8e307), (1e15, 1e15 + 1)]
)
def test_bounds_of_any_size_work_or_are_refused_at_once(setting, tmp_path, bounds):
    try:
        gp = GP(EQ(2.0), 0.5, bounds)
    except ValueError as error:
        assert "bounds" in str(error)  # noqa: PT017
        return
    plan = gp.plan(setting.X, X_star=setting.X_star, epsilon=1.0, delta=0.01)
    for end in bounds:
        plan.release(np.full(12, end)).save(tmp_path / "file")
        cloakgp.verify(tmp_path / "file")


# Refusals


X, S = LINE[:12], GRID
NAN, INF = math.nan, math.inf


def spoilt(array, value):
    copy = array.copy()
    copy[2, 0] = value
    return copy


KERNELS = {
    "kernel must return shape": lambda X, Z: np.ones(3),
    "kernel must be finite": lambda X, Z: np.full((len(X), len(Z)), np.nan),
    "kernel.*must be symmetric": lambda X, Z: X - Z.T,
    "kernel must return a positive semi-definite matrix": lambda X, Z: -np.ones((len(X), len(Z))),
    "lengthscale must have one entry per column of X": EQ([1.0, 2.0]),
    "active_dims must name columns of X": EQ(1.0, active_dims=[1]),
    "kernel": Linear(1e-300),
    **{f"noise must.*{n} entries|noise must.*no entries": np.ones(n) for n in (0, 1, 11, 13)},
}
BAD = {
    "X": [spoilt(X, NAN), np.ones((0, 1)), None],
    "X_star": [spoilt(S, -INF), [], {"X_star": {}}, PLANE, [1e6]],  # the last is out of reach of the data
    "epsilon": [0.0, -1.0, NAN, INF, 1e6, 1e12, None, "1", True],
    "delta": [0.0, 1.0, 1.5, -0.1, NAN, 1e-300, 5e-324, "0.01", True],
    "design": ["best", None],
    "calibration": ["exact"],
    "gap": [0.0, NAN, None],
    "weights": [[1.0], [1, 1, 0, 1, 1, 1, 1], [1, 1, -1, 1, 1, 1, 1], ["a"] * 7],
    r".*only for epsilon <= 1.*Use calibration='analytic'": [{"epsilon": 2.0, "calibration": "classic"}],
    "plan.*X_star=": [(X, S, 1.0, 0.01)],
    ".*'y'": [{"y": np.ones(12)}],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, bad in BAD.items() for value in bad])
def test_bad_arguments_are_refused_by_name(name, value):
    """Which values, and what is said of them, is tested where they are checked."""
    arguments = {"X": X, "X_star": S, "epsilon": 1.0, "delta": 0.01}
    given, more = (value, {}) if isinstance(value, tuple) else ((), value)
    if not given:
        more = {**arguments, **(value if isinstance(value, dict) else {name: value})}
    with pytest.raises((ValueError, TypeError), match=rf"^{name}"):
        GP(EQ(2.0), 0.5, BOUNDS).plan(*given, **more)


@pytest.mark.parametrize("words", KERNELS)
def test_bad_models_are_refused(words):
    kernel, noise = (EQ(2.0), KERNELS[words]) if "noise" in words else (KERNELS[words], 0.5)
    with pytest.raises(ValueError, match=words):
        GP(kernel, noise, BOUNDS).plan(X, X_star=S, epsilon=1.0, delta=0.01)
