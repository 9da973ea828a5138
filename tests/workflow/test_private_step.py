"""The output column of a file goes unread to the private room: read from the source."""

import ast
from pathlib import Path

import pytest

import cloakgp
from cloakgp.workflow.spending import request_name

ROOT = Path(cloakgp.__file__).parent
DOORS = ("PrivateColumn", "PrivateLabels", "private_dask_column")


def handed_on(node):
    """What an argument is: itself, the values of a dict made for it, what stands behind a condition, or what
    is compared with classes."""
    if isinstance(node, ast.DictComp):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return [*handed_on(node.body), *handed_on(node.orelse)]
    labels = isinstance(node, ast.Call) and ast.unparse(node.func) == "PrivateLabels"
    return [node, node.args[0]] if labels else [node]


def check_private_step(source):
    """Private columns are made as an argument of plan.release or plan.select, and nowhere else."""
    tree = ast.parse(source)
    passed = {
        id(argument.func)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("plan.release", "plan.select")
        for given in [*call.args, *(keyword.value for keyword in call.keywords)]
        for argument in handed_on(given)
        if isinstance(argument, ast.Call)
    }
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in DOORS]
    assert uses
    assert all(id(use) in passed for use in uses)


def test_a_private_column_is_only_ever_passed_on_and_no_other_file_names_it():
    files = [file for room in ("cli", "workflow") for file in sorted((ROOT / room).glob("*.py"))]
    assert len(files) > 15
    for file in files:
        source = file.read_text()
        if file.name == "private_step.py":
            check_private_step(source)
        else:
            names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
            assert not names & set(DOORS), file


@pytest.mark.parametrize(
    "source",
    [
        "values = PrivateColumn(p, c)\nplan.release(values)",
        "plan.release(np.asarray(PrivateColumn(p, c)))",
        "len(PrivateColumn(p, c))",
        "plan.release(PrivateLabels(list(PrivateColumn(p, c)), classes))",
        "plan.release({c: list(PrivateColumn(p, c)) for c in names}, y)",
        "plan.release({c: 1 for c in PrivateColumn(p, c)}, y)",
        "plan.release(X, people=PrivateColumn(p, c) if len(PrivateColumn(p, c)) else None)",
        "look = PrivateColumn",
        "private_dask_column(p, c).compute()",
        "plan.release(private_dask_column(p, c).compute())",
    ],
)
def test_planted_use_is_caught(source):
    with pytest.raises(AssertionError):
        check_private_step(source)


def test_a_request_has_one_name_whenever_it_is_asked():
    name = request_name("release", None, question="q", data="a.csv")
    assert name == request_name("release", None, data="a.csv", question="q")
    others = {
        request_name(kind, again, question=question, data=data)
        for kind, again, question, data in (
            *(("release", "2", "q", "a.csv"), ("release", None, "q", "b.csv")),
            *(("select", None, "q", "a.csv"), ("release", None, "p", "a.csv")),
        )
    }
    assert len(others - {name}) == 4
