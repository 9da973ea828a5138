"""The ledger and its budgets, for custodians."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from cloakgp.app import ledger_page, models
from cloakgp.app.access import REFUSALS, Custodian, Server

router = APIRouter(prefix="/api/ledger", responses=REFUSALS, tags=["ledger"])


@router.get("", response_model=models.LedgerBook)
def ledger(person: Custodian, state: Server) -> dict[str, Any]:
    """All entries, what is left of each budget, and whether the chain holds."""
    return ledger_page.book(state.releasing, state.releases, person)


@router.post("/datasets", response_model=models.Dataset, status_code=201)
def create(asked: models.AskDataset, person: Custodian, state: Server) -> dict[str, Any]:
    """Open a budget for a data set, for good."""
    return ledger_page.create(state.releasing, asked, person)


@router.post("/private", response_model=models.Dataset)
def allow(asked: models.AskPrivate, person: Custodian, state: Server) -> dict[str, Any]:
    """Let a data set's budget pay for more private columns, too."""
    return ledger_page.allow(state.releasing, asked, person)
