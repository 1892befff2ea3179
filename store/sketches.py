"""A short form of vectors, for a first look at many: where they lie along the directions in which they differ most.

A third of the numbers of a vector, taken along the principal directions of the memory itself and rounded to 4 bits,
tells far better which rows may be near than a third of its own numbers, or their signs, would. faiss looks products of
4 bits up in the registers of the CPU: 3 ns a row, where a product of as many numbers in 8 bits takes 7. This is the
only module that imports it, and only where a memory is large.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memoryd.store.precision import Small, enlarge
from memoryd.store.protocols import Vectors

_NUMBERS: Final = 128
_LEVELS: Final = 16  # in 4 bits
_BETWEEN: Final = 0.75  # two levels, in standard deviations: what is near a query lies far out
_TOGETHER: Final = 32  # rows of a block; faiss stores the 4 bits of all of them side by side

Bytes = NDArray[np.uint8]
Rows = NDArray[np.int64]


class Sketches:
    """By row. Knows the directions of the vectors that it was made from, and sketches others along them."""

    def __init__(self, sample: Small) -> None:
        import faiss  # 57 ms and 15 MB, which a small memory does not need

        self._faiss: Any = faiss
        vectors = enlarge(sample)
        _, directions = np.linalg.eigh(vectors.T @ vectors)  # in ascending order
        found = directions[:, ::-1][:, :_NUMBERS]
        self._directions: Vectors = np.zeros((vectors.shape[1], _NUMBERS), np.float32)
        self._directions[:, : found.shape[1]] = found
        places = vectors @ self._directions
        self._middle: Vectors = places.mean(axis=0)
        self._step: Vectors = np.maximum(places.std(axis=0) * np.float32(_BETWEEN), np.float32(1e-9))
        self._index: Any = self._faiss.IndexPQFastScan(_NUMBERS, _NUMBERS, 4, faiss.METRIC_INNER_PRODUCT)
        levels = (np.arange(_LEVELS, dtype=np.float32) - (_LEVELS - 1) / 2) * self._step[:, None]
        faiss.copy_array_to_vector(
            (self._middle[:, None] + levels).astype(np.float32).ravel(), self._index.pq.centroids
        )
        self._index.is_trained = True
        self._packer = self._index.get_CodePacker()
        self._blocks: Bytes = np.empty((0, self._packer.block_size), np.uint8)

    @property
    def nbytes(self) -> int:
        return self._blocks.nbytes

    def sketch(self, vectors: Small) -> Bytes:
        """Two numbers a byte. What points further than any before is cut."""
        places = (enlarge(vectors) @ self._directions - self._middle) / self._step + _LEVELS / 2
        numbers = np.clip(places, 0, _LEVELS - 1).astype(np.uint8)
        return np.ascontiguousarray(numbers[:, 0::2] | numbers[:, 1::2] << 4)

    def write(self, rows: Rows, sketches: Bytes) -> None:
        """In any order; of rows that are there already, anew."""
        self._reserve(int(rows.max()) + 1)
        order = np.argsort(rows, kind="stable")
        blocks, starts = np.unique(rows[order] // _TOGETHER, return_index=True)
        unpacked = np.empty((_TOGETHER, sketches.shape[1]), np.uint8)
        for block, those in zip(blocks.tolist(), np.split(order, starts[1:]), strict=True):
            packed = self._faiss.swig_ptr(self._blocks[block])
            places = rows[those] % _TOGETHER
            if len(set(places.tolist())) < _TOGETHER:  # the others of the block stay as they are
                self._packer.unpack_all(packed, self._faiss.swig_ptr(unpacked))
            unpacked[places] = sketches[those]
            self._packer.pack_all(self._faiss.swig_ptr(unpacked), packed)

    def most_alike(self, vector: Vectors, wanted: int, count: int) -> Rows:
        """Of the first ``count`` rows those that are most like a query. Fewer where many are as unlike as can be."""
        self._index.ntotal = count
        _, found = self._index.search((vector @ self._directions)[None], wanted)
        rows: Rows = found[0]
        return np.sort(rows[rows >= 0])

    def _reserve(self, count: int) -> None:
        blocks = -(-count // _TOGETHER)
        if blocks <= len(self._blocks):
            return
        self._index.codes.resize(blocks * self._packer.block_size)  # faiss doubles the room and keeps what is there
        self._index.ntotal2 = blocks * _TOGETHER
        held = self._faiss.rev_swig_ptr(self._index.codes.get(), blocks * self._packer.block_size)
        self._blocks = held.reshape(blocks, -1)
