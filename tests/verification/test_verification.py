"""verify(): what it proves of honest files, what it says of files that lack something, what it costs."""

from __future__ import annotations

import builtins
import io
import tracemalloc
from pathlib import Path

import forging
import numpy as np
import pytest
from forging import PROMISE, X_STAR, X, Y, refusal, rewrite

import cloakgp
from cloakgp import GP, VerificationError, verify
from cloakgp.data import chunks
from cloakgp.designs import DESIGNS
from cloakgp.files import container, reading
from cloakgp.kernels import EQ, Constant, Matern32
from cloakgp.release import encoding
from cloakgp.verification.reasons import Reason

KERNELS = {"EQ": EQ(2.0), "sum": Matern32(2.0) + Constant(3.0), "product": EQ(3.0) * Matern32(2.0)}


def custom(X, Z):
    return np.exp(-0.5 * (X - Z.T) ** 2)


# Honest files


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("calibration", ["analytic", "classic"])
@pytest.mark.parametrize("noise", [0.4, np.geomspace(0.1, 3, 12)], ids=["one noise", "noise per row"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_honest_files_are_verified(saved, design, calibration, noise, kernel):
    path = saved(design=design, calibration=calibration, noise=noise, kernel=kernel, weights=[1, 2, 3, 4])
    result = verify(path)
    assert (result.epsilon, result.delta, result.unit) == (1.0, 0.01, "one row")
    assert 0 < result.proven_delta <= 0.01
    if calibration == "analytic":
        assert result.proven_delta > 0.00999
    assert result.signed_by is None
    if not isinstance(noise, float):  # which y itself could be: no file can show that it is not
        (left,) = result.unchecked
        assert left.startswith("the origin of each row's noise")
        return
    assert result.complete
    assert result.unchecked == ()
    assert "NOT" not in str(result)
    assert str(result).startswith("verified: (1, 0.01)-DP, unit one row; not signed\n")


@pytest.mark.parametrize("kind", forging.PLANS)
def test_every_kind_of_file_is_verified_whole_but_the_hidden(tmp_path, kind):
    """And but for those where rows have bounds, means or noise of their own: no file shows their origin."""
    result = verify(forging.honest(kind, tmp_path))
    assert result.complete == (kind not in forging.IN_PART)
    if kind != "hidden":
        assert 0.00999 < result.proven_delta <= 0.01


def test_noise_that_follows_from_people_is_nobodys_word_and_other_noise_is(tmp_path):
    """Noise variances of each row could be y itself; what they owe to people's many rows is divided out."""
    X, ids = np.arange(8.0)[:, None], [0, 0, 0, 1, 2, 3, 4, 5]
    said = {}
    for what, noise in {"one": 0.5, "of each row": np.linspace(0.1, 2.0, 8)}.items():
        plan = GP(EQ(2.0), noise, (-1.0, 4.0)).plan(X, X_star=X[:2], people=ids, epsilon=1.0, delta=0.01)
        plan.release(np.ones(8)).save(tmp_path / "file")
        said[what] = verify(tmp_path / "file").unchecked
    assert said["one"] == ()
    assert [one.startswith("the origin of each row's noise") for one in said["of each row"]] == [True]


def test_paths_may_be_text(saved):
    assert verify(str(saved())).epsilon == 1.0


def test_a_file_with_jitter_is_verified(saved):
    path = saved(kernel=EQ(100.0), noise=1e-18)
    assert cloakgp.load(path).certificate.jitter > 0
    assert verify(path).complete


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 40.0, 1e4])
def test_promises_of_every_size_are_verified(saved, epsilon):
    assert verify(saved(epsilon=epsilon, delta=1e-9)).complete


def test_classic_above_epsilon_1_is_not_a_promise_of_this_library(saved):
    path = saved(epsilon=2.0)
    rewrite(path, forging.certificate(calibration="classic"))
    with pytest.raises(VerificationError, match="calibration"):
        verify(path)


# Part is not whole


def in_part(result, *words):
    """Said loudly, and with what it would take; nothing is proven."""
    assert not result.complete
    assert str(result).startswith("verified IN PART: ")
    assert "NOT checked: " in str(result)
    assert all(any(word in what for what in result.unchecked) for word in words)


def unproven(result):
    assert result.proven_delta is None
    assert "the sensitivity was not checked" in result.headline
    assert "claimed and not proven" in result.headline


def test_a_function_with_hidden_inputs_is_verified_in_part(tmp_path):
    result = verify(forging.honest("hidden", tmp_path))
    in_part(result, "the matrix is withheld", "X is withheld")
    unproven(result)


@pytest.mark.parametrize("kind", ["inducing, cells", "people, cells"])
def test_cells_without_x_are_verified_in_part(tmp_path, kind):
    """Also if X was taken out of a file that had it."""
    path = forging.honest(kind, tmp_path)
    rewrite(path, lambda manifest, arrays: [arrays.pop(name, None) for name in ("X", "people")])
    result = verify(path)
    in_part(result, "give X=", "which rows are in which cell")
    assert (result.proven_delta is None) == ("people" in kind)
    assert verify(path, X=X, **({"people": forging.IDS} if "people" in kind else {})).complete


def test_a_matrix_with_a_custom_kernel_proves_the_promise_but_not_the_predictions(saved):
    path = saved(kernel=custom)
    result = verify(path)
    in_part(result, "the predictions: the kernel is a custom one (give kernel=)")
    assert 0.00999 < result.proven_delta <= 0.01
    assert "but the predictions were not checked" in result.headline
    assert verify(path, kernel=custom).complete
    with pytest.raises(VerificationError):
        verify(path, kernel=EQ(0.1))
    rewrite(path, forging.both(sigma=lambda v: v // 2))
    with pytest.raises(VerificationError, match=r"too small for its epsilon and delta \(delta is"):
        verify(path)


def test_a_kernel_that_is_given_does_not_excuse_the_one_in_the_file(saved):
    path = saved()
    rewrite(path, forging.model(kernel=EQ(9.0, variance=1.5).to_spec()))
    with pytest.raises(VerificationError):
        verify(path, kernel=EQ(2.0, variance=1.5))


# X, if it is given, is compared

WRONG = {
    "one entry": lambda X: np.where(np.arange(len(X))[:, None] == 5, np.nextafter(X, 0), X),
    "another order": lambda X: X[::-1],
    "a row less": lambda X: X[:-1],
    "a row more": lambda X: np.vstack([X, X[:1]]),
    "a column more": lambda X: np.hstack([X, X]),
    "other numbers": lambda X: X + 1e-12,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kind", forging.SHOWN)
def test_other_inputs_are_refused_in_every_kind_of_file(tmp_path, kind, wrong):
    path = forging.honest(kind, tmp_path)
    right = reading.read(path)[1]["X"]
    for same in (right, right.tolist(), right[:, 0]):
        assert verify(path, X=same).complete == (kind not in forging.IN_PART)
    assert refusal(path, X=WRONG[wrong](right)) == Reason.OTHER_INPUTS


def test_other_inputs_are_refused_also_where_the_kernel_is_not_there(saved, tmp_path, monkeypatch):
    path = saved(kernel=custom)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 0)
    gp = GP(custom, 0.4, (-1.0, 4.0), 0.7, X_STAR)
    forging.in_cells(gp).release(Y).save(tmp_path / "cells")
    for file, reason in ((path, Reason.OTHER_INPUTS), (tmp_path / "cells", Reason.DIGEST)):
        with pytest.raises(VerificationError) as caught:
            verify(file, X=X + 1)
        assert caught.value.reason == reason


def test_x_cannot_be_compared_with_a_file_that_hides_it(tmp_path):
    with pytest.raises(ValueError, match=r"X: this file does not show its inputs.* leave it out"):
        verify(forging.honest("hidden", tmp_path), X=X)


# What it costs


@pytest.mark.parametrize("kind", ["mse", "inducing, cells", "function"])
def test_a_file_is_read_once(tmp_path, monkeypatch, kind):
    path, opened, right = forging.honest(kind, tmp_path), [], builtins.open

    def counted(file, *arguments, **options):
        opened.append(Path(file).name) if not isinstance(file, int) else None
        return right(file, *arguments, **options)

    monkeypatch.setattr(builtins, "open", counted)
    monkeypatch.setattr(io, "open", counted)
    verify(path)
    assert opened.count(path.name) == 1


@pytest.mark.parametrize("design", ["mse", "posterior"])
@pytest.mark.parametrize("n", [3_000, 60_000], ids=["rows", "cells"])
def test_memory_stays_below_a_few_times_the_arrays_size(tmp_path, monkeypatch, n, design):
    """With inducing inputs, so that the model itself is small beside the arrays: features are as large."""
    monkeypatch.setattr(chunks, "CHUNK", 4096)
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0, 10, size=(n, 6))
    gp = GP(EQ(4.0), 1.0, (0.0, 1.0), 0.5, inputs[:40])
    plan = gp.plan(inputs, X_star=inputs[:40], **PROMISE, design=design, gap=1.0)
    plan.release(rng.uniform(size=n)).save(tmp_path / "file")
    size = sum(array.nbytes for array in container.read(tmp_path / "file")[1].values())
    del plan
    verify(forging.honest("mse", tmp_path))  # what is imported late
    tracemalloc.start()
    try:
        assert verify(tmp_path / "file").complete
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    features = 8 * min(n, 4096) * 40
    assert peak < 3 * size + 8 * features, (peak / size, size)


# What a signature alone shows


@pytest.mark.parametrize("kind", [*forging.FOR_PEOPLE, "cells of people", "classes of people"])
def test_people_are_compared(tmp_path, kind):
    path = forging.honest(kind, tmp_path)
    assert verify(path, people=forging.IDS).complete
    assert refusal(path, people=forging.IDS[::-1]) == Reason.OTHER_PEOPLE
