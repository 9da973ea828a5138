"""verify: one file, read once, and what could be checked of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakgp.errors import Argument, ArgumentError, Message, Phrase
from cloakgp.files import reading, schema, signing
from cloakgp.files.container import ReleaseFileError
from cloakgp.plans import opening
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.predictions import Plan
from cloakgp.plans.staged import StagedRelease
from cloakgp.rows.blas import one_blas_thread
from cloakgp.rows.cells import fill_cells
from cloakgp.rows.inputs import same_ids, same_inputs
from cloakgp.rows.merging import Inputs, distinct
from cloakgp.rows.people import ALIKE, EXACT
from cloakgp.rows.sources import as_source
from cloakgp.verification import guarantee, predictions, reasons, recipe, replay, staged
from cloakgp.verification.people import rows_of
from cloakgp.verification.people import shown as named_people
from cloakgp.verification.reasons import Reason, VerificationError

_SENSITIVITY = "the sensitivity"
_PREDICTIONS = "the predictions"
_ORIGIN = "the origin of "
_CELLS = "which rows are in which cell"
_EACH = "how many rows of each person were counted"
_WRITTEN = "whether somebody's id is written in two ways"


@dataclass(frozen=True)
class Verification:
    """What was checked, and the guarantee that follows from the file's contents."""

    epsilon: float
    delta: float
    unit: str
    proven_delta: float | None
    """The delta that the integers in the file prove for its epsilon, at most `delta`; None if the
    sensitivity was not checked, since then nothing is proven."""
    checks: tuple[str, ...]
    unchecked: tuple[str, ...]
    """What was not checked, and what that would take. Some are messages with parts, as checks are."""
    signed_by: str | None
    earlier: tuple[tuple[float, float], ...] = ()
    """(epsilon, delta) of each earlier release that this one was given, checked as its own is. They tell of
    the same outcomes and are no part of its promise, which is not the total then."""
    ids: str = ALIKE
    """How ids of people were compared: "exact" if the custodian chose so."""

    @property
    def complete(self) -> bool:
        """Whether everything was checked that a file of this kind claims."""
        return not self.unchecked

    @property
    def headline(self) -> str:
        """The result in one line."""
        promise = f"({self.epsilon:g}, {self.delta:g})-DP, unit {self.unit}"
        if self.ids == EXACT:
            promise += " by exact ids"
        if self.earlier:
            promise += f", not the total: it was given {', '.join(map(_pair, self.earlier))}"
        signed = "not signed" if self.signed_by is None else f"signed by key {self.signed_by}"
        if self.complete:
            return f"verified: {promise}; {signed}"
        if self.proven_delta is not None:
            left = list(dict.fromkeys(map(_in_short, self.unchecked)))
            were = "were" if len(left) > 1 or left[0] == _PREDICTIONS else "was"
            return f"verified IN PART: {promise}, but {' and '.join(left)} {were} not checked; {signed}"
        were = "were" if self.missing.endswith("s") else "was"
        return (
            f"verified IN PART: {self.missing} {were} not checked, so that {promise}, is claimed and not "
            f"proven; {signed}"
        )

    @property
    def missing(self) -> str:
        """The first thing that was not checked, in a word or two; empty if all was."""
        return self.unchecked[0].partition(":")[0] if self.unchecked else ""

    def __str__(self) -> str:
        lines = [f"  - {check}" for check in self.checks]
        lines += [f"  - NOT checked: {what}" for what in self.unchecked]
        return "\n".join([self.headline, *self._costs, *lines])

    @property
    def _costs(self) -> list[str]:
        """All that was spent on the same outcomes, as far as the file knows."""
        if not self.earlier:
            return []
        before = [f"    {_pair(pair)}: a release before it, which it was given" for pair in self.earlier]
        return [
            "  not the total: these were spent on the same outcomes, and others may have been",
            *before,
            f"    {_pair((self.epsilon, self.delta))}: this release",
            "    Only a budget that was fixed beforehand, in a ledger, makes one promise for all of them.",
        ]


def _pair(promise: tuple[float, float]) -> str:
    return f"({promise[0]:g}, {promise[1]:g})-DP"


def _in_short(what: str) -> str:
    """What was not checked, in a few words."""
    return (
        "the origin of what each row has of its own" if what.startswith(_ORIGIN) else what.partition(":")[0]
    )


@one_blas_thread()
def verify(
    path: str | os.PathLike[str],
    *,
    signed_by: Any = None,
    kernel: Any = None,
    X: Any = None,
    people: Any = None,
) -> Verification:
    """Recompute a release file's guarantee from its contents, or raise.

    Parameters
    ----------
    path : path
    signed_by : Ed25519 public key, optional
        Refuse the file unless it was signed with this key (extra ``sign``). Also as bytes or hex.
    kernel : callable, optional
        Needed to check a release made with a custom kernel, which no file can hold: its predictions, and,
        where its columns are made by a recipe, its sensitivity.
    X : table or (N, D) array, optional
        The public inputs. Compared with those of the file; needed to check the sensitivity of a release of
        so many rows that its file holds only their digest. A table with the names that the file has, an
        array, a memory map, a Parquet file's columns or a Dask array.
    people : (N,) ids, or the name of a column of X, optional
        Whose row each is, where the promise is to people: compared with the file's, and needed together with
        X where it holds only a digest.

    Returns
    -------
    Verification
        Look at its `complete`: a file may not hold all that is needed, and `unchecked` then says what is
        missing.

    Raises
    ------
    VerificationError
        If the guarantee, or a number derived from it, does not follow from the contents.
    ReleaseFileError
        If the file is damaged or not a release file.
    SignatureError
        If the signature does not fit, or `signed_by` asks for one that is not there.
    """
    manifest, arrays, signature = reading.read(path)
    claim, in_stages = manifest["certificate"], manifest["release"] == schema.STAGED
    hidden = "grid" in manifest if in_stages else manifest["measurement"]["kind"] == schema.WITHHELD
    if X is not None and hidden:
        said = ": this file does not show its inputs, so X cannot be compared; leave it out."
        raise ValueError(Message(Argument("X"), said))
    (staged if in_stages else guarantee).check_words(manifest)
    columns, rows = schema.table_of(manifest)
    people = same_ids(people, X, rows)
    if X is not None:
        X = same_inputs(X, columns, rows)
    if people is not None and schema.PEOPLE not in manifest:
        raise ArgumentError("people", "must be left out: the promise of this file is to each row")
    shared = named_people(manifest, arrays, people) if schema.PEOPLE in manifest else None
    signer = None
    if signature is not None or signed_by is not None:
        signer = signing.check(manifest["sha256"], signature, signed_by)
    found = (_in_stages if in_stages else _at_once)(manifest, arrays, kernel, X, shared)
    proven, checked, left = found
    if manifest["ledger"] is not None:
        entry, dataset = manifest["ledger"]["entry"], manifest[schema.CUSTODIANS_WORDS]["dataset"]
        checked.append(
            Message(
                f"ledger receipt: entry {entry} of {dataset!r} is the custodian's word (",
                Phrase.COMPARE_RECEIPTS,
                " compares it with the ledger)",
            )
        )
    left += _custodians_word(manifest)
    unproven = any(what.startswith((_SENSITIVITY, replay.WINDOWS)) for what in left)
    return Verification(
        epsilon=claim["epsilon"],
        delta=claim["delta"],
        unit=claim["unit"],
        proven_delta=None if unproven else proven,
        checks=("digests, canonical form and closed schema", *checked),
        unchecked=tuple(left),
        signed_by=signer,
        earlier=tuple((one["epsilon"], one["delta"]) for one in manifest.get("given", ())),
        ids=claim.get("ids", ALIKE),
    )


def _custodians_word(manifest: dict[str, Any]) -> list[str]:
    """What no file can show of people."""
    left, most = [], manifest.get("grid", {}).get("max_rows")
    if most is not None:
        rows = f"{most} row{'s' if most > 1 else ''}"
        left.append(f"{_EACH}: that it was {rows} at most is the custodian's word")
    if manifest["certificate"].get("ids") == EXACT:
        left.append(
            f"{_WRITTEN}: ids were compared exactly as they are written, and that this tells people apart is "
            "the custodian's word"
        )
    return left


_Found = tuple[float, list[str], list[str]]
"""The delta that is proven, what was checked, and what was not."""


def _in_stages(manifest: dict[str, Any], arrays: dict[str, Any], kernel: Any, X: Any, people: Any) -> _Found:
    """All of a release in stages."""
    release = opening.release_of(manifest, arrays, kernel)
    assert isinstance(release, StagedRelease)
    done_before, left_before, labels = _cells_checked(release, arrays, X, people)
    counts = staged.as_counts(release.plan.rule.inputs.counts)
    claimed = schema.PEOPLE in manifest and (people is None or labels is None)
    proven = staged.check_guarantee(manifest, arrays, staged.Rows(counts, labels, people, claimed))
    if claimed:
        held = f"{_SENSITIVITY}: the file holds only the digest of who has which rows ("
        left_before = [Message(held, Phrase.GIVE_PEOPLE, ")"), *left_before]
    made, planned = len(release.stages), release.plan.stages
    stages = f"{made} stage{'s' if made > 1 else ''}{f' of {planned} planned' if made < planned else ''}"
    done = [
        f"{stages}: integer sensitivity, noise scale and mu of each, from its matrix, within its share",
        "the stages' total mu, epsilon and delta",
    ]
    earlier = len(manifest["given"])
    if earlier:
        done.append(
            f"{earlier} earlier release{'s' if earlier > 1 else ''}, each with a promise of its own: integer "
            "sensitivity, noise scale, mu and delta"
        )
    if kernel is None and schema.is_custom(manifest["model"].get("kernel", {"kind": ""})):
        custom = Message(f"{replay.WINDOWS}: the kernel is a custom one (", Phrase.GIVE_KERNEL, ")")
        return proven, done + done_before, [custom, *left_before]
    checked, left = replay.check(release)
    return proven, done + done_before + checked, left + left_before


def _cells_checked(
    release: StagedRelease, arrays: dict[str, Any], X: Any, people: Any
) -> tuple[list[str], list[str], Any]:
    """The inputs, and which rows are in which cell; and the column of each row, where that is known."""
    cells = release.plan.rule.cells
    if X is not None and "X" in arrays:
        predictions.compare(arrays["X"], X)
    if cells is None:
        groups = release.plan.rule.inputs.groups
        return [], [], np.arange(len(arrays["X"])) if groups is None else groups.labels
    shown = arrays.get("X") if X is None else as_source(X, "X", arrays["X_star"].shape[1])
    if shown is None:
        held = f"{_CELLS}: the file holds only X's digest ("
        return [], [Message(held, Phrase.GIVE_INPUTS, ")")], None
    categories = release.plan.rule.prior.category_columns(arrays["X_star"].shape[1])
    filled = fill_cells(shown, cells.centres, None, categories)
    reasons.refuse(filled.digest != cells.digest, Reason.DIGEST)
    reasons.refuse(not np.array_equal(filled.counts, cells.counts), Reason.LABELS)
    if people is not None:
        total = np.bincount(np.asarray(filled.labels), rows_of(people), len(cells.centres)) / cells.counts
        own = np.ones(len(total)) if cells.own is None else cells.own
        reasons.refuse(not np.array_equal(total, own), Reason.PEOPLE, "rows_each")
    return [_CELLS], [], filled.labels


def _at_once(manifest: dict[str, Any], arrays: dict[str, Any], kernel: Any, X: Any, people: Any) -> _Found:
    """All of a release of any other kind."""
    kind = manifest["measurement"]["kind"]
    proven = guarantee.check_guarantee(manifest, arrays)
    done = ["noise scale, mu, epsilon and delta"]
    if kind == schema.DENSE:
        done.append("integer sensitivity, from the matrix")
    inputs = None if X is None else _compared(manifest, arrays, X)
    if kernel is None and schema.is_custom(manifest["model"]["kernel"]):
        checked: list[str] = []
        left: list[str] = [Message(f"{_PREDICTIONS}: the kernel is a custom one (", Phrase.GIVE_KERNEL, ")")]
        if kind == schema.FACTORED:
            made = f"{_SENSITIVITY}: its columns are made with a custom kernel ("
            left.insert(0, Message(made, Phrase.GIVE_KERNEL, ")"))
    else:
        checked, left = _from_the_model(manifest, arrays, kernel, inputs, people)
        if kind == schema.FACTORED and recipe.SENSITIVITY not in checked:
            held = f"{_SENSITIVITY}: the file holds only X's digest ("
            missing = Phrase.GIVE_PEOPLE if schema.PEOPLE in manifest else Phrase.GIVE_INPUTS
            left.insert(0, Message(held, missing, ")"))
    if kind == schema.WITHHELD:
        left.insert(
            0, f"{_SENSITIVITY}: the matrix is withheld, so only the custodian can; a signature vouches"
        )
    given = [name for name in ("bounds", "mean") if manifest["model"][name] == schema.PER_ROW]
    if given:
        left.append(
            f"{_ORIGIN}each row's {' and '.join(given)}: that they were not made from y, and so would have "
            "published it, is the custodian's word"
        )
    return proven, done + checked, left


def _compared(manifest: dict[str, Any], arrays: dict[str, Any], X: Any) -> Inputs:
    """X, once it is what the file shows, or what it names by a digest."""
    noise, windows = arrays.get("noise", manifest["model"]["noise"]), _windows(manifest["model"], arrays)
    if "X" in arrays:
        predictions.compare(arrays["X"], X)
        return distinct(arrays["X"], noise, windows)
    shape = (manifest["certificate"]["n_rows"], arrays["X_star"].shape[1])
    return recipe.named(X, noise, windows, shape, manifest["measurement"]["inputs_sha256"])


def _windows(model: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """(N, 3) bounds and prior mean of each row; None if all have the same."""
    if schema.PER_ROW not in (model["bounds"], model["mean"]):
        return None
    own = model["bounds"] == schema.PER_ROW
    low, high = (arrays["lower"], arrays["upper"]) if own else model["bounds"]
    return np.column_stack(np.broadcast_arrays(low, high, arrays.get("mean_rows", model["mean"])))


def _from_the_model(
    manifest: dict[str, Any], arrays: dict[str, Any], kernel: Any, inputs: Inputs | None, people: Any
) -> tuple[list[str], list[str]]:
    """What was checked, and what was not, of all that is made with the model."""
    try:
        plan = opening.plan_of(manifest, arrays, kernel)[0]
        if isinstance(plan, FunctionPlan):
            return predictions.check_function(plan)
        assert isinstance(plan, Plan)
        if manifest["measurement"]["kind"] == schema.FACTORED:
            unknown = schema.PEOPLE in manifest and people is None
            return recipe.check(plan, None if unknown else inputs, people), []
        return predictions.check(plan), []
    except (VerificationError, ReleaseFileError):
        raise
    except (ValueError, TypeError, ArithmeticError) as error:
        raise VerificationError(Reason.MODEL, str(error).rstrip(".")) from None
