"""Messages for people who type commands."""

import ast
import re
from pathlib import Path

import pytest
import typer

import cloakgp
from cloakgp.cli.app import app
from cloakgp.cli.exits import options_of
from cloakgp.errors import Argument, ArgumentError, Message, Phrase
from cloakgp.workflow.shell_words import PARAMETERS, PHRASES, in_shell_words

PACKAGE = Path(cloakgp.__file__).parent
_KINDS = re.compile("Error|Exception|Refused|Problem")


def commands(command=None, name="cloakgp"):
    """Every command, by the words that call it."""
    command = typer.main.get_command(app) if command is None else command
    if not hasattr(command, "commands"):
        return {name: command}
    parts = [commands(part, f"{name} {word}") for word, part in command.commands.items()]
    return {words: found for part in parts for words, found in part.items()}


def options(command):
    """What the command line itself says that a command's options are."""
    return {
        parameter.name: next(word for word in parameter.opts if word.startswith("--"))
        for parameter in command.params
        if parameter.param_type_name == "option" and parameter.name != "help"
    }


def test_every_phrase_has_words_here_and_is_said_somewhere():
    assert set(PHRASES) == set(Phrase)
    files = [file for file in PACKAGE.rglob("*.py") if file.name not in ("shell_words.py", "errors.py")]
    library = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for phrase in Phrase:
        assert f"Phrase.{phrase.name}" in library


@pytest.mark.parametrize("phrase", PHRASES)
def test_what_is_said_here_exists(phrase):
    """Commands and options, by name."""
    said, every = PHRASES[phrase], commands()
    called = re.search(r"cloakgp \w+ \w+", said)
    known = {option for command in every.values() for option in options(command).values()}
    if called is not None:
        known = set(options(every[called[0]]).values())
    assert set(re.findall(r"--[a-z-]+", said)) <= known


@pytest.mark.parametrize("name", commands())
def test_options_are_known_by_the_names_of_parameters(name):
    command = commands()[name]
    assert options_of(command.callback) == options(command)


def test_other_names_are_those_of_parameters():
    every = [options(command) for command in commands().values()]
    for argument, parameter in PARAMETERS.items():
        assert any(parameter in known for known in every), argument
        assert not any(argument in known for known in every), argument


def test_an_argument_is_the_option_of_the_command_at_hand():
    known = {"epsilon": "--epsilon", "ledger": "--ledger", "then_at": "--then-at", "bounds": "--bounds"}
    for name, option in (
        ("epsilon", "--epsilon"),
        ("url", "--ledger"),
        ("plan_for: X_star", "--then-at"),
        ("bounds[0]", "--bounds[0]"),
        ("delta", "delta"),  # not one of this command's
        ("X_star", "X_star"),
        ("candidates[9]", "candidate 10"),
    ):
        assert in_shell_words(ArgumentError(name, "must be b"), known) == f"{option} must be b."
    assert in_shell_words(ArgumentError("epsilon", "must be b")) == "epsilon must be b."


def test_calls_become_commands_and_text_is_left_alone():
    said = Message("there is no file epsilon. ", Phrase.CREATE_LEDGER, " makes one.")
    assert in_shell_words(RuntimeError(said)) == "there is no file epsilon. cloakgp ledger create makes one."
    assert in_shell_words(said) == "there is no file epsilon. cloakgp ledger create makes one."
    assert in_shell_words("Ledger.create: y was not read") == "Ledger.create: y was not read"
    known = {"calibration": "--calibration", "behind_proxy": "--behind-proxy"}
    assert in_shell_words(Message(Argument("calibration", "classic")), known) == "--calibration classic"
    assert in_shell_words(Message(Argument("behind_proxy", True)), known) == "--behind-proxy"


# --------------------------------------------------------------- nobody looks into a message's text


def looks_into_messages(source):
    """Lines that compare an error's text, or call a method of it."""
    found = []
    errors = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name:
            errors.add(node.name)
        elif isinstance(node, ast.arg) and _KINDS.search(ast.unparse(node.annotation or ast.Pass())):
            errors.add(node.arg)
    texts = {f"str({name})" for name in errors} | {f"{name}.args[0]" for name in errors}
    texts |= {f"{name}.message" for name in errors}
    for node in ast.walk(tree):
        looked = []
        if isinstance(node, ast.Compare):
            looked = [node.left, *node.comparators]
        elif isinstance(node, ast.Call):
            looked = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            looked += node.args if ast.unparse(node.func).startswith(("re.", "in_shell_words")) else []
        elif isinstance(node, ast.Match):
            looked = [node.subject]
        found += [node.lineno for part in looked if ast.unparse(part) in texts]
    return found


@pytest.mark.parametrize("room", ["workflow", "cli", "app"])
def test_shells_and_pages_do_not_look_into_messages(room):
    for file in (PACKAGE / room).rglob("*.py"):
        assert looks_into_messages(file.read_text(encoding="utf-8")) == [], file


@pytest.mark.parametrize(
    "line",
    [
        'raise_ = "already" in str(error)',
        "known = str(error) == UNUSABLE",
        'message = str(error).replace("url", "--ledger")',
        'known = str(error).startswith("url")',
        'known = re.search("url", str(error))',
        'known = error.args[0].startswith("url")',
        "message = in_shell_words(str(error))",
    ],
)
def test_so_would_these(line):
    assert looks_into_messages(f"try:\n    ask()\nexcept ValueError as error:\n    {line}") == [4]
    assert looks_into_messages(f"def known(error: LedgerError) -> bool:\n    {line}") == [2]
    assert looks_into_messages("try:\n    ask()\nexcept ValueError as error:\n    say(str(error))") == []
