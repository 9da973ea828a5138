"""Private outcomes have one door, ``private/``. Read from the source, so that it holds for every input.

Where y may have a name follows from the graph of imports and from what is done with it. Modules from which no
chain of imports leads to the door have no name for y. In the others, a function that has y hands it to a door
of the private room, or to another such function, and does nothing else with it. How y is read, and the noise,
stay inside the private room: ``tests/contracts/test_rooms.py``.
"""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from privacy_helpers import fails, require

from source_tree import DOOR, named, room_of, sources, those_that_reach

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PRIVATE = re.compile(r"_?(y|ys|y_.*|outcomes?|targets?)")
PUBLIC = {"y_bits", "outcome", "_outcome"}  # the lattice's, not the data's; a word: real, yes/no or count
# What puts in order what was given, y among it, may call these and nothing else.
SORTER, SORTS = "_private", {"items", "len", "dict", "zip", "join"}
SORTS |= {"PrivateRows", "ArgumentError", "ArgumentTypeError"}
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
    "kind",
}
QUOTABLE |= {
    "column",
    "columns",
    "schema",
    "encoding",
    "upper",
    "delimiter",
    "decimal",
    "join",
    "uuid4",
    "hex",
}


@cache
def walked(source):
    """(node, the functions that it stands in, outermost first) of every node."""
    found = [(ast.parse(source), ())]
    for node, around in found:  # which grows meanwhile
        inside = (*around, node) if isinstance(node, FUNCTIONS) else around
        found += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def nodes(files):
    return ((module, node, around) for module, source in files.items() for node, around in walked(source))


def names_in(node):
    """What a node calls things: variables, parameters, attributes, keywords, imports, fields."""
    if isinstance(node, ast.alias):
        return [node.name.split(".")[-1], node.asname or ""]
    called = {ast.Name: "id", ast.arg: "arg", ast.keyword: "arg", ast.Attribute: "attr"}
    called |= dict.fromkeys((*FUNCTIONS, ast.ClassDef), "name")
    return [getattr(node, called[type(node)]) or ""] if type(node) in called else []


def inside(module):
    """Whether it is of the private room."""
    return room_of(module) == "private"


def nobodys(module):
    """Whether its data are public or generated: the data sets, and the first walk that shows one."""
    return room_of(module) in ("datasets", "demo")


def imported(node):
    """What a node imports, in full; a string that might be import_module's counts."""
    if isinstance(node, ast.Constant):
        text = str(node.value)
        return [text] if re.fullmatch(r"(cloakgp|opendp)(\.[a-z_]+)*", text) else []
    return list(named(node))


@cache
def opened_in(source):
    """What a module imports of the private room, anywhere in it."""
    return {
        one.rsplit(".", 1)[1] for node, _ in walked(source) for one in imported(node) if f"{DOOR}." in one
    }


@cache
def doors():
    """What the private room lets others have; and those of them that read y at once."""
    tree = ast.parse(sources()[DOOR])
    (listed,) = (
        n.value for n in tree.body if isinstance(n, ast.Assign) and "__all__" in ast.unparse(n.targets[0])
    )
    every = set(ast.literal_eval(listed))
    return every, every & {node.name for node in tree.body if isinstance(node, FUNCTIONS)}


def is_private(name, opened=()):
    """Whether it is y's, or, where a door is opened, that of what is private."""
    y = PRIVATE.fullmatch(name) is not None and name not in PUBLIC
    return y or (name == "private" and bool(opened))


def callee(call):
    return (names_in(call.func) or [""])[0]


def calls_in(function):
    return [node for node in ast.walk(function) if isinstance(node, ast.Call)]


def parameters(function):
    a = function.args
    return [arg.arg for arg in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if arg is not None]


def private_in(function, opened):
    """The names of what a function is given that is private: y's, and with whole rows inputs' and ids'."""
    given = {name for name in parameters(function) if is_private(name, opened)}
    sorting = [call for call in calls_in(function) if given and callee(call) in ("PrivateRows", SORTER)]
    names = {arg.id for call in sorting for arg in call.args if isinstance(arg, ast.Name)}
    return given | names & set(parameters(function))


@cache
def passers():
    """Functions outside of private/ that are given y, by name: each is looked at by itself."""
    functions = [
        (node, opened_in(source))
        for module, source in sources().items()
        for node, _ in walked(source)
        if isinstance(node, FUNCTIONS) and not inside(module)
    ]
    return {"release", "recover"} | {f.name for f, opened in functions if private_in(f, opened)}


@cache
def carriers():
    """Modules of which private/ calls something with y, or with where y is."""
    found = set()
    for module, node, _ in nodes({m: s for m, s in sources().items() if inside(m)}):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cloakgp.data."):
            names = {alias.name for alias in node.names}
            for call in (n for n, _ in walked(sources()[module]) if isinstance(n, ast.Call)):
                given = " ".join(map(ast.unparse, call.args))
                if callee(call) in names and re.search(r"\b(_?y|source|array|values|outcome|own)\b", given):
                    found.add(node.module)
    return found


# ---------------------------------------------------------------- checks: of sources, by module


def y_is_only_passed_on(files):
    """What is called y goes to a door or to a passer, or is asked for being None; nothing else is done."""
    for module, source in files.items():
        if inside(module) or nobodys(module):
            continue
        opened = opened_in(source)
        for function in {f for _, around in walked(source) for f in around}:
            if "custodian_view" not in opened:  # the custodian's own picture: see below
                check_passer(f"{module}, {function.name}", function, opened)
        for node, around in walked(source):
            custodian = "custodian_view" in opened and around
            if custodian or not any(is_private(name, opened) for name in names_in(node)):
                continue
            if isinstance(node, ast.Attribute | ast.FunctionDef | ast.AsyncFunctionDef):
                fine = names_in(node)[0] in passers()
            elif isinstance(node, ast.arg):
                fine = (
                    bool(around) and node.arg in parameters(around[-1]) and module in those_that_reach(DOOR)
                )
            else:
                fine = (
                    isinstance(node, ast.Name) and bool(around) and id(node) in passed_on(around[-1], opened)
                )
            line = getattr(node, "lineno", "?")
            assert fine, f"{module}, line {line}: does more with y than pass it on"


def passed_on(function, opened):
    """Names that are given to a door or passer, are asked for being None, or are for what one gives back."""
    if function.name == SORTER:
        return {id(node) for node in ast.walk(function)}
    found = received(function)
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


def check_passer(where, function, opened):
    """A function that is given y hands it on and does no more; and the plan that gets it is its own."""
    private = private_in(function, opened)
    if not private:
        return
    called = {callee(call) for call in calls_in(function)}
    if function.name == SORTER:
        said = [n for n in ast.walk(function) if isinstance(n, ast.FormattedValue)]
        assert called <= SORTS, f"{where} does more with y than put it in order"
        quoted = {name for value in said for n in ast.walk(value) for name in names_in(n)}
        assert quoted <= {"found", "join"}, f"{where} quotes"
        return
    assert not called & {"locals", "vars", "eval", "exec"}, f"{where} calls what sees y"
    own, handed = received(function), passed_on(function, opened)
    used = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
    private |= {n.id for n in used if id(n) in own}
    uses = {id(n) for n in used if n.id in private}
    assert uses <= handed, f"{where} does more with y than pass it on"
    stored = [n.id for n in used if isinstance(n.ctx, ast.Store) and id(n) not in own]
    assert not set(stored) & (opened | private), f"{where} redefines a door"
    for call in calls_in(function):
        if isinstance(call.func, ast.Attribute) and any(id(a) in handed for a in call.args):
            check_owner(where, function, call.func.value, stored)


def check_owner(where, function, owner, stored):
    """y goes to a method of one's own, or of a plan that one's own method has just made of it."""
    name = ast.unparse(owner)
    if name == "self" or not isinstance(owner, ast.Name):
        assert name == "self" or name.startswith("self._as_charged("), f"{where}: {name} is given y"
        return
    assigned = [n for n in ast.walk(function) if isinstance(n, ast.Assign)]
    made = [ast.unparse(n.value) for n in assigned if name in map(ast.unparse, n.targets)]
    fine = len(made) == stored.count(name) == 1 and made[0].startswith("self.")
    assert fine, f"{where}: {name} is not the own plan"


def doors_are_doors(files):
    """Only what the room lists is imported, by a function that has y; OpenDP and made-up data stay apart."""
    every, reading = doors()
    for module, node, around in nodes(files):
        outside = not inside(module)
        for one in imported(node):
            package, _, name = one.rpartition(".")
            assert not (outside and one.split(".")[0] == "opendp"), f"{module} uses OpenDP"
            if outside and one.startswith("cloakgp.private"):
                assert (package, name in every) == (DOOR, True), f"{module} imports {one}, not a door"
            if outside and package == DOOR and name in reading - {"column_names"}:  # which looks at no value
                alone = not around and room_of(module) == "plots"
                has_y = around and (private_in(around[-1], {name}) or name.startswith("custodian_"))
                assert alone or has_y, f"{module}: {one} is opened where there is no y"
            generated = one.startswith("cloakgp.datasets") and one != "cloakgp.datasets"
            known = nobodys(module) or room_of(module) == "app"
            assert not generated or known, f"{module} imports generated data"
        parsed = isinstance(node, ast.Attribute) and node.attr.startswith("_parsed")
        assert not (outside and parsed), f"{module} looks at what the room has parsed"


def what_the_custodian_sees_is_marked(files):
    """Without noise: scores, in a study that says PRIVATE; and y, in a picture that is always stamped."""
    for module, node, around in nodes(files):
        if inside(module) or not isinstance(node, ast.Name) or not node.id.startswith("custodian_"):
            continue
        assert len(around) == 1, f"{module}: {node.id} is not marked in a function of its own"
        (function,) = around
        returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
        lines = [ast.unparse(line) for line in function.body]  # of the function's own: no condition on them
        if node.id == "custodian_view":
            stamped = any(line.startswith("stamp(") and "NOT_FOR_RELEASE" in line for line in lines)
            marked = stamped and not returned
        else:
            studies = [isinstance(v, ast.Call) and ast.unparse(v.func) == "PrivateStudy" for v in returned]
            marked = all(studies or [False]) and "NOT PRIVATE" in (ast.get_docstring(function) or "")
        assert marked, f"{module}: what {function.name} shows is not marked as private"


def random_numbers_have_a_public_seed(files):
    """None in private/ or where y is; elsewhere from a seed, or where nothing is given at all."""
    for module, node, around in nodes(files):
        for one in imported(node):
            drawn = one.split(".")[0] == "random" or one.startswith("numpy.random")
            drawn |= one.split(".")[0] == "secrets" and room_of(module) != "app"
            assert not drawn, f"{module} imports random numbers"
        assert not OTHER_RANDOM & set(names_in(node)), f"{module} draws random numbers"
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("np.random", "numpy.random"):
            uses = [
                n.attr for n, _ in walked(files[module]) if isinstance(n, ast.Attribute) and n.value is node
            ]
            fine = not inside(module) and uses and uses[0] in {*SEEDED, "Generator"}
            assert fine, f"{module} draws random numbers"
        if isinstance(node, ast.Attribute) and node.attr in SEEDED:
            calls = [n for n, _ in walked(files[module]) if isinstance(n, ast.Call) and n.func is node]
            assert calls, f"{module} hands on random numbers"
            seeds = [a for a in calls[0].args if isinstance(a, (ast.Name, ast.Constant))]
            alone = around and not parameters(around[-1]) and not calls[0].args
            assert seeds or alone, f"{module}: random numbers without a public seed"
            assert not any(private_in(f, set()) for f in around), f"{module} draws random numbers beside y"
        if "insecure_generator" in names_in(node) and isinstance(node, (ast.Name, ast.Attribute)):
            within = [
                n for n, _ in walked(files[module]) if isinstance(n, ast.Compare) and node in ast.walk(n.left)
            ]
            asks = bool(within) and ast.unparse(within[0]).endswith(("is None", "is not None"))
            fine = asks or room_of(module) in ("private", "testing")
            assert fine, f"{module} looks at the insecure seed"


def passes_meet_y_in_functions_of_the_room(files):
    """A pass of the room runs a function of its own; elsewhere no pass could have y, by any name."""
    if DOOR not in files:
        return
    own = {node.name for node in ast.parse(files[DOOR]).body if isinstance(node, FUNCTIONS)}
    for _, call, _ in nodes({DOOR: files[DOOR]}):
        if isinstance(call, ast.Call) and re.search(r"\bsweep(_\w+)?$", ast.unparse(call.func)):
            hidden = [a for a in call.args if isinstance(a, ast.Starred)]
            hidden += [keyword for keyword in call.keywords if keyword.arg != "label"]
            assert not hidden, "a pass over something hidden"
            met = re.findall(r"^partial\((\w+),", ast.unparse(call.args[0]))
            assert own.intersection(met), f"{ast.unparse(call.args[0])}, which is not the room's own, meets y"


def what_meets_y_says_nothing(files):
    """private/ and the carriers print, log, warn and quote nothing; private/ keeps and chains no error."""
    for module, node, around in nodes(files):
        private = inside(module)
        if not private and module not in carriers():
            continue
        silent = {"logging", "warnings", "sys", *(["os"] if private else [])}
        assert not silent & {one.split(".")[0] for one in imported(node)}, f"{module} imports a voice"
        if isinstance(node, ast.Call):
            assert callee(node) not in (LOUDER if private else LOUD), f"{module} calls {callee(node)}"
        if isinstance(node, ast.FormattedValue):
            said = {name for n in ast.walk(node.value) for name in names_in(n) if not name.isupper()}
            shown = not private and any(f.name == "__repr__" for f in around)
            assert shown or said <= QUOTABLE, f"{module} quotes {ast.unparse(node.value)}"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
            assert not text, f"{module} quotes with %"
        if private:
            assert not isinstance(node, (ast.Global, ast.Nonlocal)), f"{module} keeps something between calls"
        if private and isinstance(node, ast.ExceptHandler):
            raised = [ast.unparse(inner) for inner in ast.walk(node) if isinstance(inner, ast.Raise)]
            shown = node.name or [one for one in raised if not one.endswith(" from None")]
            assert not shown, f"{module} shows an error, which may quote"


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
    assert "opendp" in files["cloakgp.private.noise"]
    assert "sweep(" in files[DOOR]
    assert doors()[1] >= {"measure", "choose", "column_names"}
    assert carriers() >= {f"cloakgp.data.{name}" for name in ("passes", "chunks", "parquet")}
    with_y = {room_of(module) for module, node, _ in nodes(files) if any(map(is_private, names_in(node)))}
    assert {"release", "selection", "binning", "estimators"} <= with_y
    reaching = {room_of(module) for module in those_that_reach(DOOR)}
    assert not reaching & {"model", "kernels", "designs", "posterior", "files", "ledger"}
    assert with_y <= reaching | {"datasets"}


# ---------------------------------------------------------------------------------- planted bugs

# check | module and function | the reason that each bug below must meet. Bugs are parted by //; one is
# written at the beginning of the module or function as it is, or in the place of something => there.
PLANTED = """
passed on | model.gp | more with y
    def f(X, y): pass // def f(X, *, y_train=None): pass // def f(X, *y): pass // class A: y: int
    for y in data: pass // self.y_ = data // plan.release(data).y // plan.fit(y=data) // centre = lambda y: 0
    from data import outcomes // def targets(): pass // if (y := data): pass // def release(): y = data
passed on | posterior.conditioning | more with y
    def f(X, y): pass // y = data // self.y_ = data // plan.fit(y=data) // centre = lambda y: 0
passed on | release.plan _measure | more with y
    self.y = y // measure(self, y - y.mean()) // measure(self, y[ok]) // print(y) // len(y) // y = clean(y)
    other.measure(self, y) // choose(self, y) // measure(folds(y), y) // measure(y=y) // return y // self.f(y)
    from cloakgp.private.room import measure => from cloakgp.other import measure
passed on | release.plan _measure | calls what sees y
    log(locals()) // eval('y')
passed on | release.plan _measure | redefines
    measure = other
passed on | release.plan _private | more with y
    print(y) // found |= {'n': y.sum()} // sorted(people) // self.keep(X) // PrivateRows(log(X), y)
passed on | release.plan _private | quotes
    f'bad {y}'
passed on | release.plan release | more with y
    self.y = y // y.mean() // seen = [y] // sorted(people) // len(private) // private = other(y)
passed on | release.plan _release | more with y
    self.y = y // self._measure(0, y - 1, 0) // len(private) // y = other(private) // print(private)
passed on | release.plan _release | is given y
    other().release(y) // return self._as_charged => return other
passed on | release.plan recover | not the own plan
    paid_for = other // paid_for = self._as_charged => paid_for = other._as_charged
passed on | release.plan _all_stages | more with y
    session.learn(y) // len(y) // stages = [y] // session.learn(stages[-1]) => session.learn(y)
passed on | release.base release | more with y
    self.measure(y) // return y // measure(y)
passed on | release.base release | is given y
    self.plan.release(y) // other().release(y)
passed on | estimators fit | more with y
    self.y_ = y // X, y = validate_data(self, X, y) // len(y) > 3 // self.score(X, y)
passed on | estimators fit | is given y
    self.plan.release(y)
passed on | estimators fit | not the own plan
    plan = other // for plan in plans: pass // plan = self._plan => plan = other._plan
marked | selection custodian_probabilities | not marked
    return odds // return PrivateStudy(odds, losses).losses // NOT PRIVATE => Private
marked | selection | not marked
    def loss(v): custodian_scores(v) // scores = custodian_scores
marked | plots.private_data | not marked
    def plot(d): custodian_view(d) // look = custodian_view // 1.03, NOT_FOR_RELEASE, => 1.03, '',
    stamp(ax, 0.99 => if y: stamp(ax, 0.99
doors | release.combine | uses OpenDP
    import opendp.prelude as dp // def f(): from opendp import measurements // import_module('opendp.prelude')
doors | release.combine | not a door
    from cloakgp.private import room // import cloakgp.private // from cloakgp.private.outcomes import numeric
doors | release.combine | no y
    from cloakgp.private.room import measure // def f(data): from cloakgp.private.room import measure
doors | plots.private_data | not a door
    from cloakgp.private.outcomes import custodian_view // from cloakgp.private import noise
doors | release.combine | has parsed
    opened._parsed // opened._parsed_for(m)
doors | release.combine | generated data
    from cloakgp.datasets import make_kung_like
random | posterior.conditioning | random numbers
    np.random.default_rng(y.sum()) // np.random.default_rng() // from numpy.random import default_rng
    numpy.random.normal() // import random // import secrets // os.urandom(8) // rng.default_rng
    def mean(): np.random // def f(seed): np.random.default_rng()
random | release.plan _measure | beside y
    np.random.default_rng(seed)
random | private.room | random numbers
    np.random.default_rng(seed)
random | release.combine | insecure seed
    testing.insecure_generator() // insecure_generator().normal()
passes | private.room | meets y
    sweep(partial(other, m), X, y) // sweep(_elsewhere, y) // passes.sweep(other, y) // sweep_threads(f, y)
passes | private.room | hidden
    sweep(partial(_part, m), *sources) // sweep(partial(_part, m), X, more=y)
silent | private.outcomes | imports a voice
    import logging // import warnings // import sys // from os import environ
silent | private.outcomes | calls
    print(y) // log.error('bad', y) // 'bad' + repr(y) // str(y) // 'bad {}'.format(y)
silent | private.outcomes | quotes
    f'bad value {y[0]}' // f'{n_missing} rows are missing' // 'bad value %s' % y
silent | private.outcomes | between calls
    def f(): global last
silent | private.outcomes | shows an error
    try: g(y)¶except OSError as error: pass // try: g(y)¶except OSError: raise ValueError('bad')
silent | data.chunks | imports a voice
    import logging
silent | data.chunks | calls
    print(part)
silent | data.chunks | quotes
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
    module, _, function = place.partition(" ")
    module = f"cloakgp.{module}"
    assert fails(CHECKS[check], {module: planted(sources()[module], function, bug)}, because=because)
