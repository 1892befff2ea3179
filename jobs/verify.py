"""Proving that disk, ledger, keyword indexes and vectors say the same, and making them do so where they do not.

A look disturbs nobody: files change and lanes work meanwhile. So what is being worked on is pending, and what
looks wrong is looked at again before it is called drift.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from memoryd.jobs.drift import Drift, count_kinds
from memoryd.jobs.look import Look, Stores
from memoryd.jobs.look_documents import look_at_documents, look_at_strays
from memoryd.jobs.look_keywords import look_at_keywords
from memoryd.jobs.look_light import look_lightly
from memoryd.jobs.look_vectors import look_at_vectors
from memoryd.jobs.proof import Proof, Proofs
from memoryd.jobs.repair import repair_ledger, repair_vectors
from memoryd.store.errors import Busy, NotFound
from memoryd.store.keywords import TABLES, find_faults
from memoryd.store.model import document_id
from memoryd.store.protocols import Clock

log = structlog.get_logger()

_PATIENCE_S = 60.0  # for another verification to end
_NOTICE_S = 0.5  # in which a change on disk becomes a job, besides the time for a file to settle
_REPAIRS = 3  # rounds: what one puts right can bring to light what it hid


@dataclass(frozen=True, slots=True)
class Verdict:
    root: str | None  # None: a light look
    drift: tuple[Drift, ...]
    repaired: tuple[Drift, ...]
    pending: int
    documents: int
    chunks: int
    vectors: int

    @property
    def in_sync(self) -> bool:
        return not self.drift


class Verifier:
    def __init__(self, stores: Stores, clock: Clock, *, settle_s: float, stopping: Callable[[], bool]) -> None:
        self.proofs = Proofs()
        self._stores = stores
        self._clock = clock
        self._settle_s = settle_s
        self._stopping = stopping
        self._turn = threading.Lock()  # one verification at a time

    def follow(self, stores: Stores) -> None:
        """Look at these from now on: another configuration is in force."""
        self._stores = stores

    def verify(self, names: Sequence[str] = (), *, repair: bool = False, live: bool = True) -> Verdict:
        """A full look, on the caller's thread. ``live`` says that the lanes run: files may change meanwhile, and
        repairs are theirs to do."""
        with self._take_turn():
            self._check_served(names)
            look, root = self._look_twice(names, live=live)
            found = list(look.drift)
            for _ in range(_REPAIRS if repair else 0):
                if not look.drift or self._stopping():
                    break
                log.warning("drift_found", **count_kinds(look.drift), repair=True)
                self._repair_and_wait(look.drift)
                look, root = self._look_twice(names, live=live)
            return self._conclude(look, root, found)

    def verify_lightly(self) -> Verdict | None:
        """A light look, and repairs, on the embed lane; None = somebody is looking already, and more closely.

        Nobody has asked for it, so what has failed is left to the queue: a repair would have it tried again at once,
        and every time, however often it failed.
        """
        if not self._turn.acquire(blocking=False):
            return None
        try:
            light = not self.proofs.needs_full_look()
            look, root = self._look_twice((), live=True, light=light, unasked=True)
            found = list(look.drift)
            if look.drift:
                log.warning("drift_found", **count_kinds(look.drift), repair=True)
                repair_ledger(self._stores, look.drift, self._clock())
                if self._stores.semantics.ready() and _is_about_vectors(look.drift):
                    repair_vectors(self._stores, self._clock, failed=False)
                look, root = self._look_twice((), live=True, light=light, unasked=True)
            return self._conclude(look, root, found)
        finally:
            self._turn.release()

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=_PATIENCE_S):
            raise Busy("Another verification is still running", hint="Ask again when it has ended")
        try:
            yield
        finally:
            self._turn.release()

    def _check_served(self, names: Sequence[str]) -> None:
        """They were when it was asked for, but it may have waited for its turn."""
        if gone := [name for name in names if name not in self._stores.workspaces]:
            raise NotFound(f"No workspace is called {', '.join(gone)} any more", hint="The configuration was reloaded")

    # -- looking ------------------------------------------------------------------------------------------

    def _look_twice(
        self, names: Sequence[str], *, live: bool, light: bool = False, unasked: bool = False
    ) -> tuple[Look, str | None]:
        """Drift is what is found both times of a document that did not change in between."""
        first, root = self._look(names, light=light, unasked=unasked)
        if not first.drift or not live:
            return first, root
        if any(entry.store == "ledger" for entry in first.drift):  # the watcher may be about to notice
            time.sleep(_NOTICE_S + 2 * self._settle_s)
        look, root = self._look(names, light=light, unasked=unasked)
        before = {entry.place for entry in first.drift}
        work = self._stores.queue.work(failed=unasked)
        busy = work.texts | work.vectors
        found, look.drift = look.drift, []
        for entry in found:
            place = (entry.workspace, entry.path)
            is_changing = document_id(*place) in busy or first.state_of(place) != look.state_of(place)
            if entry.path and is_changing:
                look.pending.add(place)
            elif entry.place in before:
                look.drift.append(entry)
        return look, root

    def _look(self, names: Sequence[str], *, light: bool, unasked: bool) -> tuple[Look, str | None]:
        stores = self._stores
        whole = not names
        if whole:
            self.proofs.begin_look()
        work = stores.queue.work(failed=unasked)
        look = Look(tuple(names) or tuple(stores.workspaces), self._clock(), whole, work)
        if light:
            look_lightly(stores, look)
            return look, None
        look_at_documents(stores, look)
        if whole:
            look_at_strays(stores, look)
        for table in TABLES:  # each in a transaction of its own: indexing waits for one at most
            with stores.database.write() as sql:
                faults = find_faults(sql, table)
            look_at_keywords(stores, look, [faults])
        generation = look_at_vectors(stores, look)
        return look, look.root(generation)

    # -- repairing ----------------------------------------------------------------------------------------

    def _repair_and_wait(self, drift: Sequence[Drift]) -> None:
        """Repair what is ours to write, have the lanes do the rest, and wait for them as long as they try."""
        stores = self._stores
        concerned = {document_id(entry.workspace, entry.path) for entry in drift if entry.path}
        concerned |= {
            document_id(entry.workspace, stores.workspaces[entry.workspace].file_of(entry.path))
            for entry in drift
            if entry.workspace in stores.workspaces
        }
        repair_ledger(stores, drift, self._clock())
        self._wait_until(lambda: not concerned & stores.queue.work().texts)
        if stores.semantics.ready():
            stores.queue.enqueue("repair")
            self._wait_until(lambda: "repair" not in stores.queue.waiting_kinds())
            self._wait_until(lambda: not concerned & stores.queue.work().vectors)

    def _wait_until(self, true: Callable[[], bool]) -> None:
        self._stores.queue.wait_until(lambda: self._stopping() or true())

    def _conclude(self, look: Look, root: str | None, found: Sequence[Drift]) -> Verdict:
        left = {entry.place for entry in look.drift}
        repaired = tuple(entry for entry in found if entry.place not in left)
        drift = tuple(look.drift)
        if look.whole:
            failed = {(failure.workspace, failure.path) for failure in self._stores.queue.failures()} & look.pending
            pending = len(look.pending) - len(failed)
            self.proofs.keep(Proof(look.at, root is None, root, drift, pending, len(failed)))
        if drift:
            log.warning("drift_left", **count_kinds(drift))
        return Verdict(root, drift, repaired, len(look.pending), look.documents, look.chunks, look.vectors)


def _is_about_vectors(drift: Sequence[Drift]) -> bool:
    return any(entry.store == "vectors" for entry in drift)
