"""From a model and its inputs to the smoother that belongs to it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from array_api_compat import is_torch_array

from cloakgp.checks import FloatArray
from cloakgp.errors import Argument, ArgumentError, missing_extra
from cloakgp.model.arrays import on_host
from cloakgp.model.inducing import Features, SparseGP, SparseRows, information
from cloakgp.model.smoothers import ExactGP, Merged, Smoother, Solver
from cloakgp.rows.merging import Inputs, group

if TYPE_CHECKING:
    from cloakgp.model.gp import GP


def smoother_for(gp: GP, inputs: Inputs, X_star: FloatArray, device: Any = None) -> Smoother:
    """How the sums of y at the distinct inputs become predictions at X*.

    With a `device` an exact GP is torch's, on that device.
    """
    if gp.inducing is not None:
        return SparseRows(sparse_model(gp, inputs, X_star), inputs)
    all_alike = isinstance(inputs.noise, float) and inputs.windows is None  # else an input may be there twice
    if inputs.groups is None and (all_alike or group(inputs.X) is None):
        solver: Solver = ExactGP if device is None else partial(_on_device, device)
        return solver(gp.kernel, inputs.noise, inputs.X, X_star)
    return Merged(gp.kernel, inputs, X_star, ExactGP if device is None else partial(_solved_there, device))


def _on_device(
    device: Any, kernel: Any, noise: float | FloatArray, X: FloatArray, X_star: FloatArray
) -> Any:  # a smoother with tensors in place of arrays
    from cloakgp.model.torch_gp import TorchExactGP, tensor

    return TorchExactGP(kernel, noise, tensor(X, device), tensor(X_star, device))


def _solved_there(
    device: Any, kernel: Any, noise: float | FloatArray, X: FloatArray, X_star: FloatArray
) -> Smoother:
    """The heavy part on the device, the rest here."""
    host: Smoother = _on_device(device, kernel, noise, X, X_star).on_host()
    return host


def sparse_model(gp: GP, inputs: Inputs, X_star: FloatArray) -> SparseGP:
    """A GP with inducing inputs that has seen X."""
    assert isinstance(gp.inducing, np.ndarray)
    features = Features(gp.kernel, gp.inducing)
    return SparseGP(features, gp.approximation, information(features, gp.approximation, inputs), X_star)


@runtime_checkable
class OnDevice(Protocol):
    """A smoother that lives on another device."""

    def on_host(self) -> Smoother:
        """The same with numpy arrays."""
        ...


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
