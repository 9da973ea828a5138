"""A plan of predictions, which is public, and its release, which is what comes out of the private step.

The plan is everything about a release that can be known before y is touched. The release is computed from the
plan and the noisy integers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloakgp.accounting import Gaussian
from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError
from cloakgp.files import atomic, schema
from cloakgp.files.container import ReleaseFileError
from cloakgp.files.labels import NONE, Labelled, Labels
from cloakgp.ledger.charge import Receipt
from cloakgp.measurements.certificate import Certificate
from cloakgp.measurements.lattice import IntArray, Measurement
from cloakgp.measurements.recipes import FactoredMeasurement
from cloakgp.measurements.unit import check_unit
from cloakgp.plans import encoding, showing
from cloakgp.plans.base import PlanBase
from cloakgp.plans.remodelling import Remodelled
from cloakgp.posterior.conditioning import Posterior, Uncertainty
from cloakgp.rows.columns import Columns
from cloakgp.rows.inputs import TableRows, as_points, same_ids, same_inputs
from cloakgp.rows.merging import distinct
from cloakgp.rows.people import same_people
from cloakgp.rows.sources import as_source

if TYPE_CHECKING:
    from cloakgp.model.gp import GP


@dataclass(frozen=True, eq=False, repr=False)
class Plan(PlanBase["Release"]):
    """What will be measured, and the noise that it will have. Made by :meth:`GP.plan`.

    A plan never saw y, so it can be printed, plotted, published and compared with others at no
    cost. Only :meth:`release` spends.
    """

    kind: ClassVar[str] = schema.PREDICTIONS

    gp: GP
    X: Any
    """(N, D) public inputs: an array, or what gives slices of one; None if a file holds only its digest."""
    X_star: FloatArray
    weights: FloatArray
    """(P,) how much the noise at each test point matters, 1 on average."""
    measurement: Measurement | FactoredMeasurement
    reconstruction: FloatArray  # (P, q): predictions from measurements
    offset: FloatArray  # (P,): the prediction if every y were the middle of the bounds
    gp_std: FloatArray
    """(P,) posterior std of the GP itself at X*, without privacy noise; to four digits in a file."""
    certificate: Certificate
    within: float | None = None
    """Correlation of the noise within a person, if the promise is to people."""
    columns: Columns | None = None
    """Names of the columns of X, and how levels and dates became numbers, if X was a table."""
    rows: TableRows | None = None
    """Which rows of the table count."""

    @property
    def noise_std(self) -> FloatArray:
        """(P,) std of the privacy noise at each test point."""
        std: FloatArray = self.measurement.noise_scale * np.linalg.norm(self.reconstruction, axis=1)
        return std

    @cached_property
    def expected_error(self) -> FloatArray:
        """(P,) std of what a reader's predictions will be off by, if the model is right; public.

        Of the denoised predictions: the GP's own uncertainty and the privacy noise together.
        """
        std: FloatArray = self._unanswered.predict(self.X_star, return_std=True)[1]
        return frozen(std)

    @property
    def _unanswered(self) -> Posterior:
        """The posterior as it would be after a release: uncertainties do not depend on what comes out."""
        nothing = np.zeros(self.measurement.n_measurements, dtype=np.int64)
        return Posterior(self.gp, self.X, [(self.measurement, nothing)], columns=self.columns)

    @property
    def noise_cov(self) -> FloatArray:
        """(P, P) covariance of the privacy noise over the test points."""
        scaled = self.measurement.noise_scale * self.reconstruction
        cov: FloatArray = scaled @ scaled.T
        return cov

    @property
    def shown_inputs(self) -> Any:
        """The inputs, or the inducing inputs where a file holds only the digest of the inputs."""
        return np.asarray(self.gp.inducing) if self.X is None else self.X

    @property
    def hides_inputs(self) -> bool:
        """Whether it is made not to show the inputs; never, though a file may hold their digest only."""
        return False

    def released_noise(self, X: Any) -> FloatArray:
        """(n,) std of the privacy noise in what is released at `X`, which must be the test points."""
        if not np.array_equal(as_points(X, "X", self.X_star.shape[1], self.columns), self.X_star):
            raise ArgumentError("X", "must be the plan's test points", remedy="Elsewhere, use noise_at.")
        return self.noise_std

    @property
    def partition(self) -> str:
        """SHA-256 of who has which rows, for the ledger; empty where the promise is to each row."""
        return self.measurement.partition

    @property
    def cost(self) -> Gaussian:
        """What a release will spend, for :mod:`cloakgp.accounting` and a ledger."""
        return Gaussian(self.measurement.mu(), self.measurement.n_measurements)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: the same settings and inputs give the same."""
        return encoding.digest(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file, to the last bit, for a release that is made later. Nothing is spent.

        A plan is public, and so is its file. Of more inputs than fit into 64 MiB it holds only the digest:
        give them again to :meth:`load`.
        """
        atomic.write(path, encoding.encode_plan(self))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        X: Any = None,
        kernel: Any = None,
        mean: Any = None,
        people: Any = None,
    ) -> Plan:
        """Read a plan's file. Nothing in it is executed.

        Whatever the file says, a release is made only with noise that is enough for the integers in it.

        Parameters
        ----------
        path : path
        X : (N, D) array, optional
            The inputs, where the file holds only their digest. A release is refused if they are others.
        kernel : callable, optional
            The kernel, if it is a custom one, which no file can hold.
        mean : callable, optional
            The prior mean, if it is a function of X, which no file can hold.
        people : (N,) ids, optional
            Together with X, where the promise is to people.
        """
        contents = encoding.read_plan_contents(path, kernel, mean)
        if contents.kind != cls.kind:
            raise ReleaseFileError("path: this file holds the plan of a function; use FunctionPlan.load.")
        plan = cls.from_contents(contents)
        return plan if X is None else plan.with_inputs(X, people)

    def with_inputs(self, X: Any, people: Any = None) -> Plan:
        """The same plan with the inputs that it was made for, if it was read from a file without them.

        And with the `people`, if its promise is to them: ids of their rows.
        """
        m = self.measurement
        if self.X is not None or not isinstance(m, FactoredMeasurement):
            return self
        people = same_ids(people, X, self.rows)
        X = as_source(same_inputs(X, self.columns, self.rows), "X", self.X_star.shape[1])
        if len(X) != m.n_rows:
            raise ValueError(f"X must have {m.n_rows} rows, as the plan was made for; got {len(X)}.")
        shared = same_people(people, len(X), m.partition, self.certificate.ids)
        inputs = distinct(X, self.gp.noise, self.gp.windows)
        lower, upper = m.lower, m.upper
        if inputs.windows is not None and isinstance(lower, np.ndarray):
            lower, upper = inputs.windows[:, 0], inputs.windows[:, 1]
        m = replace(m, inputs=inputs, lower=lower, upper=upper, people=shared)
        return replace(self, X=X, measurement=m)

    @cached_property
    def inputs_digest(self) -> str:
        """SHA-256 of the inputs, for the ledger; a recipe has it already."""
        return getattr(self.measurement, "digest", None) or super().inputs_digest

    def own_contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What its file holds that other kinds of plans have not: words, and arrays."""
        names = ("X_star", "weights", "offset")
        arrays = {name: getattr(self, name) for name in names} | {"gp_std": schema.rounded_std(self.gp_std)}
        return {"release": self.kind}, arrays

    @classmethod
    def from_contents(cls, contents: encoding.Contents) -> Plan:
        """The plan that a file holds."""
        arrays = contents.arrays
        return cls(
            gp=contents.gp,
            X=arrays.get("X"),
            X_star=arrays["X_star"],
            weights=arrays["weights"],
            measurement=contents.measurement,
            reconstruction=arrays["reconstruction"],
            offset=arrays["offset"],
            gp_std=arrays["gp_std"],
            certificate=contents.certificate,
            within=contents.within,
            columns=contents.columns,
            rows=contents.rows,
        )

    def noise_at(self, X: Any) -> FloatArray:
        """(n,) std of the privacy noise that denoised predictions at `X` will have; public and free."""
        return self._unanswered.uncertainty(X, include_noise=False).privacy

    def _measure(self, y: Any, missing: str) -> IntArray:
        from cloakgp.private.room import measure

        check_unit(self.certificate, self.measurement.unit)
        return measure(self.measurement, y, missing, self.rows)

    def _made_of(self, answer: IntArray, receipt: Receipt | None, insecure: bool) -> Release:
        plan = replace(self, certificate=replace(self.certificate, insecure=insecure))
        return Release(plan, answer, receipt)

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """The test points as a table: the error to be expected, the std of the privacy noise, the GP's own.

        `backend` is "pandas", "polars" or "pyarrow"; it must be installed.
        """
        names = ("expected_error", "noise_std", "gp_std")
        numbers = {name: getattr(self, name) for name in names}
        return showing.frame(self.columns, self.X_star, numbers, backend)

    def _repr_html_(self) -> str:
        more = {"expected_error": self.expected_error, "noise_std": self.noise_std}
        facts = showing.facts(self.certificate, self.columns, self.X_star, **more)
        return showing.page("Plan", facts | {"design": self.certificate.design}, False)

    def __repr__(self) -> str:
        std, c = self.noise_std, self.certificate
        return (
            f"<Plan: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {c.design} design, "
            f"{c.n_rows} rows, {len(std)} test points, noise std {std.min():.3g} to {std.max():.3g}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Release(Remodelled, Labelled):
    """Predictions that may be published. Made by :meth:`Plan.release`, or :meth:`load`.

    It holds the public plan and the noisy measurements `z`, and nothing else that depends on y:
    printed, pickled or saved, it cannot give y back.
    """

    plan: Plan
    z: IntArray
    """(q,) noisy integer measurements: all that y left behind."""
    receipt: Receipt | None = None
    """Where the release stands in the ledger that paid for it."""
    labels: Labels = NONE
    """Title, units, source and date, for pictures and reports: see :meth:`labelled`."""

    @property
    def X_star(self) -> FloatArray:
        """(P, D) test points."""
        return self.plan.X_star

    @property
    def mean(self) -> FloatArray:
        """(P,) released predictions: the GP's posterior mean plus the privacy noise.

        For the `posterior` design, which has no unbiased answer, the same as ``predict(X_star)``.
        """
        m = self.plan.measurement
        centred = (self.z - m.midpoint).astype(np.float64) * m.step
        mean: FloatArray = self.plan.offset + self.plan.reconstruction @ centred
        return mean

    @property
    def noise_std(self) -> FloatArray:
        """(P,) std of the privacy noise in `mean`."""
        return self.plan.noise_std

    @property
    def noise_cov(self) -> FloatArray:
        """(P, P) covariance of the privacy noise in `mean`."""
        return self.plan.noise_cov

    @property
    def gp_std(self) -> FloatArray:
        """(P,) posterior std of the GP itself at X*, privacy noise not counted."""
        return self.plan.gp_std

    @property
    def kind(self) -> str:
        """What was released: predictions."""
        return self.plan.kind

    def released_at(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """The released numbers at `X`, which must be the test points, and the std of their privacy noise."""
        return self.mean, self.plan.released_noise(X)

    @property
    def unbiased(self) -> bool:
        """Whether `mean` is the GP's own mean plus noise, and not a denoised one."""
        return self.certificate.unbiased

    @property
    def certificate(self) -> Certificate:
        """The guarantee, and how it was reached."""
        return self.plan.certificate

    @cached_property
    def posterior(self) -> Posterior:
        """The GP given what was released: behind `predict`, `uncertainty` and `sample`."""
        released, columns = [(self.plan.measurement, self.z)], self.plan.columns
        return Posterior(self.plan.gp, self.plan.X, released, columns=columns)

    def predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool | float = False,
    ) -> Any:
        """Denoised predictions of f anywhere: free, deterministic, and without y.

        The Bayesian posterior of f given the released measurements, at planned test points or any
        others. Better than `mean` where the model is sensible, but shrunk towards the prior mean.

        Parameters
        ----------
        X : table or (n, D) array
            A table has the columns that the plan's had, by name and in any order. A level that was not there
            is predicted from the others.
        return_std, return_cov : bool
            Return the posterior std (n,) or covariance (n, n) too. It counts the GP's uncertainty and the
            privacy noise together; :meth:`uncertainty` takes them apart.
        include_noise : bool or float
            Add the observation noise, for intervals on a new outcome. Give its variance as a number
            if the model has one per row.

        Returns
        -------
        (n,) array, or a pair of arrays
        """
        return self.posterior.predict(
            X, return_std=return_std, return_cov=return_cov, include_noise=include_noise
        )

    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std at `X` by its causes: privacy noise, GP posterior, observation; and in total.

        `include_noise` as for :meth:`predict`: a variance, if the model has one per row.
        """
        return self.posterior.uncertainty(X, include_noise=include_noise)

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of f from its posterior, by public randomness; free."""
        return self.posterior.sample(X, n, seed)

    def save(self, path: str | os.PathLike[str], *, sign_with: Any = None) -> None:
        """Write the release file: all that an analyst or auditor needs, X included.

        Parameters
        ----------
        path : path
            Written whole or not at all; an existing file is replaced.
        sign_with : Ed25519 private key, optional
            From the `cryptography` package (extra ``sign``). The signature lets a reader check
            that the custodian made this file: see :func:`cloakgp.verify`.
        """
        atomic.write(path, encoding.encode(self.plan, self.z, self.receipt, sign_with, self.labels))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: Any = None, mean: Any = None) -> Release:
        """Read a release file. Nothing in it is executed.

        Parameters
        ----------
        path : path
        kernel : callable, optional
            The kernel, needed for new predictions if the file was made with a custom one, which
            no file can hold.
        mean : callable, optional
            The prior mean, needed for new predictions if it was a function of X, which no file can hold
            either: it has its values at X and at the test points only.
        """
        contents = encoding.read_contents(path, kernel, mean)
        if contents.kind != Plan.kind:
            raise ReleaseFileError(
                "path: this file holds a whole function; read it with FunctionRelease.load, or cloakgp.load."
            )
        return cls(Plan.from_contents(contents), contents.z, contents.receipt, contents.labels)

    def to_frame(self, *, level: float = 0.95, backend: str = "pandas") -> Any:
        """The test points as a table: the denoised prediction, its std and interval, and what was released.

        Parameters
        ----------
        level : float
            With which probability f lies from `lower` to `upper`, if the model is right.
        backend : {"pandas", "polars", "pyarrow"}
            Whose table it is; it must be installed.
        """
        mean, std = self.predict(self.X_star, return_std=True)
        numbers = showing.interval(mean, std, level) | {"released": self.mean, "noise_std": self.noise_std}
        return showing.frame(self.plan.columns, self.X_star, numbers, backend)

    def _repr_html_(self) -> str:
        facts = showing.facts(self.certificate, self.plan.columns, self.X_star, noise_std=self.noise_std)
        return showing.page("Release", facts, self.certificate.insecure)

    def __repr__(self) -> str:
        c, std = self.certificate, self.noise_std
        mark = "INSECURE " if c.insecure else ""
        return (
            f"<{mark}Release: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {len(std)} predictions, "
            f"noise std {std.min():.3g} to {std.max():.3g}>"
        )
