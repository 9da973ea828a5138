"""The promise and the noise in plain words, for people who did not read the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.files import schema
from cloakgp.measurements.staged_certificate import AnyCertificate
from cloakgp.measurements.unit import OUTCOME, PERSON, PERSON_ROWS, ROW
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.model.outcome import CHANCES, CLASSES, COUNT, REAL, YES_NO
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.predictions import Plan
from cloakgp.plans.staged import StagedPlan
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.plots import inducing_words
from cloakgp.plots.labels import outcome_of
from cloakgp.rows.columns import DATE, LEVEL, Column
from cloakgp.workflow import boxes
from cloakgp.workflow.outcomes import noise_words, outcome_words

_LEVELS = 10  # shown


def promise(certificate: AnyCertificate) -> list[str]:
    """What is promised to each person, in a few sentences."""
    c = certificate
    if c.insecure:
        return ["INSECURE: the noise came from a known seed. Nothing is promised to anyone."]
    # Two outcomes, equally likely beforehand: with Gaussian noise the best guess is right this often.
    chance = 100 * min(1.0, NormalDist().cdf(c.mu / 2) + c.delta_slack)
    times = "exp(epsilon)" + (f" = {math.exp(c.epsilon):.3g}" if c.epsilon < 20 else "")
    told = _TOLD[c.unit]
    return [
        f"What was released would have come out with nearly the same probability if {told.changed}.",
        f"Somebody who knows everything else, and must tell which of two {told.which}, would be right "
        f"in at most {math.ceil(chance * 10) / 10:g} % of all cases. By tossing a coin it would be 50 %.",
        f"In the field's terms: ({c.epsilon:g}, {c.delta:g})-differential privacy for {told.what}. No result "
        f"becomes more than {times} times as likely through {told.through}, but for a probability of at most "
        f"{c.delta:g}.",
    ]


class _Told(NamedTuple):
    """A unit of protection, in the sentences above."""

    changed: str
    which: str
    what: str
    through: str


_TOLD = {
    OUTCOME.name: _Told(
        "any one row's outcome had been something else",
        "outcomes a row has",
        "the outcome of one row",
        "one row",
    ),
    PERSON.name: _Told(
        "all outcomes of any one person had been something else",
        "sets of outcomes a person has",
        "all outcomes of one person",
        "one person",
    ),
    ROW.name: _Told(
        "any one row, inputs and outcome, had been any other", "rows is there", "one whole row", "one row"
    ),
    PERSON_ROWS.name: _Told(
        "all rows of any one person, inputs and outcomes, had been any others",
        "sets of rows a person has",
        "all rows of one person",
        "one person",
    ),
}
_WHOM = {
    OUTCOME.name: "Each row's outcome is protected by itself: whoever has several rows is not protected with "
    "all of them. A plan that names the column of people protects each person, however many rows they have.",
    PERSON.name: "Who has which rows is public, too: not the ids, but which rows are the same person's.",
    ROW.name: "Each row is protected by itself: whoever has several rows is not protected with all of them. "
    "A plan that names the column of people protects each person, with as many rows as it counts of each.",
    PERSON_ROWS.name: "Of each person no more rows count than the settings say.",
}


def limits(hides_inputs: bool = False, lists_inputs: bool = True, unit: str = OUTCOME.name) -> list[str]:
    """What is not promised to whom a unit of protection names."""
    shown = "The inputs are public: they are in the release file as they are, and so is the number of rows."
    if hides_inputs:
        shown = "The inputs are not in the file, but a row's input is not itself protected."
    elif not lists_inputs:
        shown = (
            "The inputs are public: sums over them and their digest are in the release file, and so is the "
            "number of rows."
        )
    if unit in (ROW.name, PERSON_ROWS.name):
        counted = "rows" if unit == ROW.name else "people"
        shown = (
            f"The number of {counted} is public, and so are the box and the cells that inputs are counted in."
        )
    return [
        shown,
        _WHOM[unit],
        "Other releases about the same people add to what is told. A ledger keeps count of that.",
        "Whatever was computed from the outcomes elsewhere is not covered: bounds, settings, or which rows "
        "to keep.",
    ]


_OUTCOMES = {
    REAL: "A Gaussian-process regression",
    YES_NO: "Probabilities of a yes",
    COUNT: "Rates of counts",
    CLASSES: "Probabilities of classes",
}


def lead(plan: AnyPlan) -> str:
    """What a release is, in a sentence."""
    private = "inputs and outcomes" if isinstance(plan, RowsPlan) else "outcomes"
    what = _OUTCOMES[outcome_of(plan)]
    of = "of" if outcome_of(plan) == REAL else "by a Gaussian process, from"
    return f"{what} {of} private {private}, released under differential privacy."


def population(plan: AnyPlan) -> str:
    """How many rows a plan is for; or how many people, and rows of each."""
    if isinstance(plan, RowsPlan) and plan.rule.population.max_rows is not None:
        return f"at most {plan.rule.population.each} rows of each of {plan.rule.population.size} people"
    return f"{plan.certificate.n_rows} rows"


def noise_summary(noise_std: FloatArray, bounds: tuple[float, float]) -> dict[str, float]:
    """How much privacy noise there is: smallest, median, root mean square and largest std."""
    return {
        "smallest": float(noise_std.min()),
        "median": float(np.median(noise_std)),
        "rms": float(np.sqrt(np.mean(noise_std**2))),
        "largest": float(noise_std.max()),
        "bounds_width": bounds[1] - bounds[0],
    }


def noise_lines(summary: Mapping[str, float]) -> list[tuple[str, str, str]]:
    """(name, std, share of the bounds' width) of a noise summary."""
    width = summary["bounds_width"]
    names = {"smallest": "smallest", "median": "median", "rms": "root mean square", "largest": "largest"}
    return [
        (words, f"{summary[key]:.4g}", f"{100 * summary[key] / width:.2g} %") for key, words in names.items()
    ]


DESIGNS = {
    "mse": "least noise on average over the test points",
    "max": "least noise at the worst test point",
    "posterior": "least error of denoised predictions",
    "volume": "the paper's smallest noise volume",
    "function": "the whole function, to be asked anywhere",
}


KINDS = {
    schema.PREDICTIONS: "predictions",
    schema.FUNCTION: "a function",
    schema.STAGED: "predictions, released in stages",
}


def on_record(kind: str) -> str:
    """How a release's receipt is told: that of one in stages names its last answer, not the charge."""
    return "On record up to" if kind == schema.STAGED else "Paid for by"


def settings_rows(
    plan: AnyPlan, inputs: list[str] | None = None, output: str | None = None
) -> list[tuple[str, str]]:
    """(name, value) of everything that was set, for a table."""
    rows = _learned_rows(plan) if isinstance(plan, StagedPlan) else _set_rows(plan)
    if output:
        rows.insert(0, ("private output", output))
    if inputs:
        kind = "private inputs" if isinstance(plan, RowsPlan) else "public inputs"
        rows.insert(0, (kind, ", ".join(inputs)))
    return rows


_EACH = "each is planned from what came out before it"


def _learned_rows(plan: StagedPlan) -> list[tuple[str, str]]:
    c, (low, high), prior = plan.certificate, plan.rule.bounds, plan.rule.prior
    model = [("kernel", repr(plan.gp.kernel)), *noise_words(plan.rule.outcome, plan.gp.noise)]
    if isinstance(prior, Hyperprior):
        model = [("model", learned_words(prior.kernels))]
    earlier, chances = len(plan.rule.given), plan.rule.outcome in CHANCES
    return [
        ("promise", f"epsilon {c.epsilon:g}, delta {c.delta:g}, unit: {c.unit}"),
        *model,
        *([("given", f"{earlier} earlier release(s) of the same outcomes")] if earlier else []),
        *outcome_words(plan.rule.outcome, plan.rule.classes),
        *([] if chances else [("bounds", f"{low:g} to {high:g}; outcomes outside are clipped")]),
        ("stages", "1" if plan.stages == 1 else f"{plan.stages}, under one promise; {_EACH}"),
        *([("box", "; ".join(boxes.range_words(plan.grid)))] if isinstance(plan, RowsPlan) else []),
        ("rows", population(plan).removesuffix(" rows")),
        ("numbers released", f"at most {c.n_measurements}"),
    ]


def column_words(column: Column) -> str:
    """What the numbers of an input stand for."""
    if column.kind == DATE:
        return f"dates, in days since {column.origin}"
    if column.kind == LEVEL:
        shown = ", ".join(map(str, column.levels[:_LEVELS]))
        more = len(column.levels) - _LEVELS
        return f"a category: {shown}" + (f" and {more} more" if more > 0 else "")
    return f"numbers, {column.unit}" if column.unit else "numbers"


def learned_words(kernels: Sequence[str]) -> str:
    """What is said in place of a kernel."""
    return f"learned on the way: lengthscales, signal and noise, kernel {' or '.join(kernels)}"


def _set_rows(plan: Plan | FunctionPlan) -> list[tuple[str, str]]:
    gp, c = plan.gp, plan.certificate
    noise = f"{gp.noise:.6g}" if isinstance(gp.noise, float) else f"{len(gp.noise)} variances, one per row"
    of_each = "" if isinstance(gp.bounds[0], float) else "one pair per row, within "
    rows = [
        ("promise", f"epsilon {c.epsilon:g}, delta {c.delta:g}, unit: {c.unit}"),
        ("kernel", repr(gp.kernel)),
        ("observation noise", f"variance {noise}"),
        ("bounds", f"{of_each}{gp.limits[0]:g} to {gp.limits[1]:g}; outcomes outside are clipped"),
        ("prior mean", f"{gp.mean:g}" if isinstance(gp.mean, float) else "one per row"),
        ("design", f"{c.design}: {DESIGNS.get(c.design, '')}"),
        ("calibration", c.calibration),
        ("rows", str(c.n_rows)),
        ("numbers released", str(c.n_measurements)),
    ]
    approximation = inducing_words(gp)
    if approximation is not None:
        rows.insert(2, ("approximation", approximation))
    return rows
