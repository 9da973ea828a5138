"""Processes and threads never share noise.

A generator whose state is copied by a fork draws the same noise in every child: two releases of it, of data
that differ in one outcome, would give that outcome away by subtraction. The releases are made by a
program of its own (``draws_in_children.py``), where forking does not disturb pytest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from privacy_helpers import fails, require

SCRIPT = Path(__file__).with_name("draws_in_children.py")
FORKS = hasattr(os, "fork")
KINDS = [
    pytest.param("os.fork", marks=pytest.mark.skipif(not FORKS, reason="needs fork")),
    pytest.param("fork", marks=pytest.mark.skipif(not FORKS, reason="needs fork")),
    "spawn",
    "threads",
]


@cache
def drawn():
    """What the program printed, by kind and mode."""
    command = [sys.executable, "-W", "ignore", str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    require(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def check_fresh_noise_everywhere(kind, mode):
    """No number is drawn twice, in any process or thread; by chance that has probability below 1e-12."""
    results = drawn()[kind][mode]
    numbers = [number for batch in results for z in batch for number in z]
    require(len(results) >= 4 and len(numbers) >= 24, "too few draws")
    assert len(set(numbers)) == len(numbers), "two processes or threads drew the same noise"


@pytest.mark.parametrize("kind", KINDS)
def test_children_and_threads_draw_noise_of_their_own(kind):
    """Forked after a release, spawned, or in threads: same plan, same outcomes, all z different."""
    check_fresh_noise_everywhere(kind, "secure")


@pytest.mark.parametrize("kind", KINDS)
def test_planted_noise_from_a_seed_is_caught(kind):
    """With the insecure seed in force children draw alike, and the check sees it."""
    assert fails(check_fresh_noise_everywhere, kind, "insecure")
