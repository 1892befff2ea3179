"""The vector side as one thing: the embedder, its generation, and LanceDB, opened in the background.

Queries are answered by keywords from the first second; this comes up when it can, says why while it cannot,
and tries again by itself. Queries go before indexing on the embedder.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import structlog

from memoryd.jobs.heal import Cure, Healer
from memoryd.jobs.retry import backoff, unforeseen
from memoryd.store import vectors
from memoryd.store.database import OnDamage
from memoryd.store.errors import EmbedderUnavailable, MemorydError, StoreCorrupt
from memoryd.store.generations import Generation, Generations
from memoryd.store.protocols import Clock, Embedder, VectorIndex, Vectors
from memoryd.store.queue import Queue

log = structlog.get_logger()

_BURST_S = 0.05  # after a query, how soon the next of a burst comes
_MOST_PATIENCE_S = 0.25  # so long a batch of indexing waits for a burst to end

State = Literal["starting", "installing", "loading", "ready", "failed", "stopped"]
Progress = Callable[[str, int, int | None], None]
LoadEmbedder = Callable[[Progress], Embedder]


@dataclass(frozen=True, slots=True)
class SemanticsStatus:
    state: State
    reason: str | None  # why it is not ready
    hint: str | None
    stage: str | None  # what an installation is doing
    done: int
    total: int | None
    model: str | None
    fingerprint: str | None
    dimension: int | None
    next_retry: float | None  # unix time


class Semantics:
    def __init__(
        self,
        load: LoadEmbedder,
        folder: Path,
        generations: Generations,
        queue: Queue,
        clock: Clock,
        healer: Healer,
    ) -> None:
        self._load = load
        self._healer = healer
        self._opening = threading.Lock()  # of the index: by the semantics thread, and by the vector lane that heals
        self._folder = folder
        self._generations = generations
        self._queue = queue
        self._clock = clock
        self._embedder: Embedder | None = None
        self._index: VectorIndex | None = None
        self._generation: Generation | None = None
        self._opened = 0  # how often an index was opened
        self._turns = _Turns()
        self._stop = threading.Event()
        self._again = threading.Event()
        self._status = SemanticsStatus("starting", "memoryd is starting", None, None, 0, None, None, None, None, None)
        self._thread = threading.Thread(target=self._open_until_ready, name="semantics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        self._stop.set()
        self._again.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        with self._turns.last(timeout) as free:
            embedder, self._embedder = self._embedder, None
            self._set("stopped", reason="memoryd is stopping")
            if embedder is not None and free:  # one that is still at work goes with the process
                embedder.close()

    def status(self) -> SemanticsStatus:
        return self._status

    def started(self) -> bool:
        """Whether anybody is bringing it up, or has."""
        return self._thread.ident is not None

    def settled(self) -> bool:
        """Whether waiting changes nothing: it is ready, or it failed and tries again only later."""
        return self._status.state in ("ready", "failed", "stopped")

    def retry_now(self) -> None:
        """Try again at once what failed, for instance because a model was installed meanwhile."""
        self._again.set()

    # -- for the search -----------------------------------------------------------------------------------

    def embed_query(self, text: str) -> Vectors:
        with self._turns.query():
            return self._ready_embedder().embed_query(text)

    def embed_passage(self, text: str) -> Vectors:
        """A text as the notes are embedded, but for a query that waits for it."""
        with self._turns.query():
            vector: Vectors = self._ready_embedder().embed_documents([text])[0]
            return vector

    def index(self) -> VectorIndex:
        if self._index is None:
            raise self._unavailable()
        return self._index

    # -- for the embed lane -------------------------------------------------------------------------------

    def ready(self) -> bool:
        return self._status.state == "ready"

    def generation(self) -> Generation | None:
        return self._generation

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        with self._turns.indexing():
            return self._ready_embedder().embed_documents(texts)

    # -- for the healing, on the embed lane ---------------------------------------------------------------

    def find_cure(self, path: Path) -> Cure | None:
        """How damaged vectors are begun anew; None where they are not the ones in use."""
        generation = self._generation
        if generation is None or path != vectors.table_path(self._folder, generation.fingerprint):
            return None
        return Cure("vectors", self._begin_index_anew)

    def report_damage(self, reason: str) -> None:
        """Have the vectors in use begun anew at the lane's next boundary."""
        if self._generation is not None:
            path = vectors.table_path(self._folder, self._generation.fingerprint)
            self._healer.report(StoreCorrupt(f"The vector store is given up: {reason}", path=path))

    def follow_ledger(self) -> None:
        """The ledger was begun anew: tell it which vectors there are."""
        with self._opening:
            if self._embedder is not None:
                self._generation = self._generations.activate(self._embedder.identity, self._clock())
                self._open_index(self._generation)
        self.retry_now()

    def _begin_index_anew(self, move_away: Callable[[], object]) -> None:
        """Nothing holds a table's files open, and the mirror answers until the new one is there."""
        with self._opening:
            if self._generation is not None:
                move_away()
                self._open_index(self._generation)

    def _open_index(self, generation: Generation) -> None:
        """Open the generation's vectors, make the ledger's marks true, and queue the documents that lack some."""
        fingerprint, dimension = generation.fingerprint, generation.dimension
        index, held = self._healer.open(
            "vectors",
            vectors.table_path(self._folder, fingerprint),
            lambda: open_table(self._folder, fingerprint, dimension, self._make_report()),
        )
        marked = self._generations.marked(generation.id)
        self._generations.unmark(generation.id, marked - held)
        index.delete(held - marked)
        self._index = index
        self._generations.enqueue_incomplete(generation.id, self._clock())
        self._queue.notify()

    def _make_report(self) -> OnDamage:
        """For one opening of the index: what searches in it meet after it was replaced is not told of."""
        self._opened += 1
        number = self._opened

        def report(damage: StoreCorrupt) -> None:
            if number == self._opened:
                self._healer.report(damage)

        return report

    # -- coming up ----------------------------------------------------------------------------------------

    def _open_until_ready(self) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                self._open()
            except Exception as failure:  # whatever it is, status must tell of it
                if self._stop.is_set():
                    return
                error = failure if isinstance(failure, MemorydError) else unforeseen(failure)
                failures += 1
                wait = backoff(failures + 3) if error.retryable else None
                self._set(
                    "failed",
                    reason=error.message,
                    hint=error.hint,
                    next_retry=None if wait is None else self._clock() + wait,
                )
                log.warning(
                    "semantics_failed",
                    code=error.code,
                    reason=error.message,
                    retry_s=wait,
                    exc_info=error.__cause__ if error.code == "internal" else None,
                )
                self._queue.notify()
                self._again.wait(wait)
                self._again.clear()
            else:
                return

    def _open(self) -> None:
        self._set("loading", reason="the model is being loaded")
        embedder = self._load(self._report_progress)
        try:
            self._set("loading", reason="the vectors are being opened")
            self._check_not_stopping()
            with self._opening:
                generation = self._generations.activate(embedder.identity, self._clock())
                self._open_index(generation)
                self._embedder, self._generation = embedder, generation
        except BaseException:
            embedder.close()
            raise
        self._set("ready")
        log.info("semantics_ready", model=generation.model, fingerprint=generation.fingerprint)
        self._queue.enqueue("calibrate", afresh=False)

    def _report_progress(self, stage: str, done: int, total: int | None) -> None:
        self._check_not_stopping()
        share = f" ({done * 100 // total} %)" if total else ""
        self._set(
            "installing", reason=f"the model is being installed: {stage}{share}", stage=stage, done=done, total=total
        )

    def _check_not_stopping(self) -> None:
        if self._stop.is_set():
            raise EmbedderUnavailable("memoryd is stopping")

    def _set(
        self,
        state: State,
        *,
        reason: str | None = None,
        hint: str | None = None,
        stage: str | None = None,
        done: int = 0,
        total: int | None = None,
        next_retry: float | None = None,
    ) -> None:
        identity = self._embedder.identity if self._embedder else None
        self._status = SemanticsStatus(
            state=state,
            reason=reason,
            hint=hint,
            stage=stage,
            done=done,
            total=total,
            model=identity.model if identity else None,
            fingerprint=identity.fingerprint if identity else None,
            dimension=identity.dimension if identity else None,
            next_retry=next_retry,
        )

    def _ready_embedder(self) -> Embedder:
        if self._embedder is None:
            raise self._unavailable()
        return self._embedder

    def _unavailable(self) -> EmbedderUnavailable:
        return EmbedderUnavailable(self._status.reason or "the embedder is not ready", hint=self._status.hint)


def open_table(
    folder: Path, fingerprint: str, dimension: int, on_damage: OnDamage
) -> tuple[vectors.LanceVectors, set[int]]:
    """A generation's vectors and the ids that it holds: what is damaged shows when either is read."""
    index = vectors.LanceVectors(folder, fingerprint, dimension, on_damage=on_damage)
    return index, index.ids()


class _Turns:
    """One user of the embedder at a time; a waiting query goes before the next batch of indexing.

    Queries come in bursts, so indexing also holds back a moment after each, though not for long.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._busy = False
        self._queries = 0
        self._quiet_at = 0.0  # monotonic time at which no further query is expected

    @contextmanager
    def query(self) -> Iterator[None]:
        with self._condition:
            self._queries += 1
            self._condition.wait_for(lambda: not self._busy)
            self._queries -= 1
            self._busy = True
        try:
            yield
        finally:
            self._quiet_at = time.monotonic() + _BURST_S
            self._leave()

    @contextmanager
    def indexing(self) -> Iterator[None]:
        with self._condition:
            patience = time.monotonic() + _MOST_PATIENCE_S
            while (wait := min(self._quiet_at, patience) - time.monotonic()) > 0:
                self._condition.wait(wait)
            self._condition.wait_for(lambda: not self._busy and not self._queries)
            self._busy = True
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def last(self, timeout: float) -> Iterator[bool]:
        """For the end: whether the embedder came free in time. Whoever waits gets its turn afterwards."""
        with self._condition:
            self._queries += 1
            free = self._condition.wait_for(lambda: not self._busy, timeout)
            self._queries -= 1
            self._busy = True
        try:
            yield free
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._condition:
            self._busy = False
            self._condition.notify_all()
