"""A release of whole rows: inputs are private, as outcomes are, and all that is public is a grid.

The plan never sees X. The first stage counts rows, the others measure outcomes, under one promise for one
whole row; or for all rows of one person.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.ledger.charge import Account
from cloakgp.ledger.records import check_number
from cloakgp.plans.row_stages import RowRule
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.posterior.conditioning import Uncertainty
from cloakgp.posterior.density import Density
from cloakgp.posterior.forecast import forecast, linked_forecast
from cloakgp.rows.blas import one_blas_thread
from cloakgp.rows.grid import Grid


class RowsPlan(StagedPlan):
    """What the first stage will measure, and the rule for the others. Made by :meth:`AutoGP.plan_rows`.

    It saw neither X nor y, so it can be printed, plotted, published and compared with others at no cost. Only
    :meth:`release` spends.
    """

    whole_rows: ClassVar[bool] = True
    rule: RowRule

    @property
    def grid(self) -> Grid:
        """The public box, and its cells."""
        return self.rule.grid

    @property
    def _private_inputs(self) -> tuple[str, ...]:
        return self.grid.names

    @property
    def hides_inputs(self) -> bool:
        """Whether it is made not to show the inputs; always."""
        return True

    @property
    def inputs_digest(self) -> str:
        """Nothing: inputs are private."""
        return ""

    @cached_property
    @one_blas_thread()
    def _expected(self) -> tuple[FloatArray, FloatArray]:
        """(P,) variances of f(X*): after all stages, and if the rows were known, spread evenly."""
        rule = self.rule
        walk, mu = rule.walk(self.start), rule.promise.mu / rule.population.each
        whole = walk.stage(*rule.bounds, mu)
        rows = whole.rows() * (rule.bounds[1] - rule.bounds[0])
        schedule = rows, whole.mu, self.shares[1:], rule.kappa
        if rule.link is not None:
            return linked_forecast(walk.mixture, self.start, *schedule)
        return forecast(walk.mixture, *schedule)

    def release(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        *,
        people: Any = None,
        missing: str = "error",
        ledger: Any = None,
        dataset: str | None = None,
        why: str = "",
        request: str | None = None,
    ) -> RowsRelease:
        """Release from private rows: all stages, one charge. The one step that looks at X and y.

        Parameters
        ----------
        X : table with the grid's columns, or (N, D) array
            Private inputs: a frame or a mapping with the grid's names, or an array with the columns in their
            order. Values beyond a range count as at its edge.
        y : (N,) array
            Private outcomes, one for each row.
        people : one id per row, optional
            Private: who has which row, for a plan with `max_rows`. Of a person with more rows as many count
            as the plan allows, spread evenly over the cells that they are in.
        missing : {"error", "midpoint"}
            What to do if something is missing or a level unknown: refuse, or protect that, too. Then such a
            row counts in one fixed cell, if it is an input, with the middle of the window as its outcome; of
            several classes, for all alike.
        ledger, dataset, why, request
            Who pays: see :meth:`Plan.release`.
        """
        from cloakgp.private.room import PrivateRows

        released = self._release(
            PrivateRows(X, y, people, self.certificate.ids), missing, Account(ledger, dataset, why, request)
        )
        assert isinstance(released, RowsRelease)
        return released

    def recover(  # type: ignore[override]
        self,
        ledger: Any,
        entry: int,
        X: Any = None,
        y: Any = None,
        *,
        people: Any = None,
        missing: str = "error",
    ) -> RowsRelease:
        """What an entry of the ledger paid for, once more and for nothing: see :meth:`StagedPlan.recover`."""
        from cloakgp.private.room import PrivateRows

        check_number(entry)
        if (X is None) != (y is None):
            raise ArgumentError("X", "must be given together with y, or both left out")
        self._check_promise()
        rows = None if X is None else PrivateRows(X, y, people, self.certificate.ids)
        released = self._as_charged(ledger, entry)._all_stages(entry, ledger, rows, missing)
        assert isinstance(released, RowsRelease)
        return released


class RowsRelease(StagedRelease):
    """Predictions anywhere in the box, and a density of rows. Made by :meth:`RowsPlan.release`.

    It holds the public plan, each stage's noisy integers, and what follows from them: nothing in it can give
    X or y back.
    """

    planned: ClassVar[type[StagedPlan]] = RowsPlan
    plan: RowsPlan

    @cached_property
    def density(self) -> Density:
        """How many rows each cell has: estimates, and their std. The cells are ``release.plan.grid``'s."""
        return self.plan.rule.density(self.stages[0])

    @cached_property
    def rule(self) -> RowRule:
        """The plan's, with the counts that its stages were made with."""
        return self.plan.rule.counted(self.stages)

    def predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool | float = False,
    ) -> Any:
        """Predictions of f anywhere in the box: free, and without any row. See :meth:`StagedRelease.predict`.

        `X` is public: a table with the grid's names, or an array, in which levels are numbered from 0.
        """
        X = self.plan.grid.points(X)
        return super().predict(X, return_std=return_std, return_cov=return_cov, include_noise=include_noise)

    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std at `X` by its causes: privacy noise, GP posterior, observation; and in total."""
        return super().uncertainty(self.plan.grid.points(X), include_noise=include_noise)

    def interval(self, X: Any, level: float = 0.95, *, include_noise: bool | float = False) -> FloatArray:
        """(n, 2) within which f lies at `X`: see :meth:`StagedRelease.interval`."""
        return super().interval(self.plan.grid.points(X), level, include_noise=include_noise)

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of f from its posterior, by public randomness; free."""
        return super().sample(self.plan.grid.points(X), n, seed)


RowsPlan.made = RowsRelease
