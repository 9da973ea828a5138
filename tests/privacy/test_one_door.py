"""Private outcomes have one door, ``private/``. Read from the source, so that it holds for every input.

``tests/contracts/test_rooms.py`` keeps how y is read, and the noise, inside that folder. Here, by the tables
below: who has a name for y and only passes it on; who opens which door; what the custodian sees without noise
is marked; who draws random numbers; passes over rows meet y in ``private/room.py``, in a function of its own;
and what meets y or carries it says nothing. A new line in a table is a decision, and says its reason.
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
ROOM, NOISE = "private/room.py", "private/noise.py"
PRIVATE = re.compile(r"_?(y|ys|y_.*|outcomes?|targets?)")
PUBLIC = {"y_bits", "outcome"}  # the lattice's, not the data's; a word: real, yes/no or count

# (file, function, door): what does nothing with y but pass it through that door
PASSED_ON = [
    ("plans/base.py", "release", "self._measure or self._reads"),
    ("plans/base.py", "_reads", "column_names"),
    ("plans/predictions.py", "_measure", "measure"),
    ("plans/functions.py", "_measure", "measure"),
    ("binning.py", "_measure", "measure_sums"),
    ("selection.py", "_measure", "choose"),
    ("selection.py", "select", "self.release"),
    ("selection.py", "custodian_probabilities", "custodian_scores"),
    ("estimators.py", "fit", "plan.release"),
    ("classifiers.py", "fit", "plan.release"),
    ("plans/staged.py", "release", "self._release"),
    ("plans/staged.py", "_release", "self._check_usable or charged._all_stages or self._reads"),
    ("plans/staged.py", "_reads", "column_names"),
    ("plans/staged.py", "recover", "charged._all_stages"),
    ("plans/staged.py", "_all_stages", "self._measure_stage"),
    ("plans/staged.py", "_check_usable", "check_usable"),
    ("plans/staged.py", "_measure_stage", "measure"),
    ("plans/whole_rows.py", "release", "PrivateRows"),
    ("plans/whole_rows.py", "recover", "PrivateRows"),
]
# Where inputs and ids are private, too: the same rules hold for them.
WHOLE_ROWS = {("plans/whole_rows.py", "release"), ("plans/whole_rows.py", "recover")}
# These ask whether y was given.
MAY_MISS = {
    ("estimators.py", "fit"),
    ("classifiers.py", "fit"),
    ("plans/staged.py", "_all_stages"),
    ("plans/whole_rows.py", "recover"),
}
# (file, function), or a whole file as (file, ""): why it may use y's names
ALLOWED = {(path, function): f"passes y on to {door}" for path, function, door in PASSED_ON} | {
    ("plans/base.py", "_measure"): "says what each kind of plan has",
    ("plots/private_data.py", "draw_private"): "the custodian's own picture, stamped NOT FOR RELEASE",
    ("demo.py", "main"): "generated data, nobody's",
    ("datasets/dataset.py", ""): "public or generated data; imported by the demo alone",
}
# These decide which rows share a column, make models and recipes, and carry chunks: no line for them, ever.
NEVER = {"rows", "kernels", "model", "designs", "measurements", "posterior", "verification"}
DOORS = {  # what may be imported of private/room.py, and where
    "plans/base.py": {"column_names"},  # what headers call y, for the ledger
    "plans/predictions.py": {"measure"},
    "plans/functions.py": {"measure"},
    "plans/staged.py": {"measure", "check_usable", "column_names"},
    "plans/whole_rows.py": {"PrivateRows"},
    "binning.py": {"measure_sums"},
    "plots/private_data.py": {"custodian_view"},
    "selection.py": {"choose", "custodian_scores"},
    "workflow/private_step.py": {"PrivateColumn", "PrivateLabels", "private_dask_column"},  # all unread
}
RANDOM_ALLOWED = {  # as in ALLOWED: why it may draw random numbers
    ("testing.py", ""): "the insecure seed, which marks everything it touches",
    ("datasets/generated.py", ""): "generated look-alikes; used by the demo alone",
    ("app/tokens.py", ""): "sign-in tokens and names of unfinished files; nothing of a release",
    ("posterior/conditioning.py", "sample"): "public draws of f from its posterior, after the release",
    ("posterior/learning.py", "sample"): "the same, of a mixture of models",
    ("posterior/classes.py", "sample"): "the same, of each class",
    ("posterior/forecast.py", "linked_forecast"): "curves out of the prior, from one seed for all plans",
    ("model/prior_draws.py", "draw_prior"): "public draws of the prior, from a public seed in the plan",
    ("model/prior_draws.py", "_draw"): "the same",
    ("model/prior_draws.py", "_waves"): "the same",
    ("plans/function_planner.py", "_public_seed"): "that public seed, drawn before y is there",
    ("model/k_means.py", "_first"): "k-means on public inputs, from a fixed public seed; before y is there",
    ("measurements/folds.py", "_k_folds"): "public folds, from a fixed public seed; before y is there",
    ("estimators.py", "sample_y"): "scikit-learn's name for the seed of public draws, after the release",
    ("plots/curves.py", "plot_noise_samples"): "public pictures of noise like a plan's; no release uses them",
}
SEED_READERS = {
    NOISE,
    "plans/base.py",
    "plans/staged.py",
    "ledger/charging.py",
}  # where noise is drawn, and results are marked
RANDOM = {"default_rng", "Generator", "RandomState", "SeedSequence", "urandom", "getrandbits", "randbytes"}
RANDOM |= {"np.random", "numpy.random", "random_state", "check_random_state"}  # and scikit-learn's
# What is swept outside of the private room: X, the noise variances, how many rows each stands for, bounds and
# prior means.
SWEPT = {"X", "noise", "windows", "means"}
SWEPT |= {"inputs.X", "inputs.noise", "inputs.group_counts", "inputs.windows"}
# Handed chunks of y without a name for it, to be passed on: to a function, in threads, on a cluster (its own
# tests look for y in logs and errors), or joined into one array.
CARRIERS = {"rows/passes.py", "rows/chunks.py", "rows/on_dask.py", "rows/parquet.py"}
LOUD = {"print", "warn", "warning", "debug", "info", "error", "log", "write", "open", "format", "repr", "str"}
# What messages in private/ may hold; `size` is how many rows, or people, a plan is for.
QUOTABLE = {"n_rows", "array.shape", "size", "_PLAN_AGAIN"}
# Carriers' also: names of files and columns, types and shapes; an array's new name on a cluster.
CARRIERS_QUOTE = {"len(self)", "name", "shape", "dtype", "path.name", "self.path.name", "column", "kind"}
CARRIERS_QUOTE |= {"schema.names", "array.dtype", "uuid4().hex"}

# ---------------------------------------------------------------- checks: of sources by path, each

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def sources():
    files = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    require(len(files) > 100 and ROOM in files, "the source was not found")
    return files


@cache
def walked(source):
    """(node, the names of the functions that it stands in, outermost first) of every node."""
    found = [(ast.parse(source), ())]
    for node, names in found:  # which grows meanwhile
        inside = (*names, node.name) if isinstance(node, FUNCTIONS) else names
        found += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def nodes(files):
    return ((path, node, names) for path, source in files.items() for node, names in walked(source))


def names_in(node):
    """What a node calls things: variables, parameters, attributes, keywords, imports, fields."""
    if isinstance(node, ast.alias):
        return [node.name.split(".")[-1], node.asname or ""]
    called = {ast.Name: "id", ast.arg: "arg", ast.keyword: "arg", ast.Attribute: "attr"}
    called |= dict.fromkeys((*FUNCTIONS, ast.ClassDef), "name")
    return [getattr(node, called[type(node)]) or ""] if type(node) in called else []


def imports(node):
    """What a node imports, in full; a string that might be import_module's counts."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value] if re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", node.value) else []
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{a.name}" for a in node.names] if isinstance(node, ast.ImportFrom) else []


def stores(tree, name):
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    return [node for node in named if isinstance(node.ctx, ast.Store)]


def calls(tree):
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def y_has_no_name_elsewhere(files, allowed=ALLOWED):
    """No variable, parameter or attribute with y's name outside private/, but where allowed."""
    for path, node, around in nodes(files):
        if not path.startswith("private/") and not any((path, name) in allowed for name in ("", *around)):
            private = [name for name in names_in(node) if PRIVATE.fullmatch(name) and name not in PUBLIC]
            assert not private, f"{path}: {private} outside of private/"


def y_is_only_passed_on(files):
    """In each function of PASSED_ON, y is an argument of its door and nothing else; MAY_MISS may miss it."""
    for path, function, door in PASSED_ON:
        if path not in files:
            continue
        found = [node for _, node, _ in nodes({path: files[path]}) if getattr(node, "name", "") == function]
        (tree,) = (node for node in found if isinstance(node, FUNCTIONS))
        called = [call for name, call in calls(tree) if name in door.split(" or ")]
        passed = {id(argument) for call in called for argument in call.args}
        private = {"y", "X", "people"} if (path, function) in WHOLE_ROWS else {"y"}
        if (path, function) in MAY_MISS:
            asked = {f"{name} is None" for name in private - {"people"}}
            passed |= {id(node.left) for node in ast.walk(tree) if ast.unparse(node) in asked}
        uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in private]
        assert uses, f"{path}: {function} does not use y"
        assert {id(use) for use in uses} <= passed, f"{path}: {function} does more with y than pass it on"
        bare = {name for name, _ in calls(tree)} & {"locals", "vars", "eval", "exec"}
        assert not bare, f"{path}: {function} calls {bare}"
        made = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Assign)]
        if door == "plan.release":
            right = [line for line in made if line.startswith("plan = self._plan(")]
            assert len(right) == len(stores(tree, "plan")) == 1, f"{path}: the plan is not the model's"
        elif "charged._all_stages" in door:
            right = [line for line in made if line.startswith("charged = self._as_charged(")]
            assert len(right) == len(stores(tree, "charged")) == 1, f"{path}: the plan is not the one charged"
        elif not door.startswith("self."):  # another function of the same plan, looked at by itself
            imported = [name for node in ast.walk(tree) for name in imports(node)]
            assert f"cloakgp.private.room.{door}" in imported, f"{path}: {door} is not private/room.py's"
            assert not stores(tree, door), f"{path}: {door} is redefined"


def what_the_custodian_sees_is_marked(files):
    """Without noise: scores, in a study that says PRIVATE; and y, in a picture that is always stamped."""
    homes = {"custodian_scores": "custodian_probabilities", "custodian_view": "draw_private"}
    for path, node, around in nodes(files):
        if isinstance(node, ast.Name) and node.id in homes:
            assert around == (homes[node.id],), f"{path}: {node.id} outside of {homes[node.id]}"
        if getattr(node, "name", "") == "custodian_probabilities":
            returned = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
            marked = [isinstance(v, ast.Call) and ast.unparse(v.func) == "PrivateStudy" for v in returned]
            assert all(marked or [False]), f"{path}: the study is not marked as private"
            assert "NOT PRIVATE" in (ast.get_docstring(node) or ""), f"{path}: the study does not warn"
        if isinstance(node, FUNCTIONS) and node.name == "draw_private":
            lines = [ast.unparse(line) for line in node.body]  # of the function's own: no condition on them
            stamped = any(line.startswith("stamp(") and "NOT_FOR_RELEASE" in line for line in lines)
            assert stamped, f"{path}: the picture is not marked"


def doors_are_opened_where_listed(files):
    """OpenDP in noise.py; each door of the private room where DOORS says; generated data in the demo."""
    for path, node, _ in nodes(files):
        for module in imports(node):
            parts = module.split(".")
            assert parts[0] != "opendp" or path == NOISE, f"{path} uses OpenDP"
            if parts[:2] == ["cloakgp", "private"] and not path.startswith("private/"):
                doors = {f"cloakgp.private.room.{door}" for door in DOORS.get(path, ())}
                assert module in doors, f"{path} imports {module}, not a door of its own"
            if parts[:2] == ["cloakgp", "datasets"]:
                shown = path in ("demo.py", "app/demo_data.py") or path.startswith("datasets/")
                assert shown, f"{path} imports generated data"


def random_numbers_are_drawn_where_listed(files, allowed=RANDOM_ALLOWED):
    """No source of random numbers but OpenDP's, and where the list says why."""
    for path, node, around in nodes(files):
        if (path, "") in allowed:
            continue
        seeds = "insecure_generator" in names_in(node) and path not in SEED_READERS
        assert not seeds, f"{path} looks at the insecure seed"
        for parts in (module.split(".") for module in imports(node)):
            drawn = parts[0] in ("random", "secrets") or parts[:2] == ["numpy", "random"]
            assert not drawn, f"{path} imports random numbers"
        if not any((path, name) in allowed for name in around):
            module = isinstance(node, ast.Attribute) and node.attr == "random"
            names = {*names_in(node), *([ast.unparse(node)] if module else [])}
            assert not RANDOM & names, f"{path} draws random numbers"


def passes_meet_y_in_the_room_alone(files):
    """A pass with y runs a function of private/room.py's own; no other pass has y."""
    for path, call, _ in nodes({path: source for path, source in files.items() if path not in CARRIERS}):
        if not isinstance(call, ast.Call) or not re.search(r"\bsweep(_\w+)?$", ast.unparse(call.func)):
            continue
        hidden = [a for a in call.args if isinstance(a, ast.Starred)]
        hidden += [keyword for keyword in call.keywords if keyword.arg != "label"]
        assert not hidden, f"{path}: a pass over something hidden"
        function, *swept = (ast.unparse(argument) for argument in call.args)
        if path == ROOM:
            own = {node.name for node in ast.parse(files[path]).body if isinstance(node, FUNCTIONS)}
            met = re.findall(r"^partial\((\w+),", function)
            assert own.intersection(met), f"{path}: {function}, which is not its own, meets y"
        else:
            assert set(swept) <= SWEPT, f"{path}: a pass over {set(swept) - SWEPT}"


def what_meets_y_says_nothing(files):
    """private/ and the carriers print, log, warn and quote nothing; private/ keeps and chains no error."""
    for path, node, around in nodes(files):
        private = path.startswith("private/")
        if not private and path not in CARRIERS:
            continue
        silent = {"logging", "warnings", "sys", *(["os"] if private else [])}
        assert not silent & {name.split(".")[0] for name in imports(node)}, f"{path} imports a voice"
        if isinstance(node, ast.Call):
            name = (names_in(node.func) or [""])[0]
            a_path = not private and ast.unparse(node) in ("str(path)", "str(file)")
            assert name not in LOUD or a_path, f"{path} calls {name}"
        if isinstance(node, ast.FormattedValue):
            about = ast.unparse(node.value) in (QUOTABLE if private else CARRIERS_QUOTE)
            assert about or (not private and "__repr__" in around), f"{path} quotes {ast.unparse(node.value)}"
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
    "named": y_has_no_name_elsewhere,
    "passed on": y_is_only_passed_on,
    "marked": what_the_custodian_sees_is_marked,
    "doors": doors_are_opened_where_listed,
    "random": random_numbers_are_drawn_where_listed,
    "passes": passes_meet_y_in_the_room_alone,
    "silent": what_meets_y_says_nothing,
}


# ----------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("check", CHECKS)
def test_the_source_keeps_y_behind_its_door(check):
    files = sources()
    require("opendp" in files[NOISE] and "sweep(" in files[ROOM], "what is looked for has another name")
    require(sum("sweep(" in source for source in files.values()) >= 6, "the passes were not found")
    CHECKS[check](files)


def test_the_private_room_stays_small_enough_to_be_read_at_a_sitting():
    """A mechanism that makes it longer is a decision: this limit is moved with its reason.

    It was moved from 450 when X came to be read here too, where inputs are private; and from 600 when labels
    of y came to be compared with those of X, and rows with missing inputs to be left out.
    Labels of classes become numbers here, since they are y; and from 680 when these became sums of each
    class; and yes and no in a file's words. From 740 when private inputs came to be dates, too. From 750 when
    numbers that are neither yes nor no came to be missing. From 790 when y's name came to be compared with
    those of the inputs, and with those that the ledger knows; nothing else looks at y for that.
    """
    files = sources()
    assert sum(len(files[path].splitlines()) for path in files if path.startswith("private/")) < 850


def test_the_tables_have_no_idle_lines_and_none_for_what_must_not_know_y():
    files = sources()
    assert not NEVER & {path.split("/")[0] for path in (*DOORS, *(path for path, _ in ALLOWED))}
    for check, table in (("named", ALLOWED), ("random", RANDOM_ALLOWED)):
        for path, function in table:
            rest = {key: why for key, why in table.items() if key != (path, function)}
            assert fails(CHECKS[check], {path: files[path]}, rest, because=path), (path, function)
    for path, doors in DOORS.items():
        imported = {module for _, node, _ in nodes({path: files[path]}) for module in imports(node)}
        assert {f"cloakgp.private.room.{door}" for door in doors} <= imported, path
    assert all("insecure_generator" in files[path] for path in SEED_READERS)


# ---------------------------------------------------------------------------------- planted bugs

# check | file and function | the reason that each bug below must meet. Bugs are parted by //; one is written
# at the beginning of the file or function as it is, or in the place of something => there.
PLANTED = """
named | model/gp.py | outside of private/
    def f(X, y): pass // def f(X, *, y_train=None): pass // def f(X, *y): pass // class A: y: int
    for y in data: pass // self.y_ = data // plan.release(data).y // plan.fit(y=data) // centre = lambda y: 0
    from data import outcomes // def targets(): pass // if (y := data): pass // def release(): y = data
passed on | plans/predictions.py _measure | more with y than pass it on
    self.y = y // measure(self, y - y.mean()) // measure(self, y[ok]) // print(y) // len(y) // y = clean(y)
    if y is None: pass // other.measure(self, y) // choose(self, y) // measure(folds(y), y) // measure(y=y)
passed on | plans/whole_rows.py release | more with y than pass it on
    self.X = X // len(X) // X = X[:9] // print(people) // PrivateRows(X - 1, y, people) // y.sum()
    set(people) // if X is None: pass // sorted(people) // PrivateRows(*X)
passed on | plans/predictions.py _measure | _measure calls
    log(locals()) // eval('y')
passed on | plans/predictions.py _measure | redefined
    measure = other
passed on | plans/predictions.py _measure | does not use y
    measure(self.measurement, y, missing, self.rows, names=names_in(self.columns)) => 0
passed on | plans/predictions.py _measure | not private/room.py's
    from cloakgp.private.room import measure => from cloakgp.other import measure
passed on | plans/base.py release | more with y than pass it on
    self.measure(y) // return y // measure(y)
passed on | plans/staged.py recover | the plan is not the one charged
    charged = other // charged = self._as_charged => charged = other._as_charged
passed on | plans/staged.py release | more with y than pass it on
    self.y = y // self._all_stages(0, 0, y - 1, 0) // self._measure_stage(0, y, 0) // y is None
passed on | plans/staged.py _all_stages | more with y than pass it on
    walk.take(y) // self._check_usable(y, missing) // len(y) // if y is not None: pass // stages = [y]
    walk.take(stages[-1]) => walk.take(y) // plan.to_bytes() => plan.to_bytes(y)
passed on | plans/staged.py _measure_stage | more with y than pass it on
    self.y = y // measure(plan, y[ok]) // plan = next_plan(y)
passed on | plans/staged.py _check_usable | not private/room.py's
    from cloakgp.private.room import check_usable => from cloakgp.other import check_usable
passed on | estimators.py fit | more with y than pass it on
    self.y_ = y // X, y = validate_data(self, X, y) // len(y) > 3 // self.plan.release(y) // self.score(X, y)
passed on | estimators.py fit | the plan is not the model's
    plan = other // for plan in plans: pass // plan = self._plan => plan = other._plan
marked | selection.py custodian_probabilities | not marked
    return odds // return PrivateStudy(odds, losses).losses
marked | selection.py custodian_probabilities | does not warn
    NOT PRIVATE => Private
marked | selection.py | outside of custodian_probabilities
    def loss(v): custodian_scores(v) // scores = custodian_scores
marked | plots/private_data.py | outside of draw_private
    def plot(d): custodian_view(d) // look = custodian_view
marked | plots/private_data.py | not marked
    *at, NOT_FOR_RELEASE, => *at, '', // stamp(ax, *at => if y: stamp(ax, *at
doors | plans/combine.py | uses OpenDP
    import opendp.prelude as dp // def f(): from opendp import measurements // import_module('opendp.prelude')
doors | plans/combine.py | not a door of its own
    from cloakgp.private.room import measure // from cloakgp.private import room // import cloakgp.private
doors | plots/private_data.py | not a door of its own
    from cloakgp.private.room import measure // from cloakgp.private.outcomes import custodian_view
doors | plans/combine.py | generated data
    from cloakgp.datasets import make_kung_like
random | posterior/conditioning.py | random numbers
    np.random.default_rng(0) // from numpy.random import default_rng // numpy.random.normal() // import random
    import secrets // os.urandom(8) // rng.default_rng // KMeans(3, random_state=0) // def mean(): np.random
random | plans/combine.py | insecure seed
    testing.insecure_generator()
passes | private/room.py | meets y
    sweep(partial(other, m), X, y) // sweep(_elsewhere, y) // passes.sweep(other, y) // sweep_threads(f, y)
passes | private/room.py | hidden
    sweep(partial(_part, m), *sources) // sweep(partial(_part, m), X, more=y)
passes | plans/out_of_core.py | a pass over
    sweep(f, inputs.X, source) // sweep(f, outcomes) // sweep(f, planner.private) // sweep(f, *inputs)
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
silent | rows/chunks.py | imports a voice
    import logging
silent | rows/chunks.py | calls
    print(part) // 'bad' + str(part)
silent | rows/chunks.py | quotes
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
