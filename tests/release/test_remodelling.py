"""Another model for what was released: the textbook's answers, evidence, and a model that is learned."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import cloakgp
from cloakgp import GP, Hyperprior
from cloakgp.kernels import EQ, Constant, Matern32

PROMISE = {"epsilon": 1.0, "delta": 0.01}
NEW = np.linspace(-1, 12, 7)[:, None]
OTHERS = {
    "another kernel": GP(Matern32(3.0) + Constant(2.0), 0.7, (-1.0, 4.0), 1.1),
    "other bounds": GP(EQ(2.5, variance=2.0), 0.7, (-100.0, 300.0), 0.2),
    "noise per row": GP(EQ(2.5), np.geomspace(0.2, 2, 12), (-1.0, 4.0), 0.2),
    "noise by place": GP(EQ(2.5), lambda X: 0.2 + 0.1 * X[:, 0] ** 2, (-1.0, 4.0), 0.2),
    "inducing inputs": GP(EQ(2.5), 0.7, (-1.0, 4.0), 0.2, np.linspace(0, 10, 6)),
}


def real(release):
    """B, z and the noise's variance in y's unit, of y itself."""
    m = release.plan.measurement
    matrix = m.matrix if m.groups is None else m.matrix[:, m.groups.labels]
    B = matrix / 2.0**m.matrix_bits
    return B, release.z * m.step + B.sum(axis=1) * m.lower, m.noise_scale**2


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("repeated", [False, True])
def test_any_model_is_conditioned_as_in_the_textbook(setting, by_the_book, name, repeated):
    X = setting.X[[0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]] if repeated else setting.X
    release = setting.gp.plan(X, X_star=setting.X_star, **PROMISE).release(setting.y)
    gp = OTHERS[name]
    book = by_the_book(gp.at_rows(X), X, NEW)
    B, z, variance = real(release)
    D = B @ book.K @ B.T + variance * np.eye(len(B))
    gain = np.linalg.solve(D, B @ book.cross).T
    mean, std = release.remodel(gp).predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, gp.mean + gain @ (z - B.sum(axis=1) * gp.mean), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(std**2, np.diag(book.prior - gain @ B @ book.cross), rtol=1e-6, atol=1e-8)
    expected = multivariate_normal(B.sum(axis=1) * gp.mean, D).logpdf(z)
    assert release.evidence(gp) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_its_own_model_is_the_releases_own_predictions(setting, make_plan):
    release = make_plan(design="posterior").release(setting.y)
    np.testing.assert_allclose(release.remodel(setting.gp).predict(NEW), release.predict(NEW), atol=1e-9)


def test_a_function_is_remodelled_too_unless_it_hides_its_inputs(setting):
    plan = setting.gp.plan_function(setting.X, **PROMISE)
    release = plan.release(setting.y)
    np.testing.assert_allclose(release.remodel(setting.gp).predict(NEW), release.predict(NEW), atol=1e-9)
    hidden = setting.gp.plan_function(
        setting.X, bound="input-free", basis=np.linspace(0, 10, 5), **PROMISE
    ).release(setting.y)
    for ask in (hidden.learn, lambda: hidden.evidence(setting.gp), lambda: hidden.remodel(setting.gp)):
        with pytest.raises(ValueError, match="does not show"):
            ask()


def test_what_is_no_model_is_refused(make_plan, setting):
    release = make_plan().release(setting.y)
    with pytest.raises(TypeError, match=r"gp must be a cloakgp\.GP; got str"):
        release.remodel("EQ")
    with pytest.raises(TypeError, match=r"prior must be a cloakgp\.Hyperprior; got int"):
        release.learn(3)
    with pytest.raises(ValueError, match="one per row of X"):
        release.remodel(GP(EQ(1.0), np.ones(5), (0.0, 1.0)))


def generated(n, lengthscale, noise_std, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 10, n))[:, None]
    f = np.linalg.cholesky(EQ(lengthscale)(X) + 1e-8 * np.eye(n)) @ rng.normal(size=n)
    return X, 5.0 + f, 5.0 + f + noise_std * rng.normal(size=n)


# The noise comes from a seed in these two: they are about what is learned, and give the same every time.


@pytest.mark.parametrize("lengthscale", [0.7, 4.0])
def test_the_lengthscale_is_learned_where_noise_is_small(seeded, lengthscale):
    """At a large epsilon the measurements show the data: the weight gathers about the truth."""
    X, f, y = generated(300, lengthscale, 0.3)
    gp = GP.of(Hyperprior().model(X, (0.0, 10.0)))
    plan = gp.plan(X, X_star=X[::6], epsilon=50.0, delta=1e-3, design="posterior", gap=0.1)
    with seeded(1):
        learned = plan.release(y).learn()
    best = learned.weights @ [np.log(s.lengthscale[0]) for s in learned.settings]
    assert abs(best - np.log(lengthscale)) < np.log(2.5)
    mean, std = learned.predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - f) ** 2)) < 0.35
    assert np.mean(np.abs(mean - f) < 2.5 * std) > 0.9


def test_several_columns_are_learned_each_with_its_lengthscale(seeded):
    """The second column says nothing: its lengthscale is long."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, size=(400, 2))
    f = 5 + 2 * np.sin(6 * X[:, 0])
    gp = GP.of(Hyperprior().model(X, (0.0, 10.0)))
    plan = gp.plan(X, X_star=X[:60], epsilon=20.0, delta=1e-3, design="posterior", gap=0.2)
    with seeded(3):
        learned = plan.release(f + 0.3 * rng.normal(size=400)).learn()
    lengths = np.array([s.lengthscale for s in learned.settings])
    first, second = np.exp(learned.weights @ np.log(lengths))
    assert second > 1.5 * first
    assert np.sqrt(np.mean((learned.predict(X) - f) ** 2)) < 0.7


def test_the_mixture_counts_the_models_disagreement(make_plan, setting):
    learned = make_plan().release(setting.y).learn()
    means = np.array([p.predict(NEW) for p in learned.posteriors])
    variances = np.array([p.predict(NEW, return_std=True)[1] ** 2 for p in learned.posteriors])
    mean, std = learned.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, learned.weights @ means)
    second = learned.weights @ (variances + means**2) - mean**2
    np.testing.assert_allclose(std**2, second, rtol=1e-6)
    with_noise = learned.predict(NEW, return_std=True, include_noise=True)[1]
    np.testing.assert_allclose(with_noise**2, second + learned.noise, rtol=1e-6)
    assert learned.weights.sum() == pytest.approx(1)
    assert list(learned.weights) == sorted(learned.weights, reverse=True)
    assert str(learned).endswith(f"{len(learned.settings) - 12} more")


def test_learning_is_the_same_every_time_and_from_a_file(make_plan, setting, tmp_path):
    release = make_plan().release(setting.y)
    release.save(tmp_path / "file")
    one, two = release.learn().predict(NEW), cloakgp.load(tmp_path / "file").learn().predict(NEW)
    np.testing.assert_array_equal(one, two)


def test_priors_are_checked():
    for bad, match in (
        ({"kernels": ("cubic",)}, "kernels must be one of"),
        ({"kernels": ()}, "kernels must name at least one family"),
        ({"noise": (0.3, 0.01)}, "noise must have the least before the most"),
        ({"signal": 3}, "signal must be two numbers"),
        ({"lengthscale": (0.0, 1.0)}, "lengthscale must be finite and above 0"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            Hyperprior(**bad)
    assert Hyperprior("EQ").kernels == ("EQ",)


def test_the_model_to_plan_with_has_the_mixtures_covariance():
    X, prior = np.array([[0.0], [4.0], [10.0]]), Hyperprior()
    gp = prior.model(X, (0.0, 100.0))
    settings = prior.usual.settings(np.array([10 / 0.9]), 100.0)
    expected = np.mean([s.kernel(X) for s in settings], axis=0)
    np.testing.assert_allclose(gp.kernel(X), expected, rtol=0.02)  # by a few that stand for all
    assert gp.noise == pytest.approx(np.mean([s.noise for s in settings]), rel=0.2)
    assert gp.mean == 50.0


def test_one_column_that_is_constant_does_no_harm(setting):
    X = np.column_stack([setting.X, np.ones(12)])
    plan = GP.of(Hyperprior().model(X, (-1.0, 4.0))).plan(X, X_star=X[:3], **PROMISE)
    assert np.isfinite(plan.release(setting.y).learn().predict(X)).all()
    assert cloakgp.Learned is type(plan.release(setting.y).learn())


def test_the_weights_are_those_of_the_evidence(make_plan, setting):
    """What learning computes in its own, quicker way is what `evidence` says of each model.

    Of three, with nothing that is integrated out.
    """
    release = make_plan(mean=3.1).release(setting.y)
    learned = release.learn(
        Hyperprior(
            ("EQ", "Matern32", "Matern52"),
            lengthscale=(0.2, 0.2),
            signal=(0.15, 0.15),
            noise=(0.06, 0.06),
            skew=(1e-9, 1e-9),
        )
    )
    assert len(learned.settings) == 3
    found = np.array([release.evidence(p.gp) for p in learned.posteriors])
    np.testing.assert_allclose(learned.evidence - learned.evidence[0], found - found[0], atol=1e-6)
    odds = np.exp(found - found.max())
    np.testing.assert_allclose(learned.weights, odds / odds.sum(), rtol=1e-5)
