"""Choose a model privately: the exponential mechanism over a public list of candidates.

A :class:`SelectionPlan` is public: candidates, folds, and how far one row of y could move any
candidate's cross-validated loss. ``select(y)`` is the private step, and only the choice comes out.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from cloakgp import accounting, checks, designs
from cloakgp import calibration as calibrate
from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import Argument, ArgumentError, ArgumentTypeError, Message, Phrase
from cloakgp.files import container
from cloakgp.kernels import Kernel
from cloakgp.kernels.base import Combination
from cloakgp.ledger.charge import Receipt
from cloakgp.measurements.certificate import as_words, ids_lines
from cloakgp.measurements.folds import Fold, as_folds, weights
from cloakgp.measurements.lattice import IntArray
from cloakgp.measurements.scores import FOLD_LIMIT, LOSSES, Scores, make_scores
from cloakgp.measurements.unit import OUTCOME, PERSON
from cloakgp.model.gp import GP
from cloakgp.model.outcome import REAL
from cloakgp.plans import showing
from cloakgp.plans.base import PlanBase
from cloakgp.progress import Progress
from cloakgp.rows.columns import Columns, names_in
from cloakgp.rows.inputs import TableRows, as_inputs, as_points, named
from cloakgp.rows.merging import Labels
from cloakgp.rows.people import ALIKE, People, as_within, for_people

SPEND = "each selection made from a plan spends this once more"
DEFAULT_CLIP = 0.25
"""Share of the bounds' width at which residuals are clipped, unless `loss_clip` says otherwise."""
_CLIP_RANGE = (1e-4, 10.0)  # of the bounds' width
_MEMORY = 4 * 2**30  # bytes of integers that a plan may hold
WORKING = 8 * 2**30
"""Bytes that a model's matrices may take: its covariances, their factor and their inverse."""


@dataclass(frozen=True)
class SelectionCertificate:
    """The guarantee of a selection and how it was reached. Nothing in it depends on y."""

    epsilon: float
    unit: str
    neighbours: str
    spend: str
    insecure: bool
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
    y_bits: int
    matrix_bits: int
    score_shift: int
    """Bits dropped from each candidate's summed loss."""
    sensitivity_steps: int
    """Sensitivity in steps of the scores, rounded up."""
    noise_scale: float
    """Scale of the Gumbel noise in steps of the scores: 2 sensitivity / epsilon, rounded up."""
    ids: str = ALIKE
    """How people's ids were compared, as in a release's certificate."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, ready for JSON."""
        return as_words(self)

    def __str__(self) -> str:
        lines = ["INSECURE: noise from a seed, not private"] if self.insecure else []
        lines += [
            f"{self.epsilon:g}-differential privacy of y, unit: {self.unit}",
            f"  neighbours    {self.neighbours}",
            f"  spend         {self.spend}",
            f"  mechanism     exponential, over {self.n_candidates} candidates",
            f"  loss          {self.loss}, residuals clipped at {self.loss_clip:.6g}, summed over "
            f"{self.n_tested} tests in {self.n_folds} folds of {self.n_rows} rows",
            f"  noise of      {self.plan_for or 'no release is counted'}",
            f"  sensitivity   {self.sensitivity:.6g} of the summed loss",
            f"  lattice       y to 1/2^{self.y_bits} of its range, matrices to 2^-{self.matrix_bits}, "
            f"sensitivity {self.sensitivity_steps} steps, noise scale {self.noise_scale:.6g}",
            *ids_lines(self.ids),
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """A model that was chosen privately. Using it further is free; nothing else of y came out."""

    plan: SelectionPlan
    index: int
    """Where the model stands in the plan's candidates."""
    certificate: SelectionCertificate
    receipt: Receipt | None = None
    """Where the selection stands in the ledger that paid for it."""

    @property
    def gp(self) -> GP:
        """The chosen model."""
        return self.plan.candidates[self.index]

    @property
    def z(self) -> IntArray:
        """All that y left behind, as a ledger keeps it: the index."""
        return np.array([self.index])

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """The candidates as a table, and which one was chosen; as for :meth:`SelectionPlan.to_frame`."""
        chosen = np.arange(len(self.plan.candidates)) == self.index
        return showing.framed(self.plan.listed() | {"chosen": chosen}, backend)

    def _repr_html_(self) -> str:
        found = showing.facts(self.certificate, self.plan.columns)
        chosen = {"chosen": f"candidate {self.index + 1} of {self.certificate.n_candidates}"}
        model = {"kernel": repr(self.gp.kernel), "noise": str(self.plan.listed()["noise"][self.index])}
        return showing.page("Selection", found | chosen | model, self.certificate.insecure)

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


@dataclass(frozen=True, eq=False, repr=False)
class SelectionPlan(PlanBase[Selection]):
    """How a model will be chosen. Made by :func:`plan_selection`; never saw y, so it is public."""

    candidates: tuple[GP, ...]
    X: FloatArray
    scores: Scores
    certificate: SelectionCertificate
    columns: Columns | None = None
    """Names of the columns of X, and how levels and dates became numbers, if X was a table."""
    rows: TableRows | None = None
    """Which rows of the table count."""

    @property
    def epsilon(self) -> float:
        """What one selection spends: that of the scores, by which the choice is drawn."""
        return self.scores.epsilon

    @property
    def sensitivity(self) -> float:
        """How far one row of y, or all of one person's, can move the summed loss of any candidate."""
        return self.certificate.sensitivity

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Pairs (train, test) of row numbers."""
        return self.scores.folds

    @property
    def cost(self) -> accounting.Exponential:
        """What one selection spends, for :func:`cloakgp.accounting.compose`."""
        return accounting.Exponential(self.epsilon)

    @property
    def partition(self) -> str:
        """SHA-256 of who has which rows, for the ledger; empty where the promise is to each row."""
        return "" if self.scores.people is None else self.scores.people.digest

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: the same candidates, inputs, folds and settings give the same."""
        scores = self.scores
        words = {
            "format": "cloakgp-selection",
            "certificate": self.certificate.to_dict(),
            "promise": [scores.epsilon, scores.sensitivity, scores.lower, scores.upper],
            "costs": [str(cost) for cost in scores.costs],  # beyond 64 bits
            "clip": scores.clip,
            **({"partition": self.partition} if self.partition else {}),
            "candidates": [
                {
                    **words,
                    "matrices": [container.digest(matrix) for matrix in matrices],
                    "offsets": [container.digest(offset) for offset in offsets],
                }
                for words, matrices, offsets in zip(
                    self._candidate_words(), scores.matrices, scores.offsets, strict=True
                )
            ],
        }
        sha256: str = container.sealed(words, self._arrays())["sha256"]
        return sha256

    @cached_property
    def question_digest(self) -> str:
        """SHA-256 of what is asked, of whom. The answer is the number of a candidate, whatever the digits."""
        words = {
            "format": "cloakgp-selection",
            "promise": [self.scores.epsilon, self.scores.lower, self.scores.upper],
            "loss": [self.certificate.loss, self.certificate.loss_clip],
            "people": self.partition,
            "candidates": self._candidate_words(),
        }
        sha256: str = container.sealed(words, self._arrays())["sha256"]
        return sha256

    def _candidate_words(self) -> list[dict[str, Any]]:
        return [
            {
                "kernel": gp.kernel.to_spec(),
                "noise": gp.noise if isinstance(gp.noise, float) else container.digest(gp.noise),
                "mean": gp.mean,
            }
            for gp in self.candidates
        ]

    def _arrays(self) -> dict[str, container.Array]:
        arrays: dict[str, container.Array] = {"X": self.X}
        for number, (train, test) in enumerate(self.folds):
            arrays |= {f"train{number}": train, f"test{number}": test}
        return arrays

    def select(
        self,
        y: Any,
        *,
        missing: str = "error",
        ledger: Any = None,
        dataset: str | None = None,
        why: str = "",
        request: str | None = None,
    ) -> Selection:
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
        ledger, dataset, why, request
            As for :meth:`cloakgp.Plan.release`.
        """
        return self.release(y, missing=missing, ledger=ledger, dataset=dataset, why=why, request=request)

    def _measure(self, y: Any, missing: str) -> IntArray:
        from cloakgp.private.room import choose

        return np.array([choose(self.scores, y, missing, self.rows, names_in(self.columns))])

    def _made_of(self, answer: IntArray, receipt: Receipt | None, insecure: bool) -> Selection:
        certificate = replace(self.certificate, epsilon=self.scores.epsilon, insecure=insecure)
        return Selection(self, int(answer[0]), certificate, receipt)

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

    def listed(self) -> dict[str, Any]:
        """The candidates, column by column."""
        noise = [gp.noise if isinstance(gp.noise, float) else "one per row" for gp in self.candidates]
        return {
            "kernel": np.array([repr(gp.kernel) for gp in self.candidates], dtype=object),
            "noise": np.array(noise, dtype=object if "one per row" in noise else float),
            "mean": np.array([gp.level for gp in self.candidates]),
        }

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """The candidates as a table. `backend` is "pandas", "polars" or "pyarrow"; it must be installed."""
        return showing.framed(self.listed(), backend)

    def _repr_html_(self) -> str:
        c = self.certificate
        found = showing.facts(c, self.columns) | {"candidates": str(c.n_candidates), "folds": str(c.n_folds)}
        loss = f"{c.loss}, clipped at {c.loss_clip:.3g}"
        return showing.page("Plan of a selection", found | {"loss": loss}, False)

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
    clip = _clip(loss_clip, bounds[1] - bounds[0])
    who = given.shared(len(X))
    within, counted = as_within(within), models
    if who is not None:  # as a plan with these people counts their rows
        counted = tuple(replace(gp, noise=for_people(gp.noise, who, within)) for gp in models)
    pairs = as_folds(folds, X, who)
    _check_size(pairs, len(models), len(X))
    release = None if plan_for is None else _release(plan_for, X, who, within, given.columns)

    with Progress("planning the selection", len(models) * (1 if release is None else 2)) as progress:
        costs = [0.0] * len(models)
        if release is not None:
            costs = [_noise_cost(gp, X, release, loss, progress.advance) for gp in models]
        scores = make_scores(
            weights(counted, X, pairs, progress.advance),
            pairs,
            means=[gp.level for gp in models],
            costs=costs,
            bounds=bounds,
            n_rows=len(X),
            loss=loss,
            clip=clip,
            epsilon=epsilon,
            people=who,
        )
    scores.check()
    certificate = _certify(scores, clip, release)
    return SelectionPlan(models, X, scores, certificate, given.columns, given.rows)


def _models(candidates: Any) -> tuple[GP, ...]:
    if isinstance(candidates, GP) or not isinstance(candidates, Iterable):
        raise TypeError("candidates must be a list of GP, for example from cloakgp.grid.")
    models = tuple(candidates)
    for number, gp in enumerate(models):
        if not isinstance(gp, GP):
            raise ArgumentTypeError(f"candidates[{number}]", "must be a GP", type(gp).__name__)
        if gp.outcome != REAL:
            remedy = "AutoGP learns the model of such outcomes in the release itself."
            raise ArgumentError(f"candidates[{number}]", "must be of real outcomes", gp.outcome, remedy)
        if gp.inducing is not None:
            raise ValueError(
                f"candidates[{number}] has inducing inputs, and selection compares exact GPs. Leave inducing "
                "out here, on a part of the rows if they are many; plan the release with it afterwards."
            )
        if gp.downweight is not None:
            raise ArgumentError(
                f"candidates[{number}]",
                "must have no downweight, since folds would weigh rows differently",
                repr(gp.downweight),
                "Choose without it, and plan the release with it afterwards.",
            )
    if len(models) < 2:
        raise ValueError(
            f"candidates must hold at least two models; got {len(models)}. With nothing to choose, plan the "
            "release at once, and spend nothing here."
        )
    for number, gp in enumerate(models):
        if gp.one_pair("a selection") != models[0].bounds:
            raise ValueError(
                f"candidates must share their bounds, which say what y can be; candidates[{number}] has "
                f"{gp.bounds} and candidates[0] has {models[0].bounds}."
            )
        for other in range(number):
            if _same(gp, models[other]):
                raise ValueError(
                    Message(
                        "candidates must differ; ",
                        Argument(f"candidates[{other}]"),
                        " and ",
                        Argument(f"candidates[{number}]"),
                        " are the same model. It would be chosen twice as readily.",
                    )
                )
    return models


def _same(one: GP, other: GP) -> bool:
    return (
        one.mean == other.mean and np.array_equal(one.noise, other.noise) and bool(one.kernel == other.kernel)
    )


def _clip(loss_clip: Any, width: float) -> float:
    if loss_clip is None:
        return DEFAULT_CLIP * width
    low, high = (share * width for share in _CLIP_RANGE)
    remedy = (
        f"Residuals are clipped there, in y's unit. The default is {DEFAULT_CLIP * width:g}, a quarter of "
        "the bounds' width; a larger clip raises the sensitivity."
    )
    return checks.number(loss_clip, "loss_clip", above=low, below=high, remedy=remedy)


def _check_size(folds: Sequence[Fold], n_candidates: int, n_rows: int) -> None:
    """Refuse what would not fit before any work is done."""
    if working_bytes(n_rows) > WORKING:
        raise ValueError(
            Message(
                f"{n_rows} rows are too many for a selection: the exact GPs that it compares would need "
                f"{working_bytes(n_rows) / 2**30:.1f} GiB of memory, above the limit of "
                f"{WORKING / 2**30:g}. Select on a part of the rows, chosen by public inputs alone; or ",
                Phrase.LEARN_MODEL,
                ". Nothing was spent.",
            )
        )
    largest = max(len(test) for _, test in folds)
    if largest >= FOLD_LIMIT:
        raise ValueError(f"folds must test fewer than {FOLD_LIMIT} rows each; got {largest}. Use more folds.")
    needed = 4 * n_candidates * sum(len(train) * len(test) for train, test in folds)
    if needed > _MEMORY:
        raise ValueError(
            f"folds and candidates would need {needed / 2**30:.1f} GiB of memory, above the limit of "
            f"{_MEMORY / 2**30:g}. Use fewer folds, fewer candidates, or folds on a part of the rows."
        )


def working_bytes(n_rows: int) -> int:
    """What the matrices of one model take."""
    return 3 * 8 * n_rows**2


@dataclass(frozen=True, eq=False)
class _Release:
    """The release that a selection is for."""

    X_star: FloatArray
    epsilon: float
    delta: float
    design: str
    people: Labels | None
    within: float

    def __str__(self) -> str:
        points = len(self.X_star)
        return f"a ({self.epsilon:g}, {self.delta:g})-DP release, {self.design} design, {points} test points"


def _release(
    plan_for: Any, X: FloatArray, people: People | None, within: float, columns: Columns | None
) -> _Release:
    try:
        X_star, epsilon, delta, design = plan_for
    except (TypeError, ValueError):
        raise ValueError(
            "plan_for must be (X_star, epsilon, delta, design), the release that is to follow."
        ) from None
    try:
        epsilon, delta = calibrate.promise(epsilon, delta, len(X) if people is None else people.n_people)
        X_star = as_points(X_star, "X_star", X.shape[1], columns)
        checks.choice(design, "design", designs.DESIGNS)
    except ArgumentError as error:
        raise error.inside("plan_for") from None
    return _Release(X_star, epsilon, delta, design, None if people is None else people.labels, within)


def _noise_cost(gp: GP, X: FloatArray, release: _Release, loss: str, advance: Callable[[], None]) -> float:
    """What privacy noise adds to the expected loss of one prediction.

    Squared loss: the noise's variance. Absolute loss: the mean size of Gaussian noise of that
    variance. A `posterior` release trades noise for shrinking; its objective counts both. It is not capped
    at the loss's clip: that is there to bound what y can do, and this does not depend on y.
    """
    plan = gp.plan(
        X,
        X_star=release.X_star,
        epsilon=release.epsilon,
        delta=release.delta,
        design=release.design,
        people=release.people,
        within=release.within,
    )
    variances = plan.noise_std**2 if plan.certificate.unbiased else np.array([plan.certificate.objective])
    advance()
    if loss == "squared":
        return float(variances.mean())
    return math.sqrt(2 / math.pi) * float(np.sqrt(variances).mean())


def _certify(scores: Scores, clip: float, release: _Release | None) -> SelectionCertificate:
    unit = OUTCOME if scores.people is None else PERSON
    return SelectionCertificate(
        epsilon=scores.epsilon,
        unit=unit.name,
        neighbours=unit.neighbours,
        spend=SPEND,
        insecure=False,
        loss=scores.loss,
        loss_clip=clip,
        n_candidates=len(scores.matrices),
        n_rows=scores.n_rows,
        n_folds=len(scores.folds),
        n_tested=scores.n_tested,
        sensitivity=scores.sensitivity * scores.step,
        plan_for=None if release is None else str(release),
        y_bits=scores.y_bits,
        matrix_bits=scores.matrix_bits,
        score_shift=scores.shift,
        sensitivity_steps=scores.sensitivity,
        noise_scale=scores.scale,
        ids=ALIKE if scores.people is None else scores.people.ids,
    )


def grid(*, kernel: Any, noise: Any, bounds: Any, mean: Any = None, **parameters: Any) -> list[GP]:
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
    >>> for gp in grid(kernel=EQ, lengthscale=[5.0, 20.0], noise=[1.0, 4.0], bounds=(0.0, 10.0)):
    ...     print(gp.kernel, gp.noise)
    EQ(lengthscale=5.0, variance=1.0) 1.0
    EQ(lengthscale=5.0, variance=1.0) 4.0
    EQ(lengthscale=20.0, variance=1.0) 1.0
    EQ(lengthscale=20.0, variance=1.0) 4.0
    """
    listed = [_values(value, name) for name, value in parameters.items()]
    noises = _values(noise, "noise")
    result = []
    for values in itertools.product(*listed):
        made = _kernel(kernel, dict(zip(parameters, values, strict=True)))
        result += [GP(made, one, bounds, mean) for one in noises]
    return result


def _values(value: Any, name: str) -> list[Any]:
    values = list(value) if isinstance(value, list) or getattr(value, "ndim", 0) > 0 else [value]
    if not values:
        raise ValueError(f"{name} must be a value or a list of values; got an empty list.")
    return values


def _kernel(kernel: Any, values: Mapping[str, Any]) -> Kernel:
    if isinstance(kernel, Kernel):
        return _replaced(kernel, values)
    wanted = f"kernel must be a kernel class such as EQ, or a kernel, with the parameters {', '.join(values)}"
    try:
        parameters = inspect.signature(kernel).parameters
    except (TypeError, ValueError):
        raise TypeError(f"{wanted}; got {kernel!r}.") from None
    missing = [name for name, p in parameters.items() if p.default is p.empty and name not in values]
    if missing or not set(values) <= set(parameters):
        raise TypeError(f"{wanted}; {kernel!r} takes {', '.join(parameters)}.")
    made = kernel(**values)
    if not isinstance(made, Kernel):
        raise TypeError(f"{wanted}; {kernel!r} made {type(made).__name__}.")
    return made


def _replaced(kernel: Kernel, values: Mapping[str, Any]) -> Kernel:
    parts = list(kernel.kernels) if isinstance(kernel, Combination) else [kernel]
    for name, value in values.items():
        having = [i for i, part in enumerate(parts) if name in {f.name for f in fields(part)}]
        if len(having) != 1:
            raise ValueError(
                f"{name} must be a parameter of exactly one part of the kernel {kernel!r}; {len(having)} "
                "have it. Make the list of models yourself, with one GP for each."
            )
        parts[having[0]] = replace(parts[having[0]], **{name: value})
    return type(kernel)(parts) if isinstance(kernel, Combination) else parts[0]
