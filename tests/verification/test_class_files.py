"""Forged files of several classes: noise for fewer of them, or for other people, is found out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from forging import X_STAR, X, rewrite

import cloakgp
from cloakgp import GP
from cloakgp.files.container import ReleaseFileError
from cloakgp.kernels import EQ, Constant
from cloakgp.measurements.one_person import largest_squared_move
from cloakgp.rows.people import as_people
from cloakgp.verification.people import longest_squared
from cloakgp.verification.reasons import Reason, VerificationError

CLASSES = ["a", "b", "c", "d"]
IDS = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 5]


@pytest.fixture(scope="module", params=["rows", "people"])
def release(request):
    people = IDS if request.param == "people" else None
    model = GP(EQ(2.0) + Constant(1.0), classes=CLASSES)
    plan = model.plan(X, X_STAR, epsilon=4.0, delta=1e-3, people=people)
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
