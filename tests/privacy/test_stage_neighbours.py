"""All stages of a release together move by no more than mu, whoever changes, and however many may.

A stage is chosen from the answers before it. So the choices are given, as public measurements that some
release made; for any choices, neighbours move all answers together by no more than the noise was made for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_helpers import fails, parts_of, require, seeded, small_staged_plan, squared_distance

from cloakgp import GP, AutoGP, Grid
from cloakgp.kernels import EQ, Constant
from cloakgp.model.outcome import outcome_named
from cloakgp.private import room, rows
from measured import exact

pytestmark = pytest.mark.usefixtures("few_models")  # privacy does not depend on how well models are learned

PROMISE = {"epsilon": 1.0, "delta": 0.01}
IDS = [0, 1, 0, 1, 2, 0]
LEVELS = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 5.0])  # the last row is alone in its level
CLASSES = ("a", "b", "c")
GRID = Grid({"a": (0.0, 1.0), "k": ["x", "y", "z"]}, cells=4)
PEOPLE, MOST = 4, 2

NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-3.0, 3.0) | st.sampled_from([0.0, 1.0])
LABELS = st.sampled_from([*CLASSES, "no class", None])
PLACES = st.tuples(NUMBERS, st.sampled_from(["x", "y", "z", "other", None]))


@dataclass(frozen=True, eq=False)
class Subject:
    """A plan, who has which of its six rows, and what an outcome may be."""

    make: Callable[[], Any]
    ids: Any = tuple(range(6))
    outcomes: Any = NUMBERS
    least: float = 0.8
    """Of mu squared: what the worst neighbours that are tried reach."""

    @cached_property
    def plan(self) -> Any:
        return self.make()

    @property
    def mu(self) -> float:
        return float(self.plan.certificate.mu)

    @property
    def classes(self) -> tuple[str, ...]:
        return CLASSES if self.outcomes is LABELS else ()

    def exact(self, part, y):
        y = np.array(y, dtype=object if self.classes else None)
        return exact(part, y, outcome=outcome_named("real", self.classes))

    def released(self, seed):
        random = np.random.default_rng(seed)
        return self.plan.release(
            np.resize(CLASSES, 6) if self.classes else random.uniform(*self.plan.rule.bounds, 6)
        )

    @st.composite
    @staticmethod
    def neighbours(draw, self):
        y = draw(st.lists(self.outcomes, min_size=6, max_size=6))
        who = draw(st.sampled_from(sorted(set(self.ids))))
        return y, [draw(self.outcomes) if one == who else v for one, v in zip(self.ids, y, strict=True)]

    def extremes(self):
        """Each unit's outcomes from one end to the other, others in the middle."""
        low, high = ("a", "b") if self.classes else (-1e9, 1e9)
        for who in set(self.ids):
            for others in CLASSES if self.classes else (np.mean(self.plan.rule.bounds),):
                yield tuple([end if one == who else others for one in self.ids] for end in (low, high))


class WholeRows(Subject):
    """The same where inputs are private: a table is each person's list of rows."""

    @property
    def most(self):
        return self.plan.rule.population.max_rows

    def table(self, lists):
        a, k, y = zip(*(row for theirs in lists for row in theirs), strict=True)
        people = [who for who, theirs in enumerate(lists) for _ in theirs]
        X = {"a": np.array(a), "k": np.array(k, dtype=object)}
        y = np.array(y, dtype=object if self.classes else float)
        return X, y, None if self.most is None else people

    def exact(self, part, lists):
        return exact(part, room.PrivateRows(*self.table(lists)), outcome=outcome_named("real", self.classes))

    def released(self, seed):
        random = np.random.default_rng(seed)
        values = np.resize(CLASSES, 6) if self.classes else random.uniform(size=6)
        lists = [[(random.uniform(-0.2, 1.2), random.choice(["x", "y", "z"]), v)] for v in values]
        X, y, people = self.table(lists[: self.plan.rule.population.size])
        return self.plan.release(X, y, people=people)

    @st.composite
    @staticmethod
    def neighbours(draw, self):
        one = st.tuples(PLACES, self.outcomes).map(lambda row: (*row[0], row[1]))
        size = self.plan.rule.population.size
        theirs = st.lists(one, min_size=1, max_size=1 if self.most is None else MOST + 2)
        lists = draw(st.lists(theirs, min_size=size, max_size=size))
        who = draw(st.integers(0, size - 1))
        return lists, [*lists[:who], draw(theirs), *lists[who + 1 :]]

    def extremes(self):
        """All of somebody's rows from each cell to each other, from one end of the window to the other."""
        places = [(a, k) for a in (0.1, 0.4, 0.6, 0.9) for k in ("x", "y", "z")]
        low, high = ("a", "b") if self.classes else (-1e9, 1e9)
        others = [[(0.5, "x", "c" if self.classes else 0.5)]] * (self.plan.rule.population.size - 1)
        for one in places:
            for another in places:
                yield tuple(
                    [[(*place, value)] * (self.most or 1), *others]
                    for place, value in ((one, low), (another, high))
                )


def learned(X=None, **options):
    model = {name: options.pop(name) for name in ("categories", "classes") if name in options}
    model |= {} if "classes" in model else {"bounds": (0.0, 1.0)}
    X = np.linspace(0.0, 1.0, 6) if X is None else X
    return AutoGP(**model, stages=3).plan(X, X_star=X[[0, -1]], **PROMISE, **options)


def whole_rows(max_rows=None, classes=()):
    model = AutoGP(classes=classes, stages=2) if classes else AutoGP((0.0, 1.0), stages=3)
    n = 6 if max_rows is None else PEOPLE
    return model.plan_rows(GRID, n, X_star=[[0.2, 0], [0.8, 2]], max_rows=max_rows, **PROMISE)


KNOWN = GP(EQ(0.5) + Constant(1.0), classes=CLASSES)
SUBJECTS = {
    "distinct rows": Subject(small_staged_plan),
    "equal rows": Subject(lambda: small_staged_plan(repeats=3)),
    "other bounds": Subject(lambda: small_staged_plan(bounds=(-40.0, 60.0), stages=4)),
    "large epsilon": Subject(lambda: small_staged_plan(epsilon=8.0, stages=2)),
    "small epsilon": Subject(lambda: small_staged_plan(epsilon=0.02, stages=5)),
    "a number and levels": Subject(
        lambda: learned(np.column_stack([np.linspace(0, 1, 6), LEVELS]), categories=[1])
    ),
    "levels alone": Subject(lambda: learned(LEVELS[:, None], categories=[0])),
    "people": Subject(lambda: learned(people=IDS), IDS, least=0.5),
    "classes": Subject(lambda: learned(classes=CLASSES), outcomes=LABELS),
    "classes of people": Subject(lambda: learned(classes=CLASSES, people=IDS), IDS, LABELS, least=0.2),
    "classes of a known model": Subject(
        lambda: KNOWN.plan(np.linspace(0, 1, 6), X_star=[[0.2], [0.7]], **PROMISE), outcomes=LABELS
    ),
    "whole rows": WholeRows(whole_rows, least=0.7),
    "whole rows of people": WholeRows(lambda: whole_rows(MOST), least=0.7),
    "whole rows with classes": WholeRows(lambda: whole_rows(classes=CLASSES), outcomes=LABELS, least=0.6),
    "whole rows of people with classes": WholeRows(
        lambda: whole_rows(MOST, CLASSES), outcomes=LABELS, least=0.6
    ),
}


@cache
def parts_for(name, seed=0):
    """What all stages measure, for answers that some outcomes and noise from a seed have given."""
    subject = SUBJECTS[name]
    with seeded(seed):
        release = subject.released(seed)
    require(len(release.stages) == subject.plan.stages, "a stage was left out")
    return parts_of(release)


def check_moves(subject, parts, mu, one, other):
    """Each part moves by at most its sensitivity, all together by at most mu, in exact fractions."""
    moved = Fraction(0)
    for part in parts:
        squared = squared_distance(subject.exact(part, one), subject.exact(part, other))
        assert squared <= part.sensitivity() ** 2, "a part moves further than it says"
        moved += Fraction(squared, part.sigma**2)
    assert moved <= Fraction(mu) ** 2, "all stages together move further than the promise allows"
    return moved


@pytest.mark.parametrize("name", SUBJECTS)
@given(data=st.data(), seed=st.integers(0, 2))
@settings(max_examples=15, deadline=None)
def test_neighbours_move_all_stages_together_by_no_more_than_mu(name, data, seed):
    """Whatever outcomes and inputs are: missing ones, ones outside of windows, more rows, or fewer."""
    subject = SUBJECTS[name]
    check_moves(subject, parts_for(name, seed), subject.mu, *data.draw(subject.neighbours(subject)))


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_neighbours_that_move_most_come_near_mu(name):
    """So that the test above is not passed by noise that is far too large. A tenth is for the noise level."""
    subject = SUBJECTS[name]
    moves = [check_moves(subject, parts_for(name), subject.mu, *pair) for pair in subject.extremes()]
    assert max(moves) > subject.least * subject.mu**2


@pytest.mark.parametrize("most", [1, 2, 3])
def test_which_rows_count_depends_on_ones_own_rows_alone(most):
    random = np.random.default_rng(most)
    labels, cells = random.integers(0, 6, 60), random.integers(0, 9, 60)
    kept = rows.evenly_kept(labels, cells, most)
    own = np.bincount(labels, minlength=6)
    assert np.array_equal(np.bincount(labels, kept, 6), np.minimum(own, most))
    for person in range(6):
        theirs = labels == person
        alone = rows.evenly_kept(np.zeros(own[person], dtype=np.intp), cells[theirs], most)
        assert np.array_equal(kept[theirs], alone)


# ---------------------------------------------------------------------------------- planted bugs


def test_planted_shares_that_add_up_to_more_than_the_promise_are_caught():
    """Bugs in a single measurement: ``tests/contracts/test_measurement_contract.py``."""
    subject, parts = SUBJECTS["distinct rows"], parts_for("distinct rows")
    assert any(fails(check_moves, subject, 2 * parts, subject.mu, *pair) for pair in subject.extremes())
