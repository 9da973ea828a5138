"""Several releases of the same data, read together."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from cloakgp import GP, FunctionRelease, Release, combine
from cloakgp.kernels import EQ

NEW = np.array([[-2.0], [0.5], [3.3], [9.9], [14.0]])


@pytest.fixture(scope="module")
def function_plan(setting: Any) -> Any:
    return setting.gp.plan_function(setting.X, epsilon=1.0, delta=0.01)


@pytest.fixture(scope="module")
def releases(make_plan: Any, setting: Any, function_plan: Any) -> list[Any]:
    """Of different designs, promises and kinds, all of the same y."""
    return [
        make_plan().release(setting.y),
        make_plan(design="posterior", epsilon=3.0).release(setting.y),
        make_plan(X_star=[[1.0], [12.0]], design="max", delta=1e-5).release(setting.y),
        function_plan.release(setting.y),
    ]


def stacked(releases: list[Any], gp: Any, X: Any, X_new: Any) -> tuple[Any, Any]:
    """The formula of one posterior for all the measurements at once, dense and in y's own unit."""
    rows, values, variances = [], [], []
    for release in releases:
        m = release.plan.measurement
        B = m.matrix / 2.0**m.matrix_bits
        unit = (m.upper - m.lower) / 2.0 ** (m.matrix_bits + m.y_bits)
        rows.append(B)
        values.append(release.z * unit + B.sum(axis=1) * m.lower)
        variances.append(np.full(len(B), (m.sigma * unit) ** 2))
    B, z, s = np.vstack(rows), np.concatenate(values), np.concatenate(variances)
    k = gp.kernel
    D = B @ (k(X) + np.diag(np.broadcast_to(gp.noise, len(X)))) @ B.T + np.diag(s)
    G = np.linalg.solve(D, B @ k(X, X_new)).T
    return gp.mean + G @ (z - gp.mean * B.sum(axis=1)), k(X_new) - G @ B @ k(X, X_new)


def test_it_is_the_posterior_given_all_measurements(releases, setting):
    both = combine(releases)
    mean, cov = stacked(releases, setting.gp, setting.X, NEW)
    got, std = both.predict(NEW, return_std=True)
    np.testing.assert_allclose(got, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-9)
    np.testing.assert_allclose(both.predict(NEW, return_cov=True)[1], cov, atol=1e-10)
    np.testing.assert_allclose(both.uncertainty(NEW).total ** 2, np.diag(cov) + 0.4, rtol=1e-9)
    assert both.sample(NEW, 3, seed=0).shape == (3, 5)


def test_noise_per_row(setting):
    gp = GP(EQ(2.0), noise=np.linspace(0.1, 2.0, 12), bounds=(-1.0, 4.0), mean=6.0)
    plan = gp.plan(setting.X, X_star=setting.X_star, epsilon=1.0, delta=0.01)
    releases = [plan.release(setting.y) for _ in range(2)]
    mean, _ = stacked(releases, gp, setting.X, NEW)
    np.testing.assert_allclose(combine(releases).predict(NEW), mean, rtol=1e-9, atol=1e-9)


def test_one_release_alone_is_itself(releases):
    for release in releases:
        np.testing.assert_array_equal(
            combine([release]).predict(NEW, return_std=True), release.predict(NEW, return_std=True)
        )


def test_more_releases_never_know_less(releases):
    together = combine(releases).predict(NEW, return_std=True)[1]
    pair = combine(releases[:2]).predict(NEW, return_std=True)[1]
    for release in releases:
        assert (together <= release.predict(NEW, return_std=True)[1] * (1 + 1e-9)).all()
    assert (together <= pair * (1 + 1e-9)).all()
    known = combine(releases).uncertainty(NEW)
    assert (known.privacy > 0).all()
    assert together[2] < 0.99 * min(release.predict(NEW, return_std=True)[1][2] for release in releases)


def test_many_releases_approach_the_gp_itself(make_plan, setting, textbook):
    plan = make_plan(epsilon=60.0)
    mean, std = combine([plan.release(setting.y) for _ in range(200)]).predict(
        setting.X_star, return_std=True
    )
    y = np.clip(setting.y, -1.0, 4.0)
    exact, alone = textbook(setting.gp.kernel, 0.4, 0.7, setting.X, setting.X_star, y)
    np.testing.assert_allclose(std, alone, rtol=0.02)
    np.testing.assert_allclose(mean, exact, atol=0.1)


def test_the_order_does_not_matter(releases):
    first = combine(releases).predict(NEW, return_std=True)
    for order in list(permutations(releases))[1::5]:
        np.testing.assert_allclose(combine(order).predict(NEW, return_std=True), first, rtol=1e-9, atol=1e-9)


def test_loaded_releases_combine_too(releases, tmp_path):
    kinds = {Release: 0, FunctionRelease: 0}
    loaded = []
    for number, release in enumerate(releases):
        release.save(tmp_path / f"{number}.cloak")
        loaded.append(type(release).load(tmp_path / f"{number}.cloak"))
        kinds[type(release)] += 1
    assert min(kinds.values()) >= 1
    np.testing.assert_array_equal(combine(loaded).predict(NEW), combine(releases).predict(NEW))


def test_an_iterator_is_read_once(releases):
    np.testing.assert_array_equal(combine(iter(releases)).predict(NEW), combine(releases).predict(NEW))


def test_nothing_to_combine_is_refused():
    with pytest.raises(ValueError, match="at least one release"):
        combine([])
    with pytest.raises(TypeError, match="releases must be a list of releases; got int"):
        combine(5)
    with pytest.raises(TypeError, match="nothing but releases"):
        combine(["release.cloak"])


@pytest.mark.parametrize("which", [0, 1])
def test_other_inputs_are_refused(make_plan, setting, which):
    mine = make_plan().release(setting.y)
    other = make_plan(X=setting.X[::-1]).release(setting.y[::-1])
    with pytest.raises(ValueError, match="different inputs X"):
        combine([mine, other][:: 1 - 2 * which])


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": EQ(2.1, variance=1.5)},
        {"noise": 0.5},
        {"noise": np.linspace(0.2, 0.9, 12)},
        {"mean": 0.8},
        {"bounds": (-1.0, 5.0)},
    ],
)
@pytest.mark.parametrize("which", [0, 1])
def test_other_models_are_refused(make_plan, setting, changes, which):
    pair = [make_plan().release(setting.y), make_plan(**changes).release(setting.y)]
    with pytest.raises(ValueError, match="same kernel, noise, mean, bounds and inducing inputs"):
        combine(pair[:: 1 - 2 * which])


@pytest.mark.parametrize("which", [0, 1])
def test_releases_that_hide_x_are_refused(make_plan, setting, which):
    plan = setting.gp.plan_function(
        setting.X, epsilon=1.0, delta=0.01, bound="input-free", basis=[[0.0], [5.0], [10.0]]
    )
    pair = [plan.release(setting.y), make_plan().release(setting.y)]
    with pytest.raises(ValueError, match=r"releases.*X"):
        combine(pair[:: 1 - 2 * which])
