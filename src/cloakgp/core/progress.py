"""How far long work is: a bar on a terminal, if it takes a while; and whoever listens is told, too."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TextIO

Listener = Callable[[str, int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("progress_listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """While this lasts, tell of each step: its label, how many are done, and of how many.

    What `listener` raises ends the work between two steps.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Progress:
    """Count finished steps, and draw them on stderr if that is a terminal.

    Examples
    --------
    >>> with Progress("planning", 3) as progress:
    ...     for _ in range(3):
    ...         progress.advance()
    """

    def __init__(self, label: str, total: int, stream: TextIO | None = None) -> None:
        self.label, self.total, self.done = label, total, 0
        self._stream = sys.stderr if stream is None else stream
        self._visible = _listener.get() is None and _is_terminal(self._stream)  # who listens shows it, too
        self._next = time.monotonic() + 1.0  # seconds of silence: most work is done by then
        self._drawn = 0
        self._tell()

    def advance(self) -> None:
        """One more step is done."""
        self.done += 1
        self._tell()
        now = time.monotonic()
        if self._visible and now >= self._next:
            self._next = now + 0.1  # seconds between two drawings
            self._draw()

    def _tell(self) -> None:
        listener = _listener.get()
        if listener is not None:
            listener(self.label, self.done, self.total)

    def _draw(self) -> None:
        bar = ("#" * (30 * self.done // max(self.total, 1))).ljust(30, "-")
        line = f"{self.label} [{bar}] {self.done}/{self.total}"
        self._stream.write("\r" + line.ljust(self._drawn))
        self._stream.flush()
        self._drawn = len(line)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:  # leave a clean line behind, also after an error
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether anyone would see the bar; streams may be closed, replaced or absent."""
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):
        return False
