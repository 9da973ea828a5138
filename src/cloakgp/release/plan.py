"""A plan: a promise, a rule for stages, and the first of them. All that can be known before y is touched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from cloakgp import testing
from cloakgp.core.accounting import Gaussian
from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.core.progress import Progress
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.cells import digest_of, fill_cells
from cloakgp.data.columns import names_in
from cloakgp.data.sources import is_lazy
from cloakgp.files import atomic, container, reading
from cloakgp.ledger import charging
from cloakgp.ledger.balances import Reads
from cloakgp.ledger.book import Charge
from cloakgp.ledger.chain import LedgerTampered
from cloakgp.ledger.charging import Account, as_ledger
from cloakgp.measure.certificate import Certificate
from cloakgp.measure.measurement import Measurement
from cloakgp.measure.unit import check_unit
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.hyperprior import Known
from cloakgp.posterior import staging
from cloakgp.posterior.conditioning import Posterior
from cloakgp.posterior.states import State
from cloakgp.release import encoding, showing
from cloakgp.release.base import naming
from cloakgp.release.plan_file import PlanFile
from cloakgp.release.reader import posterior_of
from cloakgp.release.readouts import Function, Readout
from cloakgp.release.release import Release
from cloakgp.release.settings import Settings
from cloakgp.release.stages import Rule, Session, Stage

_FAILED = (ValueError, ArithmeticError, LinAlgError, AssertionError)
"""What public arithmetic between stages may end in; not known to happen."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan(Rule):
    """What the first stage will measure, and the rule for the others. Made by a model's `plan` methods.

    A plan never saw y, so it can be printed, plotted, published and compared with others at no
    cost. Only :meth:`release` spends.
    """

    first: Stage
    question: Settings | None = None
    """What it was asked for; None if it was read from a file, and is not to be released from."""

    @classmethod
    def of(cls, rule: Rule, first: Stage) -> Plan:
        """By this rule, with this first stage."""
        return cls(**{one.name: getattr(rule, one.name) for one in fields(Rule)}, first=first)

    @property
    def rule(self) -> Plan:
        """Itself."""
        return self

    # What it is about

    @property
    def hides_inputs(self) -> bool:
        """Whether it is made not to show the inputs."""
        return self.grid is not None or not self.denoises

    @property
    def shown_inputs(self) -> FloatArray:
        """The inputs; or the cells, inducing inputs or points that stand for them."""
        if self.X is not None:
            shown: FloatArray = self.X
            return shown
        if self.function is not None:
            return self.function.points
        own = self.gp.inducing if self.alone else None
        return self.inputs.X if own is None else np.asarray(own)

    @property
    def function(self) -> Function | None:
        """How the whole function is read, if that is what will be released."""
        return self.first.readout if isinstance(self.first.readout, Function) else None

    @property
    def denoises(self) -> bool:
        """Whether its release has predictions of the model: not if a function hides what they hang on."""
        return self.function is None or self.X is not None

    @property
    def alone(self) -> bool:
        """Whether its one stage stands alone: read by public numbers, before any model."""
        return self.first.readout.alone

    @property
    def stages(self) -> int:
        """How many."""
        return len(self.shares)

    @property
    def measurement(self) -> Any:
        """What the first stage measures."""
        return self.first.measurement

    @cached_property
    def gp(self) -> GaussianProcess:
        """The model; of one that is learned, the one GP with the mean and covariances of all that may be."""
        return self.prior.gp or self.prior.model(self.inputs.X, self.latent)

    # What to expect of it

    @cached_property
    @one_blas_thread()
    def start(self) -> State:
        """What is believed before the first stage."""
        return self.session().state

    @property
    def unanswered(self) -> Posterior:
        """The posterior as it would be after one stage: uncertainties do not depend on what comes out."""
        nothing = np.zeros(self.measurement.n_measurements, dtype=np.int64)
        return posterior_of(self.gp, self, [replace(self.first, answer=nothing)], self.inputs)

    @cached_property
    def _expected(self) -> tuple[FloatArray, FloatArray]:
        """(P,) variances of f(X*): after all stages, and if y were known."""
        return self.first.readout.expected(self)

    @cached_property
    def expected_error(self) -> FloatArray:
        """(P,) std of what a reader's predictions will be off by, if the model is right; public.

        Of the denoised predictions: the model's own uncertainty and the privacy noise together. Of
        probabilities or rates, where outcomes are yes or no, or counts.

        Where nothing is known but bounds, it is a forecast, the median over models that might be true: about
        half of all data sets do better, and those of a wilder curve or noisier outcomes worse.
        """
        return frozen(np.sqrt(self._expected[0]))

    @property
    def gp_std(self) -> FloatArray:
        """(P,) the part of it that y itself leaves unknown."""
        own: FloatArray | None = getattr(self.first.readout, "gp_std", None)
        if own is not None:  # a file holds it, also where it cannot hold the kernel
            return own
        left, known = self._expected
        return np.sqrt(known if self.alone else np.minimum(known, left))

    @property
    def noise_std(self) -> FloatArray:
        """(P,) std of the privacy noise at each test point; as far as that can be foreseen."""
        return self.first.readout.noise_std(self)

    @property
    def noise_cov(self) -> FloatArray:
        """(P, P) covariance of the privacy noise over the test points, in what is read directly."""
        matrix = self.reconstruction if self.function is None else self.function.weights(self.X_star)
        scaled = self.measurement.noise_scale * matrix
        return np.asarray(scaled @ scaled.T)

    @property
    def reconstruction(self) -> FloatArray:
        """(P, q) how what is released at test points is made of the measurements, where it is."""
        matrix: FloatArray | None = getattr(self.first.readout, "reconstruction", None)
        if matrix is None:
            raise ValueError("plan: its stages are read by a model, so nothing is made of them directly.")
        return matrix

    def noise_at(self, X: Any) -> FloatArray:
        """(n,) std of the privacy noise that predictions at `X` will have, or a function; public and free."""
        return self.first.readout.noise_at(self, X)

    # What a ledger is told

    @property
    def cost(self) -> Gaussian:
        """What a release will spend, for :mod:`cloakgp.core.accounting` and a ledger: all stages together."""
        return Gaussian(self.certificate.mu, self.certificate.n_measurements)

    @property
    def unit(self) -> str:
        """Whom the promise is to."""
        return self.certificate.unit

    @property
    def delta(self) -> float:
        """Of the promise, for the ledger."""
        return self.certificate.delta

    @cached_property
    def inputs_digest(self) -> str:
        """SHA-256 of the inputs, for the ledger; empty where the plan is made not to show them."""
        if self.cells is not None:
            return self.cells.digest
        return "" if self.X is None else str(container.digest(np.asarray(self.X)))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: the same settings and inputs give the same."""
        return encoding.digest(self.shown())

    @cached_property
    def question_digest(self) -> str:
        """SHA-256 of what is asked, of whom; the same on every machine, unlike :attr:`digest`."""
        found = None if self.question is None else self.question.digest(self.inputs_digest, self.partition)
        return self.digest if found is None else str(found)  # where a function is part of what is asked

    def to_bytes(self) -> bytes:
        """All that answers are read by, for the ledger; without the matrix where that would show X."""
        return encoding.encode_plan(self.shown())

    @classmethod
    def from_charged(cls, contents: bytes) -> Plan:
        """What :meth:`to_bytes` wrote, for reading answers by: nothing can be released from it."""
        return cls.of(*encoding.plan_parts(*reading.read_charged(contents)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what the plan was asked for to a file, for a release that is made later. Nothing is spent.

        A plan is public, and so is its file: settings, digests of X and of people, and the certificate.
        :func:`cloakgp.load_plan` plans again from the own table. Functions, such as a custom kernel, cannot
        be saved.
        """
        self._check_own()
        atomic.write(path, PlanFile.of(self).encode())

    def shown(self) -> Plan:
        """The plan as published: without its matrix, which shows X, where X is not to be shown."""
        if self.denoises or not self.measurement.matrix.size:
            return self
        bare = replace(self.measurement, matrix=frozen(self.measurement.matrix[:, :0]), groups=None)
        bare = replace(bare, declared=self.measurement.sensitivity())
        return replace(self, first=replace(self.first, measurement=bare))

    # The private step

    def release(
        self,
        *outcomes: Any,
        X: Any = None,
        y: Any = None,
        people: Any = None,
        missing: str = "error",
        ledger: Any = None,
        dataset: str | None = None,
        why: str = "",
        request: str | None = None,
    ) -> Release:
        """Release from the private outcomes, ``release(y)``; or from whole rows, ``release(X, y)``.

        The one step that looks at what is private: all stages, one charge. Each call draws fresh noise and is
        a new spend of what the plan promises, also when called twice on the same plan with the same y. With a
        ledger, all is paid for together with the first stage's answer; if the program dies later,
        :meth:`recover` goes on where it stopped.

        Parameters
        ----------
        y : (N,) array
            Private outcomes, in the order of X's rows. Values outside the bounds are clipped;
            how many is not told, since that would leak.
        X : table with the grid's columns, or (N, D) array
            Where whole rows are protected, and only there: private inputs. A frame or a mapping with the
            grid's names, or an array with the columns in their order. Values beyond a range count as at its
            edge.
        people : one id per row, optional
            Private, too: who has which row, for a plan of whole rows with `max_rows`. Of a person with more
            rows as many count as the plan allows, spread evenly over the cells that they are in.
        missing : {"error", "midpoint"}
            NaN and infinities are refused before anything is spent, or replaced row by row by the middle of
            the bounds, which protects missingness too. A private row with a missing input or an unknown level
            counts in one fixed cell; an outcome that is none of several classes, for all alike.
        ledger : Ledger or its URL, optional
            Pays for the release: refused before y is read if it does not fit, and on record, answers
            included, before this returns. See :class:`cloakgp.Ledger`.
        dataset : str
            Which of the ledger's data sets pays.
        why : str
            For the record.
        request : str, optional
            A name for this request, unlike any other of the data set's. Asked again after a crash, the
            ledger gives the same answer for nothing.
        """
        private = self._private(outcomes, X, y, people, "release")
        if private is None:
            raise ArgumentTypeError("y", "must be given: the private outcomes")
        return self._release(private, missing, Account(ledger, dataset, why, request))

    def recover(
        self,
        ledger: Any,
        entry: int,
        *outcomes: Any,
        X: Any = None,
        y: Any = None,
        people: Any = None,
        missing: str = "error",
    ) -> Release:
        """What an entry of the ledger paid for, once more and for nothing.

        For when a program died after the charge: ``ledger.entries(dataset)`` shows the number. Without `y`
        (and X, where whole rows are protected), from the stages that were answered. With it, those that were
        not are answered now: they are paid for.
        """
        private = self._private(outcomes, X, y, people, "recover")
        self._check_promise()
        known = as_ledger(ledger).answers(entry, self)
        paid_for = self._as_charged(known[0])
        return paid_for._all_stages(
            known, ledger, None if private is None else paid_for._outcomes(private), missing
        )

    def _private(self, given: Sequence[Any], X: Any, y: Any, people: Any, method: str) -> Any:
        """What is private, unread: y, or whole rows; None if nothing was given."""
        from cloakgp.private.room import PrivateRows

        found = {"y": y} if self.grid is None else {"X": X, "y": y}
        free = [name for name, value in found.items() if value is None]
        if len(given) > len(free) or (self.grid is None and (X is not None or people is not None)):
            expected = f"takes {' and '.join(found)}, and nothing else without a name"
            raise ArgumentTypeError(method, expected, remedy="Inputs are in the plan, if they are public.")
        found |= dict(zip(free, given, strict=False))
        if self.grid is None:
            return found["y"]
        if (found["X"] is None) != (found["y"] is None):
            raise ArgumentError("X", "must be given together with y, or both left out")
        return (
            None if found["X"] is None else PrivateRows(found["X"], found["y"], people, self.certificate.ids)
        )

    def _release(self, private: Any, missing: str, account: Account) -> Release:
        self._check_own()
        self._check_inputs()
        self._check_dataset(account.dataset)
        self._check_promise()
        columns = None if self.grid is not None else self.columns
        account = replace(account, ledger=naming(account.ledger, self._reads(private), columns))
        y = self._outcomes(private)
        with np.errstate(all="ignore"), charging.charge(self, account) as charge:
            if charge.answer is None:
                charge.answer = self._measure(self.first, y, missing)
        known = [charge]
        if charge.receipt is not None:
            known = as_ledger(account.ledger).answers(charge.receipt.entry, self)
        return self._as_charged(known[0])._all_stages(known, account.ledger, y, missing)

    def _as_charged(self, charge: Charge) -> Plan:
        """The plan that was charged for: this one, or the same question planned to other last digits."""
        if charge.plan is None:
            return self
        stored = self.from_charged(charge.plan)
        if stored.digest == self.digest:
            return self
        if not encoding.asks_the_same(stored, self):
            raise LedgerTampered("ledger: the plan that was charged for is not the one that the entry names.")
        made = self._with_own(stored)
        made._check_promise()
        return made

    def _with_own(self, stored: Plan) -> Plan:
        """A plan that a ledger kept, for this plan's table.

        Only settings and integers are used of it: rows, cells and people are this plan's, which was made from
        the own table.
        """
        cells, inputs = stored.cells, self.inputs
        if cells is not None and self.X is not None:
            categories = stored.prior.category_columns(self.X.shape[1])
            cells = fill_cells(self.X, cells.centres, cells.scale, self.people, categories)
            inputs = stored.gp.seen_in(cells) if self.alone else cells.inputs
        m = stored.measurement
        if m.matrix.size:
            m = replace(m, groups=None if self.grid is not None else inputs.groups, people=self.people)
        own: Any = {"X": self.X, "cells": cells, "inputs": inputs, "people": self.people, "rows": self.rows}
        return replace(stored, **own, first=replace(stored.first, measurement=m), question=self.question)

    def _check_own(self) -> None:
        """Raise if it was read from a file: its matrix is somebody else's, and may be for other rows."""
        if self.question is None:
            raise ArgumentError(
                "plan",
                "must be made from your own table, not read from a release",
                remedy="Plan again: what others computed is not multiplied with outcomes. Nothing was spent.",
            )

    def _check_inputs(self) -> None:
        """Raise if X, which was left where it is, is no longer what the cells were made of."""
        if self.cells is not None and is_lazy(self.X) and digest_of(self.X) != self.cells.digest:
            raise ValueError("X has changed since the plan was made; plan again. Nothing was spent.")

    def _check_promise(self) -> None:
        """Raise unless all stages together keep what the certificate says, and is paid for."""
        self._check_unit()
        for part in self.first.parts:
            part.check()
        if self.version != staging.RULE:
            raise ValueError(
                f"plan: it follows rule {self.version} for its stages, and this version of cloakgp "
                f"knows rule {staging.RULE}. Plan again. Nothing was spent."
            )
        self.check([self.first])

    def _check_unit(self) -> None:
        """Raise unless plan, certificate and ledger name the same unit of protection."""
        if self.cells is not None and self.cells.labels is None:
            return  # read from a file: nothing is measured with it
        check_unit(self.certificate, self.measurement.unit)
        # What is measured has a number of rows of its own, unless it is withheld.
        if self.measurement.n_rows not in (0, self.certificate.n_rows):
            raise AssertionError("certificate is for another number of rows")
        if self.partition != ("" if self.people is None else self.people.digest):
            raise AssertionError("people are not those whom the plan names")

    @one_blas_thread()
    def _all_stages(self, known: Sequence[Charge], ledger: Any, y: Any, missing: str) -> Release:
        """All stages, as far as they were answered before or can be now."""
        receipt = known[0].receipt
        entry = None if receipt is None else receipt.entry
        insecure = entry is None and testing.insecure_generator() is not None
        made = replace(self.shown(), certificate=replace(self.certificate, insecure=insecure))
        if self.alone:
            answered = (_answered(made.first, known[0]),)
            return Release(made, answered, (Known(self.gp),), frozen(np.ones(1)), receipt)
        session, stages = self.session(self.__dict__.get("start")), list[Stage]()
        # Whatever numpy is told to do about underflow: a stage that is left out is paid for, too.
        with np.errstate(all="ignore"), Progress("stages", self.stages) as progress:
            for number in range(self.stages):
                charge = known[number] if number < len(known) else None
                if charge is None and y is None:
                    break
                try:
                    stage = self._stage(session, number, charge)
                    self.check([*stages, stage])
                except _FAILED:
                    break  # it is paid for: what was answered is better than nothing
                if charge is None:
                    self._check_own()
                    with charging.stage(self, ledger, entry, number, stage.to_bytes()) as charge:
                        if charge.answer is None:
                            charge.answer = self._measure(stage, y, missing)
                    if charge.plan is not None:  # somebody else went on with it at the same time
                        stage = self._stage(session, number, charge)
                        self.check([*stages, stage])
                receipt = charge.receipt
                stages.append(_answered(stage, charge))
                progress.advance()
                try:
                    session.learn(stages[-1])
                except _FAILED:  # predictions are from all answers; weights, from those before
                    break
        settings, weights = session.state.settings, session.state.weights
        if not settings:  # nothing could be learned from the first answers
            settings, weights = session.mixture.believed()
        return Release(made, tuple(stages), settings, frozen(weights), receipt)

    def _stage(self, session: Session, number: int, charge: Charge | None) -> Stage:
        """As it is on record; made from what was answered so far, if it is not."""
        if number == 0:
            return self.first
        if charge is not None and charge.plan is not None:
            words, arrays, _ = container.unpack(charge.plan)
            return Stage.from_described(words, arrays, session.rule, number)
        return session.next_stage(number)

    def _check_dataset(self, dataset: str | None) -> None:
        """Raise if what was given is about other people."""
        others = {given.dataset for given in self.given if given.dataset not in (None, dataset)}
        if dataset is not None and others:
            raise ArgumentError(
                "dataset",
                f"must be the one that paid for what was given, {sorted(map(str, others))[0]!r}",
                repr(dataset),
                "Outcomes of other people cannot be conditioned on. Nothing was spent.",
            )

    def _reads(self, private: Any) -> Reads:
        """What y, and inputs that are private with it, are called, if they have names."""
        from cloakgp.private.room import column_names

        names, people = column_names(private, () if self.grid is None else self.grid.names)
        return Reads(names, (), people)

    def _outcomes(self, private: Any) -> Any:
        """What is private, for all stages: parsed once, in the private room."""
        from cloakgp.private.room import Outcomes

        return Outcomes(private, self.rows, self.outcome, names_in(self.columns))

    def _measure(self, stage: Stage, y: Any, missing: str) -> IntArray:
        from cloakgp.private.room import measure

        answer = measure(stage.parts, y, missing)
        if self.function is None or self.X is not None:
            return answer
        # About the prior mean, where the middle of the bounds would show X.
        moved: IntArray = np.rint(self.function.heights(stage.measurement, answer) / stage.measurement.step)
        return moved.astype(np.int64)

    # How it is shown

    def to_frame(self, X: Any = None, *, backend: str = "pandas") -> Any:
        """The test points as a table: the error to be expected, the std of the privacy noise, the GP's own.

        Of a function, the std of its noise at `X`. `backend` is "pandas", "polars" or "pyarrow"; it must be
        installed.
        """
        if self.function is not None:
            points = self.X_star if X is None else X
            return showing.frame(self.columns, points, {"noise_std": self.noise_at(points)}, backend)
        names = ("expected_error", "noise_std", "gp_std")
        return showing.frame(
            self.columns, self.X_star, {name: getattr(self, name) for name in names}, backend
        )

    def _repr_html_(self) -> str:
        return showing.html(self, self.certificate)

    def __repr__(self) -> str:
        c, error = self.certificate, self.noise_std if self.alone else self.expected_error
        what = "noise std" if self.alone else "expected error"
        return (
            f"<Plan: {c.promise}, {c.how}, {c.n_rows} rows, "
            f"{len(error)} test points, {what} {error.min():.3g} to {error.max():.3g}>"
        )


def _answered(stage: Stage, charge: Charge) -> Stage:
    assert charge.answer is not None
    return replace(stage, answer=frozen(charge.answer))


def plan_alone(
    gp: GaussianProcess, m: Measurement, readout: Readout, certificate: Certificate, **where: Any
) -> Plan:
    """A plan of one stage that stands alone, for a model that is known; `where` has its inputs and points."""
    return Plan(
        certificate=certificate,
        prior=Known(gp),
        bounds=gp.limits,
        support=None if gp.inducing is None else np.asarray(gp.inducing),
        people=m.people,
        partition=m.partition,
        first=Stage(m, readout=readout),
        **where,
    )


# From files and ledgers


def load_release(path: str | os.PathLike[str], kernel: Any = None, mean: Any = None) -> Release:
    """Read a release file. Nothing in it is executed.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        The kernel, needed for new predictions if the file was made with a custom one, which no file can hold.
    mean : callable, optional
        The prior mean, needed for new predictions if it was a function of X, which no file can hold either:
        it has its values at X and at the test points only.

    Returns
    -------
    Release
    """
    manifest, arrays, _ = reading.read(path)
    return release_of(manifest, arrays, kernel, mean)


def release_of(
    manifest: dict[str, Any], arrays: dict[str, Any], kernel: Any = None, mean: Any = None
) -> Release:
    """The release that a manifest and arrays describe which fit the schema."""
    plan = Plan.of(*encoding.plan_parts(manifest, arrays, kernel, mean))
    return Release(plan, *encoding.release_parts(manifest, arrays, plan))


def recover_from(ledger: Any, entry: int) -> Release:
    """What an entry of the ledger paid for, from the ledger alone, if all or some of it was answered.

    The plan that was charged for lies in the ledger. It was read from there, so it cannot meet y: stages that
    were not answered are left to ``plan.recover``, with a plan that was made from the table.
    """
    kept = as_ledger(ledger).charged_plan(entry)
    if kept is None:
        raise ArgumentError("entry", "must have paid for a release of predictions or of a function")
    return Plan.from_charged(kept).recover(ledger, entry)
