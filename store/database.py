"""The SQLite file that is the ledger: connections and transactions.

One connection writes, behind a lock; each read has a connection to itself, from a pool, and is never blocked by
the writer (WAL). A file that turns out damaged is told of (``on_damage``) and can be replaced by an empty one while
threads use the ledger (``begin_anew``).
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memoryd.store.errors import StoreCorrupt, StoreUnavailable
from memoryd.store.failpoints import failpoint
from memoryd.store.schema import check_tables, migrate, migrations, refold
from memoryd.store.space import fold_log, free_share, reclaim_pages
from memoryd.store.sqlite_file import (
    CUT_OFF_SECONDS,
    OnDamage,
    closed_error,
    connect,
    file_bytes,
    ignore_damage,
    quick_check,
    refuse_empty,
    translated_errors,
)

_DRAIN_SECONDS = 10.0  # for reads under way to end
# What a reader knows besides: which trigrams there are, and how many chunks have each.
_OF_READERS = ("CREATE VIRTUAL TABLE temp.trigrams USING fts5vocab('main', 'chunks_fts', 'row')",)


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
            check_tables(writer, self.path)
            refold(writer)
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

    def state(self) -> object | None:
        """Equal for as long as nothing is written: what is read after asking for it, is what a later reader finds.

        None where that cannot be said: while somebody writes, and in a snapshot, which may be older.
        """
        if getattr(self._local, "reader", None) is not None:
            return None
        with self._errors():
            writer = self._writer
            state = writer, writer.total_changes  # of this process, and no other writes
            # Asked afterwards: what was being written then, and is there now, will have made the number another one.
            return None if writer.in_transaction else state

    @contextmanager
    def lent(self, reader: sqlite3.Connection) -> Iterator[None]:
        """On this thread, the snapshot that another thread is in, for whoever reads here; the other one waits."""
        outer: sqlite3.Connection | None = getattr(self._local, "reader", None)
        self._local.reader = reader
        try:
            yield
        finally:
            self._local.reader = outer

    def recall(self, key: str) -> str | None:
        """A fact about how the ledger was written, as it was remembered last."""
        with self.read() as sql:
            row = sql.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

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

    def checkpoint(self, *, patient: bool = True) -> bool:
        """Fold the WAL back into the file, so that it cannot grow without end; whether all of it was.

        Whoever writes waits for it; if not ``patient``, it does not wait for whoever reads.
        """
        with self._lock, self._errors():
            failpoint("ledger.checkpoint.before")
            is_folded = fold_log(self._writer, patient=patient)
            failpoint("ledger.checkpoint.after")
            return is_folded

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
            self._refusal = closed_error
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
            reader = self._idle.pop() if self._idle else connect(self.path, query_only=True, beside=_OF_READERS)
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
            self._pool.wait(CUT_OFF_SECONDS)

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


def _rebuilding_error() -> StoreUnavailable:
    return StoreUnavailable("The ledger is being rebuilt", hint="Ask again in a moment")
