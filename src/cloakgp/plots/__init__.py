"""Pictures of plans and releases. Extra ``plots`` (matplotlib).

A picture of a plan or of a release may be published: it is drawn from public numbers and from the
noisy measurements. Only :func:`plot_release` and :func:`plot_stages` with ``private_data=`` show y, and
then the picture says so in large letters. Where a function's plan hides X, its pictures do too.
"""

from cloakgp.plots.curves import plot_function, plot_noise_samples, plot_plan, plot_release
from cloakgp.plots.density import plot_density
from cloakgp.plots.labels import axis_label, inducing_words, plan_of, response, title
from cloakgp.plots.learned import learned_settings, plot_learned
from cloakgp.plots.maps import plot_map, plot_noise_map
from cloakgp.plots.page import INSECURE, NOT_FOR_RELEASE, darken
from cloakgp.plots.places import plane
from cloakgp.plots.predicted import Predicted
from cloakgp.plots.shown_inputs import some_inputs
from cloakgp.plots.slices import plot_slices, slices_of
from cloakgp.plots.stages import plot_stages
from cloakgp.plots.surface import NEAR_PRIOR, Surface, View, is_unknown, surface_of, will_be_unknown

__all__ = [
    "INSECURE",
    "NEAR_PRIOR",
    "NOT_FOR_RELEASE",
    "Predicted",
    "Surface",
    "View",
    "axis_label",
    "darken",
    "inducing_words",
    "is_unknown",
    "learned_settings",
    "plan_of",
    "plane",
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
    "response",
    "slices_of",
    "some_inputs",
    "surface_of",
    "title",
    "will_be_unknown",
]
