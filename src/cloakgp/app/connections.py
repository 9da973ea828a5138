"""Connections: how many there may be, and how long one may stay that asks for nothing.

uvicorn waits for ever for the end of a request's headers, and takes as many connections as there are, until
the process may not open another file. Here each connection has a deadline, which no trickle of bytes moves;
and when there are too many, the oldest that has not asked for anything makes room. So whoever holds a
thousand connections open does not keep out somebody from the same address who asks at once.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from cloakgp.app.limits import Limits

try:
    import resource
except ImportError:  # pragma: no cover  (Windows, where files are not counted like this)
    resource = None  # type: ignore[assignment]

HEAD = 32 * 2**10  # bytes of a request's headers
_KEPT_FOR_FILES = 256
_CHUNKS, _CHUNK = 1000, 512  # so many chunks of a body may be smaller than so many bytes on average
_LEAVING = 64  # of those sent away, the most that may still be open while others are let in


@dataclass(eq=False)
class _Connected:
    """An open connection."""

    connection: socket.socket
    address: str
    deadline: asyncio.TimerHandle | None = None
    leaving: bool = False


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
        self._open: dict[int, _Connected] = {}
        self._new: OrderedDict[int, _Connected] = OrderedDict()
        self._idle: OrderedDict[int, _Connected] = OrderedDict()
        self._staying: Counter[str] = Counter()  # by address, without those who leave
        self._leaving = 0

    @property
    def full(self) -> bool:
        """Whether those who were sent away should be let out first."""
        return self._leaving >= _LEAVING

    def admits(self, connection: socket.socket, address: str) -> bool:
        """Let a connection in; one that asks for nothing has to go, if there is no room."""
        crowded = self._staying[address] >= self.limits.connections_each and address not in self._exempt
        if crowded or len(self._open) - self._leaving >= self.most:
            oldest = next(self._quiet(address if crowded else None), None)
            if oldest is None:
                return False
            self._send_away(oldest)
        number, open_one = connection.fileno(), _Connected(connection, address)
        self._open[number] = self._new[number] = open_one
        self._staying[address] += 1
        self._expect(number, self.limits.head_seconds)
        return True

    def asks(self, number: int) -> None:
        """The headers of a request are complete."""
        self._forget(number)

    def answered(self, number: int) -> None:
        """The answer is out, and another request may come."""
        self._forget(number)
        open_one = self._open.get(number)
        if open_one is not None and not open_one.leaving:
            self._idle[number] = open_one
            self._expect(number, self.limits.idle_seconds + self.limits.head_seconds)

    def left(self, number: int) -> None:
        """A connection is being closed."""
        self._forget(number)
        open_one = self._open.pop(number, None)
        if open_one is None:  # it was never let in
            return
        if open_one.leaving:
            self._leaving -= 1
        else:
            self._count_out(open_one)

    def _quiet(self, address: str | None) -> Iterator[int]:
        """Those without a request, of one address or all: first who never made one, then the longest idle."""
        for quiet in (self._new, self._idle):
            yield from (n for n, open_one in quiet.items() if address is None or open_one.address == address)

    def _expect(self, number: int, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._open[number].deadline = loop.call_later(seconds, self._send_away, number)

    def _forget(self, number: int) -> None:
        self._new.pop(number, None)
        self._idle.pop(number, None)
        open_one = self._open.get(number)
        if open_one is not None and open_one.deadline is not None:
            open_one.deadline.cancel()
            open_one.deadline = None

    def _send_away(self, number: int) -> None:
        """End a connection: the event loop sees that, and closes it in its next round."""
        self._forget(number)
        open_one = self._open[number]
        open_one.leaving = True
        self._leaving += 1
        self._count_out(open_one)
        with suppress(OSError):  # it has ended already
            open_one.connection.shutdown(socket.SHUT_RDWR)

    def _count_out(self, open_one: _Connected) -> None:
        self._staying[open_one.address] -= 1
        if not self._staying[open_one.address]:
            del self._staying[open_one.address]


class ListeningSocket(socket.socket):
    """A listening socket that asks which connections are let in."""

    def __init__(self, connections: Connections, listening: socket.socket) -> None:
        super().__init__(listening.family, listening.type, listening.proto, fileno=listening.detach())
        self._connections = connections

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that is let in; the others are closed."""
        while not self._connections.full:
            accepted, address = super().accept()
            connection = _Connection(self._connections, accepted)
            if self._connections.admits(connection, address[0]):
                return connection, address
            connection.close()
        raise BlockingIOError  # the event loop comes back in its next round


class _Connection(socket.socket):
    """Says when it is closed, whoever closes it."""

    def __init__(self, connections: Connections, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._connections = connections

    def close(self) -> None:
        if self.fileno() >= 0:
            self._connections.left(self.fileno())
        super().close()


class _Parser(h11.Connection):
    """Ends a connection whose body comes in a great many tiny chunks: each takes the event loop as long as a
    large one, and of one byte there are tens of thousands in all that is read at once."""

    def __init__(self, most_head: int, end: Callable[[], None]) -> None:
        super().__init__(h11.SERVER, most_head)
        self._end, self._chunks, self._bytes = end, 0, 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._bytes += len(event.data)
            if self._chunks > _CHUNKS and self._bytes < _CHUNK * self._chunks:
                if self.our_state is h11.SEND_RESPONSE:
                    raise h11.RemoteProtocolError("too many small chunks")
                self._end()
                return h11.NEED_DATA
        return event


def protocol_of(connections: Connections) -> type[H11Protocol]:
    """uvicorn's protocol, with h11 as its parser, that says when a request begins and ends."""

    class Protocol(H11Protocol):
        _number = -1
        _stalled: asyncio.TimerHandle | None = None
        _all_written = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            self._number = transport.get_extra_info("socket").fileno()
            self.conn = _Parser(HEAD, transport.abort)
            super().connection_made(transport)

        def handle_events(self) -> None:
            before = self.cycle
            super().handle_events()
            if self.cycle is not before:
                connections.asks(self._number)

        def on_response_complete(self) -> None:
            if self.flow.write_paused:  # the client still reads
                self._all_written = True
            else:
                connections.answered(self._number)
            super().on_response_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stalled = self.loop.call_later(connections.limits.stalled_seconds, self.transport.abort)

        def resume_writing(self) -> None:
            self._unset_stalled()
            if self._all_written:
                self._all_written = False
                connections.answered(self._number)
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._unset_stalled()
            super().connection_lost(exc)

        def _unset_stalled(self) -> None:
            if self._stalled is not None:
                self._stalled.cancel()
                self._stalled = None

    return Protocol


def most_connections(wanted: int) -> int:
    """As many as wanted, if that leaves files for the rest; the process's limit is raised where it may be."""
    if resource is None:  # pragma: no cover
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    needed = wanted + _KEPT_FOR_FILES
    if soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    return max(1, min(wanted, soft - min(_KEPT_FOR_FILES, soft // 2)))
