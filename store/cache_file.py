"""How the embedding cache lies in its file: rows of some hundred bytes, packed in pages that hold many of them.

A vector of 384 numbers takes 384 bytes in 8 bits, 1.5 KB in 32. As a key's own row (WITHOUT ROWID) it would stand where
its hash does, in pages that are two thirds full, and in 32 bits be cut after a quarter of a page. As a row that the key
leads to it stands whole behind the one before. What made the vectors is named once, and a number stands for it in each
row. Files from before are used as they are until ``pack``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from memoryd.store.failpoints import failpoint

Row = tuple[object, bytes, bytes, int, int | None, int]  # in the order of COLUMNS

PAGE_BYTES: Final = 16_384
COLUMNS: Final = "fingerprint, text_hash, vector, used_day, checksum, is_small"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS embeddings (
    fingerprint INTEGER NOT NULL,           -- its id in fingerprints
    text_hash   BLOB    NOT NULL,
    vector      BLOB    NOT NULL,
    used_day    INTEGER NOT NULL,           -- days since the epoch, of the last use
    checksum    INTEGER,                    -- CRC-32 of the vector; NULL = kept before there were any
    is_small    INTEGER NOT NULL DEFAULT 0, -- 1: its numbers are int8, 0: float32, little endian
    UNIQUE (fingerprint, text_hash)
)
"""
# None is ever dropped, or a number might stand for another one the next time.
_FINGERPRINTS: Final = """
CREATE TABLE IF NOT EXISTS fingerprints (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE)
"""


def prepare(sql: sqlite3.Connection) -> None:
    """Have the tables, in the columns of today."""
    sql.execute(_FINGERPRINTS)
    sql.execute(_SCHEMA)
    columns = {row[1] for row in sql.execute("PRAGMA table_info(embeddings)")}
    if "checksum" not in columns:
        sql.execute("ALTER TABLE embeddings ADD COLUMN checksum INTEGER")
    if "is_small" not in columns:
        sql.execute("ALTER TABLE embeddings ADD COLUMN is_small INTEGER NOT NULL DEFAULT 0")


def is_packed(sql: sqlite3.Connection) -> bool:
    """Whether the rows lie as ``prepare`` lays them in a new file: before, each had the fingerprint as text."""
    query = "SELECT type FROM pragma_table_info('embeddings') WHERE name = 'fingerprint'"
    return bool(sql.execute(query).fetchone() == ("INTEGER",))


def fingerprint_key(sql: sqlite3.Connection, fingerprint: str, *, create: bool = False) -> int | str | None:
    """What stands in the rows for a fingerprint; None: nothing was ever kept of it, and it is not to be created."""
    if not is_packed(sql):
        return fingerprint
    if create:
        sql.execute("INSERT OR IGNORE INTO fingerprints (fingerprint) VALUES (?)", (fingerprint,))
    row = sql.execute("SELECT id FROM fingerprints WHERE fingerprint = ?", (fingerprint,)).fetchone()
    return int(row[0]) if row else None


def holds_wide_rows(sql: sqlite3.Connection) -> bool:
    """Whether there are vectors of 32 bits a number."""
    return bool(sql.execute("SELECT EXISTS (SELECT 1 FROM embeddings WHERE NOT is_small)").fetchone()[0])


def pack(sql: sqlite3.Connection, convert: Callable[[Row], Row | None] | None = None) -> None:
    """Lay the rows anew, each as ``convert`` makes it or (None) not at all: all or nothing. Then shorten the file."""
    failpoint("cache.pack.before")
    sql.execute("BEGIN IMMEDIATE")
    try:
        named = "fingerprint"
        if not is_packed(sql):
            named = "(SELECT id FROM fingerprints f WHERE f.fingerprint = scattered.fingerprint)"
            sql.execute("INSERT OR IGNORE INTO fingerprints (fingerprint) SELECT DISTINCT fingerprint FROM embeddings")
        sql.execute("ALTER TABLE embeddings RENAME TO scattered")
        sql.execute(_SCHEMA)
        rows = sql.execute(f"SELECT {COLUMNS.replace('fingerprint', named)} FROM scattered")  # noqa: S608 - ours
        sql.executemany(
            f"INSERT INTO embeddings ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 - ours
            filter(None, map(convert, rows)) if convert else rows,
        )
        sql.execute("DROP TABLE scattered")
        sql.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite has rolled back by itself after a full disk
            sql.execute("ROLLBACK")
        raise
    failpoint("cache.pack.after")
    (patience,) = sql.execute("PRAGMA busy_timeout").fetchone()
    sql.execute("PRAGMA busy_timeout = 0")
    with suppress(sqlite3.OperationalError):  # somebody else has it open: the pages stay as small as they were
        sql.execute("PRAGMA journal_mode = DELETE")  # in WAL mode they cannot be changed
        sql.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    sql.execute(f"PRAGMA busy_timeout = {patience}")
    sql.execute("VACUUM")
    sql.execute("PRAGMA journal_mode = WAL")
