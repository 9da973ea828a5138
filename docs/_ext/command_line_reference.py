"""What `cloakgp --help` says, command by command, as a page: generated/command-line.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx

HEAD = """# Every command and option

Made from the commands themselves when this site is built, so it is what `cloakgp COMMAND --help` prints. For
the steps from a table to a release, with words, see [the command line](../command-line.md).
"""


def page(text: str) -> str:
    """Typer's own Markdown, as a page of this site."""
    text = text.partition("\n")[2]  # its title: ours says more
    text = text.replace("\b\n", "\n")  # Typer's mark for lines that stay as they are
    # A list of commands cut short with dots: the headings say it, too.
    text = re.sub(r"^\*\*Commands\*\*:\n\n(?:\* .*\n)+\n?", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\*\*(\w+)\*\*:$", r"\1:", text, flags=re.MULTILINE)
    text = text.replace("```console\n$ ", "```text\n")
    parts = re.split(r"(```.*?```)", text, flags=re.DOTALL)
    parts[::2] = [re.sub(r"\n{2,}((?:  .*\n)+)", _example, part) for part in parts[::2]]
    return HEAD + "".join(parts)


def _example(match: re.Match[str]) -> str:
    lines = [line.removeprefix("  ") for line in match[1].splitlines()]
    return "\n\n```shell\n" + "\n".join(lines) + "\n```\n"


def write(app: Sphinx) -> None:
    command = [sys.executable, "-m", "typer", "cloakgp.cli.app", "utils", "docs", "--name", "cloakgp"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    target, text = Path(app.srcdir) / "generated" / "command-line.md", page(printed)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
