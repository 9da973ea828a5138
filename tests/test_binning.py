"""Noisy bins and noisy rows: against brute force, other GP code, and dense quadrature."""

import itertools
import math
import pickle
import warnings
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import cloakgp
from cloakgp import binning, testing
from cloakgp.accounting import Gaussian, Laplace
from cloakgp.calibration import calibrate
from cloakgp.kernels import EQ, Boxes, Constant, Integral, Matern32
from cloakgp.ledger import BudgetExceeded, LedgerError
from cloakgp.private import room

BOUNDS = (10.0, 30.0)
SOME_X = np.array([0.1, 0.4, 0.5, 1.2, 1.9, 3.5])
SOME_Y = np.array([12.0, 14.0, 29.0, 11.5, 20.25, 16.0])
SOME_EDGES = [0.0, 1.0, 2.0, 3.0, 4.0]  # the third is empty
KERNEL = EQ(1.0, variance=50.0)


@contextmanager
def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", testing.InsecureWarning)
        with testing.insecure_seed(seed):
            yield


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


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("_no_noise")
def test_means_and_predictions_by_brute_force(columns, seed):
    random = np.random.default_rng(seed)
    edges = [np.sort(random.choice(40, random.integers(2, 6), replace=False)) / 4.0 for _ in range(columns)]
    low, high = (np.array([cut[at] for cut in edges]) for at in (0, -1))
    on_edges = np.array(list(itertools.islice(itertools.product(*edges), 30)))  # corners, in exactly one bin
    X = np.vstack([on_edges, random.uniform(low, high, (40, columns))])
    X_star = np.vstack([X, random.uniform(low - 3, high + 3, (40, columns)), [low, high]])
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


@pytest.mark.usefixtures("_no_noise")
def test_points_on_edges_are_in_the_bin_above_but_for_the_last():
    plan = binning.plan([0.0, 1.0, 2.0], X_star=[0.0, 1.0, 2.0], edges=[0, 1, 2], bounds=(0, 9), epsilon=1.0)
    assert plan.counts.tolist() == [1, 2]
    assert plan.release([1.0, 4.0, 6.0]).mean == pytest.approx([1.0, 5.0, 5.0])


@pytest.mark.usefixtures("_no_noise")
def test_predictions_outside_and_in_empty_bins_are_the_middle_of_the_bounds():
    release = a_plan().release(SOME_Y)
    outside = [-0.01, -1e300, 2.0, 2.9, 4.01, np.nextafter(4.0, 5.0), 1e300]
    mean, std = release.predict(outside, return_std=True)
    assert mean.tolist() == [20.0] * len(outside)
    assert std.tolist() == [0.0] * len(outside)
    assert release.predict([4.0]) == pytest.approx([16.0])


@pytest.mark.parametrize("x", [-1e-9, np.nextafter(4.0, 5.0), 1e300])
def test_rows_outside_the_edges_are_refused(x):
    with pytest.raises(ValueError, match=r"edges must cover X"):
        a_plan(X=[*SOME_X[:-1], x])


def test_one_row_all_rows_in_one_bin_and_a_bin_for_each():
    one = binning.plan([3.0], X_star=[3.0, 99.0], edges=1, bounds=BOUNDS, epsilon=2.0)
    assert one.noise_std == pytest.approx([math.sqrt(2) * 10.0, 0.0])
    all_in_one = a_plan(edges=[0.0, 4.0])
    assert all_in_one.counts.tolist() == [6]
    assert all_in_one.noise_std == pytest.approx([math.sqrt(2) * 20 / 6] * 4)
    each = binning.plan(
        np.arange(500.0), X_star=[7.0], edges=np.arange(501.0) - 0.5, bounds=BOUNDS, epsilon=1.0
    )
    assert each.occupancy == binning.Occupancy(500, 500, 500)
    assert str(each.occupancy) == "500 of 500 bins occupied (100%), 500 of them with one row (100%)"
    assert str(a_plan().occupancy) == "3 of 4 bins occupied (75%), 1 of them with one row (33%)"


@pytest.mark.usefixtures("_no_noise")
def test_many_rows_in_one_bin_stay_exact():
    n = 300_000
    y = np.random.default_rng(0).uniform(10.0, 30.0, n)
    plan = binning.plan(np.zeros(n), X_star=[0.0], edges=[-1, 1], bounds=BOUNDS, epsilon=1e-3)
    integers = room.to_integers(y, plan.sums.lattice)
    assert plan.release(y).z.tolist() == [sum(integers.tolist())]
    assert plan.release(y).mean == pytest.approx([y.mean()], rel=1e-9)


# -------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize("number", [1, 2, 7, np.int64(5), 1000])
def test_a_number_of_edges_makes_equal_bins_over_the_range(number):
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 1e6]
    plan = binning.plan(X, X_star=X, edges=number, bounds=BOUNDS, epsilon=1.0)
    for column, cut in zip(X.T, plan.edges, strict=True):
        assert len(cut) == number + 1
        assert (cut[0], cut[-1]) == (column.min(), column.max())
        np.testing.assert_allclose(np.diff(cut), np.ptp(column) / number, rtol=1e-6)
    assert plan.counts.sum() == 50


@pytest.mark.parametrize("value", [0.0, -5.0, 1e17, -1e300])
def test_a_column_with_one_value_has_bins_all_the_same(value):
    plan = binning.plan(np.full(4, value), X_star=[value], edges=3, bounds=BOUNDS, epsilon=1.0)
    assert plan.counts.tolist() == [4]
    assert plan.occupancy.bins == 3


@pytest.mark.parametrize(
    "X", [[1.0, np.nextafter(1.0, 2.0)], [-1.7e308, 1.7e308], [1.7e308, 1.7e308], [0.0, 5e-324]]
)
def test_a_range_that_cannot_be_divided_is_refused_by_name(X):
    with pytest.raises(ValueError, match=r"edges=9 does not divide"):
        binning.plan(X, X_star=X, edges=9, bounds=BOUNDS, epsilon=1.0)


@pytest.mark.parametrize("form", [list, tuple, np.array, iter, lambda e: [e], lambda e: np.array([e])])
def test_edges_of_one_column_in_any_form(form):
    plan = a_plan(edges=form(SOME_EDGES))
    assert plan.edges[0].tolist() == SOME_EDGES
    assert plan.digest == a_plan().digest


def test_edges_given_cannot_be_changed_afterwards():
    mine = np.array(SOME_EDGES)
    plan = a_plan(edges=mine)
    mine += 100.0
    assert plan.edges[0].tolist() == SOME_EDGES


def test_extreme_edges_do_not_overflow():
    X = [-1.7e308, 0.0, 1.7e308]
    settings = {"edges": X, "bounds": BOUNDS, "epsilon": 1.0}
    assert binning.plan(X, X_star=X, **settings).counts.tolist() == [1, 2]
    plan = binning.plan(X, X_star=X, **settings, predict="gp", kernel=EQ(1e308))
    assert np.isfinite(plan.noise_std).all()


def test_more_bins_than_integers_are_refused_and_as_many_as_fit_are_told_apart():
    X = np.random.default_rng(0).uniform(size=(200, 4))
    with pytest.raises(ValueError, match=r"edges make more than 2\^62 bins"):
        binning.plan(X, X_star=X, edges=10**5, bounds=BOUNDS, epsilon=1.0)
    plan = binning.plan(X[:, :3], X_star=X[:, :3], edges=10**5, bounds=BOUNDS, epsilon=1.0)
    assert plan.occupancy.bins == 10**15
    assert plan.occupancy.single == 200
    assert ((plan.boxes.lower <= plan.boxes.upper) & (plan.boxes.upper - plan.boxes.lower < 2e-5)).all()


# --------------------------------------------------------------------------------------- bad inputs

BAD = [
    ("X", {"X": [[1.0, np.nan]]}),
    ("X", {"X": []}),
    ("X", {"X": "abc"}),
    ("X_star", {"X_star": [np.inf]}),
    ("X_star", {"X_star": [[1.0, 2.0]]}),
    ("X_star", {"X_star": None}),
    ("edges", {"edges": None}),
    ("edges", {"edges": 3.0}),
    ("edges", {"edges": True}),
    ("edges", {"edges": 0}),
    ("edges", {"edges": -2}),
    ("edges", {"edges": 10**20}),
    ("edges", {"edges": "abc"}),
    ("edges", {"edges": []}),
    ("edges", {"edges": [[]]}),
    ("edges", {"edges": [0.0]}),
    ("edges", {"edges": [4.0, 0.0]}),
    ("edges", {"edges": [0.0, 0.0, 4.0]}),
    ("edges", {"edges": [0.0, np.nan, 4.0]}),
    ("edges", {"edges": [-np.inf, np.inf]}),
    ("edges", {"edges": [SOME_EDGES, SOME_EDGES]}),
    ("edges", {"edges": [["a", "b"]]}),
    ("edges", {"edges": [[0.0, 1.0], 4.0]}),
    ("edges", {"edges": [1.0, 4.0]}),
    ("bounds", {"bounds": None}),
    ("bounds", {"bounds": (3.0, 3.0)}),
    ("bounds", {"bounds": (0.0, np.inf)}),
    ("bounds", {"bounds": (0.0, "a")}),
    ("epsilon", {"epsilon": 0.0}),
    ("epsilon", {"epsilon": -1.0}),
    ("epsilon", {"epsilon": np.nan}),
    ("epsilon", {"epsilon": np.inf}),
    ("epsilon", {"epsilon": 1e6}),
    ("epsilon", {"epsilon": 5e-324}),
    ("epsilon", {"epsilon": "1"}),
    ("epsilon", {"epsilon": None}),
    ("epsilon", {**GAUSSIAN, "epsilon": 0.0}),
    ("epsilon", {**GAUSSIAN, "epsilon": 1e-30}),
    ("delta", {"delta": 0.01}),
    ("delta", {"delta": 0.0}),
    ("delta", {"mechanism": "gaussian", "delta": 0.0}),
    ("delta", {"mechanism": "gaussian", "delta": 1.0}),
    ("delta", {"mechanism": "gaussian", "delta": np.nan}),
    ("mechanism", {"mechanism": "Laplace"}),
    ("mechanism", {"mechanism": None}),
]
BAD_PREDICT = [
    ("predict", {"predict": "linear"}),
    ("predict", {"predict": None}),
    ("kernel", {"kernel": KERNEL}),
    ("noise", {"noise": 1.0}),
    ("mean", {"mean": 20.0}),
    *(
        case
        for predict in ("gp", "integral")
        for case in [
            ("kernel", {"predict": predict}),
            ("kernel", {"predict": predict, "kernel": 3.0}),
            ("kernel", {"predict": predict, "kernel": EQ}),
            ("lengthscale", {"predict": predict, "kernel": EQ([1.0, 2.0, 3.0])}),
            ("kernel", {"predict": predict, "kernel": Integral(EQ(1.0), normalise=False)}),
            ("noise", {"predict": predict, "kernel": KERNEL, "noise": -1e-301}),
            ("noise", {"predict": predict, "kernel": KERNEL, "noise": np.nan}),
            ("noise", {"predict": predict, "kernel": KERNEL, "noise": None}),
            ("noise", {"predict": predict, "kernel": KERNEL, "noise": np.ones(6)}),
            ("mean", {"predict": predict, "kernel": KERNEL, "mean": np.inf}),
            ("mean", {"predict": predict, "kernel": KERNEL, "mean": "a"}),
        ]
    ),
    ("kernel", {"predict": "integral", "kernel": Matern32(1.0)}),
    ("kernel", {"predict": "integral", "kernel": EQ(1.0) * EQ(2.0)}),
    ("kernel", {"predict": "integral", "kernel": lambda X, Z: np.ones((len(X), len(Z)))}),
    ("kernel", {"predict": "gp", "kernel": Integral(EQ(1.0))}),
    ("kernel", {"predict": "gp", "kernel": Constant(1.0) + 2.0 * Integral(EQ(1.0))}),
    ("kernel", {"predict": "gp", "kernel": lambda X, Z: -np.ones((len(X), len(Z)))}),
    ("kernel", {"predict": "gp", "kernel": lambda X, Z: np.full((len(X), len(Z)), np.nan)}),
    ("kernel", {"predict": "gp", "kernel": lambda X, Z: np.ones(3)}),
]


@pytest.mark.parametrize(("name", "changes"), BAD + BAD_PREDICT)
def test_bad_settings_are_refused_by_name_while_planning(name, changes):
    with pytest.raises((ValueError, TypeError), match=name):
        a_plan(**changes)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *((name, changes) for name, changes in BAD if name != "edges"),
        ("kernel", {"kernel": None}),
        ("noise", {"noise": 0.0}),
        ("noise", {"noise": [1.0, 2.0]}),
        ("noise", {"noise": -1.0}),
        ("mean", {"mean": np.nan}),
        ("lengthscale", {"kernel": EQ([1.0, 2.0])}),
    ],
)
def test_bad_settings_of_local_are_refused_by_name(name, changes):
    with pytest.raises((ValueError, TypeError), match=name):
        a_local(**changes)


@pytest.mark.parametrize("make", [a_plan, a_local, lambda: a_plan(**GAUSSIAN)])
@pytest.mark.parametrize(
    "y",
    [
        SOME_Y[:5],
        SOME_Y[:, None],
        float(SOME_Y[0]),
        ["12.25", "a", "b", "c", "d", "e"],
        [13.75, None, 1, 2, 3, 4],
        np.where(SOME_Y == 14.0, np.nan, SOME_Y),
        np.where(SOME_Y == 14.0, np.inf, SOME_Y),
        [[12.25], [1.0, 2.0], 3, 4, 5, 6],
        SOME_Y + 1j,
    ],
)
def test_a_bad_y_is_refused_without_quoting_it(make, y):
    with pytest.raises((ValueError, TypeError), match=r"^y must .* Nothing was spent\.$") as caught:
        make().release(y)
    assert not any(text in str(caught.value) for text in ("12", "13.75", "14", "29", "20.25"))
    assert caught.value.__cause__ is None


@pytest.mark.usefixtures("_no_noise")
def test_missing_outcomes_stand_at_the_middle_on_request():
    y = np.where(SOME_Y == 29.0, np.nan, SOME_Y)
    filled = np.where(SOME_Y == 29.0, 20.0, SOME_Y)
    plan = a_plan()
    assert plan.release(y, missing="midpoint").z.tolist() == plan.release(filled).z.tolist()
    with pytest.raises(ValueError, match="missing must be one of"):
        plan.release(SOME_Y, missing="drop")


def test_predictions_refuse_bad_inputs_by_name():
    release = a_plan().release(SOME_Y)
    for X in ([[1.0, 2.0]], [np.nan], "a", None):
        with pytest.raises((ValueError, TypeError), match="X must"):
            release.predict(X)


# -------------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1 / 3, 1.0, 20.0, 1e5])
def test_laplace_scale_of_a_mean_is_d_over_n_epsilon_and_never_less(epsilon):
    plan = a_plan(epsilon=epsilon)
    sums = plan.sums
    for count, std in zip(plan.counts.tolist(), plan.bin_noise_std.tolist(), strict=True):
        scale = Fraction(sums.scale, 2**sums.y_bits * count)  # in units of d
        assert scale >= 1 / (Fraction(epsilon) * count)
        assert std == pytest.approx(math.sqrt(2) * 20.0 / (count * epsilon), rel=1e-6)
    assert plan.noise_std == pytest.approx(plan.predictor.gain(plan.X_star) @ plan.bin_noise_std)
    assert plan.noise_std[2] == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-12), (1.0, 0.01), (1.0, 0.999), (1e5, 1e-200)])
def test_gaussian_noise_is_calibrated_over_the_occupied_bins(epsilon, delta):
    plan = a_plan(epsilon=epsilon, delta=delta, mechanism="gaussian")
    expected = 20.0 / (plan.counts * calibrate(epsilon, delta, n_measurements=3))
    assert plan.bin_noise_std == pytest.approx(expected, rel=1e-6)
    assert (plan.certificate.delta, plan.certificate.n_bins) == (delta, 3)


PLANS = {
    "constant": lambda **changes: a_plan(**changes),
    "gp": lambda **changes: a_plan(predict="gp", **GP_SETTINGS, **changes),
    "integral": lambda **changes: a_plan(predict="integral", **GP_SETTINGS, **changes),
    "local": lambda **changes: a_local(**changes),
}


@pytest.mark.parametrize("mechanism", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", PLANS)
def test_noise_std_is_that_of_many_releases(kind, mechanism):
    plan = PLANS[kind](**mechanism)
    n, gain, prior = 2000, plan.predictor.gain(plan.X_star), plan.predictor.mean
    with seeded():
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


@pytest.mark.parametrize("mechanism", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
def test_noise_std_is_that_of_the_real_sampler(mechanism):
    plan = a_plan(**mechanism)
    with pytest.MonkeyPatch.context() as patch:
        kept = []
        name = "add_noise" if mechanism else "add_laplace"
        add = getattr(room, name)
        patch.setattr(room, name, lambda exact, scale: kept.append((exact, scale)) or exact)
        plan.release(SOME_Y)
    ((exact, scale),) = kept
    n = 10_000
    noise = (add(np.tile(exact, n), scale) - np.tile(exact, n)).reshape(n, -1) * plan.sums.step
    assert noise.std(axis=0) / plan.counts == pytest.approx(plan.bin_noise_std, rel=0.06)
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.06


def test_releases_differ_and_seeded_ones_are_marked():
    plan = a_plan()
    assert plan.release(SOME_Y).z.tolist() != plan.release(SOME_Y).z.tolist()
    assert not plan.release(SOME_Y).certificate.insecure
    with seeded():
        insecure = plan.release(SOME_Y)
    assert insecure.certificate.insecure
    assert repr(insecure).startswith("<INSECURE BinningRelease: (1, 0)-DP")
    assert not plan.certificate.insecure


# ------------------------------------------------------------------------------------------- models

LEVELS = [None, 14.0]


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("mechanism", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("mean", LEVELS)
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


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("mechanism", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
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


def test_thin_bins_make_the_integral_kernel_the_plain_one():
    X = np.arange(5.0)
    edges = np.sort(np.concatenate([X - 1e-6, X + 1e-6]))
    settings = {"edges": edges, "bounds": BOUNDS, "epsilon": 1.0, **GP_SETTINGS}
    plain, integral = (
        binning.plan(X, X_star=X, predict=predict, **settings) for predict in ("gp", "integral")
    )
    np.testing.assert_allclose(plain.noise_std, integral.noise_std, rtol=1e-9)


def test_empty_bins_are_no_observations():
    few = a_plan(predict="gp", **GP_SETTINGS)
    many = a_plan(predict="gp", **GP_SETTINGS, edges=[-7.0, -3.0, *SOME_EDGES, 9.0])
    assert few.noise_std == pytest.approx(many.noise_std, rel=1e-12)
    assert (few.occupancy.bins, many.occupancy.bins) == (4, 7)


@pytest.mark.parametrize("mechanism", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("noise", [2.0, np.linspace(1.0, 3.0, 6)], ids=["equal", "each"])
def test_local_is_a_gp_on_noisy_rows(mechanism, noise):
    plan = a_local(noise=noise, mean=18.0, **mechanism)
    release = plan.release(SOME_Y)
    noisy = 10.0 + release.z.astype(float) * 20.0 / 2**plan.sums.y_bits
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


@pytest.mark.parametrize("mechanism", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", ["gp", "integral", "local"])
def test_std_is_honest_where_the_model_is_true(kind, mechanism):
    """f from the prior, y about f: the errors are as large as the std says."""
    random = np.random.default_rng(5)
    X = np.repeat(np.arange(0.5, 8.0), 40) if kind == "gp" else np.linspace(0.0, 8.0, 400)[:-1]
    X_star, edges = np.array([1.1, 4.0, 6.7, 9.0]), np.arange(9.0)
    kernel, noise, bounds = EQ(1.5, variance=4.0), 1.0, (-20.0, 20.0)
    settings = {"kernel": kernel, "noise": noise, "bounds": bounds, "epsilon": 3.0, **mechanism}
    if kind == "local":
        plan = binning.local(X, X_star=X_star, **settings)
    else:
        plan = binning.plan(X, X_star=X_star, edges=edges, predict=kind, **settings)
    both = np.concatenate([X, X_star])
    root = np.linalg.cholesky(kernel(both) + 1e-8 * np.eye(len(both)))
    runs, scores, gain, std = (
        400,
        [],
        plan.predictor.gain(X_star[:, None]),
        plan.predictor.std(X_star[:, None]),
    )
    with seeded(1):
        for _ in range(runs):
            f = root @ random.normal(size=len(both))
            release = plan.release(f[: len(X)] + random.normal(size=len(X)))
            scores.append((gain @ release.bin_means - f[len(X) :]) / std)
    np.testing.assert_allclose(
        release.predict(X_star, return_std=True), [gain @ release.bin_means, std], atol=1e-9
    )
    squares = np.mean(np.square(scores), axis=0)
    assert (np.abs(squares - 1) < 6 * math.sqrt(3.0 / runs)).all()
    assert np.mean(np.abs(scores) < 1.96) == pytest.approx(0.95, abs=0.03)


def test_planted_std_without_privacy_noise_is_not_honest():
    """The check above has the power to see it."""
    random = np.random.default_rng(5)
    plan = a_local(epsilon=0.5)
    object.__setattr__(plan.predictor, "variances", np.full(6, 2.0))
    plan.predictor.__dict__.pop("_factor")
    with seeded(1):
        drawn = [plan.release(SOME_Y).predict([1.0], return_std=True) for _ in range(200)]
    errors = [(mean[0] - 20.0 - 0.1 * random.normal()) / std[0] for mean, std in drawn]
    assert np.mean(np.square(errors)) > 5


@pytest.mark.parametrize("kind", PLANS)
def test_predictions_at_the_test_points_are_the_mean(kind):
    plan = PLANS[kind]()
    release = plan.release(SOME_Y)
    np.testing.assert_array_equal(release.predict(plan.X_star), release.mean)
    mean, std = release.predict(plan.X_star, return_std=True)
    np.testing.assert_array_equal(mean, release.mean)
    assert (std >= 0).all()
    np.testing.assert_allclose(release.predict(plan.X_star[1:]), release.mean[1:], rtol=1e-9)
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
    assert len(base) == 64
    same = [{}, {"X": SOME_X[:, None]}, {"edges": [SOME_EDGES]}, {"bounds": [10, 30]}, {"mean": None}]
    for changes in same:
        assert a_plan(**{**FOR_DIGEST, **changes}).digest == base
    digests = [a_plan(**{**FOR_DIGEST, **changes}).digest for changes in CHANGES]
    assert len({base, *digests}) == len(CHANGES) + 1


def test_digest_of_constant_predictions_and_of_local_changes_too():
    edges = [{"edges": [0.0, 1.0, 2.0, 3.0, 4.5]}, {"edges": [-1.0, *SOME_EDGES]}, {"bounds": (10.0, 31.0)}]
    constant = [a_plan(**changes).digest for changes in [{}, GAUSSIAN, {"X_star": [0.5]}, *edges]]
    local = [{}, GAUSSIAN, {"noise": 2.1}, {"kernel": EQ(2.0)}, {"mean": 3.0}, {"X": SOME_X + 1}]
    local = [a_local(**changes).digest for changes in local]
    assert len({*constant, *local}) == len(constant) + len(local)
    assert a_local().digest == a_local().digest


class Unreadable:
    """A y that must not be read."""

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("y was read")

    __len__ = __iter__ = __getitem__ = __array__


@pytest.fixture
def ledger(tmp_path):
    made = cloakgp.Ledger(f"sqlite:///{tmp_path}/budget.db", who="tests")
    made.create("people", epsilon=2.0, delta=0.02, why="tests")
    return made


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("mechanism", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
def test_a_ledger_pays_once_and_gives_the_answer_again(ledger, kind, mechanism):
    plan = PLANS[kind](**mechanism)
    paid = {"ledger": ledger, "dataset": "people", "why": "bins"}
    release = plan.release(SOME_Y, **paid, request="first")
    assert release.receipt.dataset == "people"
    n = plan.certificate.n_bins
    assert plan.cost == (Gaussian(plan.sums.mu, n) if mechanism else Laplace(1.0))
    again = plan.release(Unreadable(), **paid, request="first")
    recovered = plan.recover(ledger, release.receipt.entry)
    assert release.z.tolist() == again.z.tolist() == recovered.z.tolist()
    np.testing.assert_array_equal(recovered.mean, release.mean)
    entries = [entry for entry in ledger.entries("people") if entry.kind == "spent"]
    assert len(entries) == 1
    with pytest.raises(LedgerError, match="another plan"):
        PLANS[kind](epsilon=0.9, **mechanism).recover(ledger, release.receipt.entry)


def test_a_ledger_refuses_before_y_is_read_and_charges_nothing_for_a_bad_y(ledger):
    paid = {"ledger": ledger, "dataset": "people", "why": "bins"}
    with pytest.raises(BudgetExceeded, match="y was not read"):
        a_plan(epsilon=2.5).release(Unreadable(), **paid)
    for bad, options in ((SOME_Y[:3], {}), (SOME_Y * np.nan, {}), (SOME_Y, {"missing": "drop"})):
        with pytest.raises(ValueError, match="must"):
            a_plan().release(bad, **paid, **options)
    with pytest.raises(ValueError, match="dataset must be given"):
        a_plan().release(Unreadable(), ledger=ledger)
    with pytest.raises(ValueError, match="ledger must be given"):
        a_plan().release(Unreadable(), dataset="people")
    with seeded(), pytest.raises(ValueError, match="nothing is private"):
        a_plan().release(Unreadable(), **paid)
    assert [entry.kind for entry in ledger.entries("people")] == ["created"]
    a_plan().release(SOME_Y, **paid)
    a_plan().release(SOME_Y, **paid)
    with pytest.raises(BudgetExceeded):
        a_plan(epsilon=0.01).release(Unreadable(), **paid)


@pytest.mark.parametrize("kind", PLANS)
def test_plans_and_releases_survive_pickling(kind):
    release = PLANS[kind]().release(SOME_Y)
    copy = pickle.loads(pickle.dumps(release))  # noqa: S301
    np.testing.assert_array_equal(copy.mean, release.mean)
    assert copy.plan.digest == release.plan.digest
    assert copy.certificate == release.certificate


def test_certificate_says_what_is_promised():
    certificate = a_plan(**GAUSSIAN).certificate
    words = certificate.to_dict()
    assert (words["epsilon"], words["delta"], words["mechanism"]) == (1.0, 0.01, "gaussian")
    assert (words["n_rows"], words["n_bins"], words["insecure"]) == (6, 3, False)
    assert words["scale"] == a_plan(**GAUSSIAN).sums.scale
    assert a_plan().certificate.delta == 0.0
    assert repr(a_plan()) == (
        "<BinningPlan: (1, 0)-DP, unit one row, laplace noise, 6 rows, 3 of 4 bins occupied (75%), "
        "1 of them with one row (33%)>"
    )


def test_a_plan_cannot_be_edited():
    plan = a_plan(predict="gp", **GP_SETTINGS)
    for array in (plan.X, plan.X_star, plan.counts, plan.sums.labels, plan.edges[0], plan.release(SOME_Y).z):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        plan.occupancy = None


def test_sums_are_checked_again_at_the_release_before_y_is_read():
    plan = a_plan()
    weak = replace(plan, sums=replace(plan.sums, scale=plan.sums.scale // 2))
    with pytest.raises(AssertionError, match="too small"):
        weak.release(Unreadable())
