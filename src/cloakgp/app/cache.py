"""Results that are kept while there is room: the newest used stay, and each is worked out once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cache(Generic[T]):
    """At most so many results, or results of at most so much weight together."""

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
