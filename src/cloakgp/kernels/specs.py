"""Kernels as plain JSON, for release files, and as text: ``EQ(25, variance=660) + Constant(4)``.

Both are read through a closed list, and nothing is ever executed. A text is read by Python's own grammar into
a tree, and the tree is walked: the kernels of this package, numbers, lists and tuples of numbers (for knots,
inside each other), keyword arguments, ``+``, ``*`` and, for numbers, ``**``. Anything else is an error that
points at its place. So a kernel from a command line, a file or a web form can do nothing but describe a
kernel.
"""

from __future__ import annotations

import ast
import inspect
import operator
import reprlib
import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from cloakgp.core.errors import ArgumentError, Message, Phrase
from cloakgp.kernels.base import KINDS, MAX_DEPTH, Kernel
from cloakgp.kernels.families import Matern

NAMES: dict[str, Callable[..., Kernel]] = {**KINDS, "Matern": Matern}
"""Every name that a text may use. Sums and products are written with + and *."""
del NAMES["Sum"], NAMES["Product"]

_ONLY = "here only numbers, lists of numbers, kernels, + and * are understood"
_EXAMPLE = "Write a kernel as in Python, such as EQ(25, variance=660) + Constant(4)."
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
}


def from_spec(spec: Any, custom: Kernel | None = None) -> Kernel:
    """Rebuild a kernel from :meth:`Kernel.to_spec`'s description.

    Only this module's kernels can come out, each through its own constructor's checks, so a
    description from an untrusted file is safe to read.

    Parameters
    ----------
    spec : dict
    custom : Kernel, optional
        What to put in the place of each :class:`Custom` kernel, whose function no description holds.

    Raises
    ------
    ValueError
        If the description is not one that `to_spec` writes, or holds a :class:`Custom` kernel and `custom`
        is not given.
    """
    return _from_spec(spec, 0, custom)


def is_custom(spec: Any) -> bool:
    """Whether a kernel's description, already checked, has a part that no file can hold."""
    return spec["kind"] == "Custom" or any(map(is_custom, spec.get("kernels", ())))


def fits(given: Any, stored: Any) -> bool:
    """Whether a kernel can be the one that a file describes: equal, but for parts that no file can hold."""
    if stored["kind"] == "Custom":
        return True
    parts, others = stored.get("kernels"), given.get("kernels")
    if given["kind"] != stored["kind"] or not isinstance(parts, list) or not isinstance(others, list):
        return bool(given == stored)
    return len(parts) == len(others) and all(map(fits, others, parts))


def stored_kernel(spec: Any) -> Kernel:
    """The kernel of a file, with a stand-in for each part that no file can hold."""
    return from_spec(spec, custom=WithheldKernel())


class WithheldKernel(Kernel):
    """Stands for a custom kernel that was not given; everything but new predictions works."""

    def to_spec(self) -> dict[str, Any]:
        return {"kind": "Custom"}

    def _matrix(self, X: Any, Z: Any) -> Any:
        raise ValueError(
            Message(
                "kernel: this release was made with a custom kernel, which its file cannot hold. ",
                Phrase.LOAD_WITH_KERNEL,
            )
        )

    def _diag(self, X: Any) -> Any:
        return self._matrix(X, X)

    def __repr__(self) -> str:
        return "<custom kernel, not in file>"


def _from_spec(spec: Any, depth: int, custom: Kernel | None) -> Kernel:
    if depth > MAX_DEPTH:
        raise ValueError(f"kernel spec must be nested at most {MAX_DEPTH} deep.")
    if not isinstance(spec, dict) or not isinstance(spec.get("kind"), str):
        raise ValueError(f"kernel spec must be a dict with a kind; got {reprlib.repr(spec)}.")
    if spec["kind"] == "Custom":
        if custom is not None and len(spec) == 1:
            return custom
        raise ValueError(
            "a custom kernel cannot be rebuilt from a file, which does not hold its function. "
            "The reader must give the kernel."
        )
    kind = KINDS.get(spec["kind"])
    if kind is None:
        raise ValueError(
            f"kernel spec kind must be one of {', '.join(KINDS)}; got {reprlib.repr(spec['kind'])}."
        )
    values = {name: value for name, value in spec.items() if name != "kind"}
    wanted = {f.name for f in fields(kind)}
    if values.keys() != wanted:
        raise ValueError(
            f"kernel spec of kind {kind.__name__} must have exactly the keys {sorted(wanted)}; "
            f"got {reprlib.repr(list(values))}."
        )
    try:
        return kind._from_spec(values, lambda part: _from_spec(part, depth + 1, custom))
    except (TypeError, OverflowError) as error:
        raise ValueError(f"kernel spec of kind {kind.__name__} is not valid: {error}") from error


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
    if len(text) > 4000:
        raise ArgumentError("kernel", "must be at most 4000 characters long", str(len(text)))
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
        """A kernel, a number, a list, or true or false."""
        if depth > 60:  # far more than anyone writes, and far less than Python's recursion allows
            raise self._refused(node, "this is nested too deeply")
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.BinOp):
            return self._combined(node, depth)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._entry(entry, depth + 1) for entry in node.elts]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            value = self._number(node.operand, depth + 1)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):  # or true or false
            if abs(node.value) > 1e300:
                raise self._refused(node, "this number is too large")
            return node.value
        if isinstance(node, ast.Name):
            needs = f"{node.id} needs its numbers in brackets, as in {node.id}(...)"
            unknown = f"{node.id} is not known here. Kernels are: {', '.join(NAMES)}"
            raise self._refused(node, needs if node.id in NAMES else unknown)
        raise self._refused(node)

    def _entry(self, node: ast.expr, depth: int) -> Any:
        """Of a list: a number, or another list, as the knots of Gibbs."""
        read = self._value if isinstance(node, (ast.List, ast.Tuple)) else self._number
        return read(node, depth)

    def _number(self, node: ast.expr, depth: int) -> Any:
        value = self._value(node, depth)
        if type(value) not in (int, float):
            raise self._refused(node)
        return value

    def _combined(self, node: ast.BinOp, depth: int) -> Any:
        """Sums and products, long chains without recursion; and powers, which are floats."""
        if isinstance(node.op, ast.Pow):
            base, power = self._number(node.left, depth + 1), self._number(node.right, depth + 1)
            try:
                result = float(base) ** float(power)  # floats: no power takes long, or much memory
            except (OverflowError, ZeroDivisionError):
                result = None
            if not isinstance(result, float):
                raise self._refused(node, "this power is not a finite real number")
            return result
        chain: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp) and type(first.op) in _OPERATIONS:
            chain.append(first)
            first = first.left
        if not chain:
            raise self._refused(node)
        result = self._value(first, depth + 1)
        for step in reversed(chain):
            result = self._apply(step, result, self._value(step.right, depth + 1))
        return result

    def _apply(self, node: ast.BinOp, left: Any, right: Any) -> Any:
        kernels = isinstance(left, Kernel) + isinstance(right, Kernel)
        if any(isinstance(side, (list, bool)) for side in (left, right)):
            raise self._refused(node, "lists, True and False cannot be added or multiplied")
        if kernels == 1 and isinstance(node.op, ast.Add):
            raise self._refused(node, "a number cannot be added to a kernel; add Constant(number)")
        try:
            if not kernels:
                left, right = float(left), float(right)
            return _OPERATIONS[type(node.op)](left, right)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._refused(node, str(error)) from None

    def _call(self, node: ast.Call, depth: int) -> Kernel:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in NAMES:
            raise self._refused(node, f"only kernels can be written with brackets: {', '.join(NAMES)}")
        signature = inspect.signature(NAMES[name])
        values = [self._value(argument, depth + 1) for argument in node.args]
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self._refused(keyword.value, "** stands for a power, and needs a number before it")
            if keyword.arg not in signature.parameters:
                has = ", ".join(f"{one}=" for one in signature.parameters)
                raise self._refused(keyword, f"{name} has no {keyword.arg}; it has {has}")
            if keyword.arg in named:
                raise self._refused(keyword, f"{keyword.arg} is given twice")
            named[keyword.arg] = self._value(keyword.value, depth + 1)
        try:
            signature.bind(*values, **named)  # says which is missing, given twice or one too many
            return NAMES[name](*values, **named)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._refused(node, f"{name}: {error}") from None

    def _refused(self, node: ast.expr | ast.keyword, reason: str = _ONLY) -> ValueError:
        line = self.text.encode()[: node.col_offset]  # the grammar counts bytes
        return self._failed(len(line.decode(errors="ignore")), reason)

    def _failed(self, place: int, reason: str) -> ValueError:
        place = min(max(place, 0), len(self.text))
        start = max(0, place - 60)
        shown = self.text[start : place + 40]
        mark = " " * (place - start) + "^"
        return ValueError(f"kernel: {reason.rstrip('.')}.\n  {shown}\n  {mark}")
