"""Work for a request: whom it is for, how far it is, whether anybody still waits; a queue for heavy work; and
what is kept of it.

Whom work is for is known wherever a request is worked on, threads included.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

from cloakgp.app.errors import busy, stopped, too_many
from cloakgp.core.progress import heard_by

T = TypeVar("T")
_BUSY = "the server is busy with other plans. Try again in a moment."


class CurrentRequest:
    """One request: `who` is a person's id or an address."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.gone, self.stopped = threading.Event(), threading.Event()
        self.doing = ("", 0, 0)
        """What it does, how many steps are done, and of how many."""

    def check_wanted(self, may_leave: bool = True) -> None:
        """Raise if it was stopped or, with `may_leave`, if its client is gone."""
        if self.stopped.is_set() or (may_leave and self.gone.is_set()):
            raise stopped("this was stopped. Nothing was spent.")


_NOBODY = CurrentRequest("nobody")
_current: ContextVar[CurrentRequest] = ContextVar("current_request", default=_NOBODY)
current = _current.get
"""The request that is worked on here; nobody's if there is none."""


def begin(who: str) -> CurrentRequest:
    """From here on, in this task and whatever it starts, work is for a new request."""
    request = CurrentRequest(who)
    _current.set(request)
    return request


def listening(may_leave: bool = True) -> AbstractContextManager[None]:
    """While this lasts, the request knows how far its work is, and ends between two steps if it is stopped.

    With `may_leave` it also ends if nobody waits for it any more: that is for work that costs nothing.
    """
    me = current()

    def hear(label: str, done: int, total: int) -> None:
        me.doing = (label, done, total)
        me.check_wanted(may_leave)

    return heard_by(hear)


class WorkQueue:
    """A few slots for heavy work: first come, first served, but one slot is always somebody else's.

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
        self._waiting: list[CurrentRequest] = []
        self._working: Counter[str] = Counter()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """A slot, as soon as there is one; given up if the client goes before that."""
        me = current()
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

    def _wait(self, me: CurrentRequest, glance: float = 0.2) -> None:
        """Look whether the client is still there every `glance` seconds."""
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
                self._changed.wait(glance)
        finally:
            self._waiting.remove(me)
            self._changed.notify_all()

    def _next(self, me: CurrentRequest) -> bool:
        """Whether it is this one's turn: the first in the queue whose person has not all slots but one."""
        if self._working.total() >= self._at_once:
            return False
        share = max(1, self._at_once - 1)
        return next((one for one in self._waiting if self._working[one.who] < share), None) is me


class Cache(Generic[T]):
    """At most so many results, or results of at most so much weight together: the newest used stay, and each
    is worked out once."""

    def __init__(self, most: float, weight: Callable[[T], float] = lambda _: 1.0) -> None:
        self._most, self._weight = most, weight
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def has(self, key: Hashable) -> bool:
        """Whether a result is there already."""
        with self._lock:
            return key in self._kept

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result for `key`; made by the first who asks, while others who ask for it wait."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._kept:
                    return self._kept[key]
            try:
                made = make()
                with self._lock:
                    self._kept[key] = made
                    self._shrink()
            finally:
                with self._lock:
                    self._making.pop(key, None)
            return made

    def _shrink(self) -> None:
        while len(self._kept) > 1 and sum(map(self._weight, self._kept.values())) > self._most:
            self._kept.popitem(last=False)
