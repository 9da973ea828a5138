"""What may be uploaded, under which name, and how much of it."""

from __future__ import annotations

import gzip
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from app_helpers import Limits, World, check_refused, make_world, opened, table

from cloakgp.app.folder import UPLOAD_NAME, Folder

BODY = table({"age": [1.0, 2.0, 3.0], "height": [1.0, 2.0, 3.0]})


ODD = [
    "..csv",
    ".hidden.csv",
    "a%00.csv",
    "b%0a.csv",
    "evil.py",
    "people.json",
    "a" * 200 + ".csv",
    "%C3%A9.csv",
    "\u202elava.csv",
    "<b>a&b<b>;.csv",
    "a.csv%20",
    "a\\b.csv",
    "no ending",
    "DATA.CSV",
]


def test_any_name_is_taken_and_none_leads_out_of_the_folder(world):
    client, folder = world.client(), world.state.folder
    elsewhere = sorted(path.name for path in folder.path.iterdir())
    for name in ("..%2f..%2fevil.csv", "%2e%2e%2fevil.csv", "a%2fb.csv", "b" * 300):
        assert client.put(f"/api/data/{name}", content=BODY).status_code in (404, 405, 422)
    for name in ODD:
        kept = client.put(f"/api/data/{name}", content=BODY)
        assert kept.status_code == 201, name
        assert re.fullmatch(UPLOAD_NAME, kept.json()["name"])
        assert kept.json()["shown"].isprintable()
        assert (
            client.put(f"/api/data/{name}", content=BODY).status_code == 409
        )  # the same name, the same place
        assert client.delete(f"/api/data/{name}").status_code in (404, 422)
    check_refused(client.put("/api/data/a.csv.gz", content=gzip.compress(BODY)), 422, "bad_input", "packed")
    listed = {table["shown"]: table for table in world.restarted().client().get("/api/data").json()}
    assert len(listed) == len(ODD) + 1
    assert listed["<b>a&b<b>;.csv"]["columns"] == listed["é.csv"]["columns"]
    assert sorted(path.name for path in folder.path.iterdir()) == sorted([*elsewhere, "names.json"])
    assert {path.name for path in folder.uploads.iterdir()} == {table["name"] for table in listed.values()}


def test_the_folder_itself_refuses_such_names(tmp_path):
    folder = Folder(tmp_path / "data")
    for name in ("../evil.csv", "a/b.csv", "/etc/passwd.csv", "a.csv\n", ".csv"):
        with pytest.raises(ValueError, match="name of a table"):
            folder.upload(name)
    for identity in ("../../people", "0" * 15, "0" * 17, "G" * 16):
        with pytest.raises(ValueError, match="not the id"):
            folder.release(identity)


def test_a_table_is_never_replaced(world):
    client = world.client()
    answer = client.put("/api/data/heights.csv", content=BODY)
    check_refused(answer, 409, "conflict")
    assert client.get("/api/data").json()[0]["rows"] == 40
    assert client.delete("/api/data/heights.csv").json() == {"ok": True}
    assert client.get("/api/data").json() == []
    assert client.delete("/api/data/heights.csv").status_code == 404


def test_of_uploads_under_one_name_one_wins(world):
    bodies = [table({"age": range(n), "height": range(n)}) for n in range(2, 10)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda body: world.client().put("/api/data/race.csv", content=body), bodies))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    won = next(answer.json() for answer in answers if answer.status_code == 201)
    assert won in world.client().get("/api/data").json()


@pytest.fixture
def small(tmp_path) -> World:
    made = make_world(tmp_path / "data")
    limits = Limits(upload_bytes=5000, json_bytes=3000, body_seconds=2.0, upload_seconds=2.0)
    return World(*opened(tmp_path / "data", limits), made.tokens)


def test_too_much_is_refused_whether_announced_or_not(small):
    client = small.client()

    async def unannounced() -> Any:
        for _ in range(100):
            yield b"1,2\n" * 100

    for content in (b"a,b\n" + b"1,2\n" * 5000, unannounced()):
        answer = client.put("/api/data/large.csv", content=content)
        check_refused(answer, 413, "too_large")
    many = {"points": [[1.0]] * 2000}
    answer = client.post(f"/api/releases/{'0' * 16}/predict", json=many)
    check_refused(answer, 413, "too_large")
    assert client.put("/api/data/small.csv", content=BODY).status_code == 201
    assert list(small.state.folder.uploads.glob(".*")) == []


def test_what_arrives_too_slowly_is_dropped(small):
    import asyncio

    async def slowly() -> Any:
        yield b"a,b\n"
        await asyncio.sleep(6)
        yield b"1,2\n"

    answer = small.client().put("/api/data/slow.csv", content=slowly())
    check_refused(answer, 408, "busy")
    assert [path.name for path in small.state.folder.uploads.iterdir()] == ["heights.csv"]


def test_what_a_killed_upload_left_is_removed_on_start(world):
    folder = world.state.folder
    left = folder.uploads / ".heights.csv.0123456789abcdef.part"
    left.write_bytes(b"half")
    (folder.working / "abc").mkdir()
    (folder.working / "abc" / "heights.csv").write_bytes(b"x")
    world.restarted()
    assert not left.exists()
    assert list(folder.working.iterdir()) == []


@pytest.mark.parametrize(
    "body",
    ["{", "[1,2", "null", "[]", '"x"', "[" * 100_000, '{"inputs": ["\\ud800"]}', '{"inputs": NaN}', "\x00"],
)
def test_bodies_that_are_no_json_are_refused(world, body):
    headers = {"Content-Type": "application/json"}
    answer = world.client().post("/api/data/heights.csv/inputs", content=body.encode(), headers=headers)
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] == "bad_input"


def test_what_was_put_there_by_hand_is_closed_and_does_no_harm(world):
    folder = world.state.folder
    for name, contents in (("by hand.csv", BODY), ("notes.txt", b"x"), ("broken.csv", b"1,2\n3,4\n")):
        (folder.uploads / name).write_bytes(contents)
        (folder.uploads / name).chmod(0o644)
    listed = world.restarted().client().get("/api/data").json()
    assert [each["name"] for each in listed] == ["by hand.csv", "heights.csv"]
    assert {path.stat().st_mode & 0o777 for path in folder.uploads.iterdir()} == {0o600}
