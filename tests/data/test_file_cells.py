"""Cells of files: what cannot be read is missing, whatever it is, and is never refused."""

import numpy as np

from cloakgp.data import file_cells


def test_a_cell_that_cannot_be_read_is_missing_and_nothing_tells_which_it_was(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"who,a\n1, YES\n2,\xff\n3,\n4,no\n5,\xed\xa0\x80\n6,7.5\n")
    assert file_cells.read_texts(path, "a").tolist() == ["YES", None, None, "no", None, "7.5"]
    np.testing.assert_array_equal(file_cells.read_answers(path, "a"), [1, np.nan, np.nan, 0, np.nan, np.nan])
    np.testing.assert_array_equal(file_cells.read_numbers(path, "a"), [np.nan] * 5 + [7.5])
