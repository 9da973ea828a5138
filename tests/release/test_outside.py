"""What windows cut off: measured beside what lies in them, read with it, kept, verified and combined."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import cloakgp
from cloakgp import GP, AutoGP, Grid, Hyperprior, combine
from cloakgp.core.calibration import SIGMA_FLOOR
from cloakgp.files import container
from cloakgp.kernels import EQ, Constant
from cloakgp.measure.measurement import measurement_of, room
from cloakgp.measure.statistics import Inside, Outside
from cloakgp.posterior import staging
from cloakgp.release import staged_planner, stages
from cloakgp.release.stages import MOST_OUTSIDE, Stage
from cloakgp.testing import InsecureWarning, insecure_seed
from measured import exact

pytestmark = pytest.mark.usefixtures("few_models")
BOUNDS = (0.0, 40.0)
POINTS = np.array([1.0, 5.0, 9.0])
PROMISE = {"epsilon": 2.0, "delta": 1e-3}
ROWS = 400


def costs(X, rng):
    """Mostly nothing, and now and then something."""
    return np.where(rng.uniform(size=len(X)) < 0.2, 5 + 2 * X, 0.0)


def table(seed=0, n=ROWS):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, n).round(1)
    return X, costs(X, rng)


def released(seed=1, **options):
    X, y = table()
    with pytest.warns(InsecureWarning), insecure_seed(seed):
        made = AutoGP(BOUNDS, stages=4).plan(X, X_star=POINTS, **PROMISE, **options).release(y)
    # For a plan that it is given to.
    return replace(made, plan=replace(made.plan, certificate=replace(made.certificate, insecure=False)))


@pytest.fixture(scope="module")
def release():
    return released()


def test_every_stage_whose_windows_cut_something_off_measures_it(release):
    mu = release.certificate.mu
    for number, (stage, share) in enumerate(zip(release.stages, release.plan.shares, strict=True)):
        assert (stage.outside is not None) == (0 < number < 4)
        assert sum(part.mu() ** 2 for part in stage.parts) == pytest.approx(share * mu**2, rel=1e-9)
        if stage.outside is None:
            continue
        own = stage.outside.part.share / stage.share
        assert any(own == pytest.approx(part, rel=1e-12) for part in staging.OUTSIDE)
        assert stage.outside.mu() ** 2 == pytest.approx(stage.outside.part.share * mu**2, rel=1e-9)
        assert len(stage.outside.matrix) <= MOST_OUTSIDE
        assert len(stage.answer) == sum(part.n_measurements for part in stage.parts)
        assert len(stage.line.shift) == sum(m.n_measurements for m in stage.sums)
    assert sum(len(stage.answer) for stage in release.stages) <= release.certificate.n_measurements


KNOWN = GP(EQ(3.0, variance=4.0), 1.0, BOUNDS, 5.0)
OTHERS = {
    "yes/no": lambda X: AutoGP(outcome="yes/no", stages=2).plan(X, X_star=POINTS, **PROMISE).release(X > 5),
    "counts": lambda X: (
        AutoGP((0, 20), outcome="count", stages=2).plan(X, X_star=POINTS, **PROMISE).release(np.rint(X))
    ),
    "a known model with windows": lambda X: KNOWN.plan(
        X, X_star=POINTS, given=[KNOWN.plan(X, X_star=POINTS, **PROMISE).release(X)], windows=1.5, **PROMISE
    ).release(X),
    "whole rows": lambda X: (
        AutoGP(BOUNDS, stages=3)
        .plan_rows(Grid({"x": (0.0, 10.0)}, cells=5), len(X), X_star=POINTS, **PROMISE)
        .release(X, X)
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_others_do_not_measure_it(kind):
    made = OTHERS[kind](np.linspace(0, 10, 60))
    assert any(stage.line is not None for stage in made.stages) or kind in ("yes/no", "counts")
    assert all(stage.outside is None for stage in made.stages)


def test_inside_and_outside_add_up_to_the_outcomes():
    rng = np.random.default_rng(0)
    n, y = 30, rng.uniform(-5, 45, 30)
    lower = np.where(np.arange(n) % 3, rng.uniform(0, 20, n), 0.0)
    window = lower, lower + rng.uniform(1, 20, n)
    rows = rng.normal(size=(3, n)) / 100
    sums = 0.0
    for statistic in (Inside(*window), Outside(*window, bounds=BOUNDS)):
        m = measurement_of(rows * statistic.worth, statistic, 1.0, 0.01, 0.5)
        own = m.real_matrix() / statistic.span
        np.testing.assert_allclose(own, rows, atol=1e-8)
        z = (np.array(exact(m, y)) - m.midpoint) * m.step / statistic.span
        sums += z + own @ (statistic.origin * np.ones(n))
    np.testing.assert_allclose(sums, rows @ np.clip(y, *BOUNDS), atol=1e-6)


def test_a_line_is_right_about_outcomes_that_are_normal():
    """Means of both sums over many draws are those that the line says; false alarm 1 in 10^4."""
    release = released()
    rule, stage = release.plan.rule, release.stages[2]
    session = rule.session(release.plan.start)
    session.learn(*release.stages[:2])
    state, rng, n_draws = session.state, np.random.default_rng(3), 4000
    labels, mean = rule.inputs.groups.labels, rule.middle + state.mean
    root = np.linalg.cholesky(state.covariance + 1e-9 * np.eye(len(mean)) * state.noise)
    found = []
    for _ in range(n_draws):
        f = mean + root @ rng.normal(size=len(mean))
        y = f[labels] + np.sqrt(state.noise) * rng.normal(size=len(labels))
        lower, upper = stage.lower[labels], stage.upper[labels]
        open_low, open_high = lower <= BOUNDS[0], upper >= BOUNDS[1]  # what is beyond a bound is not clipped
        inside = np.clip(y, np.where(open_low, -np.inf, lower), np.where(open_high, np.inf, upper))
        parts = []
        for m, part in zip(stage.sums, (inside, y - inside), strict=True):
            parts.append(m.real_matrix() @ np.bincount(labels, part, len(mean)))
        sums = np.bincount(labels, y, len(mean))
        found.append(np.concatenate(parts) - stage.sloped @ sums - stage.line.shift)
    found = np.array(found)
    expected = np.sqrt(np.diag(stage.line.extra))
    error = found.mean(axis=0) / (found.std(axis=0) / math.sqrt(n_draws))
    assert np.abs(error).max() < 4.9
    np.testing.assert_allclose(found.std(axis=0), expected, rtol=0.1)


def test_a_file_holds_it_and_is_verified(release, tmp_path):
    release.save(tmp_path / "file")
    again = cloakgp.load(tmp_path / "file")
    for one, other in zip(release.stages, again.stages, strict=True):
        assert other.to_bytes() == one.to_bytes()
        assert [m.part.share for m in other.sums] == [m.part.share for m in one.sums]
        assert [m.sensitivity() for m in other.sums] == [m.sensitivity() for m in one.sums]
    wanted, found = (one.predict(POINTS, return_std=True) for one in (release, again))
    assert np.array_equal(wanted, found)
    assert [one.skew for one in again.settings] == [one.skew for one in release.settings]
    assert again.plan.prior.skew == release.plan.prior.skew


def test_a_stage_on_record_is_what_is_measured(release):
    """With the bounds of the release that it is of, also where it was given to another."""
    rule, y = release.plan.rule, table()[1]
    for number, stage in enumerate(release.stages):
        words, arrays, _ = container.unpack(stage.to_bytes())
        again = Stage.from_described(words, arrays, rule, number)
        assert again.to_bytes() == stage.to_bytes()
        assert exact(list(again.parts), y).tolist() == exact(list(stage.parts), y).tolist()


@pytest.mark.parametrize("ids", ["many", "few"])
def test_people(ids, tmp_path):
    people = np.arange(ROWS) % (ROWS // 2 if ids == "many" else 40)
    made = AutoGP(BOUNDS, stages=2).plan(table()[0], X_star=POINTS, people=people, **PROMISE)
    made = made.release(table()[1])
    outside = made.stages[1].outside
    assert outside.people is made.plan.people
    own = outside.matrix[:, outside.labels].astype(object)
    longest = max(
        sum(abs(a @ b) for a in own[:, people == who].T for b in own[:, people == who].T)
        for who in set(people.tolist())
    )
    assert outside.sensitivity() <= (math.isqrt(longest) + 1) * 2**outside.y_bits
    made.save(tmp_path / "file")
    assert cloakgp.verify(tmp_path / "file").complete


@pytest.mark.parametrize("windows", [None, 2.0])
def test_it_goes_on_from_a_release_with_it(release, windows, tmp_path):
    """A learned model measures it from the first stage on then; one that is known reads it."""
    X, y = table()
    if windows is None:
        plan = AutoGP(BOUNDS, stages=2).plan(X, X_star=POINTS, given=[release], **PROMISE)
    else:
        plan = KNOWN.plan(X, X_star=POINTS, given=[release], windows=windows, **PROMISE)
    assert (plan.first.outside is not None) == (windows is None)
    assert np.isfinite(plan.expected_error).all()
    assert len(plan.given[0].stages) == 4
    assert [stage.outside is None for stage in plan.given[0].stages] == [True, False, False, False]
    later = plan.release(y)
    later.save(tmp_path / "file")
    again = cloakgp.load(tmp_path / "file")
    assert np.array_equal(again.predict(POINTS, return_std=True), later.predict(POINTS, return_std=True))
    found = cloakgp.verify(tmp_path / "file")
    assert found.unchecked == ("the windows of earlier releases: only their own files tell; verify these",)


def test_other_bounds_do_not_change_what_was_given(release):
    """Integers beyond windows are counted in the bounds that they were made with."""
    X, _ = table()
    plan = AutoGP((-20.0, 90.0), stages=1).plan(X, X_star=POINTS, given=[release], **PROMISE)
    for stage in plan.given[0].stages[1:]:
        assert stage.outside.statistic.bounds == BOUNDS
    assert plan.first.outside.statistic.bounds == (-20.0, 90.0)
    words, arrays, _ = container.unpack(plan.to_bytes())
    again = stages.Stage.from_described(
        words["stages"][1],
        {name[:-2]: array for name, array in arrays.items() if name.endswith("_1")},
        plan.rule,
        1,
        plan.given[0],
    )
    assert again.outside.statistic.bounds == BOUNDS
    assert again.outside.step == plan.given[0].stages[1].outside.step


def test_other_models_read_both(release):
    gp = GP(EQ(2.0, variance=4.0) + Constant(25.0), 16.0, BOUNDS, 5.0)
    both = release.remodel(gp)
    alone = replace(release, stages=tuple(_without_outside(stage) for stage in release.stages)).remodel(gp)
    assert (both.predict(POINTS, return_std=True)[1] < alone.predict(POINTS, return_std=True)[1]).all()
    again = release.learn(Hyperprior(noise=(0.01, 0.3)))
    assert np.isfinite(again.predict(POINTS)).all()


def _without_outside(stage):
    if stage.outside is None:
        return stage
    line, q = stage.line, stage.measurement.n_measurements
    line = replace(line, shift=line.shift[:q], extra=line.extra[:q, :q])
    return replace(stage, outside=None, line=line, answer=np.r_[stage.answer[:q], stage.answer[-1:]])


def test_it_goes_along_where_releases_of_different_people_are_combined(release):
    """Far from all rows of the other set, what is said is what the release alone says."""
    gp = GP(EQ(2.0, variance=4.0), 16.0, BOUNDS, 5.0)
    X, y = table(5, 200)
    with pytest.warns(InsecureWarning), insecure_seed(6):
        other = AutoGP(BOUNDS, stages=2).plan(X + 1000.0, X_star=POINTS, **PROMISE).release(y)
    other = replace(other, plan=replace(other.plan, certificate=replace(other.certificate, insecure=False)))
    both = combine([other, release], same_data=False, model=gp)
    alone = release.remodel(gp)
    found, wanted = (one.predict(POINTS, return_std=True) for one in (both, alone))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    learned = combine([other, release], same_data=False)
    assert np.isfinite(learned.predict(POINTS)).all()


def test_a_plan_has_room_for_every_part(monkeypatch):
    """Or it is refused before anything is paid: some mu leaves bits for a stage, but not for its parts."""
    shares, rows = (0.4, 0.6), 1000

    def fits(mu, splits):
        monkeypatch.setattr(staged_planner.calibrate, "calibrate", lambda *_, **__: mu)
        try:
            staged_planner._mu(1.0, 1e-3, 50, shares, rows, 1.0, 1.0, splits)
        except ValueError:
            return False
        return True

    tried = np.geomspace(2.0**-40, 2.0**-20, 200)
    found = [(fits(mu, False), fits(mu, True)) for mu in tried]
    assert (True, False) in found
    assert (False, True) not in found
    mu = next(mu for mu, pair in zip(tried, found, strict=True) if all(pair))
    for part in staging.OUTSIDE:
        for own in (part, 1 - part):
            one = mu * math.sqrt(min(shares) * (1 - staging.SCALE_SHARE) * own)
            bits = room(rows, 1 / one)
            assert bits >= 20
            assert 2.0 ** (bits - 1) / one >= SIGMA_FLOOR


def test_means_of_costs_are_not_lost_where_windows_close_in():
    """They were, by a half and more, as windows close in on the bulk, which is 0."""
    X, y = table(7, 1500)
    with pytest.warns(InsecureWarning), insecure_seed(8):
        made = AutoGP(BOUNDS, stages=5).plan(X, X_star=POINTS, **PROMISE).release(y)
    truth = 0.2 * (5 + 2 * POINTS)
    assert np.abs(made.predict(POINTS) / truth - 1).max() < 0.5
