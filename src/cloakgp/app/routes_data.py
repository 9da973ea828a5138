"""Tables: custodians put them there, and take them away again."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from cloakgp.app import limits, models
from cloakgp.app.access import REFUSALS, Custodian, FileName, Server, TableName
from cloakgp.app.errors import bad_input
from cloakgp.app.public_inputs import facts_of_inputs
from cloakgp.app.state import State
from cloakgp.files import atomic

router = APIRouter(prefix="/api/data", responses=REFUSALS, tags=["data"])
_BODY = {
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    "required": True,
}


@router.get("", response_model=list[models.Table])
def tables(person: Custodian, state: Server) -> list[dict[str, Any]]:
    """All tables: names and counts, no cell."""
    return [state.plans.told(table) for table in state.uploads.everything()]


@router.put("/{name}", response_model=models.Table, status_code=201, openapi_extra={"requestBody": _BODY})
async def upload(name: FileName, request: Request, person: Custodian, state: Server) -> dict[str, Any]:
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


@router.delete("/{name}", response_model=models.Done)
def remove(name: TableName, person: Custodian, state: Server) -> models.Done:
    """Delete a table. Plans and releases stay."""
    state.uploads.remove(name)
    return models.Done(ok=True)


@router.post("/{name}/inputs", response_model=models.InputFacts)
def inputs(name: TableName, asked: models.AskInputs, person: Custodian, state: Server) -> dict[str, Any]:
    """Ranges and a sample of the columns that are public inputs. What is wrong with them is said by row."""
    state.plans.check_roles(name, asked.inputs, asked.output)
    found = state.uploads.inputs(name, asked.inputs, limits.INPUT_ROWS, asked)
    return facts_of_inputs(found, asked.bounds)


@router.post("/{name}/people", response_model=models.PeopleFacts)
def people(name: TableName, asked: models.AskPeople, person: Custodian, state: Server) -> dict[str, Any]:
    """How many people a public column names, and how many rows they have. Ids themselves are not sent."""
    state.plans.check_roles(name, [asked.people])
    found = state.uploads.people(name, asked.people, asked.encoding, asked.ids)
    return {"people": found.n_people, "rows": found.n_rows, "most_rows": found.most_rows}


def _kept(state: State, part: Any, name: str) -> dict[str, Any]:
    if part.stat().st_size == 0:
        raise bad_input("the file is empty.")
    return state.uploads.keep(part, name, state.limits.upload_bytes)
