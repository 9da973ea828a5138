"""``cloakgp demo`` and ``cloakgp serve``."""

from __future__ import annotations

import contextlib
import errno
import io
import ssl
import sys
from importlib import import_module
from pathlib import Path

from cloakgp.cli.exits import Answer, command, note, print_json
from cloakgp.core.errors import InputError, missing_extra

_NOT_THERE = {
    errno.EADDRINUSE: "the port is in use. Name another with --port; 0 takes any that is free.",
    errno.EACCES: "this user may not. Name a port above 1023 with --port.",
    errno.EADDRNOTAVAIL: "this machine does not have that address. Name another with --host.",
}


@command
def demo(out: Path = Path("demo-output"), as_json: bool = False) -> Answer:
    """Plan, release, verify and draw generated heights, with explanations.

    \b
      cloakgp demo
    """
    from cloakgp import demo

    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file. Name a folder with -o.")
    with contextlib.redirect_stdout(io.StringIO() if as_json else sys.stdout):
        demo.main(["--output", str(out)])
    written = [str(path) for path in sorted(out.iterdir())]
    return Answer({"files": written}, f"Now try: cloakgp show {out / 'heights.cloak'}")


@command
def serve(
    host: str = "127.0.0.1",
    port: int = 8765,
    data: Path = Path("cloakgp-data"),
    ledger: str | None = None,
    tls: tuple[Path, Path] | None = None,
    behind_proxy: bool = False,
    demo: bool = False,
    as_json: bool = False,
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
    note("Starting the app; Ctrl-C stops it.")
    announce = (lambda link: print_json({"link": link})) if as_json else None
    where = {"host": host, "port": port, "tls": tls, "behind_proxy": behind_proxy}
    try:
        start(**where, data=data, ledger=ledger, demo=demo, announce=announce)
    except KeyboardInterrupt:
        pass  # how the app ends, which is no failure
    except OSError as error:
        if error.errno not in _NOT_THERE or error.filename is not None:
            raise
        raise InputError(f"cannot listen at {host}, port {port}: {_NOT_THERE[error.errno]}") from None
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
