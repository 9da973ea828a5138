"""`posterior` for one model and any noise to come: what does not depend on the noise is done once.

A search starts from an anchor: a looser design for the nearest of a series of noise levels. Which
one that is depends on the noise alone, so a design does not depend on those that were asked for before.
"""

from __future__ import annotations

import math

from cloakgp.core.checks import FloatArray
from cloakgp.data.blas import one_blas_thread
from cloakgp.designs.posterior import Aim, Anchor, anchor, posterior
from cloakgp.designs.solution import Solution
from cloakgp.designs.solve import ROUGH, mse
from cloakgp.model.smoothers import Smoother

_LEAST = 0.6  # of an anchor's variance: more noise is easier to go on to than less
_KEPT = 2  # anchors: each is as large as two solutions
_LOOSER = 1.5  # times the gap, of an anchor


class AnyNoise:
    """Designs from the measurements of the mse design.

    Parameters
    ----------
    unit : float
        The noise variance of a level; others are powers of 4 of it.
    """

    def __init__(self, smoother: Smoother, weights: FloatArray, unit: float) -> None:
        self._unit = unit
        with one_blas_thread():
            self._aim = Aim(smoother, weights)
            self._start = mse(smoother, weights, ROUGH, 1.0).reduce
        self._anchors: dict[tuple[float, int], Anchor] = {}

    @one_blas_thread()  # products have threads of their own, which do not wait for each other
    def solve(self, gap: float, noise_variance: float) -> Solution:
        """The design for noise of this variance."""
        level = 2 * math.floor(math.log2(noise_variance / self._unit / _LEAST) / 2)
        found = self._anchors.get((gap, level))
        if found is None:
            found = anchor(self._aim, self._start, _LOOSER * gap, math.ldexp(self._unit, level))
            self._anchors[gap, level] = found
            for old in list(self._anchors)[:-_KEPT]:
                self._anchors.pop(old, None)  # others, in threads of their own, may have done so
        return posterior(self._aim, found, gap, noise_variance)
