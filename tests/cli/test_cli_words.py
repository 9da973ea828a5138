"""Messages for people who type commands."""

import re
from pathlib import Path

import pytest
from cli_helpers import commands

import cloakgp
from cloakgp.core.errors import Argument, ArgumentError, Message, Phrase
from cloakgp.workflow.shell_words import PARAMETERS, PHRASES, in_shell_words

PACKAGE = Path(cloakgp.__file__).parent
KNOWN = {
    name: f"--{name.replace('_', '-')}" for name in ("epsilon", "ledger", "then_at", "bounds", "behind_proxy")
}


def options(command):
    """What the command line itself says that a command's options are."""
    return {
        one.name: next(word for word in one.opts if word.startswith("--"))
        for one in command.params
        if one.param_type_name == "option" and one.name != "help"
    }


def test_every_phrase_has_words_here_and_is_said_somewhere():
    assert set(PHRASES) == set(Phrase)
    files = [file for file in PACKAGE.rglob("*.py") if file.name not in ("shell_words.py", "errors.py")]
    library = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert all(f"Phrase.{phrase.name}" in library for phrase in Phrase)


@pytest.mark.parametrize("phrase", PHRASES)
def test_what_is_said_here_exists(phrase):
    """Commands and options, by name."""
    said, every = PHRASES[phrase], commands()
    called = re.search(r"(?<=cloakgp )\w+ \w+", said)
    there = every.values() if called is None else [every[called[0]]]
    assert set(re.findall(r"--[a-z-]+", said)) <= {
        one for command in there for one in options(command).values()
    }


def test_options_are_known_by_the_names_of_parameters():
    every = {name: options(command) for name, command in commands().items()}
    assert {name: command.own.options for name, command in commands().items()} == every
    for argument, parameter in PARAMETERS.items():
        assert any(parameter in known for known in every.values()), argument
        assert not any(argument in known for known in every.values()), argument


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ArgumentError("epsilon", "must be b"), "--epsilon must be b."),
        (ArgumentError("url", "must be b"), "--ledger must be b."),
        (ArgumentError("plan_for: X_star", "must be b"), "--then-at must be b."),
        (ArgumentError("bounds[0]", "must be b"), "--bounds[0] must be b."),
        (ArgumentError("delta", "must be b"), "delta must be b."),  # not one of this command's
        (ArgumentError("X_star", "must be b"), "X_star must be b."),
        (ArgumentError("candidates[9]", "must be b"), "candidate 10 must be b."),
        (RuntimeError(Message("no epsilon. ", Phrase.CREATE_LEDGER)), "no epsilon. cloakgp ledger create"),
        (Message("no epsilon. ", Phrase.CREATE_LEDGER), "no epsilon. cloakgp ledger create"),
        ("Ledger.create: y was not read", "Ledger.create: y was not read"),
        (Message(Argument("ledger", "classic")), "--ledger classic"),
        (Message(Argument("behind_proxy", True)), "--behind-proxy"),
    ],
)
def test_calls_and_arguments_become_commands_and_options_and_text_is_left_alone(said, told):
    assert in_shell_words(said, KNOWN) == told
