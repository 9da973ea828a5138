"""Releases that were made: their files, and what is known about them."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cloakgp.app import folder as stored
from cloakgp.app.checked_ledger import receipt_of
from cloakgp.app.errors import bad_input, conflict, not_found
from cloakgp.app.folder import Folder
from cloakgp.app.settings import Settings
from cloakgp.app.work import Cache
from cloakgp.ledger.chain import Receipt, claim_of
from cloakgp.release import encoding
from cloakgp.release.release import Release
from cloakgp.workflow import releases as release_files
from cloakgp.workflow import words

log = logging.getLogger("cloakgp.app")
ASKED, DONE = "asked", "done"


class Releases:
    """The releases in the data folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._records: dict[str, dict[str, Any]] = {}
        self._loaded: Cache[Release] = Cache(16)
        for path in sorted(folder.releases.glob("[0-9a-f]*.json")):
            record = stored.read_json(path)
            if record is not None:
                self._records[record["id"]] = record

    def everything(self) -> list[dict[str, Any]]:
        """All releases, the newest first."""
        return sorted(self._done(), key=lambda record: str(record["created"]), reverse=True)

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

    def finish(self, record: dict[str, Any], release: Release) -> dict[str, Any]:
        """Write the release file, then what is known about it."""
        release = release.labelled(**record.get("labels", {}))
        assert release.receipt is not None
        path = self._file(record)
        if not path.exists():
            stored.write(path, encoding.encode(release))
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
                release.plan.hides_inputs, release_files.lists_inputs(release), release.plan.unit
            ),
            "receipt": asdict(release.receipt),
        }
        self._keep(done)
        return done

    def receipts(self) -> Iterator[Receipt]:
        """Of every release in the folder, be it finished or only its file."""
        done = {self._file(record): record["receipt"] for record in self._done()}
        yield from map(receipt_of, done.values())
        for path in sorted(set(self._folder.releases.glob("*.cloak")) - done.keys()):
            try:
                receipt = claim_of(path).receipt
            except (OSError, ValueError):
                log.error("%s cannot be read: it is not known who paid for it", path.name)
                continue
            if receipt is not None:
                yield receipt

    def has_file(self, release_id: str) -> bool:
        """Whether there is a release file, finished or not."""
        return self._folder.release(release_id).exists()

    def is_there(self, release_id: str) -> bool:
        """Whether a release is finished, with its file."""
        return self.has_file(release_id) and any(each["id"] == release_id for each in self._done())

    def load(self, release_id: str) -> Release:
        """The release itself."""
        path = self._file(self.get(release_id))
        return self._loaded.get(release_id, lambda: release_files.load(path))

    def given(self, asked: Settings) -> list[Release]:
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

    def loaded(self) -> list[Release]:
        """Every release, for an audit."""
        return [self.load(record["id"]) for record in self._done() if self._file(record).exists()]

    def path(self, release_id: str) -> Path:
        """Where the release file lies."""
        return self._file(self.get(release_id))

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
