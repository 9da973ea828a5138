"""Choosing a model privately: the plan, the choice, and what each refuses."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit

import cloakgp
from cloakgp import selection
from cloakgp.core import accounting
from cloakgp.core.errors import ArgumentError
from cloakgp.kernels import EQ, Constant, Matern, Periodic
from cloakgp.ledger import BudgetExceeded
from cloakgp.measure.unit import PERSON
from cloakgp.private import room

BOUNDS = (0.0, 10.0)
X = np.linspace(0.0, 20.0, 40)


def waves(seed=0):
    """Outcomes that a lengthscale of about 2 fits best."""
    return 5 + 3 * np.sin(X) + np.random.default_rng(seed).normal(scale=0.3, size=len(X))


def models(**changes):
    arguments = {
        "kernel": EQ,
        "lengthscale": [0.05, 1.5, 500.0],
        "variance": 9.0,
        "noise": [0.1, 20.0],
        "bounds": BOUNDS,
    }
    return cloakgp.candidates(**{**arguments, **changes})


def plan(**changes):
    arguments = {"candidates": models(), "X": X, "epsilon": 1.0}
    return cloakgp.plan_selection(**{**arguments, **changes})


# The choice


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("folds", [5, ShuffleSplit(30, test_size=0.2, random_state=0)], ids=["5", "shuffle"])
def test_the_right_model_is_chosen_when_epsilon_is_large(loss, folds):
    chosen = plan(epsilon=3000.0, loss=loss, folds=folds).select(waves())
    assert chosen.index == 2
    assert chosen.gp.kernel == EQ(1.5, variance=9.0)
    assert chosen.gp.noise == 0.1


def test_the_choice_is_near_uniform_when_epsilon_is_small():
    study = plan(epsilon=1e-6).custodian_probabilities(waves())
    np.testing.assert_allclose(study.probabilities, 1 / 6, rtol=1e-5)


def test_losses_are_those_of_cross_validation(textbook):
    y = waves()
    sp = plan(loss_clip=9.0)
    for gp, loss in zip(sp.candidates, sp.custodian_probabilities(y).losses, strict=True):
        errors = []
        for train, test in sp.folds:
            mean, _ = textbook(gp.kernel, gp.noise, gp.mean, sp.X[train], sp.X[test], y[train])
            errors.append(np.minimum(np.abs(y[test] - mean), 9.0))
        assert loss == pytest.approx(np.mean(np.concatenate(errors) ** 2), rel=1e-4)


def test_nothing_but_the_choice_comes_out():
    chosen = plan().select(waves())
    assert [f.name for f in fields(chosen)] == ["plan", "z", "receipt"]
    other = plan().select(10 - waves(1))
    assert chosen.certificate == other.certificate


def test_a_ledger_pays_and_remembers_the_choice(tmp_path):
    ledger = cloakgp.Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("waves", epsilon=1.0, delta=0.01)
    sp = plan(epsilon=0.3)
    chosen = sp.select(waves(), ledger=ledger, dataset="waves", request="model")
    assert sp.select(None, ledger=ledger, dataset="waves", request="model").index == chosen.index
    assert sp.recover(ledger, chosen.receipt.entry).index == chosen.index
    assert ledger.balance("waves").events == (sp.cost,)
    parts = accounting.split(1.0, 0.01, 0.3)
    release = chosen.gp.plan(sp.X, X_star=sp.X[:5], epsilon=parts.epsilon, delta=parts.delta)
    released = release.release(waves(), ledger=ledger, dataset="waves")
    assert ledger.verify([chosen, released]).releases == 2
    with pytest.raises(BudgetExceeded):
        sp.select(None, ledger=ledger, dataset="waves")  # y is not even looked at


def test_the_digest_tells_plans_apart():
    """Settings, the order of candidates, the release to come, and kernels that have no words."""
    same = plan().digest
    assert plan().digest == same
    changes = [{"epsilon": 0.9}, {"folds": 4}, {"loss": "absolute"}, {"loss_clip": 3.0}]
    changes += [{"candidates": models()[::-1]}]
    promised = [([5.0, 6.0], 1.0), ([5.0, 7.0], 1.0), ([5.0, 6.0], 1.000001)]
    changes += [{"plan_for": (np.array(x), e, 1e-3, "mse")} for x, e in promised]

    def made(lengthscale):
        return lambda X, Z: EQ(lengthscale)(X, Z)

    gps = [cloakgp.GP(made(lengthscale), 0.1, BOUNDS) for lengthscale in (1.0, 5.0)]
    changes += [{"candidates": gps}, {"candidates": gps[::-1]}]
    plans = [plan(**change) for change in changes]
    assert len({same, *(sp.digest for sp in plans)}) == 11
    # What is asked is the same on every machine: of whom, and about what, without the integers.
    assert len({plan().question_digest, *(sp.question_digest for sp in plans[:5])}) == 6
    assert {sp.question_digest for sp in plans[5:8]} == {plan().question_digest}


@pytest.mark.parametrize("changes", [{"epsilon": 1e-6}, {"unit": PERSON.name}])
def test_a_forged_certificate_changes_the_price_of_nothing_and_is_refused(changes):
    """What is charged and certified is what the choice is drawn with."""
    sp = plan(epsilon=5.0)
    forged = replace(sp, certificate=replace(sp.certificate, **changes))
    assert forged.cost == accounting.Exponential(5.0)
    with pytest.raises(AssertionError, match="certificate"):
        forged.select(None)  # y is not even looked at


def test_different_prior_means_and_noises_per_row():
    gps = [
        cloakgp.GP(EQ(1.5, variance=9.0), noise, BOUNDS, mean)
        for noise in (0.1, np.linspace(0.1, 0.3, 40))
        for mean in (5.0, -300.0)
    ]
    losses = plan(candidates=gps, epsilon=100.0).custodian_probabilities(waves()).losses
    assert (losses[::2] < losses[1::2]).all()


def test_missing_outcomes():
    y = waves()
    filled = y.copy()
    y[3], filled[3] = np.nan, 5.0
    sp = plan()
    with pytest.raises(ValueError, match=r"y must be finite.*Nothing was spent"):
        sp.select(y)
    assert sp.select(y, missing="midpoint").gp in sp.candidates
    found, expected = (sp.custodian_probabilities(v, missing="midpoint").losses for v in (y, filled))
    np.testing.assert_array_equal(found, expected)


# What the plan says


def test_the_certificate_says_what_is_promised():
    sp = plan(epsilon=0.5)
    c = sp.certificate
    assert sp.cost == accounting.Exponential(0.5)
    assert c.sensitivity == sp.sensitivity
    assert c.loss_clip == 2.5  # a quarter of the bounds' width
    assert (c.n_folds, c.n_tested, c.n_rows) == (5, 40, 40)
    assert json.loads(json.dumps(c.to_dict()))["unit"] == "one row"
    assert "0.5-differential privacy of y, unit: one row" in str(c)


def test_the_sensitivity_is_in_the_losss_own_units():
    """Below the sum of everything that could change, above what the tested row alone changes."""
    squared, absolute = plan().sensitivity, plan(loss="absolute").sensitivity
    assert 2.5**2 < squared < 40 * 2.5**2
    assert 2.5 < absolute < 40 * 2.5
    scaled = models(bounds=(0.0, 1000.0), variance=9e4, noise=[1e3, 2e5])
    assert plan(candidates=scaled).sensitivity == pytest.approx(1e4 * squared, rel=1e-5)


def test_a_plan_can_be_kept_and_cannot_be_changed():
    sp = pickle.loads(pickle.dumps(plan()))  # noqa: S301
    sp.select(waves())
    with pytest.raises(AttributeError):
        sp.X = X
    with pytest.raises(ValueError, match="read-only"):
        plan().scores.matrices[0][0, 0] = 1


def test_insecure_choices_are_marked_and_repeatable(seeded):
    sp = plan()
    with seeded(3):
        first = sp.select(waves())
    with seeded(3):
        second = sp.select(waves())
    assert first.index == second.index
    assert first.certificate.insecure
    assert repr(first).startswith("<INSECURE Selection: candidate ")
    assert str(first.certificate).startswith("INSECURE")
    assert not sp.certificate.insecure
    assert "INSECURE" not in repr(sp.select(waves()))


def test_the_study_says_that_it_is_private():
    study = plan().custodian_probabilities(waves())
    assert "PRIVATE" in repr(study)
    assert not any(f"{loss:.3f}" in repr(study) for loss in study.losses)


# The release to come


def test_plan_for_adds_what_the_noise_costs():
    gps, release = models(noise=[0.1]), (np.linspace(0, 20, 7), 0.5, 0.01, "mse")
    without, counted = plan(candidates=gps), plan(candidates=gps, plan_for=release)
    y = waves()
    added = counted.custodian_probabilities(y).losses - without.custodian_probabilities(y).losses
    plans = [gp.plan(X, X_star=release[0], epsilon=0.5, delta=0.01, design="mse") for gp in gps]
    np.testing.assert_allclose(added, [np.mean(p.noise_std**2) for p in plans], rtol=1e-4)
    assert counted.sensitivity == pytest.approx(without.sensitivity, rel=1e-6)
    assert counted.certificate.plan_for == "a (0.5, 0.01)-DP release, mse design, 7 test points"
    assert counted.certificate.plan_for in str(counted.certificate)


@pytest.mark.parametrize("design", ["posterior", "max"])
def test_plan_for_posterior_and_absolute_loss(design):
    gps, X_star, y = models(noise=[0.1]), np.linspace(0, 20, 7), waves()
    plans = [
        plan(candidates=gps, loss="absolute", plan_for=release)
        for release in (None, (X_star, 1.0, 0.01, design))
    ]
    added = np.subtract(*(sp.custodian_probabilities(y).losses for sp in plans[::-1]))
    for gp, cost in zip(gps, added, strict=True):
        p = gp.plan(X, X_star=X_star, epsilon=1.0, delta=0.01, design=design)
        std = math.sqrt(p.certificate.objective) if design == "posterior" else p.noise_std.mean()
        assert cost == pytest.approx(math.sqrt(2 / math.pi) * std, rel=1e-3)


# Refusals


MADE = [
    ({"noise": []}, ValueError, "noise"),
    ({"period": 3.0}, TypeError, "kernel"),
    ({"lengthscale": "a"}, TypeError, "lengthscale"),
    ({"kernel": 3}, TypeError, "kernel"),
    ({"kernel": EQ(1.0), "period": 2.0}, ValueError, "period"),
    ({"kernel": EQ(3.0) + Constant(4.0)}, ValueError, "variance"),  # which both have
    ({"kernel": lambda lengthscale, variance: 3}, TypeError, "kernel"),
]
CANDIDATES = [
    (models()[0], TypeError, "candidates"),
    (3, TypeError, "candidates"),
    ([], ValueError, "candidates"),
    (models()[:1], ValueError, "candidates"),
    ([models()[0], EQ(1.0)], TypeError, "candidates[1]"),
    ([*models(), *models(bounds=(0, 9))], ValueError, "candidates[6]"),
    ([*models(), models()[1]], ValueError, "candidates[6]"),
    (models(noise=[[1.0] * 39, [2.0] * 40]), ValueError, "noise"),
    ([cloakgp.GP(EQ(1.0), classes=(0, 1))] * 2, ValueError, "candidates[0]"),
    ([cloakgp.GP(EQ(1.0), 1.0, BOUNDS, inducing=5)] * 2, ValueError, "candidates[0]"),
    ([cloakgp.GP(EQ(1.0), 1.0, BOUNDS, downweight="leverage")] * 2, ValueError, "candidates[0]"),
]
PLANS_FOR = [
    *((bad, ValueError, "plan_for") for bad in (3, ([1.0], 1.0, 0.01))),
    (([1.0], -1.0, 0.01, "mse"), ValueError, "plan_for: epsilon"),
    (([1.0], 1.0, 2.0, "mse"), ValueError, "plan_for: delta"),
    (([1.0], 1.0, 0.01, "best"), ValueError, "plan_for: design"),
    (([[1.0, 2.0]], 1.0, 0.01, "mse"), ValueError, "plan_for: X_star"),
    (("ab", 1.0, 0.01, "mse"), TypeError, "plan_for: X_star"),
]
BAD = [
    *(({"candidates": bad}, *why) for bad, *why in CANDIDATES),
    *(({"plan_for": bad}, *why) for bad, *why in PLANS_FOR),
    ({"X": np.array([[np.nan]] * 40)}, ValueError, "X"),
    *(({"epsilon": bad}, ValueError, "epsilon") for bad in (0.0, math.inf)),
    ({"epsilon": "1"}, TypeError, "epsilon"),
    ({"loss": "log"}, ValueError, "loss"),
    *(({"loss_clip": bad}, ValueError, "loss_clip") for bad in (0.0, 1e9)),
    ({"loss_clip": "a"}, TypeError, "loss_clip"),
    ({"folds": 1}, ValueError, "folds"),
]


@pytest.mark.parametrize(
    ("make", "change", "error", "name"),
    [*((plan, *bad) for bad in BAD), *((models, *bad) for bad in MADE)],
)
def test_bad_arguments_are_refused_by_name(make, change, error, name):
    with pytest.raises(error) as caught:
        make(**change)
    assert isinstance(caught.value, ArgumentError)
    assert caught.value.name == name


def test_what_would_not_fit_in_memory_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(selection, "residuals", lambda *_: pytest.fail("work was done"))
    with pytest.raises(ArgumentError) as caught:
        plan(X=np.arange(5000.0), folds=ShuffleSplit(40, test_size=0.5, random_state=0))
    assert (caught.value.name, caught.value.got) == ("folds", "11.2 GiB")
    with pytest.raises(ArgumentError, match="Nothing was spent") as caught:
        plan(X=np.arange(20_000.0))
    assert (caught.value.name, caught.value.got) == ("X", "20000 rows")


def test_a_failing_sampler_is_not_quoted(monkeypatch):
    def leaky(exact):
        raise OverflowError(f"cannot cast {exact}")

    monkeypatch.setattr(room, "noisy_minimum", lambda scores: leaky)
    with pytest.raises(RuntimeError, match=r"OpenDP failed to add noise; nothing was released\.$") as caught:
        plan().select(waves())
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


# The candidates


@pytest.mark.parametrize(
    ("kernel", "parameters", "expected"),
    [
        (Periodic, {"lengthscale": 1.0, "period": 7.0}, [Periodic(1.0, period=7.0)]),
        (Matern, {"lengthscale": 1.0, "nu": [1.5, 0.5]}, [Matern(1.0, 1.5), Matern(1.0, 0.5)]),
        (EQ, {"lengthscale": [(1.0, 2.0)]}, [EQ((1.0, 2.0))]),
        (EQ(3.0, variance=2.0), {}, [EQ(3.0, variance=2.0)]),
        (EQ(3.0, variance=2.0), {"lengthscale": [1.0]}, [EQ(1.0, variance=2.0)]),
        (EQ(3.0) + Constant(4.0), {"lengthscale": [1.0, 2.0]}, [EQ(a) + Constant(4.0) for a in (1.0, 2.0)]),
        (2.0 * (EQ(3.0) + Constant(4.0)), {"lengthscale": 1.0}, [2.0 * (EQ(1.0) + Constant(4.0))]),
    ],
)
def test_candidates_of_a_class_and_of_a_kernel_in_which_parameters_are_replaced(kernel, parameters, expected):
    gps = cloakgp.candidates(kernel=kernel, **parameters, noise=[np.ones(4)], bounds=(0, 1))
    assert [gp.kernel for gp in gps] == expected
    assert gps[0].noise.shape == (4,)
