"""Outcomes that are yes or no, counts, or classes: the reader's model differs, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import cloakgp
from cloakgp import GP, AutoGP, Grid, Hyperprior
from cloakgp.kernels import EQ, Constant
from cloakgp.posterior.mixture import Mixture
from cloakgp.release.stages import Session

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 10, (90, 1))
F = 1.5 * np.sin(X[:, 0]) - 1
YES = RNG.uniform(size=90) < ndtr(F)
COUNTS = RNG.poisson(np.exp(1 + np.sin(X[:, 0])))
POINTS = np.linspace(0, 10, 8)[:, None]
PROMISE = {"epsilon": 4.0, "delta": 1e-3}
AT = {"X_star": POINTS, **PROMISE}
KERNEL = EQ(2.0, variance=1.5) + Constant(1.0)
NAMES = ("car", "bus", "train")
GRID = Grid({"x": (0.0, 10.0)}, 10)


def chances(X, n_classes):
    """Waves that take turns."""
    places = 10 * (np.arange(n_classes) + 0.5) / n_classes
    p = np.exp(2.5 * np.cos(2 * np.pi * (np.ravel(X)[:, None] - places) / 10))
    return p / p.sum(axis=1, keepdims=True)


def of_classes(p, rng):
    """A class for each row, by its probabilities."""
    return (p.cumsum(axis=1) < rng.uniform(size=(len(p), 1))).sum(axis=1)


CLASSES = np.array(NAMES)[of_classes(chances(X, 3), RNG)]
YES_NO = GP(KERNEL, outcome="yes/no")
MODELS = {
    "yes/no": (AutoGP(outcome="yes/no"), YES),
    "counts": (AutoGP((0, 50), outcome="count", stages=3), COUNTS),
    "classes": (AutoGP(classes=NAMES), CLASSES),
    "known yes/no": (YES_NO, YES),
    "known counts": (GP(KERNEL, 1.5, (0, 50), outcome="count"), COUNTS),
    "known classes": (GP(KERNEL, classes=NAMES), CLASSES),
}


@pytest.fixture(scope="module")
def made():
    """Releases by name, made once."""
    found = {}

    def release(name):
        if name not in found:
            model, y = MODELS[name]
            found[name] = model.plan(X, **AT).release(y)
        return found[name]

    return release


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.usefixtures("few_models_here")
def test_predictions_stay_within_what_there_can_be(name, made):
    release, far = made(name), np.linspace(-20, 30, 41)[:, None]
    top = 50.0 if "counts" in name else 1.0
    mean, std = release.predict(far, return_std=True)
    low, high = np.moveaxis(release.interval(far), -1, 0)
    draws = release.sample(far, 5, seed=0)
    assert ((draws >= 0) & (draws <= top)).all()
    assert ((low >= 0) & (low < mean) & (mean < high) & (high <= top) & (std > 0)).all()
    narrower = np.moveaxis(release.interval(far, level=0.5), -1, 0)
    assert ((narrower[0] > low) & (narrower[1] < high)).all()
    parts = release.uncertainty(far)
    np.testing.assert_allclose(np.hypot(parts.privacy, parts.gp), std, rtol=1e-9)
    np.testing.assert_allclose(np.hypot(std, parts.observation), parts.total, rtol=1e-9)
    np.testing.assert_allclose(release.predict(far, return_std=True, include_noise=True)[1], parts.total)
    if "counts" in name:
        with pytest.raises(ValueError, match="predict_proba"):
            release.predict_proba(far)
        return
    each = release.predict_proba(far)
    np.testing.assert_allclose(each.sum(axis=1), 1.0)
    np.testing.assert_array_equal(each if mean.ndim > 1 else each[:, 1], mean)
    if mean.ndim > 1:
        np.testing.assert_allclose(draws.sum(axis=2), 1.0)
        assert release.classes == NAMES
    else:  # an outcome is yes or no: its variance follows from its probability
        np.testing.assert_allclose(parts.total**2, each[:, 0] * each[:, 1], rtol=1e-6)


def test_windows_that_clip_much_leave_what_can_be_conditioned_on(seeded):
    """What stages share of an outcome's scatter must not be more than clipping leaves of it in each."""
    ages = np.random.default_rng(2).uniform(20, 80, (40, 1)).round(1)
    model = AutoGP((0, 20), outcome="count", stages=2)
    plan = model.plan(ages, X_star=[[20.0], [80.0]], epsilon=5, delta=1e-3)
    for seed in range(8):
        with seeded(seed):
            release = plan.release(np.where(np.arange(40) % 2, 3.0, 0.0))
        for curve in release.learned.curves:
            assert min(np.linalg.eigvalsh(one.residuals[1]).min() for one in curve) > 0


# -------------------------------------------------------------------------------- how good they are


def test_much_data_and_little_noise_give_the_truth(seeded):
    rng = np.random.default_rng(0)
    many = rng.choice(np.linspace(0, 10, 50), 40_000)[:, None]
    for model, truth, draw, near in (
        (YES_NO, lambda x: ndtr(1.5 * np.sin(x) - 1), lambda p: rng.uniform(size=len(p)) < p, {"atol": 0.03}),
        (
            GP(KERNEL, bounds=(0, 50), outcome="count"),
            lambda x: np.exp(1 + np.sin(x)),
            rng.poisson,
            {"rtol": 0.2},
        ),
    ):
        plan = model.plan(many, X_star=POINTS, epsilon=8.0, delta=1e-3)
        with seeded(1):
            release = plan.release(draw(truth(many[:, 0])))
        np.testing.assert_allclose(release.predict(POINTS), truth(POINTS[:, 0]), **near)


def lost(found, truth, y):
    """Of what the expected log loss of the classes' rates is above the best, how much is left."""
    rates = np.bincount(y, minlength=truth.shape[1]) / len(y)
    loss, of_rates, best = (-(truth * np.log(q)).sum(axis=1).mean() for q in (found, rates, truth))
    return (loss - best) / (of_rates - best)


@pytest.mark.parametrize(("n_classes", "private"), [(3, None), (5, None), (3, 1), (3, 2)])
def test_classes_are_predicted_better_than_by_their_rates(n_classes, private):
    """With `private`, inputs are, too, and a person has so many rows at most."""
    rng, labels = np.random.default_rng(n_classes), tuple(range(n_classes))
    X = rng.uniform(0, 10, (400, 1))
    y = of_classes(chances(X, n_classes), rng)
    model = GP(KERNEL, classes=labels)
    if private is None:
        release = model.plan(X, **AT).release(y)
    else:
        more, people = ({}, None) if private == 1 else ({"max_rows": private}, np.arange(400) // private)
        release = model.plan_rows(GRID, 400 // private, **more, **AT).release(X, y, people=people)
    found = release.predict_proba(POINTS)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert lost(found, chances(POINTS, n_classes), y) < 0.35


@pytest.mark.slow
def test_a_model_is_learned_where_whole_rows_of_classes_are_private():
    """Two inputs, 36 cells, 2,000 rows and epsilon 2: near the best there is."""
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(2000, 2)), rng.uniform(size=(500, 2))

    def truth(X):
        f = np.exp(2 * np.column_stack([np.sin(3 * X[:, 0]), np.cos(3 * X[:, 1]), X[:, 0] * X[:, 1]]))
        return f / f.sum(axis=1, keepdims=True)

    y = of_classes(truth(X), rng)
    plan = AutoGP(classes=(0, 1, 2)).plan_rows(Grid({"u": (0, 1), "v": (0, 1)}, 6), 2000, epsilon=2.0)
    release, p = plan.release(X, y), truth(new)
    assert lost(release.predict_proba(new), p, y) < 0.25
    low, high = np.moveaxis(release.interval(new), 2, 0)
    # A release is off in the same way at many points: the share that its intervals hold is 0.90, give
    # or take 0.035, so below 0.7 by chance: 1e-8. Of intervals half as wide it is 0.63.
    assert np.mean((low <= p) & (p <= high)) > 0.7


@pytest.mark.slow
def test_intervals_of_classes_hold_what_they_say(seeded):
    """Over generated data: 95 % of all classes' probabilities, give or take 3 %."""
    held, truth = [], chances(POINTS, 4)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 10, (250, 1))
        plan = GP(KERNEL, classes=tuple(range(4))).plan(X, **AT)
        with seeded(seed):
            low, high = np.moveaxis(plan.release(of_classes(chances(X, 4), rng)).interval(POINTS), 2, 0)
        held.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.92 <= np.mean(held) <= 0.98


def cover(releases, level, seeded):
    """Share of true probabilities, drawn from the model about Phi(level), that 95 % intervals hold."""
    held, P = [], len(POINTS)
    for number in range(releases):
        rng = np.random.default_rng([7, number])
        inputs = rng.uniform(0, 10, (120, 1))
        everywhere = np.vstack([inputs, POINTS])
        K = np.asarray(KERNEL(everywhere)) + 1e-8 * np.eye(len(everywhere))
        f = level + np.linalg.cholesky(K) @ rng.normal(size=len(K))
        y = rng.uniform(size=120) < ndtr(f[:-P])
        model = GP(KERNEL, mean=level, outcome="yes/no")
        plan = model.plan(inputs, X_star=POINTS, epsilon=3.0, delta=1e-3)
        with seeded(number):
            ends = plan.release(y).interval(POINTS)
        held.append(((ends[:, 0] <= ndtr(f[-P:])) & (ndtr(f[-P:]) <= ends[:, 1])).mean())
    return np.mean(held)


@pytest.mark.parametrize("level", [0.0, -2.5])
def test_intervals_hold_what_they_say(level, seeded):
    assert 0.92 < cover(40, level, seeded) < 0.98


def test_what_error_to_expect_has_the_noise_of_classes_in_it():
    model = GP(KERNEL, classes=NAMES)
    for name, given in (("plan", (X,)), ("plan_rows", (GRID, 90))):
        found, without = (getattr(one, name)(*given, **AT).noise_std for one in (model, YES_NO))
        assert found.mean() > 1.05 * without.mean()


# -------------------------------------------------------------------------------- what is learned


def test_yes_and_no_need_neither_windows_nor_a_noise_level(made):
    yes_no, counts = made("yes/no"), made("counts")
    assert all(stage.line is None and stage.spread is None for stage in yes_no.stages)
    for part in ("spread", "line"):
        assert [getattr(stage, part) is None for stage in counts.stages] == [True, False, False]
    assert "noise std" not in str(yes_no.learned) + str(counts.learned)
    assert f"{counts.settings[0].noise:10.3g}" in str(counts.learned)
    assert "dispersion" in str(counts.learned)
    assert [setting.noise for setting in yes_no.settings] == pytest.approx([1.0] * len(yes_no.settings))


def test_models_are_weighed_by_all_classes_together(made):
    """The sum of all classes' evidences tells of a wrong lengthscale, and each class has the same weights."""
    release, wrong = made("classes"), GP(EQ(0.05, variance=1.5) + Constant(1.0), classes=NAMES)
    assert release.evidence(GP(KERNEL, classes=NAMES)) > release.evidence(wrong)
    assert len(release.learned.each) == 3
    assert all(one.weights is release.weights for one in release.learned.each)


def _fails(*_):
    raise ValueError("arithmetic")


def test_where_nothing_could_be_learned_it_is_what_was_believed(monkeypatch, tmp_path):
    monkeypatch.setattr(Mixture, "follow", _fails)
    release = AutoGP(outcome="yes/no").plan(X, **AT).release(YES)
    assert len(release.stages) == 1
    assert len(release.settings) > 4
    assert ((release.interval(POINTS) > 0) & (release.interval(POINTS) < 1)).all()
    release.save(tmp_path / "file")
    np.testing.assert_allclose(cloakgp.load(tmp_path / "file").predict(POINTS), release.predict(POINTS))


def test_where_rows_were_counted_and_no_more_that_is_said(monkeypatch):
    plan = AutoGP(outcome="yes/no").plan_rows(GRID, 90, **AT)
    monkeypatch.setattr(Session, "next_stage", _fails)
    release = plan.release(X, YES)
    assert release.density.counts.sum() == pytest.approx(90)
    with pytest.raises(ValueError, match="nothing of their outcomes"):
        release.predict(POINTS)


def test_other_models_of_the_same_release(made, seeded):
    again = made("known yes/no").remodel(YES_NO)
    np.testing.assert_allclose(again.predict(POINTS), made("known yes/no").predict(POINTS), rtol=1e-9)
    with seeded(1):
        release = YES_NO.plan(X, X_star=POINTS, epsilon=50.0, delta=1e-3).release(YES)
    assert release.evidence(YES_NO) > release.evidence(GP(EQ(0.05, variance=9.0), outcome="yes/no"))
    other = made("yes/no").learn(Hyperprior(lengthscale=(0.2, 0.4)))
    (span,) = Hyperprior().spans(X)
    assert all(0.2 - 1e-9 <= s.lengthscale[0] / span <= 0.4 + 1e-9 for s in other.settings)
    found = made("classes").remodel(GP(KERNEL, classes=NAMES)).predict(POINTS)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    other = made("classes").learn(Hyperprior(kernels=("Matern52",)))
    assert {one.family for one in other.settings} == {"Matern52"}
    for name, wrong in (
        ("yes/no", GP(KERNEL, 1.0, (0, 1))),
        ("classes", YES_NO),
        ("classes", GP(KERNEL, classes=("car", "bus", "plane"))),
    ):
        with pytest.raises(cloakgp.ArgumentError, match="gp must"):
            made(name).remodel(wrong)


# --------------------------------------------------------------------------- what outcomes may be


def test_numbers_that_are_neither_yes_nor_no_are_missing(seeded):
    """Of outcomes that are 1 and 2, clipped, everybody's would be yes."""
    da = pytest.importorskip("dask.array")
    plan, rows = YES_NO.plan(X, **AT), YES_NO.plan_rows(GRID, 90, **AT)
    for outcomes in (1 + YES, da.from_array(1 + YES, chunks=20)):
        with pytest.raises(ValueError, match="for yes and no are 1 and 0"):
            plan.release(outcomes)
    with pytest.raises(ValueError, match="something is missing"):
        rows.release(X, 1 + YES)
    found = []
    for other in (2.0, np.nan):
        with seeded(5):
            found.append(plan.release(np.where(np.arange(90) < 20, other, YES), missing="midpoint").z)
    np.testing.assert_array_equal(*found)


def test_a_missing_label_or_input_of_a_whole_row_is_refused_or_counts_for_all_alike():
    holes, inputs = CLASSES.astype(object), X.copy()
    holes[::30], inputs[1] = None, np.nan
    plan = GP(KERNEL, classes=NAMES).plan_rows(GRID, 90, **AT)
    for table in ((X, holes), (inputs, CLASSES)):
        with pytest.raises(ValueError, match="something is missing"):
            plan.release(*table)
    release = plan.release(inputs, holes, missing="midpoint")
    np.testing.assert_allclose(release.predict_proba(POINTS).sum(axis=1), 1.0)


def test_a_class_that_nobody_has_tells_nothing_in_public():
    release = GP(KERNEL, classes=(*NAMES, "boat")).plan(X, **AT).release(CLASSES)
    assert release.predict_proba(POINTS)[:, 3].max() < 0.3


def test_two_named_classes_are_yes_and_no_by_other_names():
    words, model = np.where(YES, "late", "early"), GP(KERNEL, classes=("early", "late"))
    release = model.plan(X, **AT).release(words)
    assert release.plan.measurement.statistic.width == 1
    assert release.predict(POINTS).shape == (8,)
    assert YES_NO.plan(X, **AT).release(YES).classes == (False, True)
    assert len(model.plan(X, given=[release], **AT).given) == 1
    with pytest.raises(cloakgp.ArgumentError, match=r"must be of .'late', 'early'."):
        GP(KERNEL, classes=("late", "early")).plan(X, given=[release], **AT)
    rows = model.plan_rows(GRID, 90, **AT).release(X, words)
    assert rows.predict_proba(POINTS).shape == (8, 2)
    assert rows.classes == ("early", "late")


def test_what_was_given_and_people_count_for_them_too(made):
    known = made("known yes/no")
    both = YES_NO.plan(X, given=[known], **AT).release(YES)
    stds = [one.predict(POINTS, return_std=True)[1].mean() for one in (both, known)]
    assert stds[0] < stds[1]
    release = YES_NO.plan(X, people=np.arange(90) // 3, **AT).release(YES)
    assert release.certificate.unit == "one person"
    assert ((release.predict(POINTS) > 0) & (release.predict(POINTS) < 1)).all()


COUNT_MODEL = {"outcome": "count", "bounds": (0, 9)}
REFUSED = {  # the argument that is named, and who asks
    "bounds beyond yes and no": ("bounds", lambda: AutoGP((0, 2), outcome="yes/no")),
    "bounds of classes": ("bounds", lambda: AutoGP((0, 5), classes=NAMES)),
    "counts without bounds": ("bounds", lambda: AutoGP(outcome="count")),
    "numbers without bounds": ("bounds", AutoGP),
    "counts below zero": ("bounds", lambda: AutoGP((-1, 5), outcome="count")),
    "no such outcome": ("outcome", lambda: AutoGP(outcome="perhaps")),
    "classes that are not named": ("outcome", lambda: AutoGP(outcome="classes")),
    "classes of counts": ("outcome", lambda: AutoGP((0, 9), outcome="count", classes=NAMES)),
    "noise of yes and no": ("noise", lambda: GP(KERNEL, 2.0, outcome="yes/no")),
    "means": ("mean", lambda: GP(KERNEL, mean=np.zeros(90), outcome="yes/no")),
    "a mean too far": ("mean", lambda: GP(KERNEL, mean=1e20, outcome="yes/no")),
    "a mean too low": ("mean", lambda: GP(KERNEL, 1.0, mean=-1e20, **COUNT_MODEL)),
    "a design": ("design", lambda: YES_NO.plan(X, design="max", **AT)),
    "a planner": ("outcome", lambda: YES_NO.planner(X, X_star=POINTS)),
    "a function": ("outcome", lambda: YES_NO.plan_function(X, **PROMISE)),
    "given classes": ("given", lambda: GP(KERNEL, classes=NAMES).plan(X, given=[object()], **AT)),
}
ASKED = {
    "a covariance": ("return_cov", lambda made: made("yes/no").predict(POINTS, return_cov=True)),
    "a variance of noise": (
        "include_noise",
        lambda made: made("yes/no").predict(POINTS, return_std=True, include_noise=0.3),
    ),
    "an interval of outcomes": (
        "include_noise",
        lambda made: made("yes/no").interval(POINTS, include_noise=True),
    ),
    "all of it": ("level", lambda made: made("yes/no").interval(POINTS, level=1.0)),
    "given to numbers": (
        "given[0]",
        lambda made: GP(KERNEL, 1.0, (0, 1)).plan(X, given=[made("known yes/no")], **AT),
    ),
    "combined": (
        "releases[0]",
        lambda made: cloakgp.combine([made("counts"), made("known yes/no")], same_data=False),
    ),
}


@pytest.mark.parametrize("name", [*REFUSED, *ASKED])
def test_what_makes_no_sense_is_refused_by_name(name, made):
    argument, ask = (REFUSED | ASKED)[name]
    with pytest.raises(cloakgp.ArgumentError) as caught:
        ask() if name in REFUSED else ask(made)
    assert caught.value.name == argument
