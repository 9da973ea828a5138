"""A tiny plan, a way into the database behind the ledger's back, and children that can be killed."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import secrets
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from cloakgp import GP, Plan
from cloakgp.core.accounting import Gaussian
from cloakgp.kernels import EQ
from cloakgp.ledger import Entry, Ledger
from cloakgp.ledger.chain import sha256

CHILD = Path(__file__).with_name("ledger_children.py")
TABLE = "cloakgp_ledger"
ROWS = 6
BOUNDS = (0.0, 1000.0)
Y = np.array([112.4567890123, 934.123456789, 455.987654321, 731.13579, 268.24681012, 577.8642])
"""Numbers that occur nowhere else."""


def small_plan(*, epsilon=1.0, delta=0.01, n_outputs=2, **options) -> Plan:
    """A plan whose release takes about a millisecond."""
    X = np.linspace(0.0, 1.0, ROWS)[:, None]
    X_star = np.linspace(0.2, 0.8, n_outputs)[:, None]
    return GP(EQ(0.5, variance=1e6), 3e5, BOUNDS).plan(
        X, X_star=X_star, epsilon=epsilon, delta=delta, **options
    )


def small_function_plan(bound="exact", *, epsilon=1.0, delta=0.01) -> Plan:
    X = np.linspace(0.0, 1.0, ROWS)[:, None]
    basis = None if bound == "exact" else np.array([[0.1], [0.5], [0.9]])
    gp = GP(EQ(0.5, variance=1e6), 3e5, BOUNDS)
    return gp.plan_function(X, epsilon=epsilon, delta=delta, bound=bound, basis=basis)


class Watched:
    """A y that notes whether it was read."""

    def __init__(self, y=Y):
        self.y, self.read = y, False

    def __array__(self, dtype=None, copy=None):
        self.read = True
        return np.array(self.y, dtype=dtype)

    def __len__(self):
        self.read = True
        return len(self.y)


class Unreadable:
    """A y that must not be read."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("y was read")

    __len__ = __iter__ = __getitem__ = __array__


@contextmanager
def behind(url):
    """A connection to the database as anybody has it: transactions committed, the ledger not asked."""
    if url.startswith("postgresql:"):
        url = url.replace("postgresql:", "postgresql+psycopg:", 1)
    with _engine(url).begin() as connection:
        yield connection


@cache
def _engine(url):
    """Kept: what is asked of a server once need not be asked again."""
    return sa.create_engine(url, poolclass=sa.pool.NullPool)


def disarm(connection):
    """Remove the triggers that keep honest people from editing."""
    if connection.dialect.name == "sqlite":
        names = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars()
        for name in list(names):
            connection.exec_driver_sql(f"DROP TRIGGER {name}")
    else:
        connection.exec_driver_sql(f"ALTER TABLE {TABLE} DISABLE TRIGGER USER")


def rows_of(connection):
    """All rows as dictionaries, in order."""
    result = connection.exec_driver_sql(f"SELECT * FROM {TABLE} ORDER BY number")
    return [dict(row) for row in result.mappings()]


def table_of(connection):
    names = connection.exec_driver_sql(f"SELECT * FROM {TABLE} WHERE number < 0").keys()
    return sa.table(TABLE, *(sa.column(name) for name in names))


class Kept:
    """A ledger that tests may spoil: each finds it as it was."""

    def __init__(self, url):
        self._url = url
        self._file = Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else None
        self._contents = self._file and self._file.read_bytes()
        with behind(url) as connection:
            self._rows = rows_of(connection)

    def put_back(self):
        if self._file:
            shutil.rmtree(self._file.parent)
            self._file.parent.mkdir()
            self._file.write_bytes(self._contents)
            self._file.chmod(0o600)
        else:
            rewrite(self._url, lambda _: self._rows)
            with behind(self._url) as connection:
                connection.exec_driver_sql(f"ALTER TABLE {TABLE} ENABLE TRIGGER USER")
        return self._url

    def check(self, releases=()):
        """It could be put back, or what tests found wrong was there before them."""
        Ledger(self.put_back()).verify(releases)


def sealed_again(rows):
    """Rows with hashes that are right: a careful liar, who knows how the ledger works."""
    previous = Entry.previous
    result = []
    for row in rows:
        words = {name: value for name, value in row.items() if name not in ("contents", "kept_plan")}
        words["what"] = json.loads(words["what"])
        entry = replace(Entry(**words), previous=previous).sealed()
        previous = entry.hash
        result.append({**row, "previous": entry.previous, "hash": entry.hash})
    return result


def rewrite(url, change, *, seal=False):
    """Replace all rows by what `change` makes of them."""
    with behind(url) as connection:
        disarm(connection)
        rows = rows_of(connection)
        connection.exec_driver_sql(f"DELETE FROM {TABLE}")
        changed = change(rows)
        changed = rows if changed is None else changed
        if seal:
            changed = sealed_again(changed)
        if changed:
            connection.execute(table_of(connection).insert(), changed)


@dataclass(frozen=True)
class AnyPlan:
    """What a ledger sees of a plan; its later stages are planned from the answers before them."""

    stages: int = 1
    mu: float = 0.05
    unit: str = "one row"
    partition: str = ""
    delta: float = 0.001
    inputs_digest: str = "f" * 64

    @property
    def cost(self):
        return Gaussian(self.mu, 2 * self.stages)

    @property
    def digest(self):
        return sha256(f"{self.stages} stages, {self.mu}".encode())

    @property
    def question_digest(self):
        return self.digest

    def to_bytes(self):
        return b"a plan"

    def stage_plan(self, answers):
        """The next stage's plan."""
        return json.dumps([self.mu, [answer.tolist() for answer in answers]]).encode()


def random_numbers():
    return np.array([secrets.randbits(40), -secrets.randbits(40)])


def stage_of(ledger, plan, entry, number, stage_plan=b"a stage"):
    """The context in which a stage is answered; the first pays."""
    return ledger.stage(entry, number, plan, stage_plan) if number else ledger.charge(plan, "people")


def answer_all(ledger, plan, draw=random_numbers, **charge):
    """All stages of a release: those on record as they are, the others drawn now."""
    charges, entry = [], None
    for number in range(plan.stages):
        later = plan.stage_plan([charge.answer for charge in charges])
        first = {"dataset": "people", **charge}
        with ledger.stage(entry, number, plan, later) if number else ledger.charge(plan, **first) as found:
            if found.answer is None:
                found.answer = draw()
        entry = found.receipt.entry if number == 0 else entry
        charges.append(found)
    return charges


def as_they_are(charges):
    return [(charge.answer.tolist(), charge.receipt) for charge in charges]


def said(row, **new):
    """An entry that says something else; None removes a word."""
    what = {**json.loads(row["what"]), **new}
    row["what"] = json.dumps({name: value for name, value in what.items() if value is not None})


def in_order(*numbers):
    """These rows, renumbered."""
    return lambda rows: [{**rows[number], "number": new} for new, number in enumerate(numbers)]


def once_more(number, what=None, **new):
    """A copy of a row at the end, which says something else."""

    def change(rows):
        rows.append({**rows[number], **new, "number": len(rows)})
        said(rows[-1], **(what or {}))

    return change


def changed(number, what=None, **new):
    """A row that says something else."""

    def change(rows):
        said(rows[number], **(what or {}))
        rows[number].update(new)

    return change


class Children:
    """A program that has imported everything, and forks for each request: see ``ledger_children.py``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        self._errors = (folder / "errors").open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )

    def put(self, thing) -> str:
        """The path of a pickle that children can read."""
        path = self.folder / f"{next(self._numbers)}.pickle"
        path.write_bytes(pickle.dumps(thing))
        return str(path)

    def run(self, calls):
        """Call functions of ``ledger_children.py``, each in a process of its own, all at once.

        Returns for each the signal that killed it (0 if none) and the lines that it had printed.
        """
        self._process.stdin.write(json.dumps(list(calls)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError((self.folder / "errors").read_text())
        return [(signal, [json.loads(line) for line in lines]) for signal, lines in json.loads(answer)]

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()
        self._errors.close()
