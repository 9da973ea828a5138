"""Plans for more rows than fit into memory: what the written-out plan says, the same bits, little memory."""

from __future__ import annotations

import math
import os
import tracemalloc
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloakgp import GP, Plan, Release, designs, verify
from cloakgp.kernels import EQ, Matern32
from cloakgp.measurements import kept_columns
from cloakgp.measurements.lattice import Measurement
from cloakgp.measurements.recipes import MARGIN, FactoredMeasurement
from cloakgp.model.inducing import APPROXIMATIONS, Features, SparseGP, SparseRows, information
from cloakgp.plans import out_of_core, screening
from cloakgp.rows import chunks
from cloakgp.rows.merging import Inputs

RNG = np.random.default_rng(12)
N = 400
X = RNG.uniform(0, 10, size=(N, 2))
REPEATED = X[RNG.integers(0, 60, size=N)]
X_STAR = RNG.uniform(0, 10, size=(5, 2))
NEW = RNG.uniform(-1, 11, size=(6, 2))
Z = RNG.uniform(0, 10, size=(8, 2))
BOUNDS = (-1.0, 4.0)
Y = RNG.normal(1.5, 2.0, size=N)
PROMISE = {"epsilon": 1.0, "delta": 0.01}
GAP = 0.01
INPUTS = {"distinct rows": X, "repeated rows": REPEATED}
NOISE = {"one noise": 0.4, "noise per row": np.resize([0.2, 0.5, 1.5], N)}

every_approximation = pytest.mark.parametrize("approximation", APPROXIMATIONS)
every_input = pytest.mark.parametrize("data", INPUTS.values(), ids=INPUTS)
every_noise = pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
every_design = pytest.mark.parametrize("design", [name for name in designs.DESIGNS if name != "posterior"])


def model(approximation="dtc", noise: Any = 0.4, mean=0.7, kernel=None) -> GP:
    return GP(kernel or EQ(2.0, variance=1.5), noise, BOUNDS, mean, Z, approximation)


@pytest.fixture
def plan_in_passes(monkeypatch):
    """A plan whose measurement is a recipe, however few the rows."""

    def make(gp: GP, X: Any, X_star: Any = X_STAR, **options: Any) -> Plan:
        with monkeypatch.context() as patch:
            patch.setattr(out_of_core, "DENSE", 1)
            plan = gp.plan(X, X_star=X_star, **{**PROMISE, **options})
        assert isinstance(plan.measurement, FactoredMeasurement)
        return plan

    return make


@pytest.fixture
def without_noise(monkeypatch):
    """The release that no noise would give, through the private room itself."""

    def release(plan: Plan, y: Any) -> Release:
        with monkeypatch.context() as patch:
            patch.setattr("cloakgp.private.room.add_noise", lambda exact, sigma: exact)
            return plan.release(y)

    return release


def written_out(plan: Plan) -> Any:
    """(q, N) the recipe's integer columns, one for each row of y."""
    m = plan.measurement
    columns = m.recipe.columns(np.asarray(m.inputs.X), m.inputs.noise)
    return columns if m.groups is None else columns[:, m.groups.labels]


def as_matrix(release: Release) -> Any:
    """The same release, with its measurement as a matrix, for the textbook's formula."""
    m = release.plan.measurement
    names = ("matrix_bits", "y_bits", "upper", "lower", "sigma")
    shown = SimpleNamespace(
        matrix=written_out(release.plan), groups=None, **{name: getattr(m, name) for name in names}
    )
    return SimpleNamespace(z=release.z, plan=SimpleNamespace(measurement=shown))


# The same as when it is written out


@every_input
@every_noise
@every_approximation
def test_a_plan_in_passes_is_the_one_that_is_written_out(plan_in_passes, approximation, noise, data):
    gp = model(approximation, noise)
    dense, passed = gp.plan(data, X_star=X_STAR, gap=GAP, **PROMISE), plan_in_passes(gp, data, gap=GAP)
    assert isinstance(dense.measurement, Measurement)
    one, other = dense.certificate, passed.certificate
    assert max(one.gap, other.gap) <= GAP * 1.01
    assert one.status == other.status == "converged"
    for a, b in ((one, other), (other, one)):
        assert a.lower_bound <= b.objective * (1 + 1e-6)
        assert a.objective <= b.lower_bound * (1 + GAP) ** 2 * (1 + 1e-6)
    assert np.mean(passed.noise_std**2) == pytest.approx(np.mean(dense.noise_std**2), rel=1.1 * GAP)
    # Where the noise goes is settled only as far as the gap allows.
    np.testing.assert_allclose(passed.noise_std, dense.noise_std, rtol=5 * math.sqrt(GAP))
    np.testing.assert_allclose(passed.offset, dense.offset, atol=one.bias + other.bias)
    np.testing.assert_allclose(passed.gp_std, dense.gp_std, rtol=1e-9)
    assert one.mu == pytest.approx(other.mu, rel=1e-12)
    for name in ("epsilon", "delta", "unit", "neighbours", "n_rows", "design", "bound", "unbiased", "jitter"):
        assert getattr(one, name) == getattr(other, name), name
    assert (passed.measurement.groups is None) == (dense.measurement.groups is None)


@every_design
@every_approximation
def test_every_design_is_the_one_that_is_written_out(plan_in_passes, approximation, design):
    gp = model(approximation)
    weights = np.array([1.0, 2.0, 0.5, 1.0, 3.0])
    dense = gp.plan(X, X_star=X_STAR, design=design, weights=weights, **PROMISE).certificate
    passed = plan_in_passes(gp, X, design=design, weights=weights).certificate
    assert max(dense.gap, passed.gap) <= 0.0101
    assert dense.lower_bound <= passed.objective * (1 + 1e-6)
    assert passed.lower_bound <= dense.objective * (1 + 1e-6)
    assert passed.objective == pytest.approx(dense.objective, rel=0.0101)


@every_noise
@every_approximation
def test_posterior_in_passes_beats_mse_and_is_bounded_by_any_matrix(
    plan_in_passes, tmp_path, approximation, noise
):
    """A recipe is one of the matrices that the written-out design chooses from."""
    gp = model(approximation, noise)
    passed = plan_in_passes(gp, REPEATED, design="posterior")
    any_matrix = gp.plan(REPEATED, X_star=X_STAR, design="posterior", **PROMISE).certificate
    c = passed.certificate
    assert c.status == "converged"
    assert c.gap <= GAP * 1.01
    assert not c.unbiased
    assert c.objective >= any_matrix.lower_bound * (1 - 1e-6)
    mse = np.mean(plan_in_passes(gp, REPEATED).expected_error ** 2 - passed.gp_std**2)
    assert c.objective < mse
    assert c.objective == pytest.approx(np.mean(passed.expected_error**2 - passed.gp_std**2), rel=1e-5)
    release = passed.release(Y)
    np.testing.assert_allclose(release.mean, release.predict(X_STAR), rtol=1e-9)
    release.save(tmp_path / "posterior")
    assert verify(tmp_path / "posterior").complete


def test_recipes_are_for_many_rows_alone(monkeypatch):
    gp, rows = model(), len(X)
    for most, kind in ((rows * 5, Measurement), (rows * 5 - 1, FactoredMeasurement)):  # 5 points, 8 places
        monkeypatch.setattr(out_of_core, "DENSE", most)
        assert isinstance(gp.plan(X, X_star=X_STAR, **PROMISE).measurement, kind)
    for most, kind in ((rows * 8, Measurement), (rows * 8 - 1, FactoredMeasurement)):  # 20 points, 8 places
        monkeypatch.setattr(out_of_core, "DENSE", most)
        assert isinstance(gp.plan(X, X_star=X[:20], **PROMISE).measurement, kind)
    monkeypatch.setattr(out_of_core, "DENSE", 60 * 5)  # rows that are equal are one
    assert isinstance(gp.plan(REPEATED, X_star=X_STAR, **PROMISE).measurement, Measurement)
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    exact = GP(EQ(2.0), 0.4, BOUNDS).plan(X[:30], X_star=X_STAR, **PROMISE)
    assert isinstance(exact.measurement, Measurement)


@every_input
@every_noise
@every_approximation
def test_releases_are_the_textbooks(by_the_book, plan_in_passes, without_noise, approximation, noise, data):
    gp = model(approximation, noise)
    plan = plan_in_passes(gp, data)
    at_star, at_new = by_the_book(gp, data, X_STAR), by_the_book(gp, data, NEW)
    np.testing.assert_allclose(plan.gp_std, np.sqrt(at_star.variance), rtol=1e-8)
    exact = without_noise(plan, Y).mean
    assert np.abs(exact - at_star.mean(np.clip(Y, *BOUNDS))).max() <= plan.certificate.bias
    dense = gp.plan(data, X_star=X_STAR, **PROMISE)
    away = np.abs(exact - without_noise(dense, Y).mean).max()
    assert away <= plan.certificate.bias + dense.certificate.bias
    assert away < 1e-4
    release = plan.release(Y)
    mean, cov = at_new.denoised([as_matrix(release)])
    got, std = release.predict(NEW, return_std=True)
    np.testing.assert_allclose(got, mean, atol=1e-6)
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-6)
    _, full = release.predict(NEW, return_cov=True)
    np.testing.assert_allclose(full, cov, atol=1e-6)
    parts = release.uncertainty(NEW, include_noise=0.3)
    np.testing.assert_allclose(parts.gp, np.sqrt(at_new.variance), rtol=1e-6)
    np.testing.assert_allclose(parts.total**2, np.diag(cov) + 0.3, rtol=1e-6)
    other = dense.release(Y).predict(NEW, return_std=True)[1]
    np.testing.assert_allclose(std, other, rtol=0.05)


@every_input
@every_approximation
@pytest.mark.parametrize("mean", [1.5, -1.0, 4000.0], ids=["middle", "at an end", "far outside"])
def test_no_outcomes_get_past_the_certified_bias(
    by_the_book, plan_in_passes, without_noise, mean, approximation, data
):
    """Outcomes chosen against each prediction: at one end of the bounds where the error has one sign."""
    gp = model(approximation, NOISE["noise per row"], mean)
    plan, book = plan_in_passes(gp, data), by_the_book(gp, data, X_STAR)
    error = plan.reconstruction @ (written_out(plan) * 2.0**-plan.measurement.matrix_bits) - book.C
    largest = 0.0
    for row in error:
        for y in (np.where(row > 0, *BOUNDS[::-1]), np.where(row > 0, *BOUNDS)):
            largest = max(largest, np.abs(without_noise(plan, y).mean - book.mean(y)).max())
    assert largest <= plan.certificate.bias + 1e-13 * abs(mean)
    assert largest > plan.certificate.bias / 100  # the bound is no empty word


@every_approximation
def test_the_certificate_says_what_the_measurement_is(plan_in_passes, approximation):
    plan = plan_in_passes(model(approximation), X)
    c, m = plan.certificate, plan.measurement
    assert c.sensitivity == pytest.approx(c.mu * c.noise_scale)
    assert c.sensitivity_steps == m.declared == m.sensitivity()
    assert (c.n_rows, c.n_measurements, c.sigma) == (N, len(m.recipe.factors), m.sigma)
    assert c.gap == pytest.approx(c.objective / c.lower_bound - 1, abs=1e-9)
    assert c.objective == pytest.approx(np.mean(plan.noise_std**2), rel=5e-6)  # six digits
    assert c.iterations > 0
    m.check()
    assert plan.cost.mu == c.mu


def test_a_promise_that_the_lattice_cannot_keep_is_refused(monkeypatch, plan_in_passes):
    with monkeypatch.context() as coarse:
        coarse.setattr(out_of_core, "_Y_BITS", 8)
        coarse.setattr(out_of_core, "_MATRIX_BITS", 20)
        with pytest.raises(ValueError, match="leave too few bits for exact noise; use a smaller epsilon"):
            plan_in_passes(model(), X, epsilon=9.0)
    monkeypatch.setattr(out_of_core, "_MATRIX_BITS", 7)
    with pytest.raises(ValueError, match="leave too few bits for exact noise; use a larger epsilon or delta"):
        plan_in_passes(model(), X, epsilon=1e-9)


def test_a_row_with_hardly_any_noise_does_not_make_the_lattice_coarse(plan_in_passes):
    """The bound on sums is far too large then; a second look finds the bits that there is room for."""
    noise = np.full(N, 1.0)
    noise[7] = 1e-8
    plan = plan_in_passes(model(noise=noise), X)
    assert plan.certificate.matrix_bits + plan.certificate.y_bits >= 44
    noise[7] = 1e-13  # its column is what is left when large terms cancel
    with pytest.raises(ValueError, match="mostly rounding"):
        plan_in_passes(model(noise=noise), X)


def test_a_pass_over_too_many_bits_never_wraps(plan_in_passes):
    """Outcomes at the upper end everywhere, the least epsilon that fits: far below 2^62, noise included."""
    plan = plan_in_passes(model(noise=NOISE["noise per row"]), X, epsilon=1e-9, delta=1e-9)
    m = plan.measurement
    assert m.largest_sum() + 64 * m.sigma < 2**62
    assert max(abs(int(v)) for v in m.column_sum) << m.y_bits <= m.largest_sum()


# Whatever the threads


def everything(plan: Plan, release: Release) -> dict[str, Any]:
    m = plan.measurement
    arrays = {
        "factors": m.recipe.factors,
        "features": m.recipe.features.W,
        "information": m.information,
        "sums": m.sums,
        "reconstruction": plan.reconstruction,
        "offset": plan.offset,
        "std": plan.gp_std,
        "z": release.z,
    }
    words = [m.declared, m.extent, m.digest, m.recipe.factor_bits, plan.digest, asdict(plan.certificate)]
    return {name: array.tobytes() for name, array in arrays.items()} | {"words": words}


@pytest.mark.parametrize("design", ["mse", "posterior"])
@every_input
@every_approximation
def test_the_bits_are_the_same_whatever_the_threads_and_wherever_x_is(
    monkeypatch, tmp_path, seeded, plan_in_passes, approximation, data, design
):
    """The pilot lacks most rows here, so that every pass has its say."""
    monkeypatch.setattr(chunks, "CHUNK", 32)
    monkeypatch.setattr(chunks, "STEP", 8)
    spread = Inputs.spread_evenly
    monkeypatch.setattr(Inputs, "spread_evenly", lambda inputs, n: spread(inputs, 40))
    monkeypatch.setattr(out_of_core, "_LONG", 8)
    np.save(tmp_path / "X.npy", data)
    np.save(tmp_path / "T.npy", np.asfortranarray(data))
    np.save(tmp_path / "y.npy", Y)
    noise = NOISE["noise per row"]
    wanted = None
    for n, name in ((1, "array"), (5, "array"), (2, "X.npy"), (5, "T.npy")):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=n: range(n), raising=False)
        x = data if name == "array" else np.load(tmp_path / name, mmap_mode="r")
        y = Y if name == "array" else np.load(tmp_path / "y.npy", mmap_mode="r")
        plan = plan_in_passes(model(approximation, noise), x, design=design)
        with seeded(3):
            got = everything(plan, plan.release(y))
        wanted = wanted or got
        for part, value in got.items():
            assert value == wanted[part], (n, name, part)


def test_the_same_sums_are_made_whatever_the_chunks(monkeypatch, plan_in_passes, without_noise):
    """Columns are whole numbers, so that their sums do not depend on who adds them up."""
    plan = plan_in_passes(model("fitc"), X)
    wanted = without_noise(plan, Y).z
    y_int = np.rint((np.clip(Y, *BOUNDS) + 1) / 5 * 2**plan.measurement.y_bits).astype(int).tolist()
    by_hand = [sum(b * v for b, v in zip(row, y_int, strict=True)) for row in written_out(plan).tolist()]
    assert wanted.tolist() == by_hand
    monkeypatch.setattr(chunks, "STEP", 7)
    got = without_noise(plan, Y).z
    assert np.abs(got - wanted).max() <= 2**plan.measurement.y_bits * N / 100  # hardly an entry differs


# Little memory


def test_nothing_as_large_as_rows_times_points_is_ever_held(monkeypatch):
    monkeypatch.setattr(kept_columns, "ENTRIES", 0)
    monkeypatch.setattr(out_of_core, "_PILOT", 2**19)
    monkeypatch.setattr(out_of_core, "_WHOLE", 2**19)
    monkeypatch.setattr(out_of_core, "_LONG", 2**10)
    rows, points = 300_000, 100
    rng = np.random.default_rng(0)
    data, y = rng.uniform(0, 10, size=(rows, 2)), rng.uniform(0, 1, size=rows)
    gp = GP(EQ(3.0), 0.5, (0.0, 1.0), 0.5, rng.uniform(0, 10, size=(60, 2)))
    tracemalloc.start()
    try:
        plan = gp.plan(data, X_star=rng.uniform(0, 10, size=(points, 2)), gap=0.1, **PROMISE)
        planned = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        release = plan.release(y)
        released = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(plan.measurement, FactoredMeasurement)
    assert np.isfinite(release.mean).all()
    whole = 8 * rows * points
    assert planned < whole / 4
    assert released < whole / 4


# A design for some rows is not one for all


def crowd_and_outlier(rows=20_000, where=1.5):
    """One row stands alone, with a place and a test point at it."""
    data = np.random.default_rng(1).uniform(0, 1, size=(rows, 1))
    data[12_345] = where
    places, points = (np.append(np.linspace(0, 1, n), where)[:, None] for n in (6, 5))
    return data, places, points


def lengths(plan: Plan) -> list[int]:
    """Every column's sum of squares, in Python's integers."""
    m = plan.measurement
    found = []
    for rows in chunks.steps(len(m.inputs)):
        columns = m.recipe.columns(m.inputs.X[rows], m.inputs.noise).T.tolist()
        found += [sum(entry**2 for entry in column) for column in columns]
    return found


def check_sensitivity(plan: Plan) -> None:
    """It covers every row's column, with the margin for other processors and no more."""
    m = plan.measurement
    longest = max(lengths(plan))
    assert m.declared**2 >= longest * 4**m.y_bits
    most = (math.isqrt(longest) + 1 + MARGIN * math.sqrt(m.n_measurements)) * 2**m.y_bits
    assert m.declared <= most + 1


@every_approximation
def test_a_design_for_a_random_subset_understates_the_sensitivity_many_fold(approximation):
    """And would be no promise at all to the row that it lacks."""
    data, places, points = crowd_and_outlier()
    features = Features(EQ(0.3), places)
    summed = information(features, approximation, Inputs(data, 0.5, None))
    gp = SparseGP(features, approximation, summed, points)
    some = np.random.default_rng(2).choice(len(data), 2000, replace=False)
    assert 12_345 not in some
    chosen = SparseRows(gp, Inputs(data[some], 0.5, None))
    solution = designs.solve("mse", chosen, np.ones(len(points)), 0.01)
    assert solution.reduce is not None
    longest = [
        np.linalg.norm(solution.reduce @ rows.columns(slice(None)), axis=0).max()
        for rows in (chosen, SparseRows(gp, Inputs(data, 0.5, None)))
    ]
    assert longest[0] <= 1 + 1e-9
    assert longest[1] > 18 * longest[0]


@pytest.mark.parametrize("rounds", [1, 5])
@every_approximation
def test_the_last_pass_counts_every_row_also_what_the_pilot_lacks(
    monkeypatch, plan_in_passes, approximation, rounds
):
    """The pilot lacks the outlier here; the pass over all rows finds it."""
    monkeypatch.setattr(out_of_core, "_WHOLE", 1)
    monkeypatch.setattr(out_of_core, "_PILOT", 1)  # 4,096 rows
    monkeypatch.setattr(out_of_core, "_LONG", 0)
    monkeypatch.setattr(out_of_core, "_ROUNDS", rounds)
    data, places, points = crowd_and_outlier()
    gp = GP(EQ(0.3), 0.5, (0.0, 1.0), 0.5, places, approximation)
    assert gp.planner(data, X_star=points).survey.pilot.n_rows <= 4096 + len(places)
    plan = plan_in_passes(gp, data, points)
    check_sensitivity(plan)
    worst = np.sqrt(np.array(lengths(plan), dtype=float))
    if rounds == 1:
        assert worst.argmax() == 12_345
        assert worst[12_345] > 18 * np.delete(worst, 12_345).max()
        assert plan.certificate.status == "stopped before the gap was reached"
        assert plan.certificate.gap > 0.5
    else:  # it has joined the pilot, and the noise was designed anew
        assert plan.certificate.status == "converged"
        assert plan.certificate.gap <= 0.01


@every_approximation
def test_no_direction_is_lost_that_only_a_row_outside_of_the_pilot_has(
    monkeypatch, plan_in_passes, approximation
):
    """A row that no other is like, with a place and a test point of its own."""
    monkeypatch.setattr(out_of_core, "_PILOT", 1)
    monkeypatch.setattr(out_of_core, "_WHOLE", 1)
    monkeypatch.setattr(out_of_core, "_LONG", 0)
    data, places, points = crowd_and_outlier()
    data[12_345] = 50.0
    far = np.full((1, data.shape[1]), 50.0)
    gp = GP(EQ(0.3), 0.5, (0.0, 1.0), 0.5, np.vstack([places, far]), approximation)
    plan = plan_in_passes(gp, data, np.vstack([points, far]))
    assert plan.certificate.bias < 0.01
    assert plan.certificate.gap <= 0.01
    check_sensitivity(plan)


@pytest.mark.parametrize("directions", [64, 2], ids=["all", "some directions"])
@pytest.mark.parametrize("alike", [False, True], ids=["like no other", "beside others"])
@every_approximation
def test_rows_with_long_columns_are_in_the_pilot(
    monkeypatch, plan_in_passes, approximation, alike, directions
):
    """Also one with a place and a test point of its own, of which a sample of the rows knows nothing."""
    monkeypatch.setattr(screening, "EXACT", 1)
    monkeypatch.setattr(screening, "LEAST", directions)
    monkeypatch.setattr(out_of_core, "_PILOT", 1)
    monkeypatch.setattr(out_of_core, "_WHOLE", 1)
    monkeypatch.setattr(out_of_core, "_ROUNDS", 1)
    monkeypatch.setattr(out_of_core, "_LONG", 64)
    data, places, points = crowd_and_outlier()
    if not alike:
        data[12_345] = 50.0
        places, points = (np.vstack([some, np.full((1, data.shape[1]), 50.0)]) for some in (places, points))
    gp = GP(EQ(0.3), 0.5, (0.0, 1.0), 0.5, places, approximation)
    assert gp.planner(data, X_star=points).survey.pilot.n_rows <= 4096 + 2 * 64 + len(places)
    plan = plan_in_passes(gp, data, points)
    assert plan.certificate.gap <= 0.01
    assert plan.certificate.bias < 0.01
    check_sensitivity(plan)


def test_rows_are_drawn_by_how_nearly_they_are_the_longest():
    squares = np.random.default_rng(3).uniform(size=8000)
    draw = screening._draw(squares, 0.1)
    drawn = draw.of(squares)
    assert drawn.sum() == pytest.approx(1600, abs=1)
    assert drawn[squares >= draw.bar].all()
    # (u / b)^4 has the sum b / 5 up to b = 0.9, and a tenth is drawn: 5 / 9 of those at b.
    near, middle = (abs(squares - at) < 0.05 for at in (0.85, 0.6))
    assert drawn[near].mean() == pytest.approx(5 / 9 * (0.85 / 0.9) ** 4, abs=0.06)
    assert drawn[middle].mean() == pytest.approx(5 / 9 * (0.6 / 0.9) ** 4, abs=0.04)


def test_a_pilot_stays_small_where_rows_at_even_distances_are_unlike_the_others(monkeypatch):
    monkeypatch.setattr(out_of_core, "_PILOT", 1)
    monkeypatch.setattr(out_of_core, "_WHOLE", 1)
    monkeypatch.setattr(out_of_core, "_LONG", 64)
    data, places, points = crowd_and_outlier()
    seen = chunks.evenly(len(data), 4096)
    data[seen] = 0.5 + np.linspace(0, 1e-6, len(seen))[:, None]
    planner = GP(EQ(0.3), 0.5, (0.0, 1.0), 0.5, places).planner(data, X_star=points)
    assert planner.survey.pilot.n_rows <= 4096 + 2 * 64 + len(places)


def test_rows_that_are_fewer_than_those_to_draw_can_be_drawn_from(monkeypatch):
    """As where test points are so many that the pilot cannot have all of a few thousand rows."""
    monkeypatch.setattr(out_of_core, "_WHOLE", 1)
    monkeypatch.setattr(out_of_core, "_PILOT", 1)
    data, places, points = crowd_and_outlier()
    planner = GP(EQ(0.3), 0.5, (0.0, 1.0), 0.5, places).planner(data[:5000], X_star=points)
    assert 4096 < planner.survey.pilot.n_rows <= 4096 + 5000 + len(places)


def test_many_rows_that_are_all_in_the_pilot_need_no_reserve(monkeypatch, plan_in_passes):
    monkeypatch.setattr(out_of_core, "_MANY", 3000)
    data, places, points = crowd_and_outlier()
    plan = plan_in_passes(GP(EQ(0.3), 0.5, (0.0, 1.0), 0.5, places), data, points)
    assert plan.certificate.gap <= 0.01


def test_a_part_of_many_rows_is_looked_at_first_and_all_of_them_last(monkeypatch, plan_in_passes):
    monkeypatch.setattr(out_of_core, "_PILOT", 1)
    monkeypatch.setattr(out_of_core, "_WHOLE", 1)
    monkeypatch.setattr(out_of_core, "_MANY", 3000)
    monkeypatch.setattr(out_of_core, "_LONG", 0)
    seen = []
    for name in ("lengths", "scan"):
        looked = getattr(out_of_core, name)
        monkeypatch.setattr(
            out_of_core,
            name,
            lambda made, inputs, looked=looked: seen.append(len(inputs)) or looked(made, inputs),
        )
    data, places, points = crowd_and_outlier()
    plan = plan_in_passes(GP(EQ(0.3), 0.5, (0.0, 1.0), 0.5, places), data, points)
    assert 0 < seen[0] < len(data) / 4
    assert seen[1] > seen[0] / 2, seen  # an outlier that was missed leaves the others in reserve
    assert seen[-1] == len(data)
    assert len(plan.measurement.inputs) == len(data)
    check_sensitivity(plan)


@every_noise
@every_input
@pytest.mark.parametrize("kernel", [None, Matern32(3.0, variance=2.0)], ids=["EQ", "Matern32"])
def test_the_sensitivity_covers_every_column_exactly(plan_in_passes, kernel, data, noise):
    for approximation in APPROXIMATIONS:
        plan = plan_in_passes(model(approximation, noise, kernel=kernel), data)
        m, columns = plan.measurement, written_out(plan).T.tolist()
        longest = max(sum(entry**2 for entry in column) for column in columns)
        assert m.declared**2 >= longest * 4**m.y_bits
        largest = max(sum(abs(entry) for entry in row) for row in zip(*columns, strict=True))
        assert m.extent == largest
        assert m.column_sum.tolist() == [sum(row) for row in zip(*columns, strict=True)]
        assert m.largest_sum() == largest * 2**m.y_bits
