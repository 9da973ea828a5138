"""Plans, as fast as sliders move: what does not depend on the promise is worked out once and kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakgp.app import limits, models
from cloakgp.app.asked_model import described_gp, learned_gp, plan_of_rows, points_of
from cloakgp.app.cache import Cache
from cloakgp.app.errors import bad_input, public_work
from cloakgp.app.public_inputs import PublicInputs
from cloakgp.app.releases import Releases
from cloakgp.app.rough import rough_learned, rough_rows
from cloakgp.app.uploads import Uploads
from cloakgp.app.watching import listening
from cloakgp.app.work_queue import WorkQueue
from cloakgp.calibration import calibrate
from cloakgp.checks import FloatArray
from cloakgp.plans import out_of_core
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.planner import Planner
from cloakgp.plans.predictions import Plan
from cloakgp.plans.staged import StagedPlan
from cloakgp.plots import FADED
from cloakgp.rows.chunks import spread_evenly
from cloakgp.rows.people import People, as_people
from cloakgp.workflow import words
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
        found, people = self.inputs(asked), self._people(asked)
        told: dict[str, Any] = {"inputs": digest_of(found.complete)}
        if is_coded(found.columns):  # the same numbers may stand for other levels
            told["columns"] = found.columns.words()
        if people is not None:
            whose = people.labels[~np.isnan(found.X).any(axis=1)]
            told["people"] = as_people(whose, len(whose)).digest
        return told

    def _size(self, asked: models.Settings) -> int:
        """How many rows there are, or people: public where inputs are private."""
        return asked.n_people or int(self._uploads.facts(asked.data)["rows"])

    def _people(self, asked: models.Settings) -> People | None:
        if asked.people is None:
            return None
        return self._uploads.people(asked.data, asked.people, asked.encoding)

    def plan(self, asked: models.Settings) -> tuple[AnyPlan, FloatArray]:
        """The plan for these settings, and how noisy it is at its test points."""
        if is_staged(asked):
            staged = self._staged(asked)
            with public_work():
                return staged, noise_of(staged, staged.X_star)
        plan, planner = self._given(asked)
        with public_work():
            return plan, noise_of(plan, planner.X_star)

    def _given(self, asked: models.Settings) -> tuple[Plan | FunctionPlan, Planner]:
        """The plan for a kernel, and what it was made with."""
        planner = self._planner(asked)
        with public_work():
            if asked.kind == "function":
                return self._function(asked, planner), planner
            made = planner.plan(epsilon=asked.epsilon, delta=asked.delta, design=asked.design)
            return made, planner

    def payer(self, asked: models.Settings) -> str | None:
        """Which data set must pay: the one whose releases are taken into account, if any are."""
        return self._releases.dataset_of(asked)

    def preview(self, asked: models.Settings, rough: bool = False) -> dict[str, Any]:
        """How much noise there will be, and where: public, free, and exact unless there are many rows.

        If the whole takes long, a rough one is of some rows that stand for all.
        """
        start = time.perf_counter()
        with self.heavy():
            staged = is_staged(asked)
            found = self._staged_preview(asked, rough) if staged else self._given_preview(asked, rough)
        low, high = asked.bounds
        return {
            **found,
            "fades_at": FADED * (high - low),
            "milliseconds": round(1000 * (time.perf_counter() - start)),
        }

    def _given_preview(self, asked: models.Settings, rough: bool) -> dict[str, Any]:
        many = asked.kind == "predictions" and len(self.inputs(asked).complete) > 2 * limits.ROUGH
        rough = rough and many and not self._planners.has((None, *self._key(asked)))
        if rough and asked.inducing is not None:
            asked = asked.model_copy(update={"inducing": min(asked.inducing, limits.ROUGH // 3)})
        plan, planner, share = self._sketch(asked, rough)
        with public_work():
            noise = share * noise_of(plan, planner.X_star)
            own = plan.gp_std if isinstance(plan, Plan) else np.sqrt(planner.smoother.posterior_variance)
        return {
            "points": planner.X_star.tolist(),
            "noise_std": noise.tolist(),
            "gp_std": own.tolist(),
            "expected_error": None,
            "summary": words.noise_summary(noise, plan.gp.limits),
            "certificate": plan.certificate.to_dict() if share == 1 else None,
            "promise": words.promise(plan.certificate),
            "exact": share == 1,
            "rough": rough,
        }

    def _staged_preview(self, asked: models.Settings, rough: bool) -> dict[str, Any]:
        sketch = self._rough(asked) if rough else None
        plan = self._staged(asked) if sketch is None else sketch
        with public_work(), one_thread():
            error = noise_of(plan, plan.X_star)
            return {
                "points": plan.X_star.tolist(),
                "noise_std": plan.noise_std.tolist(),
                "gp_std": plan.gp_std.tolist(),
                "expected_error": error.tolist(),
                "summary": words.noise_summary(error, plan.rule.bounds),
                "certificate": plan.certificate.to_dict() if sketch is None else None,
                "promise": [] if sketch is not None else words.promise(plan.certificate),
                "exact": False,
                "rough": sketch is not None,
            }

    def _rough(self, asked: models.Settings) -> StagedPlan | None:
        """Some rows that stand for all, or a coarser box; None if the whole is quick, or there already."""
        if self._learned_plans.has(self._staged_key(asked)):
            return None
        with public_work(), one_thread():
            if asked.hides_inputs:
                return rough_rows(asked, self._size(asked))
            found, people = self.inputs(asked), self._people(asked)
            return rough_learned(asked, found, lambda rows: _some_rows(found, people, asked, rows))

    def curve(self, asked: models.Settings, epsilons: list[float]) -> list[dict[str, Any]]:
        """Noise against epsilon, and the paper's beside it; or the error to be expected."""
        with self.heavy():
            if is_staged(asked):
                return [self._staged_point(epsilon, asked) for epsilon in epsilons]
            plan, planner, share = self._sketch(asked)
            with public_work():
                papers = None
                if asked.kind == "predictions":
                    papers = planner.plan(epsilon=asked.epsilon, delta=asked.delta, design="volume")
                points = [self._point(epsilon, asked, plan, planner, papers) for epsilon in epsilons]
        return [_times(point, share) for point in points]

    def designs(self, asked: models.Settings) -> dict[str, Any]:
        """What to expect of each design, for a model that is described."""
        if is_staged(asked) or asked.kind != "predictions":
            raise bad_input("designs can be compared for predictions by a model that you describe.")
        with self.heavy():
            planner = self._planner(asked)
            with public_work():
                found = planner.compare(epsilon=asked.epsilon, delta=asked.delta)
                return {**found.table(), "best": found.best, "notes": found.notes}

    def _staged_point(self, epsilon: float, asked: models.Settings) -> dict[str, Any]:
        other = asked.model_copy(update={"epsilon": epsilon})
        plan = self._rough(other) or self._staged(other)
        with public_work(), one_thread():
            error = noise_of(plan, plan.X_star)
        return {"epsilon": epsilon, "rms": _rms(error), "largest": float(error.max()), "paper_rms": None}

    def _sketch(
        self, asked: models.Settings, rough: bool = False
    ) -> tuple[Plan | FunctionPlan, Planner, float]:
        """A plan to look at, what it was made with, and by how much its noise is to be multiplied.

        It is the plan itself; but of a large table it sees some rows, spread evenly, each of which stands for
        several: as their mean would, with a smaller variance and, since it moves further, a larger noise.
        """
        rows = len(self.inputs(asked).complete)
        most = limits.ROUGH if rough else limits.SKETCHED
        if rows <= most or (asked.inducing is None and not rough):
            return *self._given(asked), 1.0
        planner = self._planner(asked, most)
        with public_work():
            plan = planner.plan(epsilon=asked.epsilon, delta=asked.delta, design=asked.design)
        return plan, planner, len(planner.X) / rows

    def _point(
        self,
        epsilon: float,
        asked: models.Settings,
        plan: Plan | FunctionPlan,
        planner: Planner,
        papers: Plan | None,
    ) -> dict[str, Any]:
        if asked.kind == "predictions" and asked.design == "posterior":  # another design for each epsilon
            noise = planner.plan(epsilon=epsilon, delta=asked.delta, design=asked.design).noise_std
        else:
            noise = noise_of(plan, planner.X_star) * _scaled(plan, epsilon, "analytic")
        paper = None
        if papers is not None and epsilon <= 1:
            paper = _rms(papers.noise_std * _scaled(papers, epsilon, "classic"))
        return {"epsilon": epsilon, "rms": _rms(noise), "largest": float(noise.max()), "paper_rms": paper}

    def _planner(self, asked: models.Settings, rows: int | None = None) -> Planner:
        """For the whole table, or for so many of its rows, which stand for all."""
        found, people = self.inputs(asked), self._people(asked)

        def make() -> Planner:
            with public_work():
                where, known = points_of(asked, found), self._known(asked)
                if rows is None:
                    return described_gp(asked).planner(found.X, where, **known)
                some, of = _some_rows(found, people, asked, rows)
                gp = described_gp(asked, len(some) / len(found.complete))
                return gp.planner(some, where, columns=known["columns"], **of)

        return self._planners.get((rows, *self._key(asked)), make)

    def _known(self, asked: models.Settings) -> dict[str, Any]:
        """What else is public of the inputs: names, levels, whose rows they are, and which are left out."""
        people, found = self._people(asked), self.inputs(asked)
        known = {
            "columns": found.named(asked.output, asked.people),
            "missing_inputs": asked.missing_inputs,
        }
        return known if people is None else {**known, "people": people.labels, "within": asked.within}

    def _function(self, asked: models.Settings, planner: Planner) -> FunctionPlan:
        def make() -> FunctionPlan:
            promise: dict[str, Any] = {"epsilon": asked.epsilon, "delta": asked.delta}
            return described_gp(asked).plan_function(self.inputs(asked).X, **promise, **self._known(asked))

        return self._functions.get((*self._key(asked)[:-1], asked.epsilon, asked.delta), make)

    def _staged(self, asked: models.Settings) -> StagedPlan:
        return self._rows(asked) if asked.hides_inputs else self._learned(asked)

    def _rows(self, asked: models.Settings) -> StagedPlan:
        size = self._size(asked)

        def make() -> StagedPlan:
            with public_work(), one_thread():
                return plan_of_rows(asked, size)

        return self._learned_plans.get(self._staged_key(asked), make)

    def _learned(self, asked: models.Settings) -> StagedPlan:
        found, known = self.inputs(asked), self._known(asked)

        def plan(support: FloatArray | None) -> StagedPlan:
            given = self._releases.given(asked)
            with public_work(), one_thread():
                where = points_of(asked, found)
                promise: dict[str, Any] = {"epsilon": asked.epsilon, "delta": asked.delta}
                return learned_gp(asked, support).plan(found.X, where, given=given, **promise, **known)

        def make() -> StagedPlan:
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
        promise = (tuple(asked.bounds), asked.epsilon, asked.delta, tuple(asked.given or ()))
        return (self._whose(asked), _at(asked), asked.outcome, tuple(asked.classes or ()), *promise)

    def _whose(self, asked: models.Settings) -> tuple[Any, ...]:
        """Which rows of which table, and how they are read."""
        read = (tuple(asked.categories or ()), asked.decimal, asked.encoding, asked.missing_inputs)
        of = (tuple(asked.inputs), asked.output, asked.people, asked.within)
        return (*self._uploads.version(asked.data), *of, *read)

    def _key(self, asked: models.Settings) -> tuple[Any, ...]:
        """Everything but the promise and the design; the test points last."""
        model = (asked.kernel, asked.noise, tuple(asked.bounds), asked.mean, asked.inducing)
        return (*self._whose(asked), *model, _at(asked))


def one_thread() -> AbstractContextManager[Any]:
    """A plan must be the same to the last bit anywhere, and several threads round differently."""
    limited: AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limited


def _at(asked: models.Settings) -> str:
    return asked.at if isinstance(asked.at, str) else asked.at.model_dump_json()


def is_staged(asked: models.Settings) -> bool:
    """Whether the release is made in stages, so that its error can be forecast and not more."""
    return asked.model == "learn" or asked.hides_inputs


def _some_rows(
    found: PublicInputs, people: People | None, asked: models.Settings, rows: int
) -> tuple[FloatArray, dict[str, Any]]:
    """About so many rows, spread evenly; all of a person's or none where people are protected."""
    X = found.complete
    if people is None:
        return spread_evenly(X, rows), {}
    share = min(1.0, rows / len(X))
    chosen = np.floor(np.arange(people.n_people + 1) * share)
    whose = people.labels[~np.isnan(found.X).any(axis=1)]
    kept = (np.diff(chosen) > 0)[whose]
    return X[kept], {"people": whose[kept], "within": asked.within}


def _most_rows(asked: models.Settings) -> int:
    if asked.kind == "function":
        return limits.FUNCTION_ROWS
    return limits.ROWS if asked.model == "kernel" and asked.inducing is None else limits.INDUCING_ROWS


def _numbers(planner: Planner) -> float:
    """How many numbers a planner holds, about."""
    rows, (n_points, columns) = len(planner.X), planner.X_star.shape
    if planner.gp.inducing is None:
        return float(rows * (rows + n_points))
    return float(rows * (columns + 2) + min(rows * n_points, out_of_core.DENSE))


def _times(point: dict[str, Any], share: float) -> dict[str, Any]:
    """A point of the curve whose noise is multiplied."""
    noise = {name: point[name] for name in ("rms", "largest", "paper_rms") if point[name] is not None}
    return {**point, **{name: share * value for name, value in noise.items()}}


def noise_of(plan: AnyPlan, where: FloatArray) -> FloatArray:
    """Std of the privacy noise at the test points; of all that will be unknown if the model is learned."""
    noise = plan.expected_error if isinstance(plan, StagedPlan) else plan.released_noise(where)
    if not np.isfinite(noise).all():
        raise bad_input("with these settings the noise is not a finite number.")
    return noise


def _scaled(plan: Plan | FunctionPlan, epsilon: float, calibration: str) -> float:
    """How the noise of an unbiased design changes with the promise: as 1/mu, and in nothing else."""
    c = plan.certificate
    return c.mu / calibrate(epsilon, c.delta, calibration, n_measurements=c.n_measurements)


def _rms(noise: FloatArray) -> float:
    return float(np.sqrt(np.mean(noise**2)))
