"""The embedding cache: text that was embedded once is never embedded again.

A file of its own, so that it survives the loss of the ledger and of LanceDB: both are rebuilt from markdown
and from here. A vector is kept in the numbers that LanceDB keeps it in. What is given out was checked: a row whose
bytes are not those that were kept is as good as none.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import compress
from pathlib import Path
from typing import Any

import structlog

from memoryd.store.cache_file import COLUMNS, PAGE_BYTES, fingerprint_key, holds_wide_rows, is_packed, pack, prepare
from memoryd.store.cache_numbers import Numbers, as_matrix, as_numbers, is_sound, read, restored, serves, shrunk
from memoryd.store.errors import StoreCorrupt
from memoryd.store.failpoints import failpoint
from memoryd.store.precision import Precision, Small
from memoryd.store.protocols import Clock, Vectors
from memoryd.store.space import fold_log, reclaim_pages
from memoryd.store.sqlite_file import (
    OnDamage,
    connect,
    file_bytes,
    ignore_damage,
    quick_check,
    refuse_empty,
    translated_errors,
)

log = structlog.get_logger()

_DAY = 86_400
_FIND_BATCH = 500  # texts that are looked for in one statement
_LEAST_SPARE = 512  # rows that no passage uses and that are kept even by a small memory
# What is kept of an earlier state of the notes, a branch that is checked out again for instance: as much again as is
# in use, the last used first.
_SPARE = """
DELETE FROM embeddings WHERE (fingerprint, text_hash) IN (
    SELECT fingerprint, text_hash FROM embeddings WHERE text_hash NOT IN (SELECT text_hash FROM in_use)
     ORDER BY used_day DESC
     LIMIT -1 OFFSET max(?, (SELECT count(*) FROM embeddings WHERE text_hash IN (SELECT text_hash FROM in_use))))
"""


class SqliteCache:
    """Used by the worker's embed lane alone, so one connection serves."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        on_damage: OnDamage = ignore_damage,
        *,
        precision: Precision = "float32",
        check_s: float = 0.0,
    ) -> None:
        """``precision``: of LanceDB. ``check_s``: so long at most it is looked at for damage before it is used."""
        self.path = path
        self._precision = precision
        self._clock = clock
        self._on_damage = on_damage
        with translated_errors(path):
            refuse_empty(path)
            self._sql = self._open(check_s)

    def _open(self, check_s: float = 0.0) -> sqlite3.Connection:
        sql = connect(self.path, page_bytes=PAGE_BYTES)
        try:
            if check_s:
                quick_check(sql, self.path, check_s)
            failpoint("cache.create.before")
            prepare(sql)
            failpoint("cache.create.after")
        except BaseException:
            sql.close()
            raise
        return sql

    def check(self, seconds: float) -> bool:
        """Look for damage that no use has met yet; whether the look was finished in time. Raises ``StoreCorrupt``."""
        with self._errors():
            return quick_check(self._sql, self.path, seconds)

    def begin_anew(self, move_away: Callable[[], object]) -> None:
        """Let the files be moved away, and go on with an empty cache under the same object."""
        self._sql.close()
        move_away()
        with translated_errors(self.path):
            self._sql = self._open()

    def find(self, fingerprint: str, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The vectors that are kept of these texts. A row that is not as it was kept is dropped, not given out."""
        return restored(self._find(fingerprint, hashes).items())

    def find_all(self, fingerprint: str, hashes: Sequence[bytes]) -> tuple[list[bool], Vectors]:
        """Which of these texts have a vector, and the vectors of those, in their order; for many of them at once."""
        found = self._find(fingerprint, hashes)
        is_found = [key in found for key in hashes]
        return is_found, as_matrix([found[key] for key in compress(hashes, is_found)])

    def _find(self, fingerprint: str, hashes: Sequence[bytes]) -> dict[bytes, Numbers]:
        found: dict[bytes, Numbers] = {}
        used: list[tuple[int, int | str | None, bytes]] = []
        spoilt: list[tuple[int | str | None, bytes]] = []
        today = self.day
        with self._errors():
            key = fingerprint_key(self._sql, fingerprint)
            for text_hash, blob, used_day, checksum, is_small in self._rows(key, hashes):
                if not is_sound(blob, checksum, is_small):
                    spoilt.append((key, text_hash))
                    continue
                if not serves(self._precision, is_small):
                    continue
                found[text_hash] = (blob, is_small)
                if used_day != today:
                    used.append((today, key, text_hash))
            if used or spoilt:
                failpoint("cache.note.before")
            if used:  # at most once a day for each
                self._write("UPDATE embeddings SET used_day = ? WHERE fingerprint = ? AND text_hash = ?", used)
            if spoilt:
                log.warning("cache_rows_dropped", rows=len(spoilt), reason="not as they were kept")
                self._write("DELETE FROM embeddings WHERE fingerprint = ? AND text_hash = ?", spoilt)
            if used or spoilt:
                failpoint("cache.note.after")
        return found

    def _rows(
        self, key: int | str | None, hashes: Sequence[bytes]
    ) -> Iterator[tuple[bytes, bytes, int, int | None, int]]:
        """Hundreds at a time: a statement for each takes most of the time that a rebuild takes."""
        for start in range(0, len(hashes), _FIND_BATCH):
            portion = hashes[start : start + _FIND_BATCH]
            marks = ",".join("?" * len(portion))
            yield from self._sql.execute(
                "SELECT text_hash, vector, used_day, checksum, is_small FROM embeddings"  # noqa: S608 - marks are "?"
                f" WHERE fingerprint = ? AND text_hash IN ({marks})",
                (key, *portion),
            ).fetchall()

    def peek(self, fingerprint: str, hashes: Iterable[bytes]) -> dict[bytes, Vectors]:
        """What ``find`` would give, looked at without using it: from any thread, and nothing is written."""
        held = self._peek(fingerprint, hashes).items()
        return restored((key, numbers) for key, numbers in held if serves(self._precision, numbers[1]))

    def peek_numbers(self, fingerprint: str, hashes: Iterable[bytes]) -> dict[bytes, Vectors | Small]:
        """The same in the numbers that they are kept in, whether those will do or not."""
        return {key: read(*numbers) for key, numbers in self._peek(fingerprint, hashes).items()}

    def _peek(self, fingerprint: str, hashes: Iterable[bytes]) -> dict[bytes, Numbers]:
        held: dict[bytes, Numbers] = {}
        with translated_errors(self.path), closing(connect(self.path, query_only=True)) as sql:
            sql.execute("BEGIN")  # the rows are maybe laid anew meanwhile
            key = fingerprint_key(sql, fingerprint)
            for text_hash in hashes:
                row = sql.execute(
                    "SELECT vector, checksum, is_small FROM embeddings WHERE fingerprint = ? AND text_hash = ?",
                    (key, text_hash),
                ).fetchone()
                if row is not None and is_sound(*row):
                    held[text_hash] = (row[0], row[2])
        return held

    def keep(self, fingerprint: str, vectors: Mapping[bytes, Vectors]) -> None:
        today = self.day
        kept = dict(zip(vectors, as_numbers(list(vectors.values()), self._precision), strict=True))
        with self._errors():
            failpoint("cache.keep.before")
            with self._transaction() as sql:
                key = fingerprint_key(sql, fingerprint, create=True)
                sql.executemany(
                    f"INSERT OR REPLACE INTO embeddings ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 - ours
                    [
                        (key, text_hash, blob, today, zlib.crc32(blob), is_small)
                        for text_hash, (blob, is_small) in kept.items()
                    ],
                )
            failpoint("cache.keep.after")

    @property
    def day(self) -> int:
        """Today, as it is written beside what is used."""
        return int(self._clock() // _DAY)

    def prune(self, in_use: Iterable[bytes] | None, unused_days: int, *, is_shared: bool = False) -> int:
        """Drop what no passage uses: what was not used for a while, and what is more than all that is used.

        ``in_use``: None if it is what it was the last time on the same day, so that there is nothing to drop.
        ``is_shared`` says that other indexes use it too, of which ``in_use`` knows nothing: age alone counts then.
        """
        with self._errors():
            dropped = 0 if in_use is None else self._drop_unused(in_use, unused_days, is_shared=is_shared)
            (left,) = self._sql.execute("SELECT count(*) FROM embeddings").fetchone()
            failpoint("cache.shrink.before")
            # What others share stays as wide as it is: one of them may want all 32 bits.
            shrinks = self._precision == "int8" and not is_shared and holds_wide_rows(self._sql)
            if shrinks or not is_packed(self._sql):
                pack(self._sql, shrunk if shrinks else None)
            elif dropped > left:  # what is left lies scattered, and is less than what went
                self._sql.execute("VACUUM")
            while reclaim_pages(self._sql):
                pass
            fold_log(self._sql)
            failpoint("cache.shrink.after")
        return dropped

    def _drop_unused(self, in_use: Iterable[bytes], unused_days: int, *, is_shared: bool) -> int:
        oldest = self.day - unused_days
        self._sql.execute("CREATE TEMP TABLE IF NOT EXISTS in_use (text_hash BLOB PRIMARY KEY) WITHOUT ROWID")
        self._sql.execute("DELETE FROM in_use")
        self._sql.executemany("INSERT OR IGNORE INTO in_use VALUES (?)", ((key,) for key in in_use))
        failpoint("cache.prune.before")
        dropped = self._sql.execute(
            "DELETE FROM embeddings WHERE used_day < ? AND text_hash NOT IN (SELECT text_hash FROM in_use)",
            (oldest,),
        ).rowcount
        if not is_shared:
            dropped += self._sql.execute(_SPARE, (_LEAST_SPARE,)).rowcount
        failpoint("cache.prune.after")
        self._sql.execute("DELETE FROM in_use")
        return dropped

    def forget(self, fingerprint: str) -> int:
        """Drop all that one embedder made, and give the space back to the disk."""
        with self._errors():
            failpoint("cache.forget.before")
            key = fingerprint_key(self._sql, fingerprint)
            dropped = self._sql.execute("DELETE FROM embeddings WHERE fingerprint = ?", (key,)).rowcount
            failpoint("cache.forget.after")
            self._sql.execute("VACUUM")
            self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return dropped

    def checkpoint(self) -> bool:
        """Fold the write-ahead log back, from any thread; whether all of it was. Nobody is waited for."""
        with self._errors(), closing(connect(self.path, query_only=True)) as sql:
            return fold_log(sql, patient=False)

    def bytes_on_disk(self) -> int:
        return file_bytes(self.path)

    def close(self) -> None:
        self._sql.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with translated_errors(self.path):
                yield
        except StoreCorrupt as error:
            self._on_damage(error)
            raise

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._transaction() as sql:
            sql.executemany(statement, rows)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing, in one commit."""
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield self._sql
            self._sql.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has rolled back by itself after a full disk
                self._sql.execute("ROLLBACK")
            raise
