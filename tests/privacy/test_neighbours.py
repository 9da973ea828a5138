"""Whatever one unit's outcomes become, they move a plan's measurements no further than its noise hides.

That every measurement keeps this is in ``tests/contracts/test_measurement_contract.py``, with the bugs that
it finds. Here, plans of every kind are made as users ask for them, and released with the noise frozen, so
that the integers that it would hide can be compared.
"""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.cluster  # noqa: F401  (loading it draws random numbers, which strategies must not)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from privacy_helpers import (
    BIN_NOISE,
    check_neighbours,
    fails,
    frozen_noise,
    outcomes_of,
    small_bins,
    small_function_plan,
    small_plan,
    worst_neighbours,
    worst_row,
)

from cloakgp import GP, binning
from cloakgp.data import cells
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ, Constant, Linear, Matern32
from cloakgp.measure import measurement
from cloakgp.measure.measurement import LAPLACE, Measurement
from cloakgp.model.inducing import APPROXIMATIONS
from cloakgp.private import room
from cloakgp.release.planner import BOUNDS as FUNCTION_BOUNDS

positive = st.floats(0.05, 20.0)
KINDS = [*(f"predictions, {design}" for design in DESIGNS), *(f"function, {one}" for one in FUNCTION_BOUNDS)]
KINDS += ["windows", "bins", "each row by itself"]


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
    """Spread, clustered, repeated, on edges of bins, or with an outlier; one or two columns."""
    rows, columns = draw(st.integers(1, 14)), draw(st.sampled_from([1, 2]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = random.uniform(-1, 1, (rows, columns))
    kind = draw(st.sampled_from(["spread", "cluster", "duplicates", "edges", "outlier"]))
    if kind == "cluster":
        X *= 1e-5
    elif kind == "duplicates":
        X = X[random.integers(0, max(1, rows // 3), rows)]
    elif kind == "edges":
        X = np.round(2 * X) / 2
    elif kind == "outlier":
        X[0] = 1e3
    return X, random.uniform(-1.2, 1.2, (draw(st.integers(1, 6)), columns))


@st.composite
def bounds(draw):
    low, width = draw(st.floats(-1e6, 1e6)), draw(st.floats(1e-3, 1e6))
    assume(low + width > low)
    return low, low + width


@st.composite
def plans(draw, kind):
    """A plan, and whose rows they are: each one's own, or people's."""
    (X, X_star), ends, noise = draw(inputs()), draw(bounds()), draw(st.sampled_from([1e-3, 0.1, 3.0]))
    of, _, what = kind.partition(", ")
    n, promise = len(X), {"epsilon": draw(st.sampled_from([0.1, 1.0, 8.0]))}
    people = draw(st.none() | st.lists(st.integers(0, 3), min_size=n, max_size=n))
    ids = np.arange(n) if people is None else np.array(people)
    if of in ("bins", "each row by itself"):
        asked = {
            **promise,
            "people": people,
            "bounds": ends,
            **draw(st.sampled_from(list(BIN_NOISE.values()))),
        }
        if of == "bins":
            edges = draw(st.sampled_from([1, 3, [np.array([-1e4, -0.5, 0.0, 0.5, 1e4])] * X.shape[1]]))
            return binning.plan(X, X_star=X_star, edges=edges, **asked), ids
        return binning.local(X, X_star=X_star, kernel=EQ(1.0), noise=1.0, **asked), ids
    promise["delta"] = draw(st.sampled_from([1e-8, 0.01]))
    if draw(st.booleans()):  # with two levels, equal rows may share their noise or not
        levels = draw(st.sampled_from([2, n]))
        noise = np.linspace(noise, 2 * noise, levels)[np.arange(n) % levels]
    if of == "function":
        return draw(functions(what, X, X_star, ends, noise, promise)), np.arange(n)
    if of == "windows":
        low = np.array(draw(st.lists(st.floats(-1e3, 1e3), min_size=n, max_size=n)))
        ends = low, low + draw(st.lists(st.floats(0.01, 1e3), min_size=n, max_size=n))
    prior = {}
    if draw(st.booleans()):
        prior = {"approximation": draw(st.sampled_from(APPROXIMATIONS))}
        prior["inducing"] = draw(st.one_of(st.integers(1, n), st.sampled_from([X, X_star, X_star[:1]])))
    design = what or draw(st.sampled_from(list(DESIGNS)))
    if people is not None:
        promise |= {"people": people, "within": draw(st.sampled_from([0.0, 0.4, 1.0]))}
    mean = {"mean": 0.0} if of == "windows" else {}
    try:
        gp = GP(draw(kernels()), noise, ends, **prior, **mean)
        return gp.plan(X, X_star=X_star, design=design, gap=0.2, **promise), ids
    except ValueError as refused:  # X_star out of the data's reach, or a kernel of another scale than bounds
        if "nothing to release" not in str(refused) and "lost in rounding" not in str(refused):
            raise
        assume(False)


@st.composite
def functions(draw, bound, X, X_star, ends, noise, promise):
    """Of one bound; the kernel's lengthscale is short where rows must be far apart."""
    stationary = draw(st.sampled_from([EQ, Matern32]))(draw(positive), variance=draw(positive))
    gp = GP(draw(kernels()) if bound in ("exact", "input-free") else stationary, noise, ends)
    if bound == "varah":
        covariance = gp.kernel(X) + np.diag(np.broadcast_to(noise, len(X)))
        margin = float((2 * np.diag(covariance) - np.abs(covariance).sum(axis=1)).min())
        assume(margin > 1e-6)
        promise = {**promise, "margin": margin * draw(st.sampled_from([0.999, 0.1]))}
    if bound in ("input-free", "varah") or draw(st.booleans()):
        promise = {**promise, "basis": X_star}
    try:
        return gp.plan_function(X, bound=bound, **promise)
    except ValueError as refused:
        if "too close together" not in str(refused) and "no influence" not in str(refused):
            raise
        assume(False)


def ends_of(plan):
    """The bounds of each row."""
    m = plan.measurement
    return (
        np.broadcast_to(end, m.n_rows) if np.ndim(end) == 0 else end[m.labels] for end in (m.lower, m.upper)
    )


def check_tight(plan, ids):
    """The declared sensitivity is reached: somebody's outcomes, from one bound to the other."""
    low, high = ends_of(plan)
    m = plan.measurement
    whose = set(ids.tolist()) if m.people is not None else [worst_row(plan)]
    moved = max(check_neighbours(plan, low, np.where(ids == one, high, low)) for one in whose)
    reached = moved**2 if m.noise == LAPLACE else moved
    assert reached * 10**4 >= (m.sensitivity() * 99) ** 2, "the noise is larger than needed"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_outcomes_of_anyone_move_a_plan_further_than_its_sensitivity_and_someones_as_far(kind, data):
    """So a bug that made it smaller would break the promise, and tests would see it.

    Of people's rows in anything but bins, whose signs differ, the contract of measurements shows the latter.
    """
    plan, ids = data.draw(plans(kind))
    draw = lambda: np.array([data.draw(outcomes_of(*ends)) for ends in zip(*ends_of(plan), strict=True)])  # noqa: E731
    y, mine = draw(), ids == data.draw(st.sampled_from(ids.tolist()))
    check_neighbours(plan, y, np.where(mine, draw(), y))
    declared = getattr(plan.certificate, "bound", None) not in (None, "exact")
    if not declared and (plan.measurement.people is None or kind in ("bins", "each row by itself")):
        check_tight(plan, ids)
    elif declared:
        check_neighbours(plan, *worst_neighbours(plan))


def test_rows_in_cells_are_clipped_to_their_cells_window(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 4)
    low = np.arange(7) * 3.0
    gp = GP(EQ(0.5), 0.3, (low, low + 1), 0.0, inducing=[[0.1], [0.8]])
    X = np.array([0.0, 0.1, 0.4, 0.4, 0.9, 0.9, 1.0])
    plan = gp.plan(X, X_star=[0.2, 0.7], epsilon=1.0, delta=0.01)
    m, (low, high) = plan.measurement, ends_of(plan)
    assert len(m.groups.counts) <= 4
    with frozen_noise() as seen:
        for y in (high, high + 1e9, np.full(7, 1e300), low - 5):
            plan.release(y)
    assert seen.exact[:3] == [(m.column_sum * 2**m.y_bits).tolist()] * 3
    assert seen.exact[3] == [0] * m.n_measurements


def a_row_that_moves_as_far_as_any(noise=0.3):
    """One row with k(x, x) = noise, on its own input: the bound without inputs is then exact."""
    gp = GP(EQ(1.0, variance=noise), noise, (0.0, 1.0))
    return gp.plan_function([[0.5]], epsilon=1.0, delta=0.01, bound="input-free", basis=[[0.5]])


@pytest.mark.parametrize("noise", [1e-3, 0.3, 0.7, 5.0, 1e4])
def test_the_bound_without_inputs_is_reached_and_not_passed(noise):
    """1 / (2 sqrt(noise)) is no more than needed, and rounding to integers does not break it."""
    check_tight(a_row_that_moves_as_far_as_any(noise), np.arange(1))


# ---------------------------------------------------------------------------------- planted bugs


def test_planted_sensitivity_one_percent_too_small_is_caught(monkeypatch):
    """Of a plan, of a function, of the declared one where it is reached, and of bins."""
    right, made = (
        Measurement.sensitivity,
        (small_plan(), small_function_plan(), a_row_that_moves_as_far_as_any()),
    )
    far = [(plan, worst_neighbours(plan)) for plan in made]
    far += [(small_bins(law), (np.zeros(6), np.eye(6)[3])) for law in BIN_NOISE]
    for plan, pair in far:
        check_neighbours(plan, *pair)
    monkeypatch.setattr(Measurement, "sensitivity", lambda m: right(m) * 99 // 100)
    for plan, pair in far:
        assert fails(check_neighbours, plan, *pair, because="further than the sensitivity")


def test_planted_bound_that_is_too_small_never_becomes_noise(monkeypatch):
    """A bound below what one row does move is refused, or the integers' own sensitivity is used."""
    monkeypatch.setattr("cloakgp.release.planner._bound", lambda *args: 1e-3)
    for bound in ("infinity", "paper", "input-free", "varah"):
        with pytest.raises(ValueError, match="margin"):
            small_function_plan(bound)
    monkeypatch.undo()
    monkeypatch.setattr(measurement, "full_scale_sensitivity", lambda *args: 1)
    plan = a_row_that_moves_as_far_as_any()
    check_neighbours(plan, *worst_neighbours(plan))


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
    assert fails(check_tight, small_plan(), np.arange(6))
    for mechanism in BIN_NOISE:
        assert fails(
            check_neighbours, small_bins(mechanism), np.zeros(6), np.eye(6)[3], because="does not hide"
        )
