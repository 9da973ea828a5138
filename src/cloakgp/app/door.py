"""Connections: how many there may be, and how long one may stay that asks for nothing.

uvicorn waits for ever for the end of a request's headers, and takes as many connections as there are, until the
process may not open another file. Here each connection has a deadline, which no trickle of bytes moves; and when
there are too many, the oldest that has not asked for anything makes room. So whoever holds a thousand connections
open does not keep out somebody from the same address who asks at once.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter, OrderedDict
from collections.abc import Container, Iterator
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from cloakgp.app.limits import Limits

try:
    import resource
except ImportError:  # pragma: no cover  (Windows, where files are not counted like this)
    resource = None  # type: ignore[assignment]

Peer = tuple[str, int]
_KEPT_FOR_FILES = 256
_CLOSING = 64  # of those sent away, the most that may still be open while new ones are accepted


class Door:
    """Who is in, since when, and who is being answered. The event loop's own.

    Parameters
    ----------
    limits : Limits
    exempt : container of str
        Addresses that stand for many people: a proxy's.
    """

    def __init__(self, limits: Limits, exempt: Container[str] = ()) -> None:
        self.limits, self._exempt = limits, exempt
        self.most = most_connections(limits.connections)
        self._each = min(limits.connections_each, self.most)
        self._open: dict[Peer, socket.socket] = {}
        self._from: Counter[str] = Counter()
        self._new: OrderedDict[Peer, None] = OrderedDict()
        self._idle: OrderedDict[Peer, None] = OrderedDict()
        self._deadlines: dict[Peer, asyncio.TimerHandle] = {}
        self._closing: set[Peer] = set()

    @property
    def full(self) -> bool:
        """Whether those who were sent away should be let out first."""
        return len(self._closing) >= _CLOSING

    def admits(self, peer: Peer, connection: socket.socket) -> bool:
        """Let a connection in; somebody who asks for nothing goes, if there is no room."""
        crowded = self._from[peer[0]] >= self._each and peer[0] not in self._exempt
        if crowded or len(self._open) - len(self._closing) >= self.most:
            oldest = next(self._quiet(peer[0] if crowded else None), None)
            if oldest is None:
                return False
            self._send_away(oldest)
        self._open[peer] = connection
        self._from[peer[0]] += 1
        self._new[peer] = None
        self._expect(peer, self.limits.head_seconds)
        return True

    def asks(self, peer: Peer) -> None:
        """The headers of a request are complete."""
        self._forget(peer)

    def answered(self, peer: Peer) -> None:
        """The answer is complete, and another request may come."""
        self._forget(peer)
        if peer in self._open and peer not in self._closing:
            self._idle[peer] = None
            self._expect(peer, self.limits.idle_seconds + self.limits.head_seconds)

    def left(self, peer: Peer) -> None:
        """The connection is closed."""
        self._forget(peer)
        if self._open.pop(peer, None) is not None and peer not in self._closing:
            self._count_out(peer)
        self._closing.discard(peer)

    def _quiet(self, address: str | None) -> Iterator[Peer]:
        """Those without a request, of one address or all; who never made one first, then the longest idle."""
        for quiet in (self._new, self._idle):
            yield from (peer for peer in quiet if address is None or peer[0] == address)

    def _expect(self, peer: Peer, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._deadlines[peer] = loop.call_later(seconds, self._send_away, peer)

    def _forget(self, peer: Peer) -> None:
        self._new.pop(peer, None)
        self._idle.pop(peer, None)
        if (deadline := self._deadlines.pop(peer, None)) is not None:
            deadline.cancel()

    def _send_away(self, peer: Peer) -> None:
        """End a connection. The event loop sees that it ended, and closes it in its next round."""
        self._forget(peer)
        self._closing.add(peer)
        self._count_out(peer)
        with suppress(OSError):  # it has ended already
            self._open[peer].shutdown(socket.SHUT_RDWR)

    def _count_out(self, peer: Peer) -> None:
        self._from[peer[0]] -= 1
        if not self._from[peer[0]]:
            del self._from[peer[0]]


class Listening(socket.socket):
    """A listening socket that asks the door."""

    def __init__(self, door: Door, listening: socket.socket) -> None:
        super().__init__(listening.family, listening.type, listening.proto, fileno=listening.detach())
        self._door = door

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that is let in; the others are closed."""
        while not self._door.full:
            connection, address = super().accept()
            peer: Peer = address[:2]
            counted = _Counted(self._door, peer, connection)
            if self._door.admits(peer, counted):
                return counted, address
            counted.close()
        raise BlockingIOError  # the event loop comes back in its next round


class _Counted(socket.socket):
    """A connection that tells the door when it is closed, whoever closes it."""

    def __init__(self, door: Door, peer: Peer, connection: socket.socket) -> None:
        super().__init__(connection.family, connection.type, connection.proto, fileno=connection.detach())
        self._door, self._peer = door, peer

    def close(self) -> None:
        super().close()
        self._door.left(self._peer)


def protocol_of(door: Door) -> type[H11Protocol]:
    """uvicorn's protocol, with h11 as its parser, that tells the door when a request begins and ends."""

    class Protocol(H11Protocol):
        _stalled: asyncio.TimerHandle | None = None

        def handle_events(self) -> None:
            before = self.cycle
            super().handle_events()
            if self.cycle is not before and not self.cycle.response_complete and self.client is not None:
                door.asks(self.client)

        def on_response_complete(self) -> None:
            if self.client is not None:
                door.answered(self.client)
            super().on_response_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stalled = self.loop.call_later(door.limits.stalled_seconds, self.transport.abort)

        def resume_writing(self) -> None:
            self._unset_stalled()
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
    """As many as wanted, if that leaves files for the rest; the process's own limit is raised if it may be."""
    if resource is None:  # pragma: no cover
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _KEPT_FOR_FILES
    if soft == resource.RLIM_INFINITY:
        return wanted
    if soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    return max(1, min(wanted, soft - min(_KEPT_FOR_FILES, soft // 2)))
