"""Private outcomes have one door: ``measure.py``. Read from the source, so that it holds for every input.

* Outside ``measure.py`` nothing is called y, but where the list below says why.
* ``Plan.release`` hands y to ``measure`` and does nothing else with it.
* Only ``measure.py`` uses OpenDP, only ``plan.py`` uses ``measure.py``, and nothing on the way from y to a
  release draws random numbers but OpenDP and the insecure seed of ``testing.py``.
* ``measure.py`` prints, logs and warns nothing, and its messages quote nothing but shapes.

A new module that must handle y is a decision: it needs a line here, with its reason.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from privacy_helpers import fails, require

import cloakgp

ROOT = Path(cloakgp.__file__).parent

PRIVATE = re.compile(r"_?(y|ys|y_.*|outcomes?|targets?)")
PUBLIC = {"y_bits"}  # the lattice's, not the data's

# (file, function): why it may use these names
ALLOWED = {
    ("plan.py", "release"): "passes y on to measure; looked at closely below",
    ("plots.py", "_draw_private"): "the custodian's own picture, stamped NOT FOR RELEASE",
    ("plots.py", "_stamp"): "a place on the page",
    ("demo.py", "main"): "generated data, nobody's",
}
RANDOM_ALLOWED = {
    "testing.py": "the insecure seed, which marks everything it touches",
    "datasets.py": "generated look-alikes; used by the demo alone",
}
RANDOM = {"default_rng", "Generator", "RandomState", "SeedSequence", "urandom", "getrandbits", "randbytes"}
RANDOM_MODULES = {"random", "secrets"}
QUOTABLE = {"n_rows", "array.shape"}  # what messages in measure.py may hold


# ---------------------------------------------------------------------------------------- checks


def sources():
    """The library's own source, by path."""
    return {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.rglob("*.py"))}


def functions_around(tree):
    """For every node, the names of the functions that it stands in, outermost first."""
    around = {}

    def walk(node, names):
        around[node] = names
        inner = (*names, node.name) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else names
        for child in ast.iter_child_nodes(node):
            walk(child, inner)

    walk(tree, ())
    return around


def names_in(node):
    """What a node calls things: variables, parameters, attributes, keywords, imports, fields."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, (ast.arg, ast.keyword)):
        return [node.arg or ""]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.alias):
        return [node.name.split(".")[-1], node.asname or ""]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    return []


def check_y_is_nowhere_else(files, allowed):
    """No variable, parameter or attribute with y's name outside measure.py, but where allowed."""
    for path, source in files.items():
        if path == "measure.py":
            continue
        tree = ast.parse(source)
        around = functions_around(tree)
        for node in ast.walk(tree):
            private = [name for name in names_in(node) if PRIVATE.fullmatch(name) and name not in PUBLIC]
            if private and not any((path, name) in allowed for name in around[node]):
                raise AssertionError(f"{path}, line {node.lineno}: {private[0]} outside of measure.py")


def check_release_only_passes_y_on(source):
    """In Plan.release, y is a parameter, and then only ever an argument of measure itself."""
    (release,) = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == "release"
    )
    passed = {
        id(argument)
        for call in ast.walk(release)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "measure"
        for argument in call.args
    }
    uses = [node for node in ast.walk(release) if isinstance(node, ast.Name) and node.id == "y"]
    assert uses, "release does not use y"
    for use in uses:
        assert id(use) in passed, f"line {use.lineno}: release does more with y than pass it to measure"
    calls = [node for node in ast.walk(release) if isinstance(node, ast.Call)]
    for call in calls:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        assert name not in ("locals", "vars", "eval", "exec"), f"line {call.lineno}: release calls {name}"
    imported = [
        (node.module, alias.name, alias.asname)
        for node in ast.walk(release)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert ("cloakgp.measure", "measure", None) in imported, "measure is not cloakgp.measure's"
    stored = [
        node.id
        for node in ast.walk(release)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    assert "measure" not in stored, "measure is redefined in release"


def imports(source):
    """Every module that a source imports, in full, wherever in the file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [node.value] if re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", node.value) else []  # import_module
    return found


def check_imports(files):
    """OpenDP in measure.py alone; measure.py in plan.py alone; its private parts nowhere else."""
    for path, source in files.items():
        for module in imports(source):
            parts = module.split(".")
            if parts[0] == "opendp":
                assert path == "measure.py", f"{path} uses OpenDP"
            if parts[:2] == ["cloakgp", "measure"]:
                assert path == "plan.py", f"{path} imports the private room"
                assert parts[2:] == ["measure"], f"{path} reaches past the private room's door"
            if parts[:2] == ["cloakgp", "datasets"]:
                assert path == "demo.py", f"{path} imports generated data"


def check_randomness(files):
    """No source of random numbers but OpenDP's, the insecure seed, and generated data."""
    for path, source in files.items():
        if path in RANDOM_ALLOWED:
            continue
        for module in imports(source):
            parts = module.split(".")
            assert parts[0] not in RANDOM_MODULES, f"{path} imports {module}"
            assert parts[:2] != ["numpy", "random"], f"{path} imports {module}"
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                is_module = node.value.id in ("np", "numpy") and node.attr == "random"
                assert not is_module, f"{path}, line {node.lineno}: random numbers"
            bad = RANDOM.intersection(names_in(node))
            assert not bad, f"{path}: random numbers ({bad})"
            if "insecure_generator" in names_in(node):
                assert path in ("measure.py", "plan.py"), f"{path} looks at the insecure seed"


def check_private_room_is_silent(source):
    """measure.py prints, logs, warns, writes and formats nothing of y."""
    tree = ast.parse(source)
    loud = {
        "print",
        "warn",
        "warning",
        "debug",
        "info",
        "error",
        "log",
        "write",
        "open",
        "format",
        "repr",
        "str",
    }
    for module in imports(source):
        assert module.split(".")[0] not in ("logging", "warnings", "sys", "os"), (
            f"measure.py imports {module}"
        )
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = (names_in(node.func) or [""])[0]
            assert name not in loud, f"line {node.lineno}: measure.py calls {name}"
        if isinstance(node, ast.FormattedValue):
            quoted = ast.unparse(node.value)
            assert quoted in QUOTABLE, f"line {node.lineno}: a message quotes {quoted}"
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            raise AssertionError(f"line {node.lineno}: measure.py keeps something between calls")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            left = node.left
            text = isinstance(left, ast.Constant) and isinstance(left.value, str)
            assert not text, f"line {node.lineno}: a message is formatted"
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
        assert handler.name is None, f"line {handler.lineno}: measure.py holds on to an error"
        for raised in (node for node in ast.walk(handler) if isinstance(node, ast.Raise)):
            hidden = isinstance(raised.cause, ast.Constant) and raised.cause.value is None
            assert hidden, f"line {raised.lineno}: an error shows the one before it, which may quote values"


# ----------------------------------------------------------------------------------------- tests


def test_y_is_named_in_the_private_room_alone():
    """To see where y could leak, one file is enough to read."""
    files = sources()
    require(len(files) > 15 and "measure.py" in files, "the source was not found")
    check_y_is_nowhere_else(files, ALLOWED)


def test_the_list_of_exceptions_has_no_idle_entries():
    """An exception that is no longer needed is taken off the list."""
    for entry in ALLOWED:
        rest = {key: why for key, why in ALLOWED.items() if key != entry}
        assert fails(check_y_is_nowhere_else, sources(), rest, because=entry[0]), entry
    assert set(sources()) >= set(RANDOM_ALLOWED)


def test_release_does_nothing_with_y_but_pass_it_to_the_private_room():
    """plan.release(y) is measure(..., y, ...) and what follows sees only noisy integers."""
    check_release_only_passes_y_on(sources()["plan.py"])


def test_only_the_private_room_adds_noise_and_only_the_plan_enters_it():
    """OpenDP is imported in measure.py, and measure.measure in plan.py."""
    files = sources()
    require("opendp" in files["measure.py"], "measure.py does not use OpenDP")
    check_imports(files)


def test_no_other_random_numbers_are_drawn_on_the_way():
    """numpy's generators are for the insecure seed and for generated data."""
    check_randomness(sources())


def test_the_private_room_prints_logs_and_quotes_nothing():
    """Its messages hold shapes; its errors hide the errors before them."""
    check_private_room_is_silent(sources()["measure.py"])


# ---------------------------------------------------------------------------------- planted bugs


@pytest.mark.parametrize(
    "source",
    [
        "def fit(X, y): pass",
        "def fit(X, *, y_train=None): pass",
        "def fit(X, *y): pass",
        "centre = lambda y: y",
        "for y in data: pass",
        "total = sum(v for y in rows for v in y)",
        "with open_data() as y: pass",
        "self.y_ = data",
        "release = plan.release(data).y",
        "plan.fit(y=data)",
        "from data import outcomes",
        "class A:\n    y: int",
        "def outer():\n    def release(y): pass",
        "if (y := data): pass",
    ],
)
def test_planted_use_of_y_elsewhere_is_caught(source):
    """As a parameter, a variable, an attribute, a keyword, an import or a field."""
    assert fails(check_y_is_nowhere_else, {"gp.py": source}, ALLOWED)
    assert not fails(check_y_is_nowhere_else, {"measure.py": source, "gp.py": "y_bits = 3"}, ALLOWED)


RELEASE = """
class Plan:
    def release(self, y, *, missing="error"):
        from cloakgp.measure import measure
        {}
"""


@pytest.mark.parametrize(
    "body",
    [
        "self.y = y; return measure(self.measurement, y, missing)",
        "return measure(self.measurement, y - y.mean(), missing)",
        "return measure(self.measurement, y[ok], missing)",
        "print(y); return measure(self.measurement, y, missing)",
        "z = measure(self.measurement, y, missing); return Release(self, z, len(y))",
        "y = clean(y); return measure(self.measurement, y, missing)",
        "if y is not None: return measure(self.measurement, y, missing)",
        "log(locals()); return measure(self.measurement, y, missing)",
        "measure = other; return measure(self.measurement, y, missing)",
        "return other.measure(self.measurement, y, missing)",
        "return self",
    ],
)
def test_planted_use_of_y_in_release_is_caught(body):
    """Kept, centred, filtered, printed, counted, renamed, tested, or handed to something else."""
    assert fails(check_release_only_passes_y_on, RELEASE.format(body))
    check_release_only_passes_y_on(RELEASE.format("return measure(self.measurement, y, missing)"))


@pytest.mark.parametrize(
    "source",
    [
        "import opendp",
        "import opendp.prelude as dp",
        "def f():\n    from opendp import measurements",
        "import importlib; dp = importlib.import_module('opendp.prelude')",
        "from cloakgp.measure import measure",
        "from cloakgp import measure",
        "import cloakgp.measure",
        "from cloakgp.datasets import make_kung_like",
    ],
)
def test_planted_imports_are_caught(source):
    """OpenDP, the private room, or generated data where they do not belong."""
    assert fails(check_imports, {"release.py": source})


def test_planted_entry_past_the_door_is_caught():
    """plan.py may use measure.measure, and nothing else of the private room."""
    assert fails(check_imports, {"plan.py": "from cloakgp.measure import _to_integers"})
    assert fails(check_imports, {"plan.py": "from cloakgp import measure"})
    assert not fails(check_imports, {"plan.py": "from cloakgp.measure import measure"})


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nrandom = np.random.default_rng(0)",
        "from numpy.random import default_rng",
        "import numpy\nnumpy.random.normal()",
        "import random",
        "import secrets",
        "import os\nos.urandom(8)",
        "def f(rng):\n    return rng.default_rng",
    ],
)
def test_planted_random_numbers_are_caught(source):
    """numpy's, Python's or the system's."""
    assert fails(check_randomness, {"measure.py": source})
    assert not fails(check_randomness, {"testing.py": source})


def test_planted_look_at_the_insecure_seed_is_caught():
    """Only where noise is drawn, and where the release is marked."""
    source = "from cloakgp import testing\ntesting.insecure_generator()"
    assert fails(check_randomness, {"release.py": source})
    assert not fails(check_randomness, {"plan.py": source})


@pytest.mark.parametrize(
    "source",
    [
        "print(y)",
        "import warnings\nwarnings.warn('clipped')",
        "import logging",
        "raise ValueError(f'bad value {y[0]}')",
        "raise ValueError(f'{n_missing} rows are missing')",
        "raise ValueError('bad value {}'.format(y))",
        "raise ValueError('bad value %s' % y)",
        "raise ValueError('bad value ' + repr(y))",
        "def f(y):\n    global last\n    last = y",
        "try:\n    f(y)\nexcept Exception as error:\n    raise ValueError('bad') from None",
        "try:\n    f(y)\nexcept Exception:\n    raise ValueError('bad')",
    ],
)
def test_planted_noise_from_the_private_room_is_caught(source):
    """Printing, warning, logging, quoting, keeping, or letting an error through."""
    assert fails(check_private_room_is_silent, source)
    check_private_room_is_silent("raise ValueError(f'expected {n_rows}, got {array.shape}')")
