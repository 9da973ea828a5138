"""A budget ledger: who spent what of whose privacy, and why. It cannot be overspent or quietly edited.

Needs the extra ``ledger`` (SQLAlchemy), and ``postgres`` for a database that several machines share.
"""

from cloakgp.ledger.balances import Balance as Balance
from cloakgp.ledger.book import Audit as Audit
from cloakgp.ledger.book import Ledger as Ledger
from cloakgp.ledger.chain import BudgetExceeded as BudgetExceeded
from cloakgp.ledger.chain import DatasetExists as DatasetExists
from cloakgp.ledger.chain import Entry as Entry
from cloakgp.ledger.chain import LedgerAbsent as LedgerAbsent
from cloakgp.ledger.chain import LedgerError as LedgerError
from cloakgp.ledger.chain import LedgerTampered as LedgerTampered
from cloakgp.ledger.chain import Receipt as Receipt
from cloakgp.ledger.chain import TermsMismatch as TermsMismatch
from cloakgp.ledger.chain import UnitMismatch as UnitMismatch
from cloakgp.ledger.charging import Account as Account
