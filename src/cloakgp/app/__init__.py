"""The app: one process serves a JSON API and the pages that use it. Extra ``app`` (FastAPI, uvicorn, plotly).

It adds nothing to the library but a way in: reading tables and making plans is :mod:`cloakgp.workflow`'s,
and the output column is read by :mod:`cloakgp.private` alone. ``docs/app.md`` says how to run it, and who
may do what.
"""

try:
    import fastapi as _fastapi  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ImportError:  # pragma: no cover
    raise ImportError("the app: install the extra cloakgp[app] (in a clone: pip install '.[app]')") from None

from cloakgp.app.limits import Limits
from cloakgp.app.server import create_app, serve
from cloakgp.app.state import State

__all__ = ["Limits", "State", "create_app", "serve"]
