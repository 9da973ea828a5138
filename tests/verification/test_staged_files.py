"""Releases in stages: what is verified of them, and lies about each of their parts."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from types import SimpleNamespace

import forging
import numpy as np
import pytest
from forging import PROMISE, X_STAR, X, Y, array, certificate, entry, rewrite, unit

from cloakgp import GP, AutoGP, ReleaseFileError, VerificationError, verify
from cloakgp.calibration import calibrate
from cloakgp.model.hyperprior import FAMILIES, Hyperprior, Setting
from cloakgp.plans import stages
from cloakgp.posterior import mixture, staging
from cloakgp.verification import replay
from cloakgp.verification.reasons import Reason

FILE = "release file"  # refused as no file of this schema
WIDTH = 5.0


@pytest.fixture
def path(tmp_path):
    return forging.honest("staged", tmp_path)


def words(number, **changes):
    """Of a stage."""

    def change(manifest, arrays):
        for name, how in changes.items():
            manifest["stages"][number][name] = how(manifest["stages"][number][name])

    return change


def spread(number, **changes):
    """Of a stage's noise level."""

    def change(manifest, arrays):
        for name, how in changes.items():
            manifest["stages"][number]["spread"][name] = how(manifest["stages"][number]["spread"][name])

    return change


def key(name, how):
    def change(manifest, arrays):
        manifest[name] = how(manifest[name])

    return change


def learned(name, how):
    def change(manifest, arrays):
        manifest["learned"][0][name] = how(manifest["learned"][0][name])

    return change


def prior(name, value):
    return lambda manifest, arrays: manifest["model"]["prior"].update({name: value})


def shares(*values):
    return certificate(shares=list(values))


def repeated(manifest, arrays):
    """The last stage once more, as if there had been a fourth."""
    manifest["stages"].append(copy.deepcopy(manifest["stages"][2]))
    arrays |= {name.replace("_2", "_3"): array for name, array in list(arrays.items()) if name.endswith("_2")}
    c = manifest["certificate"]
    c["shares"] = [share / (1 + c["shares"][2]) for share in [*c["shares"], c["shares"][2]]]
    c["n_measurements"] = c["n_measurements"] // 3 * 4
    c["mu"] = calibrate(c["epsilon"], c["delta"], n_measurements=c["n_measurements"])


def swapped(manifest, arrays):
    """The second stage after the third, each with the other's share."""
    manifest["stages"][1:] = manifest["stages"][:0:-1]
    names = {name[:-2] for name in arrays if name.endswith("_2")}
    for name in names:
        arrays[f"{name}_1"], arrays[f"{name}_2"] = arrays[f"{name}_2"], arrays[f"{name}_1"]
    c = manifest["certificate"]["shares"]
    c[1], c[2] = c[2], c[1]


def without_windows(manifest, arrays):
    manifest["stages"][1]["windows"] = False
    for name in ("lower", "upper", "slope", "shift", "extra"):
        del arrays[f"{name}_1"]


def without_noise_level(manifest, arrays):
    """Not measured, and what it would have spent is the measurements'."""
    manifest["stages"][2]["spread"] = None
    manifest["stages"][2]["sigma"] = int(manifest["stages"][2]["sigma"] * np.sqrt(0.9)) + 2**12
    arrays["z_2"] = arrays["z_2"][:-1].copy()
    del arrays["centre_2"]


def stage_left_out(manifest, arrays):
    """The last: then what was learned is not from the others."""
    manifest["stages"].pop()
    for name in [name for name in arrays if name.endswith("_2")]:
        del arrays[name]


LIES = {
    "insecure": (certificate(insecure=True), Reason.INSECURE),
    "unit": (unit("one household"), Reason.UNIT),
    "neighbours": (certificate(neighbours="nobody"), Reason.NEIGHBOURS),
    "spend": (certificate(spend="never"), Reason.SPEND),
    "design": (certificate(design="mse"), Reason.DESIGN),
    "unbiased": (certificate(unbiased=True), Reason.UNBIASED),
    "calibration": (certificate(calibration="classic"), Reason.CALIBRATION),
    "epsilon lower": (certificate(epsilon=0.999), Reason.CALIBRATION),
    "epsilon higher": (certificate(epsilon=1.001), Reason.CALIBRATION),
    "epsilon 0": (certificate(epsilon=0.0), Reason.RANGE),
    "delta lower": (certificate(delta=0.00999), Reason.CALIBRATION),
    "delta 1": (certificate(delta=1.0), Reason.RANGE),
    "mu lower": (forging.scaled("mu", 1 - 1e-9), Reason.CALIBRATION),
    "mu higher": (forging.scaled("mu", 1 + 1e-9), Reason.CALIBRATION),
    "delta slack": (certificate(delta_slack=0.005), Reason.FIGURE),
    "delta slack by its low bits": (forging.scaled("delta_slack", 1 + 1e-9), Reason.DIGITS),
    "fewer measurements": (forging.added("n_measurements", -1), Reason.FIGURE),
    "more measurements": (forging.added("n_measurements", 1), Reason.FIGURE),
    "rows": (forging.added("n_rows", 1), FILE),
    "shares above all": (shares(0.3, 0.4, 0.5), Reason.SHARES),
    "another split": (shares(0.3, 0.3, 0.4), Reason.SHARE),
    "a share of more": (shares(0.2, 0.3, 1.5), FILE),
    "weights": (array("weights", lambda w: w * 2), Reason.WEIGHTS),
    "sensitivity off by one": (words(1, sensitivity_steps=lambda v: v - 1), Reason.SENSITIVITY),
    "matrix doubled": (array("matrix_2", lambda m: m * 2), Reason.SENSITIVITY),
    "an entry of the first matrix": (entry("matrix_0", (0, 0), lambda v: 2**31), Reason.SENSITIVITY),
    "half the noise": (words(2, sigma=lambda v: v // 2), Reason.MU),
    "half the first stage's noise": (words(0, sigma=lambda v: v // 2), Reason.MU),
    "twice the noise": (words(2, sigma=lambda v: v * 2), Reason.SHARE),
    "no noise": (words(1, sigma=lambda v: 0), Reason.RANGE),
    "little noise": (words(1, sigma=lambda v: 2**29), Reason.NOISE_FLOOR),
    "bits of y": (words(1, y_bits=lambda v: 25), Reason.RANGE),
    "bits of the matrix": (words(1, matrix_bits=lambda v: 31), Reason.RANGE),
    "bits without end": (words(1, y_bits=lambda v: 2**62), FILE),
    "a noise level's sensitivity": (spread(1, sensitivity_steps=lambda v: v // 2), Reason.SENSITIVITY),
    "a noise level on another lattice": (spread(1, matrix_bits=lambda v: v + 1), Reason.SENSITIVITY),
    "a noise level's noise": (spread(1, sigma=lambda v: v // 4), Reason.MU),
    "more of a noise level's noise": (spread(1, sigma=lambda v: v + v // 10**6), Reason.SHARE),
    "a noise level out of reach": (
        spread(1, y_bits=lambda v: 24, matrix_bits=lambda v: 38, sensitivity_steps=lambda v: 2**62),
        Reason.OVERFLOW,
    ),
    "bits of a noise level without end": (spread(1, matrix_bits=lambda v: 2**62), FILE),
    "z out of reach": (entry("z_1", -1, lambda v: 2**62), Reason.OVERFLOW),
    "z most negative": (entry("z_2", 0, lambda v: -(2**63)), Reason.OVERFLOW),
    "a window": (entry("upper_1", 3, lambda v: v - 1e-5 * WIDTH), Reason.WINDOWS),
    "a window of the last stage": (entry("lower_2", 3, lambda v: v + 1e-5 * WIDTH), Reason.WINDOWS),
    "an empty window": (entry("upper_1", 3, lambda v: -9.0), FILE),
    "a slope": (entry("slope_1", 0, lambda v: v - 1e-3), Reason.LINE),
    "a shift": (entry("shift_2", 0, lambda v: v + 0.1), Reason.LINE),
    "what clipping adds": (array("extra_1", lambda v: v * 2 + 1), Reason.LINE),
    "from where distances are": (entry("centre_1", 0, lambda v: v + 1e-5 * WIDTH), Reason.DISTANCES),
    "up to where distances are": (spread(2, limit=lambda v: v * 1.0001), Reason.DISTANCES),
    "windows of another width": (key("kappa", lambda v: v * 1.001), Reason.WINDOWS),
    "no windows": (key("kappa", lambda v: None), Reason.WINDOWS),
    "bounds": (lambda m, a: m["model"].update(bounds=[-1.0, 4.001]), Reason.WINDOWS),
    "bounds without width": (lambda m, a: m["model"].update(bounds=[0.0, 1e-200]), Reason.RANGE),
    "the prior's noise": (prior("noise", [0.02, 0.3]), Reason.WINDOWS),
    "the prior's families": (prior("kernels", ["Matern32"]), Reason.WINDOWS),
    "the prior's families without end": (prior("kernels", ["EQ"] * 1000), FILE),
    "one family twice": (prior("kernels", ["EQ", "EQ"]), FILE),
    "X": (entry("X", (3, 0), lambda v: v + 0.1), Reason.WINDOWS),
    "an earlier answer": (entry("z_0", 0, lambda v: v + 2**56), Reason.WINDOWS),
    "the last answer": (entry("z_2", 0, lambda v: v + 2**60), Reason.LEARNED),
    "a learned noise": (learned("noise", lambda v: v * 1.001), Reason.LEARNED),
    "a learned level": (learned("level", lambda v: v * 1.001), Reason.LEARNED),
    "a learned weight": (learned("weight", lambda v: v * 0.999), Reason.LEARNED),
    "a learned model left out": (key("learned", lambda v: v[:-1]), Reason.LEARNED),
    "a learned model twice": (key("learned", lambda v: [*v[:-1], v[0]]), Reason.LEARNED),
    "a stage repeated": (repeated, Reason.MU),
    "stages swapped": (swapped, Reason.WINDOWS),
    "a stage without its windows": (without_windows, Reason.WINDOWS),
    "a stage without its noise level": (without_noise_level, Reason.DISTANCES),
    "a stage left out": (stage_left_out, Reason.LEARNED),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_meets_the_reason_that_it_names(path, name):
    change, reason = LIES[name]
    rewrite(path, change)
    with pytest.raises((VerificationError, ReleaseFileError)) as caught:
        verify(path)
    assert getattr(caught.value, "reason", FILE) == reason, str(caught.value)


def test_what_is_said(path):
    found = verify(path)
    assert found.complete
    assert 0.99 * PROMISE["delta"] < found.proven_delta <= PROMISE["delta"]
    assert found.headline == "verified: (1, 0.01)-DP, unit one row; not signed"
    assert found.checks[1:] == (
        "3 stages: integer sensitivity, noise scale and mu of each, from its matrix, within its share",
        "the stages' total mu, epsilon and delta",
        "windows and distances of each stage, from the answers before it, to 1e-06 of the bounds' width",
        "what was learned, from all answers",
    )


def test_inputs_are_compared(path):
    assert verify(path, X=X).complete
    with pytest.raises(VerificationError) as caught:
        verify(path, X=X + 1e-9)
    assert caught.value.reason == Reason.OTHER_INPUTS


@pytest.mark.parametrize("made", [1, 2])
def test_a_release_that_stopped_early_is_verified_and_spent_less(tmp_path, monkeypatch, made):
    right = stages.Walk.next_stage

    def next_stage(walk, number):
        if number == made:
            raise np.linalg.LinAlgError("singular")
        return right(walk, number)

    monkeypatch.setattr(stages.Walk, "next_stage", next_stage)
    release = forging.PLANS["staged"]().release(Y)
    assert len(release.stages) == made
    release.save(tmp_path / "file")
    found = verify(tmp_path / "file")
    assert found.complete
    assert found.checks[1].startswith(f"{made} stage{'s' if made > 1 else ''} of 3 planned: ")
    assert found.proven_delta < verify(forging.honest("staged", tmp_path)).proven_delta * 0.9


def test_where_windows_cannot_be_worked_out_it_is_in_part(path, monkeypatch):
    def fit(*given):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(mixture.Mixture, "fit", fit)
    found = verify(path)
    assert not found.complete
    assert found.proven_delta is None
    assert found.headline.startswith("verified IN PART: the windows were not checked, so that (1, 0.01)-DP")
    assert found.unchecked == ("the windows: they could not be worked out again here (LinAlgError)",)


def test_bounds_too_far_from_0_for_floating_point_are_in_part(tmp_path):
    far = 1e8
    plan = AutoGP((far, far + 1), stages=2).plan(X, X_star=X_STAR, **PROMISE)
    plan.release(np.full(len(X), far)).save(tmp_path / "file")
    assert verify(tmp_path / "file").unchecked[0].startswith("the windows: the bounds are too far from 0")


@pytest.mark.parametrize("what", ["measurements", "noise level"])
def test_rows_that_share_a_column_count_in_the_headroom(tmp_path, what):
    """2 columns for 4096 rows, on a lattice 8 times as fine: there would be room for 2 rows only."""
    inputs = np.repeat([[0.0], [1.0]], 2048, axis=0)
    plan = AutoGP((-1.0, 4.0), stages=2).plan(inputs, X_star=[[0.0], [1.0]], **PROMISE)
    plan.release(np.resize(Y, 4096)).save(tmp_path / "file")
    assert verify(tmp_path / "file").complete

    def finer(manifest, arrays):
        own = manifest["stages"][0]
        own["y_bits"], own["sigma"] = own["y_bits"] + 3, own["sigma"] * 8
        squared = max(sum(v * v for v in column) for column in arrays["matrix_0"].T.tolist())
        own["sensitivity_steps"] = math.isqrt(squared * 4 ** own["y_bits"] - 1) + 1

    def finer_level(manifest, arrays):
        own = manifest["stages"][1]["spread"]
        own["matrix_bits"] += 3
        own["sigma"], own["sensitivity_steps"] = own["sigma"] * 8, own["sensitivity_steps"] * 8

    rewrite(tmp_path / "file", finer if what == "measurements" else finer_level)
    with pytest.raises(VerificationError) as caught:
        verify(tmp_path / "file")
    assert caught.value.reason == Reason.OVERFLOW


def test_a_stage_asked_again_with_noise_for_it(tmp_path):
    """The second once more, in the windows that it had, and within the promise; these are too old by then."""
    right, kept = staging.windows, []

    def windows(*given):
        kept.append(right(*given))
        return kept[-2 if len(kept) == 2 else -1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "windows", windows)
        forging.save_staged(forging.PLANS["staged"](), tmp_path / "file")
    assert len(kept) == 2
    with pytest.raises(VerificationError) as caught:
        verify(tmp_path / "file")
    assert caught.value.reason == Reason.WINDOWS


def test_learned_models_may_change_places_where_they_are_nearly_tied(path):
    """As another machine's rounding might have them."""
    rewrite(path, key("learned", lambda v: v[::-1]))
    assert verify(path).complete


def test_a_learned_model_stands_for_itself_alone():
    """One of two that are tied may be a third that is tied as well, but none is there twice or missing."""
    a, b, c = (Setting("EQ", (length,), 1.0, 1.0, 1.0) for length in (1.0, 2.0, 3.0))

    def learned(settings, weights, kept=(0.5, 0.5)):
        state = SimpleNamespace(settings=(a, b), weights=np.array(kept))
        walk = SimpleNamespace(state=state, mixture=SimpleNamespace(settings=[a, b, c]))
        replay._check_learned(walk, settings, np.array(weights))

    learned((a, b), (0.5, 0.5))
    learned((c, a), (0.5, 0.5))
    nearly = (1 - 1e-9, 1e-9)
    learned((a, b), nearly, nearly)
    for settings, weights, kept in [
        ((a, a), (0.5, 0.5), (0.5, 0.5)),
        ((a, replace(b, noise=2.0)), (0.5, 0.5), (0.5, 0.5)),
        ((a,), (1.0,), nearly),
        ((a, b, c), (*nearly, 0.0), nearly),
    ]:
        with pytest.raises(VerificationError) as caught:
            learned(settings, weights, kept)
        assert caught.value.reason == Reason.LEARNED


def test_rounding_on_another_machine_is_within_the_tolerance(path):
    rng = np.random.default_rng(0)

    def rounded(manifest, arrays):
        low, high = manifest["model"]["bounds"]
        for name, values in arrays.items():
            if name[:-2] in ("lower", "upper", "slope", "shift", "extra", "centre"):
                inside = (values != low) & (values != high)  # where a window ends at a bound it is that
                values[inside] *= 1 + 1e-12 * rng.uniform(-1, 1, values.shape)[inside]
        for one in manifest["learned"]:
            one["weight"] *= 1 + 1e-10 * rng.uniform(-1, 1)

    rewrite(path, rounded)
    assert verify(path).complete


@pytest.mark.parametrize("columns", [1, 2])
def test_every_family_and_many_columns(tmp_path, columns):
    inputs = np.random.default_rng(1).uniform(size=(30, columns))
    model = AutoGP((-1.0, 4.0), prior=Hyperprior(kernels=tuple(FAMILIES)), stages=2)
    plan = model.plan(inputs, X_star=inputs[:5], **PROMISE)
    plan.release(np.resize(Y, 30)).save(tmp_path / "file")
    assert verify(tmp_path / "file").complete


def test_support_points(tmp_path):
    inputs = np.linspace(0, 1, 60)[:, None]
    plan = AutoGP((-1.0, 4.0), stages=2, inducing=20).plan(inputs, X_star=X_STAR / 10, **PROMISE)
    forging.save_staged(plan, tmp_path / "file", np.resize(Y, 60))
    assert verify(tmp_path / "file").complete
    rewrite(tmp_path / "file", entry("inducing", (3, 0), lambda v: v + 0.05))
    with pytest.raises(VerificationError) as caught:
        verify(tmp_path / "file")
    assert caught.value.reason == Reason.WINDOWS


# After earlier releases


def test_what_earlier_releases_promised_is_said_with_the_promise(tmp_path):
    """Who has both files knows what both answer: 0.1 is not what it cost."""
    before = forging.SETTING.plan(X, X_star=X_STAR, epsilon=300.0, delta=1e-6).release(Y)
    plan = forging.SETTING.plan(X, X_star=X_STAR, given=[before], epsilon=0.1, delta=1e-6)
    plan.release(Y).save(tmp_path / "file")
    found = verify(tmp_path / "file")
    assert found.complete
    assert found.earlier == ((300.0, 1e-6),)
    assert "not the total: it was given (300, 1e-06)-DP" in found.headline
    listed = str(found).splitlines()
    assert listed[1].strip().startswith("not the total")
    assert [line.split(":")[0].strip() for line in listed[2:4]] == ["(300, 1e-06)-DP", "(0.1, 1e-06)-DP"]
    assert verify(forging.honest("staged", tmp_path)).earlier == ()


def promised_before(epsilon, delta):
    def change(manifest, arrays):
        manifest["given"][0].update(epsilon=epsilon, delta=delta)
        manifest["certificate"]["before"] = [[epsilon, delta]]

    return change


def test_an_earlier_release_is_checked_against_its_own_promise(tmp_path):
    path = forging.honest("after another", tmp_path)
    found = verify(path)
    assert found.complete
    assert any(
        said.startswith("1 earlier release, each with a promise of its own: ") for said in found.checks
    )
    lies = {
        Reason.MU: words(0, sigma=lambda v: v // 2),
        Reason.SENSITIVITY: array("matrix_0", lambda m: m * 2),
        Reason.DELTA: promised_before(1.0, 0.009),
        Reason.FIGURE: lambda m, a: m["given"][0].update(most=3),
        Reason.RANGE: promised_before(1e9, 0.01),
        Reason.OVERFLOW: entry("z_0", 0, lambda v: 2**62),
        Reason.WINDOWS: entry("z_0", 0, lambda v: v + 2**56),
    }
    for reason, lie in lies.items():
        path = forging.honest("after another", tmp_path)
        rewrite(path, lie)
        with pytest.raises(VerificationError) as caught:
            verify(path)
        assert caught.value.reason == reason, str(caught.value)


def test_windows_of_an_earlier_release_are_its_own_files_to_show(tmp_path):
    earlier = forging.PLANS["staged"]().release(Y)
    plan = forging.PLANS["staged"]()
    later = AutoGP((-1.0, 4.0), stages=2).plan(X, X_star=X_STAR, given=[earlier], **PROMISE).release(Y)
    later.save(tmp_path / "file")
    found = verify(tmp_path / "file")
    assert found.unchecked == ("the windows of earlier releases: only their own files tell; verify these",)
    assert found.proven_delta is None
    assert plan.rule.given == ()


def test_a_custom_kernel_must_be_given(tmp_path):
    def kernel(A, B):
        return np.exp(-np.abs(A - B.T))

    gp = GP(kernel, 0.4, (-1.0, 4.0), 0.7)
    gp.plan(
        X, X_star=X_STAR, given=[gp.plan(X, X_star=X_STAR, **PROMISE).release(Y)], windows=2.0, **PROMISE
    ).release(Y).save(tmp_path / "file")
    found = verify(tmp_path / "file")
    assert not found.complete
    assert found.proven_delta is None
    assert found.unchecked[0].startswith("the windows: the kernel is a custom one")
    assert verify(tmp_path / "file", kernel=kernel).complete
    with pytest.raises(VerificationError) as caught:
        verify(tmp_path / "file", kernel=lambda A, B: np.exp(-((A - B.T) ** 2)))
    assert caught.value.reason == Reason.WINDOWS
