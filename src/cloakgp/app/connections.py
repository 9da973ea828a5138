"""Connections: how many there may be, and how long one may stay that asks for nothing.

uvicorn waits for ever for the end of a request's headers, and takes as many connections as there are, until
the process may not open another file. Here each connection has a deadline, which no trickle of bytes moves;
and when there are too many, the oldest that has not asked for anything makes room. So whoever holds a
thousand connections open does not keep out somebody from the same address who asks at once.

No server that we found does this by itself. granian 2.8 and hypercorn 0.18 end slow headers, but wait for
ever for a client that does not read its answer. granian accepts no more while all its places are taken, by
whomever: under the flood of headers in ``benchmarks/app_abuse.py`` others wait for up to 9 s, and here for
less than half a second. hypercorn has no limit on connections at all.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Container
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from cloakgp.app.limits import Limits

try:
    import resource
except ImportError:  # pragma: no cover  (Windows, where files are not counted like this)
    resource = None  # type: ignore[assignment]


class Connection(socket.socket):
    """An open connection, which says when it is closed, whoever closes it."""

    quiet = True
    """Whether it asks for nothing now, and so makes room for others."""
    asked = False
    """Whether it ever made a request."""
    leaving = False
    deadline: asyncio.TimerHandle | None = None

    def __init__(self, others: Connections, accepted: socket.socket, address: str) -> None:
        # With the protocol's number asyncio sends small answers at once, and not up to 40 ms later.
        super().__init__(accepted.family, accepted.type, socket.IPPROTO_TCP, fileno=accepted.detach())
        self._others, self.address = others, address

    def close(self) -> None:
        if self.fileno() >= 0:
            self._others.left(self.fileno())
        super().close()


class Connections:
    """Who is in, and who of them asks for nothing. The event loop's own. Connections go by their descriptor.

    Parameters
    ----------
    limits : Limits
    exempt : container of str
        Addresses that stand for many people: a proxy's.
    """

    def __init__(self, limits: Limits, exempt: Container[str] = ()) -> None:
        self.limits, self._exempt = limits, exempt
        self.most = most_connections(limits.connections)
        self._all: dict[int, Connection] = {}  # those that were answered last are last
        self._staying: Counter[str] = Counter()  # by address, without those who leave

    def full(self, most_leaving: int = 64) -> bool:
        """Whether those who were sent away should be let out before others are let in."""
        return len(self._all) - self._staying.total() >= most_leaving

    def admits(self, accepted: socket.socket, address: str) -> Connection | None:
        """Let a connection in; one that asks for nothing has to go, if there is no room. Else close it."""
        connection = Connection(self, accepted, address)
        crowded = self._staying[address] >= self.limits.connections_each and address not in self._exempt
        if crowded or self._staying.total() >= self.most:
            oldest = self._oldest(address if crowded else None)
            if oldest is None:
                connection.close()
                return None
            self._send_away(oldest)
        self._all[connection.fileno()] = connection
        self._staying[address] += 1
        self._expect(connection.fileno(), self.limits.head_seconds, quiet=True)
        return connection

    def asks(self, number: int) -> None:
        """The headers of a request are complete, or the client goes on reading its answer."""
        self._expect(number, None)

    def stalls(self, number: int) -> None:
        """The client does not read its answer now."""
        self._expect(number, self.limits.stalled_seconds)

    def answered(self, number: int) -> None:
        """The answer is out, and another request may come."""
        if number in self._all:
            self._all[number] = answered = self._all.pop(number)
            answered.asked = True
            self._expect(number, self.limits.idle_seconds + self.limits.head_seconds, quiet=True)

    def left(self, number: int) -> None:
        """A connection is being closed."""
        self._expect(number, None)
        gone = self._all.pop(number, None)
        if gone is not None and not gone.leaving:
            self._count_out(gone)

    def _oldest(self, address: str | None) -> Connection | None:
        """One without a request, of one address or all: who never made one first, then the longest idle."""
        for asked in (False, True):
            for each in self._all.values():
                if each.quiet and each.asked == asked and address in (None, each.address):
                    return each
        return None

    def _expect(self, number: int, seconds: float | None, quiet: bool = False) -> None:
        """Something of a connection within some seconds, or it ends."""
        found = self._all.get(number)
        if found is not None and not found.leaving:
            found.quiet = quiet
            if found.deadline is not None:
                found.deadline.cancel()
            loop = asyncio.get_running_loop()
            found.deadline = None if seconds is None else loop.call_later(seconds, self._send_away, found)

    def _send_away(self, gone: Connection) -> None:
        """End a connection: the event loop sees that, and closes it in its next round."""
        self._expect(gone.fileno(), None)
        gone.leaving = True
        self._count_out(gone)
        with suppress(OSError):  # it has ended already
            gone.shutdown(socket.SHUT_RDWR)

    def _count_out(self, gone: Connection) -> None:
        self._staying -= Counter([gone.address])  # which forgets those at zero


class ListeningSocket(socket.socket):
    """A listening socket that asks which connections are let in."""

    def __init__(self, connections: Connections, listening: socket.socket) -> None:
        super().__init__(listening.family, listening.type, fileno=listening.detach())
        self._connections = connections

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that is let in; the others are closed."""
        while not self._connections.full():
            accepted, address = super().accept()
            connection = self._connections.admits(accepted, address[0])
            if connection is not None:
                return connection, address
        raise BlockingIOError  # the event loop comes back in its next round


class _Parser(h11.Connection):
    """Says when a request begins, and ends a connection whose body comes in a great many tiny chunks: each
    takes the event loop as long as a large one, and of one byte there are tens of thousands in all that is
    read at once."""

    def __init__(self, asks: Callable[[], None], end: Callable[[], None]) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=32 * 2**10)  # bytes of a request's headers
        self._asks, self._end, self._chunks, self._bytes = asks, end, 0, 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
            self._asks()
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._bytes += len(event.data)
            if self._chunks > 1000 and self._bytes < 512 * self._chunks:
                self._end()
                return h11.NEED_DATA
        return event


def protocol_of(connections: Connections) -> type[H11Protocol]:
    """uvicorn's protocol, with h11 as its parser, that says what a connection is doing."""

    class Protocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            self._number = transport.get_extra_info("socket").fileno()
            self.conn = _Parser(lambda: connections.asks(self._number), transport.abort)
            super().connection_made(transport)

        def on_response_complete(self) -> None:
            if not self.flow.write_paused:  # or the client still reads
                connections.answered(self._number)
            super().on_response_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            connections.stalls(self._number)

        def resume_writing(self) -> None:
            (connections.answered if self.cycle.response_complete else connections.asks)(self._number)
            super().resume_writing()

    return Protocol


def most_connections(wanted: int, for_files: int = 256) -> int:
    """As many as wanted, if that leaves files for the rest; the process's limit is raised where it may be."""
    if resource is None:  # pragma: no cover
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + for_files
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = raised
    return min(wanted, soft - min(for_files, soft // 2))
