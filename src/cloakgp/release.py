"""A release: what comes out. Everything here is computed from a public plan and the noisy integers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cloakgp import files
from cloakgp.certificate import Certificate
from cloakgp.charging import Receipt
from cloakgp.checks import FloatArray
from cloakgp.container import ReleaseFileError
from cloakgp.denoise import Posterior, Uncertainty
from cloakgp.lattice import IntArray
from cloakgp.plan import Plan


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """Predictions that may be published. Made by :meth:`Plan.release`, or :meth:`load`.

    It holds the public plan and the noisy measurements `z`, and nothing else that depends on y:
    printed, pickled or saved, it cannot give y back.
    """

    plan: Plan
    z: IntArray
    """(q,) noisy integer measurements: all that y left behind."""
    receipt: Receipt | None = None
    """Where the release stands in the ledger that paid for it."""

    @property
    def X_star(self) -> FloatArray:
        """(P, D) test points."""
        return self.plan.X_star

    @property
    def mean(self) -> FloatArray:
        """(P,) released predictions: the GP's posterior mean plus the privacy noise.

        For the `posterior` design, which has no unbiased answer, the same as ``predict(X_star)``.
        """
        m = self.plan.measurement
        centred = (self.z - m.midpoint).astype(np.float64) * m.step
        mean: FloatArray = self.plan.offset + self.plan.reconstruction @ centred
        return mean

    @property
    def noise_std(self) -> FloatArray:
        """(P,) std of the privacy noise in `mean`."""
        return self.plan.noise_std

    @property
    def noise_cov(self) -> FloatArray:
        """(P, P) covariance of the privacy noise in `mean`."""
        return self.plan.noise_cov

    @property
    def gp_std(self) -> FloatArray:
        """(P,) posterior std of the GP itself at X*, privacy noise not counted."""
        return self.plan.gp_std

    @property
    def unbiased(self) -> bool:
        """Whether `mean` is the GP's own mean plus noise, and not a denoised one."""
        return self.certificate.unbiased

    @property
    def certificate(self) -> Certificate:
        """The guarantee, and how it was reached."""
        return self.plan.certificate

    @cached_property
    def posterior(self) -> Posterior:
        """The GP given what was released: behind `predict`, `uncertainty` and `sample`."""
        return Posterior(self.plan.gp, self.plan.X, [(self.plan.measurement, self.z)])

    def predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool | float = False,
    ) -> Any:
        """Denoised predictions of f anywhere: free, deterministic, and without y.

        The Bayesian posterior of f given the released measurements, at planned test points or any
        others. Better than `mean` where the model is sensible, but shrunk towards the prior mean.

        Parameters
        ----------
        X : (n, D) array
        return_std, return_cov : bool
            Return the posterior std (n,) or covariance (n, n) too. It counts the GP's uncertainty and the
            privacy noise together; :meth:`uncertainty` takes them apart.
        include_noise : bool or float
            Add the observation noise, for intervals on a new outcome. Give its variance as a number
            if the model has one per row.

        Returns
        -------
        (n,) array, or a pair of arrays
        """
        return self.posterior.predict(
            X, return_std=return_std, return_cov=return_cov, include_noise=include_noise
        )

    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std at `X` by its causes: privacy noise, GP posterior, observation; and in total.

        `include_noise` as for :meth:`predict`: a variance, if the model has one per row.
        """
        return self.posterior.uncertainty(X, include_noise=include_noise)

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of f from its posterior, by public randomness; free."""
        return self.posterior.sample(X, n, seed)

    def save(self, path: str | os.PathLike[str], *, sign_with: Any = None) -> None:
        """Write the release file: all that an analyst or auditor needs, X included.

        Parameters
        ----------
        path : path
            Written whole or not at all; an existing file is replaced.
        sign_with : Ed25519 private key, optional
            From the `cryptography` package (extra ``sign``). The signature lets a reader check
            that the custodian made this file: see :func:`cloakgp.verify`.
        """
        files.write(path, files.encode(self.plan, self.z, self.receipt, sign_with))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: Any = None) -> Release:
        """Read a release file. Nothing in it is executed.

        Parameters
        ----------
        path : path
        kernel : callable, optional
            The kernel, needed for new predictions if the file was made with a custom one, which
            no file can hold.
        """
        plan, z, receipt = files.load(path, kernel)
        if not isinstance(plan, Plan):
            raise ReleaseFileError(
                "path: this file holds a whole function; read it with FunctionRelease.load."
            )
        return cls(plan, z, receipt)

    def __repr__(self) -> str:
        c, std = self.certificate, self.noise_std
        mark = "INSECURE " if c.insecure else ""
        return (
            f"<{mark}Release: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {len(std)} predictions, "
            f"noise std {std.min():.3g} to {std.max():.3g}>"
        )
