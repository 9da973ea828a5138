"""Kernels written as text, as in Python: ``EQ(25, variance=660) + Constant(4)``. Parsed, never evaluated.

The text is read by Python's own grammar into a tree, and the tree is walked with a closed list: the kernels
of this package, numbers, lists and tuples of numbers (for knots, inside each other), keyword arguments,
texts that name a category's levels, ``+``, ``*`` and, for numbers, ``**``. Anything else is an error that
points at its place. So a kernel from a command line, a file or a web form can do nothing but describe a
kernel.
"""

from __future__ import annotations

import ast
import inspect
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from cloakgp.errors import ArgumentError
from cloakgp.kernels.base import Combination, Kernel
from cloakgp.kernels.families import Matern
from cloakgp.kernels.specs import KINDS

NAMES: dict[str, Callable[..., Kernel]] = {
    **{name: kind for name, kind in KINDS.items() if not issubclass(kind, Combination)},
    "Matern": Matern,
}
"""Every name that a text may use. Sums and products are written with + and *."""

_LONGEST = 4000  # characters
_DEEPEST = 60  # calls and brackets inside each other
_EXAMPLE = "Write a kernel as in Python, such as EQ(25, variance=660) + Constant(4)."
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
}


def parse(text: str) -> Kernel:
    """The kernel that a text describes.

    Parameters
    ----------
    text : str
        Such as ``"EQ(25, variance=660)"``; what a kernel prints as is understood, too.

    Raises
    ------
    ValueError
        With the text, and a mark under the place that is not understood.

    Examples
    --------
    >>> parse("EQ([1, 5], variance=25**2) + Constant(4)")
    EQ(lengthscale=(1.0, 5.0), variance=625.0) + Constant(variance=4.0)
    """
    if not isinstance(text, str):
        raise ArgumentError("kernel", "must be text", type(text).__name__, _EXAMPLE)
    if len(text) > _LONGEST:
        raise ArgumentError("kernel", f"must be at most {_LONGEST} characters long", str(len(text)))
    kernel = _Reader(text).read()
    if not isinstance(kernel, Kernel):
        raise ArgumentError("kernel", "must be a kernel", f"the number or list {text.strip()!r}", _EXAMPLE)
    return kernel


class _Reader:
    """Walks one text's tree."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()

    def read(self) -> Any:
        if not self.text:
            raise ArgumentError("kernel", "must not be empty", remedy=_EXAMPLE)
        if not self.text.isprintable():
            raise ArgumentError(
                "kernel", "must be one line of printable text", f"{self.text!r:.100}", _EXAMPLE
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the grammar's, about what is refused below anyway
                tree = ast.parse(self.text, mode="eval")
        except SyntaxError as error:
            place = (error.offset or 1) - 1
            raise self._failed(place, "this is not complete, or not as in Python") from None
        except (ValueError, RecursionError, MemoryError):
            raise ValueError(f"kernel is nested too deeply to be read. {_EXAMPLE}") from None
        return self._value(tree.body, 0)

    def _value(self, node: ast.expr, depth: int) -> Any:
        """A kernel, a number, a list of numbers, or true or false."""
        if depth > _DEEPEST:
            raise self._refused(node, "this is nested too deeply")
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.BinOp):
            return self._combined(node, depth)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._entry(entry, depth + 1) for entry in node.elts]
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return node.value
        if isinstance(node, ast.Name) and node.id in NAMES:
            raise self._refused(node, f"{node.id} needs its numbers in brackets, as in {node.id}(...)")
        if isinstance(node, ast.Name):
            raise self._refused(node, f"{node.id} is not known here. Kernels are: {', '.join(NAMES)}")
        return self._number(node, depth)

    def _entry(self, node: ast.expr, depth: int) -> Any:
        """Of a list: a number, or another list, as the knots of Gibbs."""
        return (self._value if isinstance(node, (ast.List, ast.Tuple)) else self._number)(node, depth)

    def _levels(self, node: ast.expr, depth: int) -> Any:
        """Of a category: a list in which texts are understood, too."""
        if not isinstance(node, (ast.List, ast.Tuple)):
            return self._value(node, depth)
        named = [isinstance(one, ast.Constant) and isinstance(one.value, str) for one in node.elts]
        return [
            ast.literal_eval(one) if text else self._number(one, depth + 1)
            for one, text in zip(node.elts, named, strict=True)
        ]

    def _number(self, node: ast.expr, depth: int) -> Any:
        """An int or a float, as written; powers are floats."""
        if depth > _DEEPEST:
            raise self._refused(node, "this is nested too deeply")
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            if isinstance(node.value, bool) or abs(node.value) > 1e300:
                raise self._refused(node, "this is not a number, or too large a one")
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            value = self._number(node.operand, depth + 1)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base, power = self._number(node.left, depth + 1), self._number(node.right, depth + 1)
            try:
                result = float(base) ** float(power)  # floats: no power takes long, or much memory
            except (OverflowError, ZeroDivisionError):
                result = None
            if not isinstance(result, float):
                raise self._refused(node, "this power is not a finite real number")
            return result
        raise self._refused(node, "here only numbers, lists of numbers, kernels, + and * are understood")

    def _combined(self, node: ast.BinOp, depth: int) -> Any:
        """Sums and products; long chains are walked without recursion."""
        chain: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp) and type(first.op) in _OPERATIONS:
            chain.append(first)
            first = first.left
        if not chain:
            return self._number(node, depth)
        result = self._value(first, depth + 1)
        for step in reversed(chain):
            result = self._apply(step, result, self._value(step.right, depth + 1))
        return result

    def _apply(self, node: ast.BinOp, left: Any, right: Any) -> Any:
        for side in (left, right):
            if isinstance(side, (list, bool)):
                raise self._refused(node, "lists, True and False cannot be added or multiplied")
        numbers = [not isinstance(side, Kernel) for side in (left, right)]
        if any(numbers) and not all(numbers) and isinstance(node.op, ast.Add):
            raise self._refused(node, "a number cannot be added to a kernel; add Constant(number)")
        try:
            if all(numbers):
                left, right = float(left), float(right)
            return _OPERATIONS[type(node.op)](left, right)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._refused(node, str(error)) from None

    def _call(self, node: ast.Call, depth: int) -> Kernel:
        if not isinstance(node.func, ast.Name) or node.func.id not in NAMES:
            raise self._refused(node, f"only kernels can be written with brackets: {', '.join(NAMES)}")
        values = [self._value(argument, depth + 1) for argument in node.args]
        accepted = inspect.signature(NAMES[node.func.id]).parameters
        by_place = [p for p in accepted.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        if len(values) > len(by_place):
            words = f"{node.func.id} takes {_counted(len(by_place))} without a name"
            raise self._refused(node.args[len(by_place)], f"{words}; give the others as {_names(accepted)}")
        taken = {parameter.name for parameter in by_place[: len(values)]}
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self._refused(keyword.value, "** stands for a power, and needs a number before it")
            if keyword.arg not in accepted:
                words = f"{node.func.id} has no {keyword.arg}"
                raise self._refused(keyword, f"{words}; it has {_names(accepted)}")
            if keyword.arg in taken or keyword.arg in named:
                raise self._refused(keyword, f"{keyword.arg} is given twice")
            read = self._levels if keyword.arg == "levels" else self._value
            named[keyword.arg] = read(keyword.value, depth + 1)
        needed = [name for name, p in accepted.items() if p.default is p.empty]
        absent = [name for name in needed if name not in taken and name not in named]
        if absent:
            raise self._refused(node, f"{node.func.id} needs {', '.join(absent)}")
        try:
            return NAMES[node.func.id](*values, **named)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._refused(node, str(error)) from None

    def _refused(self, node: ast.expr | ast.keyword, reason: str) -> ValueError:
        line = self.text.encode()[: node.col_offset]  # the grammar counts bytes
        return self._failed(len(line.decode(errors="ignore")), reason)

    def _failed(self, place: int, reason: str) -> ValueError:
        place = min(max(place, 0), len(self.text))
        start = max(0, place - 60)
        shown = self.text[start : place + 40]
        mark = " " * (place - start) + "^"
        return ValueError(f"kernel: {reason.rstrip('.')}.\n  {shown}\n  {mark}")


def _names(accepted: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}=" for name in accepted)


def _counted(number: int) -> str:
    return f"{number or 'no'} value{'' if number == 1 else 's'}"
