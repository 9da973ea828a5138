"""verify: one file, read once, and what could be checked of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakgp.core.checks import IntArray
from cloakgp.core.errors import Argument, ArgumentError, Message, Phrase
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.cells import fill_cells
from cloakgp.data.inputs import same_ids, same_inputs
from cloakgp.data.people import ALIKE, EXACT, People, as_people, times_noise
from cloakgp.data.sources import as_source
from cloakgp.files import reading, schema, signing
from cloakgp.kernels.specs import is_custom
from cloakgp.posterior import staging
from cloakgp.release.plan import release_of
from cloakgp.release.release import Release
from cloakgp.release.stages import Rule
from cloakgp.verification import guarantee, reasons, replay
from cloakgp.verification.guarantee import Arrays, Words
from cloakgp.verification.reasons import Findings, Reason

SENSITIVITY = "the sensitivity"
_PREDICTIONS = "the predictions"
_ORIGIN = "the origin of "
_CELLS = "which rows are in which cell"


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
            given = ", ".join(f"({epsilon:g}, {delta:g})-DP" for epsilon, delta in self.earlier)
            promise += f", not the total: it was given {given}"
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
        lines = [self.headline]
        if self.earlier:  # which is all that the file knows of
            lines += [
                "  All of these were spent on the same outcomes, and more may have been. Only a budget that "
                "was fixed beforehand, in a ledger, makes one promise for all of them."
            ]
        lines += [f"  - {check}" for check in self.checks]
        return "\n".join([*lines, *(f"  - NOT checked: {what}" for what in self.unchecked)])


def _in_short(what: str) -> str:
    """What was not checked, in a few words."""
    return f"{_ORIGIN}what each row has of its own" if what.startswith(_ORIGIN) else what.partition(":")[0]


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
        Needed to check the predictions of a release made with a custom kernel, which no file can hold.
    X : table or (N, D) array, optional
        The public inputs. Compared with those of the file; needed to check which rows are in which cell if
        they are so many that the file holds only their digest. A table with the names that the file has, an
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
    claim, alone = manifest["certificate"], manifest["stages"][-1]["readout"]
    hidden = schema.GRID in manifest or (alone is not None and not {"X", "cells"} & arrays.keys())
    if X is not None and hidden:
        said = ": this file does not show its inputs, so X cannot be compared; leave it out."
        raise ValueError(Message(Argument("X"), said))
    guarantee.check_words(manifest, arrays)
    columns, rows = schema.table_of(manifest)
    people = same_ids(people, X, rows)
    if X is not None:
        X = same_inputs(X, columns, rows)
    if people is not None and schema.PEOPLE not in manifest:
        raise ArgumentError("people", "must be left out: the promise of this file is to each row")
    labels = _people(manifest, arrays, people) if schema.PEOPLE in manifest else None
    signer = None
    if signature is not None or signed_by is not None:
        signer = signing.check(manifest["sha256"], signature, signed_by)
    found = Findings(["digests, canonical form and closed schema"], [])
    proven = _check_contents(manifest, arrays, kernel, X, labels, found)
    _add_custodians_word(manifest, arrays, labels, found)
    unproven = {what: what.startswith((SENSITIVITY, replay.WINDOWS)) for what in found.unchecked}
    return Verification(
        epsilon=claim["epsilon"],
        delta=claim["delta"],
        unit=claim["unit"],
        proven_delta=None if any(unproven.values()) else proven,
        checks=tuple(found.checked),
        unchecked=tuple(sorted(found.unchecked, key=lambda what: not unproven[what])),
        signed_by=signer,
        earlier=tuple((one["epsilon"], one["delta"]) for one in manifest["given"]),
        ids=claim["ids"],
    )


def _people(manifest: Words, arrays: Arrays, ids: Any) -> IntArray | None:
    """(N,) who has which rows: as the file says, or as is given; None if neither is."""
    claim, named, found = manifest["certificate"], manifest[schema.PEOPLE]["sha256"], arrays.get("people")
    if found is not None:
        reasons.refuse(People(found).digest != named, Reason.PEOPLE)
    if ids is not None:
        given = as_people(ids, claim["n_rows"], claim["ids"])
        reasons.refuse(given.digest != named, Reason.OTHER_PEOPLE)
        found = given.labels.astype(np.int64)
    return found


def _check_contents(
    manifest: Words, arrays: Arrays, kernel: Any, X: Any, people: Any, found: Findings
) -> float:
    """The promise, and then all that is made with the model; the delta that is proven."""
    with reasons.errors_of_the_model():
        release = release_of(manifest, arrays, kernel)
    if X is not None and "X" in arrays:
        replay.compare(arrays["X"], X)
    rule, has_matrix, labels = release.plan.rule, "matrix_0" in arrays, None
    if rule.cells is not None:
        labels = _labels_of_cells(rule, arrays, X, people, found)
    elif rule.X is not None:
        groups = rule.inputs.groups
        labels = np.arange(len(rule.inputs)) if groups is None else groups.labels
    counts = rule.inputs.counts if has_matrix else np.zeros(0)
    rows = guarantee.Rows.of(manifest, np.asarray(counts).astype(np.int64), labels, people)
    proven = guarantee.check_guarantee(manifest, arrays, rows)
    if schema.PEOPLE in manifest and (people is None or labels is None) and has_matrix:
        held = "the file holds only the digest of who has which rows"
        found.lack(f"{SENSITIVITY}: {held}", Phrase.GIVE_PEOPLE)
    custom = kernel is None and is_custom(manifest["model"].get("kernel", {"kind": ""}))
    alone = release.plan.alone
    reasons.refuse(alone and manifest["rule"] != staging.RULE, Reason.FIGURE, "rule")
    _add_promise(release, has_matrix, len(manifest["given"]), found)
    if custom:
        what = _PREDICTIONS if alone else replay.WINDOWS
        found.lack(f"{what}: the kernel is a custom one", Phrase.GIVE_KERNEL)
    elif alone:
        with reasons.errors_of_the_model():
            replay.check_alone(release.plan, found)
    else:
        replay.check(release, found)
    return proven


def _labels_of_cells(rule: Rule, arrays: Arrays, X: Any, people: Any, found: Findings) -> IntArray | None:
    """(N,) the cell of each row, where X is known."""
    cells, columns = rule.cells, arrays["X_star"].shape[1]
    assert cells is not None
    shown = arrays.get("X") if X is None else as_source(X, "X", columns)
    if shown is None:
        found.lack(f"{_CELLS}: the file holds only X's digest", Phrase.GIVE_INPUTS)
        return None
    categories = rule.prior.category_columns(columns)
    filled = fill_cells(shown, cells.centres, cells.scale, None, categories)
    reasons.refuse(filled.digest != cells.digest, Reason.DIGEST)
    reasons.refuse(not np.array_equal(filled.counts, cells.counts), Reason.CELLS)
    room = 1e-9 * np.ptp(cells.centres, axis=0)
    for own, told in ((filled.means, cells.means), (filled.spreads, cells.spreads)):
        reasons.refuse(not (np.abs(own - told) <= room).all(), Reason.CELLS)
    labels = np.asarray(filled.labels)
    if people is not None:
        total = np.bincount(labels, People(people).own, len(cells.centres)) / cells.counts
        own = np.ones(len(total)) if cells.own is None else cells.own
        reasons.refuse(not np.array_equal(total, own), Reason.PEOPLE, "rows_each")
    found.checked.append(_CELLS)
    return labels


def _add_promise(release: Release, has_matrix: bool, earlier: int, found: Findings) -> None:
    """What was checked of the promise itself."""
    made, planned = len(release.stages), release.plan.stages
    if release.plan.alone:
        found.checked.append("noise scale, mu, epsilon and delta")
        if has_matrix:
            found.checked.append("integer sensitivity, from the matrix")
        else:
            withheld = "the matrix is withheld, so only the custodian can; a signature vouches"
            found.unchecked.append(f"{SENSITIVITY}: {withheld}")
        return
    stages = f"{made} stage{'s' if made > 1 else ''}{f' of {planned} planned' if made < planned else ''}"
    said = "integer sensitivity, noise scale and mu of each, from its matrix, within its share"
    found.checked.extend([f"{stages}: {said}", "the stages' total mu, epsilon and delta"])
    if earlier:
        found.checked.append(
            f"{earlier} earlier release{'s' if earlier > 1 else ''}, each with a promise of its own: integer "
            "sensitivity, noise scale, mu and delta"
        )


def _add_custodians_word(manifest: Words, arrays: Arrays, labels: IntArray | None, found: Findings) -> None:
    """What no file can show: of a ledger, of people, or of what rows have of their own."""
    if manifest["ledger"] is not None:
        entry, dataset = manifest["ledger"]["entry"], manifest[schema.CUSTODIANS_WORDS]["dataset"]
        receipt = f"ledger receipt: entry {entry} of {dataset!r} is the custodian's word ("
        found.checked.append(Message(receipt, Phrase.COMPARE_RECEIPTS, " compares it with the ledger)"))
    most = manifest.get(schema.GRID, {}).get("max_rows")
    if most is not None:
        found.unchecked.append(
            f"how many rows of each person were counted: that it was {most} row{'s' if most > 1 else ''} at "
            "most is the custodian's word"
        )
    if manifest["certificate"]["ids"] == EXACT:
        found.unchecked.append(
            "whether somebody's id is written in two ways: ids were compared exactly as they are written, "
            "and that this tells people apart is the custodian's word"
        )
    given = [name for name in ("bounds", "mean", "noise") if manifest["model"].get(name) == schema.PER_ROW]
    rows = arrays.get("rows_each", None if labels is None else People(labels).own)
    if "noise" in given and rows is not None:  # which may follow from how many rows each person has
        each = arrays["noise"] / times_noise(rows, manifest[schema.PEOPLE]["within"])
        if np.allclose(each, each[0], rtol=1e-9, atol=0):
            given.remove("noise")
    if given:
        found.unchecked.append(
            f"{_ORIGIN}each row's {', '.join(given)}: that they were not made from y, and so would have "
            "published it, is the custodian's word"
        )
