"""A full disk, a database that is locked, read-only, damaged or away: a clear error, and nothing spent."""

from __future__ import annotations

import os
import pickle
import re
import sqlite3
import sys
import time
from contextlib import closing, contextmanager

import pytest
from ledger_helpers import Unreadable, Watched, Y, behind

from cloakgp.core.accounting import Exponential
from cloakgp.ledger import Ledger, LedgerError, LedgerTampered


@contextmanager
def refused(*words):
    """A LedgerError that says these words, no number of y's, and has no cause that could say more."""
    with pytest.raises(LedgerError) as caught:
        yield
    assert not isinstance(caught.value, LedgerTampered)
    message = str(caught.value)
    for word in words:
        assert re.search(word, message), message
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, repr(caught.value.__context__)
    assert "INSERT" not in message


def check_unspent(ledger, before):
    ledger.verify()
    assert ledger.head == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs rlimits")
def test_a_quota(file_url, children, plan, folder):
    """The file may not grow any more (RLIMIT_FSIZE): the write fails, not the whole process."""
    ledger = Ledger(file_url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    before = ledger.head
    arguments = {"url": file_url, "plan": children.put(plan), "y": Y.tolist(), "bytes": 100}
    [(signal, [line])] = children.run([["spend_within", arguments]])
    assert signal == 0
    assert re.search("disk (failed|is full)", line["error"])
    check_unspent(ledger, before)
    plan.release(Y, ledger=Ledger(file_url, timeout=2.0), dataset="people")


def test_a_locked_file(file_url, plan):
    """Another program holds the file: we wait no longer than was said, y unread, and then all is well."""
    ledger = Ledger(file_url, timeout=0.3)
    ledger.create("people", epsilon=1.0, delta=0.01)
    with closing(sqlite3.connect(ledger._store.path)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        with refused("another process is using it", "Try again later", "Nothing was charged"):
            plan.release(Unreadable(), ledger=ledger, dataset="people")
        assert 0.2 < time.monotonic() - start < 5
        assert ledger.balance("people").events == ()  # reading is possible
        holder.execute("ROLLBACK")
        holder.execute("BEGIN EXCLUSIVE")
        with refused("another process"):
            ledger.balance("people")
        holder.execute("ROLLBACK")
    plan.release(Y, ledger=ledger, dataset="people")
    ledger.verify()


def test_a_commit_that_fails(file_url, plan):
    """A reader keeps the writer from committing: the answer was drawn, and is not given out."""
    ledger = Ledger(file_url, timeout=0.3)
    ledger.create("people", epsilon=1.0, delta=0.01)
    before, y = ledger.head, Watched()
    with closing(sqlite3.connect(ledger._store.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM cloakgp_ledger").fetchall()
        with refused("another process", "No answer was given out", "Nothing was charged"):
            plan.release(y, ledger=ledger, dataset="people")
        assert y.read
        reader.execute("ROLLBACK")
    check_unspent(ledger, before)
    plan.release(Y, ledger=ledger, dataset="people")


def test_a_lock_on_the_server(server, plan):
    """Another transaction spends from the same data set and does not end."""
    url = server.url(server.database())
    ledger = Ledger(url, timeout=0.3)
    ledger.create("people", epsilon=1.0, delta=0.01)
    with Ledger(url)._store.writing() as connection:
        ledger._store.lock(connection, "people")
        with refused("another request is using it", "Nothing was charged"):
            plan.release(Unreadable(), ledger=ledger, dataset="people")
        assert ledger.balance("people").events == ()
    y = Watched()
    with Ledger(url)._store.writing() as connection:
        ledger._store.lock(connection)
        with refused("another request is using it", "No answer was given out", "Nothing was charged"):
            plan.release(y, ledger=ledger, dataset="people")
        assert y.read
    plan.release(Y, ledger=ledger, dataset="people")
    ledger.verify()


def test_a_server_that_goes_away(server, plan, monkeypatch):
    """The connection is cut while the answer is drawn: it is not given out. Later all is well."""
    import cloakgp.private.room

    name = server.database()
    ledger = Ledger(server.url(name))
    ledger.create("people", epsilon=1.0, delta=0.01)
    before, measure = ledger.head, cloakgp.private.room.measure

    def cut_off(*args, **options):
        answer = measure(*args, **options)
        server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(cloakgp.private.room, "measure", cut_off)
        with refused("connection was lost|server cannot be reached", "No answer was given out"):
            plan.release(Y, ledger=ledger, dataset="people")
    check_unspent(ledger, before)
    plan.release(Y, ledger=ledger, dataset="people")


def test_a_commit_whose_fate_is_not_known(server, plan, monkeypatch):
    """The connection is lost just after the commit: we say so, and the answer is found on record."""
    url = server.url(server.database())
    ledger = Ledger(url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

    commit = PGDialect_psycopg.do_commit

    def then_lost(self, connection):
        commit(self, connection)
        raise __import__("psycopg").OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patch:
        patch.setattr(PGDialect_psycopg, "do_commit", then_lost)
        with refused("not certain whether the charge was made", "recover", "No answer was given out"):
            plan.release(Y, ledger=ledger, dataset="people", request="table 3")
    [entry] = ledger.entries("people")[1:]
    fetched = plan.recover(ledger, entry.number)
    again = plan.release(Unreadable(), ledger=ledger, dataset="people", request="table 3")
    assert again.z.tolist() == fetched.z.tolist()


def test_wrong_names_and_passwords(server, plan):
    name = server.database()
    with refused("user name or password is wrong"):
        Ledger(server.url(name, password="wRoNg-0815")).datasets()
    with refused("user name or password is wrong|no such database or user"):
        Ledger(server.url(name, user="nobody_here")).datasets()
    with refused("no such database"):
        Ledger(server.url("not_there")).datasets()
    with refused("no ledger was ever made here"):
        Ledger(server.url(name)).datasets()
    with refused("no ledger was ever made here"):
        plan.release(Unreadable(), ledger=server.url(name), dataset="people")
    with refused("cannot be reached"):
        Ledger("postgresql://custodian:sEcReT-4711@host.invalid/x", timeout=1.0).datasets()


def test_roles_without_rights(server, plan):
    """A role that may only read can audit; one that may do nothing is told so."""
    name, tag = server.database(), os.urandom(3).hex()
    ledger = Ledger(server.url(name))
    ledger.create("people", epsilon=1.0, delta=0.01)
    release = plan.release(Y, ledger=ledger, dataset="people")
    server.execute(
        f"CREATE ROLE auditor_{tag} LOGIN PASSWORD 'a'",
        f"CREATE ROLE stranger_{tag} LOGIN PASSWORD 'a'",
        f"GRANT SELECT ON cloakgp_ledger TO auditor_{tag}",
        database=name,
    )
    auditor = Ledger(server.url(name, f"auditor_{tag}", "a"))
    assert auditor.verify([release]).entries == 3
    assert plan.recover(auditor, 2).z.tolist() == release.z.tolist()
    with refused("may not", "Nothing was charged"):
        plan.release(Unreadable(), ledger=auditor, dataset="people")
    stranger = Ledger(server.url(name, f"stranger_{tag}", "a"))
    with refused("may not"):
        stranger.datasets()
    with refused("may not"):
        stranger.create("others", epsilon=1.0, delta=0.01)
    server.execute(f"ALTER ROLE auditor_{tag} SET default_transaction_read_only = on")
    with refused("read-only"):
        plan.release(Unreadable(), ledger=auditor, dataset="people")


def test_opened_for_reading_only(file_url, plan):
    """By its URL: auditing works, spending is refused before y is read."""
    ledger = Ledger(file_url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    reading = Ledger(file_url.replace("sqlite:///", "sqlite:///file:") + "?mode=ro&uri=true")
    reading = pickle.loads(pickle.dumps(reading))  # noqa: S301
    assert reading.verify().entries == 2
    for use in (
        lambda: plan.release(Unreadable(), ledger=reading, dataset="people"),
        lambda: reading.record("people", Exponential(0.1), "elsewhere"),
        lambda: reading.create("others", epsilon=1.0, delta=0.01),
    ):
        with refused("read-only", "Nothing was charged"):
            use()
    check_unspent(ledger, ledger.head)


def test_a_file_and_a_folder_that_may_not_be_written(children, plan, tmp_path, file_url, folder):
    """As a user without the right to (root may write everything)."""
    ledger = Ledger(file_url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    before = ledger.head
    assert (folder / "budget.db").stat().st_mode & 0o777 == 0o600, "others may read who spent what"
    arguments = {"url": file_url, "plan": children.put(plan), "y": Y.tolist()}
    folder.chmod(0o755)
    for mode in (0o444, 0o400 if os.getuid() else 0o644):
        (folder / "budget.db").chmod(mode)
        (folder).chmod(0o555 if mode != 0o444 else 0o755)
        [(signal, [line])] = children.run([["spend_as_nobody", arguments]])
        assert signal == 0
        assert re.search("read-only|cannot be opened", line["error"]), line
        assert "Nothing was charged" in line["error"]
    folder.chmod(0o755)
    (folder / "budget.db").chmod(0o600)
    check_unspent(ledger, before)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o700 if os.getuid() == 0 else 0)
    for function in ("spend_as_nobody", "create_as_nobody"):
        [(_, [line])] = children.run([[function, {**arguments, "url": f"sqlite:///{locked}/budget.db"}]])
        assert re.search("there is no file|cannot be (made|opened)", line["error"]), line
    locked.chmod(0o700)


def test_files_that_are_no_ledger(folder, plan):
    (folder / "empty.db").touch()
    (folder / "text.db").write_text("not a database, but long enough to be taken for one. " * 100)
    (folder / "folder.db").mkdir()
    with closing(sqlite3.connect(folder / "other.db")) as other, other:
        other.execute("CREATE TABLE cloakgp_ledger (number INTEGER PRIMARY KEY, words TEXT)")
    for name, used, created in (
        ("missing.db", "there is no file", None),
        ("no/such/folder/budget.db", "there is no file", "cannot be made or written .*No such file"),
        ("x" * 400, "there is no file", "cannot be made or written"),
        ("empty.db", "no ledger was ever made here", None),
        ("text.db", "not a SQLite database", "not a SQLite database"),
        ("folder.db", "cannot be opened", "cannot be made or written"),
        ("other.db", "not a ledger's", "not a ledger's"),
    ):
        url = f"sqlite:///{folder}/{name}"
        with refused(used):
            plan.release(Unreadable(), ledger=url, dataset="people")
        if created is not None:
            with refused(created):
                Ledger(url).create("people", epsilon=1.0, delta=0.01)
    assert not (folder / "missing.db").exists(), "looking at a ledger must not make one"


def test_a_damaged_file(folder, file_url, plan):
    """Bytes overwritten anywhere in the file: never another kind of error, never wrong words."""
    ledger = Ledger(file_url)
    ledger.create("people", epsilon=9.0, delta=0.01)
    for i in range(8):
        ledger.record("people", Exponential(0.01), f"number {i}, " + "x" * 900)
    good, path = (folder / "budget.db").read_bytes(), folder / "budget.db"
    before, noticed = [entry.hash for entry in ledger.entries()], 0
    for start in range(0, len(good), 977):
        path.write_bytes(good[:start] + b"\xa5" * 64 + good[start + 64 :])
        try:
            assert [entry.hash for entry in ledger.entries()] == before
        except LedgerError:
            noticed += 1
            with pytest.raises(LedgerError):
                plan.release(Unreadable(), ledger=ledger, dataset="people")
    for size in (1, 100, 512, 4096, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:size])
        with pytest.raises(LedgerError):
            ledger.verify()
    assert noticed > 5
    path.write_bytes(good)
    ledger.verify()


def test_a_file_that_changes_under_us(folder, file_url, plan):
    """Removed and made again while the Ledger object lives: nothing is remembered from before."""
    ledger = Ledger(file_url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    (folder / "budget.db").unlink()
    with refused("there is no file"):
        plan.release(Unreadable(), ledger=ledger, dataset="people")
    ledger.create("others", epsilon=1.0, delta=0.01)
    with refused("'people' is not in this ledger"):
        plan.release(Unreadable(), ledger=ledger, dataset="people")


def test_a_database_that_does_not_keep_what_it_is_given(server, plan):
    """A trigger or an encoding that changes words would break the chain, with the answer gone: refused."""
    url = server.url(server.database())
    ledger = Ledger(url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    with behind(url) as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN NEW.why = upper(NEW.why); RETURN NEW; END $$"
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER shout BEFORE INSERT ON cloakgp_ledger FOR EACH ROW EXECUTE FUNCTION shout()"
        )
    before = ledger.head
    with refused("does not keep what is written", "Nothing was charged"):
        plan.release(Y, ledger=ledger, dataset="people", why="quiet")
    check_unspent(ledger, before)


SECRET = "sEcReT-4711"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{SECRET}@127.0.0.1:1/db",
        f"postgresql://u@127.0.0.1:1/db?password={SECRET}",
        f"postgresql+psycopg://u:{SECRET}@127.0.0.1:1/db?sslmode=nonsense",
        f"postgresql://u:{SECRET}@127.0.0.1:99999999/db",
        f"postgresql://u:{SECRET}@127.0.0.1:port/db",
        f"postgresql://u:{SECRET}@[::1/db",
        f"postgresql://u:{SECRET}@127.0.0.1:1/db\n",
        f"postgresql://u:{SECRET}@/db?host=a&port=b",
        f"mysql://u:{SECRET}@127.0.0.1:1/db",
        f"nonsense://u:{SECRET}@127.0.0.1:1/db",
        f"u:{SECRET}@127.0.0.1:1/db",
        f"sqlite:///x.db?password={SECRET}",
        SECRET,
        f"postgresql://u:{SECRET}@127.0.0.1:1/" + "d" * 2000,
    ],
)
def test_passwords_are_never_shown(url):
    """Not by repr, and by no error, however wrong the URL is."""
    shown = []
    try:
        ledger = Ledger(url, timeout=0.5)
        shown += [repr(ledger), str(ledger), f"{ledger}"]
        ledger.datasets()
    except (LedgerError, ValueError) as error:
        while error is not None:
            shown.append(str(error) + repr(error))
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert shown
    assert not [text for text in shown if SECRET in text]


@pytest.mark.parametrize(
    "url",
    ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true", "sqlite:///.",
     "sqlite:///file:x?mode=memory&uri=true", "sqlite:///file:x?mode=memory&cache=shared&uri=true",
     "sqlite:///file:x?nolock=1&uri=true", "sqlite:///file:x?vfs=unix-none&uri=true", "sqlite:///file:x",
     "sqlite:///file:x%3Fnolock=1?mode=rw&uri=true", "sqlite:///file:x?immutable=1&uri=true", "sqlite:///x?timeout=a",
     "mysql://x", "oracle://x", "", " ", "budget.db", None, 3, b"sqlite:///x.db"],
)  # fmt: skip
def test_urls_that_no_ledger_can_have(url):
    """In memory, without locks, or another database."""
    with pytest.raises(ValueError, match="url"):  # a TypeError of ours is a ValueError, too
        Ledger(url)
