"""Forged files of several classes: noise for fewer of them, or for other people, is found out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from forging import X_STAR, X, rewrite

import cloakgp
from cloakgp import GP, Grid
from cloakgp.files.container import ReleaseFileError
from cloakgp.kernels import EQ, Constant
from cloakgp.measurements.lattice import Part
from cloakgp.measurements.one_person import largest_squared_move
from cloakgp.measurements.whole_rows import Population, RowSums
from cloakgp.rows.people import as_people
from cloakgp.verification.people import longest_squared
from cloakgp.verification.reasons import Reason, VerificationError
from cloakgp.verification.whole_rows import lattices

CLASSES = ["a", "b", "c", "d"]
IDS = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 5]


@pytest.fixture(scope="module", params=["rows", "people"])
def release(request):
    people = IDS if request.param == "people" else None
    model = GP(EQ(2.0) + Constant(1.0), classes=CLASSES)
    plan = model.plan(X, X_star=X_STAR, epsilon=4.0, delta=1e-3, people=people)
    return plan.release(np.array(CLASSES)[np.arange(12) % 4])


@pytest.fixture
def path(release, tmp_path):
    release.save(tmp_path / "file")
    assert cloakgp.verify(tmp_path / "file").complete
    return tmp_path / "file"


def less_noise(manifest, arrays):
    """As if a label moved the sums of one class."""
    words = manifest["stages"][0]
    words["sensitivity_steps"] = math.ceil(words["sensitivity_steps"] / math.sqrt(2))
    words["sigma"] = math.ceil(words["sigma"] / math.sqrt(2))


def a_class_less(manifest, arrays):
    del manifest["model"]["classes"][3]


def a_class_less_throughout(manifest, arrays):
    a_class_less(manifest, arrays)
    arrays["z_0"] = arrays["z_0"][: 3 * len(arrays["matrix_0"])]


@pytest.mark.parametrize(
    ("lie", "reason"), [(less_noise, Reason.SENSITIVITY), (a_class_less_throughout, Reason.FIGURE)]
)
def test_a_lie_about_classes_meets_the_reason_that_it_names(path, lie, reason):
    rewrite(path, lie)
    with pytest.raises(VerificationError) as caught:
        cloakgp.verify(path)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "model",
    [
        {"classes": CLASSES[:3]},
        {"classes": ["a", "b", "c", "a"]},
        {"classes": ["a", "b", "c", ["d"]]},
        {"classes": "abcd"},
        {"outcome": "yes/no"},
        {"outcome": "count"},
        {"outcome": "yes/no", "classes": ["a", "b"]},
    ],
)
def test_classes_that_make_no_sense(path, model):
    rewrite(path, lambda manifest, arrays: manifest["model"].update(model))
    with pytest.raises(ReleaseFileError, match=r"classes|z_0|bounds"):
        cloakgp.load(path)


def test_both_find_the_same_of_people_by_their_own_arithmetic():
    rng = np.random.default_rng(0)
    matrix, labels = rng.integers(-(2**30), 2**30, size=(3, 12)), np.arange(12)
    people = as_people(IDS, 12)
    found = [largest_squared_move(matrix, labels, people, signs=signs) for signs in (True, False)]
    assert found == [longest_squared(matrix, labels, people.labels, signs=signs) for signs in (True, False)]
    assert found[0] < found[1]


# --------------------------------------------------------------- where whole rows are private (lemma 23)

GRID = Grid({"x": (0.0, 10.0)}, 5)


@pytest.fixture(scope="module", params=[None, 2], ids=["whole rows", "people"])
def of_rows(request, tmp_path_factory):
    most, path = request.param, tmp_path_factory.mktemp("rows") / "file"
    model = GP(EQ(2.0) + Constant(1.0), classes=CLASSES)
    plan = model.plan_rows(
        GRID, 12 if most is None else 6, X_star=X_STAR, epsilon=4.0, delta=1e-3, max_rows=most
    )
    labels = np.array(CLASSES)[np.arange(12) % 4]
    plan.release(X, labels, people=None if most is None else IDS).save(path)
    assert cloakgp.verify(path).complete == (most is None)
    return path.read_bytes()


def noise_for_one_class(manifest, arrays):
    words = manifest["stages"][1]
    words["sensitivity_steps"] = math.ceil(words["sensitivity_steps"] / math.sqrt(2))
    words["sigma"] = math.ceil(words["sigma"] / math.sqrt(2))


def opposite_columns(manifest, arrays):
    """No column is longer, but a row that keeps its class may go twice as far."""
    matrix = arrays["matrix_1"]
    longest = int(np.argmax((matrix.astype(float) ** 2).sum(axis=0)))
    matrix[:, longest - 1] = -matrix[:, longest]


def far_columns(manifest, arrays):
    arrays["matrix_1"] = arrays["matrix_1"] + 2**45


def a_class_less_in_sums(manifest, arrays):
    a_class_less(manifest, arrays)
    for number in (1, 2):
        arrays[f"z_{number}"] = arrays[f"z_{number}"][: 3 * len(arrays[f"matrix_{number}"])]


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (noise_for_one_class, Reason.SENSITIVITY),
        (opposite_columns, Reason.SENSITIVITY),
        (far_columns, Reason.RANGE),
        (a_class_less_in_sums, Reason.FIGURE),
    ],
)
def test_a_lie_about_classes_of_whole_rows_meets_the_reason_that_it_names(of_rows, tmp_path, lie, reason):
    path = tmp_path / "file"
    path.write_bytes(of_rows)
    rewrite(path, lie)
    with pytest.raises(VerificationError) as caught:
        cloakgp.verify(path)
    assert caught.value.reason == reason, str(caught.value)


@pytest.mark.parametrize("most", [None, 3])
@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_both_find_the_same_of_whole_rows_by_their_own_arithmetic(most, n_classes):
    matrix = np.random.default_rng(n_classes).integers(-(2**30), 2**30, size=(2, 9))
    matrix[:, 0] = -matrix[:, 1]
    own: dict = {"y_bits": 20, "matrix_bits": 30, "sigma": 1, "lower": 0.0, "upper": 1.0}
    promised = {"epsilon": 1.0, "delta": 0.1, "part": Part(0.5, 9), "population": Population(12, most)}
    steps = RowSums(matrix, **own, **promised, classes=n_classes).sensitivity()
    manifest = {
        "stages": [{}, own | {"spread": None}],
        "grid": {"size": 12, "max_rows": most},
        "model": {"outcome": "classes", "classes": list(range(n_classes))},
    }
    assert lattices(manifest, {"matrix_1": matrix}, 1)[0][1] == steps
