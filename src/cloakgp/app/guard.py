"""What stands between the network and everything else, for each request, before its body is read.

Who is asking, whether another site made the browser ask, how fast, how much and how much at once; and for
each answer: security headers, a limit on time, one line in the log, and one fixed answer to whatever nobody
expected. What only looks is dropped when nobody waits for it. Which names the server answers to (against DNS
rebinding) starlette's TrustedHostMiddleware checks next.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from urllib.parse import urlsplit

from anyio import CancelScope
from fastapi.security.utils import get_authorization_scheme_param
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloakgp.app import errors, work
from cloakgp.app.accounts import COOKIE, CUSTODIAN, Person
from cloakgp.app.errors import Problem, too_large, too_many
from cloakgp.app.limits import InFlight, Rate
from cloakgp.app.state import State

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
_SIGN_IN = "POST /api/session"
_OPEN = (_SIGN_IN, "GET /api/terms", "GET /api/openapi.json", "HEAD /api/openapi.json")
_UPLOAD = re.compile(r"PUT /api/data/[^/]+")
_ANALYSTS = re.compile(r"(POST|DELETE) /api/session|POST /api/releases/[^/]+/(predict|map)")
_LOOKS = re.compile(r"(GET|HEAD) .*|POST /api/(preview(/\w+)?|releases/[^/]+/(predict|map))", re.DOTALL)


class Guard:
    """Wraps the app."""

    def __init__(self, app: ASGIApp, state: State) -> None:
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
            body, person = self._body(scope, receive), self._checked(scope)
            scope.setdefault("state", {})["person"] = person
            await self._admitted(scope, person, body, out)
        except ClientDisconnect:
            out.status = _Answer.LEFT
        except Problem as problem:
            await out.refuse(receive, problem)
        except Exception as error:
            errors.report(error)
            await out.refuse(receive, Problem(500, "failed", errors.FAILED))
        milliseconds = 1000 * (time.perf_counter() - start)
        # A flood need not fill the disk, too.
        if out.status not in (413, 429) or self._noted.allows("refused"):
            log.info("%s %s %s %.0f ms", scope["method"], _redacted(scope["path"]), out.status, milliseconds)

    def _checked(self, scope: Scope) -> Person | None:
        """Who is asking; raises if they may not ask at all."""
        asked, method, path = HTTPConnection(scope), scope["method"], scope["path"]
        what, host, address = f"{method} {path}", asked.headers.get("host", ""), client_of(scope)
        if not path.startswith("/api/"):
            return None
        changes = method not in ("GET", "HEAD", "OPTIONS")
        origin, cookie = asked.headers.get("origin"), asked.cookies.get(COOKIE)
        scheme, token = get_authorization_scheme_param(asked.headers.get("authorization"))
        bearer = token.strip() if scheme.lower() == "bearer" else None
        if changes and origin is not None and not _same_host(origin, host):
            raise Problem(403, "not_allowed", "the request comes from another site.")
        if bearer is not None:  # the one-time link is not for programs
            person = self._state.accounts.by_token(bearer)
        else:
            person = None if cookie is None else self._state.sessions.by_cookie(cookie)
            if changes and person is not None and origin is None:
                raise Problem(403, "not_allowed", "the request does not say which site it comes from.")
        if what == _SIGN_IN and not self._signing_in.allows(address):
            raise too_many("too many sign-ins from this address. Wait a moment.")
        if person is None and what not in _OPEN:
            if bearer is not None or cookie is not None:
                self._state.count_failure(address)
            raise Problem(
                401, "not_signed_in", "sign in first: with the link that the server printed, or a token."
            )
        if person is not None and not self._state.asked.allows(person.id):
            raise too_many("too many requests at once. Wait a moment.")
        # Routes ask for roles themselves, but only when the body was read and understood.
        if changes and person and person.role != CUSTODIAN and not _ANALYSTS.fullmatch(what):
            raise Problem(403, "not_allowed", "that is for custodians.")
        return person

    def _body(self, scope: Scope, receive: Receive) -> RequestBody:
        """Its body, as far as it may go; raises if that is not far enough."""
        limits, what, headers = self._state.limits, f"{scope['method']} {scope['path']}", Headers(scope=scope)
        most, seconds = limits.json_bytes, limits.body_seconds
        if upload := _UPLOAD.fullmatch(what) is not None:
            most, seconds = limits.upload_bytes, limits.upload_seconds
        elif what == _SIGN_IN:  # more is nobody's token, and does not count against the address
            most = limits.sign_in_bytes
        declared = headers.get("content-length", "0")
        known = declared.isdigit() and "transfer-encoding" not in headers
        size = int(declared) if known else most  # which is as large as it may be
        if size > most:
            raise too_large(most)
        return RequestBody(receive, most, seconds, size, upload)

    async def _admitted(self, scope: Scope, person: Person | None, body: RequestBody, out: _Answer) -> None:
        """Go on unless too much is going on for the same person or address already."""
        limits, held = self._state.limits, 0 if body.upload else body.size
        who = f"address {client_of(scope)}" if person is None else person.id
        at_once = limits.strangers_at_once if person is None else limits.requests_at_once
        if not self._in_flight.begin(who, held, at_once, limits.bytes_at_once):
            raise too_many("too many requests at once. Wait until some are answered.")
        body.request = work.begin(who)
        drop = CancelScope()  # ends what waits for a thread; what runs in one is finished first

        async def run() -> None:
            with drop:
                if body.size == 0:
                    await body.look()
                await self._app(scope, body.receive, out.send)

        task, gone = asyncio.ensure_future(run()), asyncio.ensure_future(body.until_gone())
        task.add_done_callback(lambda _: self._in_flight.end(who, held))
        until = time.monotonic() + limits.answer_seconds + (limits.upload_seconds if body.upload else 0.0)
        try:
            await _wait({task, gone}, until)
            if gone.done() and not task.done():
                out.closed, out.status = True, out.status or _Answer.LEFT
                if _LOOKS.fullmatch(f"{scope['method']} {scope['path']}"):
                    drop.cancel()
                await _wait({task}, until)
        finally:
            gone.cancel()
        if out.started or task.done():  # what is on its way goes on, as long as somebody reads it
            await task
            return
        self._going_on.add(task)  # a release must not be cut off
        task.add_done_callback(self._ended)
        sentence = "this takes longer than the server waits. The work goes on: ask again in a while."
        await out.refuse(body.receive, Problem(503, "busy", sentence, retry_after=5))
        out.closed = True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._going_on.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            errors.report(error)


async def _wait(tasks: set[asyncio.Future[None]], until: float) -> None:
    """For the first of them, but not for ever."""
    left = max(0.0, until - time.monotonic())
    await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)


class _Answer:
    """The way out: adds headers, notes the status, and swallows what comes too late."""

    LEFT = 499
    """The status in the log, for a client that did not wait."""

    def __init__(self, scope: Scope, send: Send, piece: int = 64 * 2**10) -> None:
        self._scope, self._send, self._piece = scope, send, piece
        self.status, self.started, self.closed = 0, False, False

    async def send(self, message: Message) -> None:
        if self.closed:
            return
        if message["type"] == "http.response.start":
            self.started, self.status = True, message["status"]
            headers = MutableHeaders(scope=message)
            headers.update(_HEADERS)
            if self._scope["path"].startswith(("/api/", "/enter/")):
                headers["Cache-Control"] = "no-store"
            if self._scope.get("scheme") == "https":
                headers["Strict-Transport-Security"] = "max-age=31536000"
        body = message.get("body", b"")
        last = max(0, len(body) - 1) // self._piece * self._piece
        for start in range(0, last, self._piece):  # each waits until the client has read most of those before
            piece = body[start : start + self._piece]
            await self._send({"type": message["type"], "body": piece, "more_body": True})
        await self._send({**message, "body": body[last:]} if last else message)

    async def refuse(self, receive: Receive, problem: Problem) -> None:
        """A refusal, unless an answer is on its way already, or nobody waits for one."""
        if self.started or self.closed:
            return
        made = errors.answer(problem)
        if problem.status_code == 401:
            made.headers["WWW-Authenticate"] = "Bearer"
        await made(self._scope, receive, self.send)


class RequestBody:
    """Stands before `receive`: how large the body may be, how long it may take, and whether the client stays.

    Parameters
    ----------
    receive : callable
        The server's.
    most : int
        Bytes that the body may have.
    seconds : float
        That it may take.
    size : int
        Bytes that were announced, or `most`.
    upload : bool
        Whether it goes to disk as it comes.
    """

    request: work.CurrentRequest
    """Told when the client is gone."""

    def __init__(self, receive: Receive, most: int, seconds: float, size: int, upload: bool) -> None:
        self._receive, self._most, self.size, self.upload = receive, most, size, upload
        self._until, self._seen = time.monotonic() + seconds, 0
        self._first: Message | None = None
        self._complete, self._gone = asyncio.Event(), asyncio.Event()

    async def look(self) -> None:
        """Take the first message, of a request without a body: then it is complete, whoever asks for it."""
        self._first = await self.receive()

    async def receive(self) -> Message:
        """The next part of the body; after the last one, that the client is gone, once it is."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        if self._complete.is_set():
            await self._gone.wait()
            return {"type": "http.disconnect"}
        try:
            message = await asyncio.wait_for(self._receive(), max(0.01, self._until - time.monotonic()))
        except TimeoutError:
            raise Problem(408, "busy", "the request took too long to arrive.") from None
        if message["type"] == "http.disconnect":
            self._left()
        self._seen += len(message.get("body", b""))
        if self._seen > self._most:
            raise too_large(self._most)
        if not message.get("more_body", False):
            self._complete.set()
        return message

    async def until_gone(self) -> None:
        """Returns when the client does not wait for an answer any more."""
        await self._complete.wait()
        while not self._gone.is_set():
            if (await self._receive())["type"] == "http.disconnect":
                self._left()

    def _left(self) -> None:
        self._gone.set()
        self.request.gone.set()


def client_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _same_host(origin: str, host: str) -> bool:
    """Whether an origin is this very host and port; the scheme may be a proxy's."""
    try:
        parts = urlsplit(origin)
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def _redacted(path: str) -> str:
    """A path as the log shows it: without tokens, and on one line."""
    shown = "/enter/..." if path.startswith("/enter") else path
    return (
        shown[:200].encode("ascii", "backslashreplace").decode() if shown.isprintable() else "(unprintable)"
    )
