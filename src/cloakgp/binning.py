"""What a Gaussian process is compared with: noisy means of bins, and noise on each single outcome.

Bins are public, since X is. They are measured as everything else is, by a matrix whose columns are unit
vectors (lemma 12 of ``docs/proofs.md``): each row is in one bin, so the sums of y over bins get noise once.
All else is free: a bin's mean, the constant or smooth curve through the means, and predictions anywhere. A GP
knows how noisy each bin is, and with ``predict="integral"`` also that a bin's mean is about the whole bin.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from cloakgp.core import accounting, checks
from cloakgp.core.calibration import SIGMA_FLOOR, calibrate, promise
from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.core.errors import ArgumentError
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.columns import names_in
from cloakgp.data.inputs import PublicInputs, as_inputs, as_points, named
from cloakgp.data.merging import Groups
from cloakgp.data.people import ALIKE, People
from cloakgp.files import container
from cloakgp.kernels import Boxes, Integral, Kernel, Points, as_kernel
from cloakgp.kernels.integral import over_boxes
from cloakgp.measure.certificate import CLOSED_FORM, certify_one, designed
from cloakgp.measure.measurement import LAPLACE, NOISES, Measurement, integer_float_at_least, room
from cloakgp.measure.statistics import Inside
from cloakgp.measure.unit import check_unit
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.smoothers import ExactGP
from cloakgp.model.windows import check_bounds
from cloakgp.release import showing
from cloakgp.release.base import Answered, PlanBase

PREDICT = ("constant", "gp", "integral")


class Occupancy(NamedTuple):
    """How many bins there are, how many hold rows, and how many hold just one."""

    bins: int
    occupied: int
    single: int

    def __str__(self) -> str:
        return (
            f"{self.occupied} of {self.bins} bins occupied ({self.occupied / self.bins:.0%}), "
            f"{self.single} of them with one row ({self.single / self.occupied:.0%})"
        )


class BinningRelease(Answered):
    """Bins that may be published. Made by :meth:`BinningPlan.release`."""

    plan: BinningPlan

    @property
    def bin_means(self) -> FloatArray:
        """(bins,) noisy mean of each occupied bin."""
        m = self.plan.measurement
        return np.asarray(m.lower + self.z.astype(np.float64) * m.step / self.plan.counts)

    @property
    def mean(self) -> FloatArray:
        """(P,) predictions at the planned test points."""
        return np.asarray(self.predict(self.plan.X_star))

    @one_blas_thread()
    def predict(self, X: Any, *, return_std: bool = False) -> Any:
        """Predictions anywhere, free. With `return_std`, the std of a GP's prediction of f, or for
        constant predictions that of the privacy noise."""
        plan = self.plan
        gain, std = plan.reading(as_points(X, "X", plan.X.shape[1], plan.columns))
        mean = plan.mean + gain @ (self.bin_means - plan.mean)
        return (mean, std) if return_std else mean

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """The test points as a table: the prediction, and the std of the privacy noise."""
        plan = self.plan
        numbers = {"prediction": self.mean, "noise_std": plan.noise_std}
        return showing.frame(plan.columns, plan.X_star, numbers, backend)

    def __repr__(self) -> str:
        c = self.certificate
        mark = "INSECURE " if c.insecure else ""
        return f"<{mark}BinningRelease: {c.promise}, {c.n_measurements} bins>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BinningPlan(PlanBase[BinningRelease]):
    """Which bins will be released, and with how much noise. Made by :func:`plan`; never saw y."""

    X_star: FloatArray
    measurement: Measurement
    """The sums of y over the occupied bins."""
    edges: tuple[FloatArray, ...] = ()
    """The bins' edges along each input; none for :func:`local`."""
    boxes: Boxes | None = None
    """The occupied bins, in the order of `counts` and `bin_means`; None for :func:`local`."""
    mean: float
    """The prediction that no bin moves."""
    kernel: Kernel | None
    """Of the GP through the bins' means; None where a bin's mean is the prediction."""
    sites: FloatArray
    """Where the means stand: centres, boxes, or the rows themselves."""
    scatter: FloatArray
    """(bins,) variances of the means about the GP's f, privacy noise not counted."""

    _result = BinningRelease

    @property
    def counts(self) -> IntArray:
        """(bins,) rows in each occupied bin."""
        return self.measurement.counts

    @property
    def occupancy(self) -> Occupancy:
        """How many bins there are, and how full they are."""
        occupied = len(self.counts)
        every = math.prod(len(cut) - 1 for cut in self.edges) if self.edges else occupied
        return Occupancy(every, occupied, int(np.count_nonzero(self.counts == 1)))

    @property
    def bin_noise_std(self) -> FloatArray:
        """(bins,) std of the privacy noise on each occupied bin's mean."""
        return np.asarray(self.measurement.noise_scale / self.counts)

    @cached_property
    def noise_std(self) -> FloatArray:
        """(P,) std of the privacy noise on the prediction at each test point."""
        return self.noise_at(self.X_star)

    @property
    def cost(self) -> accounting.Event:
        """What a release will spend, for :mod:`cloakgp.core.accounting` and a ledger."""
        m = self.measurement
        pure = m.noise == LAPLACE
        return accounting.Laplace(m.epsilon) if pure else accounting.Gaussian(m.mu(), m.n_measurements)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: the same settings and inputs give the same."""
        m, kernel = self.measurement, None if self.kernel is None else self.kernel.to_spec()
        words: dict[str, Any] = {"format": "cloakgp-binning", "certificate": self.certificate.to_dict()}
        words |= {"bounds": [m.lower, m.upper], "mean": self.mean, "kernel": kernel}
        words |= {"partition": self.partition}
        arrays = {"X": self.X, "X_star": self.X_star, "labels": m.labels, "sites": self.sites}
        arrays |= {"scatter": self.scatter} | {f"edges{i}": cut for i, cut in enumerate(self.edges)}
        return str(container.seal(words, arrays)["sha256"])

    def reading(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How predictions at X are made of the bins' means, (n, bins), and their std, (n,).

        The std of a GP's prediction of f; for constant predictions, that of the privacy noise.
        """
        if self.kernel is None:
            occupied = np.unique(_bin_numbers(self.X, self.edges))
            gain = np.equal.outer(_bin_numbers(X, self.edges), occupied).astype(np.float64)
            return gain, np.sqrt(gain**2 @ self.bin_noise_std**2)
        points = X if self.sites.shape[1] == X.shape[1] else np.asarray(Points(X))
        gp = ExactGP(self.kernel, self.bin_noise_std**2 + self.scatter, self.sites, points)
        return gp.columns(slice(None)), np.sqrt(gp.posterior_variance)

    def gain(self, X: FloatArray) -> FloatArray:
        """(n, bins): how predictions at X move with the bins' means."""
        return self.reading(X)[0]

    def noise_at(self, X: Any) -> FloatArray:
        """(n,) std of the privacy noise on a prediction at `X`."""
        X = as_points(X, "X", self.X.shape[1], self.columns)
        return np.asarray(np.sqrt(self.gain(X) ** 2 @ self.bin_noise_std**2))

    def _measure(self, y: Any, missing: str) -> IntArray:
        from cloakgp.private.room import Outcomes, measure

        check_unit(self.certificate, self.measurement.unit)
        return measure(self.measurement, Outcomes(y, self.rows, names=names_in(self.columns)), missing)

    def __repr__(self) -> str:
        c, noise = self.certificate, self.measurement.noise
        return f"<BinningPlan: {c.promise}, {noise} noise, {c.n_rows} rows, {self.occupancy}>"


@named
@one_blas_thread()
def plan(
    X: Any,
    *,
    X_star: Any,
    edges: Any,
    bounds: Any,
    epsilon: float,
    delta: float | None = None,
    mechanism: str = "laplace",
    predict: str = "constant",
    kernel: Any = None,
    noise: float = 0.0,
    mean: float | None = None,
    people: Any = None,
    ids: str = ALIKE,
) -> BinningPlan:
    """Plan a release of noisy bin means: public, free, and without y.

    Parameters
    ----------
    X : (N, D) array
        Public inputs of the private outcomes.
    X_star : (P, D) array
        Where predictions are wanted.
    edges : int, or D arrays
        Edges of the bins along each input, rising; a bin has its lower edge and not its upper one, but
        the last has both. A number makes so many equal bins along each input, over the range of X.
    bounds : (lo, hi)
        Where outcomes are known to lie; values outside are clipped.
    epsilon, delta : float
        The promise. Laplace noise has no delta; for Gaussian noise it has a default, as for :meth:`GP.plan`.
    mechanism : {"laplace", "gaussian"}
        Laplace noise of scale (hi - lo) / (n epsilon) on the mean of a bin with n rows; or Gaussian noise,
        for comparison under one (epsilon, delta).
    predict : {"constant", "gp", "integral"}
        The bin's mean, or the middle of the bounds where a bin is empty; a GP through the centres of
        occupied bins; or a GP whose observations are means over the bins.
    kernel : Kernel
        For the two GPs; "integral" needs an EQ, or sums of them and of constants.
    noise : float
        For the two GPs: variance of single outcomes about f; a bin's mean has it divided by n.
    mean : float, optional
        For the two GPs: prior mean; the middle of the bounds if absent.
    people : (N,) ids, optional
        Whose row each is, where someone may have several: the promise is then to each person, about all of
        their outcomes at once. Public, as X is. Whole numbers, texts, or anything hashable. Laplace noise
        grows with the most rows that somebody has; Gaussian noise less, where these are in different bins.
    ids : {"alike", "exact"}
        How ids are compared: as for :meth:`GP.plan`.
    """
    checks.choice(predict, "predict", PREDICT)
    given = as_inputs(X, people, ids=ids)
    X = checks.matrix(given.X, "X")
    cuts = _edges(edges, X)
    number = _bin_numbers(X, cuts)
    if (number < 0).any():
        raise ArgumentError("edges", "must cover X", "rows outside of all bins", "Widen the outer edges.")
    remedy = "It is the variance of single outcomes about f."
    variance, pair = checks.number(noise, "noise", least=0.0, remedy=remedy), check_bounds(bounds)
    level = pair[0] + (pair[1] - pair[0]) / 2 if mean is None else checks.number(mean, "mean")
    if predict != "constant":
        kernel = _kernel(kernel, predict)
    for name, one in (("kernel", kernel), ("noise", noise or None), ("mean", mean)):
        if predict == "constant" and one is not None:
            expected = "must be left out for predict='constant': it is for 'gp' and 'integral'"
            raise ArgumentError(name, expected)
    numbers, labels, counts = np.unique(number, return_inverse=True, return_counts=True)
    groups, boxes = Groups(frozen(labels), frozen(counts.astype(np.int64))), _boxes(numbers, cuts)
    sites = np.asarray(boxes) if predict == "integral" else boxes.lower / 2 + boxes.upper / 2
    where: Any = {"edges": cuts, "boxes": boxes, "sites": frozen(sites), "scatter": frozen(variance / counts)}
    promised = epsilon, delta, mechanism
    return _planned(given, X_star, groups, pair, promised, mean=level, kernel=kernel, **where)


@named
@one_blas_thread()
def local(
    X: Any,
    *,
    X_star: Any,
    kernel: Any,
    noise: Any,
    bounds: Any,
    epsilon: float,
    delta: float | None = None,
    mechanism: str = "laplace",
    mean: float | None = None,
    people: Any = None,
    ids: str = ALIKE,
) -> BinningPlan:
    """Noise on every single outcome, as if each person added their own, then a GP that knows how much.

    The baseline that needs no trusted custodian. Arguments as for :func:`plan`; `noise` is the variance
    of the outcomes about f, beside the privacy noise.
    """
    given = as_inputs(X, people, ids=ids)
    model, rows = GaussianProcess(kernel, noise, bounds, mean), checks.matrix(given.X, "X")
    model.check_rows(len(rows))
    pair, promised = model.one_pair("binning"), (epsilon, delta, mechanism)
    where: Any = {"sites": rows, "scatter": np.broadcast_to(model.noise, len(rows))}
    return _planned(given, X_star, None, pair, promised, mean=model.level, kernel=model.kernel, **where)


def _planned(
    given: PublicInputs,
    X_star: Any,
    groups: Groups | None,
    bounds: tuple[float, float],
    promised: tuple[Any, Any, Any],
    **reader: Any,
) -> BinningPlan:
    """A plan of sums over bins, or of every single row; `reader` says what is made of the means."""
    X, (epsilon, delta, mechanism) = checks.matrix(given.X, "X"), promised
    pure, who = checks.choice(mechanism, "mechanism", NOISES) == LAPLACE, given.shared(len(X))
    if delta is not None and pure:
        raise ArgumentError("delta", "must be left out: Laplace noise has none", repr(delta))
    epsilon, delta = promise(epsilon, delta, len(X) if who is None else who.n_people)
    m = make_sums(len(X), groups, bounds, epsilon, 0.0 if pure else delta, mechanism, who)
    X_star = as_points(X_star, "X_star", X.shape[1], given.columns)
    part = designed(
        m,
        bound="exact",
        objective=float(np.mean((m.noise_scale / m.counts) ** 2)),
        lower_bound=math.inf,  # no better design: one that measures sums of bins has no less noise on any
        iterations=0,
        status=CLOSED_FORM,
        jitter=0.0,
        bias=m.step / 2,
    )
    calibration = "Laplace" if pure else "analytic"
    certificate = certify_one(m, m.mu(), part, calibration=calibration, design="bins", unbiased=True)
    what: Any = {"X": X, "X_star": X_star, "measurement": m, "certificate": certificate}
    made = BinningPlan(columns=given.columns, rows=given.rows, people=who, **what, **reader)
    # A kernel that does not work must say so now, not when y has been spent.
    assert np.isfinite(made.noise_std).all()
    return made


def make_sums(
    n_rows: int,
    groups: Groups | None,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float,
    noise: str,
    people: People | None = None,
) -> Measurement:
    """Sums over bins, or every single row, on a lattice as fine as 64 bits allow, with the least noise."""
    q, largest = (n_rows, 1) if groups is None else (len(groups.counts), int(groups.counts.max()))
    unit_vectors: Any = sparse.eye_array(q, dtype=np.int64, format="csc")
    statistic = Inside(*bounds)
    draft = Measurement(
        unit_vectors, 0, statistic, 1, epsilon, delta, groups=groups, people=people, noise=noise
    )
    rate = epsilon if noise == LAPLACE else calibrate(epsilon, delta, n_measurements=q)
    bits, fewest = room(largest, min(draft.sensitivity() / rate, 1e99)), 10
    expected = "must be {} for exact noise on sums of " + f"{largest} rows"
    if bits < fewest:
        raise ArgumentError("epsilon", expected.format("larger"), f"{epsilon:g}")
    draft = replace(draft, statistic=statistic.with_bits(min(40, bits)))
    for less in (0.0, 1e-9, 1e-6, 1e-3):  # at the far ends, mu's own rounding errors can break the promise
        scale = integer_float_at_least(Fraction(draft.sensitivity()) / Fraction(rate * (1 - less)))
        if scale < (2**fewest if noise == LAPLACE else SIGMA_FLOOR):
            raise ArgumentError("epsilon", expected.format("smaller"), f"{epsilon:g}")
        sums = replace(draft, sigma=scale)
        with suppress(AssertionError):
            sums.check()
            return sums
    raise AssertionError("no noise was found that keeps the promise")


def _kernel(kernel: Any, predict: str) -> Kernel:
    checked: Kernel = as_kernel(kernel)
    if predict == "integral":
        return over_boxes(checked)
    if any(isinstance(part, Integral) for part in (checked, *checked.get_params().values())):
        remedy = "Give the kernel inside it, or predict='integral'."
        raise ArgumentError("kernel", "must be one for points with predict='gp'", "an Integral", remedy)
    return checked


# Bins


def _edges(edges: Any, X: FloatArray) -> tuple[FloatArray, ...]:
    """Where bins end along each input: as given, or so many equal ones over the range of X."""
    remedy, columns = "Give fewer bins, or other arrays of edges.", X.shape[1]
    if isinstance(edges, (int, np.integer)):
        number = checks.whole(edges, "edges", 1, 10**7)
        low, high = X.min(axis=0), X.max(axis=0)
        with np.errstate(all="ignore"):  # what does not fit does not rise, and is refused below
            high = np.where(high > low, high, low + np.maximum(1.0, np.abs(low)))
            listed: list[Any] = [np.linspace(a, b, number + 1) for a, b in zip(low, high, strict=True)]
    else:
        listed = list(edges) if np.iterable(edges) else []
        if columns == 1 and listed and not np.iterable(listed[0]):
            listed = [listed]
        if len(listed) != columns:
            expected = f"must be a number of bins, or one array for each of X's {columns} column(s)"
            raise ArgumentError("edges", expected, repr(edges)[:100])
    cuts = tuple(checks.vector(cut, "edges") for cut in listed)
    if not all(len(cut) > 1 and (cut[1:] > cut[:-1]).all() for cut in cuts):
        expected = "must be at least two numbers along each input, each above the one before"
        raise ArgumentError("edges", expected, remedy=remedy)
    if math.prod(len(cut) - 1 for cut in cuts) >= 2**62:  # which 64 bits would not number
        raise ArgumentError("edges", "must make fewer than 2^62 bins", remedy=remedy)
    return cuts


def _bin_numbers(X: FloatArray, edges: tuple[FloatArray, ...]) -> IntArray:
    """(n,) the number of the bin that each row is in, the last input counting fastest; -1 if in none."""
    shape = [len(cut) - 1 for cut in edges]
    inputs = zip(X.T, edges, strict=True)
    places = np.array([np.searchsorted(cut, x, side="right") - 1 - (x == cut[-1]) for x, cut in inputs])
    number = np.ravel_multi_index(tuple(places), shape, mode="clip")
    inside = ((places >= 0) & (shape > places.T).T).all(axis=0)
    return np.where(inside, number, -1)


def _boxes(numbers: IntArray, edges: tuple[FloatArray, ...]) -> Boxes:
    """The bins of these numbers."""
    places = np.unravel_index(numbers, [len(cut) - 1 for cut in edges])
    sides = [(cut[place], cut[place + 1]) for cut, place in zip(edges, places, strict=True)]
    return Boxes(*np.stack(sides, axis=-1))
