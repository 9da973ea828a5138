"""A server that is killed during a release leaves ledger and files that agree: both know it, or neither."""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
from app_helpers import LEARNED, SETTINGS, World, keep, make_world, opened, release, spends
from forked import Forking, Server


@contextmanager
def server(forking: Forking, world: World, moment: str = "") -> Iterator[tuple[Server, httpx.Client]]:
    """A server on this world's folder, and a client that signs in as the custodian."""
    headers = {"Authorization": f"Bearer {world.tokens['custodian']}"}
    with forking.server(world.state.folder.path, moment=moment) as child:
        url = child.link().split("/enter/")[0]
        with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as client:
            yield child, client


def check_agreement(world: World) -> list[Any]:
    """After a start: as many releases as spends, each in the ledger, and nothing unfinished."""
    client, made = world.client(), world.client().get("/api/releases").json()
    assert spends(world) == len(made)
    for each in made:
        assert client.get(f"/api/releases/{each['id']}/verify").json()["ok"]
    folder = world.state.folder
    names = {path.name for path in folder.releases.iterdir()}
    assert names == {f"{each['id']}.{kind}" for each in made for kind in ("json", "cloak")}
    assert list(folder.working.iterdir()) == []
    return list(made)


@pytest.mark.parametrize(
    ("settings", "moment", "paid"),
    [
        *((SETTINGS, moment, paid) for moment, paid in (("before", 0), ("charged", 1), ("written", 1))),
        *((LEARNED, moment, paid) for moment, paid in (("before", 0), ("measuring", 0), ("charged", 1))),
        pytest.param(LEARNED, "staged", 1, marks=pytest.mark.slow),
    ],
)
def test_killed_during_a_release(tmp_path, forking, settings, moment, paid):
    """What was paid for is finished by itself at the next start, and no stage is answered twice."""
    world = make_world(tmp_path / "data")
    with server(forking, world, moment) as (child, client):
        plan = keep(client, settings)  # type: ignore[arg-type]
        with pytest.raises(httpx.TransportError):
            release(client, plan)  # type: ignore[arg-type]
        assert child.wait() == -signal.SIGKILL
    again = World(*opened(tmp_path / "data"), world.tokens)
    assert len(check_agreement(again)) == paid
    # Asked again, it is paid for if it was not, and the same if it was.
    answer = release(again.client(), plan).json()
    assert answer["receipt"]["spent"] == (paid == 0)
    (made,) = check_agreement(again)
    entries = again.client().get("/api/ledger").json()["entries"]
    answered = [entry["what"]["stage"] for entry in entries if entry["kind"] == "answered"]
    assert answered == list(range(1, len(made["certificate"].get("shares", [0]))))
    assert made["receipt"]["entry"] == entries[-1]["number"]


def test_a_release_file_that_was_damaged_or_lost_does_not_verify_and_is_made_again(released, tmp_path):
    world, _, release_id = released
    path = world.state.folder.release(release_id)
    kept = path.read_bytes()
    for change, said in ((lambda: path.write_bytes(kept[:-1]), "damaged"), (path.unlink, "file is gone")):
        change()
        found = world.client().get(f"/api/releases/{release_id}/verify").json()
        assert (found["ok"], said in found["words"]) == (False, True)
    world.restarted()
    assert path.read_bytes() == kept


def test_a_real_server_announces_itself_and_logs_no_tokens(tmp_path):
    """The link works once over a socket; the log shows neither it nor a query."""
    world = make_world(tmp_path / "data")
    started = "from cloakgp.app import serve; import sys; serve(port=0, data=sys.argv[1])"
    command = [sys.executable, "-c", started, str(world.state.folder.path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    link = (child.stdout.readline() + child.stdout.readline()).split()[-1]
    with httpx.Client(timeout=30, trust_env=False) as browser:
        assert browser.get(link, follow_redirects=False).status_code == 303
        assert browser.get(link).status_code == 401
        base = link.split("/enter/")[0]
        assert browser.get(f"{base}/api/me?token=SECRET").json()["role"] == "custodian"
        assert browser.post(f"{base}/api/people", json={}).status_code == 403
        strange = browser.get(f"{base}/api/me", headers={"Host": "evil.example"})
        assert strange.status_code == 400
        assert "server" not in strange.headers
    child.terminate()
    _, logged = child.communicate(timeout=60)
    assert link.split("/")[-1] not in logged
    assert "SECRET" not in logged
    assert "GET /enter/... 303" in logged
    assert "GET /api/me 200" in logged


def test_the_printed_link_works_on_any_address_of_this_machine(tmp_path, forking):
    with forking.server(tmp_path / "data", host="127.0.0.2") as child:
        link = child.link()
        assert link.startswith("http://127.0.0.2:")
        with httpx.Client(timeout=30, trust_env=False) as browser:
            assert browser.get(link, follow_redirects=False).status_code == 303
            assert browser.get(link.split("/enter/")[0] + "/api/me").json()["role"] == "custodian"


def test_one_folder_has_one_server(tmp_path, forking):
    """A second one would take the first one's unfinished work for a dead one's."""
    world = make_world(tmp_path / "data")
    with server(forking, world):
        with forking.server(world.state.folder.path) as second:
            assert second.wait() > 0
        assert "another server uses" in second.errors.read_text()
    with server(forking, world) as (_, client):
        assert client.get("/api/me").status_code == 200


def test_with_a_certificate_everything_is_encrypted(tmp_path, forking):
    """And the cookie is for encrypted connections alone."""
    certificate, key = _self_signed(tmp_path)
    with forking.server(tmp_path / "data", tls=[certificate, key]) as child:
        link = child.link()
        assert link.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=certificate)
        with httpx.Client(verify=trusted, timeout=30, trust_env=False) as browser:
            entered = browser.get(link, follow_redirects=False)
            assert "Secure" in entered.headers["set-cookie"]
            assert browser.get(link.split("/enter/")[0] + "/api/me").json()["role"] == "custodian"


def _self_signed(folder: Path) -> tuple[str, str]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    return str(folder / "cert.pem"), str(folder / "key.pem")
