"""Which hypotheses are looked at: points of the prior, and later more where the weight is.

All are weighted as drawn from one mixture, of the prior's points and all normal laws that were drawn from
since (the balance heuristic: Veach & Guibas 1995; Owen & Zhou 2000): prior density over the sum of what each
law would have placed there. So points of different rounds stand side by side, and a law that was off the mark
costs little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.model.point_sets import sobol
from cloakgp.posterior.evidence import Hypotheses
from cloakgp.posterior.states import lower_solve

_MODES = 3  # laws in a round, at most: about so many of the best that are far apart
_APART = 0.2  # of the prior's range, on average over what is open: farther, they are two modes
_ODDS = 6.0  # in log evidence from the best, within which a mode is worth a law
_NARROW = 16.0  # divides the prior's range into the least std of a law: one point has no spread
_TAIL = 1e-6  # where normal laws are cut


@dataclass(frozen=True, eq=False)
class Normal:
    """A normal law, from which so many hypotheses of one family were drawn."""

    family: str
    centre: FloatArray
    factor: FloatArray
    """Of its covariance, by Cholesky."""
    n: int

    def log_density(self, points: FloatArray) -> FloatArray:
        """At these points, times how many were drawn."""
        white = lower_solve(self.factor, (points - self.centre).T)
        size = np.log(np.diag(self.factor)).sum() + len(self.factor) * np.log(2 * np.pi) / 2
        return np.asarray(np.log(self.n) - (white**2).sum(axis=0) / 2 - size)


class Proposals:
    """Points in a box, evenly for each of several families, and others drawn where the weight is.

    Parameters
    ----------
    ends : (d, 2) array
        The box; of what is not open, both are the same.
    n : int
        How many points there are evenly, of each family.
    """

    def __init__(self, ends: FloatArray, n: int) -> None:
        self.ends, self.n = ends, n
        self.free = ends[:, 1] > ends[:, 0]
        self.size = (ends[:, 1] - ends[:, 0])[self.free]
        self.laws: list[Normal] = []
        self._drawn = 0

    def log_weights(self, found: Hypotheses) -> FloatArray:
        """(n,) by which a sum over hypotheses stands for a mean over box and families, but for a constant."""
        families, points = np.array(found.families), found.points[:, self.free]
        even = -np.log(self.size).sum()
        terms = [np.full(len(points), np.log(self.n) + even)]
        for law in self.laws:
            terms.append(np.where(families == law.family, law.log_density(points), -np.inf))
        return np.asarray(even - np.logaddexp.reduce(terms, axis=0))

    def draw(self, found: Hypotheses, total: FloatArray, n: int) -> tuple[list[str], FloatArray]:
        """Up to n more points, and the family of each.

        `total` are the log weights of the hypotheses that there are.
        """
        from scipy.special import ndtri  # here: slow to import

        families: list[str] = []
        points = [np.empty((0, len(self.ends)))]
        if not self.free.any():
            return families, points[0]
        modes = self._modes(found.points, total)
        for mode in modes:
            law = self._law(found, total, mode, modes, n // len(modes))
            unit = sobol(len(self.size), self._drawn + law.n)[self._drawn :]
            self._drawn += law.n
            normals = ndtri(np.clip(unit + 0.5 / law.n, _TAIL, 1 - _TAIL))
            drawn = np.tile(found.points[mode], (law.n, 1))
            drawn[:, self.free] = law.centre + normals @ law.factor.T
            inside = (drawn >= self.ends[:, 0]) & (drawn <= self.ends[:, 1])
            points.append(drawn[inside[:, self.free].all(axis=1)])
            families += [law.family] * len(points[-1])
            self.laws.append(law)
        return families, np.vstack(points)

    def _modes(self, points: FloatArray, total: FloatArray) -> list[int]:
        """The best point, and others that are far from it and not much worse."""
        order = np.argsort(-total, kind="stable")
        found: list[int] = []
        for i in order[: int(np.sum(total > total.max() - _ODDS))].tolist():
            if all(self._apart(points[i], points[j]) > _APART for j in found):
                found.append(i)
            if len(found) == _MODES:
                break
        return found

    def _apart(self, one: FloatArray, others: FloatArray) -> FloatArray:
        """How far points are from one, as a share of the box."""
        gaps = (others - one)[..., self.free] / self.size
        return np.asarray(np.sqrt(np.mean(gaps**2, axis=-1)))

    def _law(self, found: Hypotheses, total: FloatArray, mode: int, modes: Sequence[int], n: int) -> Normal:
        """Of the weight about a mode."""
        families, points = np.array(found.families), found.points
        nearest = np.argmin([self._apart(points[j], points) for j in modes], axis=0)
        own = (families == families[mode]) & (nearest == list(modes).index(mode))
        logs = points[own][:, self.free]
        weights = np.exp(total[own] - total[own].max())
        weights /= weights.sum()
        centre = weights @ logs
        spread = (logs - centre).T @ ((logs - centre) * weights[:, None])
        factor = np.linalg.cholesky(spread + np.diag((self.size / _NARROW) ** 2))
        return Normal(str(families[mode]), centre, factor, n)
