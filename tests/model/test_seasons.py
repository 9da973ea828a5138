"""Seasons of dates: a periodic part each, on request, with a variance of its own."""

import numpy as np
import pandas as pd
import pytest

import cloakgp
from cloakgp import ArgumentError, AutoGP, ReleaseFileError
from cloakgp.files import container
from cloakgp.model.hyperprior import Setting

PROMISE = {"epsilon": 4.0, "delta": 1e-3}
DAYS = pd.DataFrame({"day": pd.date_range("2023-01-01", periods=56), "site": ["a", "b"] * 28})
SALES = 100 + 60 * np.sin(2 * np.pi * np.arange(56) / 7)


@pytest.fixture(scope="module")
def release():
    plan = AutoGP((0, 200), stages=2, seasons={"day": ["week"]}).plan(DAYS, X_star=DAYS.iloc[::9], **PROMISE)
    return plan.release(SALES)


def test_each_season_is_a_part_that_repeats():
    setting = Setting("EQ", (3.0,), 9.0, 1.0, 1.0, (), (0.5, 0.25, 0.25), ((0, 7.0), (0, 365.25)))
    x = np.array([[0.0], [7.0], [365.25], [3.5]])
    covariance = setting.smooth(8.0)(x)
    assert covariance[0, 0] == pytest.approx(8.0)
    assert covariance[0, 1] == pytest.approx(
        4 * np.exp(-49 / 18) + 2 + 2 * np.exp(-2 * np.sin(np.pi * 7 / 365.25) ** 2)
    )
    assert covariance[0, 2] == pytest.approx(2 + 2 * np.exp(-2 * np.sin(np.pi * 365.25 / 7) ** 2))
    assert setting.parts(["day"]) == ("numbers", "week of day", "year of day")


def test_seasons_stand_beside_categories():
    prior = AutoGP((0, 1), seasons={"day": ["week", 30]}).prior_for(cloakgp.Columns.of(DAYS), 2)
    assert prior.seasons == ((0, 7.0), (0, 30.0))
    assert prior.categories == (1,)
    (setting, *_) = prior.settings(np.array([56.0]), 1.0)
    assert setting.parts(["day", "site"]) == (
        "numbers",
        "site",
        "together",
        "week of day",
        "period 30 of day",
    )
    assert sum(setting.shares) == pytest.approx(1)
    assert setting.shape.diag(np.zeros((1, 2))) == pytest.approx(1)


def test_what_repeats_is_learned_and_predicted_beyond_the_data(release):
    ahead = pd.DataFrame({"day": pd.date_range("2023-03-05", periods=14), "site": ["a", "b"] * 7})
    truth = 100 + 60 * np.sin(2 * np.pi * (63 + np.arange(14)) / 7)
    assert np.corrcoef(release.predict(ahead), truth)[0, 1] > 0.7
    plain = AutoGP((0, 200), stages=2).plan(DAYS, X_star=DAYS.iloc[::9], **PROMISE).release(SALES)
    assert np.std(plain.predict(ahead)) < np.std(truth) / 4  # it has nothing to go by


def test_files_hold_seasons(release, tmp_path):
    release.save(tmp_path / "sales.cloak")
    again = cloakgp.load(tmp_path / "sales.cloak")
    assert again.plan.rule.prior == release.plan.rule.prior
    np.testing.assert_array_equal(again.predict(DAYS.head()), release.predict(DAYS.head()))
    assert cloakgp.verify(tmp_path / "sales.cloak", X=DAYS).complete


FORGED = {
    "a column that is not there": [[5, 7.0]],
    "a column of levels": [[1, 7.0]],
    "no period": [[0, 0.0]],
    "one twice": [[0, 7.0], [0, 7.0]],
    "none": [],
    "a word": [["day", 7.0]],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_file_with_other_seasons_is_refused(release, name, tmp_path):
    release.save(tmp_path / "file")
    manifest, arrays, _ = container.read(tmp_path / "file")
    manifest["model"]["prior"]["seasons"] = FORGED[name]
    (tmp_path / "forged").write_bytes(container.pack(container.bare(manifest), arrays))
    with pytest.raises(ReleaseFileError, match=r"prior|model|learned"):
        cloakgp.load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("seasons", "said"),
    [
        ({"day": ["month"]}, "day, week, year or numbers"),
        (["day"], "must say the periods of columns"),
        ({"date": "week"}, "named as in X; got 'date'. There are 'day', 'site'"),
        ({"site": 2.0}, "hold numbers or dates, not levels"),
        ({"site": "week"}, "must be a number for 'site'"),
        ({7: 2.0}, "columns of X, which has 2"),
        ({"day": -1.0}, "seasons must be finite and above 0"),
    ],
)
def test_seasons_that_make_no_sense_are_refused(seasons, said):
    with pytest.raises(ArgumentError, match=said):
        AutoGP((0, 200), seasons=seasons).plan(DAYS, **PROMISE)


def test_columns_of_arrays_are_counted():
    plan = AutoGP((0, 200), stages=1, seasons={0: 7}).plan(np.arange(20.0), X_star=[1.0, 2.0], **PROMISE)
    assert plan.rule.prior.seasons == ((0, 7.0),)
    with pytest.raises(ArgumentError, match="must count columns, since X has no names"):
        AutoGP((0, 200), seasons={"day": 7}).plan(np.arange(20.0), **PROMISE)
