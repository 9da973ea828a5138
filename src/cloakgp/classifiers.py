"""The scikit-learn face of yes/no outcomes: fit once, ask for probabilities for free."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.estimators import RepeatedFitWarning, note_fit, repeated
from cloakgp.measurements.staged_certificate import StagedCertificate
from cloakgp.model.auto_gp import AutoGP
from cloakgp.model.cover import cover
from cloakgp.model.gp import GP
from cloakgp.model.outcome import YES_NO
from cloakgp.plans.staged import StagedRelease
from cloakgp.posterior.learning import Learned


class PrivateGPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Differentially private Gaussian-process classification, of two classes.

    Every setting must come from public knowledge, the classes too: they are named, never taken from y, since
    which of them occur may be what nobody should learn. `epsilon` has no safe default. The model is learned,
    privately, by :class:`cloakgp.AutoGP`; or `kernel` sets it.

    **Each `fit` is a new spend of (epsilon, delta)**, as for :class:`cloakgp.PrivateGPRegressor`.

    Parameters
    ----------
    classes : two values
        What outcomes may be, public: (False, True), (0, 1), ("no", "yes"). An outcome that is neither is
        missing, and refused before anything is spent, without being named.
    epsilon, delta : float
        The promise that each fit spends; delta has a default, as for :class:`cloakgp.PrivateGPRegressor`.
    query : (P, D) array, optional
        Where predictions matter most. Points that cover X and its surroundings, if absent.
    kernel : Kernel or callable, optional
        Of the function f with Pr[second class] = Phi(f); learned if absent.
    inducing, ledger, dataset, prior
        As for :class:`cloakgp.PrivateGPRegressor`.

    Attributes
    ----------
    classes_ : (2,) array
        The classes, as they were given.
    release_ : StagedRelease
        What was released; holds all that is left of y.
    learned_ : Learned
        The models that were learned; print it for a table.
    certificate_ : StagedCertificate
        The guarantee.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 10, 60)[:, None]
    >>> y = np.where(X[:, 0] > 5, "yes", "no")
    >>> model = PrivateGPClassifier(("no", "yes"), epsilon=2.0).fit(X, y)
    >>> model.predict_proba(X).shape
    (60, 2)
    """

    def __init__(
        self,
        classes: Any = (False, True),
        epsilon: Any = None,
        delta: Any = None,
        query: Any = None,
        kernel: Any = None,
        inducing: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        prior: Any = None,
    ) -> None:
        self.classes = classes
        self.epsilon = epsilon
        self.delta = delta
        self.query = query
        self.kernel = kernel
        self.inducing = inducing
        self.ledger = ledger
        self.dataset = dataset
        self.prior = prior

    def fit(self, X: Any, y: Any, people: Any = None) -> PrivateGPClassifier:
        """Plan from X, release once from y, and keep no trace of y. Spends (epsilon, delta).

        Parameters
        ----------
        X : (N, D) array
            Public inputs.
        y : (N,) array
            Private outcomes, each one of the classes: numbers, truth values or texts.
        people : (N,) ids, optional
            Whose row each is: see :meth:`cloakgp.PrivateGPRegressor.fit`.
        """
        from cloakgp.private.room import PrivateLabels

        classes = self._checked_classes()
        if self.epsilon is None:
            raise ValueError("epsilon must be given: there is no safe default.")
        if y is None:
            raise ValueError("PrivateGPClassifier requires y to be passed, but the target y is None.")
        given, X = X, validate_data(clone(self), X, dtype=np.float64)  # a failed fit changes nothing
        query = cover(X) if self.query is None else self.query
        promise = {"epsilon": self.epsilon, "delta": self.delta, "people": people}
        plan: Any = self._model().plan(X, query, **promise)
        if repeated(X.shape):
            said = f"fit number {repeated(X.shape) + 1} on data of shape {X.shape} in this process: if it is"
            c = plan.certificate
            spent = f"the same data, ({c.epsilon:g}, {c.delta:g}) is spent each time."
            warnings.warn(f"{said} {spent}", RepeatedFitWarning, stacklevel=2)
        labels = PrivateLabels(y, classes)
        self.release_: StagedRelease = plan.release(labels, ledger=self.ledger, dataset=self.dataset)
        self.classes_ = np.array(classes)
        validate_data(self, given, skip_check_array=True)  # notes the number and names of the columns
        note_fit(X.shape)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, 2) probabilities of the classes, in the order of `classes_`. Spends nothing."""
        check_is_fitted(self)
        return self.release_.predict_proba(validate_data(self, X, dtype=np.float64, reset=False))

    def predict(self, X: Any) -> Any:
        """(n,) the likelier class of each. Spends nothing."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _checked_classes(self) -> tuple[Any, ...]:
        classes = tuple(np.asarray(self.classes, dtype=object).tolist())
        if len(classes) != 2 or classes[0] == classes[1]:
            remedy = "For more, ask one question of each class: is it this one, or not?"
            raise ArgumentError("classes", "must be two different values", repr(self.classes), remedy)
        return classes

    def _model(self) -> AutoGP | GP:
        if self.kernel is None:
            return AutoGP(outcome=YES_NO, prior=self.prior, inducing=self.inducing)
        if self.prior is not None:
            raise ArgumentError("prior", "must be left out with kernel: it is for a model that is learned")
        return GP(self.kernel, inducing=self.inducing, outcome=YES_NO)

    @property
    def learned_(self) -> Learned:
        """The models that were learned in the last fit, and their weights."""
        check_is_fitted(self)
        return self.release_.learned

    @property
    def certificate_(self) -> StagedCertificate:
        """The guarantee of the last fit."""
        check_is_fitted(self)
        return self.release_.certificate

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "release_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
