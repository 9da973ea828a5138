"""Plans whose promise is to people: what they measure, what they refuse, and what follows from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cloakgp
from cloakgp import GP, AutoGP
from cloakgp.core.errors import ArgumentError, Refused
from cloakgp.data import cells
from cloakgp.data.merging import Inputs
from cloakgp.data.people import People, as_people
from cloakgp.designs import DESIGNS
from cloakgp.files import container
from cloakgp.kernels import EQ
from cloakgp.release import encoding
from cloakgp.release.plan import Plan
from cloakgp.release.stages import Stage

RNG = np.random.default_rng(5)
N, PEOPLE = 60, 20
IDS = np.sort(RNG.integers(0, PEOPLE, size=N))
X = np.round(RNG.uniform(0, 10, size=N), 1)[:, None]
Y = 5 + 2 * np.sin(X[:, 0]) + RNG.normal(size=PEOPLE)[IDS]
STAR = np.linspace(0, 10, 6)[:, None]
PROMISE = {"epsilon": 1.0, "delta": 0.01}
MODEL = GP(EQ(2.0, variance=4.0), 1.0, (0.0, 10.0))
SPARSE = GP(EQ(2.0, variance=4.0), 1.0, (0.0, 10.0), inducing=[[1.0], [4.0], [7.0], [9.5]])


@pytest.fixture
def in_cells(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 16)


@pytest.mark.parametrize("design", [*DESIGNS, "staged"])
def test_people_of_one_row_each_change_nothing_but_the_words(design):
    model, chosen = (AutoGP((0, 10), stages=3), {}) if design == "staged" else (MODEL, {"design": design})
    plain, people = (
        model.plan(X, X_star=STAR, people=who, **chosen, **PROMISE) for who in (None, np.arange(N))
    )
    assert np.array_equal(plain.measurement.matrix, people.measurement.matrix)
    assert plain.measurement.sigma == people.measurement.sigma
    assert (plain.unit, people.unit) == ("one row", "one person")
    assert (plain.partition, len(people.partition)) == ("", 64)


def test_a_person_counts_once_if_their_noise_goes_together():
    """Everybody twice, at the same place: the same predictions and noise as everybody once."""
    once = MODEL.plan(X, X_star=STAR, **PROMISE)
    twice = MODEL.plan(np.vstack([X, X]), X_star=STAR, people=np.tile(np.arange(N), 2), **PROMISE)
    np.testing.assert_allclose(twice.gp_std, once.gp_std, rtol=1e-6)
    np.testing.assert_allclose(twice.noise_std, once.noise_std, rtol=0.02)
    assert twice.gp.noise.tolist() == [2.0] * (2 * N)


def test_without_correlation_rows_count_singly():
    plan = MODEL.plan(X, X_star=STAR, people=IDS, within=0.0, **PROMISE)
    np.testing.assert_allclose(plan.gp_std, MODEL.plan(X, X_star=STAR, **PROMISE).gp_std, rtol=1e-9)
    assert plan.noise_std.mean() > MODEL.plan(X, X_star=STAR, **PROMISE).noise_std.mean()


def test_the_limit_on_columns_keeps_people_within_the_width_of_the_bounds():
    """A person's columns together are no longer than a row's alone would be."""
    for within in (0.0, 0.5, 1.0):
        plan = MODEL.plan(X, X_star=STAR, people=IDS, within=within, **PROMISE)
        assert plan.certificate.sensitivity <= 10.0 * (1 + 1e-6)


def test_rows_are_merged_with_such_of_people_who_have_as_many():
    places = np.array([[1.0], [1.0], [1.0], [2.0], [1.0]])
    plan = MODEL.plan(places, X_star=STAR, people=["a", "b", "c", "a", "b"], **PROMISE)
    assert plan.measurement.groups.labels.tolist() == [0, 0, 1, 2, 0]
    staged = AutoGP((0, 10), stages=2).plan(places, X_star=STAR, people=["a", "b", "c", "a", "b"], **PROMISE)
    assert staged.rule.inputs.groups.labels.tolist() == [0, 0, 1, 2, 0]
    assert staged.rule.rows_each.tolist() == [2, 1, 2]


@pytest.mark.parametrize("within", [0.4, 1.0])
@pytest.mark.parametrize("design", DESIGNS)
def test_people_in_cells_get_noise_for_all_of_their_rows(in_cells, within, design):
    """Columns of cells are limited as those of their rows' people on average, and counted as they are."""
    plan = SPARSE.plan(X, X_star=STAR, people=IDS, within=within, design=design, **PROMISE)
    m = plan.measurement
    assert m.matrix.shape[1] <= 16
    alone = [m.matrix[:, m.labels[np.array(IDS) == one]].astype(float) for one in set(IDS)]
    longest = max(np.abs(own.T @ own).sum() for own in alone) ** 0.5 * 2.0**m.y_bits
    assert 0.5 * longest < m.sensitivity() <= longest * (1 + 1e-9)
    plan.release(Y)


@pytest.mark.torch
@pytest.mark.parametrize("design", DESIGNS)
def test_another_device_finds_the_same(design):
    here = MODEL.plan(X, X_star=STAR, design=design, people=IDS, **PROMISE)
    there = MODEL.plan(X, X_star=STAR, design=design, people=IDS, device="cpu", **PROMISE)
    np.testing.assert_allclose(there.noise_std, here.noise_std, rtol=1e-6)
    assert there.unit == "one person"


@pytest.mark.parametrize("bound", ["infinity", "paper", "input-free", "varah"])
def test_bounds_on_one_row_refuse_people(bound):
    with pytest.raises(ArgumentError, match="on what one row can do"):
        MODEL.plan_function(X, bound=bound, people=IDS, **PROMISE)


def test_a_function_for_people():
    row, person = MODEL.plan_function(X, **PROMISE), MODEL.plan_function(X, people=IDS, within=0, **PROMISE)
    assert person.unit == "one person"
    np.testing.assert_allclose(person.measurement.real_matrix(), row.measurement.real_matrix(), atol=1e-8)
    assert person.noise_at(STAR).mean() > 1.5 * row.noise_at(STAR).mean()
    person.release(Y).predict(STAR)


# AutoGP


@pytest.fixture(scope="module")
def staged():
    plan = AutoGP((0, 10), stages=3).plan(X, X_star=STAR, people=IDS, **PROMISE)
    return plan.release(Y)


def test_in_stages_a_person_counts_once():
    """Everybody twice: what is expected of the release is the same as if everybody were there once."""
    once = AutoGP((0, 10), stages=3).plan(X, X_star=STAR, **PROMISE)
    twice = AutoGP((0, 10), stages=3).plan(
        np.vstack([X, X]), X_star=STAR, people=np.tile(np.arange(N), 2), **PROMISE
    )
    np.testing.assert_allclose(twice.expected_error, once.expected_error, rtol=0.02)
    np.testing.assert_allclose(twice.gp_std, once.gp_std, rtol=1e-6)


def test_cells_hold_people_too(monkeypatch, tmp_path):
    """Many different rows: people's columns are those of their rows' cells."""
    monkeypatch.setattr(cells, "MOST_CELLS", 16)
    plan = AutoGP((0, 10), stages=2).plan(X + 1e-3 * IDS[:, None], X_star=STAR, people=IDS, **PROMISE)
    m, own = plan.first.measurement, np.bincount(IDS)[IDS]
    np.testing.assert_allclose(plan.rule.rows_each * m.counts, np.bincount(m.labels, own))
    release = plan.release(Y)
    release.save(tmp_path / "whole")
    assert cloakgp.verify(tmp_path / "whole").complete
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 1)
    release.save(tmp_path / "digest")
    given = {"X": X + 1e-3 * IDS[:, None], "people": IDS}
    for some in ({}, {"X": given["X"]}, {"people": IDS}):
        found = cloakgp.verify(tmp_path / "digest", **some)
        assert (found.proven_delta, found.missing) == (None, "the sensitivity")
    assert cloakgp.verify(tmp_path / "digest", **given).complete
    again = cloakgp.load(tmp_path / "digest")
    assert again.plan.digest == plan.digest
    np.testing.assert_allclose(again.predict(STAR), release.predict(STAR))
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "digest").read_bytes()
    plan.save(tmp_path / "plan")
    for others in ({}, {"people": np.arange(len(Y))}):
        with pytest.raises(Refused, match="people"):
            cloakgp.load_plan(tmp_path / "plan", given["X"], **others)
    assert cloakgp.load_plan(tmp_path / "plan", **given).release(Y).certificate.unit == "one person"


# Earlier releases, other models, several releases


def test_what_was_given_must_protect_the_same_people(staged):
    plan = MODEL.plan(X, X_star=STAR, people=IDS, given=[staged], windows=2.0, **PROMISE)
    assert plan.unit == "one person"
    plan.release(Y)
    with pytest.raises(ArgumentError, match="same unit"):
        MODEL.plan(X, X_star=STAR, given=[staged], **PROMISE)
    with pytest.raises(ArgumentError, match="same people"):
        MODEL.plan(X, X_star=STAR, people=IDS[::-1], given=[staged], **PROMISE)


def test_only_releases_to_the_same_people_are_combined():
    releases = [MODEL.plan(X, X_star=STAR, people=IDS, within=0.0, **PROMISE).release(Y) for _ in range(2)]
    cloakgp.combine(releases).predict(STAR)
    with pytest.raises(ArgumentError, match="protect the same"):
        cloakgp.combine([releases[0], MODEL.plan(X, X_star=STAR, **PROMISE).release(Y)])


def left_unknown(posterior):
    """What outcomes without any privacy noise would leave unknown: it tells how many rows are counted."""
    return posterior.uncertainty(STAR, include_noise=False).gp


@pytest.fixture(scope="module")
def once_and_twice():
    """Everybody's outcome once, and everybody's twice as the same person's."""
    X2, people = np.vstack([X, X]), np.tile(np.arange(N), 2)
    auto = AutoGP((0, 10), stages=2)
    return (
        (MODEL.plan(X, X_star=STAR, **PROMISE).release(Y), auto.plan(X, X_star=STAR, **PROMISE).release(Y)),
        tuple(
            maker.plan(X2, X_star=STAR, people=people, **PROMISE).release(np.tile(Y, 2))
            for maker in (MODEL, auto)
        ),
    )


def test_other_models_and_pooled_sets_count_people_once_too(once_and_twice):
    model = GP(EQ(1.5, variance=3.0), 1.0, (0.0, 10.0))
    other = MODEL.plan(X[:30] + 0.05, X_star=STAR, **PROMISE).release(Y[:30])
    for both in zip(*once_and_twice, strict=True):
        for asked in (
            lambda one: one.remodel(model),
            lambda one: cloakgp.combine([one, other], same_data=False, model=MODEL),
        ):
            np.testing.assert_allclose(*(left_unknown(asked(one)) for one in both), rtol=1e-5)


def test_learning_counts_people_once_too():
    """The same numbers, said of half of each of two rows: as likely under every model, and as telling."""
    places = np.linspace(0, 10, 30)[:, None]
    release = MODEL.plan(places, X_star=STAR, **PROMISE).release(Y[:30])
    plan, m = release.plan, release.plan.measurement
    both, people = np.vstack([places, places]), People(np.tile(np.arange(30), 2))
    halves = {"matrix": np.hstack([m.matrix, m.matrix]), "matrix_bits": m.matrix_bits + 1, "people": people}
    twice = Stage(replace(m, sigma=2 * m.sigma, **halves), readout=plan.first.readout, answer=2 * release.z)
    of_two = replace(plan, X=both, inputs=Inputs(both, 0.0, None), people=people, first=twice)
    once, again = release.learn(), replace(release, plan=of_two, stages=(twice,)).learn()
    for one, other in zip(again.settings, once.settings, strict=True):
        assert one.family == other.family
        numbers = ([each.lengthscale[0], each.signal, each.noise] for each in (one, other))
        np.testing.assert_allclose(*numbers, rtol=1e-6)
    np.testing.assert_allclose(again.evidence, once.evidence, atol=1e-6)
    np.testing.assert_allclose(left_unknown(again), left_unknown(once), rtol=1e-5)


# Files


def test_a_file_holds_who_has_which_rows_and_no_ids(tmp_path):
    names = [f"secret-{i}" for i in IDS]
    MODEL.plan(X, X_star=STAR, people=names, **PROMISE).release(Y).save(tmp_path / "file")
    assert b"secret" not in (tmp_path / "file").read_bytes()
    assert container.read(tmp_path / "file")[1]["people"][:1].tolist() == [0]
    assert cloakgp.verify(tmp_path / "file", people=[f"person {i}" for i in IDS]).complete


@pytest.mark.parametrize("lie", ["nobody", "rows"])
def test_a_plans_file_names_the_people_whom_it_promises(tmp_path, lie, staged):
    """Or a release would be made with noise for rows, under words about people."""
    for number, plan in enumerate((MODEL.plan(X, X_star=STAR, people=IDS, **PROMISE), staged.plan)):
        path = tmp_path / f"{number}"
        path.write_bytes(plan.to_bytes())
        manifest, arrays, _ = container.read(path)
        manifest = container.bare(manifest)
        if lie == "nobody":
            del manifest["people"]
            arrays = {name: array for name, array in arrays.items() if name != "people"}
        else:
            manifest["unit"] = manifest["certificate"]["unit"] = "one row"
        with pytest.raises(cloakgp.ReleaseFileError, match="must name them"):
            Plan.from_charged(container.pack(manifest, arrays))


WRITTEN_TWICE = ["7", "007", "ann", "ANN ", "8", "8", "9", "10", "11", "12", "13", "14"]


def plans_for(who, **more):
    """One of each kind, for people of these ids."""
    X, at, promise = np.arange(12.0)[:, None], np.array([[3.0], [8.0]]), {"epsilon": 1.0, "delta": 0.01}
    gp = GP(EQ(3.0), 0.5, (0.0, 1.0))
    yield gp.plan(X, X_star=at, people=who, **promise, **more)
    yield gp.planner(X, X_star=at, people=who, **more).plan(**promise)
    yield gp.plan_function(X, people=who, **promise, **more)
    yield AutoGP((0.0, 1.0), stages=1).plan(X, X_star=at, people=who, **promise, **more)
    yield gp.plan({"x": X[:, 0], "id": who}, X_star={"x": at[:, 0]}, people="id", **promise, **more)
    yield cloakgp.plan_selection([gp, GP(EQ(1.0), 0.5, (0.0, 1.0))], X, epsilon=1.0, people=who, **more)
    edges = [np.array([0.0, 6.0, 12.0])]
    yield cloakgp.binning.plan(X, X_star=at, edges=edges, bounds=(0, 1), epsilon=1.0, people=who, **more)


def test_every_plan_knows_one_person_however_the_id_is_written():
    for plan in plans_for(WRITTEN_TWICE):
        assert plan.partition == as_people([7, 7, 0, 0, 8, 8, *range(9, 15)], 12).digest
        assert plan.certificate.ids == "alike"


def test_exact_ids_are_a_choice_that_every_certificate_tells_of():
    for plan in plans_for(WRITTEN_TWICE, ids="exact"):
        assert plan.partition == as_people([0, 1, 2, 3, 8, 8, *range(9, 15)], 12).digest
        assert plan.certificate.to_dict()["ids"] == "exact"


def test_without_people_there_are_no_ids_to_compare():
    for plan in (lambda: next(plans_for(None, ids="exact")), lambda: rows_plan(ids="exact")):
        with pytest.raises(ArgumentError, match="ids"):
            plan()


def rows_plan(size=9, **more):
    gp = GP(EQ(3.0), 0.5, (0.0, 1.0))
    return gp.plan_rows(cloakgp.Grid({"x": (0, 12)}, cells=4), size, epsilon=1.0, delta=0.01, **more)


def test_private_ids_are_compared_likewise(tmp_path):
    """Nine people, two of them written in two ways; eleven, if each way is somebody else."""
    X, y = {"x": np.arange(12.0)}, np.linspace(0, 1, 12)
    rows_plan(max_rows=2).release(X, y, people=WRITTEN_TWICE)
    with pytest.raises(ValueError, match="another number"):
        rows_plan(max_rows=2, ids="exact").release(X, y, people=WRITTEN_TWICE)
    release = rows_plan(11, max_rows=2, ids="exact").release(X, y, people=WRITTEN_TWICE)
    release.save(tmp_path / "file")
    assert cloakgp.load(tmp_path / "file").certificate.ids == "exact"
    found = cloakgp.verify(tmp_path / "file")
    assert found.ids == "exact"
    assert len(found.unchecked) == 2
