"""The command ``cloakgp``. Extra ``cli`` (typer, pyarrow)."""

import sys
from importlib.util import find_spec

EXTRA = (
    "the command line needs typer and pyarrow: install the extra cloakgp[cli] "
    "(in a clone: pip install '.[cli]')."
)


def main() -> None:
    """Run the command line; the entry point of the installed command."""
    if not all(find_spec(needed) for needed in ("pyarrow", "typer")):  # found, not loaded
        print(f"cloakgp: {EXTRA}", file=sys.stderr)
        raise SystemExit(2)
    from cloakgp.cli.app import app

    app(prog_name="cloakgp")
