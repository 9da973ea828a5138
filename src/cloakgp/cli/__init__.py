"""The command ``cloakgp``. Extra ``cli`` (typer, rich, pyarrow)."""

import sys

EXTRA = (
    "the command line needs typer, rich and pyarrow: install the extra cloakgp[cli] "
    "(in a clone: pip install '.[cli]')."
)


def main() -> None:
    """Run the command line; the entry point of the installed command."""
    try:
        import pyarrow  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print(f"cloakgp: {EXTRA}", file=sys.stderr)
        raise SystemExit(2) from None
    from cloakgp.cli.app import app

    app(prog_name="cloakgp")
