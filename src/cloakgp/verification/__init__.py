"""Check a release file without trusting the program that made it.

:mod:`~cloakgp.verification.guarantee` works the promise out again from the file's integers alone, in exact
arithmetic and with its own formula for delta; none of the code that planned or measured is used for that.
:mod:`~cloakgp.verification.replay` then makes what was made from those integers again, from the
model in the file, with the library's GP.
:mod:`~cloakgp.verification.reasons` lists every reason to refuse a file.

What no reader of the file can see: whether y was the real data, whether the noise was really
drawn at random, and what else was released about the same people. A signature says who vouches.
"""

from cloakgp.verification.checked import Verification, verify
from cloakgp.verification.reasons import VerificationError

__all__ = ["Verification", "VerificationError", "verify"]
