"""What a number of a vector is kept in: 32 bits, or 8 of them and a scale of the vector's own.

Vectors have length 1, so the scale of 8 bits need not be kept: it is what makes their length 1 again.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoryd.store.protocols import Vectors

Precision: TypeAlias = Literal["float32", "int8"]
Small: TypeAlias = NDArray[np.int8]

PRECISIONS: Final[tuple[Precision, ...]] = ("float32", "int8")
_MOST: Final = 127
_LEAST: Final = float(np.finfo(np.float32).tiny) * _MOST  # of what is smaller no step can be told from nothing
_LENGTH_TOLERANCE: Final = 1e-3  # of a vector of length 1, in float32


def shrink(vectors: Vectors | Small) -> Small:
    """Each row's largest number becomes 127. The same vector gives the same numbers wherever it stands."""
    if vectors.dtype == np.int8:
        return np.asarray(vectors, np.int8)
    return np.asarray(np.rint(vectors / scales(vectors)[:, None]), np.int8)


def scales(vectors: Vectors | Small) -> Vectors:
    """What one step of a row's 8 bits stands for."""
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    return np.where(largest >= _LEAST, largest, 1).astype(np.float32) / np.float32(_MOST)


def enlarge(small: Small) -> Vectors:
    """Rows of 8 bits as vectors of length 1; shrunk again they are the same rows."""
    vectors = small.astype(np.float32)
    vectors /= _lengths(vectors)[:, None]
    return vectors


def steps(small: Small) -> Vectors:
    """What one step of rows of 8 bits stands for, as vectors of length 1."""
    return np.asarray(1 / _lengths(small.astype(np.float32)), np.float32)


def _lengths(vectors: Vectors) -> Vectors:
    """At least 1: a vector that is none stays as it is."""
    return np.asarray(np.maximum(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)), 1), np.float32)


def restore(kept: Vectors | Small) -> Vectors:
    """Vectors of the numbers that they are kept in."""
    return enlarge(np.asarray(kept, np.int8)) if kept.dtype == np.int8 else np.asarray(kept, np.float32)


def are_sound(kept: Vectors | Small) -> NDArray[np.bool_]:
    """Whether each row can have been written: of length 1, or with a largest number of 127."""
    if kept.dtype == np.int8:
        largest = np.maximum(kept.max(axis=1, initial=0), -kept.min(axis=1, initial=0).astype(np.int16))
        return np.asarray(largest == _MOST)
    lengths = np.sqrt(np.einsum("ij,ij->i", kept, kept))
    return np.asarray(np.abs(lengths - 1.0) <= _LENGTH_TOLERANCE)  # not so of NaN
