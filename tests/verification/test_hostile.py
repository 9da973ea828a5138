"""Attacks that a hostile review made on the verifier, each kept as a test."""

from __future__ import annotations

import json

import forging
import numpy as np
import pytest
from forging import PROMISE, X_STAR, X, rewrite

from cloakgp import GP, ReleaseFileError, VerificationError, verify
from cloakgp.core.calibration import calibrate, delta_of
from cloakgp.files import container
from cloakgp.kernels import EQ
from cloakgp.verification import guarantee


def test_columns_that_all_round_to_nothing_are_refused_before_anything_is_spent():
    gp = GP(EQ(0.01), 0.4, (-1.0, 4.0), 0.7, np.array([[0.0]]), "dtc")
    with pytest.raises(ValueError, match=r"nothing to release|no influence|zero"):
        gp.plan(np.array([[500.0], [501.0]]), X_star=[[0.0]], **PROMISE)


@pytest.mark.parametrize(("epsilon", "delta"), [(716.5689900682487, 4.278302822410137e-12), (724.0, 1e-8)])
def test_promises_whose_tail_is_subnormal_are_kept(epsilon, delta):
    import mpmath as mp

    mu = calibrate(epsilon, delta)
    with mp.workdps(60):
        a, b = mp.mpf(mu) / 2 - mp.mpf(epsilon) / mu, -mp.mpf(mu) / 2 - mp.mpf(epsilon) / mu
        true = mp.ncdf(a) - mp.exp(epsilon) * mp.ncdf(b)
        assert true <= delta
        assert true <= delta_of(mu, epsilon)


@pytest.mark.parametrize("mu", [1e-12, 1e-10, 1e-6, 0.5, 5.0, 30.0, 100.0])
@pytest.mark.parametrize("epsilon", [7e-15, 1e-9, 0.01, 1.0, 50.0])
def test_the_verifiers_delta_is_never_below_the_true_one(mu, epsilon):
    import mpmath as mp

    found = guarantee.discrete_delta(mu, epsilon, 1e-9, 1)
    with mp.workdps(80):
        left = mp.mpf(epsilon)
        a, b = mp.mpf(mu) / 2 - left / mu, -mp.mpf(mu) / 2 - left / mu
        assert found >= mp.ncdf(a) - mp.exp(left) * mp.ncdf(b)


@pytest.mark.parametrize("signature", [None, [], "x", 3], ids=repr)
def test_a_signature_that_is_none_is_not_a_member(tmp_path, signature):
    manifest, arrays, _ = forging.opened(forging.honest("mse", tmp_path))
    contents = container.pack(manifest, arrays, {"algorithm": "x"})
    text = json.dumps({"algorithm": "x"}, indent=1).encode()
    with pytest.raises(ReleaseFileError):
        container.unpack(contents.replace(text, json.dumps(signature).encode().ljust(len(text))))


def test_parts_of_a_kernel_beside_a_custom_one_are_compared(saved):
    def custom(A, B):
        return np.exp(-((A - B.T) ** 2))

    path = saved(kernel=EQ(2.0) + custom)
    assert verify(path, kernel=EQ(2.0) + custom).complete

    def more_parts(manifest, arrays):
        parts = manifest["model"]["kernel"]["kernels"]
        manifest["model"]["kernel"]["kernels"] = [*parts, *(EQ(v).to_spec() for v in (1.25, 3.5))]

    rewrite(path, more_parts)
    with pytest.raises(VerificationError, match="Give the whole kernel"):
        verify(path, kernel=EQ(2.0) + custom)


def test_an_objective_lost_in_rounding_is_refused_before_anything_is_spent():
    gp = GP(EQ(2.0, variance=6.5e10), 1e-9, (0.0, 1e-50))
    with pytest.raises(ValueError, match="common scale"):
        gp.plan(X, X_star=X_STAR, design="posterior", **PROMISE)


def test_too_many_inducing_inputs_are_refused():
    with pytest.raises(ValueError, match="at most 10000"):
        GP(EQ(1.0), 1.0, (0, 1), inducing=10_001)
