"""A job as a row: how it is named and asked for, when it is due, and what status shows of it.

Every function works inside the caller's transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.store.model import document_id

LONGEST_WAIT_S = 900.0  # between two tries; who seems to wait longer waits for a clock that was set back
MOST_CRASHES = 5  # a process killed from outside dies with the same job in hand twice, hardly so often
# Whether a job may run, given :now. What has not failed is due at once, whatever the clock says.
DUE = f"(attempts = 0 OR run_after <= :now OR run_after > :now + {LONGEST_WAIT_S})"


@dataclass(frozen=True, slots=True)
class Failure:
    """A job that did not succeed yet, as status shows it."""

    kind: str
    workspace: str
    path: str
    reason: str
    hint: str | None
    attempts: int
    parked: bool
    next_retry: float | None  # unix time; None = only when asked or on the retry schedule


@dataclass(frozen=True, slots=True)
class Work:
    """What is being worked on, or waits for its first try: documents by id, and folders that are looked at."""

    texts: frozenset[int]
    vectors: frozenset[int]
    folders: frozenset[tuple[str, str]]  # workspace, folder or file; "" is the whole workspace

    def covers(self, workspace: str, path: str) -> bool:
        """Whether somebody is about to look at this file on disk."""
        return any(
            workspace == name and (not below or path == below or path.startswith(f"{below}/"))
            for name, below in self.folders
        )


def job_key(kind: str, workspace: str = "", path: str = "") -> str:
    return ":".join(part for part in (kind, workspace, path) if part)


def add_job(sql: sqlite3.Connection, kind: str, workspace: str, path: str, now: float, *, afresh: bool = True) -> None:
    """Queue a job inside the caller's transaction; ``Queue.notify`` is due after the commit.

    Not ``afresh``, if nothing has changed since it was asked for before: a job that was set aside because the
    process died of it stays there. Afresh, it gets one more try.
    """
    sql.execute(
        """
        INSERT INTO jobs (key, kind, workspace, path, state, run_after, enqueued_at)
        VALUES (:key, :kind, :workspace, :path, 'queued', :now, :now)
        ON CONFLICT (key) DO UPDATE SET
            again       = (state = 'running'),
            state       = iif(state = 'running', 'running', 'queued'),
            attempts    = iif(state = 'running', attempts, 0),
            crashes     = iif(state = 'parked', min(crashes, :most - 1), crashes),
            run_after   = iif(state = 'running', run_after, min(run_after, excluded.run_after)),
            enqueued_at = iif(state = 'parked', excluded.enqueued_at, enqueued_at)
        WHERE :afresh OR NOT (state = 'parked' AND crashes >= :most)
        """,
        {
            "key": job_key(kind, workspace, path),
            "kind": kind,
            "workspace": workspace,
            "path": path,
            "now": now,
            "afresh": afresh,
            "most": MOST_CRASHES,
        },
    )


def read_work(sql: sqlite3.Connection, *, failed: bool = False) -> Work:
    """What is under way; ``failed``: and what will be tried again."""
    rows = sql.execute(
        "SELECT kind, workspace, path FROM jobs"
        " WHERE :failed OR state = 'running' OR state = 'queued' AND attempts = 0",
        {"failed": failed},
    ).fetchall()
    ids: dict[str, set[int]] = {"index": set(), "embed": set()}
    folders = set()
    for kind, workspace, path in rows:
        if kind in ids:
            ids[kind].add(document_id(workspace, path))
        elif kind == "resplit":  # the vectors of what it will say are there before its text is
            ids["index"].add(document_id(workspace, path))
            ids["embed"].add(document_id(workspace, path))
        elif kind == "reconcile":
            folders.add((workspace, path))
    return Work(frozenset(ids["index"]), frozenset(ids["embed"]), frozenset(folders))


def one_of(kinds: Sequence[str]) -> str:
    return f"kind IN ({','.join(f':kind{number}' for number in range(len(kinds)))})"


def named(kinds: Sequence[str]) -> dict[str, str]:
    return {f"kind{number}": kind for number, kind in enumerate(kinds)}
