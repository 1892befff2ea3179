"""Vectors as they are kept: checked, cut to the wanted dimension, of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memoryd.store.protocols import Vectors


def shorten(vectors: Vectors, dimension: int) -> Vectors:
    """The first numbers of each row, of length 1 again; 0 leaves the rows as they are.

    Models that were trained for it (Matryoshka) put what matters most first; of others this loses more.
    """
    if not 0 < dimension < vectors.shape[1]:
        return vectors
    return normalise(vectors[:, :dimension])


def normalise(vectors: Vectors) -> Vectors:
    """Raises ``ValueError`` where a row is of length 0 or not of numbers."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    if not ((lengths > 0) & (lengths < np.inf)).all():
        raise ValueError("a vector is not of numbers, or of length 0")
    return np.asarray(vectors / lengths, np.float32)


def read_rows(rows: Sequence[Any], count: int, wanted: int, expected: int) -> Vectors:
    """Rows from outside as vectors of the ``wanted`` dimension (0: their own), cut where the service did not.

    ``expected`` is the dimension of the answers before (0: there were none). Raises ``ValueError`` that says what is
    wrong.
    """
    if len(rows) != count:
        raise ValueError(f"{len(rows)} vectors for {count} texts")
    try:
        vectors = np.asarray(rows, np.float32)
    except (ValueError, TypeError):
        raise ValueError("vectors of different lengths, or not of numbers") from None
    if vectors.ndim != 2 or vectors.shape[1] == 0:
        raise ValueError("no vectors where they should be")
    vectors = shorten(normalise(vectors), wanted)
    if (dimension := expected or wanted) and vectors.shape[1] != dimension:
        raise ValueError(f"vectors of {vectors.shape[1]} numbers where {dimension} were expected")
    return vectors
