"""A vector index in memory: what LanceVectors promises, but for surviving the process."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memoryd.store.mirror import Mirror
from memoryd.store.protocols import Match, Vectors, VectorStats


class MemoryVectors:
    def __init__(self, dimension: int) -> None:
        self._mirror = Mirror(dimension)
        self._dimension = dimension
        self._ids: set[int] = set()

    def upsert(self, ids: Sequence[int], documents: Sequence[int], vectors: Vectors) -> None:
        self._mirror.upsert(ids, documents, vectors)
        self._ids.update(ids)

    def delete(self, ids: Collection[int]) -> None:
        self._mirror.delete(ids)
        self._ids.difference_update(ids)

    def search(self, vector: Vectors, limit: int, documents: Collection[int] | None = None) -> list[Match]:
        return self._mirror.search(vector, limit, documents)

    def vectors(self, ids: Collection[int]) -> dict[int, Vectors]:
        return self._mirror.vectors(ids)

    def cosines(self, ids: Sequence[int], vector: Vectors) -> Vectors:
        return self._mirror.cosines(ids, vector)

    def ids(self) -> set[int]:
        return set(self._ids)

    def compact(self) -> None:
        """Nothing is ever left over."""

    def backlog(self) -> float:
        return 0.0

    def rewrite(self) -> None:
        """Nothing is ever left over."""

    def reopen(self) -> None:
        """There is nothing else to look at."""

    def stats(self) -> VectorStats:
        rows = len(self._ids)
        return VectorStats(rows=rows, bytes=rows * self._dimension * 4, versions=1, fragments=1)
