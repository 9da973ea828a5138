"""Publish Gaussian-process regressions of private outcomes under differential privacy.

A plan is public, a release is private, a prediction is free::

    gp = cloakgp.AutoGP(bounds=(0, 250))                   # all that must be known
    plan = gp.plan(X, X_star, epsilon=1.0)                 # no y: look at plan.expected_error
    release = plan.release(y)                              # the one private step
    release.save("heights.cloak")
    cloakgp.verify("heights.cloak")                        # anyone can check the promise
"""

from importlib import import_module
from typing import Any

from cloakgp import kernels, testing
from cloakgp.errors import ArgumentError
from cloakgp.files.container import ReleaseFileError
from cloakgp.files.signing import SignatureError
from cloakgp.measurements.certificate import Certificate
from cloakgp.model.auto_gp import AutoGP
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.plans.combine import combine
from cloakgp.plans.comparison import Comparison
from cloakgp.plans.functions import FunctionPlan, FunctionRelease
from cloakgp.plans.opening import load_release as load
from cloakgp.plans.predictions import Plan, Release
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.plans.whole_rows import RowsPlan, RowsRelease
from cloakgp.posterior.conditioning import Posterior, Uncertainty
from cloakgp.posterior.learning import Learned
from cloakgp.posterior.model_check import ModelCheck
from cloakgp.rows.columns import Column, Columns
from cloakgp.rows.grid import Grid
from cloakgp.selection import Selection, SelectionPlan, grid, plan_selection
from cloakgp.verification import Verification, VerificationError, verify

__version__ = "0.1.0"

__all__ = [
    "GP",
    "ArgumentError",
    "AutoGP",
    "Certificate",
    "Column",
    "Columns",
    "Comparison",
    "FunctionPlan",
    "FunctionRelease",
    "Grid",
    "Hyperprior",
    "Learned",
    "Ledger",
    "ModelCheck",
    "ParquetColumns",
    "Plan",
    "Posterior",
    "PrivateGPClassifier",
    "PrivateGPRegressor",
    "Release",
    "ReleaseFileError",
    "RowsPlan",
    "RowsRelease",
    "Selection",
    "SelectionPlan",
    "SignatureError",
    "StagedPlan",
    "StagedRelease",
    "Uncertainty",
    "Verification",
    "VerificationError",
    "combine",
    "grid",
    "kernels",
    "load",
    "plan_selection",
    "testing",
    "verify",
]


_LATE = {  # imported only when asked for: scikit-learn is slow, SQLAlchemy an extra
    "PrivateGPClassifier": "cloakgp.classifiers",
    "PrivateGPRegressor": "cloakgp.estimators",
    "Ledger": "cloakgp.ledger",
    "ParquetColumns": "cloakgp.rows.parquet",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'cloakgp' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names that are imported late are there, too: for completion, and for the documentation."""
    return sorted({*globals(), *_LATE})
