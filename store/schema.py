"""The ledger's schema: migrations, the tables that must be there, and how text is folded for the keyword indexes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path

from memoryd.store.errors import SchemaTooNew
from memoryd.store.failpoints import failpoint
from memoryd.store.folding import FOLD_VERSION
from memoryd.store.keywords import TABLES
from memoryd.store.sqlite_file import damaged

_TABLES = {"meta", "documents", "passages", "chunks", "generations", "vectors", "jobs"}


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


def check_tables(writer: sqlite3.Connection, path: Path) -> None:
    names = {row[0] for row in writer.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if missing := _TABLES - names:
        raise damaged(path, f"it lacks {', '.join(sorted(missing))}")


def refold(writer: sqlite3.Connection) -> None:
    """Rebuild the keyword indexes if text is folded in another way than when it was written."""
    row = writer.execute("SELECT value FROM meta WHERE key = 'fold_version'").fetchone()
    if row is not None and row[0] == FOLD_VERSION:
        return
    writer.execute("BEGIN IMMEDIATE")
    try:
        for table in TABLES:
            writer.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")  # noqa: S608 - ours
            # In one piece: it is left in many, and a search looks into each.
            writer.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608 - ours
        writer.execute("INSERT OR REPLACE INTO meta VALUES ('fold_version', ?)", (FOLD_VERSION,))
        failpoint("ledger.refold.before")
        writer.execute("COMMIT")
        failpoint("ledger.refold.after")
    except BaseException:
        with suppress(sqlite3.Error):
            writer.execute("ROLLBACK")
        raise
