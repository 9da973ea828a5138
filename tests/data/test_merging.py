"""Equal rows are merged, and nothing but the work changes: predictions, noise, promise, files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloakgp
from cloakgp import GP, combine
from cloakgp.data import merging
from cloakgp.data.merging import Groups, distinct, group
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ, Matern32
from cloakgp.model.inducing import SparseGP
from cloakgp.model.smoothers import Merged

RNG = np.random.default_rng(5)
SITES = RNG.uniform(0, 10, size=(7, 2))
WHICH = np.concatenate([np.arange(7), RNG.integers(0, 7, size=23)])
RNG.shuffle(WHICH)
X = SITES[WHICH]
X_STAR = RNG.uniform(0, 10, size=(4, 2))
NEW = RNG.uniform(-1, 11, size=(6, 2))
PLACES = SITES[:4] + 0.3
Y = RNG.normal(1.5, 2.0, size=30)
BOUNDS = (-1.0, 4.0)

NOISE = {
    "one noise": 0.4,
    "equal noise per row": np.full(30, 0.4),
    "noise by site": np.geomspace(0.1, 3.0, 7)[WHICH],
    "three noises at each site": RNG.choice([0.2, 0.5, 1.1], size=30),
    "noise of each row": np.geomspace(0.1, 3.0, 30),
}
PRIORS: dict[str, dict[str, Any]] = {
    "exact": {},
    "dtc": {"inducing": PLACES},
    "fitc": {"inducing": PLACES, "approximation": "fitc"},
}
every_noise = pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


def model(noise: Any = 0.4, **prior: Any) -> GP:
    return GP(Matern32([3.0, 5.0], variance=1.5), noise, BOUNDS, 0.7, **prior)


def make(noise: Any = 0.4, design: str = "mse", **prior: Any) -> cloakgp.Plan:
    return model(noise, **prior).plan(X, X_star=X_STAR, epsilon=1.0, delta=0.01, design=design)


def n_distinct(noise: Any) -> int:
    return len({(*x, s) for x, s in zip(X.tolist(), np.broadcast_to(noise, 30).tolist(), strict=True)})


# Finding equal rows

rows_of_few_values = st.integers(1, 3).flatmap(
    lambda columns: st.lists(
        st.tuples(*[st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, 1.0000000000000002])] * columns),
        min_size=1,
        max_size=25,
    )
)


def expected_labels(table: list[tuple[float, ...]]) -> list[int]:
    """By Python's own equality, for which -0.0 is 0.0; in the order of first appearance."""
    seen: dict[tuple[float, ...], int] = {}
    return [seen.setdefault(row, len(seen)) for row in table]


def check_groups(found: Groups | None, table: list[tuple[float, ...]]) -> None:
    labels = expected_labels(table)
    if len(set(labels)) == len(table):
        assert found is None
        return
    assert found is not None
    assert found.labels.tolist() == labels
    assert found.counts.tolist() == [labels.count(label) for label in range(max(labels) + 1)]
    assert found.first.tolist() == [labels.index(label) for label in range(max(labels) + 1)]
    assert found.n_rows == len(table)


@given(rows_of_few_values)
def test_equal_rows_are_found_in_the_order_of_their_first(table):
    check_groups(group(np.array(table)), table)


@given(rows_of_few_values, st.sampled_from([1, 2]))
def test_unequal_rows_with_one_hash_are_kept_apart(table, different):
    """As if the hash could tell nothing, or only odd rows from even ones."""
    hashes = np.arange(len(table), dtype=np.uint64) % np.uint64(different)
    # Equal rows must have equal hashes, as they do.
    hashes = hashes[[expected_labels(table).index(label) for label in expected_labels(table)]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "_hashes", lambda table: hashes)
        check_groups(group(np.array(table)), table)


@given(rows_of_few_values, st.booleans(), st.integers(1, 8))
def test_equal_rows_are_found_a_chunk_at_a_time_too(table, per_row, most):
    """For X too long to be sorted whole: the same groups, or none if most rows are distinct."""
    X, noise = np.array(table), np.arange(len(table)) % 2 + 0.5 if per_row else 0.5
    whole = distinct(X, noise)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.data.chunks.CHUNK", 3)
        parts = distinct(X, noise, None, most)
    if parts.groups is None:
        assert whole.groups is None or len(whole) > most
        assert parts.X is X
        return
    assert len(whole) <= most or len(X) <= most
    np.testing.assert_array_equal(parts.groups.labels, whole.groups.labels)
    np.testing.assert_array_equal(parts.groups.counts, whole.groups.counts)
    assert parts.X.tobytes() == whole.X.tobytes()  # also the zeros' signs
    np.testing.assert_array_equal(parts.variances, whole.variances)


@given(rows_of_few_values)
def test_a_chunk_at_a_time_never_joins_unequal_rows_with_one_hash(table):
    X = np.array(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.data.chunks.CHUNK", 3)
        patch.setattr(merging, "_hashes", lambda table: np.zeros(len(table), dtype=np.uint64))
        found = distinct(X, 0.5, None, 8)
    if found.groups is not None:
        np.testing.assert_array_equal(found.X[found.groups.labels], X)


def test_zeros_of_either_sign_are_one_input():
    found = distinct(np.array([[-0.0], [1.0], [0.0], [-0.0]]), 0.3)
    assert found.groups.labels.tolist() == [0, 1, 0, 0]
    assert found.X.tolist() == [[0.0], [1.0]]
    X = np.array([-0.0, 1.0, 0.0, -0.0])
    plan = GP(EQ(1.0), 0.3, (0.0, 1.0)).plan(X, X_star=[0.5], epsilon=1.0, delta=0.01)
    assert plan.measurement.matrix.shape[1] == 2
    np.testing.assert_array_equal(np.signbit(plan.X[:, 0]), np.signbit(X))  # as it was given


def test_distinct_rows_are_left_as_they_are():
    X = np.arange(4.0)[:, None]
    found = distinct(X, 0.1)
    assert found.X is X
    assert found.groups is None
    assert found.counts.tolist() == [1.0] * 4
    assert found.variances.tolist() == [0.1] * 4


# Merged is unmerged


@every_noise
@every_prior
def test_merged_columns_and_covariances_are_the_textbooks(by_the_book, noise, prior):
    gp = model(noise, **prior)
    planner, book = gp.planner(X, X_star=X_STAR), by_the_book(gp, X, X_STAR)
    inputs, smoother = planner.inputs, planner.smoother
    assert len(inputs) == smoother.n_rows == n_distinct(noise)
    labels = np.arange(30) if inputs.groups is None else inputs.groups.labels
    L = (labels == np.arange(len(inputs))[:, None]).astype(float)  # sums over groups
    C = smoother.columns(slice(None))
    np.testing.assert_allclose(C[:, labels], book.C, atol=1e-9)
    np.testing.assert_allclose(smoother.columns(np.array([3, 0])), C[:, [3, 0]], atol=1e-12)
    np.testing.assert_allclose(smoother.cross, L @ book.cross, atol=1e-9)
    B = np.random.default_rng(1).normal(size=(3, len(inputs)))
    np.testing.assert_allclose(smoother.times_covariance(B), B @ L @ book.K @ L.T, atol=1e-9)
    np.testing.assert_allclose(smoother.posterior_variance, book.variance, atol=1e-9)
    np.testing.assert_allclose(smoother.explained_variance, book.explained, atol=1e-9)
    assert smoother.jitter == 0.0


@pytest.mark.parametrize("design", DESIGNS)
@every_noise
@every_prior
def test_merged_releases_are_the_textbooks(by_the_book, noiseless, design, noise, prior):
    gp = model(noise, **prior)
    plan, at_star, at_new = make(noise, design, **prior), by_the_book(gp, X, X_STAR), by_the_book(gp, X, NEW)
    assert plan.measurement.matrix.shape[1] == n_distinct(noise)
    assert plan.measurement.n_rows == plan.certificate.n_rows == 30
    np.testing.assert_allclose(plan.gp_std, np.sqrt(at_star.variance), rtol=1e-9)
    assert plan.certificate.gap <= 0.0101
    exact = noiseless(plan, Y)
    away = np.abs(exact.mean - at_star.mean(np.clip(Y, *BOUNDS))).max()
    assert away <= plan.certificate.bias + 1e-9
    if plan.certificate.unbiased:
        assert away < 1e-5
    release = plan.release(Y)
    mean, cov = at_new.denoised([release])
    got, std = release.predict(NEW, return_std=True)
    np.testing.assert_allclose(got, mean, atol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-9)
    np.testing.assert_allclose(release.predict(NEW, return_cov=True)[1], cov, atol=1e-9)
    parts = release.uncertainty(NEW, include_noise=0.1)
    np.testing.assert_allclose(parts.gp, np.sqrt(at_new.variance), rtol=1e-7)
    np.testing.assert_allclose(parts.privacy**2, np.diag(cov) - at_new.variance, atol=1e-9)
    if design == "posterior":
        np.testing.assert_allclose(release.mean, release.predict(X_STAR), atol=1e-9)


@pytest.mark.parametrize("noise", [0.4, NOISE["three noises at each site"]], ids=["one noise", "three"])
@pytest.mark.parametrize(("prior", "kind"), [({}, Merged), (PRIORS["fitc"], SparseGP)], ids=["exact", "fitc"])
def test_planted_column_of_the_mean_for_each_row_is_caught(
    monkeypatch, by_the_book, noiseless, noise, prior, kind
):
    """A row that had its group's column c, and not c/n, would count n times: the textbook tells."""
    gp, right = model(noise, **prior), kind.columns
    book = by_the_book(gp, X, X_STAR).mean(np.clip(Y, *BOUNDS))

    def wrong(self, which):
        counts = gp.planner(X, X_star=X_STAR).inputs.counts
        return right(self, which) * counts[which]

    assert np.abs(noiseless(make(noise, **prior), Y).mean - book).max() < 1e-5
    monkeypatch.setattr(kind, "columns", wrong)
    assert np.abs(noiseless(make(noise, **prior), Y).mean - book).max() > 0.1


def test_all_rows_may_be_one():
    plan = GP(EQ(1.0), 0.3, (0.0, 1.0)).plan(np.zeros(50), X_star=[0.0], epsilon=1.0, delta=0.01)
    assert plan.measurement.matrix.shape == (1, 1)
    assert plan.measurement.counts.tolist() == [50]
    influence = 1 / (1 + 0.3 / 50)
    # One row moves the mean of 50 by 1/50 of it.
    expected = influence / 50 / plan.certificate.mu
    assert plan.noise_std[0] == pytest.approx(expected, rel=1e-6)


# Together with others


@every_noise
def test_merged_releases_and_functions_are_combined(by_the_book, noise):
    """Together they are the textbook's posterior given both."""
    gp = model(noise)
    promise = {"epsilon": 1.0, "delta": 0.01}
    releases = [
        make(noise).release(Y),
        gp.plan_function(X, basis=SITES, **promise).release(Y),
        make(noise, "posterior").release(Y),
    ]
    assert (releases[1].plan.measurement.groups is None) == (noise is NOISE["noise of each row"])
    for chosen in (releases, releases[::-1], releases[::2]):
        mean, cov = by_the_book(gp, X, NEW).denoised(chosen)
        got, std = combine(chosen).predict(NEW, return_std=True)
        np.testing.assert_allclose(got, mean, atol=1e-9)
        np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-9)
        known = combine(chosen).uncertainty(NEW, include_noise=0.1).gp
        np.testing.assert_allclose(known, np.sqrt(by_the_book(gp, X, NEW).variance), rtol=1e-7)
