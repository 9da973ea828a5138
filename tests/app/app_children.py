"""Servers in processes of their own, which may be told to die at a certain moment of a release.

``python app_children.py FOLDER`` is one; without a folder this reads lines of JSON and forks a server for
each: see ``forked.py``.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import resource
import signal
import sys
import time
from typing import Any

from cloakgp.app import Limits, releasing, serve
from cloakgp.app.releases import Releases
from cloakgp.plans.staged import StagedPlan


def die(*arguments: Any, **options: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


MOMENTS = {
    "before": lambda: setattr(releasing.private_step, "release", die),  # noted, not charged
    "charged": lambda: setattr(Releases, "finish", die),  # charged, no file
    "paid": lambda: setattr(StagedPlan, "_measure_stage", die),  # paid for, no stage answered
    "staged": lambda: setattr(StagedPlan, "_measure_stage", _measure_two),  # two stages answered
    "written": lambda: setattr(Releases, "_keep", _keep_unless_done),  # file, but not noted as done
}
_keep = Releases._keep
_measure_stage, _measured = StagedPlan._measure_stage, itertools.count()


def _measure_two(*arguments: Any) -> Any:
    if next(_measured) == 2:
        die()
    return _measure_stage(*arguments)


def _keep_unless_done(self: Any, record: dict[str, Any]) -> None:
    if record["state"] == "done":
        die()
    _keep(self, record)


def run(data: str, moment: str, files: int, limits: dict[str, Any], **options: Any) -> None:
    """A server; `files` is how many it may open, the rest is for ``serve``."""
    if moment:
        MOMENTS[moment]()
    if files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    serve(port=0, data=data, limits=Limits(**limits), **options)


def fork(out: str, errors: str, **asked: Any) -> int:
    """Its number; what it prints goes where it is told."""
    child = os.fork()
    if child:
        return child
    for path, descriptor in ((out, 1), (errors, 2)):
        os.dup2(os.open(path, os.O_WRONLY), descriptor)
    code = 1
    try:
        run(**asked)
        code = 0
    except SystemExit as stopped:
        print(stopped.code, file=sys.stderr)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def waited(child: int, seconds: float = 60.0) -> int:
    """How it ended, as subprocess tells; nothing that a server ends with, if it does not."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    return 999


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1], "", 0, {})
    else:
        import sqlalchemy.dialects.sqlite  # noqa: F401

        gc.freeze()  # or each server would copy the memory that it looks through
        for line in sys.stdin:
            asked = json.loads(line)
            print(waited(asked) if isinstance(asked, int) else fork(**asked), flush=True)
