"""Plan files hold settings, digests and a certificate: a plan is made again from the own table."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cloakgp
from cloakgp.designs import DESIGNS
from cloakgp.errors import ArgumentError, InputError, Refused
from cloakgp.kernels import EQ, Matern32
from cloakgp.plans import encoding, out_of_core
from cloakgp.plans.plan_file import PlanFile

X = np.sort(np.random.default_rng(4).uniform(0, 9, 24))[:, None]
Y = np.random.default_rng(5).uniform(0, 4, 24)
IDS = np.arange(24) // 3
GP = cloakgp.GP(EQ(3.0) + Matern32(1.0), noise=0.5, bounds=(0.0, 4.0))
AUTO = cloakgp.AutoGP((0.0, 4.0), stages=2)
PROMISE = {"epsilon": 1.0, "delta": 0.01}
AT = {"X_star": X[:3], **PROMISE}
PER_ROW = cloakgp.GP(
    EQ(3.0), np.geomspace(0.1, 1, 24), (np.zeros(24), np.linspace(3, 4, 24)), np.full(24, 1.5)
)
GRID = cloakgp.Grid({"age": (0.0, 9.0)}, 4)
PLANS = {
    **{
        design: lambda design=design: GP.plan(X, design=design, weights=[1, 2, 3], **AT) for design in DESIGNS
    },
    "per row": lambda: PER_ROW.plan(X, X_star=X[:3], **PROMISE),
    "people": lambda: GP.plan(X, people=IDS, within=0.3, **AT),
    "inducing": lambda: cloakgp.GP(EQ(3.0), 0.5, (0.0, 4.0), 1.0, inducing=5, approximation="fitc").plan(
        X, **AT
    ),
    "leverage": lambda: cloakgp.GP(EQ(3.0), 0.5, (0.0, 4.0), downweight="leverage").plan(X, **AT),
    "function": lambda: GP.plan_function(X, **PROMISE),
    "hidden": lambda: GP.plan_function(X, bound="input-free", basis=[[1.0], [5.0]], **PROMISE),
    "learned": lambda: AUTO.plan(X, **PROMISE),
    "learned people": lambda: AUTO.plan(X, people=IDS, **AT),
    "seasons": lambda: cloakgp.AutoGP((0.0, 4.0), stages=1, seasons={0: [2.0, 3.0]}).plan(X, **AT),
    "counts": lambda: cloakgp.GP(EQ(3.0), bounds=(0, 4), outcome="count").plan(X, **AT),
    "yes/no": lambda: cloakgp.GP(EQ(3.0), outcome="yes/no").plan(X, **AT),
    "classes": lambda: cloakgp.AutoGP(classes=("a", "b", "c"), stages=1).plan(X, **AT),
    "whole rows": lambda: AUTO.plan_rows(GRID, 24, **PROMISE),
    "people's rows": lambda: AUTO.plan_rows(GRID, 8, max_rows=3, X_star=X[:3], **PROMISE),
    "known rows": lambda: GP.plan_rows(GRID, 24, **PROMISE),
}


@pytest.mark.parametrize("name", PLANS)
def test_the_same_plan_comes_out_again(name, tmp_path):
    plan, path = PLANS[name](), tmp_path / "plan.json"
    plan.save(path)
    given = {} if "rows" in name else {"X": X}
    given |= {"people": IDS} if name in ("people", "learned people") else {}
    again = cloakgp.load_plan(path, **given)
    assert type(again) is type(plan)
    assert again.certificate == plan.certificate
    assert again.digest == plan.digest
    assert again.question_digest == plan.question_digest
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", PLANS)
def test_it_holds_settings_digests_and_a_certificate_alone(name, tmp_path):
    """No matrix, no X, and where inputs are private not even a digest."""
    PLANS[name]().save(tmp_path / "plan.json")
    body = json.loads((tmp_path / "plan.json").read_text())
    assert set(body) == {"format", "schema", "settings", "data", "certificate", "sha256"}
    digests = {} if "rows" in name or name == "hidden" else {"inputs_sha256"}
    digests = {*digests, *({"people_sha256"} if name in ("people", "learned people") else ())}
    assert set(body["data"]) == digests
    assert str(float(X[11, 0])) not in (tmp_path / "plan.json").read_text()


def test_functions_cannot_be_saved(tmp_path):
    models = {
        "kernel": cloakgp.GP(lambda A, B: np.minimum(A, B.T) + 1.0, 0.5, (0.0, 4.0)),
        "bounds": cloakgp.GP(EQ(3.0), 0.5, (lambda X: np.zeros(len(X)), 4.0)),
        "mean": cloakgp.GP(EQ(3.0), 0.5, (0.0, 4.0), lambda X: np.ones(len(X))),
        "noise": cloakgp.GP(EQ(3.0), lambda X: np.ones(len(X)), (0.0, 4.0)),
    }
    for name, model in models.items():
        plan = model.plan(X, **AT)
        with pytest.raises(ArgumentError) as caught:
            plan.save(tmp_path / "plan.json")
        assert caught.value.name in (name, "noise_function")
        assert not (tmp_path / "plan.json").exists()
        plan.release(Y)  # all the same


def test_other_inputs_or_people_are_refused(tmp_path):
    GP.plan(X, people=IDS, **AT).save(tmp_path / "people.json")
    GP.plan(X, **AT).save(tmp_path / "rows.json")
    for file, others in (
        ("rows.json", {"X": X + 1e-12}),
        ("rows.json", {"X": X[:-1]}),
        ("rows.json", {"X": X, "people": IDS}),
        ("people.json", {"X": X}),
        ("people.json", {"X": X, "people": np.roll(IDS, 1)}),
        ("people.json", {"X": X, "people": np.arange(24)}),
    ):
        with pytest.raises(Refused):
            cloakgp.load_plan(tmp_path / file, **others)


def test_what_was_given_is_given_again(tmp_path):
    one, other = (AUTO.plan(X, **AT).release(Y) for _ in range(2))
    AUTO.plan(X, given=[one], **AT).save(tmp_path / "plan.json")
    for others in ((), (other,), (one, other)):
        with pytest.raises(ArgumentError) as caught:
            cloakgp.load_plan(tmp_path / "plan.json", X, given=others)
        assert caught.value.name == "given"
    one.save(tmp_path / "one.cloak")
    plan = cloakgp.load_plan(tmp_path / "plan.json", X, given=[cloakgp.load(tmp_path / "one.cloak")])
    assert plan.certificate.before == ((1.0, 0.01),)


def changed(path, change):
    """A file with other words, and a digest of its own that is right."""
    body = json.loads(path.read_text())
    change(body)
    found = PlanFile(
        body["settings"],
        body["data"].get("inputs_sha256", ""),
        body["data"].get("people_sha256", ""),
        body["certificate"],
    )
    path.write_bytes(found.encode())
    return path


FORGERIES = {
    "another promise": lambda b: b["certificate"].update(epsilon=0.1),
    "another unit": lambda b: b["certificate"].update(unit="one person"),
    "less noise": lambda b: b["certificate"].update(objective=0.5 * b["certificate"]["objective"]),
    "another epsilon": lambda b: b["settings"]["options"].update(epsilon=9.0),
    "a key too many": lambda b: b["settings"]["options"].update(matrix=[[1]]),
    "a method too many": lambda b: b["settings"].update(method="__init__"),
    "another model": lambda b: b["settings"]["model"].update(kind="Planner"),
    "a kernel that runs": lambda b: b["settings"]["model"].update(kernel={"kind": "Custom"}),
    "a kernel that is a text": lambda b: b["settings"]["model"].update(kernel="EQ(3)"),
    "no options": lambda b: b["settings"].pop("options"),
    "no inputs' digest": lambda b: b["data"].clear(),
    "people's digest": lambda b: b["data"].update(people_sha256="0" * 64),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_file_that_says_something_else_is_refused(name, tmp_path):
    path = tmp_path / "plan.json"
    GP.plan(X, **AT).save(path)
    with pytest.raises((Refused, InputError, ValueError, TypeError)):
        cloakgp.load_plan(changed(path, FORGERIES[name]), X)


def test_an_edited_file_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    GP.plan(X, **AT).save(path)
    path.write_text(path.read_text().replace('"gap": 0.01', '"gap": 0.02'))
    with pytest.raises(Refused, match="changed after it was made"):
        cloakgp.load_plan(path, X)


@pytest.mark.parametrize("digest", ["", "0" * 63, "g" * 64, None, 3])
def test_an_empty_digest_is_refused(digest, tmp_path):
    path = tmp_path / "plan.json"
    GP.plan(X, people=IDS, **AT).save(path)
    body = json.loads(path.read_text())
    body["data"]["people_sha256"] = digest
    del body["sha256"]
    from cloakgp.plans import plan_file

    seal = plan_file.hashlib.sha256(plan_file._json(body)).hexdigest()
    path.write_bytes(plan_file._json({**body, "sha256": seal}))
    with pytest.raises(InputError, match="people_sha256"):
        cloakgp.load_plan(path, X, people=IDS)


def test_late_digits_are_told_and_do_not_matter(tmp_path):
    path = tmp_path / "plan.json"
    GP.plan(X, **AT).save(path)
    changed(path, lambda b: b["certificate"].update(objective=b["certificate"]["objective"] * (1 + 1e-6)))
    with pytest.warns(UserWarning, match="late digits"):
        cloakgp.load_plan(path, X).release(Y)


def test_settings_are_listed():
    listed = str(PER_ROW.plan(X, X_star=X[:3], **PROMISE).question)
    assert "bounds: 24 numbers, 24 numbers" in listed
    assert "mean: 24 numbers" in listed
    assert "X_star: 3 x 1 numbers" in listed
    assert str(float(X[1, 0])) not in listed


def test_many_inputs_are_not_read_for_the_ledger(monkeypatch, tmp_path):
    """Their digest is in the plan already: eight million rows are not read for it once more."""
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 0)
    plan = cloakgp.GP(EQ(2.0), 0.4, (-1.0, 4.0), 0.7, np.linspace(0, 10, 6)).plan(X, **AT)
    ledger = cloakgp.Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("people", epsilon=5.0, delta=0.1)

    class Unreadable:
        shape = X.shape

        def __len__(self):
            return len(X)

        def __array__(self, *arguments, **options):
            pytest.fail("X was read")

    object.__setattr__(plan, "X", Unreadable())
    release = plan.release(Y, ledger=ledger, dataset="people")
    assert ledger.entries("people")[-1].inputs == plan.measurement.digest == plan.inputs_digest
    assert release.receipt.entry == 2


@pytest.mark.parametrize("option", ["X", "people", "self", "matrix", "y"])
def test_a_file_brings_nothing_of_the_table(option, tmp_path):
    """People of its own would have given eight rows the noise of one, whoever was named by the custodian."""
    path = tmp_path / "plan.json"
    GP.plan(X, people=IDS, **AT).save(path)
    for value in (None, list(range(24))):
        changed(path, lambda b, value=value: b["settings"]["options"].update({option: value}))
        with pytest.raises(ArgumentError) as caught:
            cloakgp.load_plan(path, X, people=IDS)
        assert caught.value.name == "settings"


def test_whole_rows_are_not_shown_to_a_plan(tmp_path):
    path = tmp_path / "plan.json"
    AUTO.plan_rows(GRID, 24, **PROMISE).save(path)
    for seen in ({"X": X}, {"people": IDS}):
        with pytest.raises(ArgumentError, match="must be left out"):
            cloakgp.load_plan(path, **seen)


def test_a_file_alone_does_not_choose_exact_ids(tmp_path):
    path, names = tmp_path / "plan.json", [f"{one}" for one in IDS]
    GP.plan(X, people=names, ids="exact", **AT).save(path)
    with pytest.raises(ArgumentError) as caught:
        cloakgp.load_plan(path, X, people=names)
    assert caught.value.name == "ids"
    assert cloakgp.load_plan(path, X, people=names, ids="exact").certificate.ids == "exact"


def test_x_is_asked_for(tmp_path):
    GP.plan(X, **AT).save(tmp_path / "plan.json")
    with pytest.raises(ArgumentError) as caught:
        cloakgp.load_plan(tmp_path / "plan.json")
    assert caught.value.name == "X"


def test_what_came_with_a_release_is_not_saved_as_a_plan(tmp_path):
    GP.plan(X, **AT).release(Y).save(tmp_path / "file.cloak")
    with pytest.raises(ArgumentError, match="own table"):
        cloakgp.load(tmp_path / "file.cloak").plan.save(tmp_path / "plan.json")


ODD = {
    "beyond all floats": ("gap", "1e999"),
    "deep": ("X_star", "[" * 500 + "]" * 500),
    "half a character": ("device", '"\\ud800"'),
    "no numbers": ("X_star", '"here"'),
    "an object": ("weights", '{"a": 1}'),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_settings_are_refused_by_name(name, tmp_path):
    """All else in the file is as it was: what is refused is the one odd option."""
    from cloakgp.plans import plan_file

    path, (option, odd) = tmp_path / "plan.json", ODD[name]
    GP.plan(X, **AT).save(path)
    cloakgp.load_plan(path, X)
    body = json.loads(path.read_text())
    body["settings"]["options"][option] = "HERE"
    del body["sha256"]
    whole = plan_file._json(body).decode().replace('"HERE"', odd)
    try:
        seal = plan_file.hashlib.sha256(plan_file._json(json.loads(whole))).hexdigest()
    except ValueError:
        seal = "0" * 64
    path.write_text(whole[: whole.rindex("}")] + f', "sha256": "{seal}"}}')
    with pytest.raises((InputError, ArgumentError)):
        cloakgp.load_plan(path, X)


def test_weights_may_be_a_column(tmp_path):
    import pandas as pd

    plan = GP.plan(X, weights=pd.Series([1.0, 2.0, 3.0]), **AT)
    plan.save(tmp_path / "plan.json")
    assert cloakgp.load_plan(tmp_path / "plan.json", X).digest == plan.digest
