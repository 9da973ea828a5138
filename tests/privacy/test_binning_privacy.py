"""Bins and noisy rows keep their promise: lemma 12 of ``docs/proofs.md``, hunted for counter-examples.

One row of y is in one sum and moves it by at most 2^y_bits; the noise that is really drawn is Laplace's
(or Gaussian) of the scale that this needs; nothing that outlives a release holds y. Each check is also
given planted bugs, to show that it would see them.
"""

from __future__ import annotations

import math
import pickle
import struct
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opendp import measurements
from privacy_helpers import fails, require
from scipy import stats
from test_control_flow import check_same_steps, neighbours
from test_empirical_epsilon import epsilon_lower_limit
from test_neighbours import outcomes
from test_no_trace_of_y import reachable

from cloakgp import binning
from cloakgp.calibration import total_delta
from cloakgp.kernels import EQ
from cloakgp.measurements import bin_sums
from cloakgp.private import room
from cloakgp.rows.people import as_people

examples = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
MECHANISMS = {"laplace": {}, "gaussian": {"mechanism": "gaussian", "delta": 0.01}}
N = 6


def small(mechanism="laplace", *, epsilon=1.0, bounds=(0.0, 1.0), local=False, **options):
    """Six rows in three bins, two of them on edges; or each for itself."""
    options = {"bounds": bounds, "epsilon": epsilon, **MECHANISMS[mechanism], **options}
    X = np.array([0.0, 0.3, 1.0, 1.5, 2.0, 3.0])
    if local:
        return binning.local(X, X_star=[0.5, 2.5], kernel=EQ(1.0), noise=0.1, **options)
    return binning.plan(X, X_star=[0.5, 2.5], edges=[0.0, 1.0, 2.0, 3.0], **options)


# ---------------------------------------------------------------------------------------- neighbours


def exact_sums(plan, *datasets):
    """The integer sums before noise, the integer outcomes, and the scale of the noise, for each data set."""
    seen, y_ints, to_integers = [], [], room.to_integers

    def recorded(*args):
        y_ints.append(to_integers(*args))
        return y_ints[-1]

    def no_noise(exact, scale):
        seen.append((exact.tolist(), y_ints[-1].tolist(), scale))
        return exact

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "to_integers", recorded)
        patch.setattr(room, "add_laplace", no_noise)
        patch.setattr(room, "add_noise", no_noise)
        for y in datasets:
            plan.release(y, missing="midpoint")
    return seen


def check_neighbours(plan, y, y_prime):
    """One row differs: one sum moves, by at most the sensitivity, and the noise hides so much."""
    sums = plan.sums
    (one, one_int, scale), (other, other_int, _) = exact_sums(plan, y, y_prime)
    top = 2**sums.y_bits
    assert all(0 <= v <= top for v in one_int + other_int), "an integer outcome is outside its public range"
    for exact, integers in ((one, one_int), (other, other_int)):
        by_hand = [0] * sums.n_bins
        for label, value in zip(sums.labels.tolist(), integers, strict=True):
            by_hand[label] += value
        assert exact == by_hand, "the sums are not exact"
    moved = [abs(a - b) for a, b in zip(one, other, strict=True) if a != b]
    assert len(moved) <= 1, "one row moved more than one sum"
    assert sum(moved) <= sums.sensitivity, "one row moved a sum further than the sensitivity"
    if sums.mechanism == "laplace":
        kept = Fraction(sum(moved), scale) <= Fraction(sums.epsilon)
    else:
        kept = total_delta(max(sum(moved) / scale, 1e-9), sums.epsilon, sums.delta, sums.n_bins) <= sums.delta
    assert kept, "the noise that is drawn does not hide this pair of neighbours"
    return sum(moved)


def ends(plan, row=3):
    y = np.full(plan.sums.n_rows, plan.sums.lower)
    y_prime = y.copy()
    y_prime[row] = plan.sums.upper
    return y, y_prime


@st.composite
def makers(draw):
    """One to three inputs; rows anywhere, on edges, repeated, or all in one bin; bins or single rows."""
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
    options = {
        "bounds": (low, low + draw(st.floats(0.01, 1e6))),
        "epsilon": draw(st.sampled_from([1e-6, 0.1, 1.0, 8.0, 1e5])),
        **draw(st.sampled_from(list(MECHANISMS.values()))),
    }
    if draw(st.booleans()):
        make = partial(binning.local, X, X_star=X[:1], kernel=EQ(1.0), noise=1.0, **options)
    else:
        edges = draw(st.sampled_from([[np.arange(5.0)] * columns, 1, 3, [np.array([-9.0, 9.0])] * columns]))
        make = partial(binning.plan, X, X_star=X[:1], edges=edges, **options)
    return make


def plans():
    return makers().map(lambda make: make())


@examples
@given(st.data(), plans())
def test_replacing_one_outcome_by_anything_moves_one_sum_within_the_sensitivity(data, plan):
    """Numbers inside, outside, missing, infinite, denormal: nobody else's sum moves."""
    n, outcome = plan.sums.n_rows, outcomes(plan.sums.lower, plan.sums.upper)
    y = np.array(data.draw(st.lists(outcome, min_size=n, max_size=n)))
    y_prime = y.copy()
    y_prime[data.draw(st.integers(0, n - 1))] = data.draw(outcome)
    check_neighbours(plan, y, y_prime)


def check_people(plan, y, y_prime):
    """One person's outcomes differ: the sums move by no more than the noise hides. How far, in its norm."""
    sums = plan.sums
    (one, _, scale), (other, _, _) = exact_sums(plan, y, y_prime)
    moves = [abs(a - b) for a, b in zip(one, other, strict=True)]
    if sums.mechanism == "laplace":
        far, kept = sum(moves), Fraction(sum(moves), scale) <= Fraction(sums.epsilon)
    else:
        squared = sum(move**2 for move in moves)
        far = math.isqrt(squared) + (math.isqrt(squared) ** 2 < squared)
        kept = total_delta(max(far / scale, 1e-9), sums.epsilon, sums.delta, sums.n_bins) <= sums.delta
    assert far <= sums.sensitivity, "one person moved the sums further than the sensitivity"
    assert kept, "the noise that is drawn does not hide this pair of neighbours"
    return far


@st.composite
def peoples_plans(draw):
    """Plans for people who have rows in one bin, in several, or one row each; and whose rows they are."""
    make = draw(makers())
    n = len(make.args[0])
    ids = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    return make(people=ids), ids


@examples
@given(st.data(), peoples_plans())
def test_replacing_all_outcomes_of_a_person_moves_the_sums_within_the_sensitivity(data, made):
    plan, ids = made
    assert plan.certificate.unit == "one person"
    n, outcome = plan.sums.n_rows, outcomes(plan.sums.lower, plan.sums.upper)
    y = np.array(data.draw(st.lists(outcome, min_size=n, max_size=n)))
    mine = ids == data.draw(st.sampled_from(ids.tolist()))
    others = np.array(data.draw(st.lists(outcome, min_size=n, max_size=n)))
    check_people(plan, y, np.where(mine, others, y))


@examples
@given(peoples_plans())
def test_the_sensitivity_is_reached_by_a_person(made):
    """All from one bound to the other, by whoever has most to say."""
    plan, ids = made
    y = np.full(plan.sums.n_rows, plan.sums.lower)
    far = [check_people(plan, y, np.where(ids == one, plan.sums.upper, y)) for one in set(ids.tolist())]
    assert max(far) == plan.sums.sensitivity


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_planted_sensitivity_of_one_row_is_caught(monkeypatch, mechanism):
    """Of a person with two rows in one bin and one in another."""
    ids = np.array([7, 7, 7, 1, 2, 3])
    y = np.zeros(N)
    y_prime = np.where(ids == 7, 1.0, y)
    right = small(mechanism, people=ids)
    check_people(right, y, y_prime)
    assert right.sums.sensitivity == math.ceil((3 if mechanism == "laplace" else math.sqrt(5)) * 2**40)
    with monkeypatch.context() as patch:
        patch.setattr(bin_sums, "squared_reach", lambda *_: 1)
        wrong = small(mechanism, people=ids)
        assert fails(check_people, wrong, y, y_prime)
    for planted in (wrong.sums, replace(right.sums, scale=small(mechanism).sums.scale)):
        with pytest.raises(AssertionError, match="noise is too small"):
            room.measure_sums(planted, y, "error")
    stranger = replace(right.sums, people=as_people([1, 2, 3], 3))
    with pytest.raises(AssertionError, match="people are not those"):
        room.measure_sums(stranger, y, "error")


@examples
@given(st.data(), plans())
def test_the_sensitivity_is_reached_in_every_row(data, plan):
    """From one bound to the other: the bound is tight, so a smaller one would be seen."""
    row = data.draw(st.integers(0, plan.sums.n_rows - 1))
    assert check_neighbours(plan, *ends(plan, row)) == plan.sums.sensitivity


def test_integers_near_the_limit_do_not_wrap():
    """Bins as full as the check allows are still exact."""
    plan = small()
    sums = replace(plan.sums, y_bits=58, scale=2**55, epsilon=8.0)
    sums.check()
    full = replace(plan, sums=sums)
    assert check_neighbours(full, np.ones(N), [1.0, 1.0, 1.0, -1e300, 1.0, 1.0]) == 2**58
    with pytest.raises(AssertionError, match="overflow"):
        replace(sums, y_bits=61, scale=2**58).check()


_right_integers = room.to_integers


def _no_clipping(y, lattice):
    return np.rint((np.nan_to_num(y) - lattice.lower) * 2**20).astype(np.int64) * 2 ** (lattice.y_bits - 20)


def _centred(y, lattice):
    return _right_integers(y - y.mean() + 0.5, lattice)


def _scaled_to_the_data(y, lattice):
    return _right_integers((y - y.min()) / np.ptp(y), lattice)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("bug", "pair", "why"),
    [
        (_no_clipping, ([0.5] * 6, [0.5] * 5 + [30.0]), "outside its public range"),
        (_centred, ([0.4] * 6, [0.4] * 5 + [1.0]), "more than one sum"),
        (_scaled_to_the_data, ([0.4, 0.45] * 3, [0.4, 0.45] * 2 + [0.4, 1.0]), "more than one sum"),
    ],
)
def test_planted_bugs_in_preparing_y_are_caught(monkeypatch, mechanism, bug, pair, why):
    """No clipping, centring on the private mean, scaling by the private range."""
    plan, pair = small(mechanism), tuple(map(np.array, pair))
    check_neighbours(plan, *pair)
    monkeypatch.setattr(room, "to_integers", bug)
    assert fails(check_neighbours, plan, *pair, because=why)


def _edge_rows_in_both_bins(sums, y, missing, names):
    integers = room.to_integers(room.numeric(y), sums.lattice)
    exact = np.zeros(sums.n_bins, dtype=np.int64)
    np.add.at(exact, sums.labels, integers)
    exact[0] += integers[2]  # x = 1 is an edge
    return (room.add_laplace if sums.mechanism == "laplace" else room.add_noise)(exact, sums.scale)


def _bins_without_repeats(sums, y, missing, names):
    """The old mistake of ``exact[labels] += y``: the last row of a bin wins."""
    exact = np.zeros(sums.n_bins, dtype=np.int64)
    exact[sums.labels] += room.to_integers(room.numeric(y), sums.lattice)
    return (room.add_laplace if sums.mechanism == "laplace" else room.add_noise)(exact, sums.scale)


def _less_noise(sums, y, missing, names):
    sums = replace(sums, scale=sums.scale * 99 // 100)
    exact = np.zeros(sums.n_bins, dtype=np.int64)
    np.add.at(exact, sums.labels, room.to_integers(room.numeric(y), sums.lattice))
    return (room.add_laplace if sums.mechanism == "laplace" else room.add_noise)(exact, sums.scale)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("bug", "why"),
    [
        (_edge_rows_in_both_bins, "not exact"),
        (_bins_without_repeats, "not exact"),
        (_less_noise, "does not hide"),
    ],
)
def test_planted_bugs_in_summing_are_caught(monkeypatch, mechanism, bug, why):
    """A row on an edge counted twice, rows lost, noise of another scale than the one checked."""
    plan = small(mechanism)
    monkeypatch.setattr(room, "measure_sums", bug)
    y, y_prime = ends(plan, row=2)
    assert fails(check_neighbours, plan, y, y_prime, because=why)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_planted_sums_that_break_the_promise_are_refused_before_y_is_read(mechanism):
    """Whatever was made of the plan meanwhile."""

    class Unreadable:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("y was read")

        __len__ = __iter__ = __getitem__ = __array__

    plan = small(mechanism)
    bad = [
        {"scale": plan.sums.scale * 99 // 100},
        {"y_bits": plan.sums.y_bits + 1},
        {"epsilon": 0.9},
        {"labels": plan.sums.labels + 1},
        {"labels": plan.sums.labels - 1},
        {"n_bins": 1},
        {"y_bits": 60, "scale": 2**60},
    ]
    for changes in bad:
        with pytest.raises(AssertionError):
            replace(plan, sums=replace(plan.sums, **changes)).release(Unreadable())


# --------------------------------------------------------------------------- OpenDP's own accounting


def made_by_opendp(monkeypatch, plan, y):
    """The measurement that a release asks OpenDP for, and what it is given."""
    seen = []
    for name in ("make_laplace", "make_gaussian"):
        right = getattr(measurements, name)

        def make(*args, _right=right, **kwargs):
            made = _right(*args, **kwargs)
            seen.append(made)
            return made

        monkeypatch.setattr(measurements, name, make)
    plan.release(y)
    (made,) = seen
    return made


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1 / 3, 1.0, math.log(3), 7.7, 1e5])
@pytest.mark.parametrize("local", [False, True], ids=["bins", "rows"])
def test_opendp_says_that_the_laplace_measurement_keeps_epsilon(monkeypatch, epsilon, local):
    """Its privacy map at the sensitivity, in L1 and rounded up by OpenDP, is at most epsilon, and near it."""
    plan = small(epsilon=epsilon, local=local)
    made = made_by_opendp(monkeypatch, plan, np.full(N, 0.4))
    assert "L1Distance" in str(made.input_metric)
    assert "MaxDivergence" in str(made.output_measure)
    assert epsilon * (1 - 1e-6) <= made.map(plan.sums.sensitivity) <= epsilon
    assert made.map(plan.sums.sensitivity + plan.sums.sensitivity // 1000) > epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_opendp_says_that_the_gaussian_measurement_has_the_declared_mu(monkeypatch, epsilon):
    """rho = mu^2 / 2 in L2, for the mu that a ledger is told."""
    plan = small("gaussian", epsilon=epsilon)
    made = made_by_opendp(monkeypatch, plan, np.full(N, 0.4))
    assert "L2Distance" in str(made.input_metric)
    rho = made.map(plan.sums.sensitivity)
    assert rho == pytest.approx(plan.cost.mu**2 / 2, rel=1e-12)


def test_planted_scale_that_opendp_would_object_to_is_caught(monkeypatch):
    """The map has the power to see one part in a thousand."""
    plan = small()
    weak = replace(plan, sums=replace(plan.sums, scale=plan.sums.scale * 999 // 1000))
    monkeypatch.setattr(type(plan.sums), "check", lambda self: None)
    assert made_by_opendp(monkeypatch, weak, np.full(N, 0.4)).map(plan.sums.sensitivity) > 1.0


# ----------------------------------------------------------------------------------------- the noise

FALSE_ALARM = 1e-7


def check_laplace(add, scale=2**40, calls=60, width=500):
    """Size, centre, shape, low bits and freshness of the noise, each at a false-alarm rate of 1e-7."""
    exact = np.random.default_rng(0).integers(0, 2**58, width)
    noise = np.array([add(exact, scale) for _ in range(calls)]) - exact
    require(noise.dtype == np.int64, "not integers")
    standard, n = noise.ravel() / scale, noise.size
    total = 2 * float(np.abs(standard).sum())  # chi-square with 2 n degrees of freedom
    assert stats.chi2.cdf(total, 2 * n) > FALSE_ALARM / 2, "the noise is too small"
    assert stats.chi2.sf(total, 2 * n) > FALSE_ALARM / 2, "the noise is too large"
    assert 2 * stats.norm.sf(abs(standard.mean()) * math.sqrt(n / 2)) > FALSE_ALARM, "not centred"
    distance = stats.kstest(standard, stats.laplace.cdf, method="asymp").statistic
    assert 2 * math.exp(-2 * n * distance**2) > FALSE_ALARM, "the noise is not Laplace's"
    largest = float(np.abs(standard).max())
    assert n * math.exp(-largest) > FALSE_ALARM, "the noise has heavier tails"
    assert (1 - math.exp(-largest)) ** n > FALSE_ALARM, "the noise is cut off"
    counts = np.bincount((noise & 7).ravel(), minlength=8)
    assert stats.chi2.sf(float(np.sum((counts - n / 8) ** 2) / (n / 8)), 7) > FALSE_ALARM, "bits"
    for one, other in ((noise[:, 1:], noise[:, :-1]), (noise[1:], noise[:-1])):
        correlation = float(np.sum((one / scale) * (other / scale))) / (2 * math.sqrt(one.size))
        assert 2 * stats.norm.sf(abs(correlation)) > FALSE_ALARM, "the noise is not independent"


@pytest.mark.parametrize("scale", [2**12, small().sums.scale, small(epsilon=1e-6).sums.scale])
def test_the_noise_is_laplaces_of_the_declared_scale_and_fresh(scale):
    """Through the function that every Laplace release uses."""
    check_laplace(room.add_laplace, scale)


def _numpy_noise(draw):
    def add(exact, scale):
        return exact + np.rint(draw(np.random.default_rng(), exact.shape) * scale).astype(np.int64)

    return add


def _cut_off(exact, scale):
    noise = room.add_laplace(np.zeros_like(exact), scale)
    return exact + np.clip(noise, -6 * scale, 6 * scale)


BUGS = {
    "scale 7 % too small": (lambda exact, s: room.add_laplace(exact, int(0.93 * s)), "too small"),
    "scale 7 % too large": (lambda exact, s: room.add_laplace(exact, int(1.07 * s)), "too large"),
    "std in place of scale": (lambda e, s: room.add_laplace(e, int(s / math.sqrt(2))), "too small"),
    "Gaussian of the same mean size": (
        _numpy_noise(lambda random, shape: random.normal(size=shape) * math.sqrt(math.pi / 2)),
        "not Laplace",
    ),
    "one-sided": (_numpy_noise(lambda random, shape: random.exponential(size=shape)), "not centred"),
    "cut off": (_cut_off, "cut off"),
    "even numbers": (lambda e, s: e + 2 * (room.add_laplace(np.zeros_like(e), s) // 2), "bits"),
    "one draw for all bins": (lambda e, s: e + room.add_laplace(np.zeros(1, dtype=np.int64), s), ""),
    "a fixed seed": (
        lambda e, s: e + np.rint(np.random.default_rng(7).laplace(size=e.shape) * s).astype(np.int64),
        "",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_wrong_noise_is_caught(bug):
    """Each would pass for Laplace noise at a glance."""
    add, why = BUGS[bug]
    assert fails(check_laplace, add, because=why)


# ------------------------------------------------------------------------------------- the best attack


def check_epsilon(plan, n=12_000):
    """Many draws of the two worst neighbours, told apart by the best test: a limit below the promise."""
    step, samples = plan.sums.sensitivity, []
    for y in ends(plan, row=0):
        integers = room.to_integers(y, plan.sums.lattice)
        exact = np.bincount(plan.sums.labels, weights=integers, minlength=plan.sums.n_bins).astype(np.int64)
        samples.append(room.add_laplace(np.full(n, exact[0]), plan.sums.scale) / step)
    limit = epsilon_lower_limit(*samples, [0.5, 1.0, 1.5], 0.0)
    assert limit <= plan.certificate.epsilon, "releases tell neighbours apart better than promised"
    return limit


@pytest.mark.parametrize(("epsilon", "least"), [(0.5, 0.2), (1.0, 0.7), (3.0, 2.2)])
def test_the_best_attack_stays_below_the_promise_and_near_it(epsilon, least):
    """Laplace noise is no larger than needed: the attack comes near epsilon."""
    assert check_epsilon(small(epsilon=epsilon)) > least


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_planted_noise_too_small_is_caught_by_the_attack(monkeypatch, epsilon):
    """At 0.6 times the scale the limit passes the promise."""
    right = room.add_laplace
    monkeypatch.setattr(room, "add_laplace", lambda exact, scale: right(exact, int(0.6 * scale)))
    assert fails(check_epsilon, small(epsilon=epsilon), because="better than promised")


# ------------------------------------------------------------------------------------- no trace of y


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-3.0, 5.0), (-2e99, 3e99)])
def test_what_is_executed_does_not_depend_on_y(mechanism, bounds):
    """Every bytecode instruction of a release is the same, whatever one row holds."""
    plan = small(mechanism, bounds=bounds)
    check_same_steps(plan, neighbours(*bounds))
    check_same_steps(plan, neighbours(*bounds, missing=True), missing="midpoint")


def test_planted_branch_on_y_is_caught(monkeypatch):
    """A shortcut for bins that sum to nothing."""

    def shortcut(self, y, **kwargs):
        return None if np.sum(y) > 2.9 else right(self, y, **kwargs)

    right = binning.BinningPlan.release
    plan = small()
    monkeypatch.setattr(binning.BinningPlan, "release", shortcut)
    assert fails(check_same_steps, plan, neighbours(0.0, 1.0))


SECRET = np.array([112.4567890123, 134.123456789, 155.987654321, 131.13579, 168.24681012, 177.8642])


def check_holds_no_outcome(plan, release):
    """Neither the pickle nor anything reachable holds y, its integers, or a sum before noise."""
    integers = room.to_integers(SECRET, plan.sums.lattice)
    exact = np.bincount(plan.sums.labels, weights=integers).astype(np.int64)
    means = np.bincount(plan.sums.labels, weights=SECRET) / plan.counts
    floats = [*SECRET, *(SECRET - plan.sums.lower), *means, SECRET.sum(), SECRET.mean()]
    patterns = [struct.pack("<d", v) for v in floats]
    patterns += [struct.pack("<q", int(v)) for v in [*integers, *exact]]
    raw = pickle.dumps(release)
    assert not any(pattern in raw or pattern[::-1] in raw for pattern in patterns), "the pickle holds y"
    known = {float(v) for v in floats}
    for thing in reachable(release, plan):
        if isinstance(thing, np.ndarray) and thing.dtype.kind in "iuf":
            raw = np.ascontiguousarray(thing).tobytes()
            assert not any(pattern in raw for pattern in patterns), "an array holds y"
        assert not (type(thing) is float and thing in known), "something holds a number of y"
    for text in (repr(release), repr(plan), str(release.certificate), str(plan.occupancy)):
        assert not any(f"{v:.4g}" in text for v in SECRET), "a text quotes y"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "options",
    [{}, {"predict": "gp", "kernel": EQ(1.0)}, {"predict": "integral", "kernel": EQ(1.0)}, {"local": True}],
    ids=["constant", "gp", "integral", "local"],
)
def test_a_release_keeps_no_outcome(mechanism, options):
    """Before and after predicting."""
    plan = small(mechanism, bounds=(100.0, 180.0), **options)
    release = plan.release(SECRET.copy())
    check_holds_no_outcome(plan, release)
    release.predict([0.1, 7.0], return_std=True)
    check_holds_no_outcome(plan, release)


@pytest.mark.parametrize("bug", ["y", "integers", "exact"])
def test_planted_traces_of_y_are_found(bug):
    """Kept as it is, in integers, or as the sums before noise."""
    plan = small(bounds=(100.0, 180.0))
    release = plan.release(SECRET.copy())
    integers = room.to_integers(SECRET, plan.sums.lattice)
    exact = np.bincount(plan.sums.labels, weights=integers).astype(np.int64)
    release.__dict__["kept"] = {"y": SECRET, "integers": integers, "exact": exact}[bug]
    assert fails(check_holds_no_outcome, plan, release)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_error_of_opendp_does_not_show_the_sums(monkeypatch, mechanism):
    """Its message might quote them; nothing of it is passed on."""

    def broken(*args, **kwargs):
        def fail(exact):
            raise ValueError(f"cannot add noise to {exact}")

        return fail

    monkeypatch.setattr(measurements, "make_laplace", broken)
    monkeypatch.setattr(measurements, "make_gaussian", broken)
    with pytest.raises(RuntimeError, match="nothing was released") as caught:
        small(mechanism, bounds=(100.0, 180.0)).release(SECRET)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
