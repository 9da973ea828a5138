"""Habits from other libraries publish nothing: ``plan(X, y)``, and a table of inputs that still has y."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cloakgp
from cloakgp import ArgumentError, AutoGP, Columns, Grid, PrivateGPClassifier, PrivateGPRegressor, binning
from cloakgp.estimators import RepeatedFitWarning
from cloakgp.kernels import EQ

PROMISE = {"epsilon": 1.0, "delta": 1e-3}
GP = cloakgp.GP(EQ(20.0, variance=400.0), 25.0, (0.0, 250.0))
LEARNED = AutoGP((0.0, 250.0), stages=2)
GRID = Grid({"age": (0.0, 80.0)}, 8)
BINS = {"edges": 4, "bounds": (0.0, 250.0), "epsilon": 1.0}
ALONE = {"kernel": EQ(20.0), "noise": 25.0, "bounds": (0.0, 250.0), "epsilon": 1.0}
CANDIDATES = cloakgp.candidates(kernel=EQ, lengthscale=[5.0, 20.0], noise=25.0, bounds=(0.0, 250.0))
X = np.linspace(1.0, 79.0, 12)
Y = 171.25 + np.arange(12.0)
FAR = [30.0]


# ---------------------------------------------------------------- without a name

PLANNING = {
    "GP.plan": lambda *given: GP.plan(*given, **PROMISE),
    "GP.compare": lambda *given: GP.compare(*given, **PROMISE),
    "GP.planner": lambda *given: GP.planner(*given),
    "GP.plan_function": lambda *given: GP.plan_function(*given, **PROMISE),
    "AutoGP.plan": lambda *given: LEARNED.plan(*given, **PROMISE),
    "GP.plan_rows": lambda *given: GP.plan_rows(GRID, 12, *given[1:], **PROMISE),
    "AutoGP.plan_rows": lambda *given: LEARNED.plan_rows(GRID, 12, *given[1:], **PROMISE),
    "Planner.plan": lambda *given: GP.planner(X, X_star=FAR).plan(*given[1:], **PROMISE),
    "Planner.preview": lambda *given: GP.planner(X, X_star=FAR).preview(*given[1:], **PROMISE),
    "Planner.compare": lambda *given: GP.planner(X, X_star=FAR).compare(*given[1:], **PROMISE),
    "plan_selection": lambda *given: cloakgp.plan_selection(CANDIDATES, *given, epsilon=1.0),
    "binning.plan": lambda *given: binning.plan(*given, **BINS),
    "binning.local": lambda *given: binning.local(*given, **ALONE),
}


@pytest.mark.parametrize("function", PLANNING)
@pytest.mark.parametrize(
    "given",
    [
        (X, Y),
        (Y, X),
        (pd.DataFrame({"age": X}), pd.Series(Y, name="height")),
        (pd.Series(Y, name="height"), pd.DataFrame({"age": X})),
        (X, Y, FAR),
        (X.tolist(), Y.tolist()),
    ],
    ids=["X, y", "y, X", "a frame and a Series", "a Series and a frame", "X, y, X_star", "lists"],
)
def test_a_plan_never_sees_outcomes(function, given):
    with pytest.raises(ArgumentError) as error:
        PLANNING[function](*given)
    assert isinstance(error.value, TypeError)
    assert error.value.name == function.split(".")[-1]
    assert "give them to release" in error.value.expected
    has_points = not function.startswith("Planner") and function not in ("GP.plan_function", "plan_selection")
    assert ("X_star=" in error.value.remedy) == has_points
    assert "171" not in str(error.value)


@pytest.mark.parametrize("call", [GP.plan, LEARNED.plan, GP.compare])
def test_outcomes_that_are_named_test_points_are_too_few_columns(call):
    two = np.column_stack([X, X**2])
    with pytest.raises(ArgumentError) as error:
        call(two, X_star=Y, **PROMISE)
    assert (error.value.name, error.value.got) == ("X_star", "1")
    assert "2 column(s), as X has" in error.value.expected
    with pytest.raises(ArgumentError) as error:
        call(pd.DataFrame({"age": X, "size": X}), X_star=pd.Series(Y, name="height"), **PROMISE)
    assert error.value.name == "X_star"
    assert "171" not in str(error.value)


@pytest.mark.parametrize("model", [GP, LEARNED])
def test_outcomes_instead_of_a_grid_are_not_quoted(model):
    for given, name in (((X, Y), "grid"), ((GRID, Y), "n_rows")):
        with pytest.raises(ArgumentError) as error:
            model.plan_rows(*given, **PROMISE)
        assert error.value.name == name
        assert "171" not in str(error.value)
    with pytest.raises(ArgumentError) as error:
        model.plan_rows(Grid({"age": (0, 80), "size": (0, 9)}, 4), 12, X_star=Y, **PROMISE)
    assert error.value.name == "X_star"
    assert "171" not in str(error.value)


# ---------------------------------------------------------------- a table that still has y

BOTH = {"age": X, "height": Y}
PLANS = {
    "GP": lambda table: GP.plan(table, X_star=[[30.0] * len(BOTH)], **PROMISE),
    "inducing": lambda table: cloakgp.GP(EQ(20.0), 25.0, (0, 250), inducing=5).plan(
        table, X_star=[[30.0] * len(BOTH)], **PROMISE
    ),
    "AutoGP": lambda table: LEARNED.plan(table, **PROMISE),
    "yes/no": lambda table: AutoGP(outcome="yes/no", stages=2).plan(table, **PROMISE),
    "classes": lambda table: AutoGP(classes=(0, 1, 2), stages=2).plan(table, **PROMISE),
    "function": lambda table: GP.plan_function(table, **PROMISE),
    "selection": lambda table: cloakgp.plan_selection(CANDIDATES, table, epsilon=1.0),
    "bins": lambda table: binning.plan(table, X_star=[[30.0] * len(BOTH)], **BINS),
    "alone": lambda table: binning.local(table, X_star=[[30.0] * len(BOTH)], **ALONE),
}


def tables():
    pl = pytest.importorskip("polars")
    return {"pandas": pd.DataFrame(BOTH), "polars": pl.DataFrame(BOTH), "pyarrow": pa.table(BOTH)}


def alone(table):
    """y as its library gives it: a Series, and a table with one column."""
    one = table.select(["height"]) if hasattr(table, "select") else table[["height"]]
    return [one] if isinstance(table, pa.Table) else [table["height"], one]


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_an_outcome_with_the_name_of_an_input_is_refused_before_anything_is_spent(kind, library, tmp_path):
    table = tables()[library]
    plan, ledger = PLANS[kind](table), cloakgp.Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("kung", epsilon=9.0, delta=0.1)
    spend = plan.select if kind == "selection" else plan.release
    for y in alone(table):
        for paid in ({}, {"ledger": ledger, "dataset": "kung"}):
            with pytest.raises(ArgumentError) as error:
                spend(y, **paid)
            assert error.value.name == "y"
            assert "171" not in str(error.value)
    assert len(ledger.entries("kung")) == 1  # the budget's own


@pytest.mark.parametrize("model", [GP, LEARNED])
@pytest.mark.parametrize("X_in", [{"age": X}, pd.DataFrame(BOTH)], ids=["a mapping", "a frame"])
def test_whole_rows_have_an_outcome_that_is_no_input_of_the_grid(model, X_in):
    plan = model.plan_rows(GRID, 12, **PROMISE)
    for y in (pd.Series(X, name="age"), pd.DataFrame({"age": X})):
        with pytest.raises(ArgumentError) as error:
            plan.release(X_in, y)
        assert error.value.name == "y"
    plan.release(X_in, pd.Series(Y, name="height"))  # what else is in a table of private rows is not read


def test_ids_are_public_too():
    table = pd.DataFrame({"age": X, "who": np.arange(12) // 2})
    for model in (GP, LEARNED):
        with pytest.raises(ArgumentError) as error:
            model.plan(table, X_star=FAR, people="who", **PROMISE).release(table["who"])
        assert error.value.name == "y"


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(Y),
        pd.Series(Y, name="height"),
        pd.Series(Y, name=0),
        pd.DataFrame({"height": Y}),
        Y,
        Y.tolist(),
    ],
    ids=["no name", "another name", "a number", "a frame", "an array", "a list"],
)
def test_other_outcomes_are_taken(y):
    for given in (pd.DataFrame({"age": X}), pd.DataFrame(X), pd.Series(X, name="age"), X):
        GP.plan(given, X_star=FAR, **PROMISE).release(y)
        GP.plan_function(given, **PROMISE).release(y)
        binning.plan(given, X_star=FAR, **BINS).release(y)


def test_a_series_of_polars_has_an_empty_name_if_it_has_none():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"age": X, "who": np.arange(12)})
    GP.plan(table[["age"]], X_star=FAR, **PROMISE).release(pl.Series(Y))
    GP.plan(table, X_star=FAR, people="who", **PROMISE).release(pl.Series(Y))


@pytest.mark.parametrize(
    "plan",
    [lambda **more: GP.plan(X_star=FAR, **more), LEARNED.plan, GP.plan_function],
    ids=["GP", "AutoGP", "function"],
)
def test_a_table_that_still_has_what_is_called_the_outcome_is_refused(plan):
    columns = Columns.of(pd.DataFrame({"age": X}), response="height")
    with pytest.raises(ArgumentError) as error:
        plan(X=pd.DataFrame(BOTH), columns=columns, **PROMISE)
    assert error.value.name == "X"
    assert "height" in error.value.got
    with pytest.raises(ArgumentError):
        Columns.of(pd.DataFrame(BOTH), response="height")


# ---------------------------------------------------------------- estimators


@pytest.mark.filterwarnings("ignore", category=RepeatedFitWarning)
@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "model",
    [
        PrivateGPRegressor(bounds=(0, 250), epsilon=1.0),
        PrivateGPRegressor(EQ(20.0), noise=25.0, bounds=(0, 250), epsilon=1.0),
        PrivateGPClassifier((0, 1), epsilon=1.0),
    ],
    ids=["learned", "known", "classes"],
)
def test_an_estimator_refuses_y_among_its_inputs(model, library, tmp_path):
    table, ledger = tables()[library], cloakgp.Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("kung", epsilon=9.0, delta=0.1)
    model.set_params(ledger=ledger, dataset="kung")
    with pytest.raises(ArgumentError) as error:
        model.fit(table, table["height"])
    assert error.value.name == "y"
    assert not hasattr(model, "release_")
    assert len(ledger.entries("kung")) == 1
