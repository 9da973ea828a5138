"""How much may be asked, how fast, and for how long."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


class Most:
    """What the app plans, predicts and shows at most. More would keep others waiting for a person's work."""

    exact_rows = 6000
    """Of a table described without inducing inputs: the work grows with their cube."""
    function_rows = 2000
    rows = 1_000_000
    """With inducing inputs, or of which the model is learned; that count, where they are private."""
    rows_of_a_person = 1000
    inputs = 20
    inducing = 500
    given = 8
    """Earlier releases that a plan can take into account."""
    points = 2500
    """Of a plan; of more than these rows, fewer."""
    rows_of_many_points, points_of_many_rows = 100_000, 500
    query_points = 10_000
    cells = 5000
    """Of a box, where inputs are private: the work grows with their cube."""
    levels = 200
    classes = 20
    """That outcomes may be one of: each is a curve of its own."""
    epsilons = 40
    rough = 300
    """Rows that a rough preview of a described model looks at."""
    sample = 2000
    """Rows of inputs that are sent for drawing."""


@dataclass(frozen=True)
class Limits:
    """What one server allows; all can be changed when it is started."""

    upload_bytes: int = 200 * 2**20
    json_bytes: int = 8 * 2**20
    sign_in_bytes: int = 4 * 2**10
    body_seconds: float = 30.0
    """For a request's body to arrive."""
    upload_seconds: float = 900.0
    answer_seconds: float = 150.0
    """After that the client is told to come back; the work goes on."""
    requests_per_second: float = 30.0
    """Of one person, in the long run."""
    burst: int = 300
    failures_per_minute: float = 10.0
    """Failed sign-ins from one address."""
    sign_ins_per_second: float = 10.0
    """From one address, right or wrong, with bursts of five seconds' worth."""
    requests_at_once: int = 16
    """Of one person: being sent, waiting, or worked on."""
    strangers_at_once: int = 64
    """Requests of one address without a token."""
    bytes_at_once: int = 16 * 2**20
    """In the bodies of one person's requests at once, tables aside: those go to disk as they come."""
    all_bytes_at_once: int = 256 * 2**20
    idle_seconds: int = 15
    """That a connection stays open between requests."""
    connections: int = 800
    """Open at once; while there are more, requests are refused. Most systems allow a process 1,024 files."""


class Rate:
    """A bucket of tokens for each key, refilled at a steady rate."""

    def __init__(
        self, per_second: float, burst: float, keys: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second, self._burst, self._keys, self._clock = per_second, burst, keys, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def allows(self, key: str) -> bool:
        """Take a token, if there is one."""
        with self._lock:
            now = self._clock()
            left, since = self._left.pop(key, (self._burst, now))
            left = min(self._burst, left + (now - since) * self._per_second)
            granted = left >= 1
            self._left[key] = (left - 1 if granted else left), now
            while len(self._left) > self._keys:
                self._left.popitem(last=False)
            return granted


class InFlight:
    """Requests that are being worked on, by whom they are from, and the bytes that were promised for them.

    The event loop's own: no other thread asks it.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._all_bytes = most_bytes, 0
        self._requests: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def begin(self, who: str, size: int, most: int, most_bytes: int) -> bool:
        """Count one more, unless that were too many or too much; a first request is never too much."""
        already = self._requests[who]
        if already >= most or (already and self._bytes[who] + size > most_bytes):
            return False
        if size and self._all_bytes + size > self._most_bytes:
            return False
        self._requests[who] += 1
        self._bytes[who] += size
        self._all_bytes += size
        return True

    def end(self, who: str, size: int) -> None:
        """Count it no longer."""
        self._requests[who] -= 1
        self._bytes[who] -= size
        self._all_bytes -= size
        if not self._requests[who]:
            del self._requests[who], self._bytes[who]
