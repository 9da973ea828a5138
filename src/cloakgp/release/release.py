"""A release: the public plan and the stages with their answers. Everything that it says is free."""

from __future__ import annotations

import copy
import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.core.errors import ArgumentError
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.inputs import as_points
from cloakgp.files import atomic
from cloakgp.files.labels import NONE, Labels
from cloakgp.ledger.chain import Receipt
from cloakgp.measure.certificate import Certificate
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.hyperprior import Candidate, Hyperprior
from cloakgp.model.outcome import Label
from cloakgp.posterior.conditioning import Uncertainty
from cloakgp.posterior.density import Density
from cloakgp.posterior.learning import Learned
from cloakgp.posterior.model_check import ModelCheck, check_mixtures, check_posterior, check_shape
from cloakgp.release import encoding, reader, showing
from cloakgp.release.stages import Rule, Stage

if TYPE_CHECKING:
    from cloakgp.release.plan import Plan


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """What may be published: predictions, or a function. Made by :meth:`Plan.release`.

    It holds the public plan, each stage's noisy integers, and what follows from them: printed, pickled or
    saved, it cannot give y back, nor X where whole rows are protected.
    """

    plan: Plan
    stages: tuple[Stage, ...]
    """What each stage measured: its windows, what came out, and what it spent."""
    settings: tuple[Candidate, ...]
    """The models that hold the weight, the best first; one, if the model is known."""
    weights: FloatArray
    """Their weights."""
    receipt: Receipt | None = None
    """Where the release stands in the ledger that paid for it: at the last stage's answer."""
    labels: Labels = NONE
    """Title, units, source and date, for pictures and reports: see :meth:`labelled`."""

    def labelled(
        self,
        *,
        title: str | None = None,
        units: str | None = None,
        source: str | None = None,
        date: str | None = None,
    ) -> Release:
        """The same release with a title and more, which its file keeps and its pictures and reports show.

        Parameters
        ----------
        title, source, date : str, optional
            In your own words. What is absent stays as it is.
        units : str, optional
            Of the outcomes, such as "cm"; with a sign of money, such as "£", prices read £420k.
        """
        labels = self.labels.changed(title=title, units=units, source=source, date=date)
        other = copy.copy(self)  # with all that was worked out already
        object.__setattr__(other, "labels", labels)
        return other

    @property
    def certificate(self) -> Certificate:
        """The guarantee of all stages together, and how it was reached."""
        return self.plan.certificate

    @property
    def X_star(self) -> FloatArray:
        """(P, D) test points."""
        return self.plan.X_star

    @cached_property
    def rule(self) -> Rule:
        """The plan's, with what is known by now of how many rows each input has."""
        return self.plan.counted(self.stages)

    @property
    def z(self) -> IntArray:
        """The last stage's noisy integers: all that it left behind of y."""
        assert self.stages[-1].answer is not None
        return self.stages[-1].answer

    @cached_property
    def learned(self) -> Learned:
        """The mixture over what was learned, given all answers; print it for a table."""
        reader.check_shown(self.plan)
        return reader.learned_from(self.rule, self.stages, self.settings, self.weights)

    # What was released

    @cached_property
    def mean(self) -> FloatArray:
        """(P,) what was released at the test points.

        The GP's posterior mean plus privacy noise, or the function's values; where stages are read by a
        model, and for the `posterior` design, which has no unbiased answer, as ``predict(X_star)``.
        """
        return frozen(self.released_at(self.X_star)[0])

    def released_at(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """The released numbers at `X`, test points or a function's, and the std of their privacy noise."""
        return self.plan.first.readout.released_at(self, X)

    @cached_property
    def _uncertainty(self) -> Uncertainty:
        return self.uncertainty(self.X_star)

    @property
    def noise_std(self) -> FloatArray:
        """(P,) std of the privacy noise at the test points: in `mean`, or what it adds to not knowing f."""
        return self.plan.noise_std if self.plan.alone else self._uncertainty.privacy.copy()

    @property
    def gp_std(self) -> FloatArray:
        """(P,) std of f at the test points that would remain if y itself were known."""
        return self.plan.gp_std if self.plan.alone else self._uncertainty.gp.copy()

    def query(self, X: Any, *, return_std: bool = False) -> Any:
        """The released function at `X`, with the std of its privacy noise if asked.

        For a release of a whole function. Any number of queries, in any order, cost nothing and agree with
        each other: they are values of one function.
        """
        function = self.plan.function
        if function is None:
            raise ValueError("query: this release is of predictions, not of a whole function; use predict.")
        X = as_points(X, "X", self.X_star.shape[1], self.plan.columns)
        values = function.values(self.plan.measurement, self.z, X)
        return (values, self.plan.noise_at(X)) if return_std else values

    # What the model says of it

    def predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool | float = False,
    ) -> Any:
        """Denoised predictions of f anywhere: free, deterministic, and without y.

        The Bayesian posterior of f given what was released, at planned test points or any others; a mixture,
        if the model was learned. Better than `mean` where the model is sensible, but shrunk towards the prior
        mean. Of several classes, (n, K) probabilities.

        Parameters
        ----------
        X : table or (n, D) array
            A table has the columns that the plan's had, by name and in any order. A level that was not there
            is predicted from the others.
        return_std, return_cov : bool
            Return the posterior std (n,) or covariance (n, n) too. It counts the model's uncertainty and the
            privacy noise together; :meth:`uncertainty` takes them apart.
        include_noise : bool or float
            Add the observation noise, for intervals on a new outcome. Give its variance as a number
            if the model has one per row.

        Returns
        -------
        (n,) array, or a pair of arrays
        """
        return self.learned.predict(
            X, return_std=return_std, return_cov=return_cov, include_noise=include_noise
        )

    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std at `X` by its causes: privacy noise, GP posterior, observation; and in total.

        `include_noise` as for :meth:`predict`: a variance, if the model has one per row.
        """
        return self.learned.uncertainty(X, include_noise=include_noise)

    def interval(self, X: Any, level: float = 0.95, *, include_noise: bool | float = False) -> FloatArray:
        """(n, 2) within which f lies at `X`, with probability `level`: quantiles of the mixture.

        Where outcomes are yes or no, or counts, of the probability or the rate: within (0, 1), and above 0.
        `include_noise` is for real outcomes: for a single new one. If the model was learned, it was measured
        how outcomes scatter, and the interval is as skewed as they are, and within their bounds.
        """
        return self.learned.interval(X, level, include_noise=include_noise)

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, K) probabilities of the classes at `X`; for yes/no outcomes, of no and of yes."""
        if not self.classes:
            raise ValueError("predict_proba: this release is not of yes/no outcomes or classes; use predict.")
        found: FloatArray = self.predict(X)
        return np.column_stack([1 - found, found]) if found.ndim == 1 else found

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes, in the order of their probabilities; False and True for yes/no without names."""
        return self.plan.outcome.labels

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of f from its posterior, by public randomness; free.

        Of probabilities or rates, where outcomes are yes or no, or counts.
        """
        return self.learned.sample(X, n, seed)

    @cached_property
    def density(self) -> Density:
        """How many rows each cell of the grid has: estimates, and their std, where whole rows are private."""
        if self.plan.grid is None:
            raise ValueError("density: inputs are public here; it is for releases of whole rows.")
        return self.plan.density(self.stages[0])

    def check_model(self) -> ModelCheck:
        """Whether the model fits what was released; free.

        By standardised residuals of the answers, by where outcomes fell, and, of one stage that stands
        alone, by the odds of broader models against it, where these can be had: not for very many rows.
        Print it for a line that begins with green or amber. A model that fits may still be wrong in ways
        that the privacy noise hides.
        """
        if self.plan.alone:
            return check_posterior(self.learned.posteriors[0], reader.alternatives(self))
        check = check_mixtures(self.learned.curves, self.learned.weights)
        return check_shape(check, self.learned, self.rule.inputs.X)

    def remodel(self, gp: GaussianProcess) -> Any:
        """Another GP conditioned on what was released; free.

        Parameters
        ----------
        gp : GP
            A model of your choice. It may come from anywhere but y itself: whatever it is, nothing more of y
            is used. Its bounds are not looked at.

        Returns
        -------
        Posterior
            With `predict`, `uncertainty`, `sample` and `log_evidence`; a mixture of one, where outcomes are
            yes or no, classes or counts.
        """
        return reader.remodelled(self, gp)

    def evidence(self, gp: GaussianProcess) -> float:
        """How well a model explains what was released: the log density of the answers under it; free.

        Only differences between models mean something: a difference of 3 is odds of 20 to 1. What was
        measured of the noise level is not counted.
        """
        found = self.remodel(gp)
        best = [own[0] for own in found.curves] if isinstance(found, Learned) else [found]
        return math.fsum(float(posterior.log_evidence) for posterior in best)

    @one_blas_thread()
    def learn(self, prior: Hyperprior | None = None) -> Learned:
        """What was learned; or, with another hyperprior, what would have been learned with it. Free.

        Parameters
        ----------
        prior : Hyperprior, optional
            What is believed beforehand; public, and the same for everybody if absent.

        Returns
        -------
        Learned
            A mixture over models: `predict`, `weights`, `settings`, and a table when printed.
        """
        own = self.plan.prior
        if prior == own or (prior is None and own.gp is None):
            return self.learned
        return reader.learned_anew(self, prior)

    # How it is kept and shown

    def save(self, path: str | os.PathLike[str], *, sign_with: Any = None) -> None:
        """Write the release file: all that an analyst or auditor needs, X included if it is shown.

        Parameters
        ----------
        path : path
            Written whole or not at all; an existing file is replaced.
        sign_with : Ed25519 private key, optional
            From the `cryptography` package (extra ``sign``). The signature lets a reader check
            that the custodian made this file: see :func:`cloakgp.verify`.
        """
        atomic.write(path, encoding.encode(self, sign_with))

    def to_frame(self, X: Any = None, *, level: float = 0.95, backend: str = "pandas") -> Any:
        """The test points as a table: the prediction, its std and interval, and the privacy noise's part.

        Of several classes, each one's probability with its interval; of a function, its values at `X`.

        Parameters
        ----------
        X : table or (n, D) array, optional
            Where a function is asked, free; at its own points if absent.
        level : float
            With which probability f lies from `lower` to `upper`, if the model is right.
        backend : {"pandas", "polars", "pyarrow"}
            Whose table it is; it must be installed.
        """
        columns = self.plan.columns
        if self.plan.function is not None:
            points = self.X_star if X is None else as_points(X, "X", self.X_star.shape[1], columns)
            values, std = self.released_at(points)
            return showing.frame(columns, points, {"released": values, "noise_std": std}, backend)
        if X is not None:
            raise ArgumentError(
                "X", "must be left out: the table is of the test points", remedy="Use predict."
            )
        mean, std = self.predict(self.X_star, return_std=True)
        if mean.ndim > 1:
            low, high = np.moveaxis(self.interval(self.X_star, level), 2, 0)
            more = {"std": std, "lower": low, "upper": high, "noise_std": self.noise_std}
            return showing.frame(columns, self.X_star, showing.by_class(self.classes, mean, **more), backend)
        numbers = showing.interval(mean, std, level) | ({"released": self.mean} if self.plan.alone else {})
        return showing.frame(columns, self.X_star, numbers | {"noise_std": self.noise_std}, backend)

    def _repr_html_(self) -> str:
        return showing.html(self, self.certificate)

    def __repr__(self) -> str:
        c, std = self.certificate, self.noise_std
        mark = "INSECURE " if c.insecure else ""
        return (
            f"<{mark}Release: {c.promise}, {c.how}, {c.n_rows} rows, "
            f"{len(std)} test points, privacy noise std {std.min():.3g} to {std.max():.3g}>"
        )
