"""Messages for people who type commands."""

import re
from pathlib import Path

import pytest

import cloakgp
from cloakgp.workflow.shell_words import SHELL_WORDS, in_shell_words

PACKAGE = Path(cloakgp.__file__).parent
_BREAK = re.compile(r'"\s*\n\s*f?"')  # between two parts of one message


@pytest.fixture(scope="module")
def library():
    files = [file for file in PACKAGE.rglob("*.py") if file.name != "shell_words.py"]
    return _BREAK.sub("", "\n".join(file.read_text(encoding="utf-8") for file in files))


@pytest.mark.parametrize("words", SHELL_WORDS)
def test_the_library_still_says_what_is_put_otherwise(library, words):
    """If a message changes, its line in the table must, too."""
    if words.startswith(("plan_for: ", "signed_by ", "loss_clip ")):
        words = words.split(":")[0].strip()  # put together from a name and a sentence
    assert words in library


def test_calls_become_commands_and_counting_begins_at_1():
    assert in_shell_words("there is no file. Ledger(...).create(...) makes one.") == (
        "there is no file. cloakgp ledger create makes one."
    )
    assert in_shell_words("candidates[0] and candidates[9] are the same") == (
        "candidate 1 and candidate 10 are the same"
    )
    assert in_shell_words("plan_for: X_star must; plan_for: epsilon must") == (
        "--then-at must; --then-epsilon must"
    )
    assert in_shell_words("nothing of the kind") == "nothing of the kind"
