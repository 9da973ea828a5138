"""Who is protected: what the command line and the app ask before anything is planned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np

from cloakgp.errors import InputError
from cloakgp.workflow import tables


class Protect(StrEnum):
    """What stays private."""

    OUTCOMES = "outcomes"
    """Each row's outcome; inputs are public."""
    PEOPLE = "people"
    """All outcomes of a person; inputs, and who has which rows, are public."""
    ROWS = "rows"
    """Whole rows, inputs and outcomes; with a column of people, all rows of a person."""


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
    for column in columns:
        if not looks_like_ids(column):
            continue
        try:
            ids = tables.read_ids(path, column)
        except InputError:
            continue  # incomplete, or not readable: it names nobody in every row
        if len(np.unique(ids)) < len(ids):
            return column
    return None
