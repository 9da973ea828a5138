"""An edited, removed, added or reordered entry is found out; so is a ledger that forgot a release."""

from __future__ import annotations

import itertools
import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from ledger_helpers import (
    TABLE,
    AnyPlan,
    Kept,
    Y,
    answer_all,
    behind,
    changed,
    disarm,
    in_order,
    once_more,
    rewrite,
    rows_of,
    sealed_again,
    small_plan,
    table_of,
)

from cloakgp.core.accounting import Exponential, Gaussian, Laplace
from cloakgp.ledger import Ledger, LedgerError, LedgerTampered
from cloakgp.ledger.chain import Receipt, sha256

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


def cell(number, column, value):
    """One cell of a row."""
    return lambda rows: rows[number].update({column: value})


MU = '{"kind": "Gaussian", "mu": %s, "n_measurements": 2}'
CHANGES = {
    "no first": lambda rows: rows[1:],
    "one left out": lambda rows: rows[:3] + rows[4:],
    "one left out, renumbered": in_order(0, 1, 2, 4, 5),
    "two swapped": in_order(0, 1, 2, 5, 4, 3),
    "a copy at the end": once_more(5),
    "a copy in between": in_order(0, 1, 2, 3, 3, 4, 5),
    "not JSON": cell(3, "what", "{"),
    "not a number": cell(3, "what", MU % "NaN"),
    "endless": cell(3, "what", "[" * 100_000),
    "not an object": cell(3, "what", "[]"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_removed_put_in_or_moved(told, told_url, change):
    ledger, _ = told
    rewrite(told_url, CHANGES[change])
    with pytest.raises(LedgerTampered):
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


def test_an_empty_table(told, told_url):
    """All rows gone: nothing can be spent, and the releases tell."""
    ledger, releases = told
    rewrite(told_url, lambda rows: [])
    for use in (ledger.verify, lambda: ledger.balance("people")):
        with pytest.raises(LedgerError, match="empty"):
            use()
    with pytest.raises(LedgerTampered):
        ledger.verify(releases)
    with pytest.raises(LedgerError):
        small_plan().release(Y, ledger=ledger, dataset="people")


def cut_and_spent_from(ledger, url, _):
    rewrite(url, lambda rows: rows[:5])
    ledger.record("people", Exponential(0.01), "entry 5 is there again")


def another(ledger, url, folder):
    """With equal contents as far as the first release."""
    other = Ledger(f"sqlite:///{folder}/another.db", who="a tester")
    for name, epsilon in (("people", 3.0), ("others", 1.0)):
        other.create(name, epsilon=epsilon, delta=0.01, why="a survey" if name == "people" else "")
    small_plan(epsilon=0.5).release(Y, ledger=other, dataset="people", why="table 1", request="one")
    return other


# (what was done, which of two releases it has forgotten, why): each a good chain in itself
FORGOTTEN = {
    "cut off": (lambda _, url, __: rewrite(url, lambda rows: rows[:5]), {1}, "not there any more.*old copy"),
    "cut off, and spent from": (cut_and_spent_from, {1}, "another ledger, or its history was written anew"),
    "written anew by somebody who knows how": (
        lambda _, url, __: rewrite(url, in_order(0, 1, 2, 3, 5), seal=True),
        {1},
        "not there any more",
    ),
    "another with the same steps": (another, {0, 1}, "another ledger|not there any more"),
}


@pytest.mark.parametrize("what", FORGOTTEN)
def test_what_was_forgotten_is_seen_by_releases_files_and_receipts(told, told_url, tmp_path, what):
    ledger, releases = told
    paths = [tmp_path / f"{number}.cloak" for number in range(2)]
    for release, path in zip(releases, paths, strict=True):
        release.save(path)
    forms = [releases, paths, list(map(str, paths)), [release.receipt for release in releases]]
    assert all(ledger.verify(form).releases == 2 for form in forms)
    do, forgotten, why = FORGOTTEN[what]
    ledger = do(ledger, told_url, tmp_path) or ledger
    ledger.verify()
    for form, number in itertools.product(forms, range(2)):
        if number in forgotten:
            with pytest.raises(LedgerTampered, match=why):
                ledger.verify(form[number])
        else:
            assert ledger.verify(form[number]).releases == 1
    small_plan().release(Y).save(tmp_path / "free.cloak")
    with pytest.raises(LedgerTampered) as refused:
        ledger.verify([*paths, releases[1].receipt, tmp_path / "free.cloak"])
    said = str(refused.value).splitlines()
    assert f"{len(forgotten) + 2} of 4" in said[0]
    lost = [f"{paths[number]}:" for number in sorted(forgotten)]
    assert [line.strip().split(" ")[0] for line in said[1:]] == [
        *lost,
        "entry",
        f"{tmp_path / 'free.cloak'}:",
    ]
    assert "no receipt" in said[-1]
    with pytest.raises(LedgerTampered, match="entry -1"):
        ledger.verify(receipts=[replace(releases[1].receipt, entry=-1)])


def test_one_entry_written_anew(told, told_url):
    """Its own hash is right again, but the next entry remembers the old one."""

    def edit(rows):
        rows[3] = sealed_again([*rows[:3], {**rows[3], "why": "another story"}])[3]

    rewrite(told_url, edit)
    with pytest.raises(LedgerTampered, match="entry 4 was changed"):
        told[0].verify()


def overspend(rows):
    rows += [{**rows[5], "number": number, "request": None} for number in range(6, 200)]


def senseless(what, kind):
    dataset = "new" if kind == "created" else "people"
    return lambda rows: rows.append({**rows[4], "number": 6, "what": what, "kind": kind, "dataset": dataset})


# (what is changed, where every hash is right; whether a balance shows it, too)
LIES = {
    "a second budget": (once_more(1, {"epsilon": 300.0}), True),
    "overspent": (overspend, False),
    "paid by a data set that is not there": (cell(5, "dataset", "nobody"), False),
    **{
        f"senseless: {kind} {what}": (senseless(what, kind), True)
        for what, kind in [
            *((what, "created") for what in ("{}", '{"epsilon": -1, "delta": 0.1, "pure": 0}', "[]")),
            *((what, "spent") for what in ("{}", MU % -1, "null")),
            *((MU % 1, kind) for kind in ("opened", "gift", "planned")),
        ]
    },
    **{
        f"a charge with {what} stages": (changed(3, {"stages": what}), True)
        for what in (None, 0, True, 1.0, "1", -1)
    },
    "a charge without an answer": (changed(3, answer="", contents=None), True),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_with_good_hashes(told, told_url, lie):
    ledger, releases = told
    change, shows = LIES[lie]
    rewrite(told_url, change, seal=True)
    uses = [ledger.verify, lambda: ledger.verify(releases)]
    if shows:
        uses += [lambda: ledger.balance("people"), lambda: ledger.record("people", Laplace(0.01), "more")]
    for use in uses:
        with pytest.raises(LedgerTampered):
            use()


# ---------------------------------------------------------------- stages that no ledger wrote

PLAN, OTHER = AnyPlan(stages=3), AnyPlan(stages=3, mu=0.04)
PAID, FIRST, LAST = 3, 4, 5  # the entries: 0 opened, 1 and 2 created, 3 spent, 4 and 5 answered


@pytest.fixture(scope="module")
def once_in_stages(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('staged')}/budget.db"
    ledger = Ledger(url, who="a tester")
    ledger.create("people", epsilon=1.0, delta=0.01)
    ledger.create("others", epsilon=1.0, delta=0.01)
    answer_all(ledger, PLAN, request="one")
    answer_all(ledger, OTHER)  # 6 to 8
    ledger.record("people", Gaussian(0.01, 2), "elsewhere")  # 9
    answer_all(ledger, AnyPlan())  # 10
    kept = Kept(url)
    yield kept
    kept.check()


@pytest.fixture
def staged(once_in_stages):
    """A ledger with two releases in stages, one that has a single stage, and a spend of another kind."""
    return Ledger(once_in_stages.put_back(), who="a tester")


NOT_PAID, TWICE, TOO_MANY, NONE = "pays for", "twice", "more than", "holds no stage"
PLANTED = {
    "another answer for the last stage": (once_more(LAST), TWICE),
    "another answer for an earlier stage": (once_more(FIRST), TWICE),
    "another answer for the first stage": (once_more(FIRST, {"stage": 0}), TWICE),
    "a stage that the release does not have": (once_more(LAST, {"stage": 3}), TOO_MANY),
    "a stage before the first": (changed(FIRST, {"stage": -1}), TOO_MANY),
    "a stage left out": (in_order(0, 1, 2, 3, 5), "out of order"),
    "stages in another order": (in_order(0, 1, 2, 3, 5, 4), "out of order"),
    "paid for later": (in_order(0, 1, 2, 4, 3), NOT_PAID),
    "paid for by nothing": (in_order(0, 1, 2, 4), NOT_PAID),
    "paid for by an entry that is not there": (once_more(FIRST, {"paid": 99}), NOT_PAID),
    "paid for by itself": (once_more(FIRST, {"paid": 11}), NOT_PAID),
    "paid for by a data set": (once_more(FIRST, {"paid": 1}), NOT_PAID),
    "paid for by a stage": (once_more(FIRST, {"paid": FIRST}), NOT_PAID),
    "paid for by another plan": (once_more(FIRST, {"paid": 6}), NOT_PAID),
    "paid for by what was recorded by hand": (once_more(FIRST, {"paid": 9}, plan=""), NOT_PAID),
    "paid for by what has one stage": (once_more(FIRST, {"paid": 10}, plan=AnyPlan().digest), TOO_MANY),
    "another data set's": (changed(LAST, dataset="others"), NOT_PAID),
    "another plan's": (changed(LAST, plan=OTHER.digest), NOT_PAID),
    "an answer that is none": (changed(LAST, answer="", contents=None), "without an answer"),
    "a plan that is none": (changed(LAST, kept="", kept_plan=None), "without its plan"),
    "a number that is none": (changed(FIRST, {"stage": True}), NONE),
    "a number that is text": (changed(FIRST, {"paid": "3"}), NONE),
    "a number with a fraction": (changed(FIRST, {"stage": 1.0}), NONE),
    "words that do not belong there": (changed(FIRST, {"more": 1}), NONE),
    "no number": (changed(FIRST, {"stage": None}), NONE),
    "no words": (cell(LAST, "what", "[]"), NONE),
    "a request's name": (changed(LAST, request="one"), NONE),
    "a stage that was a spend": (changed(PAID, kind="answered"), NONE),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_stages_planted_with_good_hashes(staged, planted):
    """Refused by verify, and nothing is read or spent from such a ledger."""
    change, says = PLANTED[planted]
    rewrite(staged._store.url, change, seal=True)
    for use in (
        staged.verify,
        lambda: staged.balance("people"),
        lambda: staged.answers(PAID, PLAN),
        lambda: staged.charge(PLAN, "people").__enter__(),
        lambda: staged.stage(PAID, 1, PLAN, b"").__enter__(),
    ):
        with pytest.raises(LedgerTampered, match=says):
            use()


def test_what_is_not_wrong_is_not_refused(staged):
    """The same means, used to no end: what the tests above find is what they changed."""
    rewrite(staged._store.url, in_order(*range(11)), seal=True)
    staged.verify()
    rewrite(staged._store.url, changed(FIRST, {"stage": 2}))
    with pytest.raises(LedgerTampered, match="entry 4 was changed"):
        staged.verify()


@pytest.mark.parametrize("number", [PAID, FIRST, LAST])
@pytest.mark.parametrize("column", ["contents", "kept_plan"])
@pytest.mark.parametrize("value", [None, b"", bytes(16)])
def test_answers_and_plans_that_were_changed(staged, number, column, value):
    """Not handed out when they are not what was recorded, of any stage."""
    rewrite(staged._store.url, changed(number, **{column: value}))
    uses = [staged.verify, lambda: staged.answers(PAID, PLAN), lambda: staged.charged_plan(number)]
    if number == PAID:
        uses.append(lambda: staged.charge(PLAN, "people", request="one").__enter__())
    for use in uses:
        with pytest.raises(LedgerTampered, match=f"entry {number} was changed"):
            use()


def test_an_answer_that_is_no_numbers(staged):
    """Three bytes, with the right hashes."""
    rewrite(staged._store.url, changed(LAST, contents=b"abc", answer=sha256(b"abc")), seal=True)
    with pytest.raises(LedgerTampered, match="entry 5 was changed"):
        staged.answers(PAID, PLAN)


def test_changed_releases_are_seen(told, tmp_path, plan):
    """The other way round: the ledger is right, and what claims to stand in it is not."""
    ledger, (first, second) = told
    assert ledger.verify([first]).releases == 1
    [stage] = first.stages
    forgeries = [
        replace(first, stages=second.stages),
        replace(first, stages=(replace(stage, answer=stage.answer + 1),)),
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


def test_hashes_are_of_everything_in_order(told, told_url):
    """The hash that is documented: SHA-256 of the words as sorted JSON, the one before included."""
    with behind(told_url) as connection:
        rows = rows_of(connection)
    for before, row in itertools.pairwise(rows):
        words = {name: value for name, value in row.items() if name not in ("hash", "contents", "kept_plan")}
        words["what"] = json.loads(words["what"])
        assert sha256(json.dumps(words, sort_keys=True).encode()) == row["hash"]
        assert row["previous"] == before["hash"]
