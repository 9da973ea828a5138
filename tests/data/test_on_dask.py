"""Passes over Dask arrays: the bits that threads give, y left where it is, and lost workers survived."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

import cloakgp
from cloakgp import binning
from cloakgp.data import cells, passes
from cloakgp.data import chunks as rows_chunks
from cloakgp.kernels import EQ
from cloakgp.private import room
from cloakgp.private.outcomes import INCOMPLETE, integers_of

REASON = "dask is optional: pip install cloakgp[dask]"
dask = pytest.importorskip("dask", reason=REASON)
da = pytest.importorskip("dask.array", reason=REASON)
distributed = pytest.importorskip("distributed", reason=REASON)

from distributed import Client, LocalCluster  # noqa: E402
from distributed.sizeof import sizeof  # noqa: E402

SECRET = 3.14159265  # an outcome that shows wherever y is printed
ROWS, CHUNK = 40_000, 10_000


@contextmanager
def two_workers():
    """Two processes with a thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    unwatched = {
        "distributed.worker.profile.enabled": False,
        "distributed.admin.system-monitor.interval": "1h",
        "distributed.admin.tick.interval": "1s",
    }
    gc.collect()  # else a client that was never connected is closed, and waits, in the midst of this
    with dask.config.set(unwatched), LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def mortal():
    """A cluster of one's own, to lose a worker of."""
    quick = {"distributed.comm.timeouts.connect": "5s"}  # how long the lost are called
    with dask.config.set(quick), two_workers() as client:
        yield client


@pytest.fixture
def small_chunks(monkeypatch):
    """Many tasks from few rows."""
    monkeypatch.setattr(rows_chunks, "CHUNK", 1000)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(10_500, 3))
    return X, X[:, 0] + rng.normal(size=len(X))


def products(X, scale, y, nothing):
    """Sums whose last bits depend on the order of adding, and on BLAS."""
    assert nothing is None
    return X.T @ X * scale, y @ X, float(np.sum(y)), len(X)


def swept(function, *sources):
    return list(passes.sweep(function, *sources))


def assert_same(got, wanted):
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def source(rows, chunks):
    return da.from_array(rows, chunks=chunks, name=False)


def lazy(y):
    """Blocks that are made on the workers."""
    return source(y, 900).map_blocks(np.asarray, dtype=float)


FORMS = {  # some have blocks that fit the chunks
    "fitting": lambda X, y: (source(X, (1000, 3)), source(y, 1000)),
    "uneven": lambda X, y: (source(X, (777, 2)), lazy(y)),
    "large": lambda X, y: (source(X, (7000, 3)) + 0.0, source(y, -1)),
    "empty blocks": lambda X, y: (source(X, ((0, 10_000, 0, 500), 3)), lazy(y)),
    "persisted": lambda X, y: (source(X, (1000, 3)).persist(), lazy(y).persist()),
    "made of persisted": lambda X, y: (source(X, (1000, 3)).persist() + 0.0, source(y, 950).persist() * 1.0),
    "numpy X": lambda X, y: (X, lazy(y)),
    "numpy y": lambda X, y: (source(X, (600, 3)), y),
    "columns first": lambda X, y: (source(np.asfortranarray(X), (900, 3)), lazy(y)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_cluster_gives_the_bits_that_threads_give(form, client, small_chunks, data):
    wanted = swept(products, data[0], 0.1, data[1], None)
    X, y = FORMS[form](*data)
    assert len(wanted) == 11
    for _ in range(2):  # a pass must leave the arrays as they were
        assert_same(swept(products, X, 0.1, y, None), wanted)


@pytest.mark.parametrize("form", [form for form in FORMS if "persisted" not in form])
def test_without_a_client_blocks_are_computed_here(form, small_chunks, data, monkeypatch):
    monkeypatch.setattr(passes, "_current_client", lambda: None)
    with dask.config.set(scheduler="synchronous"):
        X, y = FORMS[form](*data)
    assert_same(swept(products, X, 0.1, y, None), swept(products, data[0], 0.1, data[1], None))


def test_data_frames_and_unknown_lengths(client, small_chunks, data):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = frames.from_pandas(pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}), npartitions=3)
    wanted = swept(products, X[:, :2].copy(), 0.1, y, None)
    assert_same(swept(products, frame[["a", "b"]], 0.1, frame["y"], None), wanted)
    unknown = frame["y"].to_dask_array()
    assert np.isnan(unknown.shape[0])
    assert_same(swept(products, X[:, :2].copy(), 0.1, unknown, None), wanted)
    rows = passes.as_rows(frame["y"].astype(np.float32), "X")
    assert (rows.shape, rows.dtype) == ((len(y), 1), np.float64)


@pytest.mark.parametrize("inducing", [None, 6])
def test_data_frames_keep_their_names(data, inducing):
    """So an outcome that is still among the inputs is known by its name."""
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y = (each[:60] for each in data)
    frame = frames.from_pandas(pandas.DataFrame({"a": X[:, 0], "y": y}), npartitions=2)
    gp = cloakgp.GP(EQ(1.0), 0.1, (-9.0, 9.0), inducing=inducing)
    plan = gp.plan(frame, X_star=[[0.0, 0.0]], epsilon=1.0, delta=1e-3)
    assert plan.columns.names == ("a", "y")
    with pytest.raises(cloakgp.ArgumentError) as error:
        plan.release(frame["y"])
    assert error.value.name == "y"
    assert gp.plan(frame["a"], X_star=[0.0], epsilon=1.0, delta=1e-3).columns.names == ("a",)
    array = frame.to_dask_array(lengths=True)
    assert gp.plan(array, X_star=[[0.0, 0.0]], epsilon=1.0, delta=1e-3).columns is None


def test_only_real_numbers_are_rows():
    with pytest.raises(TypeError, match="X must hold real numbers; got dtype complex128"):
        passes.as_rows(da.ones(3, dtype=complex), "X")


# A lost worker.


def lose_a_worker(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


# What leaves the workers.


@pytest.fixture
def gathered(client, monkeypatch):
    """Whatever comes from the workers to this process: keys and sizes."""
    seen = {}
    gather = Client._gather

    async def spy(self, futures, *arguments, **options):
        found = await gather(self, futures, *arguments, **options)
        seen.update(dict.fromkeys((future.key for future in distributed.futures_of(futures)), sizeof(found)))
        return found

    monkeypatch.setattr(Client, "_gather", spy)
    return seen


def test_no_value_of_y_is_hashed(client, small_chunks, data, monkeypatch):
    X, y = data
    arrays = [form(X, y) for form in FORMS.values()]
    hashed = []
    original = dask.base.normalize_token.dispatch(np.ndarray)
    dask.base.normalize_token.register(
        np.ndarray, lambda array: hashed.append(array.shape) or original(array)
    )
    try:
        for array, outcomes in arrays:
            swept(products, array, 0.1, outcomes, None)
        assert hashed == []
        dask.base.tokenize(y)
        assert hashed == [y.shape]  # the spy works
    finally:
        dask.base.normalize_token.register(np.ndarray, original)


# Errors.


def everything_logged(client):
    found = [*client.get_worker_logs().values(), client.get_scheduler_logs()]
    return "\n".join(str(message) for log in found for message in log)


class Refusal(ValueError):
    """Defined here, and raised there."""


def refuse(X, y):
    try:
        float(str(y[0]) + "?")  # an inner error that quotes y
    except ValueError:
        raise Refusal("a fixed sentence") from None
    return y


def careless(y):
    raise ValueError(f"could not read {y[0]}")  # a worker logs this: it is not ours to keep quiet


@pytest.mark.parametrize("form", ["plain", "persisted", "cut"])
def test_an_error_arrives_as_it_is_and_quotes_nothing(form, client, small_chunks, capfd):
    X = np.zeros((3000, 2))
    y = da.from_array(np.full(3000, SECRET), chunks=1700 if form == "cut" else 1000, name=False)
    y = y.persist() if form == "persisted" else y
    with pytest.raises(Refusal, match="a fixed sentence") as caught:
        swept(refuse, X, y)
    error = caught.value
    assert error.__context__ is None
    assert error.__cause__ is None
    assert "refuse" not in [entry.name for entry in caught.traceback]
    assert str(SECRET)[:6] not in everything_logged(client) + "".join(capfd.readouterr())


@pytest.mark.parametrize("here", [False, True])
def test_a_block_that_cannot_be_computed_is_not_quoted(here, client, small_chunks, monkeypatch):
    if here:
        monkeypatch.setattr(passes, "_current_client", lambda: None)
    y = source(np.full(3000, 2.71828), 1000).map_blocks(careless, dtype=float)
    with pytest.raises(RuntimeError, match="could not be computed") as caught:
        swept(len, y)
    assert caught.value.__context__ is None
    assert "2.718" not in str(caught.getrepr(showlocals=False, style="native"))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_lengths_that_cannot_be_computed_are_not_quoted(client):
    y = source(np.full(3000, 2.71828), 1000)
    unknown = y[y > 0].map_blocks(careless, dtype=float)
    with pytest.raises(RuntimeError, match="could not be computed") as caught:
        passes.as_array(unknown)
    assert caught.value.__context__ is None


def shorter(rows):
    return rows[:-1]


def test_a_block_with_fewer_rows_than_it_says_is_refused(client, small_chunks, data):
    X = da.from_array(data[0], chunks=(1000, 3)).map_blocks(shorter, meta=np.empty((0, 3)))
    with pytest.raises(ValueError, match="more or fewer rows"):
        swept(len, X)


# Plans and releases.


@pytest.fixture(scope="module")
def many():
    """Rows for four chunks, none of which repeats."""
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 10, size=(ROWS, 2))
    X[0] = 30.0, 30.0  # stands alone
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=ROWS)


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 64)
    monkeypatch.setattr(rows_chunks, "CHUNK", CHUNK)
    gp = cloakgp.GP(EQ(2.0), noise=0.1, bounds=(-1.0, 1.0), inducing=30)
    X_star = np.random.default_rng(0).uniform(0, 10, size=(5, 2))
    return partial(gp.plan, X_star=X_star, epsilon=1.0, delta=1e-6)


def test_a_plan_and_a_release_are_those_of_threads(client, many, make, seeded, gathered):
    X, y = many
    plan = make(X)
    with seeded(1):
        release = plan.release(y)
    far = da.from_array(X, chunks=(6_000, 2)), da.from_array(y, chunks=CHUNK, name=False).persist()
    far_plan = make(far[0])
    assert (far_plan.digest, far_plan.inputs_digest) == (plan.digest, plan.inputs_digest)
    gathered.clear()
    with seeded(1):
        far_release = far_plan.release(far[1])
    assert max(gathered.values()) < 10_000
    np.testing.assert_array_equal(far_release.z, release.z)
    np.testing.assert_array_equal(far_release.mean, release.mean)
    with seeded(1):  # each may be elsewhere
        np.testing.assert_array_equal(plan.release(far[1]).z, release.z)
    with seeded(1):
        np.testing.assert_array_equal(far_plan.release(y).z, release.z)


GROUPS = 40
ALONE = 12_345  # the row that is alone in its group


@pytest.fixture(scope="module")
def grouped():
    """Rows of few kinds, one of which occurs once; and outcomes."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, GROUPS - 1, size=ROWS).astype(float)
    x[ALONE] = GROUPS
    return x[:, None] / 4, rng.uniform(-1.0, 1.0, size=ROWS)


def released_sums(X, kind):
    """How many sums a release is made of, and the private step that makes them."""
    if kind == "bins":
        edges = [0.0, 3.0, 6.0, 11.0]
        options = {"bounds": (-1.0, 1.0), "epsilon": 1.0, "edges": edges}
        sums = binning.plan(X[:, 0], X_star=[1.0], **options).measurement
        return sums.n_measurements, partial(room.measure, sums), sums.statistic
    gp = cloakgp.GP(EQ(2.0), noise=0.1, bounds=(-1.0, 1.0), inducing=6)
    m = gp.plan(X, X_star=np.linspace(0, 9, 5)[:, None], epsilon=1.0, delta=1e-6).measurement
    assert len(m.groups.counts) == GROUPS
    assert m.groups.counts.min() == 1
    return m.n_measurements, partial(room.measure, m), m.statistic


def numbers_in(value):
    """The arrays in what a task gave, and the lone numbers."""
    if isinstance(value, np.ndarray):
        return [value]
    if hasattr(value, "__dataclass_fields__"):
        value = vars(value).values()
    if isinstance(value, (tuple, list, dict, type({}.values()))):
        return [found for entry in value for found in numbers_in(entry)]
    return [np.atleast_1d(value)] if isinstance(value, (int, float, np.number)) else []


@pytest.mark.parametrize("kind", ["matrix", "bins"])
def test_a_group_of_one_does_not_send_its_outcome(client, grouped, kind, monkeypatch):
    """What comes from the workers is sums, as many as are released; no sum over a group of rows."""
    X, y = grouped
    monkeypatch.setattr(rows_chunks, "CHUNK", CHUNK)
    q, release, statistic = released_sums(X, kind)
    seen, gather = [], Client._gather

    async def spy(self, futures, *arguments, **options):
        found = await gather(self, futures, *arguments, **options)
        seen.append(found)
        return found

    monkeypatch.setattr(room, "add_noise", lambda exact, sigma: exact)
    monkeypatch.setattr(room, "add_laplace", lambda exact, sigma: exact)
    wanted = release(y, "error")
    monkeypatch.setattr(Client, "_gather", spy)
    far = da.from_array(y, chunks=CHUNK, name=False).persist()
    np.testing.assert_array_equal(release(far, "error"), wanted)
    came = [array for found in seen for array in numbers_in(found)]
    assert len(seen) == len(rows_chunks.chunks(ROWS)) == 4
    assert len(came) >= 4
    assert {np.size(array) for array in came} <= {1, q}
    integers = set(integers_of(statistic, y)[0].ravel().tolist())
    single = {abs(value) for array in came for value in np.rint(array).astype(object).ravel().tolist()}
    assert not {value for value in single if value > 1} & integers
    seen.clear()
    assert len(far.compute()) == ROWS  # the spy does see y if it is asked for
    assert max(len(array) for found in seen for array in numbers_in(found)) > q


def test_a_release_survives_a_lost_worker(mortal, many, make, seeded, monkeypatch):
    X, y = many
    plan = make(X)
    with seeded(1):
        wanted = plan.release(y).z
    far = da.from_array(y, chunks=CHUNK, name=False).persist()
    distributed.wait(far)
    send, sent = passes._Tasks.send, []

    def lose_one_later(self, rows):
        sent.append(rows)
        future = send(self, rows)
        if len(sent) == 2:
            lose_a_worker(mortal)
        return future

    monkeypatch.setattr(passes._Tasks, "send", lose_one_later)
    with seeded(1):
        np.testing.assert_array_equal(plan.release(far).z, wanted)


def test_a_release_that_is_refused_quotes_nothing(client, many, make, capfd):
    X, _ = many
    plan = make(X)
    y = np.full(ROWS, SECRET)
    y[7_777] = np.nan
    with pytest.raises(ValueError, match=INCOMPLETE[:40]):
        plan.release(da.from_array(y, chunks=CHUNK, name=False).persist())
    words = da.from_array(np.full(ROWS, str(SECRET), dtype=object), chunks=CHUNK, name=False)
    with pytest.raises(TypeError, match="vector of real numbers"):
        plan.release(words)
    with pytest.raises(ValueError, match="y must have shape"):
        plan.release(da.from_array(y[:-1], chunks=CHUNK, name=False))
    assert str(SECRET)[:6] not in everything_logged(client) + "".join(capfd.readouterr())


def test_a_changed_dask_array_is_refused(client, many, make):
    X, y = many
    plan = make(da.from_array(X, chunks=(CHUNK, 2)))
    other = da.from_array(X[::-1].copy(), chunks=(CHUNK, 2))
    object.__setattr__(plan.rule, "X", other)
    with pytest.raises(ValueError, match="X has changed"):
        plan.release(y)
