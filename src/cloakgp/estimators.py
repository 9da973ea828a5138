"""The scikit-learn face: fit once, predict for free.

`fit` makes a plan from X, releases once, and forgets y; `predict` is post-processing. Unlike most
estimators, fitting spends privacy, every time: see :class:`PrivateGPRegressor`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from cloakgp.checks import FloatArray
from cloakgp.measurements.certificate import Certificate
from cloakgp.model.cover import cover
from cloakgp.model.gp import GP
from cloakgp.plans.predictions import Release

_NEEDED = ("kernel", "noise", "bounds", "epsilon", "delta")
_fits: Counter[tuple[int, ...]] = Counter()  # by the shape of X, which is public


class RepeatedFitWarning(UserWarning):
    """A second fit on data of the same shape: if it is the same data, privacy is spent twice."""


class PrivateGPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Differentially private Gaussian-process regression.

    Every setting must come from public knowledge. The first five have no safe default, and `fit`
    refuses to guess them.

    **Each `fit` is a new spend of (epsilon, delta).** A grid search or cross-validation around this
    estimator fits many times and spends many times; a warning is given from the second fit on data
    of the same shape in a process.

    Parameters
    ----------
    kernel : Kernel or callable
        From :mod:`cloakgp.kernels`, or any k(X, Z), scikit-learn's included.
    noise : float
        Variance of the observation noise.
    bounds : (lo, hi)
        Where outcomes are known to lie; values outside are clipped.
    epsilon, delta : float
        The promise that each fit spends.
    query : (P, D) array, optional
        Where predictions matter most: the noise is shaped for these points. If absent, points that
        cover X and its surroundings are chosen from X, which is public (:func:`cover`). Predictions
        can be asked anywhere all the same.
    design : {"mse", "max", "posterior", "volume"}
        See :meth:`cloakgp.GP.plan`.
    inducing : int or (m, D) array, optional
        For many rows: how many inducing inputs, such as 500, which k-means then chooses from X, or these
        themselves. An exact GP if absent, whose work grows with the cube of the rows.
    approximation : {"dtc", "fitc"}
        What they cannot represent is ignored ("dtc") or counted as noise ("fitc").
    downweight : {None, "leverage"}
        Whether rows that stand alone get more noise variance: see :class:`cloakgp.GP`.
    ledger : Ledger or its URL, optional
        Pays for each fit, and refuses one that does not fit into what is left. Give a URL with a password as
        ``Ledger(url)``: scikit-learn shows settings when it prints an estimator.
    dataset : str, optional
        Which of the ledger's data sets pays.

    Attributes
    ----------
    release_ : Release
        What was released; holds all that is left of y.
    certificate_ : Certificate
        The guarantee.
    n_features_in_ : int
    """

    def __init__(
        self,
        kernel: Any = None,
        noise: Any = None,
        bounds: Any = None,
        epsilon: Any = None,
        delta: Any = None,
        query: Any = None,
        design: str = "mse",
        ledger: Any = None,
        dataset: Any = None,
        inducing: Any = None,
        approximation: str = "dtc",
        downweight: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.query = query
        self.design = design
        self.ledger = ledger
        self.dataset = dataset
        self.inducing = inducing
        self.approximation = approximation
        self.downweight = downweight

    def fit(self, X: Any, y: Any) -> PrivateGPRegressor:
        """Plan from X, release once from y, and keep no trace of y. Spends (epsilon, delta).

        Parameters
        ----------
        X : (N, D) array
            Public inputs.
        y : (N,) array
            Private outcomes; NaN is refused before anything is spent.
        """
        missing = [name for name in _NEEDED if getattr(self, name) is None]
        if missing:
            raise ValueError(
                f"{', '.join(missing)} must be given: there is no safe default, and y must not choose them."
            )
        if y is None:
            raise ValueError("PrivateGPRegressor requires y to be passed, but the target y is None.")
        given, X = X, validate_data(clone(self), X, dtype=np.float64)  # a failed fit changes nothing
        gp = GP(
            self.kernel,
            self.noise,
            self.bounds,
            inducing=self.inducing,
            approximation=self.approximation,
            downweight=self.downweight,
        )
        query = cover(X) if self.query is None else self.query
        plan = gp.plan(X, query, epsilon=self.epsilon, delta=self.delta, design=self.design)
        self._warn_if_repeated(X.shape)
        self.release_: Release = plan.release(y, ledger=self.ledger, dataset=self.dataset)
        validate_data(self, given, skip_check_array=True)  # notes the number and names of the columns
        _fits[X.shape] += 1
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Denoised predictions, with the posterior std or covariance of f if asked. Spends nothing."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.release_.predict(X, return_std=return_std, return_cov=return_cov)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> FloatArray:
        """(n, n_samples) draws of f from its posterior, by public randomness. Spends nothing."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.release_.sample(X, n_samples, random_state).T

    @property
    def certificate_(self) -> Certificate:
        """The guarantee of the last fit."""
        check_is_fitted(self)
        return self.release_.certificate

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "release_")

    def _warn_if_repeated(self, shape: tuple[int, ...]) -> None:
        if _fits[shape]:
            warnings.warn(
                f"fit number {_fits[shape] + 1} on data of shape {shape} in this process: if it is the same "
                f"data, ({float(self.epsilon):g}, {float(self.delta):g}) is spent each time.",
                RepeatedFitWarning,
                stacklevel=3,
            )
