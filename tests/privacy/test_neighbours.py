"""One person's outcome cannot move the measurements further than the noise was scaled for.

The noise is frozen, so the integers that would be hidden by it can be compared. Privacy rests on one
number, the sensitivity: every other file here assumes it. ``check_neighbours`` is what must hold for
any pair of data sets that differ in one row; the planted bugs at the end show that it can fail.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import sklearn.cluster  # noqa: F401  (loading it draws random numbers, which strategies must not)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from privacy_helpers import (
    KINDS,
    columns,
    exact_measurements,
    fails,
    frozen_noise,
    product,
    small_function_plan,
    small_merged_plan,
    small_plan,
    squared_distance,
    worst_neighbours,
    worst_row,
)

from cloakgp import GP
from cloakgp.calibration import total_delta
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ, Constant, Linear, Matern32
from cloakgp.measurements import lattice
from cloakgp.measurements.lattice import Measurement
from cloakgp.model.inducing import APPROXIMATIONS
from cloakgp.plans.function_planner import BOUNDS as FUNCTION_BOUNDS
from cloakgp.private import room

examples = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


# ---------------------------------------------------------------------------------------- checks


def check_neighbours(plan, y, y_prime, missing="midpoint"):
    """y and y_prime differ in one row: no coordinate but that row's moves, and no further than declared."""
    m = plan.measurement
    with frozen_noise() as seen:
        plan.release(y, missing=missing)
        plan.release(y_prime, missing=missing)
    (first, second), top = seen.y_int, 2**m.y_bits
    changed = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    assert len(changed) <= 1, "one row's y changed more than one row of integers"
    assert all(0 <= v <= top for v in first + second), "an integer outcome is outside its public range"
    for y_int, exact in zip(seen.y_int, seen.exact, strict=True):
        assert product(plan, y_int) == exact, "the product is not exact: an int64 has wrapped"
    moved = squared_distance(*seen.exact)
    assert moved <= m.sensitivity() ** 2, "one row moved the measurements further than the sensitivity"
    sigma = min(seen.sigma)
    root = math.isqrt(moved) + 1 if moved else 0
    mu = float(Fraction(root, sigma)) if root else 1e-9
    slack = total_delta(mu * (1 - 1e-12), m.epsilon, m.delta, m.n_measurements)
    assert slack <= m.delta, "the noise that is drawn does not hide this pair of neighbours"
    return moved


def check_tight(plan):
    """The declared sensitivity is reached: the worst row, from one bound to the other."""
    low, high = plan.gp.bounds
    y = np.full(plan.measurement.n_rows, low)
    y_prime = y.copy()
    y_prime[worst_row(plan)] = high
    moved = check_neighbours(plan, y, y_prime)
    assert moved * 10**4 >= (plan.measurement.sensitivity() * 99) ** 2, "the noise is larger than needed"


# ------------------------------------------------------------------------------------ strategies

positive = st.floats(0.05, 20.0)


@st.composite
def kernels(draw):
    base = st.one_of(
        st.builds(lambda s, v: EQ(s, variance=v), positive, positive),
        st.builds(lambda s, v: Matern32(s, variance=v), positive, positive),
        st.builds(lambda v, c: Linear(variance=v) + Constant(c), positive, positive),
    )
    return draw(st.one_of(base, st.builds(lambda a, b: a + b, base, base)))


@st.composite
def inputs(draw):
    """Spread, clustered, repeated, or with an outlier; one or two columns."""
    rows, columns = draw(st.integers(1, 14)), draw(st.sampled_from([1, 2]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = random.uniform(-1, 1, (rows, columns))
    kind = draw(st.sampled_from(["spread", "cluster", "duplicates", "outlier"]))
    if kind == "cluster":
        X *= 1e-5
    elif kind == "duplicates":
        X = X[random.integers(0, max(1, rows // 3), rows)]
    elif kind == "outlier":
        X[0] = 1e3
    X_star = random.uniform(-1.2, 1.2, (draw(st.integers(1, 6)), columns))
    return X, X_star


@st.composite
def bounds(draw):
    low = draw(st.floats(-1e6, 1e6))
    width = draw(st.floats(1e-3, 1e6))
    assume(low + width > low)
    return low, low + width


@st.composite
def plans(draw):
    X, X_star = draw(inputs())
    low, high = draw(bounds())
    # The kernel in units of the bounds, as it would be chosen: the sensitivity does not depend on it.
    noise = draw(st.sampled_from([1e-3, 0.1, 3.0]))
    if draw(st.booleans()):
        levels = draw(st.sampled_from([2, len(X)]))  # with two, equal rows may share their noise or not
        noise = np.linspace(noise, 2 * noise, levels)[np.arange(len(X)) % levels]
    kernel, prior = draw(kernels()), {}
    if draw(st.booleans()):
        prior = {"approximation": draw(st.sampled_from(APPROXIMATIONS))}
        prior["inducing"] = draw(st.one_of(st.integers(1, len(X)), st.sampled_from([X, X_star, X_star[:1]])))
    try:
        return GP(kernel, noise, (low, high), **prior).plan(
            X,
            X_star=X_star,
            epsilon=draw(st.sampled_from([0.1, 1.0, 8.0])),
            delta=draw(st.sampled_from([1e-8, 0.01])),
            design=draw(st.sampled_from(list(DESIGNS))),
            gap=0.2,
        )
    except ValueError as refused:  # X_star out of the data's reach
        if "nothing to release" not in str(refused):
            raise
        assume(False)


@st.composite
def function_plans(draw):
    """Of every bound; the kernel's lengthscale is short where rows must be far apart."""
    X, X_star = draw(inputs())
    low, high = draw(bounds())
    bound = draw(st.sampled_from(FUNCTION_BOUNDS))
    noise = draw(st.sampled_from([1e-3, 0.1, 3.0]))
    if draw(st.booleans()):
        noise = np.linspace(noise, 2 * noise, len(X))
    any_kernel = draw(kernels())
    stationary = draw(st.sampled_from([EQ, Matern32]))(draw(positive), variance=draw(positive))
    gp = GP(any_kernel if bound in ("exact", "input-free") else stationary, noise, (low, high))
    options = {}
    if bound == "varah":
        covariance = gp.kernel(X) + np.diag(np.broadcast_to(noise, len(X)))
        margin = float((2 * np.diag(covariance) - np.abs(covariance).sum(axis=1)).min())
        assume(margin > 1e-6)
        options["margin"] = margin * draw(st.sampled_from([0.999, 0.1]))
    if bound in ("input-free", "varah") or draw(st.booleans()):
        options["basis"] = X_star
    promise = {
        "epsilon": draw(st.sampled_from([0.1, 1.0, 8.0])),
        "delta": draw(st.sampled_from([1e-8, 0.01])),
    }
    try:
        return gp.plan_function(X, bound=bound, **promise, **options)
    except ValueError as refused:
        if "too close together" not in str(refused) and "no influence" not in str(refused):
            raise
        assume(False)


def outcomes(low, high):
    """What may stand in one row: anything at all."""
    width = high - low
    return st.one_of(
        st.floats(low - width, high + width),
        st.floats(allow_nan=True, allow_infinity=True),
        st.sampled_from(
            [low, high, (low + high) / 2, np.nextafter(high, np.inf), np.nextafter(low, -np.inf)]
        ),
        st.sampled_from([1.7e308, -1.7e308, 5e-324, -0.0, np.nan, np.inf, -np.inf]),
    )


# ----------------------------------------------------------------------------------------- tests


@examples
@given(st.data(), plans())
def test_replacing_one_outcome_by_anything_stays_within_the_declared_sensitivity(data, plan):
    """Whatever one person's outcome is replaced by, the others' integers stay and z moves at most Δ."""
    outcome = outcomes(*plan.gp.bounds)
    y = np.array(data.draw(st.lists(outcome, min_size=len(plan.X), max_size=len(plan.X))))
    y_prime = y.copy()
    y_prime[data.draw(st.integers(0, len(y) - 1))] = data.draw(outcome)
    check_neighbours(plan, y, y_prime)


@examples
@given(st.data(), function_plans())
def test_replacing_one_outcome_stays_within_the_declared_sensitivity_of_a_function(data, plan):
    """The same for releases of whole functions, whichever bound their noise is scaled to."""
    outcome, n_rows = outcomes(*plan.gp.bounds), plan.measurement.n_rows
    y = np.array(data.draw(st.lists(outcome, min_size=n_rows, max_size=n_rows)))
    y_prime = y.copy()
    y_prime[data.draw(st.integers(0, n_rows - 1))] = data.draw(outcome)
    check_neighbours(plan, y, y_prime)


@examples
@given(function_plans())
def test_the_worst_neighbours_stay_within_the_declared_sensitivity_of_a_function(plan):
    """From one end of the bounds to the other; reached where the bound is the exact one."""
    check_neighbours(plan, *worst_neighbours(plan))
    if plan.certificate.bound == "exact":
        check_tight(plan)


@pytest.mark.parametrize("bound", FUNCTION_BOUNDS)
def test_every_bound_of_a_function_hides_its_worst_neighbours(bound):
    """None is left out by the luck of the draw above."""
    plan = small_function_plan(bound)
    assert plan.certificate.bound == bound
    assert check_neighbours(plan, *worst_neighbours(plan)) > 0


@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_reaches_its_sensitivity_and_no_more(design):
    """None is left out by the luck of the draw above."""
    plan = small_plan(design=design, n_outputs=4)
    assert plan.certificate.design == design
    check_tight(plan)


def a_row_that_moves_as_far_as_any(noise=0.3):
    """One row with k(x, x) = noise, on its own input: the bound without inputs is then exact."""
    gp = GP(EQ(1.0, variance=noise), noise, (0.0, 1.0))
    return gp.plan_function([[0.5]], epsilon=1.0, delta=0.01, bound="input-free", basis=[[0.5]])


@pytest.mark.parametrize("noise", [1e-3, 0.3, 0.7, 5.0, 1e4])
def test_the_bound_without_inputs_is_reached_and_not_passed(noise):
    """1 / (2 sqrt(noise)) is no more than needed, and rounding to integers does not break it."""
    check_tight(a_row_that_moves_as_far_as_any(noise))


@examples
@given(plans())
def test_the_declared_sensitivity_is_reached_by_the_worst_neighbours(plan):
    """The bound is tight, so a bug that made it smaller would break the promise, and tests would see it."""
    check_tight(plan)


@examples
@given(st.data(), plans())
def test_a_hairbreadth_across_a_rounding_boundary_moves_one_lattice_step_of_one_row(data, plan):
    """Rounding cannot amplify: y just below and just above a half step differ by one step at most."""
    m = plan.measurement
    low, high = plan.gp.bounds
    steps = data.draw(st.lists(st.integers(0, 2**m.y_bits - 1), min_size=len(plan.X), max_size=len(plan.X)))
    y = low + (np.array(steps) + 0.5) * ((high - low) / 2**m.y_bits)
    row = data.draw(st.integers(0, len(y) - 1))
    y_prime = y.copy()
    y_prime[row] = np.nextafter(y[row], data.draw(st.sampled_from([-np.inf, np.inf])))
    moved = check_neighbours(plan, y, y_prime, missing="error")
    column = columns(plan)[row]
    # When a float of y is coarser than the lattice, one float is more than one step.
    steps_in_a_float = math.ceil(np.spacing(max(abs(low), abs(high))) * 2**m.y_bits / (high - low)) + 1
    assert moved <= steps_in_a_float**2 * sum(b * b for b in column)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kind", KINDS)
def test_merged_and_sparse_plans_reach_their_sensitivity_and_no_more(kind, design):
    """One row of a group moves its sum by its own integers, however many there are in the group."""
    plan = small_merged_plan(**KINDS[kind], design=design)
    assert (plan.measurement.groups is not None) == ("merged" in kind)
    assert (plan.gp.inducing is not None) == ("tc" in kind)
    check_tight(plan)
    low, high = plan.gp.bounds
    moved = []
    for row in range(6):
        y = np.full(6, low)
        y[row] = high
        moved.append(check_neighbours(plan, np.full(6, low), y))
    lengths = [4**plan.measurement.y_bits * sum(b * b for b in column) for column in columns(plan)]
    assert moved == lengths, "a row did not move the measurements by its own column"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "merged" in kind])
def test_equal_rows_are_alike_to_the_measurement(kind):
    """Outcomes swapped between rows of a group leave the very same integers; others do not."""
    plan = small_merged_plan(**KINDS[kind])
    labels, y = plan.measurement.groups.labels, np.array([0.1, 0.25, 0.4, 0.6, 0.75, 0.9])
    for one in range(6):
        for other in range(one):
            swapped = y.copy()
            swapped[[one, other]] = y[[other, one]]
            same = exact_measurements(plan, swapped) == exact_measurements(plan, y)
            assert same == (labels[one] == labels[other])


def test_a_crowd_of_equal_rows_is_no_easier_to_see_than_its_column():
    """The more rows share an input, the less one of them moves the prediction, and the less noise."""
    stds = []
    for n in (1, 10, 1000):
        plan = small_merged_plan(repeats=(n,), n_outputs=1)
        check_tight(plan)
        stds.append(float(plan.noise_std[0]))
    influence = [1 / (1 + 0.3 / n) / n for n in (1, 10, 1000)]
    np.testing.assert_allclose(np.array(stds) / stds[0], np.array(influence) / influence[0], rtol=1e-5)


def test_integers_near_the_limit_do_not_wrap():
    """A measurement that just passes the overflow check is still exact at both ends of the bounds."""
    matrix = np.full((1, 8), 2**33, dtype=np.int64)
    m = Measurement(matrix, 24, 30, 2**55, 0.0, 1.0, 50.0, 0.5)
    assert m.largest_sum() + 64 * m.sigma < lattice.HEADROOM
    assert m.largest_sum() >= lattice.HEADROOM // 4
    plan = small_plan(n_rows=8)
    object.__setattr__(plan, "measurement", m)
    for row in range(8):
        y = np.ones(8)
        y_prime = y.copy()
        y_prime[row] = -1e300
        assert check_neighbours(plan, y, y_prime) == (2**33 * 2**24) ** 2


@pytest.mark.parametrize("entry", [2**26 + 1, 2**31 - 1, 2**31, 2**45 + 1, -(2**53) - 1, 2**61 + 1])
def test_sensitivity_is_an_exact_upper_bound_for_large_integers(entry):
    """Norms do not wrap or round down, also where squares leave int64 and entries leave float64."""
    matrix = np.array([[entry, 1], [entry // 3, 2]], dtype=np.int64)
    m = Measurement(matrix, 7, 30, 2**40, 0.0, 1.0, 1.0, 0.01)
    exact = max(sum(b * b for b in column) for column in matrix.T.tolist()) * 4**7
    assert m.sensitivity() ** 2 >= exact
    assert (m.sensitivity() - 1) ** 2 < exact
    assert Fraction(m.mu()) * m.sigma >= m.sensitivity()


def test_missing_outcomes_stand_at_the_middle_row_by_row():
    """A missing outcome is as any other value: NaN and the midpoint give the same integers."""
    plan = small_plan(bounds=(-3.0, 5.0))
    y = np.array([-3.0, 4.9, np.nan, np.inf, 0.3, -np.inf])
    filled = np.array([-3.0, 4.9, 1.0, 1.0, 0.3, 1.0])
    assert exact_measurements(plan, y) == exact_measurements(plan, filled)


# ---------------------------------------------------------------------------------- planted bugs


def _no_clipping(y, m):
    with np.errstate(all="ignore"):
        y = np.where(np.isfinite(y), y, (m.lower + m.upper) / 2)
        return np.rint((y - m.lower) * (2**m.y_bits / (m.upper - m.lower))).astype(np.int64)


def _missing_at_the_mean_of_y(y, m):
    return _right(np.where(np.isfinite(y), y, np.nanmean(y)), m)


def _clipped_to_the_data(y, m):
    finite = y[np.isfinite(y)]
    span = finite.max() - finite.min()
    return _right(m.lower + (y - finite.min()) / span * (m.upper - m.lower), m)


def _one_step_too_far(y, m):
    return _right(y, m) + (y >= m.upper)


_right = room.to_integers

PAIRS = {  # neighbours that a correct mechanism treats alike and each planted bug does not
    "far outside": ([0.5] * 6, [0.5] * 5 + [30.0]),
    "missing": ([0.1, 0.2, 0.3, np.nan, 0.5, 0.6], [0.9, 0.2, 0.3, np.nan, 0.5, 0.6]),
    "ends": ([0.0, 0.2, 0.3, 0.4, 0.5, 0.0], [0.0, 0.2, 0.3, 0.4, 0.5, 1.0]),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_the_pairs_that_catch_planted_bugs_pass_without_them(pair):
    """So that what the planted bugs show is the bug, not the pair."""
    check_neighbours(small_plan(), *map(np.array, PAIRS[pair]))


@pytest.mark.parametrize(
    ("bug", "pair"),
    [
        (_no_clipping, "far outside"),
        (_missing_at_the_mean_of_y, "missing"),
        (_clipped_to_the_data, "ends"),
        (_one_step_too_far, "ends"),
    ],
)
def test_planted_bugs_in_preparing_y_are_caught(monkeypatch, bug, pair):
    """No clipping, missing rows at the mean of the others, scaling by y's own range, a top end too high."""
    monkeypatch.setattr(room, "to_integers", bug)
    assert fails(check_neighbours, small_plan(), *map(np.array, PAIRS[pair]))


def test_planted_sensitivity_one_percent_too_small_is_caught(monkeypatch):
    """A sensitivity of 0.99 of the true one is below what the worst neighbours move."""
    right = Measurement.sensitivity
    monkeypatch.setattr(Measurement, "sensitivity", lambda m: right(m) * 99 // 100)
    assert fails(check_tight, small_plan())


def test_planted_sensitivity_of_a_function_one_percent_too_small_is_caught(monkeypatch):
    """Of the exact one, and of the declared one where it is reached."""
    right = Measurement.sensitivity
    exact, declared = small_function_plan(), a_row_that_moves_as_far_as_any()
    monkeypatch.setattr(Measurement, "sensitivity", lambda m: right(m) * 99 // 100)
    assert fails(check_neighbours, exact, *worst_neighbours(exact), because="further than the sensitivity")
    assert fails(check_neighbours, declared, *worst_neighbours(declared), because="further than")


def test_planted_bound_that_is_too_small_never_becomes_noise(monkeypatch):
    """A bound below what one row does move is refused, or the integers' own sensitivity is used."""
    monkeypatch.setattr("cloakgp.plans.function_planner._bound", lambda *args: 1e-3)
    for bound in ("infinity", "paper", "input-free", "varah"):
        with pytest.raises(ValueError, match="margin"):
            small_function_plan(bound)
    monkeypatch.undo()
    monkeypatch.setattr(lattice, "full_scale_sensitivity", lambda *args: 1)
    plan = a_row_that_moves_as_far_as_any()
    check_neighbours(plan, *worst_neighbours(plan))


def test_planted_sensitivity_of_the_matrix_before_rounding_is_caught(monkeypatch):
    """The norms must be those of the integers that are used: before rounding, some are too small."""
    before_rounding = {}

    def to_integers(B, bounds, epsilon, delta, mu, **options):
        m = lattice_to_integers(B, bounds, epsilon, delta, mu, **options)
        largest = float(np.sqrt((B**2).sum(axis=0).max()))
        before_rounding[m.matrix.tobytes()] = int(math.ldexp(largest, m.matrix_bits + m.y_bits))
        return m

    right, lattice_to_integers = Measurement.sensitivity, lattice.to_integers
    monkeypatch.setattr("cloakgp.plans.planner.to_integers", to_integers)
    plans_made = [small_plan(n_rows=n, n_outputs=3) for n in range(4, 16)]
    assert not any(fails(check_tight, plan) for plan in plans_made)
    monkeypatch.setattr(
        Measurement, "sensitivity", lambda m: before_rounding.get(m.matrix.tobytes()) or right(m)
    )
    assert any(fails(check_tight, plan) for plan in plans_made)


MERGED = [kind for kind in KINDS if "merged" in kind]


def _sensitivity_for_means(m):
    """As if each column were for its group's mean, which one row moves by 1/n: it is for the sum."""
    columns = zip(m.matrix.T.tolist(), m.counts.tolist(), strict=True)
    squared = max(Fraction(4**m.y_bits * sum(b * b for b in column), n * n) for column, n in columns)
    return math.isqrt(math.ceil(squared) - 1) + 1


@pytest.mark.parametrize("kind", MERGED)
def test_planted_sensitivity_for_means_where_sums_are_measured_is_caught(monkeypatch, kind):
    """A column c in place of c/n, or c/n counted where c is used: the noise would be n times too small."""
    options = {**KINDS[kind], "repeats": (4, 4)}
    if "noise" in options:
        options["noise"] = [0.3, 0.3, 0.6, 0.6] * 2  # two rows in every group
    right = small_merged_plan(**options)
    monkeypatch.setattr(Measurement, "sensitivity", _sensitivity_for_means)
    assert fails(check_neighbours, right, *worst_neighbours(right), because="further than the sensitivity")
    wrong = small_merged_plan(**options)
    assert wrong.measurement.sigma < 0.7 * right.measurement.sigma
    assert fails(check_tight, wrong, because="further than the sensitivity")
    monkeypatch.undo()
    assert fails(check_neighbours, right, *worst_neighbours(right)) is False
    with pytest.raises(AssertionError, match="noise is too small"):  # the private room's own check
        wrong.release(np.zeros(8))


@pytest.mark.parametrize("kind", MERGED)
def test_planted_column_of_the_mean_for_every_row_is_caught(monkeypatch, kind):
    """The door multiplies a row's integer with its group's count too: no one's column is that long."""
    plan, right = small_merged_plan(**KINDS[kind]), room._sums
    monkeypatch.setattr(
        room, "_sums", lambda y, m, labels, *rest: right(y, m, labels, *rest) * np.bincount(labels)
    )
    assert fails(check_neighbours, plan, *worst_neighbours(plan))


@pytest.mark.parametrize("kind", MERGED)
def test_planted_sums_over_other_rows_are_caught(monkeypatch, kind):
    """Labels in another order than the rows', or a row that is counted in two groups."""
    plan, right = small_merged_plan(**KINDS[kind]), room._sums
    y = np.linspace(0.1, 0.9, 6)
    pair = y, np.where(np.arange(6) == 3, 1.0, y)
    check_neighbours(plan, *pair)
    monkeypatch.setattr(room, "_sums", lambda y, m, labels, *rest: right(y, m, np.sort(labels), *rest))
    assert fails(check_neighbours, plan, *pair, because="not exact")
    twice = np.eye(len(plan.measurement.counts), dtype=np.int64)
    twice += np.roll(twice, 1, axis=0)
    monkeypatch.setattr(room, "_sums", lambda *given: twice @ right(*given))
    assert fails(check_neighbours, plan, *pair)


def test_planted_groups_that_depend_on_y_are_caught(monkeypatch):
    """Rows are grouped by what is public: grouped by outcome too, one row would move others' integers."""
    plan, right = small_merged_plan(), room._sums
    monkeypatch.setattr(room, "_sums", lambda y, m, labels, *rest: right(y, m, labels[np.argsort(y)], *rest))
    y = np.linspace(0.1, 0.9, 6)
    y_prime = y.copy()
    y_prime[0] = 1.0
    assert fails(check_neighbours, plan, y, y_prime)


def test_planted_smaller_noise_is_caught(monkeypatch):
    """Noise that is drawn with another scale than the one that was checked does not hide the worst pair."""
    right = room.measure

    def measured(measurement, y, missing, rows=None, **more):
        with pytest.MonkeyPatch.context() as patch:
            add = room.add_noise
            patch.setattr(room, "add_noise", lambda exact, sigma: add(exact, sigma * 99 // 100))
            return right(measurement, y, missing, rows, **more)

    monkeypatch.setattr(room, "measure", measured)
    assert fails(check_tight, small_plan())


def test_planted_wrapping_product_is_caught(monkeypatch):
    """Norms that wrap in int64 would pass for small ones; the exact check is not fooled."""
    monkeypatch.setattr(
        lattice, "largest_squared_norm", lambda matrix: int(np.einsum("ij,ij->j", matrix, matrix).max())
    )
    with pytest.raises(AssertionError):
        test_sensitivity_is_an_exact_upper_bound_for_large_integers(2**45 + 1)
