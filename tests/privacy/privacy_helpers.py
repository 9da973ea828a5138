"""Small plans, and a look inside the private room, for the attacks in this folder."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from cloakgp import GP, AutoGP, Plan
from cloakgp.kernels import EQ
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.staged import StagedPlan
from cloakgp.plans.stages import StagePlan
from cloakgp.private import room
from cloakgp.testing import InsecureWarning, insecure_seed


def small_plan(*, epsilon=1.0, delta=0.01, bounds=(0.0, 1.0), n_rows=6, n_outputs=2, **options) -> Plan:
    """A plan with few rows and few measurements: a release from it costs about half a millisecond."""
    X = np.linspace(0.0, 1.0, n_rows)[:, None]
    X_star = np.linspace(0.2, 0.8, n_outputs)[:, None]
    gp = GP(EQ(0.5, variance=(bounds[1] - bounds[0]) ** 2), 0.3 * (bounds[1] - bounds[0]) ** 2, bounds)
    return gp.plan(X, X_star=X_star, epsilon=epsilon, delta=delta, **options)


def small_merged_plan(
    *, epsilon=1.0, delta=0.01, bounds=(0.0, 1.0), repeats=(3, 1, 2), noise=None, n_outputs=2, **options
) -> Plan:
    """As small, with rows that are equal; `inducing`, `approximation` and `noise` go to the model.

    The rows, and the noise variances if there is one for each, are shuffled.
    """
    X = np.repeat(np.linspace(0.0, 1.0, len(repeats)), repeats)[:, None]
    turn = np.random.default_rng(len(X)).permutation(len(X))
    X = X[turn]
    X_star = np.linspace(0.2, 0.8, n_outputs)[:, None]
    scale = (bounds[1] - bounds[0]) ** 2
    prior = {name: options.pop(name) for name in ("inducing", "approximation") if name in options}
    gp = GP(
        EQ(0.5, variance=scale), (0.3 if noise is None else np.array(noise)[turn]) * scale, bounds, **prior
    )
    return gp.plan(X, X_star=X_star, epsilon=epsilon, delta=delta, **options)


KINDS = {  # of plans whose columns are not simply one for each row of an exact GP; six rows each
    "merged": {},
    "merged, unequal noise": {"noise": [0.3, 0.6, 0.3, 0.3, 0.6, 0.6]},
    "dtc": {"repeats": (1,) * 6, "inducing": 3},
    "fitc": {"repeats": (1,) * 6, "inducing": [[0.0], [0.4], [1.0]], "approximation": "fitc"},
    "merged dtc": {"inducing": [[0.1], [0.9]]},
    "merged fitc": {"inducing": 2, "approximation": "fitc"},
}


def small_function_plan(
    bound="exact", *, epsilon=1.0, delta=0.01, bounds=(0.0, 1.0), n_rows=6, **options
) -> FunctionPlan:
    """A plan of a whole function, as small; for bounds that hide X, on three public points."""
    X = np.linspace(0.0, 1.0, n_rows)[:, None]
    scale = (bounds[1] - bounds[0]) ** 2
    gp = GP(EQ(0.05 if bound == "varah" else 0.5, variance=scale), 0.3 * scale, bounds)
    if bound in ("input-free", "varah"):
        options["basis"] = np.array([[0.1], [0.5], [0.9]])
    if bound == "varah":
        off = np.abs(gp.kernel(X)).sum(axis=1) - scale
        options["margin"] = 0.9 * (1.3 * scale - float(off.max()))
    return gp.plan_function(X, epsilon=epsilon, delta=delta, bound=bound, **options)


@cache
def small_staged_plan(
    *, epsilon=1.0, delta=0.01, bounds=(0.0, 1.0), n_rows=6, n_outputs=2, stages=3, repeats=1
) -> StagedPlan:
    """A plan in stages, as small; a release from it costs a tenth of a second. `repeats` rows are equal."""
    X = np.repeat(np.linspace(0.0, 1.0, n_rows // repeats), repeats)
    X_star = np.linspace(0.2, 0.8, n_outputs)
    return AutoGP(bounds=bounds, stages=stages).plan(X, X_star=X_star, epsilon=epsilon, delta=delta)


@contextmanager
def seeded(seed):
    """Noise from a seed: no warning that tests would take for an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureWarning)
        with insecure_seed(seed):
            yield


@cache
def some_stages(plan: StagedPlan, seed=0) -> tuple[StagePlan, ...]:
    """The plans of all stages, for answers that outcomes and noise from a seed have given: public choices."""
    low, high = plan.rule.bounds
    y = np.random.default_rng(seed).uniform(low, high, plan.certificate.n_rows)
    with seeded(seed):
        stages = tuple(stage.plan for stage in plan.release(y).stages)
    require(len(stages) == plan.stages, "a stage was left out")
    return stages


def columns(plan: Plan | FunctionPlan) -> list[list[int]]:
    """The integers that y of each row is multiplied with; equal rows share a column of the matrix."""
    m = plan.measurement
    stored = m.matrix.T.tolist()
    return stored if m.groups is None else [stored[label] for label in m.groups.labels.tolist()]


def worst_row(plan: Plan | FunctionPlan) -> int:
    """The row of X whose y moves the measurements most, in exact integers."""
    return int(np.argmax([sum(b * b for b in column) for column in columns(plan)]))


def worst_neighbours(plan: Plan | FunctionPlan) -> tuple[np.ndarray, np.ndarray]:
    """Two data sets that differ in the worst row, from one end of the bounds to the other."""
    low, high = plan.gp.bounds
    y = np.full(plan.measurement.n_rows, (low + high) / 2)
    other = y.copy()
    y[worst_row(plan)], other[worst_row(plan)] = low, high
    return y, other


def exact_measurements(plan: Plan | FunctionPlan, y) -> list[int]:
    """What a release of y would hold if no noise were added, in Python integers."""
    y_int = room.to_integers(np.asarray(y, dtype=float), plan.measurement.lattice).tolist()
    return product(plan, y_int)


def product(plan: Plan | FunctionPlan, y_int: list[int]) -> list[int]:
    """Every row's integer times its column, added up in Python integers."""
    per_row = columns(plan)
    assert len(per_row) == len(y_int)
    q = plan.measurement.n_measurements
    return [sum(column[j] * v for column, v in zip(per_row, y_int, strict=True)) for j in range(q)]


@dataclass
class Seen:
    """What went on inside the private room, seen by patching it."""

    y_int: list[list[int]] = field(default_factory=list)
    exact: list[list[int]] = field(default_factory=list)
    sigma: list[int] = field(default_factory=list)


@contextmanager
def frozen_noise():
    """No noise inside this block; yields what went through the private room."""
    seen = Seen()
    to_integers = room.to_integers

    def recorded(*args):
        y_int = to_integers(*args)
        seen.y_int.append(y_int.tolist())
        return y_int

    def no_noise(exact, sigma):
        seen.exact.append(exact.tolist())
        seen.sigma.append(sigma)
        return exact

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "to_integers", recorded)
        patch.setattr(room, "add_noise", no_noise)
        yield seen


def squared_distance(a: list[int], b: list[int]) -> int:
    """Squared L2 distance in Python integers."""
    return sum((p - q) ** 2 for p, q in zip(a, b, strict=True))


def require(condition, what) -> None:
    """A check's own footing, such as enough samples: without it neither a pass nor a fail means anything."""
    if not condition:
        raise RuntimeError(what)


def fails(check, *args, because="", **kwargs) -> bool:
    """Whether a check rejects what it is given, for the reason `because`; other errors are passed on."""
    try:
        check(*args, **kwargs)
    except AssertionError as rejected:
        return because in str(rejected)
    return False
