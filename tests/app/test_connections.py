"""Connections that ask for nothing end, and do not keep others out: a real server on loopback."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from app_helpers import World, make_world
from forked import Forking, Server
from test_api_crash import _self_signed

from cloakgp.app import Limits
from cloakgp.app.connections import Connections

HALF = b"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


class Running:
    """A server, and who asks it."""

    def __init__(self, child: Server, port: int, token: str) -> None:
        self.child, self.port, self._token = child, port, token

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def ask(self) -> int:
        """Somebody's honest request, over a new connection."""
        return httpx.get(self.url("/api/me"), headers=self.headers, timeout=30, trust_env=False).status_code

    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def logged(self) -> int:
        return self.child.errors.stat().st_size


@pytest.fixture
def server(forking: Forking) -> Any:
    @contextmanager
    def start(world: World, files: int = 0, tls: tuple[str, ...] = (), **limits: Any) -> Iterator[Running]:
        data = world.state.folder.path
        with forking.server(data, files=files, tls=tls or None, limits=limits) as child:
            port = int(child.link().split("/enter/")[0].rsplit(":", 1)[1])
            yield Running(child, port, world.tokens["custodian"])

    return start


def ended(connection: socket.socket, seconds: float = 30.0) -> bool:
    """Whether the other side ends it."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def trickled_to_its_end(connection: socket.socket, seconds: float = 30.0) -> bool:
    """Whether the other side ends a connection on which a byte arrives again and again."""
    until = time.monotonic() + seconds
    connection.settimeout(0.1)
    while time.monotonic() < until:
        try:
            connection.send(b"1")
            if connection.recv(65536) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors as Linux does")
def test_connections_without_a_request_do_not_keep_others_out(server, world):
    """More of them than the process may open files, from the address of somebody who works meanwhile."""
    with server(world, files=160, head_seconds=3.0) as running, ExitStack() as held:
        assert running.ask() == 200
        before = running.files()
        connections = []
        for place in range(300):
            connections.append(held.enter_context(running.connect()))
            with suppress(OSError):  # sent away already
                connections[-1].sendall(HALF)
            if place % 60 == 59:
                assert running.ask() == 200
        assert running.files() < 160
        assert all(ended(connection) for connection in connections)
        assert running.ask() == 200
        until = time.monotonic() + 30
        while running.files() > before and time.monotonic() < until:
            time.sleep(0.05)
        assert running.files() <= before
        assert running.logged() < 10_000


WHOLE = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
REFUSED = b"POST /api/preview HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(HALF, id="headers"),
        pytest.param(WHOLE + HALF, id="headers of a second request", marks=pytest.mark.slow),
        pytest.param(REFUSED, id="a body that was refused", marks=pytest.mark.slow),
    ],
)
def test_a_trickle_does_not_move_the_deadline(server, world, sent):
    with server(world, head_seconds=1.0, idle_seconds=1) as running, running.connect() as slow:
        slow.sendall(sent)
        if sent is REFUSED:  # which does not wait for the body
            assert b" 401 " in slow.recv(65536)
        assert trickled_to_its_end(slow)


def tiny_chunks_end(sender, token):
    """Whether a body in tiny chunks is not heard to its end."""
    head = "POST /api/preview HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
    if token is not None:
        head += f"Authorization: Bearer {token}\r\n"
    sender.sendall(head.encode() + b"\r\n")
    if token is None:
        assert b" 401 " in sender.recv(65536)
    try:
        for _ in range(20):
            sender.sendall(b"1\r\n \r\n" * 1000)
            time.sleep(0.05)
    except OSError:
        return True
    return False


def test_a_body_in_a_great_many_tiny_chunks_ends_and_one_in_ordinary_chunks_is_read(server, world):
    """Each takes as long as a large one. Whether somebody reads the body, or it was refused already."""
    line = b"1,2\n" * 150
    with server(world) as running:
        for refused in (False, True):
            with running.connect() as sender:
                assert tiny_chunks_end(sender, None if refused else world.tokens["custodian"])
        url, headers = running.url("/api/data/chunks.csv"), running.headers
        answer = httpx.put(
            url, content=(line for _ in range(3000)), headers=headers, timeout=60, trust_env=False
        )
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_input")  # it has no names of columns


def test_an_unfinished_handshake_ends(server, world, tmp_path):
    with server(world, tls=_self_signed(tmp_path), head_seconds=1.0) as running, running.connect() as slow:
        slow.sendall(b"\x16\x03\x01\x02\x00")  # the begin of a client's hello
        assert ended(slow)


def test_a_connection_that_asks_is_kept(server, world):
    """Longer than a request's headers may take."""
    with server(world, head_seconds=0.5) as running, httpx.Client(trust_env=False, timeout=30) as client:
        for _ in range(3):
            assert client.get(running.url("/")).status_code == 200
            time.sleep(0.6)
        (pooled,) = client._transport._pool.connections  # type: ignore[attr-defined]
        assert pooled._connection._request_count == 3


def test_the_limit_on_open_files_is_raised_and_a_reserve_kept():
    code = """
import resource
from cloakgp.app.connections import most_connections
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 400))
print(most_connections(1000), resource.getrlimit(resource.RLIMIT_NOFILE)[0], most_connections(20))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["200", "400", "20"]


class Clients:
    """Connections that are let in, or not, each by the address it is said to come from."""

    def __init__(self, connections: Connections, stack: ExitStack) -> None:
        self._connections, self._stack = connections, stack

    def come(self, address: str) -> tuple[int, socket.socket] | None:
        accepted, theirs = socket.socketpair()
        self._stack.enter_context(theirs)
        mine = self._connections.admits(accepted, address)
        return None if mine is None else (self._stack.enter_context(mine).fileno(), theirs)

    def comes(self, address: str) -> tuple[int, socket.socket]:
        found = self.come(address)
        assert found is not None
        return found


def is_open(client: tuple[int, socket.socket]) -> bool:
    client[1].setblocking(False)
    try:
        return client[1].recv(1) != b""
    except BlockingIOError:
        return True


def with_connections(act: Any, exempt: tuple[str, ...] = (), **limits: Any) -> None:
    async def run() -> None:
        connections = Connections(Limits(**limits), exempt)
        with ExitStack() as stack:
            act(connections, Clients(connections, stack))

    asyncio.run(run())


def test_of_too_many_connections_the_oldest_that_asks_for_nothing_goes():
    def act(connections: Connections, clients: Clients) -> None:
        answered, asking, waiting, later = (clients.comes("10.0.0.1") for _ in range(4))
        connections.asks(answered[0])
        connections.answered(answered[0])
        connections.asks(asking[0])
        for expected in (waiting, later):
            clients.comes("10.0.0.2")
            assert not is_open(expected)
            assert is_open(answered)
        assert is_open(asking)

    with_connections(act, connections=4, connections_each=4)


def test_one_address_does_not_use_up_all_connections():
    def act(connections: Connections, clients: Clients) -> None:
        other = clients.comes("10.0.0.2")
        crowd = [clients.comes("10.0.0.1") for _ in range(3)]
        assert [is_open(client) for client in crowd] == [False, True, True]
        assert is_open(other)
        for number, _ in crowd[1:]:
            connections.asks(number)
        assert clients.come("10.0.0.1") is None  # all are being answered
        assert clients.come("10.0.0.2") is not None
        connections.left(crowd[1][0])
        assert clients.come("10.0.0.1") is not None

    with_connections(act, connections=10, connections_each=2)


def test_a_proxy_stands_for_many():
    def act(connections: Connections, clients: Clients) -> None:
        crowd = [clients.comes("127.0.0.1") for _ in range(8)]
        assert all(is_open(client) for client in crowd)

    with_connections(act, exempt=("127.0.0.1",), connections=10, connections_each=2)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("connections") / "data")
