"""Noisy bins and noisy rows: against brute force, other GP code, and dense quadrature."""

import itertools
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import cloakgp
from cloakgp import ArgumentError, binning
from cloakgp.core.accounting import Gaussian, Laplace
from cloakgp.core.calibration import calibrate
from cloakgp.kernels import EQ, Boxes, Constant, Integral, Matern32
from cloakgp.ledger import LedgerError
from cloakgp.measure.unit import PERSON
from cloakgp.private import room

BOUNDS = (10.0, 30.0)
SOME_X = np.array([0.1, 0.4, 0.5, 1.2, 1.9, 3.5])
SOME_Y = np.array([12.0, 14.0, 29.0, 11.5, 20.25, 16.0])
SOME_EDGES = [0.0, 1.0, 2.0, 3.0, 4.0]  # the third is empty
KERNEL = EQ(1.0, variance=50.0)


@pytest.fixture
def _no_noise(monkeypatch):
    monkeypatch.setattr(room, "add_noise", lambda exact, scale: exact)
    monkeypatch.setattr(room, "add_laplace", lambda exact, scale: exact)


def a_plan(**changes):
    settings = {"X": SOME_X, "X_star": [0.5, 1.5, 2.5, 3.5], "edges": SOME_EDGES, "bounds": BOUNDS}
    return binning.plan(**{**settings, "epsilon": 1.0, **changes})


def a_local(**changes):
    settings = {"X": SOME_X, "X_star": [0.5, 2.5], "kernel": KERNEL, "noise": 2.0, "bounds": BOUNDS}
    return binning.local(**{**settings, "epsilon": 1.0, **changes})


GAUSSIAN = {"mechanism": "gaussian", "delta": 0.01}
GP_SETTINGS = {"kernel": KERNEL, "noise": 3.0}


def bin_by_hand(x, edges):
    """Which bin of each input, by comparing with every edge; None outside."""
    place = []
    for value, cut in zip(x, edges, strict=True):
        inside = [i for i in range(len(cut) - 1) if cut[i] <= value < cut[i + 1]]
        if value == cut[-1]:
            inside = [len(cut) - 2]
        if not inside:
            return None
        place.append(inside[0])
    return tuple(place)


# ------------------------------------------------------------------------------------- brute force


@pytest.mark.parametrize(("columns", "seed"), [(1, 0), (2, 1), (3, 2), (4, 3)])
@pytest.mark.usefixtures("_no_noise")
def test_means_and_predictions_by_brute_force(columns, seed):
    random = np.random.default_rng(seed)
    edges = [np.sort(random.choice(40, random.integers(2, 6), replace=False)) / 4.0 for _ in range(columns)]
    low, high = (np.array([cut[at] for cut in edges]) for at in (0, -1))
    on_edges = np.array(list(itertools.islice(itertools.product(*edges), 30)))  # corners, in exactly one bin
    X = np.vstack([on_edges, random.uniform(low, high, (40, columns))])
    beyond = [np.nextafter(low, -9e9), np.nextafter(high, 9e9), low - 1e300, high + 1e300]
    X_star = np.vstack([X, random.uniform(low - 3, high + 3, (40, columns)), [low, high], beyond])
    y = random.uniform(5.0, 35.0, len(X))  # some outside the bounds

    plan = binning.plan(X, X_star=X_star, edges=edges, bounds=BOUNDS, epsilon=0.7)
    release = plan.release(y)
    groups = {}
    for x, value in zip(X, np.clip(y, *BOUNDS), strict=True):
        groups.setdefault(bin_by_hand(x, edges), []).append(value)
    assert None not in groups
    expected, std = [], []
    for x in X_star:
        found = groups.get(bin_by_hand(x, edges))
        expected.append(20.0 if found is None else np.mean(found))
        std.append(0.0 if found is None else math.sqrt(2) * 20.0 / (0.7 * len(found)))
    np.testing.assert_allclose(release.mean, expected, rtol=1e-10)
    np.testing.assert_allclose(plan.noise_std, std, rtol=1e-9)
    assert plan.occupancy == binning.Occupancy(
        math.prod(len(cut) - 1 for cut in edges),
        len(groups),
        sum(len(group) == 1 for group in groups.values()),
    )
    boxes = sorted(groups)  # the order of the occupied bins
    assert plan.counts.tolist() == [len(groups[box]) for box in boxes]
    np.testing.assert_allclose(release.bin_means, [np.mean(groups[box]) for box in boxes], rtol=1e-10)
    for side, array in ((0, plan.boxes.lower), (1, plan.boxes.upper)):
        corners = [[cut[i + side] for cut, i in zip(edges, box, strict=True)] for box in boxes]
        assert array.tolist() == np.array(corners).tolist()


def test_one_row_all_rows_in_one_bin_and_a_bin_for_each():
    one = binning.plan([3.0], X_star=[3.0, 99.0], edges=1, bounds=BOUNDS, epsilon=2.0)
    assert one.noise_std == pytest.approx([math.sqrt(2) * 10.0, 0.0])
    assert a_plan(edges=[0.0, 4.0]).noise_std == pytest.approx([math.sqrt(2) * 20 / 6] * 4)
    cuts = np.arange(501.0) - 0.5
    each = binning.plan(np.arange(500.0), X_star=[7.0], edges=cuts, bounds=BOUNDS, epsilon=1.0)
    assert each.occupancy == binning.Occupancy(500, 500, 500)
    assert str(a_plan().occupancy) == "3 of 4 bins occupied (75%), 1 of them with one row (33%)"


def test_a_table_keeps_its_names():
    table = {"age": SOME_X, "day": np.array(["2020-01-01", "2020-02-01"] * 3, dtype="datetime64[D]")}
    points = {"day": table["day"][:2], "age": [0.5, 3.5]}
    plan = binning.plan(table, X_star=points, edges=2, bounds=BOUNDS, epsilon=1.0)
    frame = plan.release(SOME_Y).to_frame()
    assert list(frame.columns) == ["age", "day", "prediction", "noise_std"]
    assert frame["age"].tolist() == [0.5, 3.5]
    release = plan.release(SOME_Y)
    np.testing.assert_array_equal(release.predict(points), release.mean)


# -------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize("number", [1, 7, np.int64(5)])
def test_a_number_of_edges_makes_equal_bins_over_the_range(number):
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 1e6]
    plan = binning.plan(X, X_star=X, edges=number, bounds=BOUNDS, epsilon=1.0)
    for column, cut in zip(X.T, plan.edges, strict=True):
        assert (cut[0], cut[-1]) == (column.min(), column.max())
        np.testing.assert_allclose(np.diff(cut), [np.ptp(column) / number] * number, rtol=1e-6)
    for value in (0.0, -5.0, 1e17):  # a column with one value has bins all the same
        plan = binning.plan(np.full(4, value), X_star=[value], edges=number, bounds=BOUNDS, epsilon=1.0)
        assert (plan.counts.tolist(), plan.occupancy.bins) == ([4], number)


@pytest.mark.parametrize("form", [list, tuple, np.array, iter, lambda e: [e], lambda e: np.array([e])])
def test_edges_of_one_column_in_any_form(form):
    plan = a_plan(edges=form(SOME_EDGES))
    assert plan.edges[0].tolist() == SOME_EDGES
    assert not plan.edges[0].flags.writeable
    assert plan.digest == a_plan().digest


def test_extreme_edges_do_not_overflow():
    X = [-1.7e308, 0.0, 1.7e308]
    settings = {"edges": X, "bounds": BOUNDS, "epsilon": 1.0}
    assert binning.plan(X, X_star=X, **settings).counts.tolist() == [1, 2]
    plan = binning.plan(X, X_star=X, **settings, predict="gp", kernel=EQ(1e308))
    assert np.isfinite(plan.noise_std).all()


def test_more_bins_than_integers_are_refused_and_as_many_as_fit_are_told_apart():
    X = np.random.default_rng(0).uniform(size=(200, 4))
    with pytest.raises(ArgumentError, match=r"edges must make fewer than 2\^62 bins"):
        binning.plan(X, X_star=X, edges=10**5, bounds=BOUNDS, epsilon=1.0)
    plan = binning.plan(X[:, :3], X_star=X[:, :3], edges=10**5, bounds=BOUNDS, epsilon=1.0)
    assert plan.occupancy.bins == 10**15
    assert plan.occupancy.single == 200
    assert ((plan.boxes.lower <= plan.boxes.upper) & (plan.boxes.upper - plan.boxes.lower < 2e-5)).all()


# --------------------------------------------------------------------------------------- bad inputs

PROMISED = {
    "X": ([[1.0, np.nan]], []),
    "X_star": ([np.inf], [[1.0, 2.0]]),
    "bounds": (None, (3.0, 3.0)),
    "epsilon": (0.0, np.nan, np.inf, 5e-324, None),
    "delta": (0.01,),
    "mechanism": ("Laplace",),
}
EDGES = (
    *(None, 3.0, True, 0, 10**20, "abc", [], [[]], [0.0], [4.0, 0.0], [0.0, 0.0, 4.0]),
    *([0.0, np.nan, 4.0], [-np.inf, np.inf], [SOME_EDGES, SOME_EDGES], [[0.0, 1.0], 4.0], [1.0, 4.0]),
)
TOO_NEAR = ([1.0, np.nextafter(1.0, 2.0)], [-1.7e308, 1.7e308], [1.7e308, 1.7e308], [0.0, 5e-324])
BAD = [
    *((name, {name: one}) for name, several in PROMISED.items() for one in several),
    *(("epsilon", {**GAUSSIAN, "epsilon": one}) for one in (0.0, 1e-30)),
    ("delta", {**GAUSSIAN, "delta": 1.0}),
]
OF_BINS = [
    *(("edges", {"X": [*SOME_X[:-1], x]}) for x in (-1e-9, np.nextafter(4.0, 5.0), 1e300)),
    *(("edges", {"X": X, "edges": 9}) for X in TOO_NEAR),
    *(("edges", {"edges": one}) for one in EDGES),
    ("predict", {"predict": "linear"}),
    *((name, {name: one}) for name, one in (("kernel", KERNEL), ("noise", 1.0), ("mean", 0.0))),
]
BAD_KERNELS = {
    "gp": (
        *(Integral(EQ(1.0)), Constant(1.0) + 2.0 * Integral(EQ(1.0)), lambda X, Z: np.ones(3)),
        *(lambda X, Z: -np.ones((len(X), len(Z))), lambda X, Z: np.full((len(X), len(Z)), np.nan)),
    ),
    "integral": (Matern32(1.0), EQ(1.0) * EQ(2.0), lambda X, Z: np.ones((len(X), len(Z)))),
}
for predict, bad in BAD_KERNELS.items():
    some = (None, 3.0, EQ, *bad)
    wrong = [("kernel", {"kernel": one}) for one in some] + [("lengthscale", {"kernel": EQ([1.0, 2.0, 3.0])})]
    wrong += [("noise", {"noise": -1e-301}), ("mean", {"mean": np.inf})]
    OF_BINS += [(name, {"predict": predict, "kernel": KERNEL, **one}) for name, one in wrong]
OF_LOCAL = [
    ("kernel", {"kernel": None}),
    *(("noise", {"noise": one}) for one in (0.0, [1.0, 2.0], -1.0)),
    ("mean", {"mean": np.nan}),
    ("lengthscale", {"kernel": EQ([1.0, 2.0])}),
]


@pytest.mark.parametrize(
    ("make", "name", "changes"),
    [*((a_plan, *one) for one in BAD + OF_BINS), *((a_local, *one) for one in BAD + OF_LOCAL)],
)
def test_bad_settings_are_refused_by_name_while_planning(make, name, changes):
    with pytest.raises((ValueError, TypeError)) as caught:
        make(**changes)
    assert getattr(caught.value, "name", str(caught.value)).startswith(name)


def test_predictions_refuse_bad_inputs_by_name():
    release = a_plan().release(SOME_Y)
    for X in ([[1.0, 2.0]], [np.nan], "a", None):
        with pytest.raises((ValueError, TypeError), match="X must"):
            release.predict(X)


# -------------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1 / 3, 1.0, 20.0, 1e5])
def test_laplace_scale_of_a_mean_is_d_over_n_epsilon_and_never_less(epsilon):
    plan = a_plan(epsilon=epsilon)
    m = plan.measurement
    for count, std in zip(plan.counts.tolist(), plan.bin_noise_std.tolist(), strict=True):
        scale = Fraction(m.sigma, 2**m.y_bits * count)  # in units of d
        assert scale >= 1 / (Fraction(epsilon) * count)
        assert std == pytest.approx(math.sqrt(2) * 20.0 / (count * epsilon), rel=1e-6)
    assert plan.noise_std == pytest.approx(plan.gain(plan.X_star) @ plan.bin_noise_std)
    assert plan.noise_std[2] == 0.0


PLANS = {
    "constant": lambda **changes: a_plan(**changes),
    "gp": lambda **changes: a_plan(predict="gp", **GP_SETTINGS, **changes),
    "integral": lambda **changes: a_plan(predict="integral", **GP_SETTINGS, **changes),
    "local": lambda **changes: a_local(**changes),
}


@pytest.mark.parametrize("mechanism", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", PLANS)
def test_noise_std_is_that_of_many_releases(kind, mechanism, seeded):
    plan = PLANS[kind](**mechanism)
    n, gain, prior = 2000, plan.gain(plan.X_star), plan.mean
    with seeded(0):
        releases = [plan.release(SOME_Y) for _ in range(n)]
    drawn = prior + (np.array([release.bin_means for release in releases]) - prior) @ gain.T
    np.testing.assert_allclose(drawn[-1], releases[-1].mean, rtol=1e-9)
    kurtosis = 3.0 if mechanism else 6.0
    error = 5 * math.sqrt((kurtosis - 1) / n) / 2
    assert drawn.std(axis=0) == pytest.approx(plan.noise_std, rel=error)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "add_noise", lambda exact, scale: exact)
        patch.setattr(room, "add_laplace", lambda exact, scale: exact)
        exact = plan.release(SOME_Y).mean
    assert (np.abs(drawn.mean(axis=0) - exact) <= 5 * plan.noise_std / math.sqrt(n) + 1e-9).all()


def test_releases_differ_and_seeded_ones_are_marked(seeded):
    plan = a_plan()
    assert plan.release(SOME_Y).z.tolist() != plan.release(SOME_Y).z.tolist()
    assert not plan.release(SOME_Y).certificate.insecure
    with seeded(0):
        insecure = plan.release(SOME_Y)
    assert insecure.certificate.insecure
    assert repr(insecure).startswith("<INSECURE BinningRelease: (1, 0)-DP")
    assert not plan.certificate.insecure


# ------------------------------------------------------------------------------------------- models


@pytest.mark.parametrize(("columns", "mechanism", "mean"), [(1, GAUSSIAN, None), (3, {}, 14.0)])
def test_gp_through_centres_is_scikit_learns(columns, mechanism, mean):
    random = np.random.default_rng(columns)
    X, X_star = random.uniform(0, 4, (60, columns)), random.uniform(-1, 5, (20, columns))
    y = 20 + 5 * np.sin(X.sum(axis=1)) + random.normal(size=60)
    plan = binning.plan(
        X,
        X_star=X_star,
        edges=[SOME_EDGES] * columns,
        bounds=BOUNDS,
        epsilon=3.0,
        predict="gp",
        kernel=EQ(1.3, variance=30.0),
        noise=2.0,
        mean=mean,
        **mechanism,
    )
    release = plan.release(y)
    level = 20.0 if mean is None else mean
    model = GaussianProcessRegressor(
        ConstantKernel(30.0) * RBF(1.3), alpha=plan.bin_noise_std**2 + 2.0 / plan.counts, optimizer=None
    )
    centres = (plan.boxes.lower + plan.boxes.upper) / 2
    expected, std = model.fit(centres, release.bin_means - level).predict(X_star, return_std=True)
    got, got_std = release.predict(X_star, return_std=True)
    np.testing.assert_allclose(got, expected + level, rtol=1e-8)
    np.testing.assert_allclose(got_std, std, rtol=1e-6)
    np.testing.assert_allclose(release.mean, got, rtol=1e-12)


def quadrature(lower, upper, n):
    """Nodes in boxes and weights of the mean over each."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    places = np.array(list(itertools.product((nodes + 1) / 2, repeat=lower.shape[1])))
    shares = np.array([math.prod(w) for w in itertools.product(weights / 2, repeat=lower.shape[1])])
    return lower[:, None] + places * (upper - lower)[:, None], shares


@pytest.mark.parametrize(("columns", "mechanism"), [(1, GAUSSIAN), (2, {})])
def test_integral_gp_is_that_of_dense_quadrature(columns, mechanism):
    random = np.random.default_rng(columns)
    X, X_star = random.uniform(0, 4, (50, columns)), random.uniform(-1, 5, (20, columns))
    y = 20 + 5 * np.sin(X.sum(axis=1))
    kernel = EQ([0.8, 1.7][:columns], variance=30.0)
    settings = {"bounds": BOUNDS, "epsilon": 5.0, "noise": 2.0, **mechanism}
    plan = binning.plan(
        X, X_star=X_star, edges=[[0, 0.5, 2, 4]] * columns, predict="integral", kernel=kernel, **settings
    )
    release = plan.release(y)
    places, shares = quadrature(plan.boxes.lower, plan.boxes.upper, 12)
    n = len(places)
    dense = kernel(places.reshape(-1, columns)).reshape(n, len(shares), n, len(shares))
    gram = np.einsum("isjt,s,t->ij", dense, shares, shares)
    cross = np.einsum("pis,s->pi", kernel(X_star, places.reshape(-1, columns)).reshape(20, n, -1), shares)
    gain = cross @ np.linalg.inv(gram + np.diag(plan.bin_noise_std**2 + 2.0 / plan.counts))
    mean, std = release.predict(X_star, return_std=True)
    np.testing.assert_allclose(mean, 20 + gain @ (release.bin_means - 20), rtol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(30.0 - np.einsum("pi,pi->p", gain, cross)), rtol=1e-8)
    np.testing.assert_allclose(plan.noise_std, np.sqrt(gain**2 @ plan.bin_noise_std**2), rtol=1e-8)


def test_integral_kernels_may_be_given_as_such_and_added_and_scaled():
    def noise_std(kernel):
        return a_plan(predict="integral", kernel=kernel, noise=1.0).noise_std

    assert noise_std(Integral(KERNEL)).tolist() == noise_std(KERNEL).tolist()
    assert noise_std(50.0 * EQ(1.0)) == pytest.approx(noise_std(KERNEL), rel=1e-12)
    two = EQ(1.0, variance=20.0), EQ(3.0, variance=5.0)
    both = noise_std(Integral(two[0]) + Integral(two[1]) + Constant(9.0))
    assert noise_std(two[0] + Constant(9.0) + two[1]) == pytest.approx(both, rel=1e-12)
    assert noise_std(20.0 * (EQ(1.0) + 0.25 * EQ(3.0)) + Constant(9.0)) == pytest.approx(both, rel=1e-12)


def test_empty_bins_are_no_observations():
    few = a_plan(predict="gp", **GP_SETTINGS)
    many = a_plan(predict="gp", **GP_SETTINGS, edges=[-7.0, -3.0, *SOME_EDGES, 9.0])
    assert few.noise_std == pytest.approx(many.noise_std, rel=1e-12)


@pytest.mark.parametrize(("noise", "mechanism"), [(2.0, {}), (np.linspace(1.0, 3.0, 6), GAUSSIAN)])
def test_local_is_a_gp_on_noisy_rows(mechanism, noise):
    plan = a_local(noise=noise, mean=18.0, **mechanism)
    release = plan.release(SOME_Y)
    noisy = 10.0 + release.z.astype(float) * 20.0 / 2**plan.measurement.y_bits
    np.testing.assert_allclose(release.bin_means, noisy, rtol=1e-12)
    rate = calibrate(1.0, 0.01, n_measurements=6) if mechanism else 1 / math.sqrt(2)
    private = np.full(6, (20.0 / rate) ** 2)
    X_star = plan.X_star
    gain = KERNEL(X_star, SOME_X) @ np.linalg.inv(KERNEL(SOME_X) + np.diag(private + noise))
    mean, std = release.predict(X_star, return_std=True)
    np.testing.assert_allclose(mean, 18.0 + gain @ (noisy - 18.0), rtol=1e-8)
    variance = 50.0 - np.einsum("pi,pi->p", gain, KERNEL(X_star, SOME_X))
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-8)
    np.testing.assert_allclose(plan.noise_std, np.sqrt(gain**2 @ private), rtol=1e-6)
    assert plan.boxes is None
    assert plan.occupancy == binning.Occupancy(6, 6, 6)


def test_local_takes_boxes_as_inputs():
    boxes = Boxes([0.0, 1.0, 2.0], [1.0, 2.0, 4.0])
    plan = binning.local(boxes, X_star=boxes, kernel=Integral(KERNEL), noise=1.0, bounds=BOUNDS, epsilon=1.0)
    mean, std = plan.release(SOME_Y[:3]).predict(boxes, return_std=True)
    assert mean.shape == std.shape == (3,)
    assert (std < np.sqrt(50.0)).all()


@pytest.mark.parametrize("kind", PLANS)
def test_predictions_at_the_test_points_are_the_mean_and_survive_pickling(kind):
    plan = PLANS[kind]()
    release = plan.release(SOME_Y)
    mean, std = release.predict(plan.X_star, return_std=True)
    np.testing.assert_array_equal(mean, release.mean)
    np.testing.assert_allclose(release.predict(plan.X_star[1:]), release.mean[1:], rtol=1e-9)
    copy = pickle.loads(pickle.dumps(release))  # noqa: S301
    np.testing.assert_array_equal(copy.mean, release.mean)
    assert (copy.plan.digest, copy.certificate) == (plan.digest, release.certificate)
    if kind != "constant":  # a model's uncertainty covers more than the privacy noise
        assert (std > plan.noise_std).all()
        assert release.predict([1e6], return_std=True)[0] == pytest.approx([20.0])
        assert release.predict([1e6], return_std=True)[1] == pytest.approx([math.sqrt(50)])


# --------------------------------------------------------------------------- digest, ledger, pickles

FOR_DIGEST = {"kernel": KERNEL, "noise": 1.0, "predict": "gp", "mean": 20.0}
CHANGES = [
    {"X": SOME_X + 1e-9},
    {"X": SOME_X[::-1]},
    {"X_star": [0.5]},
    {"edges": [0.0, 1.0, 2.0, 3.0, 4.5]},
    {"edges": [-1.0, *SOME_EDGES]},
    {"edges": [0.0, 1.0, 2.0, 2.5, 3.0, 4.0]},
    {"bounds": (10.0, 31.0)},
    {"epsilon": 1.0 + 1e-9},
    GAUSSIAN,
    {**GAUSSIAN, "delta": 0.011},
    {"predict": "integral"},
    {"kernel": EQ(1.0, variance=51.0)},
    {"kernel": Matern32(1.0, variance=50.0)},
    {"noise": 1.1},
    {"mean": 20.5},
    {"predict": "constant", "kernel": None, "noise": 0.0, "mean": None},
]


def test_digest_is_that_of_the_settings_and_changes_with_each():
    base = a_plan(**FOR_DIGEST).digest
    same = [{}, {"X": SOME_X[:, None]}, {"edges": [SOME_EDGES]}, {"bounds": [10, 30]}, {"mean": None}]
    for changes in same:
        assert a_plan(**{**FOR_DIGEST, **changes}).digest == base
    made = [base, *(a_plan(**{**FOR_DIGEST, **changes}).digest for changes in CHANGES)]
    of_rows = [{}, GAUSSIAN, {"noise": 2.1}, {"kernel": EQ(2.0)}, {"mean": 3.0}, {"X": SOME_X + 1}]
    made += [a_local(**one).digest for one in of_rows]
    assert len(set(made)) == len(CHANGES) + 7


@pytest.fixture
def ledger(tmp_path):
    made = cloakgp.Ledger(f"sqlite:///{tmp_path}/budget.db", who="tests")
    made.create("people", epsilon=2.0, delta=0.02, why="tests")
    return made


@pytest.mark.parametrize(("kind", "mechanism"), [("constant", {}), ("integral", GAUSSIAN), ("local", {})])
def test_a_ledger_pays_once_and_gives_the_answer_again(ledger, kind, mechanism):
    plan = PLANS[kind](**mechanism)
    paid = {"ledger": ledger, "dataset": "people", "why": "bins"}
    release = plan.release(SOME_Y, **paid, request="first")
    n = plan.certificate.n_measurements
    assert plan.cost == (Gaussian(plan.measurement.mu(), n) if mechanism else Laplace(1.0))
    again = plan.release(None, **paid, request="first")  # y is not even looked at
    recovered = plan.recover(ledger, release.receipt.entry)
    assert release.z.tolist() == again.z.tolist() == recovered.z.tolist()
    np.testing.assert_array_equal(recovered.mean, release.mean)
    assert ledger.balance("people").events == (plan.cost,)
    with pytest.raises(LedgerError, match="another plan"):
        PLANS[kind](epsilon=0.9, **mechanism).recover(ledger, release.receipt.entry)


def test_certificate_says_what_is_promised():
    certificate = a_plan(**GAUSSIAN).certificate
    assert (certificate.epsilon, certificate.delta, certificate.design) == (1.0, 0.01, "bins")
    assert (certificate.n_rows, certificate.n_measurements) == (6, 3)
    pure = a_plan().certificate
    assert (pure.delta, pure.delta_slack, pure.calibration, pure.mu) == (0.0, 0.0, "Laplace", 1.0)
    mean_square = np.mean(a_plan().bin_noise_std ** 2)
    assert (pure.objective, pure.lower_bound) == pytest.approx((mean_square, mean_square), rel=1e-5)
    assert pure.noise_scale == pytest.approx(math.sqrt(2) * 20)


@pytest.mark.parametrize("changes", [{"unit": PERSON.name}, {"neighbours": PERSON.neighbours}])
def test_a_certificate_of_more_than_the_noise_keeps_is_refused_before_y_is_read(changes):
    plan = a_plan()
    with pytest.raises(AssertionError, match="promises more"):
        replace(plan, certificate=replace(plan.certificate, **changes)).release(None)


def test_a_plan_cannot_be_edited():
    plan = a_plan(predict="gp", **GP_SETTINGS)
    for array in (
        plan.X,
        plan.X_star,
        plan.counts,
        plan.measurement.labels,
        plan.edges[0],
        plan.release(SOME_Y).z,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
