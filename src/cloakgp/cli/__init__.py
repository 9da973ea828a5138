"""The command ``cloakgp``. Extra ``cli`` (typer, rich, pyarrow)."""

import sys

EXTRA = "The command line needs an extra: pip install 'cloakgp[cli]'"


def main() -> None:
    """Run the command line; the entry point of the installed command."""
    try:
        import pyarrow  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print(EXTRA, file=sys.stderr)
        raise SystemExit(2) from None
    from cloakgp.cli.app import app

    app(prog_name="cloakgp")
