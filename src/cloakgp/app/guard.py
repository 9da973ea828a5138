"""What stands between the network and everything else, for each request, before its body is read.

The host that is named (against DNS rebinding), who is asking, whether another site made the browser ask, how
fast, how much and how much at once; and for each answer: security headers, a limit on time, one line in the
log, and one fixed answer to whatever nobody expected. What only looks is dropped when nobody waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from anyio import CancelScope
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect

from cloakgp.app import current_request, errors
from cloakgp.app.errors import Problem, too_many
from cloakgp.app.limits import InFlight, Rate
from cloakgp.app.people import CUSTODIAN, Person
from cloakgp.app.request_body import Message, Receive, RequestBody, too_large
from cloakgp.app.sessions import COOKIE
from cloakgp.app.state import State

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("cloakgp.app")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_SAFE = ("GET", "HEAD", "OPTIONS")
_OPEN = {
    ("POST", "/api/session"),
    ("GET", "/api/terms"),
    ("GET", "/api/openapi.json"),
    ("HEAD", "/api/openapi.json"),
}
_SIGN_IN = ("POST", "/api/session")
_UPLOAD = re.compile(r"PUT /api/data/[^/]+")
_ANALYSTS = re.compile(r"(POST|DELETE) /api/session|POST /api/releases/[^/]+/(predict|map)")
_LOOKS = re.compile(r"(GET|HEAD) .*|POST /api/(preview(/\w+)?|releases/[^/]+/(predict|map))", re.DOTALL)
_PIECE = 64 * 2**10
_LEFT = 499  # in the log, for a client that did not wait


class Guard:
    """Wraps the app."""

    def __init__(self, app: App, state: State) -> None:
        self._app, self._state = app, state
        self._going_on: set[asyncio.Task[None]] = set()
        self._in_flight = InFlight(state.limits.all_bytes_at_once)
        rate = state.limits.sign_ins_per_second
        self._signing_in = Rate(rate, 5 * rate)
        self._noted = Rate(1.0, 20)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, out = time.perf_counter(), _Answer(scope, send)
        try:
            person = self._checked(scope)
            scope.setdefault("state", {})["person"] = person
            await self._admitted(scope, person, receive, out)
        except ClientDisconnect:
            out.status = _LEFT
        except Problem as problem:
            await _say(scope, receive, out, problem)
        except Exception as error:
            errors.report(error)
            await _say(scope, receive, out, Problem(500, "failed", errors.FAILED))
        milliseconds = 1000 * (time.perf_counter() - start)
        if out.status not in (413, 429) or self._noted.allows(
            "refused"
        ):  # a flood need not fill the disk, too
            log.info("%s %s %s %.0f ms", scope["method"], _redacted(scope["path"]), out.status, milliseconds)

    def _checked(self, scope: Scope) -> Person | None:
        """Who is asking; raises if they may not ask at all."""
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        host = headers.get("host", "")
        if not self._state.answers_to(_name(host)):
            raise Problem(403, "not_allowed", "this server does not answer to that name.")
        if not path.startswith("/api/"):
            return None
        if (method, path) == _SIGN_IN:
            self._check_sign_in(scope)
        origin, cookie = headers.get("origin"), _cookie(headers)
        bearer = _bearer(headers)
        if origin is not None and method not in _SAFE and not _same_host(origin, host):
            raise Problem(403, "not_allowed", "the request comes from another site.")
        if bearer is not None:
            person = self._state.sessions.by_bearer(bearer)
        else:
            person = None if cookie is None else self._state.sessions.by_cookie(cookie)
            if person is not None and method not in _SAFE and origin is None:
                raise Problem(403, "not_allowed", "the request does not say which site it comes from.")
        if person is None and (method, path) not in _OPEN:
            if bearer is not None or cookie is not None:
                self._count_failure(scope)
            raise Problem(
                401, "not_signed_in", "sign in first: with the link that the server printed, or a token."
            )
        if person is not None and not self._state.asked.allows(person.id):
            raise too_many("too many requests at once. Wait a moment.")
        if person is not None and not _may(person, method, path):
            raise Problem(403, "not_allowed", "that is for custodians.")
        return person

    def _check_sign_in(self, scope: Scope) -> None:
        most = self._state.limits.sign_in_bytes
        if _size(scope, most) > most:  # which is nobody's token, so it does not count against the address
            raise too_large(most)
        if not self._signing_in.allows(client_of(scope)):
            raise too_many("too many sign-ins from this address. Wait a moment.")

    def _count_failure(self, scope: Scope) -> None:
        if not self._state.failed.allows(client_of(scope)):
            raise too_many("too many failed sign-ins. Wait a minute.", retry_after=60)

    async def _admitted(self, scope: Scope, person: Person | None, receive: Receive, out: _Answer) -> None:
        """Go on if the body is not too large and not too much is going on for the same person or address."""
        limits, what = self._state.limits, f"{scope['method']} {scope['path']}"
        upload = _UPLOAD.fullmatch(what) is not None
        most = limits.upload_bytes if upload else limits.json_bytes
        if (scope["method"], scope["path"]) == _SIGN_IN:
            most = limits.sign_in_bytes
        size = _size(scope, most)
        if size > most:
            raise too_large(most)
        who = f"address {client_of(scope)}" if person is None else person.id
        at_once = limits.strangers_at_once if person is None else limits.requests_at_once
        held = 0 if upload else size
        if not self._in_flight.begin(who, held, at_once, limits.bytes_at_once):
            raise too_many("too many requests at once. Wait until some are answered.")
        seconds = limits.upload_seconds if upload else limits.body_seconds
        body = RequestBody(receive, most, seconds, current_request.begin(who))
        patience = limits.answer_seconds + (limits.upload_seconds if upload else 0.0)
        drop = CancelScope()
        task = asyncio.ensure_future(self._run(scope, body, size, out, drop))
        task.add_done_callback(lambda _: self._in_flight.end(who, held))
        await self._limited(scope, body, out, task, patience, drop if _LOOKS.fullmatch(what) else None)

    async def _run(self, scope: Scope, body: RequestBody, size: int, out: _Answer, drop: CancelScope) -> None:
        with drop:  # ends what waits for a thread; what runs in one is finished first
            if size == 0:
                await body.look()
            await self._app(scope, body.receive, out.send)

    async def _limited(
        self,
        scope: Scope,
        body: RequestBody,
        out: _Answer,
        task: asyncio.Task[None],
        patience: float,
        drop: CancelScope | None,
    ) -> None:
        """Wait for the app; if it takes too long, say so and let it go on: a release must not be cut off."""
        until = time.monotonic() + patience
        gone = asyncio.ensure_future(body.until_gone())
        try:
            await asyncio.wait({task, gone}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and not task.done():
                out.closed, out.status = True, out.status or _LEFT
                if drop is not None:
                    drop.cancel()
                await asyncio.wait({task}, timeout=until - time.monotonic())
        finally:
            gone.cancel()
        if out.started or task.done():  # what is on its way goes on, as long as somebody reads it
            await task
            return
        self._going_on.add(task)
        task.add_done_callback(self._ended)
        sentence = "this takes longer than the server waits. The work goes on: ask again in a while."
        await _say(scope, body.receive, out, Problem(503, "busy", sentence, retry_after=5))
        out.closed = True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._going_on.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            errors.report(error)


class _Answer:
    """The way out: adds headers, notes the status, and swallows what comes too late."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
        self.status, self.started, self.closed = 0, False, False

    async def send(self, message: Message) -> None:
        if self.closed:
            return
        if message["type"] == "http.response.start":
            self.started, self.status = True, message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            if self._scope["path"].startswith(("/api/", "/enter/")):
                headers["Cache-Control"] = "no-store"
            if self._scope.get("scheme") == "https":
                headers["Strict-Transport-Security"] = "max-age=31536000"
        body = message.get("body", b"")
        last = max(0, len(body) - 1) // _PIECE * _PIECE
        for start in range(0, last, _PIECE):  # each waits until the client has read most of those before
            piece = body[start : start + _PIECE]
            await self._send({"type": message["type"], "body": piece, "more_body": True})
        if last:
            message = {**message, "body": body[last:]}
        await self._send(message)


async def _say(scope: Scope, receive: Receive, out: _Answer, problem: Problem) -> None:
    """A refusal, unless an answer is on its way already, or nobody waits for one."""
    if out.started or out.closed:
        return
    made = errors.answer(problem.status_code, problem.code, str(problem.detail))
    made.headers.update(problem.headers or {})
    if problem.status_code == 401:
        made.headers["WWW-Authenticate"] = "Bearer"
    await made(scope, receive, out.send)


def client_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _may(person: Person, method: str, path: str) -> bool:
    """Routes ask for roles themselves, but only when the body was read and understood."""
    return person.role == CUSTODIAN or method in _SAFE or _ANALYSTS.fullmatch(f"{method} {path}") is not None


def _size(scope: Scope, most: int) -> int:
    """How large the body is, as announced; as large as it may be, if it comes in parts of unknown number."""
    headers = Headers(scope=scope)
    if "transfer-encoding" in headers:
        return most
    declared = headers.get("content-length", "0")
    return int(declared) if declared.isdigit() else most


def _name(host: str) -> str:
    """A host's name without its port."""
    if host.startswith("["):
        return host[1:].split("]")[0]
    return host.rsplit(":", 1)[0].lower() if host.count(":") == 1 else host.lower()


def _same_host(origin: str, host: str) -> bool:
    """Whether an origin is this very host and port; the scheme may be a proxy's."""
    try:
        parts = urlsplit(origin)
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def _cookie(headers: Headers) -> str | None:
    """Our cookie; those of other programs on this machine are passed over, whatever is in them."""
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return None


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _redacted(path: str) -> str:
    """A path as the log shows it: without tokens, and on one line."""
    shown = "/enter/..." if path.startswith("/enter") else path
    return (
        shown[:200].encode("ascii", "backslashreplace").decode() if shown.isprintable() else "(unprintable)"
    )
