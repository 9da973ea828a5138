"""Passes over rows that need not fit into memory: a chunk at a time, in threads, added up in order.

A source is anything with a length and slices of rows: an array, a memory map, a Parquet file, a Dask
array. What is computed does not depend on who computes it: chunks have a fixed size, each is worked
through by one thread with one BLAS thread, and results come back in the order of the rows, so sums are
the same to the last bit with two threads, with twenty, or on a cluster.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cloakgp.core.progress import Progress
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.parquet import joined

CHUNK = 2**16
"""Rows of one task."""
STEP = 2**10
"""Rows of a task that are worked on at once: what is made of them stays in the processor's cache."""

S = TypeVar("S")
T = TypeVar("T")


def is_dask(source: Any) -> bool:
    """Whether a source is a Dask collection; true of nothing else, and without importing Dask."""
    return hasattr(source, "__dask_graph__")


def n_rows(sources: tuple[Any, ...]) -> int:
    """How many rows the sources have."""
    return next(len(source) for source in sources if hasattr(source, "__len__"))


def chunks(rows: int) -> list[slice]:
    """Consecutive chunks of so many rows."""
    return [slice(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK)]


def steps(rows: int) -> Iterator[slice]:
    """Consecutive steps through the rows of a chunk."""
    for start in range(0, rows, STEP):
        yield slice(start, min(start + STEP, rows))


def evenly(length: int, n: int) -> NDArray[np.intp]:
    """Up to `n` of so many rows, at even distances."""
    return np.linspace(0, length - 1, min(length, n)).astype(np.intp)


def spread_evenly(X: Any, n: int) -> NDArray[np.float64]:
    """Up to `n` rows of X, at even distances."""
    return np.asarray(X[evenly(len(X), n)], dtype=np.float64)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 4


def in_threads(function: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """function(item) for every item, in order: the same to the last bit, as each has one BLAS thread.

    The caller works too, and waits for no thread that has not begun: a function may call this again.
    """
    results: dict[int, T] = {}
    todo = iter(range(len(items)))  # next() of it is one step of the interpreter: no two get the same

    def work() -> None:
        try:
            for i in todo:
                results[i] = function(items[i])
        except BaseException:
            deque(todo, maxlen=0)  # nobody begins another
            raise

    with one_blas_thread():
        # Each in a copy of this context, or numpy's warnings would be on again.
        others = [_pool().submit(copy_context().run, work) for _ in range(min(_cores(), len(items)) - 1)]
        try:
            work()
        finally:
            begun = [other for other in others if not other.cancel()]
            wait(begun)
        for other in begun:
            other.result()
    return [results[i] for i in range(len(items))]


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that are kept, since starting some takes longer than many a product."""
    return ThreadPoolExecutor(_cores())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a copy of this process has no threads


def one_by_one(function: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
    """The same, each handed over as soon as it is there; few are begun before they are asked for."""
    workers = max(1, min(_cores(), len(items)))
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        with one_blas_thread():
            for item in items:
                # In a copy of this context, or numpy's warnings would be on again.
                waiting.append(pool.submit(copy_context().run, function, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def sweep_threads(function: Callable[..., T], sources: tuple[Any, ...], label: str) -> Iterator[T]:
    """function(rows of each source) for every chunk of rows; a number or None is handed on as it is."""
    tasks = chunks(n_rows(sources))

    def work(rows: slice) -> T:
        # In one layout, since BLAS may add in another order for another.
        return function(
            *(joined([source[rows]]) if hasattr(source, "__len__") else source for source in sources)
        )

    with Progress(label, len(tasks)) as progress:
        for found in one_by_one(work, tasks):
            yield found
            progress.advance()
