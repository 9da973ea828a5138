"""Connections to a real server on loopback: how long they stay, how many there may be, and what they send."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from app_helpers import World, make_world
from forked import LOOSE, Forking

WHOLE = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Running:
    """A server, and who asks it."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.headers = port, {"Authorization": f"Bearer {token}"}

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def ask(self) -> int:
        """Somebody's honest request, over a new connection."""
        return httpx.get(self.url("/api/me"), headers=self.headers, timeout=30, trust_env=False).status_code


@pytest.fixture
def server(forking: Forking) -> Any:
    @contextmanager
    def start(world: World, **limits: Any) -> Iterator[Running]:
        with forking.server(world.state.folder.path, limits=LOOSE | limits) as child:
            port = int(child.link().split("/enter/")[0].rsplit(":", 1)[1])
            yield Running(port, world.tokens["custodian"])

    return start


def read_to_the_end(connection: socket.socket) -> bytes:
    """What the other side sends until it ends the connection; TimeoutError if it does not end it."""
    found = []
    while part := connection.recv(65536):
        found.append(part)
    return b"".join(found)


def test_an_idle_connection_ends(server, world):
    with server(world, idle_seconds=1) as running, running.connect() as idle:
        idle.sendall(WHOLE)
        start = time.monotonic()
        assert b" 200 " in read_to_the_end(idle)
        assert time.monotonic() - start > 0.9


def test_a_connection_that_asks_is_kept(server, world):
    with server(world, idle_seconds=2) as running, httpx.Client(trust_env=False, timeout=30) as client:
        for _ in range(5):
            assert client.get(running.url("/")).status_code == 200
            time.sleep(0.6)
        (pooled,) = client._transport._pool.connections  # type: ignore[attr-defined]
        assert pooled._connection._request_count == 5


def test_with_too_many_connections_requests_are_refused_until_some_end(server, world):
    with server(world, connections=5) as running:
        assert running.ask() == 200
        held = [running.connect() for _ in range(5)]
        assert running.ask() == 503
        for each in held:
            each.close()
        until = time.monotonic() + 30
        while (status := running.ask()) == 503 and time.monotonic() < until:
            time.sleep(0.05)
        assert status == 200


def test_headers_that_are_too_long_end_a_connection(server, world):
    with server(world) as running, running.connect() as sender:
        sender.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"x" * 33 * 2**10)
        assert b" 400 " in read_to_the_end(sender)


def test_a_body_in_chunks_is_read(server, world):
    line = b"1,2\n" * 150
    with server(world) as running:
        url = running.url("/api/data/chunks.csv")
        content = (line for _ in range(3000))
        answer = httpx.put(url, content=content, headers=running.headers, timeout=60, trust_env=False)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_input")  # it has no names of columns


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("connections") / "data")
