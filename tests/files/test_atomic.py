"""Files are written whole or not at all, with the permissions that were asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cloakgp.files import atomic


@pytest.fixture
def mask():
    """Set the process's mask, and put it back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def permissions(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_file_has_the_permissions_that_were_asked_for(tmp_path, mask):
    path = tmp_path / "file"
    for process, mode, expected in ((0o022, atomic.ANYBODY, 0o644), (0, atomic.OWNER, 0o600)):
        mask(process)
        atomic.write(path, b"x", mode)
        assert permissions(path) == expected
        path.unlink()
    atomic.write(path, b"x")
    assert permissions(path) == 0o666  # the mask is 0 now


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_file_of_one_s_own_is_so_from_its_first_moment(tmp_path, mask):
    mask(0)
    part = atomic.unfinished(tmp_path / "file")
    with atomic.create(part, atomic.OWNER):
        assert permissions(part) == 0o600


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, fails):
    def fail(*_):
        raise OSError("no space")

    path = tmp_path / "file"
    atomic.write(path, b"old")
    monkeypatch.setattr(*{"fsync": (os, "fsync"), "replace": (Path, "replace")}[fails], fail)
    with pytest.raises(OSError, match="no space"):
        atomic.write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_nobody_s_file_is_taken_for_an_unfinished_one(tmp_path):
    part = atomic.unfinished(tmp_path / "file")
    part.write_bytes(b"somebody's")
    with pytest.raises(FileExistsError):
        atomic.create(part)
    assert part.read_bytes() == b"somebody's"
