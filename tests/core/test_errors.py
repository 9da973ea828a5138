"""Errors with fields, and messages that know which of their parts speak Python."""

import copy
import pickle

import pytest

import cloakgp
from cloakgp.core.errors import Argument, ArgumentError, ArgumentTypeError, Message, Phrase, parts_of, tell
from cloakgp.kernels import EQ


def sent(thing):
    """As another process would have it."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301


def test_an_argument_error_has_its_fields_and_reads_as_a_sentence():
    with pytest.raises(cloakgp.ArgumentError) as caught:
        cloakgp.GP(EQ(1.0), 1.0, (0.0, 1.0)).plan([1.0], X_star=[1.0], epsilon=-1, delta=0.01)
    error = caught.value
    assert str(error) == f"epsilon {error.expected}; got -1. 1 is a common choice."
    assert (error.name, error.got, error.remedy) == ("epsilon", "-1", "1 is a common choice.")
    assert (isinstance(error, ValueError), isinstance(error, TypeError)) == (True, False)
    with pytest.raises(ArgumentTypeError, match=r"noise must be a number; got 'much'\."):
        cloakgp.GP(EQ(1.0), "much", (0.0, 1.0))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (("a", "must be b"), "a must be b."),
        (("a", "must be b", "c"), "a must be b; got c."),
        (("a", "must be b", "", "Do d."), "a must be b. Do d."),
        (("a", "must be b", "c", "Do d."), "a must be b; got c. Do d."),
    ],
)
@pytest.mark.parametrize("kind", [ArgumentError, ArgumentTypeError])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, sent])
def test_an_error_reads_the_same_after_a_journey(kind, fields, text, again):
    """Processes and clusters send them."""
    error = again(kind(*fields))
    assert type(error) is kind
    assert str(error) == text
    known = error.name, error.expected, error.got, error.remedy
    assert error.args == (*fields, *[""] * (4 - len(fields))) == known


def test_an_argument_inside_another():
    inside = ArgumentTypeError("epsilon", "must be b", "c", "Do d.").inside("plan_for")
    assert type(inside) is ArgumentTypeError
    assert str(inside) == "plan_for: epsilon must be b; got c. Do d."
    assert inside.name == "plan_for: epsilon"


@pytest.mark.parametrize("again", [lambda said: said, copy.deepcopy, sent])
def test_parts_are_told_otherwise_and_the_rest_is_left_alone(again):
    setting = Argument("calibration", "classic")
    said = Message("look: ", Message(setting, ", "), Phrase.NOT_READ, ". calibration y was not read")
    said = again(said)
    assert said == "look: calibration='classic', y was not read. calibration y was not read"
    assert said.parts[1].value == "classic"

    def otherwise(part):
        return f"<{part.name}>"

    expected = "look: <calibration>, <NOT_READ>. calibration y was not read"
    assert tell(said, otherwise) == expected
    for kind in (ValueError, RuntimeError, OSError):
        assert tell(kind(said), otherwise) == expected
        assert str(kind(said)) == said
    assert tell(ArgumentError("a", said), otherwise) == f"<a> {expected}."
    assert tell(ArgumentError("a", "must be a"), otherwise) == "<a> must be a."


def test_errors_of_others_are_told_as_they_are():
    for error in (ValueError("epsilon must"), OSError(2, "absent", "a.csv"), ValueError(), ValueError(1, 2)):
        assert parts_of(error) == (str(error),)
