"""Two attacks on a server, a minute each, while a custodian works.

    python benchmarks/app_abuse.py [--seconds 60]

One analyst sends bodies of 8 MiB and questions of 10,000 points, and leaves half of them before the answer;
and nobody in particular sends 8 MiB to the page for signing in. Connections that ask for nothing are a
proxy's to end, and not tried here.
Everything is on 127.0.0.1, server, attacker and custodian each in a process of their own, and bounded in
number. Prints a table, and exits with 1 unless every request of the custodian is answered within 2 s, the
server's memory grows by less than 200 MB, and afterwards all is as before. Needs Linux, whose /proc it reads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from app_load import SETTINGS, table

from cloakgp.app import State

SLOWEST, GROWTH = 2.0, 200.0  # seconds, MB
FILES = 1024  # that the server may open: what most systems allow
SERVER = f"""
import resource, sys
from cloakgp.app import serve
resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))
serve(port=0, data=sys.argv[1])
"""
ATTACKS = {
    "none": "none",
    "analyst": "one analyst, 8 MiB bodies and heavy questions",
    "sign-in": "nobody, 8 MiB to sign in",
}
BODY = 8 * 2**20
SENDERS, MOST = 24, 100_000
PAUSE = 0.05  # so that the attacker leaves some of a small machine to those it attacks


class Attack:
    """What the attacker's process does, and what it saw."""

    def __init__(self, port: int, seconds: float, token: str, release: str) -> None:
        self._port, self._until = port, time.monotonic() + seconds
        self._token, self._release = token, release
        self.seen: Counter[str] = Counter()

    def _goes_on(self) -> bool:
        return time.monotonic() < self._until and self.seen["sent"] < MOST

    async def _send(self, head: str, body: bytes, stays: bool) -> None:
        """One request, answered or left."""
        self.seen["sent"] += 1
        writer = None
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(f"{head}\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            answer = asyncio.ensure_future(reader.read(16))
            for start in range(0, len(body), 2**18):
                if answer.done():
                    break
                writer.write(body[start : start + 2**18])
                await asyncio.wait_for(writer.drain(), 30)
            if stays or answer.done():
                status = (await asyncio.wait_for(answer, 30))[9:12].decode() or "closed"
            else:
                answer.cancel()
                status = "left"
        except (OSError, TimeoutError) as error:
            status = "closed" if isinstance(error, OSError) else "timeout"
        finally:
            if writer is not None:
                writer.transport.abort()
        self.seen[status] += 1
        await asyncio.sleep(PAUSE)

    async def analyst(self) -> None:
        path = f"POST /api/releases/{self._release}/predict HTTP/1.1\r\nAuthorization: Bearer {self._token}"
        brackets = b'{"points": [' + b"[]," * ((BODY - 100) // 3) + b"[1.0]]}"
        spaces = b" " * (BODY - 100) + b'{"points": [[1.0]]}'
        heavy = json.dumps({"points": np.linspace(0, 90, 10_000)[:, None].tolist()}).encode()
        kinds = (brackets, heavy, spaces, heavy)

        async def sender(number: int) -> None:
            turn = number
            while self._goes_on():
                await self._send(path, kinds[turn % 4], stays=turn // 4 % 2 == 0)
                turn += 1

        await asyncio.gather(*(sender(number) for number in range(SENDERS)))

    async def sign_in(self) -> None:
        body = b'{"token": [' + b"[]," * ((BODY - 20) // 3) + b"[]]}"

        async def sender() -> None:
            while self._goes_on():
                await self._send("POST /api/session HTTP/1.1\r\nContent-Type: application/json", body, True)

        await asyncio.gather(*(sender() for _ in range(SENDERS)))


class Custodian:
    """Works, and notes how long each request took."""

    def __init__(self, base: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=base, headers=headers, timeout=60, trust_env=False)
        self._own, self._made = token, 0
        self.times: list[float] = []
        self.failed: Counter[str] = Counter()

    def ask(self, method: str, path: str, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            answer = self.client.request(method, path, **options)
            if answer.status_code >= 400:
                self.failed[f"{method} {path.split('/')[2]} {answer.status_code}"] += 1
            return answer.json() if "json" in answer.headers.get("content-type", "") else None
        except httpx.HTTPError as error:
            self.failed[type(error).__name__] += 1
            return None
        finally:
            self.times.append(time.perf_counter() - start)

    def prepare(self) -> str:
        """A table, a budget and a release; its id."""
        self.ask("PUT", "/api/data/heights.csv", content=table(287))
        self.ask("POST", "/api/ledger/datasets", json={"name": "kung", "epsilon": 50.0, "delta": 0.01})
        return self.release()

    def release(self) -> str:
        self._made += 1
        settings = {**SETTINGS, "at": f"grid:{100 + self._made % 50}", "epsilon": 0.01 + 1e-6 * self._made}
        plan = self.ask("POST", "/api/plans", json={"settings": settings, "name": f"work {self._made}"})
        asked = {"dataset": "kung", "confirm": "kung", "why": "abuse"}
        made = self.ask("POST", f"/api/plans/{plan['id']}/release", json=asked)
        return str(made["release"]["id"])

    def work(self, release: str) -> None:
        """What a page asks for while somebody moves a slider, signs in and looks around."""
        self._made += 1
        self.ask("POST", "/api/preview", json={**SETTINGS, "epsilon": 0.05 + 1e-4 * self._made})
        self.ask("GET", "/api/releases")
        self.ask("POST", f"/api/releases/{release}/predict", json={"points": [[10.0], [50.0]]})
        self.ask("GET", "/api/ledger")
        self.ask("POST", "/api/session", json={"token": self._own})
        self.ask("GET", "/api/me", headers={"Connection": "close"})  # the next one is over a new connection


class Server:
    """The server's process, as the system sees it."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process, self._log = process, log

    def memory(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024

    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def logged(self) -> int:
        return self._log.stat().st_size


class Watching(threading.Thread):
    """Notes the most memory that the server had."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._server, self._stop_it = server, threading.Event()
        self.most = 0.0

    def run(self) -> None:
        while not self._stop_it.wait(0.25):
            self.most = max(self.most, self._server.memory())

    def end(self) -> None:
        self._stop_it.set()
        self.join()


def under_attack(
    name: str, server: Server, custodian: Custodian, release: str, attacker: list[str], seconds: float
) -> bool:
    """One row of the table, and whether it is as it should be."""
    custodian.times, custodian.failed = [], Counter()
    custodian.ask("GET", "/api/me")  # so that its connection is counted before and after
    memory, files, logged = server.memory(), server.files(), server.logged()
    watching = Watching(server)
    watching.start()
    command = [sys.executable, __file__, "--attack", name, *attacker, "--seconds", str(seconds)]
    attacking = None
    if name != "none":
        attacking = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        time.sleep(3)  # it starts
    until, turns = time.monotonic() + seconds - 3, 0
    while time.monotonic() < until:
        custodian.work(release)
        if turns % 20 == 0:
            custodian.release()
        turns += 1
        time.sleep(0.2)
    seen: Counter[str] = Counter()
    if attacking is not None:
        seen = Counter(json.loads(attacking.communicate(timeout=120)[0]))
    watching.end()
    said = server.logged() - logged
    custodian.ask("GET", "/api/me")
    times, failed = custodian.times, custodian.failed
    settled = time.monotonic() + 40
    while server.files() > files and time.monotonic() < settled:
        time.sleep(0.25)
    grown, after = watching.most - memory, server.files()
    refused = sum(count for key, count in seen.items() if key == "closed" or key[:1] == "4" or key == "503")
    print(
        f"| {ATTACKS[name]} | {seen['sent']:,} | {refused:,} | {len(times)} "
        f"| {statistics.median(times):.2f} s | {max(times):.2f} s | {grown:.0f} MB "
        f"| {files} → {after} | {said:,} |",
        flush=True,
    )
    good = max(times) < SLOWEST and grown < GROWTH and not failed and after <= files
    if not good:
        print(f"  failed: {dict(failed)}, seen: {dict(seen)}", file=sys.stderr)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", choices=list(ATTACKS), action="append")
    parser.add_argument(
        "--attack", nargs=4, metavar=("NAME", "PORT", "TOKEN", "RELEASE"), help="one attacker"
    )
    options = parser.parse_args()
    if options.attack:
        name, port, token, release = options.attack
        attack = Attack(int(port), options.seconds, token, release)
        kinds = {"analyst": attack.analyst, "sign-in": attack.sign_in}
        asyncio.run(kinds[name]())
        print(json.dumps(attack.seen))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        data, log = Path(folder) / "data", Path(folder) / "log"
        people = State(data).accounts
        tokens = [people.add(role, role, 1)[1] for role in ("custodian", "analyst")]
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-c", SERVER, str(data)], stdout=subprocess.PIPE, stderr=stderr, text=True
            )
            try:
                assert process.stdout is not None
                process.stdout.readline()
                base = process.stdout.readline().strip().split("/enter/")[0]
                return _all(Server(process, log), base, tokens, options)
            finally:
                process.terminate()
                process.wait(90)


def _all(server: Server, base: str, tokens: list[str], options: argparse.Namespace) -> int:
    custodian = Custodian(base, tokens[0])
    release = custodian.prepare()
    attacker = [base.rsplit(":", 1)[1], tokens[1], release]
    print(
        "| attack | sent | refused | custodian's requests | median | slowest | memory | files | log, bytes |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    good = True
    for name in options.only or ATTACKS:
        good &= under_attack(name, server, custodian, release, attacker, options.seconds)
    before = custodian.failed.total()
    book = custodian.ask("GET", "/api/ledger")
    print(f"\nledger afterwards: {'verified' if book['verified'] else book['problem']}")
    return 0 if good and book["verified"] and custodian.failed.total() == before else 1


if __name__ == "__main__":
    sys.exit(main())
