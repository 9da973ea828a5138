"""Plans, as fast as sliders move: what does not depend on the promise is worked out once and kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cloakgp.app import limits, models
from cloakgp.app.asked_model import (
    described_gp,
    is_staged,
    plan_of_rows,
    points_of,
    promise_of,
    staged_gp,
)
from cloakgp.app.cache import Cache
from cloakgp.app.errors import bad_input, public_work
from cloakgp.app.expected import (
    Expected,
    expected_of,
    expected_of_function,
    is_for,
    preview_of,
    rms,
    scaled,
)
from cloakgp.app.public_inputs import PublicInputs
from cloakgp.app.releases import Releases
from cloakgp.app.rough import rough_learned, rough_rows
from cloakgp.app.uploads import Uploads
from cloakgp.app.watching import listening
from cloakgp.app.work_queue import WorkQueue
from cloakgp.calibration import default_delta
from cloakgp.checks import FloatArray
from cloakgp.measurements.lattice import Measurement
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.planner import Planner
from cloakgp.plans.preview import Foreseen, preview
from cloakgp.plans.staged import StagedPlan
from cloakgp.rows.chunks import spread_evenly
from cloakgp.rows.people import People, as_people
from cloakgp.workflow.inputs import digest_of
from cloakgp.workflow.table_cells import is_coded

_AT_ONCE, _WAITING, _EACH, _PATIENCE = 3, 21, 8, 60.0
_NUMBERS = 6e7  # that all kept planners may hold, of 8 bytes each


class Planning:
    """Makes plans for settings, and says how noisy they are."""

    def __init__(self, uploads: Uploads, releases: Releases) -> None:
        self._uploads, self._releases = uploads, releases
        self._planners: Cache[Planner] = Cache(_NUMBERS, _numbers)
        self._functions: Cache[FunctionPlan] = Cache(8)
        self._foreseen: Cache[tuple[FunctionPlan, Foreseen]] = Cache(2)
        self._learned_plans: Cache[StagedPlan] = Cache(8)
        self._support: Cache[FloatArray | None] = Cache(64)
        self._queue = WorkQueue(_AT_ONCE, _WAITING, _EACH, _PATIENCE)

    @contextmanager
    def heavy(self) -> Iterator[None]:
        """A slot for work that takes the processor for a while; there are few. It ends if nobody waits."""
        with self._queue.slot(), listening():
            yield

    def inputs(self, asked: models.Settings) -> PublicInputs:
        """The input columns of a table that is not too large for these settings."""
        return self._uploads.inputs(asked.data, asked.inputs, _most_rows(asked), asked)

    def asked_of(self, asked: models.Settings) -> dict[str, Any]:
        """Of whom the settings ask: digests of the inputs and of who has which rows; or how many they are."""
        if asked.hides_inputs:
            return {"inputs": "", "size": self._size(asked)}
        found, people = self.inputs(asked), self._whose_rows(asked)
        told: dict[str, Any] = {"inputs": digest_of(found.complete)}
        if is_coded(found.columns):  # the same numbers may stand for other levels
            told["columns"] = found.columns.words()
        if people is not None:
            told["people"] = people.digest
        return told

    def _size(self, asked: models.Settings) -> int:
        """How many rows there are, or people: public where inputs are private."""
        return asked.n_people or self._uploads.rows(asked.data, _most_rows(asked))

    def settled(self, asked: models.Settings) -> models.Settings:
        """With the library's own delta if none is named: for so many rows, or people where they are meant."""
        if asked.delta is not None:
            return asked
        if asked.hides_inputs:
            n = self._size(asked)
        else:
            whose = self._whose_rows(asked)
            n = len(self.inputs(asked).complete) if whose is None else whose.n_people
        return asked.model_copy(update={"delta": default_delta(n)})

    def _whose_rows(self, asked: models.Settings) -> People | None:
        """Who has which of the rows that count; None where each row is its own."""
        people, found = self._people(asked), self.inputs(asked)
        if people is None:
            return None
        whose = people.labels[~np.isnan(found.X).any(axis=1)]
        return as_people(whose, len(whose))

    def _people(self, asked: models.Settings) -> People | None:
        if asked.people is None:
            return None
        return self._uploads.people(asked.data, asked.people, asked.encoding, asked.ids)

    def plan(self, asked: models.Settings) -> tuple[AnyPlan, Expected]:
        """The plan for these settings, and what to expect of it."""
        if is_staged(asked):
            staged = self._staged(asked)
            return staged, expected_of(staged)
        planner = self._planner(asked)
        with public_work():
            if asked.kind == "function":
                made = self._function(asked)
                foreseen = Foreseen.of(made, planner.X_star)
                return made, expected_of_function(asked, made, planner, foreseen)
            plan = planner.plan(**promise_of(asked), design=asked.design)
            return plan, expected_of(plan)

    def payer(self, asked: models.Settings) -> str | None:
        """Which data set must pay: the one whose releases are taken into account, if any are."""
        return self._releases.dataset_of(asked)

    def preview(self, asked: models.Settings, rough: bool = False) -> dict[str, Any]:
        """How much noise there will be, and where: public, free, and exact unless there are many rows.

        If the whole takes long, a rough one is of some rows that stand for all.
        """
        start = time.perf_counter()
        with self.heavy():
            asked = self.settled(asked)
            found = self._staged_preview(asked, rough) if is_staged(asked) else self._given(asked, rough)
        return {
            **found,
            "epsilon": asked.epsilon,
            "delta": asked.delta,
            "milliseconds": round(1000 * (time.perf_counter() - start)),
        }

    def _given(self, asked: models.Settings, rough: bool) -> dict[str, Any]:
        """For a model that is described. What does not hang on the promise is there already, or kept."""
        if asked.kind == "function":
            plan, planner, expected = self._function_preview(asked)
            return preview_of(asked, plan, planner.X_star, expected)
        many = len(self.inputs(asked).complete) > 2 * limits.ROUGH
        rough_rows = rough and many and not self._planners.has((None, *self._key(asked)))
        if rough_rows and asked.inducing is not None:
            asked = asked.model_copy(update={"inducing": min(asked.inducing, limits.ROUGH // 3)})
        planner, share = self._sketch(asked, rough_rows)
        with public_work():
            last = planner.last.get(asked.design)
            if asked.design == "posterior" and not rough and not (last and is_for(last, asked)):
                planner.plan(**promise_of(asked), design=asked.design)  # another promise has a better one
            found = preview(planner, asked.epsilon, asked.delta, asked.design, "analytic", share)
            last = planner.last[asked.design]
        near = rough and asked.design == "posterior" and not is_for(last, asked)
        expected = Expected(found.noise_std, found.expected_error, found.gp_std)
        is_rough = rough_rows or near
        return preview_of(asked, last, planner.X_star, expected, share == 1 and not is_rough, is_rough)

    def _function_preview(self, asked: models.Settings) -> tuple[FunctionPlan, Planner, Expected]:
        """From the function's last plan: its noise has the same shape for every promise."""
        planner = self._planner(asked)

        def make() -> tuple[FunctionPlan, Foreseen]:
            made = self._function(asked)
            return made, Foreseen.of(made, planner.X_star)

        with public_work():
            plan, foreseen = self._foreseen.get(self._key(asked), make)
            return plan, planner, expected_of_function(asked, plan, planner, foreseen)

    def _staged_preview(self, asked: models.Settings, rough: bool) -> dict[str, Any]:
        sketch = self._rough(asked) if rough else None
        plan = self._staged(asked) if sketch is None else sketch
        is_rough = sketch is not None
        return preview_of(asked, plan, plan.X_star, expected_of(plan), exact=False, rough=is_rough)

    def _rough(self, asked: models.Settings) -> StagedPlan | None:
        """What a rough figure is made with; None if the whole is there already, or quick."""
        return None if self._learned_plans.has(self._staged_key(asked)) else self._few(asked)

    def _few(self, asked: models.Settings) -> StagedPlan | None:
        """Of some rows that stand for all, or of a coarser box; None if the whole is quick."""
        with public_work():
            if asked.hides_inputs:
                return rough_rows(asked, self._size(asked))
            found, people = self.inputs(asked), self._people(asked)
            return rough_learned(asked, found, lambda rows: _some_rows(found, people, asked, rows))

    def curve(self, asked: models.Settings, epsilons: list[float]) -> list[dict[str, Any]]:
        """The error to be expected against epsilon; the noise, and the paper's, beside it."""
        with self.heavy():
            asked = self.settled(asked)
            return [self._point(asked.model_copy(update={"epsilon": epsilon}), asked) for epsilon in epsilons]

    def designs(self, asked: models.Settings) -> dict[str, Any]:
        """What to expect of each design, for a model that is described."""
        if is_staged(asked) or asked.kind != "predictions":
            raise bad_input("designs can be compared for predictions of numbers, by a model you describe.")
        with self.heavy():
            asked = self.settled(asked)
            planner = self._planner(asked)
            with public_work():
                found = planner.compare(**promise_of(asked))
                return {**found.table(), "best": found.best, "notes": found.notes}

    def _point(self, other: models.Settings, asked: models.Settings) -> dict[str, Any]:
        """One point of the curve; other promises are compared at the one that is asked for."""
        paper = None
        if is_staged(other):
            # Of few rows for each promise, or of all for each: a curve of both would have steps.
            found = expected_of(self._few(other) or self._staged(other))
        elif other.kind == "function":
            found = self._function_preview(other)[2]
        else:
            planner, share = self._sketch(other)
            with public_work():
                if other.design == "posterior":  # another design for each epsilon
                    planner.plan(**promise_of(other), design=other.design)
                quick = preview(planner, other.epsilon, other.delta, other.design, "analytic", share)
                found = Expected(quick.noise_std, quick.expected_error, quick.gp_std)
                if other.epsilon <= 1:  # for which alone the paper's is proven
                    volume = planner.last.get("volume") or planner.plan(**promise_of(asked), design="volume")
                    paper = share * rms(volume.noise_std) * scaled(volume, other.epsilon, "classic")
        return {
            "epsilon": other.epsilon,
            "rms": rms(found.error),
            "largest": float(found.error.max()),
            "noise_rms": rms(found.noise),
            "paper_rms": paper,
        }

    def _sketch(self, asked: models.Settings, rough: bool = False) -> tuple[Planner, float]:
        """What a plan to look at is made with, and by how much its noise is to be multiplied.

        It is of the table itself; but of a large one it sees some rows, spread evenly, each of which stands
        for several: as their mean would, with a smaller variance and, since it moves further, a larger noise.
        """
        rows = len(self.inputs(asked).complete)
        most = limits.ROUGH if rough else limits.SKETCHED
        if rows <= most or (asked.inducing is None and not rough):
            return self._planner(asked), 1.0
        planner = self._planner(asked, most)
        return planner, len(planner.X) / rows

    def _planner(self, asked: models.Settings, rows: int | None = None) -> Planner:
        """For the whole table, or for so many of its rows, which stand for all."""
        found, people = self.inputs(asked), self._people(asked)

        def make() -> Planner:
            with public_work():
                where, known = points_of(asked, found), self._known(asked)
                if rows is None:
                    return described_gp(asked).planner(found.X, X_star=where, **known)
                some, of = _some_rows(found, people, asked, rows)
                gp = described_gp(asked, len(some) / len(found.complete))
                return gp.planner(some, X_star=where, columns=known["columns"], **of)

        return self._planners.get((rows, *self._key(asked)), make)

    def _known(self, asked: models.Settings) -> dict[str, Any]:
        """What else is public of the inputs: names, levels, whose rows they are, and which are left out."""
        people, found = self._people(asked), self.inputs(asked)
        known = {
            "columns": found.named(asked.output, asked.people),
            "missing_inputs": asked.missing_inputs,
        }
        return known if people is None else {**known, **_shared(people.labels, asked)}

    def _function(self, asked: models.Settings) -> FunctionPlan:
        def make() -> FunctionPlan:
            X, known = self.inputs(asked).X, self._known(asked)
            return described_gp(asked).plan_function(X, **promise_of(asked), **known)

        return self._functions.get((*self._key(asked)[:-1], asked.epsilon, asked.delta), make)

    def _staged(self, asked: models.Settings) -> StagedPlan:
        return self._rows(asked) if asked.hides_inputs else self._learned(asked)

    def _rows(self, asked: models.Settings) -> StagedPlan:
        size = self._size(asked)

        def make() -> StagedPlan:
            with public_work():
                return plan_of_rows(asked, size)

        return self._learned_plans.get(self._staged_key(asked), make)

    def _learned(self, asked: models.Settings) -> StagedPlan:
        found, known = self.inputs(asked), self._known(asked)

        def plan(support: FloatArray | None) -> StagedPlan:
            given = self._releases.given(asked)
            with public_work():
                where = points_of(asked, found)
                gp = staged_gp(asked, support)
                return gp.plan(found.X, X_star=where, given=given, **promise_of(asked), **known)

        def make() -> StagedPlan:
            if asked.kernel is not None:  # who describes a model says how many stand for all
                return plan(None)
            # Inputs that stand for many rows take long to choose, and are the same for all promises.
            first: list[StagedPlan] = []

            def chosen() -> FloatArray | None:
                first.append(plan(None))
                return first[0].rule.support

            support = self._support.get(self._whose(asked), chosen)
            return first[0] if first else plan(support)

        return self._learned_plans.get(self._staged_key(asked), make)

    def _staged_key(self, asked: models.Settings) -> tuple[Any, ...]:
        """All that decides a plan in stages."""
        if asked.hides_inputs:
            return (self._size(asked), asked.model_dump_json())
        promise = (asked.epsilon, asked.delta, tuple(asked.given or ()))
        return (self._key(asked), asked.outcome, tuple(asked.classes or ()), *promise)

    def _whose(self, asked: models.Settings) -> tuple[Any, ...]:
        """Which rows of which table, and how they are read."""
        read = (tuple(asked.categories or ()), asked.decimal, asked.encoding, asked.missing_inputs)
        of = (tuple(asked.inputs), asked.output, asked.people, asked.within, asked.ids)
        return (*self._uploads.version(asked.data), *of, *read)

    def _key(self, asked: models.Settings) -> tuple[Any, ...]:
        """Everything but the promise and the design; the test points last."""
        model = (asked.kernel, asked.noise, tuple(asked.bounds), asked.mean, asked.inducing)
        return (*self._whose(asked), *model, _at(asked))


def _shared(labels: Any, asked: models.Settings) -> dict[str, Any]:
    """What a plan for people is told of them."""
    return {"people": labels, "within": asked.within, "ids": asked.ids}


def _at(asked: models.Settings) -> str:
    return asked.at if isinstance(asked.at, str) else asked.at.model_dump_json()


def _some_rows(
    found: PublicInputs, people: People | None, asked: models.Settings, rows: int
) -> tuple[FloatArray, dict[str, Any]]:
    """About so many rows, spread evenly; all of a person's or none where people are protected."""
    X = found.complete
    if people is None:
        return spread_evenly(X, rows), {}
    share = min(1.0, rows / len(X))
    chosen = np.ceil(np.arange(people.n_people + 1) * share)  # one at least
    whose = people.labels[~np.isnan(found.X).any(axis=1)]
    kept = (np.diff(chosen) > 0)[whose]
    return X[kept], _shared(whose[kept], asked)


def _most_rows(asked: models.Settings) -> int:
    if asked.kind == "function":
        return limits.FUNCTION_ROWS
    return limits.INDUCING_ROWS if is_staged(asked) or asked.inducing is not None else limits.ROWS


def _numbers(planner: Planner) -> float:
    """How many numbers a planner holds, about: the model's, and the matrix of each plan that has one."""
    rows, (n_points, columns) = len(planner.X), planner.X_star.shape
    measured = (plan.measurement for plan in planner.last.values())
    matrices = sum(m.matrix.size for m in measured if isinstance(m, Measurement))
    if "posterior" in planner.last and not planner.in_passes("posterior"):
        matrices += 8 * len(planner.inputs) * n_points  # where its searches start from, see designs.any_noise
    if planner.gp.inducing is None:
        return float(rows * (rows + n_points) + matrices)
    width = 0 if planner.streamed else min(n_points, len(np.atleast_1d(planner.gp.inducing)))
    return float(rows * (columns + 2 + width) + matrices)
