"""Pictures: what they must say, and that y is in them only on explicit request."""

import io
import json
import pickle
import sys
import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

from cloakgp import GP, ArgumentError, AutoGP, Column, Columns, Grid, plots, testing
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ, Category

pytestmark = pytest.mark.usefixtures("few_models")

mpl.use("Agg")

GP_MODEL = GP(EQ(20.0, variance=25.0**2), noise=14.0**2, bounds=(50.0, 170.0))
X, Y = make_kung_like(60)
AGES = np.array([40.0, 10.0, 70.0, 25.0])  # out of order


@pytest.fixture(autouse=True)
def _closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def plan():
    return GP_MODEL.plan(X, X_star=AGES, epsilon=1.0, delta=0.01)


@pytest.fixture(scope="module")
def release(plan):
    return plan.release(Y)


@pytest.fixture(scope="module")
def insecure(plan):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", testing.InsecureWarning)
        with testing.insecure_seed(0):
            return plan.release(Y)


def _words(ax):
    """Everything written on a picture."""
    legend = ax.get_legend()
    labels = [text.get_text() for text in legend.get_texts()] if legend else []
    titles = [ax.get_title(loc=side) for side in ("left", "center", "right")]
    return " | ".join([*labels, *titles, *(text.get_text() for text in ax.texts)])


def _line(ax, label):
    (line,) = [line for line in ax.get_lines() if line.get_label() == label]
    return line.get_xydata()


def _shown(ax):
    """Every number that a picture holds as a point."""
    lines = [line.get_xydata() for line in ax.get_lines()]
    dots = [np.asarray(collection.get_offsets()) for collection in ax.collections]
    return np.concatenate([np.ravel(part) for part in lines + dots])


def test_plan_shows_noise_std_in_order_and_the_promise(plan):
    ax = plots.plot_plan(plan)
    order = np.argsort(AGES)
    assert np.array_equal(_line(ax, "privacy noise"), np.column_stack([AGES[order], plan.noise_std[order]]))
    uncertainty = np.column_stack([AGES[order], plan.gp_std[order]])
    assert np.array_equal(_line(ax, "GP's own uncertainty"), uncertainty)
    assert np.array_equal(_line(ax, "expected error")[:, 1], plan.expected_error[order])
    assert "(1, 0.01)-DP, unit: one row" in _words(ax)
    assert plots.INSECURE not in _words(ax)


def test_release_shows_one_curve_and_one_band_and_the_rest_on_request(release):
    ax = plots.plot_release(release)
    words = _words(ax)
    assert "prediction | 95 % band" in words
    for absent in ("released", "privacy noise", plots.INSECURE, plots.NOT_FOR_RELEASE):
        assert absent not in words
    assert "(1, 0.01)-DP, unit: one row" in words
    order = np.argsort(AGES)
    mean, std = release.mean[order], release.noise_std[order]
    ax = plots.plot_release(release, released=True, privacy=True)
    assert np.array_equal(_line(ax, "released mean")[:, 1], mean)
    heights = [line.get_ydata() for line in ax.get_lines()]
    for sign in (-1, 1):
        assert any(len(h) == len(mean) and np.allclose(h, mean + sign * std) for h in heights)
    alone = _words(plots.plot_release(release, denoised=False))
    assert "released mean" in alone
    assert "prediction" not in alone


def test_rug_is_the_public_inputs_and_does_not_stretch_the_y_axis(release):
    ax = plots.plot_release(release)
    rug = _line(ax, "training inputs (public)")
    assert np.array_equal(rug[:, 0], np.unique(X[:, 0]))
    (line,) = [line for line in ax.get_lines() if line.get_label() == "training inputs (public)"]
    where = line.get_transform().transform(rug)  # the rug's heights are shares of the axis, not cm
    assert np.allclose(where, ax.get_xaxis_transform().transform(rug))


def test_insecure_releases_are_marked(insecure):
    assert plots.INSECURE in _words(plots.plot_release(insecure))
    assert plots.INSECURE in _words(plots.plot_plan(insecure.plan))


def test_private_points_only_on_request_and_then_marked(release):
    plain, marked = plots.plot_release(release), plots.plot_release(release, private_data=(X, Y))
    assert not np.isin(Y, _shown(plain)).any()
    assert np.isin(Y, _shown(marked)).all()
    assert plots.NOT_FOR_RELEASE in _words(marked)
    assert plots.NOT_FOR_RELEASE not in _words(plain)


def test_what_is_between_two_dollar_signs_is_no_formula():
    odd = r"$\no{such}$ formula"
    table = {odd: X[:, 0], "level": np.where(X[:, 0] > 30, odd, "other")}
    columns = Columns.of(table, response="y" + odd, units={odd: odd})
    kernel = EQ(20.0, variance=25.0**2, active_dims=[0]) * Category(0.5, active_dims=[1])
    gp, promise = replace(GP_MODEL, kernel=kernel), {"epsilon": 1.0, "delta": 0.01}
    points = {name: cells[:5] for name, cells in table.items()}
    two = gp.plan(table, X_star=points, columns=columns, **promise).release(Y)
    only = Columns([Column(odd)], response="y" + odd)
    one = GP_MODEL.plan(X, X_star=AGES, columns=only, **promise).release(Y)
    named = one.labelled(title=odd, source=odd, units="$")
    for drawn in (plots.plot_slices(two), plots.plot_release(named).get_figure()):
        drawn.canvas.draw()


def test_mark_stays_when_the_title_is_changed_and_lies_on_the_figure(release):
    ax = plots.plot_release(release, private_data=(X, Y))
    ax.set_title("Heights")
    assert plots.NOT_FOR_RELEASE in _words(ax)
    figure = ax.get_figure()
    figure.savefig(io.BytesIO())
    (mark,) = [text for text in ax.texts if text.get_text() == plots.NOT_FOR_RELEASE]
    box = mark.get_window_extent()
    assert figure.bbox.contains(box.x0, box.y0)
    assert figure.bbox.contains(box.x1, box.y1)
    assert mark.get_fontsize() >= 12


def test_y_is_not_kept_in_plan_release_or_their_pictures(plan, release):
    kept = [
        pickle.dumps(thing) for thing in (plan, release, plots.plot_plan(plan), plots.plot_release(release))
    ]
    pieces = [value.tobytes() for value in Y]
    assert any(piece in pickle.dumps(Y) for piece in pieces)  # the search can find y
    assert not any(piece in dump for piece in pieces for dump in kept)


@pytest.mark.parametrize(
    "private_data", [(X,), (X, Y[:-1]), (X, ["secret-172.5"] * len(X)), (X, Y[:, None]), 3, "secret-172.5"]
)
def test_bad_private_data_is_refused_without_quoting_it(release, private_data):
    with pytest.raises(
        (TypeError, ValueError), match=r"private_data|y must (have shape|be a vector)"
    ) as caught:
        plots.plot_release(release, private_data=private_data)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_release_shows_the_denoised_prediction_and_its_band(release):
    ax = plots.plot_release(release)
    line = _line(ax, "prediction")
    mean, std = release.predict(line[:, 0], return_std=True)
    assert np.allclose(line[:, 1], mean)
    assert (line[0, 0], line[-1, 0]) == (AGES.min(), AGES.max())
    (band,) = ax.collections
    edges = band.get_paths()[0].vertices[:, 1]
    assert edges.max() == pytest.approx((mean + 1.96 * std).max(), rel=1e-4)
    assert edges.min() == pytest.approx((mean - 1.96 * std).min(), rel=1e-4)


def test_words_for_a_picture_are_the_releases_own_or_given(release):
    named = release.labelled(title="Heights", units="cm", source="census", date="1967")
    ax = plots.plot_release(named)
    for said in ("Heights", "Source: census, 1967", "(1, 0.01)-DP"):
        assert said in _words(ax)
    assert ax.get_ylabel() == "y, cm"
    ax = plots.plot_release(named, title="Prices", units="£", source="", date="")
    assert "Prices" in _words(ax)
    assert "Source" not in _words(ax)
    assert ax.get_yticklabels()[0].get_text().startswith("£")


def test_on_dark_paper_everything_that_was_black_is_light(release):
    ax = plots.plot_release(release, title="Heights", released=True, privacy=True, style="dark")
    figure = ax.get_figure()
    figure.canvas.draw()
    paper = sum(figure.get_facecolor()[:3])
    inks = [text.get_color() for text in figure.findobj(mpl.text.Text) if text.get_text()]
    inks += [line.get_color() for line in figure.findobj(mpl.lines.Line2D) if line.get_visible()]
    inks += [spine.get_edgecolor() for spine in ax.spines.values()]
    assert paper < 0.5
    assert min(sum(mpl.colors.to_rgb(ink)) for ink in inks) > paper + 0.8
    with pytest.raises(ArgumentError, match="style must be 'light' or 'dark'"):
        plots.plot_release(release, style="black")


def test_noise_samples_have_the_noise_covariance_and_do_not_change(plan):
    ax = plots.plot_noise_samples(plan, n=4000)
    order = np.argsort(AGES)
    lines = [line.get_xydata() for line in ax.get_lines()][:4000]
    samples = np.array([line[:, 1] for line in lines])
    assert np.array_equal(lines[0][:, 0], AGES[order])
    expected = plan.noise_cov[np.ix_(order, order)]
    assert np.allclose(np.cov(samples.T), expected, atol=0.1 * expected.max())
    assert np.allclose(samples.mean(axis=0), 0, atol=0.1 * np.sqrt(expected.max()))
    again = [_line(plots.plot_noise_samples(plan, seed=s), "simulated noise") for s in (3, 3, 4)]
    assert np.array_equal(again[0], again[1])
    assert not np.array_equal(again[0], again[2])
    assert "(1, 0.01)-DP, unit: one row" in _words(ax)


@pytest.fixture(scope="module")
def map_plan():
    return MAP_MODEL.plan(PLACES, X_star=GRID, epsilon=1.0, delta=0.01)


MAP_MODEL = GP(EQ(1.0, variance=100.0**2), noise=40.0**2, bounds=(50.0, 450.0))
PLACES = np.random.default_rng(0).normal(size=(80, 2))
PRICES = np.random.default_rng(1).uniform(50.0, 450.0, size=80)
GRID = np.array([[e, n] for e in (-3.0, 0.0, 0.5, 3.0) for n in (-3.0, 0.0, 3.0)])


def test_map_is_filled_and_nothing_is_shown_where_nothing_is_known(map_plan):
    release = map_plan.release(PRICES)
    surface = plots.surface_of(release)
    ax = plots.plot_map(release, surface=surface)
    colours = ax.collections[0]
    known = surface.prediction[~surface.unknown]
    assert (colours.levels[0], colours.levels[-1]) == pytest.approx((known.min(), known.max()))
    (cover,) = [one for one in ax.collections if one.get_hatch() and one.get_paths()]
    where = np.stack(np.meshgrid(surface.across, surface.up), axis=-1).reshape(-1, 2)
    rings = [mpl.path.Path(ring) for ring in cover.get_paths()[0].to_polygons()]
    covered = sum(ring.contains_points(where) for ring in rings).reshape(surface.unknown.shape) % 2 == 1
    inside = np.s_[1:-1, 1:-1]
    assert (covered == surface.unknown)[inside].mean() > 0.97  # but for the edge
    assert 0.1 < surface.unknown.mean() < 0.9
    assert ax.get_ylim() == (surface.up[0], surface.up[-1])
    drawn = [line.get_xydata() for line in ax.get_lines() if len(line.get_xydata())]
    assert np.array_equal(drawn[0], surface.inputs)
    words = _words(ax)
    for said in ("not known", "inputs (public)", "(1, 0.01)-DP, unit: one row"):
        assert said in words
    assert not np.isin(PRICES, _shown(ax)).any()
    for view, said in (("uncertainty", "std of y"), ("privacy", "privacy's share of the variance")):
        ax = plots.plot_map(release, surface=surface, view=view)
        (bar,) = ax.child_axes
        assert bar.get_ylabel() == said
    with pytest.raises(ArgumentError, match="view must be one of prediction, uncertainty, privacy"):
        plots.plot_map(release, view="noise")


def test_map_has_the_outline_that_is_given(map_plan, tmp_path):
    ring = [[-2.0, -2.0], [2.0, -2.0], [0.0, 2.0], [-2.0, -2.0]]
    areas = {"type": "MultiPolygon", "coordinates": [[ring]]}
    features = [{"type": "Feature", "geometry": None}, {"type": "Feature", "geometry": areas}]
    path = tmp_path / "outline.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    release = map_plan.release(PRICES)
    ax = plots.plot_map(release, outline=path)
    assert any(np.array_equal(line.get_xydata(), ring) for line in ax.get_lines())
    for other in ("{}", "[1]", json.dumps({"type": "Polygon", "coordinates": [[["a", 1]]]})):
        path.write_text(other)
        with pytest.raises(ArgumentError, match="outline must be a GeoJSON file with areas or lines"):
            plots.plot_map(release, outline=path)


def test_map_of_a_plan_is_its_noise(map_plan):
    assert "privacy noise" in plots.plot_map(map_plan).get_figure().axes[1].get_ylabel()


def test_noise_map_spans_the_noise_and_the_test_points(map_plan):
    ax = plots.plot_noise_map(map_plan)
    (contours,) = ax.collections
    low, high = contours.levels[0], contours.levels[-1]
    assert low <= map_plan.noise_std.min()
    assert high >= map_plan.noise_std.max()
    assert ax.axis() == (-3.0, 3.0, -3.0, 3.0)
    assert "(1, 0.01)-DP, unit: one row" in _words(ax)
    (bar,) = [other for other in ax.get_figure().axes if other is not ax]
    assert "privacy noise" in bar.get_ylabel()


@pytest.mark.parametrize("rows", [[0, 1], [0, 1, 2], [0, 0, 0]])
def test_noise_map_of_points_on_a_line_is_refused(rows):
    plan = MAP_MODEL.plan(PLACES, X_star=GRID[rows], epsilon=1.0, delta=0.01)
    with pytest.raises(ValueError, match="not all on one line"):
        plots.plot_noise_map(plan)


@pytest.fixture(scope="module")
def function_plan():
    return GP_MODEL.plan_function(X, epsilon=1.0, delta=0.01)


def test_function_of_a_plan_is_its_noise_and_of_a_release_its_values(function_plan):
    ages = np.array([60.0, 10.0, 95.0])
    inside = np.sort(ages)
    ax = plots.plot_function(function_plan, ages)
    assert np.allclose(_line(ax, "privacy noise"), np.column_stack([inside, function_plan.noise_at(inside)]))
    release = function_plan.release(Y)
    ax = plots.plot_function(release, ages)
    values, std = release.query(inside, return_std=True)
    assert np.allclose(_line(ax, "released function"), np.column_stack([inside, values]))
    heights = [line.get_ydata() for line in ax.get_lines()]
    for share in (-1, -0.25, 0.25, 1):
        assert any(len(h) == 3 and np.allclose(h, values + share * std) for h in heights)
    assert "(1, 0.01)-DP, unit: one row" in _words(ax)
    assert not np.isin(Y, _shown(ax)).any()


def test_function_with_hidden_inputs_shows_its_basis_and_no_inputs():
    basis = np.linspace(0.0, 90.0, 7)
    plan = GP_MODEL.plan_function(X, epsilon=1.0, delta=0.01, bound="input-free", basis=basis)
    for thing in (plan, plan.release(Y)):
        ax = plots.plot_function(thing, [5.05, 50.05])
        assert "training inputs" not in _words(ax)
        assert np.array_equal(_line(ax, "basis points (public)")[:, 0], basis)
        assert not np.isin(np.setdiff1d(X, basis), _shown(ax)).any()


def test_insecure_mark_is_on_every_kind_of_picture(plan, map_plan, function_plan, insecure):
    assert plots.INSECURE in _words(plots.plot_noise_samples(insecure.plan))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", testing.InsecureWarning)
        with testing.insecure_seed(0):
            marked_map, marked_function = map_plan.release(PRICES), function_plan.release(Y)
    for draw in (plots.plot_map, plots.plot_noise_map):
        assert plots.INSECURE in _words(draw(marked_map))
        assert plots.INSECURE not in _words(draw(map_plan))
    assert plots.INSECURE in _words(plots.plot_function(marked_function, AGES))


def test_wrong_number_of_columns_is_refused_and_the_other_pictures_are_named(plan, map_plan):
    for draw in (plots.plot_plan, plots.plot_noise_samples):
        with pytest.raises(ValueError, match="plot_map or plot_noise_map"):
            draw(map_plan)
    with pytest.raises(ValueError, match="plot_map or plot_noise_map"):
        plots.plot_release(map_plan.release(PRICES))
    with pytest.raises(ValueError, match="2 column"):
        plots.plot_noise_map(plan)
    with pytest.raises(ValueError, match="2 column"):
        plots.plot_map(plan.release(Y))
    with pytest.raises(ValueError, match="1 column"):
        plots.plot_function(MAP_MODEL.plan_function(PLACES, epsilon=1.0, delta=0.01), PLACES)


def test_draws_on_given_axes_and_returns_them(plan, release):
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2)
    assert plots.plot_plan(plan, axes[0]) is axes[0]
    assert plots.plot_release(release, ax=axes[1]) is axes[1]


def test_without_matplotlib_the_error_names_the_extra(plan, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"cloakgp\[plots\]"):
        plots.plot_plan(plan)


class Lazy:
    """Inputs of one or two columns that count how many of their rows are read."""

    def __init__(self, n, columns=1):
        self.rows, self.read = np.random.default_rng(0).uniform(0, 80, size=(n, columns)), 0
        self.shape = self.rows.shape

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, rows):
        found = self.rows[rows]
        self.read += len(found)
        return found


SPARSE = GP(EQ(20.0, variance=25.0**2), noise=14.0**2, bounds=(50.0, 170.0), inducing=5)


def test_pictures_say_how_many_inducing_inputs_there_are():
    plan = SPARSE.plan(X, X_star=AGES, epsilon=1.0, delta=0.01)
    assert "unit: one row; 5 inducing inputs (dtc)" in _words(plots.plot_plan(plan))
    assert "5 inducing inputs (dtc)" in _words(plots.plot_release(plan.release(Y)))


def test_of_very_many_inputs_a_few_thousand_are_drawn():
    lazy = Lazy(50_000)
    plan = replace(SPARSE.plan(X, X_star=AGES, epsilon=1.0, delta=0.01), X=lazy)
    ticks = _line(plots.plot_plan(plan), "training inputs (public)")[:, 0]
    assert 1000 < len(ticks) <= lazy.read <= 5000
    assert ticks.min() < 0.1
    assert ticks.max() > 79.9
    two = GP(EQ(20.0, variance=625.0), noise=196.0, bounds=(50.0, 170.0), inducing=5)
    where = np.random.default_rng(1).uniform(0, 80, size=(6, 2))
    lazy = Lazy(50_000, 2)
    plan = replace(two.plan(lazy.rows[:50], X_star=where, epsilon=1.0, delta=0.01), X=lazy)
    for draw in (plots.plot_map, plots.plot_noise_map):
        lazy.read = 0
        draw(plan)
        assert 0 < lazy.read <= 5000


def test_inducing_inputs_stand_for_inputs_that_are_not_there():
    plan = replace(SPARSE.plan(X, X_star=AGES, epsilon=1.0, delta=0.01), X=None)
    for ax in (plots.plot_plan(plan), plots.plot_noise_samples(plan)):
        ticks = _line(ax, "inducing inputs (public)")[:, 0]
        assert np.array_equal(ticks, np.sort(plan.gp.inducing[:, 0]))


@pytest.fixture(scope="module")
def staged():
    """Two outcomes at each age, so that distinct inputs are fewer than rows."""
    return (
        AutoGP(bounds=(0.0, 250.0), stages=3)
        .plan(np.repeat(X, 2, axis=0), X_star=AGES, epsilon=4.0, delta=0.01)
        .release(np.repeat(Y, 2))
    )


def test_a_plan_in_stages_shows_what_to_expect_at_most(staged):
    ax = plots.plot_plan(staged.plan)
    drawn = _line(ax, "privacy noise, forecast")
    np.testing.assert_array_equal(drawn[:, 1], staged.plan.noise_std[np.argsort(AGES)])
    assert "(4, 0.01)-DP" in _words(ax)
    ax = plots.plot_plan(staged)
    np.testing.assert_array_equal(_line(ax, "privacy noise")[:, 1], staged.noise_std[np.argsort(AGES)])


def test_a_release_in_stages_shows_its_prediction_and_band(staged):
    ax = plots.plot_release(staged)
    line = _line(ax, "prediction")
    np.testing.assert_allclose(line[:, 1], staged.predict(line[:, :1]))
    edges = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert edges.max() == pytest.approx(staged.interval(line[:, :1]).max())
    marked = plots.plot_release(staged, private_data=(X, Y))
    assert plots.NOT_FOR_RELEASE in _words(marked)


def _figure_words(figure):
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    keys = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return " | ".join([*titles, *keys, figure.get_suptitle(), *(text.get_text() for text in figure.texts)])


def test_stages_are_drawn_with_their_windows_and_what_came_of_them(staged):
    figure = plots.plot_stages(staged, labels=("age", "height"))
    ages, order = np.unique(X), np.argsort(staged.plan.rule.inputs.X[:, 0])
    assert len(figure.axes) == 3
    for stage, ax in zip(staged.stages, figure.axes, strict=True):
        (window,) = ax.collections
        corners = window.get_paths()[0].vertices
        lower, upper = (np.broadcast_to(edge, ages.shape)[order] for edge in (stage.lower, stage.upper))
        for at, low, high in zip(ages, lower, upper, strict=True):
            here = corners[np.isclose(corners[:, 0], at), 1]
            assert (here.min(), here.max()) == pytest.approx((low, high))
        (line,) = ax.get_lines()
        np.testing.assert_array_equal(line.get_xdata(), ages)
    np.testing.assert_allclose(
        line.get_ydata(), staged.predict(ages), rtol=1e-6
    )  # the last: what is released
    words = _figure_words(figure)
    for share in staged.plan.shares:
        assert f"{100 * share:.0f} % of the promise" in words
    assert "(4, 0.01)-DP" in words
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("age", "height")
    assert plots.NOT_FOR_RELEASE not in words
    assert not np.isin(Y, np.concatenate([_shown(ax) for ax in figure.axes])).any()


def test_stages_show_private_data_on_request_only(staged):
    figure = plots.plot_stages(staged, private_data=(X, Y))
    assert plots.NOT_FOR_RELEASE in _figure_words(figure)
    for ax in figure.axes:
        assert np.isin(Y, _shown(ax)).all()
        assert plots.NOT_FOR_RELEASE in _words(ax)  # a panel may be cut out


def test_insecure_stages_are_marked(staged):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", testing.InsecureWarning)
        with testing.insecure_seed(0):
            insecure = staged.plan.release(np.repeat(Y, 2))
    for draw in (plots.plot_stages, plots.plot_learned):
        assert plots.INSECURE in _figure_words(draw(insecure))
        assert plots.INSECURE not in _figure_words(draw(staged))


def test_what_was_learned_is_drawn_by_weight(staged):
    figure = plots.plot_learned(staged)
    (ax,) = figure.axes
    circles = ax.collections[0]
    found = dict(zip(map(tuple, np.asarray(circles.get_offsets())), circles.get_sizes(), strict=True))
    expected = {}
    for setting, weight in zip(staged.settings, staged.weights, strict=True):
        place = (setting.lengthscale[0], setting.noise**0.5)
        expected[place] = expected.get(place, 0.0) + weight
    assert set(found) == set(expected)
    shares = np.array([found[place] / expected[place] for place in expected])
    np.testing.assert_allclose(shares, shares[0])
    low, high = ax.get_xlim()
    span = np.ptp(X)
    assert low < span / 30 < span < high < 2 * span  # all that was thought possible, and little more
    learned = plots.plot_learned(staged.learned)
    assert learned.axes[0].collections[0].get_offsets().shape == circles.get_offsets().shape


def test_several_inputs_have_a_panel_each(staged):
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 9, size=(30, 2))
    two = (
        AutoGP((0.0, 9.0), stages=2)
        .plan(places, X_star=places[:8], epsilon=4.0, delta=0.01)
        .release(places[:, 0])
    )
    figure = plots.plot_learned(two)
    assert [ax.get_xlabel() for ax in figure.axes] == [f"lengthscale of column {i}" for i in (1, 2)]
    plots.plot_map(two)
    bar = plots.plot_noise_map(two)
    assert bar.collections
    with pytest.raises(ValueError, match=r"plot_stages draws inputs of 1 column"):
        plots.plot_stages(two)


def test_pictures_of_stages_need_stages(plan, release, staged):
    with pytest.raises(ArgumentError, match=r"release must be a StagedRelease.*got Release"):
        plots.plot_stages(release)
    with pytest.raises(ArgumentError, match=r"release_or_learned must be a StagedRelease or what learn\(\)"):
        plots.plot_learned(release)
    with pytest.raises(ArgumentError, match=r"plan must be a Plan.*draw plot_plan"):
        plots.plot_noise_samples(staged.plan)
    known = GP_MODEL.plan(X, X_star=AGES, epsilon=1.0, delta=0.01, given=[release]).release(Y)
    with pytest.raises(ArgumentError, match="must have learned a model"):
        plots.plot_learned(known)


@pytest.fixture(scope="module")
def whole_rows():
    """Releases whose inputs are private: of one range, of two, and of a range and a category."""
    boxes = [{"age": (0, 90)}, {"age": (0, 90), "year": (0, 1)}, {"age": (0, 90), "sex": ["f", "m"]}]
    found = []
    for box in boxes:
        inputs = {"age": X[:, 0], "year": np.arange(60) / 60, "sex": np.array(["f", "m"] * 30)}
        plan = AutoGP(bounds=(50, 170), stages=3).plan_rows(Grid(box, cells=6), 60, epsilon=1.0, delta=0.01)
        found.append(plan.release({name: inputs[name] for name in box}, Y))
    return found


def test_no_private_input_is_drawn(whole_rows):
    curve, chart, _ = whole_rows
    drawn = [plots.plot_plan(curve.plan), plots.plot_release(curve)]
    drawn += [plots.plot_map(chart), plots.plot_noise_map(chart), plots.plot_map(chart.plan)]
    for ax in drawn:
        assert "inputs" not in _words(ax)
        assert "unit: one whole row" in _words(ax)
        assert not [line for line in ax.get_lines() if line.get_marker() in ("|", ".")]


def test_stages_that_measure_outcomes_are_drawn_and_the_counts_are_not(whole_rows):
    figure = plots.plot_stages(whole_rows[0])
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title(loc="left").split(":")[0] for ax in shown] == ["Stage 2", "Stage 3"]
    after = _line(shown[-1], "prediction so far")
    expected = whole_rows[0].predict(after[:, :1])
    assert np.allclose(after[:, 1], expected, atol=1e-6)


def test_a_density_is_drawn_with_its_uncertainty(whole_rows):
    curve, chart, category = whole_rows
    (ax,) = plots.plot_density(curve).axes
    line, band = ax.patches
    assert np.allclose(line.get_data().values, curve.density.counts)
    upper = curve.density.counts + 1.959964 * curve.density.std
    assert np.allclose(band.get_data().values, upper)
    assert ax.get_xlabel() == "age"
    meshes = [ax.collections[0].get_array() for ax in plots.plot_density(chart, labels=["a", "b"]).axes[:2]]
    assert np.allclose(meshes[0].T.ravel(), chart.density.counts)
    assert np.allclose(meshes[1].T.ravel(), chart.density.std)
    ages, sexes = plots.plot_density(category).axes
    assert [label.get_text() for label in sexes.get_xticklabels()] == ["f", "m"]
    assert np.isclose(ages.patches[0].get_data().values.sum(), 60)
    with pytest.raises(TypeError, match="must be a RowsRelease"):
        plots.plot_density(curve.plan)


def test_a_density_along_an_input_is_summed_over_the_others(whole_rows):
    density, grid = whole_rows[2].density, whole_rows[2].plan.grid
    errors = density.errors
    covariance = errors.G @ errors.S @ errors.G.T + errors.rough * np.eye(len(grid))
    for place in (0, 1):
        counts, std = density.along(grid, place)
        axes = tuple({0, 1} - {place})
        assert np.allclose(counts, density.counts.reshape(grid.shape).sum(axis=axes))
        labels = np.unravel_index(np.arange(len(grid)), grid.shape)[place]
        for code in range(grid.shape[place]):
            of_it = (labels == code).astype(float)
            assert np.isclose(std[code] ** 2, max(of_it @ covariance @ of_it, 0.0), rtol=1e-6)


@pytest.mark.parametrize("categories", [[0], [1], [0, 1]])
def test_what_was_learned_of_categories(categories):
    X = np.column_stack([np.arange(30.0) % 3, np.arange(30.0) % 2])
    plan = AutoGP((0, 10), categories=categories, stages=2).plan(X, epsilon=1.0, delta=0.01)
    figure = plots.plot_learned(plan.release(X.sum(axis=1)))
    shown = [ax.get_xlabel() for ax in figure.axes if ax.get_visible()]
    assert shown == (["signal std"] if len(categories) == 2 else ["lengthscale"])
