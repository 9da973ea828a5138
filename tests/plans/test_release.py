"""Releases: noise as promised, a new spend each time, and nothing that can be changed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from cloakgp import Release
from cloakgp.files import atomic
from cloakgp.plans.opening import load_release


def test_what_is_in_it(make_plan, setting):
    plan = make_plan()
    release = plan.release(setting.y)
    assert isinstance(release, Release)
    assert release.mean.shape == (4,)
    assert release.z.shape == (plan.certificate.n_measurements,)
    assert release.certificate == plan.certificate
    for name in ("X_star", "noise_std", "noise_cov", "gp_std"):
        np.testing.assert_array_equal(getattr(release, name), getattr(plan, name))


def test_the_mean_is_the_exact_one_plus_noise(make_plan, setting, noiseless):
    plan = make_plan()
    away = plan.release(setting.y).mean - noiseless(plan, setting.y).mean
    assert (np.abs(away) < 12 * plan.noise_std).all()
    assert (away != 0).all()


def test_the_noise_has_the_covariance_that_was_planned(make_plan, setting, noiseless, seeded, design):
    plan = make_plan(design=design)
    n = 3000
    with seeded(0):
        means = np.array([plan.release(setting.y).mean for _ in range(n)])
    noise = means - noiseless(plan, setting.y).mean
    standard = noise @ np.linalg.inv(np.linalg.cholesky(plan.noise_cov)).T
    # Standard normals: entries of the sample covariance have std √(2/n) or less, those of the mean √(1/n).
    np.testing.assert_allclose(np.cov(standard.T), np.eye(4), atol=5 * np.sqrt(2 / n))
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(noise.std(axis=0), plan.noise_std, rtol=0.1)


def test_each_release_is_a_new_spend_with_new_noise(make_plan, setting):
    plan = make_plan()
    one, two = plan.release(setting.y), plan.release(setting.y)
    assert (one.z != two.z).any()
    for release in (one, two):
        assert release.certificate.spend == "each release made from a plan spends this once more"
        assert "each release made from a plan spends this once more" in str(release.certificate)


def test_missing_must_be_named_and_known(make_plan, setting):
    plan = make_plan()
    with pytest.raises(TypeError, match="positional"):
        plan.release(setting.y, "midpoint")
    with pytest.raises(ValueError, match="missing must be one of 'error', 'midpoint'"):
        plan.release(setting.y, missing="drop")


def test_midpoint_predicts_as_if_missing_outcomes_were_in_the_middle(make_plan, setting, seeded):
    plan = make_plan()
    y, filled = setting.y.copy(), setting.y.copy()
    y[[1, 5]], filled[[1, 5]] = np.nan, 1.5
    with pytest.raises(ValueError, match="y must be finite"):
        plan.release(y)
    with seeded(1):
        one = plan.release(y, missing="midpoint")
    with seeded(1):
        two = plan.release(filled)
    np.testing.assert_array_equal(one.z, two.z)


def test_it_is_read_only_and_frozen(make_plan, setting):
    release = make_plan().release(setting.y)
    for array in (release.z, release.X_star, release.gp_std):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for name in ("plan", "z"):
        with pytest.raises(FrozenInstanceError):
            setattr(release, name, None)
    for name in ("mean", "noise_std", "certificate"):
        with pytest.raises(AttributeError):
            setattr(release, name, None)
    before = release.mean.copy()
    for computed in (release.mean, release.noise_std):
        if computed.flags.writeable:
            computed[...] = 0
    np.testing.assert_array_equal(release.mean, before)


def test_repr_tells_the_promise_and_no_prediction(make_plan, setting):
    release = make_plan().release(setting.y)
    std = release.noise_std
    assert repr(release) == (
        f"<Release: (1, 0.01)-DP, unit one row, 4 predictions, noise std {std.min():.3g} to {std.max():.3g}>"
    )


# Saving


def test_saving_replaces_a_file_whole(make_plan, setting, tmp_path):
    path = tmp_path / "release.cloak"
    path.write_bytes(b"something else")
    release = make_plan().release(setting.y)
    release.save(path)
    release.save(str(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["release.cloak"]
    np.testing.assert_array_equal(Release.load(str(path)).z, release.z)


@pytest.mark.parametrize("written", [0, 100])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(make_plan, setting, tmp_path, monkeypatch, written):
    path = tmp_path / "release.cloak"
    old = make_plan().release(setting.y)
    old.save(path)
    before = path.read_bytes()
    whole = atomic.create

    def disk_full(*arguments):
        with whole(*arguments) as file:
            file.write(before[:written])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "create", disk_full)
    with pytest.raises(OSError, match="No space left"):
        make_plan().release(setting.y).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["release.cloak"]


def test_a_key_that_is_none_leaves_the_old_file(make_plan, setting, tmp_path):
    pytest.importorskip("cryptography")
    path = tmp_path / "release.cloak"
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match="sign_with must be an Ed25519PrivateKey"):
        make_plan().release(setting.y).save(path, sign_with="secret")
    assert path.read_bytes() == b"old"


def test_saving_where_there_is_no_folder(make_plan, setting, tmp_path):
    with pytest.raises(FileNotFoundError):
        make_plan().release(setting.y).save(tmp_path / "none" / "release.cloak")


def test_the_unfinished_file_is_in_the_same_folder_and_never_the_same_twice(
    make_plan, setting, tmp_path, monkeypatch
):
    """Two programs that save to one path at once do not write into each other's file."""
    release, seen, whole = make_plan().release(setting.y), [], atomic.create

    def watched(path, *arguments):
        seen.append(path)
        return whole(path, *arguments)

    monkeypatch.setattr(atomic, "create", watched)
    for _ in range(3):
        release.save(tmp_path / "release.cloak")
    assert len(set(seen)) == 3
    assert {path.parent for path in seen} == {tmp_path}
    assert tmp_path / "release.cloak" not in seen
    assert [entry.name for entry in tmp_path.iterdir()] == ["release.cloak"]


def test_two_saves_at_once_leave_the_process_as_it_was(make_plan, setting, tmp_path):
    """The umask can be read only by setting it, and a second thread may set the first one's 0 for good."""
    release, mask = make_plan().release(setting.y), os.umask(0o027)
    try:
        with patched_umask() as asked, ThreadPoolExecutor(8) as threads:
            list(threads.map(release.save, [tmp_path / f"{i}.cloak" for i in range(40)]))
        assert asked == []
    finally:
        assert os.umask(mask) == 0o027
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


@contextmanager
def patched_umask():
    """Every call of os.umask, to be seen."""
    asked, right = [], os.umask
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "umask", lambda mask: asked.append(mask) or right(mask))
        yield asked


def test_a_saved_file_has_the_permissions_of_any_new_file(make_plan, setting, tmp_path):
    make_plan().release(setting.y).save(tmp_path / "release.cloak")
    (tmp_path / "other").write_bytes(b"")
    modes = {entry.stat().st_mode for entry in tmp_path.iterdir()}
    assert len(modes) == 1


def test_saving_does_not_touch_a_neighbours_file(make_plan, setting, tmp_path):
    """Somebody else's file may have the name that an unfinished one would get."""
    neighbour = tmp_path / "release.cloak.part"
    neighbour.write_bytes(b"mine")
    make_plan().release(setting.y).save(tmp_path / "release.cloak")
    assert neighbour.read_bytes() == b"mine"


# What every kind of release answers


def test_every_kind_says_what_was_released_and_where(make_plan, setting, tmp_path):
    hidden = {"bound": "input-free", "basis": setting.X_star}
    for plan, kind, where in (
        (make_plan(), "predictions", setting.X_star),
        (setting.gp.plan_function(setting.X, epsilon=1.0, delta=0.01), "function", setting.X[:3]),
        (setting.gp.plan_function(setting.X, epsilon=1.0, delta=0.01, **hidden), "function", setting.X[:3]),
    ):
        release = plan.release(setting.y)
        release.save(tmp_path / "a.cloak")
        loaded = load_release(tmp_path / "a.cloak")
        assert type(loaded) is type(release)
        assert loaded.kind == release.kind == plan.kind == kind
        assert plan.hides_inputs == (plan.X is None)
        values, std = release.released_at(where)
        np.testing.assert_array_equal(loaded.released_at(where)[0], values)
        np.testing.assert_array_equal(std, plan.released_noise(where))
        expected = release.mean if kind == "predictions" else release.query(where)
        np.testing.assert_array_equal(values, expected)
        stand_ins = setting.X if plan.X is not None else plan.points
        np.testing.assert_array_equal(plan.shown_inputs, stand_ins)


def test_predictions_were_released_at_their_test_points_only(make_plan, setting):
    plan = make_plan()
    for asked in (plan.released_noise, plan.release(setting.y).released_at):
        with pytest.raises(ValueError, match=r"X must be the plan's test points.*noise_at"):
            asked(setting.X_star + 1.0)


def test_the_noise_elsewhere_is_known_also_with_a_variance_for_each_row(make_plan, setting):
    plan = make_plan(noise=np.geomspace(0.1, 3, len(setting.X)))
    known = plan.release(setting.y).uncertainty(setting.X_star, include_noise=0.5)
    np.testing.assert_array_equal(plan.noise_at(setting.X_star), known.privacy)
