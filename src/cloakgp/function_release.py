"""A released function: query it anywhere, now or after loading it from a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cloakgp import checks, files
from cloakgp.certificate import Certificate
from cloakgp.charging import Receipt
from cloakgp.checks import FloatArray
from cloakgp.container import ReleaseFileError
from cloakgp.denoise import Posterior, Uncertainty
from cloakgp.function import FunctionPlan
from cloakgp.lattice import IntArray


@dataclass(frozen=True, eq=False, repr=False)
class FunctionRelease:
    """A function that may be published whole. Made by :meth:`FunctionPlan.release`."""

    plan: FunctionPlan
    z: IntArray
    """(q,) noisy integer measurements: all that y left behind."""
    receipt: Receipt | None = None
    """Where the release stands in the ledger that paid for it."""

    def query(self, X: Any, *, return_std: bool = False) -> Any:
        """The released function at `X`, with the std of its privacy noise if asked.

        Any number of queries, in any order, cost nothing and agree with each other: they are
        values of one function.
        """
        X = checks.matrix(X, "X", columns=self.plan.points.shape[1])
        values = self.plan.values(X, self.z)
        return (values, self.plan.noise_std(X)) if return_std else values

    @property
    def certificate(self) -> Certificate:
        """The guarantee, and how it was reached."""
        return self.plan.certificate

    @cached_property
    def posterior(self) -> Posterior:
        """The GP given what was released: behind `predict`, `uncertainty` and `sample`."""
        if self.plan.X is None:
            raise ValueError(
                "predict: denoised predictions need the inputs X, which this release does not show. "
                "Use query."
            )
        return Posterior(self.plan.gp, self.plan.X, [(self.plan.measurement, self.z)])

    def predict(self, X: Any, **options: Any) -> Any:
        """Denoised predictions, as for :meth:`Release.predict`."""
        return self.posterior.predict(X, **options)

    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std at `X` by its causes, for denoised predictions."""
        return self.posterior.uncertainty(X, include_noise=include_noise)

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of f from its posterior, by public randomness; free."""
        return self.posterior.sample(X, n, seed)

    def save(self, path: str | os.PathLike[str], *, sign_with: Any = None) -> None:
        """Write the release file, as for :meth:`Release.save`."""
        files.write(path, files.encode(self.plan, self.z, self.receipt, sign_with))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: Any = None) -> FunctionRelease:
        """Read a release file, as for :meth:`Release.load`."""
        plan, z, receipt = files.load(path, kernel)
        if not isinstance(plan, FunctionPlan):
            raise ReleaseFileError("path: this file holds predictions; read it with Release.load.")
        return cls(plan, z, receipt)

    def __repr__(self) -> str:
        c = self.certificate
        mark = "INSECURE " if c.insecure else ""
        return (
            f"<{mark}FunctionRelease: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {c.n_rows} rows, "
            f"{c.n_measurements} measurements>"
        )
