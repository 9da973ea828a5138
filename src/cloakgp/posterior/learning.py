"""Learn the model from what was released: free, since nothing but public numbers is looked at.

For a setting theta of the model, the released measurements are a Gaussian vector,

    z ~ N(B m0, B (K_theta + S_theta) B' + noise),

so their density says how well the setting explains them. Weighted by it, the settings of a public hyperprior
become a posterior, and predictions a mixture over those that hold its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.measurements.lattice import IntArray, Measurement
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Hyperprior, Setting
from cloakgp.model.windows import RowMeans
from cloakgp.posterior.conditioning import Posterior
from cloakgp.posterior.links import batches

_KEPT = 10  # settings that predictions are made with
_ROUNDS = 2  # of points drawn anew about the best, where there are several lengthscales
_DRAWN = 2**7  # points in each


@dataclass(frozen=True, eq=False)
class Learned:
    """A mixture over models, weighted by how well they explain what was released."""

    settings: tuple[Setting, ...]
    """Those that hold the weight, the best first."""
    weights: FloatArray
    evidence: FloatArray
    """Log density of the measurements under each."""
    posteriors: tuple[Posterior, ...]

    def predict(self, X: Any, *, return_std: bool = False, include_noise: bool = False) -> Any:
        """Mean of f at `X`, with its std if asked: the models' own, and their disagreement."""
        found = [posterior.predict(X, return_std=True) for posterior in self.posteriors]
        means, variances = np.array([mean for mean, _ in found]), np.array([std**2 for _, std in found])
        mean: FloatArray = self.weights @ means
        if not return_std:
            return mean
        variance = self.weights @ (variances + (means - mean) ** 2)
        if include_noise:
            variance = variance + self.noise
        return mean, np.sqrt(variance)

    @property
    def noise(self) -> float:
        """Variance of a new outcome about f, as learned."""
        return float(self.weights @ [setting.noise for setting in self.settings])

    @property
    def gp(self) -> GP:
        """The best single model."""
        return self.posteriors[0].gp

    def __str__(self) -> str:
        lines = ["weight  family    lengthscale                signal std  noise std"]
        for setting, weight in zip(self.settings, self.weights, strict=True):
            lengths = ", ".join(f"{length:.3g}" for length in setting.lengthscale)
            lines.append(
                f"{weight:6.3f}  {setting.family:<8}  {lengths:<25}  {setting.signal**0.5:10.3g}"
                f"  {setting.noise**0.5:9.3g}"
            )
        return "\n".join(lines)


def learn(
    bounds: tuple[float, float],
    X: FloatArray,
    released: Sequence[tuple[Measurement, IntArray]],
    prior: Hyperprior | None = None,
    mean: RowMeans | None = None,
) -> Learned:
    """The mixture over a hyperprior's models, given measurements of the same rows X.

    With a `mean` that differs from row to row, `bounds` are on how far outcomes are from it.
    """
    if prior is None:
        prior = Hyperprior()
    elif not isinstance(prior, Hyperprior):
        raise TypeError(f"prior must be a cloakgp.Hyperprior; got {type(prior).__name__}.")
    spans, width = np.ptp(X, axis=0), bounds[1] - bounds[0]
    middle = bounds[0] + width / 2 if mean is None else mean
    data = _Data(middle, X, released)
    settings = prior.settings(spans, width)
    scores = data.evidence(settings)
    log_prior = np.zeros(len(settings))
    if len(spans) > 1:
        for round_ in range(_ROUNDS):
            more, density = _about_the_best(settings, scores + log_prior, prior, spans, width, round_)
            settings = settings + more
            scores = np.concatenate([scores, data.evidence(more)])
            log_prior = np.concatenate([log_prior, density])
    total = scores + log_prior
    best = np.argsort(-total, kind="stable")[:_KEPT]
    weights = np.exp(total[best] - total[best[0]])
    kept = tuple(settings[i] for i in best)
    models = [GP(setting.kernel, setting.noise, bounds, middle) for setting in kept]
    posteriors = tuple(Posterior(model, X, released) for model in models)
    return Learned(kept, checks.frozen(weights / weights.sum()), checks.frozen(scores[best]), posteriors)


class _Data:
    """The measurements, and what of them does not depend on the model."""

    def __init__(
        self, mean: float | RowMeans, X: FloatArray, released: Sequence[tuple[Measurement, IntArray]]
    ) -> None:
        middle = mean.rows if isinstance(mean, RowMeans) else mean
        self.X, self.B = X, np.vstack([m.by_row() for m, _ in released])
        centred = [(z - m.midpoint).astype(np.float64) * m.step for m, z in released]
        shifts = [m.middle_less(middle) for m, _ in released]
        self.z = np.concatenate(centred) + np.concatenate(shifts)
        self.noise = np.concatenate([np.full(m.n_measurements, m.noise_scale**2) for m, _ in released])
        self.level, self.own = np.outer(self.B.sum(axis=1), self.B.sum(axis=1)), self.B @ self.B.T

    def evidence(self, settings: Sequence[Setting]) -> FloatArray:
        """Log density of the measurements under each setting."""
        shapes: dict[tuple[str, tuple[float, ...]], FloatArray] = {}
        found = np.empty(len(settings))
        for i, setting in enumerate(settings):
            key = (setting.family, setting.lengthscale)
            if key not in shapes:
                shapes[key] = self._shape(setting)
            D = setting.signal * shapes[key] + setting.level * self.level + setting.noise * self.own
            found[i] = _log_density(D + np.diag(self.noise), self.z)
        return found

    def _shape(self, setting: Setting) -> FloatArray:
        """B k B' for the smooth part with variance 1."""
        kernel, product = setting.shape, np.zeros_like(self.B)
        for rows in batches(len(self.X), len(self.X)):
            product += self.B[:, rows] @ np.asarray(kernel(self.X[rows], self.X))
        result: FloatArray = product @ self.B.T
        return (result + result.T) / 2


def _log_density(D: FloatArray, z: FloatArray) -> float:
    """Of z under N(0, D), but for a constant."""
    try:
        factor = cho_factor(D, lower=True)
    except LinAlgError:
        return -np.inf
    return float(-z @ cho_solve(factor, z) / 2 - np.log(np.diag(factor[0])).sum())


def _about_the_best(
    settings: Sequence[Setting],
    total: FloatArray,
    prior: Hyperprior,
    spans: FloatArray,
    width: float,
    round_: int,
) -> tuple[list[Setting], FloatArray]:
    """More settings where the weight is, by a normal law about it, and what corrects for its density."""
    from scipy.stats import multivariate_normal, norm, qmc

    family = settings[int(np.argmax(total))].family
    own = np.array([setting.family == family for setting in settings])
    logs = np.array([[*np.log(s.lengthscale), np.log(s.signal) / 2, np.log(s.noise) / 2] for s in settings])[
        own
    ]
    weights = np.exp(total[own] - total[own].max())
    weights /= weights.sum()
    centre = weights @ logs
    spread = (logs - centre).T @ ((logs - centre) * weights[:, None])
    ends = np.log([prior.lengthscale] * len(spans) + [prior.signal, prior.noise])
    least = np.diag(((ends[:, 1] - ends[:, 0]) / 12) ** 2)  # of one point: not a spread of 0
    law = multivariate_normal(centre, spread + least)
    unit = qmc.Sobol(len(centre), scramble=False).random(_DRAWN * (round_ + 1))[_DRAWN * round_ :]
    normals = norm.ppf(np.clip(unit + 0.5 / len(unit), 1e-6, 1 - 1e-6))
    drawn = centre + normals @ np.linalg.cholesky(law.cov).T
    offset = np.concatenate([np.log(np.where(spans > 0, spans, 1.0)), [np.log(width)] * 2])
    inside = np.all((drawn - offset >= ends[:, 0]) & (drawn - offset <= ends[:, 1]), axis=1)
    drawn = drawn[inside]
    if not len(drawn):
        return [], np.empty(0)
    uniform = -np.log(ends[:, 1] - ends[:, 0]).sum()
    more = [Setting.of(family, np.exp(row - offset), np.where(spans > 0, spans, 1.0), width) for row in drawn]
    density: FloatArray = np.atleast_1d(uniform - law.logpdf(drawn))
    return more, density
