"""What every release answers, whatever was planned: kept in files and ledgers, shown, refused, spent once."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field
from html import escape as html_escape
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cloakgp
from cloakgp.core.errors import ArgumentError
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ, Category, Matern32
from cloakgp.ledger.chain import BudgetExceeded
from cloakgp.release.encoding import encode
from cloakgp.release.plan import Plan, recover_from

N = 24
X = np.sort(np.random.default_rng(4).uniform(0, 9, N))[:, None]
Y = np.random.default_rng(5).uniform(0, 4, N)
IDS = np.arange(N) // 3
PROMISE = {"epsilon": 1.0, "delta": 0.01}
AT = {"X_star": X[:3], **PROMISE}
BOUNDS = (0.0, 4.0)
GP = cloakgp.GP(EQ(3.0) + Matern32(1.0), 0.5, BOUNDS)
PER_ROW = cloakgp.GP(EQ(3.0), np.geomspace(0.1, 1, N), (np.zeros(N), np.linspace(3, 4, N)), np.full(N, 1.5))
AUTO = cloakgp.AutoGP(BOUNDS, stages=2)
GRID = cloakgp.Grid({"age": (0.0, 9.0)}, 4)
TABLE = pd.DataFrame({"age": X[:, 0], "site": ["north", "south"] * 12, "who": IDS})
WORDS = np.resize(["a", "b", "c"], N)
FUNCTION = ["released", "noise_std"]
DIRECT = ["prediction", "std", "lower", "upper", "released", "noise_std"]
LEARNED = ["prediction", "std", "lower", "upper", "noise_std"]


@dataclass
class Kind:
    plan: Callable[[], Plan]
    shown: list[str]
    """Columns of its table."""
    outcomes: Any = field(default_factory=lambda: Y)
    table: dict[str, Any] = field(default_factory=lambda: {"X": X})
    """What a plan file and a verifier are given again."""
    private: dict[str, Any] = field(default_factory=dict)
    complete: bool = True
    """Whether a verifier can check all of its file."""


def rows(plan: Callable[[], Plan], outcomes: Any = Y, **more: Any) -> Kind:
    return Kind(plan, LEARNED, outcomes, {}, {"X": X}, **more)


KINDS = {
    **{
        design: Kind(lambda design=design: GP.plan(X, design=design, weights=[1, 2, 3], **AT), DIRECT)
        for design in DESIGNS
    },
    "per row": Kind(lambda: PER_ROW.plan(X, **AT), DIRECT, complete=False),
    "people": Kind(lambda: GP.plan(X, people=IDS, within=0.3, **AT), DIRECT, table={"X": X, "people": IDS}),
    "inducing": Kind(
        lambda: cloakgp.GP(EQ(3.0), 0.5, BOUNDS, 1.0, inducing=5, approximation="fitc").plan(X, **AT), DIRECT
    ),
    "leverage": Kind(
        lambda: cloakgp.GP(EQ(3.0), 0.5, BOUNDS, downweight="leverage").plan(X, **AT), DIRECT, complete=False
    ),
    "function": Kind(lambda: GP.plan_function(X, **PROMISE), FUNCTION),
    "function of people": Kind(
        lambda: GP.plan_function(X, people=IDS, **PROMISE), FUNCTION, table={"X": X, "people": IDS}
    ),
    "paper": Kind(
        lambda: cloakgp.GP(EQ(3.0), 0.5, BOUNDS).plan_function(X, bound="paper", **PROMISE), FUNCTION
    ),
    "on a basis": Kind(lambda: GP.plan_function(X, basis=[1.0, 4.0, 8.0], **PROMISE), FUNCTION),
    "hidden": Kind(
        lambda: GP.plan_function(X, bound="input-free", basis=[[1.0], [5.0]], **PROMISE),
        FUNCTION,
        complete=False,
    ),
    "learned": Kind(lambda: AUTO.plan(X, **PROMISE), LEARNED),
    "learned people": Kind(lambda: AUTO.plan(X, people=IDS, **AT), LEARNED, table={"X": X, "people": IDS}),
    "seasons": Kind(lambda: cloakgp.AutoGP(BOUNDS, stages=1, seasons={0: [2.0, 3.0]}).plan(X, **AT), LEARNED),
    "table": Kind(
        lambda: AUTO.plan(TABLE, people="who", X_star=TABLE[:3], **PROMISE),
        LEARNED,
        table={"X": TABLE, "people": "who"},
    ),
    "known table": Kind(
        lambda: cloakgp.GP(
            EQ(3.0, active_dims=["age"]) * Category(0.5, active_dims=["site"]), 0.5, BOUNDS
        ).plan(TABLE[["age", "site"]], X_star=TABLE[["age", "site"]][:3], **PROMISE),
        DIRECT,
        table={"X": TABLE[["age", "site"]]},
    ),
    "counts": Kind(
        lambda: cloakgp.GP(EQ(3.0), bounds=(0, 4), outcome="count").plan(X, **AT), LEARNED, np.rint(Y)
    ),
    "yes/no": Kind(lambda: cloakgp.GP(EQ(3.0), outcome="yes/no").plan(X, **AT), LEARNED, Y > 2),
    "two names": Kind(
        lambda: cloakgp.AutoGP(classes=("no", "yes"), stages=2).plan(X, **AT),
        LEARNED,
        np.where(Y > 2, "yes", "no"),
    ),
    "classes": Kind(
        lambda: cloakgp.AutoGP(classes=("a", "b", "c"), stages=1).plan(X, **AT),
        ["a", "a std", "a lower", "a upper", "a noise_std"],
        WORDS,
    ),
    "known classes": Kind(
        lambda: cloakgp.GP(EQ(3.0), classes=("a", "b", "c")).plan(X, **AT),
        ["a", "a std", "a lower", "a upper", "a noise_std"],
        WORDS,
    ),
    "whole rows": rows(lambda: AUTO.plan_rows(GRID, N, **PROMISE)),
    "people's rows": Kind(
        lambda: AUTO.plan_rows(GRID, 8, max_rows=3, X_star=X[:3], **PROMISE),
        LEARNED,
        table={},
        private={"X": X, "people": IDS},
        complete=False,
    ),
    "known rows": rows(lambda: GP.plan_rows(GRID, N, **PROMISE)),
    "yes/no rows": rows(lambda: cloakgp.GP(EQ(3.0), outcome="yes/no").plan_rows(GRID, N, **PROMISE), Y > 2),
}
HIDDEN = {"hidden"}


@dataclass
class Made:
    name: str
    kind: Kind
    plan: Plan
    release: cloakgp.Release

    def again(self, y: Any = None, **options: Any) -> cloakgp.Release:
        """One more release from the same plan."""
        return self.plan.release(y=self.kind.outcomes if y is None else y, **self.kind.private, **options)


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest, few_models: None) -> Made:
    kind = KINDS[request.param]
    plan = kind.plan()
    return Made(request.param, kind, plan, plan.release(y=kind.outcomes, **kind.private))


def answers(release: cloakgp.Release) -> list[Any]:
    """All numbers that readers ask for at the test points."""
    found = [release.mean, release.noise_std, *release.released_at(release.X_star)]
    if release.plan.denoises:
        found += release.predict(release.X_star, return_std=True)
    return [*found, release.query(X)] if release.plan.function is not None else found


def same(one: cloakgp.Release, other: cloakgp.Release) -> None:
    for got, wanted in zip(answers(one), answers(other), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_file_is_the_release(made, tmp_path):
    release, path = made.release.labelled(title="Heights"), tmp_path / "a.cloak"
    release.save(path)
    loaded = cloakgp.load(path)
    same(loaded, release)
    assert (repr(loaded), loaded.certificate, loaded.labels) == (
        repr(release),
        release.certificate,
        release.labels,
    )
    assert (loaded.plan.digest, loaded.plan.columns, loaded.classes) == (
        made.plan.digest,
        made.plan.columns,
        release.classes,
    )
    assert loaded.plan.hides_inputs == made.plan.hides_inputs == (loaded.plan.X is None)
    assert path.read_bytes() == encode(release) == encode(loaded)
    checked = cloakgp.verify(path)
    assert checked.complete == made.kind.complete
    assert checked.proven_delta is None if made.name in HIDDEN else checked.proven_delta <= 0.01


def test_a_pickle_is_the_release(made):
    same(pickle.loads(pickle.dumps(made.release)), made.release)  # noqa: S301


def test_it_is_shown_with_its_promise_and_without_predictions(made):
    release, plan = made.release, made.plan
    frame = release.to_frame()
    names = plan.columns.names if plan.columns is not None else tuple(GRID.names if plan.grid else ["x"])
    assert tuple(frame.columns[: len(names)]) == names
    assert list(frame.columns[len(names) :])[: len(made.kind.shown)] == made.kind.shown
    assert len(frame) == len(release.X_star)
    for shown in (plan, release):
        html = shown._repr_html_()
        assert "(1, 0.01)-differential privacy" in html
        assert html_escape(repr(shown)) in html
        assert "INSECURE" not in html
        assert f"(1, 0.01)-DP, unit {plan.unit}, " in repr(shown)
    noise = ["noise_std"] if plan.function is not None else ["expected_error", "noise_std", "gp_std"]
    assert list(plan.to_frame().columns)[len(names) :] == noise


def test_what_is_expected_is_what_comes_out(made):
    plan, release = made.plan, made.release
    assert (plan.cost.mu, plan.unit, plan.delta) == (
        release.certificate.mu,
        release.certificate.unit,
        release.certificate.delta,
    )
    for numbers in (plan.expected_error, plan.noise_std, plan.gp_std, plan.weights):
        assert numbers.shape == (len(plan.X_star),)
    if plan.alone:
        np.testing.assert_allclose(np.diag(plan.noise_cov), plan.noise_std**2, rtol=1e-6)
        np.testing.assert_array_equal(release.noise_std, plan.noise_std)
        np.testing.assert_array_equal(plan.noise_std, release.released_at(plan.X_star)[1])


def test_nothing_of_it_can_be_changed(made):
    release, before = made.release, made.release.mean.copy()
    integers = release.plan.measurement.matrix
    for array in (release.z, release.X_star, release.plan.weights, release.weights, integers):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for one, name in ((release, "plan"), (release, "stages"), (release, "mean"), (release.plan, "first")):
        with pytest.raises(FrozenInstanceError):
            setattr(one, name, None)
    for computed in (release.mean, release.noise_std, release.gp_std, release.plan.noise_std):
        if computed.flags.writeable:  # it is the caller's own
            computed[...] = 0
    np.testing.assert_array_equal(release.mean, before)
    assert (release.noise_std > 0).any()


def test_each_release_is_a_new_spend_with_new_noise(made):
    again = made.again()
    assert (again.stages[0].z != made.release.stages[0].z).any()
    assert "spends this once more" in str(again.certificate)


def test_noise_from_a_seed_is_said_everywhere(made, seeded, tmp_path):
    with seeded(1):
        one = made.again()
    with seeded(1):
        two = made.again()
    np.testing.assert_array_equal(one.z, two.z)
    assert "INSECURE" in repr(one)
    assert "INSECURE" in one._repr_html_()
    one.save(tmp_path / "file")
    with pytest.raises(cloakgp.VerificationError, match="INSECURE"):
        cloakgp.verify(tmp_path / "file")


def test_missing_outcomes_are_refused_or_filled(made, seeded):
    y = [None if row in (3, 7) else one for row, one in enumerate(np.asarray(made.kind.outcomes).tolist())]
    with pytest.raises(ValueError, match="missing='midpoint'"):
        made.again(y)
    with pytest.raises(ValueError, match="missing must be one of 'error', 'midpoint'"):
        made.again(y, missing="drop")
    with seeded(2):
        one = made.again(y, missing="midpoint")
    if made.kind.outcomes is Y:
        low, high = made.plan.limits
        if np.ndim(low):  # in the first stage, of each row
            low, high = 0.0, np.linspace(3, 4, N)
        with seeded(2):
            two = made.again(np.where(np.isin(np.arange(N), [3, 7]), (low + high) / 2, Y))
        np.testing.assert_array_equal(one.stages[0].z, two.stages[0].z)


def test_a_ledger_pays_once_and_answers_again(made, tmp_path):
    ledger = cloakgp.Ledger(f"sqlite:///{tmp_path / 'book.db'}")
    ledger.create("people", epsilon=1.5, delta=0.01)
    release = made.again(ledger=ledger, dataset="people", why="a test")
    paid = next(entry.number for entry in ledger.entries("people") if entry.kind == "spent")
    private = {"y": made.kind.outcomes, **made.kind.private}
    for again in (made.plan.recover(ledger, paid), made.plan.recover(ledger, paid, **private)):
        same(again, release)
    np.testing.assert_array_equal(recover_from(ledger, paid).z, release.z)
    release.save(tmp_path / "file")
    assert cloakgp.load(tmp_path / "file").receipt == release.receipt
    with pytest.raises(BudgetExceeded):
        made.again(ledger=ledger, dataset="people")


def test_a_plan_that_was_read_meets_no_outcomes(made, tmp_path):
    read = Plan.from_charged(made.plan.to_bytes())
    assert (read.digest, read.to_bytes()) == (made.plan.digest, made.plan.to_bytes())
    made.release.save(tmp_path / "a.cloak")
    for plan in (read, cloakgp.load(tmp_path / "a.cloak").plan):
        for ask in (
            lambda plan=plan: plan.release(y=made.kind.outcomes, **made.kind.private),
            lambda plan=plan: plan.save(tmp_path / "plan"),
        ):
            with pytest.raises(ArgumentError, match="your own table"):
                ask()


def test_a_plan_file_gives_the_same_plan_again(made, tmp_path):
    """It holds settings, digests and a certificate: no matrix, no X; of private inputs not even a digest."""
    plan, path = made.plan, tmp_path / "plan.json"
    plan.save(path)
    again = cloakgp.load_plan(path, **made.kind.table)
    assert (again.certificate, again.digest, again.question_digest) == (
        plan.certificate,
        plan.digest,
        plan.question_digest,
    )
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    body = json.loads(path.read_text())
    assert set(body) == {"format", "schema", "settings", "data", "certificate", "sha256"}
    digests = {} if plan.hides_inputs else {"inputs_sha256"}
    assert set(body["data"]) == {*digests, *({"people_sha256"} if plan.partition else ())}
    assert str(float(X[11, 0])) not in path.read_text()
