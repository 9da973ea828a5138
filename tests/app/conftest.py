"""One world for each test, and one that tests only look at; a browser, a server to browse, and windows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from app_helpers import World, make_plan, make_world, opened, release
from forked import Forking

if TYPE_CHECKING:  # the other tests do without playwright
    from browser_helpers import Site, Watched
    from playwright.sync_api import Browser


@pytest.fixture(scope="module", autouse=True)
def learned_among_few(request: pytest.FixtureRequest) -> None:
    """But for a newcomer, for servers in processes of their own, and where a rough figure is to be near."""
    if request.module.__name__ not in ("test_browser", "test_api_crash", "test_api_work"):
        request.getfixturevalue("few_models")


@pytest.fixture(scope="session")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("untouched") / "data")


@pytest.fixture
def world(untouched: World, tmp_path: Path) -> World:
    shutil.copytree(untouched.state.folder.path, tmp_path / "data")
    return World(*opened(tmp_path / "data"), tokens=dict(untouched.tokens))


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, str, str]:
    """A world with one release, its plan's id and its own."""
    made = make_world(tmp_path_factory.mktemp("released") / "data")
    client = made.client()
    plan = make_plan(client)
    answer = release(client, plan)
    assert answer.status_code == 200, answer.text
    return made, plan, answer.json()["release"]["id"]


@pytest.fixture(scope="session")
def forking(tmp_path_factory: pytest.TempPathFactory) -> Forking:
    return Forking(tmp_path_factory.mktemp("servers"))


# One for each module: while it is open, the thread that runs the tests has an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from browser_helpers import find_browser
    from playwright.sync_api import sync_playwright

    found = find_browser()
    if found is None:
        pytest.skip("Chromium is not installed, the pages are NOT TESTED")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with the module's LIMITS, if it has any."""
    from browser_helpers import serving

    limits = getattr(request.module, "LIMITS", None)
    with serving(tmp_path_factory.mktemp("site") / "data", limits=limits) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Callable[..., Watched]]:
    """Opens windows, and closes them."""
    from browser_helpers import Watched

    opened: list[Watched] = []

    def visitor(**settings: Any) -> Watched:
        opened.append(Watched(browser, site, **settings))
        return opened[-1]

    yield visitor
    for window in opened:
        window.close()


@pytest.fixture(scope="module")
def custodians_window(browser: Browser, site: Site) -> Iterator[Watched]:
    from browser_helpers import Watched

    opened = Watched(browser, site)
    opened.sign_in()
    yield opened
    opened.close()


@pytest.fixture
def window(custodians_window: Watched) -> Watched:
    """A window in which a custodian is signed in, and begins a new release."""
    custodians_window.start_again()
    return custodians_window
