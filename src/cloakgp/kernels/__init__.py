"""Kernels: k(X, Z) says how alike the outcomes at inputs X and Z are, before any outcome is seen.

A kernel is a small frozen value. It is built from public numbers, compares and hashes by those
numbers, prints as the Python that rebuilds it, and is stored as plain JSON (:meth:`Kernel.to_spec`,
:func:`from_spec`), never as a pickle. Kernels add and multiply with ``+`` and ``*``, and any function
``k(X, Z)`` can take part; scikit-learn's kernels become kernels of this package (:func:`as_kernel`).
:class:`Integral` takes means over boxes, as observed in bins, and relates them to each other and to points.

The arithmetic follows the array API standard, so inputs may be numpy arrays or torch tensors, and the
kernel matrix comes back as the same kind. Distances are summed from coordinate differences, never
expanded as |x|² + |z|² − 2 x·z: the matrix is then exactly symmetric and its diagonal exact.
"""

from cloakgp.kernels.base import KINDS as KINDS
from cloakgp.kernels.base import MAX_DEPTH as MAX_DEPTH
from cloakgp.kernels.base import Constant as Constant
from cloakgp.kernels.base import Custom as Custom
from cloakgp.kernels.base import Kernel as Kernel
from cloakgp.kernels.base import Product as Product
from cloakgp.kernels.base import Sum as Sum
from cloakgp.kernels.base import as_kernel as as_kernel
from cloakgp.kernels.families import EQ as EQ
from cloakgp.kernels.families import Category as Category
from cloakgp.kernels.families import Linear as Linear
from cloakgp.kernels.families import Matern as Matern
from cloakgp.kernels.families import Matern12 as Matern12
from cloakgp.kernels.families import Matern32 as Matern32
from cloakgp.kernels.families import Matern52 as Matern52
from cloakgp.kernels.families import Periodic as Periodic
from cloakgp.kernels.families import Polynomial as Polynomial
from cloakgp.kernels.families import RationalQuadratic as RationalQuadratic
from cloakgp.kernels.families import Stationary as Stationary
from cloakgp.kernels.gibbs import Gibbs as Gibbs
from cloakgp.kernels.integral import Boxes as Boxes
from cloakgp.kernels.integral import Integral as Integral
from cloakgp.kernels.integral import Points as Points
from cloakgp.kernels.specs import from_spec as from_spec
from cloakgp.kernels.specs import parse as parse
