"""A release in stages: its plan, which is public, and what comes out of the private steps.

One promise is kept by all stages together, and paid for once, before the first. Each later stage is planned
from what was answered so far (:mod:`cloakgp.plans.stages`), put on record, and answered once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.linalg import LinAlgError

from cloakgp import testing
from cloakgp.accounting import Gaussian
from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.files import atomic, container, reading, schema
from cloakgp.files.labels import NONE, Labelled, Labels
from cloakgp.ledger.charge import Account, Receipt
from cloakgp.ledger.charging import as_ledger, paid, staged
from cloakgp.ledger.errors import LedgerTampered
from cloakgp.ledger.records import check_number
from cloakgp.ledger.stages import StageRecord
from cloakgp.ledger.units import Reads
from cloakgp.measurements.lattice import IntArray
from cloakgp.measurements.staged_certificate import StagedCertificate
from cloakgp.measurements.unit import check_unit
from cloakgp.model.auto_gp import AutoGP
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Candidate, Hyperprior, Known, KnownSetting
from cloakgp.model.outcome import CHANCES, NO_YES, YES_NO, Label
from cloakgp.plans import plan_file, showing
from cloakgp.plans import staged_encoding as encoding
from cloakgp.plans.base import naming
from cloakgp.plans.linked import linked_posteriors
from cloakgp.plans.question import Question, check_own, question_digest
from cloakgp.plans.stages import Promise, Rule, Stage, StagePlan, Walk
from cloakgp.posterior import staging
from cloakgp.posterior.classes import ClassLearned
from cloakgp.posterior.conditioning import Posterior, Uncertainty
from cloakgp.posterior.forecast import forecast, linked_forecast
from cloakgp.posterior.learning import Learned
from cloakgp.posterior.mixture import State
from cloakgp.posterior.model_check import ModelCheck, check_mixtures
from cloakgp.posterior.outcomes import LinkedLearned
from cloakgp.progress import Progress
from cloakgp.rows.blas import one_blas_thread
from cloakgp.rows.cells import fill_cells
from cloakgp.rows.columns import Columns, names_in
from cloakgp.rows.inputs import TableRows, as_points
from cloakgp.rows.merging import Groups
from cloakgp.rows.people import People

_FAILED = (ValueError, ArithmeticError, LinAlgError, AssertionError)
"""What public arithmetic between stages may end in; not known to happen."""


@dataclass(frozen=True, eq=False, repr=False)
class StagedPlan:
    """What the first stage will measure, and the rule for the others. Made by :meth:`AutoGP.plan`.

    A plan never saw y, so it can be printed, plotted, published and compared with others at no
    cost. Only :meth:`release` spends.
    """

    kind: ClassVar[str] = schema.STAGED
    made: ClassVar[type[StagedRelease]]
    """What a release is."""
    whole_rows: ClassVar[bool] = False
    """Whether inputs are private, too."""

    rule: Rule
    first: StagePlan
    certificate: StagedCertificate
    question: Question | None = None
    """What it was asked for; None if it was read from a file, and is not to be released from."""

    @property
    def _private_inputs(self) -> tuple[str, ...]:
        """The names of inputs that are read with y."""
        return ()

    @property
    def X(self) -> Any:
        """(N, D) public inputs; None if the plan was read from a file that holds only their digest."""
        return self.rule.X

    @property
    def X_star(self) -> FloatArray:
        """(P, D) test points."""
        return self.rule.X_star

    @property
    def columns(self) -> Columns | None:
        """Names of the columns of X, and how levels and dates became numbers, if X was a table."""
        return self.rule.columns

    @property
    def rows(self) -> TableRows | None:
        """Which rows of the table count."""
        return self.rule.rows

    @property
    def weights(self) -> FloatArray:
        """(P,) how much the error at each test point matters, 1 on average."""
        return self.rule.weights

    @property
    def stages(self) -> int:
        """How many."""
        return self.rule.n_stages

    @property
    def shares(self) -> tuple[float, ...]:
        """The schedule: each stage's share of mu squared."""
        return self.rule.promise.shares

    @cached_property
    def gp(self) -> GP:
        """The one GP with the mean and covariances of all that is believed beforehand."""
        return self.rule.prior.model(self.rule.inputs.X, self.rule.latent)

    @cached_property
    @one_blas_thread()
    def start(self) -> State:
        """What is believed before the first stage."""
        return self.rule.walk().state

    @cached_property
    @one_blas_thread()
    def _expected(self) -> tuple[FloatArray, FloatArray]:
        """(P,) variances of f(X*): after all stages, and if y were known."""
        rule, m, line = self.rule, self.first.measurement, self.first.line
        assert m.part is not None
        if rule.link is not None or (isinstance(rule.prior, Hyperprior) and not rule.given):
            walk, mu = rule.walk(self.start), rule.promise.mu
            whole = walk.stage(*rule.bounds, mu)
            rows = whole.rows() * (rule.bounds[1] - rule.bounds[0])
            schedule = rows, whole.mu, self.shares, rule.kappa
            if rule.link is not None:
                return linked_forecast(walk.mixture, self.start, *schedule)
            return forecast(walk.mixture, *schedule)
        # Something is known already: the next stage's error, if it had all of the promise.
        rows, rest = m.real_matrix(), m.noise_scale**2 * m.part.share * np.eye(m.n_measurements)
        if line is None:
            return staging.expected(self.start, rows, 1.0, rest)
        return staging.expected(self.start, rows, line.slope, rest + line.extra)

    @property
    def expected_error(self) -> FloatArray:
        """(P,) std of what will be unknown of f(X*): a forecast, from the plan alone.

        Of probabilities or rates, where outcomes are yes or no, or counts.

        Where nothing is known but bounds, it is the median over models that might be true: about half of all
        data sets do better, and those of a wilder curve or noisier outcomes worse.
        """
        return np.sqrt(self._expected[0])

    @property
    def gp_std(self) -> FloatArray:
        """(P,) the part of it that y itself leaves unknown."""
        return np.sqrt(np.minimum(self._expected[1], self._expected[0]))

    @property
    def noise_std(self) -> FloatArray:
        """(P,) the part of it that is due to privacy noise."""
        return np.sqrt(np.maximum(self._expected[0] - self._expected[1], 0.0))

    def released_noise(self, X: Any) -> FloatArray:
        """(n,) std of the privacy noise to be expected at `X`, which must be the test points."""
        if not np.array_equal(as_points(X, "X", self.X_star.shape[1], self.columns), self.X_star):
            raise ArgumentError("X", "must be the plan's test points")
        return self.noise_std

    @property
    def shown_inputs(self) -> FloatArray:
        """The inputs; or the cells' centres, where a file holds only the digest of the inputs."""
        shown: FloatArray = self.rule.inputs.X if self.X is None else self.X
        return shown

    @property
    def hides_inputs(self) -> bool:
        """Whether it is made not to show the inputs; never."""
        return False

    @property
    def cost(self) -> Gaussian:
        """What a release will spend, for :mod:`cloakgp.accounting` and a ledger: all stages together."""
        return Gaussian(self.certificate.mu, self.certificate.n_measurements)

    @property
    def unit(self) -> str:
        """Whom the promise is to: one row, or one person."""
        return self.certificate.unit

    @property
    def delta(self) -> float:
        """Of the promise, for the ledger."""
        return self.certificate.delta

    @property
    def partition(self) -> str:
        """SHA-256 of who has which rows, for the ledger; empty where the promise is to each row."""
        return self.rule.partition

    @cached_property
    def inputs_digest(self) -> str:
        """SHA-256 of the inputs, for the ledger."""
        if self.rule.cells is not None:
            return self.rule.cells.digest
        return container.digest(np.asarray(self.X))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: the same settings and inputs give the same."""
        return encoding.digest(self)

    @cached_property
    def question_digest(self) -> str:
        """SHA-256 of what is asked, of whom; the same on every machine, unlike :attr:`digest`."""
        return question_digest(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what the plan was asked for to a file, as :meth:`Plan.save` does."""
        atomic.write(path, plan_file.encode(self))

    def to_bytes(self) -> bytes:
        """The rule and the first stage's integers, for the ledger: all that answers are read by."""
        return encoding.encode_plan(self)

    @classmethod
    def from_contents(
        cls, manifest: dict[str, Any], arrays: dict[str, Any], kernel: Any = None
    ) -> StagedPlan:
        """The plan that a file holds."""
        encoding.expect_rows(manifest, cls.whole_rows)
        return cls(*encoding.plan_parts(manifest, arrays, kernel))

    def _as_charged(self, ledger: Any, entry: int | None) -> StagedPlan:
        """The plan that an entry paid for: this one, or the same question planned to other last digits.

        Of what the ledger kept, only settings and integers are used: rows, cells and people are this plan's,
        which was made from the own table.
        """
        kept = None if entry is None else as_ledger(ledger).charged_plan(entry)
        if kept is None:
            return self
        stored = self.from_contents(*reading.read_charged(kept))
        if stored.digest == self.digest:
            return self
        if not encoding.asks_the_same(stored, self):
            raise LedgerTampered(f"ledger: the plan that entry {entry} paid for is not the one it names.")
        own, cells = self.rule, stored.rule.cells
        if cells is not None and own.X is not None:
            categories = stored.rule.prior.category_columns(own.X.shape[1])
            cells = fill_cells(own.X, cells.centres, own.people, categories)
        rule = replace(stored.rule, X=own.X, cells=cells, people=own.people, rows=own.rows)
        groups = None if self.whole_rows else rule.inputs.groups
        first = _with_labels(stored.first, groups, own.people)
        made = replace(stored, rule=rule, first=first, question=self.question)
        made._check_promise()
        return made

    def release(
        self,
        y: Any,
        *,
        missing: str = "error",
        ledger: Any = None,
        dataset: str | None = None,
        why: str = "",
        request: str | None = None,
    ) -> StagedRelease:
        """Release from the private outcomes: all stages, one charge.

        As for every plan: see :meth:`Plan.release`. It is paid for before the first stage, once y is found to
        be usable. If the program dies later, :meth:`recover` goes on where it stopped.
        """
        return self._release(y, missing, Account(ledger, dataset, why, request))

    def _release(self, y: Any, missing: str, account: Account) -> StagedRelease:
        check_own(self)
        self._check_dataset(account.dataset)
        self._check_promise()
        columns = None if self.whole_rows else self.columns
        account = replace(account, ledger=naming(account.ledger, self._reads(y), columns))
        entry = paid(self, account, lambda: self._check_usable(y, missing))
        charged = self._as_charged(account.ledger, entry)
        return charged._all_stages(entry, account.ledger, y, missing)

    def recover(self, ledger: Any, entry: int, y: Any = None, *, missing: str = "error") -> StagedRelease:
        """What an entry of the ledger paid for, once more and for nothing.

        Without `y`, from the stages that were answered. With it, those that were not are answered now: they
        are paid for.
        """
        check_number(entry)
        self._check_promise()
        charged = self._as_charged(ledger, entry)
        return charged._all_stages(entry, ledger, y, missing)

    def _check_promise(self) -> None:
        """Raise unless all stages together keep what the certificate says, and is paid for."""
        self._check_unit()
        for part in self.first.parts:
            part.check()
        if self.rule.version != staging.RULE:
            raise ValueError(
                f"plan: it follows rule {self.rule.version} for its stages, and this version of cloakgp "
                f"knows rule {staging.RULE}. Plan again. Nothing was spent."
            )
        c, promise = self.certificate, self.rule.promise
        promise.check([self.first])
        certified = Promise(c.epsilon, c.delta, c.mu, c.n_measurements, c.shares)
        if certified != promise:
            raise AssertionError("certificate is of another release")

    def _reads(self, y: Any) -> Reads:
        """What y, and inputs that are private with it, are called, if they have names."""
        from cloakgp.private.room import column_names

        private, people = column_names(y, self._private_inputs)
        return Reads(private, (), people)

    def _check_unit(self) -> None:
        """Raise unless it is made for whom the certificate names, and the ledger is told of."""
        rule = self.rule
        if rule.cells is not None and rule.cells.labels is None:
            return  # read from a file: nothing is measured with it
        check_unit(self.certificate, self.first.measurement.unit)
        if self.certificate.n_rows != self.first.measurement.n_rows:
            raise AssertionError("certificate is for another number of rows")
        if rule.partition != ("" if rule.people is None else rule.people.digest):
            raise AssertionError("people are not those whom the plan names")

    @one_blas_thread()
    def _all_stages(self, entry: int | None, ledger: Any, y: Any, missing: str) -> StagedRelease:
        """All stages, as far as they were answered before or can be now."""
        walk, receipt = self.rule.walk(self.__dict__.get("start")), None
        stages: list[Stage] = []
        known = {} if entry is None else {r.number: r for r in as_ledger(ledger).stages(entry, self)}
        # Whatever numpy is told to do about underflow: a stage that is left out is paid for, too.
        with np.errstate(all="ignore"), Progress("stages", self.stages) as progress:
            for number in range(self.stages):
                record = known.get(number)
                try:
                    plan = self._stage_plan(walk, number, record)
                    self.rule.promise.check([*(stage.plan for stage in stages), plan])
                except _FAILED:
                    break  # it is paid for: what was answered is better than nothing
                if record is not None and record.answer is not None:
                    answer, receipt = record.answer, record.receipt
                elif y is None:
                    break
                else:
                    check_own(self)
                    known_as = plan.to_bytes() if record is None else record.contents
                    with staged(self, ledger, entry, number, known_as) as charge:
                        if charge.answer is None:
                            charge.answer = self._measure_stage(plan, y, missing)
                    answer, receipt = charge.answer, charge.receipt
                stages.append(Stage(plan, frozen(answer)))
                progress.advance()
                try:
                    walk.take(stages[-1])
                except _FAILED:  # predictions are from all answers; weights, from those before
                    break
        if not stages:
            told = "" if entry is None else " It is paid for."
            raise ValueError(f"y must be given: no stage of this release was answered yet.{told}")
        insecure = entry is None and testing.insecure_generator() is not None
        made = replace(self, certificate=replace(self.certificate, insecure=insecure))
        settings, weights = walk.state.settings, walk.state.weights
        if not settings:  # nothing could be learned from the first answers
            settings, weights = walk.mixture.believed()
        return self.made(made, tuple(stages), settings, frozen(weights), receipt)

    def _stage_plan(self, walk: Walk, number: int, record: StageRecord | None) -> StagePlan:
        """As it is on record; made from what was answered so far, if it is not."""
        if number == 0:
            return self.first
        if record is not None:
            return StagePlan.from_bytes(record.contents, self.rule, number)
        return walk.next_stage(number)

    def _check_dataset(self, dataset: str | None) -> None:
        """Raise if what was given is about other people."""
        others = {given.dataset for given in self.rule.given if given.dataset not in (None, dataset)}
        if dataset is not None and others:
            raise ArgumentError(
                "dataset",
                f"must be the one that paid for what was given, {sorted(map(str, others))[0]!r}",
                repr(dataset),
                "Outcomes of other people cannot be conditioned on. Nothing was spent.",
            )

    @property
    def _classes(self) -> tuple[Label, ...] | str:
        """What outcomes must be; none for numbers."""
        return YES_NO if self.rule.outcome == YES_NO and not self.rule.classes else self.rule.classes

    def _check_usable(self, y: Any, missing: str) -> None:
        from cloakgp.private.room import check_usable

        check_usable(self.first.measurement, y, missing, self.rows, self._classes, names_in(self.columns))

    def _measure_stage(self, plan: StagePlan, y: Any, missing: str) -> IntArray:
        from cloakgp.private.room import measure

        given = missing, self.rows, self._classes, names_in(self.columns)
        return np.concatenate([measure(part, y, *given) for part in plan.parts])

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """The test points as a table, with the error to be expected there and its parts.

        `backend` is "pandas", "polars" or "pyarrow"; it must be installed.
        """
        names = ("expected_error", "noise_std", "gp_std")
        numbers = {name: getattr(self, name) for name in names}
        return showing.frame(self.columns, self.X_star, numbers, backend)

    def _repr_html_(self) -> str:
        more = {"expected_error": self.expected_error}
        facts = showing.facts(self.certificate, self.columns, self.X_star, **more)
        return showing.page(type(self).__name__, facts | {"stages": str(self.stages)}, False)

    def __repr__(self) -> str:
        c, error = self.certificate, self.expected_error
        return (
            f"<{type(self).__name__}: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, "
            f"{_stages(self.stages)}, {c.n_rows} rows, {len(error)} test points, "
            f"expected error {error.min():.3g} to {error.max():.3g}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class StagedRelease(Labelled):
    """Predictions that may be published, and the model that was learned. Made by :meth:`StagedPlan.release`.

    It holds the public plan, each stage's noisy integers, and what follows from them: printed, pickled or
    saved, it cannot give y back.
    """

    planned: ClassVar[type[StagedPlan]] = StagedPlan

    plan: StagedPlan
    stages: tuple[Stage, ...]
    """What each stage measured: its windows, what came out, and what it spent."""
    settings: tuple[Candidate, ...]
    """The models that hold the weight, the best first."""
    weights: FloatArray
    """Their weights."""
    receipt: Receipt | None = None
    """Where the release stands in the ledger that paid for it: at the last stage's answer."""
    labels: Labels = NONE
    """Title, units, source and date, for pictures and reports: see :meth:`labelled`."""

    @cached_property
    def learned(self) -> Learned:
        """The mixture over what was learned; print it for a table."""
        return learned_from(self.rule, self.stages, self.settings, self.weights)

    @property
    def rule(self) -> Rule:
        """The plan's, with what is known by now of how many rows each input has."""
        return self.plan.rule

    @property
    def z(self) -> IntArray:
        """The last stage's answer."""
        return self.stages[-1].answer

    @property
    def X_star(self) -> FloatArray:
        """(P, D) test points."""
        return self.plan.X_star

    @cached_property
    def mean(self) -> FloatArray:
        """(P,) predictions at the test points: the same as ``predict(X_star)``."""
        mean: FloatArray = self.predict(self.X_star)
        return mean

    @cached_property
    def _uncertainty(self) -> Uncertainty:
        return self.uncertainty(self.X_star)

    @property
    def noise_std(self) -> FloatArray:
        """(P,) std that the privacy noise adds to not knowing f at the test points."""
        return self._uncertainty.privacy

    @property
    def gp_std(self) -> FloatArray:
        """(P,) std of f at the test points that would remain if y itself were known."""
        return self._uncertainty.gp

    @property
    def kind(self) -> str:
        """What was released: predictions, in stages."""
        return self.plan.kind

    def released_at(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Predictions at `X`, and the std that the privacy noise adds to them."""
        return self.predict(X), self.uncertainty(X).privacy

    @property
    def unbiased(self) -> bool:
        """Whether `mean` is the GP's own mean plus noise; never, since it is denoised."""
        return False

    @property
    def certificate(self) -> StagedCertificate:
        """The guarantee of all stages together."""
        return self.plan.certificate

    def predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool | float = False,
    ) -> Any:
        """Predictions of f anywhere: free, deterministic, and without y.

        The mixture over what was learned; arguments as for :meth:`Release.predict`. `include_noise` adds the
        scatter of a single outcome, as it was learned. Of several classes, (n, K) probabilities.
        """
        return self.learned.predict(
            X, return_std=return_std, return_cov=return_cov, include_noise=include_noise
        )

    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std at `X` by its causes: privacy noise, GP posterior, observation; and in total."""
        return self.learned.uncertainty(X, include_noise=include_noise)

    def interval(self, X: Any, level: float = 0.95, *, include_noise: bool | float = False) -> FloatArray:
        """(n, 2) within which f lies at `X`, with probability `level`: quantiles of the mixture.

        Where outcomes are yes or no, or counts, of the probability or the rate: within (0, 1), and above 0.
        `include_noise` is for real outcomes: for a single new one.
        """
        return self.learned.interval(X, level, include_noise=include_noise)

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, K) probabilities of the classes at `X`; for yes/no outcomes, of no and of yes."""
        if self.plan.rule.outcome not in CHANCES:
            raise ValueError("predict_proba: this release is not of yes/no outcomes or classes; use predict.")
        found: FloatArray = self.predict(X)
        return np.column_stack([1 - found, found]) if found.ndim == 1 else found

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes, in the order of their probabilities; False and True for yes/no without names."""
        rule = self.plan.rule
        return rule.classes or (NO_YES if rule.outcome == YES_NO else ())

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of f from its posterior, by public randomness; free.

        Of probabilities or rates, where outcomes are yes or no, or counts.
        """
        return self.learned.sample(X, n, seed)

    def remodel(self, gp: GP) -> Any:
        """Another GP conditioned on what was released; free. See :meth:`Release.remodel`."""
        if not isinstance(gp, GP):
            raise ArgumentTypeError("gp", "must be a cloakgp.GP", type(gp).__name__)
        if not isinstance(gp.noise, float) or gp.downweight is not None:  # which would be one per row
            raise ArgumentError("gp", "must have one noise variance, not one per row, and no downweight")
        rule = self.rule
        if gp.outcome != rule.outcome:
            raise ArgumentError("gp", f"must be of {rule.outcome} outcomes, as the release is", gp.outcome)
        if gp.classes and gp.classes != rule.classes:
            raise ArgumentError(
                "gp", f"must have the classes of the release, {rule.classes}", f"{gp.classes}"
            )
        gp = gp.for_columns(rule.columns)
        if rule.link is not None:
            known = replace(rule, prior=Known(gp.with_inducing(rule.inputs.X)))
            return learned_from(known, self.stages, (KnownSetting(gp),), np.ones(1))
        return conditioned(gp.with_inducing(rule.inputs.X), rule, rule.all_stages(self.stages))

    def check_model(self) -> ModelCheck:
        """Whether what was learned fits what was released; free. See :meth:`Release.check_model`."""
        return check_mixtures(self.learned.curves, self.learned.weights)

    def evidence(self, gp: GP) -> float:
        """How well a model explains what was released: see :meth:`Release.evidence`.

        What was measured of the noise level is not counted.
        """
        found = self.remodel(gp)
        best = [own[0] for own in found.curves] if isinstance(found, Learned) else [found]
        return math.fsum(float(posterior.log_evidence) for posterior in best)

    @one_blas_thread()
    def learn(self, prior: Hyperprior | None = None) -> Learned:
        """What was learned; or, with another hyperprior, what would have been learned with it. Free."""
        own = self.plan.rule.prior
        if prior == own or (prior is None and isinstance(own, Hyperprior)):
            return self.learned
        if prior is None:
            columns = self.plan.columns
            prior = Hyperprior(categories=() if columns is None else columns.categories)
        if self.rule.link is not None:
            named = self.rule.classes or None
            prior = AutoGP(self.rule.bounds, outcome=self.rule.outcome, classes=named, prior=prior).prior
        walk = replace(self.plan.rule, prior=prior).walk()
        for stage in self.stages:
            walk.take(stage)
        return learned_from(walk.rule, self.stages, walk.state.settings, walk.state.weights)

    def save(self, path: str | os.PathLike[str], *, sign_with: Any = None) -> None:
        """Write the release file: all that an analyst or auditor needs. See :meth:`Release.save`."""
        atomic.write(path, encoding.encode(self, sign_with))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StagedRelease:
        """Read a release file. Nothing in it is executed."""
        manifest, arrays, _ = reading.read(path)
        encoding.expect_staged(manifest)
        return cls.from_contents(manifest, arrays)

    @classmethod
    def from_contents(
        cls, manifest: dict[str, Any], arrays: dict[str, Any], kernel: Any = None
    ) -> StagedRelease:
        """The release that a file holds."""
        plan = cls.planned.from_contents(manifest, arrays, kernel)
        return cls(plan, *encoding.release_parts(manifest, arrays, plan.rule))

    def to_frame(self, *, level: float = 0.95, backend: str = "pandas") -> Any:
        """The test points as a table: the prediction with its std and interval, and the privacy noise's part.

        Of several classes, each one's probability with its interval, and the privacy noise's part.

        Parameters
        ----------
        level : float
            With which probability f lies from `lower` to `upper`, if the model is right.
        backend : {"pandas", "polars", "pyarrow"}
            Whose table it is; it must be installed.
        """
        mean, std = self.predict(self.X_star, return_std=True)
        if mean.ndim > 1:
            low, high = np.moveaxis(self.interval(self.X_star, level), 2, 0)
            more = {"std": std, "lower": low, "upper": high, "noise_std": self.noise_std}
            numbers = showing.by_class(self.classes, mean, **more)
        else:
            numbers = showing.interval(mean, std, level) | {"noise_std": self.noise_std}
        return showing.frame(self.plan.columns, self.X_star, numbers, backend)

    def _repr_html_(self) -> str:
        facts = showing.facts(self.certificate, self.plan.columns, self.X_star, noise_std=self.noise_std)
        facts["stages"] = str(len(self.stages))
        return showing.page(type(self).__name__, facts, self.certificate.insecure)

    def __repr__(self) -> str:
        c, std = self.certificate, self.noise_std
        mark = "INSECURE " if c.insecure else ""
        return (
            f"<{mark}{type(self).__name__}: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, "
            f"{_stages(len(self.stages))}, {len(std)} predictions, "
            f"privacy noise std {std.min():.3g} to {std.max():.3g}>"
        )


StagedPlan.made = StagedRelease


def _stages(n: int) -> str:
    return "1 stage" if n == 1 else f"{n} stages"


def _with_labels(plan: StagePlan, groups: Groups | None, people: People | None) -> StagePlan:
    """A first stage that knows which rows are treated alike, and whose they are."""
    known: dict[str, Any] = {"groups": groups, "people": people}
    spread = None if plan.spread is None else replace(plan.spread, **known)
    return StagePlan(replace(plan.measurement, **known), spread, plan.line)


@one_blas_thread()
def learned_from(
    rule: Rule, own: Sequence[Stage], settings: tuple[Candidate, ...], weights: FloatArray
) -> Learned:
    """The mixture of these models, each conditioned on all stages, those of earlier releases included."""
    stages = rule.all_stages(own)
    if not stages:
        raise ValueError(
            "this release holds how many rows there are, and nothing of their outcomes: no such stage was "
            "answered. See density; or answer the others, which are paid for: recover(ledger, entry, X, y)."
        )
    inducing = () if rule.support is None else (rule.support, "fitc")
    models = [GP(one.kernel, one.noise, rule.latent, rule.middle, *inducing) for one in settings]
    with np.errstate(divide="ignore"):
        odds = frozen(np.log(weights / weights[0]))
    if rule.link is None:
        posteriors = tuple(conditioned(model, rule, stages) for model in models)
        return Learned(settings, weights, odds, posteriors, rule.columns)
    found = linked_posteriors(rule, own, settings, weights, models)
    each = tuple(
        LinkedLearned(settings, weights, odds, posteriors, rule.columns, rule.link) for posteriors in found
    )
    if len(each) == 1:
        return each[0]
    return ClassLearned(settings, weights, odds, each[0].posteriors, rule.columns, rule.link, each)


def conditioned(gp: GP, rule: Rule, stages: Sequence[Stage]) -> Posterior:
    """A GP given what all stages measured."""
    released = [(stage.plan.measurement, stage.z) for stage in stages]
    lines, inputs = [stage.plan.line for stage in stages], None
    if rule.cells is not None or rule.rows_each is not None or rule.X is None:
        inputs = replace(rule.inputs, noise=gp.noise * rule.factor)
    X = rule.inputs.X if rule.X is None else rule.X
    return Posterior(gp, X, released, lines, inputs, rule.columns)
