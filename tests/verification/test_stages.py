"""Releases in stages: what is verified of them, what is said in part, and whose word is left."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import forging
import numpy as np
import pytest
from forging import PROMISE, X_STAR, X, Y, entry, protects, refusal, rewrite, words

import cloakgp
from cloakgp import GP, AutoGP, Grid, VerificationError, verify
from cloakgp.data import cells
from cloakgp.measure.unit import PERSON_ROWS
from cloakgp.model.hyperprior import FAMILIES, Hyperprior, Setting
from cloakgp.posterior import mixture, staging
from cloakgp.release import stages
from cloakgp.verification import replay
from cloakgp.verification.reasons import Reason

EACH = "how many rows of each person were counted"


@pytest.fixture
def path(tmp_path):
    return forging.honest("staged", tmp_path)


def test_what_is_said(path):
    found = verify(path)
    assert found.complete
    assert 0.99 * PROMISE["delta"] < found.proven_delta <= PROMISE["delta"]
    assert found.headline == "verified: (1, 0.01)-DP, unit one row; not signed"


@pytest.mark.parametrize("made", [1, 2])
def test_a_release_that_stopped_early_is_verified_and_spent_less(tmp_path, monkeypatch, made):
    right, whole = stages.Session.next_stage, verify(forging.honest("staged", tmp_path))

    def next_stage(session, number):
        if number == made:
            raise np.linalg.LinAlgError("singular")
        return right(session, number)

    monkeypatch.setattr(stages.Session, "next_stage", next_stage)
    release = forging.PLANS["staged"]().release(Y)
    assert len(release.stages) == made
    release.save(tmp_path / "file")
    found = verify(tmp_path / "file")
    assert found.complete
    assert found.checks[1].startswith(f"{made} stage{'s' if made > 1 else ''} of 4 planned: ")
    assert found.proven_delta < whole.proven_delta * 0.9


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


@pytest.mark.parametrize("what", ["measurements", "outside", "noise level"])
def test_rows_that_share_a_column_count_in_the_headroom(tmp_path, what):
    """2 columns for 4096 rows, on a lattice 8 times as fine: there would be room for 2 rows only."""
    inputs = np.repeat([[0.0], [1.0]], 2048, axis=0)
    plan = AutoGP((-1.0, 4.0), stages=2).plan(inputs, X_star=[[0.0], [1.0]], **PROMISE)
    plan.release(np.resize(Y, 4096)).save(tmp_path / "file")
    assert verify(tmp_path / "file").complete

    def finer(own, matrix):
        own["y_bits"], own["sigma"] = own["y_bits"] + 3, own["sigma"] * 8
        squared = max(sum(v * v for v in column) for column in matrix.T.tolist())
        own["sensitivity_steps"] = math.isqrt(squared * 4 ** own["y_bits"] - 1) + 1

    def finer_level(manifest, arrays):
        own = manifest["stages"][1]["spread"]
        own["matrix_bits"] += 3
        own["sigma"], own["sensitivity_steps"] = own["sigma"] * 8, own["sensitivity_steps"] * 8

    finer_ones = {
        "measurements": lambda manifest, arrays: finer(manifest["stages"][0], arrays["matrix_0"]),
        "outside": lambda manifest, arrays: finer(manifest["stages"][1]["outside"], arrays["outside_1"]),
        "noise level": finer_level,
    }
    rewrite(tmp_path / "file", finer_ones[what])
    assert refusal(tmp_path / "file") == Reason.OVERFLOW


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
    assert refusal(tmp_path / "file") == Reason.WINDOWS


def test_learned_models_may_change_places_where_they_are_nearly_tied(path):
    """As another machine's rounding might have them."""
    rewrite(path, words(learned=lambda v: v[::-1]))
    assert verify(path).complete


def test_a_learned_model_stands_for_itself_alone():
    """One of two that are tied may be a third that is tied as well, but none is there twice or missing."""
    a, b, c = (Setting("EQ", (length,), 1.0, 1.0, 1.0) for length in (1.0, 2.0, 3.0))

    def learned(settings, weights, kept=(0.5, 0.5)):
        state = SimpleNamespace(settings=(a, b), weights=np.array(kept))
        session = SimpleNamespace(state=state, mixture=SimpleNamespace(settings=[a, b, c]))
        replay._check_learned(session, settings, np.array(weights))

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
    with forging.hidden_seed(tmp_path / "file") as path:
        plan.release(np.resize(Y, 60)).save(path)
    assert verify(tmp_path / "file").complete
    rewrite(tmp_path / "file", entry("inducing", (3, 0), lambda v: v + 0.05))
    assert refusal(tmp_path / "file") == Reason.WINDOWS


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
    assert "spent on the same outcomes" in str(found)
    assert verify(forging.honest("staged", tmp_path)).earlier == ()


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
    assert refusal(tmp_path / "file", kernel=lambda A, B: np.exp(-((A - B.T) ** 2))) == Reason.WINDOWS


# Where whole rows are private


@pytest.mark.parametrize("kind", [kind for kind in forging.STAGED if "rows" in kind])
def test_a_file_of_whole_rows_is_proven_but_for_how_many_rows_each_person_has(tmp_path, kind):
    found = verify(forging.honest(kind, tmp_path))
    assert 0.99 * PROMISE["delta"] < found.proven_delta <= PROMISE["delta"]
    left = [EACH] if kind in forging.PEOPLES_ROWS else []
    assert [what.partition(":")[0] for what in found.unchecked] == left
    assert "how many rows each cell is taken to have, from the first answer" in found.checks


def test_that_a_person_had_one_row_is_the_custodians_word(tmp_path):
    """The file of whole rows for people is the same: nothing in it shows whose they are."""
    path = forging.honest("whole rows", tmp_path)
    assert verify(path).headline == "verified: (1, 0.01)-DP, unit one whole row; not signed"
    with pytest.raises(ValueError, match="does not show its inputs"):
        verify(path, X=np.zeros((12, 2)))
    rewrite(path, words("grid", max_rows=1))
    rewrite(path, protects(PERSON_ROWS))
    found = verify(path)
    assert found.unit == PERSON_ROWS.name
    assert [what.partition(":")[0] for what in found.unchecked] == [EACH]
    assert found.headline.startswith("verified IN PART: (1, 0.01)-DP")
    assert EACH in found.headline


# Categories


def test_a_level_of_one_row_has_a_column_that_the_file_bounds(tmp_path):
    """As long as any other at most: its noise is the whole promise's."""
    levels = np.where(np.arange(12) == 11, 8.0, np.arange(12) % 3)
    inputs = np.column_stack([X[:, 0], levels])
    plan = AutoGP((-1.0, 4.0), categories=[1], stages=2).plan(inputs, X_star=inputs[:4], **PROMISE)
    release = plan.release(Y)
    for stage in release.stages:
        m = stage.measurement
        norms = (m.matrix.astype(object) ** 2).sum(axis=0)
        assert 0 < norms[11] * 4**m.y_bits <= m.sensitivity() ** 2
    release.save(tmp_path / "file")
    assert cloakgp.load(tmp_path / "file").settings == release.settings
    rewrite(tmp_path / "file", entry("matrix_1", (0, 11), lambda v: v + 2**40))
    with pytest.raises(VerificationError):
        verify(tmp_path / "file")


def test_cells_keep_levels_apart_in_files_too(tmp_path):
    levels = np.resize([0.0, 1.0, 2.0, 8.0], 60)
    inputs = np.column_stack([np.linspace(0, 1, 60), levels])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "MOST_CELLS", 16)
        model = AutoGP((-1.0, 4.0), categories=[1], stages=2)
        plan = model.plan(inputs, X_star=inputs[:4], **PROMISE)
    assert set(plan.rule.cells.centres[:, 1]) == {0.0, 1.0, 2.0, 8.0}
    plan.release(np.resize(Y, 60)).save(tmp_path / "file")
    assert verify(tmp_path / "file").complete
    assert verify(tmp_path / "file", X=inputs).complete


def test_whole_rows_of_levels_alone(tmp_path):
    plan = AutoGP((-1.0, 4.0), stages=3).plan_rows(Grid({"c": ["a", "b", "z"]}, cells=6), 12, **PROMISE)
    made = plan.release({"c": np.resize(["a", "b", "z"], 12)}, Y)
    made.save(tmp_path / "file")
    assert verify(tmp_path / "file").complete
    assert made.settings[0].lengthscale == ()
