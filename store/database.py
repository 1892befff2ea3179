"""The SQLite file that is the ledger: connections, transactions, migrations.

One connection writes, behind a lock; each read has a connection to itself, from a pool, and is never blocked by
the writer (WAL). sqlite3's exceptions leave this module as ours.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path

from memoryd.store.errors import MemorydError, SchemaTooNew, StoreCorrupt, StoreFull, StoreUnavailable
from memoryd.store.folding import FOLD_VERSION, fold, words
from memoryd.store.space import fold_log, free_share, reclaim_pages

_BUSY_SECONDS = 5.0
_WAL_BYTES = 16 * 2**20  # what is left of a longer write-ahead log once it is folded back


class Database:
    """The ledger. ``with db.write() as sql`` is one transaction; ``with db.read() as sql`` is one snapshot."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()  # of the writer
        self._pool = threading.Lock()  # of what follows, never held for long
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._local = threading.local()  # .reader: the snapshot that this thread is in
        with translated_errors(path):
            self._writer = connect(path)
            try:
                migrate(self._writer, migrations())
                self._refold()
            except BaseException:
                self._writer.close()
                raise

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        with self._lock, translated_errors(self.path):
            if self._closed:
                raise _closed_error()
            if self._writer.in_transaction:  # nested: the outer transaction commits or not
                yield self._writer
                return
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite has rolled back by itself after a full disk
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        outer: sqlite3.Connection | None = getattr(self._local, "reader", None)
        with translated_errors(self.path):
            if outer is not None:  # nested: the outer snapshot holds
                yield outer
                return
            reader = self._take_reader()
            self._local.reader = reader
            try:
                reader.execute("BEGIN")
                yield reader
            finally:
                self._local.reader = None
                with suppress(sqlite3.Error):  # an I/O error ends the transaction by itself; it is what is raised
                    reader.execute("ROLLBACK")
                self._give_back(reader)

    def remember(self, key: str, value: str) -> bool:
        """Keep a fact about how the ledger was written; returns whether it was another before."""
        with self.write() as sql:
            row = sql.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            sql.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
        return row is None or row[0] != value

    def reclaim(self) -> int:
        """Give pages that hold nothing back to the file system, and fold the WAL back; returns the bytes freed.

        A portion at a time, so that no writer waits for long.
        """
        freed = 0
        while portion := self._reclaim_portion():
            freed += portion
        self.checkpoint()
        return freed

    def checkpoint(self) -> None:
        with self._lock, translated_errors(self.path):
            fold_log(self._writer)

    def _reclaim_portion(self) -> int:
        with self._lock, translated_errors(self.path):
            return reclaim_pages(self._writer)

    def close(self) -> None:
        """Refuse what comes from here on. A read that is under way keeps its connection until it ends."""
        with self._lock, self._pool:
            self._closed = True
            for connection in (*self._idle, self._writer):
                connection.close()
            self._idle.clear()

    def schema_version(self) -> int:
        with self.read() as sql:
            return int(sql.execute("PRAGMA user_version").fetchone()[0])

    def bytes_on_disk(self) -> int:
        return file_bytes(self.path)

    def free_share(self) -> float:
        """The part of the file that holds nothing."""
        with self.read() as sql:
            return free_share(sql)

    def _take_reader(self) -> sqlite3.Connection:
        with self._pool:
            if self._closed:
                raise _closed_error()
            if self._idle:
                return self._idle.pop()
        return connect(self.path, query_only=True)

    def _give_back(self, reader: sqlite3.Connection) -> None:
        with self._pool:
            if self._closed:
                reader.close()  # here and not in close(): sqlite3 crashes if a connection is closed while it is used
            else:
                self._idle.append(reader)

    def _refold(self) -> None:
        """Rebuild the keyword indexes if text is folded in another way than when it was written."""
        with self.write() as sql:
            if self.remember("fold_version", FOLD_VERSION):
                sql.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
                sql.execute("INSERT INTO chunk_words (chunk_words) VALUES ('rebuild')")


def connect(path: Path, *, query_only: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if not query_only and connection.execute("PRAGMA page_count").fetchone() == (0,):
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before anything is written, or it has no effect
        # A chunk that has lost its passages has no text at all: it must still be possible to look at it and forget it.
        connection.create_function("fold", 1, lambda text: fold(text or ""), deterministic=True)
        connection.create_function("words", 1, lambda text: words(text or ""), deterministic=True)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        if query_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def file_bytes(path: Path) -> int:
    """What a database takes on disk, with the files that SQLite keeps beside it."""
    total = 0
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            total += path.with_name(path.name + suffix).stat().st_size
    return total


def migrations() -> list[str]:
    folder = resources.files("memoryd.store") / "migrations"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda f: f.name)
    return [file.read_text(encoding="utf-8") for file in files]


def migrate(connection: sqlite3.Connection, steps: Sequence[str]) -> None:
    """Bring the schema up to date, each step in a transaction of its own."""
    current = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if current > len(steps):
        raise SchemaTooNew(
            f"The index has schema {current}; this memoryd knows up to {len(steps)}",
            hint="Upgrade memoryd, or delete the data folder: the index is rebuilt from your markdown",
        )
    for version, script in enumerate(steps[current:], start=current + 1):
        # executescript commits what is open before it starts, so the transaction must be inside the script.
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {version};\nCOMMIT;")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


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
        return StoreCorrupt(
            f"{path.name} is damaged: {error}",
            hint=f"Stop memoryd and delete {path}: it is rebuilt from your markdown, embeddings are kept",
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(
            f"{path.name} is locked by another process", hint="Close the program that holds it open"
        )
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM):
        return StoreUnavailable(
            f"{path.name} cannot be used: {error}", hint=f"Check that {path.parent} exists and is yours to write"
        )
    if primary is None and "closed" in str(error):
        return _closed_error()
    return MemorydError(f"SQLite refused a statement: {error}", hint="This is a bug in memoryd; please report it")


def _closed_error() -> StoreUnavailable:
    return StoreUnavailable("The index is closed", hint="memoryd is stopping; ask again when it runs")
