"""
A map of prices
===============

You hold what homes were sold for, and want a map. Places are public, prices are not. Six hundred sales
crowd around a city, and few are far out: there the map must say that it does not know.
"""

import numpy as np

import cloakgp
from cloakgp.datasets import make_city_like
from cloakgp.plots import plot_map

X, y = make_city_like(600)
X = (X / 4000).round() * 4  # km, to the centres of districts of 4 km: equal places are summed up

axis = np.linspace(490.0, 570.0, 13), np.linspace(140.0, 220.0, 13)
places = np.stack(np.meshgrid(*axis), axis=-1).reshape(-1, 2)
plan = cloakgp.AutoGP(bounds=(50_000, 600_000), stages=4).plan(X, places, epsilon=2.0, delta=1e-4)
release = plan.release(y)

# %%
# Colour is the price, and areas shrink where little is known.

ax = plot_map(release)
ax.set(xlabel="easting in km", ylabel="northing in km", aspect="equal")

# %%
# How sure the map is, in the centre and at the edge, and why: what privacy adds, and what would stay
# unknown without it.

why = release.uncertainty([[530.0, 180.0], [492.0, 218.0]])
for name, privacy, total in zip(("centre", "edge"), why.privacy, np.hypot(why.privacy, why.gp), strict=True):
    print(f"{name:>6}: std {total / 1000:.0f} thousand, of which privacy {privacy / 1000:.0f}")
