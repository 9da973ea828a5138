"""Who may do what, and from where."""

from __future__ import annotations

import hashlib
import json

import pytest
from app_helpers import LOOSE, SETTINGS, World, check_refused, make_world, opened
from asgi_client import Client

from cloakgp.app import Limits, State, create_app, server
from cloakgp.app.limits import Rate

BOTH = {
    ("get", "/api/me"),
    ("get", "/api/defaults"),
    ("get", "/api/plans"),
    ("delete", "/api/session"),
    ("get", "/api/plans/{plan_id}"),
    ("get", "/api/work/{work}"),  # of their own
    ("get", "/api/releases"),
    ("get", "/api/releases/{release_id}"),
    ("post", "/api/releases/{release_id}/predict"),
    ("post", "/api/releases/{release_id}/map"),
    ("get", "/api/releases/{release_id}/picture/{kind}"),
    *(
        ("get", f"/api/releases/{{release_id}}/{what}")
        for what in ("verify", "file", "csv", "report", "script")
    ),
}
CUSTODIANS = {
    ("get", "/api/data"),
    ("put", "/api/data/{name}"),
    ("delete", "/api/data/{name}"),
    ("post", "/api/data/{name}/inputs"),
    ("post", "/api/data/{name}/people"),
    *(("post", f"/api/preview{what}") for what in ("", "/curve", "/designs")),
    ("post", "/api/plans"),
    ("post", "/api/plans/{plan_id}/quote"),
    ("post", "/api/plans/{plan_id}/release"),
    ("get", "/api/ledger"),
    ("post", "/api/ledger/datasets"),
    ("post", "/api/ledger/private"),
    ("delete", "/api/work/{work}"),
    ("get", "/api/people"),
    ("post", "/api/people"),
    ("delete", "/api/people/{person_id}"),
}
ANYBODY = {("post", "/api/session"), ("get", "/api/terms")}


def test_every_route_is_on_one_of_the_lists(released):
    """A new route is a decision: it needs a line above."""
    described = released[0].client().get("/api/openapi.json").json()
    paths = described["paths"]
    assert {(method, path) for path in paths for method in paths[path]} == BOTH | CUSTODIANS | ANYBODY
    for operation in (operation for methods in paths.values() for operation in methods.values()):
        assert {"401", "403", "422", "429", "503"} <= set(operation["responses"])
        assert operation["description"]
    assert described["components"]["schemas"]["Settings"]["examples"][0]["data"] == "heights.csv"


@pytest.mark.parametrize("who", [None, "analyst", "custodian", "expired", "revoked"])
@pytest.mark.usefixtures("drawn_once")
def test_every_route_is_for_its_roles_alone(released, who):
    world, plan, release = released
    # Deletes and uploads are aimed at nothing, so that the others still find what they need.
    there = {"plan_id": plan, "release_id": release, "name": "nothing.csv", "person_id": "0" * 16}
    for method, path in sorted(BOTH | CUSTODIANS):
        body = {"content": b""} if method == "put" else {} if method != "post" else {"json": {}}
        asked = path.format(**there, work="0" * 16, kind="svg")
        answer = world.client(who).request(method.upper(), asked, **body)
        if who in (None, "expired", "revoked"):
            check_refused(answer, 401, "not_signed_in")
        elif who == "analyst" and (method, path) in CUSTODIANS:
            check_refused(answer, 403, "not_allowed")
        else:
            assert answer.status_code in (200, 404, 422), (path, answer.text)


@pytest.mark.parametrize(
    "path",
    [
        "//api/data",
        "/api//data",
        "/api/data/",
        "/API/data",
        "/api/data%00",
        "/api/data;x",
        "/api/releases/../data",
        "/api/releases/%2e%2e/data",
        "/api/releases/..%2f..%2fpeople/file",
        "/api/releases/..%2f..%2fledger.db",
        "/api/releases/0123456789abcdef%0a/file",
        "/api/plans/..%2f..%2fpeople",
        "/api/plans/%2e%2e%2fpeople.json",
        "/static/..%2f..%2fpeople.json",
    ],
)
def test_no_other_spelling_of_a_path_leads_an_analyst_further(released, path):
    world = released[0]
    over = {"X-HTTP-Method-Override": "DELETE", "X-Original-URL": "/api/data", "X-Rewrite-URL": "/api/data"}
    answer = world.client("analyst").get(path, headers=over)
    assert answer.status_code in (307, 403, 404, 422), answer.text
    assert "heights.csv" not in answer.text
    assert "token_sha256" not in answer.text


def test_a_token_may_also_be_wrong(released):
    world = released[0]
    good = world.tokens["custodian"]
    for header in ("Bearer nonsense", "Bearer ", f"Basic {good}", good, "Bearer " + "é" * 3):
        headers = {"Authorization": header.encode("latin-1")}
        assert Client(world.app, headers).get("/api/me").status_code == 401


def test_no_token_is_kept_in_the_clear(world):
    kept = (world.state.folder.path / "people.json").read_text()
    for token in world.tokens.values():
        assert token not in kept
        assert hashlib.sha256(token.encode()).hexdigest() in kept
        assert len(token) >= 43


def test_people_are_invited_expire_and_are_revoked(world):
    client = world.client()
    made = client.post("/api/people", json={"name": "Ada", "role": "analyst", "days": 3}).json()
    ada = Client(world.app, {"Authorization": f"Bearer {made['token']}"})
    assert ada.get("/api/me").json()["name"] == "Ada"
    session = Client(world.app)
    assert session.post("/api/session", json={"token": made["token"]}).json()["role"] == "analyst"
    assert session.get("/api/me").status_code == 200
    assert "token" not in json.dumps(client.get("/api/people").json())
    assert client.delete(f"/api/people/{made['person']['id']}").json()["revoked"]
    assert ada.get("/api/me").status_code == 401
    assert session.get("/api/me").status_code == 401
    assert world.restarted().client().get("/api/people").json()[-1]["revoked"]


def test_the_link_works_once_and_makes_a_custodian(world):
    browser, token = Client(world.app), world.state.sessions.new_link()
    entered = browser.get(f"/enter/{token}")
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert browser.get("/api/me").json()["role"] == "custodian"
    second = Client(world.app).get(f"/enter/{token}")
    assert (second.status_code, "set-cookie" in second.headers) == (401, False)
    header = {"Authorization": f"Bearer {world.state.sessions.new_link()}"}
    assert Client(world.app, header).get("/api/me").status_code == 401
    assert Client(world.app).get(f"/enter/{world.tokens['analyst']}").status_code == 401  # not for addresses
    own = {"token": world.tokens["analyst"]}
    assert Client(world.app).post("/api/session", json=own).status_code == 200


@pytest.mark.parametrize(
    ("host", "any_host", "secure"),
    [("http://localhost", False, False), ("https://localhost", False, True), ("http://a.b", True, True)],
    ids=["here", "under TLS", "behind a proxy, whatever it says of TLS"],
)
def test_the_cookie_is_for_the_server_alone(tmp_path, host, any_host, secure):
    state = State(tmp_path / "data", any_host=any_host)
    entered = Client(create_app(state), host=host).get(f"/enter/{state.sessions.new_link()}")
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert ("Secure" in cookie) == secure
    assert ("max-age" in entered.headers.get("strict-transport-security", "")) == host.startswith("https")


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path):
    """Its rights are not changed, least of all those of the machine's temporary folder."""
    other = tmp_path / "other"
    other.mkdir(mode=0o755)
    (other / "thesis.txt").write_text("mine")
    other.chmod(0o755)
    with pytest.raises(ValueError, match="folder of the app's own"):
        State(other)
    assert other.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


def signed_in(world: World) -> Client:
    browser = Client(world.app)
    assert browser.get(f"/enter/{world.state.sessions.new_link()}").status_code == 303
    return browser


EVIL = ["http://evil.example", "http://127.0.0.1:9999", "http://127.0.0.1.evil.example", "x", "http://["]


@pytest.mark.parametrize("origin", [None, "null", *EVIL])
def test_another_site_cannot_make_a_browser_change_anything(world, origin):
    browser = signed_in(world)
    headers = {} if origin is None else {"Origin": origin}
    for method, path, body in (
        ("POST", "/api/people", {"name": "Eve", "role": "custodian", "days": 9}),
        ("DELETE", "/api/data/heights.csv", None),
        ("POST", "/api/preview", SETTINGS),
        ("DELETE", "/api/session", None),
    ):
        check_refused(browser.request(method, path, headers=headers, json=body), 403, "not_allowed")
    assert browser.get("/api/data").json()[0]["name"] == "heights.csv"
    if origin is not None:  # nor sign it in
        token = {"token": world.tokens["analyst"]}
        answer = Client(world.app).post("/api/session", json=token, headers=headers)
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


def test_the_apps_own_pages_can(world):
    browser, mine = signed_in(world), {"Origin": "http://127.0.0.1"}
    assert browser.post("/api/preview", headers=mine, json=SETTINGS).status_code == 200
    assert browser.delete("/api/session", headers=mine).status_code == 200
    assert browser.get("/api/me").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80", "[::2]"]
)
def test_a_name_that_was_rebound_to_this_machine_is_refused(world, host):
    for path in ("/", "/api/me", "/api/openapi.json", "/static/core/api.js"):
        assert world.client().get(path, headers={"Host": host}).status_code == 400
    for good in ("127.0.0.1:8765", "localhost", "LOCALHOST:1", "[::1]:8765"):
        assert world.client().get("/api/me", headers={"Host": good}).status_code == 200


@pytest.mark.parametrize("bound", ["127.0.0.2", "::ffff:127.0.0.3"])
def test_the_address_that_the_server_listens_on_is_a_good_name(tmp_path, bound):
    """However it is spelled; other addresses of this machine are not."""
    world = make_world(tmp_path / "data")
    app = create_app(State(tmp_path / "data", limits=LOOSE, host=bound))
    names = {"127.0.0.2": ["127.0.0.2:8765"], "::ffff:127.0.0.3": ["[::ffff:7f00:3]:1"]}[bound]
    for host in [*names, "127.0.0.1", "localhost"]:
        headers = {"Authorization": f"Bearer {world.tokens['analyst']}", "Host": host}
        assert Client(app).get("/api/me", headers=headers).status_code == 200
    for host in ("127.0.0.4", "evil.example", ""):
        assert Client(app).get("/", headers={"Host": host}).status_code == 400


@pytest.mark.usefixtures("drawn_once")
def test_every_answer_carries_the_security_headers(released):
    world, _, release = released
    for path in (
        "/",
        "/api/me",
        "/api/nothing",
        "/enter/wrong",
        "/static/nothing.js",
        f"/api/releases/{release}/report",
    ):
        for who in (None, "analyst"):
            headers = world.client(who).get(path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            if path.startswith("/api/"):
                assert headers["cache-control"] == "no-store"
    assert "*" not in json.dumps(dict(world.client().get("/api/me").headers)).replace("*/*", "")


def test_requests_and_failed_sign_ins_are_limited(tmp_path):
    world = make_world(tmp_path / "data", LOOSE)
    state, app = opened(tmp_path / "data", Limits(requests_per_second=0.001, burst=5, failures_per_minute=4))
    client = World(state, app, world.tokens).client("analyst")
    often = [client.get("/api/me") for _ in range(7)]
    assert [answer.status_code for answer in often] == [200] * 5 + [429] * 2
    wrong = Client(app, {"Authorization": "Bearer wrong"})
    failed = [wrong.get("/api/me") for _ in range(6)]
    assert [answer.status_code for answer in failed] == [401] * 4 + [429] * 2
    signing_in = [Client(app).post("/api/session", json={"token": "w" * 43}), Client(app).get("/enter/wrong")]
    for answer in (often[-1], failed[-1], *signing_in):
        assert (answer.status_code, int(answer.headers["retry-after"]) >= 1) == (429, True)
    # A right token is never shut out by others' wrong ones.
    assert Client(app).post("/api/session", json={"token": world.tokens["custodian"]}).status_code == 200


def test_the_rate_recovers_and_forgets_old_keys():
    now = [0.0]
    rate = Rate(2.0, 3, keys=2, clock=lambda: now[0])
    assert [rate.allows("a") for _ in range(4)] == [True, True, True, False]
    now[0] = 1.0
    assert [rate.allows("a") for _ in range(3)] == [True, True, False]
    assert rate.allows("b")
    assert rate.allows("c")
    assert rate.allows("a")


def test_beyond_loopback_needs_tokens_and_encryption(tmp_path):
    check = server.check_binding
    for host in ("127.0.0.1", "::1", "localhost", "127.5.5.5"):
        check(host, people=False, tls=False, behind_proxy=False)
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""):
        with pytest.raises(ValueError, match="nobody has a token"):
            check(host, people=False, tls=True, behind_proxy=True)
        with pytest.raises(ValueError, match="without TLS"):
            check(host, people=True, tls=False, behind_proxy=False)
        check(host, people=True, tls=True, behind_proxy=False)
        check(host, people=True, tls=False, behind_proxy=True)
    with pytest.raises(ValueError, match="nobody has a token"):
        server.serve(host="0.0.0.0", data=tmp_path / "data")  # before it listens


def test_behind_a_proxy_the_public_name_is_the_origin(untouched):
    app = create_app(State(untouched.state.folder.path, limits=LOOSE, any_host=True))
    browser = Client(app, host="https://gp.example.org")
    assert browser.post("/api/session", json={"token": untouched.tokens["custodian"]}).status_code == 200
    for origin, status in (("https://gp.example.org", 200), ("https://evil.example", 403)):
        answer = browser.post("/api/preview", json=SETTINGS, headers={"Origin": origin})
        assert answer.status_code == status
