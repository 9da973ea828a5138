"""Publish Gaussian-process regressions of private outcomes under differential privacy.

A plan is public, a release is private, a prediction is free::

    gp = cloakgp.GP(kernel=EQ(25.0, variance=662.5), noise=199.0, bounds=(58.0, 158.0))
    plan = gp.plan(X, X_star, epsilon=1.0, delta=0.01)     # no y: look at plan.noise_std
    release = plan.release(y)                              # the one private step
    release.save("heights.cloak")
    cloakgp.verify("heights.cloak")                        # anyone can check the promise
"""

from cloakgp import kernels, testing
from cloakgp.certificate import Certificate
from cloakgp.container import ReleaseFileError
from cloakgp.gp import GP
from cloakgp.plan import Plan
from cloakgp.release import Release
from cloakgp.signing import SignatureError
from cloakgp.verify import Verification, VerificationError, verify

__version__ = "0.1.0"

__all__ = [
    "GP",
    "Certificate",
    "Plan",
    "Release",
    "ReleaseFileError",
    "SignatureError",
    "Verification",
    "VerificationError",
    "kernels",
    "testing",
    "verify",
]
