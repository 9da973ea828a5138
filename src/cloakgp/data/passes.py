"""A pass over rows: in threads here, or on a Dask cluster if one of the sources is there.

A cluster does what :mod:`cloakgp.data.chunks` does, with the same results.

The cluster is that of the current ``distributed.Client``. Where there is none, blocks are computed here, in
threads. Start a client first to use more than this machine, or all of it.

y stays where it is. A task goes to the rows and sends back what the function makes of them, a few sums. No
row of y comes here, is hashed for a key, or is quoted in an error or a log: what a function raises on a
worker is sent back as a value and raised here, since workers log what their tasks raise, and what a block's
own computation raises is replaced by a fixed sentence. A worker that is lost costs time and nothing else.

Blocks of about ``chunks.CHUNK`` rows are best. Make y's blocks on the workers, by reading them there: an
array that was made here, ``dask.array.from_array(y)``, is sent to them block by block, and Dask hashes its
values for its name unless ``name=False``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import sleep
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from cloakgp.core.errors import Argument, ArgumentTypeError, missing_extra
from cloakgp.core.progress import Progress
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.chunks import chunks, is_dask, n_rows, sweep_threads
from cloakgp.data.parquet import Blocks, ParquetColumns, joined, spans

T = TypeVar("T")

_RETRIES = 3  # of a block whose computation fails
_ATTEMPTS = 5  # at a chunk, some of whose data went with a worker
_FAILED = (
    "A block of the Dask arrays could not be computed. Its error might quote y and is not shown; compute "
    "the arrays on their own, or see the workers' logs."
)


def sweep(function: Callable[..., T], *sources: Any, label: str = "") -> Iterator[T]:
    """function(rows of each source) for every chunk of rows, in order.

    A source that is a number or None is handed on as it is. `function` must be a module's function, or a
    `partial` of one, for a cluster to call it.
    """
    if any(is_dask(source) for source in sources):
        return _sweep_cluster(function, sources, label)
    return sweep_threads(function, sources, label)


def _sweep_cluster(function: Callable[..., T], sources: tuple[Any, ...], label: str) -> Iterator[T]:
    """The same where at least one source is a Dask array or data frame."""
    sources = tuple(as_array(source) if is_dask(source) else source for source in sources)
    client = _current_client()
    if client is None:
        here = tuple(_Here(source) if is_dask(source) else source for source in sources)
        return sweep_threads(function, here, label)
    return _sweep(client, function, sources, label)


def as_array(source: Any) -> Any:
    """A Dask collection as an array whose blocks have known lengths and all columns.

    For a data frame the lengths are computed first: do it once, not for each pass.
    """
    array = None
    try:
        array = source.to_dask_array(lengths=True) if hasattr(source, "to_dask_array") else source
        if np.isnan(array.shape).any():
            array = array.copy().compute_chunk_sizes()
    except Exception:  # its message might quote values
        array = None
    if array is None:
        raise RuntimeError(_FAILED)
    return array.rechunk({1: -1}) if array.ndim == 2 else array


def as_rows(source: Any, name: str) -> Any:
    """A Dask collection of public numbers as rows of float64; a vector is one column."""
    array = as_array(source)
    if array.dtype.kind not in "iuf":
        raise ArgumentTypeError(name, "must hold real numbers", f"dtype {array.dtype}")
    array = array.astype(np.float64)
    return array[:, None] if array.ndim == 1 else array


def dask_columns(path: str, columns: Sequence[str]) -> Any:
    """Columns of Parquet files as a Dask array of rows, which the workers read when they are asked for."""
    return _in_blocks(_block, path, columns, len(columns))


def _in_blocks(read: Callable[..., Any], path: str, columns: Sequence[str], *width: int) -> Any:
    """A Dask array with a block for each row group; of rows that are so wide, or a vector."""
    try:
        import dask.array
    except ImportError:
        raise missing_extra(Argument("dask"), "dask and distributed", "dask") from None
    sizes = tuple(np.diff(ParquetColumns(path, columns).ends, prepend=0).tolist())  # from metadata
    return dask.array.map_blocks(
        read,
        path,
        tuple(columns),
        chunks=(sizes, *((one,) for one in width)),
        dtype=np.float64,
        meta=np.empty((0, *width)),
        name=f"columns-{uuid4().hex}",  # for a known name, a cluster would give what it remembers
    )


def _block(path: str, columns: Sequence[str], block_id: tuple[int, ...] = (0,)) -> Any:
    """On a worker: one row group."""
    return ParquetColumns(path, columns).load(block_id[0])


def private_dask_column(path: str, column: str) -> Any:
    """A column of Parquet files as a Dask array, to be given as y: read by the workers, unread until then."""
    return _in_blocks(_private_block, path, [column])


def _private_block(path: str, columns: Sequence[str], block_id: tuple[int, ...] = (0,)) -> Any:
    """The same of a private column, as a vector."""
    try:
        return _block(path, columns, block_id)[:, 0]
    except Exception:  # whatever it says might quote values, and a worker would log it
        return np.array([None])  # which the private room refuses by the one message


def _current_client() -> Any:
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


class _Graph:
    """How each block of a Dask array is made."""

    def __init__(self, array: Any) -> None:
        import dask

        (optimized,) = dask.optimize(array)
        # The first has what is on the cluster already, which the second leaves out.
        self._tasks = {**array.__dask_graph__(), **optimized.__dask_graph__()}
        self._name, self._zeros = array.name, (0,) * (array.ndim - 1)

    def of(self, block: int) -> tuple[Any, dict[Any, Any]]:
        """A block's key, and the tasks that it needs, not the whole array's."""
        from dask.optimization import cull

        key = (self._name, block, *self._zeros)
        return key, cull(self._tasks, [key])[0]


class _Here(Blocks):
    """A Dask array's blocks, computed in this process."""

    def __init__(self, array: Any) -> None:
        super().__init__(array.chunks[0])
        self._graph = _Graph(array)

    def load(self, block: int) -> Any:
        import dask

        key, needed = self._graph.of(block)
        try:
            return dask.get(needed, key)
        except Exception:  # its message might quote values
            pass
        raise RuntimeError(_FAILED)


def _sweep(client: Any, function: Callable[..., T], sources: tuple[Any, ...], label: str) -> Iterator[T]:
    left = deque(chunks(n_rows(sources)))
    window = 4 * max(1, sum(client.nthreads().values()))  # chunks under way: no thread waits for the next
    tasks = _Tasks(client, function, sources)
    waiting: deque[tuple[slice, Any]] = deque()
    try:
        with Progress(label, len(left)) as progress:
            while left or waiting:
                while left and len(waiting) < window:
                    waiting.append((left[0], tasks.send(left[0])))
                    left.popleft()
                rows, future = waiting.popleft()
                yield tasks.result(rows, future)
                tasks.forget(rows.stop)
                progress.advance()
    finally:
        if waiting and client.status == "running":
            client.cancel([future for _, future in waiting])


class _Tasks:
    """A function's tasks, one for each chunk of rows. All keys are new: nothing is hashed for them."""

    def __init__(self, client: Any, function: Callable[..., Any], sources: tuple[Any, ...]) -> None:
        self._client, self._function = client, function
        self._sources = [_Remote(client, source) if is_dask(source) else source for source in sources]
        self._sent: Any = None

    def send(self, rows: slice) -> Any:
        """The future of one chunk."""
        if self._sent is None or self._sent.status != "finished":
            self._sent = _scatter(self._client, self._function, broadcast=True)
        parts = [self._parts(source, rows) for source in self._sources]
        n = rows.stop - rows.start
        return self._client.submit(_work, self._sent, n, parts, pure=False, retries=_RETRIES)

    def _parts(self, source: Any, rows: slice) -> Any:
        """A list of what makes up these rows, or the number that stands for all of them."""
        if isinstance(source, _Remote):
            return source.parts(rows)
        if hasattr(source, "__len__"):
            return [_scatter(self._client, joined([source[rows]]))]
        return source

    def result(self, rows: slice, future: Any) -> Any:
        """What the function made of a chunk, or the error that it raised.

        Blocks that were made on the workers are made again by the scheduler when they are lost. Those that
        were sent from here are sent again.
        """
        for _ in range(_ATTEMPTS):
            try:
                value, raised = future.result()
            except Exception as error:
                error.__traceback__ = None  # Dask keeps the error, and with it this frame and its futures
                if future.status == "error":
                    break
            else:
                if raised is not None:
                    raise raised
                return value
            self.forget(None)
            future = self.send(rows)
        raise RuntimeError(_FAILED)

    def forget(self, row: int | None) -> None:
        """Let go of the blocks that end before a row, or of all."""
        for source in self._sources:
            if isinstance(source, _Remote):
                source.forget(row)


class _Remote:
    """A Dask array on a cluster: blocks are computed when a chunk needs them, once, and then let go."""

    def __init__(self, client: Any, array: Any) -> None:
        self._client, self._graph = client, _Graph(array)
        self._ends = np.cumsum(array.chunks[0], dtype=np.intp)
        self._sizes = array.chunks[0]
        self._futures: dict[int, Any] = {}

    def __len__(self) -> int:
        return int(self._ends[-1])

    def parts(self, rows: slice) -> list[Any]:
        """The futures of the blocks, or parts of blocks, that these rows are in."""
        found = []
        for block, part in spans(self._ends, rows.start, rows.stop):
            if block not in self._futures:
                self._futures[block] = self._compute(block)
            future = self._futures[block]
            if part != slice(0, self._sizes[block]):
                future = self._client.submit(_cut, future, part, pure=False, retries=_RETRIES)
            found.append(future)
        return found

    def _compute(self, block: int) -> Any:
        from dask.delayed import Delayed
        from distributed import Future

        key, needed = self._graph.of(block)
        if isinstance(needed[key], Future):  # on the cluster already
            return needed[key]
        data = getattr(needed[key], "value", needed[key])
        if isinstance(data, np.ndarray):  # the block itself: it goes to a worker, not to the scheduler
            return _scatter(self._client, data)
        return self._client.compute(Delayed(key, needed), optimize_graph=False, retries=_RETRIES)

    def forget(self, row: int | None) -> None:
        for block in [block for block in self._futures if row is None or self._ends[block] <= row]:
            del self._futures[block]


def _scatter(client: Any, value: Any, **options: Any) -> Any:
    """The future of something sent to a worker; to another one if that worker is just being lost."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return client.scatter([value], hash=False, **options)[0]
        except OSError:
            sleep(1.0)
    return client.scatter([value], hash=False, **options)[0]


def _cut(block: Any, part: slice) -> Any:
    return block[part]


def _work(function: Callable[..., Any], rows: int, sources: list[Any]) -> tuple[Any, Exception | None]:
    """On a worker: the function's answer, or its error without the frames that led there."""
    try:
        arguments = [joined(source) if isinstance(source, list) else source for source in sources]
        for source, argument in zip(sources, arguments, strict=True):
            if isinstance(source, list) and len(argument) != rows:
                raise ValueError("A block of a Dask array has more or fewer rows than the array says.")
        with one_blas_thread():
            return function(*arguments), None
    except Exception as error:
        error.__cause__ = error.__context__ = None
        return None, error.with_traceback(None)
