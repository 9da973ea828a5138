"""Plans of one stage, for a model that is set: of predictions at test points, or of the whole function.

Of many plans over the same inputs and test points, what does not depend on the promise is done once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpstrf

from cloakgp import designs
from cloakgp.core import calibration as calibrate
from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import Argument, ArgumentError, Message
from cloakgp.core.progress import Progress
from cloakgp.data.blas import blas_threads, one_blas_thread
from cloakgp.data.cells import Cells, make_cells, told_apart
from cloakgp.data.inputs import PublicInputs, as_points, named
from cloakgp.data.merging import Inputs, distinct
from cloakgp.data.people import for_people
from cloakgp.data.sources import as_source, is_lazy
from cloakgp.designs import DESIGNS, VOLUME
from cloakgp.designs.any_noise import AnyNoise
from cloakgp.designs.posterior import denoising
from cloakgp.designs.solution import Solution
from cloakgp.measure.certificate import CLOSED_FORM, certify_one, designed
from cloakgp.measure.measurement import measurement_of
from cloakgp.measure.statistics import Inside, Limits
from cloakgp.model.arrays import Array, column_dots, like, on_host
from cloakgp.model.gp import GaussianProcess, downweighted, on_torch, smoother_for, torch_device
from cloakgp.model.inducing import scale_of
from cloakgp.model.smoothers import Rescaled, Smoother, blocks, check_covariance, gentle_cholesky, sites
from cloakgp.model.windows import check_variance
from cloakgp.posterior.conditioning import links
from cloakgp.release import showing
from cloakgp.release.plan import Plan, plan_alone
from cloakgp.release.readouts import (
    FUNCTION,
    Function,
    Means,
    largest_bias,
    noise_objective,
    offset,
    relative_weights,
    rows_of_function,
)
from cloakgp.release.settings import Settings

BOUNDS = ("exact", "infinity", "paper", "input-free", "varah")
HIDES_INPUTS = ("input-free", "varah")
"""Bounds on how far one row can move a function that do not look at the inputs."""
UNBIASED = 1e-3  # share of the bounds' width up to which a function counts as the GP's own mean
_RANK_CUT = 1e-11  # relative to the largest k(x, x)


@dataclass(frozen=True, eq=False)
class Preview:
    """What to expect of a plan, about: its own numbers differ by what rounding to integers does."""

    noise_std: FloatArray
    """(P,) std of the privacy noise in what is released at each test point."""
    expected_error: FloatArray
    """(P,) std of what a reader's predictions will be off by."""
    gp_std: FloatArray
    """(P,) the GP's own std."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Plans for the same promise that differ in their design. Made by :meth:`GP.compare`; print it.

    What is released has privacy noise; what a reader uses is denoised. Designs differ in both, and only the
    second is worth comparing them by.
    """

    plans: dict[str, Plan]
    """By design."""

    @property
    def best(self) -> str:
        """The design whose predictions have the least mean squared error."""
        return min(self.plans, key=lambda design: _rms(self.plans[design], "expected_error"))

    def table(self) -> dict[str, list[Any]]:
        """A column of designs, and for each what to expect of it over the test points."""
        return {
            "design": list(self.plans),
            "expected_error": [_rms(plan, "expected_error") for plan in self.plans.values()],
            "worst_expected_error": [float(plan.expected_error.max()) for plan in self.plans.values()],
            "noise_std": [_rms(plan, "noise_std") for plan in self.plans.values()],
            "worst_noise_std": [float(plan.noise_std.max()) for plan in self.plans.values()],
            "unbiased": [plan.certificate.unbiased for plan in self.plans.values()],
        }

    @property
    def without_privacy(self) -> float:
        """Root mean square of the error that would remain if y itself were published."""
        return _rms(next(iter(self.plans.values())), "gp_std")

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """The same as a table of pandas, polars or pyarrow."""
        return showing.framed({name: np.array(values) for name, values in self.table().items()}, backend)

    def lines(self) -> list[list[str]]:
        """The table in words, a heading first."""
        head = ["design", "expected error", "at worst", "released noise", "at worst"]
        each = zip(*list(self.table().values())[:5], strict=True)
        return [head] + [[name, *(f"{number:.4g}" for number in numbers)] for name, *numbers in each]

    @property
    def notes(self) -> list[str]:
        """What is to be said about the table."""
        return [
            f"Least expected error: {self.best}. Without privacy it would be {self.without_privacy:.4g}.",
            "Expected error is of the denoised prediction, privacy and model together, if the model is "
            "right; released noise is of the released mean.",
        ]

    def __str__(self) -> str:
        rows = self.lines()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        shown = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*(line.rstrip() for line in shown), *self.notes])

    def _repr_html_(self) -> str:
        return showing.html(self)

    def __repr__(self) -> str:
        return f"<Comparison: {', '.join(self.plans)}; least expected error: {self.best}>"


def _rms(plan: Plan, name: str) -> float:
    values: FloatArray = getattr(plan, name)
    return float(np.sqrt(np.average(values**2, weights=plan.weights)))


class Foreseen:
    """What a plan's reader is to expect, whatever the promise: all but the size of the noise."""

    def __init__(self, plan: Plan, X_star: FloatArray) -> None:
        found = links(plan.gp, plan.inputs, plan.measurement.real_matrix())
        self.plan, self.known = plan, plan.gp.kernel.diag(X_star)
        self.covariance, self.cross = found.covariance, found.at(X_star)

    def noise_for(self, epsilon: float, delta: float, calibration: str = "analytic") -> float:
        """Std of the noise that the plan's measurements would need for another promise."""
        m = self.plan.measurement
        wanted = calibrate.calibrate(epsilon, delta, calibration, m.n_measurements)
        return float(m.noise_scale * m.mu() / wanted)

    def read(self, scale: float) -> tuple[FloatArray, FloatArray]:
        """(P, q) how a reader weighs measurements with such noise; and (P,) std of what is left unknown."""
        noisy = self.covariance + scale**2 * np.eye(len(self.covariance))
        gain = np.asarray(np.linalg.solve(noisy, self.cross.T).T, dtype=np.float64)
        left = self.known - np.einsum("ij,ij->i", self.cross, gain)
        return gain, frozen(np.sqrt(np.maximum(left, 0.0)))


class Planner:
    """Plans for one model, X and X*, for any promise and design. Made by :meth:`GP.planner`.

    The covariances and their factor are computed once and kept (N^2 numbers), and so are the noise
    designs that do not depend on the promise.
    """

    def __init__(self, gp: GaussianProcess, table: PublicInputs, chosen: Settings) -> None:
        self.columns, self.rows = table.columns, table.rows
        gp = gp.for_columns(self.columns)
        self.chosen, X, X_star, device = chosen, table.X, chosen.at, chosen.device
        if gp.inducing is not None and on_torch(device, X, X_star):
            name = Argument("device")
            raise ValueError(
                Message(name, ": a GP with inducing inputs runs on the processor; leave ", name, " out.")
            )
        self.device, X, X_star = torch_device(device, X, X_star)
        self.X = as_source(X, "X")
        self.X_star = as_points(X_star, "X_star", self.X.shape[1], self.columns)
        gp.check_rows(len(self.X))
        self.people = table.shared(len(self.X))
        gp = gp.with_inducing(self.X).at_rows(self.X, self.X_star)
        if self.people is not None:
            gp = replace(gp, noise=for_people(gp.noise, self.people, chosen.within))
        self.gp, self.cells, self.inputs = self._as_seen(gp)
        self.weights = relative_weights(chosen.weights, len(self.X_star))
        self.solved: dict[tuple[str, float], Solution] = {}  # by design and gap
        self.last: dict[str, Plan] = {}  # of each design, for previews
        self._foreseen: dict[str, Foreseen] = {}

    def _as_seen(self, gp: GaussianProcess) -> tuple[GaussianProcess, Cells | None, Inputs]:
        """The model, and what it sees of X: its distinct rows, or with inducing inputs cells of very many."""
        sparse, cells = gp.inducing is not None, None
        inputs = (told_apart if sparse else distinct)(self.X, gp.noise, gp.windows)
        if inputs is None:
            categories = gp.kernel.category_columns(self.X.shape[1])
            cells = make_cells(self.X, self.people, categories, partial(scale_of, gp.kernel))
            gp = gp.at_cells(cells)
            inputs = gp.seen_in(cells)
        elif is_lazy(self.X):  # held whole, so that it cannot be changed behind a plan
            self.X = checks.matrix(np.asarray(self.X[:]), "X")
            inputs = inputs if inputs.groups is not None else replace(inputs, X=self.X)
        if gp.downweight is not None:
            with blas_threads(0 if sparse else len(inputs)):
                gp = downweighted(gp, inputs, self.device)
            inputs = replace(inputs, noise=gp.noise_of(inputs.groups))
        return gp, cells, inputs

    @cached_property
    def smoother(self) -> Smoother:
        """How y becomes predictions."""
        outcome_std = max(self.widest, float(np.sqrt(np.min(self.inputs.variances))))
        for points in (self.inputs.X, self.X_star):
            check_variance(self.gp.kernel.diag(points), outcome_std)
        return smoother_for(self.gp, self.inputs, self.X_star, self.device)

    @cached_property
    def bounds(self) -> tuple[Limits, Limits]:
        """Of all rows, or of each distinct one."""
        return self.gp.limits_of(self.inputs)

    @property
    def widest(self) -> float:
        """The width of the bounds; of the widest, where rows have their own."""
        return float(np.max(self.bounds[1] - self.bounds[0]))

    @cached_property
    def rows_of_each(self) -> FloatArray | None:
        """(U,) how many rows the person has whose row each distinct one is; None if everybody has one."""
        if self.cells is not None or self.people is None:
            return None if self.cells is None else self.cells.own
        return self.people.rows_at(self.inputs.groups)

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
        epsilon, delta = self._promise(epsilon, delta)
        device = None if self.device is None else str(self.device)
        asked: Any = {"epsilon": epsilon, "delta": delta, "design": design, "calibration": calibration}
        chosen = replace(self.chosen, **asked, gap=checks.positive(gap, "gap"), device=device)
        checks.choice(design, "design", DESIGNS)
        # Refuses a bad promise before the heavy work.
        expected_mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(self.X_star))
        # With inducing inputs no matrix has as many rows and columns as X has rows.
        with blas_threads(len(self.inputs) if self.gp.inducing is None else 0):
            made = self.last[design] = chosen.attach(self._planned(chosen, expected_mu))
        return made

    def _promise(self, epsilon: float, delta: float | None) -> tuple[float, float]:
        """With the delta that is common for so many rows, or people, if there is none."""
        return calibrate.promise(epsilon, delta, len(self.X) if self.people is None else self.people.n_people)

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

        It rests on the last plan of that design, and makes one only where there is none: `mse`, `max` and
        `volume` are the same measurements for every promise; for `posterior` those of the last plan are near
        the best for a promise near the last. Nothing can be released from it, and no plan depends on it.

        Parameters
        ----------
        epsilon, delta, design, calibration
            As for :meth:`plan`.

        Returns
        -------
        Preview
            With `noise_std`, `expected_error` and `gp_std` at the test points.
        """
        checks.choice(design, "design", DESIGNS)
        epsilon, delta = self._promise(epsilon, delta)
        plan = self.last.get(design)
        if plan is None:
            plan = self.plan(epsilon=epsilon, delta=delta, design=design, calibration=calibration)
        with one_blas_thread():
            foreseen = self._foreseen.get(design)
            if foreseen is None or foreseen.plan is not plan:
                foreseen = self._foreseen[design] = Foreseen(plan, plan.X_star)
            scale = foreseen.noise_for(epsilon, delta, calibration)
            gain, error = foreseen.read(scale)
            released = plan.reconstruction if plan.certificate.unbiased else gain
            noise = frozen(scale * np.linalg.norm(released, axis=1))
        return Preview(noise, error, plan.gp_std)

    def _planned(self, chosen: Settings, expected_mu: float) -> Plan:
        design, calibration = chosen.design, chosen.calibration
        pieces = list(blocks(len(self.inputs)))
        with Progress("model, design, measurements", 2 + len(pieces)) as progress:
            gp, smoother = self.gp, self.smoother
            progress.advance()
            expected_variance = (self.widest / expected_mu) ** 2
            solution, parts = self._solution(design, chosen.gap, expected_variance), []
            progress.advance()
            for block in pieces:
                parts.append(on_host(solution.columns(self.scaled, block)))
                progress.advance()
        reduce, B, solution = solution.reduce, np.hstack(parts), solution.on_host()
        if self.rows_of_each is not None:
            B = B / self.rows_of_each
        smoother = smoother.on_host() if hasattr(smoother, "on_host") else smoother
        epsilon, delta = chosen.epsilon, chosen.delta
        mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(B))
        more: Any = {"groups": self.inputs.groups, "people": self.people, "any_near": not solution.unbiased}
        measurement = measurement_of(B, Inside(*self.bounds), epsilon, delta, mu, **more)
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
        part = designed(
            measurement,
            bound="exact",
            objective=objective,
            lower_bound=solution.lower_bound * proved,
            iterations=solution.iterations,
            status=solution.status,
            jitter=smoother.jitter,
            bias=largest_bias(gp, smoother, measurement, reconstruction),
        )
        gp_std = frozen(np.sqrt(smoother.posterior_variance))
        readout = Means(reconstruction, frozen(offset(gp, measurement, reconstruction)), gp_std)
        how: Any = {"calibration": calibration, "design": design, "unbiased": solution.unbiased}
        where: Any = {"X": self.X, "inputs": self.inputs, "cells": self.cells, "X_star": self.X_star}
        where |= {"weights": self.weights_for(design), "within": chosen.within}
        where |= {"columns": self.columns, "rows": self.rows}
        plan = plan_alone(gp, measurement, readout, certify_one(measurement, mu, part, **how), **where)
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
    def compare(self, *, designs: Sequence[str] | None = None, **promise: Any) -> Comparison:
        """Plans of several designs side by side; `promise` has other arguments of :meth:`plan`."""
        wanted = DESIGNS if designs is None else [checks.choice(one, "designs", DESIGNS) for one in designs]
        if not wanted:
            raise ArgumentError(
                "designs", "must name at least one", remedy=f"There are {', '.join(DESIGNS)}."
            )
        plans: dict[str, Plan] = {}
        with Progress("comparing designs", len(wanted)) as progress:
            for design in wanted:
                plans[design] = self.plan(design=design, **promise)
                progress.advance()
        return Comparison(plans)

    def weights_for(self, design: str) -> FloatArray:
        """The weights that a design looks at; the volume of noise has none."""
        weighs = DESIGNS[design].objective != VOLUME
        return self.weights if weighs else frozen(np.ones_like(self.weights))

    def _solution(self, design: str, gap: float, noise_variance: float) -> Solution:
        """The design; only `posterior` depends on the noise to come."""
        if design == "posterior":
            return self._posteriors.solve(gap, noise_variance)
        if (design, gap) not in self.solved:
            weights = self.weights_for(design)
            self.solved[design, gap] = designs.solve(design, self.scaled, weights, gap, noise_variance)
        return self.solved[design, gap]

    @cached_property
    def _posteriors(self) -> AnyNoise:
        return AnyNoise(self.scaled, self.weights, self.widest**2)


# The whole function


def make_function_plan(gp: GaussianProcess, chosen: Settings, table: PublicInputs) -> Plan:
    """The whole function, to be asked anywhere, and as often as anybody likes, after one spend.

    The GP's posterior mean lies in the span of k(., x_i), so the whole function is one more set of
    measurements of y (lemma 7 of ``docs/proofs.md``). With Z the inputs that span it (chosen by pivoted
    Cholesky: far fewer than N for a smooth kernel) and K_ZZ = R'R,

        B = R^-T K_ZX (Kff + S)^-1,      f(x) = m0 + k(x, Z) R^-1 B (y - m0),

    and the norm of column i of B is how far row i of y can move the function in the kernel's own
    space: the sensitivity of the paper's "standard" method, exactly, where the paper has bounds.
    """
    gp.check_real("a function release")
    if gp.inducing is not None:
        raise ValueError(
            "inducing: a function release needs an exact GP. Leave inducing out, or use plan(), whose "
            "release also predicts anywhere."
        )
    bound, calibration = checks.choice(chosen.bound, "bound", BOUNDS), chosen.calibration
    X, basis, hidden = table.X, chosen.basis, bound in HIDES_INPUTS
    gp.check_rows(len(X))
    shared = table.shared(len(X))
    n = len(X) if shared is None else shared.n_people
    epsilon, delta = calibrate.promise(chosen.epsilon, chosen.delta, n)
    calibrate.calibrate(epsilon, delta, calibration)
    if basis is not None:
        basis = as_points(basis, "basis", X.shape[1], table.columns)
    low, high = gp.one_pair("a function release")
    _check(gp, chosen, shared is not None)
    if shared is not None:
        gp = replace(gp, noise=for_people(gp.noise, shared, chosen.within))
    outcome_std = max(high - low, float(np.sqrt(np.min(gp.noise))))
    for points in (None if hidden else X, basis):  # a refusal would tell of hidden inputs
        if points is not None:
            check_variance(gp.kernel.diag(points), outcome_std)
    gp = downweighted(gp, distinct(X, gp.noise))
    inputs = rows_of_function(gp, X, bound)
    B, R, points, exact, reach, jitter = _measured(gp, inputs, basis, bound, chosen.margin)
    if exact > reach * (1 + 1e-9):
        raise ValueError(
            "margin: the inputs do not keep the promised margin (they are closer together than it says), "
            "so its bound would not protect y. Promise a smaller margin, or use bound='input-free'."
        )
    mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(B))
    rows: Any = {"groups": inputs.groups, "people": shared}
    rows |= {"full_scale": bound != "exact", "hide_inputs": hidden}
    m = measurement_of(B / reach, Inside(low, high), epsilon, delta, mu, **rows)
    variance = (reach * m.noise_scale) ** 2
    reconstruction = frozen(solve_triangular(R, np.eye(len(R))) * reach)
    found: Any = {"lower_bound": variance, "jitter": 0.0, "bias": 0.0}
    if not hidden:
        # The largest error at the points themselves, noise aside.
        matrix = np.asarray(gp.kernel(points)) @ reconstruction
        bias = largest_bias(gp, smoother_for(gp, inputs, points), m, matrix)
        best = variance * min(1.0, (exact / reach) ** 2)
        found = {"lower_bound": best, "jitter": jitter, "bias": bias}
    part = designed(m, bound=bound, objective=variance, iterations=0, status=CLOSED_FORM, **found)
    unbiased = not hidden and found["bias"] <= UNBIASED * (high - low)
    made = plan_alone(
        gp,
        m,
        Function(gp, points, reconstruction, reach),
        certify_one(m, mu, part, calibration=calibration, design=FUNCTION, unbiased=unbiased),
        X=None if hidden else X,
        inputs=Inputs(points[:0], 0.0, None) if hidden else inputs,
        X_star=points,
        weights=frozen(np.ones(len(points))),
        within=chosen.within,
        columns=table.columns,
        rows=table.rows,
    )
    return chosen.attach(made, basis=basis)


def _check(gp: GaussianProcess, chosen: Settings, people: bool) -> None:
    """Raise unless the options go together with the bound."""
    bound, hidden, (low, high) = chosen.bound, chosen.bound in HIDES_INPUTS, gp.limits
    adds = "That bound is on what one row can do; bound='exact' adds up a person's rows."
    cover = "Inputs are not to be shown then: give public points that cover where queries will be made."
    follow = "Its variances follow from X and would be in the file, and X is not to be shown."
    for wrong, name, expected, remedy in (
        (people and bound != "exact", "people", "must be left out", adds),
        (hidden and chosen.basis is None, "basis", "must be given", cover),
        (hidden and not low <= gp.level <= high, "mean", "must lie within the bounds", "Give GP another."),
        (hidden and gp.downweight is not None, "downweight", "must be None", follow),
    ):
        if wrong:
            raise ArgumentError(name, f"{expected} for bound={bound!r}", remedy=remedy)
    if (chosen.margin is not None) != (bound == "varah"):
        raise ArgumentError("margin", "must be given for bound='varah', and only for that")


def _measured(
    gp: GaussianProcess, inputs: Inputs, basis: Any, bound: str, margin: Any
) -> tuple[FloatArray, FloatArray, FloatArray, float, float, float]:
    """B, R and points as above; how far one row can move the function, the bound on that, and the jitter."""
    everything = inputs.X, np.arange(len(inputs)), inputs.variances
    X, site, noise = sites(inputs) if bound == "exact" else everything
    gram = gp.kernel(X, X)
    check_covariance(gram)
    factor, jitter = gentle_cholesky(gram, noise)
    of_basis = (gram, X, "X") if basis is None else (gp.kernel(basis, basis), basis, "basis")
    points = _spanning(*of_basis)
    try:
        R = cholesky(gp.kernel(points, points), check_finite=False)
    except LinAlgError:
        raise ValueError(
            "basis: some of these points are too close together for this kernel. Use fewer, further apart."
        ) from None
    cross = gp.kernel(points, X)
    B = cho_solve(factor, solve_triangular(R, cross, trans="T").T, check_finite=False).T
    B = B[:, site] * (noise[site] / inputs.variances)  # (q, U)
    exact = math.sqrt(float(np.einsum("ij,ij->j", B, B).max()))
    if exact < 1e-100 and bound not in HIDES_INPUTS:
        raise ValueError(
            "basis: the data have no influence on the function at these points, so there is nothing to "
            "release. Choose points nearer to X, or a kernel that reaches further."
        )
    return B, R, points, exact, exact if bound == "exact" else _bound(gp, bound, factor, margin), jitter


def reaches(gp: GaussianProcess, X: FloatArray, points: FloatArray, bound: str) -> tuple[float, float]:
    """How far one row can move a function that stands on these points, and the bound on it."""
    return _measured(gp, rows_of_function(gp, X, bound), points, bound, None)[3:5]


def _bound(gp: GaussianProcess, bound: str, factor: Any, margin: Any) -> float:
    """A bound on how far one unit of y moves f in the kernel's space (proofs: lemma 8)."""
    if bound == "input-free":
        return input_free(gp)
    if gp.kernel.range is None:
        raise ValueError(
            f"bound={bound!r} needs a kernel whose values are known to lie in a range; {gp.kernel!r} has "
            "none. Use bound='exact', which needs no such thing."
        )
    low, high = gp.kernel.range
    size = math.sqrt(max(abs(low), high))
    if bound == "varah":
        return size / checks.positive(margin, "margin")
    inverse = cho_solve(factor, np.eye(len(factor[0])), check_finite=False)
    if bound == "infinity":
        return size * float(np.abs(inverse).sum(axis=0).max())
    if low < 0:
        raise ValueError(
            "bound='paper' needs kernel values in [0, v]; this kernel can be negative. Use bound='exact'."
        )
    return size * max(float(np.maximum(sign * inverse, 0).sum(axis=0).max()) for sign in (1, -1))


def input_free(gp: GaussianProcess) -> float:
    """The bound that needs neither X nor anything of the kernel."""
    return 1 / (2 * math.sqrt(float(np.min(gp.noise))))


def _spanning(gram: FloatArray, X: FloatArray, name: str) -> FloatArray:
    """Inputs whose kernels span all others', to rounding: the pivots of a pivoted Cholesky."""
    largest = float(np.diag(gram).max())
    if largest <= 0:
        raise ValueError(
            f"{name}: the kernel is zero at all of these inputs, so there is nothing to release."
        )
    _, pivots, rank, _ = dpstrf(gram, tol=_RANK_CUT * largest)
    return frozen(X[np.sort(pivots[:rank] - 1)])
