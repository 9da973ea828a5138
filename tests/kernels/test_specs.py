"""Kernels from JSON and from text: read through a closed list, and nothing is ever evaluated."""

import ast
import inspect
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk

from cloakgp.kernels import (
    EQ,
    KINDS,
    Category,
    Constant,
    Gibbs,
    Integral,
    Kernel,
    Linear,
    Matern,
    Matern32,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sum,
    as_kernel,
    from_spec,
    specs,
)
from cloakgp.kernels.specs import parse

A = EQ(1.3, variance=0.5)
positive = st.floats(1e-300, 1e300, allow_subnormal=False)
lengthscale = positive | st.lists(positive, min_size=1, max_size=3)
simple = st.one_of(
    st.builds(EQ, lengthscale, variance=positive),
    st.builds(EQ, positive, active_dims=st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)),
    st.builds(Matern, positive, st.sampled_from([0.5, 1.5, 2.5]), variance=positive),
    st.builds(Periodic, lengthscale, period=positive),
    st.builds(RationalQuadratic, lengthscale, alpha=positive),
    st.builds(lambda a, b: Gibbs(([0.0, 1.0], [a, b])), positive, positive),
    st.builds(lambda a, b: Gibbs(([(a, b), (a + 1, b)], [1.0, 2.0])), st.floats(-9, 9), st.floats(-9, 9)),
    st.builds(Linear, lengthscale),
    st.builds(Category, st.floats(0, 1)),
    st.builds(Polynomial, positive, degree=st.integers(1, 9), offset=st.floats(0, 9)),
    st.builds(Constant, positive),
    st.builds(Integral, st.builds(EQ, positive)),
)
kernels = st.recursive(
    simple,
    lambda k: st.builds(lambda a, b, plus: a + b if plus else a * b, k, k, st.booleans()),
    max_leaves=9,
)


def test_specs_are_plain():
    spec = (Periodic([1, 2], period=7, active_dims=[4, 0]) + Constant(3)).to_spec()
    assert json.loads(json.dumps(spec)) == spec
    assert spec["kernels"][0]["lengthscale"] == [1.0, 2.0]
    assert from_spec(A.to_spec() | {"lengthscale": 2, "variance": 3}) == EQ(2.0, variance=3.0)


def test_custom_specs_tell_nothing_of_the_function_and_cannot_be_read_back():
    """A name is room for a message, and tells a reader nothing that can be relied on."""
    spec = (A * as_kernel(lambda X, Z: X @ Z.T)).to_spec()["kernels"][1]
    assert spec == as_kernel(sk.Matern(nu=0.7)).to_spec() == {"kind": "Custom"}
    two = {"kind": "Sum", "kernels": [A.to_spec(), spec]}
    assert from_spec(two, custom=Constant(3.0)) == A + Constant(3.0)
    with pytest.raises(ValueError, match="cannot be rebuilt"):
        from_spec({"kind": "Custom", "name": "x"}, custom=Constant(3.0))
    for one in (spec, two):
        with pytest.raises(ValueError, match=r"custom kernel cannot be rebuilt .* reader must give"):
            from_spec(one)


def spec(**changes):
    return A.to_spec() | changes


def nested(depth):
    inner = A.to_spec()
    for _ in range(depth):
        inner = {"kind": "Sum", "kernels": [inner, A.to_spec()]}
    return inner


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (None, "must be a dict with a kind"),
        ({}, "must be a dict with a kind"),
        ({"kind": ["EQ"]}, "must be a dict with a kind"),
        ({"kind": "os.system"}, "kind must be one of "),
        (spec(kind="Stationary"), "kind must be one of "),
        (spec(kind="x" * 100_000), "kind must be one of "),
        ({"kind": "Custom"}, "cannot be rebuilt"),
        ({"kind": "Custom", "name": "x", "function": "os.system"}, "cannot be rebuilt"),
        ({"kind": "EQ", "lengthscale": 1.0}, "exactly the keys"),
        (spec(extra=1), "exactly the keys"),
        (A.to_spec() | {3: 4}, "exactly the keys"),
        (spec(lengthscale="1.0"), "lengthscale in a kernel spec must hold numbers"),
        (spec(lengthscale=[[1.0]]), "lengthscale must be one-dimensional"),
        (spec(lengthscale={"kind": "EQ"}), "lengthscale in a kernel spec must hold numbers"),
        (spec(lengthscale=[1.0, None]), "lengthscale must hold real numbers"),
        (spec(lengthscale=10**400), "kind EQ is not valid"),
        ({"kind": "Sum", "kernels": []}, "at least two"),
        ({"kind": "Sum", "kernels": A.to_spec()}, "kernels must be a list"),
        ({"kind": "Product", "kernels": [A.to_spec(), "EQ"]}, "must be a dict with a kind"),
        (nested(100_000), "nested at most 32 deep"),
    ],
    ids=lambda value: None if isinstance(value, str) else "spec",
)
def test_malformed_specs_are_refused(bad, match):
    with pytest.raises(ValueError, match=match) as caught:
        from_spec(bad)
    assert len(str(caught.value)) < 500


@given(kernels)
def test_any_kernel_comes_back_from_text_and_from_json(kernel):
    assert parse(repr(kernel)) == kernel == from_spec(json.loads(json.dumps(kernel.to_spec())))


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("EQ(25, variance=660)", EQ(25.0, variance=660.0)),
        (" EQ( 25 ) ", EQ(25.0)),
        ("EQ([1, 5], active_dims=(0, 2))", EQ([1.0, 5.0], active_dims=[0, 2])),
        ("EQ(20, variance=25**2)", EQ(20.0, variance=625.0)),
        ("EQ(20, variance=25 * 25 + 1)", EQ(20.0, variance=626.0)),
        ("2 * EQ(1) + Constant(4)", 2 * EQ(1.0) + Constant(4.0)),
        ("(EQ(1) + Linear()) * 3", (EQ(1.0) + Linear()) * 3),
        ("Matern(3, nu=1.5)", Matern32(3.0)),
        ("Polynomial(degree=2)", Polynomial(degree=2)),
        ("Gibbs(([0, 5**2], [2, 4]))", Gibbs(([0.0, 25.0], [2.0, 4.0]))),
        ("EQ(10**-3)", EQ(0.001)),
        ("EQ(+1)", EQ(1.0)),
        ("(" * 50 + "EQ(1)" + ")" * 50, EQ(1.0)),
        ("+".join(["EQ(1)"] * 600), Sum([EQ(1.0)] * 600)),
    ],
)
def test_texts_are_read_as_in_python(text, kernel):
    assert parse(text) == kernel


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("EQ(25, varience=660)", "EQ has no varience; it has lengthscale=, variance=, active_dims=", 7),
        ("EQ(-1)", "lengthscale must be finite and above 0", 0),
        ("EQ(1) + RBF(2)", "only kernels can be written with brackets", 8),
        ("EQ(1) + 2", "add Constant(number)", 0),
        ("EQ", "needs its numbers in brackets", 0),
        ("EQ()", "EQ: missing a required argument: 'lengthscale'", 0),
        ("EQ(1, lengthscale=2)", "EQ: multiple values for argument 'lengthscale'", 0),
        ("EQ(1, variance=1, variance=2)", "variance is given twice", 18),
        ("EQ(1", "not complete", None),
        ("EQ(**{'a': 1})", "** stands for a power", 5),
        ("EQ([1, [2]])", "lengthscale must be an array of numbers", 0),
        ("Gibbs(10)", "lengthscale must be knots; got 10", 0),
        ("EQ('1')", "only numbers", 3),
        ("EQ(1e999)", "too large", 3),
        ("EQ(9**9**9)", "not a finite real number", 3),
        ("EQ(1) * True", "cannot be added or multiplied", 0),
        ("é + EQ(1)", "é is not known here", 0),
    ],
)
def test_errors_point_at_the_place(text, reason, place):
    with pytest.raises(ValueError, match="kernel") as error:
        parse(text)
    message, shown, mark = str(error.value).split("\n")
    assert reason in message
    assert shown == f"  {text}"
    assert mark.strip() == "^"
    if place is not None:
        assert mark.index("^") - 2 == place


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('echo')",
        "EQ(__import__('os').getpid())",
        "EQ(1).__class__",
        "().__class__.__bases__[0].__subclasses__()",
        "(lambda: EQ(1))()",
        "[EQ(x) for x in (1, 2)][0]",
        "EQ(1) if 1 else EQ(2)",
        "EQ((x := 1))",
        "EQ(f'{1}')",
        "EQ(1); EQ(2)",
        "Custom(print)",
        "Sum([EQ(1), EQ(2)])",
        "EQ(1)\n+ EQ(2)",
        "1or 2",
        "'\\d'",
        "",
        "5",
        "None",
        "EQ(None)",
        "-" * 3000 + "1",
        "EQ(" * 900,
        "EQ(1)" + "+EQ(1)" * 5000,
        "9" * 3999,
    ],
)
def test_anything_but_a_kernel_is_refused(text):
    with pytest.raises(ValueError, match="kernel"):
        parse(text)
    with pytest.raises(ValueError, match="kernel must be text; got bytes"):
        parse(text.encode())


pieces = st.sampled_from(
    ["EQ", "Constant", "Integral", "(", ")", "[", "]", ",", "+", "*", "**", "-", "1", "2.5", "1e9", "=", ".",
     "variance", "lengthscale", "True", "None", "__import__", "os", "'a'", "lambda", ":", "x", "if", "for",
     "in", "{", "}", "\\", "\n", "é", "@", "%", "//", "_", "__class__", ":=", " "]
)  # fmt: skip


@given(st.text(max_size=60) | st.lists(pieces, max_size=25).map("".join))
def test_any_text_gives_a_kernel_or_a_clear_error(text):
    try:
        kernel, refusal = parse(text), "kernel"
    except ValueError as error:
        kernel, refusal = Constant(1.0), str(error)
    assert isinstance(kernel, Kernel)
    assert refusal.startswith("kernel")


def test_every_kernel_of_the_library_can_be_written():
    assert set(KINDS) - set(specs.NAMES) == {"Sum", "Product"}  # written with + and *


def test_the_source_calls_nothing_that_evaluates():
    tree = ast.parse(inspect.getsource(specs))
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not called & {"eval", "exec", "compile", "getattr", "globals", "__import__"}
