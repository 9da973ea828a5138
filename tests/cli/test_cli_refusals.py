"""Only release and select read the output column; what they refuse spends nothing and shows nothing."""

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest
from cli_helpers import LEDGER, PLAN, RELEASE, budget, good, run, spends, write_people, write_table
from test_cli_kinds import KINDS, plan_of

from cloakgp.files import atomic
from cloakgp.private import room
from cloakgp.workflow import tables
from cloakgp.workflow.private_step import UNUSABLE, UNUSABLE_ANSWERS
from cloakgp.workflow.shell_words import in_shell_words

SAID = in_shell_words(UNUSABLE)
SELECT = "select data.csv --inputs age --output height --bounds 50 170 --kernel EQ(5) --noise 100 --noise 200"
FREE = "release plan.json data.csv --no-ledger --yes --overwrite -o heights.cloak"


@pytest.fixture
def unread(monkeypatch):
    """Reading the output column fails the test."""

    def read(self, dtype=None, copy=None):
        pytest.fail("the output column was read")

    monkeypatch.setattr(room.PrivateColumn, "__array__", read)


@pytest.fixture
def planned():
    budget()
    good(f"{PLAN} -o plan.json")


# ---------------------------------------------------------------------------------------- privacy


@pytest.mark.usefixtures("unread")
def test_nothing_but_release_and_select_reads_the_output_column():
    write_people(heights=["private"] * 40)
    good(f"{PLAN} -o plan.json --plot plan.png")
    good("show plan.json")
    good(f"{SELECT} --epsilon 1 --dry-run")


def rest(*odd):
    return [*odd, *["150.0"] * (40 - len(odd))]


UNUSABLE_COLUMNS = {
    "text": ["tall"] * 40,
    "one text": rest("tall"),
    "missing": [""] * 40,
    "one missing": rest(""),
    "NaN": ["nan"] * 40,
    "infinite": rest("inf"),
    "dates": ["2020-01-01"] * 40,
    "decimal commas": ['"150,5"'] * 40,
}


@pytest.mark.parametrize(("kind", "learned"), [*((kind, False) for kind in UNUSABLE_COLUMNS), ("text", True)])
def test_whatever_is_wrong_with_the_output_column_the_message_is_the_same(kind, learned):
    budget()
    learn = "plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --delta 0.01 --stages 2"
    good(f"{learn if learned else PLAN} -o plan.json")
    write_people(heights=UNUSABLE_COLUMNS[kind])
    for line in (f"{RELEASE} --yes", FREE, f"{SELECT} --epsilon 1 --no-ledger --yes"):
        result = run(f"{line} --json")
        assert result.data == {"error": SAID, "exit_code": 1}
        assert result.err.splitlines()[-1] == f"cloakgp: {SAID}"
    assert not Path("heights.cloak").exists()
    assert spends() == 0


@pytest.mark.parametrize("name", ["answers of rows", "known answers"])
def test_a_cell_that_says_neither_is_refused_without_a_word_of_it(name):
    write_table(truth=["no", "perhaps"] * 20)
    good(plan_of(KINDS[name], "-o plan.json"))
    refused = run("release plan.json table.csv --no-ledger --yes -o a.cloak")
    assert refused.code == 1
    assert "perhaps" not in refused.err
    assert ("rows" in name) != (in_shell_words(UNUSABLE_ANSWERS) in refused.err)


@pytest.mark.usefixtures("planned")
def test_missing_outcomes_can_be_put_in_the_middle():
    write_people(heights=rest("tall"))
    whole = Path("data.csv").read_bytes()
    for cell in (b"", b"tall", b"t\xe4ll"):  # no number, whatever it is; and the last is no UTF-8
        Path("data.csv").write_bytes(whole.replace(b"tall", cell))
        assert run(f"{FREE} --json").data == {"error": SAID, "exit_code": 1}
        good(f"{FREE} --missing midpoint")


@pytest.mark.usefixtures("planned")
def test_a_failure_in_the_private_room_shows_no_value(monkeypatch):
    def read(self, dtype=None, copy=None):
        raise RuntimeError("123.456 is private")

    monkeypatch.setattr(room.PrivateColumn, "__array__", read)
    result = run(f"{RELEASE} --yes --json")
    assert result.data == {"error": SAID, "exit_code": 1}
    assert "123.456" not in result.err


@pytest.fixture
def public(monkeypatch):
    """The names of the public columns that are read of files, as they are."""
    found, options = [], tables.csv_options
    monkeypatch.setattr(
        tables, "csv_options", lambda form, names, kind: found.extend(names) or options(form, names, kind)
    )
    return found


LEARNED = "plan data.csv --inputs age,height --output height --bounds 50 170 --epsilon 1"


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    "line",
    [
        PLAN.replace("--inputs age", "--inputs age,height"),
        f"{PLAN} --people height",
        LEARNED,
        f"{LEARNED} --categories height",
        f"{LEARNED} --protect rows --box age 0 90 --box height 0 200",
        f"{SELECT} --inputs age,height --epsilon 1 --no-ledger --yes",
    ],
)
def test_the_output_column_is_no_input(line, public):
    failed = run(line)
    assert (failed.code, failed.err.startswith(("cloakgp: --output ", "cloakgp: --people "))) == (2, True)
    assert "height" not in public


def edit(change, seal):
    """The plan file with other words; `seal` makes its own digest right."""
    body = json.loads(Path("plan.json").read_text())
    change(body)
    if seal:
        body.pop("sha256")
        text = json.dumps(body, indent=1, sort_keys=True).encode()
        body["sha256"] = hashlib.sha256(text).hexdigest()
    Path("plan.json").write_text(json.dumps(body))


@pytest.mark.usefixtures("planned", "unread")
def test_a_plan_file_cannot_have_the_output_column_read_as_an_input(public):
    level = {"name": "name", "kind": "level", "levels": ["person 1"]}
    columns = {"inputs": [level, {"name": "height", "kind": "number"}], "response": "", "people": ""}
    edit(lambda body: body["settings"].update(columns=columns), seal=True)
    assert run(f"{RELEASE} --yes").code == 2
    assert "height" not in public
    assert spends() == 0


# ---------------------------------------------------------------------------------------- changes


@pytest.mark.usefixtures("planned", "unread")
def test_other_inputs_are_refused_before_the_output_column_is_read():
    lines = Path("data.csv").read_text().splitlines()
    for changed in (
        [*lines, "one more,50.0,150.0"],
        [lines[0], lines[2], lines[1], *lines[3:]],
        [lines[0], "person 0,50.05,150.0", *lines[2:]],
    ):
        Path("data.csv").write_text("\n".join(changed))
        result = run(f"{RELEASE} --yes")
        assert (result.code, "nothing was spent" in result.err) == (1, True)
    assert spends() == 0


@pytest.mark.usefixtures("planned", "unread")
def test_an_edited_plan_file_is_refused():
    edit(lambda body: body["settings"].update(epsilon=2.0), seal=False)
    for line in (f"{RELEASE} --yes", "show plan.json"):
        result = run(line)
        assert (result.code, "changed after it was made" in result.err) == (1, True)


# ----------------------------------------------------------------------------------------- budget


@pytest.mark.usefixtures("planned", "unread")
def test_declining_spends_nothing():
    for answer in ("n\n", "\n", "", "yess\n"):
        result = run(RELEASE, answer)
        assert (result.code, result.out) == (1, "")
        assert "declined" in result.err
    assert spends() == 0
    assert not Path("heights.cloak").exists()


@pytest.mark.usefixtures("unread")
def test_what_does_not_fit_is_refused_before_asking():
    budget(epsilon=0.5)
    good(f"{PLAN} -o plan.json")
    result = run(f"{RELEASE} --json")
    assert (result.code, result.data["exit_code"]) == (3, 3)
    first, asked, *balance = result.data["error"].splitlines()
    assert first.endswith("The output column was not read, and nothing was spent.")
    assert asked == "Release 'height' of data.csv: (1, 0.01)-DP."
    assert balance == good(f"ledger show {LEDGER}").out.splitlines()
    assert "[y/N]" not in result.err


@pytest.mark.usefixtures("planned")
def test_the_ledger_may_stand_in_the_environment(monkeypatch):
    monkeypatch.setenv("CLOAKGP_LEDGER", "sqlite:///budget.db")
    good("release plan.json data.csv --dataset kung --yes -o heights.cloak")
    good("ledger verify --release heights.cloak")


@pytest.mark.usefixtures("planned")
def test_a_command_that_died_is_run_again_for_nothing(monkeypatch):
    def full(path, contents):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write", full)
        result = run(f"{RELEASE} --yes")
    assert (result.code, spends()) == (2, 1)
    assert "run the same command again, for nothing" in result.err
    again = good(f"{RELEASE} --json", "")  # nothing to confirm
    assert again.data["spent"] is False
    assert "(1, 0.01)-DP.\nThis was answered before: entry 2" in again.err


@pytest.mark.usefixtures("planned")
def test_a_second_release_of_one_plan_must_be_asked_for():
    good(f"{RELEASE} --yes")
    second = RELEASE.replace("heights.cloak", "second.cloak")
    assert good(f"{second} --again 2 --yes --json").data["spent"] is True
    assert good(f"{second} --again 2 --yes --json").data["spent"] is False
    assert Path("second.cloak").read_bytes() != Path("heights.cloak").read_bytes()
    Path("other.csv").write_bytes(Path("data.csv").read_bytes())  # a file of another name: another question
    third = RELEASE.replace("data.csv", "other.csv").replace("heights.cloak", "third.cloak")
    assert good(f"{third} --yes --json").data["spent"] is True
    assert spends() == 3


# ------------------------------------------------------------------------------------------ files


def test_files_that_were_changed_end_with_1(tamper):
    budget()
    good(f"{PLAN} -o plan.json")
    good(FREE)
    tamper(Path("heights.cloak"), lambda manifest, arrays: manifest["certificate"].update(epsilon=0.5))
    result = run("verify heights.cloak --json")
    assert (result.code, result.data["exit_code"]) == (1, 1)
    with sqlite3.connect("budget.db") as database:
        database.execute("DROP TRIGGER cloakgp_ledger_no_update")
        database.execute("UPDATE cloakgp_ledger SET who = 'nobody' WHERE number = 1")
    database.close()
    assert run(f"ledger verify {LEDGER}").code == 1


@pytest.mark.usefixtures("planned")
def test_a_release_file_is_not_overwritten_by_another():
    Path("heights.cloak").write_text("something else")
    assert (run(f"{RELEASE} --yes").code, spends()) == (1, 0)
    assert Path("heights.cloak").read_text() == "something else"
    good(f"{RELEASE} --yes --overwrite")
    Path("heights.cloak").write_text("something else")
    assert run(f"{RELEASE} --yes").code == 1  # on record, so free; but the file is another
    good(f"{RELEASE} --yes --overwrite")
    good(RELEASE)  # the file is there already, and the same
    assert spends() == 1
    good(f"{RELEASE} --again 2 --yes --overwrite")
    assert run(RELEASE).code == 1  # there is another release


@pytest.mark.usefixtures("planned")
def test_what_is_read_is_not_written_over():
    """Least of all the private data."""
    Path("points.csv").write_text("age\n12.5\n30\n")
    good(f"{RELEASE} --yes")
    paid = f"{SELECT} --epsilon 1 {LEDGER} --dataset kung --yes"
    before = {file: Path(file).read_bytes() for file in ("points.csv", "budget.db", "data.csv")}
    for line in (
        f"{PLAN} -o data.csv",
        "predict heights.cloak points.csv -o points.csv",
        f"{PLAN.replace('grid:9', 'points.csv')} -o points.csv",
        f"{paid} --then-at points.csv --then-epsilon 1 --then-delta 0.1 -o points.csv",
        f"{paid} -o budget.db",
        f"{RELEASE.replace('heights.cloak', 'budget.db')} --again 2 --overwrite --yes",
    ):
        result = run(line)
        assert (result.code, "read by this command" in result.err) == (2, True), line
        assert {file: Path(file).read_bytes() for file in before} == before


def test_export_writes_over_no_file_that_was_not_named():
    """Its own choice of a name may be that of the private data."""
    good(f"{PLAN} -o plan.json")
    good(FREE.replace("heights", "data"))
    before = Path("data.csv").read_bytes()
    result = run("export data.cloak --csv")
    assert result.code == 1
    assert "data.csv exists already. Say -o data.csv to replace it" in result.err
    assert Path("data.csv").read_bytes() == before
    good("export data.cloak --html")
    assert run("export data.cloak --html").code == 1
    good("export data.cloak --html -o data.html")
