"""A release file of any kind, and its numbers as a table."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.files import schema
from cloakgp.files.container import MANIFEST, ReleaseFileError
from cloakgp.measurements.recipes import FactoredMeasurement
from cloakgp.model.outcome import REAL
from cloakgp.plans import opening
from cloakgp.plans.functions import FunctionRelease
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.showing import beside, by_class
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.plans.whole_rows import RowsPlan, RowsRelease
from cloakgp.plots.labels import columns_of as plan_columns
from cloakgp.plots.labels import outcome_of
from cloakgp.posterior.model_check import ModelCheck
from cloakgp.rows.columns import Columns
from cloakgp.rows.grid import Grid
from cloakgp.workflow.inputs import is_small
from cloakgp.workflow.outcomes import named_predictions

SUFFIX = ".cloak"


def load(path: str | os.PathLike[str]) -> AnyRelease:
    """The release in a file, of whatever kind."""
    check_kind(path)
    return opening.load_release(path)


def check_kind(path: str | os.PathLike[str]) -> None:
    """Raise, in words, if a file is not there or is no release file at all."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file.")
    if not _has_manifest(path):
        raise ReleaseFileError(
            f"{Path(path).name}: not a release file (.cloak), or a damaged one. cloakgp release makes one."
        )


def in_folders(folders: Sequence[Path]) -> tuple[list[Path], int]:
    """The release files in these folders, damaged ones included, and how many other files there are."""
    found, ignored = [], 0
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder.")
        inside = [path for path in sorted(folder.iterdir()) if path.is_file()]
        here = [path for path in inside if path.suffix == SUFFIX or _has_manifest(path)]
        if not here:
            raise InputError(f"{folder}: there is no release file in it, so there is nothing to compare.")
        found += here
        ignored += len(inside) - len(here)
    return found, ignored


def _has_manifest(path: str | os.PathLike[str]) -> bool:
    try:
        with open(path, "rb") as file:
            if file.read(2) != b"PK":  # a ledger holds plans of stages, and would be taken for one of them
                return False
        with zipfile.ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def holds(path: Path, release: AnyRelease) -> bool:
    """Whether a file holds this very release."""
    try:
        plan, z, receipt = opening.load(path)
    except ValueError:
        return False
    return (plan.digest, receipt) == (release.plan.digest, release.receipt) and np.array_equal(z, release.z)


def n_inputs(release: AnyRelease) -> int:
    """How many input columns it has."""
    return int(inputs_of(release).shape[1])


def inputs_of(release: AnyRelease) -> FloatArray:
    """The inputs that it shows: X, or what stands for it."""
    inputs: FloatArray = release.plan.shown_inputs
    return inputs


def hides_inputs(release: AnyRelease) -> bool:
    """Whether the inputs are hidden: no file has them."""
    return release.plan.hides_inputs


def box_of(release: AnyRelease) -> Grid | None:
    """The public box over private inputs, where whole rows are protected."""
    return release.plan.grid if isinstance(release, RowsRelease) else None


def lists_inputs(release: AnyRelease) -> bool:
    """Whether the inputs are, or will be, in the file as they are."""
    plan = release.plan
    if isinstance(plan, RowsPlan):
        return False
    if isinstance(plan, StagedPlan):
        return plan.rule.cells is None or (isinstance(plan.X, np.ndarray) and is_small(plan.X))
    if plan.X is None or not isinstance(plan.measurement, FactoredMeasurement):
        return plan.X is not None
    return isinstance(plan.X, np.ndarray) and is_small(plan.X)


def can_denoise(release: AnyRelease) -> bool:
    """Whether denoised predictions are possible: they need X or its box, and a kernel that the file holds."""
    known = not hides_inputs(release) or box_of(release) is not None
    return known and not schema.is_custom(release.plan.gp.kernel.to_spec())


def predictions(
    release: AnyRelease, X: FloatArray, level: float = 0.95, include_noise: bool = False
) -> dict[str, FloatArray]:
    """Mean, std and interval at `X`: denoised; or the function itself where X is hidden. Free.

    Of several classes, each one's probability by its name, with its std and interval.

    The interval holds with probability `level` if the model is right. For a function that hides X it is
    about the privacy noise alone.
    """
    checks.number(level, "level", above=0.0, below=1.0)
    if hides_inputs(release) and box_of(release) is None:
        if include_noise:
            raise InputError(
                "a new outcome's scatter cannot be added: this release does not show its inputs."
            )
        mean, std = release.released_at(X)
    else:
        mean, std = release.predict(X, return_std=True, include_noise=include_noise)
    if isinstance(release, StagedRelease):  # whose law is not normal, and stays where outcomes can be
        lower, upper = np.moveaxis(release.interval(X, level, include_noise=include_noise), -1, 0)
        if mean.ndim > 1:
            return by_class(release.classes, mean, std=std, lower=lower, upper=upper)
        return {"mean": mean, "std": std, "lower": lower, "upper": upper}
    half_width = NormalDist().inv_cdf(0.5 + level / 2) * std
    return {"mean": mean, "std": std, "lower": mean - half_width, "upper": mean + half_width}


def model_check(release: AnyRelease) -> ModelCheck | None:
    """Whether the model fits what was released; None for a file that cannot denoise."""
    return release.check_model() if can_denoise(release) else None


def released_table(release: AnyRelease, names: list[str], X: FloatArray) -> dict[str, Any]:
    """The released numbers with their noise, and the denoised ones, column by column.

    Where the model was learned these two are the same; of yes and no, classes, or counts, there are
    probabilities, or rates, with their intervals. `X` is its test points; or, since a function has none
    of its own, where that is asked.
    """
    values, noise = release.released_at(X)
    columns = named_points(release, names, X)
    if isinstance(release, StagedRelease) and values.ndim > 1:
        noises = {f"{one} noise_std": own for one, own in zip(release.classes, noise.T, strict=True)}
        return beside(columns, named_predictions(release, predictions(release, X) | noises))
    if outcome_of(release.plan) != REAL:
        return beside(columns, named_predictions(release, predictions(release, X)) | {"noise_std": noise})
    numbers = {"released": values, "noise_std": noise}
    if can_denoise(release):
        mean, std = release.predict(X, return_std=True)
        numbers |= {"denoised": mean, "denoised_std": std}
    return beside(columns, numbers)


def named_points(release: AnyRelease, names: list[str], X: FloatArray) -> dict[str, Any]:
    """Points by the names of their columns, levels of categories as they are called."""
    box, known = box_of(release), columns_of(release)
    columns = list(X.T)
    known = known if box is None else box.columns
    if known is not None:
        columns = [_as_text(values) for values in known.shown(X).values()]
    return dict(zip(names, columns, strict=True))


def _as_text(values: Any) -> Any:
    """Dates in ISO's form, with the time of day only where there is one."""
    if values.dtype.kind != "M":
        return values
    days = (values == values.astype("datetime64[D]")).all()
    return np.datetime_as_string(values, unit="D" if days else "s").astype(object)


def first_column(plan: Any) -> list[Any]:
    """The first input of a plan's test points, as its table has it."""
    columns = plan_columns(plan)
    if columns is None:
        return [float(value) for value in plan.X_star[:, 0]]
    return list(_as_text(next(iter(columns.shown(plan.X_star).values()))).tolist())


def columns_of(release: AnyRelease) -> Columns | None:
    """Names of the inputs, their levels and dates, where the file knows them."""
    return release.plan.columns


def output_name(release: AnyRelease, given: str | None) -> str | None:
    """What the outcome is called: as given, or as the file knows it."""
    columns = columns_of(release)
    return given or (None if columns is None else columns.response or None)


def input_names(release: AnyRelease, given: list[str] | None) -> list[str]:
    """Names for the input columns: those given, or the file's, or x, or x1, x2, ..."""
    wanted, known = n_inputs(release), known_names(release)
    if given is None and known is not None:
        return known
    if given is None:
        return ["x"] if wanted == 1 else [f"x{place}" for place in range(1, wanted + 1)]
    if len(given) != wanted:
        raise InputError(f"the release has {wanted} input column(s); {len(given)} were named.")
    return given


def known_names(release: AnyRelease) -> list[str] | None:
    """The names of the input columns, if the file has them."""
    box, columns = box_of(release), columns_of(release)
    if box is not None:
        return list(box.names)
    return None if columns is None else list(columns.names)


def default_points(release: AnyRelease) -> FloatArray:
    """Where to look at a release: its test points, or points over the range of a function's inputs."""
    if not isinstance(release, FunctionRelease):
        return release.X_star
    inputs = inputs_of(release)
    if inputs.shape[1] == 1:
        return np.linspace(inputs.min(), inputs.max(), 201)[:, None]
    return release.plan.points


def noise_of(release: AnyRelease) -> FloatArray:
    """Std that the privacy noise adds, at :func:`default_points`."""
    if isinstance(release, StagedRelease):
        return release.noise_std
    return release.plan.released_noise(default_points(release))
