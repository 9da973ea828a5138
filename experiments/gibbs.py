"""Longer lengthscales where data are sparse: the privacy noise there, and what it does to the error.

    CLOAKGP_DATA=folder python experiments/gibbs.py [--splits 60]

The paper suggests "fine lengthscales where data is common and expansive scales where data is rarefied",
which "could lead to DP noise which remains largely constant". Here heights of the !Kung women are predicted
from age by an EQ kernel, and by a Gibbs kernel whose lengthscale is the EQ's where ages are common and up to
2 or 4 times that where they are rare. A control has the longer lengthscale everywhere: what it gains, too, is
not owed to lengthscales that differ. The last row has the EQ kernel with ``downweight="leverage"``.

The lengthscale follows from X alone, and so is public: at knots every 5 years it is the EQ's times d(x) /
median d, cut to between 1 and 2 or 4, where d(x) is the distance to the 20th nearest row. The other settings
are those of ``downweighting.py``, and so are the splits. "sparse" are the 10 % of the held-out rows with the
largest d(x). "ratio" is the std of the noise there over that at the others: 1 is noise that is constant.

Errors are exact over the privacy noise, as in ``downweighting.py``; nothing is drawn but the splits. The
folder holds howell1.csv; without it, generated look-alikes are used and the tables say so.
"""

from __future__ import annotations

import argparse

import numpy as np
from downweighting import kung, squared_errors, summed

import cloakgp
from cloakgp.kernels import EQ, Constant, Gibbs

DELTA, EPSILONS, DESIGNS = 0.01, (1.0, 0.2), ("mse", "posterior")
NEIGHBOURS, SPARSE = 20, 0.1
KNOTS = np.arange(0.0, 91.0, 5.0)


def rarity(X, places):
    """Distance to the 20th nearest row, over its median among rows."""

    def reach(places):
        return np.sort(np.abs(places[:, None] - X[None, :, 0]), axis=1)[:, NEIGHBOURS - 1]

    return reach(places) / np.median(reach(X[:, 0]))


def models(base, variance, X):
    """By name: a kernel, and whether lone rows are downweighted."""
    rare = rarity(X, KNOTS)
    knots = {most: (KNOTS, base * np.clip(rare, 1.0, most)) for most in (2, 4)}
    return {
        f"EQ, {base:g} years": (EQ(base, variance=variance), None),
        f"Gibbs, {base:g} to {2 * base:g}": (Gibbs(knots[2], variance=variance), None),
        f"Gibbs, {base:g} to {4 * base:g}": (Gibbs(knots[4], variance=variance), None),
        f"EQ, {2 * base:g} years": (EQ(2 * base, variance=variance), None),
        f"EQ, {base:g}, downweighted": (EQ(base, variance=variance), "leverage"),
    }


def one_split(study, base, variance, level, number):
    """By model: squared errors without privacy; by design and epsilon noise variances and squared errors."""
    rows = np.random.default_rng([0, number]).permutation(len(study.X))
    test, train = rows[: study.n_test], rows[study.n_test : study.n_test + study.n_train]
    y = np.clip(study.y, *study.settings["bounds"])
    rare = rarity(study.X[train], study.X[test, 0])
    sparse = rare >= np.quantile(rare, 1 - SPARSE)
    found = {}
    for name, (kernel, rule) in models(base, variance, study.X[train]).items():
        kernel = kernel + Constant(level) if level else kernel
        settings = study.settings | {"kernel": kernel, "downweight": rule}
        gp = cloakgp.GP(**settings)
        planner = gp.planner(study.X[train], X_star=study.X[test])
        exact = gp.mean + planner.smoother.columns(slice(None)) @ summed(planner, y[train] - gp.mean)
        found[name, "no privacy"] = (exact - y[test]) ** 2
        for design in DESIGNS:
            for epsilon in EPSILONS:
                plan = planner.plan(epsilon=epsilon, delta=DELTA, design=design)
                errors = squared_errors(planner, plan, y[train], y[test])
                found[name, design, epsilon, "noise"] = plan.noise_std**2
                found[name, design, epsilon, "released"] = errors["released"]
    return found, sparse


def rms(splits, key, where=None):
    """Over all held-out rows, the sparse ones (True) or the others (False)."""
    values = [found[key] if where is None else found[key][sparse == where] for found, sparse in splits]
    return np.sqrt(np.mean(np.concatenate(values)))


def run(base, std, level, n_splits):
    study = kung(None, std, f"base lengthscale {base:g} years" + " and a constant" * bool(level))
    splits = [one_split(study, base, std**2, level, number) for number in range(n_splits)]
    print(f"\n{study.words}; {n_splits} splits of {study.n_train} + {study.n_test}; in {study.unit}\n")
    names = dict.fromkeys(name for name, *_ in splits[0][0])
    print(f"{'no privacy':26}{'RMSE':>8}{'sparse':>8}")
    for name in names:
        key = (name, "no privacy")
        print(f"{name:26}{rms(splits, key):8.1f}{rms(splits, key, True):8.1f}")
    for design in DESIGNS:
        print(f"\n{design:26}" + "".join(f"{f'eps = {epsilon:g}':>38}" for epsilon in EPSILONS))
        print(f"{'':26}" + f"{'noise':>8}{'sparse':>8}{'ratio':>6}{'RMSE':>8}{'sparse':>8}" * len(EPSILONS))
        for name in names:
            print(f"{name:26}" + "".join(cells(splits, name, design, epsilon) for epsilon in EPSILONS))


def cells(splits, name, design, epsilon):
    noise, errors = (name, design, epsilon, "noise"), (name, design, epsilon, "released")
    ratio = rms(splits, noise, True) / rms(splits, noise, False)
    return (
        f"{rms(splits, noise):8.1f}{rms(splits, noise, True):8.1f}{ratio:6.1f}"
        f"{rms(splits, errors):8.1f}{rms(splits, errors, True):8.1f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=60)
    n_splits = parser.parse_args().splits
    run(25.0, 25.74, 0.0, n_splits)
    run(10.0, 25.9, 25.9**2, n_splits)
