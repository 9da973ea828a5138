"""Forged files of yes/no outcomes: what outcomes are is part of what is worked out again."""

from __future__ import annotations

import numpy as np
import pytest
from forging import X_STAR, X, rewrite

import cloakgp
from cloakgp import AutoGP
from cloakgp.files.container import ReleaseFileError
from cloakgp.verification.reasons import Reason, VerificationError


@pytest.fixture(scope="module")
def yes_no():
    return (
        AutoGP(outcome="yes/no", stages=1)
        .plan(X, X_star=X_STAR, epsilon=4.0, delta=1e-3)
        .release(np.arange(12) % 3 == 0)
    )


def test_another_outcome_in_the_file_is_found_out(yes_no, tmp_path):
    """What was learned is worked out again, by the link that the file names."""

    def real(manifest, arrays):
        del manifest["model"]["outcome"]

    yes_no.save(tmp_path / "file")
    rewrite(tmp_path / "file", real)
    with pytest.raises(VerificationError) as caught:
        cloakgp.verify(tmp_path / "file")
    assert caught.value.reason == Reason.LEARNED


@pytest.mark.parametrize(
    ("word", "bounds"), [("maybe", [0.0, 1.0]), ("yes/no", [0.0, 2.0]), ("count", [-1.0, 2.0])]
)
def test_an_outcome_that_makes_no_sense(yes_no, tmp_path, word, bounds):
    def nonsense(manifest, arrays):
        manifest["model"] |= {"outcome": word, "bounds": bounds}

    yes_no.save(tmp_path / "file")
    rewrite(tmp_path / "file", nonsense)
    with pytest.raises(ReleaseFileError, match="outcome"):
        cloakgp.load(tmp_path / "file")
