"""The promise and the noise in plain words, for people who did not read the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.data.columns import Column, Columns
from cloakgp.data.grid import Grid
from cloakgp.designs import DESIGNS
from cloakgp.measure.certificate import Certificate
from cloakgp.measure.unit import OUTCOME, PERSON, PERSON_ROWS, ROW
from cloakgp.plots.shown import inducing_words
from cloakgp.posterior.model_check import ModelCheck
from cloakgp.release.plan import Plan
from cloakgp.release.release import Release
from cloakgp.workflow import releases


def promise(certificate: Certificate) -> list[str]:
    """What is promised to each person, in a few sentences."""
    c = certificate
    if c.insecure:
        return ["INSECURE: the noise came from a known seed. Nothing is promised to anyone."]
    # Two outcomes, equally likely beforehand: with Gaussian noise the best guess is right this often.
    chance = 100 * min(1.0, NormalDist().cdf(c.mu / 2) + c.delta_slack)
    times = "exp(epsilon)" + (f" = {math.exp(c.epsilon):.3g}" if c.epsilon < 20 else "")
    changed, which, what, _ = _OF_UNIT[c.unit]
    through = "one person" if "person" in c.unit else "one row"
    return [
        f"What was released would have come out with nearly the same probability if {changed}.",
        f"Somebody who knows everything else, and must tell which of two {which}, would be right "
        f"in at most {math.ceil(chance * 10) / 10:g} % of all cases. By tossing a coin it would be 50 %.",
        f"In the field's terms: ({c.epsilon:g}, {c.delta:g})-differential privacy for {what}. No result "
        f"becomes more than {times} times as likely through {through}, but for a probability of at most "
        f"{c.delta:g}.",
    ]


_OF_UNIT = {
    OUTCOME.name: (
        "any one row's outcome had been something else",
        "outcomes a row has",
        "the outcome of one row",
        "Each row's outcome is protected by itself: whoever has several rows is not protected with all of "
        "them. A plan that names the column of people protects each person, however many rows they have.",
    ),
    PERSON.name: (
        "all outcomes of any one person had been something else",
        "sets of outcomes a person has",
        "all outcomes of one person",
        "Who has which rows is public, too: not the ids, but which rows are the same person's.",
    ),
    ROW.name: (
        "any one row, inputs and outcome, had been any other",
        "rows is there",
        "one whole row",
        "Each row is protected by itself: whoever has several rows is not protected with all of them. A plan "
        "that names the column of people protects each person, with as many rows as it counts of each.",
    ),
    PERSON_ROWS.name: (
        "all rows of any one person, inputs and outcomes, had been any others",
        "sets of rows a person has",
        "all rows of one person",
        "Of each person no more rows count than the settings say.",
    ),
}
"""What could have been otherwise, what nobody can tell, what is protected, and what is not."""


def limits(hides_inputs: bool = False, lists_inputs: bool = True, unit: str = OUTCOME.name) -> list[str]:
    """What is not promised to whom a unit of protection names."""
    listed = "they are in the release file as they are"
    shown = f"The inputs are public: {listed if lists_inputs else _SUMS}, and so is the number of rows."
    if hides_inputs:
        shown = "The inputs are not in the file, but a row's input is not itself protected."
    if unit in (ROW.name, PERSON_ROWS.name):
        counted = "rows" if unit == ROW.name else "people"
        shown = (
            f"The number of {counted} is public, and so are the box and the cells that inputs are counted in."
        )
    return [
        shown,
        _OF_UNIT[unit][-1],
        "Other releases about the same people add to what is told. A ledger keeps count of that.",
        "Whatever was computed from the outcomes elsewhere is not covered: bounds, settings, or which rows "
        "to keep.",
    ]


_SUMS = "their digest, and the cells that they are in, are in the release file"


def lead(plan: Plan) -> str:
    """What a release is, in a sentence."""
    private = "outcomes" if plan.grid is None else "inputs and outcomes"
    return f"{plan.outcome.lead} private {private}, released under differential privacy."


def counted_people(plan: Plan) -> int:
    """How many people there are, where all of their rows are protected; else 0."""
    whole = plan.rule.population
    return 0 if whole is None or whole.max_rows is None else whole.size


def population(plan: Plan) -> str:
    """How many rows a plan is for; or how many people, and rows of each."""
    whole, people = plan.rule.population, counted_people(plan)
    if whole is not None and people:
        return f"at most {whole.each} rows of each of {people} people"
    return f"{plan.certificate.n_rows} rows"


def on_record(release: Release) -> str:
    """How a receipt is told: that of stages that follow from each other names the last one's answer."""
    return "Paid for by" if release.plan.alone else "On record up to"


# How much noise there is


def noise_summary(noise_std: FloatArray, bounds: tuple[float, float]) -> dict[str, float]:
    """How much privacy noise there is: smallest, median, root mean square and largest std."""
    return {
        "smallest": float(noise_std.min()),
        "median": float(np.median(noise_std)),
        "rms": float(np.sqrt(np.mean(noise_std**2))),
        "largest": float(noise_std.max()),
        "bounds_width": bounds[1] - bounds[0],
    }


def facts(release: Release, fit: ModelCheck | None) -> dict[str, Any]:
    """The promise, the noise, and whether the model fits: as plain data."""
    noise = noise_summary(releases.noise_of(release), release.plan.rule.bounds)
    check = None if fit is None else {**vars(fit), "words": fit.words}
    return {"certificate": release.certificate.to_dict(), "noise_std": noise, "model_check": check}


def noise_lines(summary: Mapping[str, float]) -> list[list[str]]:
    """(name, std, share of the bounds' width) of a noise summary."""
    width = summary["bounds_width"]
    names = {"smallest": "smallest", "median": "median", "rms": "root mean square", "largest": "largest"}
    return [
        [words, f"{summary[key]:.4g}", f"{100 * summary[key] / width:.2g} %"] for key, words in names.items()
    ]


# What was set: names and values for a table


def there(rows: Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    """Those rows of a table that have a value."""
    return [(name, str(value)) for name, value in rows if value]


def settings_rows(plan: Plan) -> list[tuple[str, str]]:
    """Everything that was set."""
    c, rule, alone = plan.certificate, plan.rule, plan.alone
    outcome, families = rule.outcome, rule.prior.kernels  # that it is learned among
    gp: Any = None if families else plan.gp
    low, high = gp.limits if alone else rule.bounds
    pairs = "" if not alone or isinstance(gp.bounds[0], float) else "one pair per row, within "
    model: list[tuple[str, Any]] = [
        ("model", f"learned on the way: lengthscales, signal and noise, kernel {' or '.join(families)}")
    ]
    if gp is not None:
        each: Any = gp.noise
        noise = f"variance {each:.6g}" if np.ndim(each) == 0 else f"{len(each)} variances, one per row"
        noise += f" times the {outcome.told}" if outcome.told else ""
        model = [
            ("kernel", repr(gp.kernel)),
            ("approximation", inducing_words(gp)),
            ("observation noise", outcome.scattered and noise),
        ]
    names = () if plan.columns is None else plan.columns.names
    mean = alone and (f"{gp.mean:g}" if isinstance(gp.mean, float) else "one per row")
    in_turn = ", under one promise; each is planned from what came out before it" if plan.stages > 1 else ""
    design = DESIGNS[c.design].text if c.design in DESIGNS else "the whole function, to be asked anywhere"
    rows = [
        ("public inputs" if plan.grid is None else "private inputs", ", ".join(names)),
        ("private output", plan.columns and plan.columns.response),
        ("promise", f"epsilon {c.epsilon:g}, delta {c.delta:g}, unit: {c.unit}"),
        *model,
        ("given", rule.given and f"{len(rule.given)} earlier release(s) of the same outcomes"),
        ("outcomes are", not alone and outcome.told and outcome.in_detail),
        ("bounds", not outcome.fixed_bounds and f"{pairs}{low:g} to {high:g}; outcomes outside are clipped"),
        ("prior mean", mean),
        ("design", alone and f"{c.design}: {design}"),
        ("calibration", alone and c.calibration),
        ("stages", not alone and f"{plan.stages}{in_turn}"),
        ("box", range_words(plan.grid)),
        ("rows", population(plan).removesuffix(" rows")),
        ("numbers released", f"{'' if alone else 'at most '}{c.n_measurements}"),
    ]
    return there(rows)


def range_words(grid: Grid | None) -> str:
    """Each input's range or levels; nothing where inputs are public."""
    axes = () if grid is None else grid.axes
    return "; ".join(f"{axis.name}: {_extent(grid, axis)}" for axis in axes)


def _extent(grid: Any, axis: Any) -> str:
    if axis.category:
        return ", ".join(map(str, axis.levels))
    low, high = (end if isinstance(end, str) else f"{end:g}" for end in grid.ends(axis))
    return f"{low} to {high} in {axis.cells} cells"


def column_rows(columns: Columns) -> list[tuple[str, str]]:
    """Each input, and what its numbers stand for."""
    return [(f"input {column.name}", _column_words(column)) for column in columns.inputs]


def _column_words(column: Column) -> str:
    if column.origin:
        return f"dates, in days since {column.origin}"
    if column.levels:
        shown, more = ", ".join(map(str, column.levels[:10])), len(column.levels) - 10
        return f"a category: {shown}" + (f" and {more} more" if more > 0 else "")
    return f"numbers, {column.unit}" if column.unit else "numbers"
