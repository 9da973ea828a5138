"""The insecure seed: reproducible, loud, and confined to its block."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import cloakgp
from cloakgp.testing import InsecureWarning, insecure_generator, insecure_seed


def test_the_block_warns_where_it_is_entered_and_is_not_where_warnings_are_errors():
    with pytest.warns(InsecureWarning, match="INSECURE") as caught, insecure_seed(0):
        pass
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InsecureWarning), insecure_seed(0):
            pytest.fail("the block was entered")
    assert insecure_generator() is None


@pytest.mark.parametrize("kind", ["predictions", "function"])
def test_everything_says_insecure_inside_and_nothing_outside(make_plan, setting, seeded, tmp_path, kind):
    def made():
        function = setting.gp.plan_function(setting.X, epsilon=1.0, delta=0.01)
        return make_plan() if kind == "predictions" else function

    plan = made()
    before = plan.release(setting.y)
    with seeded(0):
        release, inside = plan.release(setting.y), made()
    release.save(tmp_path / "file")
    for one in (release, cloakgp.load(tmp_path / "file")):
        assert one.certificate.insecure is True
        assert str(one.certificate).startswith("INSECURE")
        assert repr(one).startswith("<INSECURE Release")
    assert b'"insecure": true' in (tmp_path / "file").read_bytes()
    with pytest.raises(cloakgp.VerificationError, match="INSECURE"):
        cloakgp.verify(tmp_path / "file")
    for secure in (plan, inside, before, *(p.release(setting.y) for p in (plan, inside, release.plan))):
        assert not secure.certificate.insecure
        assert "INSECURE" not in repr(secure)
    assert (plan.release(setting.y).z != release.z).any()
    assert insecure_generator() is None


def test_seeding_numpy_does_not_seed_releases(make_plan, setting):
    plan = make_plan()
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        draws.append(plan.release(setting.y).z)
    assert (draws[0] != draws[1]).any()


def test_blocks_nest(make_plan, setting, seeded):
    plan = make_plan()
    with seeded(1):
        outer = [plan.release(setting.y).z.tolist() for _ in range(2)]
    with seeded(1):
        first = plan.release(setting.y).z.tolist()
        with seeded(2):
            plan.release(setting.y)
        second = plan.release(setting.y)
    assert [first, second.z.tolist()] == outer
    assert second.certificate.insecure


def test_an_exception_ends_the_block(make_plan, setting, seeded):
    with pytest.raises(KeyError), seeded(0):
        raise KeyError
    assert insecure_generator() is None
    assert not make_plan().release(setting.y).certificate.insecure


def test_a_block_stays_in_its_thread(make_plan, setting, seeded):
    plan = make_plan()
    inside, leave = threading.Event(), threading.Event()
    found = []

    def outside():
        found.append((insecure_generator(), plan.release(setting.y).certificate.insecure))

    def within():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with insecure_seed(0):
                inside.set()
                leave.wait(10)
                found.append(plan.release(setting.y).certificate.insecure)

    with seeded(0):
        other = threading.Thread(target=outside)
        other.start()
        other.join()
        assert insecure_generator() is not None
    thread = threading.Thread(target=within)
    thread.start()
    assert inside.wait(10)
    secure = plan.release(setting.y)
    leave.set()
    thread.join()
    assert not secure.certificate.insecure
    assert found == [(None, False), True]
