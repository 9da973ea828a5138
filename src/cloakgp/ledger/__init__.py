"""A budget ledger: who spent what of whose privacy, and why. It cannot be overspent or quietly edited.

Needs the extra ``ledger`` (SQLAlchemy), and ``postgres`` for a database that several machines share.
"""

from cloakgp.ledger.balances import Balance
from cloakgp.ledger.book import Audit, Ledger
from cloakgp.ledger.chain import Entry
from cloakgp.ledger.charge import Account, Receipt
from cloakgp.ledger.errors import (
    BudgetExceeded,
    DatasetExists,
    LedgerAbsent,
    LedgerError,
    LedgerTampered,
    TermsMismatch,
    UnitMismatch,
)
from cloakgp.ledger.stages import StageRecord

__all__ = [
    "Account",
    "Audit",
    "Balance",
    "BudgetExceeded",
    "DatasetExists",
    "Entry",
    "Ledger",
    "LedgerAbsent",
    "LedgerError",
    "LedgerTampered",
    "Receipt",
    "StageRecord",
    "TermsMismatch",
    "UnitMismatch",
]
