"""What an attacker who knows everything but one outcome can find out, by (epsilon, delta).

    python experiments/attack_success.py

The attacker knows every row but one outcome, which is one of two values, and sees the release. By Neyman and
Pearson's lemma no test beats the one on the likelihood ratio of two Gaussians that are mu apart, mu being
what Gaussian noise may have at (epsilon, delta): with false alarms at a rate f it finds the truth at the rate
Phi(Phi^-1(f) + mu). Where the two values are only a share of the bounds' width apart, so is mu. Noise on a
lattice changes this by less than 1e-12 (lemma 2 of the proofs). Nothing is drawn at random.
"""

from __future__ import annotations

from statistics import NormalDist

from cloakgp.core.calibration import calibrate

PROMISES = [
    (0.1, 1e-6),
    (0.5, 1e-6),
    (1.0, 1e-2),
    (1.0, 1e-4),
    (1.0, 1e-6),
    (2.0, 1e-6),
    (5.0, 1e-6),
    (10.0, 1e-6),
]
SHARES = (1.0, 0.5, 0.2, 0.1)


def found(mu: float, false_alarms: float) -> float:
    """How often the best test finds the truth, with so many false alarms."""
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(false_alarms) + mu)


def main() -> None:
    print("Truth found by the best test, outcomes as far apart as the bounds")
    print("epsilon    delta     mu   1 % false alarms  50 % false alarms  one guess of two")
    for epsilon, delta in PROMISES:
        mu = calibrate(epsilon, delta)
        rates = (found(mu, 0.01), found(mu, 0.5), NormalDist().cdf(mu / 2))
        print(f"{epsilon:7} {delta:8.0e} {mu:6.2f} {rates[0]:17.1%} {rates[1]:18.1%} {rates[2]:17.1%}")
    print()
    print("At epsilon 1, delta 1e-6, by how far apart the two outcomes are")
    print("share of the bounds' width   1 % false alarms  50 % false alarms  one guess of two")
    mu = calibrate(1.0, 1e-6)
    for share in SHARES:
        rates = (found(share * mu, 0.01), found(share * mu, 0.5), NormalDist().cdf(share * mu / 2))
        print(f"{share:26.0%} {rates[0]:18.1%} {rates[1]:18.1%} {rates[2]:17.1%}")


if __name__ == "__main__":
    main()
