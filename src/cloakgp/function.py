"""Release the whole function: ask anywhere, as often as you like, after one spend.

The GP's posterior mean lies in the span of k(., x_i), so the whole function is one more set of
measurements of y (lemma 7 of ``docs/proofs.md``). With Z the inputs that span it (chosen by pivoted
Cholesky: far fewer than N for a smooth kernel) and K_ZZ = R'R,

    B = R^-T K_ZX (Kff + S)^-1,      f(x) = m0 + k(x, Z) R^-1 B (y - m0),

and the norm of column i of B is how far row i of y can move the function in the kernel's own
space: the sensitivity of the paper's "standard" method, exactly, where the paper has bounds.
Nothing of y is kept but the noisy measurements, and no queries are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpstrf

from cloakgp import calibration as calibrate
from cloakgp import checks, testing
from cloakgp.accounting import Gaussian
from cloakgp.certificate import CLOSED_FORM, Certificate, certify
from cloakgp.charging import Account, Charge, as_ledger, charged
from cloakgp.checks import FloatArray, frozen
from cloakgp.lattice import IntArray, Measurement, to_integers
from cloakgp.links import batches
from cloakgp.plan import largest_bias
from cloakgp.prior_draws import draw_prior
from cloakgp.smoothers import ExactGP, check_covariance, gentle_cholesky, kernel_matrix

if TYPE_CHECKING:
    from cloakgp.function_release import FunctionRelease
    from cloakgp.gp import GP

BOUNDS = ("exact", "infinity", "paper", "input-free", "varah")
HIDES_INPUTS = ("input-free", "varah")
UNBIASED = 1e-3  # share of the bounds' width up to which the function counts as the GP's own mean
_RANK_CUT = 1e-11  # relative to the largest k(x, x)
_KIND = "function"


@dataclass(frozen=True, eq=False, repr=False)
class FunctionPlan:
    """A public plan to release f everywhere. Made by :meth:`GP.plan_function`."""

    gp: GP
    X: FloatArray | None
    """The inputs; None where the plan is made not to show them."""
    points: FloatArray
    """Where the released function's kernels stand: some of X's rows, or the public basis."""
    measurement: Measurement
    reconstruction: FloatArray  # (n points, q)
    centre: IntArray
    """The measurements of y = midpoint of the bounds."""
    reach: float
    """Sensitivity in the kernel's own space, for y moving by 1."""
    prior_seed: int | None
    """Seed of the public remainder of the prior draw, if that is added."""
    certificate: Certificate

    def weights(self, X: Any) -> FloatArray:
        """(n, q): how f at `X` is made of the measurements."""
        X = checks.matrix(X, "X", columns=self.points.shape[1])
        weights: FloatArray = np.asarray(self.gp.kernel(X, self.points)) @ self.reconstruction
        return weights

    def noise_std(self, X: Any) -> FloatArray:
        """(n,) std of the privacy noise that a query at `X` will have; public and free."""
        X = checks.matrix(X, "X", columns=self.points.shape[1])
        if self.prior_seed is None:
            std = np.empty(len(X))
            for rows in batches(len(X), len(self.points)):
                std[rows] = np.linalg.norm(self.weights(X[rows]), axis=1)
            return self.measurement.noise_scale * std
        prior: FloatArray = np.asarray(self.gp.kernel.diag(X))
        return self.reach * self.measurement.noise_scale * np.sqrt(prior)

    @property
    def cost(self) -> Gaussian:
        """What a release will spend, for :mod:`cloakgp.accounting` and a ledger."""
        return Gaussian(self.measurement.mu(), self.measurement.n_measurements)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the plan shows: the same settings and inputs give the same."""
        from cloakgp import files

        return files.digest(self._shown())

    def release(
        self,
        y: Any,
        *,
        missing: str = "error",
        ledger: Any = None,
        dataset: str | None = None,
        why: str = "",
        request: str | None = None,
    ) -> FunctionRelease:
        """Release the function: the one private step. Each call is a new spend.

        Parameters
        ----------
        y : (N,) array
            Private outcomes, in the order of X's rows; clipped to the bounds.
        missing, ledger, dataset, why, request
            As for :meth:`Plan.release`.
        """
        from cloakgp.measure import measure

        with charged(self, Account(ledger, dataset, why, request)) as charge:
            if charge.answer is None:
                charge.answer = self._shown_answer(measure(self.measurement, y, missing))
        return self._released(charge)

    def recover(self, ledger: Any, entry: int) -> FunctionRelease:
        """The release that an entry of the ledger paid for, as for :meth:`Plan.recover`."""
        return self._released(as_ledger(ledger).fetch(entry, self))

    def _released(self, charge: Charge) -> FunctionRelease:
        from cloakgp.function_release import FunctionRelease

        assert charge.answer is not None
        insecure = charge.receipt is None and testing.insecure_generator() is not None
        plan = replace(self._shown(), certificate=replace(self.certificate, insecure=insecure))
        return FunctionRelease(plan, frozen(charge.answer), charge.receipt)

    def values(self, X: FloatArray, z: IntArray) -> FloatArray:
        """The function at `X` for these measurements: the same for an input whatever it is asked with."""
        coefficients = self.reconstruction @ self.heights(z)
        values = np.empty(len(X))
        for rows in batches(len(X), len(self.points)):
            covariances = np.asarray(self.gp.kernel(X[rows], self.points))
            values[rows] = np.einsum("ij,j->i", covariances, coefficients)  # row by row, unlike BLAS
            values[rows] += self.gp.mean + self.remainder(X[rows])
        return values

    def heights(self, z: IntArray) -> FloatArray:
        """The measurements less what the prior mean predicts for them, in y's unit."""
        low, high = self.gp.bounds
        m = self.measurement
        shift = low + (high - low) / 2 - self.gp.mean
        sums = np.ldexp(self.centre.astype(np.float64), -(m.y_bits - 1 + m.matrix_bits))  # B 1
        result: FloatArray = (z - self.centre).astype(np.float64) * m.step + sums * shift
        return result

    def _shown(self) -> FunctionPlan:
        """The plan as published: without its matrix, which shows X, where X is not to be shown."""
        if self.X is not None:
            return self
        bare = replace(self.measurement, matrix=frozen(self.measurement.matrix[:, :0]))
        return replace(self, measurement=bare, centre=frozen(np.zeros_like(self.centre)))

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
        inverse_root = self.reconstruction / self.reach  # R^-1
        fitted = inverse_root @ (inverse_root.T @ draw(self.points))
        rest = draw(X) - np.asarray(self.gp.kernel(X, self.points)) @ fitted
        values: FloatArray = self.reach * self.measurement.noise_scale * rest
        return values

    def __repr__(self) -> str:
        c = self.certificate
        return (
            f"<FunctionPlan: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {c.bound} bound, "
            f"{c.n_rows} rows, {c.n_measurements} measurements>"
        )


def make_function_plan(
    gp: GP,
    X: Any,
    *,
    epsilon: float,
    delta: float,
    bound: str,
    calibration: str,
    basis: Any,
    margin: Any,
    prior_noise: bool,
) -> FunctionPlan:
    """See :meth:`GP.plan_function`."""
    epsilon, delta = calibrate.promise(epsilon, delta)
    checks.choice(bound, "bound", BOUNDS)
    calibrate.calibrate(epsilon, delta, calibration)
    X = checks.matrix(X, "X")
    gp.check_rows(len(X))
    hidden = bound in HIDES_INPUTS
    if hidden and basis is None:
        raise ValueError(
            f"basis: bound={bound!r} is for inputs that are not to be shown, so the function must stand on "
            "public points. Give basis=, an array of inputs that covers where queries will be made."
        )
    if hidden and not gp.bounds[0] <= gp.mean <= gp.bounds[1]:
        raise ValueError(
            f"mean must lie within the bounds for bound={bound!r}; got {gp.mean:g}. Give GP another mean."
        )
    if (margin is not None) != (bound == "varah"):
        raise ValueError("margin must be given for bound='varah', and only for that.")
    B, R, points, exact, reach, jitter = _measured(gp, X, basis, bound, margin)
    if exact > reach * (1 + 1e-9):
        raise ValueError(
            "margin: the inputs do not keep the promised margin (they are closer together than it says), "
            "so its bound would not protect y. Promise a smaller margin, or use bound='input-free'."
        )
    if prior_noise:
        draw_prior(gp.kernel, X.shape[1], 0)  # refuse a kernel without draws now, before anything is spent
    mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(B))
    measurement = to_integers(
        B / reach, gp.bounds, epsilon, delta, mu, full_scale=bound != "exact", hide_inputs=hidden
    )
    variance = (reach * measurement.noise_scale) ** 2
    reconstruction = frozen(solve_triangular(R, np.eye(len(R))) * reach)
    # Known where X is shown: the largest error at the points themselves, noise aside.
    bias = 0.0
    if not hidden:
        smoother = ExactGP(gp.kernel, gp.noise, X, points)
        bias = largest_bias(gp, smoother, measurement, np.asarray(gp.kernel(points)) @ reconstruction)
    certificate = certify(
        measurement,
        calibration,
        design=_KIND,
        bound=bound,
        objective=variance,
        lower_bound=variance if hidden else variance * min(1.0, (exact / reach) ** 2),
        iterations=0,
        status=CLOSED_FORM,
        jitter=0.0 if hidden else jitter,
        bias=bias,
        unbiased=not hidden and bias <= UNBIASED * (gp.bounds[1] - gp.bounds[0]),
    )
    return FunctionPlan(
        gp=gp,
        X=None if hidden else X,
        points=points,
        measurement=measurement,
        reconstruction=reconstruction,
        centre=frozen(measurement.midpoint),
        reach=reach,
        prior_seed=_public_seed() if prior_noise else None,
        certificate=certificate,
    )


def _measured(
    gp: GP, X: FloatArray, basis: Any, bound: str, margin: Any
) -> tuple[FloatArray, FloatArray, FloatArray, float, float, float]:
    """B, R and the points of the docstring above; the exact sensitivity, the bound's, and the jitter."""
    gram = kernel_matrix(gp.kernel, X, X, "X, X")
    check_covariance(gram)
    factor, jitter = gentle_cholesky(gram, gp.noise)
    if basis is None:
        points = _spanning(gram, X, "X")
    else:
        basis = checks.matrix(basis, "basis", columns=X.shape[1])
        points = _spanning(kernel_matrix(gp.kernel, basis, basis, "basis, basis"), basis, "basis")
    R = _root(gp, points)
    cross = kernel_matrix(gp.kernel, points, X, "points, X")
    B = cho_solve(factor, solve_triangular(R, cross, trans="T").T, check_finite=False).T  # (q, N)
    exact = math.sqrt(float(np.einsum("ij,ij->j", B, B).max()))
    if exact < 1e-100 and bound not in HIDES_INPUTS:
        raise ValueError(
            "basis: the data have no influence on the function at these points, so there is nothing to "
            "release. Choose points nearer to X, or a kernel that reaches further."
        )
    reach = exact if bound == "exact" else _bound(gp, bound, factor, margin)
    return B, R, points, exact, reach, jitter


def reaches(gp: GP, X: FloatArray, points: FloatArray, bound: str) -> tuple[float, float]:
    """The exact sensitivity and the bound's, for a function that stands on these points."""
    return _measured(gp, X, points, bound, None)[3:5]


def _spanning(gram: FloatArray, X: FloatArray, name: str) -> FloatArray:
    """Inputs whose kernels span all others', to rounding: the pivots of a pivoted Cholesky."""
    largest = float(np.diag(gram).max())
    if largest <= 0:
        raise ValueError(
            f"{name}: the kernel is zero at all of these inputs, so there is nothing to release."
        )
    _, pivots, rank, _ = dpstrf(gram, tol=_RANK_CUT * largest)
    return frozen(X[np.sort(pivots[:rank] - 1)])


def _root(gp: GP, points: FloatArray) -> FloatArray:
    """R with R'R = the kernel matrix at the points, upper triangular."""
    gram = kernel_matrix(gp.kernel, points, points, "points, points")
    try:
        root: FloatArray = cholesky(gram, check_finite=False)
    except LinAlgError:
        raise ValueError(
            "basis: some of these points are too close together for this kernel. Use fewer, further apart."
        ) from None
    return root


def _bound(gp: GP, bound: str, factor: Any, margin: Any) -> float:
    """A bound on how far one unit of y moves f in the kernel's space (proofs: lemma 8)."""
    if bound == "input-free":
        return 1 / (2 * math.sqrt(float(np.min(gp.noise))))
    low, high = _kernel_range(gp, bound)
    size = math.sqrt(max(abs(low), high))
    if bound == "varah":
        return size / checks.positive(margin, "margin")
    inverse = cho_solve(factor, np.eye(len(factor[0])), check_finite=False)
    if bound == "infinity":
        return size * float(np.abs(inverse).sum(axis=0).max())
    positive, negative = np.maximum(inverse, 0).sum(axis=0), np.maximum(-inverse, 0).sum(axis=0)
    return size * float(np.maximum(positive, negative).max())


def _kernel_range(gp: GP, bound: str) -> tuple[float, float]:
    if gp.kernel.range is None:
        raise ValueError(
            f"bound={bound!r} needs a kernel whose values are known to lie in a range; {gp.kernel!r} has "
            "none. Use bound='exact', which needs no such thing."
        )
    if bound == "paper" and gp.kernel.range[0] < 0:
        raise ValueError(
            "bound='paper' needs kernel values in [0, v]; this kernel can be negative. Use bound='exact'."
        )
    return gp.kernel.range


def _public_seed() -> int:
    """Public randomness for a picture: never for privacy noise."""
    return int(np.random.default_rng().integers(2**53))
