"""What error to expect of a release in stages, before anything is measured: public, like all that is not y.

For each of some models out of the hyperprior, as if it were true: windows close in from stage to stage as
what is unknown shrinks, and each stage measures what one with all of the promise would. That is rough, but
has the size of what will come out. What is told is the median over the models.
"""

from __future__ import annotations

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.progress import Progress
from cloakgp.model.hyperprior import Candidate
from cloakgp.model.smoothers import FactoredGP, GivenGP
from cloakgp.posterior.mixture import Mixture
from cloakgp.posterior.states import State

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
    k = setting.signal * support.exactly(setting) + setting.level
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
    return np.maximum(left, 0.0), _known(mixture, n, mixture.scatter * setting.noise, k)


def _known(mixture: Mixture, n: FloatArray, own: FloatArray, k: FloatArray) -> FloatArray:
    """(P,) variance of f(X*) that y itself would leave: sums of n f with noise of its `own`."""
    support, m = mixture.support, len(mixture.support.Z)
    inner, cross, star = k[:m, :m], k[:m, m:], np.diag(k)[m:]
    own = np.maximum(own, 1e-12 * own.max())
    if support.P is None:
        K = inner * n[:, None] * n
        K[np.diag_indices_from(K)] += own
        exact = GivenGP(K, cross * n[:, None], star)
        return np.asarray(exact.posterior_variance)
    sparse = FactoredGP(support.P * n[:, None], inner, cross, own, star)
    return np.asarray(sparse.posterior_variance)


def _root(k: FloatArray) -> FloatArray:
    """R with RR' = k; or of the nearest covariance, where interpolation made k none at test points."""
    try:
        return np.linalg.cholesky(k + 1e-8 * np.trace(k) / len(k) * np.eye(len(k)))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(k)
        root: FloatArray = vectors * np.sqrt(np.maximum(values, 0.0))
        return root


def linked_forecast(
    mixture: Mixture,
    state: State,
    rows: FloatArray,
    mu: float,
    shares: tuple[float, ...],
    kappa: float | None,
) -> tuple[FloatArray, FloatArray]:
    """The same of probabilities or rates: where f is drawn decides how much outcomes tell of it, and scatter.

    If something is known of f already, it is drawn from that; and what is told is then the mean over draws.
    """
    # A public seed: the same curves every time.
    random, settings = np.random.default_rng(0), mixture.settings
    learned = mixture.prior.gp is None and not state.settings
    found = []
    for i in np.linspace(0, len(settings) - 1, _MODELS).astype(int):
        if state.settings:
            mean, k, noise = state.support_mean, state.support_covariance, state.noise
        else:
            k, noise = settings[i].signal * mixture.support.exactly(settings[i]), settings[i].noise
            mean, k = np.zeros(len(k)), k + settings[i].level
        f = mean + _root(k) @ random.normal(size=len(k))
        found.append(_for_curve(mixture, f, k, noise, rows, mu, shares, kappa))
    average = np.median if learned else np.mean
    left, known = (average(np.array(each), axis=0) for each in zip(*found, strict=True))
    return left, np.minimum(known, left)


def _for_curve(
    mixture: Mixture,
    f: FloatArray,
    k: FloatArray,
    noise: float,
    rows: FloatArray,
    mu: float,
    shares: tuple[float, ...],
    kappa: float | None,
) -> tuple[FloatArray, FloatArray]:
    """(P,) variances of probabilities or rates where this f, at support and test points, is true."""
    law, n, P, m = mixture.law, mixture.counts, mixture.support.P, len(mixture.support.Z)
    at = f[:m] if P is None else P @ f[:m]
    none = np.full(len(at), -np.inf), np.full(len(at), np.inf)
    line, own = law.linearise(at, np.zeros(len(at)), noise, none)  # as steep as it is just there
    assert own is not None
    summed = rows * (n * line.slope)
    G = summed if P is None else summed @ P
    H = G @ k[:m]
    fixed = H[:, :m] @ G.T + (rows * (mixture.scatter * own)) @ rows.T
    at_rows = H[:, :m] if P is None else H[:, :m] @ P.T
    inner = k[:m, :m]
    before = np.diag(inner) if P is None else np.einsum("ij,ij->i", P @ inner, P)
    width, precision = law.bounds[1] - law.bounds[0], 0.0
    for share in shares:
        precision += mu**2 * share / width**2
        D = fixed + np.eye(len(rows)) / precision
        if kappa is not None:
            left = before - np.einsum("ij,ij->j", at_rows, np.linalg.solve(D, at_rows))
            _, apart, scatter = law.moments(at, np.maximum(left, 0.0), noise)
            width = min(width, 2 * kappa * float(np.sqrt(np.average(apart + scatter, weights=n))))
    left = np.diag(k)[m:] - np.einsum("ij,ij->j", H[:, m:], np.linalg.solve(D, H[:, m:]))
    known = _known(mixture, n * line.slope, mixture.scatter * own, k)
    left, known = (law.moments(f[m:], np.maximum(one, 0.0), noise)[1] for one in (left, known))
    return left, known
