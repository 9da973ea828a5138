"""Every mechanism that reads y is in the audit, and the audit attacks it as it should.

The auditor itself is not needed here: `make audit` runs it, and takes minutes.
"""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from audit.attack import Attack, attack_on, noise
from audit.mechanisms import MECHANISMS
from cloakgp.core import accounting
from cloakgp.designs import DESIGNS
from cloakgp.measure.cross_validation import LOSSES
from cloakgp.measure.measurement import NOISES
from cloakgp.posterior import staging
from cloakgp.private import room
from cloakgp.release.planner import BOUNDS

NO_MECHANISM = {  # public functions of the private room whose answer is not for release
    "custodian_scores": "for the custodian's eyes",
    "custodian_view": "for the custodian's eyes",
    "private_dask_column": "says where y is, and is given as y",
}
every_mechanism = pytest.mark.parametrize("name", MECHANISMS)


@cache
def plans():
    return [attack_on(name).mechanism.plan for name in MECHANISMS]


def doors(module):
    """Public functions that are written in a module."""
    functions = inspect.getmembers(module, inspect.isfunction)
    return {name for name, value in functions if value.__module__ == module.__name__ and name[0] != "_"}


def passed(name):
    """The doors of the private room that a mechanism's release goes through."""
    attack = attack_on(name)
    with ExitStack() as stack:
        spies = {
            door: stack.enter_context(mock.patch.object(room, door, wraps=getattr(room, door)))
            for door in doors(room)
        }
        attack.mechanism.release(attack.pair[0])
    return {door for door, spy in spies.items() if spy.called}


def check_every_door(names):
    reached = set().union(*(passed(name) for name in names))
    assert reached == doors(room) - set(NO_MECHANISM), "add a mechanism to audit/mechanisms.py"


def test_every_door_of_the_private_room_is_audited():
    check_every_door(MECHANISMS)


def test_a_door_without_a_mechanism_is_missed(monkeypatch):
    with pytest.raises(AssertionError, match=r"audit/mechanisms\.py"):
        check_every_door(name for name in MECHANISMS if not name.startswith("selection"))

    def measure_more(y):
        return y

    measure_more.__module__ = room.__name__
    monkeypatch.setattr(room, "measure_more", measure_more, raising=False)
    with pytest.raises(AssertionError, match=r"audit/mechanisms\.py"):
        check_every_door(MECHANISMS)


def test_every_design_bound_noise_and_loss_is_audited():
    certificates = [plan.certificate for plan in plans()]
    for field, closed_set in {
        "design": {*DESIGNS, "function", "staged", "bins"},
        "bound": set(BOUNDS),
        "loss": set(LOSSES),
    }.items():
        assert {getattr(c, field) for c in certificates if hasattr(c, field)} == closed_set
    assert {plan.measurement.noise for plan in plans() if hasattr(plan, "measurement")} == set(NOISES)


def test_every_kind_of_measurement_is_audited():
    """With rows merged, in cells, and each by itself."""
    found = [plan for plan in plans() if hasattr(plan, "measurement")]
    assert {plan.measurement.groups is None for plan in found} == {True, False}
    assert {plan.rule.cells is None for plan in found if hasattr(plan, "rule")} == {True, False}


def test_the_page_shows_every_mechanism():
    page = (Path(__file__).resolve().parents[1] / "docs" / "audit.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.endswith("| yes |")]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == list(MECHANISMS)


def check_noise_is_taken_away(attack):
    """All noise passes through what the planted bug changes: without it, releases do not vary."""
    mechanism = attack.mechanism
    times = 60 if isinstance(mechanism.plan.cost, accounting.Exponential) else 3
    with noise(0):
        released = {mechanism.numbers(mechanism.release(attack.pair[1])) for _ in range(times)}
    assert len(released) == 1


@every_mechanism
def test_the_planted_bug_reaches_all_noise(name):
    check_noise_is_taken_away(attack_on(name))


@every_mechanism
def test_noise_that_the_planted_bug_does_not_reach_is_noticed(name, monkeypatch):
    """A selection varies with probability 0.27 in each draw, so it is missed once in 10^8 times."""
    monkeypatch.setattr(f"{__name__}.noise", lambda times: ExitStack())
    with pytest.raises(AssertionError):
        check_noise_is_taken_away(attack_on(name))


@every_mechanism
def test_the_planted_bug_halves_the_scale(name):
    """As OpenDP is given it."""
    attack, scales = attack_on(name), []
    makers = ("make_gaussian", "make_laplace", "make_noisy_max")
    with ExitStack() as stack:
        from opendp import measurements

        for maker in makers:
            real = getattr(measurements, maker)

            def spy(*args, real=real, scale, **options):
                scales.append(scale)
                return real(*args, scale=scale, **options)

            stack.enter_context(mock.patch.object(measurements, maker, spy))
        # How a stage divides its share depends on the answers before it.
        always = {"return_value": staging.OUTSIDE[0]}
        stack.enter_context(mock.patch.object(staging.Stage, "outside_share", **always))
        for times in (1.0, 0.5):
            with noise(times):
                attack.mechanism.release(attack.pair[0])
    right, halved = np.split(np.array(scales), 2)
    assert halved == pytest.approx(right / 2, rel=1e-6)
    # Among them bins and, of outcomes, what windows cut off.
    assert len(right) == ((3 if rows(attack) else 5) if attack.mechanism.staged else 1)


def rows(attack):
    """Whether inputs are attacked, too."""
    return isinstance(attack.pair[0], room.PrivateRows)


def units(data):
    """What belongs to each who is protected: an outcome, a whole row, or a person's rows."""
    if not isinstance(data, room.PrivateRows):
        return list(data)
    ids = range(len(data.y)) if data.people is None else data.people
    theirs = {one: [] for one in ids}
    for one, x, y in zip(ids, data.X, data.y, strict=True):
        theirs[one].append((x, y))
    return list(theirs.values())


def check_pair_is_worst(attack):
    """One row moves the release as far as the noise was made for: otherwise halved noise could be enough."""
    cost = attack.mechanism.plan.cost
    differing = [i for i, (a, b) in enumerate(zip(*map(units, attack.pair), strict=True)) if a != b]
    assert len(differing) == 1
    if isinstance(cost, accounting.Exponential):  # a rare choice comes near epsilon, none reaches it
        assert 0.8 * cost.epsilon < attack.strength <= cost.epsilon
    elif attack.mechanism.staged:  # no row moves windows and distances from end to end at once
        # Nor do two cells' columns point exactly the same way.
        assert (0.9 if rows(attack) else 0.95) * cost.mu < attack.strength <= cost.mu
    else:
        promised = cost.mu if isinstance(cost, accounting.Gaussian) else cost.epsilon
        assert attack.strength == pytest.approx(promised, rel=1e-5)


@every_mechanism
def test_the_neighbours_are_the_worst_there_are(name):
    check_pair_is_worst(attack_on(name))


def test_milder_neighbours_are_noticed():
    attack = attack_on("predictions, design mse")
    first, second = attack.pair
    milder = np.where(first == second, first, (first + second) / 2)
    with pytest.raises(AssertionError):
        check_pair_is_worst(Attack(attack.mechanism, (first, milder)))


@pytest.mark.parametrize(
    "name", ["predictions, design mse", "predictions, rows in cells", "bins, laplace noise"]
)
def test_outcomes_that_are_not_clipped_are_noticed(name, monkeypatch):
    """In a selection they would change nothing: losses are clipped as well."""

    def unclipped(s, y):
        shares = np.rint((y - s.lower) / (s.upper - s.lower) * 2**s.y_bits).astype(int)
        return shares[:, None], np.isfinite(y)

    monkeypatch.setattr(room, "integers_of", unclipped)
    with pytest.raises(AssertionError):
        check_pair_is_worst(attack_on(name))


@every_mechanism
def test_the_score_is_higher_for_the_second_neighbour(name):
    attack = attack_on(name)
    if isinstance(attack.mechanism.plan.cost, accounting.Exponential):
        likelier = [
            int(np.argmax(np.divide(*pair))) for pair in (attack.probabilities, attack.probabilities[::-1])
        ]
        first, second = attack.score(np.array([likelier]).T)
    else:
        first, second = attack.score(attack.exact)
    assert second > first
