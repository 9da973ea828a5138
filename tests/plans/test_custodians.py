"""Releases of several custodians, who hold different people's outcomes, read together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.stats import chi2

import cloakgp
from cloakgp import GP, AutoGP, Hyperprior, Learned, Ledger, combine
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.kernels import EQ, Constant, Matern32
from cloakgp.plans import custodians, encoding, out_of_core, staged_encoding, staged_planner
from cloakgp.posterior import support
from cloakgp.posterior.mixture import Mixture
from cloakgp.rows import cells
from cloakgp.testing import InsecureWarning, insecure_seed

PROMISE = {"epsilon": 1.0, "delta": 0.01}
X_STAR = np.linspace(0, 10, 5)[:, None]
NEW = np.array([[-1.0], [0.5], [3.3], [9.9], [12.0]])
MODEL = GP(EQ(2.0, variance=1.5) + Constant(0.5), noise=0.4, bounds=(-4.0, 6.0), mean=0.7)


def made(seed, n=14, digits=8):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(n, 1)).round(digits)
    return X, np.sin(X[:, 0]) + 0.6 * rng.normal(size=n) + 1


def plain(seed, gp=MODEL, **changes):
    X, y = made(seed, **{name: changes.pop(name) for name in ("n", "digits") if name in changes})
    return gp.plan(X, X_star=X_STAR, **{**PROMISE, "design": "posterior", **changes}).release(y)


def pieces(release):
    """X and B by row, what was measured in y's unit, and the covariance of noise but outcomes' own."""
    staged = hasattr(release, "stages")
    stages = release.plan.rule.all_stages(release.stages) if staged else [release]
    X = np.asarray(release.plan.X)
    if staged and release.plan.rule.cells is not None:  # rows are where their cells are
        X = release.plan.rule.cells.centres[release.plan.rule.cells.labels]
    rows, values, noises = [], [], []
    for stage in stages:
        m, line = stage.plan.measurement, getattr(stage.plan, "line", None)
        if not hasattr(m, "matrix"):
            matrix = m.recipe.columns(m.inputs.X, m.inputs.noise, m.inputs.windows)[:, m.groups.labels]
        else:
            matrix = m.matrix if m.groups is None else m.matrix[:, m.groups.labels]
        labels = np.arange(len(X)) if m.groups is None else m.groups.labels
        low, high = (np.broadcast_to(v if np.ndim(v) == 0 else v[labels], len(X)) for v in (m.lower, m.upper))
        unit = (high - low).max() / 2.0 ** (m.matrix_bits + m.y_bits)
        B = matrix * unit * 2.0**m.y_bits / (high - low)
        value, noise = stage.z * unit + B @ low, (m.sigma * unit) ** 2 * np.eye(len(B))
        if line is not None:
            B, value, noise = B * line.slope[labels], value - line.shift, noise + line.extra
        rows.append(B)
        values.append(value)
        noises.append(noise)
    return X, np.vstack(rows), np.concatenate(values), block_diag(*noises)


def brute(releases, gp, X_new):
    """The joint Gaussian of f(X_new) and everything that was released, conditioned by the formula."""
    sets = [pieces(release) for release in releases]
    X, B = np.vstack([one[0] for one in sets]), block_diag(*(one[1] for one in sets))
    z, noise = np.concatenate([one[2] for one in sets]), block_diag(*(one[3] for one in sets))
    mean = gp.mean if callable(gp.mean) else lambda at: np.full(len(at), gp.mean)
    D = B @ (gp.kernel(X) + gp.noise * np.eye(len(X))) @ B.T + noise
    G = np.linalg.solve(D, B @ gp.kernel(X, X_new)).T
    return mean(X_new) + G @ (z - B @ mean(X)), gp.kernel(X_new) - G @ B @ gp.kernel(X, X_new), (z, D, B, X)


def check_against_brute(releases, model, gp):
    both = combine(releases, same_data=False, model=model)
    mean, cov, (*_, X) = brute(releases, gp, NEW)
    got, std = both.predict(NEW, return_std=True)
    np.testing.assert_allclose(got, mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-6)
    np.testing.assert_allclose(both.predict(NEW, return_cov=True)[1], cov, atol=1e-7)
    K = gp.kernel(X) + gp.noise * np.eye(len(X))
    known = np.diag(gp.kernel(NEW) - gp.kernel(NEW, X) @ np.linalg.solve(K, gp.kernel(X, NEW)))
    np.testing.assert_allclose(both.uncertainty(NEW).gp ** 2, known, rtol=1e-5, atol=1e-9)
    assert both.sample(NEW, 3, seed=0).shape == (3, len(NEW))
    return both


@pytest.fixture(scope="module")
def two():
    return [plain(1), plain(2, n=9, epsilon=2.0, digits=0)]  # the second has equal rows


@pytest.fixture(scope="module")
def staged():
    X, y = made(3, n=40, digits=1)
    return AutoGP(bounds=(-10.0, 12.0), stages=3).plan(X, X_star=X_STAR, **PROMISE).release(y)


@pytest.fixture(scope="module")
def hidden():
    X, y = made(4)
    plan = MODEL.plan_function(X, bound="input-free", basis=np.linspace(0, 10, 5), **PROMISE)
    return plan.release(y)


def test_it_is_the_joint_posterior_of_both_sets(two):
    assert two[1].plan.measurement.groups is not None
    check_against_brute(two, None, MODEL)


def test_the_order_does_not_matter_and_three_know_more_than_two(two):
    three = [*two, plain(5)]
    forth, back = (combine(order, same_data=False) for order in (three, three[::-1]))
    pairs = zip(forth.predict(NEW, return_std=True), back.predict(NEW, return_std=True), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-8)
    fewer = combine(two, same_data=False).predict(NEW, return_std=True)[1]
    assert (forth.predict(NEW, return_std=True)[1] < fewer).all()
    for release in two:
        assert (fewer < release.predict(NEW, return_std=True)[1]).all()


def test_equal_inputs_in_two_sets_are_different_people(two):
    """The same X and the same plan, other outcomes: each row has a scatter of its own."""
    plan = two[0].plan
    check_against_brute([two[0], plan.release(made(6)[1])], None, MODEL)


OTHERS = {
    "bounds": lambda: plain(7, GP(EQ(2.0, variance=1.5), 0.4, (0.0, 3.0), 0.7)),
    "noise per row": lambda: plain(7, GP(Matern32(5.0), np.linspace(0.1, 1.0, 14), (-30.0, 40.0))),
    "windows": lambda: plain(7, GP(EQ(1.0), 0.4, (lambda X: X[:, 0] - 5, lambda X: X[:, 0] + 3))),
    "downweighted": lambda: plain(7, GP(EQ(1.0), 0.4, (-4.0, 6.0), downweight="leverage")),
    "function": lambda: MODEL.plan_function(made(7)[0], **PROMISE).release(made(7)[1]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_bounds_models_and_kinds(two, name):
    check_against_brute([two[0], OTHERS[name]()], MODEL, MODEL)


def test_a_mean_that_is_a_function(two):
    gp = GP(MODEL.kernel, 0.3, (-4.0, 6.0), mean=lambda X: 1 + np.sin(X[:, 0]))
    check_against_brute(two, gp, gp)


def test_a_recipe_is_written_out(two, monkeypatch, tmp_path):
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    X, y = made(8, n=30, digits=0)
    gp = replace(MODEL, inducing=np.linspace(0, 10, 6)[:, None])
    release = gp.plan(X, X_star=X_STAR, **PROMISE).release(y)
    assert not hasattr(release.plan.measurement, "matrix")
    check_against_brute([two[0], release], MODEL, MODEL)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 0)
    release.save(tmp_path / "b.cloak")
    with pytest.raises(ArgumentError, match=r"releases\[1\] must show .* got a file that holds their digest"):
        combine([two[0], cloakgp.load(tmp_path / "b.cloak")], same_data=False, model=MODEL)


def test_inducing_inputs_of_all_sets_are_used():
    few, many = (replace(MODEL, inducing=np.linspace(0, end, n)) for end, n in ((5.0, 6), (10.0, 41)))
    releases = [plain(1, few), plain(2, many)]
    both = combine(releases, same_data=False)
    np.testing.assert_array_equal(both.gp.inducing[:, 0], np.union1d(few.inducing, many.inducing))
    mean, cov, _ = brute(releases, MODEL, NEW)  # so many that they represent everything
    got, std = both.predict(NEW, return_std=True)
    np.testing.assert_allclose(got, mean, atol=2e-3)
    np.testing.assert_allclose(std[1:4], np.sqrt(np.diag(cov))[1:4], rtol=2e-3)


def test_a_release_in_stages_and_a_plain_one(two, staged):
    assert any(stage.plan.line is not None for stage in staged.stages)
    both = check_against_brute([staged, two[0]], MODEL, MODEL)
    assert (
        both.predict(NEW, return_std=True)[1] < staged.remodel(MODEL).predict(NEW, return_std=True)[1]
    ).all()


def test_cells_of_many_rows_also_from_a_file_without_the_rows(two, monkeypatch, tmp_path):
    for module in (cells, staged_planner):
        monkeypatch.setattr(module, "MOST_CELLS", 16)
    X, y = made(10, n=60)
    release = AutoGP(bounds=(-10.0, 12.0), stages=2).plan(X, X_star=X_STAR, **PROMISE).release(y)
    assert release.plan.rule.cells is not None
    both = check_against_brute([two[0], release], MODEL, MODEL)
    monkeypatch.setattr(staged_encoding, "LARGEST_INPUTS", 0)
    release.save(tmp_path / "many.cloak")
    loaded = cloakgp.load(tmp_path / "many.cloak")
    assert loaded.plan.X is None
    again = combine([two[0], loaded], same_data=False, model=MODEL)
    np.testing.assert_array_equal(again.predict(NEW), both.predict(NEW))
    assert isinstance(combine([two[0], loaded], same_data=False), Learned)


def test_what_was_given_to_a_set_counts_too(two):
    X, y = made(9, n=30)
    first = MODEL.plan(X, X_star=X_STAR, design="posterior", **PROMISE).release(y)
    later = MODEL.plan(X, X_star=X_STAR, given=[first], windows=2.0, **PROMISE).release(y)
    check_against_brute([two[0], later], None, MODEL)


def test_files_combine_as_what_was_saved(two, staged, tmp_path):
    releases = [*two, staged]
    for number, release in enumerate(releases):
        release.save(tmp_path / f"{number}.cloak")
    loaded = [cloakgp.load(tmp_path / f"{number}.cloak") for number in range(3)]
    np.testing.assert_array_equal(
        *(combine(some, same_data=False, model=MODEL).predict(NEW) for some in (releases, loaded))
    )


def test_intervals_are_as_wide_as_errors_are():
    """Squared errors over variances, for 300 drawn functions: chi-squared, if all covariances are right."""
    rng, gp = np.random.default_rng(0), GP(EQ(2.0), noise=0.3, bounds=(-7.0, 7.0), mean=0.0)
    sets = [np.linspace(0, 6, 12)[:, None], np.linspace(1, 9, 9)[:, None]]
    plans = [gp.plan(X, X_star=X_STAR, epsilon=8.0, delta=0.01, design="posterior") for X in sets]
    X, at = np.vstack([*sets, [[4.0]]]), 4.0
    L = np.linalg.cholesky(gp.kernel(X) + 1e-9 * np.eye(len(X)))
    total, times = 0.0, 300
    for _ in range(times):
        f = L @ rng.normal(size=len(X))
        y = f + np.sqrt(0.3) * rng.normal(size=len(X))
        both = combine([plans[0].release(y[:12]), plans[1].release(y[12:21])], same_data=False)
        mean, std = both.predict([[at]], return_std=True)
        total += float((mean[0] - f[-1]) ** 2 / std[0] ** 2)
    low, high = chi2(times).ppf([1e-8, 1 - 1e-8])
    assert low < total < high


def halves_of(release, n):
    """Two releases with the columns that the whole's measurement has for their rows."""
    for half in (slice(None, n), slice(n, None)):
        m = replace(release.plan.measurement, matrix=release.plan.measurement.matrix[:, half])
        z = np.arange(m.n_measurements) + (half.start or 0)
        yield cloakgp.Release(replace(release.plan, X=release.plan.X[half], measurement=m), z)


@pytest.mark.parametrize("design", ["posterior", "mse"])
def test_two_halves_have_at_most_root_two_times_the_privacy_noise_of_the_whole(design):
    """Theorem 18: with the whole's own columns, everywhere."""
    whole = plain(11, n=40, design=design)
    both = combine(halves_of(whole, 20), same_data=False).uncertainty(NEW)
    one = whole.uncertainty(NEW)
    np.testing.assert_allclose(both.gp, one.gp, rtol=1e-6)
    assert (both.privacy <= np.sqrt(2) * one.privacy * (1 + 1e-9)).all()
    assert (both.privacy > one.privacy).all()


def test_halves_that_are_planned_on_their_own_do_as_well():
    X, y = made(11, n=40)
    plan = {"design": "posterior", **PROMISE}
    whole = MODEL.plan(X, X_star=X_STAR, **plan).release(y).uncertainty(X_STAR)
    halves = [MODEL.plan(X[i::2], X_star=X_STAR, **plan).release(y[i::2]) for i in range(2)]
    both = combine(halves, same_data=False).uncertainty(X_STAR)
    assert np.mean(both.privacy**2) <= 2 * np.mean(whole.privacy**2)
    assert np.mean(both.privacy**2) > np.mean(whole.privacy**2)


class TestLearning:
    def test_each_model_is_the_joint_posterior(self, two, staged):
        learned = combine([staged, two[0]], same_data=False)
        assert isinstance(learned, Learned)
        for weight, posterior in list(zip(learned.weights, learned.posteriors, strict=True))[:3]:
            mean, cov, _ = brute([staged, two[0]], posterior.gp, NEW)
            np.testing.assert_allclose(posterior.predict(NEW), mean, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(
                posterior.predict(NEW, return_std=True)[1] ** 2, np.diag(cov), rtol=1e-5
            )
            assert 0 < weight <= 1
        assert learned.gp.bounds == (-10.0, 12.0)  # of both together
        assert learned.weights.sum() == pytest.approx(1.0)
        assert "lengthscale" in str(learned)

    def test_weights_are_by_the_density_of_everything(self, two):
        learned = combine(two, same_data=False, model="learn")
        scores = []
        for posterior in learned.posteriors:
            z, D, B, _ = brute(two, posterior.gp, NEW)[2]
            rest = z - B.sum(axis=1) * posterior.gp.mean
            scores.append(-rest @ np.linalg.solve(D, rest) / 2 - np.linalg.slogdet(D)[1] / 2)
        expected = np.exp(np.array(scores) - scores[0])
        np.testing.assert_allclose(learned.weights, expected / expected.sum(), rtol=1e-5, atol=1e-9)

    def test_a_hyperprior_is_heeded(self, two):
        learned = combine(two, same_data=False, model=Hyperprior(kernels=("Matern32",)))
        assert {setting.family for setting in learned.settings} == {"Matern32"}

    def test_distances_count_for_the_rows_they_were_measured_at(self, two, staged):
        """What a set measured of the noise level is as likely as beside its own rows alone."""
        learned = combine([two[0], staged], same_data=False)
        middle, inputs = learned.gp.mean, staged.plan.rule.inputs
        alone = Mixture(Hyperprior(), inputs.X, inputs.counts, inputs.X[:1], 22.0)
        readings = [one for stage in staged.stages if (one := stage.spread_reading(middle)) is not None]
        assert readings
        scores = []
        for posterior in learned.posteriors:
            z, D, B, _ = brute([two[0], staged], posterior.gp, NEW)[2]
            rest = z - B.sum(axis=1) * posterior.gp.mean
            score = -rest @ np.linalg.solve(D, rest) / 2 - np.linalg.slogdet(D)[1] / 2
            mean, std = posterior.predict(inputs.X, return_std=True, include_noise=True)
            own = (mean - middle)[None], (std**2)[None]
            scores.append(score + sum(alone._spread_evidence(one, *own)[0] for one in readings))
        expected = np.exp(np.array(scores) - scores[0])
        np.testing.assert_allclose(learned.weights, expected / expected.sum(), rtol=1e-4, atol=1e-9)

    def test_a_set_too_small_to_be_looked_at(self, two, staged, monkeypatch):
        """Where few inputs stand for all, what was measured of others' distances is left out."""
        monkeypatch.setattr(support, "_LOOKED_AT", 2)
        learned = combine([two[0], staged, two[1]], same_data=False)
        assert learned.weights.sum() == pytest.approx(1.0)

    def test_different_hyperpriors_are_asked_about(self, staged):
        X, y = made(12, n=30)
        prior = Hyperprior(kernels=("Matern52",))
        other = AutoGP(bounds=(-10, 12), stages=2, prior=prior).plan(X, X_star=X_STAR, **PROMISE).release(y)
        with pytest.raises(ArgumentError, match="model must be given; got releases that learned from diff"):
            combine([staged, other], same_data=False)
        assert isinstance(combine([staged, other], same_data=False, model=prior), Learned)


class TestRefusals:
    @pytest.mark.parametrize("few", [0, 1])
    def test_fewer_than_two(self, two, few):
        with pytest.raises(ArgumentError, match="at least two releases"):
            combine(two[:few], same_data=False)

    def test_what_is_no_release(self, two):
        with pytest.raises(ArgumentTypeError, match=r"releases\[1\] must be a release; got str"):
            combine([two[0], "b.cloak"], same_data=False)

    def test_the_same_release_twice(self, two, tmp_path):
        two[0].save(tmp_path / "a.cloak")
        with pytest.raises(ArgumentError, match=r"one twice: releases\[0\] and releases\[2\]"):
            combine([*two, cloakgp.load(tmp_path / "a.cloak")], same_data=False)

    def test_what_another_set_was_given(self, two):
        plan = two[0].plan
        later = MODEL.plan(plan.X, X_star=X_STAR, given=[two[0]], **PROMISE).release(made(1)[1])
        with pytest.raises(ArgumentError, match="hold the same answer"):
            combine([two[0], later], same_data=False)

    def test_one_data_set_of_a_ledger(self, tmp_path):
        ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
        for name in ("north", "south"):
            ledger.create(name, epsilon=10.0, delta=0.1)
        X, y = made(1)
        releases = [
            MODEL.plan(X[rows], X_star=X_STAR, **PROMISE).release(y[rows], ledger=ledger, dataset=name)
            for rows, name in ((slice(7), "north"), (slice(7, None), "north"), (slice(7, None), "south"))
        ]
        with pytest.raises(ArgumentError, match=r"share nobody; got .* data set 'north' paid for both"):
            combine(releases[:2], same_data=False)
        combine(releases[::2], same_data=False)
        later = MODEL.plan(X[:7], X_star=X_STAR, given=releases[:1], **PROMISE).release(y[:7])  # whoever pays
        with pytest.raises(ArgumentError, match="data set 'north' paid for both"):
            combine([releases[1], later], same_data=False)

    def test_insecure_ones(self, two):
        with pytest.warns(InsecureWarning), insecure_seed(0):
            seeded = plain(2)
        with pytest.raises(ArgumentError, match=r"releases\[1\] must be a private release; got an INSECURE"):
            combine([two[0], seeded], same_data=False)

    def test_hidden_inputs(self, two, hidden):
        with pytest.raises(ArgumentError, match=r"releases\[1\] must show its inputs X.*hides them"):
            combine([two[0], hidden], same_data=False)

    def test_other_columns(self, two):
        X = np.random.default_rng(0).uniform(size=(8, 2))
        other = MODEL.plan(X, X_star=X[:2], **PROMISE).release(X[:, 0])
        with pytest.raises(ArgumentError, match=r"same columns of X; got 1 columns in releases\[0\] and 2"):
            combine([two[0], other], same_data=False)

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"kernel": EQ(2.1)}, "differ in kernel"),
            ({"noise": 0.5}, "differ in noise"),
            ({"mean": 0.8}, "differ in mean"),
            ({"noise": np.linspace(0.2, 0.9, 14)}, "a noise for each row"),
            ({"mean": lambda X: X[:, 0]}, "a mean for each row"),
            ({"inducing": 4}, "with and without inducing inputs"),
        ],
    )
    @pytest.mark.parametrize("which", [1, -1])
    def test_models_that_differ_are_asked_about(self, two, changes, said, which):
        other = plain(2, replace(MODEL, **changes))
        with pytest.raises(ArgumentError, match=f"model must be given; got releases .*{said}.*Give model="):
            combine([two[0], other][::which], same_data=False)
        combine([two[0], other], same_data=False, model=MODEL)

    @pytest.mark.parametrize(
        "changes",
        [{"noise": np.ones(23)}, {"mean": np.ones(23)}, {"downweight": "leverage"}],
        ids=["noise", "mean", "downweight"],
    )
    def test_a_model_with_something_per_row(self, two, changes):
        with pytest.raises(ArgumentError, match="model must have one noise variance"):
            combine(two, same_data=False, model=replace(MODEL, **changes))

    @pytest.mark.parametrize(("model", "got"), [("lern", "'lern'"), (3, "int")])
    def test_what_is_no_model(self, two, model, got):
        with pytest.raises(ArgumentTypeError, match=f"model must be a cloakgp.GP.*got {got}"):
            combine(two, same_data=False, model=model)

    def test_a_model_for_the_same_data(self, two):
        with pytest.raises(ArgumentError, match="model is for releases of different data sets"):
            combine(two[:1], model=MODEL)

    def test_more_than_fits(self, two, monkeypatch):
        monkeypatch.setattr(custodians, "LARGEST", 10)
        with pytest.raises(ArgumentError, match="few enough for one matrix"):
            combine(two, same_data=False)


@pytest.mark.usefixtures("few_models_here")
def test_whole_rows_of_one_custodian_and_outcomes_of_others_make_one_map():
    """Sets whose inputs nobody sees count as measured: by estimated counts, which may be wrong."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 10, 900)
    y = 50 + 30 * np.sin(X / 2) + rng.normal(0, 5, 900)
    hidden, hidden_too, shown = np.split(np.arange(900), 3)
    grid = cloakgp.Grid({"x": (0, 10)}, cells=20)
    asked = {"epsilon": 2.0, "delta": 1e-4}
    model = cloakgp.AutoGP(bounds=(0, 100), stages=3)
    releases = [
        model.plan_rows(grid, 300, **asked).release(X[rows], y[rows]) for rows in (hidden, hidden_too)
    ]
    releases.append(model.plan(X[shown], **asked).release(y[shown]))
    at = np.linspace(0.5, 9.5, 19)
    truth = 50 + 30 * np.sin(at / 2)
    together = cloakgp.combine(releases, same_data=False)
    mean, std = together.predict(at, return_std=True)
    alone = [release.predict(at, return_std=True)[1].mean() for release in releases]
    assert std.mean() < 0.95 * min(alone)
    assert np.mean(np.abs(mean - truth) < 3 * std) > 0.9
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 6
    fixed = cloakgp.combine(
        releases, same_data=False, model=cloakgp.GP(EQ(2.0, variance=900.0), 25.0, (0, 100))
    )
    assert np.sqrt(np.mean((fixed.predict(at) - truth) ** 2)) < 6


@pytest.mark.usefixtures("few_models_here")
def test_boxes_whose_columns_mean_different_things_are_refused():
    """Levels are numbers in their order: in another order f and m would change places without a word."""
    rng = np.random.default_rng(6)
    releases = []
    for levels in (["f", "m"], ["m", "f"]):
        grid = cloakgp.Grid({"x": (0, 10), "sex": levels}, cells=5)
        plan = cloakgp.AutoGP(bounds=(0, 1), stages=2).plan_rows(grid, 30, epsilon=1.0, delta=1e-3)
        X = list(zip(rng.uniform(0, 10, 30), rng.choice(["f", "m"], 30), strict=True))
        releases.append(plan.release(np.array(X, dtype=object), rng.uniform(size=30)))
    with pytest.raises(ArgumentError, match="same inputs, and the same levels, in one order"):
        cloakgp.combine(releases, same_data=False)
