"""What is suggested to begin with, to people on the pages and to programs; all from public knowledge."""

from __future__ import annotations

from typing import Final

EPSILON = 1.0
MODEL: Final = "learn"
DESIGN: Final = "mse"
KIND: Final = "predictions"
FAMILY = "EQ"
"""Of kernels."""
LENGTHSCALE = 1 / 4
"""As a share of an input's range."""
SPREAD, SCATTER = 1 / 4, 1 / 8
"""Std of the curve, and of single outcomes around it, as shares of the bounds' width."""
LATENT_SPREAD, LATENT_LEVEL = 0.7, 2.0
"""Where outcomes are no real numbers: std of f behind probabilities or rates, and variance of its level."""
POINTS_PER_AXIS = (100, 15, 6, 3)
"""Of a grid over one, two, three, or more inputs."""
INDUCING = 200
"""Inducing inputs, for tables that need them."""
CELLS = 40
"""Of a private input's range."""
