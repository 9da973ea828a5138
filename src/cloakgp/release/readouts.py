"""How the answers of a release become numbers at test points: three ways, each a small object that is asked.

- :class:`Denoised`: the model, given the answers. All stages that follow from each other are read like this.
- :class:`Means`: the GP's own mean plus noise, straight from one stage's measurements.
- :class:`Function`: a whole function, to be asked anywhere, and for as long as anybody likes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.core.errors import ArgumentError
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.chunks import in_threads
from cloakgp.data.inputs import as_points
from cloakgp.data.merging import Inputs, distinct
from cloakgp.designs import DESIGNS, MEAN, VOLUME
from cloakgp.files.container import Array
from cloakgp.measure.measurement import Measurement, exact_product
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.smoothers import Smoother, blocks
from cloakgp.model.windows import RowMeans, distances
from cloakgp.posterior import staging
from cloakgp.posterior.conditioning import batches
from cloakgp.posterior.forecast import forecast

if TYPE_CHECKING:
    from cloakgp.release.plan import Plan
    from cloakgp.release.release import Release

Described = tuple[dict[str, Any] | None, dict[str, Array]]
MEANS, FUNCTION = "means", "function"


def _noise_at_test_points(plan: Plan, X: Any) -> FloatArray:
    """(n,) std of the privacy noise at `X`, which must be the test points."""
    if not np.array_equal(as_points(X, "X", plan.X_star.shape[1], plan.columns), plan.X_star):
        remedy = "Elsewhere, use the release's uncertainty."
        raise ArgumentError("X", "must be the plan's test points", remedy=remedy)
    return plan.noise_std


@dataclass(frozen=True, eq=False)
class Denoised:
    """Predictions of the model that is known or learned, given all answers."""

    alone = False

    def described(self) -> Described:
        """As words and arrays, for files: nothing, since predictions follow from the model."""
        return None, {}

    @one_blas_thread()
    def expected(self, plan: Plan) -> tuple[FloatArray, FloatArray]:
        """(P,) variances of f(X*): after all stages, and if y were known."""
        whole = plan.population
        learned = plan.prior.gp is None and not plan.given
        if not plan.law.exact or learned or whole is not None:
            session = plan.session(plan.start)
            stage = session.stage(*plan.bounds, plan.certificate.mu / (1 if whole is None else whole.each))
            rows = stage.rows() * (plan.bounds[1] - plan.bounds[0])
            return forecast(session.mixture, plan.start, rows, stage.mu, plan.sum_shares, plan.kappa)
        # Something is known already: the next stage's error, if it had all of the promise.
        first = plan.first
        rest = np.diag(first.noise * first.share) + first.bent.extra
        return staging.expected(plan.start, first.sloped, 1.0, rest)

    def noise_std(self, plan: Plan) -> FloatArray:
        """(P,) std that the privacy noise will add to not knowing f, as far as that can be foreseen."""
        left, known = plan._expected
        return np.sqrt(np.maximum(left - known, 0.0))

    noise_at = staticmethod(_noise_at_test_points)

    def released_at(self, release: Release, X: Any) -> tuple[FloatArray, FloatArray]:
        """Predictions at `X`, and the std that the privacy noise adds to them."""
        return release.predict(X), release.uncertainty(X).privacy


@dataclass(frozen=True, eq=False)
class Means:
    """The GP's own mean at the test points plus noise; or, for `posterior`, what denoising makes of it."""

    reconstruction: FloatArray  # (P, q): predictions from measurements
    offset: FloatArray  # (P,): the prediction if every y were the middle of the bounds
    gp_std: FloatArray
    """(P,) posterior std of the GP itself at X*, without privacy noise; to four digits in a file."""

    alone = True

    def described(self) -> Described:
        """As words and arrays, for files."""
        arrays = {"reconstruction": self.reconstruction, "offset": self.offset}
        return {"kind": MEANS}, arrays | {"gp_std": rounded_std(self.gp_std)}

    def mean(self, m: Measurement, z: IntArray) -> FloatArray:
        """(P,) the released predictions."""
        centred = (z - m.midpoint).astype(np.float64) * m.step
        return np.asarray(self.offset + self.reconstruction @ centred)

    def expected(self, plan: Plan) -> tuple[FloatArray, FloatArray]:
        """(P,) variances of f(X*), after the release and if y were known."""
        return plan.unanswered.predict(plan.X_star, return_std=True)[1] ** 2, self.gp_std**2

    def noise_std(self, plan: Plan) -> FloatArray:
        """(P,) std of the privacy noise at each test point."""
        return np.asarray(plan.measurement.noise_scale * np.linalg.norm(self.reconstruction, axis=1))

    def noise_at(self, plan: Plan, X: Any) -> FloatArray:
        """(n,) std of the privacy noise that denoised predictions anywhere will have."""
        return plan.unanswered.uncertainty(X, include_noise=False).privacy

    def released_at(self, release: Release, X: Any) -> tuple[FloatArray, FloatArray]:
        """The released numbers at the test points, and the std of their privacy noise."""
        noise = _noise_at_test_points(release.plan, X)
        return frozen(self.mean(release.plan.measurement, release.z)), noise


@dataclass(frozen=True, eq=False)
class Function:
    """f everywhere, plus noise that is a draw in the span of kernels at the points: one more measurement."""

    gp: GaussianProcess
    points: FloatArray
    """Where the function's kernels stand: some of X's rows, or the public basis."""
    reconstruction: FloatArray  # (n points, q)
    reach: float
    """How far one row of y, moving by 1, can move f in the kernel's own space (its RKHS)."""

    alone = True

    def described(self) -> Described:
        """As words and arrays, for files."""
        return {"kind": FUNCTION, "reach": self.reach}, {"reconstruction": self.reconstruction}

    def expected(self, plan: Plan) -> tuple[FloatArray, FloatArray]:
        """(P,) variances of f at the points, after the release and if y were known."""
        if plan.X is None:
            noise = self.noise_at(plan, self.points) ** 2
            return noise, np.zeros_like(noise)
        std = plan.unanswered.predict(self.points, return_std=True)[1]
        return std**2, plan.unanswered.known_variance(self.points)

    @one_blas_thread()
    def weights(self, X: FloatArray) -> FloatArray:
        """(n, q): how f at `X` is made of the measurements."""
        return np.asarray(np.asarray(self.gp.kernel(X, self.points)) @ self.reconstruction)

    def noise_std(self, plan: Plan) -> FloatArray:
        """(P,) std of the privacy noise at the function's points."""
        return self.noise_at(plan, self.points)

    @one_blas_thread()
    def noise_at(self, plan: Plan, X: Any) -> FloatArray:
        """(n,) std of the privacy noise that a query at `X` will have."""
        X = as_points(X, "X", self.points.shape[1], plan.columns)
        std = np.empty(len(X))
        for rows in batches(len(X), len(self.points)):
            std[rows] = np.linalg.norm(self.weights(X[rows]), axis=1)
        return float(plan.measurement.noise_scale) * std

    def released_at(self, release: Release, X: Any) -> tuple[FloatArray, FloatArray]:
        """The released function at `X`, and the std of its privacy noise."""
        return release.query(X), self.noise_at(release.plan, X)

    @one_blas_thread()
    def values(self, m: Measurement, z: IntArray, X: FloatArray) -> FloatArray:
        """The function at `X` for these measurements: the same for an input whatever it is asked with."""
        coefficients = self.reconstruction @ self.heights(m, z)
        values = np.empty(len(X))
        for rows in batches(len(X), len(self.points)):
            covariances = np.asarray(self.gp.kernel(X[rows], self.points))
            values[rows] = np.einsum("ij,j->i", covariances, coefficients)  # row by row, unlike BLAS
        return values + self.gp.level

    def heights(self, m: Measurement, z: IntArray) -> FloatArray:
        """The measurements less what the prior mean predicts for them, in y's unit."""
        low, high = self.gp.one_pair("a function release")
        middle, shift = m.midpoint, low + (high - low) / 2 - self.gp.level
        sums = np.ldexp(middle.astype(np.float64), -(m.y_bits - 1 + m.matrix_bits))  # B 1
        return np.asarray((z - middle).astype(np.float64) * m.step + sums * shift)


Readout = Denoised | Means | Function
DENOISED = Denoised()


def readout_of(
    words: dict[str, Any] | None, arrays: dict[str, Array], gp: GaussianProcess | None, points: FloatArray
) -> Readout:
    """What a readout described itself as."""
    if words is None:
        return DENOISED
    if words["kind"] == MEANS:
        return Means(arrays["reconstruction"], arrays["offset"], arrays["gp_std"])
    assert gp is not None
    return Function(gp, points, arrays["reconstruction"], words["reach"])


def rows_of_function(gp: GaussianProcess, X: FloatArray, bound: str) -> Inputs:
    """Equal rows once, unless a bound looks at all of them, or their number is not to be shown."""
    return distinct(X, gp.noise, gp.windows) if bound == "exact" else Inputs(X, gp.noise, None)


def rounded_std(std: Array) -> Array:
    """Standard deviations to four digits: more could not be checked on another machine."""
    return frozen(np.array([float(f"{value:.3e}") for value in std.tolist()]))


# From measurements to predictions: the weights, the offset, and the largest bias.


def relative_weights(weights: Any, n: int) -> FloatArray:
    """(n,) weights with mean 1, the same for weights that differ by a factor; all alike if absent."""
    remedy = "To ignore a test point, leave it out of X_star."
    weights = np.ones(n) if weights is None else weights
    weights = checks.vector(weights, "weights", n, positive=True, remedy=remedy)
    scaled = weights / weights.max()
    if scaled.min() < 1e-12:
        raise ArgumentError("weights", "must be within a factor of 1e12 of each other", remedy=remedy)
    return frozen(scaled / scaled.mean())


def noise_objective(
    design: str, weights: FloatArray, reconstruction: FloatArray, noise_scale: float
) -> float:
    """What a design minimises that looks at noise alone, for the measurements that will be released."""
    objective = DESIGNS[design].objective
    if objective == VOLUME:
        spread = np.linalg.svd(reconstruction, compute_uv=False)
        return float(np.exp(2 * np.mean(np.log(spread * noise_scale))))
    weighted = weights * noise_scale**2 * np.einsum("ij,ij->i", reconstruction, reconstruction)
    return float(weighted.mean() if objective == MEAN else weighted.max())


def offset(gp: GaussianProcess, measurement: Measurement, reconstruction: FloatArray) -> FloatArray:
    """The prediction if every y were the middle of its bounds and no noise were added."""
    if gp.windows is None:
        low, high = gp.one_pair("this")
        middle = low + (high - low) / 2
        return np.asarray(gp.level + exact_product(reconstruction, measurement.total) * (middle - gp.level))
    moved = exact_product(reconstruction, measurement.middle_less(gp.mean_of(measurement.groups)))
    star = gp.mean.star if isinstance(gp.mean, RowMeans) else gp.mean
    assert not callable(star)
    assert star is not None
    return np.asarray(star + moved)


def largest_bias(
    gp: GaussianProcess, smoother: Smoother, measurement: Measurement, reconstruction: FloatArray
) -> float:
    """The largest error of the mean, noise aside, for any y within the bounds.

    Two errors add up: the measurements reconstruct C only up to rounding and the rank cut (or, for
    `posterior`, up to what denoising shrinks away), which multiplies y less the prior mean; and y
    itself is rounded to half a lattice step.
    """
    counts, windows = measurement.counts, gp.windows_of(measurement.groups)
    width = np.broadcast_to(measurement.upper - measurement.lower, counts.shape)
    limits = (*gp.limits, gp.level) if windows is None else windows.T
    far = np.broadcast_to(distances(limits), counts.shape)

    def of_rows(block: slice) -> FloatArray:
        C, n = smoother.columns(block), counts[block]
        off = reconstruction @ measurement.real_matrix(block)
        off -= C
        error: FloatArray = np.abs(off, out=off) @ (n * far[block])
        error += np.abs(C) @ (n * width[block]) * 2.0 ** -(measurement.y_bits + 1)
        return error

    total = sum(in_threads(of_rows, list(blocks(smoother.n_rows))), np.zeros(smoother.n_outputs))
    return float(total.max())
