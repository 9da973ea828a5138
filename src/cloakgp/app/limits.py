"""How much may be asked, how fast, and for how long."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

ROWS = 6000
"""Rows of a table that a plan can be made for without inducing inputs: its work grows with their cube."""
INDUCING_ROWS = 1_000_000
"""Rows with inducing inputs."""
INDUCING = 500
SKETCHED = 20_000
"""Rows that a preview looks at; of a larger table, so many that stand for all."""
FUNCTION_ROWS = 2000
INPUT_ROWS = 2_000_000
"""Rows of a table whose input columns can be looked at."""
POINTS = 2500
"""Test points of a plan."""
MANY_ROWS, POINTS_OF_MANY_ROWS = 100_000, 500
"""Test points of a plan for more rows than that."""
QUERY_POINTS = 10_000
"""Points of one request for predictions."""
EPSILONS = 40
SAMPLE = 2000
"""Rows of inputs that are sent for drawing."""


@dataclass(frozen=True)
class Limits:
    """What one server allows; all can be changed when it is started."""

    upload_bytes: int = 200 * 2**20
    json_bytes: int = 8 * 2**20
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
