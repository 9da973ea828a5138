"""Releases that were made: their files, what is known about them, and predictions from them."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.app import folder as stored
from cloakgp.app import limits, models
from cloakgp.app.cache import Cache
from cloakgp.app.class_numbers import by_class, with_noise
from cloakgp.app.errors import bad_input, conflict, not_found, public_work
from cloakgp.app.folder import Folder
from cloakgp.app.learned import density_of, learned_tables
from cloakgp.app.public_inputs import as_points, columns_shown
from cloakgp.app.receipts import receipt_of
from cloakgp.ledger import Ledger
from cloakgp.ledger.charge import Receipt
from cloakgp.plans import opening
from cloakgp.plans.opening import AnyRelease
from cloakgp.plots import is_unknown
from cloakgp.rows.columns import Columns
from cloakgp.verification import verify
from cloakgp.workflow import releases as release_files
from cloakgp.workflow import report, tables, words
from cloakgp.workflow.pictures import has_map, release_pictures

log = logging.getLogger("cloakgp.app")
ASKED, DONE = "asked", "done"
_SHOWN = (
    "id",
    "name",
    "kind",
    "plan",
    "created",
    "by",
    "settings",
    "certificate",
    "summary",
    "promise",
    "limits",
)
_NUMBERS = {"denoised": "mean", "denoised_std": "std", "lower": "lower", "upper": "upper"}
_drawing = threading.Lock()


@contextmanager
def drawing() -> Iterator[None]:
    """One picture at a time, since matplotlib is not made for several threads; with names as they are.

    It would take what is between dollar signs in a column's name for a formula, or fail.
    """
    with public_work(), _drawing:
        from matplotlib import rc_context

        with rc_context({"text.parse_math": False}):
            yield


class Releases:
    """The releases in the data folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._records: dict[str, dict[str, Any]] = {}
        self._loaded: Cache[AnyRelease] = Cache(16)
        self._arrays: Cache[dict[str, Any]] = Cache(16)
        self._reports: Cache[str] = Cache(16)
        self._verified: Cache[dict[str, Any]] = Cache(256)
        for path in sorted(folder.releases.glob("[0-9a-f]*.json")):
            record = stored.read_json(path)
            if record is not None:
                self._records[record["id"]] = record

    def everything(self) -> list[dict[str, Any]]:
        """What is shown of all releases, the newest first."""
        newest = sorted(self._done(), key=lambda record: record["created"], reverse=True)
        return [shown(record) for record in newest]

    def get(self, release_id: str) -> dict[str, Any]:
        """What is known about a release."""
        record = self._records.get(release_id)
        if record is None or record["state"] != DONE:
            raise not_found("release")
        return record

    def count(self, plan_id: str, dataset: str) -> int:
        """How often a plan was released from a data set's budget."""
        return sum((each["plan"], each["dataset"]) == (plan_id, dataset) for each in self._done())

    def unfinished(self) -> list[dict[str, Any]]:
        """Releases that were begun, or whose file is gone."""
        return [
            each for each in self._records.values() if each["state"] != DONE or not self._file(each).exists()
        ]

    def begin(self, record: dict[str, Any]) -> None:
        """Note that a release is about to be made, so that it can be finished after a crash."""
        known = self._records.get(record["id"])
        if known is None or known["state"] != DONE:
            self._keep({**record, "state": ASKED})

    def noted(self, release_id: str) -> dict[str, Any] | None:
        """What was noted of a release, finished or not."""
        return self._records.get(release_id)

    def forget(self, record: dict[str, Any]) -> None:
        """Nothing came of it."""
        with self._lock:
            known = self._records.get(record["id"])
            if known is not None and known["state"] == ASKED:
                self._folder.record(record["id"]).unlink(missing_ok=True)
                self._records = {key: value for key, value in self._records.items() if key != record["id"]}

    def finish(self, record: dict[str, Any], release: AnyRelease) -> dict[str, Any]:
        """Write the release file, then what is known about it."""
        release = release.labelled(**record.get("labels", {}))
        assert release.receipt is not None
        path = self._file(record)
        if not path.exists():
            stored.write(path, opening.encode_release(release))
        elif not release_files.holds(path, release):
            raise conflict(
                f"{path.name} in the folder of releases holds another answer, and is not overwritten. Move "
                "it away and ask again: what was paid for is on record, and costs nothing."
            )
        done = {
            **record,
            "state": DONE,
            "certificate": release.certificate.to_dict(),
            "summary": words.noise_summary(release_files.noise_of(release), record["settings"]["bounds"]),
            "promise": words.promise(release.certificate),
            "limits": words.limits(
                release_files.hides_inputs(release), release_files.lists_inputs(release), release.plan.unit
            ),
            "receipt": {
                "dataset": release.receipt.dataset,
                "entry": release.receipt.entry,
                "head": release.receipt.head,
            },
        }
        self._keep(done)
        return done

    def receipts(self) -> Iterator[Receipt]:
        """Of every release in the folder, be it finished or only its file."""
        done = {self._file(record): record["receipt"] for record in self._done()}
        yield from map(receipt_of, done.values())
        for path in sorted(set(self._folder.releases.glob("*.cloak")) - done.keys()):
            try:
                receipt = opening.load(path)[2]
            except (OSError, ValueError):
                log.error("%s cannot be read: it is not known who paid for it", path.name)
                continue
            if receipt is not None:
                yield receipt

    def has_file(self, release_id: str) -> bool:
        """Whether there is a release file, finished or not."""
        return self._folder.release(release_id).exists()

    def load(self, release_id: str) -> AnyRelease:
        """The release itself."""
        path = self._file(self.get(release_id))
        return self._loaded.get(release_id, lambda: release_files.load(path))

    def given(self, asked: models.Settings) -> list[AnyRelease]:
        """Releases that a plan takes into account: of the same column, and paid for by the same data set."""
        records = [self.get(release_id) for release_id in asked.given or ()]
        for record in records:
            settings = record["settings"]
            if (settings["data"], settings["output"]) != (asked.data, asked.output):
                raise bad_input(
                    f"given: {record['name']} is about {settings['output']!r} of {settings['data']}, and not "
                    "about the same outcomes."
                )
        if len({record["dataset"] for record in records}) > 1:
            raise bad_input("given: these releases were paid for by different data sets.")
        return [self.load(record["id"]) for record in records]

    def dataset_of(self, asked: models.Settings) -> str | None:
        """The data set that paid for what a plan takes into account, if it does."""
        return str(self.get(asked.given[0])["dataset"]) if asked.given else None

    def loaded(self) -> list[AnyRelease]:
        """Every release, for an audit."""
        return [self.load(record["id"]) for record in self._done() if self._file(record).exists()]

    def with_arrays(self, release_id: str) -> dict[str, Any]:
        """What is known about a release, and its numbers."""
        self.get(release_id)
        return self._arrays.get(release_id, lambda: self._with_arrays(release_id))

    def _with_arrays(self, release_id: str) -> dict[str, Any]:
        record, release = self.get(release_id), self.load(release_id)
        with public_work():
            where = release_files.default_points(release)
            released, noise = release.released_at(where)
            denoised = release_files.can_denoise(release)
            found = release_files.predictions(release, where) if denoised else {}
            of_classes = with_noise(release, found, where, noise)
            unknown = is_unknown(release, where).tolist() if denoised and not of_classes else None
            check = release_files.model_check(release)
            X = where[:0] if release_files.hides_inputs(release) else release_files.inputs_of(release)
            learned = learned_tables(release, record["settings"]["inputs"], record["settings"]["output"])
        picked = np.unique(np.linspace(0, len(X) - 1, min(len(X), limits.SAMPLE)).round().astype(int))
        numbers: dict[str, Any] = {"by_class": of_classes}
        if not of_classes:
            numbers |= {"released": released.tolist(), "noise_std": noise.tolist()}
            for name, own in _NUMBERS.items():
                numbers[name] = found[own].tolist() if found else None
        known = known_columns(release)
        return {
            **shown(record),
            **numbers,
            **learned,
            "unknown": unknown,
            "model_check": None if check is None else {"fits": check.fits, "words": check.words},
            "has_map": has_map(release, record["settings"]["inputs"], coordinates=()),  # of any two
            "points": where.tolist(),
            "columns": None if known is None else columns_shown(known),
            "inputs_sample": X[picked].tolist(),
            "density": density_of(release),
        }

    def predict(
        self, release_id: str, points: list[list[Any]], level: float, include_noise: bool
    ) -> dict[str, Any]:
        """Mean, std and interval anywhere, or each class's; one question has one answer for ever."""
        release = self.load(release_id)
        with public_work():
            X = as_points(known_columns(release), points, release_files.n_inputs(release))
            found = release_files.predictions(release, X, level, include_noise)
            if not all(np.isfinite(values).all() for values in found.values()):
                raise bad_input("points: the prediction is not a finite number at some of them.")
            of_classes = by_class(release, found)
        numbers = {name: None if of_classes else found[name].tolist() for name in _NUMBERS.values()}
        return {**numbers, "by_class": of_classes}

    def path(self, release_id: str) -> Path:
        """Where the release file lies."""
        return self._file(self.get(release_id))

    def table(self, release_id: str) -> bytes:
        """The released numbers as CSV."""
        record, release = self.get(release_id), self.load(release_id)
        with public_work():
            where = release_files.default_points(release)
            return tables.encoded(release_files.released_table(release, record["settings"]["inputs"], where))

    def picture(self, release_id: str, kind: str) -> bytes:
        """The most telling picture, as .png, .svg or .pdf."""
        settings, release = self.get(release_id)["settings"], self.load(release_id)
        with drawing():
            return next(release_pictures(release, settings["inputs"], settings["output"])).encoded(kind)

    def report(self, release_id: str, ledger: Ledger | None) -> str:
        """The report, as HTML; with what is left of the budget, if there is a ledger to ask."""
        record = self.get(release_id)
        settings = record["settings"]
        spends = None if ledger is None else len(ledger.balance(record["dataset"]).events)

        def draw() -> str:
            with drawing():
                title = record.get("labels", {}).get("title", record["name"])
                columns = settings["inputs"], settings["output"]
                return report.html(self._file(record), *columns, title=title, ledger=ledger)

        return self._reports.get((release_id, spends), draw)

    def verified(self, release_id: str) -> dict[str, Any]:
        """Whether the release file keeps what it promises; worked out once for each state of the file."""
        path = self.path(release_id)
        if not path.exists():
            return {
                "ok": False,
                "complete": False,
                "words": "the release file is gone. Start the server again: it will be made anew.",
            }

        def check() -> dict[str, Any]:
            try:
                found = verify(path)
            except ValueError as error:
                return {"ok": False, "complete": False, "words": str(error)}
            earlier = [{"epsilon": epsilon, "delta": delta} for epsilon, delta in found.earlier]
            return {"ok": True, "complete": found.complete, "words": str(found), "earlier": earlier}

        seen = path.stat()
        return self._verified.get((release_id, seen.st_ino, seen.st_mtime_ns, seen.st_size), check)

    def _done(self) -> list[dict[str, Any]]:
        return [record for record in self._records.values() if record["state"] == DONE]

    def _file(self, record: dict[str, Any]) -> Path:
        return self._folder.release(record["id"])

    def _keep(self, record: dict[str, Any]) -> None:
        with self._lock:
            stored.write_json(self._folder.record(record["id"]), record)
            self._records = {**self._records, record["id"]: record}


def release_id(plan_id: str, dataset: str, number: int) -> str:
    """The id of a plan's first, second, ... release from a budget: known before it is made."""
    return hashlib.sha256(f"{plan_id} {number} {dataset}".encode()).hexdigest()[:16]


def known_columns(release: AnyRelease) -> Columns | None:
    """What the inputs are, where the release knows it."""
    box = release_files.box_of(release)
    return release_files.columns_of(release) if box is None else box.columns


def shown(record: dict[str, Any]) -> dict[str, Any]:
    """What people see of a release, arrays aside."""
    return {**{name: record[name] for name in _SHOWN}, "receipt": record["receipt"]}
