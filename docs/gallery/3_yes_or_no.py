"""
Yes or no
=========

You hold who was in hospital last year, and want to publish how likely that is by age. A regression of
zeros and ones can leave the range from 0 to 1; a model of yes and no cannot.
"""

import matplotlib.pyplot as plt
import numpy as np

import cloakgp

rng = np.random.default_rng(0)
X = rng.uniform(18, 90, size=(800, 1)).round()  # ages
chance = 0.03 + 0.35 / (1 + np.exp(-(X[:, 0] - 65) / 6))  # what nobody knows
y = rng.uniform(size=800) < chance

ages = np.arange(20.0, 90.0, 5.0)
plan = cloakgp.AutoGP(outcome="yes/no").plan(X, X_star=ages, epsilon=1.0, delta=1e-4)
release = plan.release(y)

# %%
# Intervals are quantiles, and stay between 0 and 1.

low, high = release.interval(ages, level=0.95).T
figure, ax = plt.subplots(layout="constrained")
ax.fill_between(ages, low, high, alpha=0.25, label="95 % interval")
ax.plot(ages, release.predict(ages), label="released")
ax.plot(ages, 0.03 + 0.35 / (1 + np.exp(-(ages - 65) / 6)), "--", color="grey", label="truth")
ax.set(xlabel="age in years", ylabel="chance of a stay in hospital", ylim=(0, None))
ax.legend(frameon=False)
