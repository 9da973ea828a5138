"""Learn the model from what was released: free, since nothing but public numbers is looked at.

For a setting theta of the model, the released measurements are a Gaussian vector,

    z ~ N(B m0, B (K_theta + S_theta) B' + noise),

so their density says how well the setting explains them. Weighted by it, the settings of a public hyperprior
become a posterior, and predictions a mixture over those that hold its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.progress import Progress
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.chunks import one_by_one
from cloakgp.data.columns import Columns
from cloakgp.data.inputs import as_points
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.hyperprior import Candidate
from cloakgp.posterior.conditioning import Posterior, Uncertainty, check_draws, generator_of, observation
from cloakgp.posterior.shape import Shape

T = TypeVar("T")
_SHOWN = 12  # lines of a table
_NEWTON, _SETTLED = 8, 1e-9  # steps towards a quantile, and the last one's size, in standard deviations


@dataclass(frozen=True, eq=False)
class Learned:
    """A mixture over models, weighted by how well they explain what was released."""

    settings: tuple[Candidate, ...]
    """Those that hold the weight, the best first."""
    weights: FloatArray
    evidence: FloatArray
    """Log of each one's weight over the first's: how well it explains the measurements, whatever its noise;
    how likely it was beforehand; and how few others were tried near it."""
    posteriors: tuple[Posterior, ...]
    columns: Columns | None = None
    """Names of the columns of X, and how levels and dates became numbers, if X was a table."""
    shape: Shape | None = field(default=None, kw_only=True)
    """Where outcomes fell in the laws that were expected of them, if that was measured."""
    bounds: tuple[float, float] = field(default=(-np.inf, np.inf), kw_only=True)
    """Outcomes count as being within."""

    @one_blas_thread()
    def predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool | float = False,
    ) -> Any:
        """Mean of f at `X`, with its std or covariance if asked: the models' own, and their disagreement.

        Where outcomes are yes or no, classes or counts, of probabilities or rates. `include_noise` adds the
        scatter of a single new outcome: as learned, or this variance.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov: ask for at most one of them.")
        return self._predict(self._points(X), return_std, return_cov, include_noise)

    def _predict(self, X: FloatArray, std: bool, cov: bool, include_noise: bool | float) -> Any:
        if not (std or cov):
            return self._mixed(self._each(lambda posterior: posterior.predict(X)))[0]
        extra = self._observation(X, include_noise)
        if std:
            means, stds = self._means_and_stds(X)
            mean, apart = self._mixed(means)
            return mean, np.sqrt(self.weights @ (stds**2 + apart**2) + extra)
        found = self._each(lambda posterior: posterior.predict(X, return_cov=True))
        mean, apart = self._mixed([one for one, _ in found])
        covariance = np.einsum("s,sij->ij", self.weights, np.array([cov for _, cov in found]))
        covariance += np.einsum("s,si,sj->ij", self.weights, apart, apart)
        return mean, covariance + extra * np.eye(len(mean))

    def _each(self, ask: Callable[[Posterior], T], points: int = 0) -> list[T]:
        """What each model says; they may be many, and each takes a while when it is first asked.

        Of as many `points` as are worth it, on all processors.
        """
        found = []
        with Progress("models", len(self.posteriors)) as progress:
            # From so many points on threads are worth their while.
            for answer in one_by_one(ask, self.posteriors) if points >= 1000 else map(ask, self.posteriors):
                found.append(answer)
                progress.advance()
        return found

    def _means_and_stds(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(S, n) of each model at X. The last are kept: who wants a std wants an interval, too."""
        last = self.__dict__.get("_last")
        if last is not None and np.array_equal(last[0], X):
            return last[1], last[2]
        found = self._each(lambda posterior: posterior.predict(X, return_std=True), len(X))
        means, stds = (checks.frozen(np.array(each)) for each in zip(*found, strict=True))
        if means.size <= 2**22:  # 32 MB
            self.__dict__["_last"] = X.copy(), means, stds
        return means, stds

    def _points(self, X: Any) -> FloatArray:
        return as_points(X, "X", self.posteriors[0].n_columns, self.columns)

    def _mixed(self, means: Sequence[FloatArray] | FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mixture's mean, and how far each model's is from it."""
        mean: FloatArray = self.weights @ np.array(means)
        return mean, np.array(means) - mean

    @property
    def _is_known(self) -> bool:
        return self.settings[0].known

    def _observation(self, X: FloatArray, include_noise: bool | float) -> float | FloatArray:
        # A known model's variance may differ from input to input.
        return observation(include_noise, lambda: self.gp.noise_at(X) if self._is_known else self.noise)

    @one_blas_thread()
    def interval(self, X: Any, level: float = 0.95, *, include_noise: bool | float = False) -> FloatArray:
        """(n, 2) within which f lies at `X`, with this probability: quantiles of the mixture.

        With `include_noise`, a single new outcome. Where it was measured how outcomes scatter, the interval
        is as skewed as they are, and no wider than their bounds.
        """
        X = self._points(X)
        extra = self._observation(X, include_noise)
        means, stds = self._means_and_stds(X)
        level = check_level(level)
        ends: tuple[float, float] = (1 - level) / 2, (1 + level) / 2
        shape = self.shape if isinstance(include_noise, (bool, np.bool_)) and include_noise else None
        if shape is not None:
            ends = shape.quantile(ends[0]), shape.quantile(ends[1])
        found = mixture_quantiles(self.weights, means, np.sqrt(stds**2 + extra), ends).T
        return found if shape is None else np.clip(found, *self.bounds)

    @one_blas_thread()
    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std at `X` by its causes; not knowing the model counts as due to privacy."""
        X = self._points(X)
        if self._is_known:  # which needs no mean, that may be known at rows only
            return self.posteriors[0].uncertainty(X, include_noise=include_noise)
        given = self.predict(X, return_std=True)[1] ** 2
        known = np.array(self._each(lambda posterior: posterior.known_variance(X)))
        return Uncertainty.of(given, self.weights @ known, self._observation(X, include_noise))

    @one_blas_thread()
    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of f at `X`, by public randomness: each from one of the models."""
        X, generator = self._points(X), generator_of(seed)
        check_draws(n, len(X))
        models = generator.choice(len(self.weights), size=n, p=self.weights)
        draws = np.empty((n, len(X)))
        for model in np.unique(models):
            own = models == model
            draws[own] = self.posteriors[model].sample(X, int(own.sum()), generator)
        return draws

    @property
    def curves(self) -> tuple[tuple[Posterior, ...], ...]:
        """The models' posteriors; of each class, where outcomes are one of several."""
        return (self.posteriors,)

    @property
    def noise(self) -> float:
        """Variance of a new outcome about f, as learned."""
        return float(self.weights @ [setting.noise for setting in self.settings])

    @property
    def gp(self) -> GaussianProcess:
        """The best single model."""
        return self.posteriors[0].gp

    def __str__(self) -> str:
        best = self.settings[0]
        names = None if self.columns is None else self.columns.names
        parts = best.parts(names)
        shares = f"  shares: {', '.join(parts)}" if parts else ""
        lines = [f"weight  family    lengthscale                signal std{self._noise_word()}{shares}"]
        for setting, weight in zip(self.settings[:_SHOWN], self.weights, strict=False):
            lengths = ", ".join(f"{length:.3g}" for length in setting.lengthscale)
            own = setting.form[2]
            shown = f"  {', '.join(f'{share:.2f}' for share in own)}" if own else ""
            lines.append(
                f"{weight:6.3f}  {setting.family:<8}  {lengths:<25}  {setting.signal**0.5:10.3g}"
                f"{self._noise_word(setting)}{shown}"
            )
        if len(self.settings) > _SHOWN:
            rest = float(self.weights[_SHOWN:].sum())
            lines.append(f"{rest:6.3f}  {len(self.settings) - _SHOWN} more")
        return "\n".join(lines)

    def _noise_word(self, setting: Candidate | None = None) -> str:
        """A table's column of how outcomes scatter about f: its head, or a setting's entry."""
        return "  noise std" if setting is None else f"  {setting.noise**0.5:9.3g}"


def check_level(level: Any) -> float:
    """The share that an interval is to hold."""
    return checks.number(level, "level", above=0.0, below=1.0, remedy="Such as 0.95.")


def mixture_quantiles(
    weights: FloatArray, means: FloatArray, stds: FloatArray, shares: Sequence[float]
) -> FloatArray:
    """(len(shares), n) quantiles of mixtures of normals: (S,) weights, (S, n) means and stds."""
    stds = np.maximum(stds, 1e-300)
    return np.array([_quantile(weights, means, stds, p) for p in shares])


def _quantile(weights: FloatArray, means: FloatArray, stds: FloatArray, p: float) -> FloatArray:
    """(n,) by Newton's method, and by halving an interval where that has not come to rest."""
    from scipy.special import ndtr, ndtri  # here: slow to import

    each = means + ndtri(p) * stds
    low, high = each.min(axis=0), each.max(axis=0)  # a mixture's quantile is between its parts'
    found: FloatArray = weights @ each
    off = np.zeros_like(found)
    with np.errstate(all="ignore"):
        for _ in range(_NEWTON):
            at = (found - means) / stds
            off = (weights @ ndtr(at) - p) / (weights @ (np.exp(-(at**2) / 2) / stds)) * np.sqrt(2 * np.pi)
            found = np.clip(found - off, low, high)
    left = ~(np.abs(off) <= _SETTLED * stds.min(axis=0))  # of NaN, too
    means, stds, low, high = means[:, left], stds[:, left], low[left], high[left]
    for _ in range(60 if left.any() else 0):  # to the last bits
        middle = (low + high) / 2
        below = weights @ ndtr((middle - means) / stds) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found[left] = (low + high) / 2
    return found
