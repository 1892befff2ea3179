"""A short form of vectors, for a first look at many: where they lie along the directions in which they differ most.

A third of the numbers of a vector, taken along the principal directions of the memory itself and rounded to 4 bits,
tells far better which rows may be near than a third of its own numbers, or their signs, would. faiss looks products of
4 bits up in the registers of the CPU: 3 ns a row, where a product of as many numbers in 8 bits takes 7. This is the
only module that imports it, and only where a memory is large.

Where it is very large, rows lie in cells (``Cells``), and a query looks at a part of these.
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

_ROWS_A_CELL: Final = 250
_MOST_CELLS: Final = 2048
_SAMPLE_A_CELL: Final = 64  # rows that tell well enough where a cell is, and how wide
_ROUNDS: Final = 8  # of k-means: more move the cells no more
_REACH: Final = 0.4  # of its width: so far beyond its middle may a cell's nearest row be
_PORTION: Final = 8192  # rows that are looked at in float32 at once

Bytes = NDArray[np.uint8]
Rows = NDArray[np.int64]


class Directions:
    """Those in which the vectors of a memory differ most, and the levels that a place along each is rounded to."""

    def __init__(self, sample: Small) -> None:
        vectors = enlarge(sample)
        _, directions = np.linalg.eigh(vectors.T @ vectors)  # in ascending order
        found = directions[:, ::-1][:, :_NUMBERS]
        self._directions: Vectors = np.zeros((vectors.shape[1], _NUMBERS), np.float32)
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
        numbers = np.stack((sketches & 15, sketches >> 4), axis=2).reshape(len(sketches), _NUMBERS)
        return np.asarray(self.levels[np.arange(_NUMBERS), numbers], np.float32)


class Sketches:
    """By row, one behind the other: a query looks at all of them."""

    def __init__(self, directions: Directions) -> None:
        self.directions = directions
        self._faiss = faiss = _load_faiss()
        self._index = faiss.IndexPQFastScan(_NUMBERS, _NUMBERS, 4, faiss.METRIC_INNER_PRODUCT)
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


class Cells:
    """The same, but rows that lie near each other lie in one cell, and a query looks at those cells alone whose rows
    may be nearest.

    That is not told by how near the middle of a cell is: what is nearest to a query lies far out in its cell, so a wide
    one further away may have it. A row that is written again, or moved, has its sketch written anew; the old one stays
    where it is and is passed over.
    """

    def __init__(self, directions: Directions, sample: Small, count: int) -> None:
        """``sample``: of the ``count`` rows that there are, as many as ``sample_size`` says or more."""
        faiss = _load_faiss()
        self.directions = directions
        faiss.omp_set_num_threads(1)  # of this thread: it is not to take a core from a query
        places = np.concatenate(
            [directions.places(enlarge(sample[at : at + _PORTION])) for at in range(0, len(sample), _PORTION)]
        )
        self._cells = max(1, min(_cells_of(count), len(places) // _SAMPLE_A_CELL))
        means = faiss.Kmeans(
            _NUMBERS,
            self._cells,
            niter=_ROUNDS,
            seed=1,
            min_points_per_centroid=1,
            max_points_per_centroid=2 * _SAMPLE_A_CELL,
        )
        means.train(places)
        self._middles: Vectors = means.centroids
        self._quantizer = faiss.IndexFlatL2(_NUMBERS)
        self._quantizer.add(self._middles)
        distances, owners = self._quantizer.search(places, 1)
        squares = np.bincount(owners[:, 0], distances[:, 0], self._cells)
        widths = np.sqrt(squares / np.maximum(1, np.bincount(owners[:, 0], minlength=self._cells)))
        self._reach: Vectors = (_REACH * widths).astype(np.float32)
        self._index = faiss.IndexIVFPQFastScan(
            self._quantizer, _NUMBERS, self._cells, _NUMBERS, 4, faiss.METRIC_INNER_PRODUCT
        )
        self._index.by_residual = False
        faiss.copy_array_to_vector(directions.levels.ravel(), self._index.pq.centroids)
        self._index.is_trained = True
        self._made_for = count
        self._written = 0  # sketches, of which each has a number
        self._row_of: NDArray[np.int32] = np.empty(count, np.int32)  # by number; -1 = it was written anew
        self._number_of: NDArray[np.int32] = np.full(count, -1, np.int32)  # by row

    @property
    def nbytes(self) -> int:
        return self._written * (_NUMBERS // 2 + 8) + self._row_of.nbytes + self._number_of.nbytes

    def write(self, rows: Rows, sketches: Bytes) -> None:
        """In any order; of rows that are there already, anew."""
        if not len(rows):
            return
        rows, last = np.unique(rows[::-1], return_index=True)  # of one that is named twice what is said last
        sketches = sketches[::-1][last]
        numbers = np.arange(self._written, self._written + len(rows))
        self._row_of = _with_room(self._row_of, self._written + len(rows))
        self._number_of = _with_room(self._number_of, int(rows[-1]) + 1)
        former = self._number_of[rows]
        self._row_of[former[former >= 0]] = -1
        self._row_of[numbers], self._number_of[rows] = rows, numbers
        self._index.add_with_ids(self.directions.restore(sketches), numbers)
        self._written += len(rows)

    def most_alike(self, vector: Vectors, wanted: int, count: int, part: float = 1.0) -> Rows:
        """Of the first ``count`` rows those that are most like a query, in that part of the cells. Fewer where many are
        as unlike as can be, or were written anew."""
        query = self.directions.places(vector)
        nearness = self._middles @ query + self._reach * np.float32(np.linalg.norm(query))
        looked_at = max(1, min(self._cells, round(part * self._cells)))
        chosen = np.argpartition(-nearness, looked_at - 1)[:looked_at]
        self._index.nprobe = looked_at
        _, found = self._index.search_preassigned(query[None], wanted, chosen[None], nearness[chosen][None])
        rows = self._row_of[found[0][found[0] >= 0]]
        return np.sort(rows[(rows >= 0) & (rows < count)]).astype(np.int64)

    def are_outgrown(self, count: int) -> bool:
        """Whether they were made for far fewer rows, or much in them was written anew."""
        return count >= 2 * self._made_for or self._written >= 2 * max(count, self._made_for)


def _load_faiss() -> Any:
    import faiss  # 57 ms and 15 MB, which a small memory does not need

    return faiss


def sample_size(count: int) -> int:
    """Rows that ``Cells`` of so many are made from."""
    return _cells_of(count) * _SAMPLE_A_CELL


def _cells_of(count: int) -> int:
    return max(1, min(_MOST_CELLS, count // _ROWS_A_CELL))


def _with_room(numbers: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    if count <= len(numbers):
        return numbers
    grown = np.full(max(count, 2 * len(numbers)), -1, np.int32)
    grown[: len(numbers)] = numbers
    return grown
