"""More noise for rows that stand alone: the formula by brute force, and equal rows alike."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import GP
from cloakgp.data import chunks
from cloakgp.data.merging import distinct
from cloakgp.kernels import EQ, Linear
from cloakgp.model.gp import MOST, downweighted, leverage

RNG = np.random.default_rng(3)
X = np.vstack([RNG.normal(size=(60, 2)), [[6.0, 6.0], [-7.0, 5.0]]])  # the last two stand alone
REPEATED = np.vstack([X, X[10:40], X[20:30], -0.0 * X[:1], 0.0 * X[:1]])
Z = RNG.normal(size=(9, 2)) * 2
INPUTS = {"distinct rows": X, "repeated rows": REPEATED}
NOISE = {"one noise": lambda n: 0.3, "noise per row": lambda n: np.resize([0.2, 0.5, 0.9, 0.5], n)}
MODELS = {"exact": {}, "dtc": {"inducing": Z}, "fitc": {"inducing": Z, "approximation": "fitc"}}
KERNEL = EQ(1.5, variance=2.0)

every_input = pytest.mark.parametrize("data", INPUTS.values(), ids=INPUTS)
every_noise = pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
every_model = pytest.mark.parametrize("places", MODELS.values(), ids=MODELS)


def by_brute_force(gp, data):
    """diag of F (F + D)^-1, with F the covariance of what the model smooths, row by row of y."""
    smooth, D = gp.kernel(data), np.broadcast_to(gp.noise, len(data))
    if gp.inducing is not None:
        cross = gp.kernel(data, gp.inducing)
        known = cross @ np.linalg.solve(gp.kernel(gp.inducing), cross.T)
        D = D + (np.diag(smooth - known) if gp.approximation == "fitc" else 0.0)
        smooth = known
    return np.diag(smooth @ np.linalg.inv(smooth + np.diag(D)))


@every_input
@every_noise
@every_model
def test_noise_grows_with_the_leverage(monkeypatch, data, noise, places):
    monkeypatch.setattr(chunks, "CHUNK", 32)  # several passes
    monkeypatch.setattr(chunks, "STEP", 8)
    own = noise(len(data))
    gp = GP(KERNEL, own, (0.0, 1.0), downweight="leverage", **places)
    inputs = distinct(data, gp.noise)
    expected = by_brute_force(gp, data)
    each = np.arange(len(data)) if inputs.groups is None else inputs.groups.labels
    np.testing.assert_allclose(leverage(gp, inputs)[each], expected, rtol=1e-8)
    found = downweighted(gp, inputs)
    factor = np.clip(expected / np.median(expected), 1.0, MOST)
    np.testing.assert_allclose(found.noise / own, factor, atol=0.0051)
    assert (factor[:60] == 1.0).sum() >= 10
    assert factor.max() > 3
    assert (found.downweight, found.approximation) == (None, gp.approximation)


@every_noise
@every_model
def test_equal_rows_keep_equal_variances(noise, places):
    own = noise(len(REPEATED))
    gp = GP(KERNEL, own, (0.0, 1.0), downweight="leverage", **places)
    found = downweighted(gp, distinct(REPEATED, gp.noise))
    table = np.column_stack([REPEATED, np.broadcast_to(own, len(REPEATED))]) + 0.0
    for row in table:
        assert len(set(found.noise[(table == row).all(axis=1)])) == 1
    if np.ndim(own) == 0:
        merged = distinct(REPEATED, found.noise).groups
        np.testing.assert_array_equal(merged.labels, distinct(REPEATED, own).groups.labels)


@pytest.mark.parametrize(
    ("kernel", "own", "rows", "factors"),
    [
        (EQ(1.0), 0.1, [*np.linspace(0.0, 1.0, 500), 1000.0], [1] * 500 + [MOST]),
        (Linear(), 1e6, [1.0, 1.0, 1.0, 3.0], [1, 1, 1, 9]),  # only relative leverage counts
        (Linear(), 0.1, [0.0] * 5 + [1.0], [1] * 5 + [MOST]),  # rows without any
    ],
)
def test_noise_of_a_row_that_stands_alone(kernel, own, rows, factors):
    gp = GP(kernel, own, (0.0, 1.0), downweight="leverage")
    noise = downweighted(gp, distinct(np.array(rows)[:, None], gp.noise)).noise
    middle = (
        [0, len(rows) // 2, -1] if kernel == EQ(1.0) else slice(None)
    )  # ends of a crowd stand out a little
    np.testing.assert_allclose(noise[middle][1:], own * np.array(factors)[middle][1:])


@pytest.mark.torch
def test_the_same_on_a_torch_device():
    for data in (X, REPEATED):
        gp = GP(KERNEL, 0.3, (0.0, 1.0), downweight="leverage")
        here, there = (gp.planner(data, X_star=Z, device=device).gp.noise for device in (None, "cpu"))
        np.testing.assert_array_equal(there, here)
