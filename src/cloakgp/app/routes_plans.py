"""Previews and plans, which are public and free; and the private step, which is neither."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from cloakgp.app import models, plans
from cloakgp.app.access import REFUSALS, Custodian, Person, PlanId, Server, Watched

router = APIRouter(prefix="/api", responses=REFUSALS, tags=["plans"])


@router.post("/preview", response_model=models.Preview)
def preview(
    asked: models.Settings, person: Custodian, state: Server, work: Watched, rough: bool = False
) -> dict[str, Any]:
    """The noise of a release, exact unless the model is learned. Free; the output is not read.

    With `rough`, within about a second: if the whole takes longer, it is of some rows that stand for all.
    """
    state.plans.check_settings(asked)
    return state.planning.preview(asked, rough)


@router.post("/preview/curve", response_model=list[models.CurvePoint])
def curve(asked: models.AskCurve, person: Custodian, state: Server, work: Watched) -> list[dict[str, Any]]:
    """Noise against epsilon, other settings alike; beside it that of the paper's method, up to epsilon 1."""
    state.plans.check_settings(asked.settings)
    return state.planning.curve(asked.settings, asked.epsilons)


@router.post("/preview/designs", response_model=models.Designs)
def designs(asked: models.Settings, person: Custodian, state: Server, work: Watched) -> dict[str, Any]:
    """All designs side by side, for a model that is described: what error to expect, and the noise."""
    state.plans.check_settings(asked)
    return state.planning.designs(asked)


@router.get("/plans", response_model=list[models.Plan])
def everything(person: Person, state: Server) -> list[dict[str, Any]]:
    """All plans, the newest first."""
    return state.plans.everything()


@router.post("/plans", response_model=models.Plan, status_code=201, responses={200: {"model": models.Plan}})
def make(
    asked: models.AskPlan, response: Response, person: Custodian, state: Server, work: Watched
) -> dict[str, Any]:
    """Keep a plan. The same settings for the same inputs are the same plan."""
    kept, new = state.plans.make(asked.settings, asked.name, person)
    response.status_code = 201 if new else 200
    return plans.shown(kept)


@router.get("/plans/{plan_id}", response_model=models.Plan)
def one(plan_id: PlanId, person: Person, state: Server) -> dict[str, Any]:
    """One plan."""
    return plans.shown(state.plans.get(plan_id))


@router.post("/plans/{plan_id}/quote", response_model=models.Quote)
def quote(plan_id: PlanId, asked: models.AskQuote, person: Custodian, state: Server) -> dict[str, Any]:
    """What a release would cost, and leave."""
    return state.releasing.quote(plan_id, asked, person)


@router.post("/plans/{plan_id}/release", response_model=models.Released)
def release(
    plan_id: PlanId, asked: models.AskRelease, person: Custodian, state: Server, work: Watched
) -> dict[str, Any]:
    """The private step. A repeated request gets the same answer for nothing, unless `number` is a new one."""
    return state.releasing.release(plan_id, asked, person)
