"""What error to expect of a release in stages, before anything is measured: public, like all that is not y.

For each of some models out of the hyperprior, as if it were true: windows close in from stage to stage as
what is unknown shrinks, and each stage measures what one with all of the promise would. That is rough, but
has the size of what will come out. What is told is the median over the models.
"""

from __future__ import annotations

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.model.given_smoother import FactoredGP, GivenGP
from cloakgp.model.hyperprior import Candidate
from cloakgp.posterior.mixture import Mixture, State
from cloakgp.posterior.staging import Stage
from cloakgp.progress import Progress

_MODELS = 24  # that stand for all


def forecast(
    mixture: Mixture, rows: FloatArray, mu: float, shares: tuple[float, ...], kappa: float | None
) -> tuple[FloatArray, FloatArray]:
    """(P,) variances of f(X*) after all stages, and if y were known, each the median over models.

    `rows` (q, U) is what a stage with all of the promise measures, with columns of norm 1 at most.
    """
    settings = mixture.settings
    chosen = [settings[i] for i in np.linspace(0, len(settings) - 1, _MODELS).astype(int)]
    found = []
    with Progress("forecast", _MODELS) as progress:
        for setting in chosen:
            found.append(_for_model(mixture, setting, rows, mu, shares, kappa))
            progress.advance()
    left, known = (np.median(np.array(each), axis=0) for each in zip(*found, strict=True))
    return left, np.minimum(known, left)


def _for_model(
    mixture: Mixture,
    setting: Candidate,
    rows: FloatArray,
    mu: float,
    shares: tuple[float, ...],
    kappa: float | None,
) -> tuple[FloatArray, FloatArray]:
    support, n, m = mixture.support, mixture.counts, len(mixture.support.Z)
    k = setting.signal * support.whole(setting) + setting.level
    summed = rows * n
    G = summed if support.P is None else summed @ support.P
    H = G @ k[:m]
    signal, own = H[:, :m] @ G.T, setting.noise * ((rows * mixture.scatter) @ rows.T)
    at_rows = H[:, :m] if support.P is None else support.at_looked(H[:, :m])
    before = setting.signal + setting.level
    width, precision = mixture.width, 0.0
    for share in shares:
        precision += mu**2 * share / width**2
        D = signal + own + np.eye(len(rows)) / precision
        explained = np.einsum("ij,ij->j", at_rows, np.linalg.solve(D, at_rows))
        spread = np.sqrt(max(before - float(explained.mean()), 0.0) + setting.noise)
        if kappa is not None:
            width = min(width, 2 * kappa * spread)
    star = np.diag(k)[m:]
    left = star - np.einsum("ij,ij->j", H[:, m:], np.linalg.solve(D, H[:, m:]))
    return np.maximum(left, 0.0), _known(mixture, setting, k)


def _known(mixture: Mixture, setting: Candidate, k: FloatArray) -> FloatArray:
    """(P,) variance of f(X*) that y itself would leave."""
    support, n, m = mixture.support, mixture.counts, len(mixture.support.Z)
    inner, cross, star = k[:m, :m], k[:m, m:], np.diag(k)[m:]
    if support.P is None:
        K = inner * n[:, None] * n
        K[np.diag_indices_from(K)] += mixture.scatter * setting.noise
        exact = GivenGP(K, cross * n[:, None], star)
        return np.asarray(exact.posterior_variance)
    own = mixture.scatter * setting.noise
    sparse = FactoredGP(support.P * n[:, None], inner, cross, own, star)
    return np.asarray(sparse.posterior_variance)


def linked_forecast(mixture: Mixture, state: State, stage: Stage) -> tuple[FloatArray, FloatArray]:
    """The same of probabilities or rates: by the best linear reconstruction, from what is known already."""
    assert mixture.link is not None
    mean, variance = state.at_test_points
    none = np.full(len(mean), -np.inf), np.full(len(mean), np.inf)
    line, scatter = mixture.link.linearise(mean, variance, state.noise, none)
    before = line.slope**2 * variance + line.left - scatter
    rows, n, P = stage.rows(), state.counts, state.support.P
    summed = rows * (n * stage.clip.slope)
    G = summed if P is None else summed @ P
    D = G @ state.covariance @ G.T + state.rest * (rows * (state.scatter * stage.clip.slope**2)) @ rows.T
    D += stage.extra(rows)
    H = (G @ state.cross) * line.slope
    told = np.einsum("ij,ij->j", H, np.linalg.solve(D + np.eye(len(rows)) / stage.mu**2, H))
    known = line.slope**2 * (variance - stage.smoother().posterior_variance)
    left = np.maximum(before - told, 0.0)
    return left, np.clip(before - known, 0.0, left)
