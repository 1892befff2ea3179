"""The SQLite file that is the ledger: connections, transactions, migrations.

One connection writes, behind a lock; each read has a connection to itself, from a pool, and is never blocked by
the writer (WAL). sqlite3's exceptions leave this module as ours. A file that turns out damaged is told of
(``on_damage``) and can be replaced by an empty one while threads use the ledger (``begin_anew``).
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

from memoryd.store.errors import MemorydError, SchemaTooNew, StoreCorrupt, StoreFull, StoreUnavailable
from memoryd.store.failpoints import failpoint
from memoryd.store.folding import FOLD_VERSION, fold, words
from memoryd.store.space import fold_log, free_share, reclaim_pages

_BUSY_SECONDS = 5.0
_DRAIN_SECONDS = 10.0  # for reads under way to end, …
_CUT_OFF_SECONDS = 0.02  # … cut off this often
_TABLES = {"meta", "documents", "passages", "chunks", "generations", "vectors", "jobs"}
_WAL_BYTES = 16 * 2**20  # what is left of a longer write-ahead log once it is folded back

OnDamage = Callable[[StoreCorrupt], None]


def ignore_damage(_damage: StoreCorrupt) -> None:
    """For users with nobody who could put it right."""


class Database:
    """The ledger. ``with db.write() as sql`` is one transaction; ``with db.read() as sql`` is one snapshot."""

    def __init__(self, path: Path, on_damage: OnDamage = ignore_damage, *, check_s: float = 0.0) -> None:
        """``check_s``: so long at most it is looked at for damage before it is used."""
        self.path = path
        self._on_damage = on_damage
        self._lock = threading.RLock()  # of the writer
        self._pool = threading.Condition()  # of what follows, never held for long
        self._idle: list[sqlite3.Connection] = []
        self._reading: set[sqlite3.Connection] = set()
        self._refusal: Callable[[], StoreUnavailable] | None = None  # why nobody may read or write now
        self._local = threading.local()  # .reader: the snapshot that this thread is in
        with translated_errors(path):
            refuse_empty(path)
            self._writer = self._open(check_s)

    def _open(self, check_s: float = 0.0) -> sqlite3.Connection:
        writer = connect(self.path)
        try:
            if check_s:
                quick_check(writer, self.path, check_s)
            migrate(writer, migrations())
            _check_tables(writer, self.path)
            _refold(writer)
        except BaseException:
            writer.close()
            raise
        return writer

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors():
            if self._refusal:
                raise self._refusal()
            if self._writer.in_transaction:  # nested: the outer transaction commits or not
                yield self._writer
                return
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                failpoint("ledger.commit.before")
                self._writer.execute("COMMIT")
                failpoint("ledger.commit.after")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite has rolled back by itself after a full disk
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        outer: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if outer is not None:  # nested: the outer snapshot holds
            with self._errors():
                yield outer
            return
        with self._errors():
            reader = self._take_reader()
        self._local.reader = reader
        try:
            with self._errors():  # damage is told of while it is held that a read is under way
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
        """Fold the WAL back into the file, so that it cannot grow without end."""
        with self._lock, self._errors():
            failpoint("ledger.checkpoint.before")
            fold_log(self._writer)
            failpoint("ledger.checkpoint.after")

    def check(self, seconds: float) -> bool:
        """Look for damage that no query has met yet; whether the look was finished in time. Raises ``StoreCorrupt``."""
        with self.read() as sql:
            return quick_check(sql, self.path, seconds)

    def begin_anew(self, move_away: Callable[[], object]) -> None:
        """Let the files be moved away, and go on with an empty ledger under the same object.

        Reads under way are cut off, and what comes meanwhile is refused; both may be tried again. To be called
        outside of any transaction. If it fails, everything is refused until it is called again.
        """
        with self._lock:
            with self._pool:
                self._refusal = _rebuilding_error
                self._cut_off_readers()
                # All of them before the files move: the last one to close removes the log, by its name.
                for connection in (*self._idle, self._writer):
                    connection.close()
                self._idle.clear()
            move_away()
            with translated_errors(self.path):
                self._writer = self._open()
            self._refusal = None

    def _reclaim_portion(self) -> int:
        with self._lock, self._errors():
            failpoint("ledger.reclaim.before")
            freed = reclaim_pages(self._writer)
            failpoint("ledger.reclaim.after")
            return freed

    def close(self) -> None:
        """Refuse what comes from here on. A read that is under way keeps its connection until it ends."""
        with self._lock, self._pool:
            self._refusal = _closed_error
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
            if self._refusal:
                raise self._refusal()
            reader = self._idle.pop() if self._idle else connect(self.path, query_only=True)
            self._reading.add(reader)
            return reader

    def _cut_off_readers(self) -> None:
        """With the pool held. Again and again: only a statement that has begun can be cut off."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while self._reading:
            if time.monotonic() > deadline:
                raise StoreUnavailable("The ledger is damaged, and still being read", hint="memoryd tries again")
            for reader in self._reading:
                reader.interrupt()
            self._pool.wait(_CUT_OFF_SECONDS)

    def _give_back(self, reader: sqlite3.Connection) -> None:
        with self._pool:
            self._reading.remove(reader)
            if self._refusal:
                reader.close()  # here and not in close(): sqlite3 crashes if a connection is closed while it is used
            else:
                self._idle.append(reader)
            self._pool.notify_all()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with translated_errors(self.path):
                yield
        except StoreCorrupt as error:
            if error.path == self.path:  # not another store's, met inside a transaction of this one
                self._on_damage(error)
            raise


def _check_tables(writer: sqlite3.Connection, path: Path) -> None:
    names = {row[0] for row in writer.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if missing := _TABLES - names:
        raise damaged(path, f"it lacks {', '.join(sorted(missing))}")


def _refold(writer: sqlite3.Connection) -> None:
    """Rebuild the keyword indexes if text is folded in another way than when it was written."""
    row = writer.execute("SELECT value FROM meta WHERE key = 'fold_version'").fetchone()
    if row is not None and row[0] == FOLD_VERSION:
        return
    writer.execute("BEGIN IMMEDIATE")
    try:
        writer.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
        writer.execute("INSERT INTO chunk_words (chunk_words) VALUES ('rebuild')")
        writer.execute("INSERT OR REPLACE INTO meta VALUES ('fold_version', ?)", (FOLD_VERSION,))
        failpoint("ledger.refold.before")
        writer.execute("COMMIT")
        failpoint("ledger.refold.after")
    except BaseException:
        with suppress(sqlite3.Error):
            writer.execute("ROLLBACK")
        raise


def quick_check(connection: sqlite3.Connection, path: Path, seconds: float) -> bool:
    """Whether the file's structure was found sound; False if there was no time to look at all of it."""
    connection.execute("PRAGMA shrink_memory")  # what is on disk is to be looked at, not what was read before
    looked = threading.Event()

    def cut_off() -> None:  # again and again: only a statement that has begun can be
        wait = seconds
        while not looked.wait(wait):
            connection.interrupt()
            wait = _CUT_OFF_SECONDS

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


class Connection(sqlite3.Connection):
    """A connection, and what was worked out over it that is worth keeping. Who keeps it knows how long it holds."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kept: dict[str, Any] = {}


def connect(path: Path, *, query_only: bool = False) -> Connection:
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=Connection
    )
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
        failpoint("ledger.migrate.before")
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {version};\nCOMMIT;")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        failpoint("ledger.migrate.after")


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
        return _closed_error()
    return MemorydError(f"SQLite refused a statement: {error}", hint="This is a bug in memoryd; please report it")


def damaged(path: Path, what: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path.name} is damaged: {what}",
        hint="memoryd puts it into quarantine and rebuilds it from your markdown; nothing of yours is lost",
        path=path,
    )


def _rebuilding_error() -> StoreUnavailable:
    return StoreUnavailable("The ledger is being rebuilt", hint="Ask again in a moment")


def _closed_error() -> StoreUnavailable:
    return StoreUnavailable("The index is closed", hint="memoryd is stopping; ask again when it runs")
