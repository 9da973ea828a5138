"""The rows that a design for many rows looks at: some, spread evenly, others that count, and a few sums.

With G at most the sum of c c' over all N columns of C, the columns of G^(1/2) / sqrt(N) join the pilot's.
What keeps c' M^-1 c <= 1 for every row keeps it for them (their sum is at most the rows' mean), so they
forbid nothing. But no direction that matters to a row can be missing from the design.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from cloakgp import designs
from cloakgp.checks import FloatArray
from cloakgp.designs.features import Space, posterior_recipe
from cloakgp.designs.solution import Solution
from cloakgp.model.arrays import times_wide
from cloakgp.model.inducing import Features, SparseGP, unexplained
from cloakgp.model.smoothers import Rows, Smoother, diagonal
from cloakgp.rows.chunks import in_threads, steps
from cloakgp.rows.merging import Inputs

if TYPE_CHECKING:
    from cloakgp.model.gp import GP
    from cloakgp.plans.planner import Planner

_ROUGH = 0.1  # gap of the `mse` design that others start from


@dataclass(frozen=True, eq=False)
class Pilot:
    """Columns phi / D (r, n), in the units that designs count in; as much of a smoother as they ask for."""

    model: SparseGP
    features: FloatArray
    digest: str
    """Of the rows, and of the order in which they came: a search starts from the last one's."""

    @property
    def n_rows(self) -> int:
        return len(self.features.T)

    @property
    def n_outputs(self) -> int:
        return len(self.model.T)

    def columns(self, rows: slice | Rows) -> FloatArray:
        """Columns of C."""
        columns: FloatArray = times_wide(self.model.T, self.features[:, rows])
        return columns

    def joined_by(self, planner: Planner, rows: Inputs) -> Pilot:
        """The same and more rows."""
        if not len(rows):
            return self
        windows = () if rows.windows is None else (rows.windows,)
        digest = hashlib.sha256(self.digest.encode())
        for array in (rows.X, rows.variances, *windows):
            digest.update(array.tobytes())
        joined, _ = _columns(planner, self.model.features, rows, self.features)
        return Pilot(self.model, joined, digest.hexdigest())


class Rough(NamedTuple):
    """A design for a sample of the rows, before the others were seen."""

    pilot: Pilot
    solution: Solution
    measured: FloatArray
    """(q, r) what it measures of phi / D."""


def rough_design(planner: Planner, features: Features, rows: Inputs) -> Rough:
    """The `mse` design as if all rows were like these."""
    gp, times = planner.gp, len(planner.X) / len(rows)
    own, gram = _columns(planner, features, rows)
    model = SparseGP(features, gp.approximation, gram * times, planner.X_star)
    # Something in every direction: a row that is like none of these has a long column then, not none.
    common = _common(planner, model.information + np.eye(len(gram)), rows)
    pilot = Pilot(model, np.hstack([common, own]), "")
    solution = designs.solve("mse", cast("Smoother", pilot), planner.weights, _ROUGH)
    assert solution.reduce is not None
    return Rough(pilot, solution, solution.reduce @ model.T)


def first_pilot(
    planner: Planner, model: SparseGP, shared: FloatArray, rows: Inputs, known: Pilot | None = None
) -> Pilot:
    """These rows, whose columns may be known, and what all rows have in common: `shared` is a survey's."""
    common = _common(planner, shared, rows)
    if known is None:
        return Pilot(model, _columns(planner, model.features, rows, common)[0], "")
    return Pilot(model, np.hstack([common, known.features[:, len(shared) :]]), "")


def _common(planner: Planner, shared: FloatArray, rows: Inputs) -> FloatArray:
    values, vectors = np.linalg.eigh(shared)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    common: FloatArray = root / np.sqrt(_largest_rest(planner.gp, rows) * len(planner.X))
    return common


def _largest_rest(gp: GP, pilot: Inputs) -> float:
    """At least any row's D."""
    largest = float(np.max(gp.noise))
    if gp.approximation == "fitc":
        highest = gp.kernel.range
        largest += 100 * float(diagonal(gp.kernel, pilot.X).max()) if highest is None else highest[1]
    return largest


def _columns(
    planner: Planner, features: Features, inputs: Inputs, before: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """phi / D of some rows, in units as in :attr:`Planner.scaled`, after others'; and their information."""
    done = 0 if before is None else before.shape[1]
    columns = np.empty((len(features.W), done + len(inputs)))
    if before is not None:
        columns[:, :done] = before

    def work(rows: slice) -> FloatArray:
        some = inputs[rows]
        phi = features.at(some.X)
        root = np.sqrt(unexplained(features, planner.gp.approximation, some.X, phi, some.noise))
        phi /= root
        gram: FloatArray = phi @ phi.T
        scale = planner.rows_by_noise(some.variances) / root
        if some.windows is not None:
            scale = scale * (some.windows[:, 1] - some.windows[:, 0]) / planner.widest
        np.multiply(phi, scale, out=columns[:, done + rows.start : done + rows.stop])
        return gram

    return columns, np.sum(in_threads(work, list(steps(len(inputs)))), axis=0)


def solved(
    planner: Planner, pilot: Pilot, design: str, gap: float, noise_variance: float, last: Solution | None
) -> Solution:
    """The design for the pilot; `last` is the one for the pilot that this one's rows joined.

    Kept, since only `posterior` depends on the noise to come. What it starts from follows from the pilot's
    history, which is part of its digest: a plan does not depend on the plans that were made before.
    """
    key = (design, gap, f"{pilot.digest} {noise_variance if design == 'posterior' else ''}")
    if key not in planner.solved:
        weights = planner.weights_for(design)
        if design == "posterior":
            planner.solved[key] = _posterior(planner, pilot, gap, noise_variance, last)
        else:
            start = last if last is not None and last.design == design else None
            planner.solved[key] = designs.solve(design, cast("Smoother", pilot), weights, gap, last=start)
    return planner.solved[key]


def _posterior(
    planner: Planner, pilot: Pilot, gap: float, noise_variance: float, last: Solution | None
) -> Solution:
    """From the last solution, or from `mse`'s."""
    space = space_of(planner, pilot.model)
    if last is not None and last.features is not None:
        lower = last.lower_bound  # more rows only forbid more
        return posterior_recipe(space, pilot.features, last.features, gap, noise_variance, False, lower)
    start = solved(planner, pilot, "mse", _ROUGH, noise_variance, last)
    assert start.reduce is not None
    return posterior_recipe(space, pilot.features, start.reduce @ pilot.model.T, gap, noise_variance)


def space_of(planner: Planner, model: SparseGP) -> Space:
    """Where `posterior` searches."""
    return Space(model.information, model.T, planner.weights)
