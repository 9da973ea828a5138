"""Pictures: what they must say, and that y is in them only on explicit request."""

import io
import json
import pickle
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

from cloakgp import GP, ArgumentError, AutoGP, Column, Columns, Grid, plots
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ, Category
from cloakgp.workflow import releases

pytestmark = pytest.mark.usefixtures("few_models")

mpl.use("Agg")

PROMISE = {"epsilon": 1.0, "delta": 0.01}
BOUNDS = (50.0, 170.0)
GP_MODEL = GP(EQ(20.0, variance=25.0**2), noise=14.0**2, bounds=BOUNDS)
SPARSE = replace(GP_MODEL, inducing=5)
X, Y = make_kung_like(60)
AGES = np.array([40.0, 10.0, 70.0, 25.0])  # out of order
ORDER = np.argsort(AGES)
MAP_MODEL = GP(EQ(1.0, variance=100.0**2), noise=40.0**2, bounds=(50.0, 450.0))
PLACES = np.random.default_rng(0).normal(size=(80, 2))
PRICES = np.random.default_rng(1).uniform(50.0, 450.0, size=80)
GRID = np.array([[e, n] for e in (-3.0, 0.0, 0.5, 3.0) for n in (-3.0, 0.0, 3.0)])


@pytest.fixture(autouse=True)
def _closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def line():
    return GP_MODEL.plan(X, X_star=AGES, **PROMISE).release(Y)


@pytest.fixture(scope="module")
def area():
    return MAP_MODEL.plan(PLACES, X_star=GRID, **PROMISE).release(PRICES)


@pytest.fixture(scope="module")
def function():
    return GP_MODEL.plan_function(X, **PROMISE).release(Y)


@pytest.fixture(scope="module")
def staged():
    """Two outcomes at each age, so that distinct inputs are fewer than rows."""
    plan = AutoGP((0.0, 250.0), stages=3).plan(np.repeat(X, 2, axis=0), X_star=AGES, epsilon=4.0, delta=0.01)
    return plan.release(np.repeat(Y, 2))


def whole_rows(**box):
    """A release whose inputs are private."""
    inputs = {"age": X[:, 0], "year": np.arange(60) / 60, "sex": np.array(["f", "m"] * 30)}
    plan = AutoGP(bounds=BOUNDS, stages=3).plan_rows(Grid(box, cells=6), 60, **PROMISE)
    return plan.release({name: inputs[name] for name in box}, Y)


@pytest.fixture(scope="module")
def rows():
    return whole_rows(age=(0, 90))


@pytest.fixture(scope="module")
def chart():
    return whole_rows(age=(0, 90), year=(0, 1))


@pytest.fixture(scope="module")
def category():
    return whole_rows(age=(0, 90), sex=["f", "m"])


def words(drawn):
    """Everything written on a picture."""
    figure = drawn if hasattr(drawn, "suptitle") else drawn.get_figure()
    return " | ".join(text.get_text() for text in figure.findobj(mpl.text.Text))


def drawn_line(ax, label):
    (found,) = [one for one in ax.get_lines() if one.get_label() == label]
    return found.get_xydata()


def heights(ax):
    return [one.get_ydata() for one in ax.get_lines()]


def shown(ax):
    """Every number that a picture holds as a point."""
    lines = [one.get_xydata() for one in ax.get_lines()]
    dots = [np.asarray(one.get_offsets()) for one in ax.collections]
    return np.concatenate([np.ravel(part) for part in lines + dots])


# ------------------------------------------------------------------------------- every picture

PICTURES = [
    *((plot, "line") for plot in ("plot_plan", "plot_release", "plot_slices")),
    *((plot, "line.plan") for plot in ("plot_plan", "plot_noise_samples")),
    *((plot, "area") for plot in ("plot_map", "plot_noise_map", "plot_slices")),
    *((plot, "area.plan") for plot in ("plot_map", "plot_noise_map")),
    *(("plot_function", one) for one in ("function", "function.plan")),
    *((plot, "staged") for plot in ("plot_plan", "plot_release", "plot_stages", "plot_learned")),
    ("plot_plan", "staged.plan"),
    *((plot, one) for plot in ("plot_density", "plot_slices") for one in ("rows", "chart", "category")),
    *((plot, "rows") for plot in ("plot_plan", "plot_release", "plot_stages", "plot_learned")),
    *((plot, one) for plot in ("plot_map", "plot_noise_map") for one in ("chart", "chart.plan")),
]


def draw(plot, thing, **options):
    return getattr(plots, plot)(thing, *([AGES] if plot == "plot_function" else []), **options)


@pytest.mark.parametrize(("plot", "name"), PICTURES)
def test_every_picture_says_what_is_promised_and_holds_no_outcome(plot, name, request):
    name, *is_plan = name.split(".")
    release = request.getfixturevalue(name)
    drawn = draw(plot, release.plan if is_plan else release)
    c, said = release.certificate, words(drawn)
    assert f"({c.epsilon:g}, 0.01)-DP, unit: {c.unit}" in said
    assert plots.INSECURE not in said
    assert plots.NOT_FOR_RELEASE not in said
    figure = drawn if hasattr(drawn, "suptitle") else drawn.get_figure()
    kept = pickle.dumps(figure) + pickle.dumps(release)
    pieces = [value.tobytes() for value in np.concatenate([Y, PRICES])]
    assert any(piece in pickle.dumps(Y) for piece in pieces)  # the search can find y
    assert not any(piece in kept for piece in pieces)
    if release.plan.grid is not None and plot not in ("plot_density", "plot_learned"):
        assert "inputs" not in said
        assert not [one for ax in figure.axes for one in ax.get_lines() if one.get_marker() in ("|", ".")]
    plan = replace(release.plan, certificate=replace(c, insecure=True))
    insecure = plan if is_plan else replace(release, plan=plan)
    assert plots.INSECURE in words(draw(plot, insecure))


def test_private_points_only_on_request_and_then_marked(line):
    ax = plots.plot_release(line, private_data=(X, Y))
    assert np.isin(Y, shown(ax)).all()
    ax.set_title("Heights")
    (mark,) = [text for text in ax.texts if text.get_text() == plots.NOT_FOR_RELEASE]
    figure = ax.get_figure()
    figure.savefig(io.BytesIO())
    box = mark.get_window_extent()
    assert figure.bbox.contains(box.x0, box.y0)
    assert figure.bbox.contains(box.x1, box.y1)
    assert mark.get_fontsize() >= 12


@pytest.mark.parametrize(
    "private_data", [(X,), (X, Y[:-1]), (X, ["secret-172.5"] * len(X)), (X, Y[:, None]), 3, "secret-172.5"]
)
def test_bad_private_data_is_refused_without_quoting_it(line, private_data):
    with pytest.raises(
        (TypeError, ValueError), match=r"private_data|y must (have shape|be a vector)"
    ) as caught:
        plots.plot_release(line, private_data=private_data)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_what_is_between_two_dollar_signs_is_no_formula():
    odd = r"$\no{such}$ formula"
    table = {odd: X[:, 0], "level": np.where(X[:, 0] > 30, odd, "other")}
    columns = Columns.of(table, response="y" + odd, units={odd: odd})
    kernel = EQ(20.0, variance=25.0**2, active_dims=[0]) * Category(0.5, active_dims=[1])
    points = {name: cells[:5] for name, cells in table.items()}
    two = replace(GP_MODEL, kernel=kernel).plan(table, X_star=points, columns=columns, **PROMISE).release(Y)
    only = Columns([Column(odd)], response="y" + odd)
    one = GP_MODEL.plan(X, X_star=AGES, columns=only, **PROMISE).release(Y)
    named = one.labelled(title=odd, source=odd, units="$")
    density = plots.plot_density(releases.named(whole_rows(age=(0, 90)), [odd]))
    for figure in (plots.plot_slices(two), plots.darken(plots.plot_release(named).get_figure()), density):
        figure.canvas.draw()


def test_words_for_a_picture_are_the_releases_own_or_given(line):
    named = line.labelled(title="Heights", units="cm", source="census", date="1967")
    ax = plots.plot_release(named)
    assert all(said in words(ax) for said in ("Heights", "Source: census, 1967", "(1, 0.01)-DP"))
    assert ax.get_ylabel() == "y, cm"
    ax = plots.plot_release(named.labelled(title="Prices", units="£", source="", date=""))
    assert "Prices" in words(ax)
    assert "Source" not in words(ax)
    assert ax.get_yticklabels()[0].get_text().startswith("£")


REFUSED = [
    *((plot, "area.plan", {}, "plot_map or plot_noise_map") for plot in ("plot_plan", "plot_noise_samples")),
    ("plot_release", "area", {}, "plot_map or plot_noise_map"),
    *((plot, "function.plan", {}, "plan") for plot in ("plot_plan", "plot_noise_samples")),
    ("plot_noise_map", "line.plan", {}, "2 column"),
    ("plot_map", "line", {}, "2 column"),
    ("plot_map", "area", {"view": "noise"}, "view"),
    ("plot_stages", "area", {}, "release"),
    ("plot_stages", "line", {}, "release"),
    ("plot_stages", "staged.plan", {}, "release"),
    ("plot_stages", "chart", {}, "1 column"),
    ("plot_learned", "line", {}, "release"),
    ("plot_learned", "line.plan", {}, "release"),
    ("plot_noise_samples", "staged.plan", {}, "plan"),
    ("plot_noise_samples", "line", {}, "plan"),
    ("plot_density", "rows.plan", {}, "release"),
    ("plot_density", "staged", {}, "release"),
]


@pytest.mark.parametrize(("plot", "name", "options", "expected"), REFUSED)
def test_what_cannot_be_drawn_is_refused_by_name(plot, name, options, expected, request):
    name, *is_plan = name.split(".")
    release = request.getfixturevalue(name)
    with pytest.raises((ValueError, TypeError)) as caught:
        getattr(plots, plot)(release.plan if is_plan else release, **options)
    assert expected in (getattr(caught.value, "name", None), *str(caught.value).split(". ")) or (
        " " in expected and expected in str(caught.value)
    )


def test_what_else_cannot_be_drawn(line):
    with pytest.raises(ValueError, match="1 column"):
        plots.plot_function(MAP_MODEL.plan_function(PLACES, **PROMISE), PLACES)
    for rows in ([0, 1], [0, 1, 2], [0, 0, 0]):
        with pytest.raises(ValueError, match="not all on one line"):
            plots.plot_noise_map(MAP_MODEL.plan(PLACES, X_star=GRID[rows], **PROMISE))
    known = GP_MODEL.plan(X, X_star=AGES, given=[line], **PROMISE).release(Y)
    with pytest.raises(TypeError, match="whose model was learned"):
        plots.plot_learned(known)


# -------------------------------------------------------------------------------------- curves


@pytest.mark.parametrize("name", ["line.plan", "staged.plan", "staged"])
def test_plan_shows_noise_std_in_order(name, request):
    name, *is_plan = name.split(".")
    release = request.getfixturevalue(name)
    thing = release.plan if is_plan else release
    ax, forecast = plots.plot_plan(thing), ", forecast" if name == "staged" and is_plan else ""
    expected = {"privacy noise" + forecast: thing.noise_std, "GP's own uncertainty": thing.gp_std}
    expected |= {"expected error" + forecast: thing.expected_error} if is_plan else {}
    for label, values in expected.items():
        assert np.array_equal(drawn_line(ax, label), np.column_stack([AGES, values])[ORDER])


def test_release_shows_one_curve_and_one_band_and_the_rest_on_request(line):
    ax = plots.plot_release(line)
    assert [text.get_text() for text in ax.get_legend().get_texts()][:2] == ["prediction", "95 % band"]
    for absent in ("released", "privacy noise"):
        assert absent not in words(ax)
    rug = drawn_line(ax, "training inputs (public)")
    assert np.array_equal(rug[:, 0], np.unique(X[:, 0]))
    (ticks,) = [one for one in ax.get_lines() if one.get_label() == "training inputs (public)"]
    where = ticks.get_transform().transform(rug)  # the rug's heights are shares of the axis, not cm
    assert np.allclose(where, ax.get_xaxis_transform().transform(rug))
    mean, std = line.mean[ORDER], line.noise_std[ORDER]
    ax = plots.plot_release(line, released=True, privacy=True)
    assert np.array_equal(drawn_line(ax, "released mean")[:, 1], mean)
    for sign in (-1, 1):
        assert any(len(h) == len(mean) and np.allclose(h, mean + sign * std) for h in heights(ax))
    alone = words(plots.plot_release(line, denoised=False))
    assert "released mean" in alone
    assert "prediction" not in alone


@pytest.mark.parametrize("name", ["line", "staged"])
def test_release_shows_the_denoised_prediction_and_its_band(name, request):
    release = request.getfixturevalue(name)
    ax = plots.plot_release(release)
    found = drawn_line(ax, "prediction")
    assert np.allclose(found[:, 1], release.predict(found[:, :1]))
    assert (found[0, 0], found[-1, 0]) == (AGES.min(), AGES.max())
    ends = release.interval(found[:, :1])
    (band,) = ax.collections
    edges = band.get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == pytest.approx((ends.min(), ends.max()), rel=1e-4)


def test_a_category_has_a_dot_and_a_bar_for_each_level():
    kinds, kernel = ["flat", "house"] * 30, Category(0.5, variance=25.0**2)
    plan = replace(GP_MODEL, kernel=kernel).plan(
        {"kind": kinds}, X_star={"kind": ["house", "flat"]}, **PROMISE
    )
    release = plan.release(Y)
    ax = plots.plot_release(release)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["flat", "house"]
    (bars,) = ax.containers
    ends = release.interval([[0.0], [1.0]])
    np.testing.assert_allclose([part[:, 1] for part in bars[2][0].get_segments()], ends)
    np.testing.assert_allclose(bars[0].get_ydata(), release.predict([[0.0], [1.0]]))


def test_noise_samples_have_the_noise_covariance_and_do_not_change(line):
    ax = plots.plot_noise_samples(line.plan, n=4000)
    lines = [one.get_xydata() for one in ax.get_lines()][:4000]
    assert np.array_equal(lines[0][:, 0], AGES[ORDER])
    expected = line.plan.noise_cov[np.ix_(ORDER, ORDER)]
    assert np.allclose(
        np.cov([one[:, 1] for one in lines], rowvar=False), expected, atol=0.1 * expected.max()
    )
    again = [drawn_line(plots.plot_noise_samples(line.plan, seed=s), "simulated noise") for s in (3, 3, 4)]
    assert np.array_equal(again[0], again[1])
    assert not np.array_equal(again[0], again[2])


def test_function_of_a_plan_is_its_noise_and_of_a_release_its_values(function):
    ages = np.array([60.0, 10.0, 95.0])
    inside = np.sort(ages)
    noise = drawn_line(plots.plot_function(function.plan, ages), "privacy noise")
    assert np.allclose(noise, np.column_stack([inside, function.plan.noise_at(inside)]))
    ax = plots.plot_function(function, ages)
    values, std = function.query(inside, return_std=True)
    assert np.allclose(drawn_line(ax, "released function"), np.column_stack([inside, values]))
    for share in (-1, -0.25, 0.25, 1):
        assert any(len(h) == 3 and np.allclose(h, values + share * std) for h in heights(ax))


def test_function_with_hidden_inputs_shows_its_basis_and_no_inputs():
    basis = np.linspace(0.0, 90.0, 7)
    plan = GP_MODEL.plan_function(X, bound="input-free", basis=basis, **PROMISE)
    for thing in (plan, plan.release(Y)):
        ax = plots.plot_function(thing, [5.05, 50.05])
        assert "training inputs" not in words(ax)
        assert np.array_equal(drawn_line(ax, "basis points (public)")[:, 0], basis)
        assert not np.isin(np.setdiff1d(X, basis), shown(ax)).any()


class Lazy:
    """Inputs of one or two columns that count how many of their rows are read."""

    def __init__(self, columns):
        self.rows, self.read = np.random.default_rng(0).uniform(0, 80, size=(50_000, columns)), 0
        self.shape = self.rows.shape

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, rows):
        found = self.rows[rows]
        self.read += len(found)
        return found


def test_of_very_many_inputs_a_few_thousand_are_drawn():
    plan, lazy = SPARSE.plan(X, X_star=AGES, **PROMISE), Lazy(1)
    ticks = drawn_line(plots.plot_plan(replace(plan, X=lazy)), "training inputs (public)")[:, 0]
    assert 1000 < len(ticks) <= lazy.read <= 5000
    assert np.ptp(ticks) > 79.8
    stand_in = drawn_line(plots.plot_plan(replace(plan, X=None)), "inducing inputs (public)")[:, 0]
    assert np.array_equal(stand_in, np.sort(plan.gp.inducing[:, 0]))
    lazy, where = Lazy(2), np.random.default_rng(1).uniform(0, 80, size=(6, 2))
    plots.plot_noise_map(replace(SPARSE.plan(lazy.rows[:50], X_star=where, **PROMISE), X=lazy))
    assert 0 < lazy.read <= 5000


def test_slices_hold_the_other_inputs_in_the_middle(chart, category):
    held = [plots.slices_of(release)[0].X[:, 1] for release in (chart, category)]
    assert held[0] == pytest.approx(3.5 / 6)  # the middle cell
    assert set(held[1]) == {0.0}  # the first level
    assert plots.slices_of(chart)[0].X[[0, -1], 0].tolist() == [0.0, 90.0]
    X = np.column_stack(
        [np.repeat([1.0, 2.0], 15), np.arange(30.0)]
    )  # levels by numbers: none is between two
    coded = AutoGP((0, 30), categories=[0], stages=2).plan(X, epsilon=4.0, delta=0.01).release(X[:, 1])
    assert set(plots.slices_of(coded)[1].X[:, 0]) == {1.0}


# ---------------------------------------------------------------------------------------- maps


def test_map_is_filled_and_nothing_is_shown_where_nothing_is_known(area):
    surface = plots.surface_of(area)
    ax = plots.plot_map(area, surface=surface)
    known = surface.prediction[~surface.unknown]
    levels = ax.collections[0].levels
    assert (levels[0], levels[-1]) == pytest.approx((known.min(), known.max()))
    (cover,) = [one for one in ax.collections if one.get_hatch() and one.get_paths()]
    where = np.stack(np.meshgrid(surface.across, surface.up), axis=-1).reshape(-1, 2)
    rings = [mpl.path.Path(ring) for ring in cover.get_paths()[0].to_polygons()]
    covered = sum(ring.contains_points(where) for ring in rings).reshape(surface.unknown.shape) % 2 == 1
    inside = np.s_[1:-1, 1:-1]
    assert (covered == surface.unknown)[inside].mean() > 0.97  # but for the edge
    assert 0.1 < surface.unknown.mean() < 0.9
    assert ax.get_ylim() == (surface.up[0], surface.up[-1])
    drawn = [one.get_xydata() for one in ax.get_lines() if len(one.get_xydata())]
    assert np.array_equal(drawn[0], surface.inputs)
    assert all(said in words(ax) for said in ("not known", "inputs (public)"))
    for view, said in (("uncertainty", "std of y"), ("privacy", "privacy's share of the variance")):
        (bar,) = plots.plot_map(area, surface=surface, view=view).child_axes
        assert bar.get_ylabel() == said


def test_map_has_the_outline_that_is_given(area, tmp_path):
    ring = [[-2.0, -2.0], [2.0, -2.0], [0.0, 2.0], [-2.0, -2.0]]
    way, path = [[-1.0, 0.0], [1.0, 0.5]], tmp_path / "outline.geojson"
    areas = {"type": "MultiPolygon", "coordinates": [[ring]]}
    ways = {"type": "GeometryCollection", "geometries": [{"type": "LineString", "coordinates": way}]}
    dot = {"type": "Point", "coordinates": [0.0, 0.0]}
    features = [{"type": "Feature", "geometry": one} for one in (None, areas, ways, dot)]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    drawn = [one.get_xydata().tolist() for one in plots.plot_map(area, outline=path).get_lines()]
    assert ring in drawn
    assert way in drawn
    deep = '{"type": "Feature", "geometry": ' * 5000 + "null" + "}" * 5000
    for other in ("{}", "[1]", json.dumps({"type": "Polygon", "coordinates": [[["a", 1]]]}), deep):
        path.write_text(other)
        with pytest.raises(ArgumentError, match="must be a GeoJSON file") as caught:
            plots.plot_map(area, outline=path)
        assert caught.value.name == "outline"


# ------------------------------------------------------------------------------------- stages


def test_stages_are_drawn_with_their_windows_and_what_came_of_them(staged):
    figure = plots.plot_stages(releases.named(staged, ["age"], "height"))
    ages, order = np.unique(X), np.argsort(staged.plan.rule.inputs.X[:, 0])
    for stage, ax in zip(staged.stages[:-1], figure.axes, strict=True):  # but where outcomes fell
        corners = ax.collections[0].get_paths()[0].vertices
        lower, upper = (np.broadcast_to(edge, ages.shape)[order] for edge in (stage.lower, stage.upper))
        for at, low, high in zip(ages, lower, upper, strict=True):
            here = corners[np.isclose(corners[:, 0], at), 1]
            assert (here.min(), here.max()) == pytest.approx((low, high))
    last = drawn_line(figure.axes[-1], "prediction so far")  # what is released
    # Nearly: how much windows misjudge is taken there from what was known before the last answer.
    mean, std = staged.predict(ages, return_std=True)
    np.testing.assert_allclose(last[:, 0], ages)
    assert (np.abs(last[:, 1] - mean) < 0.5 * std).all()
    for share in staged.plan.sum_shares:
        assert f"{100 * share:.0f} % of the promise" in words(figure)
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("age", "height")


def test_stages_that_measure_outcomes_are_drawn_and_the_counts_are_not(rows):
    axes = [ax for ax in plots.plot_stages(rows).axes if ax.get_visible()]
    assert [ax.get_title(loc="left").split(":")[0] for ax in axes] == ["Stage 2", "Stage 3"]
    after = drawn_line(axes[-1], "prediction so far")
    assert np.allclose(after[:, 1], rows.predict(after[:, :1]), atol=1e-6)


def test_what_was_learned_is_drawn_by_weight(staged):
    (ax,) = plots.plot_learned(staged).axes
    circles = ax.collections[0]
    found = dict(zip(map(tuple, np.asarray(circles.get_offsets())), circles.get_sizes(), strict=True))
    expected = {}
    for setting, weight in zip(staged.settings, staged.weights, strict=True):
        place = (setting.lengthscale[0], setting.noise**0.5)
        expected[place] = expected.get(place, 0.0) + weight
    assert set(found) == set(expected)
    shares = [found[place] / expected[place] for place in expected]
    np.testing.assert_allclose(shares, shares[0])
    (low, high), span = ax.get_xlim(), np.ptp(X)
    # All that was thought possible, and little more.
    assert low < span / 30 < 10 * span < high < 20 * span


def test_a_density_is_drawn_with_its_uncertainty(rows, chart, category):
    (ax,) = plots.plot_density(rows).axes
    steps, band = ax.patches
    assert np.allclose(steps.get_data().values, rows.density.counts)
    assert np.allclose(band.get_data().values, rows.density.counts + 1.959964 * rows.density.std)
    assert ax.get_xlabel() == "age"
    figure = plots.plot_density(releases.named(chart, ["a", "b"]))
    meshes = [ax.collections[0].get_array() for ax in figure.axes[:2]]
    assert np.allclose(meshes[0].T.ravel(), chart.density.counts)
    assert np.allclose(meshes[1].T.ravel(), chart.density.std)
    ages, sexes = plots.plot_density(category).axes
    assert [label.get_text() for label in sexes.get_xticklabels()] == ["f", "m"]
    counts, _ = category.density.along(category.plan.grid, 1)
    assert np.allclose(sexes.get_lines()[0].get_ydata(), counts)
    assert np.isclose(ages.patches[0].get_data().values.sum(), counts.sum())


def test_a_density_along_an_input_is_summed_over_the_others(category):
    density, grid = category.density, category.plan.grid
    errors = density.errors
    covariance = errors.G @ errors.S @ errors.G.T + errors.rough * np.eye(len(grid))
    for place in (0, 1):
        counts, std = density.along(grid, place)
        assert np.allclose(counts, density.counts.reshape(grid.shape).sum(axis=1 - place))
        labels = np.unravel_index(np.arange(len(grid)), grid.shape)[place]
        for code in range(grid.shape[place]):
            of_it = (labels == code).astype(float)
            assert np.isclose(std[code] ** 2, max(of_it @ covariance @ of_it, 0.0), rtol=1e-6)
