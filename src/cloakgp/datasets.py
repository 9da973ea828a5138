"""Generated look-alikes of real data: safe to print, plot and publish.

Nothing here comes from a real person. Loaders for real data come later.
"""

from __future__ import annotations

import operator

import numpy as np

from cloakgp.checks import FloatArray

_ADULT = 18.0  # years
_OLDEST = 88.0  # years
_ADULT_HEIGHT = 150.0  # cm
_SPREAD = 6.5  # cm, among people of one age


def make_kung_like(n: int = 287, seed: int = 0) -> tuple[FloatArray, FloatArray]:
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
    X : (n, 1) array
        Ages in years, to one decimal, from 0 to 88.
    y : (n,) array
        Heights in cm. To try the library, pretend that they are private.

    Examples
    --------
    >>> X, y = make_kung_like()
    >>> X.shape, y.shape
    ((287, 1), (287,))
    """
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"n must be at least 1; got {n}.")
    random = np.random.default_rng(seed)
    girl = random.random(n) < 1 / 3
    girls_age = random.uniform(0.0, _ADULT, n)
    adults_age = _ADULT + (_OLDEST - _ADULT) * random.beta(1.1, 1.9, n)
    age: FloatArray = np.where(girl, girls_age, adults_age).round(1)
    height: FloatArray = _growth(age) + _SPREAD * random.standard_normal(n)
    return age[:, None], height


def _growth(age: FloatArray) -> FloatArray:
    """Mean height in cm: 60 at birth, half of the way to adulthood by the age of seven."""
    curve: FloatArray = _ADULT_HEIGHT * (1 - 0.6 * np.exp(-((age / 9.0) ** 1.3)))
    return curve
