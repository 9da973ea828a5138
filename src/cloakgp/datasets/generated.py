"""Look-alikes of real data, drawn from formulas with a public seed: safe to print, plot and publish.

Nothing here comes from a real person. The constants are round numbers, chosen so that ranges,
spreads and correlations resemble those of the real data.
"""

from __future__ import annotations

import operator

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError
from cloakgp.datasets.dataset import TRIP, Dataset, dataset


def make_kung_like(n: int = 287, seed: int = 0) -> Dataset:
    """Generate heights by age that look like a census of women in a small population.

    The people are made up: ages and heights are drawn from formulas with a public seed. They
    stand in for the heights of !Kung San women that the literature on private Gaussian processes
    uses. A third are girls, the rest are adults of up to 88 years; heights follow a growth curve
    up to about 150 cm, with a spread of 6.5 cm at each age.

    Parameters
    ----------
    n : int, default 287
        Number of people.
    seed : int, default 0
        Public seed. The same `n` and `seed` give the same data.

    Returns
    -------
    Dataset
        Unpacks as `X`, (n, 1), ages in years, to one decimal, from 0 to 88, and `y`, (n,),
        heights in cm. To try the library, pretend that they are private.

    Examples
    --------
    >>> X, y = make_kung_like()
    >>> X.shape, y.shape
    ((287, 1), (287,))
    """
    n = _count(n)
    random = np.random.default_rng(seed)
    girl = random.random(n) < 1 / 3
    girls_age = random.uniform(0.0, 18.0, n)
    adults_age = 18.0 + 70.0 * random.beta(1.1, 1.9, n)
    age: FloatArray = np.where(girl, girls_age, adults_age).round(1)
    height: FloatArray = _growth(age) + 6.5 * random.standard_normal(n)
    return _made("make_kung_like", n, seed, {"age": "years", "height": "cm"}, age, height)


def _growth(age: FloatArray) -> FloatArray:
    """Mean height in cm: 60 at birth, half of the way to adulthood by the age of seven."""
    return np.asarray(150.0 * (1 - 0.6 * np.exp(-((age / 9.0) ** 1.3))))


_CENTRE = np.array([530.0, 180.0])  # km, of a square from 480 to 580 km east and 130 to 230 km north
_TOWNS = np.array([(507.0, 222.0), (576.0, 166.0), (486.0, 155.0), (571.0, 207.0), (525.0, 138.0)])


def make_city_like(n: int = 4766, seed: int = 0) -> Dataset:
    """Generate sale prices by place that look like those of a large city and its surroundings.

    The square has sides of 100 km. Three fifths of the sales crowd around the centre, a fifth lie in
    five small towns some 45 km away; a tenth lie along the roads between town and centre, sparse bridges,
    and a tenth are scattered over a disc that leaves the corners empty. Prices are between 100 000
    and 500 000, fall slowly from the west of the centre outwards and eastwards, and differ by
    some 85 000 among neighbours.

    Parameters
    ----------
    n : int, default 4766
        Number of sales.
    seed : int, default 0
        Public seed. The same `n` and `seed` give the same data.

    Returns
    -------
    Dataset
        Unpacks as `X`, (n, 2), easting and northing in m, and `y`, (n,), prices in pounds.

    Examples
    --------
    >>> X, y = make_city_like()
    >>> X.shape, y.shape
    ((4766, 2), (4766,))
    """
    n = _count(n)
    random = np.random.default_rng(seed)
    kind = random.choice(4, size=n, p=[0.6, 0.2, 0.1, 0.1])  # centre, towns, bridges, outskirts
    town = _TOWNS[random.integers(len(_TOWNS), size=n)]
    spread = random.standard_normal((n, 2))
    along = random.random((n, 1))
    angle, radius = 2 * np.pi * random.random(n), 48.0 * np.sqrt(random.random(n))
    places = np.stack(
        [
            _CENTRE + 14.0 * spread,
            town + 2.5 * spread,
            _CENTRE + along * (town - _CENTRE) + 1.5 * spread,
            _CENTRE + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]),
        ]
    )[kind, np.arange(n)]
    places = np.clip(places, _CENTRE - 50.0, _CENTRE + 50.0)
    price = _price(places) + 90.0 * random.standard_normal(n)
    price = np.abs(price - 100.0) + 100.0  # fold back into 100 to 500
    price = np.clip(500.0 - np.abs(500.0 - price), 100.0, 500.0)
    columns = {"easting": "m", "northing": "m", "price": "pounds"}
    table = (1000.0 * places).round(), (2.0 * price).round() * 500.0
    return _made("make_city_like", n, seed, columns, *table)


def _price(places: FloatArray) -> FloatArray:
    """Mean price in thousands: a broad hill west of the centre on a slope down to the east."""
    east, north = (places - _CENTRE).T
    hill = 90.0 * np.exp(-((east + 15.0) ** 2 + north**2) / (2 * 25.0**2))
    return np.asarray(275.0 + hill - 1.0 * east - 0.6 * north)


_LATITUDES, _LONGITUDES = (40.680, 40.787), (-74.017, -73.930)  # degrees
_KM = np.array([111.2, 84.3])  # in a degree of latitude, of longitude


def make_bike_like(n: int = 5000, seed: int = 0) -> Dataset:
    """Generate trip durations by start and end that look like those of a city's shared bikes.

    Some 550 stations stand on a tilted, jittered grid on both sides of a river without stations. A trip
    starts at a station by its popularity; ends are the rarer the further away, with a median of 1.5 km.
    Its seconds grow with the distance, a little slower than in proportion, and have a heavy tail: loops back
    to the start, detours, stops. Durations are clipped at 2000 s, as the literature does.

    Parameters
    ----------
    n : int, default 5000
        Number of trips.
    seed : int, default 0
        Public seed, of the stations and of the trips. The same `n` and `seed` give the same data.

    Returns
    -------
    Dataset
        Unpacks as `X`, (n, 4), start latitude, start longitude, end latitude and end longitude in
        degrees, and `y`, (n,), seconds, from 61 to 2000.

    Examples
    --------
    >>> X, y = make_bike_like()
    >>> X.shape, y.shape
    ((5000, 4), (5000,))
    """
    n = _count(n)
    random = np.random.default_rng(seed)
    stations = _stations(random)
    popularity = _popularity(stations) * random.lognormal(0.0, 0.6, len(stations))
    apart = np.linalg.norm((stations[:, None] - stations[None]) * _KM, axis=2)
    loops = np.where(apart > 0, 1.0, 0.6)
    reach = np.cumsum(popularity * loops * np.exp(-apart / 1.15), axis=1)
    reach /= reach[:, -1:]
    start = random.choice(len(stations), size=n, p=popularity / popularity.sum())
    # Row i of reach lies in (i, i + 1] of one rising sequence: a search draws all ends at once.
    rising = (reach + np.arange(len(stations))[:, None]).ravel()
    end = np.searchsorted(rising, start + random.random(n)) - start * len(stations)
    end = np.minimum(end, len(stations) - 1)
    distance = apart[start, end]
    ridden = np.where(distance > 0, distance, np.minimum(random.exponential(3.5, n), 9.0))
    usual = 60.0 + 390.0 * ridden - 14.0 * ridden**2
    slow = np.where(random.random(n) < 0.1, random.exponential(0.8, n), 0.0)
    seconds = usual * np.exp(0.36 * random.standard_normal(n) + slow)
    table = stations[start], stations[end], np.clip(seconds.round(), 61.0, 2000.0)
    return _made("make_bike_like", n, seed, TRIP, *table)


def _stations(random: np.random.Generator) -> FloatArray:
    """Latitude and longitude of each: a grid turned by 29 degrees, less a river and the city's edges."""
    steps = np.arange(-24, 25) * 0.36  # km between stations
    across, up = (axis.ravel() for axis in np.meshgrid(steps, steps))
    turn = np.deg2rad(29.0)
    east, north = across * np.cos(turn) + up * np.sin(turn), up * np.cos(turn) - across * np.sin(turn)
    places = np.column_stack([north, east]) + 0.06 * random.standard_normal((len(across), 2))
    stations: FloatArray = np.array([np.mean(_LATITUDES), np.mean(_LONGITUDES)]) + places / _KM
    low, high = np.array([_LATITUDES, _LONGITUDES]).T
    inside = ((stations >= low) & (stations <= high)).all(axis=1)
    shore = _from_river(stations)
    return np.asarray(stations[inside & (np.abs(shore) > 0.4) & (np.abs(shore) < 5.0)].round(6))


def _from_river(stations: FloatArray) -> FloatArray:
    """Km west of the river, which runs along the grid and bends east in the north."""
    north, east = ((stations - [np.mean(_LATITUDES), np.mean(_LONGITUDES)]) * _KM).T
    turn = np.deg2rad(29.0)
    return np.asarray(0.8 + north * np.sin(turn) - east * np.cos(turn))


def _popularity(stations: FloatArray) -> FloatArray:
    """Mean use of a station: most in the middle of the west bank, a third of it on the other."""
    centre = np.array([40.737, -73.992])
    far = np.linalg.norm((stations - centre) * _KM, axis=1)
    return np.asarray((0.25 + np.exp(-((far / 3.5) ** 2))) * np.where(_from_river(stations) > 0, 1.0, 0.35))


def _count(n: int) -> int:
    n = operator.index(n)
    if n < 1:
        raise ArgumentError("n", "must be at least 1", str(n))
    return n


def _made(maker: str, n: int, seed: int, columns: dict[str, str], *table: FloatArray) -> Dataset:
    """A data set that says how it was made."""
    source = f"cloakgp.datasets.{maker}(n={n}, seed={seed})"
    licence = "generated, nobody's: free to use for anything"
    return dataset(np.column_stack(table), columns, source, licence, generated=True)
