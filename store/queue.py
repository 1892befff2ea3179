"""The durable queue: what is to be done, what failed and why, and when it is tried again.

A key names what a job is about, so asking twice is asking once. A job that is asked for while it runs runs
once more. Jobs that were running when the process died are queued again by ``recover``, one at a time and after
all others; one that the process dies of again and again is set aside. The clock is only trusted for a job that
waits after a failure, and then no further than the longest wait: it may jump.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import takewhile

from memoryd.store.database import Database
from memoryd.store.failpoints import failpoint
from memoryd.store.job_rows import DUE, MOST_CRASHES, Failure, Work, add_job, job_key, named, one_of, read_work
from memoryd.store.model import Job
from memoryd.store.protocols import Clock

_CRASHED = f"memoryd died {MOST_CRASHES} times while it worked on this"
_CRASHED_HINT = (
    "It is tried again when the file changes, or with 'memoryd index --force'. If memoryd was not killed from outside,"
    " please report it with the file"
)


class Queue:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._changed = threading.Condition()
        self._changes = 0

    def enqueue(self, kind: str, workspace: str = "", path: str = "", *, afresh: bool = True) -> None:
        self.enqueue_all([(kind, workspace, path)], afresh=afresh)

    def enqueue_all(self, jobs: Iterable[tuple[str, str, str]], *, afresh: bool = True) -> None:
        now = self._clock()
        with self._database.write() as sql:
            for kind, workspace, path in jobs:
                add_job(sql, kind, workspace, path, now, afresh=afresh)
            failpoint("queue.enqueue.before")
        failpoint("queue.enqueue.after")
        self.notify()

    def due(self, kinds: Sequence[str]) -> set[str]:
        """Those of these kinds of which a job can be claimed: one look for a lane that has been woken."""
        with self._database.read() as sql:
            rows = sql.execute(
                f"SELECT DISTINCT kind FROM jobs WHERE state = 'queued' AND {one_of(kinds)} AND {DUE}",  # noqa: S608
                {"now": self._clock(), **named(kinds)},
            )
            return {row[0] for row in rows}

    def claim(self, kinds: Sequence[str], limit: int = 1, alone: Container[str] = ()) -> list[Job]:
        """Take the jobs that are due, oldest first, and mark them running. What the process died of comes alone, and so
        does what is about one of the workspaces that are said to."""
        due = f"state = 'queued' AND {one_of(kinds)} AND {DUE}"
        given = {"now": self._clock(), **named(kinds)}
        with self._database.read() as sql:  # a look without the write lock: an idle lane stays out of the way
            if not sql.execute(f"SELECT 1 FROM jobs WHERE {due} LIMIT 1", given).fetchone():  # noqa: S608 - our words
                return []
        with self._database.write() as sql:
            rows = sql.execute(
                f"SELECT key, kind, workspace, path, attempts, enqueued_at, crashes FROM jobs"  # noqa: S608 - our words
                f" WHERE {due} ORDER BY crashes, run_after, key LIMIT :limit",
                {**given, "limit": limit},
            ).fetchall()
            rows = list(takewhile(lambda row: not row[-1] and row[2] not in alone, rows)) or rows[:1]
            sql.executemany("UPDATE jobs SET state = 'running', again = 0 WHERE key = ?", [(row[0],) for row in rows])
        failpoint("queue.claim.after")
        return [Job(*row[:-1]) for row in rows]

    def complete(self, jobs: Iterable[Job]) -> None:
        """Drop jobs that are done; what was asked for again while it ran is a new request."""
        now = self._clock()
        keys = [job.key for job in jobs]
        with self._database.write() as sql:
            dropped = sql.executemany(
                "DELETE FROM jobs WHERE key = ? AND state = 'running' AND NOT again", [(key,) for key in keys]
            ).rowcount
            if dropped < len(keys):
                sql.executemany(
                    "UPDATE jobs SET state = 'queued', again = 0, attempts = 0, crashes = 0, run_after = ?,"
                    " enqueued_at = ?, reason = NULL, hint = NULL WHERE key = ? AND state = 'running'",
                    [(now, now, key) for key in keys],
                )
            failpoint("queue.complete.before")
        failpoint("queue.complete.after")
        self.notify()

    def retry(self, job: Job, *, run_after: float, reason: str, hint: str | None) -> None:
        """Queue a failed job for later; a request that came while it ran is served at once."""
        self._settle(job, "queued", run_after, reason, hint)

    def park(self, job: Job, *, reason: str, hint: str | None) -> None:
        """Set a job aside: trying again changes nothing until the file, the config or the machine does."""
        self._settle(job, "parked", self._clock(), reason, hint)

    def give_back(self, jobs: Iterable[Job]) -> None:
        """Return claimed jobs untouched: the process is stopping."""
        with self._database.write() as sql:
            sql.executemany(
                "UPDATE jobs SET state = 'queued', again = 0, attempts = iif(again, 0, attempts)"
                " WHERE key = ? AND state = 'running'",
                [(job.key,) for job in jobs],
            )
            failpoint("queue.return.before")
        failpoint("queue.return.after")
        self.notify()

    def give_back_all(self, kinds: Sequence[str]) -> None:
        """Return every job of these kinds that is called running, for a lane that has none in hand."""
        with self._database.write() as sql:
            sql.execute(
                "UPDATE jobs SET state = 'queued', again = 0, attempts = iif(again, 0, attempts)"  # noqa: S608
                f" WHERE state = 'running' AND {one_of(kinds)}",
                named(kinds),
            )
        self.notify()

    def recover(self) -> list[Failure]:
        """Queue again what was running when the process died; returns what it has died of too often, set aside."""
        with self._database.write() as sql:
            sql.execute("UPDATE jobs SET state = 'queued', again = 0, crashes = crashes + 1 WHERE state = 'running'")
            died = [
                row[0]
                for row in sql.execute(
                    "UPDATE jobs SET state = 'parked', attempts = max(attempts, 1), reason = ?, hint = ?"
                    " WHERE state = 'queued' AND crashes >= ? RETURNING key",
                    (_CRASHED, _CRASHED_HINT, MOST_CRASHES),
                ).fetchall()
            ]
            failpoint("queue.recover.before")
        failpoint("queue.recover.after")
        return [job for job in self.failures() if job_key(job.kind, job.workspace, job.path) in died]

    def crashed(self, kind: str) -> list[Failure]:
        """The jobs of a kind that are set aside because the process died of them."""
        with self._database.read() as sql:
            rows = sql.execute(
                "SELECT key FROM jobs WHERE kind = ? AND state = 'parked' AND crashes >= ?", (kind, MOST_CRASHES)
            )
            keys = {row[0] for row in rows}
        return [job for job in self.failures() if job_key(job.kind, job.workspace, job.path) in keys]

    def requeue_parked(self, kinds: Sequence[str] | None = None, *, crashed: bool = False) -> int:
        """Try again what was set aside; what the process died of only if that is asked for."""
        with self._database.write() as sql:
            rows = sql.execute("SELECT key, kind, crashes FROM jobs WHERE state = 'parked'").fetchall()
            now = self._clock()
            keys = [
                (MOST_CRASHES - 1, now, now, key)
                for key, kind, crashes in rows
                if (kinds is None or kind in kinds) and (crashed or crashes < MOST_CRASHES)
            ]
            sql.executemany(
                "UPDATE jobs SET state = 'queued', attempts = 0, crashes = min(crashes, ?), run_after = ?,"
                " enqueued_at = ? WHERE key = ?",
                keys,
            )
            failpoint("queue.requeue.before")
        failpoint("queue.requeue.after")
        self.notify()
        return len(keys)

    def forget_unserved(self, workspaces: Container[str]) -> None:
        """Drop the jobs of workspaces that are no longer served, but for those that clear their vectors."""
        with self._database.write() as sql:
            rows = sql.execute(
                "SELECT key, workspace FROM jobs WHERE workspace != '' AND kind NOT IN ('embed', 'fill')"
            ).fetchall()
            gone = [(key,) for key, workspace in rows if workspace not in workspaces]
            sql.executemany("DELETE FROM jobs WHERE key = ?", gone)

    def drop(self, kind: str) -> None:
        """Forget the jobs of a kind: what they were for is no longer wanted."""
        with self._database.write() as sql:
            sql.execute("DELETE FROM jobs WHERE kind = ?", (kind,))
        self.notify()

    def next_due(self, kinds: Sequence[str]) -> float | None:
        """When the next queued job of these kinds may run (unix time); None = there is none."""
        with self._database.read() as sql:
            row = sql.execute(
                f"SELECT min(iif({DUE}, :now, run_after)) FROM jobs"  # noqa: S608 - our words
                f" WHERE state = 'queued' AND {one_of(kinds)}",
                {"now": self._clock(), **named(kinds)},
            ).fetchone()
        return None if row[0] is None else float(row[0])

    def waiting_kinds(self) -> set[str]:
        """The kinds of which a job is queued or running that has not failed yet."""
        with self._database.read() as sql:
            rows = sql.execute("SELECT DISTINCT kind FROM jobs WHERE state != 'parked' AND attempts = 0")
            return {row[0] for row in rows}

    def work(self, *, failed: bool = False) -> Work:
        """What is under way. A job that has failed before is not, unless it is asked for: what it left undone is for
        all to see."""
        with self._database.read() as sql:
            return read_work(sql, failed=failed)

    def depths(self) -> dict[tuple[str, str], int]:
        """Jobs not ended, by (kind, state)."""
        with self._database.read() as sql:
            rows = sql.execute("SELECT kind, state, count(*) FROM jobs GROUP BY kind, state").fetchall()
        return {(kind, state): count for kind, state, count in rows}

    def oldest(self) -> float | None:
        with self._database.read() as sql:
            row = sql.execute("SELECT min(enqueued_at) FROM jobs WHERE state != 'parked'").fetchone()
        return None if row[0] is None else float(row[0])

    def failures(self) -> list[Failure]:
        """What failed and is to be tried again, or not. A file that has changed since is pending; what is about no file
        has failed until it has succeeded, however often it is asked for."""
        with self._database.read() as sql:
            rows = sql.execute(
                "SELECT kind, workspace, path, reason, hint, attempts, state = 'parked',"
                " iif(state = 'parked', NULL, run_after)"
                " FROM jobs WHERE reason IS NOT NULL AND (attempts > 0 OR workspace = '')"
                " ORDER BY workspace, path, kind"
            ).fetchall()
        return [Failure(*row) for row in rows]

    # -- waiting ------------------------------------------------------------------------------------------

    def notify(self) -> None:
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    def changes(self) -> int:
        with self._changed:
            return self._changes

    def wait_for_change(self, since: int, timeout: float | None) -> int:
        """Sleep until something was queued, ended or notified after ``since``; returns the new count."""
        with self._changed:
            self._changed.wait_for(lambda: self._changes != since, timeout)
            return self._changes

    def wait_until(self, true: Callable[[], bool], timeout: float | None = None) -> bool:
        """Sleep until a condition that the queue's jobs bring about holds."""
        seen = self.changes()
        deadline = None if timeout is None else time.monotonic() + timeout
        while not true():
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            seen = self.wait_for_change(seen, left)
        return True

    def _settle(self, job: Job, state: str, run_after: float, reason: str, hint: str | None) -> None:
        """Note a failure. If the job was asked for meanwhile, what failed may have changed: it starts afresh."""
        with self._database.write() as sql:
            sql.execute(
                "UPDATE jobs SET state = iif(again, 'queued', ?), run_after = iif(again, ?, ?),"
                " attempts = iif(again, 0, ?), again = 0, reason = ?, hint = ? WHERE key = ? AND state = 'running'",
                (state, self._clock(), run_after, job.attempts + 1, reason, hint, job.key),
            )
            failpoint("queue.settle.before")
        failpoint("queue.settle.after")
        self.notify()
