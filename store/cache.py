"""The embedding cache: text that was embedded once is never embedded again.

A file of its own, so that it survives the loss of the ledger and of LanceDB: both are rebuilt from markdown
and from here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from memoryd.store.database import connect, file_bytes, translated_errors
from memoryd.store.protocols import Clock, Vectors
from memoryd.store.space import fold_log, reclaim_pages

_SCHEMA = """
CREATE TABLE IF NOT EXISTS embeddings (
    fingerprint TEXT    NOT NULL,
    text_hash   BLOB    NOT NULL,
    vector      BLOB    NOT NULL,   -- float32, little endian
    used_day    INTEGER NOT NULL,   -- days since the epoch, of the last use
    PRIMARY KEY (fingerprint, text_hash)
) WITHOUT ROWID
"""
_DAY = 86_400
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

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        with translated_errors(path):
            self._sql = connect(path)
            try:
                self._sql.execute(_SCHEMA)
            except BaseException:
                self._sql.close()
                raise

    def find(self, fingerprint: str, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        found: dict[bytes, Vectors] = {}
        used: list[tuple[int, str, bytes]] = []
        today = int(self._clock() // _DAY)
        with translated_errors(self.path):
            for text_hash in hashes:
                row = self._sql.execute(
                    "SELECT vector, used_day FROM embeddings WHERE fingerprint = ? AND text_hash = ?",
                    (fingerprint, text_hash),
                ).fetchone()
                if row is None:
                    continue
                found[text_hash] = np.frombuffer(row[0], dtype="<f4")
                if row[1] != today:
                    used.append((today, fingerprint, text_hash))
            if used:  # at most once a day for each
                self._write("UPDATE embeddings SET used_day = ? WHERE fingerprint = ? AND text_hash = ?", used)
        return found

    def peek(self, fingerprint: str, hashes: Iterable[bytes]) -> dict[bytes, Vectors]:
        """What is kept, looked at without using it: from any thread, and nothing is written."""
        held: dict[bytes, Vectors] = {}
        with translated_errors(self.path), closing(connect(self.path, query_only=True)) as sql:
            for text_hash in hashes:
                row = sql.execute(
                    "SELECT vector FROM embeddings WHERE fingerprint = ? AND text_hash = ?", (fingerprint, text_hash)
                ).fetchone()
                if row is not None:
                    held[text_hash] = np.frombuffer(row[0], dtype="<f4")
        return held

    def keep(self, fingerprint: str, vectors: Mapping[bytes, Vectors]) -> None:
        today = int(self._clock() // _DAY)
        rows = [(fingerprint, key, np.asarray(vector, "<f4").tobytes(), today) for key, vector in vectors.items()]
        with translated_errors(self.path):
            self._write("INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?, ?)", rows)

    def prune(self, in_use: Iterable[bytes], unused_days: int, *, is_shared: bool = False) -> int:
        """Drop what no passage uses: what was not used for a while, and what is more than all that is used.

        ``is_shared`` says that other indexes use it too, of which ``in_use`` knows nothing: age alone counts then.
        """
        oldest = int(self._clock() // _DAY) - unused_days
        with translated_errors(self.path):
            self._sql.execute("CREATE TEMP TABLE IF NOT EXISTS in_use (text_hash BLOB PRIMARY KEY) WITHOUT ROWID")
            self._sql.execute("DELETE FROM in_use")
            self._sql.executemany("INSERT OR IGNORE INTO in_use VALUES (?)", ((key,) for key in in_use))
            dropped = self._sql.execute(
                "DELETE FROM embeddings WHERE used_day < ? AND text_hash NOT IN (SELECT text_hash FROM in_use)",
                (oldest,),
            ).rowcount
            if not is_shared:
                dropped += self._sql.execute(_SPARE, (_LEAST_SPARE,)).rowcount
            self._sql.execute("DELETE FROM in_use")
            (left,) = self._sql.execute("SELECT count(*) FROM embeddings").fetchone()
            if dropped > left:  # what is left lies scattered, and is less than what went
                self._sql.execute("VACUUM")
            while reclaim_pages(self._sql):
                pass
            fold_log(self._sql)
        return dropped

    def bytes_on_disk(self) -> int:
        return file_bytes(self.path)

    def close(self) -> None:
        self._sql.close()

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """All of it or nothing, in one commit."""
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            self._sql.executemany(statement, rows)
            self._sql.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has rolled back by itself after a full disk
                self._sql.execute("ROLLBACK")
            raise
