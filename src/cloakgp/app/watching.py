"""What a request is doing and how far it is, for whoever waits for it; and a way to stop it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from cloakgp.app.current_request import CurrentRequest, current
from cloakgp.app.errors import stopped
from cloakgp.progress import heard_by


def listening(may_leave: bool = True) -> AbstractContextManager[None]:
    """While this lasts, the request knows how far its work is, and ends between two steps if it is stopped.

    With `may_leave` it also ends if nobody waits for it any more: that is for work that costs nothing.
    """
    me = current()

    def hear(label: str, done: int, total: int) -> None:
        me.doing = (label, done, total)
        check_wanted(me, may_leave)

    return heard_by(hear)


def check_wanted(request: CurrentRequest, may_leave: bool = True) -> None:
    """Raise if a request was stopped, or, with `may_leave`, if its client is gone."""
    if request.stopped.is_set() or (may_leave and request.gone.is_set()):
        raise stopped("this was stopped. Nothing was spent.")


class Watching:
    """Requests by the ids that those who sent them gave them."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], CurrentRequest] = {}
        self._lock = threading.Lock()

    @contextmanager
    def under(self, person: str, work: str | None) -> Iterator[None]:
        """While this lasts, the current request can be asked for."""
        key = (person, work or "")
        with self._lock:
            self._of[key] = current()
        try:
            yield
        finally:
            with self._lock:
                self._of.pop(key, None)

    def get(self, person: str, work: str) -> CurrentRequest | None:
        """The request that somebody gave this id; None if it is over, or not begun."""
        with self._lock:
            return self._of.get((person, work))
