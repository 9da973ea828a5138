"""The old place of the posterior; it is :class:`cloakgp.Posterior` now."""

from cloakgp.posterior.conditioning import Posterior, Uncertainty

__all__ = ["Posterior", "Uncertainty"]
