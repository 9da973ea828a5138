"""Plans that take earlier releases into account: what is new is paid for, and all of it predicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cloakgp
from cloakgp import GP, AutoGP, testing
from cloakgp.core.errors import ArgumentError
from cloakgp.kernels import EQ, Constant
from cloakgp.release import staged_planner

BOUNDS = (0.0, 10.0)
PROMISE = {"epsilon": 0.5, "delta": 1e-3}
GP_ = GP(EQ(0.3, variance=4.0) + Constant(4.0), noise=0.25, bounds=BOUNDS)
X_STAR = np.linspace(0, 1, 7)[:, None]
AT = {"X_star": X_STAR, **PROMISE}


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
    return GP_.plan(X, design="posterior", **AT).release(y)


@pytest.fixture(scope="module")
def later(table, earlier):
    X, y = table
    return GP_.plan(X, given=[earlier], windows=2.0, **AT).release(y)


def test_the_second_release_predicts_from_both(earlier, later, table):
    X, y = table
    other = GP_.plan(X, design="posterior", **AT)
    plain = cloakgp.combine([earlier, other.release(y)])
    before, after, without = (one.predict(X_STAR, return_std=True)[1] for one in (earlier, later, plain))
    assert (after < before).all()
    assert after.mean() < without.mean()  # windows and a design for what is unknown pay
    # It costs only what is new. A joint promise is a matter of a budget fixed beforehand: the ledger's.
    assert later.plan.cost.mu == pytest.approx(other.cost.mu, rel=1e-6)
    assert (later.certificate.epsilon, later.certificate.delta) == (0.5, 1e-3)
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


def test_a_learned_model_goes_on_from_any_release(table, earlier):
    X, y = table
    auto = AutoGP(BOUNDS, stages=1)
    second = auto.plan(X, given=[earlier], **AT).release(y)
    # Something is known of the mean: the noise level is measured.
    assert second.stages[0].spread is not None
    third = auto.plan(X, given=[second], **AT).release(y)
    assert len(third.plan.given) == 2  # what was given to the second counts too
    # Predictions are from all of them, and two measured what their windows cut off, too.
    assert len(third.learned.posteriors[0]._released) == 5
    assert np.array_equal(third.plan.given[0].stages[0].answer, earlier.z)
    both = auto.plan(X, given=[earlier, second], **AT)  # the second holds the first
    assert len(both.given) == 2


def test_a_file_holds_whatever_windows_and_stages_a_plan_may_have(table, earlier, tmp_path, monkeypatch):
    """What no file could hold is refused before it is paid for."""
    X, y = table
    GP_.plan(X, given=[earlier], windows=99.0, **AT).release(y).save(tmp_path / "release")
    assert cloakgp.verify(tmp_path / "release").complete
    # 90 stages of nothing but answers: how they came about does not matter here.
    one = AutoGP(BOUNDS, stages=1).plan(X, given=[earlier], **AT).given[0]
    many = tuple(replace(one, stages=one.stages * 10) for _ in range(9))
    monkeypatch.setattr(staged_planner, "earlier_releases", lambda *_: many)
    with pytest.raises(ArgumentError, match="given must have no more than 100 stages in all"):
        AutoGP(BOUNDS, stages=10).plan(X, given=[earlier], **AT)
    assert AutoGP(BOUNDS, stages=9).plan(X, given=[earlier], **AT).stages == 10


def moved(X):
    return np.where(np.arange(len(X)) == 3, 0.1, 0.0)[:, None] + X


def insecure(X, y):
    with pytest.warns(testing.InsecureWarning), testing.insecure_seed(1):
        return GP_.plan(X, **AT).release(y)


REFUSED = {  # what is given, and the argument that is named
    "other rows": (lambda X, y: {"given": [GP_.plan(moved(X), **AT).release(y)]}, "given[0]"),
    "insecure": (lambda X, y: {"given": [insecure(X, y)]}, "given[0]"),
    "a function": (lambda X, y: {"given": [GP_.plan_function(X, **PROMISE).release(y)]}, "given[0]"),
    "a path": (lambda X, y: {"given": ["earlier.cloak"]}, "given[0]"),
    "numbers": (lambda X, y: {"given": np.ones(2)}, "given[0]"),
    "a number": (lambda X, y: {"given": np.array(1.0)}, "given"),
    "zero": (lambda X, y: {"given": 0}, "given"),
    "no list": (lambda X, y: {"given": GP_.plan(X, **AT).release(y)}, "given"),
    "one twice": (lambda X, y: {"given": [GP_.plan(X, **AT).release(y)] * 2}, "given"),
}
OF_GP = {
    "noise per row": (lambda X, y: {"given": [GP_.plan(X, **AT).release(y)]}, "given"),
    "windows of nothing": (lambda X, y: {"windows": 2.0}, "windows"),
    **{
        f"windows of {wide:g}": (
            lambda X, y, wide=wide: {"given": [GP_.plan(X, **AT).release(y)], "windows": wide},
            "windows",
        )
        for wide in (100.0, 1e300)
    },
}
PER_ROW = GP(GP_.kernel, np.full(120, 0.25), BOUNDS)
MODELS = {"GP": GP_, "AutoGP": AutoGP(BOUNDS, stages=1)}


@pytest.mark.parametrize(
    ("name", "model"),
    [*((name, model) for name in REFUSED for model in MODELS), *((name, "GP") for name in OF_GP)],
)
def test_what_cannot_be_taken_into_account_is_refused_by_name(name, model, table):
    options, argument = (REFUSED | OF_GP)[name]
    with pytest.raises(ArgumentError) as caught:
        (PER_ROW if name == "noise per row" else MODELS[model]).plan(table[0], **AT, **options(*table))
    assert caught.value.name == argument


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_other_people(model, table, tmp_path):
    pytest.importorskip("sqlalchemy")
    X, y = table
    ledger = cloakgp.Ledger(f"sqlite:///{tmp_path}/budget.db")
    for name in ("ours", "theirs"):
        ledger.create(name, epsilon=3.0, delta=0.01)
    plan = GP_.plan(X, **AT)
    paid = [plan.release(y, ledger=ledger, dataset=name) for name in ("ours", "theirs")]
    with pytest.raises(ArgumentError, match="must be of one data set"):
        model.plan(X, given=paid, **AT)
    more = model.plan(X, given=paid[:1], **AT)
    with pytest.raises(ArgumentError, match="'ours'"):
        more.release(y, ledger=ledger, dataset="theirs")
    assert len(ledger.balance("theirs").events) == 1  # nothing was spent
    more.release(y, ledger=ledger, dataset="ours")
    assert len(ledger.balance("ours").events) == 2
