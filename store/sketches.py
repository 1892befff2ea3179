"""A short form of vectors, for a first look at many: where they lie along the directions in which they differ most.

A quarter of the numbers of a vector, taken along the principal directions of the memory itself, tells far better which
rows may be near than a quarter of its own numbers, or their signs, would. Products of sketches stand in the order of
products of vectors, roughly: for choosing what is worth a second look.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from memoryd.store.precision import Small, enlarge
from memoryd.store.protocols import Vectors

_NUMBERS: Final = 96
_MOST: Final = 127


class Sketcher:
    """Knows the directions; those of the vectors that it was made from."""

    def __init__(self, sample: Small) -> None:
        vectors = enlarge(sample)
        _, directions = np.linalg.eigh(vectors.T @ vectors)  # in ascending order
        self._directions: Vectors = np.ascontiguousarray(directions[:, ::-1][:, :_NUMBERS], np.float32)
        largest = float(np.abs(vectors @ self._directions).max(initial=0.0))
        self._step = np.float32((largest or 1.0) / _MOST)

    @property
    def dimension(self) -> int:
        return int(self._directions.shape[1])

    def sketch(self, rows: Small) -> Small:
        """One step for all rows, so that their products can be compared. What points further than any before is cut."""
        steps = np.rint(enlarge(rows) @ self._directions / self._step)
        return np.asarray(np.clip(steps, -_MOST, _MOST), np.int8)
