"""Public tables that come inside packages, and what a custodian would say of each beforehand.

Data are read from files of `pydataset` and `vega_datasets` (the extra `tables`) and of scikit-learn; nothing
is downloaded. The first two are not imported: they need pandas, and `pydataset` would write into the home
folder. `tables.py --export` writes all tables into a folder of .npz files, which then stands for the
packages.

Bounds and boxes are round numbers from public knowledge, with the reason, and not the data's own least and
greatest. Rows that lack something are left out, and inputs beyond their box are moved to its edge, as
anybody may do with public numbers.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import math
import tarfile
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_diabetes

NOT_GIVEN = ("", "NA", "None")


class Number(NamedTuple):
    """Cells that are numbers, in a public range."""

    low: float
    high: float
    column: str = ""
    """In the file, if it has another name there."""
    read: Callable[[str], float] = float


class Levels(NamedTuple):
    """Cells that are categories, numbered from 0."""

    names: tuple[str, ...]
    column: str = ""

    def read(self, cell):
        return float(self.names.index(cell))


class Grades(Levels):
    """Levels that have an order, so their numbers count as numbers."""


class Table(NamedTuple):
    """Where a table is, and what is public about it."""

    source: str
    """Package of the file, and its name there."""
    y: str
    bounds: tuple[float, float]
    why: str
    """These bounds, in a line."""
    inputs: dict[str, Number | Levels]
    outcome: str = "real"
    yes: str | None = None
    """The outcome's cell that means yes; if absent, cells are numbers."""
    seasons: dict[int, float] | None = None

    @property
    def box(self):
        """Ranges as tuples, categories as lists, in the order of the inputs."""
        return {name: _extent(column) for name, column in self.inputs.items()}


def _extent(column):
    if isinstance(column, Grades):
        return 0, len(column.names) - 1
    if isinstance(column, Levels):
        return list(range(len(column.names)))
    return column.low, column.high


def load(name, folder=None):
    """Inputs and outcomes of a table, from the packages or from a folder that was exported."""
    if folder is not None:
        path = Path(folder) / f"{name}.npz"
        if not path.is_file():
            raise SystemExit(f"no {path}: write it by --export, where the extra `tables` is installed")
        with np.load(path) as data:
            return data["X"], data["y"]
    return _read(name)


@cache
def _read(name):
    table = TABLES[name]
    found = [_numbers(table, row) for row in _rows(table.source)]
    data = np.array([row for row in found if row is not None])
    X, y = data[:, :-1], data[:, -1]
    for i, extent in enumerate(table.box.values()):
        X[:, i] = np.clip(X[:, i], extent[0], extent[-1])
    return X, y


def _numbers(table, row):
    """A row's inputs and outcome as numbers; None, if something is missing."""
    cells = [(column, row[column.column or name]) for name, column in table.inputs.items()]
    if any(cell in NOT_GIVEN for cell in [row[table.y], *(cell for _, cell in cells)]):
        return None
    y = float(row[table.y]) if table.yes is None else float(row[table.y] == table.yes)
    numbers = [*(column.read(cell) for column, cell in cells), y]
    return numbers if np.isfinite(numbers).all() else None


def _rows(source):
    """Rows of a file, as texts by column."""
    package, _, file = source.partition(":")
    if package == "sklearn":
        data = load_diabetes(scaled=False)
        columns = np.column_stack([data.data, data.target])
        return [dict(zip([*data.feature_names, "target"], row, strict=True)) for row in columns.astype(str)]
    if package == "pydataset":
        with tarfile.open(_folder(package) / "resources.tar.gz") as archive:
            text = archive.extractfile(f"resources/rdata/csv/{file}.csv").read().decode()
        return list(csv.DictReader(io.StringIO(text)))
    path = _folder(package) / "_data" / file
    if path.suffix == ".json":
        return [{k: str(v) for k, v in row.items()} for row in json.loads(path.read_text(encoding="utf-8"))]
    with path.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def _folder(package):
    """Of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise SystemExit(f"{package} is not installed: pip install '.[tables]', or name a folder by --cache")
    return Path(spec.submodule_search_locations[0])


# How cells are read


def _log10(cell):
    return math.log10(float(cell)) if float(cell) > 0 else math.nan


def _tens(cell):
    return 10 * float(cell)


def _below(limit):
    """Greater numbers are codes for an answer that was not given."""
    return lambda cell: float(cell) if float(cell) < limit else math.nan


def _day(cell):
    """Days since 2000-01-01."""
    return float((date.fromisoformat(cell.replace("/", "-")) - date(2000, 1, 1)).days)


def _year(cell):
    return float(cell[:4])


NO_YES = ("no", "yes")
SEX = ("female", "male")
DAYS = {"date": Number(4383, 5844, read=_day)}  # 2012 to 2015
YEAR = {0: 365.25}

TABLES = {
    # Numbers that lie about a smooth curve
    "gag": Table(
        "pydataset:MASS/GAGurine", "GAG", (0, 100), "concentration in urine; books give some tens at most",
        {"Age": Number(0, 18)},
    ),
    "geyser": Table(
        "pydataset:datasets/faithful", "waiting", (0, 180), "minutes; it is said to spout every hour or two",
        {"eruptions": Number(0, 6)},
    ),
    "heights": Table(
        "pydataset:HistData/GaltonFamilies", "childHeight", (36, 96), "inches; adults have 3 to 8 feet",
        {"midparentHeight": Number(60, 80), "gender": Levels(SEX)},
    ),
    "birthweight": Table(
        "pydataset:MASS/birthwt", "bwt", (0, 6000), "grams; hardly any child has 6 kg",
        {"age": Number(12, 50), "lwt": Number(80, 260), "race": Levels(("1", "2", "3")),
         "smoke": Levels(("0", "1"))},
    ),
    "quakes": Table(
        "pydataset:datasets/quakes", "depth", (0, 800), "km; none is known below 750",
        {"lat": Number(-40, -10), "long": Number(165, 190)},
    ),
    "vocabulary": Table(
        "pydataset:car/Vocab", "vocabulary", (0, 10), "right answers to ten questions",
        {"year": Number(1970, 2005), "education": Number(0, 20), "sex": Levels(("Female", "Male"))},
    ),
    "nox": Table(
        "pydataset:robustbase/NOxEmissions", "LNOx", (0, 8), "logarithm of 1 to 3000 ppb",
        {"julday": Number(365, 731), "LNOxEm": Number(4, 9), "sqrtWS": Number(0, 4)},
    ),
    "films": Table(
        "pydataset:ggplot2/movies", "rating", (1, 10), "stars; the page offers no others",
        {"year": Number(1890, 2005), "length": Number(0, 4, read=_log10),
         "votes": Number(0.5, 5.5, read=_log10)},
    ),
    "cars": Table(
        "vega_datasets:cars.json", "Miles_per_Gallon", (0, 60), "cars of the 1970s that people could buy",
        {"Horsepower": Number(0, 250), "Weight_in_lbs": Number(1000, 6000), "Acceleration": Number(5, 30),
         "Year": Number(1970, 1982, read=_year), "Origin": Levels(("USA", "Europe", "Japan"))},
    ),
    "food": Table(
        "pydataset:Ecdat/BudgetFood", "wfood", (0, 1), "a share of what a household spends",
        {"totexp": Number(4, 7.5, read=_log10), "age": Number(15, 100), "size": Number(1, 15),
         "town": Number(1, 5), "sex": Levels(("man", "woman"))},
    ),
    "diabetes": Table(
        "sklearn:diabetes", "target", (0, 500), "a clinic's score of how the disease went on: some hundreds",
        {"age": Number(18, 80), "sex": Levels(("1.0", "2.0")), "bmi": Number(15, 45), "bp": Number(50, 150),
         "s1": Number(80, 320), "s3": Number(20, 100), "s5": Number(3, 7), "s6": Number(50, 130)},
    ),
    # Numbers that repeat
    "weather": Table(
        "vega_datasets:seattle-weather.csv", "temp_max", (-30, 50), "degrees Celsius of a mild coast",
        DAYS, seasons=YEAR,
    ),
    "sunspots": Table(
        "pydataset:datasets/sunspots", "sunspots", (0, 400), "Zurich number; 300 would be a record",
        {"time": Number(1740, 1990)},
    ),
    # Skewed numbers, and many zeros
    "diamonds": Table(
        "pydataset:ggplot2/diamonds", "price", (0, 25_000), "dollars; dearer ones are sold elsewhere",
        {"carat": Number(0, 5), "cut": Grades(("Fair", "Good", "Very Good", "Premium", "Ideal")),
         "color": Grades(tuple("DEFGHIJ")),
         "clarity": Grades(("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"))},
    ),
    "houses": Table(
        "pydataset:Ecdat/Housing", "price", (0, 300_000), "Canadian dollars of 1987, in a small town",
        {"lotsize": Number(1000, 20_000), "bedrooms": Number(1, 6), "bathrms": Number(1, 4),
         "stories": Number(1, 4), "garagepl": Number(0, 3), "driveway": Levels(NO_YES),
         "airco": Levels(NO_YES), "prefarea": Levels(NO_YES)},
    ),
    "salaries": Table(
        "pydataset:car/Salaries", "salary", (0, 300_000), "dollars for nine months; deans may have more",
        {"yrs.since.phd": Number(0, 60), "yrs.service": Number(0, 60),
         "rank": Levels(("AsstProf", "AssocProf", "Prof")), "discipline": Levels(("A", "B")),
         "sex": Levels(("Female", "Male"))},
    ),
    "wages": Table(
        "pydataset:car/SLID", "wages", (0, 100), "dollars an hour; few are paid more",
        {"education": Number(0, 20), "age": Number(15, 95), "sex": Levels(("Female", "Male")),
         "language": Levels(("English", "French", "Other"))},
    ),
    "earnings": Table(
        "pydataset:Ecdat/PSID", "earnings", (0, 200_000), "dollars a year around 1990; few have more",
        {"age": Number(30, 50), "educatn": Number(0, 20, read=_below(90)), "hours": Number(0, 5000),
         "kids": Number(0, 10, read=_below(90))},
    ),
    "costs": Table(
        "pydataset:Ecdat/MedExp", "med", (0, 10_000), "dollars a year for medicine, in the 1970s",
        {"age": Number(0, 65), "ndisease": Number(0, 60), "lc": Number(0, 5),
         "health": Grades(("poor", "fair", "good", "excellent")), "sex": Levels(SEX)},
    ),
    "rain": Table(
        "vega_datasets:seattle-weather.csv", "precipitation", (0, 100), "mm a day; 100 would be a flood",
        DAYS, seasons=YEAR,
    ),
    # Counts
    "visits": Table(
        "pydataset:Ecdat/OFP", "ofp", (0, 100), "to a doctor in a year: twice a week",
        {"age": Number(65, 110, read=_tens), "numchron": Number(0, 8), "hosp": Number(0, 8),
         "school": Number(0, 20), "sex": Levels(SEX)},
        outcome="count",
    ),
    "doctor": Table(
        "pydataset:COUNT/rwm", "docvis", (0, 100), "visits in three months: more than one a day",
        {"age": Number(25, 65), "educ": Number(6, 20), "hhninc": Number(0, 30)},
        outcome="count",
    ),
    "stays": Table(
        "pydataset:COUNT/azpro", "los", (0, 100), "days in hospital; few are longer",
        {name: Levels(("0", "1")) for name in ("procedure", "sex", "admit", "age75")},
        outcome="count",
    ),
    "affairs": Table(
        "pydataset:Ecdat/Fair", "nbaffairs", (0, 12), "answers on the form, where 12 is monthly or more",
        {"age": Number(15, 65), "ym": Number(0, 15), "religious": Number(1, 5), "rate": Number(1, 5)},
        outcome="count",
    ),
    "articles": Table(
        "pydataset:pscl/bioChemists", "art", (0, 20), "published by a student in three years",
        {"ment": Number(0, 80), "phd": Number(0, 5), "kid5": Number(0, 4), "fem": Levels(("Men", "Women"))},
        outcome="count",
    ),
    "goals": Table(
        "pydataset:vcd/Bundesliga", "HomeGoals", (0, 15), "in one match of football",
        {"Year": Number(1963, 2008), "Round": Number(1, 38)},
        outcome="count",
    ),
    "homeruns": Table(
        "pydataset:plyr/baseball", "hr", (0, 80), "in a season; the record, 73, is in every newspaper",
        {"year": Number(1870, 2010), "ab": Number(0, 750)},
        outcome="count",
    ),
    # Yes or no
    "turnout": Table(
        "pydataset:Zelig/turnout", "vote", (0, 1), "voted or not",
        {"age": Number(17, 95), "educate": Number(0, 20), "income": Number(0, 15),
         "race": Levels(("others", "white"))},
        outcome="yes/no",
    ),
    "titanic": Table(
        "pydataset:COUNT/titanic", "survived", (0, 1), "survived or not",
        {"class": Levels(("1st class", "2nd class", "3rd class")), "age": Levels(("adults", "child")),
         "sex": Levels(("man", "women"))},
        outcome="yes/no", yes="yes",
    ),
    "pima": Table(
        "pydataset:MASS/Pima.te", "type", (0, 1), "diabetes or not",
        {"glu": Number(40, 200), "bmi": Number(15, 70), "age": Number(20, 85), "ped": Number(0, 2.5),
         "npreg": Number(0, 17)},
        outcome="yes/no", yes="Yes",
    ),
    "deaths": Table(
        "pydataset:survival/flchain", "death", (0, 1), "died or not",
        {"age": Number(50, 105), "kappa": Number(0, 20), "lambda": Number(0, 20), "sex": Levels(("F", "M"))},
        outcome="yes/no",
    ),
}  # fmt: skip
