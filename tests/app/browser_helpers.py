"""A server to browse, a browser to do it with, and what a person does on the pages."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import uvicorn
from app_helpers import SETTINGS

pytest.importorskip("playwright", reason="playwright is not installed, the pages are NOT TESTED")

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from cloakgp.app import State, create_app

expect.set_options(timeout=20_000)  # as long as pages wait: others may keep the processor busy
AGES = np.random.default_rng(5).uniform(0.0, 75.0, 60).round(1).tolist()
SECRETS = [f"{height:.7f}" for height in np.random.default_rng(11).uniform(100.0, 160.0, 60)]
"""Outcomes that nobody could come by: each with digits that are searched for later."""
DATASET = "village 1969"
KNOWN = {**SETTINGS, "data": "people.csv", "at": "grid:25", "epsilon": 1.0, "delta": 0.001}


def find_browser() -> str | None:
    """Chromium, or its brother."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def write_table(path: Path, output: str = "height") -> Path:
    """A table of generated people."""
    rows = [
        f"{age},{height},{1 + row % 4}" for row, (age, height) in enumerate(zip(AGES, SECRETS, strict=True))
    ]
    path.write_text("\n".join([f"age,{output},village", *rows]) + "\n", encoding="utf-8")
    return path


class Site:
    """A server that listens, and who may sign in."""

    def __init__(self, url: str, state: State, said: list[str]) -> None:
        self.url, self.state, self.said = url, state, said

    def link(self) -> str:
        """A link that signs in once, as the server prints it at its start."""
        return f"{self.url}/enter/{self.state.sessions.new_link()}"

    def token(self, name: str, role: str) -> str:
        return self.state.accounts.add(name, role, 10)[1]

    def ask(self, method: str, path: str, body: Any, token: str) -> Any:
        """One request of a program."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data=raw, method=method, headers={"Authorization": f"Bearer {token}"}
        )
        if not isinstance(body, bytes):
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())


class Overheard:
    """An app whose JSON answers are kept: a browser lets go of them when a page is left."""

    def __init__(self, app: Any) -> None:
        self.app, self.said = app, list[str]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        is_json, parts = False, list[bytes]()

        async def keep(message: Any) -> None:
            nonlocal is_json
            if message["type"] == "http.response.start":
                is_json = any(
                    name == b"content-type" and b"json" in text for name, text in message["headers"]
                )
            elif is_json and message["type"] == "http.response.body":
                parts.append(message.get("body", b""))
                if not message.get("more_body"):
                    self.said.append(b"".join(parts).decode())
            await send(message)

        await self.app(scope, receive, keep)


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[Site]:
    """The real server in a thread, on a free port."""
    state = State(folder, **options)
    listening = socket.create_server(("127.0.0.1", 0))
    app = Overheard(create_app(state))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 30
        while not server.started and time.monotonic() < until:
            time.sleep(0.02)
        assert server.started, "the server did not start"
        yield Site(f"http://127.0.0.1:{listening.getsockname()[1]}", state, app.said)
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()


def make_release(site: Site, token: str) -> str:
    """A release made by a program, for tests that only look at one."""
    table = "\n".join(["age,height", *(f"{a},{h}" for a, h in zip(AGES, SECRETS, strict=True))]).encode()
    site.ask("PUT", "/api/data/people.csv", table, token)
    budget = {"name": "ready", "epsilon": 2.0, "delta": 0.01, "private": ["height", "price"]}
    site.ask("POST", "/api/ledger/datasets", budget, token)
    plan = site.ask("POST", "/api/plans", {"settings": KNOWN, "name": "ready made"}, token)
    asked = {"dataset": "ready", "confirm": "ready", "why": "", "missing": "error", "number": 1}
    answer = site.ask("POST", f"/api/plans/{plan['id']}/release", asked, token)
    return str(answer["release"]["id"])


def make_map(site: Site, token: str) -> str:
    """The same of two inputs that are places, from the budget of :func:`make_release`."""
    where = np.random.default_rng(7).normal((0.1, 50.2), 0.05, (300, 2)).tolist()
    where.append([0.9, 50.9])  # the only one far from the others: what is between is not known
    places = [f"{a:.4f},{b:.4f},{100 + 40 * a:.2f}" for a, b in where]
    site.ask("PUT", "/api/data/places.csv", "\n".join(["lon,lat,price", *places]).encode(), token)
    kernel = {"kernel": "EQ([0.15, 0.15], variance=900)", "noise": 25.0, "at": "grid:6"}
    asked = {**KNOWN, "data": "places.csv", "inputs": ["lon", "lat"], "output": "price", **kernel}
    plan = site.ask("POST", "/api/plans", {"settings": asked, "name": "places"}, token)
    request = {"dataset": "ready", "confirm": "ready"}
    return str(site.ask("POST", f"/api/plans/{plan['id']}/release", request, token)["release"]["id"])


class Watched:
    """A page, and everything suspicious that happened on it."""

    def __init__(self, browser: Browser, site: Site, **settings: Any) -> None:
        self.site, self.begin = site, len(site.said)
        self.context: BrowserContext = browser.new_context(
            accept_downloads=True, **{"viewport": {"width": 1280, "height": 900}, **settings}
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._look(request.url))

    def _look(self, url: str) -> None:
        place = urlsplit(url)
        if place.scheme in ("http", "https", "ws", "wss") and place.netloc != urlsplit(self.site.url).netloc:
            self.foreign.append(url)
        if place.path.startswith("/api/"):
            self.asked.append(place.path)

    def start_again(self) -> None:
        """As after signing in, without loading more than a hundred files again."""
        if not self.page.request.get(f"{self.site.url}/api/me").ok:  # another test has ended all sessions
            self.sign_in()
        self.open("/words", "h1:has-text('Words')")
        self.page.evaluate("import('/static/core/draft.js').then((module) => module.startAgain())")
        self.open("/new/data", "h1:has-text('Data and roles')")
        self.begin = len(self.site.said)
        for seen in (self.errors, self.foreign, self.asked):
            seen.clear()

    def check(self, *expected: str) -> None:
        """No request left this machine, and no error but those whose text holds something expected."""
        assert self.foreign == []
        assert [text for text in self.errors if not any(part in text for part in expected)] == []

    def heard(self) -> list[str]:
        """What the server has answered since this page was opened, whoever asked."""
        return self.site.said[self.begin :]

    def check_secrets(self) -> None:
        """No private outcome was in any answer."""
        said = self.heard()
        assert len(said) > 2
        assert not any(secret[:9] in text for secret in SECRETS for text in said)

    def open(self, path: str, wait: str = "h1") -> None:
        self.page.goto(f"{self.site.url}/#{path}")
        self.page.wait_for_selector(wait)

    def sign_in(self, token: str | None = None) -> None:
        """By the one-time link, or with a token on the sign-in page."""
        if token is None:
            self.page.goto(self.site.link())
        else:
            self.page.goto(self.site.url)
            self.page.get_by_label("Your token").fill(token)
            self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_selector(".who-name", state="attached")

    def scroll_width(self) -> int:
        """How many pixels the page is wider than the window."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(script))

    def close(self) -> None:
        self.context.close()


# What a person does


def next_step(page: Page, heading: str) -> None:
    page.get_by_role("button", name="Next").click()
    page.get_by_role("heading", name=heading, level=1).wait_for()


def choose_roles(page: Page, inputs: list[str], output: str) -> None:
    for name in inputs:
        page.get_by_role("group", name=f"Role of {name}").get_by_label("input", exact=True).check()
    page.get_by_role("group", name=f"Role of {output}").get_by_label("private outcome").check()


def upload(page: Page, path: Path) -> None:
    page.set_input_files("#upload", str(path))
    page.get_by_role("heading", name=f"What is what in {path.name}?").wait_for()


def drop(page: Page, path: Path, target: str = ".drop") -> bool:
    """Let go of a file above something; whether the page, and not the browser, dealt with it."""
    there = page.evaluate_handle(
        """([name, bytes]) => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(bytes)], name));
          return data;
        }""",
        [path.name, list(path.read_bytes())],
    )
    script = """(e, data) => ["dragover", "drop"].map((kind) => !e.dispatchEvent(
        new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}))).every(Boolean)"""
    return bool(page.locator(target).evaluate(script, there))


def describe(page: Page, inputs: list[str], output: str) -> None:
    """From an uploaded table to the model."""
    choose_roles(page, inputs, output)
    page.get_by_text("is protected. It is read once").wait_for()
    next_step(page, "Who is protected?")
    page.get_by_label("One outcome per row").check()
    next_step(page, "Bounds of the outcome")
    page.get_by_label(f"Smallest possible {output}").fill("50")
    page.get_by_label(f"Largest possible {output}").fill("170")
    next_step(page, "Model and test points")


def to_model(page: Page, path: Path, model: str = "learn") -> None:
    """From the first page to the model, with a file of one's own."""
    upload(page, path)
    describe(page, ["age"], "height")
    if model == "learn":
        page.get_by_text("Expert settings").click()
    else:
        page.get_by_label("I describe it").check()
    page.get_by_label("Number of points").fill("25")


def wait_for_noise(page: Page) -> Locator:
    """The panel with the noise, once it is there and up to date."""
    panel = page.locator(".panel[aria-busy=false]")
    panel.locator(".tiles").wait_for()
    return panel


def to_release(page: Page, path: Path) -> None:
    """From the first page to the release step."""
    to_model(page, path)
    keep_plan(page)


def keep_plan(page: Page) -> None:
    """From the model to the release step."""
    next_step(page, "How private?")
    next_step(page, "The noise, beforehand")
    wait_for_noise(page)
    page.get_by_role("button", name="Keep this plan").click()
    page.get_by_role("heading", name="Whose budget pays?").wait_for()


def create_dataset(page: Page, name: str, epsilon: str, delta: str = "0.001") -> None:
    fresh = page.get_by_role("group", name="Data set in the ledger").get_by_role("radio").last
    fresh.check()
    page.get_by_label("Name of the data set").fill(name)
    page.get_by_label("ε for ever").fill(epsilon)
    page.get_by_label("δ for ever").fill(delta)
    page.get_by_role("button", name="Create the data set").click()


def pay(page: Page, name: str) -> None:
    """The private step, from a new budget."""
    create_dataset(page, name, "3")
    spend(page, name)


def spend(page: Page, name: str) -> None:
    """The private step, once a budget is chosen."""
    page.get_by_label(f"Type {name} to confirm").fill(name)
    page.get_by_role("button", name="Release now").click()
    page.get_by_role("heading", name="Take it with you").wait_for()


def focused(page: Page) -> dict[str, Any]:
    """What has the focus: its words, and whether one can see that it has."""
    found: dict[str, Any] = page.evaluate(
        """() => {
          const e = document.activeElement;
          const names = [e.getAttribute("aria-label"), e.labels && e.labels[0] && e.labels[0].textContent,
                         e.id, e.tagName === "BUTTON" || e.tagName === "A" ? e.textContent : null];
          const seen = e.labels && e.labels[0] ? [e, e.labels[0], e.closest(".file") || e] : [e];
          const ring = (x) => getComputedStyle(x).outlineStyle !== "none"
                              && parseFloat(getComputedStyle(x).outlineWidth) > 0;
          const legend = e.closest("fieldset") && e.closest("fieldset").querySelector("legend");
          return {names: names.filter(Boolean), visible: seen.some(ring), type: e.type || e.tagName,
                  group: legend ? legend.textContent : ""};
        }"""
    )
    return found


def tab_to(page: Page, name: str, group: str = "", most: int = 80) -> None:
    """Press Tab until something of that name has the focus, which must be visible on the way."""
    for _ in range(most):
        page.keyboard.press("Tab")
        now = focused(page)
        if now["type"] != "BODY":
            assert now["visible"], f"no visible focus on {now}"
        if any(name in words for words in now["names"]) and group in now["group"]:
            return
    raise AssertionError(f"{name} was not reached with the Tab key")
