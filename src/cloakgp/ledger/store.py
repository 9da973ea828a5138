"""The ledger's one table, in SQLite or PostgreSQL.

Rows are only ever added. A writer locks first (SQLite: the file; PostgreSQL: the data set's row, then
entry 0 for the moment of appending), so two requests never see the same balance. No error that leaves
this module shows a statement's parameters: an answer that was not charged must not get out that way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cloakgp.ledger.chain import CREATED, Entry
from cloakgp.ledger.errors import LedgerError

try:
    import sqlalchemy as sa
except ImportError:  # pragma: no cover
    raise ImportError("Ledger needs SQLAlchemy: pip install 'cloakgp[ledger]'") from None

_TABLE = sa.Table(
    "cloakgp_ledger",
    sa.MetaData(),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("when", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("inputs", sa.Text, nullable=False),
    sa.Column("request", sa.Text),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("contents", sa.LargeBinary),  # what was released: kept apart, and read only when fetched
)
_WORDS = [column for column in _TABLE.columns if column.name != "contents"]
_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER cloakgp_ledger_no_{verb} BEFORE {verb} ON cloakgp_ledger "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("update", "delete")
    ],
    "postgresql": [
        "CREATE FUNCTION cloakgp_ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
        "CREATE TRIGGER cloakgp_ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON cloakgp_ledger "
        "EXECUTE FUNCTION cloakgp_ledger_append_only()",
    ],
}
_SCHEMA_LOCK = 7_149_612  # PostgreSQL advisory lock: one process at a time makes the table


class Store:
    """Connections to one ledger. It can be copied to other processes: nothing is kept open."""

    def __init__(self, url: str, timeout: float) -> None:
        try:
            parsed = sa.make_url(url)
        except sa.exc.ArgumentError:
            raise ValueError(
                f"url must look like 'sqlite:///budget.db' or 'postgresql://...'; {_HIDDEN}"
            ) from None
        self.kind = parsed.get_backend_name()
        if self.kind not in _APPEND_ONLY:
            raise ValueError(f"url must begin with sqlite: or postgresql:; got {self.kind}:.")
        if self.kind == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        self.path = Path(parsed.database or "") if self.kind == "sqlite" else None
        if self.path is not None and str(self.path) in (".", ":memory:"):
            raise ValueError(
                "url must name a file, such as 'sqlite:///budget.db': a ledger in memory forgets."
            )
        self.shown = parsed.render_as_string(hide_password=True)
        options = {"timeout": timeout} if self.kind == "sqlite" else {"connect_timeout": int(timeout) + 1}
        self.timeout = timeout
        try:
            self.engine = sa.create_engine(
                parsed, poolclass=sa.pool.NullPool, hide_parameters=True, connect_args=options
            )
        except ImportError:
            raise ImportError("Ledger on PostgreSQL needs psycopg: pip install 'cloakgp[postgres]'") from None
        if self.kind == "sqlite":
            sa.event.listen(self.engine, "connect", _plain_sqlite)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self, create: bool = False) -> Iterator[sa.Connection]:
        """A transaction that is committed on leaving, durably, or raises and has changed nothing."""
        if create and self.path is not None:
            _make_private(self.path)
        with self._transaction("BEGIN IMMEDIATE") as connection:
            if create:
                self._make_table(connection)
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sa.Connection]:
        if self.path is not None and not str(self.path).startswith("file:") and not self.path.exists():
            raise LedgerError(f"ledger: there is no file {self.path}. Ledger(...).create(...) makes one.")
        with _clear_errors(self):
            connection = self.engine.connect()
        with connection:
            with _clear_errors(self):
                if self.kind == "sqlite":
                    connection.exec_driver_sql(begin)
                else:
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(self.timeout * 1000)}")
                    connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
            try:
                yield connection
            except BaseException:
                with suppress(sa.exc.SQLAlchemyError):  # a broken connection has rolled back already
                    connection.rollback()
                raise
            with _clear_errors(self, committing=True):
                if self.kind == "sqlite":
                    connection.exec_driver_sql("COMMIT")
                connection.commit()

    def _make_table(self, connection: sa.Connection) -> None:
        with _clear_errors(self):
            if self.kind == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
            if sa.inspect(connection).has_table(_TABLE.name):
                return
            _TABLE.create(connection)
            for statement in _APPEND_ONLY[self.kind]:
                connection.exec_driver_sql(statement)

    def entries(self, connection: sa.Connection) -> list[Entry]:
        """All entries, in order."""
        query = sa.select(*_WORDS).order_by(_TABLE.c.number)
        with _clear_errors(self):
            return [_entry(row) for row in connection.execute(query).mappings()]

    def lock_dataset(self, connection: sa.Connection, dataset: str) -> None:
        """Wait until no other request is spending from this data set."""
        made = (_TABLE.c.kind == CREATED) & (_TABLE.c.dataset == dataset)
        with _clear_errors(self):
            connection.execute(sa.select(_TABLE.c.number).where(made).with_for_update()).all()

    def lock_head(self, connection: sa.Connection) -> None:
        """Wait until no other request is appending."""
        with _clear_errors(self):
            connection.execute(sa.select(_TABLE.c.number).where(_TABLE.c.number == 0).with_for_update()).all()

    def append(self, connection: sa.Connection, entry: Entry, contents: bytes | None = None) -> None:
        values: dict[str, Any] = {name.name: getattr(entry, name.name) for name in _WORDS}
        values["what"] = json.dumps(entry.what, sort_keys=True)
        with _clear_errors(self):
            connection.execute(_TABLE.insert().values(**values, contents=contents))

    def contents(self, connection: sa.Connection, number: int) -> bytes | None:
        """What was released with this entry."""
        query = sa.select(_TABLE.c.contents).where(_TABLE.c.number == number)
        with _clear_errors(self):
            found: bytes | None = connection.execute(query).scalar()
        return found if found is None else bytes(found)


_HIDDEN = "what was given is not shown, since it may hold a password."


def _entry(row: Any) -> Entry:
    values = dict(row)
    try:
        values["what"] = json.loads(values["what"])
    except ValueError:
        values["what"] = {"unreadable": values["what"]}  # the chain will tell
    return Entry(**values)


def _plain_sqlite(connection: Any, _: Any) -> None:
    """Leave transactions to us, and have a commit on disk, journal and folder included, before it returns."""
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = EXTRA")


def _make_private(path: Path) -> None:
    """Make the file readable by its owner alone; where it exists, it stays as it is."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise LedgerError(f"ledger: {path} cannot be made or written ({error.strerror}).") from None


@contextmanager
def _clear_errors(store: Store, committing: bool = False) -> Iterator[None]:
    """Say what went wrong, without the statement, its parameters or the error behind it."""
    problem = ""
    try:
        yield
    except (sa.exc.SQLAlchemyError, ValueError) as error:
        problem = _explained(str(getattr(error, "orig", None) or ""), type(error).__name__)
    if problem:
        unsure = (
            " It is not certain whether the charge was made: look at ledger.entries(); if it was, "
            "recover(...) on the plan gives the answer."
            if committing and store.kind == "postgresql"
            else " Nothing was charged."
        )
        raise LedgerError(f"ledger {store.shown}: {problem} No answer was given out.{unsure}")


def _explained(message: str, kind: str) -> str:
    """A database's message in our words: its own might quote an answer that was not charged."""
    for sign, meaning in (
        ("locked", "another process is using it and did not finish in time. Try again later."),
        ("lock timeout", "another request is using it and did not finish in time. Try again later."),
        ("readonly", "it is read-only. Make the file and its folder writable, or use another ledger."),
        ("read-only", "it is read-only. Connect with a role that may write, or use another ledger."),
        ("full", "the disk is full. Make room, then try again."),
        ("unable to open", "the file cannot be opened. Check that its folder exists and is writable."),
        ("no such table", "it is empty: no ledger was ever made here. Ledger(...).create(...) makes one."),
        ("relation", "it is empty: no ledger was ever made here. Ledger(...).create(...) makes one."),
        ("does not exist", "there is no such database or user."),
        ("authentication", "the user name or password is wrong."),
        ("connect", "the server cannot be reached. Check that it runs, and its host and port."),
        ("closed", "the connection was lost."),
        ("terminat", "the connection was lost."),
        ("not a database", "the file is not a ledger (not a SQLite database)."),
        ("malformed", "the file is damaged. Restore it from a backup."),
        ("append-only", "entries cannot be changed or removed."),
    ):
        if sign in message.lower():
            return meaning
    return f"the database refused ({kind})."
