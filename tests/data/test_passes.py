"""Passes over rows: every row once, in order, the same bits whatever the threads; and where X comes from."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from cloakgp import GP
from cloakgp.data import chunks as streams
from cloakgp.data import sources
from cloakgp.data.chunks import chunks, steps
from cloakgp.data.passes import sweep
from cloakgp.data.sources import as_source, is_lazy
from cloakgp.kernels import EQ

RNG = np.random.default_rng(8)
X = RNG.normal(size=(1000, 3))
WIDE = RNG.normal(size=(3, 40))


@pytest.fixture
def small(monkeypatch):
    """Many chunks of few rows."""
    monkeypatch.setattr(streams, "CHUNK", 64)
    monkeypatch.setattr(streams, "STEP", 16)


@pytest.fixture
def workers(monkeypatch):
    """So many threads, whatever the machine has."""

    def use(n):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(n), raising=False)

    return use


@pytest.fixture
def mapped(tmp_path):
    """An array as a memory map."""

    def store(array, name="X.npy"):
        np.save(tmp_path / name, array)
        return np.load(tmp_path / name, mmap_mode="r+")

    return store


def gram(X, scale):
    """Sums whose last bits depend on the order of adding, and on how the rows lie in memory."""
    return X.T @ X * scale + (X @ WIDE).sum(), float(X.sum())


def late(first, X):
    """The earlier the rows, the longer it takes, so that they are finished in the wrong order."""
    time.sleep(0.02 * (1 - first[0] / 1000))
    return int(first[0]), len(X)


# Passes


@pytest.mark.parametrize("length", [1, 15, 16, 17, 63, 64, 65, 640, 641])
def test_chunks_and_steps_cover_every_row_once_and_in_order(small, length):
    assert np.concatenate([np.arange(length)[part] for part in chunks(length)]).tolist() == [*range(length)]
    assert np.concatenate([np.arange(length)[part] for part in steps(length)]).tolist() == [*range(length)]
    assert max(part.stop - part.start for part in chunks(length)) <= 64
    assert max(part.stop - part.start for part in steps(length)) <= 16


@pytest.mark.parametrize("n", [1, 2, 5])
def test_answers_come_in_the_order_of_the_rows(small, workers, n):
    workers(n)
    answers = list(sweep(late, np.arange(1000), X))
    assert answers == [(start, min(64, 1000 - start)) for start in range(0, 1000, 64)]


def test_sums_have_the_same_bits_whatever_the_threads_and_wherever_the_rows_are(small, workers, mapped):
    everything = []
    for n in (1, 2, 5):
        workers(n)
        for source in (X, mapped(X), np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], mapped(X.T).T):
            parts = list(sweep(gram, source, 0.3))
            everything.append((sum(part[0] for part in parts).tobytes(), sum(part[1] for part in parts)))
    assert len(set(everything)) == 1


def test_threads_are_as_many_as_there_are_processors_and_blas_has_one_each(small, workers):
    workers(3)
    seen, together, most, lock = set(), [0], [0], threading.Lock()

    def look(part):
        with lock:
            together[0] += 1
            most[0] = max(most[0], together[0])
        time.sleep(0.005)
        with lock:
            together[0] -= 1
        seen.add(threading.get_ident())
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    found = list(sweep(look, X))
    assert found[0]
    assert all(n == 1 for each in found for n in each)
    assert 1 < len(seen) <= 3
    assert most[0] <= 3


def test_no_more_chunks_are_under_way_than_threads_can_use(small, workers):
    """What was computed and not yet taken is bounded, however long the rows are."""
    workers(2)
    started = []

    def begin(part):
        started.append(int(part[0]))

    parts = sweep(begin, np.arange(1000))
    next(parts)
    time.sleep(0.1)
    assert len(started) <= 3
    parts.close()
    time.sleep(0.05)
    assert len(started) <= 3


def test_an_error_in_one_chunk_ends_the_pass_and_its_threads(small, workers):
    workers(2)
    before = threading.active_count()

    def fail(part):
        if part[0] == 128:
            raise ValueError("this one")
        return int(part[0])

    parts, got = sweep(fail, np.arange(1000)), []
    with pytest.raises(ValueError, match="this one"):
        got.extend(parts)
    assert threading.active_count() == before
    assert list(sweep(fail, np.arange(100))) == [0, 64]


def test_a_pass_without_affinities_runs_too(small, monkeypatch):
    """Some systems do not tell which processors a program may use."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert list(sweep(len, X)) == [len(X[part]) for part in chunks(len(X))]


# Where X comes from


def test_arrays_are_copied_and_cannot_be_changed_behind_a_plans_back():
    mine = X.copy()
    source = as_source(mine, "X")
    mine[0] = 7.0
    np.testing.assert_array_equal(source, X)
    with pytest.raises(ValueError, match="read-only"):
        source[0] = 7.0


def test_memory_maps_and_large_arrays_are_left_where_they_are(mapped, monkeypatch):
    kept = mapped(X)
    assert as_source(kept, "X") is kept
    monkeypatch.setattr(sources, "_COPIED", X.nbytes)
    assert not is_lazy(X)
    assert as_source(X, "X") is not X
    monkeypatch.setattr(sources, "_COPIED", X.nbytes - 1)
    assert as_source(X, "X") is X


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        *(
            (X.astype(dtype), "X must hold float64 numbers .* got dtype")
            for dtype in (np.float32, ">f8", int)
        ),
        *(
            (X[:, 0].reshape(shape), "X must be a matrix .* got shape")
            for shape in [(10, 10, 10), (1, 1, 1000)]
        ),
        (X[:, :2], r"X must be a matrix with 3 column\(s\), as X has"),
    ],
)
def test_memory_maps_of_another_kind_are_refused(mapped, rows, match):
    with pytest.raises((TypeError, ValueError), match=match):
        as_source(mapped(rows), "X", columns=3)
    assert as_source(mapped(X[:, 0]), "X").shape == (len(X), 1)  # a vector is one column


@pytest.mark.parametrize(("row", "bad"), [(0, np.nan), (500, np.inf), (999, -np.inf)])
def test_memory_maps_with_a_hole_anywhere_are_refused(small, mapped, bad, row):
    kept = mapped(X)
    kept[row, 1] = bad
    gp = GP(EQ(1.0), 0.1, (0.0, 1.0), 0.5, X[:4])
    with pytest.raises(ValueError, match="X must be finite"):
        gp.plan(kept, X_star=X[:2], epsilon=1.0, delta=0.01)


@pytest.mark.parametrize("inducing", [None, 4])
def test_a_plan_of_few_rows_holds_them(mapped, inducing):
    """A memory map may be written to afterwards; what a plan predicts may not change with it."""
    kept = mapped(X)
    gp = GP(EQ(1.0), 0.1, (0.0, 1.0), 0.5, inducing)
    release = gp.plan(kept, X_star=X[:3], epsilon=1.0, delta=0.01).release(np.full(len(X), 0.3))
    before = release.predict(X[:5])
    kept[:] = 0.0
    np.testing.assert_array_equal(release.predict(X[:5]), before)
    assert not isinstance(release.plan.X, np.memmap)


def test_items_in_threads_keep_their_order_and_numpys_warnings_as_they_were():
    def root(number):
        time.sleep(0.01 * (number > 0))
        with np.errstate():
            return np.sqrt(np.array(-1.0)), number

    with np.errstate(invalid="ignore"):  # warnings are errors in tests
        found = streams.in_threads(root, [2, 1, 0])
    assert [number for _, number in found] == [2, 1, 0]
    assert streams.in_threads(root, []) == []


def test_a_function_in_threads_may_use_threads_and_may_fail():
    def squares(n):
        return sum(streams.in_threads(lambda k: k * k, range(n)))

    assert streams.in_threads(squares, [3] * 40) == [5] * 40
    with pytest.raises(ZeroDivisionError):
        streams.in_threads(lambda n: 1 / n, [1, 2, 0, 3])


def test_after_a_failure_in_threads_none_goes_on_and_none_is_left_at_work(workers):
    workers(2)
    both, begun, ended = threading.Barrier(2, timeout=30), [], []

    def fail(n):
        begun.append(n)
        if n < 2:
            both.wait()
        if n == 0:
            raise KeyError(n)
        time.sleep(0.005)
        ended.append(n)

    with pytest.raises(KeyError):
        streams.in_threads(fail, range(100))
    assert sorted(begun) == [0, *sorted(ended)]
    assert len(begun) < 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_copy_of_the_process_has_threads_of_its_own():
    before = streams._pool()
    child = os.fork()
    if not child:
        os._exit(0 if streams._pool() is not before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
