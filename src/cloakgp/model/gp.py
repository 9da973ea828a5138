"""The model: a Gaussian process whose every setting is public, and the smoother for its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from array_api_compat import is_torch_array

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import Argument, ArgumentError, ArgumentTypeError, missing_extra
from cloakgp.data.cells import Cells
from cloakgp.data.columns import Columns
from cloakgp.data.merging import Groups, Inputs, group
from cloakgp.kernels import Kernel, as_kernel
from cloakgp.model.arrays import on_host
from cloakgp.model.inducing import APPROXIMATIONS, Features, SparseGP, check_inducing, choose_inducing
from cloakgp.model.outcome import REAL, Label, as_outcome
from cloakgp.model.smoothers import ExactGP, Merged, Smoother, Solver
from cloakgp.model.windows import (
    Given,
    Middle,
    RowMeans,
    as_bounds,
    as_given,
    at_rows,
    check_mean,
    noise_at,
    of_groups,
)

MOST = 50.0
"""Times which the noise variance of a row that stands alone is multiplied at most."""


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """All that is set of a model that is known: see :class:`cloakgp.GP`, which plans releases with it."""

    kernel: Kernel
    noise: float | FloatArray | Any  # a function of X, before there is an X
    bounds: tuple[Given, Given]
    mean: Given
    inducing: int | FloatArray | None
    approximation: str
    downweight: str | None
    noise_function: Callable[[FloatArray], Any] | None
    outcome: str
    classes: tuple[Label, ...]

    def __init__(
        self,
        kernel: Any,
        noise: Any = None,
        bounds: Any = None,
        mean: Any = None,
        inducing: Any = None,
        approximation: str = "dtc",
        downweight: str | None = None,
        noise_function: Callable[[FloatArray], Any] | None = None,
        outcome: str = REAL.name,
        classes: Any = None,
    ) -> None:
        kind = as_outcome(outcome, classes)
        low, high = as_bounds(kind.bounds_from(bounds))
        noise, mean = kind.noise_and_mean(noise, mean, (low, high))
        if mean is not None:
            mean = as_given(mean, "mean")
            if kind.link is None and all(isinstance(one, float) for one in (low, high, mean)):
                check_mean(low, high, mean)
        elif isinstance(low, float) and isinstance(high, float):
            mean = low + (high - low) / 2
        else:
            mean = Middle(low, high)
        if downweight is not None:
            checks.choice(downweight, "downweight", ("leverage",))
        vars(self).update(
            kernel=as_kernel(kernel),
            noise=_noise(noise),
            bounds=(low, high),
            mean=mean,
            inducing=check_inducing(inducing),
            approximation=checks.choice(approximation, "approximation", APPROXIMATIONS),
            downweight=downweight,
            noise_function=_noise_function(noise_function, noise),
            outcome=kind.name,
            classes=kind.classes,
        )

    def check_real(self, what: str) -> None:
        if self.outcome != REAL.name:
            remedy = "Use plan, plan_rows or AutoGP, whose releases take account of it."
            raise ArgumentError("outcome", f"must be {REAL.name!r} for {what}", repr(self.outcome), remedy)

    def for_columns(self, columns: Columns | None) -> Self:
        """The same model for a table with these columns; or why its kernel does not suit them."""
        if columns is None:
            return self
        kernel = self.kernel.with_places(columns.place)
        for place in {*columns.categories} & {*kernel.number_columns(len(columns.inputs))}:
            column = columns.inputs[place]
            if len(column.levels) > 2:  # two are as far apart either way
                others = [other.name for other in columns.inputs if not other.levels]
                smooth = f"EQ(..., active_dims={others}) * " if others else ""
                such = f"{smooth}Category(0.5, active_dims={[column.name]})"
                raise ArgumentError(
                    "kernel",
                    f"must not measure distances between levels of {column.name!r}",
                    repr(kernel),
                    f"Use kernels.Category for that column, such as {such}; or AutoGP, which does.",
                )
        return self if kernel is self.kernel else replace(self, kernel=kernel)

    def with_inducing(self, X: Any) -> Self:
        """The same model with its inducing inputs, if it has any, chosen and checked for X."""
        if self.inducing is None:
            return self
        if isinstance(self.inducing, int):
            chosen = choose_inducing(X, self.inducing)
        else:
            chosen = checks.matrix(self.inducing, "inducing", columns=X.shape[1])
        return replace(self, inducing=chosen)

    def at_rows(self, X: Any, X_star: FloatArray | None = None) -> Self:
        """The same model with what differs from row to row, or is a function of X, at the rows of X."""
        bounds, mean = at_rows(self.bounds, self.mean, X, X_star)
        noise = noise_at(self.noise, X) if callable(self.noise) else self.noise
        return replace(self, bounds=bounds, mean=mean, noise=noise)

    def at_cells(self, cells: Cells) -> Self:
        """The same model with what differs from row to row as one value for each cell.

        Noise and mean are those of the rows' mean outcome. A cell's window holds all of theirs.
        """
        labels, (low, high), mean, noise = cells.groups.labels, self.bounds, self.mean, self.noise
        if isinstance(low, np.ndarray):
            lowest, highest = np.full(len(cells.counts), np.inf), np.full(len(cells.counts), -np.inf)
            np.minimum.at(lowest, labels, low)
            np.maximum.at(highest, labels, np.asarray(high))
            low, high = frozen(lowest), frozen(highest)
        if isinstance(mean, RowMeans):
            mean = replace(mean, rows=cells.average(mean.rows), X=None)
        noise = cells.average(noise) if isinstance(noise, np.ndarray) else noise
        return replace(self, bounds=(low, high), mean=mean, noise=noise)

    def seen_in(self, cells: Cells) -> Inputs:
        """The cells with the noise and the windows that this model, which is one of cells, has there."""
        return replace(cells.inputs, noise=self.noise, windows=self.windows)

    @property
    def windows(self) -> FloatArray | None:
        """(N, 3) lower and upper limit and prior mean of each row, or cell; None if all have the same."""
        mean = self.mean.rows if isinstance(self.mean, RowMeans) else self.mean
        known = [one for one in (*self.bounds, mean) if not callable(one)]
        if len(known) < 3:
            raise ValueError("bounds, mean: functions of X have values once there is an X; plan first.")
        columns = np.broadcast_arrays(*known)
        return None if columns[0].ndim == 0 else np.column_stack(columns)

    def windows_of(self, groups: Groups | None) -> FloatArray | None:
        """(U, 3) the same for groups of rows that have the same."""
        windows = self.windows
        return None if windows is None else of_groups(windows, groups)

    def noise_of(self, groups: Groups | None) -> float | FloatArray:
        """(U,) noise variance of one outcome in each group, or one number for all."""
        return self.noise if isinstance(self.noise, float) else of_groups(self.noise, groups)

    def mean_of(self, groups: Groups | None) -> float | FloatArray:
        """The prior mean of each group of rows, or one number for all."""
        windows = self.windows_of(groups)
        return self.level if windows is None else windows[:, 2]

    def noise_at(self, X: FloatArray) -> float | FloatArray:
        """The variance of a new outcome at these inputs, about the function there."""
        if self.noise_function is not None:
            return noise_at(self.noise_function, X)
        if isinstance(self.noise, float):
            return self.noise
        raise ValueError(
            "include_noise: this model has one noise variance per row of X, so that of a new "
            "outcome is not known. Give it as a number: include_noise=variance."
        )

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest that any row's outcome can be."""
        windows = self.windows
        if windows is None:
            return self.one_pair("")
        return float(windows[:, 0].min()), float(windows[:, 1].max())

    def limits_of(self, inputs: Inputs) -> tuple[float | FloatArray, float | FloatArray]:
        """The bounds of outcomes at these inputs: two numbers, or a pair for each if rows have own ones."""
        if inputs.windows is None or isinstance(self.bounds[0], float):
            return self.limits
        return frozen(inputs.windows[:, 0]), frozen(inputs.windows[:, 1])

    def one_pair(self, what: str) -> tuple[float, float]:
        """The bounds, if they and the mean are the same for all rows; or why `what` cannot be done."""
        low, high = self.bounds
        if not isinstance(low, float) or not isinstance(high, float):
            raise ArgumentError("bounds", f"must be two numbers for {what}", remedy="GP.plan takes others.")
        if not isinstance(self.mean, float):
            raise ArgumentError("mean", f"must be one number for {what}", remedy="GP.plan takes others.")
        if callable(self.noise):
            expected = f"must be one number or one per row of X for {what}"
            raise ArgumentError("noise", expected, "a function", "Give its values at X, or use GP.plan.")
        return low, high

    @property
    def level(self) -> float:
        """The prior mean, where it is one number."""
        self.one_pair("this")
        assert isinstance(self.mean, float)
        return self.mean

    def check_rows(self, n_rows: int) -> None:
        """Raise unless what is given per row suits so many rows."""
        mean = self.mean.rows if isinstance(self.mean, RowMeans) and not self.mean.function else self.mean
        named = {"noise": self.noise, "bounds[0]": self.bounds[0], "bounds[1]": self.bounds[1], "mean": mean}
        for name, value in named.items():
            if isinstance(value, np.ndarray) and len(value) != n_rows:
                raise ArgumentError(
                    name, f"must be one number or one per row of X ({n_rows})", f"{len(value)} entries"
                )

    def __repr__(self) -> str:
        noise = self.noise if isinstance(self.noise, float) else _shown(self.noise, "variances")
        bounds = ", ".join(map(_shown, self.bounds))
        shown = f"kernel={self.kernel!r}, noise={noise}, bounds=({bounds}), mean={_shown(self.mean)}"
        if self.inducing is not None:
            inducing = self.inducing if isinstance(self.inducing, int) else f"<{len(self.inducing)} inputs>"
            shown += f", inducing={inducing}, approximation={self.approximation!r}"
        if self.downweight is not None:
            shown += f", downweight={self.downweight!r}"
        return f"GP({shown})"


def _noise(noise: Any) -> float | FloatArray | Any:
    if callable(noise):
        return noise
    remedy = "It is the variance of the observation noise, above 0."
    if isinstance(noise, (list, tuple)) or getattr(noise, "ndim", 0) > 0:
        variances = checks.vector(noise, "noise", positive=True, remedy=remedy)
        if len(variances) == 0:
            raise ArgumentError("noise", "must be a number or one per row of X", "no entries", remedy)
        return variances
    return checks.positive(noise, "noise", remedy)


def _noise_function(function: Any, noise: Any) -> Any:
    if function is not None and not callable(function):
        raise ArgumentTypeError("noise_function", "must be a function of X", type(function).__name__)
    return noise if callable(noise) else function


def _shown(value: Given, words: str = "numbers") -> str:
    """A number as it is; of others, what they are and not what they hold."""
    if isinstance(value, float):
        return repr(value)
    rows = value.rows if isinstance(value, RowMeans) else value
    return f"<{len(rows)} {words}>" if isinstance(rows, np.ndarray) else "<function of X>"


# From a model and its inputs to the smoother that belongs to it.


def smoother_for(gp: GaussianProcess, inputs: Inputs, X_star: FloatArray, device: Any = None) -> Smoother:
    """How the sums of y at the distinct inputs become predictions at X*.

    With a `device` an exact GP is torch's, on that device.
    """
    if gp.inducing is not None:
        return SparseGP(Features(gp.kernel, np.asarray(gp.inducing)), gp.approximation, inputs, X_star)
    all_alike = isinstance(inputs.noise, float) and inputs.windows is None  # else an input may be there twice
    solver: Solver = ExactGP if device is None else partial(_on_device, device)
    if inputs.groups is None and (all_alike or group(inputs.X) is None):
        return solver(gp.kernel, inputs.noise, inputs.X, X_star)
    return Merged(gp.kernel, inputs, X_star, solver)


def _on_device(
    device: Any, kernel: Kernel, noise: float | FloatArray, X: FloatArray, X_star: FloatArray
) -> Any:  # a smoother with tensors in place of arrays
    from cloakgp.model.torch_gp import TorchExactGP, tensor

    return TorchExactGP(kernel, noise, tensor(X, device), tensor(X_star, device))


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

    As the paper suggests, judged by X only: the leverage of a row is how far the model's prediction at it
    follows its own outcome, [Kff (Kff + S)^-1]_ii. Rows with much of it need much privacy noise near them. A
    row's noise variance is multiplied by its leverage over the median row's, but by no less than 1 and no
    more than `MOST`.

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
