"""For each reason to refuse a forged file that it alone catches: none is there for nothing.

Some of these are written by other libraries: one that forgets its floor of the noise, one whose windows are
about y. All else in these files is as it should be.
"""

from __future__ import annotations

import math
from dataclasses import replace

import forging
import numpy as np
import pytest
from forging import X, Y, certificate, done, entry, part, rewrite, scale_noise, settle, words

from cloakgp import VerificationError, verify
from cloakgp.measure import measurement, statistics
from cloakgp.posterior import staging
from cloakgp.release import planner, stages
from cloakgp.release.plan import release_of
from cloakgp.release.readouts import offset
from cloakgp.verification import reasons
from cloakgp.verification.reasons import Reason


def plan_of(manifest, arrays):
    return release_of(manifest, arrays).plan


def bound_and_numbers(manifest, arrays):
    """Predictions with the bound of a function, and every number that follows from it."""
    own = manifest["certificate"]["parts"][0]
    most = (2 ** own["matrix_bits"] + math.isqrt(len(arrays["z_0"])) + 1) * 2 ** own["y_bits"]
    scale_noise(manifest, most / own["sensitivity_steps"])  # a little more, for the longer columns
    settle(manifest, bound="paper", sensitivity_steps=most)


def weights_and_objective(manifest, arrays):
    arrays["weights"] *= 2
    own = manifest["certificate"]["parts"][0]
    settle(manifest, **{name: own[name] * 2 for name in ("objective", "lower_bound")})


def one_step_less(manifest, arrays):
    settle(manifest, sensitivity_steps=manifest["stages"][0]["sensitivity_steps"] - 1)


def new_offset(manifest, arrays):
    arrays["offset_0"] = np.zeros_like(arrays["offset_0"])
    plan = plan_of(manifest, arrays)
    arrays["offset_0"] = offset(plan.gp, plan.measurement, plan.reconstruction)


def shrunk_a_little_more(manifest, arrays):
    arrays["reconstruction_0"] *= 1 - 1e-4
    new_offset(manifest, arrays)


def a_direction_turned(manifest, arrays):
    arrays["z_0"][0] *= -1
    arrays["matrix_0"][0] *= -1
    arrays["reconstruction_0"][:, 0] *= -1


def lower_bound(factor):
    return lambda m, a: settle(m, lower_bound=m["certificate"]["parts"][0]["objective"] * factor)


def another_digest(manifest, arrays):
    manifest["inputs_sha256"] = manifest["inputs_sha256"][::-1]


def other_weights(manifest, arrays):
    manifest["learned"][0]["weight"] += 1e-4
    manifest["learned"][1]["weight"] -= 1e-4


def a_little_more(manifest, arrays):
    """Of the last stage of whole rows, by so little that nothing else shows it."""
    arrays["counts_6"][np.argmax(arrays["counts_6"])] *= 1 + 3e-6


# Files that another library wrote


def a_row_in_another_cell(path):
    """Of a model that is known, so that nothing else is made of the counts."""
    forging.in_cells(forging.OF_CLASSES).release(forging.LABELS).save(path)
    assert verify(path).complete

    def moved(manifest, arrays):
        counts = arrays["counts"]
        counts[np.argmax(counts)] -= 1
        counts[np.argmin(counts)] += 1

    rewrite(path, moved)


def coarse_lattice(path):
    """A plan of a library that has forgotten the floor of the noise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "SIGMA_FLOOR", 1)
        for name, value in {"Y_BITS": 8, "MATRIX_BITS": 14}.items():
            patch.setattr(statistics, name, value)
        forging.design("mse")().release(Y).save(path)


def generous_reach(path):
    """A function whose reach is half as long again as its bound says."""
    right = planner._measured

    def longer(*arguments):
        *rest, reach, jitter = right(*arguments)
        return *rest, reach * 1.5, jitter

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "_measured", longer)
        forging.function(bound="exact")().release(Y).save(path)
    rewrite(path, lower_bound(1))


def longer_than_promised(path):
    """One row: the exact bound is the paper's, and its column may be two units longer, not three."""
    plan = forging.SETTING.plan_function(X[:1], bound="paper", **forging.PROMISE)
    plan.release(Y[:1]).save(path)
    bits = plan.certificate.matrix_bits
    rewrite(path, entry("matrix_0", (0, 0), lambda v: 2**bits + 3))


def staged(path, **patches):
    """A release in stages, by a library with these parts changed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, (where, value) in patches.items():
            patch.setattr(where, name, value)
        forging.save_staged(forging.PLANS["staged"](), path)


def stops_before(number):
    """A library that plans no more stages than so many."""
    right = stages.Session.next_stage

    def next_stage(session, asked):
        if asked >= number:
            raise ValueError("no more")
        return right(session, asked)

    return stages.Session, next_stage


def shares_above_all(path):
    """Two of four stages, so that what was spent is within the promise; the third would not have been."""
    staged(path, next_stage=stops_before(2))
    assert verify(path).complete
    rewrite(path, lambda manifest, arrays: manifest["certificate"]["shares"].__setitem__(2, 0.9))


def less_noise_in_a_stage(path):
    """The second of two stages takes half as much again for its noise level; the third, left out, pays."""
    right = stages.Rule.shares_of

    def shares_of(rule, number, *given):
        share, level = right(rule, number, *given)
        return share, level * (1.5 if number == 1 else 1)

    staged(path, shares_of=(stages.Rule, shares_of), next_stage=stops_before(2))


def windows_about_y(path):
    """The worst of all: who looks at the windows knows y, whatever the noise."""
    centred = np.clip(Y, -1.0, 4.0)

    def windows(session):
        lower = np.clip(centred - 0.05, -1.0, 3.9)
        return lower, lower + 0.1

    staged(path, windows=(stages.Session, windows))
    arrays = forging.opened(path)[1]
    middle = (arrays["lower_1"] + arrays["upper_1"]) / 2
    assert np.abs(middle - np.clip(Y, -0.95, 3.95)).max() < 1e-9  # y itself, to be read off


def another_line(path):
    right = stages.Session.line

    def line(*given):
        found = right(*given)
        return replace(found, slope=found.slope * 0.99)

    staged(path, line=(stages.Session, line))


def other_distances(path):
    right = stages.Session.distances

    def distances(session):
        centre, limit = right(session)
        return centre, limit * 0.9

    staged(path, distances=(stages.Session, distances))


def bins_about_y(path):
    """A little above the outcomes whose place is even: whoever looks at an edge knows."""
    right = stages.Session.bins

    def bins(session):
        found = right(session)
        return replace(
            found,
            edges=np.clip(found.edges + 1000 * (np.rint(Y * 100)[:, None] % 2 == 0), 0, 2**24).astype(
                np.int64
            ),
        )

    staged(path, bins=(stages.Session, bins))


def outside_of_a_part_that_no_rule_knows(path):
    """How much of its share a stage spends outside could tell of y, if it was any number."""
    staged(path, OUTSIDE=(staging, (0.1,)))


ALONE = {  # in which kind of file, and what is changed; or who writes it
    Reason.INSECURE: ("mse", certificate(insecure=True)),
    Reason.UNIT: ("mse", done(words(unit="one household"), certificate(unit="one household"))),
    Reason.NEIGHBOURS: ("mse", certificate(neighbours="nothing is changed")),
    Reason.SPEND: ("mse", certificate(spend="release as often as you like")),
    Reason.BOUND: ("mse", bound_and_numbers),
    Reason.RANGE: ("mse", part(iterations=2**62)),
    Reason.DIGITS: ("mse", part(bias=lambda v: v * (1 + 1e-12))),
    Reason.SENSITIVITY: ("mse", one_step_less),
    Reason.ABOVE_BOUND: longer_than_promised,
    Reason.NOISE_FLOOR: coarse_lattice,
    Reason.OVERFLOW: ("mse", entry("z_0", 0, lambda v: 2**62)),
    Reason.MU: ("after another", words("given", 0, mu=lambda v: v * 0.9)),
    Reason.DELTA: ("after another", done(words("given", 0, delta=0.009), certificate(before=[[1.0, 0.009]]))),
    Reason.CALIBRATION: ("mse", certificate(epsilon=1.001)),
    Reason.FIGURE: ("mse", part(noise_scale=lambda v: v * (1 + 1e-15))),
    Reason.BELOW_BOUND: ("mse", lower_bound(2)),
    Reason.WEIGHTS: ("mse", weights_and_objective),
    Reason.PEOPLE: ("people", words("people", sha256=lambda v: v[::-1])),
    Reason.CELLS: a_row_in_another_cell,
    Reason.PREDICTIONS: ("mse", part(bias=1e9)),
    Reason.UNBIASED: ("mse", certificate(unbiased=False)),
    Reason.DENOISING: ("posterior", shrunk_a_little_more),
    Reason.OFFSET: ("mse", entry("offset_0", 0, lambda v: np.nextafter(v, 9))),
    Reason.STD: ("mse", entry("gp_std_0", 0, lambda v: float(f"{v * 1.01:.3e}"))),
    Reason.JITTER: ("mse", part(jitter=3.14)),
    Reason.REACH: generous_reach,
    Reason.SHAPE: ("function", a_direction_turned),
    Reason.LOWER_BOUND: ("function", lower_bound(0.5)),
    Reason.HIDDEN: ("hidden", part(bias=0.1)),
    Reason.DIGEST: ("inducing, cells", another_digest),
    Reason.SHARES: shares_above_all,
    Reason.SHARE: less_noise_in_a_stage,
    Reason.COUNTS: ("rows of a known model", a_little_more),
    Reason.WINDOWS: windows_about_y,
    Reason.LINE: another_line,
    Reason.DISTANCES: other_distances,
    Reason.OUTSIDE: outside_of_a_part_that_no_rule_knows,
    Reason.BINS: bins_about_y,
    Reason.LEARNED: ("staged", other_weights),
}
ELSEWHERE = {Reason.OTHER_INPUTS, Reason.OTHER_PEOPLE, Reason.MODEL}  # not for what is in a file


def test_every_reason_has_a_forgery_of_its_own():
    assert set(ALONE) | ELSEWHERE == set(Reason)


@pytest.mark.parametrize("reason", ALONE, ids=lambda reason: reason.name)
def test_a_reason_is_the_only_catch_of_its_forgery(tmp_path, monkeypatch, reason):
    """With that one check taken out, the forged file would be verified."""
    made = ALONE[reason]
    if callable(made):
        path = tmp_path / "file"
        made(path)
    else:
        path = forging.honest(made[0], tmp_path)
        verify(path)
        rewrite(path, made[1])
    with pytest.raises(VerificationError) as caught:
        verify(path)
    assert caught.value.reason == reason, str(caught.value)
    right = reasons.refuse
    monkeypatch.setattr(
        reasons, "refuse", lambda wrong, said, detail="": right(wrong and said != reason, said, detail)
    )
    verify(path)
