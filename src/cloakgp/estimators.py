"""The scikit-learn face, thin over GP and AutoGP: fit once, predict for free.

`fit` makes a plan from X, releases once, and forgets y; `predict` is post-processing. Unlike most
estimators, fitting spends privacy, every time: see :class:`PrivateGPRegressor`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError
from cloakgp.data.frames import read
from cloakgp.data.inputs import as_inputs
from cloakgp.data.people import ALIKE
from cloakgp.gp import GP, AutoGP
from cloakgp.kernels import Kernel
from cloakgp.measure.certificate import Certificate
from cloakgp.model.point_sets import cover
from cloakgp.posterior.conditioning import check_draws
from cloakgp.posterior.learning import Learned
from cloakgp.release.release import Release

_OF_A_SET_MODEL = {
    "noise": "its noise with it",
    "design": "each stage has a design of its own",
    "approximation": "it has an approximation of its own",
    "downweight": "all of its rows have the same noise",
}
"""What makes no sense for a model that is learned, and why."""
_fits: Counter[tuple[int, ...]] = Counter()  # by the shape of X, which is public


class RepeatedFitWarning(UserWarning):
    """A second fit on data of the same shape: if it is the same data, privacy is spent twice."""


class PrivateGPEstimator(BaseEstimator):  # type: ignore[misc]
    """What estimators have in common: one fit, public tables, and what each fit spends."""

    release_: Release
    """What was released; holds all that is left of y."""
    _needed: ClassVar[tuple[str, ...]] = ("epsilon",)

    def fit(self, X: Any, y: Any, *, people: Any = None, ids: str = ALIKE) -> Self:
        """Plan from X, release once from y, and keep no trace of y. Spends (epsilon, delta).

        Parameters
        ----------
        X : table or (N, D) array
            Public inputs. Texts and dates of a table become numbers: see ``docs/tables.md``.
        y : (N,) array
            Private outcomes, numbers; of a classifier each is one of the classes, a number, truth value or
            text. What is missing is refused before anything is spent.
        people : (N,) ids, or the name of a column of X, optional
            Whose row each is, where someone may have several: the promise is then to each person, about all
            of their outcomes at once. Public, as X is. In a pipeline, ``privategpregressor__people=``, or
            scikit-learn's metadata routing.
        ids : {"alike", "exact"}
            How ids are compared: see :meth:`cloakgp.GP.plan`.
        """
        missing = [name for name in self._needed if getattr(self, name) is None]
        if missing:
            expected = "must be given: there is no safe default, and y must not choose them"
            raise ArgumentError(", ".join(missing), expected)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if self.kernel is not None and self.prior is not None:
            raise ArgumentError("prior", "must be left out with kernel: it is for a model that is learned")
        plan = self._plan(X, people, ids, *self._model())
        self.release_ = plan.release(y, ledger=self.ledger, dataset=self.dataset)
        self._note(X, plan)
        return self

    def _model(self) -> tuple[AutoGP | GP, dict[str, Any]]:
        """The model, learned or set, and what else its plan is made with."""
        raise NotImplementedError

    def _plan(self, X: Any, people: Any, ids: str, model: Any, more: dict[str, Any]) -> Any:
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
        shape, promised = plan.X.shape, plan.certificate
        if _fits[shape]:
            warnings.warn(
                f"fit number {_fits[shape] + 1} on data of shape {shape} in this process: if it is the same "
                f"data, ({promised.epsilon:g}, {promised.delta:g}) is spent each time.",
                RepeatedFitWarning,
                stacklevel=3,
            )
        return plan

    def _note(self, given: Any, plan: Any) -> None:
        """That there was a fit, and the number and names of its columns, as scikit-learn keeps them."""
        _fits[plan.X.shape] += 1
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
    def certificate_(self) -> Certificate:
        """The guarantee of the last fit."""
        check_is_fitted(self)
        return self.release_.certificate

    @property
    def learned_(self) -> Learned:
        """The models that were learned in the last fit, and their weights."""
        check_is_fitted(self)
        if self.release_.plan.alone:
            raise AttributeError("learned_: the kernel was set, so none was learned; see release_.learn().")
        return self.release_.learned

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "release_")


@dataclass(eq=False, repr=False)
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
        cover X are chosen from X, which is public (:func:`cover`). Predictions
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
    release_ : Release
        What was released; holds all that is left of y.
    learned_ : Learned
        The models that were learned; print it for a table. Not there for a kernel that is set.
    certificate_ : Certificate
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

    _needed = ("bounds", "epsilon")

    kernel: Any = None
    noise: Any = None
    bounds: Any = None
    epsilon: Any = None
    delta: Any = None
    query: Any = None
    design: Any = None
    ledger: Any = None
    dataset: Any = None
    inducing: Any = None
    approximation: Any = None
    downweight: Any = None
    prior: Any = None
    missing_inputs: str = "error"

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

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Denoised predictions, with the posterior std or covariance of f if asked. Spends nothing."""
        X = self._inputs(X)
        return self.release_.predict(X, return_std=return_std, return_cov=return_cov)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> FloatArray:
        """(n, n_samples) draws of f from its posterior, by public randomness. Spends nothing."""
        X = self._inputs(X)
        check_draws(n_samples, len(X), "n_samples")
        return self.release_.sample(X, n_samples, random_state).T

    def _model(self) -> tuple[AutoGP | GP, dict[str, Any]]:
        if self.kernel is None:
            for name, why in _OF_A_SET_MODEL.items():
                if getattr(self, name) is not None:
                    expected = f"must be left out without kernel: the model is learned, and {why}"
                    raise ArgumentError(name, expected, remedy="Or give a kernel and its noise.")
            return AutoGP(self.bounds, prior=self.prior, inducing=self.inducing), {}
        if self.noise is None:
            remedy = "It is the variance of outcomes at one input. Or leave out both: the model is learned."
            raise ArgumentError("noise", "must be given with kernel", remedy=remedy)
        approximation = "dtc" if self.approximation is None else self.approximation
        model = {"inducing": self.inducing, "approximation": approximation, "downweight": self.downweight}
        gp = GP(self.kernel, self.noise, self.bounds, **model)
        return gp, {"design": "mse" if self.design is None else self.design}


@dataclass(eq=False, repr=False)
class PrivateGPClassifier(ClassifierMixin, PrivateGPEstimator):  # type: ignore[misc]
    """Differentially private Gaussian-process classification.

    Every setting must come from public knowledge, the classes too: they are named, never taken from y, since
    which of them occur may be what nobody should learn. `epsilon` has no safe default. The model is learned,
    privately, by :class:`cloakgp.AutoGP`; or `kernel` sets it.

    **Each `fit` is a new spend of (epsilon, delta)**, as for :class:`cloakgp.PrivateGPRegressor`.

    Parameters
    ----------
    classes : two or more values
        What outcomes may be, public: (False, True), (0, 1), ("car", "bus", "train"). An outcome that is none
        of them is missing, and refused before anything is spent, without being named. More than two need
        about 1.4 times the privacy noise of two, however many they are.
    epsilon, delta : float
        The promise that each fit spends; delta has a default, as for :class:`cloakgp.PrivateGPRegressor`.
    query : (P, D) array, optional
        Where predictions matter most. Points that cover X, if absent.
    kernel : Kernel or callable, optional
        Of the function f with Pr[second class] = Phi(f), or, of more than two, of each class's f; learned if
        absent.
    inducing, ledger, dataset, prior, missing_inputs
        As for :class:`cloakgp.PrivateGPRegressor`.

    Attributes
    ----------
    classes_ : (K,) array
        The classes, as they were given.
    release_ : Release
        What was released; holds all that is left of y.
    learned_ : Learned
        The models that were learned; print it for a table.
    certificate_ : Certificate
        The guarantee.
    n_features_in_ : int
    feature_names_in_ : array of str
        The names of the inputs, if X was a table.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 10, 60)[:, None]
    >>> y = np.where(X[:, 0] > 5, "yes", "no")
    >>> model = PrivateGPClassifier(("no", "yes"), epsilon=2.0).fit(X, y)
    >>> model.predict_proba(X).shape
    (60, 2)
    """

    classes: Any = (False, True)
    epsilon: Any = None
    delta: Any = None
    query: Any = None
    kernel: Any = None
    inducing: Any = None
    ledger: Any = None
    dataset: Any = None
    prior: Any = None
    missing_inputs: str = "error"

    @property
    def classes_(self) -> Any:
        """(K,) the classes, as they were given."""
        check_is_fitted(self)
        classes = self.release_.classes
        alike = len({type(one) for one in classes}) == 1
        return np.array(classes, dtype=None if alike else object)

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, K) probabilities of the classes, in the order of `classes_`. Spends nothing."""
        X = self._inputs(X)
        return self.release_.predict_proba(X)

    def predict(self, X: Any) -> Any:
        """(n,) the likeliest class of each. Spends nothing."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _model(self) -> tuple[AutoGP | GP, dict[str, Any]]:
        if self.kernel is None:
            return AutoGP(classes=self.classes, prior=self.prior, inducing=self.inducing), {}
        return GP(self.kernel, inducing=self.inducing, classes=self.classes), {}
