"""Another model for what was released: conditioned on, compared, or learned. All of it is free.

The released numbers do not depend on the model that planned them, only on the public matrix that multiplied
y. So a reader may condition any GP on them, ask which of several explains them best, or learn one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentTypeError
from cloakgp.measurements.lattice import IntArray, Measurement, of_rows
from cloakgp.measurements.recipes import FactoredMeasurement
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.model.leverage import downweighted
from cloakgp.posterior.conditioning import Posterior
from cloakgp.posterior.learning import Learned, learn
from cloakgp.posterior.model_check import ModelCheck, check_posterior
from cloakgp.rows.merging import distinct
from cloakgp.rows.people import People, for_people, times_noise

LARGEST = 2**27
"""Entries of a matrix that a recipe is written out to."""
_COMPARED = 2**25
"""Entries of the kernel matrix up to which a model check has other models to compare with."""


class Remodelled:
    """What every release can do whose matrix its reader has."""

    plan: Any
    z: IntArray
    posterior: Any

    def check_model(self) -> ModelCheck:
        """Whether the plan's model fits what was released; free.

        By standardised residuals of `z`, and by the odds of broader models against it, where these can be
        had: not for very many rows. Print it for a line that begins with green or amber. A model that fits
        may still be wrong in ways that the privacy noise hides.
        """
        plan, gp = self.plan, self.plan.gp
        wide = len(plan.shown_inputs) * (len(plan.shown_inputs) if gp.inducing is None else len(gp.inducing))
        if plan.X is None or not isinstance(plan.measurement, Measurement) or wide > _COMPARED:
            return check_posterior(self.posterior, None)
        released = [(plan.measurement, self.z)]
        return check_posterior(self.posterior, lambda other: Posterior(other, plan.X, released))

    def remodel(self, gp: GP) -> Posterior:
        """Another GP conditioned on what was released; free.

        Parameters
        ----------
        gp : GP
            A model of your choice. It may come from anywhere but y itself: whatever it is, nothing more of y
            is used. Its bounds are not looked at.

        Returns
        -------
        Posterior
            With `predict`, `uncertainty`, `sample` and `log_evidence`.
        """
        X, measurement = written_out(self.plan)
        if not isinstance(gp, GP):
            raise ArgumentTypeError("gp", "must be a cloakgp.GP", type(gp).__name__)
        gp.check_rows(len(X))
        gp = gp.for_columns(self.plan.columns).with_inducing(X).at_rows(X)
        if measurement.people is not None:
            gp = replace(gp, noise=for_people(gp.noise, measurement.people, self.plan.within))
        gp = downweighted(gp, distinct(X, gp.noise))
        if not isinstance(gp.noise, float) or not isinstance(gp.mean, float):  # joined rows may differ
            measurement = _by_row(measurement)
        return Posterior(gp, X, [(measurement, self.z)], columns=self.plan.columns)

    def evidence(self, gp: GP) -> float:
        """How well a model explains what was released: the log density of the measurements under it; free.

        Only differences between models mean something: a difference of 3 is odds of 20 to 1.
        """
        return self.remodel(gp).log_evidence

    def learn(self, prior: Hyperprior | None = None) -> Learned:
        """Learn the model from what was released, starting from bounds and the inputs' ranges alone; free.

        Parameters
        ----------
        prior : Hyperprior, optional
            What is believed beforehand; public, and the same for everybody if absent.

        Returns
        -------
        Learned
            A mixture over models: `predict`, `weights`, `settings`, and a table when printed.
        """
        X, measurement = written_out(self.plan)
        gp = self.plan.gp
        windows = gp.windows
        people: People | None = measurement.people
        factor: float | FloatArray = 1.0
        if people is not None and people.most_rows > 1:
            measurement, factor = _by_row(measurement), times_noise(people.own, self.plan.within)
        if windows is None or isinstance(gp.mean, float):
            released, columns = [(measurement, self.z)], self.plan.columns
            return learn(gp.limits, X, released, prior, factor=factor, columns=columns)
        about = windows[:, :2] - windows[:, 2:]  # what is learned is how outcomes differ from the mean
        bounds = float(about[:, 0].min()), float(about[:, 1].max())
        released = [(_by_row(measurement), self.z)]
        return learn(bounds, X, released, prior, gp.mean, factor, self.plan.columns)


def written_out(plan: Any) -> tuple[FloatArray, Measurement]:
    """The inputs, and the measurement as a matrix; or what is missing."""
    if plan.X is None:
        raise ValueError(
            "another model needs the inputs X and the matrix, which this release does not show."
            if isinstance(plan.measurement, Measurement)
            else "another model needs the inputs X, of which this file holds only the digest. Make the "
            "release's plan with X at hand, or keep to its own model."
        )
    if isinstance(plan.measurement, Measurement):
        return plan.X, plan.measurement
    return np.asarray(plan.X[:], dtype=np.float64), _expanded(plan.measurement)


def _by_row(measurement: Measurement) -> Measurement:
    """The same with a column for each row of y."""
    if measurement.groups is None:
        return measurement
    labels, bounds = measurement.groups.labels, (measurement.lower, measurement.upper)
    lower, upper = (of_rows(limit, labels) for limit in bounds)
    return replace(measurement, matrix=measurement.matrix[:, labels], lower=lower, upper=upper, groups=None)


def _expanded(m: FactoredMeasurement) -> Measurement:
    """A recipe, written out."""
    assert m.inputs is not None
    if m.n_measurements * len(m.inputs) > LARGEST:
        raise ValueError(
            f"another model needs the measurement as a matrix, and {len(m.inputs)} rows are too many for "
            "that. Keep to the release's own model."
        )
    some = m.inputs[:]
    matrix = m.recipe.columns(np.asarray(some.X, dtype=np.float64), some.noise, some.windows)
    names = ("y_bits", "matrix_bits", "sigma", "lower", "upper", "epsilon", "delta", "declared", "groups")
    return Measurement(matrix=matrix, people=m.people, **{name: getattr(m, name) for name in names})
