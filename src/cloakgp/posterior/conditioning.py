"""What can be said about f anywhere, given what was released: Bayes, free of charge.

The law of the noise is public, so a reader can condition the GP on the released measurements as
on any noisy data: with B the measurement matrix, K = Kff + S the prior covariance of y, z the
released measurements and s their noise variances,

    E[f(x) | z]   = m0(x) + k(x, X) B' D^-1 (z - B m0(X)),      D = B K B' + diag(s),
    Cov[f(x), f(x') | z] = k(x, x') - k(x, X) B' D^-1 B k(X, x').

Nothing here sees y or spends anything. Several releases of the same data stack their rows.
Clipping y to windows that follow it closely is modelled by a :class:`Line`; clipping it to the bounds, and
rounding it, are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve, solve_triangular

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, IntArray
from cloakgp.core.errors import ArgumentError
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.columns import Columns
from cloakgp.data.inputs import as_points
from cloakgp.data.merging import Inputs
from cloakgp.measure.measurement import Measurement
from cloakgp.model.gp import GaussianProcess, smoother_for
from cloakgp.model.inducing import Features


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Standard deviations at each input, by what causes them. Variances add up to `total`'s."""

    privacy: FloatArray
    """What the privacy noise adds to not knowing f."""
    gp: FloatArray
    """What would remain unknown of f if y itself were known."""
    observation: FloatArray
    """The scatter of a single new outcome around f."""
    total: FloatArray
    """All three together: how far a new outcome may be from the prediction."""

    @classmethod
    def of(cls, given: FloatArray, known: FloatArray, observation: float | FloatArray) -> Uncertainty:
        """From variances: given what was released, and if y were known; and of an outcome about f."""
        known, observation = np.minimum(known, given), np.full(len(given), observation)
        return cls(*map(np.sqrt, (given - known, known, observation, given + observation)))


@dataclass(frozen=True, eq=False)
class Line:
    """What clipping outcomes to windows does to a measurement of them, to first order.

    B clip(y) = B diag(slope) y + shift + e, summed over rows, with e of covariance `extra`.
    """

    slope: FloatArray
    """(U,) of each column."""
    shift: FloatArray  # (q,)
    extra: FloatArray  # (q, q)


Measured = tuple[Measurement, IntArray]
"""A measurement and its noisy integers."""


_ENTRIES = 2**22  # of a block of the kernel matrix: bounds memory, whatever is asked
MOST_DRAWN = 10**8
"""Numbers of one call for draws: 0.8 GB."""
MOST_TOGETHER = 10_000
"""Numbers of one draw, whose covariances are as large."""


def check_draws(n: Any, numbers: int, name: str = "n") -> None:
    """Raise unless `n` draws of so many numbers each can be asked for."""
    checks.whole(n, name, 1)
    if numbers > MOST_TOGETHER:
        expected = f"must have at most {MOST_TOGETHER} inputs: draws need the covariances of all of them"
        raise ArgumentError("X", expected, f"{numbers}")
    if n * numbers > MOST_DRAWN:
        most = f"must be at most {MOST_DRAWN // numbers} with {numbers} numbers in each draw"
        raise ArgumentError(name, most, repr(n), "Ask several times, with other seeds, or at fewer inputs.")


def generator_of(seed: Any) -> np.random.Generator:
    """Public randomness from a seed; other each time, if there is none."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        expected = "must be a whole number from 0 on, or a generator of numpy's"
        raise ArgumentError("seed", expected, f"{seed!r:.100}") from None


@dataclass(frozen=True, eq=False)
class Links:
    """How the model links what was measured with f anywhere: prior covariances, for denoising."""

    rows: Callable[[FloatArray], FloatArray]
    """(n, w) covariances of f(X) with f where it is measured, or at the inducing inputs."""
    weights: FloatArray
    """(w, q): what these are multiplied with for f's covariance with the measurements."""
    covariance: FloatArray
    """(q, q) of the measurements with each other, privacy noise not counted."""
    known_variance: Callable[[FloatArray], FloatArray]
    """(n,) variance of f(X) if y itself were known."""
    features: tuple[FloatArray, FloatArray] | None = None
    """H (q, r) and W (r, w) with `weights` = (H W)', where these are smaller."""

    def explaining(self, factor: FloatArray) -> FloatArray:
        """(c, w) C with as few rows as will do: what the measurements tell of f(X) has the root C rows(X)'.

        `factor` is their covariance's, noise included, by Cholesky.
        """
        H, W = self.features or (self.weights.T, None)
        whitened: FloatArray = solve_triangular(factor, H, lower=True)
        if W is None:
            return whitened
        if len(whitened) > whitened.shape[1]:
            whitened = np.asarray(np.linalg.qr(whitened, mode="r"))
        return np.asarray(whitened @ W)

    def at(self, X: FloatArray) -> FloatArray:
        """(n, q) covariances of f(X) with the measurements."""
        return np.asarray(self.rows(X) @ self.weights)


def links(gp: GaussianProcess, inputs: Inputs, B: FloatArray) -> Links:
    """For measurements B of the outcomes at these inputs."""
    return (_exact if gp.inducing is None else _sparse)(gp, inputs, B)


def _exact(gp: GaussianProcess, inputs: Inputs, B: FloatArray) -> Links:
    """k(x, X) B' and B (Kff + S) B'."""
    weights: FloatArray = (B * inputs.counts).T
    product = B * inputs.noise
    for rows in batches(len(inputs), len(inputs)):
        product += weights[rows].T @ np.asarray(gp.kernel(inputs.X[rows], inputs.X))

    def known_variance(X: FloatArray) -> FloatArray:
        return smoother_for(gp, inputs, X).posterior_variance

    return Links(lambda X: np.asarray(gp.kernel(X, inputs.X)), weights, product @ weights, known_variance)


def _sparse(gp: GaussianProcess, inputs: Inputs, B: FloatArray) -> Links:
    """phi(x)' H' with H = B phi', and H H' + B D B'."""
    features = Features(gp.kernel, np.asarray(gp.inducing))
    seen = features.seen(inputs, gp.approximation)
    sums = B * seen.n
    H: FloatArray = sums @ seen.phi.T

    def known_variance(X: FloatArray) -> FloatArray:
        phi = features.at(X)
        rest = gp.kernel.diag(X) - np.einsum("ij,ij->j", phi, phi)
        return np.asarray(np.maximum(rest, 0.0) + seen.left(phi))

    covariance = H @ H.T + (sums * seen.D) @ B.T
    return Links(features.kernel_rows, (H @ features.W).T, covariance, known_variance, (H, features.W))


def observation(include_noise: bool | float, own: Callable[[], float | FloatArray]) -> float | FloatArray:
    """The variance of an outcome about f that is asked for: none, the model's own, or another."""
    if not isinstance(include_noise, (bool, np.bool_)):
        return checks.positive(include_noise, "include_noise", "Give True, False or a variance.")
    return own() if include_noise else 0.0


def batches(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of rows such that a block has a bounded number of entries."""
    step = max(1, _ENTRIES // n_columns)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


class Posterior:
    """The Gaussian process given released measurements of its data.

    `extra` is what lines leave over in all of them together; by default each line's own.
    """

    def __init__(
        self,
        gp: GaussianProcess,
        released: Sequence[Measured],
        lines: Sequence[Line | None],
        inputs: Inputs,
        columns: Columns | None = None,
        extra: FloatArray | None = None,
    ) -> None:
        self.gp, self._inputs, self.columns = gp, inputs, columns
        self._released, self._lines = released, lines
        self.n_columns = inputs.X.shape[1]
        self._extra = extra

    def __getstate__(self) -> dict[str, Any]:
        """Without links, which are functions: they are made again when they are asked for."""
        return {name: value for name, value in vars(self).items() if name != "_links"}

    @cached_property
    def _links(self) -> Links:
        each = zip(self._released, self._lines, strict=True)
        parts = [m.real_matrix() * (1.0 if line is None else line.slope) for (m, _), line in each]
        return links(self.gp, self._inputs, parts[0] if len(parts) == 1 else np.vstack(parts))

    @cached_property
    def _noise(self) -> FloatArray:
        """(q, q) covariance of all that is neither f nor an outcome's scatter about it."""
        sizes = [m.noise_scale**2 * np.eye(m.n_measurements) for m, _ in self._released]
        if self._extra is not None:
            return np.asarray(block_diag(*sizes) + self._extra)
        each = zip(sizes, self._lines, strict=True)
        return block_diag(*(size if line is None else size + line.extra for size, line in each))

    @cached_property
    def _surprise(self) -> FloatArray:
        """z - B m0, in y's unit: the measurements less what the prior mean predicts for them."""
        parts = []
        for (m, z), line in zip(self._released, self._lines, strict=True):
            centred, mean = (z - m.midpoint).astype(np.float64) * m.step, self.gp.mean_of(m.groups)
            if line is None:
                parts.append(centred + m.middle_less(mean))
            else:
                expected = m.real_matrix() @ (m.counts * (line.slope * mean - m.statistic.origin))
                parts.append(centred - line.shift - expected)
        return np.concatenate(parts)

    @cached_property
    @one_blas_thread()
    def log_evidence(self) -> float:
        """Log density of the released measurements under the model: which of several models fits best."""
        whitened = solve_triangular(self._factor[0], self._surprise, lower=True)
        size = np.log(np.diag(self._factor[0])).sum() + len(whitened) * np.log(2 * np.pi) / 2
        return float(-whitened @ whitened / 2 - size)

    @cached_property
    def _factor(self) -> tuple[FloatArray, bool]:
        """Cholesky factor of D."""
        factor: tuple[FloatArray, bool] = cho_factor(self.residuals[1], lower=True)
        return factor

    @property
    @one_blas_thread()
    def residuals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What was measured less what the prior predicts, its covariance, and the noise's part of it."""
        D = self._links.covariance
        return self._surprise, (D + D.T) / 2 + self._noise, self._noise

    @one_blas_thread()
    def predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool | float = False,
    ) -> Any:
        """Posterior mean of f at `X`; with its std or covariance if asked."""
        if return_std and return_cov:
            raise ValueError("return_std and return_cov: ask for at most one of them.")
        X = as_points(X, "X", self.n_columns, self.columns)
        extra = observation(include_noise, lambda: self.gp.noise_at(X))
        prior = self.gp.mean(X) if callable(self.gp.mean) else self.gp.mean
        if return_cov:
            parts = [(rows @ self._moving, rows @ self._explaining.T) for _, rows in self._linked(X)]
            moved, explained = (np.concatenate(each) for each in zip(*parts, strict=True))
            cov = np.asarray(self.gp.kernel(X)) - explained @ explained.T
            return prior + moved, cov + extra * np.eye(len(X))
        moved, variance = self._moments(X, return_std)
        mean = prior + moved
        return (mean, np.sqrt(variance + extra)) if return_std else mean

    def _moments(self, X: FloatArray, variances: bool) -> tuple[FloatArray, FloatArray]:
        """How far the mean of f moves from the prior's; and the variance of f, if asked for."""
        moved, variance = np.empty(len(X)), np.empty(len(X))
        for some, rows in self._linked(X):
            moved[some] = rows @ self._moving
            if variances:
                explained = rows @ self._explaining.T
                known = np.einsum("ij,ij->i", explained, explained)
                variance[some] = np.maximum(np.asarray(self.gp.kernel.diag(X[some])) - known, 0.0)
        return moved, variance

    def _linked(self, X: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Some of the inputs at a time, and what links f there with the measurements."""
        for some in batches(len(X), len(self._links.weights)):
            yield some, self._links.rows(X[some])

    @cached_property
    def _moving(self) -> FloatArray:
        """(w,) how far what links f with the measurements moves its mean."""
        moving: FloatArray = self._links.weights @ cho_solve(self._factor, self._surprise)
        return moving

    @cached_property
    def _explaining(self) -> FloatArray:
        """(c, w) what it is multiplied with for a root of the covariance that they explain."""
        return self._links.explaining(self._factor[0])

    @one_blas_thread()
    def known_variance(self, X: FloatArray) -> FloatArray:
        """(n,) variance of f at `X` if y itself were known."""
        return self._links.known_variance(X)

    @one_blas_thread()
    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std at `X` by its causes."""
        X = as_points(X, "X", self.n_columns, self.columns)
        given = self._moments(X, variances=True)[1]
        return Uncertainty.of(
            given, self.known_variance(X), observation(include_noise, lambda: self.gp.noise_at(X))
        )

    @one_blas_thread()
    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of f at `X`, by public randomness."""
        check_draws(n, len(as_points(X, "X", self.n_columns, self.columns)))
        mean, cov = self.predict(X, return_cov=True)
        values, vectors = np.linalg.eigh(cov)
        normals = generator_of(seed).normal(size=(n, len(mean)))
        draws: FloatArray = mean + (normals * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return draws
