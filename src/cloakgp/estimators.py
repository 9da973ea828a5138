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
from cloakgp.errors import ArgumentError
from cloakgp.kernels import Kernel
from cloakgp.measurements.staged_certificate import AnyCertificate
from cloakgp.model.auto_gp import AutoGP
from cloakgp.model.cover import cover
from cloakgp.model.gp import GP
from cloakgp.plans.predictions import Release
from cloakgp.plans.staged import StagedRelease
from cloakgp.posterior.conditioning import check_draws
from cloakgp.posterior.learning import Learned
from cloakgp.rows.frames import read
from cloakgp.rows.inputs import as_inputs
from cloakgp.rows.people import ALIKE

_NEEDED = ("bounds", "epsilon")
_OF_A_SET_MODEL = {
    "noise": "its noise with it",
    "design": "each stage has a design of its own",
    "approximation": "it has an approximation of its own",
    "downweight": "all of its rows have the same noise",
}
"""What makes no sense for a model that is learned, and why."""
_fits: Counter[tuple[int, ...]] = Counter()  # by the shape of X, which is public


def note_fit(shape: tuple[int, ...]) -> None:
    """Count a fit."""
    _fits[shape] += 1


class RepeatedFitWarning(UserWarning):
    """A second fit on data of the same shape: if it is the same data, privacy is spent twice."""


class PrivateGPEstimator(BaseEstimator):  # type: ignore[misc]
    """What estimators have in common: public tables, and what each fit spends."""

    def _plan(self, X: Any, people: Any, ids: str, model: Any, **more: Any) -> Any:
        """The plan of a fit; a fit that fails changes nothing of the estimator."""
        if read(X) is None:
            finite = True if self.missing_inputs == "error" else "allow-nan"
            X = validate_data(clone(self), X, dtype=np.float64, ensure_all_finite=finite)
        query = self.query
        if query is None:
            found = as_inputs(X, people, None, self.missing_inputs, ids)
            query = cover(found.X, categories=() if found.columns is None else found.columns.categories)
        more |= {"epsilon": self.epsilon, "delta": self.delta, "people": people, "ids": ids}
        plan = model.plan(X, X_star=query, missing_inputs=self.missing_inputs, **more)
        self._warn_if_repeated(plan)
        return plan

    def _note(self, given: Any, plan: Any) -> None:
        """That there was a fit, and the number and names of its columns, as scikit-learn keeps them."""
        note_fit(plan.X.shape)
        if read(given) is None:
            validate_data(self, given, skip_check_array=True)
            return
        self.n_features_in_ = len(plan.columns.inputs)
        self.feature_names_in_ = np.array(plan.columns.names, dtype=object)

    def _inputs(self, X: Any) -> Any:
        """Inputs to predict at: a table's names must be those of fit, in that order, as scikit-learn asks."""
        check_is_fitted(self)
        if read(X) is None or self.release_.plan.columns is None:
            return validate_data(self, X, dtype=np.float64, reset=False)
        validate_data(self, X, skip_check_array=True, reset=False)
        return X

    @property
    def certificate_(self) -> AnyCertificate:
        """The guarantee of the last fit."""
        check_is_fitted(self)
        certificate: AnyCertificate = self.release_.certificate
        return certificate

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "release_")

    def _warn_if_repeated(self, plan: Any) -> None:
        shape, promised = plan.X.shape, plan.certificate
        if _fits[shape]:
            warnings.warn(
                f"fit number {_fits[shape] + 1} on data of shape {shape} in this process: if it is the same "
                f"data, ({promised.epsilon:g}, {promised.delta:g}) is spent each time.",
                RepeatedFitWarning,
                stacklevel=4,
            )


class PrivateGPRegressor(RegressorMixin, PrivateGPEstimator):  # type: ignore[misc]
    """Differentially private Gaussian-process regression.

    Every setting must come from public knowledge. `bounds` and `epsilon` have no safe default, and `fit`
    refuses to guess them. The model is learned, privately, by :class:`cloakgp.AutoGP`; or `kernel` and
    `noise` set it.

    **Each `fit` is a new spend of (epsilon, delta).** A grid search or cross-validation around this
    estimator fits many times and spends many times; a warning is given from the second fit on data
    of the same shape in a process.

    Parameters
    ----------
    kernel : Kernel or callable, optional
        From :mod:`cloakgp.kernels`, or any k(X, Z), scikit-learn's included; learned if absent. Its numbers
        are parameters too, such as ``kernel__lengthscale``.
    noise : float, (N,) array or callable, optional
        Variance of the observation noise, or a function of X that gives it; goes with `kernel`.
    bounds : (lo, hi)
        Where outcomes are known to lie; values outside are clipped. Where the model is learned, generous ones
        will do.
    epsilon, delta : float
        The promise that each fit spends. If absent, delta is the largest power of ten below 1 / (10 n) for n
        rows, or n people: ``certificate_.delta``.
    query : (P, D) array, optional
        Where predictions matter most: the noise is shaped for these points. If absent, points that
        cover X and its surroundings are chosen from X, which is public (:func:`cover`). Predictions
        can be asked anywhere all the same.
    design : {"mse", "max", "posterior", "volume"}, optional
        With `kernel`: see :meth:`cloakgp.GP.plan`; "mse" if absent. A model that is learned has a design of
        its own in each stage.
    inducing : int or (m, D) array, optional
        For many rows: how many inducing inputs, such as 500, which k-means then chooses from X, or these
        themselves. If absent: with `kernel` an exact GP, whose work grows with the cube of the rows; else
        some hundred of them for more than some hundred rows.
    approximation : {"dtc", "fitc"}, optional
        With `kernel`: what they cannot represent is ignored ("dtc", if absent) or counted as noise ("fitc").
    downweight : {None, "leverage"}
        With `kernel`: whether rows that stand alone get more noise variance: see :class:`cloakgp.GP`.
    ledger : Ledger or its URL, optional
        Pays for each fit, and refuses one that does not fit into what is left. Give a URL with a password as
        ``Ledger(url)``: scikit-learn shows settings when it prints an estimator.
    dataset : str, optional
        Which of the ledger's data sets pays.
    prior : Hyperprior, optional
        What is believed beforehand of a model that is learned; instead of `kernel`.
    missing_inputs : {"error", "drop"}
        Refuse rows of X in which something is missing, or leave them out, of y too: X is public.

    Attributes
    ----------
    release_ : StagedRelease, or Release for a kernel that is set
        What was released; holds all that is left of y.
    learned_ : Learned
        The models that were learned; print it for a table. Not there for a kernel that is set.
    certificate_ : StagedCertificate or Certificate
        The guarantee.
    n_features_in_ : int
    feature_names_in_ : array of str
        The names of the inputs, if X was a table.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 80, 40)[:, None]
    >>> y = 150 - 80 * np.exp(-X[:, 0] / 8)
    >>> model = PrivateGPRegressor(bounds=(0, 250), epsilon=1.0).fit(X, y)
    >>> mean, std = model.predict(X, return_std=True)
    """

    def __init__(
        self,
        kernel: Any = None,
        noise: Any = None,
        bounds: Any = None,
        epsilon: Any = None,
        delta: Any = None,
        query: Any = None,
        design: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        inducing: Any = None,
        approximation: Any = None,
        downweight: Any = None,
        prior: Any = None,
        missing_inputs: str = "error",
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
        self.prior = prior
        self.missing_inputs = missing_inputs

    def set_params(self, **params: Any) -> PrivateGPRegressor:
        """Set parameters by name, those of the kernel as in ``kernel__lengthscale=20.0``.

        Kernels cannot be changed, so this one is replaced, and no other estimator that has it changes.
        """
        kernel = params.get("kernel", self.kernel)
        inside = {name: value for name, value in params.items() if name.startswith("kernel__")}
        if inside and kernel is None:
            raise ArgumentError(next(iter(inside)), "needs a kernel", remedy="Give kernel= with it.")
        if inside and isinstance(kernel, Kernel):
            changes = {name.removeprefix("kernel__"): value for name, value in inside.items()}
            params = {name: value for name, value in params.items() if name not in inside}
            params["kernel"] = kernel.with_params(**changes)
        super().set_params(**params)
        return self

    def fit(self, X: Any, y: Any, *, people: Any = None, ids: str = ALIKE) -> PrivateGPRegressor:
        """Plan from X, release once from y, and keep no trace of y. Spends (epsilon, delta).

        Parameters
        ----------
        X : table or (N, D) array
            Public inputs. Texts and dates of a table become numbers: see ``docs/tables.md``.
        y : (N,) array
            Private outcomes; NaN is refused before anything is spent.
        people : (N,) ids, or the name of a column of X, optional
            Whose row each is, where someone may have several: the promise is then to each person, about all
            of their outcomes at once. Public, as X is. In a pipeline, ``privategpregressor__people=``, or
            scikit-learn's metadata routing.
        ids : {"alike", "exact"}
            How ids are compared: see :meth:`cloakgp.GP.plan`.
        """
        self._check_settings()
        if y is None:
            raise ValueError("PrivateGPRegressor requires y to be passed, but the target y is None.")
        gp, more = self._model()
        plan = self._plan(X, people, ids, gp, **more)
        self.release_: Release | StagedRelease = plan.release(y, ledger=self.ledger, dataset=self.dataset)
        self._note(X, plan)
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Denoised predictions, with the posterior std or covariance of f if asked. Spends nothing."""
        X = self._inputs(X)
        return self.release_.predict(X, return_std=return_std, return_cov=return_cov)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> FloatArray:
        """(n, n_samples) draws of f from its posterior, by public randomness. Spends nothing."""
        X = self._inputs(X)
        check_draws(n_samples, len(X), "n_samples")
        return self.release_.sample(X, n_samples, random_state).T

    def _check_settings(self) -> None:
        """Raise, with what to do, for settings that are absent or do not go together."""
        missing = [name for name in _NEEDED if getattr(self, name) is None]
        if missing:
            raise ValueError(
                f"{', '.join(missing)} must be given: there is no safe default, and y must not choose them."
            )
        if self.kernel is None:
            for name, why in _OF_A_SET_MODEL.items():
                if getattr(self, name) is not None:
                    expected = f"must be left out without kernel: the model is learned, and {why}"
                    raise ArgumentError(name, expected, remedy="Or give a kernel and its noise.")
        elif self.noise is None:
            remedy = (
                "It is the variance of outcomes at one input. Or leave out both, and the model is learned."
            )
            raise ArgumentError("noise", "must be given with kernel", remedy=remedy)
        elif self.prior is not None:
            raise ArgumentError("prior", "must be left out with kernel: it is for a model that is learned")

    def _model(self) -> tuple[Any, dict[str, Any]]:
        """The model, learned or set, and what else its plan is made with."""
        if self.kernel is None:
            return AutoGP(self.bounds, prior=self.prior, inducing=self.inducing), {}
        gp = GP(
            self.kernel,
            self.noise,
            self.bounds,
            inducing=self.inducing,
            approximation="dtc" if self.approximation is None else self.approximation,
            downweight=self.downweight,
        )
        return gp, {"design": "mse" if self.design is None else self.design}

    @property
    def learned_(self) -> Learned:
        """The models that were learned in the last fit, and their weights."""
        check_is_fitted(self)
        if isinstance(self.release_, StagedRelease):
            return self.release_.learned
        raise AttributeError("learned_: the kernel was set, so no model was learned; see release_.learn().")
