"""Small plans, and a look inside the private room, for the attacks in this folder."""

from __future__ import annotations

import math
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from cloakgp import GP, AutoGP, Plan, Release, binning
from cloakgp.core.calibration import total_delta
from cloakgp.kernels import EQ
from cloakgp.measure.measurement import LAPLACE
from cloakgp.model.hyperprior import Known
from cloakgp.private import outcomes, room
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
) -> Plan:
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
) -> Plan:
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


def parts_of(release) -> list:
    """All that was measured, stage after stage."""
    return [part for stage in release.stages for part in stage.parts]


@cache
def some_parts(plan: Plan, seed=0) -> list:
    """What all stages measure, for answers that outcomes and noise from a seed have given: public choices."""
    low, high = plan.rule.bounds
    y = np.random.default_rng(seed).uniform(low, high, plan.certificate.n_rows)
    with seeded(seed):
        release = plan.release(y)
    require(len(release.stages) == plan.stages, "a stage was left out")
    return parts_of(release)


def columns(plan: Plan) -> list[list[int]]:
    """The integers that y of each row is multiplied with; equal rows, or those of a bin, share a column."""
    m = plan.measurement
    stored = (m.matrix.toarray() if sparse.issparse(m.matrix) else m.matrix).T.tolist()
    return stored if m.groups is None else [stored[label] for label in m.groups.labels.tolist()]


BIN_NOISE = {"laplace": {}, "gaussian": {"mechanism": "gaussian", "delta": 0.01}}


def small_bins(mechanism="laplace", *, epsilon=1.0, bounds=(0.0, 1.0), local=False, n_rows=6, **options):
    """Rows in three bins, two of the first six on edges; or each for itself."""
    options = {"bounds": bounds, "epsilon": epsilon, **BIN_NOISE[mechanism], **options}
    X = np.resize([0.0, 0.3, 1.0, 1.5, 2.0, 3.0], n_rows)
    if local:
        return binning.local(X, X_star=[0.5, 2.5], kernel=EQ(1.0), noise=0.1, **options)
    return binning.plan(X, X_star=[0.5, 2.5], edges=[0.0, 1.0, 2.0, 3.0], **options)


def worst_row(plan: Plan) -> int:
    """The row of X whose y moves the measurements most, in exact integers."""
    return int(np.argmax([sum(b * b for b in column) for column in columns(plan)]))


def worst_neighbours(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Two data sets that differ in the worst row, from one end of the bounds to the other."""
    low, high = plan.gp.bounds
    y = np.full(plan.measurement.n_rows, (low + high) / 2)
    other = y.copy()
    y[worst_row(plan)], other[worst_row(plan)] = low, high
    return y, other


def integers(m, y) -> list[int]:
    """What the room makes of y before it is multiplied, for a measurement of numbers."""
    labels = np.arange(m.n_rows) if m.groups is None else m.groups.labels
    return outcomes.integers_of(m.statistic.at(labels), np.asarray(y, dtype=float))[0][:, 0].tolist()


def exact_measurements(plan: Plan, y) -> list[int]:
    """What a release of y would hold if no noise were added, in Python integers."""
    return product(plan, integers(plan.measurement, y))


def product(plan: Plan, y_int: list[int]) -> list[int]:
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
    seen, right = Seen(), room.integers_of

    def recorded(*args):
        integers, usable = right(*args)
        seen.y_int.append(integers[:, 0].tolist())
        return integers, usable

    def no_noise(exact, sigma):
        seen.exact.append(exact.tolist())
        seen.sigma.append(sigma)
        return exact

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "integers_of", recorded)
        patch.setattr(room, "add_noise", no_noise)
        patch.setattr(room, "add_laplace", no_noise)
        yield seen


def check_neighbours(plan, y, y_prime, missing="midpoint"):
    """y and y_prime differ in one unit: no coordinate but its rows' moves, and no further than declared.

    How far: in L2, squared, or in L1 where that is what noise is scaled to.
    """
    m = plan.measurement
    with frozen_noise() as seen:
        plan.release(y, missing=missing)
        plan.release(y_prime, missing=missing)
    (first, second), top = seen.y_int, 2**m.y_bits
    changed = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    owners = changed if m.people is None else m.people.labels[changed].tolist()
    assert len(set(owners)) <= 1, "one unit's y changed more than its own integers"
    assert all(0 <= v <= top for v in first + second), "an integer outcome is outside its public range"
    for y_int, exact in zip(seen.y_int, seen.exact, strict=True):
        assert product(plan, y_int) == exact, "the product is not exact: an int64 has wrapped"
    if m.noise == LAPLACE:
        moved = sum(abs(a - b) for a, b in zip(*seen.exact, strict=True))
        assert moved <= m.sensitivity(), "one unit moved the measurements further than the sensitivity"
        kept = Fraction(moved, min(seen.sigma)) <= Fraction(m.epsilon)
    else:
        moved = squared_distance(*seen.exact)
        assert moved <= m.sensitivity() ** 2, "one unit moved the measurements further than the sensitivity"
        mu = float(Fraction(math.isqrt(moved) + 1, min(seen.sigma))) if moved else 1e-9
        kept = total_delta(mu * (1 - 1e-12), m.epsilon, m.delta, m.n_measurements) <= m.delta
    assert kept, "the noise that is drawn does not hide this pair of neighbours"
    return moved


def outcomes_of(low, high):
    """What may stand in one row: anything at all."""
    width = high - low
    near = [low, high, (low + high) / 2, np.nextafter(high, np.inf), np.nextafter(low, -np.inf)]
    return st.one_of(
        st.floats(low - width, high + width),
        st.floats(allow_nan=True, allow_infinity=True),
        st.sampled_from([*near, 1.7e308, -1.7e308, 5e-324, -0.0, np.nan, np.inf, -np.inf]),
    )


def squared_distance(a: list[int], b: list[int]) -> int:
    """Squared L2 distance in Python integers."""
    return sum((int(p) - int(q)) ** 2 for p, q in zip(a, b, strict=True))


def with_answer(plan: Plan, z) -> Release:
    """What a release would be whose noisy numbers are these."""
    stage = replace(plan.first, answer=np.asarray(z))
    return Release(plan, (stage,), (Known(plan.gp),), np.ones(1))


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
