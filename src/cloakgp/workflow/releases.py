"""A release file of any kind, and its numbers as a table."""

from __future__ import annotations

import copy
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import InputError
from cloakgp.data.columns import Columns
from cloakgp.files.container import MANIFEST, ReleaseFileError
from cloakgp.kernels.specs import is_custom
from cloakgp.posterior.model_check import ModelCheck
from cloakgp.release.plan import Plan, load_release
from cloakgp.release.release import Release
from cloakgp.release.showing import beside, by_class, inputs_of, interval, interval_at, response
from cloakgp.workflow.inputs import is_small

SUFFIX = ".cloak"


def load(path: str | os.PathLike[str]) -> Release:
    """The release in a file."""
    check_kind(path)
    return load_release(path)


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


def holds(path: Path, release: Release) -> bool:
    """Whether a file holds this very release."""
    try:
        found = load_release(path)
    except ValueError:
        return False
    same = (found.plan.digest, found.receipt) == (release.plan.digest, release.receipt)
    return same and np.array_equal(found.z, release.z)


def kind_of(release: Release) -> str:
    """What is in it: predictions, a function, or predictions that were released in stages."""
    plan = release.plan
    return "function" if plan.function is not None else "predictions" if plan.alone else "staged"


def n_inputs(release: Release) -> int:
    """How many input columns it has."""
    return int(release.plan.shown_inputs.shape[1])


def lists_inputs(release: Release) -> bool:
    """Whether the inputs are, or will be, in the file as they are."""
    plan = release.plan
    whole = plan.cells is None or (isinstance(plan.X, np.ndarray) and is_small(plan.X))
    return plan.X is not None and whole


def can_denoise(release: Release) -> bool:
    """Whether denoised predictions are possible: they need X or its box, and a kernel that the file holds."""
    plan = release.plan
    return plan.denoises and not is_custom(plan.gp.kernel.to_spec())


def predictions(
    release: Release, X: FloatArray, level: float = 0.95, include_noise: bool = False
) -> dict[str, FloatArray]:
    """Mean, std and interval at `X`: denoised; or the function itself where X is hidden. Free.

    Of several classes, each one's probability by its name, with its std and interval.

    The interval holds with probability `level` if the model is right. For a function that hides X it is
    about the privacy noise alone.
    """
    if include_noise and not release.plan.denoises:
        raise InputError("a new outcome's scatter cannot be added: this release does not show its inputs.")
    mean, *more = interval_at(release, X, level, include_noise)
    found = dict(zip(("std", "lower", "upper"), more, strict=True))
    return by_class(release.classes, mean, **found) if mean.ndim > 1 else {"mean": mean, **found}


def normal(mean: FloatArray, std: FloatArray, level: Any) -> dict[str, FloatArray]:
    """A mean, its std, and the ends of its interval."""
    return dict(zip(("mean", "std", "lower", "upper"), interval(mean, std, level).values(), strict=True))


def named_predictions(release: Release, found: Mapping[str, Any]) -> dict[str, Any]:
    """Predictions by names that say what they are; of yes and no, std and interval are that of yes."""
    return release.plan.outcome.named(found)


def model_check(release: Release) -> ModelCheck | None:
    """Whether the model fits what was released; None for a file that cannot denoise."""
    return release.check_model() if can_denoise(release) else None


def released_table(release: Release, X: FloatArray) -> dict[str, Any]:
    """The released numbers with their noise, and the denoised ones, column by column.

    Where the model was learned these two are the same; of yes and no, classes, or counts, there are
    probabilities, or rates, with their intervals. `X` is its test points; or, since a function has none
    of its own, where that is asked.
    """
    values, noise = release.released_at(X)
    columns = named_points(release.plan, X)
    if release.plan.outcome.told:
        found, noises = predictions(release, X), {"noise_std": noise}
        if values.ndim > 1:
            noises = {f"{one} noise_std": own for one, own in zip(release.classes, noise.T, strict=True)}
        return beside(columns, named_predictions(release, found | noises))
    numbers = {"released": values, "noise_std": noise}
    if can_denoise(release):
        numbers |= zip(("denoised", "denoised_std"), release.predict(X, return_std=True), strict=True)
    return beside(columns, numbers)


def named_points(plan: Plan, X: FloatArray) -> dict[str, Any]:
    """Points by the names of their columns, levels of categories as they are called."""
    return {name: _as_text(values) for name, values in Columns(inputs_of(plan)).shown(X).items()}


def _as_text(values: Any) -> Any:
    """Dates in ISO's form, with the time of day only where there is one."""
    if values.dtype.kind != "M":
        return values
    days = (values == values.astype("datetime64[D]")).all()
    return np.datetime_as_string(values, unit="D" if days else "s").astype(object)


def named(release: Release, inputs: Sequence[str] | None = None, output: str | None = None) -> Release:
    """The same release with names for its columns: those given, or the file's, or x, or x1, x2, ..."""
    known = inputs_of(release.plan)
    if inputs is not None and len(inputs) != len(known):
        raise InputError(f"the release has {len(known)} input column(s); {len(inputs)} were named.")
    given = zip(known, inputs or [one.name for one in known], strict=True)
    own = "" if release.plan.columns is None else release.plan.columns.response
    columns = Columns(tuple(replace(one, name=name) for one, name in given), output or own)
    plan, other = copy.copy(release.plan), copy.copy(release)  # with all that was worked out already
    object.__setattr__(plan, "columns", columns)
    object.__setattr__(other, "plan", plan)
    return other


def columns_in(release: Release, given: list[str] | None) -> list[str]:
    """Which columns of a table are the inputs: those that are named, here or in the file."""
    if given is None and release.plan.columns is None:
        raise InputError(
            "this release does not name its inputs. Say which columns they are: --inputs, in the order in "
            "which the release was planned."
        )
    return [one.name for one in inputs_of(named(release, given).plan)]


def default_points(release: Release) -> FloatArray:
    """Where to look at a release: its test points, or points over the range of a function's inputs."""
    inputs = release.plan.shown_inputs
    if release.plan.function is None or inputs.shape[1] > 1:
        return release.X_star
    return np.linspace(inputs.min(), inputs.max(), 201)[:, None]


def noise_of(release: Release) -> FloatArray:
    """Std that the privacy noise adds, at :func:`default_points`."""
    if release.plan.function is None:
        return release.noise_std
    return release.plan.noise_at(default_points(release))


def learned(release: Release) -> list[tuple[str, str, FloatArray]]:
    """What was learned, if the model was: each thing, whose unit it has, and how much it is in each model.

    Its unit is a column's, or nothing of a share.
    """
    settings: list[Any] = [one for one in release.settings if not one.known]
    outcome, inputs = release.plan.outcome, [one.name for one in inputs_of(release.plan)]
    if not settings:
        return []
    best, own = settings[0], outcome.link is None
    # Else it is of a function behind the probability, or the rate.
    unit = response(release.plan) if own else ""
    found = [("size of the signal", unit, [one.signal**0.5 for one in settings])]
    for place, column in enumerate(best.numeric):
        what = "lengthscale" if len(inputs) == 1 else f"lengthscale of {inputs[column]}"
        found.append((what, inputs[column], [one.lengthscale[place] for one in settings]))
    for place, part in enumerate(best.parts(inputs)):
        found.append((f"share of {part}", "", [one.form[2][place] for one in settings]))
    if outcome.scattered:
        found.append((outcome.noise_words, unit, [one.noise**0.5 if own else one.noise for one in settings]))
    return [(what, unit, np.array(values)) for what, unit, values in found]
