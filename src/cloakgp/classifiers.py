"""The scikit-learn face of outcomes that are one of some classes: fit once, probabilities for free."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.estimators import PrivateGPEstimator
from cloakgp.model.auto_gp import AutoGP
from cloakgp.model.gp import GP
from cloakgp.plans.staged import StagedRelease
from cloakgp.posterior.learning import Learned
from cloakgp.rows.people import ALIKE


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
        Where predictions matter most. Points that cover X and its surroundings, if absent.
    kernel : Kernel or callable, optional
        Of the function f with Pr[second class] = Phi(f), or, of more than two, of each class's f; learned if
        absent.
    inducing, ledger, dataset, prior, missing_inputs
        As for :class:`cloakgp.PrivateGPRegressor`.

    Attributes
    ----------
    classes_ : (K,) array
        The classes, as they were given.
    release_ : StagedRelease
        What was released; holds all that is left of y.
    learned_ : Learned
        The models that were learned; print it for a table.
    certificate_ : StagedCertificate
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
        missing_inputs: str = "error",
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
        self.missing_inputs = missing_inputs

    def fit(self, X: Any, y: Any, *, people: Any = None, ids: str = ALIKE) -> PrivateGPClassifier:
        """Plan from X, release once from y, and keep no trace of y. Spends (epsilon, delta).

        Parameters
        ----------
        X : table or (N, D) array
            Public inputs. Texts and dates of a table become numbers: see ``docs/tables.md``.
        y : (N,) array
            Private outcomes, each one of the classes: numbers, truth values or texts.
        people : (N,) ids, or the name of a column of X, optional
            Whose row each is: see :meth:`cloakgp.PrivateGPRegressor.fit`.
        ids : {"alike", "exact"}
            How ids are compared: see :meth:`cloakgp.GP.plan`.
        """
        if self.epsilon is None:
            raise ValueError("epsilon must be given: there is no safe default.")
        if y is None:
            raise ValueError("PrivateGPClassifier requires y to be passed, but the target y is None.")
        plan = self._plan(X, people, ids, self._model())
        self.release_: StagedRelease = plan.release(y, ledger=self.ledger, dataset=self.dataset)
        classes = self.release_.classes
        alike = len({type(one) for one in classes}) == 1
        self.classes_ = np.array(classes, dtype=None if alike else object)
        self._note(X, plan)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, K) probabilities of the classes, in the order of `classes_`. Spends nothing."""
        X = self._inputs(X)
        return self.release_.predict_proba(X)

    def predict(self, X: Any) -> Any:
        """(n,) the likeliest class of each. Spends nothing."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]

    def _model(self) -> AutoGP | GP:
        if self.kernel is None:
            return AutoGP(classes=self.classes, prior=self.prior, inducing=self.inducing)
        if self.prior is not None:
            raise ArgumentError("prior", "must be left out with kernel: it is for a model that is learned")
        return GP(self.kernel, inducing=self.inducing, classes=self.classes)

    @property
    def learned_(self) -> Learned:
        """The models that were learned in the last fit, and their weights."""
        check_is_fitted(self)
        return self.release_.learned
