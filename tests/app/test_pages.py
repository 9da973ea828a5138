"""The pages' source: no build step checks it, so these do. What the pages do is tested in a browser."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from asgi_client import Client

from cloakgp.app import server
from cloakgp.app.routes_people import TERMS
from cloakgp.app.settings import USUAL

FOLDER = server.FOLDER
SCRIPTS = sorted(FOLDER.rglob("*.js"))
STYLES = sorted(FOLDER.rglob("*.css"))
EXPORTED = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
IMPORT = re.compile(r'^import \{([^}]+)\} from "([^"]+)";', re.MULTILINE)


def name_of(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


def imports(path: Path) -> list[tuple[Path, str]]:
    """What a script imports, and from where."""
    found = IMPORT.findall(path.read_text(encoding="utf-8"))
    return [
        ((path.parent / where).resolve(), name.strip())
        for names, where in found
        for name in names.split(",")
        if name.strip()
    ]


def test_what_a_script_imports_is_there_and_used():
    exported = {path: EXPORTED.findall(path.read_text(encoding="utf-8")) for path in SCRIPTS}
    for path in SCRIPTS:
        body = IMPORT.sub("", path.read_text(encoding="utf-8"))
        for where, name in imports(path):
            assert where in exported, f"{name_of(path)}: {where} is not there"
            assert name in exported[where], f"{name_of(path)}: {where.name} has no {name}"
            assert re.search(rf"\b{name}\b", body), f"{name_of(path)}: {name} is not used"


def test_what_a_script_exports_is_used_somewhere():
    wanted = {(where, name) for path in SCRIPTS for where, name in imports(path)}
    offered = {
        (path, name) for path in SCRIPTS for name in EXPORTED.findall(path.read_text(encoding="utf-8"))
    }
    assert offered == wanted


def test_text_reaches_the_page_as_text_alone():
    for path in SCRIPTS:
        text = path.read_text(encoding="utf-8")
        for markup in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "eval(",
        ):
            assert markup not in text, name_of(path)


def test_every_style_sheet_is_linked_and_there():
    linked = re.findall(r'rel="stylesheet" href="/static/([^"]+)"', (FOLDER / "index.html").read_text())
    assert sorted(linked) == [name_of(path) for path in STYLES]
    assert linked[-1] == "css/small_screens.css"  # it overrides the others


def test_every_word_that_is_explained_is_in_the_glossary():
    """The pages have no definitions of their own."""
    asked = {term for path in SCRIPTS for term in re.findall(r'\btip\("([^"]+)"\)', path.read_text())}
    assert len(asked) > 20
    assert asked <= TERMS.keys()


def test_the_glossary_is_for_everybody_and_defaults_for_those_signed_in(released):
    world = released[0]
    assert Client(world.app).get("/api/terms").json() == TERMS
    defaults = world.client("analyst").get("/api/defaults").json()
    assert defaults == USUAL.model_dump(mode="json")
    (folder,) = {path for path in SCRIPTS if path.stem == "starting_values"}
    assert set(re.findall(r"defaults\.(\w+)", folder.read_text())) <= defaults.keys()


def test_pages_have_their_types_and_are_asked_for_each_time(world):
    client = Client(world.app)
    types = {
        "/": "text/html; charset=utf-8",
        "/static/main.js": "text/javascript; charset=utf-8",
        "/static/css/layout.css": "text/css; charset=utf-8",
        "/static/icon.svg": "image/svg+xml",
    }
    for path, kind in types.items():
        answer = client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        assert answer.headers["cache-control"] == "no-cache"
        head = client.request("HEAD", path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(answer.content))
        again = client.get(path, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["cache-control"] == "no-cache"
        assert "default-src 'none'" in again.headers["content-security-policy"]
    plotly = client.get("/static/plotly.min.js")
    assert plotly.headers["content-type"] == types["/static/main.js"]
    assert "max-age" in plotly.headers["cache-control"]


def test_pages_can_only_be_read_and_folders_not_listed(world):
    client = world.client()
    for path in ("/", "/static/main.js", "/static/nothing.js"):
        refused = client.post(path)
        assert (refused.status_code, refused.json()["code"]) == (405, "bad_input")
        assert refused.headers["allow"].replace(" ", "").split(",") in (["GET", "HEAD"], ["HEAD", "GET"])


@pytest.mark.parametrize(
    "path",
    [
        "",
        "views",
        "views/",
        "nothing.js",
        "terms.json",
        "a" * 600 + ".js",
        "%00.js",
        "%00",
        "/etc/passwd",
        "../server.py",
        "%2e%2e/server.py",
        "..%2fserver.py",
    ],
)
def test_pages_come_from_their_folder_alone(released, path):
    missing = released[0].client(None).get(f"/static/{path}")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


def test_of_plotly_nothing_but_itself_is_served(world):
    folder = Path(find_spec("plotly").origin).parent / "package_data"
    others = [path.name for path in folder.iterdir() if path.suffix == ".js" and path.name != "plotly.min.js"]
    assert others
    for name in others:
        assert Client(world.app).get(f"/static/{name}").status_code == 404
