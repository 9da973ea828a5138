"""Plans and releases from tables: names stay with them, labels count, rows can be left out."""

import pickle
import re

import narwhals.stable.v2 as narwhals
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cloakgp
from cloakgp import ArgumentError, AutoGP, Columns, ReleaseFileError, binning
from cloakgp.files import container
from cloakgp.kernels import EQ, Category, Constant

PROMISE = {"epsilon": 2.0, "delta": 1e-3}
AGE_AND_SITE = EQ(20, variance=400.0, active_dims=[0]) * Category(0.5, active_dims=[1]) + Constant(900.0)
N = 40


def make_table():
    rng = np.random.default_rng(4)
    columns = {
        "age": rng.uniform(0, 80, N),
        "site": rng.choice(["north", "south", "west"], N),
        "who": rng.integers(0, 30, N),
    }
    table = pd.DataFrame(columns, index=rng.permutation(N) + 100)
    return table, 100 + table["age"] / 2 + 20 * (table["site"] == "west")


TABLE, HEIGHTS = make_table()
X = TABLE[["age", "site"]]
GP = cloakgp.GP(AGE_AND_SITE, 25.0, (0, 250))


@pytest.fixture(scope="module")
def plan():
    return GP.plan(X, X_star=X.iloc[:6], **PROMISE)


@pytest.fixture(scope="module")
def release(plan):
    return plan.release(HEIGHTS)


@pytest.fixture(scope="module")
def staged():
    plan = AutoGP(bounds=(0, 250), stages=2).plan(TABLE, X_star=X.iloc[:6], people="who", **PROMISE)
    return plan.release(HEIGHTS)


def test_a_table_is_planned_as_the_array_of_its_numbers_is(plan, staged):
    codes = {"north": 0.0, "south": 1.0, "west": 2.0}
    numbers = np.column_stack([X["age"], X["site"].map(codes)])
    np.testing.assert_array_equal(plan.X, numbers)
    same = GP.plan(numbers, X_star=numbers[:6], **PROMISE)
    np.testing.assert_array_equal(same.noise_std, plan.noise_std)
    assert same.columns is None
    for columns, place in ((["age", "site"], 1), (["site"], 0)):  # chosen points are of the table's levels
        chosen = AutoGP(bounds=(0, 250), stages=2).plan(X[columns], **PROMISE).X_star
        assert set(chosen[:, place]) == {0.0, 1.0, 2.0}
    known = staged.plan  # the column of people is no input
    assert (known.columns.names, known.columns.people, known.unit) == (("age", "site"), "who", "one person")
    assert known.prior.categories == (1,)
    np.testing.assert_array_equal(staged.predict(TABLE.iloc[:3]), staged.predict(X.iloc[:3]))


def test_predictions_look_at_names_and_not_at_places(release):
    for asked in (X, X[["site", "age"]], pa.table(dict(X))):
        np.testing.assert_array_equal(release.predict(asked), release.predict(np.asarray(release.plan.X)))
    with pytest.raises(ArgumentError, match="none named 'age'"):
        release.predict(X[["site"]])
    with pytest.raises(ArgumentError, match="no others; got 'sex'"):
        release.predict(X.assign(sex="f"))


def test_everything_that_is_asked_at_inputs_takes_a_table(release, staged):
    numbers = np.asarray(release.plan.X)
    for asked in (release, staged, release.remodel(GP), release.learn(), staged.remodel(GP)):
        few, same = X.iloc[:4], numbers[:4]
        np.testing.assert_array_equal(asked.predict(few), asked.predict(same))
        np.testing.assert_array_equal(asked.uncertainty(few).total, asked.uncertainty(same).total)
        np.testing.assert_array_equal(asked.sample(few, 2, 1), asked.sample(same, 2, 1))
    np.testing.assert_array_equal(release.plan.noise_at(X), release.plan.noise_at(numbers))
    np.testing.assert_array_equal(release.released_at(X.iloc[:6])[0], release.mean)


def test_a_new_level_is_predicted_from_the_others_and_less_surely(release):
    at = X.iloc[:3]
    mean, std = release.predict(at.assign(site="east"), return_std=True)
    known = [release.predict(at.assign(site=site), return_std=True) for site in ("north", "south", "west")]
    assert (std > np.max([one for _, one in known], axis=0)).all()
    assert (mean > np.min([one for one, _ in known], axis=0) - std).all()


@pytest.mark.parametrize("wrong", [HEIGHTS.iloc[::-1], HEIGHTS.reset_index(drop=True), HEIGHTS.sort_index()])
def test_labels_in_another_order_are_refused_before_anything_is_spent(plan, staged, wrong, tmp_path):
    ledger = cloakgp.Ledger(f"sqlite:///{tmp_path}/ledger.db")
    for made in (plan, staged.plan):
        ledger.create(f"heights of {made.unit}", epsilon=9.0, delta=0.1)
        with pytest.raises(ValueError, match=re.escape("y = y.loc[X.index]")) as error:
            made.release(wrong, ledger=ledger, dataset=f"heights of {made.unit}")
        assert not any(f"{value:.3g}" in str(error.value) for value in HEIGHTS)
        assert [one.kind for one in ledger.entries(f"heights of {made.unit}")] == ["created"]
    plan.release(wrong.to_numpy())  # whose order nobody can know
    plan.release(pa.array(wrong))
    GP.plan(pa.table(dict(X)), X_star=X.iloc[:6], **PROMISE).release(wrong)  # which has no labels
    if set(wrong.index) == set(X.index):
        plan.release(wrong.loc[X.index])


def test_labels_count_for_selections_and_functions_too():
    wrong = HEIGHTS.iloc[::-1]
    function = cloakgp.GP(EQ(20, active_dims=[0]), 25.0, (0, 250)).plan_function(X, **PROMISE)
    assert function.columns.names == ("age", "site")
    assert len(function.release(HEIGHTS).query(X.iloc[:3])) == 3
    models = [GP, cloakgp.GP(AGE_AND_SITE, 100.0, (0, 250))]
    selection = cloakgp.plan_selection(models, X, epsilon=1.0, folds=2)
    for made in (function.release, selection.select, selection.custodian_probabilities):
        with pytest.raises(ValueError, match="labels of X's rows"):
            made(wrong)
        made(HEIGHTS)


LEARNED = AutoGP((0, 250), stages=2)
BOX = cloakgp.Grid({"age": (0, 80), "site": ["north", "south", "west"]}, cells=4)
LABELLED = {
    "bins": lambda y: binning.plan(X[["age"]], X_star=[[1.0]], edges=4, bounds=(0, 250), epsilon=1.0).release(
        y
    ),
    "each": lambda y: binning.local(
        X[["age"]], X_star=[[1.0]], kernel=EQ(20), noise=1.0, bounds=(0, 250), epsilon=1.0
    ).release(y),
    "whole rows": lambda y: LEARNED.plan_rows(BOX, N, **PROMISE).release(X, y),
    "people": lambda ids: GP.plan(X, X_star=X.iloc[:6], people=ids, **PROMISE),
    "people's rows": lambda ids: LEARNED.plan_rows(BOX, 30, max_rows=5, **PROMISE).release(
        X, HEIGHTS, people=ids
    ),
}


@pytest.mark.parametrize("what", LABELLED)
def test_labels_count_wherever_rows_meet(what, few_models_here):
    """Of ids, too: one row's label with another's id, and the promise would be to nobody who is there."""
    right = pd.Series(np.arange(N) % 30, X.index, name="who") if "people" in what else HEIGHTS
    for wrong in (right.iloc[::-1], right.reset_index(drop=True)):
        with pytest.raises(ValueError, match="must have the labels of X's rows, in the same order"):
            LABELLED[what](wrong)
    for fine in (right, right.to_numpy()):
        LABELLED[what](fine)


def test_labels_of_rows_are_in_no_pickle():
    """They may be names; the release file does not have them either."""
    named = X.set_axis([f"Ada{row}" for row in range(N)])
    released = GP.plan(named, X_star=X.iloc[:2], missing_inputs="drop", **PROMISE).release(HEIGHTS.to_numpy())
    kept = pickle.dumps(released)
    assert b"Ada" not in kept
    bins = binning.plan(named[["age"]], X_star=[[1.0]], edges=4, bounds=(0, 250), epsilon=1.0)
    assert b"Ada" not in pickle.dumps(bins)
    np.testing.assert_array_equal(pickle.loads(kept).predict(X), released.predict(X))  # noqa: S301


def test_rows_with_missing_inputs_are_left_out_of_both(seeded, tmp_path):
    holes, gone = X.copy(), HEIGHTS.copy()
    holes.iloc[[3, 7], 0] = gone.iloc[3] = np.nan
    with pytest.raises(ArgumentError, match=r"'age' is missing in row 3 .counted from 0., and 1 more row"):
        GP.plan(holes, X_star=X.iloc[:6], **PROMISE)
    plan = GP.plan(holes, X_star=X.iloc[:6], missing_inputs="drop", **PROMISE)
    assert plan.certificate.n_rows == N - 2
    whole = GP.plan(holes.dropna(), X_star=X.iloc[:6], **PROMISE)
    plan.save(tmp_path / "plan")
    again = cloakgp.load_plan(tmp_path / "plan", holes)
    assert again.digest == plan.digest
    assert again.rows.dropped.tolist() == [3, 7]
    found = []
    for made, y in ((plan, HEIGHTS), (plan, gone), (again, HEIGHTS), (whole, HEIGHTS[holes["age"].notna()])):
        with seeded(5):
            found.append(made.release(y).z)
    assert all(np.array_equal(one, found[0]) for one in found)
    with pytest.raises(ValueError, match=rf"y must have shape \({N},\)"):
        plan.release(HEIGHTS[holes["age"].notna()])
    gone.iloc[4] = np.nan  # of a row that counts
    with pytest.raises(ValueError, match="y must be finite"):
        plan.release(gone)


def test_verify_takes_the_table(release, staged, tmp_path):
    for one, asked in ((release, {"X": X}), (staged, {"X": TABLE, "people": "who"})):
        one.save(tmp_path / "file")
        read = cloakgp.load(tmp_path / "file")
        np.testing.assert_array_equal(read.predict(X.iloc[:4]), one.predict(X.iloc[:4]))
        assert cloakgp.verify(tmp_path / "file", **asked).complete
        with pytest.raises(cloakgp.VerificationError):
            cloakgp.verify(tmp_path / "file", X=X.assign(age=X["age"] + 1))


def of_columns(change):
    return "columns", lambda words: change(words["inputs"])


FORGERIES = {
    "a name that cannot be printed": of_columns(lambda inputs: inputs[0].update(name="a\nb")),
    "a name that is too long": of_columns(lambda inputs: inputs[0].update(name="a" * 201)),
    "a column too many": of_columns(lambda inputs: inputs.append({"name": "more", "kind": "number"})),
    "one name twice": of_columns(lambda inputs: inputs[0].update(name="site")),
    "a key too many": of_columns(lambda inputs: inputs[0].update(note="hello")),
    "an empty unit": of_columns(lambda inputs: inputs[0].update(unit="")),
    "levels of a number": of_columns(lambda inputs: inputs[0].update(levels=["a"])),
    "a level that is a list": of_columns(lambda inputs: inputs[1].update(levels=[["a"]])),
    "a long response": ("columns", lambda words: words.update(response="a" * 201)),
    "a row out of range": ("table_rows", lambda words: words.update(dropped=[99])),
    "a row twice": ("table_rows", lambda words: words.update(dropped=[3, 3], rows=N + 1)),
    "other rows": ("table_rows", lambda words: words.update(rows=N + 5)),
    "no number": ("table_rows", lambda words: words.update(dropped=[True])),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_file_with_other_words_is_refused(name, tmp_path):
    holes = X.copy()
    holes.iloc[3, 0] = np.nan
    plan = GP.plan(holes, X_star=X.iloc[:6], missing_inputs="drop", **PROMISE)
    plan.release(HEIGHTS).save(tmp_path / "file")
    manifest, arrays, _ = container.read(tmp_path / "file")
    key, forge = FORGERIES[name]
    forge(manifest[key])
    (tmp_path / "forged").write_bytes(container.pack(container.bare(manifest), arrays))
    with pytest.raises(ReleaseFileError, match=r"columns|rows"):
        cloakgp.load(tmp_path / "forged")


def test_a_kernel_must_not_take_codes_for_distances():
    with pytest.raises(
        ArgumentError, match=r"levels of 'site'; got EQ.* Use kernels.Category .*active_dims=\['site'\]"
    ):
        cloakgp.GP(EQ(20) + Constant(1.0), 25.0, (0, 250)).plan(X, X_star=X, **PROMISE)
    two = X.assign(site=X["site"] == "west")  # which are as far apart either way
    cloakgp.GP(EQ(20), 25.0, (0, 250)).plan(two, X_star=two.iloc[:2], **PROMISE)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_have_test_points_as_they_were_given(release, staged, backend, monkeypatch):
    pytest.importorskip(backend)
    frame = release.to_frame(level=0.5, backend=backend)
    assert list(map(str, frame["site"])) == list(X["site"].iloc[:6])
    half = np.asarray(frame["upper"]) - np.asarray(frame["prediction"])
    np.testing.assert_allclose(half, 0.6745 * np.asarray(frame["std"]), rtol=1e-4)
    assert len(staged.to_frame(backend=backend)) == len(staged.plan.to_frame(backend=backend)) == 6
    with pytest.raises(ArgumentError, match="backend must be one of"):
        release.to_frame(backend="excel")

    def absent(table, backend):
        raise ModuleNotFoundError(backend)

    monkeypatch.setattr(narwhals, "from_dict", absent)
    with pytest.raises(ArgumentError, match=f"Install {backend}, or give backend="):
        release.to_frame(backend=backend)


def test_functions_and_bins_are_tables_too():
    model, ages, heights = cloakgp.GP(EQ(20.0), 25.0, (0.0, 250.0)), np.arange(8.0), np.full(8, 100.0)
    bins = binning.plan(ages, X_star=[1.0, 6.0], edges=2, bounds=(0, 250), mechanism="gaussian", **PROMISE)
    assert list(bins.release(heights).to_frame().columns) == ["x", "prediction", "noise_std"]
    function = model.plan_function(ages, **PROMISE).release(heights)
    assert function.to_frame([2.5])["released"].tolist() == function.query([2.5]).tolist()


def test_releases_are_combined_by_names_and_levels():
    half = N // 2
    parts = [X.iloc[:half], X.iloc[half:]]
    both = [GP.plan(part, X_star=X.iloc[:4], **PROMISE).release(HEIGHTS.loc[part.index]) for part in parts]
    joined = cloakgp.combine(both, same_data=False)
    np.testing.assert_array_equal(joined.predict(X.iloc[:3]), joined.predict(np.asarray(both[0].plan.X[:3])))
    coded = Columns.of(X, levels={"site": ["west", "south", "north"]})
    other = GP.plan(parts[1], X_star=X.iloc[:4], columns=coded, **PROMISE).release(
        HEIGHTS.loc[parts[1].index]
    )
    with pytest.raises(
        ArgumentError, match=r"'site' in one and 'site' in another, or coded otherwise\. Agree"
    ):
        cloakgp.combine([both[0], other], same_data=False)


def test_kernels_read_columns_by_name(plan, tmp_path):
    kernel = EQ(20, variance=400.0, active_dims=["age"]) * Category(0.5, active_dims=["site"]) + Constant(
        900.0
    )
    named = cloakgp.GP(kernel, 25.0, (0, 250)).plan(X[["site", "age"]], X_star=X.iloc[:6], **PROMISE)
    assert named.gp.kernel == AGE_AND_SITE.with_params(k1__k1__active_dims=[1], k1__k2__active_dims=[0])
    np.testing.assert_allclose(named.noise_std, plan.noise_std, rtol=1e-9)
    with pytest.raises(ArgumentError, match=r"named as in X; got 'height'\. There are 'age', 'site'"):
        cloakgp.GP(EQ(20, active_dims=["height"]), 25.0, (0, 250)).plan(X, X_star=X, **PROMISE)
    with pytest.raises(ArgumentError, match="must count columns, where X has no names"):
        cloakgp.GP(kernel, 25.0, (0, 250)).plan(np.ones((3, 2)), X_star=np.ones((1, 2)), **PROMISE)
