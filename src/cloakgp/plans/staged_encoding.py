"""How a release in stages becomes the arrays and words of a file, and back."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.files import container, reading, schema, signing
from cloakgp.files.container import Array, ReleaseFileError
from cloakgp.files.labels import Labels
from cloakgp.files.schema import FORMAT, SCHEMA
from cloakgp.files.staged_schema import STAGE_ARRAYS, STAGED
from cloakgp.ledger.charge import Receipt
from cloakgp.measurements.lattice import IntArray
from cloakgp.measurements.staged_certificate import StagedCertificate
from cloakgp.measurements.whole_rows import Population
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Candidate, Hyperprior, Known, KnownSetting, Setting
from cloakgp.model.outcome import CHANCES, REAL
from cloakgp.plans.encoding import LARGEST_INPUTS, custodians_words, given_kernel
from cloakgp.plans.row_stages import RowRule
from cloakgp.plans.stages import Given, Promise, Rule, Stage, StagePlan
from cloakgp.rows.cells import Cells, fill_cells
from cloakgp.rows.grid import Grid
from cloakgp.rows.merging import Groups
from cloakgp.rows.people import People, distinct_rows

if TYPE_CHECKING:
    from cloakgp.plans.staged import StagedPlan, StagedRelease


def encode(release: StagedRelease, sign_with: Any = None) -> bytes:
    """The bytes of a release file."""
    receipt = release.receipt
    manifest, arrays = _described(release.plan)
    manifest["ledger"] = None if receipt is None else {"entry": receipt.entry, "head": receipt.head}
    manifest[schema.CUSTODIANS_WORDS] = custodians_words(receipt, release.labels)
    manifest["learned"] = [
        {**_setting_words(setting), "weight": weight}
        for setting, weight in zip(release.settings, release.weights.tolist(), strict=True)
        if isinstance(setting, Setting)
    ]
    first = len(manifest["stages"]) - 1
    for number, stage in enumerate(release.stages, start=first):
        words, own = stage.plan.described()
        manifest["stages"][number:] = [words]
        arrays |= _numbered(own | {"z": stage.answer}, number)
    signature = None
    if sign_with is not None:
        signature = signing.sign(container.sealed(manifest, arrays)["sha256"], sign_with)
    return container.pack(manifest, arrays, signature)


def _setting_words(setting: Setting) -> dict[str, Any]:
    """All but categories and seasons, which are the prior's; shares only where there are some."""
    words = asdict(setting) | {"lengthscale": list(setting.lengthscale), "shares": list(setting.shares)}
    del words["categories"], words["seasons"]
    return {name: value for name, value in words.items() if name != "shares" or value}


def encode_plan(plan: StagedPlan) -> bytes:
    """The bytes of a plan's file."""
    manifest, arrays = _described(plan)
    return container.pack(manifest | {"format": schema.PLAN_FORMAT}, arrays)


def asks_the_same(one: StagedPlan, other: StagedPlan) -> bool:
    """Whether two plans are for one question: alike but for late digits, and for what was designed."""
    (words, arrays), (own_words, own_arrays) = _described(one), _described(other)
    same = _is_close(
        {**words, "stages": len(words["stages"])}, {**own_words, "stages": len(own_words["stages"])}
    )
    where = ("X_star", "weights")
    return same and all(
        arrays[name].shape == own_arrays[name].shape and np.allclose(arrays[name], own_arrays[name])
        for name in where
    )


def _is_close(one: Any, other: Any) -> bool:
    """Whether two descriptions are the same but for late digits."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_close(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6)
    return type(one) is type(other) and bool(one == other)


def digest(plan: StagedPlan) -> str:
    """SHA-256 of what the plan's file will hold."""
    return reading.plan_digest(*_described(plan))


def _numbered(arrays: dict[str, Array], number: int) -> dict[str, Array]:
    return {f"{name}_{number}": np.asarray(a, dtype=STAGE_ARRAYS[name][0]) for name, a in arrays.items()}


def _described(plan: StagedPlan) -> tuple[dict[str, Any], dict[str, Array]]:
    """A plan as words and arrays: what was given to it, and its first stage."""
    rule = plan.rule
    arrays: dict[str, Any] = {"X_star": rule.X_star, "weights": rule.weights}
    if isinstance(rule, RowRule):
        pass  # inputs are private
    elif rule.cells is None or (isinstance(rule.X, np.ndarray) and rule.X.nbytes <= LARGEST_INPUTS):
        arrays["X"] = rule.X
    if rule.cells is not None:
        arrays["cells"] = rule.cells.centres
    if rule.support is not None:
        arrays["inducing"] = rule.support
    arrays = {name: np.asarray(array, dtype="<f8") for name, array in arrays.items()}
    if rule.cells is not None:
        arrays["counts"] = np.asarray(rule.cells.counts, dtype="<i8")
        if rule.cells.own is not None:
            arrays["rows_each"] = np.asarray(rule.cells.own, dtype="<f8")
    words, own = plan.first.described()
    stages: list[dict[str, Any]] = []
    for stage in rule.all_stages(()):
        before, known = stage.plan.described()
        arrays |= _numbered(known | {"z": stage.answer}, len(stages))
        stages.append(before)
    arrays |= _numbered(own, len(stages))
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "release": STAGED,
        "unit": plan.certificate.unit,
        "certificate": plan.certificate.to_dict(),
        "model": _model_words(rule),
        "inputs_sha256": None if rule.cells is None else rule.cells.digest,
        "kappa": rule.kappa,
        "rule": rule.version,
        "given": [_given_words(given) for given in rule.given],
        "stages": [*stages, words],
    }
    if rule.partition:
        manifest[schema.PEOPLE] = {"sha256": rule.partition, "within": rule.within}
        if "X" in arrays and rule.people is not None:
            arrays["people"] = np.asarray(rule.people.labels, dtype="<i8")
    if not isinstance(rule, RowRule):
        manifest |= schema.table_words(rule.columns, rule.rows)
    else:
        manifest["grid"] = {"axes": rule.grid.words(), **rule.population._asdict()}
    return manifest, arrays


def _model_words(rule: Rule) -> dict[str, Any]:
    words: dict[str, Any] = {"bounds": list(rule.bounds)}
    if rule.outcome != REAL:  # real ones' files are as they were before there were others
        words["outcome"] = rule.outcome
    if rule.classes:
        words["classes"] = list(rule.classes)
    if isinstance(rule.prior, Known):
        gp = rule.prior.gp
        return {"kernel": gp.kernel.to_spec(), "noise": gp.noise, "mean": gp.level, **words}
    # Without categories and seasons, as it was before there were any.
    prior = {name: list(value) for name, value in asdict(rule.prior).items() if value}
    if "seasons" in prior:
        prior["seasons"] = [list(pair) for pair in prior["seasons"]]
    return {"prior": prior, **words}


def _given_words(given: Given) -> dict[str, Any]:
    promise = asdict(given.promise) | {"shares": list(given.promise.shares)}
    return promise | {"bounds": list(given.bounds), "stages": len(given.stages)}


def expect_staged(manifest: dict[str, Any]) -> None:
    """Raise if a file holds another kind of release."""
    if manifest["release"] != STAGED:
        raise ReleaseFileError("path: this file holds no release in stages; read it with cloakgp.load.")


def expect_rows(manifest: dict[str, Any], whole_rows: bool) -> None:
    """Raise if a file's inputs are private and should not be, or the other way round."""
    if ("grid" in manifest) != whole_rows:
        what = "public inputs" if whole_rows else "private inputs"
        raise ReleaseFileError(f"path: this file holds a release with {what}; read it with cloakgp.load.")


PlanParts = tuple[Rule, StagePlan, StagedCertificate]
"""What a plan is made of."""


def plan_parts(manifest: dict[str, Any], arrays: dict[str, Array], kernel: Any = None) -> PlanParts:
    """What a plan is made of that a manifest and arrays describe which fit the schema."""
    words = manifest["certificate"]
    before = tuple((pair[0], pair[1]) for pair in words["before"])
    certificate = StagedCertificate(**{**words, "shares": tuple(words["shares"]), "before": before})
    if "grid" in manifest:
        return *_row_parts(manifest, arrays, certificate, kernel), certificate
    settings = _settings(manifest, arrays, certificate, kernel) | _people_words(manifest)
    categories = settings["prior"].category_columns(arrays["X_star"].shape[1])
    cells, people = _cells(manifest, arrays, categories), _people(arrays)
    inputs = distinct_rows(arrays["X"], people) if cells is None else cells.inputs
    if arrays["matrix_0"].shape[1] != len(inputs):
        raise ReleaseFileError("release file: its matrices do not have a column for each distinct row of X.")
    given, stages = [], _Stages(manifest, arrays, inputs.groups)
    for one in manifest["given"]:
        promise = Promise(one["epsilon"], one["delta"], one["mu"], one["most"], tuple(one["shares"]))
        bounds = (one["bounds"][0], one["bounds"][1])
        answered = tuple(
            Stage(stages.plan(promise, bounds, number), stages.answer()) for number in range(one["stages"])
        )
        given.append(Given(promise, bounds, answered))
    columns, rows = schema.table_of(manifest)
    rule = Rule(
        X=arrays.get("X"),
        given=tuple(given),
        cells=cells,
        people=people,
        columns=columns,
        rows=rows,
        **settings,
    )
    return rule, stages.plan(rule.promise, rule.bounds, 0, rule.n_curves), certificate


def _settings(
    manifest: dict[str, Any], arrays: dict[str, Array], c: StagedCertificate, kernel: Any
) -> dict[str, Any]:
    """What every rule has."""
    try:
        prior = _prior(manifest["model"], kernel)
    except (TypeError, ValueError) as error:
        raise ReleaseFileError(f"release file has a model that makes no sense: {error}") from None
    return {
        "prior": prior,
        "bounds": tuple(manifest["model"]["bounds"]),
        "X_star": arrays["X_star"],
        "weights": arrays["weights"],
        "support": arrays.get("inducing"),
        "promise": Promise(c.epsilon, c.delta, c.mu, c.n_measurements, c.shares),
        "kappa": manifest["kappa"],
        "version": manifest["rule"],
        "outcome": manifest["model"].get("outcome", REAL),
        "classes": tuple(manifest["model"].get("classes", ())),
    }


def _row_parts(
    manifest: dict[str, Any], arrays: dict[str, Array], c: StagedCertificate, kernel: Any
) -> tuple[RowRule, StagePlan]:
    words = manifest["grid"]
    try:
        grid = Grid.from_words(words["axes"])
        columns = grid.columns
    except (TypeError, ValueError) as error:
        raise ReleaseFileError(f"release file has a grid that makes no sense: {error}") from None
    if arrays["matrix_0"].shape[1] != len(grid) or arrays["X_star"].shape[1] != len(grid.axes):
        raise ReleaseFileError("release file: its arrays are not for the cells and inputs of the grid.")
    population = Population(words["size"], words["max_rows"])
    settings = _settings(manifest, arrays, c, kernel)
    prior = settings["prior"]
    if isinstance(prior, Hyperprior) and prior.categories != grid.category_columns:
        raise ReleaseFileError("release file: its model's categories are not those of the grid.")
    rule = RowRule(X=None, grid=grid, population=population, columns=columns, **settings)
    return rule, rule.stage_plan(manifest["stages"][0], _own(arrays, 0), 0)


def _own(arrays: dict[str, Array], number: int) -> dict[str, Array]:
    """A stage's arrays."""
    return {name: arrays[key] for name in STAGE_ARRAYS if (key := f"{name}_{number}") in arrays}


def _cells(manifest: dict[str, Any], arrays: dict[str, Array], categories: tuple[int, ...]) -> Cells | None:
    if "cells" not in arrays:
        return None
    filled = fill_cells(arrays["X"], arrays["cells"], None, categories) if "X" in arrays else None
    labels = None if filled is None else filled.labels
    own = arrays.get("rows_each")
    return Cells(arrays["cells"], arrays["counts"], labels, manifest["inputs_sha256"], own)


def _people(arrays: dict[str, Array]) -> People | None:
    return People(arrays["people"].astype(np.intp)) if "people" in arrays else None


def _people_words(manifest: dict[str, Any]) -> dict[str, Any]:
    words = manifest.get(schema.PEOPLE)
    return {} if words is None else {"within": words["within"], "partition": words["sha256"]}


def _prior(words: dict[str, Any], kernel: Any) -> Hyperprior | Known:
    if "prior" in words:
        return Hyperprior(**{name: tuple(value) for name, value in words["prior"].items()})
    given = given_kernel(words["kernel"], kernel)
    outcome = words.get("outcome", REAL)
    noise = None if outcome in CHANCES else words["noise"]
    named: Any = {"outcome": outcome, "classes": words.get("classes")}
    return Known(GP(given, noise, words["bounds"], words["mean"], **named))


class _Stages:
    """The stages in a file, one after the other."""

    def __init__(self, manifest: dict[str, Any], arrays: dict[str, Array], groups: Groups | None) -> None:
        self._words, self._arrays, self._groups, self._next = manifest["stages"], arrays, groups, 0
        self._people = _people(arrays)
        self._unknown = schema.PEOPLE in manifest and self._people is None

    def plan(self, promise: Promise, bounds: tuple[float, float], number: int, classes: int = 1) -> StagePlan:
        """The next one's plan: number `number` of its own promise."""
        at = self._next
        own = _own(self._arrays, at)
        plan = StagePlan.from_described(
            self._words[at],
            own,
            promise,
            bounds,
            self._groups,
            number,
            self._people,
            unknown=self._unknown,
            classes=classes,
        )
        self._next += 1
        return plan

    def answer(self) -> IntArray:
        """What the last one was answered."""
        answer: IntArray = self._arrays[f"z_{self._next - 1}"]
        return answer


ReleaseParts = tuple[tuple[Stage, ...], tuple[Candidate, ...], FloatArray, Receipt | None, Labels]
"""What a release has that its plan has not."""


def release_parts(manifest: dict[str, Any], arrays: dict[str, Array], rule: Rule) -> ReleaseParts:
    """What a release is made of, beside its plan, that a manifest and arrays describe."""
    before = sum(one["stages"] for one in manifest["given"])
    own = tuple(
        Stage(rule.stage_plan(words, _own(arrays, at), at - before), arrays[f"z_{at}"])
        for at, words in enumerate(manifest["stages"][before:], start=before)
    )
    known: dict[str, Any] = {}
    if isinstance(rule.prior, Hyperprior):
        known = {"categories": rule.prior.categories, "seasons": rule.prior.seasons}
    settings: list[Candidate] = []
    weights = []
    for one in manifest["learned"]:
        words = {name: value for name, value in one.items() if name != "weight"}
        words |= {name: tuple(words.get(name, ())) for name in ("lengthscale", "shares")}
        settings.append(Setting(**words, **known))
        weights.append(one["weight"])
    if isinstance(rule.prior, Known):
        settings, weights = [KnownSetting(rule.prior.gp)], [1.0]
    receipt = None
    if manifest["ledger"] is not None:
        receipt = Receipt(manifest[schema.CUSTODIANS_WORDS]["dataset"], **manifest["ledger"])
    labels = Labels.from_words(manifest[schema.CUSTODIANS_WORDS])
    return own, tuple(settings), np.array(weights), receipt, labels
