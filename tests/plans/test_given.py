"""Plans that take earlier releases into account: what is new is paid for, and all of it predicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cloakgp
from cloakgp import GP, AutoGP, testing
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.kernels import EQ, Constant
from cloakgp.plans import given, staged_planner
from cloakgp.plans.opening import charged_plan

BOUNDS = (0.0, 10.0)
PROMISE = {"epsilon": 0.5, "delta": 1e-3}
GP_ = GP(EQ(0.3, variance=4.0) + Constant(4.0), noise=0.25, bounds=BOUNDS)
X_STAR = np.linspace(0, 1, 7)[:, None]


def curve(X):
    return 5 + 2 * np.sin(5 * X[:, 0])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 1)).round(2)
    return X, curve(X) + 0.5 * rng.normal(size=len(X))


@pytest.fixture(scope="module")
def earlier(table):
    X, y = table
    return GP_.plan(X, X_star=X_STAR, design="posterior", **PROMISE).release(y)


@pytest.fixture(scope="module")
def later(table, earlier):
    X, y = table
    return GP_.plan(X, X_star=X_STAR, given=[earlier], windows=2.0, **PROMISE).release(y)


def test_combine_says_what_to_do_with_releases_in_stages(earlier, later):
    with pytest.raises(TypeError, match=r"plan another one with given=.*other people, say same_data=False"):
        cloakgp.combine([earlier, later])


def test_the_second_release_predicts_from_both(earlier, later, table):
    before, after = (one.predict(X_STAR, return_std=True)[1] for one in (earlier, later))
    assert (after < before).all()
    X, y = table
    same = cloakgp.combine([earlier, GP_.plan(X, X_star=X_STAR, design="posterior", **PROMISE).release(y)])
    without = same.predict(X_STAR, return_std=True)[1]
    assert after.mean() < without.mean()  # windows and a design for what is unknown pay


def test_without_windows_it_is_the_plain_posterior_of_both(table, earlier):
    """Conditioned on two measurements whose outcomes were clipped to the bounds only."""
    X, y = table
    release = GP_.plan(X, X_star=X_STAR, given=[earlier], **PROMISE).release(y)
    measured = [
        (earlier.plan.measurement, earlier.z),
        (release.stages[0].plan.measurement, release.stages[0].z),
    ]
    plain = cloakgp.Posterior(GP_, X, measured)
    for mine, other in zip(
        release.predict(X_STAR, return_std=True), plain.predict(X_STAR, return_std=True), strict=True
    ):
        assert np.allclose(mine, other, rtol=1e-9, atol=1e-9)


def test_it_costs_only_what_is_new(later, earlier):
    alone = GP_.plan(earlier.plan.X, X_star=X_STAR, design="posterior", **PROMISE).cost
    assert later.plan.cost.mu == pytest.approx(alone.mu, rel=1e-6)
    assert (later.certificate.epsilon, later.certificate.delta) == (0.5, 1e-3)


def test_both_costs_are_listed(later):
    """A joint promise is a matter of a budget that was fixed beforehand: the ledger's."""
    assert later.certificate.before == ((0.5, 1e-3),)
    assert "spent before, too: (0.5, 0.001)" in str(later.certificate)


def test_windows_follow_what_was_said_before(later, earlier, table):
    stage = later.stages[0]
    X = later.plan.rule.inputs.X
    mean, std = earlier.predict(X, return_std=True, include_noise=True)
    inside = (stage.lower > BOUNDS[0]) & (stage.upper < BOUNDS[1])
    assert inside.any()
    assert np.allclose(stage.lower[inside], (mean - 2 * std)[inside], atol=1e-6)
    assert np.allclose(stage.upper[inside], (mean + 2 * std)[inside], atol=1e-6)
    assert stage.lower.min() >= BOUNDS[0]
    assert stage.upper.max() <= BOUNDS[1]


def test_the_file_holds_what_was_given(later, tmp_path):
    path = tmp_path / "later.cloak"
    later.save(path)
    again = cloakgp.StagedRelease.load(path)
    assert again.plan.digest == later.plan.digest
    assert np.abs(again.predict(X_STAR) - later.predict(X_STAR)).max() < 1e-9
    assert charged_plan(later.plan.to_bytes()).digest == later.plan.digest


def test_a_learned_model_goes_on_from_any_release(table, earlier):
    X, y = table
    auto = AutoGP(BOUNDS, stages=1)
    second = auto.plan(X, X_star=X_STAR, given=[earlier], **PROMISE).release(y)
    assert (
        second.stages[0].distance is not None
    )  # something is known of the mean: the noise level is measured
    third = auto.plan(X, X_star=X_STAR, given=[second], **PROMISE).release(y)
    assert len(third.plan.rule.given) == 2  # what was given to the second counts too
    assert len(third.learned.posteriors[0]._released) == 3  # predictions are from all of them
    assert np.array_equal(third.plan.rule.given[0].stages[0].answer, earlier.z)


def test_what_is_given_twice_counts_once(table, earlier):
    X, y = table
    auto = AutoGP(BOUNDS, stages=1)
    second = auto.plan(X, X_star=X_STAR, given=[earlier], **PROMISE).release(y)
    with pytest.raises(ArgumentError, match="one is there twice"):
        auto.plan(X, X_star=X_STAR, given=[earlier, earlier], **PROMISE)
    both = auto.plan(X, X_star=X_STAR, given=[earlier, second], **PROMISE)  # the second holds the first
    assert len(both.rule.given) == 2


def test_a_file_holds_whatever_windows_and_stages_a_plan_may_have(table, earlier, tmp_path, monkeypatch):
    """What no file could hold is refused before it is paid for."""
    X, y = table
    path = tmp_path / "release"
    for windows in (100.0, 1e300):
        with pytest.raises(ArgumentError, match="windows must be below 100"):
            GP_.plan(X, X_star=X_STAR, given=[earlier], windows=windows, **PROMISE)
    GP_.plan(X, X_star=X_STAR, given=[earlier], windows=99.0, **PROMISE).release(y).save(path)
    assert cloakgp.verify(path).complete
    # 90 stages of nothing but answers: how they came about does not matter here.
    one = given.taken(
        [earlier], X, AutoGP(BOUNDS, stages=1).plan(X, X_star=X_STAR, **PROMISE).rule.inputs.groups
    )
    many = tuple(replace(one[0], stages=one[0].stages * 10) for _ in range(9))
    monkeypatch.setattr(staged_planner, "taken", lambda *_: many)
    with pytest.raises(ArgumentError, match="given must have no more than 100 stages in all"):
        AutoGP(BOUNDS, stages=11).plan(X, X_star=X_STAR, given=[earlier], **PROMISE)
    assert AutoGP(BOUNDS, stages=10).plan(X, X_star=X_STAR, given=[earlier], **PROMISE).stages == 10


@pytest.mark.parametrize("model", [GP_, AutoGP(BOUNDS, stages=1)], ids=["GP", "AutoGP"])
class TestRefusals:
    def plan(self, model, X, given):
        return model.plan(X, X_star=X_STAR, given=given, **PROMISE)

    def test_other_rows(self, model, table, earlier):
        X = table[0].copy()
        X[3] += 0.1
        with pytest.raises(ArgumentError, match=r"given\[0\] must be of the same rows"):
            self.plan(model, X, [earlier])

    def test_insecure(self, model, table):
        X, y = table
        with pytest.warns(testing.InsecureWarning), testing.insecure_seed(1):
            fake = GP_.plan(X, X_star=X_STAR, **PROMISE).release(y)
        with pytest.raises(ArgumentError, match="INSECURE"):
            self.plan(model, X, [fake])

    def test_a_whole_function(self, model, table):
        X, y = table
        function = GP_.plan_function(X, **PROMISE).release(y)
        with pytest.raises(ArgumentError, match="whole function"):
            self.plan(model, X, [function])

    def test_no_release_at_all(self, model, table, earlier):
        with pytest.raises(ArgumentTypeError, match=r"given\[0\] must be a release"):
            self.plan(model, table[0], ["earlier.cloak"])
        with pytest.raises(ArgumentTypeError, match="given must be a list"):
            self.plan(model, table[0], earlier)

    def test_other_people(self, model, table, tmp_path):
        pytest.importorskip("sqlalchemy")
        X, y = table
        ledger = cloakgp.Ledger(f"sqlite:///{tmp_path}/budget.db")
        for name in ("ours", "theirs"):
            ledger.create(name, epsilon=3.0, delta=0.01)
        plan = GP_.plan(X, X_star=X_STAR, **PROMISE)
        paid = [plan.release(y, ledger=ledger, dataset=name) for name in ("ours", "theirs")]
        with pytest.raises(ArgumentError, match="must be of one data set"):
            self.plan(model, X, paid)
        more = self.plan(model, X, paid[:1])
        with pytest.raises(ArgumentError, match="'ours'"):
            more.release(y, ledger=ledger, dataset="theirs")
        assert len(ledger.balance("theirs").events) == 1  # nothing was spent
        more.release(y, ledger=ledger, dataset="ours")
        assert len(ledger.balance("ours").events) == 2


def test_windows_need_earlier_releases(table):
    with pytest.raises(ArgumentError, match="windows needs earlier releases"):
        GP_.plan(table[0], X_star=X_STAR, windows=2.0, **PROMISE)


def test_noise_per_row_is_refused(table, earlier):
    gp = GP(GP_.kernel, np.full(120, 0.25), BOUNDS)
    with pytest.raises(ArgumentError, match="one noise variance"):
        gp.plan(table[0], X_star=X_STAR, given=[earlier], **PROMISE)
