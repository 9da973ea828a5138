"""The progress bar: silent unless someone watches and the work is long."""

from __future__ import annotations

import io

import pytest

from cloakgp import progress
from cloakgp.progress import Progress


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


def test_short_work_is_silent(clock):
    assert run(Terminal(), clock, 9, 0.1) == ""


def test_a_file_is_not_written_to(clock):
    assert run(io.StringIO(), clock, 4, 5.0) == ""


def test_it_does_not_draw_more_often_than_can_be_seen(clock):
    shown = run(Terminal(), clock, 3000, 0.001)
    assert 15 < shown.count("planning") < 25


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
