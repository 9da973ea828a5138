"""A few slots for heavy work, and a queue before them that one person cannot fill."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from cloakgp.app import current_request
from cloakgp.app.errors import busy, too_many

_GLANCE = 0.2  # seconds between two looks whether the client is still there
_BUSY = "the server is busy with other plans. Try again in a moment."


class WorkQueue:
    """For threads; first come, first served, but one slot is always somebody else's.

    Parameters
    ----------
    at_once : int
        How many work at the same time.
    waiting : int
        How many more may wait.
    each : int
        How many of both may be one person's.
    patience : float
        Seconds to wait at most.
    """

    def __init__(self, at_once: int, waiting: int, each: int, patience: float) -> None:
        self._at_once, self._most, self._each, self._patience = at_once, at_once + waiting, each, patience
        self._changed = threading.Condition()
        self._waiting: list[current_request.CurrentRequest] = []
        self._working: Counter[str] = Counter()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """A slot, as soon as there is one; given up if the client goes before that."""
        me = current_request.current()
        with self._changed:
            self._wait(me)
            self._working[me.who] += 1
        try:
            yield
        finally:
            with self._changed:
                self._working[me.who] -= 1
                self._working += Counter()  # forgets those at zero
                self._changed.notify_all()

    def _wait(self, me: current_request.CurrentRequest) -> None:
        mine = self._working[me.who] + sum(other.who == me.who for other in self._waiting)
        if mine >= self._each:
            raise too_many("too many of your plans are being worked out. Wait for one of them.")
        if self._working.total() + len(self._waiting) >= self._most:
            raise busy(_BUSY)
        until = time.monotonic() + self._patience
        self._waiting.append(me)
        me.doing = ("waiting", 0, 0)
        try:
            while not self._next(me):
                if me.gone.is_set() or me.stopped.is_set():
                    raise busy("nobody waits for this any more.")
                if time.monotonic() > until:
                    raise busy(_BUSY)
                self._changed.wait(_GLANCE)
        finally:
            self._waiting.remove(me)
            self._changed.notify_all()

    def _next(self, me: current_request.CurrentRequest) -> bool:
        """Whether it is this one's turn: the first in the queue whose person has not all slots but one."""
        if self._working.total() >= self._at_once:
            return False
        share = max(1, self._at_once - 1)
        return next((one for one in self._waiting if self._working[one.who] < share), None) is me
