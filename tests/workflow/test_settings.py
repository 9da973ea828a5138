"""Settings, test points and plan files: strict, and the same again after a round trip."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from cloakgp.errors import InputError, Refused
from cloakgp.kernels import EQ, Constant
from cloakgp.rows.columns import Column, Columns
from cloakgp.workflow import points, spending
from cloakgp.workflow.learned_settings import LearnedSettings, settings_from
from cloakgp.workflow.plan_file import PlanFile, plan_file, read_plan_file, settings_of
from cloakgp.workflow.settings import Settings

X = np.linspace(0.0, 9.0, 10)[:, None]
SETTINGS = Settings(
    inputs=("age",),
    output="height",
    bounds=(50.0, 170.0),
    kernel=EQ(3.0, variance=625.0) + Constant(1.0),
    noise=196.0,
    at="grid:4",
    epsilon=1.0,
    delta=0.01,
    inducing=5,
    device=None,
)


@pytest.fixture(scope="module")
def plan():
    return SETTINGS.plan(X)


@pytest.fixture
def file(plan):
    return plan_file(SETTINGS, plan)


def edited(file, change, seal=False):
    """The file's bytes after a change; with its own digest made right, if `seal`."""
    import hashlib

    body = json.loads(file.encode())
    change(body)
    if seal:
        body.pop("sha256")
        text = json.dumps(body, indent=1, sort_keys=True).encode()
        body["sha256"] = hashlib.sha256(text).hexdigest()
    return json.dumps(body).encode()


def named_columns(*names, response=""):
    """How a description says how inputs are read: by these names, whatever its inputs are."""
    return Columns(tuple(map(Column, names)), response).words()


def test_columns_that_are_the_inputs_are_taken(file):
    for response in ("", "height"):
        columns = named_columns("age", response=response)
        assert Settings.from_dict(SETTINGS.to_dict() | {"columns": columns}).columns.names == ("age",)


def test_a_plan_file_comes_back_as_it_was(file, plan, tmp_path):
    (tmp_path / "plan.json").write_bytes(file.encode())
    again, settings = read_plan_file(tmp_path / "plan.json")
    assert again.encode() == file.encode()
    assert again.question == file.question
    assert settings.kernel == SETTINGS.kernel
    assert settings.plan(X).digest == plan.digest
    assert again.check(plan) is None


def test_stored_points_come_back_to_the_last_bit(tmp_path):
    where = np.random.default_rng(0).normal(size=(7, 1))
    settings = replace(SETTINGS, at=where)
    again = Settings.from_dict(json.loads(json.dumps(settings.to_dict())))
    assert np.array_equal(again.at, where)
    assert np.array_equal(again.points(X), where)


def test_other_inputs_are_refused(file):
    with pytest.raises(Refused, match="9 rows, and the plan was made for 10"):
        file.check(SETTINGS.plan(X[1:]))
    with pytest.raises(Refused, match="not those that the plan was made for"):
        file.check(SETTINGS.plan(X[::-1].copy()))


def test_rounding_elsewhere_is_a_warning_and_anything_more_is_refused(file, plan):
    near = {"objective": file.certificate["objective"] * 1.001, "iterations": 10**6}
    assert "late digits" in replace(file, certificate=file.certificate | near).check(plan)
    for name, value in (("epsilon", 2.0), ("design", "max"), ("objective", 1.0), ("objective", "x")):
        other = replace(file, certificate=file.certificate | {name: value})
        with pytest.raises(Refused, match="give another plan"):
            other.check(plan)


@pytest.mark.parametrize("name", sorted(SETTINGS.to_dict()))
def test_every_edited_setting_is_noticed(file, name):
    def change(body):
        body["settings"][name] = False if name == "device" else None

    with pytest.raises(Refused, match="changed after it was made"):
        PlanFile.decode(edited(file, change))
    if name not in ("mean", "inducing"):
        with pytest.raises(InputError, match="plan file: settings"):
            settings_of(PlanFile.decode(edited(file, change, seal=True)))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("settings"),
        lambda body: body.update(extra=1),
        lambda body: body.update(format="other"),
        lambda body: body.update(schema=1),
        lambda body: body.update(schema=True),
        lambda body: body["settings"].update(extra=1),
        lambda body: body["settings"].update(inputs=[]),
        lambda body: body["settings"].update(inputs="age"),
        lambda body: body["settings"].update(inputs=["height"]),
        lambda body: body["settings"].update(columns=named_columns("height")),
        lambda body: body["settings"].update(columns=named_columns("age", "height")),
        lambda body: body["settings"].update(columns=named_columns("age", response="weight")),
        lambda body: body["settings"].update(kernel={"kind": "Custom", "name": "f"}),
        lambda body: body["settings"].update(noise=True),
        lambda body: body["settings"].update(bounds=[1.0]),
        lambda body: body["settings"].update(at=[["x"]]),
        lambda body: body["settings"].update(design="best"),
        lambda body: body["settings"].update(inducing=True),
        lambda body: body["settings"].update(inducing=0),
        lambda body: body["settings"].update(inducing="all"),
        lambda body: body["settings"].update(inducing=[["x"]]),
        lambda body: body["settings"].update(approximation="best"),
        lambda body: body["settings"].update(device=""),
        lambda body: body["settings"].update(calibration="best"),
        lambda body: body.update(certificate=3),
        lambda body: body.update(data=None),
        lambda body: body["data"].update(rows=10),
        lambda body: body["data"].update(inputs_sha256=""),
    ],
)
def test_what_makes_no_sense_is_bad_input(file, change):
    with pytest.raises(InputError):
        settings_of(PlanFile.decode(edited(file, change, seal=True)))


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"format": "cloakgp-plan", "format": "cloakgp-plan"}',
        b'{"a": NaN}',
        b"[" * 9999,
    ],
)
def test_what_is_no_plan_file_is_bad_input(contents):
    with pytest.raises(InputError, match="not a plan file"):
        PlanFile.decode(contents)


def test_grids_cover_the_inputs_range():
    grid = points.grid("grid:3", np.array([[0.0, 10.0], [4.0, 20.0]]))
    assert grid.tolist() == [[a, b] for a in (0.0, 2.0, 4.0) for b in (10.0, 15.0, 20.0)]
    for spec in ("grid:", "grid:x", "grid:-3", "grid:1", "grid:2.5", "grid: 3", "grid:9999999"):
        with pytest.raises(InputError, match="whole number"):
            points.grid(spec, X)
    with pytest.raises(InputError, match="no range"):
        points.grid("grid:3", np.ones((4, 1)))
    with pytest.raises(InputError, match="40000 points"):
        points.grid("grid:200", np.array([[0.0, 0.0], [1.0, 1.0]]))


def test_a_request_has_one_name_whenever_it_is_asked(file):
    name = spending.request_name("release", None, question=file.question, data="a.csv")
    assert name == spending.request_name("release", None, data="a.csv", question=file.question)
    others = [
        spending.request_name("release", "2", question=file.question, data="a.csv"),
        spending.request_name("release", None, question=file.question, data="b.csv"),
        spending.request_name("select", None, question=file.question, data="a.csv"),
    ]
    assert len({name, *others}) == 4
    other = plan_file(replace(SETTINGS, output="weight"), SETTINGS.plan(X))
    assert other.question != file.question
    assert replace(file, certificate={}).question == file.question  # another machine, the same question


LEARNED = LearnedSettings(
    ("age",), "height", (0, 250), 1.0, 0.01, at="grid:4", kernels=("EQ", "Matern32"), stages=2
)


@pytest.fixture(scope="module")
def learned_plan():
    return LEARNED.plan(X)


def test_a_plan_file_of_a_model_to_be_learned_comes_back_as_it_was(learned_plan, tmp_path):
    file = plan_file(LEARNED, learned_plan)
    (tmp_path / "plan.json").write_bytes(file.encode())
    again, settings = read_plan_file(tmp_path / "plan.json")
    assert isinstance(settings, LearnedSettings)
    assert (again.encode(), again.question) == (file.encode(), file.question)
    assert settings.plan(X).digest == learned_plan.digest
    assert again.check(learned_plan) is None


def test_a_plan_for_other_settings_is_not_taken_for_it(learned_plan, plan):
    file = plan_file(LEARNED, learned_plan)
    for other in (replace(LEARNED, stages=3).plan(X), replace(LEARNED, epsilon=2.0).plan(X), plan):
        with pytest.raises(Refused, match="another plan"):
            file.check(other)


def test_learned_settings_come_back_from_json():
    where, placed = np.random.default_rng(0).normal(size=(2, 7, 1))
    settings = replace(LEARNED, at=where, inducing=placed)
    again = settings_from(json.loads(json.dumps(settings.to_dict())))
    assert isinstance(again, LearnedSettings)
    assert np.array_equal(again.points(X), where)
    assert np.array_equal(again.inducing, placed)
    assert again.to_dict() == settings.to_dict()
    assert isinstance(settings_from(json.loads(json.dumps(SETTINGS.to_dict()))), Settings)


def test_points_that_nobody_gave_cover_the_inputs():
    from cloakgp.model.cover import cover

    settings = replace(LEARNED, at=None)
    assert np.array_equal(settings.plan(X).X_star, cover(X))
    assert np.array_equal(settings.points(X), cover(X))


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("inputs", [], "inputs must be a list"),
        ("output", "age", "must not be an input"),
        ("bounds", [3.0, 1.0], "bounds"),
        ("epsilon", "1", "epsilon must be a number"),
        ("delta", 2.0, "delta"),
        ("at", 5, "at must be grid:n, a list of points, or null"),
        ("kernels", "EQ", "kernels must be a list"),
        ("kernels", ["Nice"], "kernels must be one of"),
        ("stages", 40, "stages must be a whole number"),
        ("stages", 2.0, "stages must be a whole number"),
        ("inducing", 2.5, "inducing must be a whole number"),
        ("more", 1, r"one too many \(more\)"),
    ],
)
def test_learned_settings_are_strict(name, wrong, said):
    values = json.loads(json.dumps(LEARNED.to_dict())) | {name: wrong}
    with pytest.raises(InputError, match=said):
        settings_from(values)


def test_a_certificate_of_another_kind_is_refused(file, learned_plan):
    other = plan_file(LEARNED, learned_plan).certificate
    with pytest.raises(Refused, match="another plan"):
        replace(file, certificate=other).check(SETTINGS.plan(X))
