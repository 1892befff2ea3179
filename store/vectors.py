"""LanceDB as the durable store of a generation's vectors.

Writes come in batches, one commit each; old versions and small fragments are cleared by ``compact`` from the
same writer. Searches are served from the mirror; only beyond ``MIRROR_ROWS`` the table itself is read through.
LanceDB's own search takes a second for 350,000 rows without an index, and the mirror a few milliseconds.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import structlog

from memoryd.store.errors import StoreCorrupt
from memoryd.store.failpoints import failpoint
from memoryd.store.lance import (
    connect,
    damaged,
    data_files,
    first_line,
    kept_numbers,
    kept_vectors,
    open_or_create,
    sweep,
    table_rows,
    table_schema,
    translated_errors,
)
from memoryd.store.mirror import Mirror, near
from memoryd.store.place import VectorPlace, as_place
from memoryd.store.precision import Precision, Small, are_sound
from memoryd.store.protocols import Match, Vectors, VectorStats
from memoryd.store.quarantine import folder_bytes
from memoryd.store.sqlite_file import OnDamage, ignore_damage
from memoryd.store.vector_ids import Column, lacking

log = structlog.get_logger()

Found = TypeVar("Found")
ReadVectors = Callable[[Sequence[int]], Mapping[int, Vectors]]

COMPACT_AFTER = 256  # commits
MIRROR_ROWS = 4_000_000  # about 2.2 GB at 384 dimensions
_DELETE_BATCH = 1000
_ROWS_A_COMMIT = 200  # a compaction is due after one commit for so many rows, and COMPACT_AFTER at least
SCATTERED_COMMITS = 32
_LONGEST_SEARCH = timedelta(minutes=10)  # far longer than any search is let run
_CONFLICTS = 4  # tries, if others commit at the same time
_CONFLICT = ("commit conflict", "concurrent writers")
_LOOKS = 5  # at a table that is compacted meanwhile
_SCAN_ROWS = 8192
_MIRRORED_ROWS = 1024  # at once
_CONVERTED_ROWS = 32_768  # in one commit


class LanceVectors:
    def __init__(
        self,
        place: VectorPlace | Path,
        fingerprint: str,
        dimension: int,
        *,
        precision: Precision = "float32",
        mirror_rows: int | None = None,
        on_damage: OnDamage = ignore_damage,
        compact_after: int = COMPACT_AFTER,
    ) -> None:
        self.place = as_place(place)
        self._fingerprint = fingerprint
        self._path = self.place.table_path(fingerprint)
        self._dimension = dimension
        self._wanted = precision
        if mirror_rows is None:  # a search far away would fetch the whole table: it is always mirrored
            mirror_rows = sys.maxsize if self.place.is_remote else MIRROR_ROWS
        self._mirror_rows = mirror_rows
        self._compact_after = compact_after
        self.on_damage = on_damage
        self._in_doubt = False  # whether a write that failed may have left rows that the mirror does not know
        self._files: dict[str, tuple[int, int]] | None = None  # as they were after the last write; None: not known
        with translated_errors(self.place, fingerprint):
            if self.place.folder is not None:
                sweep(self._path)
            self._table, self._precision = open_or_create(self.place, fingerprint, dimension, precision)
            self._mirror = self._load_mirror()
            self._commits = self._versions = len(self._table.list_versions())  # since it was compacted, as it seems
            self._rows = self._table.count_rows()  # when it was, or was opened

    @property
    def name(self) -> str:
        """Of the table."""
        return str(self._table.name)

    def upsert(self, ids: Sequence[int], documents: Sequence[int], vectors: Vectors) -> None:
        if not ids:
            return
        table = table_rows(ids, documents, vectors, self._precision)
        last = {identity: row for row, identity in enumerate(ids)}  # LanceDB would keep an id given twice twice
        rows = table if len(last) == len(ids) else table.take(list(last.values()))
        try:
            with self._errors():
                failpoint("vectors.upsert.before")
                self._commit(lambda: self._put(rows, ids))
                self._count_commit()
                failpoint("vectors.upsert.after")
        except BaseException:
            self._in_doubt = True
            raise
        if self._mirror is not None:
            _reflect(self._mirror, ids, documents, vectors)
            if len(self._mirror) > self._mirror_rows:
                self._mirror = None

    def _put(self, rows: Any, ids: Sequence[int]) -> None:
        """Rows that are not there yet are added, which takes half the time: LanceDB need not read the others for it.

        But then it does not notice either if those are damaged: only if their files are as they were is there no need.
        """
        mirror = self._mirror
        is_known = mirror is not None and not mirror.vectors(ids) and not self._in_doubt
        if is_known and self._files is not None and self._files.items() <= (data_files(self._path) or {}).items():
            self._table.add(rows)
        else:
            self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        self._files = None if self.place.is_remote else data_files(self._path)

    def delete(self, ids: Collection[int]) -> None:
        ordered = sorted(ids)
        with self._errors():
            for start in range(0, len(ordered), _DELETE_BATCH):
                listed = ",".join(map(str, ordered[start : start + _DELETE_BATCH]))
                failpoint("vectors.delete.before")
                self._commit(partial(self._table.delete, f"id IN ({listed})"))
                self._count_commit()
                failpoint("vectors.delete.after")
        if self._mirror is not None:
            self._mirror.delete(ids)

    def search(self, vector: Vectors, limit: int, documents: Collection[int] | None = None) -> list[Match]:
        if limit <= 0:
            return []
        mirror = self._mirror
        if mirror is not None:
            return mirror.search(vector, limit, documents)
        return self._look(lambda: self._read_through(vector, limit, documents))

    def _read_through(self, vector: Vectors, limit: int, documents: Collection[int] | None) -> list[Match]:
        query = self._table.search().select(["id", "vector"])
        if documents is not None:
            query = query.where(f"document IN ({','.join(map(str, documents)) or 'NULL'})")
        ids, cosines = np.empty(0, np.int64), np.empty(0, np.float32)
        for rows in query.to_batches(_SCAN_ROWS):
            ids = np.concatenate([ids, rows["id"].to_numpy()])
            cosines = np.concatenate([cosines, near(kept_vectors(rows, self._dimension), vector)])
            best = np.lexsort((ids, -cosines))[:limit]
            ids, cosines = ids[best], cosines[best]
        return list(map(Match, ids.tolist(), cosines.tolist()))

    def vectors(self, ids: Collection[int]) -> dict[int, Vectors]:
        mirror = self._mirror
        if mirror is not None:
            return mirror.vectors(ids)
        if not ids:
            return {}
        listed = ",".join(map(str, ids))
        rows = self._look(
            lambda: self._table.search().where(f"id IN ({listed})").select(["id", "vector"]).limit(len(ids)).to_arrow()
        )
        return dict(zip(rows["id"].to_pylist(), kept_vectors(rows, self._dimension), strict=True))

    def cosines(self, ids: Sequence[int], vector: Vectors) -> Vectors:
        mirror = self._mirror
        if mirror is not None:
            return mirror.cosines(ids, vector)
        held = self.vectors(ids)
        unknown = np.full(self._dimension, np.nan, np.float32)
        rows = [held.get(identity, unknown) for identity in ids]
        return near(np.array(rows, np.float32).reshape(-1, self._dimension), vector)

    def unsearched(self, ids: Column) -> Column:
        """Of rows that the table holds, in ascending order, those that a search does not see."""
        mirror = self._mirror
        if mirror is None:
            return np.empty(0, np.int64)
        return lacking(ids, np.sort(mirror.ids()))

    def ids(self) -> set[int]:
        return set(self._read_ids()["id"].to_pylist())

    def count(self) -> int:
        """By reading every id, which meets damage where asking LanceDB for the number of its rows would not."""
        return int(self._read_ids().num_rows)

    def _read_ids(self) -> Any:
        return self._look(lambda: self._table.search().select(["id"]).to_arrow())

    def compact(self) -> None:
        # The mirror reads no version but the one it was filled from; a search in LanceDB reads the one it began with.
        age = timedelta(0) if self._mirror is not None else _LONGEST_SEARCH
        with self._errors(), warnings.catch_warnings():
            # It warns that concurrent users of old versions fail; there are none, as said above and by the lock.
            warnings.simplefilter("ignore", UserWarning)
            failpoint("vectors.compact.before")
            # What was never committed is ours alone, unless somebody on another machine is about to commit it.
            unverified = not self.place.is_remote
            self._commit(lambda: self._table.optimize(cleanup_older_than=age, delete_unverified=unverified))
            self._commits, self._rows = 0, self._table.count_rows()
            self._versions = len(self._table.list_versions())
            self._files = None if self.place.is_remote else data_files(self._path)
            failpoint("vectors.compact.after")

    def backlog(self) -> float:
        # Compaction may rewrite the whole table, so a large one waits for more.
        return float(self._commits / max(self._compact_after, self._rows / _ROWS_A_COMMIT))

    def is_scattered(self) -> bool:
        """Whether most of it lies in many small files, each of which a deletion opens: so after a burst."""
        mirror = self._mirror
        if mirror is None or self._commits < SCATTERED_COMMITS:
            return False
        return len(mirror) >= 2 * int(self._rows)  # when it was compacted last

    def rewrite(self) -> None:
        # A crash in between leaves no table: it is made anew from the embedding cache, as any that is lost.
        with self._errors():
            rows = self._table.to_arrow()
            database, name = connect(self.place), self.name
            failpoint("vectors.rewrite.before")
            database.drop_table(name)
            failpoint("vectors.rewrite.dropped")
            schema = table_schema(self._dimension, self._precision)
            self._table = database.create_table(name, rows, schema=schema)
            self._commits, self._rows, self._versions = 0, rows.num_rows, 1
            failpoint("vectors.rewrite.after")

    def is_convertible(self) -> bool:
        """Whether the vectors are kept in another precision than the one that is wanted."""
        return self._precision != self._wanted

    def convert(self, read: ReadVectors) -> set[int]:
        """Keep the vectors in the precision that is wanted. The mirror answers as before until all are written.

        ``read`` tells vectors as they were embedded, for what was lost with the precision. Returns those that it does
        not know: they are not held any more. A crash in between leaves a part, and the rest is placed anew from the
        embedding cache at the next start.
        """
        left_out: set[int] = set()
        with self._errors():
            before = self._table.version
            failpoint("vectors.convert.before")
            try:
                self._write_converted(before, read, left_out)
            except BaseException:
                self._table.checkout_latest()
                self._table.restore(before)
                raise
            self._precision = self._wanted
            self._mirror = self._load_mirror()
            self._commits = self._versions = len(self._table.list_versions())
            failpoint("vectors.convert.after")
        return left_out

    def _write_converted(self, version: int, read: ReadVectors, left_out: set[int]) -> None:
        """The first commit replaces all that there was, the others add to it; a small table is one commit."""
        database = connect(self.place)
        held = database.open_table(self.name)
        held.checkout(version)
        schema = table_schema(self._dimension, self._wanted)
        table = None
        for rows in _portions(held.search().select(["id", "document", "vector"]).to_batches(_SCAN_ROWS)):
            ids, documents = rows["id"].to_pylist(), rows["document"].to_pylist()
            vectors = kept_vectors(rows, self._dimension)
            if self._wanted == "float32":
                known = read(ids)
                left_out.update(set(ids) - known.keys())
                owners = dict(zip(ids, documents, strict=True))
                ids = [identity for identity in ids if identity in known]
                documents = [owners[identity] for identity in ids]
                vectors = np.array([known[each] for each in ids], np.float32).reshape(-1, self._dimension)
            converted = table_rows(ids, documents, vectors, self._wanted)
            if table is None:
                table = database.create_table(self.name, converted, schema=schema, mode="overwrite")
                failpoint("vectors.convert.begun")
            else:
                table.add(converted)
        self._table = table or database.create_table(self.name, schema=schema, mode="overwrite")

    def stats(self) -> VectorStats:
        """Far away they are what is remembered: who asks does not wait for a request, nor for an outage to end."""
        if self.place.folder is None:
            held = self._table.stats()  # of the version that is open: it is in memory
            size, versions = held["total_bytes"], self._versions
        else:
            held, versions = self._look(lambda: (self._table.stats(), len(self._table.list_versions())))
            size = folder_bytes(self.place.folder)
        return VectorStats(
            rows=held["num_rows"], bytes=size, versions=versions, fragments=held["fragment_stats"]["num_fragments"]
        )

    def reopen(self) -> None:
        with self._errors():
            self._table.checkout_latest()
            self._mirror = self._load_mirror()

    def _look(self, ask: Callable[[], Found]) -> Found:
        """Read. Files that a compaction took away meanwhile are no damage: those in their place are looked at."""
        with self._errors():
            for _ in range(_LOOKS - 1):
                try:
                    return ask()
                except Exception as error:
                    if "not found" not in str(error).lower():
                        raise
                    self._table.checkout_latest()
            return ask()

    def _commit(self, write: Callable[[], object]) -> None:
        """Write. If somebody else has committed meanwhile, take that in and write again.

        An open table keeps to the version that it knows: without looking it would be refused for ever.
        """
        for left in reversed(range(_CONFLICTS)):
            try:
                write()
            except Exception as error:
                if not left or not self._is_conflict(error):
                    raise
                log.warning("vectors_conflict", reason=None if self.place.is_remote else first_line(str(error)))
                self._table.checkout_latest()
                self._mirror = self._load_mirror()
            else:
                return

    def _is_conflict(self, error: Exception) -> bool:
        """Far away another machine may have compacted the version that is open here, too: its files are gone then."""
        words = str(error).lower()
        return any(sign in words for sign in _CONFLICT) or (self.place.is_remote and "not found" in words)

    def _count_commit(self) -> None:
        self._commits += 1
        self._versions += 1

    def _load_mirror(self) -> Mirror | None:
        count = self._table.count_rows()
        if count > self._mirror_rows:
            return None
        mirror = Mirror(self._dimension, self._precision, folder=self.place.folder, capacity=count)
        for rows in self._table.search().select(["id", "document", "vector"]).to_batches(_SCAN_ROWS):
            kept = kept_numbers(rows, self._dimension)
            if not are_sound(kept).all():
                raise damaged(self._path, "it holds vectors that were never written")
            _reflect(mirror, rows["id"].to_pylist(), rows["document"].to_pylist(), kept)
        self._in_doubt = False
        return mirror

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with translated_errors(self.place, self._fingerprint):
                if self.place.outage.trouble():  # it is back: with the keys as they are now, and what it holds now
                    database = connect(self.place)
                    database.list_tables()  # first what takes the fewest requests
                    self._table = database.open_table(self.name)
                yield
        except StoreCorrupt as error:
            self.on_damage(error)
            raise


def _reflect(mirror: Mirror, ids: Sequence[int], documents: Sequence[int], vectors: Vectors | Small) -> None:
    """Few rows at a time: what they are reckoned into then fits into the processor's cache, and takes half the time."""
    for start in range(0, len(ids), _MIRRORED_ROWS):
        end = start + _MIRRORED_ROWS
        mirror.upsert(ids[start:end], documents[start:end], vectors[start:end])


def _portions(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows in fewer tables: LanceDB reads each of its files by itself, however small."""
    import pyarrow as pa

    gathered: list[Any] = []
    for batch in batches:
        gathered.append(batch)
        if sum(each.num_rows for each in gathered) >= _CONVERTED_ROWS:
            yield pa.Table.from_batches(gathered)
            gathered = []
    if gathered:
        yield pa.Table.from_batches(gathered)
