"""``cloakgp demo`` and ``cloakgp serve``."""

from __future__ import annotations

import contextlib
import io
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command


@command
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write to.")] = Path("demo-output"),
    as_json: options.Json = False,
) -> Answer:
    """Plan, release, verify and draw generated heights, with explanations.

    \b
      cloakgp demo
    """
    from cloakgp import demo

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed if as_json else sys.stdout):
        demo.main(["--output", str(out)])
    written = [str(path) for path in sorted(out.iterdir())]
    return Answer({"files": written}, f"Now try: cloakgp show {out / 'heights.cloak'}")


@command
def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine at your risk.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    data: Annotated[Path | None, typer.Option(help="Folder with the tables to offer.")] = None,
    ledger: options.Ledger = None,
    as_json: options.Json = False,
) -> Answer:
    """Open the app in a browser: the same steps with pictures. Needs the extra app.

    \b
      cloakgp serve --data tables --ledger sqlite:///budget.db
    """
    try:
        start = import_module("cloakgp.app").serve
    except (ImportError, AttributeError):
        raise ImportError("the app needs an extra: pip install 'cloakgp[app]'") from None
    start(host=host, port=port, data=data, ledger=ledger)
    return Answer({"served": f"http://{host}:{port}"}, "stopped.")
