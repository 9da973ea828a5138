"""The ledger's one table, in SQLite or PostgreSQL.

Rows are only ever added. A writer locks first (SQLite: the file; PostgreSQL: the data set's row, then
entry 0 for the moment of appending), so two requests never see the same balance. No error that leaves
this module shows a statement's parameters: an answer that was not charged must not get out that way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from cloakgp.core.errors import Argument, ArgumentError, Message, Phrase, missing_extra
from cloakgp.ledger.chain import CREATED, Entry, LedgerAbsent, LedgerError

try:
    import sqlalchemy as sa
except ImportError:  # pragma: no cover
    raise missing_extra(Argument("ledger"), "SQLAlchemy", "ledger") from None

_TABLE = sa.Table(
    "cloakgp_ledger",
    sa.MetaData(),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    *(sa.Column(f.name, sa.Text, nullable=f.name == "request") for f in fields(Entry) if f.name != "number"),
    sa.Column("contents", sa.LargeBinary),  # what was released: kept apart, and read only when fetched
    sa.Column("kept_plan", sa.LargeBinary),  # likewise, what it is read by
)
_WORDS = [_TABLE.c[f.name] for f in fields(Entry)]
_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER cloakgp_ledger_no_{verb} BEFORE {verb} ON cloakgp_ledger "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("update", "delete")
    ]
    + [
        "CREATE TRIGGER cloakgp_ledger_no_replace BEFORE INSERT ON cloakgp_ledger "
        "WHEN EXISTS (SELECT 1 FROM cloakgp_ledger WHERE number = NEW.number) "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    ],
    "postgresql": [
        "CREATE FUNCTION cloakgp_ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
        "CREATE TRIGGER cloakgp_ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON cloakgp_ledger "
        "EXECUTE FUNCTION cloakgp_ledger_append_only()",
    ],
}
for _dialect, _statements in _APPEND_ONLY.items():
    for _statement in _statements:
        _made = sa.DDL(_statement).execute_if(dialect=_dialect)  # type: ignore[no-untyped-call]
        sa.event.listen(_TABLE, "after_create", _made)


class Store:
    """Connections to one ledger. It can be copied to other processes: nothing is kept open."""

    def __init__(self, url: str, timeout: float) -> None:
        parsed = _parsed(url)
        self.path = _file(parsed) if parsed.get_backend_name() == "sqlite" else None
        """Of a SQLite file."""
        self.timeout = min(timeout, 1e6)  # both databases count milliseconds in 32 bits
        options: dict[str, Any] = {"poolclass": sa.pool.NullPool, "hide_parameters": True}
        if self.path is not None:
            name = f"file:{quote(str(self.path))}" if parsed.query else str(self.path)
            parsed = parsed.set(database=name)
            self.url = parsed.render_as_string(hide_password=False)
            self.shown = f"sqlite:///{self.path}"
            options["connect_args"] = {"timeout": self.timeout}
        else:
            self.url = url
            self.shown = parsed.set(drivername="postgresql", query={}).render_as_string(hide_password=True)
            options["connect_args"] = {"connect_timeout": int(self.timeout) + 1}
            # Whatever the server's default: what was committed while we waited for a lock must be seen.
            options["isolation_level"] = "READ COMMITTED"
        try:
            self.engine = sa.create_engine(parsed, **options)
        except ImportError:
            raise missing_extra(Argument("url"), "psycopg for PostgreSQL", "postgres") from None
        except sa.exc.ArgumentError:
            raise ArgumentError("url", _NO_URL) from None
        if self.path is not None:
            sa.event.listen(self.engine, "connect", _plain_sqlite)

    def reading(self) -> AbstractContextManager[sa.Connection]:
        return self._transaction("BEGIN")

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
        if self.path is not None and not os.path.exists(self.path):
            raise LedgerAbsent(
                Message(f"ledger: there is no file {self.path}. ", Phrase.CREATE_LEDGER, " makes one.")
            )
        with self._clear_errors():
            connection = self.engine.connect()
        with connection:
            with self._clear_errors():
                for statement in [begin] if self.path is not None else self._settings():
                    connection.exec_driver_sql(statement)
            try:
                yield connection
            except BaseException:
                with suppress(sa.exc.SQLAlchemyError):  # a broken connection has rolled back already
                    connection.rollback()
                raise
            with self._clear_errors(committing=True):
                connection.commit()

    def _settings(self) -> list[str]:
        """Of a transaction in PostgreSQL."""
        return [
            "SET LOCAL idle_in_transaction_session_timeout = 0",
            # A commit must be on disk before its answer leaves.
            "SELECT set_config('synchronous_commit', 'on', true) "
            "WHERE current_setting('synchronous_commit') = 'off'",
            f"SET LOCAL lock_timeout = {max(1, int(self.timeout * 1000))}",  # 0 would be for ever
        ]

    def _make_table(self, connection: sa.Connection) -> None:
        with self._clear_errors():
            if self.path is None:
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7149612)")  # any number of our own
            _TABLE.create(connection, checkfirst=True)

    def entries(self, connection: sa.Connection) -> list[Entry]:
        """All entries, in order."""
        query = sa.select(*_WORDS).order_by(_TABLE.c.number)
        with self._clear_errors():
            return [_entry(row) for row in connection.execute(query).mappings()]

    def lock(self, connection: sa.Connection, dataset: str | None = None) -> None:
        """Wait until no other request is appending; or with a data set, spending from that."""
        made = (_TABLE.c.kind == CREATED) & (_TABLE.c.dataset == dataset)
        which = _TABLE.c.number == 0 if dataset is None else made
        with self._clear_errors():
            if self.path is not None:  # the file is locked already: find out here whether it may be written
                connection.exec_driver_sql("UPDATE cloakgp_ledger SET number = number WHERE 0")
            connection.execute(sa.select(_TABLE.c.number).where(which).with_for_update()).all()

    def append(
        self,
        connection: sa.Connection,
        entry: Entry,
        contents: bytes | None = None,
        kept_plan: bytes | None = None,
    ) -> None:
        values: dict[str, Any] = {name.name: getattr(entry, name.name) for name in _WORDS}
        values["what"] = json.dumps(entry.what, sort_keys=True)
        with self._clear_errors():
            connection.execute(_TABLE.insert().values(**values, contents=contents, kept_plan=kept_plan))
            stored = connection.execute(sa.select(*_WORDS).where(_TABLE.c.number == entry.number)).mappings()
            same = _entry(stored.one()) == entry
            same = same and self.held(connection, entry.number) == (contents, kept_plan)
        if not same:  # or else the chain would break here, with the answer gone out
            raise LedgerError(
                f"ledger {self.shown}: it does not keep what is written to it as it is. No answer was given "
                "out. Nothing was charged."
            )

    def held(self, connection: sa.Connection, number: int) -> tuple[bytes | None, bytes | None]:
        """What was released with this entry, and what that is read by."""
        columns = _TABLE.c.contents, _TABLE.c.kept_plan
        query = sa.select(
            *(sa.type_coerce(column, sa.types.NullType()) for column in columns)
        )  # whatever it is
        with self._clear_errors():
            row = connection.execute(query.where(_TABLE.c.number == number)).one()
        return _bytes(row[0]), _bytes(row[1])

    @contextmanager
    def _clear_errors(self, committing: bool = False) -> Iterator[None]:
        """Say what went wrong, without the statement, its parameters or the error behind it."""
        problem = ""
        try:
            yield
        except (sa.exc.SQLAlchemyError, ValueError) as error:
            problem = _explained(str(getattr(error, "orig", None) or ""), type(error).__name__)
        if problem:
            # A lost connection or a failing disk may have made the commit all the same.
            certain = self.path is not None and problem.startswith(("another process", "the disk is full"))
            unsure = (
                Message(" It is not certain whether the charge was made: ", Phrase.LOOK_FOR_CHARGE)
                if committing and not certain
                else " Nothing was charged."
            )
            kind = LedgerAbsent if problem is _NEVER_MADE else LedgerError
            clear = kind(Message(f"ledger {self.shown}: ", problem, " No answer was given out.", unsure))
            try:
                raise clear
            except LedgerError:
                clear.__context__ = (
                    None  # the database's error, which Python hangs on to, may quote the answer
                )
                raise


def _bytes(found: Any) -> bytes | None:
    if found is None:
        return None
    return bytes(found) if isinstance(found, (bytes, memoryview)) else b"not bytes"


_NO_URL = (
    "must look like 'sqlite:///budget.db' or 'postgresql://user:password@host/name', on one line; what was "
    "given is not shown, since it may hold a password"
)
_OTHER_TABLE = "the table in it is not a ledger's, or one of another version."
_NEVER_MADE = Message("it is empty: no ledger was ever made here. ", Phrase.CREATE_LEDGER, " makes one.")


def _parsed(url: str) -> sa.URL:
    """The URL's parts, or an error that does not quote it: it may hold a password."""
    try:
        parsed = sa.make_url(url) if url.isprintable() else None
    except (sa.exc.ArgumentError, ValueError):
        parsed = None
    if parsed is None:
        raise ArgumentError("url", _NO_URL)
    kind = parsed.get_backend_name()
    if kind not in _APPEND_ONLY:
        raise ArgumentError("url", "must begin with sqlite: or postgresql:", f"{kind}:")
    return parsed.set(drivername={"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}[kind])


def _file(parsed: sa.URL) -> Path:
    """The file of a SQLite URL, which must be one, with its locks in force."""
    name, query = parsed.database or "", dict(parsed.query)
    if query:
        # Others, such as nolock and vfs, would let two requests spend the same budget.
        modes = [{"uri": "true", "mode": mode} for mode in ("ro", "rw")]
        if query not in modes or not name.startswith("file:") or "?" in name:
            options = ": the only options of a SQLite ledger are 'sqlite:///file:...?mode=ro&uri=true', "
            raise ValueError(Message(Argument("url"), options, "for reading, and mode=rw."))
        name = unquote(name.removeprefix("file:"))
        name = name.removeprefix("//localhost") if name.startswith("//localhost/") else name
    if name in ("", ".", ":memory:") or name.startswith("file:"):
        raise ArgumentError(
            "url", "must name a file, such as 'sqlite:///budget.db': a ledger in memory forgets"
        )
    return Path(os.path.abspath(name))


def _entry(row: Any) -> Entry:
    values = dict(row)
    try:
        values["what"] = json.loads(values["what"])
    except (TypeError, ValueError, RecursionError):
        values["what"] = {"unreadable": str(values["what"])}  # the chain will tell
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
        reason = error.strerror
    else:
        return
    raise LedgerError(f"ledger: {path} cannot be made or written ({reason}). Nothing was charged.")


def _explained(message: str, kind: str) -> str:
    """A database's message in our words: its own might quote an answer that was not charged."""
    for meaning, *signs in (
        ("another process is using it and did not finish in time. Try again later.", "locked"),
        ("another request is using it and did not finish in time. Try again later.", "lock timeout"),
        ("it is read-only. Make the file and its folder writable, or use another ledger.", "readonly"),
        ("it is read-only. Connect with a role that may write, or use another ledger.", "read-only"),
        ("the disk is full. Make room, then try again.", "full", "no space left"),
        ("the disk failed, or is full.", "disk i/o"),
        ("this user may not do that. Ask for the rights to read and write the ledger.", "permission denied"),
        ("the file cannot be opened. Check that its folder exists and is writable.", "unable to open"),
        (_OTHER_TABLE, "no such column", "column cloakgp_ledger"),
        (_NEVER_MADE, "no such table", "relation"),
        ("there is no such database or user.", "does not exist"),
        ("the user name or password is wrong.", "authentication"),
        ("the server cannot be reached. Check its host name.", "resolve", "not known"),
        ("the server cannot be reached. Check that it runs, and its host and port.", "connect"),
        ("the connection was lost.", "closed", "terminat"),
        ("the file is not a ledger (not a SQLite database).", "not a database"),
        ("the file is damaged. Restore it from a backup.", "malformed"),
        ("entries cannot be changed or removed.", "append-only"),
    ):
        if any(sign in message.lower() for sign in signs):
            return meaning
    return f"the database refused ({kind})."
