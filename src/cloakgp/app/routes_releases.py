"""Routes from a table to a release: data, previews and plans, the private step, and predictions anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from pydantic import ValidationError
from pydantic_core import to_json

import cloakgp
from cloakgp.app import models, scripts, settings
from cloakgp.app.accounts import CUSTODIAN
from cloakgp.app.errors import bad_input, not_found, spending
from cloakgp.app.limits import Most
from cloakgp.app.state import Custodian, FileName, Id, Person, Server, State, TableName, Watched, router
from cloakgp.app.uploads import facts_of_inputs
from cloakgp.app.work import listening
from cloakgp.files import atomic

data, plans = router("data", "/api/data"), router("plans", "/api")
releases = router("releases", "/api/releases")
_Kind = Literal["png", "svg", "pdf"]
_PICTURES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
_BYTES = {"type": "string", "format": "binary"}
_BODY = {"content": {"application/octet-stream": {"schema": _BYTES}}, "required": True}
_QUESTION = {
    "content": {"application/json": {"schema": settings.AskPredictions.model_json_schema()}},
    "required": True,
}


def _file(*kinds: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {kind: {"schema": _BYTES} for kind in kinds}}}


@data.get("", response_model=list[models.Table])
def tables(person: Custodian, state: Server) -> Any:
    """All tables: names and counts, no cell."""
    return [state.plans.told(table) for table in state.uploads.everything()]


@data.put("/{name}", response_model=models.Table, status_code=201, openapi_extra={"requestBody": _BODY})
async def upload(name: FileName, request: Request, person: Custodian, state: Server) -> Any:
    """Put a CSV or Parquet file into the data folder, as it is. The first line of a CSV names its columns.

    It may be called anything. The answer's `name` is what it is kept under, and what all else calls it.
    """
    part = atomic.unfinished(state.folder.uploads / "upload")
    try:
        with atomic.create(part, atomic.OWNER) as file:
            async for chunk in request.stream():
                await run_in_threadpool(file.write, chunk)
            await run_in_threadpool(atomic.sync, file)
        return state.plans.told(await run_in_threadpool(_kept, state, part, name))
    finally:
        part.unlink(missing_ok=True)


@data.delete("/{name}", response_model=models.Done)
def remove(name: TableName, person: Custodian, state: Server) -> models.Done:
    """Delete a table. Plans and releases stay."""
    state.uploads.path(name).unlink()
    return models.Done(ok=True)


@data.post("/{name}/inputs", response_model=models.InputFacts)
def inputs(name: TableName, asked: settings.AskInputs, person: Custodian, state: Server) -> Any:
    """Ranges and a sample of the columns that are public inputs. What is wrong with them is said by row."""
    state.plans.check_roles(name, asked.inputs, asked.output)
    found = state.uploads.inputs(state.uploads.path(name), asked.inputs, 2_000_000, asked)  # rows
    return facts_of_inputs(found)


@data.post("/{name}/people", response_model=models.PeopleFacts)
def people(name: TableName, asked: settings.AskPeople, person: Custodian, state: Server) -> Any:
    """How many people a public column names, and how many rows they have. Ids themselves are not sent."""
    state.plans.check_roles(name, [asked.people])
    found = state.uploads.people(state.uploads.path(name), asked.people, asked.encoding, asked.ids)
    return {"people": found.n_people, "rows": found.n_rows, "most_rows": found.most_rows}


@plans.post("/preview", response_model=models.Preview)
def preview(
    asked: settings.Settings, person: Custodian, state: Server, work: Watched, rough: bool = False
) -> Any:
    """The noise of a release, exact unless the model is learned. Free; the output is not read.

    With `rough`, within about a second: if the whole takes longer, it is of some rows that stand for all.
    """
    state.plans.check_settings(asked)
    return state.planning.preview(asked, rough)


@plans.post("/preview/curve", response_model=list[models.CurvePoint])
def curve(asked: settings.AskCurve, person: Custodian, state: Server, work: Watched) -> Any:
    """Noise against epsilon, other settings alike; beside it that of the paper's method, up to epsilon 1."""
    state.plans.check_settings(asked.settings)
    return state.planning.curve(asked.settings, asked.epsilons)


@plans.post("/preview/designs", response_model=models.Designs)
def designs(asked: settings.Settings, person: Custodian, state: Server, work: Watched) -> Any:
    """All designs side by side, for a model that is described: what error to expect, and the noise."""
    state.plans.check_settings(asked)
    return state.planning.designs(asked)


@plans.get("/plans", response_model=list[models.Plan])
def all_plans(person: Person, state: Server) -> Any:
    """All plans, the newest first."""
    return state.plans.everything()


@plans.post("/plans", response_model=models.Plan, status_code=201, responses={200: {"model": models.Plan}})
def make(
    asked: settings.PlanAsked, response: Response, person: Custodian, state: Server, work: Watched
) -> Any:
    """Keep a plan. The same settings for the same inputs are the same plan."""
    kept, new = state.plans.make(asked.settings, asked.name, person)
    response.status_code = 201 if new else 200
    return kept


@plans.get("/plans/{plan_id}", response_model=models.Plan)
def one_plan(plan_id: Id, person: Person, state: Server) -> Any:
    """One plan."""
    return state.plans.get(plan_id)


@plans.post("/plans/{plan_id}/quote", response_model=models.Quote)
def quote(plan_id: Id, asked: settings.AskQuote, person: Custodian, state: Server) -> Any:
    """What a release would cost, and leave."""
    return state.releasing.quote(plan_id, asked, person)


@plans.post("/plans/{plan_id}/release", response_model=models.Released)
def release(
    plan_id: Id, asked: settings.ReleaseAsked, person: Custodian, state: Server, work: Watched
) -> Any:
    """The private step. A repeated request gets the same answer for nothing, unless `number` is a new one."""
    return state.releasing.release(plan_id, asked, person)


@releases.get("", response_model=list[models.Release])
def all_releases(person: Person, state: Server) -> Any:
    """All releases, the newest first, without their numbers."""
    return state.releases.everything()


@releases.get("/{release_id}", response_model=models.Release)
def one_release(release_id: Id, person: Person, state: Server, work: Watched) -> Any:
    """One release with its numbers."""
    with listening():
        return state.reader.with_arrays(release_id)


@releases.post("/{release_id}/map", response_model=models.Map)
def surface(release_id: Id, asked: settings.AskMap, person: Person, state: Server, work: Watched) -> Any:
    """A surface over two inputs: prediction, its uncertainty, and privacy's share of that. Free."""
    with state.planning.heavy():
        return state.reader.map(release_id, asked)


@releases.post(
    "/{release_id}/predict", response_model=models.Predictions, openapi_extra={"requestBody": _QUESTION}
)
async def predict(release_id: Id, request: Request, person: Person, state: Server) -> Response:
    """Predictions at up to 10,000 points: free, and the same question has the same answer for ever."""
    body = await request.body()
    # A few threads of their own: the processor is no faster with more, and releases need not queue with them.
    async with state.one_prediction_of(person.id):
        answer = await to_thread.run_sync(_predicted, state, release_id, body, limiter=state.predicting)
    return Response(answer, media_type="application/json")


@releases.get("/{release_id}/verify", response_model=models.Verified)
def verify(release_id: Id, person: Person, state: Server) -> Any:
    """Work out the promise again from the release file."""
    with state.planning.heavy():
        return state.reader.verified(release_id)


@releases.get("/{release_id}/file", response_class=Response, responses=_file("application/octet-stream"))
def file(release_id: Id, person: Person, state: Server) -> Response:
    """The release file (.cloak)."""
    path = state.releases.path(release_id)
    if not path.exists():
        raise not_found("file")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


@releases.get("/{release_id}/csv", response_class=Response, responses=_file("text/csv"))
def csv(release_id: Id, person: Person, state: Server) -> Response:
    """The released numbers as a table."""
    return _download(state.reader.table(release_id), "text/csv", f"{release_id}.csv")


@releases.get("/{release_id}/picture/{kind}", response_class=Response, responses=_file(*_PICTURES.values()))
def picture(
    release_id: Id, kind: _Kind, asked: Annotated[settings.AskPicture, Query()], person: Person, state: Server
) -> Response:
    """A picture to put into a document: the most telling one, or the map that one chooses."""
    with state.planning.heavy():
        contents = state.reader.picture(release_id, kind, asked)
    return _download(contents, _PICTURES[kind], f"{release_id}.{kind}")


@releases.get("/{release_id}/report", response_class=Response, responses=_file("text/html"))
def report(release_id: Id, person: Person, state: Server) -> Response:
    """A report in one HTML file: pictures, settings, the promise in plain words, and the budget left."""
    with state.planning.heavy(), spending():
        ledger = state.releasing.ledger(person.name)
        # One that has forgotten what was paid for cannot say what is left: its page tells custodians.
        text = state.reader.report(release_id, ledger if ledger.trouble() is None else None)
    return _download(text.encode(), "text/html", f"{release_id}.html")


@releases.get("/{release_id}/script", response_class=Response, responses=_file("text/x-python"))
def script(release_id: Id, person: Person, state: Server) -> Response:
    """A script that redoes the release, for custodians; or reads it and predicts, for analysts."""
    text = scripts.script(state.releases.get(release_id), person.role == CUSTODIAN, cloakgp.__version__)
    return _download(text.encode(), "text/x-python", f"{release_id}.py")


def _kept(state: State, part: Path, name: str) -> Any:
    if part.stat().st_size == 0:
        raise bad_input("the file is empty.")
    return state.uploads.keep(part, name)


def _predicted(state: State, release_id: str, body: bytes) -> bytes:
    # Counting is quick. Without it, megabytes of brackets take seconds and hundreds of megabytes to refuse.
    most_rows, most_numbers = Most.query_points, Most.query_points * Most.inputs
    most_quotes = 2 * most_numbers + 20  # levels and dates are texts
    for sign, most in ((b"[", most_rows + 1), (b",", most_numbers + 3), (b"{", 2), (b'"', most_quotes)):
        if body.count(sign) > most:
            raise bad_input(
                f"points: at most {most_rows} of them, and nothing else but level and include_noise"
            )
    try:
        asked = settings.AskPredictions.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False, include_context=False)) from None
    return to_json(state.reader.predict(release_id, asked.points, asked.level, asked.include_noise))


def _download(contents: bytes, kind: str, name: str) -> Response:
    return Response(
        contents, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
