"""The app: one process serves a JSON API and the pages that use it. Extra ``app`` (FastAPI, uvicorn, plotly).

It adds nothing to the library but a way in: reading tables and making plans is :mod:`cloakgp.workflow`'s,
and the output column is read by :mod:`cloakgp.private` alone. ``docs/app.md`` says how to run it, and who
may do what.
"""

from importlib.util import find_spec

if not all(map(find_spec, ("fastapi", "plotly", "uvicorn"))):  # found, not loaded
    raise ImportError("the app: install the extra cloakgp[app] (in a clone: pip install '.[app]')")

from cloakgp.app.limits import Limits
from cloakgp.app.server import create_app, serve
from cloakgp.app.state import State

__all__ = ["Limits", "State", "create_app", "serve"]
