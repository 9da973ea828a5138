"""Dates as days since 2000-01-01, always the same day: so dates of several custodians can be compared.

:func:`days_of` is for private cells, of which no branch may depend on one: all are read at once, what is no
date is missing, and nothing says which that is. :class:`cloakgp.Columns` reads public ones, and tells where
something is wrong; both count the same days.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray

ORIGIN = "2000-01-01"
_DAY = r"(?P<day>\d{4}-\d{2}-(?P<of_month>\d{2}))"
_ISO = re.compile(rf"{_DAY}([T ].*)?")
_CELL = (
    rf"^{_DAY}"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:\.\d+)?))?"
    r"(?P<zone>(?:Z|(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2}))?))?$"
)


def moment(value: Any) -> datetime | None:
    """A date or time, also as text in ISO's form; None if it is none."""
    if isinstance(value, datetime):
        return value if value == value else None  # pandas' NaT is a datetime
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if not isinstance(value, str) or not _ISO.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def day_of(value: Any) -> float | None:
    """A public date or time, or its text in ISO's form, as a number of days; None if it is no date."""
    found = moment(value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value)
    if found is None:
        return None
    zone = found.utcoffset() or timedelta()
    return (found.replace(tzinfo=None) - datetime.fromisoformat(ORIGIN) - zone).total_seconds() / 86_400


def days_of(cells: Any) -> FloatArray:
    """(n,) the same of an array of dates, times or texts, whatever it holds; NaN where one is no date."""
    import pyarrow
    from pyarrow import compute

    def floats(numbers: Any) -> FloatArray:
        # NaN where there is none.
        return np.asarray(numbers.cast(pyarrow.float64()).to_numpy(zero_copy_only=False))

    def part(name: str) -> FloatArray:
        text = parts.field(name)  # of the clock: 0 where it is not written
        return floats(compute.if_else(compute.equal(text, ""), "0", text))

    if cells.dtype.kind == "M":
        whole = cells.astype("datetime64[D]")  # a coarser unit, which has room for whatever it was
        days = whole.astype(np.int64).astype(np.float64) - np.datetime64(ORIGIN, "D").astype(np.int64)
        return np.where(np.isnat(cells), np.nan, days + (cells - whole) / np.timedelta64(1, "D"))
    texts = [str(one).encode(errors="replace") for one in cells.tolist()]
    parts = compute.extract_regex(compute.utf8_trim_whitespace(pyarrow.array(texts, pyarrow.string())), _CELL)
    hour, minute, second, hours, minutes = map(part, ("hour", "minute", "second", "hours", "minutes"))
    day = compute.strptime(parts.field("day"), format="%Y-%m-%d", unit="s", error_is_null=True)
    # 30 February would be a day of March, and there are 24 hours.
    real = floats(compute.day(day)) == part("of_month")
    real &= (hour < 24) & (minute < 60) & (second < 60) & (hours < 24) & (minutes < 60)
    east = floats(compute.if_else(compute.equal(parts.field("sign"), "-"), -1.0, 1.0))
    clock = hour * 3600 + minute * 60 + second - east * (hours * 3600 + minutes * 60)
    origin = datetime.fromisoformat(ORIGIN).replace(tzinfo=UTC).timestamp()
    return np.where(real, (floats(day.cast(pyarrow.int64())) + clock - origin) / 86_400, np.nan)
