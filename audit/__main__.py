"""Audit every mechanism, and print the table of `docs/audit.md`.

    python -m audit
    python -m audit --rehearse 500

It fails if a lower bound on epsilon is above the promise, or if halved noise goes unnoticed. `--rehearse`
audits simulated noise instead, many times, and tells how often noise of a wrong size would be noticed.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import dp_accounting
import numpy as np
from jax_privacy.auditing import CanaryScoreAuditor, Split

from audit.attack import Attack, attack_on, draw
from audit.mechanisms import MECHANISMS
from cloakgp.core import accounting
from cloakgp.core.progress import Progress

DRAWS = 6000  # of each neighbour
SIGNIFICANCE = 1e-4  # of each bound
RIGHT, HALVED = 1.0, 0.5
STRATEGY = Split(threshold_estimation_frac=0.2, seed=0)
"""A fifth of the draws choose the threshold, the others are counted: so it needs no correction."""
_BATCH = 500
_ROUNDING = 1e-3  # of epsilons that two tools compute
_SIZES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
_REHEARSED = ("predictions, design mse", "bins, laplace noise", "selection, squared loss")


def lower_bound(scores: tuple[np.ndarray, np.ndarray], delta: float) -> float:
    """The auditor's word: epsilon is at least this, with confidence 1 - SIGNIFICANCE."""
    auditor = CanaryScoreAuditor(in_canary_scores=scores[1], out_canary_scores=scores[0])
    bound = auditor.epsilon_clopper_pearson(SIGNIFICANCE, delta, one_sided=False, threshold_strategy=STRATEGY)
    return float(bound)


def reachable(attack: Attack) -> float:
    """The epsilon that endless draws of this pair would show, if the noise is as the plan says."""
    if not isinstance(attack.mechanism.plan.cost, accounting.Gaussian):
        return attack.strength
    return float(dp_accounting.get_epsilon_gaussian(1 / attack.strength, attack.mechanism.delta))


def all_scores(names: list[str], n: int, workers: int | None) -> dict[tuple[str, float, int], np.ndarray]:
    """Scores of `n` releases by mechanism, size of the noise, and neighbour."""
    keys = [(name, times, which) for name in names for times in (RIGHT, HALVED) for which in (0, 1)]
    sizes = {name: _batches(n // attack_on(name).mechanism.fewer) for name in names}
    parts: dict[tuple[str, float, int], list[np.ndarray]] = {key: [] for key in keys}
    # Fresh processes rather than forks: jax has threads.
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        jobs = {pool.submit(draw, *key, size): key for key in keys for size in sizes[key[0]]}
        with Progress("releasing", len(jobs)) as progress:
            for job in as_completed(jobs):
                parts[jobs[job]].append(job.result())
                progress.advance()
    return {key: np.concatenate(part) for key, part in parts.items()}


def _batches(n: int) -> list[int]:
    return [min(_BATCH, n - start) for start in range(0, n, _BATCH)]


def audit(names: list[str], n: int, workers: int | None) -> list[str]:
    """Print the table; what is wrong comes back."""
    scores = all_scores(names, n, workers)
    wrong = []
    print("| mechanism | claimed ε | δ | reachable | lower bound | with noise halved | caught |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        attack = attack_on(name)
        claimed, delta, most = attack.mechanism.epsilon, attack.mechanism.delta, reachable(attack)
        bound, halved = (
            lower_bound((scores[name, times, 0], scores[name, times, 1]), delta) for times in (RIGHT, HALVED)
        )
        caught = "yes" if halved > claimed else "NO"
        print(f"| {name} | {claimed:g} | {delta:g} | {most:.2f} | {bound:.2f} | {halved:.2f} | {caught} |")
        if bound > claimed:
            wrong.append(f"{name}: releases show an epsilon of at least {bound:.2f}, above the promise.")
        if most > claimed * (1 + _ROUNDING):
            wrong.append(f"{name}: the plan's noise is too small: it allows an epsilon of {most:.4f}.")
        if halved <= claimed:
            wrong.append(f"{name}: halved noise was not noticed, so this audit would miss much.")
    print(
        f"\n{n} releases of each neighbour, half as many in stages, a quarter of whole rows. "
        f"Each lower bound holds with probability {1 - SIGNIFICANCE:.2%}, all {len(names)} together with "
        f"{1 - len(names) * SIGNIFICANCE:.1%}."
    )
    return wrong


def simulated(
    attack: Attack, times: float, n: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of ideal releases of either neighbour, with noise of `times` the right size."""
    kind = type(attack.mechanism.plan.cost)
    if kind is accounting.Exponential:
        odds = [p ** (1 / times) for p in attack.probabilities]
        drawn = [random.choice(len(p), size=(n, 1), p=p / p.sum()) for p in odds]
        return attack.score(drawn[0]), attack.score(drawn[1])
    # In integers, as in a release. The auditor accuses noise in floating point, and is right: its last digits
    # tell neighbours apart (Mironov 2012).
    move = 2**30
    noise = (random.laplace if kind is accounting.Laplace else random.normal)(size=(2, n))
    first, second = np.rint(noise * times * move / attack.strength) + np.array([[0.0], [move]])
    if kind is accounting.Laplace:
        return np.abs(first) - np.abs(first - move), np.abs(second) - np.abs(second - move)
    return first, second


def rehearse(n: int, repeats: int) -> None:
    """Print how often noise of each size is noticed; of the right size, how often it is accused."""
    random = np.random.default_rng(0)
    print("| noise, times the right one | " + " | ".join(_REHEARSED) + " |")
    print("|---|" + "---|" * len(_REHEARSED))
    with Progress("rehearsing", len(_SIZES) * len(_REHEARSED) * repeats) as progress:
        for times in _SIZES:
            shares = []
            for name in _REHEARSED:
                attack, noticed = attack_on(name), 0
                for _ in range(repeats):
                    scores = simulated(attack, times, n, random)
                    noticed += lower_bound(scores, attack.mechanism.delta) > attack.mechanism.epsilon
                    progress.advance()
                shares.append(f"{noticed / repeats:.1%}")
            print(f"| {times:g} | " + " | ".join(shares) + " |")
    print(f"\nShare of {repeats} simulated audits, with {n} releases of each neighbour, that raise an alarm.")


def main() -> None:
    parser = argparse.ArgumentParser(prog="audit", description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"releases of each neighbour ({DRAWS})")
    parser.add_argument("--only", default="", metavar="WORD", help="mechanisms with this word in their name")
    parser.add_argument("--workers", type=int, help="processes (one for each core)")
    parser.add_argument("--rehearse", type=int, metavar="TIMES", help="audit simulated noise, so many times")
    options = parser.parse_args()
    if options.rehearse:
        rehearse(options.draws, options.rehearse)
        return
    wrong = audit([name for name in MECHANISMS if options.only in name], options.draws, options.workers)
    if wrong:
        sys.exit("\n".join(["", "FAILED:", *wrong]))


if __name__ == "__main__":
    main()
