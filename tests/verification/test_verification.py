"""verify(): what it proves of honest files, what it says of files that lack something, what it costs."""

from __future__ import annotations

import builtins
import io
import tracemalloc
from pathlib import Path

import forging
import numpy as np
import pytest
from forging import PROMISE, X_STAR, X, Y, rewrite
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from cloakgp import GP, ReleaseFileError, VerificationError, verify
from cloakgp.designs import DESIGNS
from cloakgp.files import container, reading
from cloakgp.kernels import EQ, Constant, Matern32
from cloakgp.model import smoothers
from cloakgp.plans import encoding, opening, out_of_core
from cloakgp.rows import chunks
from cloakgp.verification import guarantee, recipe
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
    assert result.complete
    assert result.unchecked == ()
    assert "NOT" not in str(result)
    assert str(result).startswith("verified: (1, 0.01)-DP, unit one row; not signed\n")


@pytest.mark.parametrize("kind", forging.PLANS)
def test_every_kind_of_file_is_verified_whole_but_the_hidden(tmp_path, kind):
    """And but for those where rows have bounds or means of their own, whose origin no file can show."""
    result = verify(forging.honest(kind, tmp_path))
    assert result.complete == (kind not in ("hidden", *forging.WITH_WINDOWS))
    if kind != "hidden":
        assert 0.00999 < result.proven_delta <= 0.01


def test_paths_may_be_text(saved):
    assert verify(str(saved())).epsilon == 1.0


def test_a_file_with_jitter_is_verified(saved):
    path = saved(kernel=EQ(100.0), noise=1e-18)
    assert opening.load(path)[0].certificate.jitter > 0
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


def test_a_recipe_without_x_is_verified_in_part(tmp_path):
    """Also if X was taken out of a file that had it."""
    path = forging.honest("recipe", tmp_path)
    rewrite(path, lambda manifest, arrays: arrays.pop("X"))
    result = verify(path)
    in_part(result, "give X=")
    unproven(result)
    assert verify(path, X=X).complete


def test_a_recipe_with_a_custom_kernel_is_verified_in_part(tmp_path, monkeypatch):
    """With X or without: its columns cannot be made without the kernel, whatever sensitivity it claims."""
    monkeypatch.setattr(out_of_core, "DENSE", 0)
    gp = GP(custom, 0.4, (-1.0, 4.0), 0.7, X_STAR)
    gp.plan(X, X_star=X_STAR, **PROMISE).release(Y).save(tmp_path / "file")
    for given_x in ({}, {"X": X}):
        result = verify(tmp_path / "file", **given_x)
        in_part(result, "the sensitivity: its columns are made with a custom kernel (give kernel=)")
        unproven(result)
    assert verify(tmp_path / "file", kernel=custom).complete

    def less_noise(manifest, arrays):
        forging.scale_noise(manifest, 0.5, sensitivity=True)

    rewrite(tmp_path / "file", less_noise)
    unproven(verify(tmp_path / "file"))
    with pytest.raises(VerificationError) as caught:
        verify(tmp_path / "file", kernel=custom)
    assert caught.value.reason == Reason.SENSITIVITY


def test_a_matrix_with_a_custom_kernel_proves_the_promise_but_not_the_predictions(saved):
    path = saved(kernel=custom)
    result = verify(path)
    in_part(result, "the predictions: the kernel is a custom one (give kernel=)")
    assert 0.00999 < result.proven_delta <= 0.01
    assert "but the predictions were not checked" in result.headline
    assert verify(path, kernel=custom).complete
    with pytest.raises(VerificationError):
        verify(path, kernel=EQ(0.1))
    rewrite(path, forging.certificate(epsilon=0.5))
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
        assert verify(path, X=same).complete == (kind not in forging.WITH_WINDOWS)
    with pytest.raises(VerificationError) as caught:
        verify(path, X=WRONG[wrong](right))
    assert caught.value.reason == Reason.OTHER_INPUTS


def test_other_inputs_are_refused_also_where_the_kernel_is_not_there(saved, tmp_path, monkeypatch):
    path = saved(kernel=custom)
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 0)
    gp = GP(custom, 0.4, (-1.0, 4.0), 0.7, X_STAR)
    gp.plan(X, X_star=X_STAR, **PROMISE).release(Y).save(tmp_path / "recipe")
    for file in (path, tmp_path / "recipe"):
        with pytest.raises(VerificationError) as caught:
            verify(file, X=X + 1)
        assert caught.value.reason == Reason.OTHER_INPUTS


def test_x_cannot_be_compared_with_a_file_that_hides_it(tmp_path):
    with pytest.raises(ValueError, match=r"X: this file does not show its inputs.* leave it out"):
        verify(forging.honest("hidden", tmp_path), X=X)


# Exact arithmetic

WHOLE = (
    st.integers(-(2**63), 2**63 - 1)
    | st.integers(-(2**33), 2**33)
    | st.sampled_from([2**31, -(2**31), 2**28])
)


@given(arrays_of.arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=WHOLE))
def test_squared_norms_are_exact_whatever_the_entries(columns):
    assert guarantee.squared_norms(columns) == [sum(v**2 for v in column) for column in columns.T.tolist()]


@given(
    arrays_of.arrays(np.int64, (3, 4), elements=WHOLE),
    arrays_of.arrays(np.int64, 4, elements=st.integers(0, 2**40)),
)
def test_absolute_sums_are_exact_whatever_the_entries(columns, counts):
    found = guarantee.absolute_sums(columns, counts).tolist()
    assert found == [
        sum(abs(v) * n for v, n in zip(row, counts.tolist(), strict=True)) for row in columns.tolist()
    ]


def test_limbs_stay_within_64_bits_at_their_ends():
    """The largest entries of the fast way, as many as a column has."""
    for value in (2**31 - 1, -(2**31) + 1):
        assert guarantee.squared_norms(np.full((4096, 1), value)) == [4096 * value**2]


# What it costs


@pytest.mark.parametrize("kind", ["mse", "recipe", "function"])
def test_a_file_is_read_once(tmp_path, monkeypatch, kind):
    path, opened, right = forging.honest(kind, tmp_path), [], builtins.open

    def counted(file, *arguments, **options):
        opened.append(Path(file).name) if not isinstance(file, int) else None
        return right(file, *arguments, **options)

    monkeypatch.setattr(builtins, "open", counted)
    monkeypatch.setattr(io, "open", counted)
    verify(path)
    assert opened.count(path.name) == 1


@pytest.mark.parametrize("kind", ["matrix", "matrix of posterior", "recipe"])
def test_memory_stays_below_three_times_the_arrays_size(tmp_path, monkeypatch, kind):
    """With inducing inputs, so that the model itself is small beside the arrays, as blocks of rows are.

    But for the rows' features, of which `posterior` measures few: they are as large as its arrays.
    """
    monkeypatch.setattr(smoothers, "BLOCK", 256)
    monkeypatch.setattr(chunks, "CHUNK", 4096)
    monkeypatch.setattr(chunks, "STEP", 256)
    monkeypatch.setattr(guarantee, "_BLOCK", 2**13)
    monkeypatch.setattr(recipe, "_BLOCK", 2**13)
    rng = np.random.default_rng(0)
    n = 60_000 if kind == "recipe" else 8_000
    inputs = rng.uniform(0, 10, size=(n, 6 if kind == "recipe" else 2))
    monkeypatch.setattr(out_of_core, "DENSE", 1 if kind == "recipe" else 2**24)
    gp = GP(EQ(4.0), 1.0, (0.0, 1.0), 0.5, inputs[:40])
    plan = gp.plan(
        inputs, X_star=inputs[:40], **PROMISE, design="posterior" if "posterior" in kind else "mse", gap=1.0
    )
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
    features = 8 * n * 40 if "posterior" in kind else 0
    assert peak < 3 * size + features, (peak / size, size)


def test_damaged_files_are_not_verified(tmp_path):
    path = forging.honest("mse", tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ReleaseFileError):
        verify(path)
