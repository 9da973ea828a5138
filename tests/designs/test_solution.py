"""A design's answer."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from cloakgp.designs import Solution


def test_gap_is_relative_to_the_lower_bound():
    s = Solution("mse", np.eye(1), np.eye(1), 1.02, 1.0, 3, "converged")
    assert s.gap == pytest.approx(0.02)
    with pytest.raises(FrozenInstanceError):
        s.objective = 0.0
