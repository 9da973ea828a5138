"""A plan to release the whole function, and that release: ask anywhere, after one spend."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloakgp.accounting import Gaussian
from cloakgp.checks import FloatArray, frozen
from cloakgp.files import atomic, schema
from cloakgp.files.container import ReleaseFileError
from cloakgp.files.labels import NONE, Labelled, Labels
from cloakgp.ledger.charge import Receipt
from cloakgp.measurements.certificate import Certificate
from cloakgp.measurements.lattice import IntArray, Measurement
from cloakgp.measurements.unit import check_unit
from cloakgp.model.prior_draws import draw_prior
from cloakgp.plans import encoding, plan_file, showing
from cloakgp.plans.base import PlanBase
from cloakgp.plans.question import Question, check_own, question_digest
from cloakgp.plans.remodelling import Remodelled
from cloakgp.posterior.conditioning import Posterior, Uncertainty
from cloakgp.posterior.links import batches
from cloakgp.rows.blas import one_blas_thread
from cloakgp.rows.columns import Columns, names_in
from cloakgp.rows.inputs import TableRows, as_points

if TYPE_CHECKING:
    from cloakgp.model.gp import GP


@dataclass(frozen=True, eq=False, repr=False)
class FunctionPlan(PlanBase["FunctionRelease"]):
    """A public plan to release f everywhere. Made by :meth:`GP.plan_function`."""

    kind: ClassVar[str] = schema.FUNCTION

    gp: GP
    X: FloatArray | None
    """The inputs; None where the plan is made not to show them."""
    points: FloatArray
    """Where the released function's kernels stand: some of X's rows, or the public basis."""
    measurement: Measurement
    reconstruction: FloatArray  # (n points, q)
    midpoint_measurements: IntArray
    """The measurements of y = midpoint of the bounds."""
    rkhs_sensitivity: float
    """How far one row of y, moving by 1, can move f in the kernel's own space (its RKHS)."""
    prior_seed: int | None
    """Seed of the public remainder of the prior draw, if that is added."""
    certificate: Certificate
    within: float | None = None
    """Correlation of the noise within a person, if the promise is to people."""
    columns: Columns | None = None
    """Names of the columns of X, and how levels and dates became numbers, if X was a table."""
    rows: TableRows | None = None
    """Which rows of the table count."""
    question: Question | None = None
    """What it was asked for; None if it was read from a file, and is not to be released from."""

    @one_blas_thread()
    def weights(self, X: Any) -> FloatArray:
        """(n, q): how f at `X` is made of the measurements."""
        X = as_points(X, "X", self.points.shape[1], self.columns)
        weights: FloatArray = np.asarray(self.gp.kernel(X, self.points)) @ self.reconstruction
        return weights

    @one_blas_thread()
    def noise_at(self, X: Any) -> FloatArray:
        """(n,) std of the privacy noise that a query at `X` will have; public and free."""
        X = as_points(X, "X", self.points.shape[1], self.columns)
        if self.prior_seed is None:
            std = np.empty(len(X))
            for rows in batches(len(X), len(self.points)):
                std[rows] = np.linalg.norm(self.weights(X[rows]), axis=1)
            return self.measurement.noise_scale * std
        prior: FloatArray = np.asarray(self.gp.kernel.diag(X))
        return self.rkhs_sensitivity * self.measurement.noise_scale * np.sqrt(prior)

    @property
    def shown_inputs(self) -> Any:
        """The inputs, or the public points that the function stands on where they are hidden."""
        return self.points if self.X is None else self.X

    @property
    def hides_inputs(self) -> bool:
        """Whether it is made not to show the inputs."""
        return self.X is None

    def released_noise(self, X: Any) -> FloatArray:
        """(n,) std of the privacy noise in what is released at `X`: the same as :meth:`noise_at`."""
        return self.noise_at(X)

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
        """SHA-256 of what the plan shows: the same settings and inputs give the same."""
        return encoding.digest(self._shown())

    @cached_property
    def question_digest(self) -> str:
        """SHA-256 of what is asked, of whom; the same on every machine, unlike :attr:`digest`."""
        return question_digest(self)

    def _check_own(self) -> None:
        check_own(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what the plan was asked for to a file, as :meth:`Plan.save` does."""
        atomic.write(path, plan_file.encode(self))

    def to_bytes(self) -> bytes:
        """All that an answer is read by, for the ledger; without the matrix where that would show X."""
        return encoding.encode_plan(self._shown())

    def _as_charged(self, contents: bytes) -> FunctionPlan:
        """The plan that was charged for; it was answered, so no y meets its matrix."""
        return replace(self.from_contents(encoding.charged_contents(contents)), rows=self.rows)

    def own_contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What its file holds that other kinds of plans have not: words, and arrays."""
        words = {
            "release": self.kind,
            "function": {"reach": self.rkhs_sensitivity, "prior_seed": self.prior_seed},
        }
        return words, {"centre": self.midpoint_measurements, "points": self.points}

    @classmethod
    def from_contents(cls, contents: encoding.Contents) -> FunctionPlan:
        """The plan that a file holds."""
        arrays, words = contents.arrays, contents.manifest["function"]
        assert isinstance(contents.measurement, Measurement)
        return cls(
            gp=contents.gp,
            X=arrays.get("X"),
            points=arrays["points"],
            measurement=contents.measurement,
            reconstruction=arrays["reconstruction"],
            midpoint_measurements=arrays["centre"],
            rkhs_sensitivity=words["reach"],
            prior_seed=words["prior_seed"],
            certificate=contents.certificate,
            within=contents.within,
            columns=contents.columns,
            rows=contents.rows,
        )

    def _measure(self, y: Any, missing: str) -> IntArray:
        from cloakgp.private.room import measure

        check_unit(self.certificate, self.measurement.unit)
        return self._shown_answer(
            measure(self.measurement, y, missing, self.rows, names=names_in(self.columns))
        )

    def _made_of(self, answer: IntArray, receipt: Receipt | None, insecure: bool) -> FunctionRelease:
        plan = replace(self._shown(), certificate=replace(self.certificate, insecure=insecure))
        return FunctionRelease(plan, answer, receipt)

    @one_blas_thread()
    def values(self, X: FloatArray, z: IntArray) -> FloatArray:
        """The function at `X` for these measurements: the same for an input whatever it is asked with."""
        coefficients = self.reconstruction @ self.heights(z)
        values = np.empty(len(X))
        for rows in batches(len(X), len(self.points)):
            covariances = np.asarray(self.gp.kernel(X[rows], self.points))
            values[rows] = np.einsum("ij,j->i", covariances, coefficients)  # row by row, unlike BLAS
            values[rows] += self.gp.level + self.remainder(X[rows])
        return values

    def heights(self, z: IntArray) -> FloatArray:
        """The measurements less what the prior mean predicts for them, in y's unit."""
        low, high = self.gp.one_pair("a function release")
        m = self.measurement
        shift = low + (high - low) / 2 - self.gp.level
        middle = self.midpoint_measurements
        sums = np.ldexp(middle.astype(np.float64), -(m.y_bits - 1 + m.matrix_bits))  # B 1
        result: FloatArray = (z - middle).astype(np.float64) * m.step + sums * shift
        return result

    def _shown(self) -> FunctionPlan:
        """The plan as published: without its matrix, which shows X, where X is not to be shown."""
        if self.X is not None:
            return self
        bare = replace(self.measurement, matrix=frozen(self.measurement.matrix[:, :0]))
        nothing = frozen(np.zeros_like(self.midpoint_measurements))
        return replace(self, measurement=bare, midpoint_measurements=nothing)

    def _shown_answer(self, z: IntArray) -> IntArray:
        """z as published: about the prior mean, where the middle of the bounds would show X."""
        if self.X is not None:
            return z
        moved: IntArray = np.rint(self.heights(z) / self.measurement.step).astype(np.int64)
        return moved

    def remainder(self, X: FloatArray) -> FloatArray:
        """The public part of the noise at `X`: zero unless `prior_noise` was asked for.

        A draw of the prior less its projection on the points, which the measurements carry already.
        """
        if self.prior_seed is None:
            return np.zeros(len(X))
        draw = draw_prior(self.gp.kernel, self.points.shape[1], self.prior_seed)
        inverse_root = self.reconstruction / self.rkhs_sensitivity  # R^-1
        fitted = inverse_root @ (inverse_root.T @ draw(self.points))
        rest = draw(X) - np.asarray(self.gp.kernel(X, self.points)) @ fitted
        values: FloatArray = self.rkhs_sensitivity * self.measurement.noise_scale * rest
        return values

    def to_frame(self, X: Any = None, *, backend: str = "pandas") -> Any:
        """Inputs as a table with the std of the privacy noise there: those given, or the function's points.

        `backend` is "pandas", "polars" or "pyarrow"; it must be installed.
        """
        X = self.points if X is None else as_points(X, "X", self.points.shape[1], self.columns)
        return showing.frame(self.columns, X, {"noise_std": self.noise_at(X)}, backend)

    def _repr_html_(self) -> str:
        facts = showing.facts(self.certificate, self.columns, noise_std=self.noise_at(self.points))
        return showing.page("Plan of a whole function", facts | {"bound": self.certificate.bound}, False)

    def __repr__(self) -> str:
        c = self.certificate
        return (
            f"<FunctionPlan: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {c.bound} bound, "
            f"{c.n_rows} rows, {c.n_measurements} measurements>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class FunctionRelease(Remodelled, Labelled):
    """A function that may be published whole. Made by :meth:`FunctionPlan.release`."""

    plan: FunctionPlan
    z: IntArray
    """(q,) noisy integer measurements: all that y left behind."""
    receipt: Receipt | None = None
    """Where the release stands in the ledger that paid for it."""
    labels: Labels = NONE
    """Title, units, source and date, for pictures and reports: see :meth:`labelled`."""

    def query(self, X: Any, *, return_std: bool = False) -> Any:
        """The released function at `X`, with the std of its privacy noise if asked.

        Any number of queries, in any order, cost nothing and agree with each other: they are
        values of one function.
        """
        X = as_points(X, "X", self.plan.points.shape[1], self.plan.columns)
        values = self.plan.values(X, self.z)
        return (values, self.plan.noise_at(X)) if return_std else values

    @property
    def kind(self) -> str:
        """What was released: a function."""
        return self.plan.kind

    def released_at(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """The released function at `X`, and the std of its privacy noise."""
        values, std = self.query(X, return_std=True)
        return values, std

    @property
    def certificate(self) -> Certificate:
        """The guarantee, and how it was reached."""
        return self.plan.certificate

    @cached_property
    def posterior(self) -> Posterior:
        """The GP given what was released: behind `predict`, `uncertainty` and `sample`."""
        if self.plan.X is None:
            raise ValueError(
                "predict: denoised predictions need the inputs X, which this release does not show. "
                "Use query."
            )
        released, columns = [(self.plan.measurement, self.z)], self.plan.columns
        return Posterior(self.plan.gp, self.plan.X, released, columns=columns)

    def predict(self, X: Any, **options: Any) -> Any:
        """Denoised predictions, as for :meth:`Release.predict`."""
        return self.posterior.predict(X, **options)

    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std at `X` by its causes, for denoised predictions."""
        return self.posterior.uncertainty(X, include_noise=include_noise)

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of f from its posterior, by public randomness; free."""
        return self.posterior.sample(X, n, seed)

    def to_frame(self, X: Any = None, *, backend: str = "pandas") -> Any:
        """Inputs as a table with the released function there and the std of its privacy noise.

        Parameters
        ----------
        X : table or (n, D) array, optional
            Where it is asked, free; at its own points if absent.
        backend : {"pandas", "polars", "pyarrow"}
            Whose table it is; it must be installed.
        """
        columns, points = self.plan.columns, self.plan.points
        X = points if X is None else as_points(X, "X", points.shape[1], columns)
        values, std = self.released_at(X)
        return showing.frame(columns, X, {"released": values, "noise_std": std}, backend)

    def _repr_html_(self) -> str:
        noise = self.plan.noise_at(self.plan.points)
        facts = showing.facts(self.certificate, self.plan.columns, noise_std=noise)
        return showing.page("Release of a whole function", facts, self.certificate.insecure)

    def save(self, path: str | os.PathLike[str], *, sign_with: Any = None) -> None:
        """Write the release file, as for :meth:`Release.save`."""
        atomic.write(path, encoding.encode(self.plan, self.z, self.receipt, sign_with, self.labels))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: Any = None) -> FunctionRelease:
        """Read a release file, as for :meth:`Release.load`."""
        contents = encoding.read_contents(path, kernel)
        if contents.kind != FunctionPlan.kind:
            raise ReleaseFileError("path: this file holds predictions; read it with Release.load.")
        return cls(FunctionPlan.from_contents(contents), contents.z, contents.receipt, contents.labels)

    def __repr__(self) -> str:
        c = self.certificate
        mark = "INSECURE " if c.insecure else ""
        return (
            f"<{mark}FunctionRelease: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {c.n_rows} rows, "
            f"{c.n_measurements} measurements>"
        )
