"""Pictures of plans and releases. Extra ``plots`` (matplotlib).

A picture of a plan or of a release may be published: it is drawn from public numbers and from the
noisy measurements. Only :func:`plot_release` with ``private_data=`` shows y, and then the picture says so
in large letters. Where a function's plan hides X, its pictures do too.
"""

from cloakgp.plots.curves import plot_function as plot_function
from cloakgp.plots.curves import plot_noise_samples as plot_noise_samples
from cloakgp.plots.curves import plot_plan as plot_plan
from cloakgp.plots.curves import plot_release as plot_release
from cloakgp.plots.curves import plot_slices as plot_slices
from cloakgp.plots.curves import slices_of as slices_of
from cloakgp.plots.history import learned_settings as learned_settings
from cloakgp.plots.history import plot_density as plot_density
from cloakgp.plots.history import plot_learned as plot_learned
from cloakgp.plots.history import plot_stages as plot_stages
from cloakgp.plots.maps import plot_map as plot_map
from cloakgp.plots.maps import plot_noise_map as plot_noise_map
from cloakgp.plots.page import INSECURE as INSECURE
from cloakgp.plots.page import NOT_FOR_RELEASE as NOT_FOR_RELEASE
from cloakgp.plots.page import darken as darken
from cloakgp.plots.surface import NEAR_PRIOR as NEAR_PRIOR
from cloakgp.plots.surface import Surface as Surface
from cloakgp.plots.surface import View as View
from cloakgp.plots.surface import surface_of as surface_of
