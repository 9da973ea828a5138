"""Open a release file, a plan file, or what an entry of a ledger paid for."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cloakgp.core import checks
from cloakgp.core.errors import ArgumentError, InputError
from cloakgp.data.people import ALIKE
from cloakgp.files.container import Array
from cloakgp.files.reading import read
from cloakgp.ledger.charging import as_ledger
from cloakgp.release.encoding import plan_parts, release_parts
from cloakgp.release.plan import Plan
from cloakgp.release.plan_file import PlanFile
from cloakgp.release.planning import plan_from
from cloakgp.release.release import Release
from cloakgp.release.settings import digest_of


def load_release(path: str | os.PathLike[str], kernel: Any = None, mean: Any = None) -> Release:
    """Read a release file. Nothing in it is executed.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        The kernel, needed for new predictions if the file was made with a custom one, which no file can hold.
    mean : callable, optional
        The prior mean, needed for new predictions if it was a function of X, which no file can hold either:
        it has its values at X and at the test points only.

    Returns
    -------
    Release
    """
    manifest, arrays, _ = read(path)
    return release_of(manifest, arrays, kernel, mean)


def release_of(
    manifest: dict[str, Any], arrays: dict[str, Array], kernel: Any = None, mean: Any = None
) -> Release:
    """The release that a manifest and arrays describe which fit the schema."""
    plan = Plan.of(*plan_parts(manifest, arrays, kernel, mean))
    return Release(plan, *release_parts(manifest, arrays, plan))


def recover(ledger: Any, entry: int) -> Release:
    """What an entry of the ledger paid for, from the ledger alone, if all or some of it was answered.

    The plan that was charged for lies in the ledger. It was read from there, so it cannot meet y: stages that
    were not answered are left to ``plan.recover``, with a plan that was made from the table.
    """
    kept = as_ledger(ledger).charged_plan(entry)
    if kept is None:
        raise ArgumentError("entry", "must have paid for a release of predictions or of a function")
    return Plan.from_charged(kept).recover(ledger, entry)


def load_plan(
    path: str | os.PathLike[str],
    X: Any = None,
    *,
    people: Any = None,
    given: Sequence[Any] = (),
    ids: str = ALIKE,
) -> Plan:
    """Plan again what a plan file asks for, from your own table. Nothing in the file is executed.

    Print ``plan.question`` before you release: it lists all settings, which are all that came from the file.

    Parameters
    ----------
    path : path
        Written by ``plan.save``, or by ``cloakgp plan``.
    X : table or (N, D) array
        The public inputs, as they were planned for; left out where whole rows are protected.
    people : (N,) ids, or the name of a column of X, optional
        If the promise is to people.
    given : releases, optional
        If the plan takes earlier ones into account.
    ids : {"alike", "exact"}
        As in the plan: it cannot choose alone to take each way of writing an id for another person.

    Raises
    ------
    Refused
        If the inputs or people are not those that the plan was made for, or another plan comes out.
    """
    name, file = checks.path(path).name, PlanFile.read(path)
    settings = file.settings
    if settings.ids != ids:
        remedy = "It takes each way of writing an id for another person. Say so, too, if that is right."
        raise ArgumentError("ids", f"must be {settings.ids!r}, as in the plan", ids, remedy)
    if [digest_of(release) for release in given] != list(settings.given):
        raise ArgumentError("given", "must be the releases that the plan was made for, in order")
    try:
        plan = plan_from(replace(settings, given=tuple(given)), X, people)
    except (TypeError, OverflowError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise InputError(f"{name}: its settings cannot be planned ({said}).") from None
    differs = file.check(plan)
    if differs is not None:
        warnings.warn(f"{name}: {differs}", stacklevel=2)
    return plan
