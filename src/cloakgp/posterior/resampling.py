"""More settings where a mixture's weight has gathered: with several lengthscales, hundreds are too few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.model.hyperprior import Candidate, Hyperprior, Setting
from cloakgp.model.sobol import sobol

_DRAWN = 2**7  # points in each round


def about_the_best(
    settings: Sequence[Candidate],
    total: FloatArray,
    prior: Hyperprior,
    spans: FloatArray,
    width: float,
    round_: int,
) -> tuple[list[Setting], FloatArray]:
    """More settings where the weight is, by a normal law about it, and what corrects for its density."""
    from scipy.special import ndtri  # here: slow to import

    family = settings[int(np.argmax(total))].family
    own = np.array([setting.family == family for setting in settings])
    logs = np.array([_logs(setting) for setting in settings])[own]
    weights = np.exp(total[own] - total[own].max())
    weights /= weights.sum()
    centre = weights @ logs
    spread = (logs - centre).T @ ((logs - centre) * weights[:, None])
    ends = prior.ends(len(spans))
    free = ends[:, 1] > ends[:, 0]
    least = np.diag(((ends[:, 1] - ends[:, 0]) / 12) ** 2)  # of one point: not a spread of 0
    factor = np.linalg.cholesky((spread + least)[np.ix_(free, free)])
    unit = sobol(int(free.sum()), _DRAWN * (round_ + 1))[_DRAWN * round_ :]
    normals = ndtri(np.clip(unit + 0.5 / len(unit), 1e-6, 1 - 1e-6))
    drawn = np.tile(centre, (len(normals), 1))
    drawn[:, free] += normals @ factor.T
    ratios = np.zeros(len(ends) - len(spans) - 2)
    offset = np.concatenate([np.log(np.where(spans > 0, spans, 1.0)), ratios, [np.log(width)] * 2])
    inside = (drawn - offset >= ends[:, 0]) & (drawn - offset <= ends[:, 1])
    kept = np.all(inside[:, free], axis=1)
    drawn, normals = drawn[kept], normals[kept]
    if not len(drawn):
        return [], np.empty(0)
    uniform = -np.log((ends[:, 1] - ends[:, 0])[free]).sum()
    given = np.where(spans > 0, spans, 1.0), width, prior.categories, prior.seasons
    more = [Setting.of(family, np.exp(row - offset), *given) for row in drawn]
    # The normal law's log density, at the points that were drawn by it.
    law = -((normals**2).sum(axis=1) + len(factor) * np.log(2 * np.pi)) / 2 - np.log(np.diag(factor)).sum()
    density: FloatArray = uniform - law
    return more, density


def _logs(setting: Candidate) -> list[float]:
    """Of all that the hyperprior leaves open, each log-uniform there."""
    _, lengths, shares = setting.form
    ratios = np.log(shares[1:]) - np.log(shares[0]) if shares else ()
    return [*np.log(lengths), *ratios, np.log(setting.signal) / 2, np.log(setting.noise) / 2]
