"""How the embedding cache lies in its file: rows of some kilobytes, packed in pages that hold several of them.

A vector of 384 numbers takes 1.5 KB. As a key's own row (WITHOUT ROWID) it would be cut after a quarter of a page, and
the rest would take a page of its own: 4.6 KB on disk for each, and two reads. As a row that the key leads to it stands
whole beside its neighbours. Files from before are used as they are until ``pack``.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Final

from memoryd.store.failpoints import failpoint

PAGE_BYTES: Final = 16_384
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS embeddings (
    fingerprint TEXT    NOT NULL,
    text_hash   BLOB    NOT NULL,
    vector      BLOB    NOT NULL,   -- float32, little endian
    used_day    INTEGER NOT NULL,   -- days since the epoch, of the last use
    checksum    INTEGER,            -- CRC-32 of the vector; NULL = kept before there were any
    UNIQUE (fingerprint, text_hash)
)
"""


def prepare(sql: sqlite3.Connection) -> None:
    """Have the table, in the columns of today."""
    sql.execute(_SCHEMA)
    if "checksum" not in {row[1] for row in sql.execute("PRAGMA table_info(embeddings)")}:
        sql.execute("ALTER TABLE embeddings ADD COLUMN checksum INTEGER")


def is_packed(sql: sqlite3.Connection) -> bool:
    """Whether the rows lie as ``prepare`` lays them in a new file."""
    (is_keyed,) = sql.execute("SELECT wr FROM pragma_table_list('embeddings')").fetchone()
    return not is_keyed


def pack(sql: sqlite3.Connection) -> None:
    """Lay the rows of an older file anew, all of them or none; then make it as short as they are."""
    failpoint("cache.pack.before")
    sql.execute("BEGIN IMMEDIATE")
    try:
        sql.execute("ALTER TABLE embeddings RENAME TO scattered")
        sql.execute(_SCHEMA)
        columns = "fingerprint, text_hash, vector, used_day, checksum"
        sql.execute(f"INSERT INTO embeddings ({columns}) SELECT {columns} FROM scattered")  # noqa: S608 - ours
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
