"""Dates in cells as days, all cells at once: what is no date is missing, and nothing says which that is.

So it can be used on private inputs, of which no branch may depend on a cell. Public ones are read by
:class:`cloakgp.Columns`, which tells where something is wrong; both count the same days.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.rows.columns import ORIGIN, moment

_DAY = 86_400.0  # seconds
_ORIGIN = datetime.fromisoformat(ORIGIN)
_ISO = (
    r"^(?P<day>\d{4}-\d{2}-(?P<of_month>\d{2}))"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:\.\d+)?))?"
    r"(?P<zone>(?:Z|(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2}))?))?$"
)


def day_of(value: Any) -> float | None:
    """A public date or time, or its text in ISO's form, in days since 2000-01-01; None if it is no date."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    found = moment(value) if isinstance(value, (str, date)) else None
    if found is None or found != found:  # pandas' NaT is a datetime
        return None
    zone = found.utcoffset() or timedelta()
    return (found.replace(tzinfo=None) - _ORIGIN - zone).total_seconds() / _DAY


def days_of(cells: Any) -> FloatArray:
    """(n,) the same of an array of dates, times or texts, whatever it holds; NaN where one is no date."""
    import pyarrow
    from pyarrow import compute

    if cells.dtype.kind == "M":
        whole = cells.astype("datetime64[D]")  # a coarser unit, which has room for whatever it was
        part: FloatArray = (cells - whole) / np.timedelta64(1, "D")
        return _counted(whole) - _counted(np.datetime64(ORIGIN, "D")) + part
    texts = [str(one).encode(errors="replace") for one in cells.tolist()]
    parts = compute.extract_regex(compute.utf8_trim_whitespace(pyarrow.array(texts, pyarrow.string())), _ISO)
    hour, minute, second, hours, minutes = (
        _part(parts, name) for name in ("hour", "minute", "second", "hours", "minutes")
    )
    day = compute.strptime(parts.field("day"), format="%Y-%m-%d", unit="s", error_is_null=True)
    # 30 February would be a day of March, and there are 24 hours.
    real = _floats(compute.day(day)) == _part(parts, "of_month")
    real &= (hour < 24) & (minute < 60) & (second < 60) & (hours < 24) & (minutes < 60)
    east = _floats(compute.if_else(compute.equal(parts.field("sign"), "-"), -1.0, 1.0))
    clock = hour * 3600 + minute * 60 + second - east * (hours * 3600 + minutes * 60)
    seconds = _floats(day.cast(pyarrow.int64())) + clock - _ORIGIN.replace(tzinfo=UTC).timestamp()
    return np.where(real, seconds / _DAY, np.nan)


def _counted(days: Any) -> FloatArray:
    """Days since 1970; NaN where there is none."""
    return np.where(np.isnat(days), np.nan, days.astype(np.int64).astype(np.float64))


def _part(parts: Any, name: str) -> FloatArray:
    """A number of the clock; 0 where it is not written."""
    import pyarrow
    from pyarrow import compute

    text = parts.field(name)
    return _floats(compute.if_else(compute.equal(text, ""), "0", text).cast(pyarrow.float64()))


def _floats(numbers: Any) -> FloatArray:
    """NaN where there is none."""
    import pyarrow

    found: FloatArray = numbers.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    return found
