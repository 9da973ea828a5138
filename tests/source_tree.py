"""The library's source, read and not run: its modules, what each imports, and the order of the rooms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import cloakgp

ROOT = Path(cloakgp.__file__).parent
DOCS = Path(__file__).resolve().parents[1] / "docs"
PACKAGE = "cloakgp"
DOOR = "cloakgp.private.room"
"""What others may import of the private room."""


class Import(NamedTuple):
    """Who imports what, and in which function, if in one."""

    importer: str
    imported: str
    line: int
    function: str


@cache
def rooms() -> list[str]:
    """The rooms in their order, from the table that readers see."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `([a-z_]+)/?` \|", text, re.MULTILINE)


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


@cache
def sources() -> dict[str, str]:
    """Every module's source, by its dotted name; a package's own has that of the package."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    if len(found) < 100 or DOOR not in found:
        raise RuntimeError("the source was not found")
    return found


def imports_of(module: str, source: str, modules: Mapping[str, str]) -> list[Import]:
    """What a module imports of `modules`, wherever it does; for type checkers alone does not count."""
    found = []

    def visit(node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
                for other in child.orelse:
                    visit(ast.Module([other], []), function)
                continue
            for name in dict.fromkeys(_nearest(one, modules) for one in named(child)):
                if name and name != module:
                    found.append(Import(module, name, child.lineno, function))
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            visit(child, child.name if inside else function)

    visit(ast.parse(source), "")
    return found


def named(node: ast.AST) -> Iterator[str]:
    """What a node imports, in full: a module, or something in it; by `import_module`, too."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: imports are written in full"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant))


def _nearest(name: str, modules: Mapping[str, str]) -> str:
    parent = name.rpartition(".")[0]
    return name if name in modules else parent if parent in modules else ""


def graph(files: Mapping[str, str]) -> list[Import]:
    return [found for module, source in files.items() for found in imports_of(module, source, files)]


@cache
def library() -> list[Import]:
    return graph(sources())


@cache
def those_that_reach(target: str) -> set[str]:
    """Modules from which a chain of imports leads to this one."""
    found = {target}
    while more := {one.importer for one in library() if one.imported in found} - found:
        found |= more
    return found
