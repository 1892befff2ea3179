"""An exact vector search in memory: what LanceDB holds, as one matrix.

While a memory is small a matrix product beats every index: it is exact, takes a millisecond, and needs no
building. LanceDB stays the durable store; this is filled from it and follows each write.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.store.protocols import Match, Vectors

_FIRST_ROWS = 1024
_ROUNDING = 1e-5  # more than the sum of a product of unit vectors in float32 can be off


def near(vectors: Vectors, vector: Vectors) -> list[float]:
    """The cosine of each row. A matrix product would round equal rows differently, by where they stand."""
    cosines: list[float] = np.einsum("ij,j->i", vectors, vector).tolist()
    return cosines


class Mirror:
    def __init__(self, dimension: int) -> None:
        self._lock = threading.Lock()
        self._rows: dict[int, int] = {}  # passage id -> row
        self._ids: NDArray[np.int64] = np.empty(_FIRST_ROWS, np.int64)
        self._documents: NDArray[np.int64] = np.empty(_FIRST_ROWS, np.int64)
        self._matrix: Vectors = np.empty((_FIRST_ROWS, dimension), np.float32)

    def __len__(self) -> int:
        return len(self._rows)

    def upsert(self, ids: Sequence[int], documents: Sequence[int], vectors: Vectors) -> None:
        with self._lock:
            for identity, document, vector in zip(ids, documents, vectors, strict=True):
                row = self._rows.setdefault(identity, len(self._rows))
                if row == len(self._matrix):
                    self._grow()
                self._ids[row], self._documents[row], self._matrix[row] = identity, document, vector

    def delete(self, ids: Collection[int]) -> None:
        """Fill each hole with the last row, so that the matrix stays dense."""
        with self._lock:
            for identity in ids:
                row = self._rows.pop(identity, None)
                if row is None:
                    continue
                last = len(self._rows)
                if row != last:
                    self._ids[row], self._documents[row] = self._ids[last], self._documents[last]
                    self._matrix[row] = self._matrix[last]
                    self._rows[int(self._ids[row])] = row

    def search(self, vector: Vectors, limit: int, documents: Collection[int] | None = None) -> list[Match]:
        """The nearest by cosine, best first; only of the given documents, if any are given."""
        if limit <= 0:
            return []
        with self._lock:
            count = len(self._rows)
            scores = self._matrix[:count] @ vector
            rows = np.arange(count)
            if documents is not None:
                rows = np.flatnonzero(np.isin(self._documents[:count], np.fromiter(documents, np.int64)))
                scores = scores[rows]
            if len(scores) > limit:
                last = np.partition(scores, -limit)[-limit]
                rows = rows[scores >= last - _ROUNDING]
            ids, nearest = self._ids[rows], self._matrix[rows]
        # A matrix product rounds equal rows differently, by where they stand. Row by row they are equal again,
        # and ties go by id: the same vectors give the same answer, whatever was written and deleted before.
        exact = np.multiply(nearest, vector, dtype=np.float64).sum(axis=1)
        order = np.lexsort((ids, -exact))[:limit]
        return [Match(int(ids[place]), float(exact[place])) for place in order]

    def vectors(self, ids: Collection[int]) -> dict[int, Vectors]:
        return dict(zip(*self._take(ids), strict=True))

    def cosines(self, ids: Collection[int], vector: Vectors) -> dict[int, float]:
        held, vectors = self._take(ids)
        return dict(zip(held, near(vectors, vector), strict=True))

    def _take(self, ids: Collection[int]) -> tuple[list[int], Vectors]:
        """Those of the ids that are held, and their vectors."""
        with self._lock:
            rows = {identity: row for identity in ids if (row := self._rows.get(identity)) is not None}
            return list(rows), self._matrix[list(rows.values())]  # a copy: rows move when others are deleted

    def _grow(self) -> None:
        extra = len(self._matrix)
        self._ids = np.concatenate([self._ids, np.empty(extra, np.int64)])
        self._documents = np.concatenate([self._documents, np.empty(extra, np.int64)])
        self._matrix = np.concatenate([self._matrix, np.empty_like(self._matrix)])
