"""Every reason to refuse a release file: a closed list. Each alone catches some forged file in the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import NamedTuple

from cloakgp.core.errors import Message, Phrase
from cloakgp.files.container import ReleaseFileError


class Reason(StrEnum):
    """What is wrong with a file, in words that follow "do not trust this release file"."""

    # The promise
    INSECURE = "it was made in INSECURE mode: its noise came from a seed"
    UNIT = "its unit is not one that this library promises"
    NEIGHBOURS = "its neighbours are not those that this library promises"
    SPEND = "its spend is not what this library promises"
    BOUND = "its bound is not one that this library has for such a release"
    RANGE = "a number in its certificate is out of range"
    DIGITS = "a number in it has more digits than this library writes"
    SENSITIVITY = "its sensitivity is not that of its columns"
    ABOVE_BOUND = "its sensitivity is above the bound that it names"
    NOISE_FLOOR = "its noise is too small for the lattice's proof"
    OVERFLOW = "its integers could overflow"
    MU = "its mu does not follow from its sensitivity and noise"
    DELTA = "its noise is too small for its epsilon and delta"
    CALIBRATION = "its noise does not belong to its epsilon, delta and calibration"
    FIGURE = "a number in its certificate does not follow from its contents"
    BELOW_BOUND = "its objective is below its lower bound"
    WEIGHTS = "its weights are not relative ones"
    PEOPLE = "who has which rows is not what it names"
    OTHER_PEOPLE = "its people are not those that are given"
    # What is made from the measurements
    MODEL = "its model fails"
    OTHER_INPUTS = "its inputs are not X"
    DIGEST = "its inputs are not those that it names"
    CELLS = "its cells do not have the rows that it says"
    PREDICTIONS = "its measurements do not add up to its predictions"
    UNBIASED = "it is not as unbiased as it says"
    DENOISING = "its reconstruction is not the one that denoises best"
    OFFSET = "its offset is not the model's"
    STD = "its GP std is not the model's"
    JITTER = "its jitter is not one that this library adds"
    # Whole functions
    REACH = "its reach is not its bound's"
    SHAPE = "its reconstruction is not its points'"
    LOWER_BOUND = "its lower bound is not that of its bound"
    HIDDEN = "it tells of inputs that it says it hides"
    # Stages
    SHARES = "its stages' shares add up to more than the promise"
    SHARE = "a stage's noise does not belong to its share of the promise"
    COUNTS = "its counts do not follow from what was measured of them"
    WINDOWS = "a stage's windows are not those that the stages before it give"
    LINE = "what a stage's windows do to outcomes is not what its model says"
    DISTANCES = "a stage's noise level is not measured where the stages before it say"
    OUTSIDE = "what a stage's windows cut off is not measured as the stages before it say"
    BINS = "where outcomes fell is not counted where the stages before it say"
    LEARNED = "what it says was learned does not follow from its stages"


class VerificationError(ValueError):
    """A release file's contents do not support what it claims."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        self.reason = reason
        super().__init__(f"do not trust this release file: {reason}{f' ({detail})' if detail else ''}.")


def refuse(wrong: bool, reason: Reason, detail: str = "") -> None:
    """Raise if something is wrong."""
    if wrong:
        raise VerificationError(reason, detail)


@contextmanager
def errors_of_the_model() -> Iterator[None]:
    """What fails in here is the model's fault, whatever the error says."""
    try:
        yield
    except (VerificationError, ReleaseFileError):
        raise
    except (ValueError, TypeError, ArithmeticError) as error:
        raise VerificationError(Reason.MODEL, str(error).rstrip(".")) from None


class Findings(NamedTuple):
    """What was checked, and what was not; some are messages with parts."""

    checked: list[str]
    unchecked: list[str]

    def lack(self, what: str, remedy: Phrase) -> None:
        """Note what was not checked, and what it would take."""
        self.unchecked.append(Message(f"{what} (", remedy, ")"))
