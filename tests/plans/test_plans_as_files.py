"""Plans as files: the same plan to the last bit, of which nothing was released."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp import FunctionPlan, Plan, Release, ReleaseFileError
from cloakgp.designs import DESIGNS
from cloakgp.files import container
from cloakgp.kernels import EQ
from cloakgp.ledger import Ledger
from cloakgp.plans import encoding, out_of_core
from cloakgp.plans.opening import load_plan

PROMISE = {"epsilon": 1.0, "delta": 0.01}


def custom(X, Z):
    return np.minimum(X, Z.T) + 1.0


@pytest.mark.parametrize("design", DESIGNS)
def test_a_plan_comes_back_to_the_last_bit(make_plan, setting, seeded, tmp_path, design):
    plan = make_plan(design=design, noise=np.geomspace(0.1, 3, 12))
    plan.save(tmp_path / "a.plan")
    again = Plan.load(tmp_path / "a.plan")
    assert again.digest == plan.digest
    assert again.inputs_digest == plan.inputs_digest
    assert again.certificate == plan.certificate
    assert repr(again) == repr(plan)
    with seeded(3):
        one = plan.release(setting.y)
    with seeded(3):
        two = again.release(setting.y)
    assert one.z.tolist() == two.z.tolist()
    again.save(tmp_path / "b.plan")
    assert (tmp_path / "a.plan").read_bytes() == (tmp_path / "b.plan").read_bytes()


def test_a_plan_of_a_function_comes_back(setting, tmp_path):
    plan = setting.gp.plan_function(setting.X, **PROMISE)
    plan.save(tmp_path / "a.plan")
    again = FunctionPlan.load(tmp_path / "a.plan")
    assert again.digest == plan.digest
    assert isinstance(load_plan(tmp_path / "a.plan"), FunctionPlan)
    again.release(setting.y).save(tmp_path / "a.cloak")
    assert cloakgp.verify(tmp_path / "a.cloak").complete
    with pytest.raises(ReleaseFileError, match=r"plan of a function; use FunctionPlan\.load"):
        Plan.load(tmp_path / "a.plan")


def test_each_file_is_what_it_says(make_plan, setting, tmp_path):
    plan = make_plan()
    plan.save(tmp_path / "a.plan")
    plan.release(setting.y).save(tmp_path / "a.cloak")
    manifest, arrays, _ = container.read(tmp_path / "a.plan")
    assert manifest["format"] == "cloakgp-plan"
    assert "z" not in arrays
    assert "ledger" not in manifest
    for read in (Release.load, cloakgp.verify):
        with pytest.raises(ReleaseFileError, match="it holds a plan, of which nothing was released"):
            read(tmp_path / "a.plan")
    with pytest.raises(ReleaseFileError, match="not the file of a plan"):
        Plan.load(tmp_path / "a.cloak")
    with pytest.raises(ReleaseFileError, match=r"plan of predictions; use Plan\.load"):
        FunctionPlan.load(tmp_path / "a.plan")


@pytest.mark.parametrize("part", ["z", "ledger", "notes"])
def test_nothing_else_can_be_in_a_plans_file(make_plan, tmp_path, part):
    make_plan().save(tmp_path / "a.plan")
    manifest, arrays, _ = container.read(tmp_path / "a.plan")
    manifest, arrays = container.bare(manifest), dict(arrays)
    if part == "z":
        arrays["z"] = np.zeros(4, np.int64)
    else:
        manifest[part] = None
    (tmp_path / "a.plan").write_bytes(container.pack(manifest, arrays))
    with pytest.raises(ReleaseFileError):
        Plan.load(tmp_path / "a.plan")


def test_a_plan_that_hides_its_inputs_is_not_written(setting, tmp_path):
    plan = setting.gp.plan_function(setting.X, bound="input-free", basis=np.linspace(0, 10, 5), **PROMISE)
    with pytest.raises(ValueError, match="hides its inputs is not written"):
        plan.save(tmp_path / "a.plan")
    assert not (tmp_path / "a.plan").exists()


def test_a_custom_kernel_is_given_again(make_plan, setting, tmp_path):
    plan = make_plan(kernel=custom)
    plan.save(tmp_path / "a.plan")
    plan.release(setting.y)
    again = Plan.load(tmp_path / "a.plan", kernel=custom)
    assert np.array_equal(again.gp.kernel(setting.X), plan.gp.kernel(setting.X))


def test_a_plan_with_too_little_noise_in_its_file_releases_nothing(make_plan, setting, tmp_path):
    """A plan's file is only as trustworthy as its folder, so the private room looks at its integers again."""
    make_plan().save(tmp_path / "a.plan")
    manifest, arrays, _ = container.read(tmp_path / "a.plan")
    manifest = container.bare(manifest)
    manifest["certificate"]["sigma"] //= 2
    (tmp_path / "a.plan").write_bytes(container.pack(manifest, arrays))
    with pytest.raises(AssertionError, match="noise is too small"):
        Plan.load(tmp_path / "a.plan").release(setting.y)


@pytest.fixture
def large(monkeypatch):
    """A plan whose file holds only its inputs' digest."""
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 0)
    X = np.random.default_rng(0).uniform(0, 10, size=(80, 1))
    gp = cloakgp.GP(EQ(2.0), 0.4, (-1.0, 4.0), 0.7, np.linspace(0, 10, 6))
    return gp.plan(X, X_star=[[3.0]], **PROMISE), X


def test_large_inputs_are_given_again(large, tmp_path):
    plan, X = large
    plan.save(tmp_path / "a.plan")
    y = np.zeros(80)
    with pytest.raises(ValueError, match="X is not in the file"):
        Plan.load(tmp_path / "a.plan").release(y)
    again = Plan.load(tmp_path / "a.plan", X=X)
    assert again.digest == plan.digest
    again.release(y)
    with pytest.raises(ValueError, match=r"X has changed since the plan was made.* Nothing was spent"):
        Plan.load(tmp_path / "a.plan", X=X + 1e-9).release(y)
    with pytest.raises(ValueError, match="X must have 80 rows"):
        Plan.load(tmp_path / "a.plan", X=X[:-1])


def test_the_ledger_does_not_read_the_inputs_of_a_recipe(large, tmp_path):
    """Their digest is in the plan already: eight million rows are not read for it once more."""
    plan, X = large
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("people", epsilon=5.0, delta=0.1)

    class Unreadable:
        shape = X.shape

        def __len__(self):
            return len(X)

        def __array__(self, *arguments, **options):
            pytest.fail("X was read")

    object.__setattr__(plan, "X", Unreadable())
    release = plan.release(np.zeros(80), ledger=ledger, dataset="people")
    assert ledger.entries("people")[-1].inputs == plan.measurement.digest == plan.inputs_digest
    assert release.receipt.entry == 2


def test_what_was_paid_for_is_recovered_from_a_kept_plan(make_plan, setting, tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("people", epsilon=5.0, delta=0.1)
    plan = make_plan()
    plan.save(tmp_path / "a.plan")
    first = plan.release(setting.y, ledger=ledger, dataset="people")
    again = Plan.load(tmp_path / "a.plan").recover(ledger, first.receipt.entry)
    assert again.z.tolist() == first.z.tolist()
