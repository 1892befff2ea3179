"""An embedding cache as it was laid out before its rows were packed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def scatter(path: Path) -> None:
    """Lay the rows of a cache as an older memoryd did."""
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        if not sql.execute("SELECT 1 FROM sqlite_schema WHERE name = 'embeddings'").fetchone():
            return
        sql.execute("BEGIN")
        sql.execute("ALTER TABLE embeddings RENAME TO packed")
        sql.execute(
            "CREATE TABLE embeddings (fingerprint TEXT NOT NULL, text_hash BLOB NOT NULL, vector BLOB NOT NULL,"
            " used_day INTEGER NOT NULL, checksum INTEGER, PRIMARY KEY (fingerprint, text_hash)) WITHOUT ROWID"
        )
        sql.execute("INSERT INTO embeddings SELECT * FROM packed")
        sql.execute("DROP TABLE packed")
        sql.execute("COMMIT")
        sql.execute("PRAGMA journal_mode = DELETE")
        sql.execute("PRAGMA page_size = 4096")
        sql.execute("VACUUM")
        sql.execute("PRAGMA journal_mode = WAL")
