"""The pages, and plotly.js out of the installed package. No data in them, so nobody need sign in for them."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from cloakgp.app.errors import not_found

FOLDER = Path(__file__).parent / "pages"
_PLOTLY = "plotly.min.js"
_TYPES = {  # what the system takes a suffix for differs between systems
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticPages(StaticFiles):
    """Files of the kinds that the pages consist of; browsers ask each time whether theirs is the newest."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Where a file lies: in the pages' folder, or in plotly's if it is plotly."""
        if path == _PLOTLY:
            found = _plotly()
            return str(found), found.stat()
        return super().lookup_path(path)

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """The file, or that it has not changed."""
        path = Path(full_path)
        if path.suffix not in _TYPES:
            raise not_found("page")
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Content-Type"] = _TYPES[path.suffix]
        response.headers["Cache-Control"] = "private, max-age=86400" if path.name == _PLOTLY else "no-cache"
        return response


def add_pages(app: FastAPI) -> None:
    """The one page at /, of which the address's # says what it shows; all else under /static."""
    pages = StaticPages(directory=FOLDER)

    async def first_page(request: Request) -> Response:
        return await pages.get_response("index.html", request.scope)

    app.add_route("/", first_page, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/static", pages)


def _plotly() -> Path:
    found = find_spec("plotly")
    folders = [] if found is None else found.submodule_search_locations or []
    for folder in folders:
        path = Path(folder) / "package_data" / _PLOTLY
        if path.is_file():
            return path
    raise not_found("package plotly: install the extra cloakgp[app] (in a clone: pip install '.[app]')")
