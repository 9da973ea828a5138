"""Prices paid for property in and around London by place: the paper's map."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.datasets.dataset import Dataset, DatasetError
from cloakgp.datasets.sources import PathLike, absent, download, given, inside
from cloakgp.datasets.tables import base, checked_box, numbers, rows, single, tables, within
from cloakgp.errors import ArgumentError

PRICES_URL = "https://price-paid-data.publicdata.landregistry.gov.uk/pp-{year}.csv"
POSTCODES_URL = "https://api.os.uk/downloads/v1/products/CodePointOpen/downloads?area=GB&format=CSV&redirect"
LICENCE = (
    "Contains HM Land Registry data © Crown copyright and database right. This data is licensed under the "
    "Open Government Licence v3.0. Contains OS data © Crown copyright and database right. Contains Royal "
    "Mail data © Royal Mail copyright and database right. (Write the year after each 'right'.)"
)
LONDON_BOX = ((480_000.0, 580_000.0), (130_000.0, 230_000.0))
"""Eastings and northings in m of the square of 100 km around London."""

_PREPARED = ("london_prices.csv", "london_prices.csv.gz")
_POSTCODES = "codepo_gb.zip"
_FIRST_YEAR = 1995


def fetch_london_prices(
    years: Sequence[int] = (2013, 2014, 2015, 2016),
    path: PathLike | None = None,
    *,
    box: Sequence[tuple[float, float]] = LONDON_BOX,
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
    years = _checked(years)
    box = checked_box(box)
    place = given(path)
    prepared = place if place is None or place.is_file() else inside(place, _PREPARED)
    if prepared is not None:
        table = _prepared(prepared, years, box)
        origin = prepared.name
    else:
        sold, postcodes = _publishers_files(place, years)
        places = _places(postcodes, box)
        table = np.concatenate([_sales(file, places) for file in sold])
        origin = f"{', '.join(file.name for file in sold)} and {postcodes.name}"
    if not len(table):
        raise DatasetError(f"{origin}: no sale of {', '.join(map(str, years))} in the box {box}.")
    return Dataset(
        table[:, :2].copy(),
        table[:, 2].copy(),
        ("easting", "northing", "price"),
        ("m", "m", "pounds"),
        f"prices paid, HM Land Registry, {origin}",
        LICENCE,
    )


def _checked(years: Sequence[int]) -> list[int]:
    try:
        found = sorted({int(year) for year in years})
    except (TypeError, ValueError):
        found = []
    if not found or found[0] < _FIRST_YEAR:
        raise ArgumentError("years", f"must be years from {_FIRST_YEAR}, such as (2013, 2014)", repr(years))
    return found


def _prepared(file: Path, years: list[int], box: Sequence[tuple[float, float]]) -> FloatArray:
    wanted = {str(year) for year in years}
    sold = (["date"], lambda day: day[:4] in wanted)
    return within(numbers(file, [["easting"], ["northing"], ["price"]], sold), box)


def _publishers_files(folder: Path | None, years: list[int]) -> tuple[list[Path], Path]:
    if folder is None:
        sold = [download(PRICES_URL.format(year=year), f"pp-{year}.csv") for year in years]
        return sold, download(POSTCODES_URL, _POSTCODES)
    sold = []
    for year in years:
        names = [f"pp-{year}.csv", f"pp-{year}.csv.gz", f"pp-{year}.zip", f"pp-{year}.csv.zip"]
        file = inside(folder, names)
        if file is None:
            raise absent(folder, [*_PREPARED, *names])
        sold.append(file)
    postcodes = inside(folder, [_POSTCODES])
    if postcodes is None:
        raise absent(folder, [_POSTCODES])
    return sold, postcodes


def _places(file: Path, box: Sequence[tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Easting and northing of each postcode in the box, from Code-Point Open: no header, 10 columns."""
    (west, east), (south, north) = box
    found = {}
    for label, text in tables(file, _areas):
        for count, row in enumerate(rows(label, text), start=1):
            try:
                postcode, _, easting, northing, *rest = row
                at_east, at_north = float(easting), float(northing)
            except ValueError:
                rest = []
            if len(rest) != 6:
                raise DatasetError(
                    f"{label}, row {count}: expected 10 columns of Code-Point Open, postcode, quality, "
                    f"easting, northing and six codes; got {row[:10]}."
                )
            if west <= at_east <= east and south <= at_north <= north:
                found[postcode.replace(" ", "")] = (at_east, at_north)
    return found


def _areas(members: Sequence[str]) -> list[str]:
    """Code-Point Open has a file for each postcode area: Data/CSV/ab.csv."""
    return [name for name in members if re.fullmatch(r"[a-z]{1,2}\.csv", base(name))]


def _sales(file: Path, places: dict[str, tuple[float, float]]) -> FloatArray:
    """Easting, northing and price of each sale, from price-paid data: no header, 16 columns."""
    found = array("d")
    for label, text in tables(file, single):
        for count, row in enumerate(rows(label, text), start=1):
            try:
                _, price, _, postcode, *rest = row
                amount = float(price)
            except ValueError:
                rest = []
            if len(rest) not in (11, 12):  # with and without a status
                raise DatasetError(
                    f"{label}, row {count}: expected 16 columns of price-paid data, identifier, price, date, "
                    f"postcode and so on; got {row[:4]}."
                )
            place = places.get(postcode.replace(" ", ""))
            if place is not None:
                found.extend((*place, amount))
    table: FloatArray = np.frombuffer(found, dtype=float).reshape(-1, 3).copy()
    return table
