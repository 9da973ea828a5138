"""Kernels for tables: columns by name, and levels of a category, whose codes are no distances."""

from __future__ import annotations

from cloakgp.errors import ArgumentError
from cloakgp.kernels import Category, Constant, Custom, Kernel
from cloakgp.kernels.base import Combination
from cloakgp.rows.columns import Columns


def with_places(kernel: Kernel, columns: Columns | None) -> Kernel:
    """The same kernel with columns that it names in `active_dims` by their numbers."""
    if isinstance(kernel, Combination):
        parts = tuple(with_places(part, columns) for part in kernel.kernels)
        same = all(new is old for new, old in zip(parts, kernel.kernels, strict=True))
        return kernel if same else type(kernel)(parts)
    names = getattr(kernel, "active_dims", None)
    if columns is None or not names or not isinstance(names[0], str):
        return kernel
    return kernel.with_params(active_dims=[columns.place(name) for name in names])


def check_levels(kernel: Kernel, columns: Columns) -> None:
    """Raise if a kernel takes the codes of levels for numbers. Two levels are as far apart either way."""
    parts = kernel.kernels if isinstance(kernel, Combination) else ()
    for part in parts:
        check_levels(part, columns)
    if parts or isinstance(kernel, (Category, Constant, Custom)):
        return
    read = getattr(kernel, "active_dims", None)
    for place in columns.categories:
        column = columns.inputs[place]
        if len(column.levels) > 2 and (read is None or place in read):
            others = [other.name for other in columns.inputs if not other.levels]
            smooth = f"EQ(..., active_dims={others}) * " if others else ""
            such = f"{smooth}Category(0.5, active_dims={[column.name]})"
            raise ArgumentError(
                "kernel",
                f"must not measure distances between levels of {column.name!r}",
                type(kernel).__name__,
                f"Use kernels.Category for that column, such as {such}; or AutoGP, which does.",
            )
