"""What was planned in stages can be released, whatever y is, and is as much as was counted.

A release that fails once it is paid for would be a loss, and, if it depended on y, a leak.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_helpers import fails, seeded, small_staged_plan

from cloakgp import AutoGP
from cloakgp.release.stages import Session

Y = np.linspace(0.1, 0.9, 6)


@st.composite
def odd_releases(draw):
    """Small data sets in odd places, and outcomes that are odder."""
    n, columns = draw(st.sampled_from([1, 2, 5, 8])), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = random.normal(size=(n, columns)) * 10.0 ** random.integers(-3, 4, size=columns)
    kind = draw(st.sampled_from(["as it is", "a column without range", "duplicates", "all equal"]))
    if kind == "a column without range":
        X[:, 0] = 3.0
    if kind == "duplicates":
        X = X[random.integers(0, n, size=n)]
    if kind == "all equal":
        X[:] = 0.0
    width = draw(st.sampled_from([1e-90, 1e-9, 1.0, 250.0, 1e9]))
    low = draw(st.sampled_from([0.0, -width, width]))
    y = draw(
        st.sampled_from(
            [
                np.full(n, low),
                np.full(n, low + width / 2),
                np.full(n, 1e308),
                np.full(n, -np.inf),
                np.full(n, np.nan),
                random.uniform(low, low + width, n),
                random.choice([low, low + width], n),
            ]
        )
    )
    X_star = X[:2] if draw(st.booleans()) else random.normal(size=(draw(st.integers(1, 4)), columns))
    model = AutoGP(bounds=(low, low + width), stages=draw(st.integers(1, 4)))
    epsilon, delta = draw(st.floats(0.01, 10.0)), draw(st.sampled_from([0.01, 1e-5, 1e-9]))
    return model.plan(X, X_star=X_star, epsilon=epsilon, delta=delta), y, draw(st.integers(0, 2**32))


def check_released(plan, y, seed):
    """All stages, no more numbers than were counted, finite predictions."""
    with seeded(seed):
        release = plan.release(y, missing="midpoint")
    assert len(release.stages) == plan.stages, "a stage was left out"
    assert sum(len(stage.answer) for stage in release.stages) <= plan.certificate.n_measurements
    mean, std = release.predict(plan.X, return_std=True)
    assert np.isfinite([*mean, *std, *release.mean]).all(), "a prediction is not finite"
    repr(release)


@pytest.mark.usefixtures("few_models")
@given(odd=odd_releases())
@settings(max_examples=25, deadline=None)
def test_what_was_planned_is_released_whatever_y_is(odd):
    """Constant, missing or far outside outcomes; one row; bounds of any size; columns without range."""
    check_released(*odd)


def test_planted_failures_between_stages_are_caught(monkeypatch):
    """A design that cannot be made costs its stage, which shows."""
    plan, right = small_staged_plan(), Session.next_stage

    def singular(walk, number):
        if number == 2:
            raise np.linalg.LinAlgError("singular")
        return right(walk, number)

    check_released(plan, Y, 0)
    monkeypatch.setattr(Session, "next_stage", singular)
    assert fails(check_released, plan, Y, 0, because="left out")
    with seeded(0):
        assert len(plan.release(Y).stages) == 2
