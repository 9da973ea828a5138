"""Put the parts together, and listen."""

from __future__ import annotations

import logging
import os
import socket
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import anyio.to_thread
import uvicorn
from fastapi import FastAPI

import cloakgp
from cloakgp.app import (
    routes_data,
    routes_ledger,
    routes_people,
    routes_plans,
    routes_releases,
    routes_session,
    routes_work,
)
from cloakgp.app.connections import Connections, ListeningSocket, protocol_of
from cloakgp.app.errors import add_handlers
from cloakgp.app.folder import Folder
from cloakgp.app.guard import Guard
from cloakgp.app.limits import Limits, Rate
from cloakgp.app.people import People
from cloakgp.app.state import State, open_state
from cloakgp.app.static_pages import add_pages
from cloakgp.calibration import WeakPromiseWarning
from cloakgp.errors import Argument, Message, Phrase
from cloakgp.rows.blas import one_blas_thread_for_good

PORT = 8765
_PROXY = ["127.0.0.1"]
_THREADS = 40
_ABOUT = """Publish Gaussian-process regressions of private outputs under differential privacy.

A plan is public, a release is private, a prediction is free. Sign in with `Authorization: Bearer <token>`,
or in a browser with a session cookie. Every refusal is `{"error": sentence, "code": word}`.
"""


def create_app(state: State) -> FastAPI:
    """The app around an opened data folder; see :func:`cloakgp.app.open_state`."""
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
    for part in (
        routes_session,
        routes_data,
        routes_plans,
        routes_releases,
        routes_ledger,
        routes_people,
        routes_work,
    ):
        app.router.routes += part.router.routes  # not include_router, which makes every route a second time
    add_pages(app)
    add_handlers(app)
    app.add_middleware(Guard, state=state)
    return app


def serve(
    host: str = "127.0.0.1",
    port: int = PORT,
    data: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    tls: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
    behind_proxy: bool = False,
    demo: bool = False,
    limits: Limits | None = None,
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
    """
    folder = Folder("cloakgp-data" if data is None else data)
    near = is_loopback(host)
    check_binding(host, People(folder.path / "people.json").anybody(), tls is not None, behind_proxy)
    _log_plainly()
    warnings.simplefilter("ignore", WeakPromiseWarning)  # the pages say it, to whoever asks for one
    one_blas_thread_for_good()
    with folder.claimed():
        anywhere = behind_proxy or not near
        state = open_state(folder.path, ledger, limits=limits, any_host=anywhere, host=host, demo=demo)
        connections = Connections(state.limits, exempt=_PROXY if behind_proxy else ())
        config = uvicorn.Config(
            create_app(state),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=behind_proxy,
            forwarded_allow_ips=_PROXY,
            http=protocol_of(connections),
            ws="none",
            loop="asyncio",  # the limits on connections need its sockets
            timeout_keep_alive=state.limits.idle_seconds,
            timeout_graceful_shutdown=60,
            **_certificates(tls),
        )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with ListeningSocket(
            connections, socket.create_server((host, port), family=family, backlog=2048)
        ) as listening:
            _announce(state, host, listening.getsockname()[1], tls is not None, near)
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
    anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
    yield


def _certificates(tls: tuple[Any, Any] | None) -> dict[str, Any]:
    return {} if tls is None else {"ssl_certfile": str(tls[0]), "ssl_keyfile": str(tls[1])}


def _announce(state: State, host: str, port: int, tls: bool, near: bool) -> None:
    shown = f"[{host}]" if ":" in host else host
    address = f"{'https' if tls else 'http'}://{shown}:{port}"
    print(f"cloakgp app at {address}, data in {state.folder.path}", file=sys.stderr)
    if near:
        print(f"open this link; it works once:\n  {address}/enter/{state.sessions.new_link()}", flush=True)
    else:
        print("people sign in with their tokens.", flush=True)


class _Plain(logging.Formatter):
    """One line for each event; an error's own words and variables stay out of the log."""

    def formatException(self, ei: Any) -> str:  # logging's name
        return "(details are not logged)"


class _Seldom(logging.Filter):
    """What is said again and again is said once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._said = Rate(1 / 60, 1, keys=100)

    def filter(self, record: logging.LogRecord) -> bool:
        return self._said.allows(str(record.msg)[:40])


def _log_plainly() -> None:
    handler, seldom = logging.StreamHandler(), logging.StreamHandler()
    seldom.addFilter(_Seldom())
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
