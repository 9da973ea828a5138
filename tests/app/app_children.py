"""A server in a process of its own, which may be told to die at a certain moment of a release.

python app_children.py FOLDER [before|charged|written]
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from cloakgp.app import Limits, releasing, serve
from cloakgp.app.releases import Releases


def die(*arguments: Any, **options: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(function: Any) -> Any:
    def run(*arguments: Any, **options: Any) -> Any:
        function(*arguments, **options)
        die()

    return run


MOMENTS = {
    "before": lambda: setattr(releasing.private_step, "release", die),  # noted, not charged
    "charged": lambda: setattr(Releases, "finish", die),  # charged, no file
    "written": lambda: setattr(Releases, "_keep", _keep_unless_done),  # file, but not noted as done
}
_keep = Releases._keep


def _keep_unless_done(self: Any, record: dict[str, Any]) -> None:
    if record["state"] == "done":
        die()
    _keep(self, record)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        MOMENTS[sys.argv[2]]()
    loose = Limits(requests_per_second=1e6, burst=10**6)
    serve(port=0, data=sys.argv[1], limits=loose)
