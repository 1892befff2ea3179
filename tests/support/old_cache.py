"""An embedding cache as older ones laid it out: 32 bits a number, and the fingerprint as text in each row."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np

from memoryd.store.precision import enlarge

_COLUMNS = "fingerprint TEXT NOT NULL, text_hash BLOB NOT NULL, vector BLOB NOT NULL, used_day INTEGER NOT NULL"


def scatter(path: Path) -> None:
    """Lay the rows of a cache as was done before they were packed: each under its key."""
    _lay(path, f"{_COLUMNS}, checksum INTEGER, PRIMARY KEY (fingerprint, text_hash)", "WITHOUT ROWID", 4096)


def widen(path: Path) -> None:
    """Lay the rows of a cache as was done before they had 8 bits."""
    _lay(path, f"{_COLUMNS}, checksum INTEGER, UNIQUE (fingerprint, text_hash)", "", 16_384)


def _lay(path: Path, columns: str, options: str, page_bytes: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        tables = {row[0] for row in sql.execute("SELECT name FROM sqlite_schema")}
        if not {"embeddings", "fingerprints"} <= tables:
            return
        names = dict(sql.execute("SELECT id, fingerprint FROM fingerprints"))
        held = sql.execute("SELECT fingerprint, text_hash, vector, used_day, checksum, is_small FROM embeddings")
        rows = [(names.get(name, name), *_wide(*rest)) for name, *rest in held]
        sql.execute("BEGIN")
        sql.execute("DROP TABLE embeddings")
        sql.execute("DROP TABLE fingerprints")
        sql.execute(f"CREATE TABLE embeddings ({columns}) {options}")
        sql.executemany("INSERT INTO embeddings VALUES (?, ?, ?, ?, ?)", rows)
        sql.execute("COMMIT")
        sql.execute("PRAGMA journal_mode = DELETE")
        sql.execute(f"PRAGMA page_size = {page_bytes}")
        sql.execute("VACUUM")
        sql.execute("PRAGMA journal_mode = WAL")


def _wide(
    text_hash: bytes, vector: bytes, used_day: int, checksum: int, is_small: int
) -> tuple[bytes, bytes, int, int]:
    if not is_small:
        return text_hash, vector, used_day, checksum
    wide = enlarge(np.frombuffer(vector, np.int8)[None])[0].astype("<f4").tobytes()
    return text_hash, wide, used_day, zlib.crc32(wide)
