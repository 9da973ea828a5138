"""One way to read a file of whatever kind; and the readers of one kind say which to use for another."""

import numpy as np
import pytest

import cloakgp
from cloakgp.kernels import EQ
from cloakgp.plans.opening import encode_plan, encode_release, load_plan

X = np.linspace(0.0, 9.0, 12)[:, None]
GP = cloakgp.GP(EQ(3.0), noise=0.5, bounds=(0.0, 4.0))
PROMISE = {"epsilon": 1.0, "delta": 0.01}
PLANS = {
    "predictions": GP.plan(X, X_star=X[:3], **PROMISE),
    "function": GP.plan_function(X, **PROMISE),
    "staged": cloakgp.AutoGP((0.0, 4.0), stages=2).plan(X, X_star=X[:3], **PROMISE),
}
RELEASES = {kind: plan.release(np.ones(12)) for kind, plan in PLANS.items()}


@pytest.mark.parametrize("kind", PLANS)
def test_every_kind_is_loaded(kind, tmp_path):
    release, path = RELEASES[kind], tmp_path / "a.cloak"
    release.save(path)
    again = cloakgp.load(path)
    assert type(again) is type(release)
    np.testing.assert_array_equal(again.predict(X), release.predict(X))
    assert path.read_bytes() == encode_release(release) == encode_release(again)


@pytest.mark.parametrize("kind", PLANS)
def test_every_kind_of_plan_is_loaded(kind, tmp_path):
    plan, path = PLANS[kind], tmp_path / "a.plan"
    plan.save(path)
    again = load_plan(path)
    assert (type(again), again.digest) == (type(plan), plan.digest)
    assert path.read_bytes() == encode_plan(plan) == encode_plan(again)


@pytest.mark.parametrize("reader", [cloakgp.Release, cloakgp.FunctionRelease])
def test_the_other_readers_name_the_one_to_use(reader, tmp_path):
    RELEASES["staged"].save(tmp_path / "a.cloak")
    with pytest.raises(
        cloakgp.ReleaseFileError, match=r"holds a release in stages; read it with cloakgp\.load"
    ):
        reader.load(tmp_path / "a.cloak")


@pytest.mark.parametrize("reader", [cloakgp.Plan, cloakgp.FunctionPlan])
def test_the_other_readers_of_plans_do_so_too(reader, tmp_path):
    PLANS["staged"].save(tmp_path / "a.plan")
    with pytest.raises(
        cloakgp.ReleaseFileError, match=r"holds a plan in stages; read it with StagedPlan\.load"
    ):
        reader.load(tmp_path / "a.plan")


def test_and_the_reader_of_stages(tmp_path):
    RELEASES["predictions"].save(tmp_path / "a.cloak")
    with pytest.raises(cloakgp.ReleaseFileError, match=r"no release in stages; read it with cloakgp\.load"):
        cloakgp.StagedRelease.load(tmp_path / "a.cloak")
