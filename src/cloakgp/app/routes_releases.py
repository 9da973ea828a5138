"""Releases, for both roles: numbers, files, and predictions anywhere."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from pydantic import ValidationError
from pydantic_core import to_json

import cloakgp
from cloakgp.app import limits, models, scripts
from cloakgp.app.access import REFUSALS, Person, ReleaseId, Server, Watched
from cloakgp.app.errors import bad_input, not_found, spending
from cloakgp.app.people import CUSTODIAN
from cloakgp.app.state import State
from cloakgp.app.watching import listening

router = APIRouter(prefix="/api/releases", responses=REFUSALS, tags=["releases"])


_Kind = Literal["png", "svg", "pdf"]
_PICTURES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
_BYTES = {"type": "string", "format": "binary"}
_QUESTION = {
    "content": {"application/json": {"schema": models.AskPredictions.model_json_schema()}},
    "required": True,
}


def _file(*kinds: str, schema: dict[str, str] = _BYTES) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {kind: {"schema": schema} for kind in kinds}}}


@router.get("", response_model=list[models.Release])
def everything(person: Person, state: Server) -> list[dict[str, Any]]:
    """All releases, the newest first, without their numbers."""
    return state.releases.everything()


@router.get("/{release_id}", response_model=models.Release)
def one(release_id: ReleaseId, person: Person, state: Server, work: Watched) -> dict[str, Any]:
    """One release with its numbers."""
    with listening():
        return state.releases.with_arrays(release_id)


@router.post("/{release_id}/map", response_model=models.Map)
def surface(
    release_id: ReleaseId, asked: models.AskMap, person: Person, state: Server, work: Watched
) -> dict[str, Any]:
    """A surface over two inputs: prediction, its uncertainty, and privacy's share of that. Free."""
    with state.planning.heavy():
        return state.maps.get(release_id, asked)


@router.post(
    "/{release_id}/predict", response_model=models.Predictions, openapi_extra={"requestBody": _QUESTION}
)
async def predict(release_id: ReleaseId, request: Request, person: Person, state: Server) -> Response:
    """Predictions at up to 10,000 points: free, and the same question has the same answer for ever."""
    body = await request.body()
    # A few threads of their own: the processor is no faster with more, and releases need not queue with them.
    async with state.one_per_person.of(person.id):
        answer = await to_thread.run_sync(_predicted, state, release_id, body, limiter=state.predicting)
    return Response(answer, media_type="application/json")


def _predicted(state: State, release_id: str, body: bytes) -> bytes:
    # Counting is quick. Without it, megabytes of brackets take seconds and hundreds of megabytes to refuse.
    most_rows, most_numbers = limits.QUERY_POINTS, limits.QUERY_POINTS * models.COLUMNS
    most_quotes = 2 * most_numbers + 20  # levels and dates are texts
    for sign, most in ((b"[", most_rows + 1), (b",", most_numbers + 3), (b"{", 2), (b'"', most_quotes)):
        if body.count(sign) > most:
            raise bad_input(
                f"points: at most {most_rows} of them, and nothing else but level and include_noise"
            )
    try:
        asked = models.AskPredictions.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False, include_context=False)) from None
    return to_json(state.releases.predict(release_id, asked.points, asked.level, asked.include_noise))


@router.get("/{release_id}/verify", response_model=models.Verified)
def verify(release_id: ReleaseId, person: Person, state: Server) -> dict[str, Any]:
    """Work out the promise again from the release file."""
    with state.planning.heavy():
        return state.releases.verified(release_id)


@router.get("/{release_id}/file", response_class=Response, responses=_file("application/octet-stream"))
def file(release_id: ReleaseId, person: Person, state: Server) -> Response:
    """The release file (.cloak)."""
    path = state.releases.path(release_id)
    if not path.exists():
        raise not_found("file")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


@router.get("/{release_id}/csv", response_class=Response, responses=_file("text/csv"))
def table(release_id: ReleaseId, person: Person, state: Server) -> Response:
    """The released numbers as a table."""
    return _download(state.releases.table(release_id), "text/csv", f"{release_id}.csv")


@router.get("/{release_id}/picture/{kind}", response_class=Response, responses=_file(*_PICTURES.values()))
def picture(
    release_id: ReleaseId,
    kind: _Kind,
    asked: Annotated[models.AskPicture, Query()],
    person: Person,
    state: Server,
) -> Response:
    """A picture to put into a document: the most telling one, or the map that one chooses."""
    chosen = asked.map()
    with state.planning.heavy():
        if chosen is None:
            contents = state.releases.picture(release_id, kind)
        else:
            contents = state.maps.picture(release_id, kind, asked.view, chosen)
    return _download(contents, _PICTURES[kind], f"{release_id}.{kind}")


@router.get("/{release_id}/report", response_class=Response, responses=_file("text/html"))
def report(release_id: ReleaseId, person: Person, state: Server) -> Response:
    """A report in one HTML file: pictures, settings, the promise in plain words, and the budget left."""
    with state.planning.heavy(), spending():
        ledger = state.releasing.ledger(person.name)
        # One that has forgotten what was paid for cannot say what is left: its page tells custodians.
        text = state.releases.report(release_id, ledger if ledger.trouble() is None else None)
    return _download(text.encode(), "text/html", f"{release_id}.html")


@router.get("/{release_id}/script", response_class=Response, responses=_file("text/x-python"))
def script(release_id: ReleaseId, person: Person, state: Server) -> Response:
    """A script that redoes the release, for custodians; or reads it and predicts, for analysts."""
    text = scripts.script(state.releases.get(release_id), person.role == CUSTODIAN, cloakgp.__version__)
    return _download(text.encode(), "text/x-python", f"{release_id}.py")


@router.get(
    "/{release_id}/notebook",
    response_class=Response,
    responses=_file("application/x-ipynb+json", schema={"type": "object"}),
)
def notebook(release_id: ReleaseId, person: Person, state: Server) -> Response:
    """The same as a notebook."""
    text = scripts.notebook(state.releases.get(release_id), person.role == CUSTODIAN, cloakgp.__version__)
    return _download(text.encode(), "application/x-ipynb+json", f"{release_id}.ipynb")


def _download(contents: bytes, kind: str, name: str) -> Response:
    return Response(
        contents, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
