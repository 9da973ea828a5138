"""What error to expect of a release in stages, before anything is measured: public, like all that is not y.

For each of some models that are usual, as if it were true: windows close in from stage to stage as
what is unknown shrinks, and each stage measures what one with all of the promise would. That is rough, but
has the size of what will come out. What is told is the median over the models.

With a link, where f is decides how much outcomes tell of it, and scatter; so f is drawn from each model. If
something is known of f already, it is drawn from that, and what is told is the mean over draws.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.progress import Progress
from cloakgp.model.hyperprior import Candidate, Hyperprior, spread
from cloakgp.model.smoothers import FactoredGP, GivenGP
from cloakgp.posterior.mixture import Mixture
from cloakgp.posterior.states import State

_MODELS = 24  # that stand for all
_SHORT = 0.05
"""Of an input's range, for each input: the shortest lengthscale where there are several. A function of many
inputs that is short in each of them is learned from no table, and hardly anybody asks about one."""


def forecast(
    mixture: Mixture,
    state: State,
    rows: FloatArray,
    mu: float,
    shares: tuple[float, ...],
    kappa: float | None,
) -> tuple[FloatArray, FloatArray]:
    """(P,) variances of f(X*), or of probabilities or rates, after all stages; and if y were known.

    `rows` (q, U) is what a stage with all of the promise measures, with columns of norm 1 at most.
    """
    # A public seed: the same curves every time.
    random, settings, linked = np.random.default_rng(0), _foreseen(mixture), not mixture.law.exact
    given = linked and bool(state.settings)
    found = []
    with Progress("forecast", _MODELS) as progress:
        for i in spread(len(settings), _MODELS):
            setting = settings[i]
            if given:
                mean, k, noise = state.support_mean, state.support_covariance, state.noise
            else:
                k, noise = setting.signal * mixture.support.exactly(setting) + setting.level, setting.noise
                mean = np.zeros(len(k))
            f = mean + _root(k) @ random.normal(size=len(k)) if linked else mean
            found.append(_for_curve(mixture, f, k, noise, rows, mu, shares, kappa))
            progress.advance()
    average = np.mean if linked and (given or mixture.prior.gp is not None) else np.median
    left, known = (average(np.array(each), axis=0) for each in zip(*found, strict=True))
    return left, np.minimum(known, left)


def _foreseen(mixture: Mixture) -> list[Candidate]:
    """What is usual, but with inputs that matter little, too: errors are smaller then."""
    prior, spans = mixture.prior, mixture.spans
    if not isinstance(prior, Hyperprior):
        return mixture.usual
    least, most = prior.lengthscale
    least = min(max(least, _SHORT * len(spans)), most) if len(spans) > 1 else least
    return [*replace(prior.usual, lengthscale=(least, most)).settings(spans, mixture.width)]


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
    """(P,) variances of f, probabilities or rates where this f, at support and test points, is true."""
    law, n, support, m = mixture.law, mixture.counts, mixture.support, len(mixture.support.Z)
    P, some = support.P, support.looked_at
    at = f[:m] if P is None else P @ f[:m]
    none = np.full(len(at), -np.inf), np.full(len(at), np.inf)
    line, own = law.linearise(at, np.zeros(len(at)), noise, none)  # as steep as it is just there
    own = np.full(len(at), noise) if own is None else own
    summed = rows * (n * line.slope)
    G = summed if P is None else summed @ P
    H = G @ k[:m]
    fixed = H[:, :m] @ G.T + (rows * (mixture.scatter * own)) @ rows.T
    at_rows, inner = support.at(H[:, :m], some), support.at(k[:m, :m], some)
    before = np.diag(inner[some]) if P is None else np.einsum("ij,ij->j", inner, P[some].T)
    width, precision = law.bounds[1] - law.bounds[0], 0.0
    for share in shares:
        precision += mu**2 * share / width**2
        D = fixed + np.eye(len(rows)) / precision
        if kappa is not None:
            left = before - np.einsum("ij,ij->j", at_rows, np.linalg.solve(D, at_rows))
            _, apart, scatter = law.moments(at[some], np.maximum(left, 0.0), noise)
            variance = np.average(apart + scatter, weights=None if law.exact else n[some])
            width = min(width, 2 * kappa * float(np.sqrt(variance)))
    left = np.diag(k)[m:] - np.einsum("ij,ij->j", H[:, m:], np.linalg.solve(D, H[:, m:]))
    known = _known(mixture, n * line.slope, mixture.scatter * own, k)
    left, known = (law.moments(f[m:], np.maximum(one, 0.0), noise)[1] for one in (left, known))
    return left, known
