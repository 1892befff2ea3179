"""An exact vector search in memory: what LanceDB holds, 8 bits a number, and the best few again as they were written.

Of 35,000 rows float32 takes 54 MB and numpy 5 ms, float16 27 MB and 2.5 ms, int8 13 MB and 1 ms: so int8 is searched,
and every row that it cannot rule out, by the bound of its error, is compared in float32. The answer is float32's.
Of more rows than ``EXACT_ROWS`` only those are compared whose signs are most like the query's (48 bytes a row).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.store.kernels import Bits, differing_bits, products
from memoryd.store.precision import Precision, Small, enlarge, scales, shrink
from memoryd.store.protocols import Match, Vectors
from memoryd.store.row_file import RowFile

Rows = NDArray[np.int64]
Number = TypeVar("Number", bound=np.generic)

EXACT_ROWS = 200_000
ALIKE = 20_000  # rows that are looked at beyond their signs, where there are more than EXACT_ROWS
_FIRST_ROWS = 1024
_ALIKE_A_MATCH = 50  # and for each match that is wanted
_SAMPLE = 100_000  # rows that tell well enough how many are how alike
_ROUNDING = 1e-5  # more than the sum of a product of unit vectors in float32 can be off
_DEVIATIONS = 6.0  # beyond which no error is expected, in a thousand million rows one
_FEW = 0.25  # of the rows: so few are copied together to be compared, of more the others are compared too
_PORTION = 8192  # rows that are compared in float32 at once


def near(vectors: Vectors, vector: Vectors) -> list[float]:
    """The cosine of each row. A matrix product would round equal rows differently, by where they stand."""
    cosines: list[float] = np.einsum("ij,j->i", vectors, vector).tolist()
    return cosines


class Mirror:
    def __init__(
        self,
        dimension: int,
        precision: Precision = "float32",
        *,
        folder: Path | None = None,
        capacity: int = _FIRST_ROWS,
        exact_rows: int = EXACT_ROWS,
        alike: int = ALIKE,
    ) -> None:
        """``folder``: where vectors are kept as they were written, if that is in float32; None: in memory."""
        self._lock = threading.Lock()
        self._exact_rows, self._alike = exact_rows, alike
        self._rows: dict[int, int] = {}  # passage id -> row
        self._places: dict[int, int] = {}  # document -> its place in a list of all that there ever were
        capacity = max(capacity, _FIRST_ROWS)
        self._ids: NDArray[np.int64] = np.empty(capacity, np.int64)
        self._documents: NDArray[np.int32] = np.empty(capacity, np.int32)  # their places
        self._small: Small = np.empty((capacity, dimension), np.int8)
        self._scales: Vectors = np.empty(capacity, np.float32)
        self._errors: Vectors = np.empty(capacity, np.float32)  # the distance between a vector and its 8 bits
        self._signs: Bits = np.empty((capacity, (dimension + 7) // 8), np.uint8)
        self._whole = RowFile(dimension, folder, capacity) if precision == "float32" else None
        self._likely = min(1.0, _DEVIATIONS / math.sqrt(dimension))

    def __len__(self) -> int:
        return len(self._rows)

    # -- writing ------------------------------------------------------------------------------------------

    def upsert(self, ids: Sequence[int], documents: Sequence[int], vectors: Vectors) -> None:
        if not len(ids):
            return
        small = shrink(vectors)
        if self._whole is None:
            vectors = enlarge(small)
        steps = scales(vectors)
        lost = vectors - small * steps[:, None]
        errors = np.sqrt(np.einsum("ij,ij->i", lost, lost))
        signs = np.packbits(small > 0, axis=1)
        with self._lock:
            rows = np.array([self._rows.setdefault(identity, len(self._rows)) for identity in ids], np.int64)
            self._reserve(len(self._rows))
            self._ids[rows] = ids
            self._documents[rows] = [self._places.setdefault(each, len(self._places)) for each in documents]
            self._small[rows], self._scales[rows], self._errors[rows] = small, steps, errors
            self._signs[rows] = signs
            if self._whole is not None:
                self._whole.write(rows, vectors)

    def delete(self, ids: Collection[int]) -> None:
        """Fill each hole with the last row, so that the matrix stays dense."""
        with self._lock:
            for identity in ids:
                row = self._rows.pop(identity, None)
                if row is None:
                    continue
                last = len(self._rows)
                if row != last:
                    self._move(last, row)
                    self._rows[int(self._ids[row])] = row

    def _move(self, source: int, target: int) -> None:
        for column in (self._ids, self._documents, self._small, self._scales, self._errors, self._signs):
            column[target] = column[source]
        if self._whole is not None:
            self._whole.write(np.array([target]), self._whole.take(np.array([source])))

    def _reserve(self, count: int) -> None:
        if count <= len(self._ids):
            return
        capacity = max(count, 2 * len(self._ids))
        self._ids, self._documents = _longer(self._ids, capacity), _longer(self._documents, capacity)
        self._small, self._signs = _longer(self._small, capacity), _longer(self._signs, capacity)
        self._scales, self._errors = _longer(self._scales, capacity), _longer(self._errors, capacity)
        if self._whole is not None:
            self._whole.reserve(capacity)

    # -- searching ----------------------------------------------------------------------------------------

    def search(self, vector: Vectors, limit: int, documents: Collection[int] | None = None) -> list[Match]:
        """The nearest by cosine, best first; only of the given documents, if any are given."""
        if limit <= 0:
            return []
        with self._lock:
            rows = self._rows_of(documents)
            if _count(rows) > self._exact_rows:
                rows = self._most_alike(vector, max(self._alike, _ALIKE_A_MATCH * limit), rows)
            rows = self._not_ruled_out(vector, limit, rows)
            best, exact = self._compare_whole(vector, limit, rows)
            ids = self._ids[best]
        # Ties go by id: the same vectors give the same answer, whatever was written and deleted before.
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
            return list(rows), self._read(np.array(list(rows.values()), np.int64))

    def _rows_of(self, documents: Collection[int] | None) -> Rows | slice:
        count = len(self._rows)
        if documents is None:
            return slice(count)
        wanted = np.zeros(len(self._places) + 1, np.bool_)
        wanted[[self._places.get(document, -1) for document in documents]] = True
        wanted[-1] = False  # the place of documents that are not there
        return np.flatnonzero(wanted[self._documents[:count]])

    def _most_alike(self, vector: Vectors, wanted: int, rows: Rows | slice) -> Rows:
        """The rows whose signs differ least from the query's: about as many as are wanted, or more."""
        signs = np.packbits(vector > 0)
        differing = self._over(rows, lambda part: differing_bits(signs, _pick(self._signs, part)))
        step = max(1, len(differing) // _SAMPLE)
        most = int(np.searchsorted(np.cumsum(np.bincount(differing[::step])), wanted / step))
        return _those(rows, differing <= most)

    def _not_ruled_out(self, vector: Vectors, limit: int, rows: Rows | slice) -> Rows:
        """The rows that may be among the nearest, as far as 8 bits can tell."""
        if _count(rows) <= limit:
            return _those(rows, np.ones(_count(rows), np.bool_))
        query, step = shrink(vector[None])[0], scales(vector[None])[0]
        cosines = self._over(rows, lambda part: products(query, _pick(self._small, part))) * (self._scales[rows] * step)
        # What rounding adds is at most the error of a row by the query's length, and that of the query by the row's. So
        # much only if both point the same way, and rounding points nowhere in particular: of many numbers far less.
        length, error = float(np.linalg.norm(vector)), float(np.linalg.norm(vector - query * step))
        slack = self._errors[rows] * np.float32(self._likely * (length + error))
        slack += np.float32(self._likely * error + _ROUNDING * max(length, 1.0))
        bar = np.partition(cosines - slack, -limit)[-limit]
        return _those(rows, cosines + slack >= bar)

    def _compare_whole(self, vector: Vectors, limit: int, rows: Rows) -> tuple[Rows, NDArray[np.float64]]:
        """At least the nearest of the rows, and their cosines.

        A matrix product rounds equal rows differently, by where they stand; row by row they are equal again.
        """
        best: list[Rows] = [np.empty(0, np.int64)]
        exact: list[NDArray[np.float64]] = [np.empty(0, np.float64)]
        for start in range(0, len(rows), _PORTION):
            part = rows[start : start + _PORTION]
            vectors = self._read(part)
            if len(part) > limit:
                cosines = np.einsum("ij,j->i", vectors, vector)
                chosen = cosines >= np.partition(cosines, -limit)[-limit] - _ROUNDING
                part, vectors = part[chosen], vectors[chosen]
            best.append(part)
            exact.append(np.multiply(vectors, vector, dtype=np.float64).sum(axis=1))
        return np.concatenate(best), np.concatenate(exact)

    def _read(self, rows: Rows) -> Vectors:
        """A copy of these vectors, as they are kept: rows move when others are deleted."""
        return enlarge(self._small[rows]) if self._whole is None else self._whole.take(rows)

    def _over(self, rows: Rows | slice, compare: Callable[[Rows | slice], NDArray[Number]]) -> NDArray[Number]:
        """A comparison with these rows; where they are many the others are compared too, which spares a copy."""
        if isinstance(rows, slice) or len(rows) < _FEW * len(self._rows):
            return compare(rows)
        return compare(slice(len(self._rows)))[rows]


def _count(rows: Rows | slice) -> int:
    return rows.stop if isinstance(rows, slice) else len(rows)


def _pick(column: NDArray[Number], rows: Rows | slice) -> NDArray[Number]:
    return column[rows] if isinstance(rows, slice) else np.take(column, rows, axis=0)


def _those(rows: Rows | slice, chosen: NDArray[np.bool_]) -> Rows:
    return np.flatnonzero(chosen) if isinstance(rows, slice) else rows[chosen]


def _longer(column: NDArray[Number], capacity: int) -> NDArray[Number]:
    longer = np.empty((capacity, *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    return longer
