"""Plan files hold settings, digests and a certificate: a plan is made again from the own table."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

import cloakgp
from cloakgp import Column, Columns
from cloakgp.core.errors import ArgumentError, InputError, Refused
from cloakgp.kernels import EQ, Matern32
from cloakgp.release import plan_file
from cloakgp.release.plan_file import PlanFile
from cloakgp.release.planning import plan_from

X = np.sort(np.random.default_rng(4).uniform(0, 9, 24))[:, None]
Y = np.random.default_rng(5).uniform(0, 4, 24)
IDS = np.arange(24) // 3
BOUNDS = (0.0, 4.0)
GP = cloakgp.GP(EQ(3.0) + Matern32(1.0), noise=0.5, bounds=BOUNDS)
AUTO = cloakgp.AutoGP(BOUNDS, stages=2)
PROMISE = {"epsilon": 1.0, "delta": 0.01}
AT = {"X_star": X[:3], **PROMISE}
REFUSALS = (Refused, InputError, ArgumentError)


@pytest.fixture(scope="module")
def plan():
    return GP.plan(X, **AT)


@pytest.fixture
def file(plan):
    return PlanFile.of(plan)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "plan.json"


@pytest.mark.parametrize("argument", ["kernel", "bounds", "mean", "noise"])
def test_functions_cannot_be_saved(argument, path):
    functions = {
        "kernel": lambda A, B: np.minimum(A, B.T) + 1.0,
        "bounds": (lambda X: np.zeros(len(X)), 4.0),
        **dict.fromkeys(("mean", "noise"), lambda X: np.ones(len(X))),
    }
    model = {"kernel": EQ(3.0), "noise": 0.5, "bounds": BOUNDS, argument: functions[argument]}
    plan = cloakgp.GP(**model).plan(X, **AT)
    with pytest.raises(ArgumentError) as caught:
        plan.save(path)
    assert caught.value.name in (argument, "noise_function")
    assert not path.exists()
    plan.release(Y)  # all the same


def test_what_was_given_is_given_again(path, tmp_path):
    one, other = (AUTO.plan(X, **AT).release(Y) for _ in range(2))
    AUTO.plan(X, given=[one], **AT).save(path)
    for others in ((), (other,), (one, other)):
        with pytest.raises(ArgumentError) as caught:
            cloakgp.load_plan(path, X, given=others)
        assert caught.value.name == "given"
    one.save(tmp_path / "one.cloak")
    plan = cloakgp.load_plan(path, X, given=[cloakgp.load(tmp_path / "one.cloak")])
    assert plan.certificate.before == ((1.0, 0.01),)


def test_a_file_alone_does_not_choose_exact_ids(path):
    names = [f"{one}" for one in IDS]
    GP.plan(X, people=names, ids="exact", **AT).save(path)
    with pytest.raises(ArgumentError) as caught:
        cloakgp.load_plan(path, X, people=names)
    assert caught.value.name == "ids"
    assert cloakgp.load_plan(path, X, people=names, ids="exact").certificate.ids == "exact"


def test_settings_are_listed_and_rows_are_not():
    limits, means = (np.zeros(24), np.linspace(3, 4, 24)), np.full(24, 1.5)
    plan = cloakgp.GP(EQ(3.0), np.geomspace(0.1, 1, 24), limits, means).plan(X, **AT)
    listed = str(plan.question)
    for shown in ("bounds: 24 numbers, 24 numbers", "mean: 24 numbers", "at: 3 x 1 numbers"):
        assert shown in listed
    assert str(float(X[1, 0])) not in listed


# ------------------------------------------------------------------------------- another table

ROWS, PEOPLE = lambda: GP.plan(X, **AT), lambda: GP.plan(X, people=IDS, **AT)
WHOLE = lambda: AUTO.plan_rows(cloakgp.Grid({"age": (0.0, 9.0)}, 4), 24, **PROMISE)  # noqa: E731
TABLES = {
    "other inputs": (ROWS, {"X": X + 1e-12}, Refused),
    "fewer inputs": (ROWS, {"X": X[:-1]}, Refused),
    "people, of a plan for rows": (ROWS, {"X": X, "people": IDS}, Refused),
    "no people": (PEOPLE, {"X": X}, Refused),
    "other people": (PEOPLE, {"X": X, "people": np.roll(IDS, 1)}, Refused),
    "a person for each row": (PEOPLE, {"X": X, "people": np.arange(24)}, Refused),
    "no inputs": (ROWS, {}, ArgumentError),
    "private inputs": (WHOLE, {"X": X}, ArgumentError),
    "private people": (WHOLE, {"people": IDS}, ArgumentError),
}


@pytest.mark.parametrize("name", TABLES)
def test_it_is_for_the_table_that_it_was_made_for(name, path):
    plan, table, error = TABLES[name]
    plan().save(path)
    with pytest.raises(error):
        cloakgp.load_plan(path, **table)


# -------------------------------------------------------------------------------- another file


def sealed(body):
    """A file's bytes with a digest of its own that is right."""
    body.pop("sha256", None)
    body["sha256"] = hashlib.sha256(plan_file._json(body)).hexdigest()
    return plan_file._json(body)


def in_settings(**words):
    return lambda body: body["settings"].update(words)


def in_certificate(**words):
    return lambda body: body["certificate"].update(words)


def in_data(**words):
    return lambda body: body["data"].update(words)


OTHERS = {
    "another promise": in_certificate(epsilon=0.1),
    "another unit": in_certificate(unit="one row"),
    "no parts": in_certificate(parts=[]),
    "another epsilon": in_settings(epsilon=9.0),
    "what a known model has no use for": in_settings(stages=3),
    "what predictions have no use for": in_settings(max_rows=3),
    "another kind": in_settings(kind="__init__"),
    "a kernel that runs": in_settings(kernel={"kind": "Custom"}),
    "a custom kernel": in_settings(kernel={"kind": "Custom", "name": "f"}),
    "a kernel that is a text": in_settings(kernel="EQ(3)"),
    # People of its own would have given eight rows the noise of one, whoever was named by the custodian.
    **{
        name: in_settings(**{name: list(range(24))})
        for name in ("X", "X_star", "inputs", "people", "self", "matrix")
    },
    "a text for a number": in_settings(epsilon="1"),
    "a column of two roles": in_settings(columns=Columns((Column("height"),)).words(), output="height"),
    "no columns": in_settings(columns=3),
    "a broken grid": in_settings(grid=[["x"]]),
    "a truth value for noise": in_settings(noise=True),
    "one bound": in_settings(bounds=[1.0]),
    **{f"inducing {odd!r}": in_settings(inducing=odd) for odd in (True, "all", [["x"]])},
    "another approximation": in_settings(approximation="best"),
    "another prior": in_settings(prior=[]),
    **{f"points {odd!r}": in_settings(at=odd) for odd in ([["x"]], 5, "here")},
    "another design": in_settings(design="best"),
    "weights that are an object": in_settings(weights={"a": 1}),
    **{f"no {name}": lambda body, name=name: body["settings"].pop(name) for name in ("epsilon", "delta")},
    "no settings": lambda body: body.pop("settings"),
    "one key more": lambda body: body.update(extra=1),
    "another format": lambda body: body.update(format="other"),
    **{f"schema {odd}": lambda body, odd=odd: body.update(schema=odd) for odd in (1, True)},
    "a number for a certificate": lambda body: body.update(certificate=3),
    "no data": lambda body: body.update(data=None),
    "more data": in_data(rows=10),
    "no digest": in_data(inputs_sha256=""),
    "other people": in_data(people_sha256="0" * 64),
    **{f"people's digest {odd!r:.5}": in_data(people_sha256=odd) for odd in ("", "g" * 64, None, 3)},
}


@pytest.mark.parametrize("seal", [True, False], ids=["sealed again", "edited"])
@pytest.mark.parametrize("name", OTHERS)
def test_a_file_that_says_something_else_is_refused(name, seal, path):
    GP.plan(X, people=IDS, **AT).save(path)
    body = json.loads(path.read_bytes())
    OTHERS[name](body)
    path.write_bytes(sealed(body) if seal else plan_file._json(body))
    with pytest.raises(REFUSALS if seal else (Refused, InputError)):
        cloakgp.load_plan(path, X, people=IDS)


ODD = {  # which json.dumps would not write
    "beyond all floats": ("gap", "1e999"),
    "deep": ("at", "[" * 500 + "]" * 500),
    "half a character": ("device", '"\\ud800"'),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_words_are_refused(name, path, file):
    """All else in the file is as it was."""
    option, odd = ODD[name]
    body = json.loads(file.encode())
    body["settings"][option] = "HERE"
    del body["sha256"]
    whole = plan_file._json(body).decode().replace('"HERE"', odd)
    try:
        seal = hashlib.sha256(plan_file._json(json.loads(whole))).hexdigest()
    except ValueError:
        seal = "0" * 64
    path.write_text(whole[: whole.rindex("}")] + f', "sha256": "{seal}"}}')
    with pytest.raises((InputError, ArgumentError)):
        cloakgp.load_plan(path, X)


TWICE = b'{"format": "cloakgp-plan", "format": "cloakgp-plan"}'


@pytest.mark.parametrize("contents", [b"", b"[]", b"{", b"\xff", TWICE, b'{"a": NaN}', b"[" * 9999])
def test_what_is_no_plan_file_is_bad_input(contents, path):
    path.write_bytes(contents)
    with pytest.raises(InputError):
        PlanFile.read(path)


# ------------------------------------------------------------------------------- another plan


def certified(file, part=None, **changes):
    """The file with another certificate."""
    parts = [{**file.certificate["parts"][0], **(part or {})}]
    return replace(file, certificate=file.certificate | {"parts": parts} | changes)


def test_rounding_elsewhere_is_a_warning_and_anything_more_is_refused(file, plan):
    objective = file.certificate["parts"][0]["objective"]
    assert "late digits" in certified(file, {"objective": objective * 1.001, "iterations": 10**6}).check(plan)
    others = [{"part": {name: odd}} for name in ("objective", "bound") for odd in (1.0, "x")]
    others += [{"parts": odd} for odd in ([], 3, [3])] + [{"mu": 0.5 * file.certificate["mu"]}]
    others += [{name: 3} for name in ("epsilon", "delta", "design", "ids", "unit", "extra")]
    for other in others:
        with pytest.raises(Refused, match="give another plan"):
            certified(file, **other).check(plan)


def test_a_plan_for_other_settings_is_not_taken_for_it(file, plan):
    made = AUTO.plan(X, **AT)
    learned, settings = PlanFile.of(made), made.question
    with pytest.raises(Refused, match="another plan"):
        replace(file, certificate=learned.certificate).check(plan)
    for other in (replace(settings, stages=3), replace(settings, epsilon=2.0), plan.question):
        with pytest.raises(Refused, match="another plan"):
            learned.check(plan_from(other, X))


def test_the_question_is_of_settings_inputs_and_people_alone(file):
    assert replace(file, certificate={}).question == file.question  # another machine, the same question
    others = [
        replace(file, settings=replace(file.settings, gap=0.02)),
        replace(file, inputs="0" * 64),
        replace(file, people="0" * 64),
    ]
    assert len({file.question, *(other.question for other in others)}) == 4
