"""
Heights by age
==============

You hold the heights of 287 people and want to publish how height depends on age. Nothing is known
beforehand but that heights lie between 0 and 250 cm; the rest is learned, under one promise.
"""

import numpy as np

import cloakgp
from cloakgp.datasets import make_kung_like
from cloakgp.plots import plot_release

X, y = make_kung_like()  # ages in years, heights in cm

# %%
# Plan first. A plan never sees `y`, so look at the error to be expected as often as you like.

ages = np.arange(0.0, 86.0, 2.5)
plan = cloakgp.AutoGP(bounds=(0, 250)).plan(X, X_star=ages, epsilon=1.0, delta=1e-4)
for age in (0, 10, 40, 80):
    print(f"age {age:2}: expected error {np.interp(age, ages, plan.expected_error):.1f} cm")

# %%
# Then the one private step. The band is what readers do not know: privacy noise and model together.

release = plan.release(y)
ax = plot_release(release)
ax.set(xlabel="age in years", ylabel="height in cm")

# %%
# Anybody who has the file can check the promise, and predict wherever they like, for nothing.

release.save("heights.cloak")
print(cloakgp.verify("heights.cloak"))
mean, std = cloakgp.load("heights.cloak").predict([12.5, 33.0], return_std=True)
print(mean.round(1), std.round(1))
