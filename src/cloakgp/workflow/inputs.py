"""Public input columns of any size: as an array, or left in their file and read a chunk at a time, on this
machine or on a Dask cluster; and points, for predictions or inducing inputs, from files and grids.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import Argument, InputError, missing_extra
from cloakgp.data.columns import Columns
from cloakgp.data.formats import Format, is_parquet
from cloakgp.data.grid import Grid
from cloakgp.data.parquet import ParquetColumns, files_of
from cloakgp.data.passes import dask_columns
from cloakgp.data.people import ALIKE
from cloakgp.release import encoding, points
from cloakgp.release.planning import plan_from
from cloakgp.release.points import MOST_POINTS, is_grid
from cloakgp.release.settings import Settings
from cloakgp.workflow import tables


def check_columns(
    path: Path, inputs: Sequence[str], output: str, dask: bool, people: str | None = None
) -> None:
    """Raise unless a table has these columns; for a cluster it may also be a folder of Parquet files."""
    if dask and path.is_file() and not is_parquet(path):
        raise InputError(
            f"{path.name}: with --dask the table must be Parquet, which workers can read in parts. "
            "Convert it first."
        )
    for file in files_of(path) if dask else [path]:
        tables.check_columns(
            file, [*inputs, output, *([] if people is None or people in inputs else [people])]
        )


def open_inputs(
    path: Path,
    inputs: Sequence[str],
    inducing: bool,
    dask: bool,
    columns: Columns | None = None,
    form: Format | None = None,
    missing: str = "error",
) -> Any:
    """(rows, columns) of numbers: an array if it is small or the model needs all of it, else a source.

    Levels and dates become numbers as `columns` says. What is missing is NaN, if `missing` is "drop".
    """
    plain = missing == "error" and not tables.is_coded(columns)
    if dask:
        if not plain:
            raise InputError("--dask reads columns of numbers, of which none is missing. Leave it out.")
        return dask_columns(str(path.resolve()), inputs)
    if inducing and plain and is_parquet(path):
        tables.check_columns(path, inputs)
        X = ParquetColumns(path, inputs)
        if not is_small(X):
            return X
    return tables.read_columns(path, inputs, form, missing == "error", columns, new_levels=False)


def open_ids(path: Path, column: str | None, form: Format | None = None, how: str = ALIKE) -> Any:
    """(rows,) whose row each is, as whole numbers; None if no column of people was named. Public."""
    return None if column is None else tables.read_ids(path, column, form, how)


def is_small(X: Any) -> bool:
    """Whether a release file holds these inputs as they are, and not only their digest."""
    return 8 * len(X) * int(X.shape[1]) <= encoding.LARGEST_INPUTS


def plan_for(settings: Settings, X: Any, people: Any) -> Any:
    """The plan of settings; wherever inputs were kept, at hand if the release file is to list them."""
    plan = plan_from(settings, X, people)
    if not plan.alone or isinstance(plan.X, np.ndarray) or not is_small(X):
        return plan
    return replace(plan, X=frozen(np.asarray(X)))


def plan_again(settings: Settings, path: Path, dask: bool = False) -> Any:
    """The plan of settings that were kept, from this table: nothing else comes with them."""
    if settings.hides_inputs:
        return plan_from(settings)
    read = settings.columns, settings.reading, settings.missing_inputs
    X = open_inputs(path, settings.inputs, settings.may_stream, dask, *read)
    return plan_for(settings, X, open_ids(path, settings.people, settings.reading, settings.ids))


# ------------------------------------------------------------------------------------------------- points


def points_in(
    path: str,
    inputs: Sequence[str],
    columns: Columns | None = None,
    limit: int | None = MOST_POINTS,
    new_levels: bool = True,
) -> FloatArray:
    """The rows of a file that has these input columns, or a plan's."""
    found = tables.read_columns(path, inputs, known=columns, new_levels=new_levels)
    points.check_number(path, len(found), limit)
    return found


def points_of(spec: str, inputs: Sequence[str], over: Any, columns: Columns | None = None) -> FloatArray:
    """The points of a grid over a box or over the inputs' range, or of a file; levels must be a box's."""
    if isinstance(over, Grid):
        own = over.columns
        return points.over(over, spec) if is_grid(spec) else points_in(spec, inputs, own, new_levels=False)
    return points.grid(spec, over, columns) if is_grid(spec) else points_in(spec, inputs, columns)


def inducing_inputs(
    spec: str | None, inputs: Sequence[str], columns: Columns | None = None
) -> int | FloatArray | None:
    """Inducing inputs as they are asked for: how many, or the rows of a file."""
    if spec is None:
        return None
    return int(spec) if re.fullmatch("[0-9]{1,6}", spec) else points_in(spec, inputs, columns)


# ------------------------------------------------------------------------------------------------ clusters


def check_cluster(address: str | None, inducing: bool) -> None:
    """Raise if a cluster is asked for where it has nothing to do."""
    if address is not None and not inducing:
        raise InputError(
            "--dask needs --inducing, and --kernel: an exact GP, or a model that is learned, is worked out "
            "on this machine."
        )


@contextmanager
def connected(address: str | None, patience: float = 15) -> Iterator[None]:
    """Passes over Dask arrays inside run on this cluster, if it answers in so many seconds; None for none.

    "local" is a cluster of threads in this process, which nobody else can connect to. Workers read the rows,
    and the private column stays there.
    """
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise missing_extra(Argument("dask"), "dask and distributed", "dask") from None
    local = {"processes": False, "dashboard_address": "127.0.0.1:0"}  # any free port
    try:
        # Not the default: one that could not connect would remain it, and others would wait for it.
        own = local if address == "local" else {"address": address, "timeout": patience}
        client = Client(**own, set_as_default=False)
    except (OSError, ValueError, TypeError):
        gc.collect()  # closes what is left of the client now, and not while the next one is being made
        raise InputError(
            f"--dask: there is no scheduler at {address!r}. Give its address, such as tcp://10.0.0.5:8786, "
            "or 'local'."
        ) from None
    try:
        with client.as_current():
            yield
    finally:
        client.close()


# ------------------------------------------------------------------------------------------------- people

_NAMES = (
    "id|ids|pid|uid|person|people|patient|subject|participant|respondent|pupil|student|user|member|customer|"
    "client|household|family|name|zper"
)
_ID_LIKE = re.compile(
    rf"(?:^|_)(?:{_NAMES})(?:_|$)|(?:person|patient|subject|user|member|customer|client)id$"
)


def looks_like_ids(column: str) -> bool:
    """Whether a column's name says that it tells people apart."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s.-]+", "_", column.strip())
    return _ID_LIKE.search(words.lower()) is not None


def repeated_ids(path: Path, columns: Sequence[str]) -> str | None:
    """The first of these columns that looks like ids of people some of whom have several rows; None if none.

    For tables whose inputs are public. Only columns with such a name are read.
    """
    for column in filter(looks_like_ids, columns):
        try:
            ids = tables.read_ids(path, column)
        except InputError:
            continue  # incomplete, or not readable: it names nobody in every row
        if len(np.unique(ids)) < len(ids):
            return column
    return None
