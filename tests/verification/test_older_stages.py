"""Files of releases in stages that were written before still load, predict and verify: the rule is kept.

If one of these fails because windows, weights or designs are now chosen otherwise, the rule has changed:
give it another number (``staging.RULE``), and keep the old one readable.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cloakgp
from cloakgp.posterior import staging

FOLDER = Path(__file__).parents[1] / "fixtures" / "stages"
SAID = json.loads((FOLDER / "said.json").read_text())
AT = np.array([[0.5], [3.0], [20.0]])


@pytest.mark.parametrize("name", sorted(SAID))
def test_they_predict_what_they_did(name):
    release = cloakgp.load(FOLDER / f"{name}.cloak")
    columns = release.X_star.shape[1]
    np.testing.assert_allclose(release.predict(np.hstack([AT] * columns)), SAID[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", sorted(SAID))
def test_they_verify(name):
    assert cloakgp.verify(FOLDER / f"{name}.cloak").complete


def test_another_rule_is_not_worked_out_again(monkeypatch):
    """Its windows are then the custodian's word, and the file is verified in part."""
    monkeypatch.setattr(staging, "RULE", staging.RULE + 1)
    found = cloakgp.verify(FOLDER / "learned.cloak")
    assert not found.complete
    assert found.proven_delta is None
    assert any("rule 1" in what for what in found.unchecked)
