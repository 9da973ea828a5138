"""
Three hospitals, one map
========================

Three hospitals have patients of their own, and none may hand data to another. Each publishes a file
under its own promise; a reader combines the files. Nothing but files ever travels.
"""

import matplotlib.pyplot as plt
import numpy as np

import cloakgp
from cloakgp.kernels import EQ, Constant


def pressure(X):  # what nobody knows: blood pressure by place, in a square of 20 km
    return 128 + 8 * np.sin(X[:, 0] / 4) + 6 * np.cos(X[:, 1] / 5)


def hospital(seed, centre, n=300):  # homes and outcomes of its own patients
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(centre, 5.0, size=(n, 2)), 0, 20).round(1)
    return X, pressure(X) + 12 * rng.normal(size=n)


kernel = EQ(5.0, variance=8.0**2) + Constant(10.0**2)  # agreed on beforehand
model = cloakgp.GP(kernel, noise=12.0**2, bounds=(80.0, 180.0))
axis = np.linspace(0, 20, 15)
places = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
centres = {"north": (10, 15), "west": (5, 6), "east": (15, 6)}
files = {}
for seed, (name, centre) in enumerate(centres.items()):
    X, y = hospital(seed, centre)
    plan = model.plan(X, X_star=places[::3], epsilon=1.0, delta=1e-4, design="posterior")
    plan.release(y).save(f"{name}.cloak")
    files[name] = cloakgp.load(f"{name}.cloak")

# %%
# What the reader does with the files: `same_data=False` says that they are about different people.

together = cloakgp.combine(list(files.values()), same_data=False)

# %%
# Each hospital knows its own surroundings. All of them together know more than any one, everywhere.

figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained", sharey=True)
for ax, (name, one) in zip(axes, (files | {"together": together}).items(), strict=True):
    std = one.predict(places, return_std=True)[1].reshape(15, 15)
    shades = ax.pcolormesh(axis, axis, std, vmin=2, vmax=11, shading="gouraud")
    ax.set(title=f"{name}: {std.mean():.1f} on average", aspect="equal", xlabel="km")
figure.colorbar(shades, ax=axes, label="std of the map, mmHg")
