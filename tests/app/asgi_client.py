"""Ask an app in this process, over one event loop that runs in a thread of its own, as a server's does."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx

HOST = "http://127.0.0.1"
_loop: asyncio.AbstractEventLoop | None = None
_lock = threading.Lock()


def loop() -> asyncio.AbstractEventLoop:
    """The event loop, started when it is first needed."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, daemon=True).start()
    return _loop


class Client:
    """What httpx.Client does, without a network."""

    def __init__(self, app: Any, headers: Any = None, host: str = HOST) -> None:
        self.app, self.headers, self.host = app, dict(headers or {}), host
        self.cookies = httpx.Cookies()

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {**self.headers, **options.pop("headers", {})}
        return asyncio.run_coroutine_threadsafe(self._ask(method, path, headers, options), loop()).result(120)

    async def _ask(self, method: str, path: str, headers: Any, options: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(
            transport=transport, base_url=self.host, cookies=self.cookies, timeout=120
        ) as client:
            answer = await client.request(method, path, headers=headers, **options)
            self.cookies = client.cookies
            return answer

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PUT", path, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", path, **options)
