"""No pair of neighbours moves a score further than declared; the paper's bound, in its place, is passed.

Lemma 11 of ``docs/proofs.md``, hunted for counter-examples: random designs, both losses, folds of
every kind, outcomes at the ends of their bounds and just where the clip begins. Then the same hunt with
bugs planted, the paper's own sensitivity among them, to show that it would find them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from privacy_helpers import fails, require
from scipy import stats
from sklearn.model_selection import KFold, ShuffleSplit
from test_control_flow import neighbours, trace

import cloakgp
from cloakgp.kernels import EQ, Matern12
from cloakgp.measurements import scores as scoring
from cloakgp.measurements.folds import Fold, as_folds
from cloakgp.measurements.scores import Scores, make_scores
from cloakgp.private import room
from cloakgp.rows.people import as_people

LOSSES = ("squared", "absolute")


# ---------------------------------------------------------------------------------------- designs


def some_folds(kind, n_rows, seed):
    """Folds of each kind over a few rows."""
    random = np.random.default_rng(seed)
    if kind == "k-fold":
        return as_folds(int(random.integers(2, n_rows + 1)), np.empty((n_rows, 1)))
    if kind == "monte carlo":
        splitter = ShuffleSplit(int(random.integers(1, 6)), test_size=0.5, random_state=seed)
        return as_folds(splitter, np.empty((n_rows, 1)))
    pairs = []  # any: unequal, leaving rows out, testing rows more than once
    for _ in range(int(random.integers(1, 5))):
        order = random.permutation(n_rows)
        first, last = sorted(random.choice(np.arange(1, n_rows + 1), 2, replace=False))
        pairs.append((order[:first], order[first:last]))
    return as_folds(pairs, np.empty((n_rows, 1)))


@st.composite
def designs(draw, people=False):
    """Scores with weights that no model need have: the lemma asks nothing of them."""
    n_rows = draw(st.integers(3, 8))
    seed = draw(st.integers(0, 2**20))
    folds = some_folds(draw(st.sampled_from(["k-fold", "monte carlo", "explicit"])), n_rows, seed)
    random = np.random.default_rng(seed)
    n_candidates = draw(st.integers(1, 3))
    size = draw(st.sampled_from([1e-7, 1e-3, 0.1, 1.0, 20.0]))
    weights = [
        [size * random.normal(size=(len(fold.test), len(fold.train))) for fold in folds]
        for _ in range(n_candidates)
    ]
    width = draw(st.sampled_from([1.0, 8.0, 1e-50, 3e40]))
    return make_scores(
        weights,
        folds,
        means=[width * draw(st.sampled_from([-1e30, -0.3, 0.0, 0.5, 1.0, 7.0])) for _ in weights],
        costs=[width * random.uniform(0, 3) for _ in weights],
        bounds=(0.0, width),
        n_rows=n_rows,
        loss=draw(st.sampled_from(LOSSES)),
        clip=width * draw(st.sampled_from([1e-3, 0.1, 0.25, 0.5, 1.0, 4.0])),
        epsilon=1.0,
        people=as_people(draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)), n_rows)
        if people
        else None,
    )


def in_bounds(scores):
    """Outcomes for a design: at the ends, in the middle, where the clip begins, and anywhere."""
    edge = scores.clip / 2.0 ** (scores.y_bits + scores.matrix_bits)
    special = [0.0, 1.0, 0.5, min(edge, 1.0), max(0.0, 1 - edge)]
    share = st.one_of(st.sampled_from(special), st.floats(0.0, 1.0))
    return st.lists(share, min_size=scores.n_rows, max_size=scores.n_rows)


def exact(scores, shares):
    """The scores that the private room forms, without noise; a design is checked once, not for each y."""
    if scores is not _checked[0]:
        scores.check()
        _checked[0] = scores
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scores, "check", lambda scores: None)
        return room._exact_scores(scores, scores.upper * np.asarray(shares), "error").tolist()


_checked = [None]


def largest_move(scores, shares, row, other):
    """How far the scores move when one entry is replaced, in units of the declared sensitivity."""
    replaced = [*shares[:row], other, *shares[row + 1 :]]
    pairs = zip(exact(scores, shares), exact(scores, replaced), strict=True)
    return max(abs(a - b) for a, b in pairs) / scores.sensitivity


def check_neighbours(scores, shares, row, other):
    assert largest_move(scores, shares, row, other) <= 1, "a score moves further than its sensitivity"


def hunt(scores):
    """The largest move that simple attacks find, in units of the declared sensitivity."""
    edge = min(1.0, scores.clip / 2.0 ** (scores.y_bits + scores.matrix_bits))
    worst = 0.0
    for train, test in scores.folds:
        for tested, trained in [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (edge, 0.0), (1 - edge, 1.0)]:
            shares = np.full(scores.n_rows, 0.0)
            shares[train], shares[test] = trained, tested
            for row in (train[0], test[0]):
                for start, end in [(0.0, 1.0), (0.0, edge)]:
                    shares[row] = start
                    worst = max(worst, largest_move(scores, shares.tolist(), int(row), end))
    return worst


# ------------------------------------------------------------------------------------------ tests


@settings(max_examples=300)
@given(st.data(), designs())
def test_no_neighbours_move_a_score_further_than_declared(data, scores):
    """Nor is the choice between them less private than promised, by the probabilities themselves."""
    shares = data.draw(in_bounds(scores))
    row = data.draw(st.integers(0, scores.n_rows - 1))
    other = data.draw(st.sampled_from([0.0, 1.0, 0.5]))
    check_neighbours(scores, shares, row, other)
    replaced = [*shares[:row], other, *shares[row + 1 :]]
    first, second = log_probabilities(scores, shares), log_probabilities(scores, replaced)
    assert np.abs(first - second).max() <= scores.epsilon * (1 + 1e-9)


@settings(max_examples=60)
@given(designs())
def test_no_simple_attack_moves_a_score_further_than_declared(scores):
    assert hunt(scores) <= 1


def log_probabilities(scores, shares):
    log_odds = -np.array(exact(scores, shares)) / scores.scale
    return log_odds - np.logaddexp.reduce(log_odds)


def tight(loss, weight=-0.3, n_tested=5, clip=0.5, **changes):
    """A design whose sensitivity is reached: row 0 moves all others in one fold, and is tested in another."""
    rows = np.arange(1, n_tested + 1)
    folds = (Fold(np.array([0]), rows), Fold(rows, np.array([0])))
    arguments = {
        "weights": [[np.full((n_tested, 1), weight), np.zeros((1, n_tested))]],
        "folds": folds,
        "means": [0.0],
        "costs": [0.0],
        "bounds": (0.0, 1.0),
        "n_rows": n_tested + 1,
        "loss": loss,
        "clip": clip,
        "epsilon": 1.0,
    }
    return make_scores(**{**arguments, **changes})


def worst_for(scores, weight=-0.3, clip=0.5):
    """Neighbours that move a tight design by its sensitivity: each residual ends where it is clipped."""
    start = clip + weight if -weight < clip else 0.0
    return [0.0, *[start] * (scores.n_rows - 1)], 0, 1.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("weight", "clip"), [(-0.3, 0.5), (-0.7, 0.5), (-0.001, 0.25), (-0.25, 1.0)])
def test_the_sensitivity_is_reached(loss, weight, clip):
    """So nothing smaller would do, and a bug that made it smaller would show."""
    scores = tight(loss, weight, clip=clip)
    pair = worst_for(scores, weight, clip)
    check_neighbours(scores, *pair)
    assert largest_move(scores, *pair) > 1 - 1e-4


@pytest.mark.parametrize("loss", LOSSES)
def test_models_on_many_folds(loss):
    """The same hunt on real models, K folds and Monte Carlo folds."""
    X = np.linspace(0.0, 1.0, 30) ** 2
    gps = cloakgp.grid(kernel=EQ, lengthscale=[0.05, 0.3], noise=[1e-3, 0.1], bounds=(0.0, 1.0))
    for folds in (4, ShuffleSplit(20, test_size=0.3, random_state=0), KFold(3)):
        plan = cloakgp.plan_selection(gps, X, epsilon=1.0, folds=folds, loss=loss)
        assert 0.01 < hunt(plan.scores) <= 1


# ------------------------------------------------------------------------------- the paper's bound


def with_the_papers_bound(scores):
    """9 d^2 for the row where it is tested, and d^2 max_j |c_jk|^2 in the K - 1 other folds."""
    squared = [
        sorted(
            float((np.ldexp(m.astype(float), -scores.matrix_bits) ** 2).sum(axis=0).max()) for m in matrices
        )
        for matrices in scores.matrices
    ]
    width = scores.upper - scores.lower
    bound = width**2 * max(9 + sum(each[1:]) for each in squared)
    return replace(scores, sensitivity=int(bound / scores.step) + 1)


@pytest.fixture
def no_check(monkeypatch):
    """Let a sensitivity that is too small through, to see what it would do."""
    monkeypatch.setattr(Scores, "check", lambda self: None)


def clustered_plan(n_tested=300, n_trained=10):
    """Two folds of rows at one place: a few train and many are tested, and the other way round."""
    X = np.zeros(n_tested + n_trained)
    few, many = np.arange(n_trained), np.arange(n_trained, n_tested + n_trained)
    gps = [cloakgp.GP(EQ(1.0, variance=100.0), noise, (0.0, 1.0)) for noise in (1.0, 2.0)]
    return cloakgp.plan_selection(gps, X, epsilon=1.0, folds=[(few, many), (many, few)], loss_clip=4.0)


def test_the_papers_bound_has_a_counter_example(no_check):
    """Ten rows predict 300 others by their mean. One moves by d, and every residual with it, from 0.9 d to d.

    A residual e that moves by s changes its square by s (2e + s), where the paper has s^2.
    """
    paper = with_the_papers_bound(clustered_plan().scores)
    shares = [0.0] + [1.0] * 9 + [0.0] * 300
    ratio = largest_move(paper, shares, 0, 1.0)
    print(f"the scores move by {ratio:.2f} times the paper's bound")
    assert 4.5 < ratio < 5.0
    assert largest_move(clustered_plan().scores, shares, 0, 1.0) <= 1


def test_the_hunt_finds_one_by_itself(no_check):
    """Random sizes and noises: it takes few tries."""
    plans = st.builds(clustered_plan, st.integers(2, 300), st.integers(2, 30))
    found = find(
        plans,
        lambda plan: hunt(with_the_papers_bound(plan.scores)) > 1,
        settings=settings(max_examples=50, database=None),
    )
    assert hunt(found.scores) <= 1


# ----------------------------------------------------------------------------------- planted bugs


def _tested_only(scores, matrices):
    return _right_effect(scores, [np.zeros_like(m) for m in matrices])


def _one_fold_forgotten(scores, matrices):
    return _right_effect(replace(scores, folds=scores.folds[:1]), matrices[:1])


_right_effect, _right_change = Scores._largest_effect, scoring._loss_change

BUGS = {
    "the paper's square": (
        "_loss_change",
        lambda s, t, loss: np.minimum(s, t) ** (2 if loss == "squared" else 1),
    ),
    "the derivative at the clip's half": (
        "_loss_change",
        lambda s, t, loss: np.minimum(s, t) * (t if loss == "squared" else 1),
    ),
    "training forgotten": ("_largest_effect", _tested_only),
    "a fold forgotten": ("_largest_effect", _one_fold_forgotten),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_sensitivities_are_caught(monkeypatch, bug):
    """By the neighbours that a right sensitivity just covers."""
    name, planted = BUGS[bug]
    check_neighbours(tight("squared"), *worst_for(tight("squared")))
    monkeypatch.setattr(Scores if name == "_largest_effect" else scoring, name, planted)
    scores = tight("squared")
    assert fails(check_neighbours, scores, *worst_for(scores))


def test_planted_sensitivity_of_the_weights_before_rounding_is_caught(monkeypatch, no_check):
    """Weights so small that rounding makes them larger: the integers that are used decide."""
    weight = -1.6 * 2.0**-scoring.MATRIX_BITS  # becomes 2 steps
    scores = tight("absolute", weight, n_tested=500, clip=1e-3)
    before = np.ldexp(1.6 * 500, scores.y_bits) + scores.clip
    planted = replace(scores, sensitivity=int(before * 2.0**-scores.shift) + 1)
    pair = worst_for(scores, weight, 1e-3)
    pair = ([0.0] + [0.5e-3] * 500, *pair[1:])
    check_neighbours(scores, *pair)
    assert fails(check_neighbours, planted, *pair)


def test_planted_smaller_sensitivity_is_refused_before_y_is_looked_at():
    """The private room works the sensitivity out again from the integers."""

    class Unreadable:
        def __array__(self, *_, **__):
            pytest.fail("y was read")

    right = tight("squared")
    planted = replace(right, sensitivity=right.sensitivity * 999 // 1000)
    for door in (room.choose, room.custodian_scores):
        with pytest.raises(AssertionError, match="further than the declared sensitivity"):
            door(planted, Unreadable(), "error")


def test_planted_rounding_of_scores_is_caught():
    """Floors of sums that differ by at most D differ by at most D >> c, and one more."""
    for effect, shift in [(0, 3), (7, 3), (8, 3), (9, 3), (1000, 0), (1001, 4)]:
        moves = [((a + effect) >> shift) - (a >> shift) for a in range(64)]
        assert max(moves) <= scoring.in_steps(effect, shift)
        if effect % 2**shift:
            assert max(moves) > scoring.in_steps(effect, shift) - 1


# ------------------------------------------------------------------------------------ the sampler


def three_candidates(epsilon=2.0):
    """A small plan whose candidates differ enough that all are chosen now and then."""
    X = np.linspace(0.0, 1.0, 12)
    gps = cloakgp.grid(kernel=Matern12, lengthscale=[0.02, 0.3, 50.0], noise=0.05, bounds=(0.0, 1.0))
    return cloakgp.plan_selection(gps, X, epsilon=epsilon, folds=3), (np.arange(12) % 6 < 3).astype(float)


def check_distribution(plan, y, counts):
    """Counts are as the exponential mechanism's probabilities say (p-value above 1e-9)."""
    scores = np.array(room.custodian_scores(plan.scores, y, "error"), dtype=float)
    odds = np.exp(-plan.epsilon * (scores - scores.min()) / (2 * plan.scores.sensitivity))
    expected = odds / odds.sum() * counts.sum()
    require(expected.min() > 100, "too few draws")
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < stats.chi2.isf(1e-9, len(counts) - 1), "not the exponential mechanism's distribution"


def drawn(plan, y, n):
    """Counts of n draws from OpenDP, by the private room's own functions."""
    mechanism = room.noisy_minimum(plan.scores)
    exact_scores = room._exact_scores(plan.scores, y, "error")
    return np.bincount([mechanism(exact_scores) for _ in range(n)], minlength=3)


@pytest.mark.parametrize("epsilon", [2.0, 20.0])
def test_choices_follow_the_exponential_mechanism(epsilon):
    plan, y = three_candidates(epsilon)
    check_distribution(plan, y, drawn(plan, y, 4000))


def test_whole_selections_do_too():
    plan, y = three_candidates(20.0)
    counts = np.bincount([plan.select(y).index for _ in range(2000)], minlength=3)
    check_distribution(plan, y, counts)


def test_the_study_tells_the_same_probabilities():
    plan, y = three_candidates(20.0)
    check_distribution(plan, y, np.rint(plan.custodian_probabilities(y).probabilities * 1e6))


def test_planted_noise_of_half_the_size_is_caught(monkeypatch):
    """OpenDP's own map says so before y is looked at; past it, the choices tell."""
    plan, y = three_candidates(20.0)
    monkeypatch.setattr(Scores, "scale", property(lambda s: s.sensitivity / s.epsilon))
    with pytest.raises(AssertionError, match="noise is too small for epsilon"):
        room.choose(plan.scores, object(), "error")
    monkeypatch.undo()
    halved, _ = three_candidates(40.0)
    assert fails(check_distribution, plan, y, drawn(halved, y, 4000))


def test_what_opendp_charges_is_what_the_certificate_claims():
    """rho = epsilon^2 / 8 at the declared sensitivity, to rounding."""
    for epsilon in (1e-3, 0.3, 1.0, 7.0, 200.0):
        plan, _ = three_candidates(epsilon)
        rho = room.noisy_minimum(plan.scores).map(plan.scores.sensitivity)
        assert rho <= epsilon**2 / 8 * (1 + 1e-9)
        assert rho >= epsilon**2 / 8 * (1 - 1e-9)
        assert plan.cost == cloakgp.accounting.Exponential(epsilon)


def test_seeded_choices_are_the_same_distribution(seeded):
    plan, y = three_candidates(20.0)
    with seeded(0):
        mechanism = room.noisy_minimum(plan.scores)
        exact_scores = room._exact_scores(plan.scores, y, "error")
        counts = np.bincount([int(mechanism(exact_scores)) for _ in range(10_000)], minlength=3)
    check_distribution(plan, y, counts)


def epsilon_lower_limit(first, second):
    """From counts of one choice under two data sets: below log(p / q) with confidence 1 - 2e-9."""
    (often, n), (rarely, m) = first, second
    low = stats.beta.ppf(1e-9, often, n - often + 1)
    high = stats.beta.isf(1e-9, rarely + 1, m - rarely)
    return float(np.log(low / high))


def opposite_candidates(epsilon):
    """Two candidates, one of which gets better by the sensitivity where the other gets worse.

    Row 0 moves the residuals of the first from 0.2 to the clip at 0.5, of the second from -0.5 to -0.2. A
    public cost makes the first the rarer choice, for which the ratio of probabilities is largest.
    """
    scores = tight(
        "squared",
        weights=[[np.full((5, 1), -0.3)]] * 2,
        folds=(Fold(np.array([0]), np.arange(1, 6)),),
        means=[0.0, 0.7 / 1.3],
        costs=[0.28, 0.0],
        epsilon=epsilon,
    )
    return scores, worst_for(scores)


def attack(scores, pair, n=8000):
    """The limit that n choices on each of two neighbours prove."""
    shares, row, other = pair
    counts = []
    for y in (shares, [*shares[:row], other, *shares[row + 1 :]]):
        mechanism, values = room.noisy_minimum(scores), room._exact_scores(scores, np.array(y), "error")
        counts.append((sum(mechanism(values) == 0 for _ in range(n)), n))
    return epsilon_lower_limit(*counts)


def test_the_best_attack_on_the_worst_neighbours_stays_below_the_promise():
    """And comes near it: the attack works, and the noise is not far larger than needed."""
    scores, pair = opposite_candidates(epsilon=3.0)
    require(largest_move(scores, *pair) > 0.99, "not the worst neighbours")
    assert 1.8 < attack(scores, pair) <= 3.0


def test_planted_noise_of_half_the_size_lets_the_attack_past_the_promise():
    """The same attack on scores whose noise is scaled to twice the epsilon."""
    scores, pair = opposite_candidates(epsilon=6.0)
    assert attack(scores, pair) > 3.0


# ------------------------------------------------------------------------------------ control flow


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_instructions_run_whatever_y_holds(loss):
    """Clipped or not, missing or not: the same instructions, and no warning."""
    gps = cloakgp.grid(kernel=EQ, lengthscale=[0.1, 0.5], noise=0.1, bounds=(0.0, 1.0))
    plan = cloakgp.plan_selection(gps, np.linspace(0, 1, 6), epsilon=1.0, folds=3, loss=loss)
    datasets = neighbours(0.0, 1.0, missing=True)
    plan.select(datasets[0], missing="midpoint")  # imports
    traces = [trace(room.choose, plan.scores, y, "midpoint") for y in datasets]
    require(len(traces[0]) > 500, "nothing was traced")
    for other in traces[1:]:
        assert other == traces[0], "what is executed depends on y"
