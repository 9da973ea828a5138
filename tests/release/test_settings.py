"""One record of what a person chooses: the library's own arguments, which go together, and the same again."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace

import numpy as np
import pytest

from cloakgp import GP, AutoGP, Column, Columns, Grid
from cloakgp.core.errors import ArgumentError, InputError
from cloakgp.data.formats import Format
from cloakgp.kernels import EQ, Constant
from cloakgp.model.point_sets import cover
from cloakgp.release import points
from cloakgp.release.plan_file import PlanFile
from cloakgp.release.planning import plan_from
from cloakgp.release.settings import Settings, check_together

X = np.linspace(0.0, 9.0, 10)[:, None]
NAMES = Columns((Column("age"),), "height")
HEIGHT = {"output": "height", "columns": NAMES, "at": "grid:4", "epsilon": 1.0, "delta": 0.01}
KERNEL = EQ(3.0, variance=625.0) + Constant(1.0)
KNOWN = Settings(bounds=(50.0, 170.0), kernel=KERNEL, noise=196.0, inducing=5, **HEIGHT)
LEARNED = Settings(bounds=(0, 250), kernels=("EQ", "Matern32"), stages=2, **HEIGHT)
BOX = Grid({"age": (0, 90), "sex": ["f", "m"]}, 9)
ROWS = Settings(grid=BOX, n_rows=50, output="visits", bounds=(0, 20), epsilon=1.0, delta=1e-3, stages=2)
FUNCTION = replace(KNOWN, kind="function", at=None, inducing=None)
SETTINGS = {
    "known": KNOWN,
    "learned": LEARNED,
    "rows": ROWS,
    "function": FUNCTION,
    "people's rows": replace(ROWS, people="id", max_rows=3, at="grid:3", ids="exact"),
    "known rows": replace(ROWS, kernel=EQ([9.0, 1.0]), noise=4.0, stages=None, at=np.array([[1.0, 0.0]])),
    "points": replace(KNOWN, at=np.random.default_rng(0).normal(size=(7, 1)), inducing=X[:3], design="max"),
    "covering": replace(LEARNED, at=None, seasons={"age": [2.0, 3.0]}, reading=Format(";", "latin-1", ",")),
    "classes": replace(LEARNED, bounds=None, prior=None, classes=("a", "b", "c"), kernels=None, stages=1),
    "counts": replace(KNOWN, outcome="count", noise=None, mean=None, bounds=(0, 9), inducing=None),
}


def table_of(settings):
    return () if settings.hides_inputs else (X,)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_and_their_plan_come_back_from_a_file(name, tmp_path):
    settings = SETTINGS[name]
    made = plan_from(settings, *table_of(settings))
    made.save(tmp_path / "plan.json")
    file = PlanFile.read(tmp_path / "plan.json")
    assert file.encode() == (tmp_path / "plan.json").read_bytes()
    assert (file.settings.words(), file.question) == (settings.words(), made.question_digest)
    again = plan_from(file.settings, *table_of(settings))
    assert (again.digest, file.check(again)) == (made.digest, None)


AT = {"X_star": np.linspace(0, 9, 4), "columns": NAMES, "epsilon": 1.0, "delta": 0.01}
LIBRARY = {
    "known": lambda: GP(KNOWN.kernel, 196.0, (50, 170), inducing=5).plan(X, **AT),
    "learned": lambda: AutoGP((0, 250), kernels=("EQ", "Matern32"), stages=2).plan(X, **AT),
    "rows": lambda: AutoGP((0, 20), stages=2).plan_rows(ROWS.grid, 50, epsilon=1.0, delta=1e-3),
    "function": lambda: GP(KNOWN.kernel, 196.0, (50, 170)).plan_function(
        X, columns=NAMES, epsilon=1.0, delta=0.01
    ),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_the_plan_is_that_of_the_library(name):
    settings = SETTINGS[name]
    assert plan_from(settings, *table_of(settings)).digest == LIBRARY[name]().digest


ASKED = [GP.__init__, AutoGP.__init__, GP.plan, AutoGP.plan, GP.plan_rows, AutoGP.plan_rows, GP.plan_function]


def test_settings_are_the_librarys_arguments_with_its_defaults():
    usual = {one.name: one.default for one in fields(Settings)}
    for function in ASKED:
        for name, parameter in inspect.signature(function).parameters.items():
            if name in ("self", "gp", "model", "X", "people", "categories"):  # the table's
                continue
            name = {"X_star": "at"}.get(name, name)
            assert name in usual, (function, name)
            if parameter.default is not parameter.empty and name != "delta":  # always said in a file
                assert usual[name] == parameter.default or (not usual[name] and not parameter.default), name


def test_points_that_nobody_gave_cover_the_inputs():
    assert np.array_equal(plan_from(SETTINGS["covering"], X).X_star, cover(X))


def test_grids_cover_the_inputs_range_or_the_box():
    grid = points.grid("grid:3", np.array([[0.0, 10.0], [4.0, 20.0]]))
    assert grid.tolist() == [[a, b] for a in (0.0, 2.0, 4.0) for b in (10.0, 15.0, 20.0)]
    for spec in ("grid:", "grid:x", "grid:-3", "grid:1", "grid:2.5", "grid: 3", "grid:9999999"):
        with pytest.raises(InputError, match="whole number"):
            points.grid(spec, X)
    with pytest.raises(InputError, match="no range"):
        points.grid("grid:3", np.ones((4, 1)))
    with pytest.raises(InputError, match="40000 points"):
        points.grid("grid:200", np.array([[0.0, 0.0], [1.0, 1.0]]))
    assert len(points.over(ROWS.grid, "grid:3")) == 3 * 2
    assert points.over(ROWS.grid, "grid:2")[:, 0].tolist() == [0, 0, 90, 90]
    with pytest.raises(InputError, match="above the limit"):
        points.over(ROWS.grid, "grid:20000")


# ---------------------------------------------------------------------------- what goes together

PLAIN = {"inputs": ["age"], "output": "height", "bounds": (0, 1)}
SET = {**PLAIN, "kernel": "EQ(1)", "noise": 1.0, "at": "grid:9"}
PRIVATE = {**PLAIN, "protect": "rows"}


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        *[({**PLAIN, name: 1}, name) for name in ("noise", "mean", "design", "device", "dask", "kind")],
        *[({**PLAIN, name: 1}, name) for name in ("approximation", "calibration", "within", "ids")],
        *[({**PLAIN, name: 1}, name) for name in ("box", "levels", "cells", "rows", "n_people", "max_rows")],
        *[({**SET, name: 1}, name) for name in ("kernels", "stages", "seasons", "approximation")],
        *[({**SET, name: None}, name) for name in ("noise", "at", "bounds")],
        *[({**SET, "protect": "rows", name: 1}, name) for name in ("design", "kind", "device", "dask")],
        *[({**PRIVATE, name: 1}, name) for name in ("categories", "missing_inputs", "given", "max_rows")],
        *[({**SET, "outcome": "count", name: 1}, name) for name in ("design", "kind", "device", "dask")],
        ({**SET, "classes": ("a", "b"), "noise": 1.0}, "noise"),
        ({**SET, "kind": "function", "design": "max"}, "design"),
        ({**PLAIN, "protect": "people"}, "people"),
        ({**PLAIN, "protect": "outcomes", "people": "id"}, "people"),
        ({**PLAIN, "people": "id", "max_rows": 3}, "max_rows"),
        ({**PLAIN, "people": "height"}, "people"),
        ({**PRIVATE, "people": "id"}, "max_rows"),
        ({**PRIVATE, "people": "id", "max_rows": 3}, "n_people"),
        ({**PRIVATE, "people": "id", "max_rows": 3, "rows": 9}, "rows"),
        ({**PRIVATE, "people": "id", "max_rows": 3, "within": 1.0}, "within"),
        ({**PRIVATE, "people": "age", "max_rows": 3, "n_people": 9}, "people"),
        ({**PLAIN, "output": "age"}, "output"),
        ({**PLAIN, "outcome": "count", "bounds": None}, "bounds"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(asked, name):
    with pytest.raises(ArgumentError) as caught:
        check_together(asked)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"people": "height"}, "people"),
        ({"output": "age"}, "output"),
        ({"output": 3}, "output"),
        ({"columns": Columns((Column("age"),), "weight")}, "columns"),
        ({"columns": Columns((Column("age"),), "height", "id")}, "columns"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"within": 2.0}, "within"),
        ({"ids": "other"}, "ids"),
        ({"kind": "other"}, "kind"),
        ({"bounds": (2.0, 1.0)}, "bounds"),
        ({"noise": True}, "noise"),
        ({"inducing": 0}, "inducing"),
        ({"kernel": None, "kernels": ("Nice",)}, "kernels"),
        ({"kernel": None, "kernels": 3}, "kernels"),
        ({"kernel": None, "stages": 40}, "stages"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(changes, name):
    with pytest.raises(ArgumentError) as caught:
        replace(KNOWN, **changes)
    assert caught.value.name == name
