"""The two ways in which a request can end without an answer, beside the ledger's own."""


class InputError(ValueError):
    """A file, a column or a setting cannot be used as it is; the message says what to change."""


class Refused(RuntimeError):
    """The request is understood and not granted: a check failed, or somebody said no. Nothing was spent."""
