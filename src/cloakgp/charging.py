"""The old place of what a release leaves in a ledger; :mod:`cloakgp.ledger` has it now."""

from cloakgp.ledger.charge import Account, Receipt

__all__ = ["Account", "Receipt"]
