"""A first look at many vectors, by their short form (``directions``).

faiss looks products of 4 bits up in the registers of the CPU: 3 ns a row, where a product of as many numbers in 8 bits
takes 7. This is the only module that imports it, and only where a memory is large. Where it is very large, rows lie in
cells (``cells``), and a query looks at a part of these.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memoryd.store.directions import NUMBERS, Bytes, Directions
from memoryd.store.protocols import Vectors

_TOGETHER: Final = 32  # rows of a block; faiss stores the 4 bits of all of them side by side

Rows = NDArray[np.int64]


def load_faiss() -> Any:
    import faiss  # 57 ms and 15 MB, which a small memory does not need

    return faiss


class Sketches:
    """By row, one behind the other: a query looks at all of them."""

    def __init__(self, directions: Directions) -> None:
        self.directions = directions
        self._faiss = faiss = load_faiss()
        self._index = faiss.IndexPQFastScan(NUMBERS, NUMBERS, 4, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(directions.levels.ravel(), self._index.pq.centroids)
        self._index.is_trained = True
        self._packer = self._index.get_CodePacker()
        self._blocks: Bytes = np.empty((0, self._packer.block_size), np.uint8)

    @property
    def nbytes(self) -> int:
        return self._blocks.nbytes

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

    def most_alike(self, vector: Vectors, wanted: int, count: int, _part: float = 1.0) -> Rows:
        """Of the first ``count`` rows those that are most like a query. Fewer where many are as unlike as can be."""
        self._index.ntotal = count
        _, found = self._index.search(self.directions.places(vector)[None], wanted)
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
