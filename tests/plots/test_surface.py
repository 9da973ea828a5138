"""The numbers of a map: longitude across, what is not known hidden, units that can be read."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloakgp import GP, ArgumentError, AutoGP, Column, Columns, Grid
from cloakgp.kernels import EQ, Constant
from cloakgp.plots import plot_release
from cloakgp.plots.numbers import in_unit, nice_ticks, tick_words
from cloakgp.plots.shown import numeric_inputs
from cloakgp.plots.surface import NEAR_PRIOR, plane, prior_std, surface_of, will_be_unknown
from cloakgp.workflow import releases

pytestmark = pytest.mark.usefixtures("few_models")

RNG = np.random.default_rng(0)
TOWN = np.column_stack([RNG.normal(51.5, 0.05, 120), RNG.normal(-0.1, 0.08, 120)])  # lat first
CORNERS = np.array([[lat, lon] for lat in np.linspace(51.0, 52.0, 4) for lon in np.linspace(-1.0, 1.0, 4)])
MODEL = GP(EQ([0.1, 0.15], variance=150e3**2), noise=80e3**2, bounds=(1e5, 1e6))


@pytest.fixture(scope="module")
def town():
    columns = Columns.of({"Latitude": TOWN[:, 0], "lng": TOWN[:, 1]}, response="price")
    where = np.concatenate([CORNERS, TOWN[:10]])
    plan = MODEL.plan(TOWN, X_star=where, epsilon=20.0, delta=1e-3, columns=columns)
    return plan.release(RNG.uniform(3e5, 7e5, 120))


def test_longitude_goes_across_and_a_degree_of_it_is_shorter(town):
    surface = surface_of(town, units="£")
    assert surface.geographic
    assert surface.names == ("lng", "Latitude")
    assert surface.aspect == pytest.approx(1 / np.cos(np.radians(51.5)))
    assert surface.across[0] < -1.0 < 1.0 < surface.across[-1]
    height, width = surface.prediction.shape
    assert (height, width) == (len(surface.up), len(surface.across))
    assert width > height  # 2 degrees across are longer than 1 up
    places = [[surface.up[3], surface.across[7]]]
    mean, std = town.predict(places, return_std=True)
    assert surface.prediction[3, 7] == pytest.approx(mean[0])
    assert surface.std[3, 7] == pytest.approx(std[0])
    assert np.isin(surface.inputs[:, 1], TOWN[:, 0]).all()


def test_land_without_houses_is_not_known_though_its_privacy_noise_is_small(town):
    surface = surface_of(town, units="£")
    far, near = ([52.0, 1.0], [51.5, -0.1])
    privacy = town.uncertainty([far, near]).privacy
    assert privacy[0] < privacy[1]  # by privacy noise alone the empty land would look the better known
    at = [
        (np.abs(surface.up - lat).argmin(), np.abs(surface.across - lon).argmin()) for lat, lon in (far, near)
    ]
    assert surface.unknown[at[0]]
    assert not surface.unknown[at[1]]
    assert np.array_equal(surface.unknown, surface.std >= NEAR_PRIOR * surface.prior_std)
    view = surface.views["prediction"]
    known = surface.prediction[~surface.unknown]
    assert (view.low, view.high) == (known.min(), known.max())
    assert all(word.startswith("£") and word.endswith("k") for word in view.tick_words)
    assert view.hides_unknown
    exact = town.uncertainty([[surface.up[0], surface.across[0]], near], include_noise=False)
    share = (exact.privacy / exact.total) ** 2
    shown = surface.views["privacy"].values
    assert shown[0, 0] == pytest.approx(share[0], abs=1e-6)
    assert shown[at[1]] == pytest.approx(share[1], abs=0.1)


def test_a_surface_need_not_be_a_map_nor_have_all_views(town):
    pair, named = {"coordinates": ["age", "income"], "points": 8}, releases.named(town, ["income", "age"])
    assert surface_of(named, **pair, geographic=True).geographic  # as who names them says
    surface = surface_of(named, **pair, views=["prediction"])
    assert (surface.geographic, surface.aspect, surface.prediction.shape) == (False, None, (8, 8))
    assert list(surface.views) == ["prediction"]
    with pytest.raises(ArgumentError, match="views"):
        surface_of(town, views=["privacy", "weather"])


def test_what_a_plan_will_leave_unknown_is_measured_by_what_varies():
    """The level is soon known: a wide constant does not make a poor plan look good."""
    X = np.linspace(0, 1, 40)[:, None]
    for constant in (0.0, 1e4):
        kernel = EQ(0.2, variance=25.0) + Constant(constant + 1e-9)
        plan = GP(kernel, noise=4.0, bounds=(0, 100)).plan(X, X_star=X[::8], epsilon=1.0, delta=1e-3)
        error = np.array([4.4, 4.6, 4.4, 4.6, 60.0])
        assert will_be_unknown(plan, plan.X_star, error).tolist() == [False, True, False, True, True]


def test_private_inputs_are_not_among_the_numbers_and_the_box_is_the_frame():
    grid = Grid({"lat": (51.3, 51.7), "long": (-0.5, 0.3)}, cells=4)
    plan = AutoGP(bounds=(1e5, 1e6), stages=2).plan_rows(grid, 120, epsilon=2.0, delta=1e-3)
    release = plan.release({"lat": TOWN[:, 0], "long": TOWN[:, 1]}, RNG.uniform(3e5, 7e5, 120))
    surface = surface_of(release, points=8)
    assert surface.inputs is None
    assert (surface.across[0], surface.across[-1], surface.up[0], surface.up[-1]) == (-0.5, 0.3, 51.3, 51.7)


def test_the_prior_of_a_probability_is_what_the_link_makes_of_f_about_its_level():
    X = RNG.uniform(0, 1, (40, 2))
    plan = AutoGP(outcome="yes/no", stages=2).plan(X, X_star=X[:4], epsilon=2.0, delta=1e-3)
    learned = (release := plan.release(X[:, 0] > 0.5)).learned
    level = learned.latent.predict(X).mean() - learned.law.middle
    draws = []
    for weight, model, setting in zip(learned.weights, learned.posteriors, learned.settings, strict=True):
        assert model.gp.kernel.diag(X[:1])[0] > setting.signal  # which has the level's in it
        f = level + RNG.normal(size=int(40_000 * weight)) * setting.signal**0.5
        draws.append(learned.law.mean(f))
    assert prior_std(release, X[:1])[0] == pytest.approx(np.concatenate(draws).std(), rel=0.03)


def of_classes(X: np.ndarray) -> Any:
    gp = AutoGP(outcome="classes", classes=["bus", "car", "walk"], stages=2)
    which = np.array(["bus", "car", "walk"])[(3 * X[:, 0]).astype(int)]
    return gp.plan(X, X_star=X[:6], epsilon=4.0, delta=1e-3).release(which)


@pytest.fixture(scope="module")
def modes() -> Any:
    return of_classes(RNG.uniform(0, 1, (40, 2)))


def test_each_class_has_a_curve_and_a_surface(modes):
    release = of_classes(RNG.uniform(0, 1, (40, 1)))
    ax = plot_release(release)
    lines = {line.get_label(): line.get_xydata() for line in ax.get_lines()}
    for k, name in enumerate(release.classes):
        expected = release.predict(lines[name][:, :1])[:, k]
        np.testing.assert_allclose(lines[name][:, 1], expected)
    assert ax.get_ylim() == (0.0, 1.0)
    with pytest.raises(ArgumentError, match="must have one curve"):
        plot_release(release, released=True)
    surface = surface_of(modes, of="car", points=5)
    at = [[surface.across[2], surface.up[3]]]
    mean, std = modes.predict(at, return_std=True)
    assert (surface.prediction[3, 2], surface.std[3, 2]) == pytest.approx((mean[0, 1], std[0, 1]))
    assert surface.views["prediction"].label == "probability of car"
    assert len({round(prior_std(modes, np.array(at), which)[0], 9) for which in range(3)}) == 3
    with pytest.raises(ArgumentError, match="of must be one of the classes"):
        surface_of(modes, of="tram")


def test_inputs_beside_the_two_are_held():
    table = {"easting": TOWN[:, 1], "kind": ["flat", "house"] * 60, "northing": TOWN[:, 0]}
    plan = AutoGP((0, 10), stages=2).plan(table, epsilon=4.0, delta=1e-3)
    release = plan.release(np.array([2.0, 8.0] * 60))
    surface = surface_of(release, points=4)
    assert (surface.held, surface.aspect, surface.geographic) == ({"kind": "flat"}, 1.0, False)
    other = surface_of(release, points=4, held={"kind": "house"})
    assert (other.prediction > surface.prediction).all()
    assert numeric_inputs(AutoGP((0, 10), categories=[1]).plan(TOWN, epsilon=4.0, delta=1e-3)) == [0]
    for held in ({"kind": "barn"}, {"easting": 1.0}):
        with pytest.raises(ArgumentError, match="held must"):
            surface_of(release, held=held)


def of(names, numeric):
    """A plan whose inputs have these names, and of which some are numbers."""
    levels = {"kind": "level", "levels": ("a", "b")}
    columns = [Column(name, **({} if place in numeric else levels)) for place, name in enumerate(names)]
    prior = SimpleNamespace(category_columns=lambda _: ())
    return SimpleNamespace(columns=Columns(columns), rule=SimpleNamespace(prior=prior))


@pytest.mark.parametrize(
    ("names", "numeric", "coordinates", "expected"),
    [
        (["rooms", "lat", "home_long"], [0, 1, 2], None, (2, 1, True, False)),
        (["x", "lateness"], [0, 1], None, (0, 1, False, False)),
        (["northing", "east"], [0, 1], None, (1, 0, False, True)),
        (["a", "b"], [0, 1], ["b", "a"], (1, 0, False, False)),
        (["a", "lat", "lon"], [0, 1, 2], ["lon", "lat"], (2, 1, True, False)),
        (["a", "b"], [0, 1], ["a", "c"], "coordinates"),
        (["a", "b"], [0, 1], "a", "coordinates"),
        (["a"], [0], None, "release"),
    ],
)
def test_which_columns_are_places(names, numeric, coordinates, expected):
    if isinstance(expected, str):
        with pytest.raises(ArgumentError) as caught:
            plane(of(names, numeric), coordinates)
        assert caught.value.name == expected
        return
    found = plane(of(names, numeric), coordinates)
    assert (found.across, found.up, found.degrees, found.metres) == expected
    assert found.aspect(0, 1) == pytest.approx(1.0 if expected[2] or expected[3] else None, abs=1e-3)


@pytest.mark.parametrize(
    ("ends", "units", "percent", "expected"),
    [
        ((390e3, 690e3), "£", False, ["£400k", "£450k", "£500k", "£550k", "£600k", "£650k"]),
        ((0.0, 2.1e6), "€", False, ["€0", "€0.5M", "€1.0M", "€1.5M", "€2.0M"]),
        ((-6000.0, 6000.0), "", False, ["−5,000", "−2,500", "0", "2,500", "5,000"]),
        ((-60.0, 0.0), "$", False, ["−$60", "−$40", "−$20", "$0"]),
        ((0.0, 1.0), "", True, ["0 %", "25 %", "50 %", "75 %", "100 %"]),
        ((0.0, 40.0), "%", False, ["0 %", "10 %", "20 %", "30 %", "40 %"]),
        ((0.011, 0.052), "cm", False, ["0.02", "0.03", "0.04", "0.05"]),
        ((5.0, 5.0), "", False, ["5"]),
    ],
)
def test_ticks_can_be_read(ends, units, percent, expected):
    assert tick_words(nice_ticks(*ends), units, percent) == expected
    assert in_unit("price", units) == ("price, cm" if units == "cm" else "price")
