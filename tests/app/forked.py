"""Servers in processes of their own, forked from one that has imported all: that takes a second each.

A server may be told to die at a certain moment of a release.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from cloakgp.app import Limits, releasing, serve
from cloakgp.app.releases import Releases
from cloakgp.release.plan import Plan

LOOSE = {"requests_per_second": 1e6, "burst": 10**6}


def die(*arguments: Any, **options: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


MOMENTS = {
    "before": lambda: setattr(releasing.private_step, "release", die),  # noted, not charged
    "charged": lambda: setattr(Releases, "finish", die),  # charged, no file
    "measuring": lambda: setattr(Plan, "_measure", die),  # the first stage: not charged
    "staged": lambda: setattr(Plan, "_measure", _measure_two),  # two stages answered
    "written": lambda: setattr(Releases, "_keep", _keep_unless_done),  # file, but not noted as done
}
_keep = Releases._keep
_measure_stage, _measured = Plan._measure, itertools.count()


def _measure_two(*arguments: Any) -> Any:
    if next(_measured) == 2:
        die()
    return _measure_stage(*arguments)


def _keep_unless_done(self: Any, record: dict[str, Any]) -> None:
    if record["state"] == "done":
        die()
    _keep(self, record)


def run(folder: Path, data: Path, moment: str, files: int, limits: dict[str, Any], **options: Any) -> None:
    """A server; `files` is how many it may open, the rest is for ``serve``."""
    for name, descriptor in (("out", 1), ("errors", 2)):
        os.dup2(os.open(folder / name, os.O_WRONLY), descriptor)
    if moment:
        MOMENTS[moment]()
    if files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    serve(port=0, data=data, limits=Limits(**limits), **options)


class Server:
    """One of them, and what it says."""

    def __init__(self, process: Any, out: TextIO, errors: Path) -> None:
        self._process, self.stdout, self.errors = process, out, errors
        self.pid = int(process.pid)

    def link(self) -> str:
        """With which to sign in, as it is printed."""
        words = (self.stdout.readline() + self.stdout.readline()).split()
        assert words, self.errors.read_text()
        return words[-1]

    def wait(self, seconds: float = 60.0) -> int | None:
        """How it ended: a signal's number with a minus; None if it does not."""
        self._process.join(seconds)
        code: int | None = self._process.exitcode
        return code


class Forking:
    """Starts them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers = folder, itertools.count()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["pytest", "cloakgp.app", "sqlalchemy.dialects.sqlite"])

    @contextmanager
    def server(
        self, data: Path, moment: str = "", files: int = 0, limits: Any = LOOSE, **options: Any
    ) -> Iterator[Server]:
        """A server on a folder: see :func:`run`."""
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        os.mkfifo(folder / "out")
        (folder / "errors").touch()
        process = self._context.Process(
            target=run, args=(folder, data, moment, files, limits), kwargs=options
        )
        process.start()
        with (folder / "out").open(encoding="utf-8") as said:
            try:
                yield Server(process, said, folder / "errors")
            finally:
                process.kill()
                process.join()
