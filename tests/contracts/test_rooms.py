"""The house has rooms in an order, and no room calls back into an earlier one that it serves.

Read from the source, imports inside functions included: a module may import from its own room and from rooms
above its own in the table of ``docs/architecture.md``, and nowhere does a chain of imports lead back to where
it began. Imports for type checkers alone do not count, since nothing runs for them.
"""

from __future__ import annotations

import re

import pytest

from source_tree import DOCS, DOOR, ROOT, graph, library, room_of, rooms, sources


def check_order(imports, order):
    """No module imports from a room below its own."""
    for found in imports:
        for module in (found.importer, found.imported):
            assert room_of(module) in order, (
                f"{module}: {room_of(module)} has no line in docs/architecture.md"
            )
        above = order.index(room_of(found.imported)) <= order.index(room_of(found.importer))
        assert above, f"{found.importer}, line {found.line}: imports {found.imported}, which comes later"


def check_no_cycle(imports):
    """Modules without imports of their own are taken away until none is left; those in a ring would stay."""
    left = {}
    for found in imports:
        left.setdefault(found.importer, set()).add(found.imported)
    while left:
        free = {imported for group in left.values() for imported in group} - left.keys()
        left = {module: group - free for module, group in left.items()}
        done = {module for module, group in left.items() if not group}
        assert done or free, f"these import each other: {sorted(left)}"
        left = {module: group for module, group in left.items() if group}


def check_private_room(imports):
    """Outside of private/, nothing imports how y is read, or the noise."""
    for found in imports:
        if room_of(found.imported) == "private" and room_of(found.importer) != "private":
            where = f"{found.importer}, line {found.line}"
            assert found.imported == DOOR, f"{where}: imports {found.imported}, past the door"


# ----------------------------------------------------------------------------------------- tests


def test_no_room_calls_back():
    assert sum(bool(found.function) for found in library()) > 5  # those inside functions were seen
    check_order(library(), rooms())


def test_no_imports_in_a_ring():
    check_no_cycle(library())


def test_every_room_is_there():
    assert {room_of(module) for module in sources()} == set(rooms())
    assert len(rooms()) == len(set(rooms()))


def test_how_y_is_read_stays_in_the_private_room():
    assert {path.name for path in (ROOT / "private").glob("*.py")} == {
        "__init__.py",
        "room.py",
        "rows.py",
        "outcomes.py",
        "noise.py",
    }
    check_private_room(library())


def test_what_downloaded_scripts_import_is_public():
    """Every name that the app's scripts import is among those that docs/api.md lists."""
    listed = set((DOCS / "api.md").read_text(encoding="utf-8").split())
    code = (ROOT / "app" / "script.txt").read_text(encoding="utf-8")
    lines = re.findall(r"^from (cloakgp[\w.]*) import ([\w, ]+)$", code, re.MULTILINE)
    assert lines
    for module, names in lines:
        for name in names.split(", "):
            if f"{module}.{name}" in sources():  # a module: what is called of it
                called = set(re.findall(rf"\b{name}\.(\w+)\(", code))
                assert called
                for function in called:
                    assert f"{module}.{name}.{function}" in listed, f"{module}.{name}.{function}"
            else:
                assert f"{module}.{name}" in listed, f"{module}.{name}"


# ---------------------------------------------------------------------------------- planted bugs

HOUSE = {
    "cloakgp": "from cloakgp.release.planner import Planner",
    "cloakgp.model": "",
    "cloakgp.model.gp": "",
    "cloakgp.model.other": "",
    "cloakgp.private": "",
    "cloakgp.private.room": "from cloakgp.private import outcomes",
    "cloakgp.private.outcomes": "",
    "cloakgp.release": "",
    "cloakgp.release.planner": "from cloakgp.model.gp import GP\nfrom cloakgp.private.room import measure",
}
ORDER = ["model", "private", "release", "cloakgp"]


def check(files):
    imports = graph(files)
    check_order(imports, ORDER)
    check_no_cycle(imports)
    check_private_room(imports)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("cloakgp.model.other", "from cloakgp.release.planner import Planner"),
        ("cloakgp.model.other", "def planner(self):\n    from cloakgp.release.planner import Planner"),
        ("cloakgp.model.other", "import cloakgp.release.planner"),
        ("cloakgp.model.other", "from cloakgp.release import planner"),
        ("cloakgp.model.other", "from cloakgp import GP"),
        ("cloakgp.model.other", "importlib.import_module('cloakgp.release.planner')"),
        ("cloakgp.model.gp", "from cloakgp.release.planner import Planner"),
        ("cloakgp.model.gp", "def fit(self):\n    from cloakgp.release.planner import Planner"),
        ("cloakgp.private.outcomes", "def f():\n    from cloakgp.private.room import measure"),
        ("cloakgp.release.planner", "from cloakgp.private.outcomes import numeric"),
        ("cloakgp.release.planner", "def f():\n    from cloakgp.private import outcomes"),
        ("cloakgp.attic", "import cloakgp.model"),
    ],
)
def test_planted_imports_are_caught(module, line):
    """Later rooms, in functions too; rings; past the door; a new room."""
    check(HOUSE)
    check(
        HOUSE | {"cloakgp.model.other": "if TYPE_CHECKING:\n    from cloakgp.release.planner import Planner"}
    )
    with pytest.raises(AssertionError):
        check(HOUSE | {module: line})
