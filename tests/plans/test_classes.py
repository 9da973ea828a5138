"""Outcomes that are one of several classes: one release of all, and probabilities that add up to one."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp import GP, AutoGP, Grid, Hyperprior, Ledger, plots
from cloakgp.kernels import EQ, Constant
from cloakgp.ledger.charge import Account
from cloakgp.ledger.errors import BudgetExceeded
from cloakgp.posterior import outcomes
from cloakgp.testing import insecure_seed
from cloakgp.workflow import private_step, releases

KERNEL = EQ(2.0, variance=1.5) + Constant(1.0)
PROMISE = {"epsilon": 4.0, "delta": 1e-3}
POINTS = np.linspace(0, 10, 8)[:, None]
NAMES = ("car", "bus", "train")


def chances(X, n_classes):
    """Waves that take turns."""
    places = 10 * (np.arange(n_classes) + 0.5) / n_classes
    p = np.exp(2.5 * np.cos(2 * np.pi * (np.ravel(X)[:, None] - places) / 10))
    return p / p.sum(axis=1, keepdims=True)


def made(n_classes, n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (n, 1))
    return X, (chances(X, n_classes).cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)


X, PLACES = made(3)
Y = np.array(NAMES)[PLACES]


@pytest.fixture(scope="module")
def learned():
    return AutoGP(classes=NAMES).plan(X, X_star=POINTS, **PROMISE).release(Y)


@pytest.fixture(scope="module")
def known():
    return GP(KERNEL, classes=NAMES).plan(X, X_star=POINTS, **PROMISE).release(Y)


def test_each_law_is_worked_out_once(known, monkeypatch):
    """Predictions and intervals at the same inputs are of the same laws."""
    made, laws = [], outcomes.Laws
    monkeypatch.setattr(outcomes, "Laws", lambda *given: made.append(given) or laws(*given))
    p, ends = known.predict(POINTS + 0.5), known.interval(POINTS + 0.5)
    assert len(made) == len(NAMES)
    np.testing.assert_allclose(known.interval(POINTS[::-1] + 0.5)[::-1], ends)
    assert len(made) == 2 * len(NAMES)
    np.testing.assert_allclose(known.predict(POINTS + 0.5), p)


@pytest.mark.parametrize("name", ["learned", "known"])
@pytest.mark.usefixtures("few_models_here")
def test_probabilities_add_up_to_one_and_lie_in_their_intervals(name, request):
    release, far = request.getfixturevalue(name), np.linspace(-20, 30, 21)[:, None]
    p, std = release.predict(far, return_std=True)
    np.testing.assert_array_equal(p, release.predict_proba(far))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    low, high = np.moveaxis(release.interval(far), 2, 0)
    assert ((low > 0) & (low < p) & (p < high) & (high < 1)).all()
    assert (std > 0).all()
    draws = release.sample(far, 5, seed=0)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)
    parts = release.uncertainty(far)
    np.testing.assert_allclose(parts.privacy**2 + parts.gp**2 + parts.observation**2, parts.total**2)
    np.testing.assert_allclose(np.hypot(parts.privacy, parts.gp), std)
    assert release.classes == NAMES


@pytest.mark.parametrize("n_classes", [3, 5])
def test_classes_are_predicted_better_than_by_their_rates(n_classes):
    """By the expected log loss at new inputs, where the best is known."""
    X, y = made(n_classes, 300, seed=n_classes)
    model = GP(EQ(2.0, variance=1.5) + Constant(1.0), classes=tuple(range(n_classes)))
    p = model.plan(X, X_star=POINTS, **PROMISE).release(y).predict_proba(POINTS)
    truth, rates = chances(POINTS, n_classes), np.bincount(y, minlength=n_classes) / len(y)
    loss, of_rates, best = (-(truth * np.log(q)).sum(axis=1).mean() for q in (p, rates, truth))
    assert loss - best < 0.35 * (of_rates - best)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cloakgp.testing.InsecureWarning")
def test_intervals_of_classes_hold_what_they_say():
    """Over generated data: 95 % of all classes' probabilities, give or take 3 %."""
    held = []
    for seed in range(12):
        X, y = made(4, 250, seed)
        with insecure_seed(seed):
            release = GP(KERNEL, classes=tuple(range(4))).plan(X, X_star=POINTS, **PROMISE).release(y)
        low, high = np.moveaxis(release.interval(POINTS), 2, 0)
        truth = chances(POINTS, 4)
        held.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.92 <= np.mean(held) <= 0.98


def test_models_are_weighed_by_all_classes_together(learned):
    """The sum of all classes' evidences tells of a wrong lengthscale, and each class has the same weights."""
    assert learned.evidence(GP(KERNEL, classes=NAMES)) > learned.evidence(
        GP(EQ(0.05, variance=1.5) + Constant(1.0), classes=NAMES)
    )
    assert len(learned.learned.each) == 3
    assert all(one.weights is learned.weights for one in learned.learned.each)
    assert "lengthscale" in str(learned.learned)


def test_what_readers_can_do_with_it(learned):
    p = learned.remodel(GP(KERNEL, classes=NAMES)).predict(POINTS)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    other = learned.learn(Hyperprior(kernels=("Matern52",)))
    assert {one.family for one in other.settings} == {"Matern52"}
    for wrong in (GP(KERNEL, outcome="yes/no"), GP(KERNEL, classes=("car", "bus", "plane"))):
        with pytest.raises(ValueError, match="gp must"):
            learned.remodel(wrong)
    assert learned.check_model().fits
    shown = [line.get_label() for line in plots.plot_release(learned).get_lines()]
    assert shown[:3] == list(NAMES)
    with pytest.raises(ValueError, match="one for each of 3 classes"):
        plots.plot_release(learned, privacy=True)
    found = releases.predictions(learned, POINTS)
    np.testing.assert_array_equal(found["bus"], learned.predict_proba(POINTS)[:, 1])
    frame = learned.to_frame()
    np.testing.assert_allclose(frame[list(NAMES)].sum(axis=1), 1.0)
    assert {"x", "bus lower", "bus upper", "bus noise_std"} <= set(frame.columns)


@pytest.mark.parametrize("name", ["learned", "known"])
@pytest.mark.usefixtures("few_models_here")
def test_files_hold_the_classes_and_are_verified(name, request, tmp_path):
    release = request.getfixturevalue(name)
    release.save(tmp_path / "release")
    again = cloakgp.load(tmp_path / "release")
    assert again.classes == NAMES
    np.testing.assert_allclose(again.predict_proba(X), release.predict_proba(X), atol=1e-9)
    assert cloakgp.verify(tmp_path / "release").complete
    release.plan.save(tmp_path / "plan")
    plan = cloakgp.load_plan(tmp_path / "plan", X)
    assert plan.digest == release.plan.digest
    assert plan.release(Y).classes == NAMES


def test_a_ledger_pays_and_can_answer_again(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger.create("trips", epsilon=4.5, delta=1e-3)
    plan = GP(KERNEL, classes=NAMES).plan(X, X_star=POINTS, **PROMISE)
    release = plan.release(Y, ledger=ledger, dataset="trips")
    paid = next(entry.number for entry in ledger.entries() if entry.kind == "spent")
    again = plan.recover(ledger, paid)
    np.testing.assert_array_equal(again.z, release.z)
    with pytest.raises(BudgetExceeded, match="left"):
        plan.release(Y, ledger=ledger, dataset="trips")


def test_two_named_classes_are_yes_and_no_by_other_names(tmp_path):
    words = np.where(PLACES == 2, "late", "early")
    release = GP(KERNEL, classes=("early", "late")).plan(X, X_star=POINTS, **PROMISE).release(words)
    assert release.plan.first.measurement.classes == 1
    assert release.predict(POINTS).shape == (8,)
    release.save(tmp_path / "release")
    assert cloakgp.load(tmp_path / "release").classes == ("early", "late")
    assert GP(KERNEL, outcome="yes/no").plan(X, X_star=POINTS, **PROMISE).release(PLACES == 2).classes == (
        False,
        True,
    )
    again = GP(KERNEL, classes=("early", "late")).plan(X, X_star=POINTS, given=[release], **PROMISE)
    assert len(again.rule.given) == 1
    with pytest.raises(ValueError, match=r"must be of .'late', 'early'., as the plan is"):
        GP(KERNEL, classes=("late", "early")).plan(X, X_star=POINTS, given=[release], **PROMISE)
    grid = Grid({"x": (0.0, 10.0)}, 5)
    rows = (
        GP(KERNEL, classes=("early", "late")).plan_rows(grid, 90, X_star=POINTS, **PROMISE).release(X, words)
    )
    assert rows.predict_proba(POINTS).shape == (8, 2)
    assert rows.classes == ("early", "late")


GRID = Grid({"x": (0.0, 10.0)}, 10)


@pytest.mark.parametrize("most", [None, 2])
def test_classes_where_whole_rows_are_private(most, tmp_path):
    """Predicted better than by their rates, from a file that verifies, and paid for once."""
    X, y = made(3, 400, seed=5)
    labels, size = np.array(NAMES)[y], 400 // (most or 1)
    plan = GP(KERNEL, classes=NAMES).plan_rows(GRID, size, X_star=POINTS, max_rows=most, **PROMISE)
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger.create("trips", epsilon=4.5, delta=1e-3)
    people = None if most is None else np.arange(400) % size
    release = plan.release(X, labels, people=people, ledger=ledger, dataset="trips")
    truth, rates = chances(POINTS, 3), np.bincount(y) / 400
    p = release.predict_proba(POINTS)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    loss, of_rates, best = (-(truth * np.log(q)).sum(axis=1).mean() for q in (p, rates, truth))
    assert loss - best < 0.35 * (of_rates - best)
    paid = next(entry.number for entry in ledger.entries() if entry.kind == "spent")
    np.testing.assert_array_equal(plan.recover(ledger, paid).z, release.z)
    release.save(tmp_path / "file")
    assert cloakgp.verify(tmp_path / "file").complete == (most is None)
    np.testing.assert_allclose(cloakgp.load(tmp_path / "file").predict_proba(POINTS), p, atol=1e-9)


def test_what_error_to_expect_has_the_noise_of_classes_in_it():
    model, other = GP(KERNEL, classes=NAMES), GP(KERNEL, outcome="yes/no")
    for name, given in (("plan", (X,)), ("plan_rows", (GRID, 90))):
        found, without = (
            getattr(one, name)(*given, X_star=POINTS, **PROMISE).noise_std for one in (model, other)
        )
        assert found.mean() > 1.05 * without.mean()


@pytest.mark.slow
def test_a_model_is_learned_where_whole_rows_of_classes_are_private():
    """Two inputs, 36 cells, 2,000 rows and epsilon 2: near the best there is."""
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(2000, 2)), rng.uniform(size=(500, 2))

    def truth(X):
        f = np.exp(2 * np.column_stack([np.sin(3 * X[:, 0]), np.cos(3 * X[:, 1]), X[:, 0] * X[:, 1]]))
        return f / f.sum(axis=1, keepdims=True)

    y = (truth(X).cumsum(axis=1) < rng.uniform(size=(2000, 1))).sum(axis=1)
    plan = AutoGP(classes=(0, 1, 2)).plan_rows(Grid({"u": (0, 1), "v": (0, 1)}, 6), 2000, epsilon=2.0)
    release, p, rates = plan.release(X, y), truth(new), np.bincount(y) / 2000
    found = release.predict_proba(new)
    loss, of_rates, best = (-(p * np.log(q)).sum(axis=1).mean() for q in (found, rates, p))
    assert loss - best < 0.25 * (of_rates - best)
    low, high = np.moveaxis(release.interval(new), 2, 0)
    assert np.mean((low <= p) & (p <= high)) > 0.85


def test_a_missing_label_or_input_of_a_whole_row_is_refused_or_counts_for_all_alike():
    holes, inputs = Y.astype(object), X.copy()
    holes[::30], inputs[1] = None, np.nan
    plan = GP(KERNEL, classes=NAMES).plan_rows(GRID, 90, X_star=POINTS, **PROMISE)
    for table in ((X, holes), (inputs, Y)):
        with pytest.raises(ValueError, match="something is missing"):
            plan.release(*table)
    release = plan.release(inputs, holes, missing="midpoint")
    np.testing.assert_allclose(release.predict_proba(POINTS).sum(axis=1), 1.0)


def test_a_class_that_nobody_has_tells_nothing_in_public():
    model = GP(KERNEL, classes=(*NAMES, "boat"))
    release = model.plan(X, X_star=POINTS, **PROMISE).release(Y)
    assert release.predict_proba(POINTS)[:, 3].max() < 0.3


def test_a_missing_label_is_refused_or_counts_for_none():
    holes = Y.astype(object)
    holes[::30] = None
    plan = GP(KERNEL, classes=NAMES).plan(X, X_star=POINTS, **PROMISE)
    with pytest.raises(ValueError, match="none of the classes"):
        plan.release(holes)
    np.testing.assert_allclose(plan.release(holes, missing="midpoint").predict_proba(POINTS).sum(axis=1), 1.0)


@pytest.mark.parametrize("classes", [NAMES, ("early", "late")])
def test_labels_of_a_file_are_read_where_they_are_private(tmp_path, classes):
    """A plan that names its classes knows how they are written."""
    labels = Y if len(classes) == 3 else np.where(PLACES == 2, "late", "early")
    lines = [f"{x!r},{label}" for x, label in zip(X[:, 0].tolist(), labels, strict=True)]
    (tmp_path / "trips.csv").write_text("\n".join(["x,mode", *lines]))
    plan = GP(KERNEL, classes=classes).plan(X, X_star=POINTS, **PROMISE)
    account = Account(None, None, "", None)
    release = private_step.release(plan, str(tmp_path / "trips.csv"), "mode", "error", account)
    assert release.predict_proba(POINTS).argmax(axis=1)[[1, 6]].tolist() == [0, len(classes) - 1]


def test_what_there_is_not():
    with pytest.raises(ValueError, match="given must be left out for classes"):
        GP(KERNEL, classes=NAMES).plan(X, X_star=POINTS, given=[object()], **PROMISE)
    with pytest.raises(ValueError, match="outcome must be left out"):
        AutoGP((0, 9), outcome="count", classes=NAMES)
    with pytest.raises(ValueError, match="outcome must be"):
        AutoGP(outcome="classes")
    with pytest.raises(ValueError, match=r"bounds must be \(0, 1\)"):
        AutoGP((0, 5), classes=NAMES)
