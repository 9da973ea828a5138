"""From a model and its inputs to the smoother that belongs to it; and more noise for rows that stand alone.

As the paper suggests, judged by X only: the leverage of a row is how far the model's prediction at it follows
its own outcome, [Kff (Kff + S)^-1]_ii. Rows with much of it need much privacy noise near them. With
`downweight`, a row's noise variance is multiplied by its leverage over the median row's, but by no less than
1 and no more than `MOST`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import is_torch_array

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import Argument, ArgumentError, missing_extra
from cloakgp.data.merging import Inputs, group
from cloakgp.kernels.base import Kernel
from cloakgp.model.arrays import on_host
from cloakgp.model.inducing import Features, SparseGP
from cloakgp.model.smoothers import ExactGP, Merged, Smoother, Solver

if TYPE_CHECKING:
    from cloakgp.model.gp import GaussianProcess

MOST = 50.0


def smoother_for(gp: GaussianProcess, inputs: Inputs, X_star: FloatArray, device: Any = None) -> Smoother:
    """How the sums of y at the distinct inputs become predictions at X*.

    With a `device` an exact GP is torch's, on that device.
    """
    if gp.inducing is not None:
        return SparseGP(Features(gp.kernel, np.asarray(gp.inducing)), gp.approximation, inputs, X_star)
    all_alike = isinstance(inputs.noise, float) and inputs.windows is None  # else an input may be there twice
    if inputs.groups is None and (all_alike or group(inputs.X) is None):
        solver: Solver = ExactGP if device is None else partial(_on_device, device)
        return solver(gp.kernel, inputs.noise, inputs.X, X_star)
    return Merged(gp.kernel, inputs, X_star, ExactGP if device is None else partial(_solved_there, device))


def _on_device(
    device: Any, kernel: Kernel, noise: float | FloatArray, X: FloatArray, X_star: FloatArray
) -> Any:  # a smoother with tensors in place of arrays
    from cloakgp.model.torch_gp import TorchExactGP, tensor

    return TorchExactGP(kernel, noise, tensor(X, device), tensor(X_star, device))


def _solved_there(
    device: Any, kernel: Kernel, noise: float | FloatArray, X: FloatArray, X_star: FloatArray
) -> Smoother:
    """The heavy part on the device, the rest here."""
    host: Smoother = _on_device(device, kernel, noise, X, X_star).on_host()
    return host


def on_torch(device: Any, *arrays: Any) -> bool:
    """Whether torch is asked for, by the name of a device or by tensors."""
    return device is not None or any(map(is_torch_array, arrays))


def torch_device(device: Any, X: Any, X_star: Any) -> tuple[Any, Any, Any]:
    """The torch device that is asked for, and the inputs as arrays."""
    if not on_torch(device, X, X_star):
        return None, X, X_star
    try:
        import torch
    except ImportError:
        raise missing_extra(Argument("device"), "PyTorch", "torch") from None
    try:
        tensors = (array for array in (X, X_star) if is_torch_array(array))
        chosen = torch.device(device if device is not None else next(tensors).device)
        torch.empty(0, device=chosen)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise ArgumentError(
            "device", "must be one that PyTorch has here, such as 'cuda' or 'cpu'", f"{device!r} ({error})"
        ) from None
    X, X_star = (on_host(array.detach()) if is_torch_array(array) else array for array in (X, X_star))
    return chosen, X, X_star


def downweighted(gp: GaussianProcess, inputs: Inputs, device: Any = None) -> GaussianProcess:
    """The model with the variances that its `downweight` asks for; itself if it asks for none.

    One for each row, or for each cell if `inputs` are cells; else they are X without repetitions under
    `gp.noise`, so that equal rows keep equal variances.
    """
    if gp.downweight is None:
        return gp
    found, groups = leverage(gp, inputs, device), inputs.groups
    each = found if groups is None else np.repeat(found, groups.counts)
    # To two decimals, so that another machine, which rounds otherwise, finds the same factor.
    relative = found / max(float(np.median(each)), np.finfo(float).tiny)
    noise = inputs.variances * np.clip(relative, 1.0, MOST).round(2)
    if groups is not None and inputs.spreads is None:
        noise = noise[groups.labels]
    return replace(gp, noise=noise, downweight=None)


def leverage(gp: GaussianProcess, inputs: Inputs, device: Any = None) -> FloatArray:
    """(U,) leverage of one row of y at each of the inputs; nothing of y is needed."""
    if gp.inducing is None:
        # Kff (Kff + S)^-1 S is the posterior covariance of f at the rows.
        variance = smoother_for(gp, inputs, inputs.X, device).posterior_variance
        return np.asarray(on_host(variance) / inputs.variances)
    # phi' (I + information)^-1 phi / D, which is the same of the model with inducing inputs.
    seen = Features(gp.kernel, np.asarray(gp.inducing)).seen(inputs, gp.approximation)
    return np.asarray(seen.left(seen.phi) / seen.D)
