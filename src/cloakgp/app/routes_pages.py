"""The pages, and plotly.js out of the installed package. No data in them, so nobody need sign in for them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse

from cloakgp.app.errors import not_found

router = APIRouter(include_in_schema=False)
PAGES = Path(__file__).parent / "pages"
_KINDS = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


@router.api_route("/", methods=["GET", "HEAD"])
def first_page() -> FileResponse:
    """The one page; where it is at is after the # of the address."""
    return _page(PAGES / "index.html")


@router.api_route("/static/plotly.min.js", methods=["GET", "HEAD"])
def plotly() -> FileResponse:
    """Charts, from the installed package."""
    found = find_spec("plotly")
    folders = [] if found is None else found.submodule_search_locations or []
    for folder in folders:
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            kept = {"Cache-Control": "private, max-age=86400"}
            return FileResponse(path, media_type="text/javascript", headers=kept)
    raise not_found("package plotly: install the extra cloakgp[app] (in a clone: pip install '.[app]')")


@router.api_route("/static/{path:path}", methods=["GET", "HEAD"])
def static(path: str) -> FileResponse:
    """Everything else that the page consists of."""
    if "\0" in path:
        raise not_found("page")
    return _page(PAGES / path)


def _page(path: Path) -> FileResponse:
    """A file under the pages' folder, and of a kind that belongs there."""
    try:
        resolved = path.resolve()
        there = resolved.is_relative_to(PAGES.resolve()) and resolved.is_file()
    except OSError:  # a name that is too long for any file
        there = False
    if not there or resolved.suffix not in _KINDS:
        raise not_found("page")
    return FileResponse(resolved, media_type=_KINDS[resolved.suffix], headers={"Cache-Control": "no-cache"})
