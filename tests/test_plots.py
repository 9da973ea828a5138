"""Pictures: what they must say, and that y is in them only on explicit request."""

import io
import pickle
import sys
import warnings

import matplotlib as mpl
import numpy as np
import pytest

from cloakgp import GP, plots, testing
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ

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
    return GP_MODEL.plan(X, AGES, epsilon=1.0, delta=0.01)


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
    assert "(1, 0.01)-DP, unit: one row" in _words(ax)
    assert plots.INSECURE not in _words(ax)


def test_release_shows_mean_and_both_bands(release):
    ax = plots.plot_release(release)
    order = np.argsort(AGES)
    mean, std = release.mean[order], release.noise_std[order]
    assert np.array_equal(_line(ax, "released mean")[:, 1], mean)
    heights = [line.get_ydata() for line in ax.get_lines()]
    for share in (-1, -0.25, 0.25, 1):
        assert any(len(h) == len(mean) and np.allclose(h, mean + share * std) for h in heights)
    assert "(1, 0.01)-DP, unit: one row" in _words(ax)
    assert plots.INSECURE not in _words(ax)
    assert plots.NOT_FOR_RELEASE not in _words(ax)


def test_rug_is_the_public_inputs_and_does_not_stretch_the_y_axis(release):
    ax = plots.plot_release(release)
    rug = _line(ax, "training inputs (public)")
    assert np.array_equal(rug[:, 0], np.unique(X[:, 0]))
    assert ax.get_ylim()[0] > 0.02  # the rug's heights are shares of the axis, not cm


def test_insecure_releases_are_marked(insecure):
    assert plots.INSECURE in _words(plots.plot_release(insecure))
    assert plots.INSECURE in _words(plots.plot_plan(insecure.plan))


def test_private_points_only_on_request_and_then_marked(release):
    plain, marked = plots.plot_release(release), plots.plot_release(release, private_data=(X, Y))
    assert not np.isin(Y, _shown(plain)).any()
    assert np.isin(Y, _shown(marked)).all()
    assert plots.NOT_FOR_RELEASE in _words(marked)
    assert plots.NOT_FOR_RELEASE not in _words(plain)


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
    with pytest.raises(ValueError, match="private_data") as caught:
        plots.plot_release(release, private_data=private_data)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_two_columns_are_refused():
    plan = GP_MODEL.plan(np.column_stack([X, X]), [[1.0, 2.0]], epsilon=1.0, delta=0.01)
    for draw, thing in ((plots.plot_plan, plan), (plots.plot_release, plan.release(Y))):
        with pytest.raises(ValueError, match="pictures of 1-d inputs only"):
            draw(thing)


def test_draws_on_given_axes_and_returns_them(plan, release):
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2)
    assert plots.plot_plan(plan, axes[0]) is axes[0]
    assert plots.plot_release(release, ax=axes[1]) is axes[1]


def test_without_matplotlib_the_error_names_the_extra(plan, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"cloakgp\[plots\]"):
        plots.plot_plan(plan)


def test_importing_does_not_import_matplotlib():
    import subprocess

    code = "import sys, cloakgp.plots, cloakgp.demo; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
