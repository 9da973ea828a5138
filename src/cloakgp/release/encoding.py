"""How a release becomes the arrays and words of a file, and back: one form, whatever was released.

A plan's manifest says what was promised and modelled, and its first stage; a release's, all stages that were
answered, and what was learned. A stage's arrays have names that end with its number; earlier releases that a
plan was given come first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.cells import Cells, fill_cells
from cloakgp.data.grid import Grid
from cloakgp.data.merging import Inputs, distinct
from cloakgp.data.people import People, rows_each
from cloakgp.files import container, reading, schema, signing
from cloakgp.files.container import Array, ReleaseFileError
from cloakgp.files.labels import Labels
from cloakgp.files.schema import FORMAT, PER_ROW, PLAN_ARRAYS, SCHEMA, STAGE_ARRAYS
from cloakgp.kernels import Kernel, as_kernel
from cloakgp.kernels.specs import fits, is_custom, stored_kernel
from cloakgp.ledger.chain import Receipt
from cloakgp.measure.certificate import Certificate
from cloakgp.measure.unit import Population
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.hyperprior import Candidate, Hyperprior, Known, Prior, Setting
from cloakgp.model.inducing import APPROXIMATIONS
from cloakgp.model.outcome import outcome_named
from cloakgp.model.windows import RowMeans, evaluated
from cloakgp.release.readouts import rows_of_function
from cloakgp.release.stages import Given, Rule, Stage, grid_inputs

_CELLS = {"cells": "centres", "scale": "scale", "counts": "counts", "means": "means", "spreads": "spreads"}
"""Arrays of cells, and what they are called there."""
LARGEST_INPUTS = 2**26
"""Bytes of X up to which a file that has a digest of it holds it, too."""


def encode(release: Any, sign_with: Any = None) -> bytes:
    """The bytes of a release file."""
    receipt = release.receipt
    manifest, arrays = _described(release.plan, release.stages)
    manifest["ledger"] = None if receipt is None else {"entry": receipt.entry, "head": receipt.head}
    paid = {} if receipt is None else {"dataset": receipt.dataset}
    manifest[schema.CUSTODIANS_WORDS] = release.labels.words() | paid
    manifest["learned"] = [
        {**_setting_words(setting), "weight": weight}
        for setting, weight in zip(release.settings, release.weights.tolist(), strict=True)
        if not setting.known
    ]
    signature = None
    if sign_with is not None:
        signature = signing.sign(container.seal(manifest, arrays)["sha256"], sign_with)
    return container.pack(manifest, arrays, signature)


def _setting_words(setting: Setting) -> dict[str, Any]:
    """All but categories and seasons, which are the prior's; shares only where there are some."""
    left_out = {"categories", "seasons"} | (set() if setting.shares else {"shares"})
    return {name: value for name, value in asdict(setting).items() if name not in left_out}


def encode_plan(plan: Any) -> bytes:
    """A plan as a ledger keeps it with its charge: all that the release file will hold, but no answer."""
    manifest, arrays = _described(plan)
    return container.pack(manifest | {"format": schema.PLAN_FORMAT}, arrays)


def digest(plan: Any) -> str:
    """SHA-256 of what the plan's release file will hold, without answers and receipt."""
    return reading.plan_digest(*_described(plan))


def asks_the_same(one: Any, other: Any) -> bool:
    """Whether two plans are for one question: alike but for late digits, and for what was designed."""
    (words, arrays), (own_words, own_arrays) = _described(one), _described(other)
    for found in (words, own_words):
        found["stages"], found["certificate"]["parts"] = len(found["stages"]), []
    return _is_close(words, own_words) and all(
        arrays[name].shape == own_arrays[name].shape and np.allclose(arrays[name], own_arrays[name])
        for name in ("X_star", "weights")
    )


def _is_close(one: Any, other: Any) -> bool:
    """Whether two descriptions are the same but for late digits."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_close(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_is_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6)
    return type(one) is type(other) and bool(one == other)


def _described(plan: Any, stages: Sequence[Stage] = ()) -> tuple[dict[str, Any], dict[str, Array]]:
    """A plan as words and arrays: what was given to it, and these stages, or its first one."""
    rule: Rule = plan
    inputs_sha256 = None if rule.cells is None else rule.cells.digest
    arrays: dict[str, Any] = {"X_star": rule.X_star, "weights": rule.weights}
    small = isinstance(rule.X, np.ndarray) and rule.X.nbytes <= LARGEST_INPUTS
    if rule.X is not None and (inputs_sha256 is None or small):
        arrays["X"] = rule.X
    if rule.cells is not None:
        arrays |= {name: getattr(rule.cells, own) for name, own in _CELLS.items()}
        arrays |= {} if rule.cells.own is None else {"rows_each": rule.cells.own}
    if rule.support is not None:
        arrays["inducing"] = rule.support
    model, own = _model_words(rule)
    arrays |= own
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "unit": plan.certificate.unit,
        "certificate": plan.certificate.to_dict(),
        "model": model,
        "inputs_sha256": inputs_sha256,
        "kappa": rule.kappa,
        "rule": rule.version,
        "given": [_given_words(given) for given in rule.given],
        "stages": [],
    }
    if rule.partition:
        manifest[schema.PEOPLE] = {"sha256": rule.partition, "within": rule.within}
        if "X" in arrays and rule.people is not None:
            arrays["people"] = rule.people.labels
    if rule.population is None:
        manifest |= schema.table_words(rule.columns, rule.rows)
    else:
        size, most = rule.population.size, rule.population.max_rows
        manifest["grid"] = {"axes": rule.population.grid.words(), "size": size, "max_rows": most}
    arrays = {name: np.asarray(array, dtype=PLAN_ARRAYS[name][0]) for name, array in arrays.items()}
    earlier = [stage for given in rule.given for stage in given.stages]
    for number, stage in enumerate([*earlier, *(stages or [plan.first])]):
        words, own = stage.described()
        arrays |= {f"{name}_{number}": np.asarray(a, STAGE_ARRAYS[name][0]) for name, a in own.items()}
        manifest["stages"].append(words)
    return manifest, arrays


def _model_words(rule: Rule) -> tuple[dict[str, Any], dict[str, Any]]:
    """The model, known or to be learned; and arrays of what it says of each row."""
    words: dict[str, Any] = {
        "bounds": rule.bounds,
        "outcome": rule.outcome.name,
        "classes": rule.outcome.classes,
    }
    gp = rule.prior.gp
    if gp is None:
        return words | {"prior": asdict(rule.prior)}, {}
    arrays: dict[str, Any] = {}
    (lower, upper), mean = gp.bounds, gp.mean
    if not isinstance(lower, float):
        arrays |= {"lower": lower, "upper": upper}
        words["bounds"] = PER_ROW
    if isinstance(mean, RowMeans):
        arrays |= {"mean_rows": mean.rows, "mean_star": mean.star}
    if not isinstance(gp.noise, float):
        arrays["noise"] = gp.noise
    words["kernel"] = gp.kernel.to_spec()
    words["approximation"] = None if rule.support is None else gp.approximation
    words["noise"] = gp.noise if isinstance(gp.noise, float) else PER_ROW
    words["mean"] = mean if isinstance(mean, float) else PER_ROW
    return words, arrays


def _given_words(given: Given) -> dict[str, Any]:
    words = {name: getattr(given, name) for name in ("epsilon", "delta", "mu", "shares", "bounds")}
    return words | {"most": given.n_measurements, "stages": len(given.stages)}


def plan_parts(
    manifest: dict[str, Any], arrays: dict[str, Array], kernel: Any = None, mean: Any = None
) -> tuple[Rule, Stage]:
    """What a plan is made of that a manifest and arrays describe which fit the schema."""
    certificate, model = Certificate.from_dict(manifest["certificate"]), manifest["model"]
    # What is wrong with what a reader gives is no fault of the file.
    kernel = given_kernel(model["kernel"], kernel) if "kernel" in model else None
    mean = _row_means(arrays, mean) if model.get("mean") == PER_ROW else model.get("mean")
    try:
        rule = _rule(manifest, arrays, certificate, kernel, mean)
    except ReleaseFileError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseFileError(f"release file has a model that makes no sense: {error}") from None
    if rule.grid is not None:
        if rule.prior.gp is None and rule.prior.categories != rule.grid.columns.categories:
            raise ReleaseFileError("release file: its model's categories are not those of the grid.")
        if arrays["X_star"].shape[1] != len(rule.grid.axes):
            raise ReleaseFileError("release file: its arrays are not for the cells and inputs of the grid.")
    columns = {arrays[name].shape[1] for name in arrays if name.startswith("matrix_")}
    if len(rule.inputs) and columns and columns != {len(rule.inputs)}:
        raise ReleaseFileError("release file: its matrices do not have a column for each distinct row of X.")
    given, at = [], 0
    for one in manifest["given"]:
        numbers = one["epsilon"], one["delta"], one["mu"], one["most"], tuple(one["shares"])
        earlier = Given(*numbers, (one["bounds"][0], one["bounds"][1]))
        own = (_stage(manifest, arrays, rule, at + n, n, earlier) for n in range(one["stages"]))
        given.append(replace(earlier, stages=tuple(own)))
        at += one["stages"]
    rule = replace(rule, given=tuple(given))
    return rule, replace(_stage(manifest, arrays, rule, at, 0), answer=None)


def _stage(
    manifest: dict[str, Any],
    arrays: dict[str, Array],
    rule: Rule,
    at: int,
    number: int,
    earlier: Given | None = None,
) -> Stage:
    """The stage that is number `at` in a file, and number `number` of its own release."""
    own = {name: arrays[key] for name in STAGE_ARRAYS if (key := f"{name}_{at}") in arrays}
    return Stage.from_described(manifest["stages"][at], own, rule, number, earlier)


def _rule(manifest: dict[str, Any], arrays: dict[str, Array], c: Certificate, kernel: Any, mean: Any) -> Rule:
    columns, rows = schema.table_of(manifest)
    words, people = manifest.get(schema.PEOPLE), None
    if "people" in arrays:
        people = People(arrays["people"].astype(np.intp), c.ids)
    population, grid = None, manifest.get("grid")
    if grid is not None:
        population = Population(Grid.from_words(grid["axes"]), grid["size"], grid["max_rows"])
        columns = population.grid.columns
    prior = _prior(manifest["model"], arrays, kernel, mean)
    cells, X, star = None, arrays.get("X"), arrays["X_star"]
    alone = prior.gp is not None and manifest["stages"][-1]["readout"] is not None
    if population is not None:
        inputs = grid_inputs(population)
    elif "cells" in arrays:
        cells = _cells(manifest, arrays, prior.category_columns(star.shape[1]))
        inputs = prior.gp.seen_in(cells) if prior.gp is not None and alone else cells.inputs
    elif X is None:
        inputs = Inputs(star[:0], 0.0, None)
    elif prior.gp is not None and alone:
        inputs = rows_of_function(prior.gp, X, c.parts[0].bound)
    else:
        inputs = distinct(X, rows_each(people))
    return Rule(
        certificate=c,
        prior=prior,
        bounds=tuple(manifest["model"]["bounds"]) if prior.gp is None else prior.gp.limits,
        X=X,
        inputs=inputs,
        X_star=star,
        weights=arrays["weights"],
        support=arrays.get("inducing"),
        kappa=manifest["kappa"],
        cells=cells,
        version=manifest["rule"],
        people=people,
        within=1.0 if words is None else words["within"],
        partition="" if words is None else words["sha256"],
        columns=columns,
        rows=rows,
        outcome=outcome_named(manifest["model"]["outcome"], manifest["model"]["classes"]),
        population=population,
    )


def _cells(manifest: dict[str, Any], arrays: dict[str, Array], categories: tuple[int, ...]) -> Cells:
    where, labels = (arrays["cells"], arrays["scale"]), None
    if "X" in arrays:
        labels = fill_cells(arrays["X"], *where, None, categories).labels
    own: dict[str, Any] = {own: arrays[name] for name, own in _CELLS.items()}
    return Cells(**own, labels=labels, digest=manifest["inputs_sha256"], own=arrays.get("rows_each"))


def _prior(words: dict[str, Any], arrays: dict[str, Array], kernel: Any, mean: Any) -> Prior:
    if "prior" in words:
        return Hyperprior(**words["prior"])
    outcome, noise = words["outcome"], words["noise"]
    noise = arrays["noise"] if noise == PER_ROW else noise
    bounds = (arrays["lower"], arrays["upper"]) if words["bounds"] == PER_ROW else words["bounds"]
    named: Any = {"outcome": outcome, "classes": words["classes"] or None}
    inducing = arrays.get("inducing"), words["approximation"] or APPROXIMATIONS[0]
    return Known(GaussianProcess(kernel, noise, bounds, mean, *inducing, **named))


def given_kernel(spec: dict[str, Any], kernel: Any) -> Kernel:
    """The kernel that a file describes; where it is a custom one, the one that is given, if it fits."""
    given = None if kernel is None else as_kernel(kernel)
    if given is None or not is_custom(spec):
        return stored_kernel(spec)
    if not fits(given.to_spec(), spec):
        raise ArgumentError(
            "kernel",
            "must have the parts that the file holds of it",
            remedy="Give the whole kernel, as it was when the release was made.",
        )
    return given


def _row_means(arrays: dict[str, Array], given: Any) -> RowMeans:
    """The prior mean at the rows and the test points; elsewhere by the function that a reader gives."""
    X_star, rows, star = arrays["X_star"], arrays["mean_rows"], arrays["mean_star"]
    X = None if "cells" in arrays else arrays.get("X")  # of cells, it is the mean over their rows
    if given is None:
        return RowMeans(rows, None, X, X_star, star)
    if not callable(given):
        raise ArgumentTypeError("mean", "must be the function of X that the release was planned with")
    for where, known in ((X_star, star), (X, rows)):
        if where is not None and not np.allclose(evaluated(given, "mean", where), known, rtol=1e-9):
            raise ArgumentError("mean", "must be the function of X that the release was planned with")
    return RowMeans(rows, given, None, X_star, star)


ReleaseParts = tuple[tuple[Stage, ...], tuple[Candidate, ...], FloatArray, Receipt | None, Labels]
"""What a release has that its plan has not."""


def release_parts(manifest: dict[str, Any], arrays: dict[str, Array], rule: Rule) -> ReleaseParts:
    """What a release is made of, beside its plan, that a manifest and arrays describe."""
    before = sum(one["stages"] for one in manifest["given"])
    own = tuple(
        _stage(manifest, arrays, rule, at, at - before) for at in range(before, len(manifest["stages"]))
    )
    settings: list[Candidate] = []
    weights = []
    prior: Any = rule.prior
    for one in manifest["learned"]:
        words = {name: value for name, value in one.items() if name != "weight"}
        words |= {name: tuple(words.get(name, ())) for name in ("lengthscale", "shares")}
        settings.append(prior.setting(**words))
        weights.append(one["weight"])
    if not settings:
        settings, weights = [Known(prior.gp)], [1.0]
    receipt = None
    if manifest["ledger"] is not None:
        receipt = Receipt(manifest[schema.CUSTODIANS_WORDS]["dataset"], **manifest["ledger"])
    labels = Labels.from_words(manifest[schema.CUSTODIANS_WORDS])
    return own, tuple(settings), np.array(weights), receipt, labels
