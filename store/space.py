"""The space that an SQLite file takes: pages that hold nothing, and the write-ahead log beside it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_FREE_SHARE = 0.02  # of a file that may lie idle: new rows fill it
_RECLAIM_PAGES = 1024  # in one transaction


def free_share(sql: sqlite3.Connection) -> float:
    (free,), (pages,) = (sql.execute(f"PRAGMA {name}").fetchone() for name in ("freelist_count", "page_count"))
    return float(free / max(1, pages))


def reclaim_pages(sql: sqlite3.Connection) -> int:
    """Shorten a file that is largely idle by one portion; returns the bytes, 0 = it is not, or no more."""
    if free_share(sql) <= _FREE_SHARE:
        return 0
    (before,) = sql.execute("PRAGMA page_count").fetchone()
    if sql.execute("PRAGMA auto_vacuum").fetchone() == (0,):  # made before memoryd asked for it: once, and whole
        sql.execute("PRAGMA auto_vacuum = INCREMENTAL")
        sql.execute("VACUUM")
    else:
        sql.execute(f"PRAGMA incremental_vacuum({_RECLAIM_PAGES})").fetchall()
    (after,), (size,) = (sql.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    return int(max(0, before - after) * size)


def fold_log(sql: sqlite3.Connection, *, patient: bool = True) -> bool:
    """Fold the WAL back into the file, so that it cannot grow without end; whether all of it was.

    Readers are not held up, but whoever writes is: if not ``patient``, no reader is waited for that still needs it.
    """
    (patience,) = sql.execute("PRAGMA busy_timeout").fetchone()
    try:
        if not patient:
            sql.execute("PRAGMA busy_timeout = 0")
        (is_busy, *_) = sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        sql.execute(f"PRAGMA busy_timeout = {patience}")
    return not is_busy


def log_bytes(path: Path) -> int:
    """What a database's write-ahead log takes on disk."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except FileNotFoundError:
        return 0
