"""The exact GP on torch tensors, on a GPU for instance: the extra ``torch``.

The Gram matrix is the one large thing (80 GB for 100,000 rows). It is filled a strip of rows at a
time, only below the diagonal, and overwritten by its own Cholesky factor, so memory holds it once. A design
that multiplies with it gets it back when the factor has done its work.
Nothing private comes here: a plan needs no y.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from cloakgp.core.checks import FloatArray
from cloakgp.kernels import Kernel, as_kernel
from cloakgp.model.arrays import column_dots, on_host
from cloakgp.model.smoothers import NOT_PSD, Rows, blocks, check_covariance, jitters, sample

Tensor = Any  # torch.Tensor, which mypy knows only where torch is installed

BLOCK = 2048
"""Rows of a strip: large enough to keep a GPU busy, small beside the Gram matrix."""


class TorchExactGP:
    """C = K*f (Kff + S)^-1 by Cholesky, like :class:`cloakgp.model.smoothers.ExactGP`, where X lives.

    Parameters
    ----------
    kernel : Kernel or callable
        k(X, Z) -> matrix, on torch tensors.
    noise : float or (N,) array or tensor
        Observation-noise variances S.
    X, X_star : (N, D) and (P, D) float64 tensors on one device
    """

    def __init__(self, kernel: Any, noise: Any, X: Tensor, X_star: Tensor) -> None:
        if not X.dtype == X_star.dtype == torch.float64 or X.device != X_star.device:
            raise TypeError(
                "X and X_star must be float64 tensors on one device; got "
                f"{X.dtype} on {X.device} and {X_star.dtype} on {X_star.device}."
            )
        self._kernel: Kernel = as_kernel(kernel)
        self._X, self.n_rows, self.n_outputs = X, len(X), len(X_star)
        self._noise = torch.zeros_like(X[:, 0]) + tensor(noise, X.device)
        some: list[Tensor] = [sample(X), sample(X_star)]
        check_sample(self._kernel, some[0])
        check_sample(self._kernel, torch.cat(some))
        self.cross = torch.cat([self._kernel(X[rows], X_star) for rows in blocks(self.n_rows, BLOCK)])
        self.scale = float((self._kernel.diag(X) + self._noise).mean())
        factor, self.jitter = self._factor()
        half = torch.linalg.solve_triangular(factor, self.cross, upper=False)
        self._transposed = torch.linalg.solve_triangular(factor.mT, half, upper=True)  # C^T
        del factor  # makes room for the design
        prior = self._kernel.diag(X_star)
        self.explained_variance = column_dots(self.cross, self._transposed)
        if bool((self.explained_variance > prior * (1 + 1e-6) + 1e-12).any()):
            raise ValueError(NOT_PSD)
        self.posterior_variance = (prior - self.explained_variance).clamp(min=0.0)

    def times_covariance(self, B: Tensor) -> Tensor:
        """B (Kff + S)."""
        product = B * self._noise
        for rows in blocks(self.n_rows, BLOCK):
            kept = self._covariance
            before, corner = (
                self._strip(rows) if kept is None else (kept[rows, : rows.start], kept[rows, rows])
            )
            product[:, : rows.start] += B[:, rows] @ before
            product[:, rows] += B[:, : rows.start] @ before.T + B[:, rows] @ corner
        return product

    @cached_property
    def _covariance(self) -> Tensor | None:
        """Kff up to its diagonal, where its factor was; None where there is no room for it.

        Designs that multiply with it do so a hundred times: its kernel's values are computed once.
        """
        try:
            kept = torch.empty((self.n_rows, self.n_rows), dtype=torch.float64, device=self._X.device)
        except torch.OutOfMemoryError:
            return None
        self._fill(kept)
        return kept

    def columns(self, rows: slice | Rows) -> Tensor:
        """Columns of C that belong to these rows of X."""
        chosen = rows if isinstance(rows, slice) else torch.asarray(np.array(rows), device=self._X.device)
        return self._transposed[chosen].T

    def on_host(self) -> OnHost:
        """The same smoother with numpy arrays, for what follows the design."""
        return OnHost(self)

    def _factor(self) -> tuple[Tensor, float]:
        """The Cholesky factor with the smallest jitter, from none upwards, that works."""
        # Column by column, as LAPACK has it: so nothing makes a copy.
        gram = torch.empty((self.n_rows, self.n_rows), dtype=torch.float64, device=self._X.device).T
        for jitter in jitters(self.scale):
            self._fill(gram)
            gram.diagonal().add_(self._noise + jitter)
            if cholesky_in_place(gram):
                return gram, jitter
        raise ValueError(NOT_PSD)

    def _fill(self, gram: Tensor) -> None:
        """Kff up to its diagonal; what is above the blocks there is left as it was."""
        for rows in blocks(self.n_rows, BLOCK):
            gram[rows, : rows.start], gram[rows, rows] = self._strip(rows)

    def _strip(self, rows: slice) -> tuple[Tensor, Tensor]:
        """Kff of these rows and those before them, and of these rows among themselves."""
        here, before = self._X[rows], self._X[: rows.start]
        corner = self._kernel(here, here)
        return (self._kernel(here, before) if len(before) else corner[:, :0]), corner


class OnHost:
    """A torch smoother whose answers are numpy arrays; the work stays where it was."""

    def __init__(self, smoother: TorchExactGP) -> None:
        self._smoother, self.jitter, self.scale = smoother, smoother.jitter, smoother.scale
        self.n_rows, self.n_outputs = smoother.n_rows, smoother.n_outputs
        self.posterior_variance: FloatArray = on_host(smoother.posterior_variance)
        self.explained_variance: FloatArray = on_host(smoother.explained_variance)

    @cached_property
    def cross(self) -> FloatArray:
        """(N, P) prior covariance of f(X) and f(X*)."""
        return on_host(self._smoother.cross)

    def times_covariance(self, B: FloatArray) -> FloatArray:
        """B (Kff + S)."""
        return on_host(self._smoother.times_covariance(tensor(B, self._smoother.cross.device)))

    def columns(self, rows: slice | Rows) -> FloatArray:
        """Columns of C that belong to these rows of X."""
        return np.ascontiguousarray(on_host(self._smoother.columns(rows)))


def tensor(values: Any, device: Any) -> Tensor:
    """The values as a float64 tensor on the device."""
    if isinstance(values, torch.Tensor):
        return values.to(device=device, dtype=torch.float64)
    return torch.tensor(values, dtype=torch.float64, device=device)  # a copy: a plan's arrays are read-only


def check_sample(kernel: Kernel, some: Tensor) -> None:
    """Refuse a kernel whose matrix of these few inputs cannot be a covariance matrix."""
    check_covariance(on_host(kernel(some, some)))


def cholesky_in_place(matrix: Tensor) -> bool:
    """Overwrite a matrix, given by its lower triangle, with its Cholesky factor; False if it has none."""
    failed = torch.empty((), dtype=torch.int32, device=matrix.device)
    torch.linalg.cholesky_ex(matrix, out=(matrix, failed))
    return not failed.item()
