"""What to measure: from the public matrix C to the noise that hides one row of y best.

Every design chooses the shape M of the noise that is added to the predictions C y, as small as
it can under ``c_i' M^-1 c_i <= 1`` for every column c_i of C. Privacy never rests on a design:
:mod:`cloakgp.measure.measurement` scales the noise to the measurements that are really used. A poor design
costs accuracy, and its certified gap says how much at most.
"""

from cloakgp.designs.solution import Solution
from cloakgp.designs.solve import DENOISED, DESIGNS, LARGEST, MEAN, ROUGH, VOLUME, DesignName, solve

__all__ = ["DENOISED", "DESIGNS", "LARGEST", "MEAN", "ROUGH", "VOLUME", "DesignName", "Solution", "solve"]
