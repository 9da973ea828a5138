"""One cache for all of the app: each result is worked out once, and the newest used stay."""

from __future__ import annotations

import threading

import pytest

from cloakgp.app.cache import Cache


def test_many_who_ask_at_once_wait_for_one_result():
    cache: Cache[int] = Cache(4)
    made, go_on, found = [], threading.Event(), []

    def make() -> int:
        made.append(1)
        assert go_on.wait(60)
        return 7

    threads = [threading.Thread(target=lambda: found.append(cache.get("x", make))) for _ in range(8)]
    for thread in threads:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert (found, made) == ([7] * 8, [1])


def test_the_longest_unused_goes_first():
    cache: Cache[str] = Cache(2)
    for key in ("a", "b", "a", "c"):
        cache.get(key, lambda key=key: f"first {key}")
    assert [cache.get(key, lambda: "again") for key in ("a", "c", "b")] == ["first a", "first c", "again"]


def test_results_may_have_weights_and_the_newest_stays_however_heavy():
    cache: Cache[int] = Cache(10, weight=float)
    for size in (4, 5, 100):
        cache.get(size, lambda size=size: size)
    assert cache.get(100, lambda: -1) == 100
    assert cache.get(4, lambda: -1) == -1


def test_a_failure_is_not_kept():
    cache: Cache[int] = Cache(2)
    with pytest.raises(ZeroDivisionError):
        cache.get("x", lambda: 1 // 0)
    assert cache.get("x", lambda: 3) == 3
