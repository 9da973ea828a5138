"""The progress bar: silent unless someone watches and the work is long."""

from __future__ import annotations

import io

import pytest

from cloakgp.core import progress
from cloakgp.core.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves when told."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def run(stream, clock, steps, seconds):
    with Progress("planning", steps, stream) as bar:
        for _ in range(steps):
            clock[0] += seconds
            bar.advance()
    return stream.getvalue()


def test_long_work_is_shown_on_a_terminal_and_wiped_at_the_end(clock):
    shown = run(Terminal(), clock, 4, 0.6)
    drawn = shown.split("\r")
    assert drawn[1].startswith("planning [###############---------------] 2/4")
    assert "4/4" in shown
    assert drawn[-1] == ""
    assert drawn[-2].strip() == ""
    assert len(drawn[-2]) >= len(drawn[1])


@pytest.mark.parametrize(("stream", "steps", "seconds"), [(Terminal, 9, 0.1), (io.StringIO, 4, 5.0)])
def test_short_work_is_silent_and_files_are_not_written_to(clock, stream, steps, seconds):
    assert run(stream(), clock, steps, seconds) == ""


def test_the_line_is_wiped_after_an_error(clock):
    stream = Terminal()

    def work():
        with Progress("planning", 3, stream) as bar:
            clock[0] += 2
            bar.advance()
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert stream.getvalue().endswith(" \r")


def test_no_stream_at_all(monkeypatch, clock):
    for stream in (None, object()):
        monkeypatch.setattr(progress.sys, "stderr", stream)
        with Progress("planning", 1) as bar:
            clock[0] += 2
            bar.advance()
    closed = io.StringIO()
    closed.close()
    with Progress("planning", 1, closed) as bar:
        clock[0] += 2
        bar.advance()
