"""Whom a request is for, and whether they still wait: known wherever it is worked on, threads included."""

from __future__ import annotations

import threading
from contextvars import ContextVar


class Asking:
    """One request: `who` is a person's id or an address."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.gone = threading.Event()


NOBODY = Asking("nobody")
_asking: ContextVar[Asking] = ContextVar("asking", default=NOBODY)


def begin(who: str) -> Asking:
    """From here on, in this task and whatever it starts, work is for a new request."""
    asking = Asking(who)
    _asking.set(asking)
    return asking


def current() -> Asking:
    """The request that is worked on here; nobody's if there is none."""
    return _asking.get()
