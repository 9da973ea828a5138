"""What a Gaussian process is compared with: noisy means of bins, and noise on each single outcome.

Bins are public, since X is. The sums of y over bins get noise once; everything else is free: a bin's
mean, the constant or smooth curve through the means, and predictions anywhere. A GP knows how noisy
each bin is, and with ``predict="integral"`` also that a bin's mean is about the whole bin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_solve

from cloakgp import accounting, checks
from cloakgp.calibration import promise
from cloakgp.checks import FloatArray, frozen
from cloakgp.files import container
from cloakgp.kernels import Boxes, Constant, Integral, Kernel, Points, Product, Sum, as_kernel
from cloakgp.ledger.charge import Receipt
from cloakgp.measurements.bin_sums import MECHANISMS, BinSums, make_sums
from cloakgp.measurements.certificate import SPEND, as_words
from cloakgp.measurements.lattice import IntArray
from cloakgp.measurements.unit import OUTCOME, PERSON
from cloakgp.model.gp import GP, check_bounds
from cloakgp.model.smoothers import check_covariance, gentle_cholesky, kernel_matrix
from cloakgp.plans import showing
from cloakgp.plans.base import PlanBase
from cloakgp.rows.blas import one_blas_thread
from cloakgp.rows.frames import read
from cloakgp.rows.inputs import named
from cloakgp.rows.people import ALIKE, as_ids, as_people

PREDICT = ("constant", "gp", "integral")
_MOST_BINS = 2**62
_MOST_EQUAL_BINS = 10**7


@dataclass(frozen=True)
class Occupancy:
    """How many bins there are, how many hold rows, and how many hold just one."""

    bins: int
    occupied: int
    single: int

    def __str__(self) -> str:
        return (
            f"{self.occupied} of {self.bins} bins occupied ({self.occupied / self.bins:.0%}), "
            f"{self.single} of them with one row ({self.single / self.occupied:.0%})"
        )


@dataclass(frozen=True)
class BinningCertificate:
    """The guarantee of a release of bins. Nothing in it depends on y."""

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    spend: str
    insecure: bool
    mechanism: str
    n_rows: int
    n_bins: int
    y_bits: int
    scale: int
    """Laplace's scale, or the Gaussian's std, in lattice steps, on each bin's sum."""
    ids: str = ALIKE
    """How people's ids were compared, as in a release's certificate."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, ready for JSON."""
        return as_words(self)


class Predictor(Protocol):
    """How predictions are made of the bins' noisy means."""

    @property
    def mean(self) -> float:
        """The prediction that no bin moves."""
        ...

    def gain(self, X: FloatArray) -> FloatArray:
        """(n, bins): how predictions at X move with the bins' means."""
        ...

    def std(self, X: FloatArray) -> FloatArray | None:
        """(n,) std of a model's f at X, privacy noise included; None if there is no model."""
        ...

    def words(self) -> dict[str, Any]: ...


@dataclass(frozen=True, eq=False)
class _Constant:
    """The mean of the bin; `mean` where the bin is empty or there is none."""

    edges: tuple[FloatArray, ...]
    numbers: IntArray  # of the occupied bins, sorted
    mean: float

    def gain(self, X: FloatArray) -> FloatArray:
        found = np.zeros((len(X), len(self.numbers)))
        number = _bin_numbers(X, self.edges)
        place = np.searchsorted(self.numbers, number).clip(max=len(self.numbers) - 1)
        rows = np.flatnonzero(self.numbers[place] == number)
        found[rows, place[rows]] = 1.0
        return found

    def std(self, X: FloatArray) -> FloatArray | None:
        return None

    def words(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, eq=False)
class _Smooth:
    """A GP through the bins' means, which knows the variance of each."""

    kernel: Kernel
    sites: Any  # where the means stand: centres, boxes, or the rows themselves
    variances: FloatArray
    mean: float

    @cached_property
    def _factor(self) -> Any:
        gram = kernel_matrix(self.kernel, self.sites, self.sites, "bins, bins")
        check_covariance(gram)
        return gentle_cholesky(gram, self.variances)[0]

    def _cross(self, X: FloatArray) -> FloatArray:
        return kernel_matrix(self.kernel, self._points(X), self.sites, "X, bins")

    def _points(self, X: FloatArray) -> Any:
        return Points(X) if isinstance(self.sites, Boxes) else X

    def gain(self, X: FloatArray) -> FloatArray:
        gain: FloatArray = cho_solve(self._factor, self._cross(X).T, check_finite=False).T
        return gain

    def std(self, X: FloatArray) -> FloatArray | None:
        prior = np.asarray(self.kernel.diag(self._points(X)), dtype=np.float64)
        explained = np.einsum("ij,ij->i", self.gain(X), self._cross(X))
        std: FloatArray = np.sqrt(np.maximum(prior - explained, 0.0))
        return std

    def words(self) -> dict[str, Any]:
        sites = container.digest(np.asarray(self.sites))
        variances = container.digest(self.variances)
        return {"kernel": self.kernel.to_spec(), "sites": sites, "variances": variances, "mean": self.mean}


@dataclass(frozen=True, eq=False, repr=False)
class BinningPlan(PlanBase["BinningRelease"]):
    """Which bins will be released, and with how much noise. Made by :func:`plan`; never saw y."""

    X: FloatArray
    X_star: FloatArray
    sums: BinSums
    counts: IntArray
    """(bins,) rows in each occupied bin."""
    predictor: Predictor
    occupancy: Occupancy
    edges: tuple[FloatArray, ...]
    """The bins' edges along each input; none for :func:`local`."""
    certificate: BinningCertificate
    names: tuple[str, ...] = ()
    """What the columns of X are called, if it was a table."""

    @cached_property
    def boxes(self) -> Boxes | None:
        """The occupied bins, in the order of `counts` and `bin_means`; None for :func:`local`."""
        if not self.edges:
            return None
        return Boxes(*_corners(np.unique(_bin_numbers(self.X, self.edges)), self.edges))

    @property
    def bin_noise_std(self) -> FloatArray:
        """(bins,) std of the privacy noise on each occupied bin's mean."""
        std: FloatArray = self.sums.noise_std / self.counts
        return std

    @cached_property
    def noise_std(self) -> FloatArray:
        """(P,) std of the privacy noise on the prediction at each test point."""
        return self.noise_at(self.X_star)

    @property
    def cost(self) -> accounting.Event:
        """What a release will spend, for :mod:`cloakgp.accounting` and a ledger."""
        if self.sums.mechanism == "laplace":
            return accounting.Laplace(self.sums.epsilon)
        return accounting.Gaussian(self.sums.mu, self.sums.n_bins)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: the same settings and inputs give the same."""
        words = {
            "format": "cloakgp-binning",
            "certificate": self.certificate.to_dict(),
            "bounds": [self.sums.lower, self.sums.upper],
            "edges": [container.digest(cut) for cut in self.edges],
            "predictor": self.predictor.words(),
            **({"partition": self.partition} if self.partition else {}),
        }
        arrays = {"X": self.X, "X_star": self.X_star, "labels": self.sums.labels}
        sha256: str = container.sealed(words, arrays)["sha256"]
        return sha256

    def noise_at(self, X: Any) -> FloatArray:
        """(n,) std of the privacy noise on a prediction at `X`."""
        X = checks.matrix(X, "X", columns=self.X.shape[1])
        std: FloatArray = np.sqrt(self.predictor.gain(X) ** 2 @ self.bin_noise_std**2)
        return std

    @property
    def partition(self) -> str:
        """SHA-256 of who has which rows, for the ledger; empty where the promise is to each row."""
        return "" if self.sums.people is None else self.sums.people.digest

    def _measure(self, y: Any, missing: str) -> IntArray:
        from cloakgp.private.room import measure_sums

        return measure_sums(self.sums, y, missing, self.names)

    def _made_of(self, answer: IntArray, receipt: Receipt | None, insecure: bool) -> BinningRelease:
        plan = replace(self, certificate=replace(self.certificate, insecure=insecure))
        return BinningRelease(plan, answer, receipt)

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """The test points as a table, with the std of the privacy noise; as for :class:`cloakgp.Plan`."""
        return showing.frame(None, self.X_star, {"noise_std": self.noise_std}, backend)

    def _repr_html_(self) -> str:
        facts = showing.facts(self.certificate, None, self.X_star, noise_std=self.noise_std)
        return showing.page("Plan of bins", facts | {"bins": str(self.occupancy)}, False)

    def __repr__(self) -> str:
        c = self.certificate
        return (
            f"<BinningPlan: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {c.mechanism} noise, {c.n_rows} "
            f"rows, {self.occupancy}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class BinningRelease:
    """Bins that may be published. Made by :meth:`BinningPlan.release`."""

    plan: BinningPlan
    z: IntArray
    """(bins,) noisy sums, as integers: all that y left behind."""
    receipt: Receipt | None = None
    """Where the release stands in the ledger that paid for it."""

    @property
    def bin_means(self) -> FloatArray:
        """(bins,) noisy mean of each occupied bin."""
        sums = self.plan.sums
        means: FloatArray = sums.lower + self.z.astype(np.float64) * sums.step / self.plan.counts
        return means

    @property
    def mean(self) -> FloatArray:
        """(P,) predictions at the planned test points."""
        mean: FloatArray = self.predict(self.plan.X_star)
        return mean

    @property
    def certificate(self) -> BinningCertificate:
        """The guarantee."""
        return self.plan.certificate

    @one_blas_thread()
    def predict(self, X: Any, *, return_std: bool = False) -> Any:
        """Predictions anywhere, free. With `return_std`, the std of a GP's prediction of f, or for
        constant predictions that of the privacy noise."""
        X = checks.matrix(X, "X", columns=self.plan.X.shape[1])
        predictor = self.plan.predictor
        gain = predictor.gain(X)
        mean = predictor.mean + gain @ (self.bin_means - predictor.mean)
        if not return_std:
            return mean
        std = predictor.std(X)
        return mean, self.plan.noise_at(X) if std is None else std

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """The test points as a table: the prediction, and the std of the privacy noise."""
        numbers = {"prediction": self.mean, "noise_std": self.plan.noise_std}
        return showing.frame(None, self.plan.X_star, numbers, backend)

    def _repr_html_(self) -> str:
        plan = self.plan
        facts = showing.facts(self.certificate, None, plan.X_star, noise_std=plan.noise_std)
        return showing.page("Release of bins", facts, self.certificate.insecure)

    def __repr__(self) -> str:
        c = self.certificate
        mark = "INSECURE " if c.insecure else ""
        return f"<{mark}BinningRelease: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {c.n_bins} bins>"


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
    X, names = checks.matrix(X, "X"), tuple(read(X) or ())
    checks.choice(predict, "predict", PREDICT)
    cuts = _edges(edges, X)
    number = _bin_numbers(X, cuts)
    if (number < 0).any():
        raise ValueError("edges must cover X: there are rows outside of all bins. Widen the outer edges.")
    numbers, labels, counts = np.unique(number, return_inverse=True, return_counts=True)
    variance = checks.number(noise, "noise", remedy=_NOISE)
    if variance < 0:
        raise ValueError(f"noise must be at least 0; got {noise!r}. {_NOISE}")
    prior_mean = None if mean is None else checks.number(mean, "mean")
    if predict == "constant":
        for name, given in (("kernel", kernel), ("noise", noise or None), ("mean", mean)):
            if given is not None:
                raise ValueError(f"{name} is for predict='gp' or 'integral'; leave it out for 'constant'.")
    else:
        kernel = _kernel(kernel, predict)

    def predictor(low: float, high: float, variances: FloatArray) -> Predictor:
        middle = low + (high - low) / 2
        if predict == "constant":
            return _Constant(cuts, numbers, middle)
        lower, upper = _corners(numbers, cuts)
        sites: Any = Boxes(lower, upper) if predict == "integral" else lower / 2 + upper / 2
        observed = variances + variance / counts
        return _Smooth(kernel, sites, observed, middle if prior_mean is None else prior_mean)

    occupancy = Occupancy(
        math.prod(len(cut) - 1 for cut in cuts), len(numbers), int(np.count_nonzero(counts == 1))
    )
    return _make_plan(
        X,
        X_star,
        labels.astype(np.int64),
        counts,
        predictor,
        occupancy,
        cuts,
        bounds,
        epsilon,
        delta,
        mechanism,
        people,
        ids,
        names,
    )


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
    X, names = checks.matrix(X, "X"), tuple(read(X) or ())
    model = GP(kernel, noise, bounds, mean)
    model.check_rows(len(X))
    model.one_pair("binning")

    def predictor(low: float, high: float, variances: FloatArray) -> Predictor:
        return _Smooth(model.kernel, X, variances + model.noise, model.level)

    everyone = np.arange(len(X), dtype=np.int64)
    occupancy = Occupancy(len(X), len(X), len(X))
    counts = np.ones(len(X), dtype=np.int64)
    return _make_plan(
        X,
        X_star,
        everyone,
        counts,
        predictor,
        occupancy,
        (),
        bounds,
        epsilon,
        delta,
        mechanism,
        people,
        ids,
        names,
    )


def _make_plan(
    X: FloatArray,
    X_star: Any,
    labels: IntArray,
    counts: IntArray,
    predictor: Any,
    occupancy: Occupancy,
    edges: tuple[FloatArray, ...],
    bounds: Any,
    epsilon: float,
    delta: float | None,
    mechanism: str,
    people: Any,
    ids: str,
    names: tuple[str, ...],
) -> BinningPlan:
    X_star = checks.matrix(X_star, "X_star", columns=X.shape[1])
    checks.choice(mechanism, "mechanism", MECHANISMS)
    low, high = check_bounds(bounds)
    if delta is not None and mechanism == "laplace":
        raise ValueError("delta is for mechanism='gaussian': Laplace noise has none. Leave it out.")
    ids = as_ids(ids, people is not None)
    who = None if people is None else as_people(people, len(X), ids)
    epsilon, delta = promise(epsilon, delta, len(X) if who is None else who.n_people)
    delta = 0.0 if mechanism == "laplace" else delta
    unit = OUTCOME if who is None else PERSON
    sums = make_sums(labels, len(counts), (low, high), epsilon, delta, mechanism, who)
    certificate = BinningCertificate(
        epsilon=epsilon,
        delta=delta,
        unit=unit.name,
        neighbours=unit.neighbours,
        spend=SPEND,
        insecure=False,
        mechanism=mechanism,
        n_rows=len(X),
        n_bins=len(counts),
        y_bits=sums.y_bits,
        scale=sums.scale,
        ids=ids,
    )
    made = predictor(low, high, (sums.noise_std / counts) ** 2)
    plan = BinningPlan(X, X_star, sums, frozen(counts), made, occupancy, edges, certificate, names)
    made.std(X_star[:1])  # a kernel that does not work must say so now, not when y has been spent
    assert np.isfinite(plan.noise_std).all()
    return plan


_NOISE = "It is the variance of single outcomes about f."


def _kernel(kernel: Any, predict: str) -> Kernel:
    if kernel is None:
        raise ValueError(f"kernel must be given for predict={predict!r}, such as cloakgp.kernels.EQ(...).")
    checked: Kernel = as_kernel(kernel)
    if predict == "integral":
        return _over_boxes(checked)
    if any(isinstance(part, Integral) for part in _parts(checked)):
        raise ValueError(
            "kernel must be one for points with predict='gp'; got an Integral, which is for boxes. "
            "Give the kernel inside it, or predict='integral'."
        )
    return checked


def _over_boxes(kernel: Kernel) -> Kernel:
    """The kernel of means over boxes: that of each term of a sum; a constant factor stays outside."""
    if isinstance(kernel, Sum):
        return Sum([_over_boxes(part) for part in kernel.kernels])
    if isinstance(kernel, Product) and sum(not isinstance(part, Constant) for part in kernel.kernels) < 2:
        return Product([_over_boxes(part) for part in kernel.kernels])
    if isinstance(kernel, Constant):
        return kernel
    if not isinstance(kernel, Integral):
        return Integral(kernel)  # type: ignore[arg-type]  # which refuses all but EQ
    if not kernel.normalise:
        raise ValueError("kernel must have normalise=True: a bin's mean is known, not its integral.")
    return kernel


def _parts(kernel: Kernel) -> list[Kernel]:
    if not isinstance(kernel, (Sum, Product)):
        return [kernel]
    return [leaf for part in kernel.kernels for leaf in _parts(part)]


def _edges(edges: Any, X: FloatArray) -> tuple[FloatArray, ...]:
    columns = X.shape[1]
    if isinstance(edges, (int, np.integer)) and not isinstance(edges, bool):
        cuts = _equal_bins(int(edges), X)
    else:
        cuts = _given_edges(edges, columns)
    if math.prod(len(cut) - 1 for cut in cuts) >= _MOST_BINS:
        raise ValueError("edges make more than 2^62 bins. Use fewer along each input.")
    return cuts


def _given_edges(edges: Any, columns: int) -> tuple[FloatArray, ...]:
    wanted = f"edges must be a number of bins, or one array for each of X's {columns} column(s)"
    try:
        listed = list(edges)
    except TypeError:
        raise TypeError(f"{wanted}; got {edges!r}.") from None
    if columns == 1 and listed and not np.iterable(listed[0]):
        listed = [listed]
    if len(listed) != columns:
        raise ValueError(f"{wanted}; got {len(listed)} entries.")
    cuts = tuple(checks.vector(cut, f"edges[{i}]") for i, cut in enumerate(listed))
    for i, cut in enumerate(cuts):
        if len(cut) < 2 or not (cut[1:] > cut[:-1]).all():
            raise ValueError(f"edges[{i}] must be at least two numbers, each above the one before.")
    return cuts


def _equal_bins(number: int, X: FloatArray) -> tuple[FloatArray, ...]:
    """So many equal bins along each input, over the range of X."""
    if not 1 <= number <= _MOST_EQUAL_BINS:
        raise ValueError(f"edges must be 1 to {_MOST_EQUAL_BINS} bins along each input; got {number}.")
    low, high = X.min(axis=0), X.max(axis=0)
    with np.errstate(all="ignore"):  # what does not fit is refused below
        high = np.where(high > low, high, low + np.maximum(1.0, np.abs(low)))
        cuts = tuple(frozen(np.linspace(a, b, number + 1)) for a, b in zip(low, high, strict=True))
        for i, cut in enumerate(cuts):
            if not (np.isfinite(cut).all() and (cut[1:] > cut[:-1]).all()):
                raise ValueError(
                    f"edges={number} does not divide the range of X's column {i}: floating-point numbers "
                    "are too few there. Give fewer bins, or arrays of edges."
                )
    return cuts


def _bin_numbers(X: FloatArray, edges: tuple[FloatArray, ...]) -> IntArray:
    """(n,) the number of the bin that each row is in, the last input counting fastest; -1 if in none."""
    number = np.zeros(len(X), dtype=np.int64)
    outside = np.zeros(len(X), dtype=bool)
    for column, cut in zip(X.T, edges, strict=True):
        place = np.searchsorted(cut, column, side="right") - 1
        place[column == cut[-1]] = len(cut) - 2
        outside |= (place < 0) | (place > len(cut) - 2)
        number = number * (len(cut) - 1) + place
    number[outside] = -1
    return number


def _corners(numbers: IntArray, edges: tuple[FloatArray, ...]) -> tuple[FloatArray, FloatArray]:
    """Lower and upper corners of bins."""
    places = np.unravel_index(numbers, [len(cut) - 1 for cut in edges])
    lower = np.column_stack([cut[place] for cut, place in zip(edges, places, strict=True)])
    upper = np.column_stack([cut[place + 1] for cut, place in zip(edges, places, strict=True)])
    return lower, upper
