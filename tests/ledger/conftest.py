"""Ledgers on SQLite and on PostgreSQL, with a server of its own for each test process."""

from __future__ import annotations

import glob
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ledger_helpers import Children, small_plan

from cloakgp.ledger import Ledger

psycopg = pytest.importorskip("psycopg")


class Server:
    """A PostgreSQL server in a temporary folder, on this machine only."""

    user, password = "custodian", "sEcReT-4711"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._numbers = itertools.count()
        self._as = _somebody_else()
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        self.log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        secret = self.folder / "password"
        secret.write_text(self.password)
        if self._as:
            os.chown(secret, self._as["user"], self._as["group"])
        command = [_program("initdb"), "-D", str(self.folder / "data"), "-U", self.user, "-E", "UTF8"]
        # Not scram, which stretches a password 4096 times: there are thousands of connections.
        command += ["--locale=C", "-A", "md5", f"--pwfile={secret}", "--no-sync"]
        run = {"capture_output": True, "text": True, "cwd": self.folder, "check": False, **self._as}
        done = subprocess.run(command, **run)
        if done.returncode:
            raise OSError(done.stderr.strip()[-500:])
        self.start()
        self.shared = self.database()

    def start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "",
                    "fsync": "off", "max_connections": 60, "shared_buffers": "16MB"}  # fmt: skip
        command = [_program("postgres"), "-D", str(self.folder / "data")]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self._as)
        end = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.Error:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise OSError(self.log.read_text()[-500:]) from None
                time.sleep(0.05)

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)  # at once
            self._process.wait(timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, user: str = user, password: str = password) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def database(self) -> str:
        """The name of a new, empty database."""
        name = f"d{next(self._numbers)}_{secrets.token_hex(4)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def execute(self, *statements: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


def _program(name: str) -> str:
    """Where a program of PostgreSQL is; Debian keeps them off the PATH."""
    found = shutil.which(name) or max(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), default=None)
    if found is None:
        raise OSError(f"no program {name} on this machine")
    return found


def _somebody_else() -> dict[str, object]:
    """Whom to run the server as: it refuses to be run by root."""
    if os.getuid() != 0:
        return {}
    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    try:
        started = Server()
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"PostgreSQL could not be started: {error}")
    yield started
    started.remove()


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder, in memory where that can be had: a commit waits for a disk."""
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as name:
        yield Path(name)


@pytest.fixture
def folder() -> Iterator[Path]:
    with in_memory() as path:
        yield path


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def own_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The module's own database, of either kind."""
    if request.param == "postgresql":
        server = request.getfixturevalue("server")
        yield server.url(server.database())
        return
    with in_memory() as path:
        (path / "own").mkdir()
        yield f"sqlite:///{path}/own/budget.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, folder: Path) -> str:
    """An empty database, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{folder}/budget.db"
    server = request.getfixturevalue("server")
    server.execute("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", database=server.shared)
    return str(server.url(server.shared))


@pytest.fixture
def file_url(folder: Path) -> str:
    """An empty database, in a file."""
    return f"sqlite:///{folder}/budget.db"


@pytest.fixture(scope="session")
def plan():
    """At (1, 0.01): one such fits into the budget of `people`."""
    return small_plan()


@pytest.fixture(scope="session")
def little_plan():
    return small_plan(epsilon=0.1)


@pytest.fixture
def ledger(url: str) -> Ledger:
    """A ledger with one data set, `people`, whose budget is (1, 0.01)."""
    ledger = Ledger(url, who="a tester")
    ledger.create("people", epsilon=1.0, delta=0.01)
    return ledger


@pytest.fixture(scope="session")
def children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Children]:
    running = Children(tmp_path_factory.mktemp("children"))
    yield running
    running.close()
