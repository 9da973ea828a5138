"""Learn the model from what was released: free, since nothing but public numbers is looked at.

For a setting theta of the model, the released measurements are a Gaussian vector,

    z ~ N(B m0, B (K_theta + S_theta) B' + noise),

so their density says how well the setting explains them. Weighted by it, the settings of a public hyperprior
become a posterior, and predictions a mixture over those that hold its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.measurements.lattice import IntArray, Measurement
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Candidate, Form, Hyperprior, Setting
from cloakgp.model.windows import RowMeans
from cloakgp.posterior.conditioning import Posterior, Uncertainty, check_draws
from cloakgp.posterior.links import batches
from cloakgp.posterior.resampling import about_the_best
from cloakgp.progress import Progress
from cloakgp.rows.blas import one_blas_thread
from cloakgp.rows.chunks import one_by_one
from cloakgp.rows.columns import Columns
from cloakgp.rows.inputs import as_points
from cloakgp.rows.merging import Inputs

T = TypeVar("T")
_KEPT = 10  # settings that predictions are made with
_SHOWN = 12  # lines of a table
_NEWTON, _SETTLED = 8, 1e-9  # steps towards a quantile, and the last one's size, in standard deviations
_HALVINGS = 60  # of an interval, for a quantile: to the last bits
_MANY = 1000  # points from which on threads are worth their while
_REMEMBERED = 2**22  # means at the points that were asked for last
_ROUNDS = 2  # of points drawn anew about the best, where there are several lengthscales


@dataclass(frozen=True, eq=False)
class Learned:
    """A mixture over models, weighted by how well they explain what was released."""

    settings: tuple[Candidate, ...]
    """Those that hold the weight, the best first."""
    weights: FloatArray
    evidence: FloatArray
    """Log density of the measurements under each."""
    posteriors: tuple[Posterior, ...]
    columns: Columns | None = None
    """Names of the columns of X, and how levels and dates became numbers, if X was a table."""

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

        `include_noise` adds the scatter of a single new outcome: as learned, or this variance.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov: ask for at most one of them.")
        X = self._points(X)
        if not (return_std or return_cov):
            return self._mixed(self._each(lambda posterior: posterior.predict(X)))[0]
        extra = self._observation(include_noise)
        if return_std:
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
            for answer in one_by_one(ask, self.posteriors) if points >= _MANY else map(ask, self.posteriors):
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
        if means.size <= _REMEMBERED:
            self.__dict__["_last"] = X.copy(), means, stds
        return means, stds

    def _points(self, X: Any) -> FloatArray:
        return as_points(X, "X", self.posteriors[0].n_columns, self.columns)

    def _mixed(self, means: Sequence[FloatArray] | FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mixture's mean, and how far each model's is from it."""
        mean: FloatArray = self.weights @ np.array(means)
        return mean, np.array(means) - mean

    def _observation(self, include_noise: bool | float) -> float:
        if isinstance(include_noise, (bool, np.bool_)):
            return self.noise if include_noise else 0.0
        return checks.positive(include_noise, "include_noise", "Give True, False or a variance.")

    @one_blas_thread()
    def interval(self, X: Any, level: float = 0.95, *, include_noise: bool | float = False) -> FloatArray:
        """(n, 2) within which f lies at `X`, with this probability: quantiles of the mixture."""
        extra = self._observation(include_noise)
        means, stds = self._means_and_stds(self._points(X))
        return mixture_quantiles(self.weights, means, np.sqrt(stds**2 + extra), check_level(level)).T

    @one_blas_thread()
    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std at `X` by its causes; not knowing the model counts as due to privacy."""
        X = self._points(X)
        given = self.predict(X, return_std=True)[1] ** 2
        known = np.array(self._each(lambda posterior: posterior.known_variance(X)))
        gp = np.minimum(self.weights @ known, given)
        observation = np.full(len(given), self._observation(include_noise))
        return Uncertainty(
            privacy=np.sqrt(given - gp),
            gp=np.sqrt(gp),
            observation=np.sqrt(observation),
            total=np.sqrt(given + observation),
        )

    @one_blas_thread()
    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of f at `X`, by public randomness: each from one of the models."""
        X, generator = self._points(X), np.random.default_rng(seed)
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
    def gp(self) -> GP:
        """The best single model."""
        return self.posteriors[0].gp

    def __str__(self) -> str:
        best = self.settings[0]
        names = None if self.columns is None else self.columns.names
        parts = best.parts(names) if isinstance(best, Setting) else ()
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
    share: float = checks.positive(level, "level", "Such as 0.95.")
    if not share < 1:
        raise ArgumentError("level", "must be below 1", repr(level), "Such as 0.95.")
    return share


def mixture_quantiles(weights: FloatArray, means: FloatArray, stds: FloatArray, level: float) -> FloatArray:
    """(2, n) ends of the middle `level` of mixtures of normals: (S,) weights, (S, n) means and stds."""
    stds = np.maximum(stds, 1e-300)
    return np.array([_quantile(weights, means, stds, p) for p in ((1 - level) / 2, (1 + level) / 2)])


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
    for _ in range(_HALVINGS if left.any() else 0):
        middle = (low + high) / 2
        below = weights @ ndtr((middle - means) / stds) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found[left] = (low + high) / 2
    return found


@one_blas_thread()
def learn(
    bounds: tuple[float, float],
    X: FloatArray,
    released: Sequence[tuple[Measurement, IntArray]],
    prior: Hyperprior | None = None,
    mean: RowMeans | None = None,
    factor: float | FloatArray = 1.0,
    columns: Columns | None = None,
) -> Learned:
    """The mixture over a hyperprior's models, given measurements of the same rows X.

    With a `mean` that differs from row to row, `bounds` are on how far outcomes are from it. `factor` is what
    the noise variance of each row is multiplied by.
    """
    if prior is None:
        prior = Hyperprior(categories=() if columns is None else columns.categories)
    elif not isinstance(prior, Hyperprior):
        raise TypeError(f"prior must be a cloakgp.Hyperprior; got {type(prior).__name__}.")
    spans, width = prior.spans(X), bounds[1] - bounds[0]
    middle = bounds[0] + width / 2 if mean is None else mean
    data = _Data(middle, X, released, factor)
    settings = prior.settings(spans, width)
    scores = data.evidence(settings)
    log_prior = np.zeros(len(settings))
    if prior.several(spans):
        for round_ in range(_ROUNDS):
            more, density = about_the_best(settings, scores + log_prior, prior, spans, width, round_)
            settings = settings + more
            scores = np.concatenate([scores, data.evidence(more)])
            log_prior = np.concatenate([log_prior, density])
    total = scores + log_prior
    best = np.argsort(-total, kind="stable")[:_KEPT]
    weights = np.exp(total[best] - total[best[0]])
    kept = tuple(settings[i] for i in best)
    models = [GP(setting.kernel, setting.noise, bounds, middle) for setting in kept]
    posteriors = tuple(Posterior(model, X, released, inputs=_weighed(model, X, factor)) for model in models)
    shares = checks.frozen(weights / weights.sum())
    return Learned(kept, shares, checks.frozen(scores[best]), posteriors, columns)


def _weighed(gp: GP, X: FloatArray, factor: float | FloatArray) -> Inputs | None:
    """The rows with noise of their own, where they have it."""
    return None if isinstance(factor, float) else Inputs(X, gp.noise * factor, None)


class _Data:
    """The measurements, and what of them does not depend on the model."""

    def __init__(
        self,
        mean: float | RowMeans,
        X: FloatArray,
        released: Sequence[tuple[Measurement, IntArray]],
        factor: float | FloatArray = 1.0,
    ) -> None:
        middle = mean.rows if isinstance(mean, RowMeans) else mean
        self.X, self.B = X, np.vstack([m.by_row() for m, _ in released])
        centred = [(z - m.midpoint).astype(np.float64) * m.step for m, z in released]
        shifts = [m.middle_less(middle) for m, _ in released]
        self.z = np.concatenate(centred) + np.concatenate(shifts)
        self.noise = np.concatenate([np.full(m.n_measurements, m.noise_scale**2) for m, _ in released])
        self.level, self.own = np.outer(self.B.sum(axis=1), self.B.sum(axis=1)), (self.B * factor) @ self.B.T

    def evidence(self, settings: Sequence[Setting]) -> FloatArray:
        """Log density of the measurements under each setting."""
        shapes: dict[Form, FloatArray] = {}
        found = np.empty(len(settings))
        for i, setting in enumerate(settings):
            if setting.form not in shapes:
                shapes[setting.form] = self._shape(setting)
            D = setting.signal * shapes[setting.form] + setting.level * self.level + setting.noise * self.own
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
