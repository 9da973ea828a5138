"""What a user could take instead: small versions of published methods, for `comparison.py`.

Each takes inputs that are scaled to [-1, 1] by a public box, categories as indicators, and outcomes in
public bounds. Neighbours differ by one outcome, or by one whole row that is replaced by another.

* Randomised response on bins: Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan, Zhang, "Regression with
  label differential privacy", ICLR 2023, algorithms 1 to 3. Every outcome is randomised once; a learner of
  one's choice sees only these. For yes/no it is Warner's randomised response.
* AdaSSP: Wang, "Revisiting differentially private linear regression", UAI 2018, algorithm 2, with noise
  calibrated exactly (Balle & Wang 2018) and composed as Gaussians, which is better than as printed.
* A learner: ridge regression on Nystroem features of an EQ kernel, a GP's mean with inducing inputs.

For experiments only: noise comes from numpy's generator, in floating point.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV

from cloakgp.core.calibration import calibrate

LENGTHSCALES = (0.06, 0.12, 0.25, 0.5, 1.0, 2.0)
CELLS = 32  # of the histogram of outcomes
HISTOGRAM = 0.2  # its share of epsilon


def smooth(X, y, X_test, most=5000):
    """A learner without privacy: lengthscale and ridge by leave-one-out errors of `most` rows at most."""
    few = np.random.default_rng(0).permutation(len(X))[:most]
    found = []
    for lengthscale in LENGTHSCALES:
        features = Nystroem(gamma=0.5 / lengthscale**2, n_components=min(200, len(X)), random_state=0)
        ridge = RidgeCV(np.logspace(-3, 4, 8)).fit(features.fit_transform(X[few]), y[few])
        found.append((ridge.best_score_, features, ridge.alpha_))
    _, features, alpha = max(found, key=lambda one: one[0])
    ridge = RidgeCV([alpha]).fit(features.transform(X), y)
    return ridge.predict(features.transform(X_test))


def best_bins(values, p, epsilon):
    """Cuts and answers of the randomised response on bins that has the least expected squared error.

    Algorithm 2: for each interval of outcomes the best single answer, given that the others are answered now
    and then as well; then the best division into k intervals, for every k, by dynamic programming.
    """
    n = len(values)
    moments = [np.concatenate([[0.0], np.cumsum(p * values**power)]) for power in (0, 1, 2)]
    more = np.expm1(epsilon)

    def cost(i, j):
        """Of outcomes i to j - 1 in one bin: loss, and the answer."""
        weight, first, second = (all_of[-1] + more * (all_of[j] - all_of[i]) for all_of in moments)
        return second - first**2 / weight, first / weight

    best, back = np.full((n + 1, n + 1), np.inf), np.zeros((n + 1, n + 1), dtype=int)
    best[0, 0] = 0.0  # best[j, k]: outcomes before j in k bins
    costs = np.array([[cost(i, j)[0] if i < j else np.inf for j in range(n + 1)] for i in range(n + 1)])
    for k in range(1, n + 1):
        for j in range(k, n + 1):
            tried = best[:j, k - 1] + costs[:j, j]
            back[j, k] = int(np.argmin(tried))
            best[j, k] = tried[back[j, k]]
    k = 1 + int(np.argmin([best[n, k] / (more + k) for k in range(1, n + 1)]))
    cuts, j = [n], n
    for number in range(k, 0, -1):
        j = back[j, number]
        cuts.append(j)
    cuts = cuts[::-1]
    answers = np.array([cost(i, j)[1] for i, j in pairwise(cuts)])
    masses = [moments[0][j] - moments[0][i] for i, j in pairwise(cuts)]
    sums = [moments[1][j] - moments[1][i] for i, j in pairwise(cuts)]
    means = np.array([s / m if m > 0 else a for s, m, a in zip(sums, masses, answers, strict=True)])
    return cuts, answers, means


def randomise(y, bounds, epsilon, rng):
    """Outcomes after randomised response on bins, as published and corrected for its bias.

    Algorithm 3: part of epsilon is for a histogram, by which the bins are chosen. The correction is free: the
    chance of an honest answer is public, so answers can be stretched until bins have the right mean.
    """
    low, high = bounds
    edges = np.linspace(low, high, CELLS + 1)
    cell = np.clip(np.searchsorted(edges, y, side="right") - 1, 0, CELLS - 1)
    counts = np.bincount(cell, minlength=CELLS) + rng.laplace(scale=2 / (HISTOGRAM * epsilon), size=CELLS)
    p = np.maximum(counts, 0.0)
    p = p / p.sum() if p.sum() > 0 else np.full(CELLS, 1 / CELLS)
    rest = (1 - HISTOGRAM) * epsilon
    cuts, answers, means = best_bins((edges[:-1] + edges[1:]) / 2, p, rest)
    k = len(answers)
    honest = np.expm1(rest) / (np.exp(rest) + k - 1)
    said = np.searchsorted(cuts[1:-1], cell, side="right")
    said = np.where(rng.uniform(size=len(y)) < honest, said, rng.integers(k, size=len(y)))
    return answers[said], ((means - (1 - honest) * means.mean()) / honest)[said]


def flipped(y, epsilon, rng):
    """Yes/no outcomes after Warner's randomised response, corrected for its bias."""
    flip = 1 / (1 + np.exp(epsilon))
    told = np.where(rng.uniform(size=len(y)) < flip, 1 - y, y)
    return (told - flip) / (1 - 2 * flip)


def linear(X, y, X_test, bounds, epsilon, delta, rng, whole_rows):
    """Linear regression by noisy sums: AdaSSP, or with exact squares of the inputs where these are public."""
    low, high = bounds
    X, X_test = (np.column_stack([np.ones(len(A)), A]) for A in (X, X_test))
    d, width, middle = X.shape[1], high - low, (low + high) / 2
    square = float(d)  # every entry is within [-1, 1]
    mu = calibrate(epsilon, delta) / np.sqrt(3 if whole_rows else 1)
    gram, moments = X.T @ X, X.T @ (np.clip(y, low, high) - middle)
    moments = moments + rng.normal(scale=np.sqrt(square) * width / mu, size=d)
    least = np.linalg.eigvalsh(gram)[0]
    if whole_rows:
        noise = np.triu(rng.normal(scale=np.sqrt(2) * square / mu, size=(d, d)))
        gram = gram + noise + np.triu(noise, 1).T
        least += square / mu * (rng.normal() - 1.645)  # below the truth with a chance of 95 %
    ridge = max(0.0, square / mu * np.sqrt(d * np.log(2 * d**2 / 0.05)) - max(least, 0.0))
    weights = np.linalg.solve(gram + ridge * np.eye(d), moments)
    return middle + X_test @ weights
