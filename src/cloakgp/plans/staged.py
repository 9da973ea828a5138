"""A release in stages: its plan, which is public, and what comes out of the private steps.

One promise is kept by all stages together, and paid for once, before the first. Each later stage is planned from
what was answered so far (:mod:`cloakgp.plans.stages`), put on record, and answered once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.linalg import LinAlgError

from cloakgp.accounting import Gaussian
from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError
from cloakgp.files import atomic, schema
from cloakgp.ledger.charge import Account, Charge, Receipt
from cloakgp.ledger.charging import as_ledger, charged
from cloakgp.measurements.lattice import IntArray
from cloakgp.measurements.staged_certificate import StagedCertificate
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Setting
from cloakgp.plans import staged_encoding as encoding
from cloakgp.plans.base import PlanBase
from cloakgp.plans.stages import Rule, Stage, StagePlan, Walk
from cloakgp.posterior.conditioning import Uncertainty
from cloakgp.posterior.learning import Learned
from cloakgp.posterior.mixture import State
from cloakgp.progress import Progress


@dataclass(frozen=True, eq=False, repr=False)
class StagedPlan(PlanBase["StagedRelease"]):
    """What the first stage will measure, and the rule for the others. Made by :meth:`AutoGP.plan`.

    A plan never saw y, so it can be printed, plotted, published and compared with others at no
    cost. Only :meth:`release` spends.
    """

    kind: ClassVar[str] = schema.STAGED

    rule: Rule
    first: StagePlan
    certificate: StagedCertificate

    @property
    def X(self) -> FloatArray:  # type: ignore[override]
        """(N, D) public inputs."""
        return self.rule.X

    @property
    def X_star(self) -> FloatArray:
        """(P, D) test points."""
        return self.rule.X_star

    @property
    def weights(self) -> FloatArray:
        """(P,) how much the error at each test point matters, 1 on average."""
        return self.rule.weights

    @property
    def shares(self) -> tuple[float, ...]:
        """The schedule: each stage's share of mu squared."""
        return self.rule.schedule.shares

    @cached_property
    def gp(self) -> GP:
        """The one GP with the mean and covariances of all that is believed beforehand."""
        return self.rule.prior.model(self.X, self.rule.bounds)

    @cached_property
    def start(self) -> State:
        """What is believed before the first stage."""
        return Walk(self.rule).state

    @cached_property
    def _expected(self) -> tuple[FloatArray, FloatArray]:
        """(P,) variances of f(X*): given all of the promise spent on the first stage's measurements; given y."""
        from cloakgp.posterior.staging import expected

        return expected(self.start, self.first.measurement.real_matrix(), self._whole_noise)

    @property
    def _whole_noise(self) -> float:
        """Variance of the noise if the first stage had all of the promise."""
        return self.first.measurement.noise_scale**2 * self.shares[0]

    @property
    def expected_error(self) -> FloatArray:
        """(P,) std of what will be unknown of f(X*), if nothing is known but bounds, and all is spent at once.

        Stages do better where outcomes are smoother or less noisy than they might be.
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
        if not np.array_equal(X, self.X_star):
            raise ArgumentError("X", "must be the plan's test points")
        return self.noise_std

    @property
    def shown_inputs(self) -> FloatArray:
        """The inputs."""
        return self.X

    @property
    def hides_inputs(self) -> bool:
        """Whether it is made not to show the inputs; never."""
        return False

    @property
    def cost(self) -> Gaussian:
        """What a release will spend, for :mod:`cloakgp.accounting` and a ledger: all stages together."""
        return Gaussian(self.certificate.mu, self.certificate.n_measurements)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: the same settings and inputs give the same."""
        return encoding.digest(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file, to the last bit, for a release that is made later. Nothing is spent."""
        atomic.write(path, encoding.encode_plan(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StagedPlan:
        """Read a plan's file. Nothing in it is executed.

        Whatever the file says, a release is made only with noise that is enough for the integers in it.
        """
        return encoding.read_plan(path)

    def with_inputs(self, X: Any) -> StagedPlan:
        """The same plan: its file holds the inputs, unlike some of :meth:`Plan.with_inputs`."""
        return self

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

        As for every plan: see :meth:`Plan.release`. The charge is made with the first stage's answer, so
        that y which cannot be used costs nothing. If the program dies later, :meth:`recover` goes on where
        it stopped.
        """
        with charged(self, Account(ledger, dataset, why, request)) as charge:
            if charge.answer is None:
                charge.answer = self._measure(y, missing)
        return self._all_stages(charge, ledger, y, missing)

    def recover(self, ledger: Any, entry: int, y: Any = None, *, missing: str = "error") -> StagedRelease:
        """What an entry of the ledger paid for, once more and for nothing.

        Without `y`, from the stages that were answered. With it, those that were not are answered now: they
        are paid for.
        """
        return self._all_stages(as_ledger(ledger).fetch(entry, self), ledger, y, missing)

    def _all_stages(self, charge: Charge, ledger: Any, y: Any, missing: str) -> StagedRelease:
        assert charge.answer is not None
        walk, receipt = Walk(self.rule), charge.receipt
        walk.__dict__["state"] = self.start
        stages = [Stage(self.first, frozen(charge.answer))]
        walk.take(stages[0])
        known = [] if receipt is None else as_ledger(ledger).stages(receipt.entry, self)
        spent = self.first.mu_squared
        with Progress("stages", self.rule.n_stages) as progress:
            progress.advance()
            for number in range(1, self.rule.n_stages):
                record = next((one for one in known if one.number == number), None)
                try:
                    plan = self._stage_plan(walk, number, record)
                except (ValueError, ArithmeticError, LinAlgError, AssertionError):
                    break  # it is paid for: what was answered is better than nothing
                spent += plan.mu_squared
                if not spent <= self.rule.mu**2 * (1 + 1e-12):
                    raise AssertionError("stages spend more than was promised")
                if record is not None and record.answer is not None:
                    answer, receipt = record.answer, record.receipt
                elif y is None:
                    break
                elif receipt is None:
                    answer = self._measure_stage(plan, y, missing)
                else:
                    paid = charge.receipt.entry  # type: ignore[union-attr]
                    with as_ledger(ledger).stage(paid, number, self, plan.to_bytes()) as one:
                        if one.answer is None:
                            one.answer = self._measure_stage(plan, y, missing)
                    answer, receipt = one.answer, one.receipt
                stages.append(Stage(plan, frozen(answer)))
                walk.take(stages[-1])
                progress.advance()
        return self._made(stages, walk.state, receipt, charge)
