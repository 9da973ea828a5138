"""Releases of whole rows: verified from their files alone, and lies about each of their parts."""

from __future__ import annotations

import forging
import numpy as np
import pytest
from forging import PROMISE, array, certificate, entry, rewrite, unit
from test_staged_files import FILE, spread, words

from cloakgp import (
    ReleaseFileError,
    RowsRelease,
    StagedRelease,
    VerificationError,
    load,
    verify,
)
from cloakgp.measurements.unit import OUTCOME, PERSON_ROWS, ROW
from cloakgp.measurements.whole_rows import furthest_squared
from cloakgp.plans.opening import charged_plan
from cloakgp.verification import whole_rows
from cloakgp.verification.reasons import Reason

EACH = "how many rows of each person were counted"


def grid(**changes):
    return lambda manifest, arrays: manifest["grid"].update(changes)


def axis(number, **changes):
    return lambda manifest, arrays: manifest["grid"]["axes"][number].update(changes)


def of_another(of):
    """Everything that says what is protected."""

    def change(manifest, arrays):
        unit(of.name)(manifest, arrays)
        certificate(neighbours=of.neighbours)(manifest, arrays)

    return change


def noise_for_one_column(manifest, arrays):
    """As if rows could only leave: norms in the place of distances, with all that follows."""
    stage, matrix = manifest["stages"][0], arrays["matrix_0"]
    norms = [sum(int(v) ** 2 for v in column) for column in matrix.T.tolist()]
    steps = int(np.sqrt(float(max(norms)))) + 1
    stage["sigma"] = int(float(stage["sigma"] * steps // stage["sensitivity_steps"]))
    stage["sensitivity_steps"] = steps


LIES = {
    "single outcomes": (of_another(OUTCOME), Reason.UNIT),
    "people": (of_another(PERSON_ROWS), Reason.UNIT),
    "people with one row": (grid(max_rows=1), Reason.UNIT),
    "fewer rows": (grid(size=11), Reason.FIGURE),
    "rows in the certificate": (forging.added("n_rows", 1), Reason.FIGURE),
    "noise for one column": (noise_for_one_column, Reason.SENSITIVITY),
    "counts' matrix doubled": (array("matrix_0", lambda m: m * 2), Reason.SENSITIVITY),
    "a column of counts": (entry("matrix_0", (0, 0), lambda v: v + 2**41), Reason.SENSITIVITY),
    "all columns of counts far away": (array("matrix_0", lambda m: m + 2**50), Reason.RANGE),
    "counts that are weighed": (words(0, y_bits=lambda v: 1), Reason.RANGE),
    "a column of sums": (array("matrix_2", lambda m: m * 2), Reason.SENSITIVITY),
    "distances": (spread(2, sensitivity_steps=lambda v: v - 1), Reason.SENSITIVITY),
    "noise": (words(0, sigma=lambda v: v - v // 100), Reason.MU),
    "counts": (array("counts_1", lambda n: n * 1.0001), Reason.COUNTS),
    "counts of one cell": (entry("counts_2", 3, lambda v: v + 0.01), Reason.COUNTS),
    "no rows in a cell": (entry("counts_2", 3, lambda v: 0.0), FILE),
    "windows": (array("lower_2", lambda a: a - 0.01), Reason.WINDOWS),
    "errors of counts": (array("extra_1", lambda e: e * 0.99), Reason.LINE),
    "a wider range": (axis(0, high=11.0), Reason.LEARNED),
    "other cells": (axis(0, cells=6), FILE),
    "a level more": (axis(1, levels=["x", "y", "z"]), FILE),
    "levels of another kind": (axis(1, levels=[1.5, 2.5]), FILE),
    "one name twice": (axis(1, name="a"), FILE),
    "no axes": (grid(axes=[]), FILE),
    "a population of none": (grid(size=0), FILE),
    "a key of the grid": (grid(more=1), FILE),
    "inputs": (lambda manifest, arrays: arrays.update(X=np.zeros((12, 2))), FILE),
    "a digest of inputs": (lambda manifest, arrays: manifest.update(inputs_sha256="0" * 64), FILE),
    "no grid": (lambda manifest, arrays: manifest.pop("grid"), FILE),
    "other categories": (lambda manifest, arrays: manifest["model"]["prior"].update(categories=[0]), FILE),
    "no categories": (lambda manifest, arrays: manifest["model"]["prior"].pop("categories"), FILE),
    "sums without windows": (words(1, windows=lambda v: False), FILE),
    "counts with windows": (words(0, windows=lambda v: True), FILE),
}


@pytest.mark.parametrize("max_rows", [None, 2])
def test_an_honest_file_is_proven_whole(tmp_path, max_rows):
    found = verify(forging.honest_rows(tmp_path, max_rows=max_rows))
    assert found.proven_delta is not None
    assert [what.partition(":")[0] for what in found.unchecked] == ([] if max_rows is None else [EACH])


@pytest.mark.parametrize("name", LIES)
def test_a_lie_meets_the_reason_that_it_names(tmp_path, name):
    path, (change, reason) = forging.honest_rows(tmp_path), LIES[name]
    rewrite(path, change)
    with pytest.raises((VerificationError, ReleaseFileError)) as caught:
        verify(path)
    assert getattr(caught.value, "reason", FILE) == reason, str(caught.value)


def test_that_a_person_had_one_row_is_the_custodians_word(tmp_path):
    """The file of whole rows for people is the same: nothing in it shows whose they are."""
    path = forging.honest_rows(tmp_path)
    rewrite(path, grid(max_rows=1))
    rewrite(path, of_another(PERSON_ROWS))
    found = verify(path)
    assert found.unit == PERSON_ROWS.name
    assert not found.complete
    assert [what.partition(":")[0] for what in found.unchecked] == [EACH]
    assert found.headline.startswith("verified IN PART: (1, 0.01)-DP")
    assert EACH in found.headline


def test_a_file_of_whole_rows_names_no_people(tmp_path):
    for max_rows in (None, 2):
        path = forging.honest_rows(tmp_path, max_rows=max_rows)
        rewrite(path, lambda manifest, arrays: manifest.update(people={"sha256": "0" * 64, "within": 1.0}))
        with pytest.raises(ReleaseFileError):
            verify(path)


PEOPLES_LIES = {
    "rows": (of_another(ROW), Reason.UNIT),
    "no limit": (grid(max_rows=None), Reason.UNIT),
    "fewer rows each": (grid(max_rows=1), Reason.FIGURE),
    "counts without the zero column": (
        lambda manifest, arrays: manifest["stages"][0].update(
            sensitivity_steps=int(np.sqrt(4 * float(furthest_squared(arrays["matrix_0"], origin=False))))
        ),
        Reason.SENSITIVITY,
    ),
    "distances of one row": (spread(2, sensitivity_steps=lambda v: v // 2), Reason.SENSITIVITY),
    "sums of one row": (words(1, sensitivity_steps=lambda v: v // 2), Reason.SENSITIVITY),
}


@pytest.mark.parametrize("name", PEOPLES_LIES)
def test_a_lie_about_people_meets_the_reason_that_it_names(tmp_path, name):
    path, (change, reason) = forging.honest_rows(tmp_path, max_rows=2), PEOPLES_LIES[name]
    rewrite(path, change)
    with pytest.raises(VerificationError) as caught:
        verify(path)
    assert caught.value.reason == reason, str(caught.value)


def test_what_is_said(tmp_path):
    found = verify(forging.honest_rows(tmp_path))
    assert 0.99 * PROMISE["delta"] < found.proven_delta <= PROMISE["delta"]
    assert found.headline == "verified: (1, 0.01)-DP, unit one whole row; not signed"
    assert "how many rows each cell is taken to have, from the first answer" in found.checks
    with pytest.raises(ValueError, match="does not show its inputs"):
        verify(forging.honest_rows(tmp_path), X=np.zeros((12, 2)))


@pytest.mark.parametrize("options", [{}, {"max_rows": 2}, {"known": True}], ids=str)
def test_a_file_holds_the_release_and_its_plan(tmp_path, options):
    path = forging.honest_rows(tmp_path, **options)
    release = load(path)
    assert isinstance(release, RowsRelease)
    release.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    plan = charged_plan(release.plan.to_bytes())
    assert plan.digest == release.plan.digest
    assert plan.grid == forging.ROWS_GRID
    with pytest.raises(ReleaseFileError, match="private inputs"):
        StagedRelease.load(path)


@pytest.mark.parametrize("origin", [False, True])
def test_the_verifiers_distances_are_the_planners_and_those_of_all_pairs(origin):
    random = np.random.default_rng(0)
    for q, n, bits in ((1, 2, 40), (3, 7, 30), (5, 40, 40), (4, 600, 20), (2048, 3, 41)):
        matrix = random.integers(-(2**bits), 2**bits, size=(q, n))
        matrix[:, n // 2] = matrix[:, 0] + 1  # ties, and nearly so
        columns = [*matrix.T.tolist(), *([[0] * q] if origin else [])]
        expected = max(
            sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) for one in columns for other in columns
        )
        assert whole_rows.furthest(matrix, origin) == furthest_squared(matrix, origin) == expected


def test_with_very_many_columns_two_norms_stand_for_every_distance():
    matrix = np.zeros((1, whole_rows.MOST_PAIRED + 1), dtype=np.int64)
    matrix[0, 7] = -3
    assert whole_rows.furthest(matrix, False) == furthest_squared(matrix, False) == 36
