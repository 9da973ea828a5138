"""Publish Gaussian-process regressions of private outcomes under differential privacy.

A plan is public, a release is private, a prediction is free::

    gp = cloakgp.AutoGP(bounds=(0, 250))                   # all that must be known
    plan = gp.plan(X, X_star=ages, epsilon=1.0)            # no y: look at plan.expected_error
    release = plan.release(y)                              # the one private step
    release.save("heights.cloak")
    cloakgp.verify("heights.cloak")                        # anyone can check the promise
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloakgp import kernels, testing
    from cloakgp.classifiers import PrivateGPClassifier
    from cloakgp.errors import ArgumentError
    from cloakgp.estimators import PrivateGPRegressor
    from cloakgp.files.container import ReleaseFileError
    from cloakgp.files.signing import SignatureError
    from cloakgp.ledger import Ledger
    from cloakgp.measurements.certificate import Certificate
    from cloakgp.model.auto_gp import AutoGP
    from cloakgp.model.gp import GP
    from cloakgp.model.hyperprior import Hyperprior
    from cloakgp.plans.combine import combine
    from cloakgp.plans.comparison import Comparison
    from cloakgp.plans.functions import FunctionPlan, FunctionRelease
    from cloakgp.plans.opening import load_release as load
    from cloakgp.plans.plan_file import load_plan
    from cloakgp.plans.predictions import Plan, Release
    from cloakgp.plans.staged import StagedPlan, StagedRelease
    from cloakgp.plans.whole_rows import RowsPlan, RowsRelease
    from cloakgp.posterior.conditioning import Posterior, Uncertainty
    from cloakgp.posterior.learning import Learned
    from cloakgp.posterior.model_check import ModelCheck
    from cloakgp.rows.columns import Column, Columns
    from cloakgp.rows.grid import Grid
    from cloakgp.rows.parquet import ParquetColumns
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
    "load_plan",
    "plan_selection",
    "testing",
    "verify",
]


_HOMES = {
    "ArgumentError": "cloakgp.errors",
    "AutoGP": "cloakgp.model.auto_gp",
    "Certificate": "cloakgp.measurements.certificate",
    "Column": "cloakgp.rows.columns",
    "Columns": "cloakgp.rows.columns",
    "Comparison": "cloakgp.plans.comparison",
    "FunctionPlan": "cloakgp.plans.functions",
    "FunctionRelease": "cloakgp.plans.functions",
    "GP": "cloakgp.model.gp",
    "Grid": "cloakgp.rows.grid",
    "Hyperprior": "cloakgp.model.hyperprior",
    "Learned": "cloakgp.posterior.learning",
    "Ledger": "cloakgp.ledger",
    "ModelCheck": "cloakgp.posterior.model_check",
    "ParquetColumns": "cloakgp.rows.parquet",
    "Plan": "cloakgp.plans.predictions",
    "Posterior": "cloakgp.posterior.conditioning",
    "PrivateGPClassifier": "cloakgp.classifiers",
    "PrivateGPRegressor": "cloakgp.estimators",
    "Release": "cloakgp.plans.predictions",
    "ReleaseFileError": "cloakgp.files.container",
    "RowsPlan": "cloakgp.plans.whole_rows",
    "RowsRelease": "cloakgp.plans.whole_rows",
    "Selection": "cloakgp.selection",
    "SelectionPlan": "cloakgp.selection",
    "SignatureError": "cloakgp.files.signing",
    "StagedPlan": "cloakgp.plans.staged",
    "StagedRelease": "cloakgp.plans.staged",
    "Uncertainty": "cloakgp.posterior.conditioning",
    "Verification": "cloakgp.verification",
    "VerificationError": "cloakgp.verification",
    "combine": "cloakgp.plans.combine",
    "grid": "cloakgp.selection",
    "load": "cloakgp.plans.opening",
    "load_plan": "cloakgp.plans.plan_file",
    "plan_selection": "cloakgp.selection",
    "verify": "cloakgp.verification",
}
"""Where each name lives: it is imported when it is asked for, so that importing this is quick."""


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'cloakgp' has no attribute {name!r}")
    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), "load_release" if name == "load" else name)
    else:
        try:
            found = import_module(f"cloakgp.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"cloakgp.{name}":
                raise
            raise AttributeError(f"module 'cloakgp' has no attribute {name!r}") from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Names that are imported late are there, too: for completion, and for the documentation."""
    return sorted({*globals(), *__all__})
