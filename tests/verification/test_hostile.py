"""Attacks that a hostile review made on the verifier, each kept as a test."""

from __future__ import annotations

import json
import math
import tracemalloc
from fractions import Fraction

import forging
import numpy as np
import pytest
from forging import PROMISE, X_STAR, X, Y, rewrite, settle

from cloakgp import GP, ReleaseFileError, SignatureError, VerificationError, verify
from cloakgp.calibration import calibrate, delta_of
from cloakgp.files import container
from cloakgp.files.reading import read
from cloakgp.kernels import EQ, Constant, Linear
from cloakgp.plans import opening, out_of_core
from cloakgp.verification import guarantee, recipe
from cloakgp.verification.reasons import Reason


def test_terms_that_cancel_in_floating_point_cannot_hide_a_column(tmp_path, monkeypatch):
    """Two places far away, with opposite weights, absorb a third term: its column seems to be 0."""
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    kernel, near = EQ(2.0, variance=1.5) + Linear(variance=1e-3), X_STAR + 0.1
    gp = GP(kernel, 0.4, (-1.0, 4.0), 0.7, near, "dtc")
    gp.plan(X, X_star=X_STAR, **PROMISE).release(Y).save(tmp_path / "file")
    assert verify(tmp_path / "file").complete

    def padded(M):
        side = np.zeros((len(M), 1), M.dtype)
        return np.ascontiguousarray(np.hstack([side, M, side]))

    def forge(manifest, arrays):
        c = manifest["certificate"]
        far = np.array([[1e25]])
        arrays["inducing"], arrays["features"] = np.vstack([far, near, far]), padded(arrays["features"])
        factors = padded(arrays["factors"])
        cheat = np.zeros(factors.shape[1], np.int64)
        cheat[[0, 2, -1]] = 2**60, 2**62, -(2**60)
        arrays["factors"] = np.vstack([factors, cheat])
        arrays["sums"], arrays["z"] = np.append(arrays["sums"], 0), np.append(arrays["z"], 0)
        arrays["reconstruction"] = np.ascontiguousarray(
            np.hstack([arrays["reconstruction"], np.zeros((len(arrays["reconstruction"]), 1))])
        )
        q = len(arrays["z"])
        c["n_measurements"] = q
        plan = opening.plan_of(manifest, arrays)[0]
        seen = np.abs(recipe._columns(plan.gp, plan.measurement, X, gp.noise, None)[0]).astype(np.int64)
        longest = max(guarantee.squared_norms(seen + 2))
        steps = math.isqrt(longest * 4 ** c["y_bits"]) + 1
        sigma = math.ceil(Fraction(steps) / Fraction(calibrate(1.0, 0.01, "analytic", q)))
        size = (sigma / c["sigma"]) ** 2
        settle(
            manifest,
            sigma=sigma,
            sensitivity_steps=steps,
            objective=c["objective"] * size,
            lower_bound=c["lower_bound"] * size,
        )

    rewrite(tmp_path / "file", forge)
    manifest, arrays, _ = read(tmp_path / "file")
    plan = opening.plan_of(manifest, arrays)[0]
    hidden = recipe._columns(plan.gp, plan.measurement, X, gp.noise, None)[0][-1]
    scale = Fraction(2) ** (manifest["certificate"]["matrix_bits"] - manifest["measurement"]["factor_bits"])
    exact = [
        sum(Fraction(int(f)) * Fraction(float(k)) for f, k in zip(arrays["factors"][-1], row, strict=True))
        for row in gp.kernel(X, arrays["inducing"])
    ]
    assert np.abs(hidden).max() == 0  # what floating point sees
    assert max(abs(value) * scale / Fraction(0.4) for value in exact) > 2**30  # what is meant
    with pytest.raises(VerificationError) as caught:
        verify(tmp_path / "file")
    assert caught.value.reason == Reason.SENSITIVITY


@pytest.mark.parametrize("approximation", ["dtc", "fitc"])
def test_crowded_inducing_inputs_leave_room_for_other_machines(tmp_path, monkeypatch, approximation):
    """Weights that cancel a little: more than a unit is allowed for, and the file is verified."""
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    inputs = np.linspace(0, 30, 200)[:, None]
    gp = GP(EQ(30.0), 1e-4, (-1.0, 4.0), 0.7, np.linspace(0, 30, 40), approximation)
    plan = gp.plan(inputs, X_star=[[3.0], [20.0]], **PROMISE)
    _, error = plan.measurement.recipe.evaluated(inputs, 1e-4)
    assert error > 0.5
    plan.release(np.resize(Y, 200)).save(tmp_path / "file")
    assert verify(tmp_path / "file").complete


def test_models_that_are_mostly_rounding_are_refused_before_anything_is_spent(monkeypatch):
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    gp = GP(EQ(87.0) + Constant(1.3e14), 4.5e-4, (-1.0, 4.0), 0.7, X_STAR, "fitc")
    with pytest.raises(ValueError, match="mostly rounding"):
        gp.plan(X, X_star=X_STAR, **PROMISE)


def test_columns_that_all_round_to_nothing_are_refused_before_anything_is_spent(monkeypatch):
    monkeypatch.setattr(out_of_core, "DENSE", 1)
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


@pytest.fixture
def signed(tmp_path, private_key):
    forging.design("mse")().release(Y).save(tmp_path / "signed", sign_with=private_key)
    return tmp_path / "signed"


@pytest.mark.parametrize("name", ["public_key", "signature"])
@pytest.mark.parametrize("change", [str.upper, lambda text: text[:8] + " \n\t" * 1000 + text[8:]])
def test_nothing_hides_among_the_digits_of_a_signature(signed, private_key, name, change):
    manifest, arrays, signature = forging.opened(signed)
    verify(signed, signed_by=private_key.public_key())
    signature[name] = change(signature[name])
    signed.write_bytes(container.pack(manifest, arrays, signature))
    with pytest.raises((SignatureError, ReleaseFileError)):
        verify(signed)


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


BROKEN = {
    "bounds far apart": ("mse", lambda m, a: (m["model"].update(bounds=[0.0, 1e250]), settle(m))),
    "bounds close together": ("mse", lambda m, a: (m["model"].update(bounds=[0.0, 1e-250]), settle(m))),
    "a minute promise": ("mse", lambda m, a: settle(m, epsilon=1e-13, delta=6e-13)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_numbers_far_out_of_range_are_refused_in_the_one_way(tmp_path, name):
    kind, change = BROKEN[name]
    path = forging.honest(kind, tmp_path)
    rewrite(path, change)
    with pytest.raises(VerificationError):
        verify(path)


def test_too_many_inducing_inputs_are_refused(tmp_path):
    path = forging.honest("recipe", tmp_path)

    def many(manifest, arrays):
        more = np.arange(10_000.0)[:, None]
        arrays["inducing"] = np.vstack([arrays["inducing"], more])
        for name in ("features", "factors"):
            blank = np.zeros((len(arrays[name]), len(more)), arrays[name].dtype)
            arrays[name] = np.ascontiguousarray(np.hstack([arrays[name], blank]))

    rewrite(path, many)
    with pytest.raises(ReleaseFileError, match="more than 10000 inducing inputs"):
        verify(path)
    with pytest.raises(ValueError, match="at most 10000"):
        GP(EQ(1.0), 1.0, (0, 1), inducing=10_001)


def test_memory_does_not_grow_with_the_inducing_inputs(tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0, 10, size=(30_000, 2))
    gp = GP(EQ(1.0), 1.0, (0.0, 1.0), 0.5, inputs[:300])
    gp.plan(inputs, X_star=inputs[:1], **PROMISE).release(rng.uniform(size=30_000)).save(tmp_path / "file")
    verify(forging.honest("recipe", tmp_path))
    tracemalloc.start()
    try:
        assert verify(tmp_path / "file").complete
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6  # rows of k(X, Z) one by one would take 72 MB


def test_an_objective_lost_in_rounding_is_refused_before_anything_is_spent():
    gp = GP(EQ(2.0, variance=6.5e10), 1e-9, (0.0, 1e-50))
    with pytest.raises(ValueError, match="common scale"):
        gp.plan(X, X_star=X_STAR, design="posterior", **PROMISE)
