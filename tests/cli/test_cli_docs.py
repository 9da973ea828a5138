"""The page on the command line, typed in as it stands."""

import re
from pathlib import Path

import pytest
from cli_helpers import commands, run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
_BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
REFUSED = {"--again 2": 3}  # what the page says of it


def typed(block):
    lines = block.replace("\\\n", " ").splitlines()
    return [line.removeprefix("cloakgp ") for line in lines if line.startswith("cloakgp ")]


def same_lines(shown, printed):
    """Every line of the page was printed, but for the last digit of its numbers."""
    there = [line.split() for line in printed.splitlines()]
    for line in shown.splitlines():
        words = line.split()
        pattern = _NUMBER.sub("#", " ".join(words))
        near = [other for other in there if _NUMBER.sub("#", " ".join(other)).startswith(pattern)]
        assert near, line
        numbers = [float(number) for number in _NUMBER.findall(line)]
        found = [float(number) for number in _NUMBER.findall(" ".join(near[0]))][: len(numbers)]
        assert found == pytest.approx(numbers, rel=2e-2), line


def test_the_page_can_be_typed_in():
    text = PAGE.read_text(encoding="utf-8")
    printed = ""
    for kind, body in _BLOCK.findall(text):
        if kind == "python":
            exec(body, {})
        elif kind == "text":
            same_lines(body, printed)
        for line in typed(body) if kind == "sh" else ():
            result = run(line, "y\n")
            code = next((code for words, code in REFUSED.items() if words in line), 0)
            assert result.code == code, (line, result.err)
            printed = result.out + result.err
    assert Path("heights.html").exists()
    assert Path("plan.png").exists()


def test_every_option_on_the_page_exists():
    options = {option for command in commands().values() for one in command.params for option in one.opts}
    assert set(re.findall(r"`(--[a-z-]+)", PAGE.read_text(encoding="utf-8"))) <= options
