"""Large arrays in few bytes: Rice codes of integers, and of decimals, which are integers over a power of ten.

Zip's own compression has many streams for the same contents, and which one was chosen could tell something.
Here the contents determine every bit. An integer x counts as u = 2x, or -2x - 1 if it is negative; u is
written as its lowest k bits, and the rest as so many zeros and a one. Entries of a measurement's matrix are
noise in their low bits and bell-shaped above, and nothing takes much less room than that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.core.checks import FloatArray

Array = np.ndarray[Any, Any]
Integers = NDArray[np.int64]
Naturals = NDArray[np.uint64]

LEAST, SHORTEST = 4096, 512
"""Entries of an array that is coded, and of a row of its code, at least: short ones take long to read."""
_DIFFERENCES = 64  # added to k where differences are coded
_NO_DECIMALS = 255  # a column of floats that are no decimals: their bits count as integers
_PIECE = 2**13  # entries at once; a multiple of 8, so that pieces end with a byte


def _is_large(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Enough entries, and in rows that are long enough: a float array's columns are its code's rows."""
    if len(shape) not in (1, 2) or dtype.str not in ("<i8", "<f8"):
        return False
    return math.prod(shape) >= LEAST and shape[-1 if dtype.kind == "i" else 0] >= SHORTEST


def encode(array: Array) -> bytes | None:
    """An array's code; None unless it is a large one of integers, or with a column of decimals."""
    array = np.asarray(array)
    if not _is_large(array.dtype, array.shape):
        return None
    if array.dtype.kind == "i":
        return _code(np.atleast_2d(array))
    columns = np.ascontiguousarray(array[None] if array.ndim == 1 else array.T)
    places = [_decimals(column) for column in columns]
    if all(place == _NO_DECIMALS for place in places):
        return None
    return bytes(places) + _code(np.stack([_whole(*pair) for pair in zip(columns, places, strict=True)]))


def decode(dtype: np.dtype[Any], shape: tuple[int, ...], code: bytes) -> Array:
    """The array of a code, whatever that is: ValueError if it is none, or not of so many entries.

    An entry has a bit at least, so the array takes at most 64 times as much memory as the code.
    """
    if not (_is_large(dtype, shape) and math.prod(shape) <= 8 * len(code)):
        raise ValueError("no code of so many entries.")
    if dtype.kind == "i":
        return _decode(code, (shape[0] if len(shape) == 2 else 1, shape[-1])).reshape(shape)
    columns = shape[1] if len(shape) == 2 else 1
    whole = _decode(code[columns:], (columns, shape[0]))
    result = np.empty(whole.shape)
    for column, place, numbers in zip(result, code[:columns], whole, strict=True):
        column[:] = numbers.view(np.float64) if place == _NO_DECIMALS else numbers / 10.0**place
    return np.ascontiguousarray(result.T).reshape(shape)


def _decimals(column: FloatArray) -> int:
    """The fewest decimals that all of a column's numbers have, each the nearest float to its decimal."""
    for place in range(10):  # a few entries tell most columns that are no decimals
        if _exact(column[:64], place) and _exact(column, place):
            return place
    return _NO_DECIMALS


def _exact(column: FloatArray, place: int) -> bool:
    with np.errstate(all="ignore"):
        whole = np.rint(column * 10.0**place)
        back = (whole + 0.0) / 10.0**place  # -0 becomes 0, and is told apart below
    small = np.abs(whole) < 2**53  # not for NaN
    return bool(small.all()) and np.array_equal(back.view(np.int64), column.view(np.int64))


def _whole(column: FloatArray, place: int) -> Integers:
    return column.view(np.int64) if place == _NO_DECIMALS else np.rint(column * 10.0**place).astype(np.int64)


def _code(rows: Integers) -> bytes:
    """How each row is coded, a byte for each; the low bits of each row; what is above them, of all."""
    how, low, high = bytearray(), [], []
    for row in rows:
        numbers, bits = _naturals(row)
        apart, fewer = _naturals(np.diff(row, prepend=np.int64(0)))
        differs = fewer < bits
        if differs:
            numbers, bits = apart, fewer
        how.append(bits + _DIFFERENCES * differs)
        for piece in (numbers[start : start + _PIECE] for start in range(0, len(row), _PIECE)):
            octets = piece.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : -(-bits // 8)]
            entries = np.unpackbits(octets, axis=1, bitorder="little")
            low.append(np.packbits(entries[:, :bits], bitorder="little").tobytes())
        ends = np.cumsum((numbers >> np.uint64(bits)).astype(np.int64) + 1)
        above = np.zeros(int(ends[-1]), dtype=np.uint8)
        above[ends - 1] = 1
        high.append(above)
    return b"".join([bytes(how), *low, np.packbits(np.concatenate(high), bitorder="little").tobytes()])


def _naturals(row: Integers) -> tuple[Naturals, int]:
    """Integers as natural numbers, and how many of their bits are low: 2^k is at most their mean, or 1.

    What is above them is then less than 2 on average, whatever the numbers.
    """
    numbers = ((row << 1) ^ (row >> 63)).view(np.uint64)
    halves = (numbers >> np.uint64(32)).sum(), (numbers & np.uint64(2**32 - 1)).sum()
    mean = ((int(halves[0]) << 32) + int(halves[1])) // len(row)
    return numbers, max(mean.bit_length() - 1, 0)


def _decode(code: bytes, shape: tuple[int, int]) -> Integers:
    (rows, n), at = shape, shape[0]
    each = [divmod(how, _DIFFERENCES) for how in code[:rows]]
    low_bytes = [-(-n * bits // 8) for _, bits in each]
    rest = np.frombuffer(code, np.uint8, offset=at + sum(low_bytes))
    if 8 * len(rest) >= 3 * rows * n + 8 or any(differs > 1 for differs, _ in each):
        raise ValueError("no code of so many entries.")
    ends = np.flatnonzero(np.unpackbits(rest, bitorder="little")).astype(np.int64, copy=False)
    if len(ends) != rows * n:
        raise ValueError("no code of so many entries.")
    result, last = ends.reshape(shape), -1  # each row in the place of where its entries ended
    for row, (differs, bits), size in zip(result, each, low_bytes, strict=True):
        numbers = (np.diff(row, prepend=last) - 1).view(np.uint64) << np.uint64(bits)
        last = row[-1].copy()
        for start in range(0, n, _PIECE):
            count = min(_PIECE, n - start)
            part = np.frombuffer(code, np.uint8, -(-count * bits // 8), at + start * bits // 8)
            entries = np.zeros((count, 64), dtype=np.uint8)
            found = np.unpackbits(part, count=count * bits, bitorder="little")
            entries[:, :bits] = found.reshape(count, bits)
            octets = np.packbits(entries, axis=1, bitorder="little")
            numbers[start : start + count] |= octets.view("<u8")[:, 0]
        at += size
        row[:] = (numbers >> np.uint64(1)).view(np.int64) ^ -(numbers & np.uint64(1)).view(np.int64)
        if differs:
            np.cumsum(row, out=row)
    return result
