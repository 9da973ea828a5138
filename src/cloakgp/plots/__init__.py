"""Pictures of plans and releases. Extra ``plots`` (matplotlib).

A picture of a plan or of a release may be published: it is drawn from public numbers and from the
noisy measurements. Only :func:`plot_release` with ``private_data=`` shows y, and then the picture says so
in large letters. Where a function's plan hides X, its pictures do too.
"""

from cloakgp.plots.curves import (
    plot_function,
    plot_noise_samples,
    plot_plan,
    plot_release,
    plot_slices,
    slices_of,
)
from cloakgp.plots.history import learned_settings, plot_density, plot_learned, plot_stages
from cloakgp.plots.maps import plot_map, plot_noise_map
from cloakgp.plots.page import INSECURE, NOT_FOR_RELEASE, darken
from cloakgp.plots.surface import NEAR_PRIOR, Surface, View, surface_of

__all__ = [
    "INSECURE",
    "NEAR_PRIOR",
    "NOT_FOR_RELEASE",
    "Surface",
    "View",
    "darken",
    "learned_settings",
    "plot_density",
    "plot_function",
    "plot_learned",
    "plot_map",
    "plot_noise_map",
    "plot_noise_samples",
    "plot_plan",
    "plot_release",
    "plot_slices",
    "plot_stages",
    "slices_of",
    "surface_of",
]
