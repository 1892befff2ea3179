"""Sketches of very many vectors, of which a query looks at a part: an inverted file."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from memoryd.store.directions import NUMBERS, Bytes, Directions
from memoryd.store.precision import Small, enlarge
from memoryd.store.protocols import Vectors
from memoryd.store.sketches import Rows, load_faiss

_ROWS_A_CELL: Final = 250
_MOST_CELLS: Final = 2048
_SAMPLE_A_CELL: Final = 64  # rows that tell well enough where a cell is, and how wide
_ROUNDS: Final = 8  # of k-means: more move the cells no more
_REACH: Final = 0.4  # of its width: so far beyond its middle may a cell's nearest row be
_PORTION: Final = 8192  # rows that are looked at in float32 at once


class Cells:
    """By row, as ``Sketches`` are, but rows that lie near each other lie in one cell, and a query looks at those cells
    alone whose rows may be nearest.

    That is not told by how near the middle of a cell is: what is nearest to a query lies far out in its cell, so a wide
    one further away may have it. A row that is written again, or moved, has its sketch written anew; the old one stays
    where it is and is passed over.
    """

    def __init__(self, directions: Directions, sample: Small, count: int) -> None:
        """``sample``: of the ``count`` rows that there are, as many as ``sample_size`` says or more."""
        faiss = load_faiss()
        self.directions = directions
        faiss.omp_set_num_threads(1)  # of this thread: it is not to take a core from a query
        places = np.concatenate(
            [directions.places(enlarge(sample[at : at + _PORTION])) for at in range(0, len(sample), _PORTION)]
        )
        self._cells = max(1, min(_cells_of(count), len(places) // _SAMPLE_A_CELL))
        means = faiss.Kmeans(
            NUMBERS,
            self._cells,
            niter=_ROUNDS,
            seed=1,
            min_points_per_centroid=1,
            max_points_per_centroid=2 * _SAMPLE_A_CELL,
        )
        means.train(places)
        self._middles: Vectors = means.centroids
        self._quantizer = faiss.IndexFlatL2(NUMBERS)
        self._quantizer.add(self._middles)
        distances, owners = self._quantizer.search(places, 1)
        squares = np.bincount(owners[:, 0], distances[:, 0], self._cells)
        widths = np.sqrt(squares / np.maximum(1, np.bincount(owners[:, 0], minlength=self._cells)))
        self._reach: Vectors = (_REACH * widths).astype(np.float32)
        self._index = faiss.IndexIVFPQFastScan(
            self._quantizer, NUMBERS, self._cells, NUMBERS, 4, faiss.METRIC_INNER_PRODUCT
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
        return self._written * (NUMBERS // 2 + 8) + self._row_of.nbytes + self._number_of.nbytes

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
        as unlike as can be, or have been written anew over and over."""
        query = self.directions.places(vector)
        nearness = self._middles @ query + self._reach * np.float32(np.linalg.norm(query))
        looked_at = max(1, min(self._cells, round(part * self._cells)))
        chosen = np.argpartition(-nearness, looked_at - 1)[:looked_at]
        self._index.nprobe = looked_at
        wanted = min(self._written, -(-wanted * self._written // max(1, count)))  # for old sketches are among them
        _, found = self._index.search_preassigned(query[None], wanted, chosen[None], nearness[chosen][None])
        rows = self._row_of[found[0][found[0] >= 0]]
        return np.sort(rows[(rows >= 0) & (rows < count)]).astype(np.int64)

    def are_outgrown(self, count: int) -> bool:
        """Whether they were made for far fewer rows, or much in them was written anew."""
        return count >= 2 * self._made_for or self._written >= 2 * max(count, self._made_for)


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
