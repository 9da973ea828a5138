"""One way to read a file of whatever kind; and the readers of one kind say which to use for another."""

import numpy as np
import pytest

import cloakgp
from cloakgp.kernels import EQ
from cloakgp.plans.opening import charged_plan, encode_release

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
def test_every_kind_of_plan_is_read_from_a_ledger(kind):
    plan = PLANS[kind]
    again = charged_plan(plan.to_bytes())
    assert (type(again), again.digest, again.to_bytes()) == (type(plan), plan.digest, plan.to_bytes())
    with pytest.raises(cloakgp.errors.ArgumentError, match="made from your own table"):
        again.release(np.ones(12))


@pytest.mark.parametrize("reader", [cloakgp.Release, cloakgp.FunctionRelease])
def test_the_other_readers_name_the_one_to_use(reader, tmp_path):
    RELEASES["staged"].save(tmp_path / "a.cloak")
    with pytest.raises(
        cloakgp.ReleaseFileError, match=r"holds a release in stages; read it with cloakgp\.load"
    ):
        reader.load(tmp_path / "a.cloak")


def test_and_the_reader_of_stages(tmp_path):
    RELEASES["predictions"].save(tmp_path / "a.cloak")
    with pytest.raises(cloakgp.ReleaseFileError, match=r"no release in stages; read it with cloakgp\.load"):
        cloakgp.StagedRelease.load(tmp_path / "a.cloak")
