"""How many threads linear algebra has: the one rule for the library, the command line, the app and scripts.

One, while cloakgp computes; afterwards as many as before. Most matrices have a few hundred rows. Several
threads that share one of them mostly wait, and do so busily: on two cores that others use as well, a release
takes many times the processor time. Numpy and SciPy each come with a BLAS of their own, whose threads
fight for the same cores. And each number of threads rounds differently, where a plan should be the same to
the last bit. Large work is shared among threads of our own, each with one BLAS thread: see
:mod:`cloakgp.data.chunks`.

The exception is an exact GP of more than `LARGE` rows, planned from Python: nearly all of its time goes into
one factorisation, which may have all threads that numpy was given. The command line, the app and the scripts
that it writes limit everything they do, so that a plan that is made again has the same digits.

The limit is set by threadpoolctl around our calls. An environment variable would have to be set before numpy
is loaded, and would hold for all else in the process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from threading import Lock
from typing import Any

LARGE = 2**12
"""Rows of a matrix from which on several BLAS threads are worth their while."""

_lock, _inside = Lock(), 0
_before: dict[str, tuple[Any, int]] = {}
"""Each library that is limited, by its file, and how many threads it had."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One BLAS thread, as a context or as a decorator.

    The limit holds for the whole process, so the first who asks for it sets it and the last one lifts it.
    Whoever asks again also limits libraries that were loaded meanwhile, or given more threads.
    """
    one_blas_thread_for_good()
    global _inside
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                for library, threads in _before.values():
                    _set_threads(library, threads)
                _before.clear()


def one_blas_thread_for_good() -> None:
    """The same until the process ends, for programs that do nothing else: the app, and scripts."""
    global _inside
    with _lock:
        _inside += 1
        for library in _libraries(len(sys.modules)):
            if (threads := library.num_threads) != 1:
                _before.setdefault(library.filepath, (library, threads))
                _set_threads(library, 1)


def blas_threads(n_rows: int) -> AbstractContextManager[None]:
    """For square matrices with so many rows: one BLAS thread, unless they are large."""
    return nullcontext() if n_rows > LARGE else one_blas_thread()


def _set_threads(library: Any, threads: int) -> None:
    """From 3.8 on, threadpoolctl ignores all threads of Python's but the first that ever set a number.

    Which of ours comes first and which is the last to leave is chance, and we count them ourselves.
    """
    let_go = getattr(library, "clear_controlling_thread", lambda force: None)
    let_go(force=True)
    library.set_num_threads(threads)
    let_go(force=True)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> tuple[Any, ...]:
    """The BLAS libraries of this process, looked for again once a module was imported, which may load one.

    Looking through all libraries takes milliseconds, longer than many a product.
    """
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
