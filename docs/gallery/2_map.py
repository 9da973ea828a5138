"""
A map of prices
===============

You hold what homes were sold for, and want a map. Places are public, prices are not. Six hundred sales crowd
around a city, and few are far out: there the map must say that it does not know.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import cloakgp
from cloakgp.datasets import make_city_like
from cloakgp.plots import plot_map

X, price = make_city_like(600)
km = (X / 4000).round() * 4  # districts of 4 km: equal places are summed
homes = pd.DataFrame({"easting": km[:, 0], "northing": km[:, 1]})
columns = cloakgp.Columns.of(homes, units={"easting": "km", "northing": "km"}, response="price")

axis = np.linspace(490.0, 570.0, 13), np.linspace(140.0, 220.0, 13)
places = np.stack(np.meshgrid(*axis), axis=-1).reshape(-1, 2)
gp = cloakgp.AutoGP(bounds=(50_000, 600_000), stages=4)
release = gp.plan(homes, X_star=places, epsilon=2.0, delta=1e-4, columns=columns).release(price)

# %%
# The map, and how sure it is. Nothing is shown where hardly more is known than before.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
for ax, view in zip(axes, ("prediction", "uncertainty"), strict=True):
    plot_map(release.labelled(units="£", title=view), ax, view=view)

# %%
# In the centre and at the edge, and why: what privacy adds, and what would stay unknown without it.

why = release.uncertainty([[530.0, 180.0], [492.0, 218.0]])
for name, privacy, gp_std in zip(("centre", "edge"), why.privacy, why.gp, strict=True):
    print(f"{name:>6}: privacy £{privacy:,.0f}, without privacy £{gp_std:,.0f}")
