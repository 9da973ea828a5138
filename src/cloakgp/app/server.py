"""Put the parts together, pages among them, and listen. Pages hold no data: nobody need sign in for them."""

from __future__ import annotations

import logging
import os
import socket
import sys
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import anyio.to_thread
import uvicorn
from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

import cloakgp
from cloakgp.app import routes_people as people
from cloakgp.app import routes_releases as releases
from cloakgp.app.accounts import Accounts
from cloakgp.app.errors import add_handlers, not_found
from cloakgp.app.folder import Folder
from cloakgp.app.guard import Guard
from cloakgp.app.limits import Limits, Rate
from cloakgp.app.state import State
from cloakgp.core.calibration import WeakPromiseWarning
from cloakgp.core.errors import Argument, Message, Phrase
from cloakgp.data.blas import one_blas_thread_for_good

_PROXY = ["127.0.0.1"]
FOLDER = Path(__file__).parent / "pages"
_PLOTLY = "plotly.min.js"
_TYPES = {  # what the system takes a suffix for differs between systems
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_ABOUT = """Publish Gaussian-process regressions of private outputs under differential privacy.

A plan is public, a release is private, a prediction is free. Sign in with `Authorization: Bearer <token>`,
or in a browser with a session cookie. Every refusal is `{"error": sentence, "code": word}`.
"""


class StaticPages(StaticFiles):
    """Files of the kinds that the pages consist of; browsers ask each time whether theirs is the newest."""

    def file_response(self, full_path: str | os.PathLike[str], *more: Any, **other: Any) -> Response:
        """The file, or that it has not changed."""
        path = Path(full_path)
        if path.suffix not in _TYPES or (path.parent.name == "package_data" and path.name != _PLOTLY):
            raise not_found("page")
        response = super().file_response(full_path, *more, **other)
        response.headers["Content-Type"] = _TYPES[path.suffix]
        response.headers["Cache-Control"] = "private, max-age=86400" if path.name == _PLOTLY else "no-cache"
        return response


def add_pages(app: FastAPI) -> None:
    """The one page at /, of which the address's # says what it shows; all else under /static."""
    pages = StaticPages(directory=FOLDER, packages=[("plotly", "package_data")])

    async def first_page(request: Request) -> Response:
        return await pages.get_response("index.html", request.scope)

    app.add_route("/", first_page, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/static", pages)


def create_app(state: State) -> FastAPI:
    """The app around an opened data folder; see :class:`cloakgp.app.State`."""
    app = FastAPI(
        title="cloakgp",
        version=cloakgp.__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=_threads,
    )
    app.state.cloakgp = state
    groups = (people.session, people.people, people.ledger, people.work)
    for group in (*groups, releases.data, releases.plans, releases.releases):
        app.router.routes += group.routes  # not include_router, which makes every route a second time
    add_pages(app)
    add_handlers(app)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=state.hosts, www_redirect=False)
    app.add_middleware(Guard, state=state)  # the last added is the first asked
    return app


def serve(
    host: str = "127.0.0.1",
    port: int = 8765,
    data: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    tls: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
    behind_proxy: bool = False,
    demo: bool = False,
    limits: Limits | None = None,
    announce: Callable[[str | None], None] | None = None,
) -> None:
    """Serve the app until it is interrupted.

    Parameters
    ----------
    host, port
        Where to listen. Beyond this machine only with people who have tokens, and with `tls` or a proxy.
    data : path, optional
        The data folder; ``cloakgp-data`` if absent.
    ledger : str, optional
        The ledger's URL; a file in the data folder if absent.
    tls : (certificate, key), optional
        PEM files.
    behind_proxy : bool
        A proxy on this machine does TLS, and passes on Host and X-Forwarded-For.
    demo : bool
        Put generated data and a budget for them into the data folder.
    limits : Limits, optional
    announce : callable, optional
        Told of the link to open once the app listens, None where people sign in with tokens. If absent, that
        is printed.
    """
    folder = Folder("cloakgp-data" if data is None else data)
    near = is_loopback(host)
    check_binding(host, Accounts(folder.path / "people.json").anybody(), tls is not None, behind_proxy)
    _log_plainly()
    warnings.simplefilter("ignore", WeakPromiseWarning)  # the pages say it, to whoever asks for one
    one_blas_thread_for_good()
    with folder.claimed():
        anywhere = behind_proxy or not near
        state = State(folder.path, ledger, limits=limits, any_host=anywhere, host=host, demo=demo)
        certificate, key = tls or (None, None)
        config = uvicorn.Config(
            create_app(state),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=behind_proxy,
            forwarded_allow_ips=_PROXY,
            http="h11",
            ws="none",
            h11_max_incomplete_event_size=32 * 2**10,  # bytes of a request's headers
            limit_concurrency=state.limits.connections,
            timeout_keep_alive=state.limits.idle_seconds,
            timeout_graceful_shutdown=60,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family, backlog=2048) as listening:
            shown = f"[{host}]" if ":" in host else host
            address = f"{'https' if tls else 'http'}://{shown}:{listening.getsockname()[1]}"
            print(f"cloakgp app at {address}, data in {state.folder.path}", file=sys.stderr)
            (announce or _print_link)(f"{address}/enter/{state.sessions.new_link()}" if near else None)
            uvicorn.Server(config).run(sockets=[listening])


def check_binding(host: str, people: bool, tls: bool, behind_proxy: bool) -> None:
    """Refuse to be reached from elsewhere without tokens, or without encryption."""
    if is_loopback(host):
        return
    if not people:
        raise ValueError(
            f"host {host!r} can be reached from other machines, and nobody has a token yet. Start on "
            "127.0.0.1 first, give people tokens on the page People, then start again."
        )
    if not tls and not behind_proxy:
        raise ValueError(
            Message(
                f"host {host!r} can be reached from other machines, and without TLS others could read tokens "
                "and uploads on the way. Give a certificate and its key (",
                Phrase.GIVE_TLS,
                "), or say that a proxy does TLS (",
                Argument("behind_proxy", True),
                ").",
            )
        )


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def _threads(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = 40
    yield


def _print_link(link: str | None) -> None:
    how = "people sign in with their tokens." if link is None else f"open this link; it works once:\n  {link}"
    print(how, flush=True)


class _Plain(logging.Formatter):
    """One line for each event; an error's own words and variables stay out of the log."""

    def formatException(self, ei: Any) -> str:  # logging's name
        return "(details are not logged)"


def _log_plainly() -> None:
    handler, seldom, said = logging.StreamHandler(), logging.StreamHandler(), Rate(1 / 60, 1, keys=100)
    seldom.addFilter(lambda record: said.allows(str(record.msg)[:40]))  # again and again, once a minute
    for each in (handler, seldom):
        each.setFormatter(_Plain("%(asctime)s %(levelname)s %(message)s"))
    for name, level, where in (
        ("cloakgp.app", logging.INFO, handler),
        # Strangers can make these speak as often as they like.
        ("uvicorn.error", logging.WARNING, seldom),
        ("asyncio", logging.ERROR, seldom),
    ):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [where], False
        logger.setLevel(level)
