"""Several releases read together: of the same data, or of different people's outcomes, about one f."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.stats import norm

import cloakgp
from cloakgp import GP, ArgumentError, AutoGP, Hyperprior, Learned, Ledger, combine
from cloakgp.data import cells
from cloakgp.data.merging import Inputs
from cloakgp.kernels import EQ, Constant, Matern32
from cloakgp.posterior import support
from cloakgp.release import encoding
from cloakgp.testing import InsecureWarning, insecure_seed

PROMISE = {"epsilon": 1.0, "delta": 0.01}
X_STAR = np.linspace(0, 10, 5)[:, None]
NEW = np.array([[-1.0], [0.5], [3.3], [9.9], [12.0]])
MODEL = GP(EQ(2.0, variance=1.5) + Constant(0.5), noise=0.4, bounds=(-4.0, 6.0), mean=0.7)
AUTO = AutoGP(bounds=(-10.0, 12.0), stages=3)


def made(seed, n=14, digits=8):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(n, 1)).round(digits)
    return X, np.sin(X[:, 0]) + 0.6 * rng.normal(size=n) + 1


def plain(seed, gp=MODEL, **changes):
    X, y = made(seed, **{name: changes.pop(name) for name in ("n", "digits") if name in changes})
    return gp.plan(X, **{"X_star": X_STAR, **PROMISE, "design": "posterior", **changes}).release(y)


def function(seed, **options):
    X, y = made(seed)
    return MODEL.plan_function(X, **options, **PROMISE).release(y)


def hidden(seed):
    return function(seed, bound="input-free", basis=np.linspace(0, 10, 5))


def apart(releases, **options):
    return combine(releases, same_data=False, **options)


def told(posterior, X=NEW):
    return posterior.predict(X, return_std=True)


def pieces(release):
    """X and B by row, what was measured in y's unit, and the covariance of noise but outcomes' own."""
    plan, rows, values, noises = release.plan, [], [], []
    X = np.asarray(plan.X) if plan.cells is None else plan.cells.means[plan.cells.labels]
    for stage in plan.all_stages(release.stages):
        m, line = stage.measurement, stage.line
        labels = np.arange(len(X)) if m.groups is None else m.groups.labels
        low, high = (np.broadcast_to(v if np.ndim(v) == 0 else v[labels], len(X)) for v in (m.lower, m.upper))
        unit = (high - low).max() / 2.0 ** (m.matrix_bits + m.y_bits)
        B = m.matrix[:, labels] * unit * 2.0**m.y_bits / (high - low)
        value, noise = stage.z * unit + B @ low, (m.sigma * unit) ** 2 * np.eye(len(B))
        beyond, edges = stage.outside, plan.bounds
        if beyond is not None:
            q, left = len(B), edges[1] - edges[0] - (high - low)
            unit = left.max() / 2.0 ** (beyond.matrix_bits + beyond.y_bits)
            outside = beyond.matrix[:, labels] * unit * 2.0**beyond.y_bits / left
            value = np.append(value, stage.answer[q : q + len(outside)] * unit)
            noise = block_diag(noise, (beyond.sigma * unit) ** 2 * np.eye(len(outside)))
            B = np.vstack([B * line.slope[labels], outside * (1 - line.slope[labels])])
        elif line is not None:
            B = B * line.slope[labels]
        if line is not None:
            value, noise = value - line.shift, noise + line.extra
        rows.append(B)
        values.append(value)
        noises.append(noise)
    return X, np.vstack(rows), np.concatenate(values), block_diag(*noises)


def brute(releases, gp, X_new=NEW, same_data=False):
    """The joint Gaussian of f(X_new) and everything that was released, conditioned by the formula."""
    each, B, z, noise = zip(*map(pieces, releases), strict=True)
    X, B = (each[0], np.vstack(B)) if same_data else (np.vstack(each), block_diag(*B))
    z, noise = np.concatenate(z), block_diag(*noise)
    mean = gp.mean if callable(gp.mean) else lambda at: np.full(len(at), gp.mean)
    D = B @ (gp.kernel(X) + np.diag(np.broadcast_to(gp.noise, len(X)))) @ B.T + noise
    G = np.linalg.solve(D, B @ gp.kernel(X, X_new)).T
    return mean(X_new) + G @ (z - B @ mean(X)), gp.kernel(X_new) - G @ B @ gp.kernel(X, X_new), (z, D, B, X)


def check_against_brute(both, releases, gp, same_data=False):
    mean, cov, (*_, X) = brute(releases, gp, same_data=same_data)
    got, std = told(both)
    np.testing.assert_allclose(got, mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-6)
    np.testing.assert_allclose(both.predict(NEW, return_cov=True)[1], cov, atol=1e-7)
    K = gp.kernel(X) + np.diag(np.broadcast_to(gp.noise, len(X)))
    known = np.diag(gp.kernel(NEW) - gp.kernel(NEW, X) @ np.linalg.solve(K, gp.kernel(X, NEW)))
    parts = both.uncertainty(NEW, include_noise=0.4)
    np.testing.assert_allclose(parts.gp**2, known, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(parts.total**2, std**2 + 0.4, rtol=1e-9)
    assert both.sample(NEW, 3, seed=0).shape == (3, len(NEW))


@pytest.fixture(scope="module")
def same():
    """Of different designs, promises and kinds, all of the same y."""
    changes = {"X_star": [[1.0], [12.0]], "design": "max", "delta": 1e-5}
    functions = [function(1, bound="infinity"), function(1, basis=np.linspace(0, 10, 6))]
    return [plain(1, design="mse"), plain(1, epsilon=3.0), plain(1, **changes), *functions]


@pytest.fixture(scope="module")
def two():
    return [plain(1), plain(2, n=9, epsilon=2.0, digits=0)]  # the second has equal rows


@pytest.fixture(scope="module")
def staged():
    X, y = made(3, n=40, digits=1)
    return AUTO.plan(X, X_star=X_STAR, **PROMISE).release(y)


# ------------------------------------------------------------------------------- of the same data


def test_of_the_same_data_it_is_the_posterior_given_all_measurements(same):
    check_against_brute(combine(iter(same)), same, MODEL, same_data=True)
    gp = GP(EQ(2.0), noise=np.linspace(0.1, 2.0, 14), bounds=(-1.0, 4.0), mean=6.0)
    by_row = [plain(1, gp), plain(1, gp)]
    check_against_brute(combine(by_row), by_row, gp, same_data=True)
    for release in same:
        np.testing.assert_array_equal(told(combine([release])), told(release))


def test_files_combine_as_what_was_saved(same, two, staged, tmp_path):
    for options, releases in (({}, same), ({"same_data": False, "model": MODEL}, [*two, staged])):
        for number, release in enumerate(releases):
            release.save(tmp_path / f"{number}.cloak")
        loaded = [cloakgp.load(tmp_path / f"{number}.cloak") for number in range(len(releases))]
        np.testing.assert_array_equal(*(combine(some, **options).predict(NEW) for some in (releases, loaded)))


# ---------------------------------------------------------------------------- of different people


def test_it_is_the_joint_posterior_of_both_sets(two):
    assert two[1].plan.measurement.groups is not None
    check_against_brute(apart(two), two, MODEL)


OTHERS = {
    "the same inputs": lambda two: two[0].plan.release(made(6)[1]),  # each row has a scatter of its own
    "bounds": lambda two: plain(7, GP(EQ(2.0, variance=1.5), 0.4, (0.0, 3.0), 0.7)),
    "noise per row": lambda two: plain(7, GP(Matern32(5.0), np.linspace(0.1, 1.0, 14), (-30.0, 40.0))),
    "windows": lambda two: plain(7, GP(EQ(1.0), 0.4, (lambda X: X[:, 0] - 5, lambda X: X[:, 0] + 3))),
    "downweighted": lambda two: plain(7, GP(EQ(1.0), 0.4, (-4.0, 6.0), downweight="leverage")),
    "function": lambda two: function(7),
    "given": lambda two: plain(9, design="mse", given=[plain(9)], windows=2.0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_bounds_models_and_kinds(two, name):
    both = [two[0], OTHERS[name](two)]
    check_against_brute(apart(both, model=MODEL), both, MODEL)


def test_a_mean_that_is_a_function(two):
    gp = GP(MODEL.kernel, 0.3, (-4.0, 6.0), mean=lambda X: 1 + np.sin(X[:, 0]))
    check_against_brute(apart(two, model=gp), two, gp)


def test_inducing_inputs_of_all_sets_are_used():
    few, many = (replace(MODEL, inducing=np.linspace(0, end, n)) for end, n in ((5.0, 6), (10.0, 41)))
    releases = [plain(1, few), plain(2, many)]
    both = apart(releases)
    np.testing.assert_array_equal(both.gp.inducing[:, 0], np.union1d(few.inducing, many.inducing))
    mean, cov, _ = brute(releases, MODEL)  # so many that they represent everything
    got, std = told(both)
    np.testing.assert_allclose(got, mean, atol=2e-3)
    np.testing.assert_allclose(std[1:4], np.sqrt(np.diag(cov))[1:4], rtol=2e-3)


def test_a_release_in_stages_and_a_plain_one(two, staged):
    assert any(stage.line is not None for stage in staged.stages)
    both = apart([staged, two[0]], model=MODEL)
    check_against_brute(both, [staged, two[0]], MODEL)
    assert (told(both)[1] < told(staged.remodel(MODEL))[1]).all()


@pytest.mark.parametrize("known", [True, False])
def test_cells_of_many_rows_also_from_a_file_without_the_rows(two, monkeypatch, tmp_path, known):
    monkeypatch.setattr(cells, "MOST_CELLS", 16)
    X, y = made(10, n=60)
    gp = replace(MODEL, inducing=np.linspace(0, 10, 6)[:, None]) if known else AUTO
    release = gp.plan(X, X_star=X_STAR, **PROMISE).release(y)
    assert release.plan.cells is not None
    both = apart([two[0], release], model=MODEL)
    check_against_brute(both, [two[0], release], MODEL)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 0)
    release.save(tmp_path / "many.cloak")
    loaded = cloakgp.load(tmp_path / "many.cloak")
    assert loaded.plan.X is None
    np.testing.assert_array_equal(apart([two[0], loaded], model=MODEL).predict(NEW), both.predict(NEW))
    assert known or isinstance(apart([two[0], loaded]), Learned)


def halves_of(release, n, answered):
    """Two releases with the columns that the whole's measurement has for their rows."""
    for half in (slice(None, n), slice(n, None)):
        plan = release.plan
        m = replace(plan.measurement, matrix=plan.measurement.matrix[:, half])
        z = np.arange(m.n_measurements) + (half.start or 0)
        first = replace(plan.first, measurement=m)
        yield answered(
            replace(plan, X=plan.X[half], inputs=Inputs(plan.X[half], plan.gp.noise, None), first=first), z
        )


@pytest.mark.parametrize("design", ["posterior", "mse"])
def test_two_halves_have_at_most_root_two_times_the_privacy_noise_of_the_whole(design, answered):
    """Theorem 18: with the whole's own columns, everywhere; and planned on their own, on average."""
    whole = plain(11, n=40, design=design)
    both, one = apart(halves_of(whole, 20, answered)).uncertainty(NEW), whole.uncertainty(NEW)
    np.testing.assert_allclose(both.gp, one.gp, rtol=1e-6)
    assert (both.privacy <= np.sqrt(2) * one.privacy * (1 + 1e-9)).all()
    assert (both.privacy > one.privacy).all()
    if design == "posterior":
        X, y = made(11, n=40)
        plans = [MODEL.plan(X[i::2], X_star=X_STAR, design=design, **PROMISE) for i in range(2)]
        both = apart([plan.release(y[i::2]) for i, plan in enumerate(plans)]).uncertainty(X_STAR)
        known = np.mean(whole.uncertainty(X_STAR).privacy ** 2)
        assert known < np.mean(both.privacy**2) <= 2 * known


def test_whole_rows_of_one_custodian_and_outcomes_of_others_make_one_map():
    """Sets whose inputs nobody sees count as measured: by estimated counts, which may be wrong."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 10, 900)
    y = 50 + 30 * np.sin(X / 2) + rng.normal(0, 5, 900)
    sets, model, asked = (
        np.split(np.arange(900), 3),
        AutoGP((0, 100), stages=3),
        {"epsilon": 2.0, "delta": 1e-4},
    )
    grid = cloakgp.Grid({"x": (0, 10)}, cells=20)
    releases = [model.plan_rows(grid, 300, **asked).release(X[rows], y[rows]) for rows in sets[:2]]
    releases.append(model.plan(X[sets[2]], **asked).release(y[sets[2]]))
    at = np.linspace(0.5, 9.5, 19)
    truth = 50 + 30 * np.sin(at / 2)
    mean, std = told(apart(releases), at)
    assert std.mean() < 0.95 * min(told(release, at)[1].mean() for release in releases)
    assert np.mean(np.abs(mean - truth) < 3 * std) > 0.9
    known = apart(releases, model=GP(EQ(2.0, variance=900.0), 25.0, (0, 100)))
    for found in (mean, known.predict(at)):
        assert np.sqrt(np.mean((found - truth) ** 2)) < 6


# --------------------------------------------------------------------------------- what is learned


def score(releases, posterior):
    """Log density of all that was measured under a model, by the formula."""
    z, D, B, _ = brute(releases, posterior.gp)[2]
    rest = z - B.sum(axis=1) * posterior.gp.mean
    return -rest @ np.linalg.solve(D, rest) / 2 - np.linalg.slogdet(D)[1] / 2


FAMILIES = Hyperprior(
    ("EQ", "Matern32", "Matern52"),
    lengthscale=(0.2, 0.2),
    signal=(0.15, 0.15),
    noise=(0.06, 0.06),
    skew=(1e-9, 1e-9),
)
"""Three models, and nothing that is integrated out."""


def check_weights(learned, scores, rtol):
    expected = np.exp(np.array(scores) - scores[0])
    np.testing.assert_allclose(learned.weights, expected / expected.sum(), rtol=rtol, atol=1e-9)


def test_each_learned_model_is_the_joint_posterior(two, staged):
    surely_normal = replace(staged.plan.prior, skew=(1e-9, 1e-9))
    learned = apart([staged, two[0]], model=surely_normal)
    for posterior in learned.posteriors[:3]:
        mean, cov, _ = brute([staged, two[0]], posterior.gp)
        np.testing.assert_allclose(posterior.predict(NEW), mean, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(told(posterior)[1] ** 2, np.diag(cov), rtol=1e-5)
    assert learned.gp.bounds == (-10.0, 12.0)  # of both together
    assert learned.weights.sum() == pytest.approx(1.0)
    assert "lengthscale" in str(learned)


def test_weights_are_by_the_density_of_everything(two):
    learned = apart(two, model=FAMILIES)
    assert len(learned.settings) == 3
    check_weights(learned, [score(two, one) for one in learned.posteriors], 1e-5)
    prior = Hyperprior(kernels=("Matern32",))
    assert {setting.family for setting in apart(two, model=prior).settings} == {"Matern32"}


def of_distance(spread, mean, std, n):
    """Log density of a noisy mean distance, for outcomes with this mean and std."""
    r, limit = np.sqrt(std**2 + (mean - spread.centre[: len(n)]) ** 2), spread.limit
    expected = r * np.sqrt(2 / np.pi) * (1 - np.exp(-((limit / r) ** 2) / 2)) + 2 * limit * norm.sf(limit / r)
    variance = spread.variance + 0.36 * (np.minimum(r, limit) ** 2 @ n) / n.sum() ** 2
    return -((spread.value - expected @ n / n.sum()) ** 2) / variance / 2 - np.log(variance) / 2


def test_distances_count_for_the_rows_they_were_measured_at(two, staged):
    """What a set measured of the noise level is as likely as beside its own rows alone."""
    learned, inputs = apart([two[0], staged], model=FAMILIES), staged.plan.inputs
    middle = learned.gp.mean
    readings = [one for stage in staged.stages if (one := stage.spread_reading(middle)) is not None]
    assert readings
    scores = []
    for posterior in learned.posteriors:
        mean, std = posterior.predict(inputs.X, return_std=True, include_noise=True)
        spreads = sum(of_distance(one, mean - middle, std, inputs.counts) for one in readings)
        scores.append(score([two[0], staged], posterior) + spreads)
    check_weights(learned, scores, 1e-4)


def test_a_set_too_small_to_be_looked_at(two, staged, monkeypatch):
    """Where few inputs stand for all, what was measured of others' distances is left out."""
    monkeypatch.setattr(support, "_SAMPLED", 2)
    assert apart([two[0], staged, two[1]]).weights.sum() == pytest.approx(1.0)


# ---------------------------------------------------------------------------- what is refused


def insecure():
    with pytest.warns(InsecureWarning), insecure_seed(0):
        return plain(2)


def of_two_columns():
    X = np.random.default_rng(0).uniform(size=(8, 2))
    return MODEL.plan(X, X_star=X[:2], **PROMISE).release(X[:, 0])


def with_another_prior(two, staged):
    X, y = made(12, n=30)
    other = AutoGP((-10, 12), stages=2, prior=Hyperprior(kernels=("Matern52",)))
    return [staged, other.plan(X, X_star=X_STAR, **PROMISE).release(y)]


def boxes(*_):
    """Levels are numbers in their order: in another order f and m would change places without a word."""
    releases = []
    for levels in (["f", "m"], ["m", "f"]):
        grid = cloakgp.Grid({"x": (0, 10), "sex": levels}, cells=5)
        plan = AutoGP(bounds=(0, 1), stages=2).plan_rows(grid, 30, epsilon=1.0, delta=1e-3)
        X = {"x": np.linspace(0, 9, 30), "sex": np.resize(["f", "m"], 30)}
        releases.append(plan.release(X, np.linspace(0, 1, 30)))
    return releases


def beside(*changes, **more):
    """A release with another model."""
    return lambda two, _: [two[0], plain(2, replace(MODEL, **dict(changes), **more))]


DIFFERENT = {"kernel": EQ(2.1), "noise": 0.5, "mean": 0.8, "inducing": 4}
APART = {
    "none": (lambda two, _: [], None, "releases"),
    "one": (lambda two, _: two[:1], None, "releases"),
    "no list": (lambda two, _: 5, None, "releases"),
    "no release": (lambda two, _: [two[0], "b.cloak"], None, "releases[1]"),
    "one twice": (lambda two, _: [*two, two[0].labelled(title="b")], None, "releases"),
    "one that another was given": (
        lambda two, _: [two[0], plain(1, design="mse", given=[two[0]])],
        None,
        "releases",
    ),
    "an insecure one": (lambda two, _: [two[0], insecure()], None, "releases[1]"),
    "other columns": (lambda two, _: [two[0], of_two_columns()], None, "releases"),
    "hidden inputs": (lambda two, _: [two[0], hidden(4)], None, "releases[1]"),
    "other boxes": (boxes, None, "releases"),
    "other hyperpriors": (with_another_prior, None, "model"),
    **{f"another {name}": (beside((name, value)), None, "model") for name, value in DIFFERENT.items()},
    "noise per row": (beside(noise=np.linspace(0.2, 0.9, 14)), None, "model"),
    "a mean per row": (beside(mean=lambda X: X[:, 0]), None, "model"),
    **{
        f"a model with {name} per row": (lambda two, _: two, replace(MODEL, **{name: value}), "model")
        for name, value in (("noise", np.ones(23)), ("mean", np.ones(23)), ("downweight", "leverage"))
    },
    "no model": (lambda two, _: two, "lern", "model"),
    "a number": (lambda two, _: two, 3, "model"),
}


@pytest.mark.parametrize("name", APART)
@pytest.mark.usefixtures("few_models_here")
def test_what_cannot_be_combined_is_refused_by_name(two, staged, name):
    releases, model, argument = APART[name]
    releases = releases(two, staged)
    for order in (1, -1) if argument == "model" else (1,):
        with pytest.raises(ArgumentError) as caught:
            apart(releases[::order] if order < 0 else releases, model=model)
        assert caught.value.name == argument
    if argument == "model" and model is None:
        assert apart(releases, model=MODEL) is not None


def test_one_data_set_of_a_ledger_is_not_combined_with_itself(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    for name in ("north", "south"):
        ledger.create(name, epsilon=10.0, delta=0.1)
    X, y = made(1)
    releases = [
        MODEL.plan(X[rows], X_star=X_STAR, **PROMISE).release(y[rows], ledger=ledger, dataset=name)
        for rows, name in ((slice(7), "north"), (slice(7, None), "north"), (slice(7, None), "south"))
    ]
    apart(releases[::2])
    later = MODEL.plan(X[:7], X_star=X_STAR, given=releases[:1], **PROMISE).release(y[:7])  # whoever pays
    for some in (releases[:2], [releases[1], later]):
        with pytest.raises(ArgumentError, match="data set 'north' paid for both"):
            apart(some)


def test_more_than_fits_in_memory_is_refused(two, monkeypatch):
    monkeypatch.setattr("cloakgp.release.combine.LARGEST", 10)
    with pytest.raises(ArgumentError, match="few enough for one matrix"):
        apart(two)


OTHER = {
    **{f"another {name}": {name: value} for name, value in DIFFERENT.items()},
    "noise per row": {"noise": np.linspace(0.2, 0.9, 14)},
    "bounds": {"bounds": (-4.0, 5.0)},
}
TOGETHER = {
    "none": lambda same: [],
    "no list": lambda same: 5,
    "a path": lambda same: ["release.cloak"],
    "one twice": lambda same: [same[0], same[0]],
    **{
        name: lambda same, changes=changes: [same[0], plain(1, replace(MODEL, **changes))]
        for name, changes in OTHER.items()
    },
    "other inputs": lambda same: [same[0], plain(2)],
    "hidden inputs": lambda same: [same[0], hidden(1)],
    "in stages": lambda same: [same[0], plain(1, given=same[:1])],
}


@pytest.mark.parametrize("name", TOGETHER)
def test_what_is_not_of_the_same_data_and_model_is_refused(same, name):
    releases = TOGETHER[name](same)
    for some in (releases, releases[::-1]) if isinstance(releases, list) else (releases,):
        with pytest.raises((ValueError, TypeError), match=r"^releases"):
            combine(some)


def test_a_model_is_not_for_releases_of_the_same_data(two):
    with pytest.raises(ArgumentError, match="model is for releases of different data sets"):
        combine(two[:1], model=MODEL)
