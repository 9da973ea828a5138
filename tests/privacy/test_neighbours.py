"""One person's outcome cannot move the measurements of a plan further than the noise was scaled for.

The noise is frozen, so the integers that would be hidden by it can be compared. That every measurement keeps
this is in ``tests/contracts/test_measurement_contract.py``; here, that planners make such measurements, and
that a release goes through them. The planted bugs at the end show that ``check_neighbours`` can fail.
"""

from __future__ import annotations

import math
from itertools import product as every

import numpy as np
import pytest
import sklearn.cluster  # noqa: F401  (loading it draws random numbers, which strategies must not)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from privacy_helpers import (
    BIN_NOISE,
    KINDS,
    check_neighbours,
    columns,
    exact_measurements,
    fails,
    frozen_noise,
    outcomes_of,
    small_bins,
    small_function_plan,
    small_merged_plan,
    small_plan,
    worst_neighbours,
    worst_row,
)

from cloakgp import GP, binning
from cloakgp.data import cells
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ, Constant, Linear, Matern32
from cloakgp.measure import measurement, sensitivity
from cloakgp.measure.measurement import LAPLACE, Measurement
from cloakgp.model.inducing import APPROXIMATIONS
from cloakgp.private import room
from cloakgp.release.function_planner import BOUNDS as FUNCTION_BOUNDS

examples = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


# ---------------------------------------------------------------------------------------- checks


def check_tight(plan):
    """The declared sensitivity is reached: the worst row, from one bound to the other."""
    low, high = (np.broadcast_to(end, plan.measurement.n_rows) for end in plan.gp.bounds)
    y_prime, row = low.copy(), worst_row(plan)
    y_prime[row] = high[row]
    moved = check_neighbours(plan, low, y_prime)
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


# ----------------------------------------------------------------------------------------- tests


@st.composite
def bins(draw):
    """One to three inputs; rows anywhere, on edges, repeated, or all in one bin; bins or single rows; for
    each row, or for people who have rows in one bin, in several, or one row each. And whose rows they are.
    """
    rows, columns = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["anywhere", "edges", "repeated", "one bin"]))
    X = {
        "anywhere": random.uniform(0, 4, (rows, columns)),
        "edges": random.integers(0, 5, (rows, columns)).astype(float),
        "repeated": np.repeat(random.uniform(0, 4, (1, columns)), rows, axis=0),
        "one bin": random.uniform(0, 1, (rows, columns)),
    }[kind]
    low = draw(st.floats(-1e6, 1e6))
    people = draw(st.none() | st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    options = {
        "X_star": X[:1],
        "bounds": (low, low + draw(st.floats(0.01, 1e6))),
        "epsilon": draw(st.sampled_from([1e-6, 0.1, 1.0, 8.0, 1e5])),
        "people": people,
        **draw(st.sampled_from(list(BIN_NOISE.values()))),
    }
    ids = np.arange(rows) if people is None else np.array(people)
    if draw(st.booleans()):
        return binning.local(X, kernel=EQ(1.0), noise=1.0, **options), ids
    edges = draw(st.sampled_from([[np.arange(5.0)] * columns, 1, 3, [np.array([-9.0, 9.0])] * columns]))
    return binning.plan(X, edges=edges, **options), ids


@examples
@given(st.data(), bins())
def test_no_outcomes_of_anyone_move_bins_further_than_their_sensitivity_and_someones_as_far(data, made):
    (plan, ids), m = made, made[0].measurement
    y, others = (
        np.array(data.draw(st.lists(outcomes_of(m.lower, m.upper), min_size=len(ids), max_size=len(ids))))
        for _ in range(2)
    )
    check_neighbours(plan, y, np.where(ids == data.draw(st.sampled_from(ids.tolist())), others, y))
    low = np.full(len(ids), m.lower)
    far = max(check_neighbours(plan, low, np.where(ids == one, m.upper, low)) for one in set(ids.tolist()))
    assert m.sensitivity() == (far if m.noise == LAPLACE else math.isqrt(far - 1) + 1)


def any_neighbours(data, plan):
    """Outcomes of any kind, of which one is replaced by any other."""
    lows, highs = (np.broadcast_to(end, plan.measurement.n_rows) for end in plan.gp.bounds)
    y = np.array([data.draw(outcomes_of(low, high)) for low, high in zip(lows, highs, strict=True)])
    y_prime, row = y.copy(), data.draw(st.integers(0, len(y) - 1))
    y_prime[row] = data.draw(outcomes_of(lows[row], highs[row]))
    return y, y_prime


@examples
@given(st.data(), plans())
def test_no_outcome_moves_a_plan_further_than_its_sensitivity_and_the_worst_one_as_far(data, plan):
    """So a bug that made it smaller would break the promise, and tests would see it."""
    check_neighbours(plan, *any_neighbours(data, plan))
    check_tight(plan)


@examples
@given(st.data(), function_plans())
def test_no_outcome_moves_a_function_further_than_its_sensitivity(data, plan):
    """The same for releases of whole functions, whichever bound their noise is scaled to."""
    check_neighbours(plan, *any_neighbours(data, plan))
    check_neighbours(plan, *worst_neighbours(plan))
    if plan.certificate.bound == "exact":
        check_tight(plan)


WINDOWS = np.array([[0.0, 1.0], [3.0, 3.1], [-1.0, 1.0], [-1.0, 1.0], [5.0, 6.0], [5.0, 5.5], [100.0, 107.0]])
ROWS = np.array([0.0, 0.1, 0.4, 0.4, 0.9, 0.9, 1.0])[:, None]


def windowed(design="mse", windows=WINDOWS, **prior):
    """Rows of which two are equal in all, and two but for their window."""
    gp = GP(EQ(0.5), 0.3, tuple(windows.T), 0.0, **prior)
    return gp.plan(ROWS, X_star=[[0.2], [0.7]], design=design, epsilon=1.0, delta=0.01)


@examples
@given(st.data(), st.sampled_from(sorted(DESIGNS)), st.booleans())
def test_no_outcome_moves_a_plan_further_where_rows_have_bounds_of_their_own(data, design, sparse):
    low = np.array(data.draw(st.lists(st.floats(-1e3, 1e3), min_size=7, max_size=7)))
    width = np.array(data.draw(st.lists(st.floats(0.01, 1e3), min_size=7, max_size=7)))
    prior = {"inducing": [[0.1], [0.8]]} if sparse else {}
    plan = windowed(design, np.column_stack([low, low + width]), **prior)
    check_neighbours(plan, *any_neighbours(data, plan))
    check_tight(plan)


def test_rows_in_cells_are_clipped_to_their_cells_window(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 4)
    low = np.arange(7) * 3.0
    plan = windowed(windows=np.column_stack([low, low + 1]), inducing=[[0.1], [0.8]])
    m = plan.measurement
    assert len(m.groups.counts) <= 4
    low, high = (edges[m.labels] for edges in (m.lower, m.upper))
    with frozen_noise() as seen:
        for y in (high, high + 1e9, np.full(7, 1e300), low - 5):
            plan.release(y)
    assert seen.exact[:3] == [(m.column_sum * 2**m.y_bits).tolist()] * 3
    assert seen.exact[3] == [0] * m.n_measurements


@pytest.mark.parametrize("bound", FUNCTION_BOUNDS)
def test_every_bound_of_a_function_hides_its_worst_neighbours(bound):
    """None is left out by the luck of the draw above."""
    plan = small_function_plan(bound)
    assert plan.certificate.bound == bound
    assert check_neighbours(plan, *worst_neighbours(plan)) > 0


def a_row_that_moves_as_far_as_any(noise=0.3):
    """One row with k(x, x) = noise, on its own input: the bound without inputs is then exact."""
    gp = GP(EQ(1.0, variance=noise), noise, (0.0, 1.0))
    return gp.plan_function([[0.5]], epsilon=1.0, delta=0.01, bound="input-free", basis=[[0.5]])


@pytest.mark.parametrize("noise", [1e-3, 0.3, 0.7, 5.0, 1e4])
def test_the_bound_without_inputs_is_reached_and_not_passed(noise):
    """1 / (2 sqrt(noise)) is no more than needed, and rounding to integers does not break it."""
    check_tight(a_row_that_moves_as_far_as_any(noise))


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
    # When a float of y is coarser than the lattice, one float is more than one step.
    steps_in_a_float = math.ceil(np.spacing(max(abs(low), abs(high))) * 2**m.y_bits / (high - low)) + 1
    assert moved <= steps_in_a_float**2 * sum(b * b for b in columns(plan)[row])


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kind", [*KINDS, "windows"])
def test_each_row_moves_the_measurements_by_its_own_column(kind, design):
    """One row of a group moves its sum by its own integers, however many there are in the group."""
    plan = windowed(design) if kind == "windows" else small_merged_plan(**KINDS[kind], design=design)
    assert (plan.measurement.groups is not None) == ("merged" in kind or kind == "windows")
    assert plan.certificate.design == design
    n = plan.measurement.n_rows
    low, high = (np.broadcast_to(end, n) for end in plan.gp.bounds)
    moved = [check_neighbours(plan, low, np.where(np.arange(n) == row, high, low)) for row in range(n)]
    assert moved == [4**plan.measurement.y_bits * sum(b * b for b in column) for column in columns(plan)]
    check_tight(plan)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "merged" in kind])
def test_equal_rows_are_alike_to_the_measurement(kind):
    """Outcomes swapped between rows of a group leave the very same integers; others do not."""
    plan = small_merged_plan(**KINDS[kind])
    labels, y = plan.measurement.groups.labels, np.array([0.1, 0.25, 0.4, 0.6, 0.75, 0.9])
    for one, other in every(range(6), repeat=2):
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


# ------------------------------------------------------------------------------------------ people

IDS = ["a", "b", "a", "b", "a", "b", "d", "d"]
THEIR_X = np.array([0.0, 0.1, 0.4, 0.4, 0.9, 0.9, 1.0, 0.2])
PEOPLE = (*DESIGNS, "function", "inducing")


def of_people(kind="mse", within=1.0, X=THEIR_X):
    prior = {} if kind in (*DESIGNS, "function") else {"inducing": [[0.1], [0.6], [1.0]]}
    gp = GP(EQ(0.5, variance=25.0), 8.0, (0.0, 10.0), **prior)
    asked = {"people": IDS, "within": within, "epsilon": 1.0, "delta": 0.01}
    if kind == "function":
        return gp.plan_function(X, **asked)
    return gp.plan(X, X_star=[[0.2], [0.7]], design=kind if kind in DESIGNS else "mse", **asked)


def rows_of(person):
    return [row for row, one in enumerate(IDS) if one == person]


@examples
@given(st.data(), st.sampled_from(PEOPLE), st.sampled_from([0.0, 0.4, 1.0]))
def test_whatever_a_persons_outcomes_become_they_move_at_most_the_sensitivity(data, kind, within):
    y = np.array([data.draw(outcomes_of(0.0, 10.0)) for _ in IDS])
    y_prime = y.copy()
    for row in rows_of(data.draw(st.sampled_from(IDS))):
        y_prime[row] = data.draw(outcomes_of(0.0, 10.0))
    check_neighbours(of_people(kind, within), y, y_prime)


def most_of_all(plan):
    """How far somebody's outcomes move the measurements, squared, from end to end."""
    most = 0
    for person in sorted(set(IDS)):
        rows = rows_of(person)
        for ends in every((0.0, 10.0), repeat=len(rows)):
            y, y_prime = np.full(len(IDS), 5.0), np.full(len(IDS), 5.0)
            y[rows], y_prime[rows] = ends, [10.0 - end for end in ends]
            most = max(most, check_neighbours(plan, y, y_prime))
    return most


@pytest.mark.parametrize("kind", PEOPLE)
def test_some_extreme_outcomes_of_someone_attain_the_sensitivity(kind):
    """So it is exact: with any less noise the promise would be broken."""
    plan = of_people(kind)
    steps = plan.measurement.sensitivity()
    assert (steps - 1) ** 2 < most_of_all(plan) <= steps**2


# ---------------------------------------------------------------------------------- planted bugs


def _shares(change):
    """Integers of y that are made in another way."""

    def planted(statistic, y):
        right, usable = _right(statistic, y)
        with np.errstate(all="ignore"):
            return change(statistic, y, right[:, 0])[:, None], usable

    return planted


def _rounded(statistic, y):
    return np.rint((y - statistic.lower) / (statistic.upper - statistic.lower) * statistic.largest)


_right = room.integers_of
BUGS = {  # and a pair of neighbours that a correct mechanism treats alike
    "no clipping": (
        _shares(lambda s, y, right: _rounded(s, np.nan_to_num(y)).astype(np.int64)),
        ([0.5] * 6, [0.5] * 5 + [30.0]),
    ),
    "missing rows at the mean of the others": (
        _shares(lambda s, y, right: np.where(np.isfinite(y), right, int(right[np.isfinite(y)].mean()))),
        ([0.1, 0.2, 0.3, np.nan, 0.5, 0.6], [0.9, 0.2, 0.3, np.nan, 0.5, 0.6]),
    ),
    "clipped to the data": (
        _shares(lambda s, y, right: _rounded(s, (y - y.min()) / np.ptp(y)).astype(np.int64)),
        ([0.0, 0.2, 0.3, 0.4, 0.5, 0.0], [0.0, 0.2, 0.3, 0.4, 0.5, 1.0]),
    ),
    "a step too far": (
        _shares(lambda s, y, right: right + (y >= s.upper)),
        ([0.0, 0.2, 0.3, 0.4, 0.5, 0.0], [0.0, 0.2, 0.3, 0.4, 0.5, 1.0]),
    ),
}


@pytest.mark.parametrize("make", [small_plan, small_bins, lambda: small_bins("gaussian")])
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_in_preparing_y_are_caught(monkeypatch, bug, make):
    planted, pair = BUGS[bug]
    check_neighbours(make(), *map(np.array, pair))
    monkeypatch.setattr(room, "integers_of", planted)
    assert fails(check_neighbours, make(), *map(np.array, pair))


def test_planted_clipping_to_the_widest_window_is_caught(monkeypatch):
    plan = windowed()
    low, _ = plan.gp.bounds
    pair = low, np.where(np.arange(7) == 1, 1e4, low)
    check_neighbours(plan, *pair)
    widest = _shares(lambda s, y, right: _rounded(s, y.clip(np.min(s.lower), np.max(s.upper))).astype(int))
    monkeypatch.setattr(room, "integers_of", widest)
    assert fails(check_neighbours, plan, *pair, because="outside its public range")


def test_planted_sensitivity_one_percent_too_small_is_caught(monkeypatch):
    """Of a plan, of a function, and of the declared one where it is reached."""
    right = Measurement.sensitivity
    made = small_plan(), small_function_plan(), a_row_that_moves_as_far_as_any(), of_people("max")
    monkeypatch.setattr(Measurement, "sensitivity", lambda m: right(m) * 99 // 100)
    for plan in made[:3]:
        assert fails(check_neighbours, plan, *worst_neighbours(plan), because="further than the sensitivity")
    assert fails(most_of_all, made[3], because="further than the sensitivity")


def test_planted_bound_that_is_too_small_never_becomes_noise(monkeypatch):
    """A bound below what one row does move is refused, or the integers' own sensitivity is used."""
    monkeypatch.setattr("cloakgp.release.function_planner._bound", lambda *args: 1e-3)
    for bound in ("infinity", "paper", "input-free", "varah"):
        with pytest.raises(ValueError, match="margin"):
            small_function_plan(bound)
    monkeypatch.undo()
    monkeypatch.setattr(measurement, "full_scale_sensitivity", lambda *args: 1)
    plan = a_row_that_moves_as_far_as_any()
    check_neighbours(plan, *worst_neighbours(plan))


def _as_if(change):
    """The door's sums, of a plan whose rows share columns, made in another way."""
    right = room._sums
    return lambda parts, read, missing: change(right, parts, read, missing)


def _relabelled(relabel):
    def planted(right, parts, read, missing):
        (m,) = parts
        groups = measurement.Groups(relabel(m.groups.labels, np.asarray(read.source)), m.groups.counts)
        return right([measurement.replace(m, groups=groups)], read, missing)

    return planted


OF_GROUPS = {
    "a column of the mean for every row": lambda right, parts, *more: [
        sums * parts[0].groups.counts[:, None] for sums in right(parts, *more)
    ],
    "labels in another order": _relabelled(lambda labels, y: np.sort(labels)),
    "a row that counts in two groups": lambda right, *given: [
        sums + np.roll(sums, 1, axis=0) for sums in right(*given)
    ],
    "groups that depend on y": _relabelled(lambda labels, y: labels[np.argsort(y)]),
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "merged" in kind])
@pytest.mark.parametrize("bug", OF_GROUPS)
def test_planted_sums_over_other_rows_are_caught(monkeypatch, kind, bug):
    plan, y = small_merged_plan(**KINDS[kind]), np.linspace(0.1, 0.9, 6)
    pairs = [(y, np.where(np.arange(6) == row, 1.0, y)) for row in (0, 3)]
    for pair in (*pairs, worst_neighbours(plan)):
        check_neighbours(plan, *pair)
    monkeypatch.setattr(room, "_sums", _as_if(OF_GROUPS[bug]))
    assert any(fails(check_neighbours, plan, *pair) for pair in (*pairs, worst_neighbours(plan)))


def test_planted_smaller_noise_is_caught(monkeypatch):
    """Noise that is drawn with another scale than the one that was checked does not hide the worst pair."""
    right = room.measure

    def measured(*given, **more):
        with pytest.MonkeyPatch.context() as patch:
            for name in ("add_noise", "add_laplace"):
                add = getattr(room, name)
                patch.setattr(room, name, lambda exact, sigma, add=add: add(exact, sigma * 99 // 100))
            return right(*given, **more)

    monkeypatch.setattr(room, "measure", measured)
    assert fails(check_tight, small_plan())
    for mechanism in BIN_NOISE:
        pair = np.zeros(6), np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
        assert fails(check_neighbours, small_bins(mechanism), *pair, because="does not hide")


@pytest.mark.parametrize("mechanism", BIN_NOISE)
def test_planted_sums_over_bins_are_caught(monkeypatch, mechanism):
    """A row on an edge counted twice; ``exact[labels] += y``, with which the last row of a bin wins."""
    plan, right = small_bins(mechanism), room._sums

    def twice(parts, read, missing):
        sums = right(parts, read, missing)  # (3, 1)
        return [own + 2**9 * np.array([[1], [0], [0]]) for own in sums]

    def last(parts, read, missing):
        found, y = np.zeros((3, 1), dtype=np.int64), np.asarray(read.source, dtype=float)
        found[parts[0].labels] = room.integers_of(parts[0].statistic, y)[0]
        return [found]

    for bug in (twice, last):
        with monkeypatch.context() as patch:
            patch.setattr(room, "_sums", bug)
            assert fails(check_neighbours, plan, np.full(6, 0.5), np.full(6, 0.5), because="not exact")


@pytest.mark.parametrize("mechanism", BIN_NOISE)
def test_planted_sensitivity_of_one_row_is_caught(monkeypatch, mechanism):
    """Of a person with two rows in one bin and one in another."""
    ids = np.array([7, 7, 7, 1, 2, 3])
    pair, exact = (np.zeros(6), np.where(ids == 7, 1.0, 0.0)), sensitivity.largest_power_sum
    m = small_bins(mechanism, people=ids).measurement
    assert m.sensitivity() == math.ceil((3 if m.noise == LAPLACE else math.sqrt(5)) * 2**m.y_bits)
    check_neighbours(small_bins(mechanism, people=ids), *pair)
    monkeypatch.setattr(
        sensitivity, "largest_power_sum", lambda m, labels, people, power: exact(m, labels, None, power)
    )
    assert fails(check_neighbours, small_bins(mechanism, people=ids), *pair)
