"""What stands between the network and everything else, for each request, before its body is read.

The host that is named (against DNS rebinding), who is asking, whether another site made the browser ask, how
fast and how much; and for each answer: security headers, a limit on time, one line in the log, and one fixed
answer to whatever nobody expected.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from cloakgp.app import errors
from cloakgp.app.errors import Problem
from cloakgp.app.people import Person
from cloakgp.app.sessions import COOKIE
from cloakgp.app.state import State

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
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
_OPEN = {("POST", "/api/session"), ("GET", "/api/openapi.json"), ("HEAD", "/api/openapi.json")}
_UPLOAD = re.compile(r"/api/data/[^/]+")


class Guard:
    """Wraps the app."""

    def __init__(self, app: App, state: State) -> None:
        self._app, self._state = app, state
        self._going_on: set[asyncio.Task[None]] = set()

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
            await self._limited(scope, self._counted(scope, receive), out)
        except Problem as problem:
            await _say(scope, receive, out, problem.status_code, problem.code, str(problem.detail))
        except Exception as error:
            errors.report(error)
            await _say(scope, receive, out, 500, "failed", errors.FAILED)
        milliseconds = 1000 * (time.perf_counter() - start)
        log.info("%s %s %s %.0f ms", scope["method"], _redacted(scope["path"]), out.status, milliseconds)

    def _checked(self, scope: Scope) -> Person | None:
        """Who is asking; raises if they may not ask at all."""
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        host = headers.get("host", "")
        if not self._state.answers_to(_name(host)):
            raise Problem(403, "not_allowed", "this server does not answer to that name.")
        if not path.startswith("/api/"):
            return None
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
            raise Problem(429, "busy", "too many requests at once. Wait a moment.")
        return person

    def _count_failure(self, scope: Scope) -> None:
        if not self._state.failed.allows(client_of(scope)):
            raise Problem(429, "busy", "too many failed sign-ins. Wait a minute.")

    def _counted(self, scope: Scope, receive: Receive) -> Receive:
        """`receive` with a limit on the body's size and on how long it takes to arrive."""
        limits = self._state.limits
        upload = scope["method"] == "PUT" and _UPLOAD.fullmatch(scope["path"]) is not None
        most = limits.upload_bytes if upload else limits.json_bytes
        until = time.monotonic() + (limits.upload_seconds if upload else limits.body_seconds)
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdigit() and int(declared) > most:
            raise _too_large(most)
        seen, complete = 0, False

        async def counted() -> Message:
            nonlocal seen, complete
            if complete:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.01, until - time.monotonic()))
            except TimeoutError:
                raise Problem(408, "busy", "the request took too long to arrive.") from None
            seen += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if seen > most:
                raise _too_large(most)
            return message

        return counted

    async def _limited(self, scope: Scope, receive: Receive, out: _Answer) -> None:
        """Run the app; if it takes too long, say so and let it go on, since a release must not be cut off."""
        limits = self._state.limits
        upload = scope["method"] == "PUT" and _UPLOAD.fullmatch(scope["path"]) is not None
        patience = limits.answer_seconds + (limits.upload_seconds if upload else 0.0)
        task = asyncio.ensure_future(self._app(scope, receive, out.send))
        done, _ = await asyncio.wait({task}, timeout=patience)
        if done:
            await task
            return
        self._going_on.add(task)
        task.add_done_callback(self._ended)
        if not out.started:
            sentence = "this takes longer than the server waits. The work goes on: ask again in a while."
            await _say(scope, receive, out, 503, "busy", sentence)
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
        await self._send(message)


async def _say(scope: Scope, receive: Receive, out: _Answer, status: int, code: str, error: str) -> None:
    """A refusal, unless an answer is on its way already."""
    if out.started:
        return
    made: Response = errors.answer(status, code, error)
    if status == 401:
        made.headers["WWW-Authenticate"] = "Bearer"
    await made(scope, receive, out.send)


def client_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _too_large(most: int) -> Problem:
    return Problem(413, "too_large", f"that is more than the {most / 2**20:.3g} MB that are allowed here.")


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
