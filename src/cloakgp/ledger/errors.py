"""What can go wrong with a ledger. Whenever one of these is raised, no answer has left."""


class LedgerError(RuntimeError):
    """The ledger could not be used as asked."""


class LedgerAbsent(LedgerError):
    """There is no ledger yet, or no more."""


class DatasetExists(LedgerError):
    """The data set is in the ledger already, and its budget stands."""


class BudgetExceeded(LedgerError):
    """The request does not fit into what is left. y was not read."""


class TermsMismatch(LedgerError):
    """The request is not on the data set's terms: other columns, or a larger delta. y was not read.

    `argument` is what is wrong, `expected` what it must be, and `remedy` says what to do.
    """

    def __init__(self, message: str, argument: str = "", expected: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.argument, self.expected, self.remedy = argument, expected, remedy


class UnitMismatch(TermsMismatch):
    """The request protects another unit, or other people, than the data set. y was not read."""


class LedgerTampered(LedgerError):
    """The ledger is not what it was: an entry was changed, removed or put in, or it is an old copy."""
