"""Durations of Citi Bike trips in New York by start and end: the paper's four-dimensional example."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cloakgp.datasets.dataset import Dataset, DatasetError
from cloakgp.datasets.sources import PathLike, download, local
from cloakgp.datasets.tables import base, checked_box, numbers, within
from cloakgp.errors import ArgumentError

URL = "https://s3.amazonaws.com/tripdata/{year}-citibike-tripdata.zip"
LICENCE = (
    "Citi Bike system data, under the data licence agreement of its operator: "
    "https://ride.citibikenyc.com/data-sharing-policy. Read it before passing the data on."
)
CITIBIKE_BOX = ((40.6794, 40.7872), (-74.0171, -73.9299))
"""Latitudes and longitudes between which the paper's stations lie."""

_FIRST, _LAST = "2013-06", "2021-01"  # later files give no durations
_COLUMNS = [
    ["start station latitude", "start lat"],
    ["start station longitude", "start lon"],
    ["end station latitude", "end lat"],
    ["end station longitude", "end lon"],
    ["tripduration"],
]
_TIME = ["starttime", "start ts"]


def fetch_citibike(
    month: str = "2016-06",
    path: PathLike | None = None,
    *,
    box: Sequence[tuple[float, float]] | None = None,
) -> Dataset:
    """Durations of a month's bike trips by start and end.

    Parameters
    ----------
    month : str, default "2016-06"
        From ``"2013-06"`` to ``"2021-01"``. Later files have no column of durations.
    path : path, optional
        A file or a folder. The file is the publisher's, of the month or of its year
        (``201606-citibike-tripdata.csv``, ``.zip``, ``2016-citibike-tripdata.zip``), or a CSV, gzipped or
        not, with the columns `start_lat`, `start_lon`, `end_lat`, `end_lon`, `tripduration` and `start_ts`;
        a folder holds one of these, the last as ``citibike.csv`` or ``citibike.csv.gz``. By default the
        folder in the environment variable ``CLOAKGP_DATA``, else a download of the whole year
        (hundreds of megabytes).
    box : two intervals, optional
        Keep trips that start and end between these latitudes and longitudes; `CITIBIKE_BOX` is the
        paper's.

    Returns
    -------
    Dataset
        `X`, (n, 4), start latitude, start longitude, end latitude and end longitude in degrees; `y`, (n,),
        seconds, not clipped (the paper clips at 2000 s). Trips without coordinates are left out.
    """
    _check_month(month)
    box = None if box is None else checked_box(box)
    year, digits = month[:4], month.replace("-", "")
    names = [
        *(f"{digits}-citibike-tripdata{end}" for end in (".csv", ".csv.gz", ".csv.zip", ".zip")),
        f"{year}-citibike-tripdata.zip",
        "citibike.csv",
        "citibike.csv.gz",
    ]
    file = local(path, names) or download(URL.format(year=year), f"{year}-citibike-tripdata.zip")
    asked = _Month(month)
    table = numbers(file, _COLUMNS, (_TIME, asked), choose=lambda names: _of_month(digits, names), gaps=True)
    table = table[(table[:, :4] != 0).all(axis=1)]
    if not len(table):
        others = f", but of {', '.join(sorted(asked.others)[:3])}" if asked.others else ""
        raise DatasetError(f"{file} is a wrong file: it holds no trip of {month}{others}.")
    if box is not None:
        table = within(table, [*box, *box])
    return Dataset(
        table[:, :4].copy(),
        table[:, 4].copy(),
        ("start latitude", "start longitude", "end latitude", "end longitude", "duration"),
        ("degrees", "degrees", "degrees", "degrees", "s"),
        f"Citi Bike trips of {month}, {file.name}",
        LICENCE,
    )


def _check_month(month: str) -> None:
    if not isinstance(month, str) or not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month):
        raise ArgumentError("month", "must be a year and a month such as '2016-06'", repr(month))
    if not _FIRST <= month <= _LAST:
        raise ArgumentError(
            "month",
            f"must be from {_FIRST} to {_LAST}",
            repr(month),
            "Later files have no column of durations.",
        )


def _of_month(digits: str, members: Sequence[str]) -> list[str]:
    """The month's files. A month may be in parts, _1, _2; where it is there whole as well, whole."""
    month = rf"{digits[:4]}-?{digits[4:]}[ _-].*\.(csv|zip)"
    found = [name for name in members if re.fullmatch(month, base(name))]
    whole = [name for name in found if not re.search(r"_\d+\.csv$", base(name))]
    return whole[:1] or sorted(found)


class _Month:
    """Whether a time is in the month, as 2016-06-01 00:00:18 or 6/1/2016 00:00:18; what else was seen."""

    def __init__(self, month: str) -> None:
        self.month = month
        self.others: set[str] = set()
        self._days: dict[str, bool] = {}

    def __call__(self, time: str) -> bool:
        day = time.partition(" ")[0]
        if day not in self._days:
            self._days[day] = self._accept(day)
        return self._days[day]

    def _accept(self, day: str) -> bool:
        if "/" in day:
            number, _, year = day.split("/")
            month = f"{year}-{int(number):02d}"
        else:
            month = day[:7]
        if month != self.month:
            self.others.add(month)
        return month == self.month
