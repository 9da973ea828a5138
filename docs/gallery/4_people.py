"""
People with several rows
========================

Each of 200 people was measured three times, a few years apart. Hiding one row of them is not enough:
whoever looks for a person finds three rows at once. `people=` makes the promise to each person, with all
rows.
"""

import numpy as np

import cloakgp
from cloakgp.plots import plot_release

rng = np.random.default_rng(0)
patient = np.repeat(np.arange(200), 3)
age = np.repeat(rng.uniform(20, 70, 200), 3) + np.tile([0.0, 3.0, 6.0], 200)
level = np.repeat(6 * rng.normal(size=200), 3)  # people differ, and stay themselves
pressure = 105 + 0.5 * age + level + 4 * rng.normal(size=600)

gp = cloakgp.AutoGP(bounds=(60, 220), stages=3)
ages = np.arange(20.0, 77.0, 4.0)
plans = {
    "each row": gp.plan(age, X_star=ages, epsilon=1.0, delta=1e-4),
    "each person": gp.plan(age, X_star=ages, epsilon=1.0, delta=1e-4, people=patient),
}

# %%
# What it costs can be seen beforehand, from who has which rows and from nothing else.

for name, plan in plans.items():
    error = np.sqrt(np.mean(plan.expected_error**2))
    print(f"{name:>11}: expected error {error:.1f} mmHg (unit: {plan.unit})")

# %%
# The release, and its file, say whom they protect.

release = plans["each person"].release(pressure)
ax = plot_release(release)
ax.set(xlabel="age in years", ylabel="blood pressure in mmHg")
