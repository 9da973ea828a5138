"""Cross-validation without y: which rows train, which are tested, and the weights between them.

In a fold, the tested outcomes are predicted by ``mean + C (y[train] - mean)`` with a public matrix C.
Folds may depend on X, never on y: no stratifying.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.model.smoothers import Rows, check_covariance, gentle_cholesky, kernel_matrix
from cloakgp.rows.blas import blas_threads

if TYPE_CHECKING:
    from cloakgp.kernels import Kernel
    from cloakgp.model.gp import GP
    from cloakgp.rows.people import People

SEED = 0
"""Public seed by which ``folds=K`` shuffles the rows."""
_WORST_CONDITION = 1e9  # of Kff + S, up to which a block of its inverse is good to about 7 digits

_REMEDY = (
    "Give a number of folds, a scikit-learn splitter that needs neither y nor groups, such as "
    "ShuffleSplit(100, test_size=0.2, random_state=0), or pairs (train, test) of row numbers."
)


class Fold(NamedTuple):
    train: Rows
    test: Rows


def as_folds(folds: Any, X: FloatArray, people: People | None = None) -> tuple[Fold, ...]:
    """The folds in full, drawn once: a splitter's own randomness ends here, in public.

    A number of folds keeps a person's rows together: else a model would be tested on people whom it knows.
    """
    if isinstance(folds, (bool, str, bytes)) or folds is None:
        raise ArgumentTypeError("folds", "must be a number or say how to split", repr(folds), _REMEDY)
    if isinstance(folds, Integral):
        pairs = _k_folds(int(folds), len(X), people)
    elif hasattr(folds, "split"):
        pairs = _by_splitter(folds, X, people)
    else:
        pairs = folds
    if not isinstance(pairs, Iterable):
        raise ArgumentTypeError("folds", "must be a number or say how to split", reprlib.repr(folds), _REMEDY)
    checked = tuple(_checked(pair, number, len(X)) for number, pair in enumerate(pairs))
    if not checked:
        raise ArgumentError("folds", "must hold at least one pair (train, test)", "none", _REMEDY)
    return checked


def _k_folds(k: int, n_rows: int, people: People | None) -> Iterable[Any]:
    """K folds of the shuffled rows: in the order of X, a sorted X would be tested by extrapolation."""
    n, what = (n_rows, "rows") if people is None else (people.n_people, "people")
    if not 2 <= k <= n:
        raise ArgumentError("folds", f"must be from 2 to the number of {what}, {n}", str(k))
    parts = np.array_split(np.random.RandomState(SEED).permutation(n), k)
    pairs = [(np.setdiff1d(np.arange(n), part), np.sort(part)) for part in parts]
    if people is None:
        return pairs
    return [[np.flatnonzero(np.isin(people.labels, part)) for part in pair] for pair in pairs]


def _by_splitter(splitter: Any, X: FloatArray, people: People | None) -> list[Any]:
    try:
        if people is not None:
            with suppress(TypeError, ValueError):  # of one that needs to know whose rows they are
                return list(splitter.split(X))
            return list(splitter.split(X, groups=people.labels))
        return list(splitter.split(X))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"folds: {type(splitter).__name__} could not split X alone ({error}). A splitter that looks at y "
            f"is not private. {_REMEDY}"
        ) from error


def _checked(pair: Any, number: int, n_rows: int) -> Fold:
    try:
        train, test = pair
    except (TypeError, ValueError):
        raise ArgumentError(
            f"folds[{number}]", "must be a pair (train, test)", reprlib.repr(pair), _REMEDY
        ) from None
    fold = Fold(
        _rows(train, f"folds[{number}][0] (train)", n_rows), _rows(test, f"folds[{number}][1] (test)", n_rows)
    )
    if np.isin(fold.test, fold.train).any():
        raise ArgumentError(f"folds[{number}]", "must not test rows that it trains on; some are in both")
    return fold


def _rows(value: Any, name: str, n_rows: int) -> Rows:
    try:
        rows = np.asarray(value)
    except (TypeError, ValueError):
        rows = np.empty(0, dtype=object)
    if rows.ndim != 1 or rows.size == 0:
        raise ArgumentError(name, "must be a vector of row numbers, at least one", reprlib.repr(value))
    if rows.dtype.kind not in "iu":
        raise ArgumentTypeError(
            name, "must hold whole numbers", f"dtype {rows.dtype}", "For a mask m, use m.nonzero()[0]."
        )
    if rows.min() < 0 or rows.max() >= n_rows:
        raise ArgumentError(
            name, f"must be from 0 to {n_rows - 1}, the rows of X", f"{rows.min()} to {rows.max()}"
        )
    if len(np.unique(rows)) < len(rows):
        raise ArgumentError(name, "must not repeat a row; some are there twice")
    return frozen(rows.astype(np.intp))


def weights(
    gps: Sequence[GP], X: FloatArray, folds: Sequence[Fold], advance: Callable[[], None]
) -> Iterator[list[FloatArray]]:
    """For each model, the matrices C of its folds. `advance` is called after each model."""
    kernel: Kernel | None = None
    gram = np.empty((0, 0))
    for gp in gps:
        with blas_threads(len(X)):
            if kernel is None or gp.kernel != kernel:  # models with one kernel should stand side by side
                kernel = gp.kernel
                gram = kernel_matrix(kernel, X, X, "X, X")
                check_covariance(gram)
            noise = np.broadcast_to(np.asarray(gp.noise, dtype=np.float64), (len(X),))
            matrices = _weights_of_one(gram, noise, folds)
        yield matrices
        advance()


def _weights_of_one(gram: FloatArray, noise: FloatArray, folds: Sequence[Fold]) -> list[FloatArray]:
    """By blocks of one inverse for all folds, where a fold uses every row and that is accurate."""
    inverse = None
    if float(np.trace(gram) + noise.sum()) < _WORST_CONDITION * float(noise.min()):
        factor, _ = gentle_cholesky(gram, noise)
        inverse = cho_solve(factor, np.eye(len(gram)), check_finite=False)
    result = []
    for train, test in folds:
        C = None
        if inverse is not None and len(train) + len(test) == len(gram) and len(test) <= len(train):
            C = _from_inverse(inverse, train, test)
        result.append(_directly(gram, noise, train, test) if C is None else C)
    return result


def _from_inverse(inverse: FloatArray, train: Rows, test: Rows) -> FloatArray | None:
    """C = -G_tt^-1 G_t,train with G = (Kff + S)^-1 over all rows (block inversion; cf. Rasmussen &
    Williams 2006, eq. 5.12, where one row is left out). A fold costs its tested rows cubed only.
    """
    try:
        factor = cho_factor(inverse[np.ix_(test, test)], lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    C: FloatArray = -cho_solve(factor, inverse[np.ix_(test, train)], check_finite=False)
    return C


def _directly(gram: FloatArray, noise: FloatArray, train: Rows, test: Rows) -> FloatArray:
    """C = K_t,train (K_train + S_train)^-1 (Rasmussen & Williams 2006, algorithm 2.1)."""
    factor, _ = gentle_cholesky(gram[np.ix_(train, train)], noise[train])
    C: FloatArray = cho_solve(factor, gram[np.ix_(train, test)], check_finite=False).T
    return C
