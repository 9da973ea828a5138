"""Choose a model privately: the exponential mechanism over a public list of candidates.

A :class:`SelectionPlan` is public: candidates, folds, and how far one row of y could move any
candidate's cross-validated loss. ``select(y)`` is the private step, and only the choice comes out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cloakgp.core import accounting, checks
from cloakgp.core import calibration as calibrate
from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.core.errors import ArgumentError, ArgumentTypeError, Message, Phrase
from cloakgp.core.progress import Progress
from cloakgp.data.columns import Columns, names_in
from cloakgp.data.inputs import as_inputs, as_points, named
from cloakgp.data.people import ALIKE, People, as_within, for_people
from cloakgp.files import container
from cloakgp.gp import GP
from cloakgp.kernels import Kernel
from cloakgp.measure.certificate import ids_lines
from cloakgp.measure.cross_validation import LOSSES, Fold, Scores, as_folds, make_scores, residuals
from cloakgp.measure.unit import check_unit
from cloakgp.model.outcome import REAL
from cloakgp.release.base import Answered, PlanBase
from cloakgp.release.plan import Plan

WORKING = 8 * 2**30
"""Bytes that a model's matrices may take: its covariances, their factor and their inverse."""


@dataclass(frozen=True)
class SelectionCertificate:
    """The guarantee of a selection and how it was reached. Nothing in it depends on y."""

    epsilon: float
    unit: str
    neighbours: str
    loss: str
    loss_clip: float
    n_candidates: int
    n_rows: int
    n_folds: int
    n_tested: int
    """Residuals per candidate, over all folds."""
    sensitivity: float
    """How far one row of y, or all of one person's, can move the summed loss of any candidate, rounding
    included."""
    plan_for: str | None
    """The release whose noise was counted, in words; None if none was."""
    ids: str = ALIKE
    """How people's ids were compared, as in a release's certificate."""
    spend: str = "each selection made from a plan spends this once more"
    insecure: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            *(["INSECURE: noise from a seed, not private"] if self.insecure else []),
            f"{self.epsilon:g}-differential privacy of y, unit: {self.unit}",
            f"  neighbours    {self.neighbours}",
            f"  spend         {self.spend}",
            f"  mechanism     exponential, over {self.n_candidates} candidates",
            f"  loss          {self.loss}, residuals clipped at {self.loss_clip:.6g}, summed over "
            f"{self.n_tested} tests in {self.n_folds} folds of {self.n_rows} rows",
            f"  noise of      {self.plan_for or 'no release is counted'}",
            f"  sensitivity   {self.sensitivity:.6g} of the summed loss",
            *ids_lines(self.ids),
        ]
        return "\n".join(lines)


class Selection(Answered):
    """A model that was chosen privately. Using it further is free; nothing else of y came out."""

    plan: SelectionPlan

    @property
    def index(self) -> int:
        """Where the model stands in the plan's candidates: all that y left behind."""
        return int(self.z[0])

    @property
    def gp(self) -> GP:
        """The chosen model."""
        return self.plan.candidates[self.index]

    def __repr__(self) -> str:
        c = self.certificate
        mark = "INSECURE " if c.insecure else ""
        place = f"candidate {self.index + 1} of {c.n_candidates}"
        return f"<{mark}Selection: {place}, {c.epsilon:g}-DP, {self.gp!r}>"


@dataclass(frozen=True, eq=False, repr=False)
class PrivateStudy:
    """NOT PRIVATE. What the custodian may look at before deciding to select, and must not publish."""

    probabilities: FloatArray
    """With which :meth:`SelectionPlan.select` would choose each candidate."""
    losses: FloatArray
    """Mean loss per tested point, of each candidate, with what `plan_for` adds."""

    def __repr__(self) -> str:
        return f"<PrivateStudy of {len(self.losses)} candidates: PRIVATE, computed from y without noise>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SelectionPlan(PlanBase[Selection]):
    """How a model will be chosen. Made by :func:`plan_selection`; never saw y, so it is public."""

    candidates: tuple[GP, ...]
    folds: tuple[Fold, ...]
    scores: Scores

    _result = Selection

    @property
    def sensitivity(self) -> float:
        """How far one row of y, or all of one person's, can move the summed loss of any candidate."""
        return float(self.certificate.sensitivity)

    @property
    def cost(self) -> accounting.Exponential:
        """What one selection spends, for :func:`cloakgp.core.accounting.compose`."""
        return accounting.Exponential(self.scores.epsilon)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: the same candidates, inputs, folds and settings give the same."""
        scores = self.scores
        # Costs as texts, since they may go beyond 64 bits.
        lattice = [scores.statistic.y_bits, scores.matrix_bits, scores.shift]
        reached = [*lattice, scores.sensitivity, scores.clip, *map(str, scores.costs)]
        several = scores.matrices, scores.offsets
        integers = [container.digest(array) for arrays in several for array in arrays]
        return self._sealed(certificate=self.certificate.to_dict(), reached=reached, integers=integers)

    @cached_property
    def question_digest(self) -> str:
        """SHA-256 of what is asked, of whom. The answer is the number of a candidate, whatever the digits."""
        return self._sealed()

    def _sealed(self, **more: Any) -> str:
        words = {
            "format": "cloakgp-selection",
            "promise": [self.scores.epsilon, self.scores.statistic.lower, self.scores.statistic.upper],
            "loss": [self.certificate.loss, self.certificate.loss_clip],
            "people": self.partition,
            "candidates": [[gp.kernel.to_spec(), *_numbers(gp)] for gp in self.candidates],
            **more,
        }
        arrays: dict[str, container.Array] = {"X": self.X}
        for number, (train, test) in enumerate(self.folds):
            arrays |= {f"train{number}": train, f"test{number}": test}
        return str(container.seal(words, arrays)["sha256"])

    def select(self, y: Any, *, missing: str = "error", **paid: Any) -> Selection:
        """Choose a candidate from the private outcomes: the one private step.

        Each call draws fresh noise and is a new spend of epsilon. Choosing twice and taking the
        "better" one would spend twice.

        Parameters
        ----------
        y : (N,) array
            Private outcomes, in the order of X's rows. Values outside the bounds are clipped.
        missing : {"error", "midpoint"}
            NaN and infinities are refused before anything is spent, or replaced row by row by the
            middle of the bounds, which protects missingness too.
        **paid
            `ledger`, `dataset`, `why` and `request`, as for :meth:`cloakgp.Plan.release`.
        """
        return self.release(y, missing=missing, **paid)

    def _measure(self, y: Any, missing: str) -> IntArray:
        from cloakgp.private.room import choose

        check_unit(self.certificate, self.scores.unit)
        if self.certificate.epsilon != self.scores.epsilon:
            raise AssertionError("certificate is for another epsilon than the scores")
        return np.array([choose(self.scores, y, missing, self.rows, names_in(self.columns))])

    def custodian_probabilities(self, y: Any, *, missing: str = "error") -> PrivateStudy:
        """NOT PRIVATE: with which probability each candidate would be chosen, computed from y itself.

        For the custodian's eyes only, for example to see on data that are not at stake whether an
        epsilon is large enough to tell the candidates apart. Whatever is decided after looking at
        this, on the data at stake, is no longer covered by any promise.
        """
        from cloakgp.private.room import custodian_scores

        steps = custodian_scores(self.scores, y, missing, self.rows)
        log_odds = -(steps - steps.min()) / self.scores.scale
        odds = np.exp(log_odds)
        losses = steps * (self.scores.step / self.scores.n_tested)
        return PrivateStudy(frozen(odds / odds.sum()), frozen(losses))

    def __repr__(self) -> str:
        c = self.certificate
        return (
            f"<SelectionPlan: {c.epsilon:g}-DP, unit {c.unit}, {c.n_candidates} candidates, {c.n_rows} rows, "
            f"{c.n_folds} folds, {c.loss} loss clipped at {c.loss_clip:.3g}, sensitivity {c.sensitivity:.3g}>"
        )


@named
def plan_selection(
    candidates: Iterable[GP],
    X: Any,
    *,
    epsilon: float,
    folds: Any = 5,
    loss_clip: float | None = None,
    loss: str = "squared",
    plan_for: tuple[Any, float, float, str] | None = None,
    people: Any = None,
    within: float = 1.0,
    ids: str = ALIKE,
    columns: Any = None,
    missing_inputs: str = "error",
) -> SelectionPlan:
    """Plan a private choice among models: public, free, and without y.

    Parameters
    ----------
    candidates : list of GP
        At least two different models with the same bounds, from :func:`grid` or your own. The list must
        come from public knowledge. Place those that share a kernel side by side: that is faster.
    X : table or (N, D) array
        Public inputs of the private outcomes.
    epsilon : float
        The promise: one selection is epsilon-DP (delta = 0), and spends it once.
    folds : int, scikit-learn splitter, or pairs (train, test) of row numbers
        How to cross-validate. A number K means K folds of the rows, shuffled by a fixed public seed. For
        Monte Carlo folds use ``ShuffleSplit(100, test_size=0.2, random_state=0)``. Nothing here may
        depend on y, so no stratifying. Folds are drawn once, into the plan.
    loss_clip : float, optional
        Residuals count as at most this much, in y's unit; a quarter of the bounds' width if absent.
    loss : {"squared", "absolute"}
        Of a residual e clipped at T: min(e^2, T^2) or min(abs(e), T).
    plan_for : (X_star, epsilon, delta, design), optional
        The release that is to follow. What its privacy noise adds to the error of each candidate is
        public and is added to its loss, so that the choice is good for the release. It is not clipped.
    people : (N,) ids, or the name of a column of X, optional
        Whose row each is, where someone may have several: the promise is then to each person, about all of
        their outcomes at once. Public, as X is. A number of folds keeps each person's rows together, and a
        splitter such as ``GroupKFold(5)`` is told of them.
    within : float
        With `people`: how noise is correlated within a person, as for :meth:`GP.plan`.
    ids, columns, missing_inputs
        As for :meth:`GP.plan`.

    Returns
    -------
    SelectionPlan
        ``plan.select(y)`` is the private step.
    """
    given = as_inputs(X, people, columns, missing_inputs, ids)
    models = tuple(gp.for_columns(given.columns) for gp in _models(candidates))
    X = checks.matrix(given.X, "X")
    for gp in models:
        gp.check_rows(len(X))
    epsilon = checks.number(
        epsilon, "epsilon", above=1e-9, below=calibrate.EPSILON_LIMIT, remedy="0.3 is a common choice."
    )
    checks.choice(loss, "loss", LOSSES)
    bounds = models[0].one_pair("a selection")
    width = bounds[1] - bounds[0]
    remedy = (
        f"Residuals are clipped there, in y's unit. The default is {width / 4:g}, a quarter of the bounds' "
        "width; a larger clip raises the sensitivity."
    )
    clip = width / 4 if loss_clip is None else loss_clip
    clip = checks.number(clip, "loss_clip", above=1e-4 * width, below=10 * width, remedy=remedy)
    who = given.shared(len(X))
    within, counted = as_within(within), models
    if who is not None:  # as a plan with these people counts their rows
        counted = tuple(replace(gp, noise=for_people(gp.noise, who, within)) for gp in models)
    pairs = as_folds(folds, X, who)
    _check_size(sum(len(test) for _, test in pairs), len(models), len(X))

    costs, words = [0.0] * len(models), None
    with Progress("planning the selection", len(models) * (1 if plan_for is None else 2)) as progress:
        for number, gp in enumerate(models if plan_for is not None else ()):
            release = _to_come(plan_for, gp, X, who, within, given.columns)
            costs[number], c = _noise_cost(release, loss), release.certificate
            words = f"a ({c.epsilon:g}, {c.delta:g})-DP release, {c.how}, {len(release.X_star)} test points"
            progress.advance()
        scores = make_scores(
            residuals(counted, X, pairs, progress.advance),
            means=[gp.level for gp in models],
            costs=costs,
            bounds=bounds,
            loss=loss,
            clip=clip,
            epsilon=epsilon,
            people=who,
        )
    scores.check()
    certificate = SelectionCertificate(
        epsilon,
        *scores.unit,
        loss=loss,
        loss_clip=clip,
        n_candidates=len(models),
        n_rows=len(X),
        n_folds=len(pairs),
        n_tested=scores.n_tested,
        sensitivity=scores.sensitivity * scores.step,
        plan_for=words,
        ids=ALIKE if who is None else who.ids,
    )
    about: Any = {"X": X, "columns": given.columns, "rows": given.rows, "people": who, "folds": pairs}
    return SelectionPlan(candidates=models, scores=scores, certificate=certificate, **about)


def _models(given: Any) -> tuple[GP, ...]:
    if isinstance(given, GP) or not isinstance(given, Iterable):
        raise ArgumentTypeError("candidates", "must be a list of GP, for example from cloakgp.candidates")
    models = tuple(given)
    for number, gp in enumerate(models):
        name = f"candidates[{number}]"
        if not isinstance(gp, GP):
            raise ArgumentTypeError(name, "must be a GP", type(gp).__name__)
        if gp.outcome != REAL.name or gp.inducing is not None or gp.downweight is not None:
            expected = "must have no inducing inputs, no downweight, and real outcomes: it compares exact GPs"
            remedy = (
                "Choose on a part of the rows if they are many, and plan the release with these afterwards. "
                "AutoGP learns models of other outcomes in the release itself."
            )
            raise ArgumentError(name, expected, remedy=remedy)
        if gp.one_pair("a selection") != models[0].bounds:
            expected = "must have the bounds of the first, which say what y can be"
            raise ArgumentError(name, expected, f"{gp.bounds}, not {models[0].bounds}")
    each = [(_numbers(gp), gp.kernel) for gp in models]
    for number, one in enumerate(each):
        if (same := each.index(one)) < number:
            expected = f"must differ from those before; it is the same model as number {same + 1}"
            remedy = "It would be chosen twice as readily."
            raise ArgumentError(f"candidates[{number}]", expected, remedy=remedy)
    if len(models) < 2:
        remedy = "With nothing to choose, plan the release at once, and spend nothing here."
        raise ArgumentError("candidates", "must hold at least two models", str(len(models)), remedy)
    return models


def _numbers(gp: GP) -> tuple[Any, ...]:
    """The noise, by its digest if rows have their own, and the mean."""
    return gp.noise if isinstance(gp.noise, float) else container.digest(gp.noise), gp.mean


def _check_size(n_tested: int, n_candidates: int, n_rows: int, limit: int = 4 * 2**30) -> None:
    """Refuse what would not fit before any work is done: a plan's integers take `limit` bytes at most."""
    if working_bytes(n_rows) > WORKING:
        gib = f"{working_bytes(n_rows) / 2**30:.1f} GiB of memory, above the limit of {WORKING / 2**30:g}"
        advice = "Select on a part of the rows, chosen by public inputs alone; or "
        spent = ". Nothing was spent."
        message = Message(f"They would need {gib}. {advice}", Phrase.LEARN_MODEL, spent)
        expected = "must have few enough rows for the exact GPs that are compared"
        raise ArgumentError("X", expected, f"{n_rows} rows", message)
    needed = 4 * n_candidates * n_tested * n_rows
    if needed > limit:
        expected = f"must need at most {limit / 2**30:g} GiB of memory, with these candidates"
        remedy = "Use fewer folds, fewer candidates, or folds that test fewer rows."
        raise ArgumentError("folds", expected, f"{needed / 2**30:.1f} GiB", remedy)


def working_bytes(n_rows: int) -> int:
    """What the matrices of one model take."""
    return 3 * 8 * n_rows**2


def _to_come(
    plan_for: Any, gp: GP, X: FloatArray, who: People | None, within: float, columns: Columns | None
) -> Plan:
    """The plan of the release that is to follow, with this model."""
    try:
        X_star, epsilon, delta, design = plan_for
    except (TypeError, ValueError):
        expected = "must be (X_star, epsilon, delta, design), the release that is to follow"
        raise ArgumentError("plan_for", expected) from None
    people = None if who is None else who.labels
    try:
        X_star = as_points(X_star, "X_star", X.shape[1], columns)
        promise: Any = {"epsilon": epsilon, "delta": delta, "design": design}
        return gp.plan(X, X_star=X_star, people=people, within=within, **promise)
    except ArgumentError as error:
        raise error.inside("plan_for") from None


def _noise_cost(plan: Plan, loss: str) -> float:
    """What privacy noise adds to the expected loss of one prediction.

    Squared loss: the noise's variance. Absolute loss: the mean size of Gaussian noise of that
    variance. A `posterior` release trades noise for shrinking; its objective counts both. It is not capped
    at the loss's clip: that is there to bound what y can do, and this does not depend on y.
    """
    variances = plan.noise_std**2 if plan.certificate.unbiased else np.array([plan.certificate.objective])
    if loss == "squared":
        return float(variances.mean())
    return math.sqrt(2 / math.pi) * float(np.sqrt(variances).mean())


def candidates(*, kernel: Any, noise: Any, bounds: Any, mean: Any = None, **parameters: Any) -> list[GP]:
    """Models that cross lists of parameters, for :func:`plan_selection`.

    Parameters
    ----------
    kernel : kernel class or Kernel
        A class such as :class:`cloakgp.kernels.EQ`, to be called with `parameters`; or a kernel in which
        they are replaced. In a sum or product, each replaces that of the one part that has it.
    noise : number, or list of numbers or of vectors
        Variances of the observation noise. For variances per row, give a list of vectors.
    bounds, mean
        As for :class:`GP`, the same for all.
    **parameters
        Of the kernel, such as ``lengthscale`` and ``variance``. A list or array is crossed; anything else
        is one value. For one lengthscale per column, give a list of tuples.

    Returns
    -------
    list of GP
        In the order of nested loops: over the parameters as they were given, and over `noise` innermost.

    Examples
    --------
    >>> from cloakgp.kernels import EQ
    >>> for gp in candidates(kernel=EQ, lengthscale=[5.0, 20.0], noise=[1.0, 4.0], bounds=(0.0, 10.0)):
    ...     print(gp.kernel, gp.noise)
    EQ(lengthscale=5.0, variance=1.0) 1.0
    EQ(lengthscale=5.0, variance=1.0) 4.0
    EQ(lengthscale=20.0, variance=1.0) 1.0
    EQ(lengthscale=20.0, variance=1.0) 4.0
    """
    *listed, noises = (_values(value, name) for name, value in {**parameters, "noise": noise}.items())
    crossed = [dict(zip(parameters, each, strict=True)) for each in itertools.product(*listed)]
    kernels = [_kernel(kernel, values) for values in crossed]
    return [GP(one, variance, bounds, mean) for one in kernels for variance in noises]


def _values(value: Any, name: str) -> list[Any]:
    values = list(value) if isinstance(value, list) or getattr(value, "ndim", 0) > 0 else [value]
    if not values:
        raise ArgumentError(name, "must be a value or a list of values", "an empty list")
    return values


def _kernel(kernel: Any, values: Mapping[str, Any]) -> Kernel:
    if isinstance(kernel, Kernel):
        changed = kernel
        for name, value in values.items():
            keys = [key for key in kernel.get_params() if key.rpartition("__")[2] == name]
            if len(keys) != 1:
                expected = f"must be a parameter of exactly one part of the kernel {kernel!r}"
                remedy = "Make the list of models yourself, with one GP for each."
                raise ArgumentError(name, expected, f"{len(keys)} that have it", remedy)
            changed = changed.with_params(**{keys[0]: value})
        return changed
    wanted = f"must be a kernel class such as EQ, or a kernel, with the parameters {', '.join(values)}"
    try:
        made = kernel(**values)
    except ArgumentTypeError:  # of a value
        raise
    except TypeError as error:
        raise ArgumentTypeError("kernel", wanted, f"{kernel!r}: {error}") from error
    if isinstance(made, Kernel):
        return made
    raise ArgumentTypeError("kernel", wanted, f"{kernel!r}, which made {type(made).__name__}")
