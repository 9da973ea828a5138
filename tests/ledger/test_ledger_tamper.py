"""An edited, removed, added or reordered entry is found out; so is a ledger that forgot a release."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from ledger_helpers import (
    TABLE,
    Kept,
    Y,
    behind,
    disarm,
    rewrite,
    rows_of,
    sealed_again,
    small_function_plan,
    small_plan,
    table_of,
)

from cloakgp.accounting import Exponential, Gaussian, Laplace
from cloakgp.ledger import Ledger, LedgerError, LedgerTampered
from cloakgp.ledger.chain import sha256
from cloakgp.ledger.charge import Receipt

COLUMNS = [
    *("number", "kind", "dataset", "who", "why", "when", "what", "plan", "inputs", "request"),
    *("answer", "previous", "hash", "contents"),
]


@pytest.fixture(scope="module")
def once(own_url):
    _, releases = tell(own_url)
    kept = Kept(own_url)
    yield kept, releases
    kept.check(releases)


@pytest.fixture
def told_url(once):
    return once[0].put_back()


@pytest.fixture
def told(once, told_url):
    """A ledger with six entries, and its two releases."""
    return Ledger(told_url, who="a tester"), list(once[1])


def tell(url):
    ledger = Ledger(url, who="a tester")
    ledger.create("people", epsilon=3.0, delta=0.01, why="a survey")
    ledger.create("others", epsilon=1.0, delta=0.01)
    plan = small_plan(epsilon=0.5)
    first = plan.release(Y, ledger=ledger, dataset="people", why="table 1", request="one")
    ledger.record("people", Exponential(0.2), "a selection elsewhere")
    second = plan.release(Y, ledger=ledger, dataset="people", why="table 2")
    return ledger, [first, second]


def other(value):
    """Something else of the same type."""
    if value is None or isinstance(value, str):
        return (value or "") + "x"
    return value + 100 if isinstance(value, int) else bytes(value) + bytes(8)


def test_untouched_it_verifies(told):
    ledger, releases = told
    audit = ledger.verify(releases)
    assert (audit.entries, audit.releases, audit.datasets) == (6, 2, ("people", "others"))
    assert audit.head == ledger.head
    assert "6 entries" in str(audit)


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_of_every_row(told, told_url, column):
    """One cell is changed, and put back: found out each time, for each row."""
    ledger, _ = told
    with behind(told_url) as connection:
        disarm(connection)
        table = table_of(connection)
        rows = rows_of(connection)
    for row in rows:
        new = bytes(8) if column == "contents" and row[column] is None else other(row[column])
        here, there = (row["number"], new) if column == "number" else (row["number"], row["number"])
        with behind(told_url) as connection:
            connection.execute(table.update().where(table.c.number == here).values({column: new}))
        with pytest.raises(LedgerTampered):
            ledger.verify()
        with behind(told_url) as connection:
            connection.execute(table.update().where(table.c.number == there).values({column: row[column]}))
    ledger.verify()


@pytest.mark.parametrize("column", ["number", "why", "what", "request", "hash"])
def test_nothing_is_spent_from_a_ledger_that_was_changed(told, told_url, column):
    ledger, _ = told
    plan = small_plan(epsilon=0.1)

    def change(rows):
        rows[3][column] = other(rows[3][column])

    rewrite(told_url, change)
    for use in (
        lambda: plan.release(Y, ledger=ledger, dataset="people"),
        lambda: ledger.record("people", Exponential(0.1), "more"),
        lambda: ledger.create("new", epsilon=1.0, delta=0.01),
        lambda: ledger.balance("people"),
        lambda: plan.recover(ledger, 3),
        lambda: ledger.head,
    ):
        with pytest.raises(LedgerTampered):
            use()
    with behind(told_url) as connection:
        assert len(rows_of(connection)) == 6


def swap(rows):
    rows[3], rows[5] = {**rows[5], "number": 3}, {**rows[3], "number": 5}


def swap_numbers(rows):
    rows[3]["number"], rows[5]["number"] = 5, 3


def close_the_gap(rows):
    del rows[3]
    for number, row in enumerate(rows):
        row["number"] = number


def copy_at_the_end(rows):
    rows.append({**rows[5], "number": 6})


def copy_in_between(rows):
    rows.insert(4, dict(rows[3]))
    for number, row in enumerate(rows):
        row["number"] = number


def swap_contents(rows):
    rows[3]["contents"], rows[5]["contents"] = rows[5]["contents"], rows[3]["contents"]


def empty_contents(rows):
    rows[3]["contents"] = None


def contents_where_none_were(rows):
    rows[4]["contents"] = b""


def a_bigger_budget(rows):
    rows[1]["what"] = rows[1]["what"].replace("3.0", "9.0")


def another_data_set_pays(rows):
    rows[3]["dataset"] = "others"


def a_smaller_event(rows):
    rows[4]["what"] = rows[4]["what"].replace("0.2", "0.1")


def not_json(rows):
    rows[3]["what"] = "{"


def not_a_number(rows):
    rows[3]["what"] = '{"kind": "Gaussian", "mu": NaN, "n_measurements": 2}'


def infinite(rows):
    rows[3]["what"] = '{"kind": "Gaussian", "mu": Infinity, "n_measurements": 2}'


def endless(rows):
    rows[3]["what"] = "[" * 100_000


def not_an_object(rows):
    rows[3]["what"] = "[]"


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[1:],
        lambda rows: rows[:3] + rows[4:],
        lambda rows: [row for row in rows if row["kind"] != "opened"],
        swap,
        swap_numbers,
        close_the_gap,
        copy_at_the_end,
        copy_in_between,
        swap_contents,
        empty_contents,
        contents_where_none_were,
        a_bigger_budget,
        another_data_set_pays,
        a_smaller_event,
        not_json,
        not_a_number,
        infinite,
        endless,
        not_an_object,
    ],
)
def test_rows_removed_put_in_or_moved(told, told_url, change):
    ledger, _ = told
    rewrite(told_url, change)
    with pytest.raises(LedgerTampered, match="ledger"):
        ledger.verify()


@pytest.mark.parametrize("value", [5, 2.5, b"\xff\xfe", b"text", "\ud800"])
def test_values_of_another_type(file_url, value):
    """SQLite keeps whatever it is given, in every column."""
    ledger, _ = tell(file_url)
    with closing(sqlite3.connect(ledger._store.path)) as connection:
        for trigger in ("update", "delete", "replace"):
            connection.execute(f"DROP TRIGGER cloakgp_ledger_no_{trigger}")
        for column in COLUMNS[1:]:
            select = f'SELECT "{column}" FROM {TABLE} WHERE number = 3'
            update = f'UPDATE {TABLE} SET "{column}" = ? WHERE number = 3'
            [kept] = connection.execute(select).fetchone()
            if value == "\ud800":  # bytes that are no UTF-8, called text
                connection.execute(update.replace("?", "CAST(x'fffe' AS TEXT)"))
            else:
                connection.execute(update, [value])
            connection.commit()
            with pytest.raises(LedgerError):
                ledger.verify()
            connection.execute(update, [kept])
            connection.commit()
    ledger.verify()


def test_triggers_refuse_edits(told, told_url):
    """Anybody's UPDATE and DELETE, and TRUNCATE or REPLACE, until the triggers are removed."""
    statements = [f"UPDATE {TABLE} SET why = 'x' WHERE number = 3", f"DELETE FROM {TABLE} WHERE number = 5"]
    if told_url.startswith("sqlite"):
        statements += [
            f"DELETE FROM {TABLE}",
            f"INSERT OR REPLACE INTO {TABLE} SELECT * FROM {TABLE} WHERE number = 5",
        ]
    else:
        statements += [f"TRUNCATE {TABLE}"]
    for statement in statements:
        with pytest.raises(sa.exc.DBAPIError, match="append-only"), behind(told_url) as connection:
            connection.exec_driver_sql(statement)
    told[0].verify(told[1])


def test_a_cut_tail_is_seen_by_the_releases(told, told_url):
    ledger, releases = told
    rewrite(told_url, lambda rows: rows[:5])
    assert ledger.verify().entries == 5
    assert ledger.verify(releases[:1]).releases == 1
    with pytest.raises(LedgerTampered, match=r"entry 5 of data set 'people'.*not there any more.*old copy"):
        ledger.verify(releases)


def test_an_empty_table(told, told_url):
    """All rows gone: nothing can be spent, and the releases tell."""
    ledger, releases = told
    rewrite(told_url, lambda rows: [])
    with pytest.raises(LedgerError, match="empty"):
        ledger.verify()
    with pytest.raises(LedgerTampered):
        ledger.verify(releases)
    with pytest.raises(LedgerError, match="empty"):
        ledger.balance("people")
    with pytest.raises(LedgerError):
        small_plan().release(Y, ledger=ledger, dataset="people")


def test_an_old_copy_put_back(file_url, folder, tmp_path):
    """Restored from a backup, and then spent from anew: each release shows it, as an object and as a file."""
    ledger = Ledger(file_url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    plan = small_plan(epsilon=0.5)
    shutil.copy(folder / "budget.db", folder / "backup.db")
    lost = plan.release(Y, ledger=ledger, dataset="people")
    lost.save(tmp_path / "lost.cloak")
    shutil.copy(folder / "backup.db", folder / "budget.db")
    ledger.verify()
    for release in (lost, tmp_path / "lost.cloak", str(tmp_path / "lost.cloak")):
        with pytest.raises(LedgerTampered, match="old"):
            ledger.verify([release])
    with pytest.raises(LedgerTampered):
        ledger.verify(tmp_path / "lost.cloak")  # one path will do
    anew = plan.release(Y, ledger=ledger, dataset="people")
    assert anew.receipt.entry == lost.receipt.entry
    ledger.verify([anew])
    with pytest.raises(LedgerTampered, match="written anew"):
        ledger.verify([lost])


def test_receipts_alone_will_do(told, told_url, folder):
    """Kept when the releases themselves are not: the ledger is whole, cut, or another one."""
    ledger, releases = told
    receipts = [release.receipt for release in releases]
    assert ledger.verify(receipts=receipts).releases == 2
    assert ledger.verify(receipts[0]).releases == 1
    with pytest.raises(LedgerTampered, match="entry -1"):
        ledger.verify(receipts=[replace(receipts[1], entry=-1)])
    rewrite(told_url, lambda rows: rows[:5])
    ledger.verify(receipts=receipts[:1])
    with pytest.raises(LedgerTampered, match="not there any more"):
        ledger.verify(receipts=receipts)
    ledger.record("people", Exponential(0.01), "entry 5 is there again")
    with pytest.raises(LedgerTampered, match="another ledger, or its history was written anew"):
        ledger.verify(receipts=receipts)


def test_all_that_is_forgotten_is_listed(told, told_url, tmp_path):
    """Each release file by its name, those that are there not; one line for each."""
    ledger, (first, second) = told
    paths = [tmp_path / f"{name}.cloak" for name in ("kept", "lost", "free")]
    first.save(paths[0])
    second.save(paths[1])
    small_plan().release(Y).save(paths[2])
    rewrite(told_url, lambda rows: rows[:5])
    with pytest.raises(LedgerTampered) as refused:
        ledger.verify(receipts=[*paths, second.receipt])
    said = str(refused.value).splitlines()
    assert "3 of 4" in said[0]
    assert [line.strip().split(" ")[0] for line in said[1:]] == [f"{paths[1]}:", f"{paths[2]}:", "entry"]
    assert "no receipt" in said[2]


def test_history_written_anew_by_somebody_who_knows_how(told, told_url):
    """All hashes are right again, so the chain is good in itself: the releases carry the old ones."""
    ledger, releases = told

    def forget_the_selection(rows):
        return [{**row, "number": number} for number, row in enumerate(rows[:4] + rows[5:])]

    rewrite(told_url, forget_the_selection, seal=True)
    assert ledger.verify().entries == 5
    ledger.verify(releases[:1])
    with pytest.raises(LedgerTampered):
        ledger.verify(releases)


def test_one_entry_written_anew(file_url):
    """Its own hash is right again, but the next entry remembers the old one."""
    ledger, _ = tell(file_url)

    def edit(rows):
        forged = [*rows[:3], {**rows[3], "why": "another story"}]
        rows[3] = sealed_again(forged)[3]

    rewrite(file_url, edit)
    with pytest.raises(LedgerTampered, match="entry 4 was changed"):
        ledger.verify()


def test_another_ledger_with_the_same_steps(told, folder):
    """Two ledgers with equal contents are not the same one."""
    _, releases = told
    other = Ledger(f"sqlite:///{folder}/another.db", who="a tester")
    other.create("people", epsilon=3.0, delta=0.01, why="a survey")
    other.create("others", epsilon=1.0, delta=0.01)
    small_plan(epsilon=0.5).release(Y, ledger=other, dataset="people", why="table 1", request="one")
    with pytest.raises(LedgerTampered, match="another ledger"):
        other.verify(releases[:1])


def test_a_second_budget_appended_with_good_hashes(told, told_url):
    """The chain is good, but no ledger gives a data set two budgets: it is not raised."""
    ledger, releases = told

    def raise_it(rows):
        rows.append({**rows[1], "number": 6, "what": rows[1]["what"].replace("3.0", "300.0")})

    rewrite(told_url, raise_it, seal=True)
    with pytest.raises(LedgerTampered, match="second budget"):
        ledger.verify(releases)
    with pytest.raises(LedgerTampered, match="second budget"):
        small_plan().release(Y, ledger=ledger, dataset="people")


def test_an_overspent_ledger_with_good_hashes(told, told_url):
    ledger, _ = told

    def overspend(rows):
        rows += [{**rows[5], "number": number, "request": None} for number in range(6, 200)]

    rewrite(told_url, overspend, seal=True)
    with pytest.raises(LedgerTampered, match="not covered by its budget"):
        ledger.verify()


@pytest.mark.parametrize(
    ("what", "kind"),
    [("{}", "created"), ('{"epsilon": -1, "delta": 0.1, "pure": 0}', "created"), ("[]", "created"),
     ("{}", "spent"), ('{"kind": "Gaussian", "mu": -1, "n_measurements": 2}', "spent"), ("null", "spent"),
     ('{"kind": "Gaussian", "mu": 1, "n_measurements": 2}', "opened"),
     ('{"kind": "Gaussian", "mu": 1, "n_measurements": 2}', "gift")],
)  # fmt: skip
def test_senseless_entries_with_good_hashes(told, told_url, what, kind):
    ledger, _ = told

    def add(rows):
        rows.append(
            {
                **rows[4],
                "number": 6,
                "what": what,
                "kind": kind,
                "dataset": "new" if kind == "created" else "people",
            }
        )

    rewrite(told_url, add, seal=True)
    with pytest.raises(LedgerTampered):
        ledger.verify()
    with pytest.raises(LedgerTampered):
        ledger.balance("people")


def test_money_moved_between_data_sets_with_good_hashes(told, told_url):
    """A spend of a data set that is not there."""
    ledger, _ = told

    def move(rows):
        rows[5]["dataset"] = "nobody"

    rewrite(told_url, move, seal=True)
    with pytest.raises(LedgerTampered, match="not covered"):
        ledger.verify()


def test_changed_contents_are_not_handed_out(told, told_url):
    ledger, releases = told
    with behind(told_url) as connection:
        disarm(connection)
        table = table_of(connection)
        forged = np.zeros(len(releases[0].z), dtype="<i8").tobytes()
        connection.execute(table.update().where(table.c.number == 3).values(contents=forged))
    plan = small_plan(epsilon=0.5)
    with pytest.raises(LedgerTampered, match="answer of entry 3"):
        plan.recover(ledger, 3)
    with pytest.raises(LedgerTampered, match="answer of entry 3"):
        plan.release(Y, ledger=ledger, dataset="people", request="one")
    with pytest.raises(LedgerTampered, match="answer of entry 3"):
        ledger.verify()


def test_changed_releases_are_seen(told, tmp_path, plan):
    """The other way round: the ledger is right, and what claims to stand in it is not."""
    ledger, (first, second) = told
    assert ledger.verify([first]).releases == 1
    forgeries = [
        replace(first, z=second.z),
        replace(first, z=first.z + 1),
        replace(first, receipt=second.receipt),
        replace(first, receipt=replace(first.receipt, dataset="others")),
        replace(first, receipt=replace(first.receipt, head="0" * 64)),
        replace(first, receipt=Receipt("people", 10**9, first.receipt.head)),
        replace(first, plan=plan),
        replace(first, receipt=None),
    ]
    for forgery in forgeries:
        with pytest.raises(LedgerTampered):
            ledger.verify([first, forgery])
        if forgery.receipt is not None and forgery.receipt.entry < 10**6:
            forgery.save(tmp_path / "forged.cloak")
            with pytest.raises(LedgerTampered):
                ledger.verify([tmp_path / "forged.cloak"])


@pytest.mark.parametrize("make", [small_plan, small_function_plan, lambda: small_function_plan("input-free")])
def test_the_receipt_survives_the_file(ledger, make, tmp_path):
    plan = make()
    release = plan.release(Y, ledger=ledger, dataset="people")
    release.save(tmp_path / "release.cloak")
    loaded = type(release).load(tmp_path / "release.cloak")
    assert loaded.receipt == release.receipt == Receipt("people", 2, ledger.head)
    assert loaded.plan.digest == release.plan.digest == plan.digest == ledger.entries()[2].plan
    assert ledger.verify([release, loaded, tmp_path / "release.cloak"]).releases == 3


def test_every_event_is_read_back_as_it_was(ledger):
    events = [Laplace(0.1), Exponential(0.2), Gaussian(0.01, 3)]
    for event in events:
        ledger.record("people", event, "elsewhere")
    assert list(ledger.balance("people").events) == events
    ledger.verify()


def test_hashes_are_of_everything_in_order(told, told_url):
    """The hash that is documented: SHA-256 of the words as sorted JSON, the one before included."""
    with behind(told_url) as connection:
        rows = rows_of(connection)
    for before, row in itertools.pairwise(rows):
        words = {name: value for name, value in row.items() if name not in ("hash", "contents", "kept_plan")}
        words["what"] = json.loads(words["what"])
        assert sha256(json.dumps(words, sort_keys=True).encode()) == row["hash"]
        assert row["previous"] == before["hash"]
