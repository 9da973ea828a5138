"""Plans, as fast as sliders move: what does not depend on the promise is worked out once and kept.

If the whole takes long, a rough figure comes first: of some rows, which stand for all.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cloakgp.app.errors import bad_input, public_work
from cloakgp.app.limits import Most
from cloakgp.app.releases import Releases
from cloakgp.app.settings import Settings
from cloakgp.app.uploads import Uploads, form_of, version
from cloakgp.app.work import Cache, WorkQueue, listening
from cloakgp.core.calibration import calibrate, default_delta, delta_slack
from cloakgp.core.checks import FloatArray
from cloakgp.data.cells import digest_of
from cloakgp.data.chunks import spread_evenly
from cloakgp.data.grid import Grid
from cloakgp.data.inputs import as_inputs
from cloakgp.data.people import People
from cloakgp.plots.shown import numeric_inputs
from cloakgp.plots.surface import plane, will_be_unknown
from cloakgp.release.plan import Plan
from cloakgp.release.planner import Foreseen, Planner
from cloakgp.release.planning import plan_from, planner_from
from cloakgp.release.settings import FUNCTION
from cloakgp.release.settings import Settings as Chosen
from cloakgp.workflow import tables, words


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, of which rows and of whom: all that a plan is made of, and all of it public."""

    data: str
    """The table's name."""
    chosen: Chosen
    """What is asked, as the library has it; with its delta."""
    version: tuple[Any, ...]
    """Of the table."""
    X: FloatArray | None = None
    """As the table has them, NaN where something is missing; None where inputs are private."""
    labels: Any = None
    """Whose row each is; None where each is its own, or where that is private."""
    complete: FloatArray | None = None
    """The rows that count."""
    people: People | None = None
    """Who has which of these."""

    def key(self, *left_out: str) -> tuple[Any, ...]:
        """For what is kept: all that is asked of this table, but for some settings."""
        said = {name: value for name, value in self.chosen.words().items() if name not in left_out}
        return *self.version, json.dumps(said, sort_keys=True)

    @property
    def id(self) -> str:
        """The same whenever the same is asked of the same rows and people, wherever their table lies."""
        X = "" if self.complete is None else digest_of(self.complete)
        asked = self.chosen.digest(X, self.people.digest if self.people else "")
        return hashlib.sha256(f"{asked} {self.data}".encode()).hexdigest()[:16]

    @property
    def promise(self) -> dict[str, Any]:
        return {"epsilon": self.chosen.epsilon, "delta": self.chosen.delta}

    def at_epsilon(self, epsilon: float) -> Question:
        """The same for another promise."""
        return replace(self, chosen=replace(self.chosen, epsilon=epsilon))

    def is_for(self, plan: Plan | None) -> bool:
        """Whether a plan keeps the very promise that is asked for."""
        c = None if plan is None else plan.certificate
        return c is not None and (c.epsilon, c.delta) == (self.chosen.epsilon, self.chosen.delta)

    def some(self, rows: int) -> tuple[FloatArray, Any]:
        """About so many rows, spread evenly, and whose they are; all of a person's or none."""
        assert self.complete is not None
        if self.people is None:
            return spread_evenly(self.complete, rows), None
        share = min(1.0, rows / len(self.complete))
        chosen = np.ceil(np.arange(self.people.n_people + 1) * share)  # one at least
        kept = (np.diff(chosen) > 0)[self.people.labels]
        return self.complete[kept], self.people.labels[kept]


class Expected(NamedTuple):
    """What to expect of a release: stds in the outcome's unit."""

    plan: Plan
    """Maybe for another promise, of which the noise has the same shape."""
    points: FloatArray
    """Where predictions are wanted."""
    noise_std: FloatArray
    """Of the privacy noise."""
    expected_error: FloatArray
    """Of what a reader will be off by: privacy and model together."""
    gp_std: FloatArray
    """Of what the model itself leaves unknown."""
    rough: bool = False
    """About: of some rows that stand for all, or of the last plan of a design for another promise."""

    @classmethod
    def of(cls, plan: Plan) -> Expected:
        """Of a plan that has test points of its own."""
        with public_work():
            return cls(plan, plan.X_star, plan.noise_std, plan.expected_error, plan.gp_std).checked()

    def checked(self) -> Expected:
        if not all(np.isfinite(each).all() for each in self[2:5]):
            raise bad_input("with these settings the noise is not a finite number.")
        return self


class Planning:
    """Makes plans for settings, and says how noisy they are."""

    def __init__(self, uploads: Uploads, releases: Releases) -> None:
        self._uploads, self._releases = uploads, releases
        self._planners: Cache[Planner] = Cache(6e7, _numbers)  # that all together may hold, of 8 bytes each
        self._plans: Cache[Plan] = Cache(16)
        self._functions: Cache[Foreseen] = Cache(2)
        self._queue = WorkQueue(at_once=3, waiting=21, each=8, patience=60.0)

    @contextmanager
    def heavy(self) -> Iterator[None]:
        """A slot for work that takes the processor for a while; there are few. It ends if nobody waits."""
        with self._queue.slot(), listening():
            yield

    def question(self, asked: Settings, path: Path | None = None) -> Question:
        """What these settings ask of their table, or of one that lies at `path`."""
        path = self._uploads.path(asked.data) if path is None else path
        seen = version(path)  # first: it may be replaced any moment
        chosen, most = asked.library, _most_rows(asked.library)
        more: dict[str, Any] = {"given": self._releases.given(asked)}
        read: dict[str, Any] = {}
        with public_work():
            tables.check_columns(path, asked.names)
        if chosen.grid is not None:
            n = asked.n_people or self._uploads.rows(path, most)
            with public_work():
                where = asked.test_points(chosen.grid.columns)
                more |= {"n_rows": n, "reading": form_of(path, [], asked)}
        else:
            found, labels = self._uploads.inputs(path, asked.inputs, most, asked), None
            if asked.people is not None:
                labels = self._uploads.people(path, asked.people, asked.encoding, asked.ids).labels
            with public_work():
                inputs = as_inputs(found.X, labels, found.columns, asked.missing_inputs)
                people, n = inputs.shared(len(inputs.X)), inputs.size
                where = asked.test_points(found.columns, inputs.X)
                own = asked.people if asked.people not in found.columns.names else None
                columns = replace(found.columns, response=asked.output, people=own or "")
            more |= {"columns": columns, "reading": found.form}
            read = {"X": found.X, "labels": labels, "complete": inputs.X, "people": people}
        with public_work():
            more |= {} if isinstance(asked.at, str) else {"at": where}
            chosen = replace(chosen, delta=asked.delta or default_delta(n), **more)
            return Question(asked.data, chosen, seen, **read)

    def plan(self, question: Question) -> Expected:
        """The plan for a question, and what to expect of it."""
        if question.chosen.in_stages:
            return Expected.of(self._made(question))
        if question.chosen.kind == FUNCTION:
            return self._of_function(question)._replace(plan=self._made(question))
        with public_work():
            plan = self._planner(question).plan(**question.promise, design=question.chosen.design)
            return Expected.of(replace(plan, question=question.chosen))

    def preview(self, asked: Settings, rough: bool = False) -> dict[str, Any]:
        """How much noise there will be, and where: public, free, and exact unless the model is learned.

        If the whole takes long, a rough one is of some rows that stand for all.
        """
        start = time.perf_counter()
        with self.heavy():
            question = self.question(asked)
            found = self._look(question, rough and not self._plans.has(question.key()))
            shown = _shown(question, found)
        return {**shown, "milliseconds": round(1000 * (time.perf_counter() - start))}

    def _look(self, question: Question, rough: bool) -> Expected:
        few = self._few(question) if rough else None
        if few is not None:
            return Expected.of(few)._replace(rough=True)
        if question.chosen.in_stages:
            return Expected.of(self._made(question))
        if question.chosen.kind == FUNCTION:
            return self._of_function(question)
        return self._described(question, rough)

    def _described(self, question: Question, rough: bool) -> Expected:
        """What does not hang on the promise is there already, or kept."""
        planner, design = self._planner(question), question.chosen.design
        one_for_each = design == "posterior"  # of the designs: one for each promise
        with public_work():
            if one_for_each and not rough and not question.is_for(planner.last.get(design)):
                planner.plan(**question.promise, design=design)
            found = planner.preview(**question.promise, design=design)
            last = planner.last[design]
        near = one_for_each and not question.is_for(last)
        stds = found.noise_std, found.expected_error, found.gp_std
        return Expected(last, planner.X_star, *stds, near).checked()

    def _of_function(self, question: Question) -> Expected:
        """From the last plan for any promise: the noise of all has the same shape."""
        planner = self._planner(question)
        where = planner.X_star

        def make() -> Foreseen:
            return Foreseen(self._made(question), where)

        with public_work():
            foreseen = self._functions.get(question.key(*_PROMISED), make)
            made, scale = foreseen.plan, foreseen.noise_for(**question.promise)
            noise = made.noise_at(where) * (scale / made.measurement.noise_scale)
            error, own = foreseen.read(scale)[1], np.sqrt(planner.smoother.posterior_variance)
            return Expected(made, where, noise, error, own).checked()

    def curve(self, asked: Settings, epsilons: list[float]) -> list[dict[str, Any]]:
        """The error to be expected against epsilon; the noise, and the paper's, beside it."""
        with self.heavy():
            question = self.question(asked)
            return [self._point(question.at_epsilon(epsilon), question) for epsilon in epsilons]

    def designs(self, asked: Settings) -> dict[str, Any]:
        """What to expect of each design, for a model that is described."""
        if asked.library.in_stages or asked.kind == FUNCTION:
            raise bad_input("designs can be compared for predictions of numbers, by a model you describe.")
        with self.heavy():
            question = self.question(asked)
            planner = self._planner(question)
            with public_work():
                found = planner.compare(**question.promise)
                return {**found.table(), "best": found.best, "notes": found.notes}

    def _point(self, other: Question, question: Question) -> dict[str, Any]:
        """One point of the curve; other promises are compared at the one that is asked for."""
        paper, epsilon, stages = None, other.chosen.epsilon, other.chosen.in_stages
        # In stages, of few rows for each promise or of all for each: a curve of both would have steps.
        found = self._look(other, rough=stages)
        if not stages and other.chosen.kind != FUNCTION and epsilon <= 1:  # the paper's is proven there
            planner = self._planner(other)
            with public_work():
                volume = planner.last.get("volume") or planner.plan(**question.promise, design="volume")
                c = volume.certificate
                mu = calibrate(epsilon, c.delta, "classic", n_measurements=c.n_measurements)
                paper = _rms(volume.noise_std) * c.mu / mu  # it is unbiased: all else is the same
        return {
            "epsilon": epsilon,
            "rms": _rms(found.expected_error),
            "largest": float(found.expected_error.max()),
            "noise_rms": _rms(found.noise_std),
            "paper_rms": paper,
        }

    def _planner(self, question: Question) -> Planner:
        def make() -> Planner:
            with public_work():
                return planner_from(question.chosen, question.X, question.labels)

        return self._planners.get(question.key(*_PROMISED), make)

    def _made(self, question: Question) -> Plan:
        chosen = question.chosen

        def make() -> Plan:
            # A function has no test points: those are for looking at it.
            asked = replace(chosen, at=None) if chosen.kind == FUNCTION else chosen
            with public_work():
                return replace(plan_from(asked, question.X, question.labels), question=chosen)

        return self._plans.get(question.key(), make)

    def _few(self, question: Question, cells: int = 100) -> Plan | None:
        """Of some rows that stand for all, or a coarser box; None if the whole is quick, or there already.

        In stages, of fewer rows and at fewer points: that takes longer.
        """
        chosen, X, staged = question.chosen, question.complete, question.chosen.in_stages
        if chosen.kind == FUNCTION or (not staged and self._planners.has(question.key(*_PROMISED))):
            return None
        points, rows = (60, 120) if staged else (Most.points, Most.rough)
        with public_work():
            if X is None:
                coarse = _coarser(chosen.grid, cells)
                if coarse is None:
                    return None
                per_axis = max(2, int(points ** (1 / len(chosen.inputs))))
                return plan_from(replace(chosen, grid=coarse, at=f"grid:{per_axis}"))
            where, n = chosen.points(question.X), len(X)
            if chosen.given or (n <= 400 and len(where) <= 150 if staged else n <= 2 * rows):
                return None
            some, whose = question.some(rows)
            copy, row = np.divmod(np.arange(n), len(some))  # as many rows: equal ones are taken together
            if whose is not None:
                whose = whose[row] + (whose.max() + 1) * copy  # other people
            of_few = replace(chosen, at=spread_evenly(where, points), inducing=None, missing_inputs="error")
            return plan_from(of_few, some[row], whose)


_PROMISED = ("epsilon", "delta", "design")
"""Settings that planners do without."""


def _shown(question: Question, found: Expected) -> dict[str, Any]:
    """A preview, as it is sent: with a certificate only if a plan was made for just this promise."""
    chosen, plan, c = question.chosen, found.plan, found.plan.certificate
    promise = {**question.promise, "n_measurements": c.n_measurements}
    assumed, bounds, in_stages = c, chosen.bounds, chosen.in_stages
    if not question.is_for(plan):
        mu = calibrate(**promise)
        assumed = replace(c, **question.promise, mu=mu, delta_slack=delta_slack(mu, **promise))
    axes = None
    if len(chosen.inputs) == len(numeric_inputs(plan)) == 2:
        drawn = plane(plan)
        up = found.points[:, drawn.up]
        axes = {"places": [drawn.across, drawn.up], "aspect": drawn.aspect(float(up.min()), float(up.max()))}
    with public_work():
        unknown = will_be_unknown(plan, found.points, found.expected_error)
    return {
        **found._asdict(),
        **question.promise,
        "unknown": unknown,
        "summary": words.noise_summary(found.noise_std, bounds),
        "error_summary": words.noise_summary(found.expected_error, bounds),
        "exact": not (found.rough or in_stages),
        "certificate": c.to_dict() if assumed is c and not found.rough else None,
        "promise": [] if in_stages and found.rough else words.promise(assumed),
        "plane": axes,
    }


def _coarser(grid: Any, most: int) -> Grid | None:
    """The same box in fewer cells; None if these are few already."""
    cut = [axis for axis in grid.axes if not axis.category]
    if len(grid) <= most or not cut:
        return None
    fewer = (most / len(grid)) ** (1 / len(cut))
    extents = {axis.name: list(axis.levels) or grid.ends(axis) for axis in grid.axes}
    return Grid(extents, {axis.name: max(2, int(axis.cells * fewer)) for axis in cut})


def _rms(noise: FloatArray) -> float:
    return float(np.sqrt(np.mean(noise**2)))


def _most_rows(chosen: Chosen) -> int:
    if chosen.kind == FUNCTION:
        return Most.function_rows
    return Most.rows if chosen.in_stages or chosen.inducing is not None else Most.exact_rows


def _numbers(planner: Planner) -> float:
    """How many numbers a planner holds, about: the model's, and the matrix of each plan that has one."""
    rows, (n_points, columns) = len(planner.X), planner.X_star.shape
    matrices = sum(plan.measurement.matrix.size for plan in planner.last.values())
    if "posterior" in planner.last:
        matrices += 8 * len(planner.inputs) * n_points  # where its searches start from, see designs.any_noise
    if planner.gp.inducing is None:
        return float(rows * (rows + n_points) + matrices)
    seen = len(planner.inputs) * (len(np.atleast_1d(planner.gp.inducing)) + n_points)
    return float(rows * (columns + 2) + seen + matrices)
