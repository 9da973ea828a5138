"""A release: what comes out. Everything here is computed from a public plan and the noisy integers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp import files
from cloakgp.certificate import Certificate
from cloakgp.checks import FloatArray
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

    @property
    def X_star(self) -> FloatArray:
        """(P, D) test points."""
        return self.plan.X_star

    @property
    def mean(self) -> FloatArray:
        """(P,) released predictions: the GP's posterior mean plus the privacy noise."""
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
    def certificate(self) -> Certificate:
        """The guarantee, and how it was reached."""
        return self.plan.certificate

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
        path = Path(path)
        contents = files.encode(self.plan, self.z, sign_with)
        unfinished = path.with_name(path.name + ".part")
        try:
            unfinished.write_bytes(contents)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)

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
        return cls(*files.decode(Path(path).read_bytes(), kernel))

    def __repr__(self) -> str:
        c, std = self.certificate, self.noise_std
        mark = "INSECURE " if c.insecure else ""
        return (
            f"<{mark}Release: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {len(std)} predictions, "
            f"noise std {std.min():.3g} to {std.max():.3g}>"
        )
