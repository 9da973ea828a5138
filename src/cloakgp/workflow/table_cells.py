"""Public columns of a file by what they hold: numbers, texts, yes or no, dates. They become numbers by the
rules of :mod:`cloakgp.rows.columns`, which a plan and its release keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import Argument, InputError, Message
from cloakgp.rows import frames
from cloakgp.rows.columns import LEVEL, NUMBER, Column, Columns
from cloakgp.rows.formats import Format, is_parquet
from cloakgp.rows.frames import Cells, Table
from cloakgp.workflow import tables

_BOOLEANS = {"true": True, "false": False}


def find_columns(
    path: tables.PathLike,
    inputs: Sequence[str],
    output: str,
    people: str | None = None,
    categories: Sequence[str] = (),
    form: Format | None = None,
) -> Columns:
    """What the public inputs of a table are; `categories` hold levels, whatever they look like."""
    for name in categories:
        if name not in inputs:
            raise InputError(f"--categories: {name!r} is not among the inputs: {', '.join(inputs)}.")
    if not categories and tables.are_numbers(path, inputs, form):
        return numbers_named(inputs, output, people)
    table = read_table(path, inputs, form, categories)
    found = Columns.of(table, levels={name: _levels(table[name]) for name in categories})
    return _with_roles(found, output, people)


def numbers_named(inputs: Sequence[str], output: str, people: str | None = None) -> Columns:
    """The columns of a table of numbers."""
    return _with_roles(Columns(tuple(map(Column, inputs))), output, people)


def _with_roles(columns: Columns, output: str, people: str | None) -> Columns:
    own = people is not None and people not in columns.names
    return replace(columns, response=output, people=people if own and people else "")


def is_coded(columns: Columns | None) -> bool:
    """Whether some column is not of plain numbers."""
    return columns is not None and any(column.kind != NUMBER for column in columns.inputs)


def read_table(
    path: tables.PathLike, inputs: Sequence[str], form: Format | None = None, categories: Sequence[str] = ()
) -> Table:
    """Public columns, each by what it holds."""
    tables.check_columns(path, inputs)
    if is_parquet(path):
        return _of_parquet(path, inputs)
    form = tables.reading(path, inputs) if form is None else form
    words = tables.read_words(path, inputs, form)
    return Table({name: _found(path, name, words.column(name), form, name in categories) for name in inputs})


def read_points(path: tables.PathLike, columns: Columns, form: Format | None = None) -> Table:
    """The columns of a public table that a plan's were like: each is read as the plan's was."""
    names = columns.names
    tables.check_columns(path, names)
    if is_parquet(path):
        return _of_parquet(path, names)
    form = tables.reading(path, names) if form is None else form
    words = tables.read_words(path, names, form)
    return Table({one.name: _known(path, one, words.column(one.name), form) for one in columns.inputs})


def as_numbers(
    path: tables.PathLike, columns: Columns, table: Table, *, new_levels: bool = True
) -> FloatArray:
    """(rows, columns) a table's cells as numbers, all of them known; or an error by row number."""
    numbers = columns.numbers(table, tables.name_of(path), new_levels=new_levels)
    for place, name in enumerate(columns.names):
        tables.check_complete(path, name, numbers[:, place])
    return numbers


def _of_parquet(path: tables.PathLike, names: Sequence[str]) -> Table:
    table = frames.read(tables.open_parquet(path).read(columns=list(names)))
    assert table is not None  # it has names
    return table


def _found(path: tables.PathLike, name: str, words: Any, form: Format, category: bool) -> Cells:
    """A column by its cells."""
    numbers = tables.numbers_in(words, form)
    if category:
        whole = numbers is not None and bool((np.isnan(numbers) | (numbers == np.rint(numbers))).all())
        return Cells(numbers) if numbers is not None and whole else _texts(words)
    if numbers is not None:
        return Cells(numbers)
    if tables.some_numbers(words, form):  # a slip of the pen makes no category
        remedy = Message("If it is a category all the same, say ", Argument("categories"), f" {name}.")
        tables.check_numbers(path, name, words, form, remedy)
    texts = _texts(words)
    if all(text is None or text.lower() in _BOOLEANS for text in texts.values):
        return _booleans(texts)
    return texts


def _known(path: tables.PathLike, column: Column, words: Any, form: Format) -> Cells:
    """A column as one that is known."""
    of_texts = column.kind == LEVEL and isinstance(column.levels[0], str)
    if of_texts or column.kind not in (LEVEL, NUMBER):
        return _texts(words)
    if column.kind == LEVEL and isinstance(column.levels[0], bool):
        texts = _texts(words)
        if all(text is None or text.lower() in _BOOLEANS for text in texts.values):
            return _booleans(texts)
    tables.check_numbers(path, column.name, words, form)
    numbers = tables.numbers_in(words, form)
    assert numbers is not None  # as was checked
    return Cells(numbers)


def _texts(words: Any) -> Cells:
    from pyarrow import compute

    return Cells(frames.objects(compute.utf8_trim_whitespace(words).to_pylist()))


def _booleans(texts: Cells) -> Cells:
    return Cells(frames.objects(None if one is None else _BOOLEANS[one.lower()] for one in texts.values))


def _levels(cells: Cells) -> list[Any]:
    """Those that are there, sorted; whole numbers as such."""
    if cells.levels is not None:
        return list(cells.levels)
    if cells.values.dtype.kind == "f":
        known = np.unique(cells.values[~np.isnan(cells.values)])
        if (known != np.rint(known)).any():
            raise InputError("--categories: levels must be texts or whole numbers.")
        return [int(level) for level in known]
    return sorted({one for one in cells.values.tolist() if one is not None})
