# ruff: noqa: I001  # `as` says to type checkers that a name is for users; one import per module is enough
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
    from cloakgp import kernels as kernels, testing as testing
    from cloakgp.core.errors import ArgumentError as ArgumentError
    from cloakgp.data.columns import Column as Column, Columns as Columns
    from cloakgp.data.grid import Grid as Grid
    from cloakgp.data.parquet import ParquetColumns as ParquetColumns
    from cloakgp.estimators import (
        PrivateGPClassifier as PrivateGPClassifier,
        PrivateGPRegressor as PrivateGPRegressor,
    )
    from cloakgp.files.container import ReleaseFileError as ReleaseFileError
    from cloakgp.files.signing import SignatureError as SignatureError
    from cloakgp.ledger import Ledger as Ledger
    from cloakgp.measure.certificate import Certificate as Certificate
    from cloakgp.gp import AutoGP as AutoGP
    from cloakgp.gp import GP as GP
    from cloakgp.model.hyperprior import Hyperprior as Hyperprior
    from cloakgp.posterior.conditioning import Posterior as Posterior, Uncertainty as Uncertainty
    from cloakgp.posterior.learning import Learned as Learned
    from cloakgp.posterior.model_check import ModelCheck as ModelCheck
    from cloakgp.release.combine import combine as combine
    from cloakgp.release.plan import Plan as Plan, load_release as _load
    from cloakgp.release.planner import Comparison as Comparison
    from cloakgp.release.planning import load_plan as load_plan
    from cloakgp.release.release import Release as Release
    from cloakgp.selection import (
        Selection as Selection,
        SelectionPlan as SelectionPlan,
        candidates as candidates,
        plan_selection as plan_selection,
    )
    from cloakgp.verification import (
        Verification as Verification,
        VerificationError as VerificationError,
        verify as verify,
    )

    load = _load

__version__ = "0.1.0"

_HOMES = {
    "core.errors": ("ArgumentError",),
    "data.columns": ("Column", "Columns"),
    "data.grid": ("Grid",),
    "data.parquet": ("ParquetColumns",),
    "estimators": ("PrivateGPClassifier", "PrivateGPRegressor"),
    "files.container": ("ReleaseFileError",),
    "files.signing": ("SignatureError",),
    "ledger": ("Ledger",),
    "measure.certificate": ("Certificate",),
    "gp": ("GP", "AutoGP"),
    "model.hyperprior": ("Hyperprior",),
    "posterior.conditioning": ("Posterior", "Uncertainty"),
    "posterior.learning": ("Learned",),
    "posterior.model_check": ("ModelCheck",),
    "release.combine": ("combine",),
    "release.plan": ("Plan", "load"),
    "release.planner": ("Comparison",),
    "release.planning": ("load_plan",),
    "release.release": ("Release",),
    "selection": ("Selection", "SelectionPlan", "candidates", "plan_selection"),
    "verification": ("Verification", "VerificationError", "verify"),
}
"""Which module has which names: imported when they are asked for, so that importing this is quick."""
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted((*_HOME, "kernels", "testing"))


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'cloakgp' has no attribute {name!r}")
    if name in _HOME:
        module = import_module(f"cloakgp.{_HOME[name]}")
        found = getattr(module, "load_release" if name == "load" else name)
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
