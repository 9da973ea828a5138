"""Which files are read, and how: the same rows must come out whichever column is asked for.

No data pass through here. It only says what pyarrow is to do, for public columns
(:mod:`cloakgp.workflow.tables`) and for the private one alike.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cloakgp.errors import InputError

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a file is Parquet, by its name; CSV and TSV are the others, perhaps compressed (.gz)."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in PARQUET:
        return True
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _SEPARATORS:
        raise InputError(
            f"{Path(path).name}: the name of a table must end in .csv, .tsv, .csv.gz, .parquet or .pq."
        )
    return False


def separator(path: str | os.PathLike[str]) -> str:
    """What stands between two cells of a CSV or TSV file."""
    return "\t" if ".tsv" in [suffix.lower() for suffix in Path(path).suffixes] else ","


def csv_options(path: str | os.PathLike[str], columns: Sequence[str], kind: Any) -> dict[str, Any]:
    """Arguments for ``pyarrow.csv.read_csv``: these columns alone are decoded, as this kind of value."""
    from pyarrow import csv

    return {
        "parse_options": csv.ParseOptions(delimiter=separator(path), newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, kind),
            strings_can_be_null=True,
        ),
    }
