"""A request on its way in: how large its body may be, how long it may take, and whether the client stays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from cloakgp.app.current_request import CurrentRequest
from cloakgp.app.errors import Problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class RequestBody:
    """Stands before `receive`.

    Parameters
    ----------
    receive : callable
        The server's.
    most : int
        Bytes that the body may have.
    seconds : float
        That it may take.
    request : CurrentRequest
        Told when the client is gone.
    """

    def __init__(self, receive: Receive, most: int, seconds: float, request: CurrentRequest) -> None:
        self._receive, self._most, self._request = receive, most, request
        self._until = time.monotonic() + seconds
        self._seen = 0
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
        self._request.gone.set()


def too_large(most: int) -> Problem:
    shown = f"{most / 2**20:.3g} MB" if most >= 2**20 else f"{most / 2**10:.3g} KB"
    return Problem(413, "too_large", f"that is more than the {shown} that are allowed here.")
