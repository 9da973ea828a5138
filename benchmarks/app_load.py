"""Two hundred analysts ask a server for predictions while a custodian makes releases.

    python benchmarks/app_load.py [--seconds 60] [--analysts 200] [--points 500]

Starts a server on loopback in a process of its own, with generated data in a temporary folder. Every analyst
asks the same question again and again, and every answer must be the same to the last byte. Exits with 1 if a
single request fails.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from cloakgp.app import State
from cloakgp.datasets import make_kung_like

SETTINGS = {
    "data": "heights.csv",
    "inputs": ["age"],
    "output": "height",
    "bounds": [50.0, 170.0],
    "kernel": "EQ(20, variance=625)",
    "noise": 196.0,
    "at": "grid:200",
    "epsilon": 0.05,
    "delta": 0.01,
}
SERVER = "from cloakgp.app import serve; import sys; serve(port=0, data=sys.argv[1])"


def table(rows: int) -> bytes:
    """Generated ages and heights, as CSV."""
    ages, heights = make_kung_like(rows)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["age", "height"])
    writer.writerows(zip(ages[:, 0].tolist(), heights.tolist(), strict=True))
    return out.getvalue().encode()


def client(base: str, token: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return httpx.AsyncClient(base_url=base, headers=headers, timeout=120, trust_env=False)


async def prepare(custodian: httpx.AsyncClient, rows: int) -> str:
    """A table, a budget and a first release; its id."""
    await custodian.put("/api/data/heights.csv", content=table(rows))
    await custodian.post("/api/ledger/datasets", json={"name": "kung", "epsilon": 50.0, "delta": 0.01})
    made = await custodian.post("/api/plans", json={"settings": SETTINGS, "name": "load"})
    return str((await release(custodian, made.json()["id"]))["id"])


async def release(custodian: httpx.AsyncClient, plan: str) -> dict[str, Any]:
    asked = {"dataset": "kung", "confirm": "kung", "why": "load"}
    answer = await custodian.post(f"/api/plans/{plan}/release", json=asked)
    answer.raise_for_status()
    made: dict[str, Any] = answer.json()["release"]
    return made


async def analyst(
    asking: httpx.AsyncClient, path: str, body: bytes, until: float, times: list[float], seen: Counter[Any]
) -> None:
    while time.perf_counter() < until:
        start = time.perf_counter()
        try:
            answer = await asking.post(path, content=body)
            seen[answer.status_code, hash(answer.content)] += 1
        except httpx.HTTPError as error:
            seen[type(error).__name__, 0] += 1
        times.append(time.perf_counter() - start)


async def releases(custodian: httpx.AsyncClient, until: float) -> tuple[int, list[float], int]:
    """New plans and releases, one after another, while the analysts ask."""
    made, times, failed = 0, [], 0
    while time.perf_counter() < until:
        start = time.perf_counter()
        try:
            settings = {**SETTINGS, "at": f"grid:{100 + made % 50}", "epsilon": 0.01 + 1e-6 * made}
            plan = await custodian.post("/api/plans", json={"settings": settings, "name": f"load {made}"})
            plan.raise_for_status()
            await release(custodian, plan.json()["id"])
            made += 1
        except httpx.HTTPError:
            failed += 1
        times.append(time.perf_counter() - start)
    return made, times, failed


async def load(base: str, tokens: list[str], options: argparse.Namespace) -> int:
    async with client(base, tokens[0]) as custodian:
        release_id = await prepare(custodian, options.rows)
        path = f"/api/releases/{release_id}/predict"
        where = np.linspace(0.0, 90.0, options.points)[:, None].tolist()
        body = httpx.Request("POST", base, json={"points": where}).content
        times: list[float] = []
        seen: Counter[Any] = Counter()
        asking = [client(base, token) for token in tokens[1:]]
        start = time.perf_counter()
        until = start + options.seconds
        analysts = [analyst(each, path, body, until, times, seen) for each in asking]
        (made, release_times, failed), *_ = await asyncio.gather(releases(custodian, until), *analysts)
        took = time.perf_counter() - start
        book = (await custodian.get("/api/ledger")).json()
        await asyncio.gather(*(each.aclose() for each in asking))
    good = [key for key in seen if key[0] == 200]
    errors = sum(count for key, count in seen.items() if key[0] != 200) + failed
    print(f"{len(tokens) - 1} analysts, {took:.0f} s, {options.points} points a request, {options.rows} rows")
    print(f"requests   {len(times)}, {len(times) / took:.0f} per second")
    print(
        "latency    " + ", ".join(f"p{p} {1000 * np.percentile(times, p):.0f} ms" for p in (50, 90, 99, 100))
    )
    print(f"releases   {made} meanwhile, the slowest {max(release_times):.1f} s")
    print(f"ledger     {'verified' if book['verified'] else book['problem']}")
    print(f"answers    {len(good)} different one(s)")
    print(f"errors     {errors} {dict(seen) if errors else ''}")
    return 0 if errors == 0 and len(good) == 1 and book["verified"] else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--analysts", type=int, default=200)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--rows", type=int, default=287)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        people = State(data).accounts
        roles = ["custodian"] + ["analyst"] * options.analysts
        tokens = [people.add(f"person {place}", role, 1)[1] for place, role in enumerate(roles)]
        command = [sys.executable, "-c", SERVER, str(data)]
        with (Path(folder) / "log").open("wb") as log:
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
            try:
                assert server.stdout is not None
                server.stdout.readline()
                base = server.stdout.readline().strip().split("/enter/")[0]
                return asyncio.run(load(base, tokens, options))
            finally:
                server.terminate()
                server.wait(90)


if __name__ == "__main__":
    sys.exit(main())
