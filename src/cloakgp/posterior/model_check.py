"""Does the model fit what was released? A check that costs nothing, since it looks at public numbers only.

If a model is right, the released measurements z are Gaussian with the mean and covariance D that it says.
Up to three questions are asked of them.

Standardised residuals. In the basis in which signal and privacy noise are both diagonal, the entries of z are
independent and have variance 1 after division; their sum of squares is chi-squared. It is looked at apart
where the model says that signal is to be seen, and where noise prevails, and the smaller of the two
two-sided p-values is doubled (Bonferroni).

Where outcomes fell. Where that was measured, a histogram sees what sums cannot: skew, heavy tails, a noise
level that is not the one of any row. Its bins are compared with what the model expects of them, by a
chi-squared test.

Broader models. Under the model, the density ratio of any fixed alternative has mean 1, and so has the mean of
several: by Markov's inequality it exceeds 20 in at most 1 of 20 cases (the likelihood ratio as a test
martingale: Shafer, Shen, Vereshchagin & Vovk, 2011). So the odds may be read as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh

from cloakgp.core.checks import FloatArray
from cloakgp.data.blas import one_blas_thread
from cloakgp.kernels import Constant
from cloakgp.model.gp import GaussianProcess
from cloakgp.posterior.conditioning import Posterior

if TYPE_CHECKING:
    from cloakgp.posterior.learning import Learned

_LOOKED_AT = 100  # inputs
RARE = 0.01
"""A p-value below this is amber."""
ODDS = 20.0
"""So are odds above this, of broader models against this one."""


@dataclass(frozen=True)
class ModelCheck:
    """Whether a model fits what was released; print it for a sentence."""

    fits: bool
    """Green or amber."""
    p_value: float
    """How often numbers at least as unlike the model's would come out, if it were right."""
    ratio: float
    """How large the released numbers' departures are, squared, over what the model expects."""
    odds: float | None
    """Of broader models against this one; None where they were not compared."""
    better: str | None
    """What the best of these has, in words."""
    fell: str = ""
    """How outcomes fell, if that is what does not fit."""

    def __str__(self) -> str:
        return f"{'green' if self.fits else 'amber'}: {self.words}"

    @property
    def words(self) -> str:
        """What was found, and what to do, in a sentence or two."""
        if self.fits:
            often = f"{100 * self.p_value:.0f} %" if self.p_value >= 0.01 else "1 %"
            return (
                "The model fits what was released: if it is right, numbers as far from what it expects come "
                f"out in {often} of all cases."
            )
        if self.fell:
            return f"{self.fell}: for new outcomes, read intervals, not standard deviations."
        if self.odds is not None and self.odds > ODDS:
            bet = f"{self.odds:,.0f} to 1" if self.odds < 1e6 else "more than a million to 1"
            return (
                f"The model does not fit what was released: broader models explain it better, by odds of "
                f"{bet}, best with {self.better}. Learn the model from the release (free), or "
                "do not rely on its error bars."
            )
        if self.ratio < 1:
            return (
                "Released numbers vary less than the model expects: its variances are too large, and its "
                "error bars too wide."
            )
        return (
            "The model does not fit what was released: numbers as far from what it expects would come out "
            "in less than 1 % of all cases. Learn the model from the release (free), or do not rely on its "
            "error bars."
        )


@one_blas_thread()
def check_posterior(
    posterior: Posterior, alternatives: Callable[[GaussianProcess], Posterior] | None
) -> ModelCheck:
    """The check of one model; `alternatives` gives the posterior of another, if that can be had."""
    from scipy.special import logsumexp  # here: slow to import

    p_value, ratio = residual_check(posterior)
    odds, better = None, None
    if alternatives is not None:
        named = list(broader(posterior.gp))
        logs = np.array([alternatives(gp).log_evidence for _, gp in named]) - posterior.log_evidence
        odds = float(np.exp(min(float(logsumexp(logs)) - np.log(len(logs)), 700.0)))
        better = named[int(logs.argmax())][0]
    fits = p_value >= RARE and (odds is None or odds <= ODDS)
    return ModelCheck(fits, p_value, ratio, odds, better)


@one_blas_thread()
def check_mixtures(curves: tuple[tuple[Posterior, ...], ...], weights: FloatArray) -> ModelCheck:
    """The same of a mixture that was learned: by its models' residuals, on average.

    The models were learned from the same numbers, so that the check is milder than for one that was set. Of
    several classes, the one that fits worst, its p-value times their number (Bonferroni).
    """
    each = (weights @ np.array([residual_check(one) for one in own]) for own in curves)
    p_value, ratio = min(one.tolist() for one in each)
    p_value = min(1.0, len(curves) * p_value)
    return ModelCheck(p_value >= RARE, p_value, ratio, None, None)


@one_blas_thread()
def check_shape(check: ModelCheck, learned: Learned, X: FloatArray) -> ModelCheck:
    """A check, and whether outcomes fell as the model expects: by the smaller p-value, doubled (Bonferroni).

    What is not known of f on average over these inputs, and of the noise level, moves all outcomes together.
    """
    shape = learned.shape
    if shape is None:
        return check
    some = X[:: -(-len(X) // _LOOKED_AT)]
    covariance = learned.predict(some, return_cov=True)[1]
    noise = np.array([one.noise for one in learned.settings])
    total = float(np.diag(covariance).mean()) + learned.noise
    apart = float(learned.weights @ (noise - learned.noise) ** 2)
    p_value, words = shape.surprise(float(covariance.mean()) / total, apart / (2 * total) ** 2)
    fell = p_value < check.p_value
    both = min(1.0, 2 * min(p_value, check.p_value))
    fits = both >= RARE
    return replace(check, fits=fits, p_value=both, fell=words if fell and not fits else "")


def residual_check(posterior: Posterior) -> tuple[float, float]:
    """The p-value of the residuals, and how large their squares are over what is expected."""
    from scipy.special import chdtr, chdtrc

    surprise, covariance, noise = posterior.residuals
    scale = 1 / np.sqrt(np.diag(covariance))
    covariance, noise = covariance * scale[:, None] * scale, noise * scale[:, None] * scale
    # noise v = t D v with 0 < t <= 1: v' z has variance 1, of which t is the privacy noise's.
    shares, basis = eigh(noise, covariance + 1e-9 * np.eye(len(noise)))  # for rounding
    squares = (basis.T @ (scale * surprise)) ** 2
    seen = shares < 1 / 1.5  # signal has at least half the noise's variance
    parts = [squares[which] for which in (seen, ~seen) if which.any()]
    each = [2 * min(float(law(len(part), part.sum())) for law in (chdtr, chdtrc)) for part in parts]
    return min(1.0, len(parts) * min(each)), float(parts[int(np.argmin(each))].mean())


def broader(gp: GaussianProcess) -> Iterator[tuple[str, GaussianProcess]]:
    """Models near this one, each wrong in one way that is common, with its name."""
    for words, factor in (("lengthscales a third as long", 1 / 3), ("lengthscales three times as long", 3.0)):
        scales = {
            key: _times(value, factor)
            for key, value in gp.kernel.get_params().items()
            if key.rpartition("__")[2] == "lengthscale"
        }
        if scales:
            yield words, replace(gp, kernel=gp.kernel.with_params(**scales))
    for words, factor in (("a signal a third as large", 1 / 9), ("a signal three times as large", 9.0)):
        scaled = gp.kernel * factor
        yield words, replace(gp, kernel=scaled)
    for words, factor in (("half the noise", 1 / 4), ("twice the noise", 4.0)):
        yield words, replace(gp, noise=gp.noise * factor)
    low, high = gp.limits
    level = float(np.max(np.asarray(high) - np.asarray(low))) ** 2 / 4
    yield "another level of outcomes", replace(gp, kernel=gp.kernel + Constant(level))


def _times(lengthscale: Any, factor: float) -> Any:
    """A lengthscale for all columns, one for each, or one at each knot, times a factor."""
    if not isinstance(lengthscale, tuple):
        return lengthscale * factor
    if isinstance(lengthscale[-1], tuple):
        return lengthscale[0], _times(lengthscale[-1], factor)
    return tuple(scale * factor for scale in lengthscale)
