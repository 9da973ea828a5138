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
        str,
        typer.Option(help="Address to listen on. Beyond this machine only with tokens, and TLS or a proxy."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8765,
    data: Annotated[Path | None, typer.Option(help="The app's own folder, for tables and releases.")] = None,
    ledger: options.Ledger = None,
    tls: Annotated[
        tuple[Path, Path] | None, typer.Option(help="Certificate and key (PEM).", metavar="CERT KEY")
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this machine does TLS.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="With generated heights, and a budget for them.")
    ] = False,
    as_json: options.Json = False,
) -> Answer:
    """Open the app in a browser: the same steps with pictures. Needs the extra app.

    \b
      cloakgp serve --demo --data demo-app
      cloakgp serve --data private-folder --ledger sqlite:///budget.db
    """
    try:
        start = import_module("cloakgp.app").serve
    except (ImportError, AttributeError):
        raise ImportError("the app needs an extra: pip install 'cloakgp[app]'") from None
    start(host=host, port=port, data=data, ledger=ledger, tls=tls, behind_proxy=behind_proxy, demo=demo)
    return Answer({"served": f"http://{host}:{port}"}, "stopped.")
