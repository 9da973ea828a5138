"""The paper's data: heights of !Kung women, Citi Bike trips in New York, prices paid around London.

Real people's, published already; none of it ships with the library.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError
from cloakgp.datasets.data_files import (
    Box,
    Choose,
    PathLike,
    as_box,
    base,
    download,
    given,
    inside,
    local,
    numbers,
    rows,
    single,
    tables,
    within,
)
from cloakgp.datasets.dataset import TRIP, Dataset, DatasetError, dataset

T = TypeVar("T")

# !Kung

_COMMIT = "ac1b3b2cda83f3e14096e2d997a6e30ad109eeee"
KUNG_URL = f"https://raw.githubusercontent.com/rmcelreath/rethinking/{_COMMIT}/data/Howell1.csv"
KUNG_SHA256 = "768d2fb53d44490b35260903f58955548b26f587e7afaf4e00b2603715279bbd"
_KUNG_LICENCE = (
    "Census by N. Howell (https://tspace.library.utoronto.ca/handle/1807/10395), as distributed in the R "
    "package rethinking by R. McElreath, whose licence is GPL (>= 3); no licence is stated for the data "
    "alone. Cite both."
)


def fetch_kung(path: PathLike | None = None) -> Dataset:
    """Heights and ages of the 287 girls and women in Howell's census of the Dobe !Kung.

    Parameters
    ----------
    path : path, optional
        ``Howell1.csv``, or a folder that holds it. By default the folder in the environment variable
        ``CLOAKGP_DATA``, else a download (12 kB) whose checksum is known.

    Returns
    -------
    Dataset
        `X`, (287, 1), ages in years; `y`, (287,), heights in cm. Real people: every row of the
        file that is not male.
    """
    file = local(path, ["Howell1.csv", "Howell1.csv.gz"]) or download(KUNG_URL, "Howell1.csv", KUNG_SHA256)
    table = numbers(file, [["age"], ["height"], ["male"]])
    women = table[table[:, 2] == 0]
    if not len(women):
        raise DatasetError(f"{file} holds no women: no row has 0 in the column 'male'.")
    source = f"!Kung women, Howell's census, {file.name}"
    return dataset(women, {"age": "years", "height": "cm"}, source, _KUNG_LICENCE)


# Citi Bike

TRIPS_URL = "https://s3.amazonaws.com/tripdata/{year}-citibike-tripdata.zip"
_TRIPS_LICENCE = (
    "Citi Bike system data, under the data licence agreement of its operator: "
    "https://ride.citibikenyc.com/data-sharing-policy. Read it before passing the data on."
)
CITIBIKE_BOX = ((40.6794, 40.7872), (-74.0171, -73.9299))
"""Latitudes and longitudes between which the paper's stations lie."""

_TRIPS_COLUMNS = [
    ["start station latitude", "start lat"],
    ["start station longitude", "start lon"],
    ["end station latitude", "end lat"],
    ["end station longitude", "end lon"],
    ["tripduration"],
]


def fetch_citibike(
    month: str = "2016-06",
    path: PathLike | None = None,
    *,
    box: Box | None = None,
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
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", str(month)) or not "2013-06" <= month <= "2021-01":
        expected, remedy = (
            "must be a month from '2013-06' to '2021-01'",
            "Later files have no column of durations.",
        )
        raise ArgumentError("month", expected, repr(month), remedy)
    box = None if box is None else as_box(box)
    year, digits = month[:4], month.replace("-", "")
    names = [
        *(f"{digits}-citibike-tripdata{end}" for end in (".csv", ".csv.gz", ".csv.zip", ".zip")),
        f"{year}-citibike-tripdata.zip",
        "citibike.csv",
        "citibike.csv.gz",
    ]
    file = local(path, names) or download(TRIPS_URL.format(year=year), f"{year}-citibike-tripdata.zip")

    def is_asked(time: str) -> bool:
        """Of 2016-06-01 00:00:18 or 6/1/2016 00:00:18."""
        if "/" not in time:
            return time.startswith(month)
        number, _, year = time.partition(" ")[0].split("/")
        return f"{year}-{int(number):02d}" == month

    asked = ["starttime", "start ts"], is_asked
    table = numbers(file, _TRIPS_COLUMNS, asked, choose=lambda names: _of_month(digits, names), gaps=True)
    table = table[(table[:, :4] != 0).all(axis=1)]
    if not len(table):
        raise DatasetError(f"{file} is a wrong file: it holds no trip of {month}.")
    if box is not None:
        table = within(table, [*box, *box])
    return dataset(table, TRIP, f"Citi Bike trips of {month}, {file.name}", _TRIPS_LICENCE)


def _of_month(digits: str, members: Sequence[str]) -> list[str]:
    """The month's files. A month may be in parts, _1, _2; where it is there whole as well, whole."""
    month = rf"{digits[:4]}-?{digits[4:]}[ _-].*\.(csv|zip)"
    found = [name for name in members if re.fullmatch(month, base(name))]
    whole = [name for name in found if not re.search(r"_\d+\.csv$", base(name))]
    return whole[:1] or sorted(found)


# London

PRICES_URL = "https://price-paid-data.publicdata.landregistry.gov.uk/pp-{year}.csv"
POSTCODES_URL = "https://api.os.uk/downloads/v1/products/CodePointOpen/downloads?area=GB&format=CSV&redirect"
_PRICES_LICENCE = (
    "Contains HM Land Registry data © Crown copyright and database right. This data is licensed under the "
    "Open Government Licence v3.0. Contains OS data © Crown copyright and database right. Contains Royal "
    "Mail data © Royal Mail copyright and database right. (Write the year after each 'right'.)"
)
LONDON_BOX = ((480_000.0, 580_000.0), (130_000.0, 230_000.0))
"""Eastings and northings in m of the square of 100 km around London."""

_PREPARED = ("london_prices.csv", "london_prices.csv.gz")
_POSTCODES = "codepo_gb.zip"


def fetch_london_prices(
    years: Sequence[int] = (2013, 2014, 2015, 2016),
    path: PathLike | None = None,
    *,
    box: Box = LONDON_BOX,
) -> Dataset:
    """Prices paid for property in and around London by place.

    Parameters
    ----------
    years : sequence of int, default 2013 to 2016
        Years of sale.
    path : path, optional
        A CSV, gzipped or not, with the columns `easting`, `northing`, `price` and `date`; or a
        folder that holds one as ``london_prices.csv`` or ``london_prices.csv.gz``, or else the publishers'
        files: ``pp-2013.csv`` (or ``.csv.gz``, ``.zip``) for each year, and ``codepo_gb.zip``. By default the
        folder in the environment variable ``CLOAKGP_DATA``, else downloads of the
        publishers' files (some 150 MB a year).
    box : two intervals, default LONDON_BOX
        Eastings and northings to keep, in m.

    Returns
    -------
    Dataset
        `X`, (n, 2), easting and northing of the postcode in m; `y`, (n,), prices in pounds, of
        all sizes (the paper has £100 000 to £500 000). Sales whose postcode is missing or not among today's
        are left out.
    """
    years = _years(years)
    box = as_box(box)
    place = given(path)
    if place is not None and place.is_dir():
        place = next((file for file in sorted(place.iterdir()) if file.name.lower() in _PREPARED), place)
    if place is not None and place.is_file():
        sold = (["date"], lambda day: day[:4] in set(map(str, years)))
        table = within(numbers(place, [["easting"], ["northing"], ["price"]], sold), box)
        origin = place.name
    else:
        files, postcodes = _publishers_files(place, years)
        places = _places(postcodes, box)
        table = np.concatenate([_sales(file, places) for file in files])
        origin = f"{', '.join(file.name for file in files)} and {postcodes.name}"
    if not len(table):
        raise DatasetError(f"{origin}: no sale of {', '.join(map(str, years))} in the box {box}.")
    columns = {"easting": "m", "northing": "m", "price": "pounds"}
    return dataset(table, columns, f"prices paid, HM Land Registry, {origin}", _PRICES_LICENCE)


def _years(years: Sequence[int]) -> list[int]:
    try:
        found = sorted({int(year) for year in years})
    except (TypeError, ValueError):
        found = []
    if not found or found[0] < 1995:
        raise ArgumentError("years", "must be years from 1995, such as (2013, 2014)", repr(years))
    return found


def _publishers_files(folder: Path | None, years: list[int]) -> tuple[list[Path], Path]:
    if folder is None:
        sold = [download(PRICES_URL.format(year=year), f"pp-{year}.csv") for year in years]
        return sold, download(POSTCODES_URL, _POSTCODES)
    ends = (".csv", ".csv.gz", ".zip", ".csv.zip")
    sold = [inside(folder, [f"pp-{year}{end}" for end in ends], _PREPARED) for year in years]
    return sold, inside(folder, [_POSTCODES])


def _records(
    file: Path, choose: Choose, widths: Sequence[int], expected: str, pick: Callable[[list[str]], T]
) -> Iterator[T]:
    """What is picked from each row of the publishers' tables, which have no headers."""
    for label, text in tables(file, choose):
        for count, row in enumerate(rows(label, text), start=1):
            try:
                if len(row) not in widths:
                    raise ValueError
                yield pick(row)
            except ValueError:
                raise DatasetError(f"{label}, row {count}: expected {expected}; got {row[:10]}.") from None


def _places(file: Path, box: Box) -> dict[str, tuple[float, float]]:
    """Easting and northing of each postcode in the box, from Code-Point Open."""
    (west, east), (south, north) = box
    expected = "10 columns of Code-Point Open, postcode, quality, easting, northing and six codes"
    picked = _records(
        file, _areas, [10], expected, lambda row: (row[0].replace(" ", ""), float(row[2]), float(row[3]))
    )
    return {name: (x, y) for name, x, y in picked if west <= x <= east and south <= y <= north}


def _areas(members: Sequence[str]) -> list[str]:
    """Code-Point Open has a file for each postcode area: Data/CSV/ab.csv."""
    return [name for name in members if re.fullmatch(r"[a-z]{1,2}\.csv", base(name))]


def _sales(file: Path, places: dict[str, tuple[float, float]]) -> FloatArray:
    """Easting, northing and price of each sale, from price-paid data, with and without a status."""
    expected = "16 columns of price-paid data, identifier, price, date, postcode and so on"
    picked = _records(file, single, [15, 16], expected, lambda row: (row[3].replace(" ", ""), float(row[1])))
    found = array("d")
    for postcode, price in picked:
        if postcode in places:
            found.extend((*places[postcode], price))
    return np.frombuffer(found, dtype=float).reshape(-1, 3).copy()
