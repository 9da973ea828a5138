"""
A million rows
==============

A census has a million people, but ages are few: rows with the same age are summed before anything else,
exactly, and planning takes what the distinct ages take. Each row still moves one sum only, so the
promise is to each of the million.
"""

import time

import numpy as np

import cloakgp
from cloakgp.datasets import make_kung_like
from cloakgp.plots import plot_release

X, y = make_kung_like(1_000_000)  # ages to a tenth of a year
print(f"{len(X):,} rows, {len(np.unique(X))} distinct ages")

start = time.perf_counter()
plan = cloakgp.AutoGP(bounds=(0, 250)).plan(X, X_star=np.arange(0.0, 86.0, 2.5), epsilon=0.5, delta=1e-8)
release = plan.release(y)
print(f"planned and released in {time.perf_counter() - start:.1f} s")

# %%
# With so many rows, privacy at ε = 0.5 costs next to nothing: the band is hardly wider than the line.

ax = plot_release(release)
ax.set(xlabel="age in years", ylabel="height in cm")
print(f"largest std {release.predict(np.arange(0.0, 86.0), return_std=True)[1].max():.2f} cm")

# %%
# Where inputs are all different, rows are put into cells, or inducing inputs stand for them, and tables
# larger than memory are read in chunks: see *Large data* among the guides.
