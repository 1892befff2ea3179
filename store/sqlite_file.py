"""An SQLite file: how it is opened and looked at for damage, and what its errors are called.

sqlite3's exceptions leave the stores as ours. Busy, full, read-only and the like are not damage.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from memoryd.store.errors import MemorydError, StoreCorrupt, StoreFull, StoreUnavailable
from memoryd.store.folding import fold, words
from memoryd.store.naming import indexed_heading
from memoryd.store.packed_ids import PackedIds

CUT_OFF_SECONDS = 0.02  # between two tries to cut off a look: only a statement that has begun can be
_BUSY_SECONDS = 5.0
_PAGE_BYTES = 4096
_WAL_BYTES = 16 * 2**20  # what is left of a longer write-ahead log once it is folded back

OnDamage = Callable[[StoreCorrupt], None]


def ignore_damage(_damage: StoreCorrupt) -> None:
    """For users with nobody who could put it right."""


class Connection(sqlite3.Connection):
    """A connection, and what was worked out over it that is worth keeping. Who keeps it knows how long it holds."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kept: dict[str, Any] = {}


def connect(
    path: Path, *, query_only: bool = False, page_bytes: int = _PAGE_BYTES, beside: Iterable[str] = ()
) -> Connection:
    """``page_bytes``: of a file that is not there yet. ``beside``: statements that make temporary tables."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=Connection
    )
    try:
        if not query_only and connection.execute("PRAGMA page_count").fetchone() == (0,):
            connection.execute(f"PRAGMA page_size = {page_bytes}")  # both before anything is written, or without effect
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        # A chunk that has lost its passages has no text at all: it must still be possible to look at it and forget it.
        connection.create_function("fold", 1, lambda text: fold(text or ""), deterministic=True)
        connection.create_function("words", 1, lambda text: words(text or ""), deterministic=True)
        connection.create_function("indexed_heading", 3, indexed_heading, deterministic=True)
        connection.create_aggregate("packed", 1, PackedIds)  # type: ignore[arg-type]  # typeshed knows numbers alone
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        for statement in beside:
            connection.execute(statement)
        if query_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_empty(path: Path) -> None:
    """SQLite takes a file of no bytes for a new database; for us it is one that was lost."""
    if path.is_file() and path.stat().st_size == 0:
        raise damaged(path, "it is empty")


def file_bytes(path: Path) -> int:
    """What a database takes on disk, with the files that SQLite keeps beside it."""
    total = 0
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            total += path.with_name(path.name + suffix).stat().st_size
    return total


def quick_check(connection: sqlite3.Connection, path: Path, seconds: float) -> bool:
    """Whether the file's structure was found sound; False if there was no time to look at all of it."""
    connection.execute("PRAGMA shrink_memory")  # what is on disk is to be looked at, not what was read before
    looked = threading.Event()

    def cut_off() -> None:  # again and again: only a statement that has begun can be
        wait = seconds
        while not looked.wait(wait):
            connection.interrupt()
            wait = CUT_OFF_SECONDS

    alarm = threading.Thread(target=cut_off, name="quick-check", daemon=True)
    alarm.start()
    try:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return False
        raise
    finally:
        looked.set()
        alarm.join()  # an alarm that goes off late would cut off the connection's next user
    if found != "ok":
        raise damaged(path, found)
    return True


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error


def translate(error: sqlite3.Error, path: Path) -> MemorydError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    if primary == sqlite3.SQLITE_FULL:
        return StoreFull(f"No space left for {path.name}", hint=f"Free some space on the disk that holds {path.parent}")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(path, str(error))
    if primary == sqlite3.SQLITE_INTERRUPT:
        return StoreUnavailable(f"A look into {path.name} was cut off", hint="Ask again in a moment")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(
            f"{path.name} is locked by another process", hint="Close the program that holds it open"
        )
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM):
        return StoreUnavailable(
            f"{path.name} cannot be used: {error}", hint=f"Check that {path.parent} exists and is yours to write"
        )
    if primary is None and "closed" in str(error):
        return closed_error()
    return MemorydError(f"SQLite refused a statement: {error}", hint="This is a bug in memoryd; please report it")


def damaged(path: Path, what: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path.name} is damaged: {what}",
        hint="memoryd puts it into quarantine and rebuilds it from your markdown; nothing of yours is lost",
        path=path,
    )


def closed_error() -> StoreUnavailable:
    return StoreUnavailable("The index is closed", hint="memoryd is stopping; ask again when it runs")
