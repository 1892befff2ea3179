"""A short form of vectors: where they lie along the directions in which those of a memory differ most.

A third of the numbers of a vector, taken along the principal directions of the memory itself and rounded to 4 bits,
tells far better which rows may be near than a third of its own numbers, or their signs, would.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from memoryd.store.precision import Small, enlarge
from memoryd.store.protocols import Vectors

NUMBERS: Final = 128
_LEVELS: Final = 16  # in 4 bits
_BETWEEN: Final = 0.75  # two levels, in standard deviations: what is near a query lies far out

Bytes = NDArray[np.uint8]


class Directions:
    """Those in which the vectors of a memory differ most, and the levels that a place along each is rounded to."""

    def __init__(self, sample: Small) -> None:
        vectors = enlarge(sample)
        _, directions = np.linalg.eigh(vectors.T @ vectors)  # in ascending order
        found = directions[:, ::-1][:, :NUMBERS]
        self._directions: Vectors = np.zeros((vectors.shape[1], NUMBERS), np.float32)
        self._directions[:, : found.shape[1]] = found
        places = self.places(vectors)
        self._middle: Vectors = places.mean(axis=0)
        self._step: Vectors = np.maximum(places.std(axis=0) * np.float32(_BETWEEN), np.float32(1e-9))
        levels = np.arange(_LEVELS, dtype=np.float32) - (_LEVELS - 1) / 2
        self.levels: Vectors = (self._middle[:, None] + levels * self._step[:, None]).astype(np.float32)

    def places(self, vectors: Vectors) -> Vectors:
        """Where they lie along the directions."""
        return np.asarray(vectors @ self._directions, np.float32)

    def sketch(self, vectors: Small) -> Bytes:
        """Two numbers a byte. What points further than any before is cut."""
        levels = (self.places(enlarge(vectors)) - self._middle) / self._step + _LEVELS / 2
        numbers = np.clip(levels, 0, _LEVELS - 1).astype(np.uint8)
        return np.ascontiguousarray(numbers[:, 0::2] | numbers[:, 1::2] << 4)

    def restore(self, sketches: Bytes) -> Vectors:
        """The places that they stand for."""
        numbers = np.stack((sketches & 15, sketches >> 4), axis=2).reshape(len(sketches), NUMBERS)
        return np.asarray(self.levels[np.arange(NUMBERS), numbers], np.float32)
