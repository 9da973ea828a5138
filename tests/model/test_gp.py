"""The model: every setting is checked at once, copied, and cannot be changed afterwards."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from cloakgp import GP
from cloakgp.kernels import EQ, Constant, Custom

GOOD = {"kernel": EQ(1.0), "noise": 0.5, "bounds": (0.0, 2.0)}


def test_settings_are_kept():
    gp = GP(EQ(25.0, variance=662.5), noise=199, bounds=(58, 158))
    assert gp.kernel == EQ(25.0, variance=662.5)
    assert (gp.noise, gp.bounds, gp.mean) == (199.0, (58.0, 158.0), 108.0)
    assert all(type(value) is float for value in (gp.noise, gp.mean, *gp.bounds))
    assert repr(gp) == (
        "GP(kernel=EQ(lengthscale=25.0, variance=662.5), noise=199.0, bounds=(58.0, 158.0), mean=108.0)"
    )


@pytest.mark.parametrize(
    "bounds", [(58, 158), [58, 158], np.array([58, 158]), (np.float32(58), np.int64(158))]
)
def test_bounds_of_every_kind(bounds):
    assert GP(EQ(1.0), 1.0, bounds).bounds == (58.0, 158.0)


@pytest.mark.parametrize(
    "bounds", [(-4e99, 4e99), (0.0, 9e99), (0.0, 2e-100), (1e8, 1e8 + 1), (-1.0 - 2e-9, -1.0)]
)
def test_bounds_of_every_ordinary_width(bounds):
    assert GP(EQ(1.0), 1.0, bounds).bounds == bounds


@pytest.mark.parametrize(
    ("mean", "expected"), [(None, 1.0), (0.3, 0.3), (-50, -50.0), (np.float32(0.5), 0.5)]
)
def test_the_prior_mean_is_the_middle_of_the_bounds_unless_given(mean, expected):
    assert GP(**GOOD, mean=mean).mean == expected


@pytest.mark.parametrize(
    "kernel",
    [
        EQ(1.0),
        EQ(1.0) + Constant(2.0),
        sk.RBF(1.0),
        2.0 * sk.RBF(1.0) + sk.DotProduct(0.1),
        sk.Matern(nu=0.7),
        lambda X, Z: X @ Z.T,
    ],
    ids=["EQ", "sum", "scikit-learn", "scikit-learn sum", "scikit-learn's own", "function"],
)
def test_kernels_of_every_kind(kernel, request):
    gp = GP(kernel, 1.0, (0, 1))
    assert gp.kernel(np.ones((2, 1)), np.ones((3, 1))).shape == (2, 3)
    assert isinstance(gp.kernel, Custom) is (request.node.callspec.id in ("scikit-learn's own", "function"))


def test_per_row_noise_is_a_read_only_copy():
    noise = np.array([1.0, 2.0])
    gp = GP(EQ(1.0), noise, (0, 1))
    noise[0] = -1.0
    assert gp.noise.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        gp.noise[0] = -1.0
    assert "noise=<2 variances>" in repr(gp)


@pytest.mark.parametrize(
    ("inducing", "shown"),
    [(None, ""), (3, ", inducing=3, approximation='fitc'")],
    ids=["exact", "inducing inputs"],
)
def test_downweighting_is_kept_and_shown(inducing, shown):
    gp = GP(**GOOD, inducing=inducing, approximation="fitc", downweight="leverage")
    assert repr(gp).endswith(f"mean=1.0{shown}, downweight='leverage')")
    chosen = gp.with_inducing(np.arange(5.0)[:, None])
    assert (chosen.downweight, chosen.approximation, chosen.noise) == ("leverage", "fitc", 0.5)
    assert GP(**GOOD).downweight is None
    assert "downweight" not in repr(GP(**GOOD))


@pytest.mark.parametrize("name", ["kernel", "noise", "bounds", "mean"])
def test_it_is_frozen(name):
    with pytest.raises(FrozenInstanceError):
        setattr(GP(**GOOD), name, 1.0)


BAD = [
    ({"bounds": (1.0, 1.0)}, ValueError, r"bounds must have lo < hi; got \(1\.0, 1\.0\).*Give public limits"),
    ({"bounds": (2.0, 1.0)}, ValueError, "bounds must have lo < hi"),
    ({"bounds": (-1.7e308, 1.7e308)}, ValueError, "bounds must be apart by an ordinary number"),
    ({"bounds": (0.0, 1e101)}, ValueError, "bounds must be apart by.*Change y's unit or its origin"),
    ({"bounds": (-6e99, 6e99)}, ValueError, "bounds must be apart by an ordinary number"),
    ({"bounds": (0.0, 1e-101)}, ValueError, "bounds must be apart by an ordinary number"),
    ({"bounds": (1e15, 1e15 + 1)}, ValueError, "not by a tiny share of their own size"),
    ({"bounds": (-1.0 - 1e-10, -1.0)}, ValueError, "not by a tiny share of their own size"),
    ({"bounds": (0.0, math.inf)}, ValueError, r"bounds\[1\] must be finite.*Give public limits"),
    ({"bounds": (-math.inf, 0.0)}, ValueError, r"bounds\[0\] must be finite"),
    ({"bounds": (math.nan, 1.0)}, ValueError, r"bounds\[0\] must be finite"),
    ({"bounds": (0.0, math.nan)}, ValueError, r"bounds\[1\] must be finite"),
    ({"bounds": (0.0,)}, ValueError, "bounds must be two numbers.*no safe default"),
    ({"bounds": (0.0, 1.0, 2.0)}, ValueError, "bounds must be two numbers"),
    ({"bounds": None}, ValueError, "bounds must be two numbers; got None"),
    ({"bounds": 3.0}, ValueError, "bounds must be two numbers"),
    ({"bounds": "01"}, TypeError, r"bounds\[0\] must be a number"),
    ({"bounds": ("0", "1")}, TypeError, r"bounds\[0\] must be a number"),
    ({"bounds": (0.0, None)}, TypeError, r"bounds\[1\] must be a number"),
    ({"bounds": (False, True)}, TypeError, r"bounds\[0\] must be a number"),
    ({"bounds": "auto"}, ValueError, "bounds must be two numbers"),
    ({"noise": 0.0}, ValueError, r"noise must be finite and above 0; got 0\.0\. It is the variance"),
    ({"noise": -1.0}, ValueError, "noise must be finite and above 0"),
    ({"noise": math.nan}, ValueError, "noise must be finite"),
    ({"noise": math.inf}, ValueError, "noise must be finite"),
    ({"noise": None}, TypeError, "noise must be a number.*It is the variance"),
    ({"noise": "1"}, TypeError, "noise must be a number"),
    ({"noise": True}, TypeError, "noise must be a number"),
    ({"noise": [1.0, 0.0]}, ValueError, "noise must be above 0 everywhere.*It is the variance"),
    ({"noise": [1.0, -2.0]}, ValueError, "noise must be above 0 everywhere"),
    ({"noise": [1.0, math.nan]}, ValueError, r"noise must be finite; .* at index \(1\)"),
    ({"noise": [1.0, math.inf]}, ValueError, "noise must be finite"),
    ({"noise": [[1.0], [2.0]]}, ValueError, "noise must be one-dimensional"),
    ({"noise": ["a", "b"]}, TypeError, "noise must hold real numbers"),
    ({"noise": [[1.0], [1.0, 2.0]]}, ValueError, "noise must be"),
    ({"noise": []}, ValueError, "noise must"),
    ({"kernel": 1.0}, TypeError, r"kernel must be a cloakgp kernel or a function k\(X, Z\)"),
    ({"kernel": None}, TypeError, "kernel must be a cloakgp kernel or a function"),
    ({"kernel": "EQ"}, TypeError, "kernel must be a cloakgp kernel or a function"),
    ({"kernel": EQ}, TypeError, "kernel must be.*Give an object such as"),
    ({"downweight": "outliers"}, ValueError, "downweight must be one of 'leverage'; got 'outliers'"),
    ({"downweight": True}, ValueError, "downweight must be one of 'leverage'; got True"),
    ({"downweight": ""}, ValueError, "downweight must be one of"),
    ({"mean": math.nan}, ValueError, "mean must be finite"),
    ({"mean": math.inf}, ValueError, "mean must be finite"),
    ({"mean": 1e20}, ValueError, "mean must be no farther from the bounds than a billion times their width"),
    ({"mean": "0"}, TypeError, "mean must be a number"),
    ({"mean": False}, TypeError, "mean must be a number"),
    ({"mean": np.zeros((3, 2))}, ValueError, "mean must be one-dimensional"),
    ({"mean": [0.0, np.nan]}, ValueError, "mean must be finite"),
    ({"bounds": (np.zeros(3), [1.0, 0.0, 2.0])}, ValueError, "lo < hi in every row; row 1 has not"),
    ({"bounds": (np.zeros(3), np.ones(2))}, ValueError, "as many lower as upper limits; got 3 and 2"),
    ({"bounds": (0.0, [1.0, 1e-9])}, ValueError, "a million times narrower"),
    ({"bounds": (1e12, [1e12 + 1, 1e13])}, ValueError, "tiny share of their own size"),
    ({"bounds": np.zeros((3, 2))}, ValueError, "bounds must be two numbers"),
    ({"bounds": np.sin}, ValueError, "bounds must be two numbers"),
]


@pytest.mark.parametrize(("change", "error", "match"), BAD, ids=[str(change) for change, *_ in BAD])
def test_bad_settings_are_refused_at_once(change, error, match):
    with pytest.raises(error, match=match):
        GP(**{**GOOD, **change})
