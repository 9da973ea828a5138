"""Servers in processes of their own, forked from one that has imported all: that takes a second each."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

CHILD = Path(__file__).with_name("app_children.py")
LOOSE = {"requests_per_second": 1e6, "burst": 10**6}


class Server:
    """One of them, and what it says."""

    def __init__(self, forking: Forking, pid: int, out: TextIO, errors: Path) -> None:
        self._forking, self.pid, self.stdout, self.errors = forking, pid, out, errors
        self._code: int | None = None

    def link(self) -> str:
        """With which to sign in, as it is printed."""
        words = (self.stdout.readline() + self.stdout.readline()).split()
        assert words, self.errors.read_text()
        return words[-1]

    def wait(self) -> int:
        """How it ended: a signal's number with a minus."""
        if self._code is None:
            self._code = self._forking.ask(self.pid)
        return self._code

    def kill(self) -> None:
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()


class Forking:
    """The program that forks."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers = folder, itertools.count()
        self._program = subprocess.Popen(
            [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, what: Any) -> int:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(what) + "\n")
        self._program.stdin.flush()
        return int(self._program.stdout.readline())

    @contextmanager
    def server(
        self, data: Path, moment: str = "", files: int = 0, limits: Any = LOOSE, **options: Any
    ) -> Iterator[Server]:
        """A server on a folder: see ``app_children.run``."""
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        out, errors = folder / "out", folder / "errors"
        os.mkfifo(out)
        errors.touch()
        asked = {"data": str(data), "moment": moment, "files": files, "limits": limits, **options}
        pid = self.ask({"out": str(out), "errors": str(errors), **asked})
        with out.open(encoding="utf-8") as said:
            running = Server(self, pid, said, errors)
            try:
                yield running
            finally:
                running.kill()

    def close(self) -> None:
        self._program.communicate()
