"""What a language model answered, and which facts are not wanted any more.

A file of its own (``ingest.db``): unlike the ledger it cannot be derived from markdown, and an answer costs time or
money. It is committed before anything is made of it, so that no call is repeated because of a crash.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memoryd.store.errors import StoreCorrupt
from memoryd.store.failpoints import failpoint
from memoryd.store.protocols import Clock
from memoryd.store.sqlite_file import OnDamage, connect, file_bytes, ignore_damage, refuse_empty, translated_errors

_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS answers (
    model    TEXT    NOT NULL,   -- who was asked
    prompt   TEXT    NOT NULL,   -- version of the question
    piece    TEXT    NOT NULL,   -- hash of the text that it was about
    answer   TEXT    NOT NULL,   -- as it came
    tokens   INTEGER NOT NULL,   -- estimated, of question and answer
    day      INTEGER NOT NULL,   -- days since the epoch, of the asking
    used_day INTEGER NOT NULL,   -- the same of the last run that needed it
    PRIMARY KEY (model, prompt, piece)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS dismissed (
    fact  TEXT NOT NULL,         -- its id
    piece TEXT NOT NULL,         -- not again from this piece; '': from none
    at    REAL NOT NULL,
    PRIMARY KEY (fact, piece)
) WITHOUT ROWID
""",
)
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Asked:
    """What identifies an answer."""

    model: str
    prompt: str
    piece: str


class Answers:
    """Any thread may use it; one at a time does."""

    def __init__(self, path: Path, clock: Clock, on_damage: OnDamage = ignore_damage) -> None:
        self.path = path
        self._clock = clock
        self._on_damage = on_damage
        self._lock = threading.Lock()
        with translated_errors(path):
            refuse_empty(path)
            self._sql = self._open()

    def _open(self) -> sqlite3.Connection:
        sql = connect(self.path)
        try:
            sql.execute("PRAGMA synchronous = FULL")  # few commits, and none of them can be derived again
            for table in _SCHEMA:
                sql.execute(table)
        except BaseException:
            sql.close()
            raise
        return sql

    def begin_anew(self, move_away: Callable[[], object]) -> None:
        """Let the files be moved away, and go on with an empty store under the same object."""
        with self._lock:
            self._sql.close()
            move_away()
            with translated_errors(self.path):
                self._sql = self._open()

    def find(self, asked: Asked) -> str | None:
        """The answer that is kept."""
        key = (asked.model, asked.prompt, asked.piece)
        today = self._today()
        with self._transaction() as sql:
            row = sql.execute(
                "SELECT answer, used_day FROM answers WHERE model = ? AND prompt = ? AND piece = ?", key
            ).fetchone()
            if row is not None and row[1] != today:
                sql.execute(
                    "UPDATE answers SET used_day = ? WHERE model = ? AND prompt = ? AND piece = ?", (today, *key)
                )
        return str(row[0]) if row else None

    def keep(self, asked: Asked, answer: str, tokens: int) -> None:
        today = self._today()
        with self._transaction() as sql:
            failpoint("ingest.keep.before")
            sql.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
                (asked.model, asked.prompt, asked.piece, answer, tokens, today, today),
            )
        failpoint("ingest.keep.after")

    def tokens_today(self) -> int:
        """What was spent since midnight, UTC."""
        with self._transaction() as sql:
            (spent,) = sql.execute(
                "SELECT coalesce(sum(tokens), 0) FROM answers WHERE day = ?", (self._today(),)
            ).fetchone()
        return int(spent)

    def dismiss(self, facts: Iterable[tuple[str, str]]) -> None:
        """Facts, each with the piece that it is not to come from again; "" = from none."""
        rows = [(fact, piece, self._clock()) for fact, piece in facts]
        with self._transaction() as sql:
            sql.executemany("INSERT OR REPLACE INTO dismissed VALUES (?, ?, ?)", rows)
            failpoint("ingest.dismiss.before")
        failpoint("ingest.dismiss.after")

    def dismissed(self) -> frozenset[tuple[str, str]]:
        with self._transaction() as sql:
            return frozenset(sql.execute("SELECT fact, piece FROM dismissed").fetchall())

    def prune(self, unused_days: int) -> int:
        """Drop answers that no run has needed for so long; returns how many."""
        with self._transaction() as sql:
            return sql.execute("DELETE FROM answers WHERE used_day < ?", (self._today() - unused_days,)).rowcount

    def count(self) -> int:
        with self._transaction() as sql:
            (count,) = sql.execute("SELECT count(*) FROM answers").fetchone()
        return int(count)

    def bytes_on_disk(self) -> int:
        return file_bytes(self.path)

    def close(self) -> None:
        with self._lock:
            self._sql.close()

    def _today(self) -> int:
        return int(self._clock() // _DAY)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing, in one commit."""
        with self._lock:
            try:
                with translated_errors(self.path):
                    self._sql.execute("BEGIN IMMEDIATE")
                    try:
                        yield self._sql
                        self._sql.execute("COMMIT")
                    finally:
                        if self._sql.in_transaction:
                            self._sql.execute("ROLLBACK")
            except StoreCorrupt as error:
                self._on_damage(error)
                raise
