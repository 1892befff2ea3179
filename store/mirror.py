"""An exact vector search in memory: what LanceDB holds, 8 bits a number, and the best few again as they were written.

Of 35,000 rows float32 takes 54 MB and numpy 5 ms, float16 27 MB and 2.5 ms, int8 13 MB and 1 ms: so int8 is searched,
and every row that it cannot rule out, by the bound of its error, is compared in float32. The answer is float32's.
Of more rows than ``EXACT_ROWS`` only those are compared whose sketches are most like the query's (``sketches``). Beyond
``CELL_ROWS`` sketches lie in cells, of which a query looks at a part: they are put there on a thread of its own, and
until that is done a query looks at all of them.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import deque
from collections.abc import Callable, Collection, Sequence
from itertools import repeat
from pathlib import Path
from typing import TypeVar

import numpy as np
import structlog
from numpy.typing import NDArray

from memoryd.store.cells import Cells, sample_size
from memoryd.store.directions import Directions
from memoryd.store.kernels import products
from memoryd.store.native_thread import give_way, name_thread
from memoryd.store.precision import Precision, Small, enlarge, restore, scales, shrink, steps
from memoryd.store.protocols import Match, Vectors
from memoryd.store.row_file import RowFile
from memoryd.store.sketches import Sketches

log = structlog.get_logger()

Rows = NDArray[np.int64]
Places = NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)

EXACT_ROWS = 20_000
ALIKE = 4000  # rows that are looked at beyond their sketches, where there are more than EXACT_ROWS,
_FIRST_PART = 24  # or one in so many, while that is less
_FIRST_ROWS = 1024
_ALIKE_A_MATCH = 12  # at least, for each match that is wanted
_ALIKE_OF = 400  # rows, one at least: the more there are, the more are as alike as the nearest
CELL_ROWS = 200_000
CELLS_THREAD = "memoryd-cells"
PART = 0.2  # of the cells that a query looks at, if it may see all rows
_NICE = 10  # nobody waits for rows to be put into cells
_MOST_ALIKE = 60_000  # rows that are asked for by their sketches, however few of them a query may see
_FEWER = 10  # times: where a filter leaves so many rows less, comparing them is quicker than looking at all sketches
_ENOUGH = 0.5  # of the rows that are wanted
_MOST_FILTERS = 4  # that are kept
_SAMPLE = 10_000  # rows that tell well enough which way vectors point
_ROUNDING = 1e-5  # more than the sum of a product of unit vectors in float32 can be off
_DEVIATIONS = 6.0  # beyond which no error is expected, in a thousand million rows one
_FEW_LATE = 256  # rows: so many are put into cells while queries wait
_FEW = 0.25  # of the rows: so few are copied together to be compared, of more the others are compared too
_PORTION = 8192  # rows that are compared in float32 at once
_TOGETHER = 4096  # rows that are copied together to be compared in 8 bits


def near(vectors: Vectors, vector: Vectors) -> Vectors:
    """The cosine of each row. A matrix product would round equal rows differently, by where they stand."""
    return np.asarray(np.einsum("ij,j->i", vectors, vector), np.float32)


class Mirror:
    def __init__(
        self,
        dimension: int,
        precision: Precision = "float32",
        *,
        folder: Path | None = None,
        capacity: int = 0,
        exact_rows: int = EXACT_ROWS,
        alike: int = ALIKE,
        cell_rows: int = CELL_ROWS,
        part: float = PART,
    ) -> None:
        """``folder``: where vectors are kept as they were written, if that is in float32; None: in memory.
        ``capacity``: rows that are about to come.
        """
        self._lock = threading.Lock()
        self._exact_rows, self._alike = exact_rows, alike
        self._cell_rows, self._part = cell_rows, part
        self._rows: dict[int, int] = {}  # passage id -> row
        self._places: dict[int, int] = {}  # document -> its place in a list of all that there ever were
        # Rows of each document, by its place; None: not counted since something was written.
        self._sizes: Rows | None = None
        self._filters: deque[tuple[frozenset[int], Places]] = deque(maxlen=_MOST_FILTERS)  # that were asked for last
        self._awaited = capacity
        capacity = max(capacity, _FIRST_ROWS)
        self._ids: NDArray[np.int64] = np.empty(capacity, np.int64)
        self._documents: NDArray[np.int32] = np.empty(capacity, np.int32)  # their places
        self._small: Small = np.empty((capacity, dimension), np.int8)
        self._scales: Vectors = np.empty(capacity, np.float32)
        self._sketches: Sketches | Cells | None = None  # None while every row is compared
        self._late: set[int] | None = None  # rows that were written while all are put into cells; None: they are not
        self._spared = 0  # rows that may still be written before cells, which could not be made, are tried again
        # Of vectors that are kept in 8 bits these are all there is; of others, how far away the vector is, and itself.
        is_whole = precision == "float32"
        self._errors: Vectors | None = np.empty(capacity, np.float32) if is_whole else None
        self._whole = RowFile(dimension, folder, capacity) if is_whole else None
        self._likely = min(1.0, _DEVIATIONS / math.sqrt(dimension))

    def __len__(self) -> int:
        return len(self._rows)

    # -- writing ------------------------------------------------------------------------------------------

    def upsert(self, ids: Sequence[int], documents: Sequence[int], vectors: Vectors | Small) -> None:
        """``vectors``: also in the 8 bits that they are kept in, if they are."""
        if not len(ids):
            return
        small = shrink(vectors)
        step = steps(small)
        if self._errors is not None:
            vectors = restore(vectors)
            step = scales(vectors)
            lost = vectors - small * step[:, None]
            errors = np.sqrt(np.einsum("ij,ij->i", lost, lost))
        if self._sketches is None and len(self._rows) + len(ids) > self._exact_rows:
            self._sketch_all(small)
        held = self._sketches
        sketches = held.directions.sketch(small) if held else None
        with self._lock:
            rows = np.array([self._rows.setdefault(identity, len(self._rows)) for identity in ids], np.int64)
            self._reserve(len(self._rows))
            self._ids[rows] = ids
            self._documents[rows] = [self._places.setdefault(each, len(self._places)) for each in documents]
            self._sizes = None
            self._small[rows], self._scales[rows] = small, step
            if self._errors is not None:
                self._errors[rows] = errors
            if self._sketches and sketches is not None:
                if self._sketches is not held:  # cells came into use a moment ago
                    sketches = self._sketches.directions.sketch(small)
                self._sketches.write(rows, sketches)
                if self._late is not None:
                    self._late.update(rows.tolist())
            if self._whole is not None:
                self._whole.write(rows, restore(vectors))
            self._spared -= len(ids)
            if not self._wants_cells():
                return
            self._late = set()
        threading.Thread(target=put_into_cells, args=[weakref.ref(self)], name=CELLS_THREAD, daemon=True).start()

    def delete(self, ids: Collection[int]) -> None:
        """Fill each hole with the last row, so that the matrix stays dense."""
        moved: set[int] = set()
        with self._lock:
            self._sizes = None
            for identity in ids:
                row = self._rows.pop(identity, None)
                if row is None:
                    continue
                last = len(self._rows)
                if row != last:
                    self._move(last, row)
                    self._rows[int(self._ids[row])] = row
                    moved.add(row)
            self._sketch_anew(np.array(sorted(row for row in moved if row < len(self._rows)), np.int64))

    def _move(self, source: int, target: int) -> None:
        for column in (self._ids, self._documents, self._small, self._scales, self._errors):
            if column is not None:
                column[target] = column[source]
        if self._whole is not None:
            self._whole.write(np.array([target]), self._whole.take(np.array([source])))

    def _sketch_anew(self, rows: Rows) -> None:
        if self._sketches is None:
            return
        for start in range(0, len(rows), _PORTION):
            part = rows[start : start + _PORTION]
            self._sketches.write(part, self._sketches.directions.sketch(self._small[part]))
        if self._late is not None:
            self._late.update(rows.tolist())

    def _reserve(self, count: int) -> None:
        if count <= len(self._ids):
            return
        capacity = max(count, 2 * len(self._ids))
        self._ids, self._documents = _longer(self._ids, capacity), _longer(self._documents, capacity)
        self._small = _longer(self._small, capacity)
        self._scales = _longer(self._scales, capacity)
        if self._errors is not None:
            self._errors = _longer(self._errors, capacity)
        if self._whole is not None:
            self._whole.reserve(capacity)

    def _sketch_all(self, new: Small) -> None:
        """From now on rows have sketches: made before the lock is taken, for only who writes changes rows."""
        held = self._small[: len(self._rows)]
        step = max(1, (len(held) + len(new)) // _SAMPLE)
        sketches = Sketches(Directions(np.concatenate([held[::step], new[::step]])))
        for start in range(0, len(held), _PORTION):
            part = held[start : start + _PORTION]
            sketches.write(np.arange(start, start + len(part)), sketches.directions.sketch(part))
        with self._lock:
            self._sketches = sketches

    # -- cells --------------------------------------------------------------------------------------------

    @property
    def in_cells(self) -> bool:
        """Whether all rows are, and are not about to be put into others."""
        return isinstance(self._sketches, Cells) and self._late is None

    def _wants_cells(self) -> bool:
        held, count = self._sketches, len(self._rows)
        if held is None or self._late is not None or self._spared > 0:
            return False
        return held.are_outgrown(count) if isinstance(held, Cells) else count >= max(self._cell_rows, self._awaited)

    def make_cells(self) -> Cells:
        """Where they are is told by some of the rows. None is in them yet; what is written from now on is noted."""
        with self._lock:
            count, small = max(1, len(self._rows)), self._small
            self._late = self._late or set()
        sample = small[: count : max(1, count // sample_size(count))]
        return Cells(Directions(sample[:: max(1, len(sample) // _SAMPLE)]), sample, count)

    def put_into(self, cells: Cells, first: int) -> int | None:
        """Put a portion of the rows from that one on into the cells, and tell where to go on.

        After the last row those that were written meanwhile; when few of these are left the cells come into use, and
        there is nothing to go on with.
        """
        with self._lock:
            end = max(first, min(first + _PORTION, len(self._rows)))
            rows = np.arange(first, end) if first < end else self._take_late()
            small = self._small[rows]
            if first == end and not self._late and len(rows) <= _FEW_LATE:
                cells.write(rows, cells.directions.sketch(small))
                self._sketches, self._late = cells, None
                return None
        cells.write(rows, cells.directions.sketch(small))
        return end

    def do_without(self) -> None:
        """Look at what is there, all sketches or cells of before, until as many rows were written as there are now."""
        with self._lock:
            self._late, self._spared = None, len(self._rows)

    def _take_late(self) -> Rows:
        late = sorted(self._late or ())
        self._late = set(late[_PORTION:])
        return np.array(late[:_PORTION], np.int64)

    # -- searching ----------------------------------------------------------------------------------------

    def search(self, vector: Vectors, limit: int, documents: Collection[int] | None = None) -> list[Match]:
        """The nearest by cosine, best first; only of the given documents, if any are given."""
        if limit <= 0:
            return []
        with self._lock:
            within = None if documents is None else self._places_of(documents)
            alike = self._most_alike(vector, limit, within)
            rows = self._not_ruled_out(vector, limit, self._rows_of(within) if alike is None else alike)
            best, exact = self._compare_whole(vector, limit, rows)
            ids = self._ids[best]
        # Ties go by id: the same vectors give the same answer, whatever was written and deleted before.
        order = np.lexsort((ids, -exact))[:limit]
        return list(map(Match, ids[order].tolist(), exact[order].tolist()))

    def vectors(self, ids: Collection[int]) -> dict[int, Vectors]:
        with self._lock:
            rows = {identity: row for identity in ids if (row := self._rows.get(identity)) is not None}
            return dict(zip(rows, self._read(np.array(list(rows.values()), np.int64)), strict=True))

    def ids(self) -> Rows:
        with self._lock:
            return self._ids[: len(self._rows)].copy()

    def cosines(self, ids: Sequence[int], vector: Vectors) -> Vectors:
        with self._lock:
            rows = np.fromiter(map(self._rows.get, ids, repeat(-1)), np.int64, len(ids))
            held = rows >= 0
            cosines = np.full(len(ids), np.nan, np.float32)
            cosines[held] = self._near(rows[held], vector)
        return cosines

    def _places_of(self, documents: Collection[int]) -> Places:
        """Whether each place is that of one of them. Who asks mostly asks again for the very same."""
        for asked, known in self._filters:
            if asked is documents and len(known) == len(self._places) + 1:
                return known
        within = np.zeros(len(self._places) + 1, np.bool_)
        within[[self._places.get(document, -1) for document in documents]] = True
        within[-1] = False  # the place of documents that are not there
        if isinstance(documents, frozenset):  # another collection may have changed by then
            self._filters.append((documents, within))
        return within

    def _rows_of(self, within: Places | None) -> Rows | slice:
        count = len(self._rows)
        return slice(count) if within is None else np.flatnonzero(within[self._documents[:count]])

    def _count_rows(self, within: Places | None) -> int:
        if within is None:
            return len(self._rows)
        if self._sizes is None:
            self._sizes = np.bincount(self._documents[: len(self._rows)], minlength=len(self._places))
        return int(self._sizes @ within[:-1])

    def _most_alike(self, vector: Vectors, limit: int, within: Places | None) -> Rows | None:
        """The rows whose sketches are most like the query's, some for each match; None: all are to be compared.

        If only some may be seen, as many are asked for as bring enough of these by chance. Where they bring too few,
        for what is near is elsewhere, all of these are compared.
        """
        count, seen = len(self._rows), self._count_rows(within)
        if self._sketches is None or seen <= max(self._exact_rows, count // _FEWER):
            return None
        wanted = max(min(self._alike, seen // _FIRST_PART), _ALIKE_A_MATCH * limit, seen // _ALIKE_OF)
        asked = wanted * count // seen
        if asked > min(_MOST_ALIKE, count):
            return None
        alike = self._sketches.most_alike(vector, asked, count, self._part * count / seen)
        if within is not None:
            alike = alike[within[self._documents[alike]]]
        return alike if len(alike) >= _ENOUGH * wanted else None

    def _not_ruled_out(self, vector: Vectors, limit: int, rows: Rows | slice) -> Rows:
        """The rows that may be among the nearest, as far as 8 bits can tell."""
        if _count(rows) <= limit:
            return _those(rows, np.ones(_count(rows), np.bool_))
        query, step = shrink(vector[None])[0], float(scales(vector[None])[0])
        found = self._over(rows, lambda part: products(query, _pick(self._small, part)))
        found *= self._scales[rows]  # a cosine in steps of the query's: a pass over all rows less
        # What rounding adds is at most the error of a row by the query's length, and that of the query by the row's. So
        # much only if both point the same way, and rounding points nowhere in particular: of many numbers far less.
        length, error = float(np.linalg.norm(vector)), float(np.linalg.norm(vector - query * step))
        slack: Vectors | np.float32 = np.float32((self._likely * error + _ROUNDING * max(length, 1.0)) / step)
        if self._errors is not None:
            slack = slack + self._errors[rows] * np.float32(self._likely * (length + error) / step)
        at_least = found - slack
        at_least.partition(-limit)
        return _those(rows, found >= at_least[-limit] - slack)

    def _compare_whole(self, vector: Vectors, limit: int, rows: Rows) -> tuple[Rows, Vectors]:
        """At least the nearest of the rows, and their cosines."""
        best: list[Rows] = [np.empty(0, np.int64)]
        exact: list[Vectors] = [np.empty(0, np.float32)]
        for start in range(0, len(rows), _PORTION):
            part = rows[start : start + _PORTION]
            cosines = self._near(part, vector)
            if len(part) > limit:
                chosen = cosines >= np.partition(cosines, -limit)[-limit]
                part, cosines = part[chosen], cosines[chosen]
            best.append(part)
            exact.append(cosines)
        return np.concatenate(best), np.concatenate(exact)

    def _near(self, rows: Rows, vector: Vectors) -> Vectors:
        """The cosine of each of these vectors, as they are kept."""
        if self._whole is None:
            return near(self._small[rows].astype(np.float32), vector) * self._scales[rows]
        return near(self._whole.take(rows), vector)

    def _read(self, rows: Rows) -> Vectors:
        """A copy of these vectors, as they are kept: rows move when others are deleted."""
        return enlarge(self._small[rows]) if self._whole is None else self._whole.take(rows)

    def _over(self, rows: Rows | slice, compare: Callable[[Rows | slice], NDArray[Number]]) -> NDArray[Number]:
        """A comparison with these rows; where they are many the others are compared too, which spares a copy."""
        if isinstance(rows, slice) or len(rows) <= _TOGETHER:
            return compare(rows)
        if len(rows) < _FEW * len(self._rows):  # a part at a time, which is copied and compared while it is at hand
            return np.concatenate([compare(rows[at : at + _TOGETHER]) for at in range(0, len(rows), _TOGETHER)])
        return compare(slice(len(self._rows)))[rows]


def put_into_cells(mirror: weakref.ref[Mirror]) -> None:
    """All rows of a mirror, unless nobody has it any more. What fails here costs a query time, and nothing else."""
    name_thread()
    give_way(_NICE)
    try:
        _put_all_into_cells(mirror)
    except Exception as error:  # noqa: BLE001 - whatever it is, most likely too little memory
        log.warning("cells_failed", reason=repr(error))
        if (held := mirror()) is not None:
            held.do_without()


def _put_all_into_cells(mirror: weakref.ref[Mirror]) -> None:
    held = mirror()
    cells = held.make_cells() if held is not None else None  # one without rows is one, too
    place: int | None = 0
    while cells and held is not None and place is not None:
        place = held.put_into(cells, place)
        held = None  # whoever lets go of the mirror does not wait for the rest
        held = mirror()


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
