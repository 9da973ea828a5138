"""Many plans over the same inputs and test points: what does not depend on the promise is done once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace

from cloakgp import calibration as calibrate
from cloakgp import checks, designs
from cloakgp.checks import FloatArray, frozen
from cloakgp.designs.any_noise import AnyNoise
from cloakgp.designs.posterior import denoising
from cloakgp.designs.solution import Solution
from cloakgp.errors import Argument, Message
from cloakgp.files.schema import is_custom
from cloakgp.measurements.certificate import certify
from cloakgp.measurements.lattice import Limits, to_integers
from cloakgp.measurements.unit import OUTCOME, PERSON, Unit
from cloakgp.model.arrays import Array, column_dots, like, on_host
from cloakgp.model.build import OnDevice, on_torch, smoother_for, torch_device
from cloakgp.model.leverage import downweighted
from cloakgp.model.smoothers import Rescaled, Smoother, blocks, diagonal
from cloakgp.model.windows import check_variance
from cloakgp.plans import out_of_core
from cloakgp.plans.comparison import Comparison, compare
from cloakgp.plans.out_of_core import Survey, plan_streamed, survey
from cloakgp.plans.predictions import Plan
from cloakgp.plans.preview import Foreseen, Preview, preview
from cloakgp.plans.question import Question, attach, table_options
from cloakgp.plans.reconstruction import largest_bias, noise_objective, offset, relative_weights
from cloakgp.progress import Progress
from cloakgp.rows.blas import blas_threads, one_blas_thread
from cloakgp.rows.inputs import PublicInputs, as_points, named
from cloakgp.rows.merging import Inputs, distinct
from cloakgp.rows.people import as_within, for_people
from cloakgp.rows.sources import as_source, is_lazy

if TYPE_CHECKING:
    from cloakgp.model.gp import GP


class Planner:
    """Plans for one model, X and X*, for any promise and design. Made by :meth:`GP.planner`.

    The covariances and their factor are computed once and kept (N^2 numbers), and so are the noise
    designs that do not depend on the promise.
    """

    def __init__(
        self,
        gp: GP,
        inputs: PublicInputs,
        X_star: Any,
        weights: Any = None,
        device: Any = None,
        within: float = 1.0,
    ) -> None:
        self.columns, self.rows = inputs.columns, inputs.rows
        gp = gp.for_columns(self.columns)
        self._model, self._weights = gp, weights
        if gp.inducing is not None and on_torch(device, inputs.X, X_star):
            name = Argument("device")
            raise ValueError(
                Message(name, ": a GP with inducing inputs runs on the processor; leave ", name, " out.")
            )
        self.device, X, X_star = torch_device(device, inputs.X, X_star)
        self.X = as_source(X, "X")
        self.X_star = as_points(X_star, "X_star", self.X.shape[1], self.columns)
        gp.check_rows(len(self.X))
        self.people = inputs.shared(len(self.X))
        self.within = as_within(within)
        self.gp = gp.with_inducing(self.X).at_rows(self.X, self.X_star)
        self._alike = self.gp.noise if isinstance(gp.noise, float) and gp.downweight is None else None
        if self.people is not None:
            self.gp = replace(self.gp, noise=for_people(self.gp.noise, self.people, self.within))
        if weights is None:
            weights = np.ones(len(self.X_star))
        remedy = "To ignore a test point, leave it out of X_star."
        weights = checks.vector(weights, "weights", len(self.X_star), positive=True, remedy=remedy)
        self.weights = frozen(relative_weights(weights))
        if is_lazy(self.X) and not self.streamed:  # held whole, so that it cannot be changed behind a plan
            self.X = checks.matrix(np.asarray(self.X[:]), "X")
            self.__dict__.pop("inputs", None)
        if self.gp.downweight is not None:
            with self._threads():
                self.gp = downweighted(self.gp, self.inputs, self.device)
            self.__dict__.pop("inputs", None)
        self.solved: dict[tuple[str, float, str], Solution] = {}  # by design, gap and pilot
        self.last: dict[str, Plan] = {}  # of each design, for previews
        self.foreseen: dict[str, tuple[Plan, Foreseen]] = {}

    @cached_property
    def inputs(self) -> Inputs:
        """X without its repetitions."""
        return distinct(self.X, self.gp.noise, self.gp.windows)

    @property
    def streamed(self) -> bool:
        """Whether there are too many rows for a matrix that has a column for each, whatever the design."""
        return self._entries > out_of_core.DENSE * out_of_core.LARGER

    def in_passes(self, design: str) -> bool:
        """Whether a plan's measurement is a recipe."""
        dear = design == "posterior" or is_custom(self.gp.kernel.to_spec())
        return self.streamed if dear else self._entries > out_of_core.DENSE

    @property
    def _entries(self) -> int:
        """Of a matrix that is written down; none where there must be one."""
        if self.gp.inducing is None:
            return 0
        return len(self.inputs) * min(len(self.X_star), len(np.atleast_1d(self.gp.inducing)))

    @cached_property
    def survey(self) -> Survey:
        """What a first pass over many rows tells."""
        return survey(self)

    @cached_property
    def smoother(self) -> Smoother:
        """How y becomes predictions."""
        outcome_std = max(self.widest, float(np.sqrt(np.min(self.inputs.variances))))
        for points in (self.inputs.X, self.X_star):
            check_variance(diagonal(self.gp.kernel, points), outcome_std)
        return smoother_for(self.gp, self.inputs, self.X_star, self.device)

    @cached_property
    def bounds(self) -> tuple[Limits, Limits]:
        """Of all rows, or of each distinct one."""
        low, windows = self.gp.bounds[0], self.inputs.windows
        if isinstance(low, float) or windows is None:
            return self.gp.limits
        return frozen(windows[:, 0]), frozen(windows[:, 1])

    @property
    def widest(self) -> float:
        """The width of the bounds; of the widest, where rows have their own."""
        return float(np.max(self.bounds[1] - self.bounds[0]))

    @cached_property
    def rows_of_each(self) -> FloatArray | None:
        """(U,) how many rows the person has whose row each distinct one is; None if everybody has one."""
        if self.people is None or self.people.most_rows == 1:
            return None
        if self.inputs.groups is None:
            return self.people.own.astype(np.float64)
        most = np.ones(len(self.inputs))  # with within=0, rows of different people's may be equal
        np.maximum.at(most, self.inputs.groups.labels, self.people.own)
        return most

    def rows_by_noise(self, variances: FloatArray) -> FloatArray | float:
        """(n,) the same of rows that have these noise variances; 1 where that does not tell."""
        if self.people is None or self._alike is None or not self.within:
            return 1.0
        return np.asarray(1 + np.rint((variances / self._alike - 1) / self.within))

    @cached_property
    def scaled(self) -> Smoother:
        """How outcomes become predictions if each is in units of its own bounds' width.

        Times how many rows its person has: then a design that limits columns to 1 limits them to 1 over that
        in units of the bounds, and all of one person's together to 1.
        """
        widths, k = np.asarray(self.bounds[1] - self.bounds[0]), self.rows_of_each
        if widths.ndim == 0 and k is None:
            return self.smoother
        units = np.broadcast_to(widths / self.widest, len(self.inputs))
        return Rescaled(self.smoother, units if k is None else units * k)

    @named
    def plan(
        self,
        *,
        epsilon: float,
        delta: float | None = None,
        design: str = "mse",
        calibration: str = "analytic",
        gap: float = 0.01,
    ) -> Plan:
        """A plan, as :meth:`GP.plan` makes it."""
        n = len(self.X) if self.people is None else self.people.n_people
        epsilon, delta = calibrate.promise(epsilon, delta, n)
        gap = checks.positive(gap, "gap")
        checks.choice(design, "design", designs.DESIGNS)
        # Refuses a bad promise before the heavy work.
        expected_mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(self.X_star))
        made = self._planned(epsilon, delta, design, calibration, gap, expected_mu)
        asked = {"epsilon": epsilon, "delta": delta, "design": design, "calibration": calibration, "gap": gap}
        of_table = table_options(self.people, self.within, self.columns, self.rows)
        points = {"X_star": self.X_star, "weights": self._weights}
        device = None if self.device is None else str(self.device)
        attach(made, Question(self._model, "plan", {**points, **asked, "device": device, **of_table}))
        self.last[design] = made
        return made

    @named
    def preview(
        self,
        *,
        epsilon: float,
        delta: float | None = None,
        design: str = "mse",
        calibration: str = "analytic",
    ) -> Preview:
        """About what a plan for another promise would have, fast: noise and expected error, no integers.

        It rests on the last plan of that design, and makes one only where there is none. Nothing can be
        released from it, and no plan depends on it.

        Parameters
        ----------
        epsilon, delta, design, calibration
            As for :meth:`plan`.

        Returns
        -------
        Preview
            With `noise_std`, `expected_error` and `gp_std` at the test points.
        """
        with one_blas_thread():
            return preview(self, epsilon, delta, design, calibration)

    def _planned(
        self, epsilon: float, delta: float, design: str, calibration: str, gap: float, expected_mu: float
    ) -> Plan:
        if self.in_passes(design):
            return plan_streamed(self, epsilon, delta, design, calibration, gap)
        with self._threads():
            return self._written_down(epsilon, delta, design, calibration, gap, expected_mu)

    def _threads(self) -> AbstractContextManager[None]:
        """Those of BLAS. With inducing inputs no matrix has as many rows and columns as X has rows."""
        return blas_threads(len(self.inputs) if self.gp.inducing is None else 0)

    def _written_down(
        self, epsilon: float, delta: float, design: str, calibration: str, gap: float, expected_mu: float
    ) -> Plan:
        """With a measurement that is a matrix."""
        pieces = list(blocks(len(self.inputs)))
        with Progress("model, design, measurements", 2 + len(pieces)) as progress:
            gp, smoother = self.gp, self.smoother
            progress.advance()
            expected_variance = (self.widest / expected_mu) ** 2
            solution, parts = self._solution(design, gap, expected_variance), []
            progress.advance()
            for block in pieces:
                parts.append(on_host(solution.columns(self.scaled, block)))
                progress.advance()
        reduce, B, solution = solution.reduce, np.hstack(parts), solution.on_host()
        if self.rows_of_each is not None:
            B = B / self.rows_of_each
        smoother = smoother.on_host() if isinstance(smoother, OnDevice) else smoother
        mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(B))
        more: Any = {"groups": self.inputs.groups, "people": self.people, "any_near": not solution.unbiased}
        measurement = to_integers(B, self.bounds, epsilon, delta, mu, **more)
        noise_variance = measurement.noise_scale**2
        left: Array | None = None
        if solution.unbiased:
            reconstruction = frozen(solution.reconstruction)
            objective = noise_objective(
                design, self.weights_for(design), reconstruction, measurement.noise_scale
            )
        else:
            gain, left = denoising(self.smoother, measurement.real_matrix(), noise_variance)
            reconstruction = frozen(on_host(gain))
            objective = float(self.weights @ on_host(left) / self.weights.sum())
        # With people the lower bound is that of designs with columns so limited, and the same noise.
        # Of denoised ones it grows with the noise, but more slowly.
        proved = noise_variance if solution.unbiased else min(noise_variance, expected_variance)
        certificate = certify(
            measurement,
            calibration,
            self.unit,
            design=design,
            bound="exact",
            objective=objective,
            lower_bound=solution.lower_bound * proved,
            iterations=solution.iterations,
            status=solution.status,
            jitter=smoother.jitter,
            bias=largest_bias(gp, smoother, measurement, reconstruction),
            unbiased=solution.unbiased,
        )
        plan = Plan(
            gp=gp,
            X=self.X,
            X_star=self.X_star,
            weights=self.weights_for(design),
            measurement=measurement,
            reconstruction=reconstruction,
            offset=frozen(offset(gp, measurement, reconstruction)),
            gp_std=frozen(np.sqrt(smoother.posterior_variance)),
            certificate=certificate,
            within=None if self.people is None else self.within,
            columns=self.columns,
            rows=self.rows,
        )
        if self.device is not None:  # where the kernel's matrix is still at hand
            plan.__dict__["expected_error"] = self._expected_error(reduce, noise_variance, left)
        return plan

    def _expected_error(self, reduce: Array | None, noise_variance: float, left: Array | None) -> FloatArray:
        """The plan's, where the smoother is: `reduce` C is measured, or it is known what is left."""
        smoother = self.smoother
        if left is None:
            assert reduce is not None
            # C times the kernel's matrix is what f(X*) has in common with y: no need of that matrix.
            common = sum(smoother.columns(block) @ smoother.cross[block] for block in blocks(smoother.n_rows))
            H = reduce @ common
            noise = like(H, noise_variance * np.eye(len(H)))
            known = array_namespace(H).linalg.solve(H @ reduce.T + noise, H)
            left = smoother.explained_variance - column_dots(H, known)
        return frozen(np.sqrt(np.maximum(on_host(smoother.posterior_variance + left), 0.0)))

    @named
    def compare(
        self,
        *,
        epsilon: float,
        delta: float | None = None,
        designs: Sequence[str] | None = None,
        calibration: str = "analytic",
        gap: float = 0.01,
    ) -> Comparison:
        """Plans of several designs side by side, as :meth:`GP.compare` makes them."""
        promise = {"epsilon": epsilon, "delta": delta, "calibration": calibration, "gap": gap}
        return compare(self, designs, **promise)

    @property
    def unit(self) -> Unit:
        """What the promise is to."""
        return OUTCOME if self.people is None else PERSON

    def weights_for(self, design: str) -> FloatArray:
        """The weights that a design looks at: `volume` looks at none."""
        return frozen(np.ones_like(self.weights)) if design == "volume" else self.weights

    def _solution(self, design: str, gap: float, noise_variance: float) -> Solution:
        """The design; only `posterior` depends on the noise to come."""
        if design == "posterior":
            return self._posteriors.solve(gap, noise_variance)
        if (design, gap, "") not in self.solved:
            weights = self.weights_for(design)
            self.solved[design, gap, ""] = designs.solve(design, self.scaled, weights, gap, noise_variance)
        return self.solved[design, gap, ""]

    @cached_property
    def _posteriors(self) -> AnyNoise:
        return AnyNoise(self.scaled, self.weights, self.widest**2)

    def __repr__(self) -> str:
        return f"<Planner: {self.gp!r}, {len(self.X)} rows, {len(self.X_star)} test points>"
