"""Generated heights, nobody's, and a budget for them: to try the app without private data."""

from __future__ import annotations

from cloakgp.app import folder as stored
from cloakgp.app.folder import Folder
from cloakgp.datasets import make_kung_like
from cloakgp.ledger import Ledger, LedgerError
from cloakgp.workflow import tables

TABLE, DATASET = "heights.csv", "kung"
EPSILON, DELTA = 1.0, 0.01


def add_demo(folder: Folder, ledger: Ledger) -> None:
    """Put both there, unless they are."""
    if not folder.upload(TABLE).exists():
        ages, heights = make_kung_like()
        columns = {"age": ages[:, 0].round(1), "height": heights.round(1)}
        stored.write(folder.upload(TABLE), tables.encoded(columns))
    try:
        there = ledger.datasets()
    except LedgerError:
        there = []
    if DATASET not in there:
        ledger.create(DATASET, epsilon=EPSILON, delta=DELTA, why="generated heights, to try the app")
