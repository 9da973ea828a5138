"""``cloakgp demo`` and ``cloakgp serve``."""

from __future__ import annotations

import contextlib
import errno
import io
import re
import ssl
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, TextIO

import typer

from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command, note, print_json
from cloakgp.errors import InputError, missing_extra

_LINK = re.compile(r"https?://\S+")
_NOT_THERE = {
    errno.EADDRINUSE: "the port is in use. Name another with --port; 0 takes any that is free.",
    errno.EACCES: "this user may not. Name a port above 1023 with --port.",
    errno.EADDRNOTAVAIL: "this machine does not have that address. Name another with --host.",
}


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

    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file. Name a folder with -o.")
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
    data: Annotated[Path, typer.Option(help="The app's own folder, for tables and releases.")] = Path(
        "cloakgp-data"
    ),
    ledger: Annotated[
        str | None,
        typer.Option(
            envvar="CLOAKGP_LEDGER",
            help="Ledger that pays; a file in the app's folder if absent.",
            metavar="URL",
        ),
    ] = None,
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
) -> Answer | None:
    """Open the app in a browser: the same steps with pictures. Needs the extra app.

    Runs until Ctrl-C stops it. With --json the object comes at the start, and holds the link to open; null
    where people sign in with tokens.

    \b
      cloakgp serve --demo --data demo-app
      cloakgp serve --data private-folder --ledger sqlite:///budget.db
    """
    try:
        start = import_module("cloakgp.app").serve
    except (ImportError, AttributeError):
        raise missing_extra("the app", "FastAPI", "app") from None
    if tls is not None:
        _check_tls(*tls)
    if ledger is not None:
        _check_url(ledger)
    note("Starting the app; Ctrl-C stops it.")
    with _link_as_json() if as_json else contextlib.nullcontext(), _until_stopped(host, port):
        start(host=host, port=port, data=data, ledger=ledger, tls=tls, behind_proxy=behind_proxy, demo=demo)
    return None if as_json else Answer({}, "stopped.")


def _check_tls(certificate: Path, key: Path) -> None:
    """Found out here, and not after the link was shown."""
    for file in (certificate, key):
        if not file.is_file():
            raise InputError(f"--tls: {file}: there is no such file.")
    if b"ENCRYPTED" in key.read_bytes():
        return  # its pass phrase is asked for once, when the app starts
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError):
        raise InputError(
            f"--tls: {certificate} and {key} must be a certificate and its key, as PEM files."
        ) from None


def _check_url(ledger: str) -> None:
    """Raise if it is no ledger's address."""
    from cloakgp.ledger import Ledger

    Ledger(ledger)


@contextlib.contextmanager
def _until_stopped(host: str, port: int) -> Iterator[None]:
    """Ctrl-C is how the app ends, not a failure; and say in words why it cannot listen."""
    try:
        yield
    except KeyboardInterrupt:
        pass
    except OSError as error:
        if error.errno not in _NOT_THERE or error.filename is not None:
            raise
        raise InputError(f"cannot listen at {host}, port {port}: {_NOT_THERE[error.errno]}") from None


@contextlib.contextmanager
def _link_as_json() -> Iterator[None]:
    """Instead of what the app says on stdout when it listens: one object with the link."""
    with contextlib.redirect_stdout(_Link(sys.stdout)):
        yield


class _Link(io.TextIOBase):
    """Takes what the app says first for the link, or for the words that there is none."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._told = out, False

    def write(self, words: str) -> int:
        if not self._told:
            self._told = True
            link = _LINK.search(words)
            with contextlib.redirect_stdout(self._out):
                print_json({"link": None if link is None else link[0]})
        return len(words)
