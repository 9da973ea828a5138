"""No pair of neighbours moves a score further than declared; the paper's bound, in its place, is passed.

Lemma 11 of ``docs/proofs.md``, hunted for counter-examples: random designs, both losses, folds of
every kind, outcomes at the ends of their bounds and just where the clip begins. Then the same hunt with
bugs planted, the paper's own sensitivity among them, to show that it would find them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_helpers import fails, require, seeded
from scipy import stats
from sklearn.model_selection import KFold, ShuffleSplit
from test_control_flow import neighbours, trace

import cloakgp
from cloakgp.data.people import as_people
from cloakgp.kernels import EQ, Matern12
from cloakgp.measure import cross_validation as scoring
from cloakgp.measure.cross_validation import Scores, as_folds, make_scores
from cloakgp.private import room
from measured import residuals

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
def designs(draw):
    """Scores with weights that no model need have, for rows or people: the lemma asks nothing of them."""
    n_rows = draw(st.integers(3, 8))
    seed = draw(st.integers(0, 2**20))
    folds = some_folds(draw(st.sampled_from(["k-fold", "monte carlo", "explicit"])), n_rows, seed)
    random = np.random.default_rng(seed)
    n_candidates = draw(st.integers(1, 3))
    size = draw(st.sampled_from([1e-7, 1e-3, 0.1, 1.0, 20.0]))
    each = [
        [size * random.normal(size=(len(fold.test), len(fold.train))) for fold in folds]
        for _ in range(n_candidates)
    ]
    width = draw(st.sampled_from([1.0, 8.0, 1e-50, 3e40]))
    ids = draw(st.none() | st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    return make_scores(
        [residuals(weights, folds, n_rows) for weights in each],
        means=[width * draw(st.sampled_from([-1e30, -0.3, 0.0, 0.5, 1.0, 7.0])) for _ in each],
        costs=[width * random.uniform(0, 3) for _ in each],
        bounds=(0.0, width),
        loss=draw(st.sampled_from(LOSSES)),
        clip=width * draw(st.sampled_from([1e-3, 0.1, 0.25, 0.5, 1.0, 4.0])),
        epsilon=1.0,
        people=None if ids is None else as_people(ids, n_rows),
    )


def in_bounds(scores):
    """Outcomes for a design: at the ends, in the middle, where the clip begins, and anywhere."""
    edge = scores.clip / 2.0 ** (scores.statistic.y_bits + scores.matrix_bits)
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
        return room._exact_scores(scores, scores.statistic.upper * np.asarray(shares), "error").tolist()


_checked = [None]


def largest_move(scores, shares, others):
    """How far the scores move between two data sets, in units of the declared sensitivity."""
    pairs = zip(exact(scores, shares), exact(scores, others), strict=True)
    return max(abs(a - b) for a, b in pairs) / scores.sensitivity


def check_neighbours(scores, shares, others):
    assert largest_move(scores, shares, others) <= 1, "a score moves further than its sensitivity"


def replaced(shares, row, other):
    """The same with another entry."""
    return [*shares[:row], other, *shares[row + 1 :]]


def hunt(scores, folds):
    """The largest move that simple attacks find, in units of the declared sensitivity."""
    edge = min(1.0, scores.clip / 2.0 ** (scores.statistic.y_bits + scores.matrix_bits))
    worst = 0.0
    for train, test in folds:
        for tested, trained in [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (edge, 0.0), (1 - edge, 1.0)]:
            shares = np.full(scores.n_rows, 0.0)
            shares[train], shares[test] = trained, tested
            for row in (train[0], test[0]):
                for start, end in [(0.0, 1.0), (0.0, edge)]:
                    shares[row] = start
                    worst = max(worst, largest_move(scores, shares, replaced(shares, int(row), end)))
    return worst


# ------------------------------------------------------------------------------------------ tests


@settings(max_examples=600)
@given(st.data(), designs())
def test_no_neighbours_move_a_score_further_than_declared(data, scores):
    """Nor is the choice between them less private than promised, by the probabilities themselves."""
    shares = np.array(data.draw(in_bounds(scores)))
    whose = np.arange(scores.n_rows) if scores.people is None else scores.people.labels
    mine = whose == data.draw(st.integers(0, int(whose.max())))
    other = data.draw(st.sampled_from([0.0, 1.0, 0.5])) if data.draw(st.booleans()) else 1 - shares
    others = np.where(mine, other, shares)
    check_neighbours(scores, shares, others)
    moved = np.abs(log_probabilities(scores, shares) - log_probabilities(scores, others))
    assert moved.max() <= scores.epsilon * (1 + 1e-9)


def log_probabilities(scores, shares):
    log_odds = -np.array(exact(scores, shares)) / scores.scale
    return log_odds - np.logaddexp.reduce(log_odds)


def tight(loss="squared", weight=-0.3, n_tested=5, clip=0.5, mine=1, **changes):
    """A design whose sensitivity is reached: one's rows move all others in a fold, and are tested in another.

    `mine` rows are one person's, if they are several: then the promise is to people.
    """
    own, rows = np.arange(mine), np.arange(mine, n_tested + mine)
    weights = np.full((n_tested, mine), weight / mine), np.zeros((mine, n_tested))
    arguments = {
        "residuals": [residuals(weights, ((own, rows), (rows, own)), n_tested + mine)],
        "means": [0.0],
        "costs": [0.0],
        "bounds": (0.0, 1.0),
        "loss": loss,
        "clip": clip,
        "epsilon": 1.0,
        "people": None if mine == 1 else as_people([-1] * mine + list(range(n_tested)), n_tested + mine),
    }
    return make_scores(**{**arguments, **changes})


def worst_for(scores, weight=-0.3, clip=0.5, mine=1):
    """Neighbours that move a tight design by its sensitivity: each residual ends where it is clipped."""
    rest = [clip + weight if -weight < clip else 0.0] * (scores.n_rows - mine)
    return [0.0] * mine + rest, [1.0] * mine + rest


@pytest.mark.parametrize("mine", [1, 2])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("weight", "clip"), [(-0.3, 0.5), (-0.7, 0.5), (-0.002, 0.25), (-0.25, 1.0)])
def test_the_sensitivity_is_reached(loss, weight, clip, mine):
    """So nothing smaller would do, and a bug that made it smaller would show."""
    scores = tight(loss, weight, clip=clip, mine=mine)
    pair = worst_for(scores, weight, clip, mine)
    check_neighbours(scores, *pair)
    assert largest_move(scores, *pair) > 1 - 1e-4


@pytest.mark.parametrize("loss", LOSSES)
def test_models_on_many_folds(loss):
    """The same hunt on real models, K folds and Monte Carlo folds."""
    X = np.linspace(0.0, 1.0, 30) ** 2
    gps = cloakgp.candidates(kernel=EQ, lengthscale=[0.05, 0.3], noise=[1e-3, 0.1], bounds=(0.0, 1.0))
    for folds in (4, ShuffleSplit(20, test_size=0.3, random_state=0), KFold(3)):
        plan = cloakgp.plan_selection(gps, X, epsilon=1.0, folds=folds, loss=loss)
        assert 0.01 < hunt(plan.scores, plan.folds) <= 1


# ------------------------------------------------------------------------------- the paper's bound


def with_the_papers_bound(plan):
    """9 d^2 for the row where it is tested, and d^2 max_j |c_jk|^2 in the K - 1 other folds."""
    scores, squared = plan.scores, []
    ends = np.cumsum([len(test) for _, test in plan.folds])
    for matrix in scores.matrices:
        folds = np.split(np.ldexp(matrix.astype(float), -scores.matrix_bits), ends[:-1])
        each = zip(folds, plan.folds, strict=True)
        squared.append(sorted((C[:, train] ** 2).sum(axis=0).max() for C, (train, _) in each))
    width = scores.statistic.upper - scores.statistic.lower
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
    paper = with_the_papers_bound(clustered_plan())
    shares = [0.0] + [1.0] * 9 + [0.0] * 300
    pair = shares, replaced(shares, 0, 1.0)
    ratio = largest_move(paper, *pair)
    print(f"the scores move by {ratio:.2f} times the paper's bound")
    assert 4.5 < ratio < 5.0
    assert largest_move(clustered_plan().scores, *pair) <= 1


# ----------------------------------------------------------------------------------- planted bugs


_right_effect, _right_change = Scores._largest_effect, scoring._loss_change

BUGS = {  # of how many rows, whose is planted, and what
    "the paper's square": (
        *(1, "_loss_change"),
        lambda s, t, loss: np.minimum(s, t) ** (2 if loss == "squared" else 1),
    ),
    "the derivative at the clip's half": (
        *(1, "_loss_change"),
        lambda s, t, loss: np.minimum(s, t) * (t if loss == "squared" else 1),
    ),
    "training forgotten": (
        *(1, "_largest_effect"),
        lambda scores, R: _right_effect(scores, np.where(2**scores.matrix_bits == R, R, 0)),
    ),
    "a fold forgotten": (
        *(2, "_largest_effect"),
        lambda scores, R: _right_effect(scores, R[:5]),
    ),
    "one row of a person": (
        *(2, "_largest_effect"),
        lambda scores, R: _right_effect(replace(scores, people=None), R),
    ),
    "half of it": (*(1, "_largest_effect"), lambda *given: _right_effect(*given) // 2),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_sensitivities_are_caught(monkeypatch, bug):
    """By the neighbours that a right sensitivity just covers."""
    mine, name, planted = BUGS[bug]
    check_neighbours(tight(mine=mine), *worst_for(tight(mine=mine), mine=mine))
    monkeypatch.setattr(Scores if name == "_largest_effect" else scoring, name, planted)
    scores = tight(mine=mine)
    assert fails(check_neighbours, scores, *worst_for(scores, mine=mine))


def test_planted_sensitivity_of_the_weights_before_rounding_is_caught(monkeypatch, no_check):
    """Weights so small that rounding makes them larger: the integers that are used decide."""
    weight = -1.6 * 2.0**-scoring.MATRIX_BITS  # becomes 2 steps
    scores = tight("absolute", weight, n_tested=500, clip=1e-3)
    before = np.ldexp(1.6 * 500, scores.statistic.y_bits) + scores.clip
    planted = replace(scores, sensitivity=int(before * 2.0**-scores.shift) + 1)
    pair = [0.0] + [0.5e-3] * 500, [1.0] + [0.5e-3] * 500
    check_neighbours(scores, *pair)
    assert fails(check_neighbours, planted, *pair)


def test_planted_smaller_sensitivity_is_refused_before_y_is_looked_at():
    """The private room works the sensitivity out again from the integers, and of whom they are."""

    class Unreadable:
        def __array__(self, *_, **__):
            pytest.fail("y was read")

    for right in (tight(), tight(mine=2)):
        planted = {
            "further than the declared sensitivity": {"sensitivity": right.sensitivity * 999 // 1000},
            "people are not those": {"people": as_people([1, 1], 2)},
        }
        for why, changes in planted.items():
            for door in (room.choose, room.custodian_scores):
                with pytest.raises(AssertionError, match=why):
                    door(replace(right, **changes), Unreadable(), "error")


@pytest.mark.parametrize(("effect", "shift"), [(0, 3), (7, 3), (8, 3), (9, 3), (1000, 0), (1001, 4)])
def test_planted_rounding_of_scores_is_caught(monkeypatch, effect, shift):
    """Floors of sums that differ by at most D differ by at most D >> c, and one more."""
    monkeypatch.setattr(Scores, "_largest_effect", lambda *_: effect)
    found = tight().least_sensitivity(shift)
    moves = [((a + effect) >> shift) - (a >> shift) for a in range(64)]
    assert max(moves) <= found
    if effect % 2**shift:
        assert max(moves) > found - 1


# ------------------------------------------------------------------------------------ the sampler


def three_candidates(epsilon=2.0):
    """A small plan whose candidates differ enough that all are chosen now and then."""
    X = np.linspace(0.0, 1.0, 12)
    gps = cloakgp.candidates(kernel=Matern12, lengthscale=[0.02, 0.3, 50.0], noise=0.05, bounds=(0.0, 1.0))
    return cloakgp.plan_selection(gps, X, epsilon=epsilon, folds=3), (np.arange(12) % 6 < 3).astype(float)


def check_distribution(plan, y, counts):
    """Counts are as the exponential mechanism's probabilities say (p-value above 1e-9)."""
    scores = np.array(room.custodian_scores(plan.scores, y, "error"), dtype=float)
    odds = np.exp(-plan.scores.epsilon * (scores - scores.min()) / (2 * plan.scores.sensitivity))
    expected = odds / odds.sum() * counts.sum()
    require(expected.min() > 100, "too few draws")
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < stats.chi2.isf(1e-9, len(counts) - 1), "not the exponential mechanism's distribution"


def drawn(plan, y, n):
    """Counts of n draws from OpenDP, by the private room's own functions."""
    mechanism = room.noisy_minimum(plan.scores)
    exact_scores = room._exact_scores(plan.scores, y, "error")
    return np.bincount([mechanism(exact_scores) for _ in range(n)], minlength=3)


def by_whole_selections(plan, y, n):
    return np.bincount([plan.select(y).index for _ in range(n // 2)], minlength=3)


def by_a_seed(plan, y, n):
    with seeded(0):
        return drawn(plan, y, 2 * n)


def by_the_study(plan, y, n):
    return np.rint(plan.custodian_probabilities(y).probabilities * 1e6)


@pytest.mark.parametrize(
    ("epsilon", "how"),
    [(2.0, drawn), (20.0, drawn), (20.0, by_whole_selections), (20.0, by_a_seed), (20.0, by_the_study)],
)
def test_choices_follow_the_exponential_mechanism(epsilon, how):
    plan, y = three_candidates(epsilon)
    check_distribution(plan, y, how(plan, y, 4000))


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
        assert plan.cost == cloakgp.core.accounting.Exponential(epsilon)


# ------------------------------------------------------------------------------------ control flow


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_instructions_run_whatever_y_holds(loss):
    """Clipped or not, missing or not: the same instructions, and no warning."""
    gps = cloakgp.candidates(kernel=EQ, lengthscale=[0.1, 0.5], noise=0.1, bounds=(0.0, 1.0))
    plan = cloakgp.plan_selection(gps, np.linspace(0, 1, 6), epsilon=1.0, folds=3, loss=loss)
    datasets = neighbours(0.0, 1.0, missing=True)
    plan.select(datasets[0], missing="midpoint")  # imports
    traces = [trace(room.choose, plan.scores, y, "midpoint") for y in datasets]
    require(len(traces[0]) > 500, "nothing was traced")
    for other in traces[1:]:
        assert other == traces[0], "what is executed depends on y"
