"""Forged files with right digests: each names the reason it meets, and each reason alone catches a forgery.

What no check of an unsigned file can see is in ``docs/release-file.md``; ``test_single_changes.py`` holds
the verifier to that list.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import forging
import numpy as np
import pytest
from forging import (
    FUNCTIONS,
    PREDICTIONS,
    SHOWN,
    WITH_MATRIX,
    X,
    Y,
    added,
    array,
    certificate,
    entry,
    flipped,
    model,
    part,
    rewrite,
    scale_noise,
    scaled,
    settle,
    unit,
)

from cloakgp import GP, ReleaseFileError, SignatureError, VerificationError, verify
from cloakgp.files import reading
from cloakgp.kernels import EQ, Matern32
from cloakgp.measurements import lattice
from cloakgp.measurements.certificate import DIGITS, short
from cloakgp.measurements.lattice import exact_product
from cloakgp.measurements.recipes import bias
from cloakgp.measurements.unit import OUTCOME, PERSON
from cloakgp.model.inducing import SparseGP
from cloakgp.plans import function_planner, opening, out_of_core, stages
from cloakgp.plans.reconstruction import offset
from cloakgp.posterior import staging
from cloakgp.verification import reasons, recipe
from cloakgp.verification.reasons import Reason

EVERY = (*PREDICTIONS, *FUNCTIONS)
FILE = "release file"  # refused as no file of this schema


def longest_column(matrix):
    return int(np.argmax((matrix.astype(float) ** 2).sum(axis=0)))


def stretch_longest(manifest, arrays):
    arrays["matrix"][:, longest_column(arrays["matrix"])] *= 2


def hide(manifest, arrays):
    """X and the matrix taken out, and the bound said to be one that hides them."""
    del arrays["X"], arrays["matrix"]
    manifest["measurement"]["kind"] = "withheld"
    manifest["certificate"]["bound"] = "input-free"


def other_people(change):
    """Who has which rows changed, and their digest put right."""

    def edit(manifest, arrays):
        arrays["people"] = np.ascontiguousarray(change(arrays["people"]), dtype="<i8")
        manifest["people"]["sha256"] = hashlib.sha256(arrays["people"].tobytes()).hexdigest()

    return edit


def promised_to_rows(manifest, arrays):
    unit("one row")(manifest, arrays)
    manifest["certificate"]["neighbours"] = OUTCOME.neighbours


def promised_to_people(manifest, arrays):
    unit("one person")(manifest, arrays)
    manifest["certificate"]["neighbours"] = PERSON.neighbours


def nobody_named(manifest, arrays):
    del manifest["people"], arrays["people"]


def for_rows(manifest, arrays):
    """The noise that would do for one row: what a library writes that forgets to add up a person's."""
    c, matrix = manifest["certificate"], arrays["matrix"].astype(object)
    steps = math.isqrt(int((matrix**2).sum(axis=0).max()) * 4 ** c["y_bits"] - 1) + 1
    scale_noise(manifest, steps / c["sensitivity_steps"])
    settle(manifest, sensitivity_steps=steps)


LIES = {  # what is changed; the reason it must meet; in which kinds of file
    "epsilon a little lower": (certificate(epsilon=0.999), Reason.DELTA, EVERY),
    "epsilon a little higher": (certificate(epsilon=1.001), Reason.CALIBRATION, EVERY),
    "epsilon minute": (certificate(epsilon=1e-300), Reason.DELTA, EVERY),
    "epsilon 0": (certificate(epsilon=0.0), Reason.RANGE, EVERY),
    "epsilon negative": (certificate(epsilon=-1.0), Reason.RANGE, EVERY),
    "epsilon far out of range": (certificate(epsilon=1e200), Reason.RANGE, EVERY),
    "delta a little lower": (certificate(delta=0.00999), Reason.DELTA, EVERY),
    "delta a little higher": (certificate(delta=0.01001), Reason.CALIBRATION, EVERY),
    "delta minute": (certificate(delta=1e-320), Reason.RANGE, EVERY),
    "delta 1": (certificate(delta=1.0), Reason.RANGE, EVERY),
    "a lower bound of the outcome": (model(bounds=[-2.0, 4.0]), Reason.FIGURE, EVERY),
    "an upper bound of the outcome": (model(bounds=[-1.0, 4.1]), Reason.FIGURE, EVERY),
    "both bounds moved": (
        model(bounds=[0.0, 5.0]),
        Reason.OFFSET,
        ("mse", "max", "volume", "shared columns", "inducing", "recipe"),
    ),
    "bounds reversed": (model(bounds=[4.0, -1.0]), FILE, EVERY),
    "prior mean": (
        model(mean=0.9),
        Reason.OFFSET,
        ("mse", "max", "volume", "shared columns", "inducing", "recipe"),
    ),
    "kernel variance": (model(kernel=EQ(2.0, variance=1.6).to_spec()), Reason.PREDICTIONS, ("mse", "max")),
    "kernel of a posterior": (
        model(kernel=EQ(2.1, variance=1.5).to_spec()),
        Reason.DENOISING,
        ("posterior",),
    ),
    "kernel of a function": (model(kernel=Matern32(2.0).to_spec()), Reason.REACH, ("function", "paper")),
    "kernel of a hidden function": (model(kernel=EQ(2.1, variance=1.5).to_spec()), Reason.SHAPE, ("hidden",)),
    "kernel of a recipe": (model(kernel=EQ(2.1, variance=1.5).to_spec()), Reason.SENSITIVITY, ("recipe",)),
    "a kernel's custom name": (model(kernel={"kind": "Custom", "name": "y = 3.14"}), FILE, EVERY),
    "a kernel that needs more columns": (
        model(kernel=EQ(2.0, active_dims=[3]).to_spec()),
        Reason.MODEL,
        EVERY,
    ),
    "y_bits down": (certificate(y_bits=17), Reason.SENSITIVITY, WITH_MATRIX),
    "y_bits out of range": (certificate(y_bits=25), Reason.RANGE, EVERY),
    "matrix_bits out of range": (certificate(matrix_bits=31), Reason.RANGE, EVERY),
    "bits 1000000": (certificate(y_bits=1_000_000), Reason.RANGE, EVERY),
    "sigma up": (scaled("sigma", 2), Reason.MU, tuple(kind for kind in SHOWN if kind != "paper")),
    "sigma down": (scaled("sigma", 0.5), Reason.MU, EVERY),
    "sigma 0": (certificate(sigma=0), Reason.RANGE, EVERY),
    "sigma negative": (scaled("sigma", -1), Reason.RANGE, EVERY),
    "sigma immense": (certificate(sigma=10**400), FILE, EVERY),
    "mu up": (scaled("mu", 1 + 1e-15), Reason.MU, EVERY),
    "mu down": (scaled("mu", 1 - 1e-15), Reason.MU, EVERY),
    "sensitivity": (scaled("sensitivity", 1 + 1e-15), Reason.FIGURE, EVERY),
    "sensitivity off by one": (added("sensitivity_steps", -1), Reason.SENSITIVITY, WITH_MATRIX),
    "noise scale": (scaled("noise_scale", 1 + 1e-15), Reason.FIGURE, EVERY),
    "objective": (certificate(objective=123456.0), Reason.FIGURE, EVERY),
    "lower bound 0": (certificate(lower_bound=0.0), Reason.RANGE, EVERY),
    "lower bound, with low bits": (scaled("lower_bound", 1 - 1e-14), Reason.DIGITS, EVERY),
    "delta slack": (certificate(delta_slack=0.005), Reason.FIGURE, EVERY),
    "delta slack negative": (certificate(delta_slack=-1.0), Reason.RANGE, EVERY),
    "iterations as a message": (certificate(iterations=2**62), Reason.RANGE, EVERY),
    "jitter as a message": (certificate(jitter=3.14), Reason.JITTER, SHOWN),
    "status as a message": (certificate(status="y = 3.14, 2.72"), Reason.STATUS, EVERY),
    "n_rows": (added("n_rows", 1), FILE, WITH_MATRIX),
    "n_measurements": (added("n_measurements", 1), Reason.FIGURE, EVERY),
    "unit": (unit("one household"), Reason.UNIT, EVERY),
    "neighbours": (certificate(neighbours="nothing is changed"), Reason.NEIGHBOURS, EVERY),
    "spend": (certificate(spend="release as often as you like"), Reason.SPEND, EVERY),
    "calibration unknown": (certificate(calibration="magic"), Reason.CALIBRATION, EVERY),
    "calibration classic": (certificate(calibration="classic"), Reason.CALIBRATION, EVERY),
    "design unknown": (certificate(design="magic"), Reason.DESIGN, EVERY),
    "a function's design": (certificate(design="function"), Reason.DESIGN, PREDICTIONS),
    "a design of predictions": (certificate(design="mse"), Reason.DESIGN, FUNCTIONS),
    "a recipe that denoises": (
        certificate(design="posterior", unbiased=False),
        Reason.DENOISING,
        ("recipe",),
    ),
    "bound unknown": (certificate(bound="magic"), Reason.BOUND, EVERY),
    "a function's bound": (certificate(bound="paper"), Reason.BOUND, PREDICTIONS),
    "the exact bound": (certificate(bound="exact"), Reason.SENSITIVITY, ("paper",)),
    "the exact bound of nothing": (certificate(bound="exact"), Reason.BOUND, ("hidden",)),
    "a bound of hidden inputs": (certificate(bound="varah"), Reason.BOUND, SHOWN),
    "unbiased": (flipped("unbiased"), Reason.UNBIASED, EVERY),
    "matrix doubled": (
        array("matrix", lambda m: m * 2),
        Reason.SENSITIVITY,
        ("mse", "shared columns", "function"),
    ),
    "matrix zero": (array("matrix", lambda m: m * 0), Reason.SENSITIVITY, ("mse", "function")),
    "matrix immense": (
        array("matrix", lambda m: np.full_like(m, 2**40)),
        Reason.SENSITIVITY,
        ("mse", "function"),
    ),
    "a function's matrix immense": (
        array("matrix", lambda m: np.full_like(m, 2**40)),
        Reason.ABOVE_BOUND,
        ("paper",),
    ),
    "matrix most negative": (
        array("matrix", lambda m: np.full_like(m, -(2**63))),
        Reason.SENSITIVITY,
        ("mse",),
    ),
    "longest column doubled": (stretch_longest, Reason.SENSITIVITY, ("mse", "shared columns", "function")),
    "columns swapped": (
        array("matrix", lambda m: m[:, ::-1]),
        Reason.PREDICTIONS,
        ("mse", "shared columns", "inducing", "function"),
    ),
    "labels of another order": (array("labels", lambda v: v.max() - v), Reason.LABELS, ("shared columns",)),
    "a label that no column has": (entry("labels", 0, lambda v: v + 100), FILE, ("shared columns",)),
    "reconstruction negated": (array("reconstruction", lambda r: -r), Reason.PREDICTIONS, ("mse", "recipe")),
    "reconstruction scaled": (array("reconstruction", lambda r: r * 1.1), Reason.FIGURE, ("mse", "recipe")),
    "reconstruction of a function": (array("reconstruction", lambda r: r * 1.1), Reason.SHAPE, FUNCTIONS),
    "bias": (certificate(bias=1e9), Reason.PREDICTIONS, PREDICTIONS),
    "bias of a function": (certificate(bias=1e9), Reason.UNBIASED, ("function", "paper")),
    "bias of a hidden function": (certificate(bias=0.1), Reason.HIDDEN, ("hidden",)),
    "offset by its last bit": (entry("offset", 0, lambda v: np.nextafter(v, 9)), Reason.OFFSET, PREDICTIONS),
    "GP std": (entry("gp_std", 0, lambda v: float(f"{v * 1.01:.3e}")), Reason.STD, PREDICTIONS),
    "GP std by its low bits": (entry("gp_std", 0, lambda v: np.nextafter(v, 9)), Reason.DIGITS, PREDICTIONS),
    "X": (entry("X", (3, 0), lambda v: v + 0.1), Reason.PREDICTIONS, ("mse", "max", "volume", "inducing")),
    "X of a recipe": (entry("X", (3, 0), lambda v: v + 1e-9), Reason.DIGEST, ("recipe",)),
    "X of a function": (entry("X", (3, 0), lambda v: v + 0.1), Reason.REACH, ("function", "paper")),
    "X_star": (entry("X_star", (1, 0), lambda v: v + 0.1), Reason.PREDICTIONS, ("mse", "max", "recipe")),
    "weights scaled": (array("weights", lambda w: w * 3), Reason.WEIGHTS, PREDICTIONS),
    "weights that volume ignores": (
        array("weights", lambda w: [0.5, 0.5, 1, 2]),
        Reason.WEIGHTS,
        ("volume",),
    ),
    "other weights": (array("weights", lambda w: w[::-1]), Reason.FIGURE, ("mse", "max", "posterior")),
    "a negative weight": (array("weights", lambda w: -w), FILE, PREDICTIONS),
    "noise variance": (model(noise=0.5), Reason.PREDICTIONS, ("mse", "max", "inducing")),
    "noise variance of a function": (model(noise=0.5), Reason.REACH, FUNCTIONS),
    "noise variance of a row": (
        entry("noise", 2, lambda v: v * 1.2),
        Reason.PREDICTIONS,
        ("shared columns",),
    ),
    "z out of reach": (entry("z", 0, lambda v: 2**62), Reason.OVERFLOW, EVERY),
    "z most negative": (entry("z", 0, lambda v: -(2**63)), Reason.OVERFLOW, EVERY),
    "points": (entry("points", (1, 0), lambda v: v + 0.1), Reason.SHAPE, ("hidden",)),
    "centre": (entry("centre", 0, lambda v: v + 1), Reason.CENTRE, ("function", "paper")),
    "centre of a hidden function": (entry("centre", 0, lambda v: v + 1), Reason.HIDDEN, ("hidden",)),
    "reach": (part("function", "reach", lambda v: v * 1.1), Reason.REACH, FUNCTIONS),
    "reach 0": (part("function", "reach", lambda v: 0.0), Reason.RANGE, FUNCTIONS),
    "prior seed negative": (part("function", "prior_seed", lambda v: -5), FILE, FUNCTIONS),
    "X and the matrix taken out": (hide, Reason.REACH, ("paper",)),
    "X and the matrix of an exact bound taken out": (hide, Reason.SENSITIVITY, ("function",)),
    "factors": (array("factors", lambda a: a * 2), Reason.SENSITIVITY, ("recipe",)),
    "factor bits": (part("measurement", "factor_bits", lambda v: v - 1), Reason.SENSITIVITY, ("recipe",)),
    "factor bits far out": (
        part("measurement", "factor_bits", lambda v: -1999),
        Reason.SENSITIVITY,
        ("recipe",),
    ),
    "features": (array("features", lambda a: a * 1.01), Reason.SENSITIVITY, ("recipe",)),
    "information of no inputs": (array("information", lambda a: -a), Reason.NO_INFORMATION, ("recipe",)),
    "sums": (array("sums", lambda a: a + 100), Reason.SUMS, ("recipe",)),
    "extent": (part("measurement", "extent", lambda v: v // 2), Reason.EXTENT, ("recipe",)),
    "inducing": (array("inducing", lambda a: a[::-1]), Reason.SENSITIVITY, ("recipe",)),
    "approximation": (model(approximation="dtc"), Reason.SENSITIVITY, ("recipe",)),
    "noise for one row": (for_rows, Reason.SENSITIVITY, ("people", "function for people")),
    "a person for each row": (
        other_people(lambda v: np.arange(12)),
        Reason.SENSITIVITY,
        ("people", "function for people", "recipe for people", "people in stages"),
    ),
    "all rows one person's": (
        other_people(lambda v: v * 0),
        Reason.SENSITIVITY,
        ("people", "function for people", "recipe for people"),
    ),
    "people in another order": (
        other_people(lambda v: v.max() - v),
        FILE,
        ("people", "recipe for people", "people in stages"),
    ),
    "somebody else's row": (entry("people", 5, lambda v: 0), Reason.PEOPLE, forging.FOR_PEOPLE),
    "a digest of other people": (
        part("people", "sha256", lambda v: v[::-1]),
        Reason.PEOPLE,
        forging.FOR_PEOPLE,
    ),
    "a correlation above 1": (part("people", "within", lambda v: 1.5), FILE, forging.FOR_PEOPLE),
    "a promise to rows": (promised_to_rows, Reason.UNIT, forging.FOR_PEOPLE),
    "a promise to people who are not named": (promised_to_people, Reason.UNIT, (*EVERY, "staged")),
    "people taken out": (nobody_named, Reason.UNIT, forging.FOR_PEOPLE),
    "a bound on rows": (certificate(bound="paper"), Reason.BOUND, ("function for people",)),
    "another correlation": (
        part("people", "within", lambda v: 0.3),
        Reason.WINDOWS,
        ("people in stages",),
    ),
    "a digest's digit": (part("measurement", "inputs_sha256", lambda v: v[::-1]), Reason.DIGEST, ("recipe",)),
}


@pytest.fixture(scope="module")
def honest_ones_are_verified(tmp_path_factory):
    for kind in forging.PLANS:
        verify(forging.honest(kind, tmp_path_factory.mktemp("honest")))


@pytest.mark.usefixtures("honest_ones_are_verified")
@pytest.mark.parametrize("name", LIES)
def test_a_lie_meets_the_reason_that_it_names(tmp_path, name):
    change, reason, kinds = LIES[name]
    for kind in kinds:
        path = forging.honest(kind, tmp_path)
        rewrite(path, change)
        with pytest.raises((VerificationError, ReleaseFileError)) as caught:
            verify(path)
        met = getattr(caught.value, "reason", FILE)
        assert met == reason, (kind, str(caught.value))


# For each reason a file that nothing else would catch


def bound_and_numbers(manifest, arrays):
    """Predictions with the bound of a function, and every number that follows from it."""
    c = manifest["certificate"]
    most = (2 ** c["matrix_bits"] + math.isqrt(len(arrays["z"])) + 1) * 2 ** c["y_bits"]
    # A little more noise, for the longer columns.
    scale_noise(manifest, most / c["sensitivity_steps"])
    settle(manifest, bound="paper", sensitivity_steps=most)


def weights_and_objective(manifest, arrays):
    arrays["weights"] *= 2
    c = manifest["certificate"]
    settle(manifest, objective=c["objective"] * 2, lower_bound=c["lower_bound"] * 2)


def new_offset(manifest, arrays):
    arrays["offset"] = np.zeros_like(arrays["offset"])
    plan = opening.plan_of(manifest, arrays)[0]
    arrays["offset"] = offset(plan.gp, plan.measurement, plan.reconstruction)


def shrunk_a_little_more(manifest, arrays):
    arrays["reconstruction"] *= 1 - 1e-4
    new_offset(manifest, arrays)


def sums_and_offset(manifest, arrays):
    arrays["sums"] += 100
    new_offset(manifest, arrays)


def split_group(manifest, arrays):
    """Of two equal rows the first keeps its column, the second gets its own, of the same entries."""
    labels = arrays["labels"]
    shared = int(np.argmax(np.bincount(labels)))
    arrays["matrix"] = np.hstack([arrays["matrix"], arrays["matrix"][:, [shared]]])
    labels[np.flatnonzero(labels == shared)[-1]] = arrays["matrix"].shape[1] - 1


def a_direction_turned(manifest, arrays):
    for name in ("z", "centre"):
        arrays[name][0] *= -1
    arrays["matrix"][0] *= -1
    arrays["reconstruction"][:, 0] *= -1


def half_the_lower_bound(manifest, arrays):
    settle(manifest, lower_bound=manifest["certificate"]["objective"] / 2)


def lower_bound_above(manifest, arrays):
    settle(manifest, lower_bound=manifest["certificate"]["objective"] * 2)


def of_another_model(manifest, arrays):
    """What follows from the features and the information in the file, once these were changed."""
    plan = opening.plan_of(manifest, arrays)[0]
    m, q = plan.measurement, len(arrays["z"])
    sparse = SparseGP(m.recipe.features, plan.gp.approximation, m.information, plan.X_star)
    least = bias(plan.gp, sparse, m, plan.reconstruction, np.zeros((q, q))).max()
    manifest["certificate"]["bias"] = short(least, *DIGITS["bias"])
    arrays["gp_std"] = np.array([float(f"{std:.3e}") for std in np.sqrt(sparse.posterior_variance)])


def features_scaled(tmp_path, monkeypatch):
    """With "dtc", since columns of "fitc" are made with the features, too."""
    gp = forging.SPARSE
    plan = forging.recipe(GP(gp.kernel, gp.noise, gp.bounds, gp.mean, gp.inducing, "dtc"))
    plan.release(Y).save(tmp_path / "file")

    def scale(manifest, arrays):
        arrays["features"] *= 1 + 1e-3
        arrays["information"] *= (1 + 1e-3) ** 2
        of_another_model(manifest, arrays)

    rewrite(tmp_path / "file", scale)
    return tmp_path / "file"


def information_scaled(manifest, arrays):
    arrays["information"] *= 1 + 1e-5
    of_another_model(manifest, arrays)


def not_symmetric(manifest, arrays):
    arrays["information"][0, 1] += 1e-8 * np.abs(arrays["information"]).max()


def coarse_lattice(tmp_path, monkeypatch):
    """A plan of a library that has forgotten the floor of the noise."""
    for name, value in {"Y_BITS": 8, "MATRIX_BITS": 14, "SIGMA_FLOOR": 1}.items():
        monkeypatch.setattr(lattice, name, value)
    forging.design("mse")().release(Y).save(tmp_path / "file")
    monkeypatch.undo()
    return tmp_path / "file"


def generous_reach(tmp_path, monkeypatch):
    """A function whose reach is half as long again as its bound says."""
    right = function_planner._measured

    def longer(*arguments):
        *rest, reach, jitter = right(*arguments)
        return *rest, reach * 1.5, jitter

    monkeypatch.setattr(function_planner, "_measured", longer)
    forging.function(bound="exact")().release(Y).save(tmp_path / "file")
    monkeypatch.undo()
    rewrite(tmp_path / "file", lambda m, a: settle(m, lower_bound=m["certificate"]["objective"]))
    return tmp_path / "file"


def longer_than_promised(tmp_path, monkeypatch):
    """One row: the exact bound is the paper's, and its column may be two units longer, not three."""
    plan = forging.SETTING.plan_function(X[:1], bound="paper", **forging.PROMISE)
    plan.release(Y[:1]).save(tmp_path / "file")

    def longer(manifest, arrays):
        c = manifest["certificate"]
        arrays["matrix"][0, 0] = 2 ** c["matrix_bits"] + 3
        arrays["centre"][0] = arrays["matrix"][0, 0] * 2 ** (c["y_bits"] - 1)

    rewrite(tmp_path / "file", longer)
    return tmp_path / "file"


def staged_by_another_library(path, **patches):
    """A release in stages, by a library with these parts changed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, (where, value) in patches.items():
            patch.setattr(where, name, value)
        forging.save_staged(forging.PLANS["staged"](), path)
    return path


def stops_before(number):
    """The walk of a library that plans no more stages than so many."""
    right = stages.Walk.next_stage

    def next_stage(walk, asked):
        if asked >= number:
            raise ValueError("no more")
        return right(walk, asked)

    return stages.Walk, next_stage


def shares_above_all(tmp_path, monkeypatch):
    """Two of three stages, so that what was spent is within the promise; the third would not have been."""
    path = staged_by_another_library(tmp_path / "file", next_stage=stops_before(2))
    assert verify(path).complete
    rewrite(path, lambda manifest, arrays: manifest["certificate"]["shares"].__setitem__(2, 0.9))
    return path


def less_noise_in_a_stage(tmp_path, monkeypatch):
    """The second of two stages takes half as much again as its share; the third, which is left out, pays."""
    right = stages.Promise.shares_of

    def shares_of(promise, number, spread):
        return tuple(share * (1.5 if number == 1 else 1) for share in right(promise, number, spread))

    patches = {"shares_of": (stages.Promise, shares_of), "next_stage": stops_before(2)}
    return staged_by_another_library(tmp_path / "file", **patches)


def windows_about_y(tmp_path, monkeypatch):
    """The worst of all: who looks at the windows knows y, whatever the noise."""
    centred = np.clip(Y, -1.0, 4.0) - 1.5

    def windows(state, bounds, kappa, link):
        lower = np.clip(centred - 0.05, bounds[0], bounds[1] - 0.1)
        return lower, lower + 0.1

    path = staged_by_another_library(tmp_path / "file", windows=(staging, windows))
    arrays = forging.opened(path)[1]
    middle = (arrays["lower_1"] + arrays["upper_1"]) / 2
    assert np.abs(middle - np.clip(Y, -0.95, 3.95)).max() < 1e-9  # y itself, to be read off
    return path


def another_line(tmp_path, monkeypatch):
    right = staging.linearise

    def linearise(*given):
        line = right(*given)
        return replace(line, slope=line.slope * 0.99)

    return staged_by_another_library(tmp_path / "file", linearise=(staging, linearise))


def other_distances(tmp_path, monkeypatch):
    right = staging.scale_limit
    limit = lambda state, width, link: right(state, width, link) * 0.9  # noqa: E731
    return staged_by_another_library(tmp_path / "file", scale_limit=(staging, limit))


def other_weights(manifest, arrays):
    manifest["learned"][0]["weight"] += 1e-4
    manifest["learned"][1]["weight"] -= 1e-4


def other_counts(folder, monkeypatch):
    """Of the last stage of whole rows, by so little that nothing else shows it."""
    path = forging.honest_rows(folder, known=True)
    verify(path)
    rewrite(path, lambda manifest, arrays: _a_little_more(arrays["counts_6"]))
    return path


def _a_little_more(counts):
    counts[np.argmax(counts)] *= 1 + 3e-6


ALONE = {
    Reason.COUNTS: other_counts,
    Reason.INSECURE: ("mse", certificate(insecure=True)),
    Reason.UNIT: ("mse", promised_to_people),
    Reason.NEIGHBOURS: ("mse", certificate(neighbours="nothing is changed")),
    Reason.SPEND: ("mse", certificate(spend="release as often as you like")),
    Reason.DESIGN: ("function", certificate(design="mse")),
    Reason.BOUND: ("mse", bound_and_numbers),
    Reason.STATUS: ("mse", certificate(status="y = 3.14, 2.72")),
    Reason.RANGE: ("mse", certificate(iterations=2**62)),
    Reason.DIGITS: ("mse", scaled("bias", 1 + 1e-12)),
    Reason.SENSITIVITY: ("mse", lambda manifest, arrays: scale_noise(manifest, 0.5, sensitivity=True)),
    Reason.ABOVE_BOUND: longer_than_promised,
    Reason.NOISE_FLOOR: coarse_lattice,
    Reason.OVERFLOW: ("mse", entry("z", 0, lambda v: 2**62)),
    Reason.MU: ("mse", scaled("mu", 1 + 1e-15)),
    Reason.DELTA: ("mse", lambda manifest, arrays: scale_noise(manifest, 0.99)),
    Reason.CALIBRATION: ("mse", lambda manifest, arrays: scale_noise(manifest, 1.01)),
    Reason.FIGURE: ("mse", scaled("noise_scale", 1 + 1e-15)),
    Reason.BELOW_BOUND: ("mse", lower_bound_above),
    Reason.WEIGHTS: ("mse", weights_and_objective),
    Reason.PEOPLE: ("people", part("people", "sha256", lambda v: v[::-1])),
    Reason.LABELS: ("shared columns", split_group),
    Reason.PREDICTIONS: ("mse", certificate(bias=1e9)),
    Reason.UNBIASED: ("mse", flipped("unbiased")),
    Reason.DENOISING: ("posterior", shrunk_a_little_more),
    Reason.OFFSET: ("mse", entry("offset", 0, lambda v: np.nextafter(v, 9))),
    Reason.STD: ("mse", entry("gp_std", 0, lambda v: float(f"{v * 1.01:.3e}"))),
    Reason.JITTER: ("mse", certificate(jitter=3.14)),
    Reason.REACH: generous_reach,
    Reason.SHAPE: ("function", a_direction_turned),
    Reason.LOWER_BOUND: ("function", half_the_lower_bound),
    Reason.HIDDEN: ("hidden", certificate(bias=0.1)),
    Reason.CENTRE: ("function", entry("centre", 0, lambda v: v + 1)),
    Reason.DIGEST: ("recipe", part("measurement", "inputs_sha256", lambda v: v[::-1])),
    Reason.EXTENT: ("recipe", part("measurement", "extent", lambda v: v + 100)),
    Reason.SUMS: ("recipe", sums_and_offset),
    Reason.FEATURES: features_scaled,
    Reason.NO_INFORMATION: ("recipe", not_symmetric),
    Reason.INFORMATION: ("recipe", information_scaled),
    Reason.SHARES: shares_above_all,
    Reason.SHARE: less_noise_in_a_stage,
    Reason.WINDOWS: windows_about_y,
    Reason.LINE: another_line,
    Reason.DISTANCES: other_distances,
    Reason.LEARNED: ("staged", other_weights),
}
ELSEWHERE = {
    Reason.OTHER_INPUTS,
    Reason.OTHER_PEOPLE,
    Reason.MODEL,
}  # not for what is in a file: see test_verification.py


def test_every_reason_has_a_forgery_of_its_own():
    assert set(ALONE) | ELSEWHERE == set(Reason)
    assert {reason for _, reason, _ in LIES.values()} >= {Reason.MODEL}


@pytest.mark.parametrize("reason", ALONE, ids=lambda reason: reason.name)
def test_a_reason_is_the_only_catch_of_its_forgery(tmp_path, monkeypatch, reason):
    """With that one check taken out, the forged file would be verified."""
    made = ALONE[reason]
    if callable(made):
        path = made(tmp_path, monkeypatch)
    else:
        path = forging.honest(made[0], tmp_path)
        verify(path)
        rewrite(path, made[1])
    with pytest.raises(VerificationError) as caught:
        verify(path)
    assert caught.value.reason == reason
    right = reasons.refuse
    monkeypatch.setattr(
        reasons, "refuse", lambda wrong, said, detail="": right(wrong and said != reason, said, detail)
    )
    verify(path)


def test_longer_columns_of_a_recipe_read_with_less_weight(tmp_path):
    """Twice the measurements, read with half the weight: the same predictions, too little noise."""

    def longer(manifest, arrays):
        arrays["factors"] *= 2
        arrays["sums"] *= 2
        arrays["z"] *= 2
        arrays["reconstruction"] /= 2
        manifest["measurement"]["extent"] *= 2
        c = manifest["certificate"]
        settle(manifest, objective=c["objective"] / 4, lower_bound=c["lower_bound"] / 4)

    path = forging.honest("recipe", tmp_path)
    rewrite(path, longer)
    with pytest.raises(VerificationError) as caught:
        verify(path)
    assert caught.value.reason == Reason.SENSITIVITY


def moved_sums(manifest, arrays):
    """Another sum of how far windows are from their means, and the offset that follows from it."""
    arrays["middle_less_mean"] *= 1.01
    arrays["offset"] = arrays["mean_star"] + exact_product(
        arrays["reconstruction"], arrays["middle_less_mean"]
    )


@pytest.mark.parametrize(
    ("kind", "lie", "reason"),
    [
        ("windows", entry("upper", 3, lambda v: v + 0.1), Reason.PREDICTIONS),
        ("windows", entry("mean_rows", 3, lambda v: v + 0.1), Reason.OFFSET),
        ("windows", array("mean_star", lambda v: v + 0.1), Reason.OFFSET),
        ("recipe with windows", entry("upper", 3, lambda v: v + 0.1), Reason.DIGEST),
        ("recipe with windows", entry("mean_rows", 3, lambda v: v + 0.1), Reason.DIGEST),
        ("recipe with windows", moved_sums, Reason.SUMS),
    ],
)
def test_windows_that_are_not_those_of_the_measurements(tmp_path, kind, lie, reason):
    path = forging.honest(kind, tmp_path)
    verify(path)
    rewrite(path, lie)
    with pytest.raises(VerificationError) as caught:
        verify(path)
    assert caught.value.reason == reason


@pytest.mark.parametrize("name", ["lower", "upper", "mean_rows", "mean_star"])
@pytest.mark.parametrize("kind", forging.WITH_WINDOWS)
def test_windows_are_in_a_file_or_not(tmp_path, kind, name):
    for honest, lie in (
        (kind, lambda manifest, arrays: arrays.pop(name)),
        ("mse", lambda manifest, arrays: arrays.update({name: arrays["X"][:, 0]})),
        (kind, forging.model(bounds=[0.0, 1.0], mean=0.5)),
        ("function", forging.model(bounds="per row", mean="per row")),
        (kind, array("upper", lambda v: v - 100)),
    ):
        path = forging.honest(honest, tmp_path)
        rewrite(path, lie)
        with pytest.raises(ReleaseFileError):
            verify(path)


def test_squares_that_would_wrap(tmp_path, monkeypatch):
    """256 entries of 2^28 - 1, each counted a unit larger: their squares sum to 2^64, which is 0 in 64 bits.

    Such a column seemed short, and noise thousands of times too small for it was verified.
    """
    q, inputs = 256, np.arange(3.0)[:, None]
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    gp = GP(EQ(1.0), 0.5, (0.0, 1.0), 0.5, inputs)
    gp.plan(inputs, X_star=inputs, **forging.PROMISE).release(np.zeros(3)).save(tmp_path / "file")

    def forge(manifest, arrays):
        c, m = manifest["certificate"], manifest["measurement"]
        bits = 50
        # The column of a row is factors k(Z, x) / noise, times a power of two.
        columns = np.outer(np.ones(q), [2.0**28 - 1, 0.0, 0.0])
        factors = columns * gp.noise @ np.linalg.inv(gp.kernel(inputs)) * 2.0 ** (bits - c["matrix_bits"])
        arrays["factors"], m["factor_bits"] = np.rint(factors).astype(np.int64), bits
        arrays["sums"], arrays["z"] = columns[:, 0].astype(np.int64), np.zeros(q, np.int64)
        arrays["reconstruction"] = np.tile(arrays["reconstruction"][:, :1], (1, q)) / q
        m["extent"] = 2**28
        settle(manifest, n_measurements=q, sensitivity_steps=2 ** (c["y_bits"] + 14))

    rewrite(tmp_path / "file", forge)
    plan = opening.plan_of(*reading.read(tmp_path / "file")[:2])[0]
    made, _ = recipe._columns(plan.gp, plan.measurement, inputs, gp.noise, None)
    assert (made[:, 0] == 2**28 - 1).all()
    with pytest.raises(VerificationError) as caught:  # whatever the liar does to the other numbers
        recipe.check_columns(plan.gp, plan.measurement, plan.measurement.inputs)
    assert caught.value.reason == Reason.SENSITIVITY


@pytest.mark.parametrize(
    "lie", [entry("z", 0, lambda v: v + 1), array("z", lambda z: z * 0)], ids=["one", "all"]
)
@pytest.mark.parametrize("kind", EVERY)
def test_changed_measurements_are_caught_by_the_signature_alone(tmp_path, private_key, kind, lie):
    """Any z is possible noise, so an unsigned file with another z is as good as the first."""
    unsigned = forging.honest(kind, tmp_path)
    rewrite(unsigned, lie)
    verify(unsigned)
    forging.PLANS[kind]().release(Y).save(tmp_path / "signed", sign_with=private_key)
    rewrite(tmp_path / "signed", lie)
    with pytest.raises(SignatureError):
        verify(tmp_path / "signed")


def test_an_insecure_file_that_says_it_is_not_is_caught_by_the_signature_alone(seeded, private_key, tmp_path):
    """Seeded noise looks like any other, and the flag is only a word: who signs it vouches for it."""
    with seeded(0):
        forging.design("mse")().release(Y).save(tmp_path / "signed", sign_with=private_key)
    with pytest.raises(VerificationError, match="INSECURE"):
        verify(tmp_path / "signed", signed_by=private_key.public_key())
    rewrite(tmp_path / "signed", certificate(insecure=False))
    for signed_by in (None, private_key.public_key()):
        with pytest.raises(SignatureError, match="does not fit"):
            verify(tmp_path / "signed", signed_by=signed_by)
