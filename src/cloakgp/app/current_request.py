"""Whom a request is for, and whether they still wait: known wherever it is worked on, threads included."""

from __future__ import annotations

import threading
from contextvars import ContextVar


class CurrentRequest:
    """One request: `who` is a person's id or an address."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.gone, self.stopped = threading.Event(), threading.Event()
        self.doing = ("", 0, 0)
        """What it does, how many steps are done, and of how many."""


NOBODY = CurrentRequest("nobody")
_current: ContextVar[CurrentRequest] = ContextVar("current_request", default=NOBODY)


def begin(who: str) -> CurrentRequest:
    """From here on, in this task and whatever it starts, work is for a new request."""
    request = CurrentRequest(who)
    _current.set(request)
    return request


def current() -> CurrentRequest:
    """The request that is worked on here; nobody's if there is none."""
    return _current.get()
