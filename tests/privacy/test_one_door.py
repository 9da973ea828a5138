"""Private outcomes have one door, ``private/``. Read from the source, so that it holds for every input.

No table of files: where y may have a name follows from what is done with it. Outside of ``private/`` a
function that has y hands it to a door of the private room, or to another such function, and does nothing else
with it. Rooms that never need y have no name for it. ``tests/contracts/test_rooms.py`` keeps how y is read,
and the noise, inside the private room.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from privacy_helpers import fails, require

import cloakgp

ROOT = Path(cloakgp.__file__).parent
ROOM = "private/room.py"
PRIVATE = re.compile(r"_?(y|ys|y_.*|outcomes?|targets?)")
PUBLIC = {"y_bits", "outcome", "_outcome"}  # the lattice's, not the data's; a word: real, yes/no or count
NAMES_ALONE = {"column_names"}  # a door that reads what y is called, and no more
# What puts in order what was given, y among it, may call these and nothing else.
SORTER, SORTS = (
    "_private",
    {"items", "len", "dict", "zip", "join", "PrivateRows", "ArgumentError", "ArgumentTypeError"},
)
# Rooms that y never enters, besides those before private/: they read files and answers.
BLIND = {"posterior", "files", "ledger", "verification"}
# Numpy's sources of random numbers, which need a seed; and others', which have no place here.
SEEDED, OTHER_RANDOM = {"default_rng", "RandomState"}, {"urandom", "getrandbits", "randbytes", "SeedSequence"}
LOUD = {"print", "warn", "warning", "debug", "info", "error", "log", "write"}
LOUDER = LOUD | {"open", "format", "repr", "str"}  # what private/ does not do either: it holds values
# Of what messages may be made where y passes by: files, columns, types, sizes; and constants, in capitals.
QUOTABLE = {
    "self",
    "len",
    "size",
    "n_rows",
    "shape",
    "dtype",
    "array",
    "Path",
    "path",
    "name",
    "names",
    "column",
}
QUOTABLE |= {"columns", "kind", "schema", "encoding", "upper", "delimiter", "decimal", "join", "uuid4", "hex"}

# ---------------------------------------------------------------- the source, and what is in it

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def sources():
    files = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    require(len(files) > 100 and ROOM in files, "the source was not found")
    return files


@cache
def order():
    """The rooms in their order, from the page that readers see."""
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `([a-z_]+)/?` \|", page, re.MULTILINE)


def room_of(path):
    return path.split("/")[0].removesuffix(".py").replace("__init__", "cloakgp")


@cache
def walked(source):
    """(node, the functions that it stands in, outermost first) of every node."""
    found = [(ast.parse(source), ())]
    for node, around in found:  # which grows meanwhile
        inside = (*around, node) if isinstance(node, FUNCTIONS) else around
        found += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def nodes(files):
    return ((path, node, around) for path, source in files.items() for node, around in walked(source))


def names_in(node):
    """What a node calls things: variables, parameters, attributes, keywords, imports, fields."""
    if isinstance(node, ast.alias):
        return [node.name.split(".")[-1], node.asname or ""]
    called = {ast.Name: "id", ast.arg: "arg", ast.keyword: "arg", ast.Attribute: "attr"}
    called |= dict.fromkeys((*FUNCTIONS, ast.ClassDef), "name")
    return [getattr(node, called[type(node)]) or ""] if type(node) in called else []


def is_private(name, opened=()):
    """Whether it is y's, or, where a door is opened, that of what is private."""
    y = PRIVATE.fullmatch(name) is not None and name not in PUBLIC
    return y or (name == "private" and bool(opened))


def imports(node):
    """What a node imports, in full; a string that might be import_module's counts."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value] if re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", node.value) else []
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{a.name}" for a in node.names] if isinstance(node, ast.ImportFrom) else []


@cache
def doors_in(source):
    """What a module imports of the private room, anywhere in it."""
    return {m.rsplit(".", 1)[1] for n, _ in walked(source) for m in imports(n) if ".private.room." in m}


def callee(call):
    return (names_in(call.func) or [""])[0]


def parameters(function):
    a = function.args
    return [arg.arg for arg in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if arg is not None]


@cache
def doors():
    """What the private room lets others have; and those of them that read y at once."""
    tree = ast.parse(sources()[ROOM])
    listed = next(
        n.value for n in tree.body if isinstance(n, ast.Assign) and "__all__" in ast.unparse(n.targets[0])
    )
    every = set(ast.literal_eval(listed))
    return every, every & {node.name for node in tree.body if isinstance(node, FUNCTIONS)}


@cache
def passers():
    """Functions outside of private/ that are given y, by name: each is looked at by itself."""
    found = {"release", "recover"}
    for path, source in sources().items():
        if not path.startswith("private/"):
            functions = [node for node, _ in walked(source) if isinstance(node, FUNCTIONS)]
            opened = doors_in(source)
            found |= {f.name for f in functions if any(is_private(name, opened) for name in parameters(f))}
    return found


def nobodys(path):
    """Whether its data are public or generated: the data sets, and the first walk that shows one."""
    return room_of(path) in ("datasets", "demo")


@cache
def carriers():
    """Modules of which private/ calls something with y, or with where y is."""
    found = set()
    for path, node, _ in nodes({p: s for p, s in sources().items() if p.startswith("private/")}):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cloakgp.data."):
            called = [n for n, _ in walked(sources()[path]) if isinstance(n, ast.Call)]
            for call in called:
                given = " ".join(map(ast.unparse, call.args))
                about_y = re.search(r"\b(_?y|source|array|values|outcome|own)\b", given)
                if callee(call) in {alias.name for alias in node.names} and about_y:
                    found.add(node.module.removeprefix("cloakgp.").replace(".", "/") + ".py")
    return found


# ---------------------------------------------------------------- checks: of sources by path, each


def y_is_only_passed_on(files):
    """Outside of private/, what is called y goes to a door or to a passer, or is asked for being None."""
    for path, source in files.items():
        if path.startswith("private/") or nobodys(path):
            continue
        blind = room_of(path) in BLIND or order().index(room_of(path)) < order().index("private")
        opened = doors_in(source)
        for node, around in walked(source):
            function = around[-1] if around else None
            if "custodian_view" in opened and function is not None:
                continue  # the custodian's own picture: see below
            if isinstance(node, (ast.arg, ast.Name)):
                fine = not is_private(names_in(node)[0], opened) or passed_on(node, function, opened)
            elif isinstance(node, ast.Attribute):
                fine = not is_private(node.attr) or node.attr in passers()
            elif isinstance(node, FUNCTIONS):
                fine = not is_private(node.name) or node.name in passers()
            else:
                fine = not any(map(is_private, names_in(node)))
            named = blind and isinstance(node, ast.arg) and is_private(node.arg)
            where = f"{path}, line {getattr(node, 'lineno', '?')}"
            assert fine > named, f"{where}: does more with y than pass it on"
        for function in {f for _, around in walked(source) for f in around}:
            check_passer(path, function, opened)


def its_private(function, opened):
    """The names of what is private in a function: y's, and with whole rows their inputs and ids."""
    given = [name for name in parameters(function) if is_private(name, opened)]
    for call in ast.walk(function) if given else ():
        if isinstance(call, ast.Call) and callee(call) in ("PrivateRows", SORTER):
            given += [a.id for a in call.args if isinstance(a, ast.Name) and a.id in parameters(function)]
    return set(given)


def arguments(function, opened):
    """Names that are arguments of a door or of a passer; and those that are asked for being None."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            method = isinstance(node.func, ast.Attribute) and callee(node) in passers()
            if method or (isinstance(node.func, ast.Name) and callee(node) in opened & doors()[0]):
                found |= {id(argument) for argument in node.args}
        if isinstance(node, ast.Compare) and ast.unparse(node).endswith(("is None", "is not None")):
            found.add(id(node.left))
    return found


def received(function):
    """Names for what a passer of one's own gives back: y, in order or unread."""
    made = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)]
    own = [n for n in made if ast.unparse(n.value.func).startswith("self.") and callee(n.value) in passers()]
    return {id(target) for n in own for target in n.targets}


def passed_on(node, function, opened):
    if function is not None and (function.name == SORTER or id(node) in received(function)):
        return True
    if isinstance(node, ast.arg):
        return function is not None and node.arg in parameters(function)
    return function is not None and id(node) in arguments(function, opened)


def check_passer(path, function, opened):
    """A function that is given y hands it on and does no more; and the plan that gets it is its own."""
    private = its_private(function, opened)
    if not private or "custodian_view" in opened:
        return
    where = f"{path}: {function.name}"
    if function.name == SORTER:
        said = [n for n in ast.walk(function) if isinstance(n, ast.FormattedValue)]
        words = {name for value in said for n in ast.walk(value) for name in names_in(n)}
        called = {callee(n) for n in ast.walk(function) if isinstance(n, ast.Call)}
        assert called <= SORTS, f"{where} does more with y than put it in order"
        assert words <= {"found", "join"}, f"{where} quotes"
        return
    handed = arguments(function, opened)
    private |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and id(n) in received(function)}
    named = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id in private]
    uses = [n for n in named if id(n) not in received(function)]
    abstract = any("abstractmethod" in ast.unparse(d) for d in function.decorator_list)
    assert uses or abstract, f"{where} does not use y"
    assert {id(use) for use in uses} <= handed, f"{where} does more with y than pass it on"
    called = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
    bare = {callee(call) for call in called} & {"locals", "vars", "eval", "exec"}
    assert not bare, f"{where} calls {bare}"
    written = [n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    stored = [n.id for n in written if id(n) not in received(function)]
    assert not set(stored) & (opened | private), f"{where} redefines a door"
    for call in called:
        if isinstance(call.func, ast.Attribute) and any(id(a) in handed for a in call.args):
            check_owner(where, function, call.func.value, stored)
        if isinstance(call.func, ast.Name) and call.func.id in opened & doors()[1]:
            own = [a for a in call.args if isinstance(a, ast.Name) and a.id in private]
            assert own, f"{where} opens a door for something that is not called y"


def check_owner(where, function, owner, stored):
    """y goes to a method of one's own, or of a plan that one's own method has just made of it."""
    name = ast.unparse(owner)
    if name == "self" or not isinstance(owner, ast.Name):
        own = name == "self" or name.startswith("self._as_charged(")
        assert own, f"{where}: {name} is given y"
        return
    made = [
        ast.unparse(n.value)
        for n in ast.walk(function)
        if isinstance(n, ast.Assign) and name in map(ast.unparse, n.targets)
    ]
    fine = len(made) == stored.count(name) == 1 and made[0].startswith("self.")
    assert fine, f"{where}: {name} is not the own plan"


def doors_are_doors(files):
    """Only what the room lists is imported, by whoever has y; OpenDP and generated data stay apart."""
    every, reading = doors()
    for path, node, around in nodes(files):
        for module in imports(node):
            parts = module.split(".")
            assert parts[0] != "opendp" or path.startswith("private/"), f"{path} uses OpenDP"
            if parts[:2] == ["cloakgp", "private"] and not path.startswith("private/"):
                at_door = len(parts) == 4 and parts[2] == "room" and parts[3] in every
                assert at_door, f"{path} imports {module}, not a door"
                reads = parts[3] in reading - NAMES_ALONE
                assert not reads or around or room_of(path) == "plots", (
                    f"{path}: {module} is open to a whole file"
                )
                assert not reads or "custodian" in parts[3] or its_private(around[-1], {parts[3]}), (
                    f"{path}: no y"
                )
                sees = order().index(room_of(path)) > order().index("private") and room_of(path) not in BLIND
                assert sees, f"{path} is in a room that y never enters"
            if parts[:2] == ["cloakgp", "datasets"]:
                assert nobodys(path) or room_of(path) == "app", f"{path} imports generated data"
        if isinstance(node, ast.Attribute) and not path.startswith("private/"):
            kept = node.attr in ("_parsed", "_parsed_for")
            assert not kept, f"{path} looks at what the room has parsed"


def what_the_custodian_sees_is_marked(files):
    """Without noise: scores, in a study that says PRIVATE; and y, in a picture that is always stamped."""
    for path, node, around in nodes(files):
        if not (isinstance(node, ast.Name) and node.id.startswith("custodian_")) or path.startswith(
            "private/"
        ):
            continue
        assert len(around) == 1, f"{path}: {node.id} is not in a function of its own"
        (function,) = around
        returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
        studies = [isinstance(v, ast.Call) and ast.unparse(v.func) == "PrivateStudy" for v in returned]
        warns = "NOT PRIVATE" in (ast.get_docstring(function) or "")
        lines = [ast.unparse(line) for line in function.body]  # of the function's own: no condition on them
        stamped = any(line.startswith("stamp(") and "NOT_FOR_RELEASE" in line for line in lines)
        marked = (
            stamped and not returned if node.id == "custodian_view" else warns and all(studies or [False])
        )
        assert marked, f"{path}: what {function.name} shows is not marked as private"


def random_numbers_have_a_public_seed(files):
    """None in private/ or where y is; elsewhere from a seed, or where nothing is given at all."""
    for path, node, around in nodes(files):
        for parts in (module.split(".") for module in imports(node)):
            drawn = parts[0] == "random" or parts[:2] == ["numpy", "random"]
            assert not drawn, f"{path} imports random numbers"
            assert parts[0] != "secrets" or room_of(path) == "app", f"{path} imports random numbers"
        assert not OTHER_RANDOM & set(names_in(node)), f"{path} draws random numbers"
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("np.random", "numpy.random"):
            uses = [n for n, _ in walked(files[path]) if isinstance(n, ast.Attribute) and n.value is node]
            fine = bool(uses) and uses[0].attr in {*SEEDED, "Generator"} and not path.startswith("private/")
            assert fine, f"{path} draws random numbers"
        if isinstance(node, ast.Attribute) and node.attr in SEEDED:
            calls = [n for n, _ in walked(files[path]) if isinstance(n, ast.Call) and n.func is node]
            assert calls, f"{path} hands on random numbers"
            seeds = [a for a in calls[0].args if isinstance(a, (ast.Name, ast.Constant))]
            alone = around and not parameters(around[-1]) and not calls[0].args
            assert seeds or alone, f"{path}: random numbers without a public seed"
            assert not any(its_private(f, set()) for f in around), f"{path} draws random numbers beside y"
        if "insecure_generator" in names_in(node) and isinstance(node, (ast.Name, ast.Attribute)):
            asked = [
                n for n, _ in walked(files[path]) if isinstance(n, ast.Compare) and node in ast.walk(n.left)
            ]
            inside = path.startswith("private/") or path == "testing.py"
            asks = bool(asked) and ast.unparse(asked[0]).endswith(("is None", "is not None"))
            assert inside or asks, f"{path} looks at the insecure seed"


def passes_meet_y_in_functions_of_the_room(files):
    """A pass of private/room.py runs a function of its own; elsewhere no pass could have y, by any name."""
    if ROOM not in files:
        return
    own = {node.name for node in ast.parse(files[ROOM]).body if isinstance(node, FUNCTIONS)}
    for _, call, _ in nodes({ROOM: files[ROOM]}):
        if isinstance(call, ast.Call) and re.search(r"\bsweep(_\w+)?$", ast.unparse(call.func)):
            hidden = [a for a in call.args if isinstance(a, ast.Starred)]
            hidden += [keyword for keyword in call.keywords if keyword.arg != "label"]
            assert not hidden, f"{ROOM}: a pass over something hidden"
            met = re.findall(r"^partial\((\w+),", ast.unparse(call.args[0]))
            assert own.intersection(met), (
                f"{ROOM}: {ast.unparse(call.args[0])}, which is not its own, meets y"
            )


def what_meets_y_says_nothing(files):
    """private/ and the carriers print, log, warn and quote nothing; private/ keeps and chains no error."""
    for path, node, around in nodes(files):
        private = path.startswith("private/")
        if not private and path not in carriers():
            continue
        silent = {"logging", "warnings", "sys", *(["os"] if private else [])}
        assert not silent & {name.split(".")[0] for name in imports(node)}, f"{path} imports a voice"
        if isinstance(node, ast.Call):
            assert callee(node) not in (LOUDER if private else LOUD), f"{path} calls {callee(node)}"
        if isinstance(node, ast.FormattedValue):
            said = {name for n in ast.walk(node.value) for name in names_in(n)}
            fine = said <= QUOTABLE | {name for name in said if name.isupper()}
            shown = not private and any(f.name == "__repr__" for f in around)
            assert fine or shown, f"{path} quotes {ast.unparse(node.value)}"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
            assert not text, f"{path} quotes with %"
        if private:
            assert not isinstance(node, (ast.Global, ast.Nonlocal)), f"{path} keeps something between calls"
        if private and isinstance(node, ast.ExceptHandler):
            assert node.name is None, f"{path} holds on to an error"
            for raised in (inner for inner in ast.walk(node) if isinstance(inner, ast.Raise)):
                assert ast.unparse(raised).endswith(" from None"), f"{path} shows an error, which may quote"


CHECKS = {
    "passed on": y_is_only_passed_on,
    "doors": doors_are_doors,
    "marked": what_the_custodian_sees_is_marked,
    "random": random_numbers_have_a_public_seed,
    "passes": passes_meet_y_in_functions_of_the_room,
    "silent": what_meets_y_says_nothing,
}


@pytest.mark.parametrize("check", CHECKS)
def test_the_source_keeps_y_behind_its_door(check):
    CHECKS[check](sources())


def test_what_is_looked_for_is_there():
    """Or the checks would pass for want of anything to look at."""
    files = sources()
    assert "opendp" in files["private/noise.py"]
    assert "sweep(" in files[ROOM]
    assert doors()[1] >= {"measure", "choose", "column_names"}
    assert carriers() >= {"data/passes.py", "data/chunks.py", "data/parquet.py"}
    named = {path for path, node, _ in nodes(files) if any(map(is_private, names_in(node)))}
    assert {"release", "selection", "binning", "estimators"} <= {room_of(path) for path in named}
    assert set(order()) >= BLIND
    assert not {room_of(path) for path in named} & (BLIND | {"model", "kernels", "designs"})


# ---------------------------------------------------------------------------------- planted bugs

# check | file and function | the reason that each bug below must meet. Bugs are parted by //; one is written
# at the beginning of the file or function as it is, or in the place of something => there.
PLANTED = """
passed on | model/gp.py | more with y
    def f(X, y): pass // def f(X, *, y_train=None): pass // def f(X, *y): pass // class A: y: int
    for y in data: pass // self.y_ = data // plan.release(data).y // plan.fit(y=data) // centre = lambda y: 0
    from data import outcomes // def targets(): pass // if (y := data): pass // def release(): y = data
passed on | posterior/conditioning.py | more with y
    def f(X, y): pass // y = data // self.y_ = data // plan.fit(y=data) // centre = lambda y: 0
passed on | release/combine.py | y
    def f(X, y): pass // y = data // self.y_ = data // plan.fit(y=data) // centre = lambda y: 0
passed on | release/plan.py _measure | more with y
    self.y = y // measure(self, y - y.mean()) // measure(self, y[ok]) // print(y) // len(y) // y = clean(y)
    other.measure(self, y) // choose(self, y) // measure(folds(y), y) // measure(y=y) // return y // self.f(y)
    from cloakgp.private.room import measure => from cloakgp.other import measure
passed on | release/plan.py _measure | _measure calls
    log(locals()) // eval('y')
passed on | release/plan.py _measure | redefines
    measure = other
passed on | release/plan.py _measure | does not use y
    measure(stage.parts, y, missing) => 0
passed on | release/plan.py _private | more with y
    print(y) // found |= {'n': y.sum()} // sorted(people) // self.keep(X) // PrivateRows(log(X), y)
passed on | release/plan.py _private | quotes
    f'bad {y}'
passed on | release/plan.py release | more with y
    self.y = y // y.mean() // seen = [y] // sorted(people) // len(private) // private = other(y)
passed on | release/plan.py _release | more with y
    self.y = y // self._measure(0, y - 1, 0) // len(private) // y = other(private) // print(private)
passed on | release/plan.py _release | is given y
    other().release(y) // return self._as_charged => return other
passed on | release/plan.py recover | not the own plan
    paid_for = other // paid_for = self._as_charged => paid_for = other._as_charged
passed on | release/plan.py _all_stages | more with y
    session.learn(y) // len(y) // stages = [y] // session.learn(stages[-1]) => session.learn(y)
passed on | release/base.py release | more with y
    self.measure(y) // return y // measure(y)
passed on | release/base.py release | is given y
    self.plan.release(y) // other().release(y)
passed on | estimators.py fit | more with y
    self.y_ = y // X, y = validate_data(self, X, y) // len(y) > 3 // self.score(X, y)
passed on | estimators.py fit | is given y
    self.plan.release(y)
passed on | estimators.py fit | not the own plan
    plan = other // for plan in plans: pass // plan = self._plan => plan = other._plan
marked | selection.py custodian_probabilities | not marked
    return odds // return PrivateStudy(odds, losses).losses // NOT PRIVATE => Private
marked | selection.py | not
    def loss(v): custodian_scores(v) // scores = custodian_scores
marked | plots/private_data.py | not
    def plot(d): custodian_view(d) // look = custodian_view // 1.03, NOT_FOR_RELEASE, => 1.03, '',
    stamp(ax, 0.99 => if y: stamp(ax, 0.99
doors | release/combine.py | uses OpenDP
    import opendp.prelude as dp // def f(): from opendp import measurements // import_module('opendp.prelude')
doors | release/combine.py | not a door
    from cloakgp.private import room // import cloakgp.private // from cloakgp.private.outcomes import numeric
doors | release/combine.py | whole file
    from cloakgp.private.room import measure
doors | release/combine.py | no y
    def f(data): from cloakgp.private.room import measure
doors | verification/checked.py | never enters
    def f(y): from cloakgp.private.room import measure
doors | plots/private_data.py | not a door
    from cloakgp.private.outcomes import custodian_view // from cloakgp.private import noise
doors | release/combine.py | has parsed
    opened._parsed // opened._parsed_for(m)
doors | release/combine.py | generated data
    from cloakgp.datasets import make_kung_like
random | posterior/conditioning.py | random numbers
    np.random.default_rng(y.sum()) // np.random.default_rng() // from numpy.random import default_rng
    numpy.random.normal() // import random // import secrets // os.urandom(8) // rng.default_rng
    def mean(): np.random // def f(seed): np.random.default_rng()
random | release/plan.py _measure | beside y
    np.random.default_rng(seed)
random | private/room.py | random numbers
    np.random.default_rng(seed)
random | release/combine.py | insecure seed
    testing.insecure_generator() // insecure_generator().normal()
passes | private/room.py | meets y
    sweep(partial(other, m), X, y) // sweep(_elsewhere, y) // passes.sweep(other, y) // sweep_threads(f, y)
passes | private/room.py | hidden
    sweep(partial(_part, m), *sources) // sweep(partial(_part, m), X, more=y)
silent | private/outcomes.py | imports a voice
    import logging // import warnings // import sys // from os import environ
silent | private/outcomes.py | calls
    print(y) // log.error('bad', y) // 'bad' + repr(y) // str(y) // 'bad {}'.format(y)
silent | private/outcomes.py | quotes
    f'bad value {y[0]}' // f'{n_missing} rows are missing' // 'bad value %s' % y
silent | private/outcomes.py | between calls
    def f(): global last
silent | private/outcomes.py | an error
    try: g(y)¶except OSError as error: pass // try: g(y)¶except OSError: raise ValueError('bad')
silent | data/chunks.py | imports a voice
    import logging
silent | data/chunks.py | calls
    print(part)
silent | data/chunks.py | quotes
    raise ValueError(f'bad chunk {part}') // raise ValueError('%s' % part)
"""


def planted_bugs():
    found = []
    for line in PLANTED.strip().splitlines():
        if line[0] != " ":
            check, place, because = line.split(" | ")
        else:
            found += [(check, place, because, bug) for bug in line.strip().split(" // ")]
    return found


def planted(source, function, bug):
    old, arrow, new = bug.partition(" => ")
    if arrow:
        require(old in source, f"{old} is not there any more")
        return source.replace(old, new)
    tree = ast.parse(source)
    (place,) = [node for node in ast.walk(tree) if getattr(node, "name", None) == function] or [tree]
    place.body[:0] = ast.parse(bug.replace("¶", "\n")).body
    return ast.unparse(tree)


@pytest.mark.parametrize(("check", "place", "because", "bug"), planted_bugs())
def test_a_planted_bug_is_caught(check, place, because, bug):
    path, _, function = place.partition(" ")
    assert fails(CHECKS[check], {path: planted(sources()[path], function, bug)}, because=because)
