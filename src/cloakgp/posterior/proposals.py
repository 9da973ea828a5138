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

_MODES = 3  # laws in a round, at most: about so many of the best that are far apart
_APART = 0.2  # of the prior's range, on average over what is open: farther, they are two modes
_ODDS = 6.0  # in log evidence from the best, within which a mode is worth a law
_NARROW = 16.0  # as a share of the prior's range, the least std of a law: one point has no spread


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
        from scipy.linalg import solve_triangular

        white = solve_triangular(self.factor, (points - self.centre).T, lower=True)
        size = np.log(np.diag(self.factor)).sum() + len(self.factor) * np.log(2 * np.pi) / 2
        return np.asarray(np.log(self.n) - (white**2).sum(axis=0) / 2 - size)


class Proposals:
    """Of points in a box, in which the prior is uniform, for each of several families.

    Parameters
    ----------
    ends : (d, 2) array
        The box; of what is not open, both are the same.
    n : int
        How many points of the prior there are, of each family.
    """

    def __init__(self, ends: FloatArray, n: int) -> None:
        self.ends, self.n = ends, n
        self.free = ends[:, 1] > ends[:, 0]
        self.size = (ends[:, 1] - ends[:, 0])[self.free]
        self.laws: list[Normal] = []
        self._drawn = 0

    def log_prior(self, families: Sequence[str], points: FloatArray) -> FloatArray:
        """Log of prior density over proposals' at these points of the box."""
        own = np.array(families)
        uniform = -np.log(self.size).sum()
        terms = [np.full(len(points), np.log(self.n) + uniform)]
        for law in self.laws:
            terms.append(np.where(own == law.family, law.log_density(points[:, self.free]), -np.inf))
        return np.asarray(uniform - np.logaddexp.reduce(terms, axis=0))

    def draw(
        self, families: Sequence[str], points: FloatArray, total: FloatArray, n: int
    ) -> list[tuple[int, FloatArray]]:
        """Up to n more points about the best, each with the number of the point that it was drawn about.

        `total` are the log weights of the points that there are.
        """
        from scipy.special import ndtri  # here: slow to import

        modes = self._modes(points, total)
        drawn: list[tuple[int, FloatArray]] = []
        for mode in modes:
            law = self._law(families, points, total, mode, modes, n // len(modes))
            unit = sobol(int(self.free.sum()), self._drawn + law.n)[self._drawn :]
            self._drawn += law.n
            normals = ndtri(np.clip(unit + 0.5 / law.n, 1e-6, 1 - 1e-6))
            found = np.tile(points[mode], (len(normals), 1))
            found[:, self.free] = law.centre + normals @ law.factor.T
            inside = (found >= self.ends[:, 0]) & (found <= self.ends[:, 1])
            drawn += [(mode, one) for one in found[inside[:, self.free].all(axis=1)]]
            self.laws.append(law)
        return drawn

    def _modes(self, points: FloatArray, total: FloatArray) -> list[int]:
        """The best point, and others that are far from it and not much worse."""
        order, found = np.argsort(-total, kind="stable"), []
        for i in order[: int(np.sum(total > total.max() - _ODDS))].tolist():
            gaps = [self._apart(points[i], points[j]) for j in found]
            if all(gap > _APART for gap in gaps):
                found.append(i)
            if len(found) == _MODES:
                break
        return found

    def _apart(self, one: FloatArray, other: FloatArray | Sequence[FloatArray]) -> FloatArray:
        gaps = (np.asarray(other) - one)[..., self.free] / self.size
        return np.sqrt(np.mean(gaps**2, axis=-1))

    def _law(
        self,
        families: Sequence[str],
        points: FloatArray,
        total: FloatArray,
        mode: int,
        modes: Sequence[int],
        n: int,
    ) -> Normal:
        """Of the weight about a mode."""
        family = families[mode]
        nearest = np.argmin([self._apart(points[j], points) for j in modes], axis=0)
        own = (np.array(families) == family) & (nearest == list(modes).index(mode))
        logs = points[own][:, self.free]
        weights = np.exp(total[own] - total[own].max())
        weights /= weights.sum()
        centre = weights @ logs
        spread = (logs - centre).T @ ((logs - centre) * weights[:, None])
        return Normal(family, centre, np.linalg.cholesky(spread + np.diag((self.size / _NARROW) ** 2)), n)
