"""L-BFGS (Nocedal & Wright 2006, algorithm 7.4) with backtracking, on numpy or torch.

SciPy's would do, but its BLAS is another library than numpy's, so that two sets of threads
fight for the same cores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from cloakgp.model.arrays import Array

Pairs = deque[tuple[Array, Array, Array]]  # and the product of the two


def minimise(
    function: Callable[[Array], tuple[float, Array]],
    x: Array,
    *,
    first_step: float,
    done: Callable[[], bool],
    evaluations: int,
) -> None:
    """Walk downhill from `x` until `done()`, no progress, or so many evaluations.

    `function` returns value and gradient, and remembers what its caller needs.
    """
    value, gradient = function(x)
    pairs: Pairs = deque(maxlen=15)
    evaluations -= 1
    while evaluations > 0 and not done():
        direction = -_apply_inverse_hessian(gradient, pairs, first_step)
        slope = float(direction @ gradient)
        if not slope < 0:  # also when it is NaN
            return
        step = 1.0
        while True:
            ahead = x + step * direction
            new_value, new_gradient = function(ahead)
            evaluations -= 1
            if new_value <= value + 1e-4 * step * slope or evaluations <= 0:  # Armijo's condition
                break
            step /= 2
            if step < 1e-10:
                return
        moved, bent = ahead - x, new_gradient - gradient
        if (curved := moved @ bent) > 1e-12 * first_step * float(bent @ bent):
            pairs.append((moved, bent, curved))
        x, value, gradient = ahead, new_value, new_gradient


def _apply_inverse_hessian(gradient: Array, pairs: Pairs, first_step: float) -> Array:
    """The two-loop recursion."""
    if not pairs:
        return first_step * gradient
    result = 1.0 * gradient  # a copy
    shares = []
    for moved, bent, curved in reversed(pairs):
        share = (moved @ result) / curved
        result -= share * bent
        shares.append(share)
    _, bent, curved = pairs[-1]
    result *= curved / (bent @ bent)
    for (moved, bent, curved), share in zip(pairs, reversed(shares), strict=True):
        result += (share - (bent @ result) / curved) * moved
    return result
