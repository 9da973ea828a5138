"""Files of releases with categories: what was learned of each part is held, and worked out again."""

import forging
import numpy as np
import pytest
from forging import rewrite

import cloakgp
from cloakgp import AutoGP, Grid, verify
from cloakgp.files.container import ReleaseFileError
from cloakgp.rows import cells
from cloakgp.verification.reasons import Reason, VerificationError

PROMISE = {"epsilon": 2.0, "delta": 0.01}
rng = np.random.default_rng(0)
LEVELS = rng.integers(0, 3, 60).astype(float)
LEVELS[11] = 8.0  # alone
X = np.column_stack([rng.uniform(size=60), LEVELS])
X_STAR = np.array([[0.2, 0.0], [0.8, 2.0], [0.5, 8.0], [0.5, 77.0]])
Y = 2 + np.sin(6 * X[:, 0]) + 3 * (LEVELS == 1) + rng.normal(0, 0.2, 60)


@pytest.fixture(scope="module")
def release():
    return AutoGP((-2.0, 8.0), categories=[1], stages=3).plan(X, X_star=X_STAR, **PROMISE).release(Y)


@pytest.fixture
def path(release, tmp_path):
    release.save(tmp_path / "file")
    return tmp_path / "file"


def test_a_file_gives_the_same_models_and_predictions(release, path):
    again = cloakgp.load(path)
    assert again.settings == release.settings
    assert all(len(one.shares) == 3 and one.categories == (1,) for one in again.settings)
    for found, made in zip(
        again.predict(X_STAR, return_std=True), release.predict(X_STAR, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(found, made)
    assert str(again.learned).splitlines()[0].endswith("shares: numbers, column 2, together")
    assert verify(path).complete


def learned(**changes):
    return lambda manifest, arrays: manifest["learned"][0].update(changes)


def prior(*categories):
    return lambda manifest, arrays: manifest["model"]["prior"].update(categories=list(categories))


def without_shares(manifest, arrays):
    for one in manifest["learned"]:
        del one["shares"]


@pytest.mark.parametrize(
    "lie",
    [
        learned(shares=[0.5, 0.5]),
        learned(shares=[0.5, 0.5, 0.5]),
        learned(shares=[1.5, -0.25, -0.25]),
        learned(shares=["0.5", 0.25, 0.25]),
        learned(shares=0.5),
        learned(lengthscale=[0.1, 0.1]),
        without_shares,
        prior(2),
        prior(1, 1),
        prior(True),
        prior(),
    ],
)
def test_what_makes_no_sense_does_not_fit_the_schema(path, lie):
    rewrite(path, lie)
    with pytest.raises(ReleaseFileError):
        cloakgp.load(path)


def test_other_shares_were_not_learned(path):
    rewrite(path, learned(shares=[0.98, 0.01, 0.01]))
    with pytest.raises(VerificationError) as caught:
        verify(path)
    assert caught.value.reason == Reason.LEARNED


def test_of_no_category_windows_would_be_others(path):
    def change(manifest, arrays):
        del manifest["model"]["prior"]["categories"]
        for one in manifest["learned"]:
            del one["shares"]
            one["lengthscale"] = [*one["lengthscale"], 1.0]

    rewrite(path, change)
    with pytest.raises(VerificationError) as caught:
        verify(path)
    assert caught.value.reason in (Reason.WINDOWS, Reason.DISTANCES)


def test_a_level_of_one_row_has_a_column_that_the_file_bounds(release, path):
    """As long as any other at most: its noise is the whole promise's."""
    for stage in release.stages:
        m = stage.plan.measurement
        label = 11 if m.groups is None else m.groups.labels[11]
        norms = (m.matrix.astype(object) ** 2).sum(axis=0)
        assert 0 < norms[label] * 4**m.y_bits <= m.sensitivity() ** 2
    rewrite(path, forging.entry("matrix_1", (0, 11), lambda v: v + 2**40))
    with pytest.raises(VerificationError) as caught:
        verify(path)
    assert caught.value.reason in (Reason.SENSITIVITY, Reason.LINE)


def test_cells_keep_levels_apart_in_files_too(tmp_path, monkeypatch):
    import cloakgp.plans.staged_planner as planner

    monkeypatch.setattr(cells, "MOST_CELLS", 16)
    monkeypatch.setattr(planner, "MOST_CELLS", 16)
    plan = AutoGP((-2.0, 8.0), categories=[1], stages=2).plan(X, X_star=X_STAR, **PROMISE)
    assert set(plan.rule.cells.centres[:, 1]) == {0.0, 1.0, 2.0, 8.0}
    plan.release(Y).save(tmp_path / "file")
    assert verify(tmp_path / "file").complete
    assert verify(tmp_path / "file", X=X).complete


@pytest.mark.parametrize("box", [{"x": (0.0, 1.0), "c": ["a", "b", "z"]}, {"c": ["a", "b", "z"]}])
def test_whole_rows_with_levels(tmp_path, box):
    grid = Grid(box, cells=6)
    plan = AutoGP((-2.0, 8.0), stages=3).plan_rows(grid, 60, **PROMISE)
    assert plan.rule.prior.categories == (len(box) - 1,)
    table = {"x": X[:, 0], "c": np.array(["a", "b", "z"])[LEVELS.astype(int) % 3]}
    made = plan.release({name: table[name] for name in box}, Y)
    made.save(tmp_path / "file")
    assert verify(tmp_path / "file").complete
    assert len(made.settings[0].lengthscale) == len(box) - 1
