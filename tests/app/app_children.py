"""A server in a process of its own, which may be told to die at a certain moment of a release.

python app_children.py FOLDER [before|charged|written|paid|staged]
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from typing import Any

from cloakgp.app import Limits, releasing, serve
from cloakgp.app.releases import Releases
from cloakgp.plans.staged import StagedPlan


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


if __name__ == "__main__":
    if len(sys.argv) > 2:
        MOMENTS[sys.argv[2]]()
    loose = Limits(requests_per_second=1e6, burst=10**6)
    serve(port=0, data=sys.argv[1], limits=loose)
