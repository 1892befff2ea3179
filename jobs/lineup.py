"""The generations in use: the one that is searched, and beside it the one that another model fills.

Each is one object, handed out whole; which of them is searched is one row of the ledger. At most two embedders are in
use, so what fills is given up before something else does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from memoryd.jobs.departures import Departures
from memoryd.jobs.heal import Cure, Healer
from memoryd.jobs.interrupted import Interrupted
from memoryd.jobs.meaning import Meaning
from memoryd.jobs.query_vectors import QueryVectors
from memoryd.jobs.turns import Turns
from memoryd.jobs.vector_tables import VectorTables
from memoryd.store.errors import StoreCorrupt
from memoryd.store.generations import Generation, Generations
from memoryd.store.protocols import Clock, Embedder
from memoryd.store.queue import Queue
from memoryd.store.sqlite_file import ignore_damage

log = structlog.get_logger()


class Lineup:
    """Changed by the semantics thread, the embed lane and requests: each holds ``changing`` meanwhile."""

    def __init__(
        self,
        tables: VectorTables,
        generations: Generations,
        queue: Queue,
        clock: Clock,
        healer: Healer,
        on_left: Callable[[], None],
    ) -> None:
        """``on_left`` is told when an embedder was left that is to be closed some time later."""
        self.changing = threading.RLock()
        self.serving: Meaning | None = None
        self.filling: Meaning | None = None
        self.turns = Turns()
        self.departures = Departures(self.turns)
        self._queries = QueryVectors()
        self._tables = tables
        self._generations = generations
        self._queue = queue
        self._clock = clock
        self._healer = healer
        self._on_left = on_left

    def in_use(self) -> list[Meaning]:
        return [meaning for meaning in (self.serving, self.filling) if meaning]

    def convertible(self) -> list[Meaning]:
        """Those whose vectors are kept in another precision than the configured one."""
        return [meaning for meaning in self.in_use() if meaning.vectors.is_convertible()]

    def is_filled(self) -> bool:
        """Whether the generation that is filled lacks no more than the one that is searched. Nobody waits for it."""
        filling, serving = self.filling, self.serving
        if filling is None or serving is None:
            return False
        done, total = self._generations.count(filling.generation.id)
        return done == total or done >= self._generations.count(serving.generation.id)[0]

    def enqueue_missing(self, meaning: Meaning) -> None:
        """Queue what a generation lacks of the passages that there are."""
        filling = self.filling
        is_filling = filling is not None and filling.generation.id == meaning.generation.id
        self._enqueue("fill" if is_filling else "embed", meaning.generation)

    @contextmanager
    def writing(self, meaning: Meaning) -> Iterator[None]:
        """While its vectors are written nothing is opened or left: a table that is opened again, for a generation that
        comes back into use, would not have them in its mirror, though the ledger says that they are there.

        Raises ``Interrupted`` where the meaning is in use no more.
        """
        with self.changing:
            if all(each.vectors is not meaning.vectors for each in self.in_use()):
                raise Interrupted
            yield

    # -- who comes and who goes ---------------------------------------------------------------------------

    def open(self, generation: Generation, embedder: Embedder) -> Meaning:
        return Meaning(generation, embedder, self._tables.open(generation), self.turns, self._queries)

    def serve(self, meaning: Meaning) -> None:
        """One transaction of the ledger, then one object: from here on this is searched. All of it or nothing."""
        with self.changing:
            before = self.serving
            in_use = [each.generation.id for each in (meaning, self.filling) if each]
            self._generations.serve(meaning.generation.id, in_use, self._clock())
            self.departures.take_back(meaning.embedder)
            self.serving = meaning
        self._queue.notify()
        if before is not None:
            self._leave(before)

    def serve_none(self) -> None:
        """By words alone. The vectors are kept as those of a model that was left."""
        with self.changing:
            self.stop_filling()
            serving, self.serving = self.serving, None
            if serving is not None:
                self._leave(serving)
            self._generations.deactivate(self._clock())
        for kind in ("embed", "calibrate"):
            self._queue.drop(kind)

    def fill(self, meaning: Meaning) -> int:
        """Beside the one that is searched, instead of any other. Returns how many documents wait for it."""
        with self.changing:
            self.stop_filling()
            self._generations.retire_unused([meaning.generation.id], self._clock())
            waiting = self._enqueue("fill", meaning.generation)
            self.filling = meaning
        self._queue.notify()
        return waiting

    def finish_switch(self, filling: Meaning) -> None:
        """Flip to it, unless it was given up meanwhile: one row, and one object handed out from here on."""
        with self.changing:
            if self.filling is not filling:
                return
            self.serve(filling)
            self.filling = None
        self._queue.drop("fill")
        log.info("switched", model=filling.generation.model, fingerprint=filling.fingerprint)

    def stop_filling(self) -> None:
        with self.changing:
            filling, self.filling = self.filling, None
            if filling is not None:
                self._leave(filling)
                self._generations.retire_unused([each.generation.id for each in self.in_use()], self._clock())
        self._queue.drop("fill")

    def clear(self) -> list[Embedder]:
        """Nothing is in use any more. Returns the embedders that are to be closed."""
        embedders = [*(meaning.embedder for meaning in self.in_use()), *self.departures.embedders()]
        self.serving = self.filling = None
        return embedders

    def _leave(self, meaning: Meaning) -> None:
        self.departures.add(meaning.embedder)
        self._on_left()

    def _enqueue(self, kind: str, generation: Generation) -> int:
        waiting = self._generations.enqueue_incomplete(generation.id, self._clock(), kind)
        self._queue.notify()
        return waiting

    # -- for the healing, on the embed lane ---------------------------------------------------------------

    def find_cure(self, path: Path) -> Cure | None:
        """How damaged vectors are begun anew; None where they are not in use."""
        for meaning in self.in_use():
            if path == self._tables.path_of(meaning.generation):
                return Cure("vectors", partial(self._begin_index_anew, path))
        return None

    def report_damage(self, reason: str) -> None:
        """Have the vectors that are searched begun anew at the lane's next boundary."""
        serving = self.serving
        if serving is not None:
            path = self._tables.path_of(serving.generation)
            self._healer.report(StoreCorrupt(f"The vector store is given up: {reason}", path=path))

    def follow_ledger(self) -> None:
        """The ledger was begun anew: tell it which vectors there are."""
        with self.changing:
            if self.serving is not None:
                recipe, identity = self.serving.generation.recipe, self.serving.embedder.identity
                generation = self._generations.activate(identity, self._clock(), recipe)
                self.serving = replace(self.serving, generation=generation, vectors=self._tables.open(generation))
                self._enqueue("embed", generation)
            if self.filling is not None:
                recipe, identity = self.filling.generation.recipe, self.filling.embedder.identity
                generation = self._generations.register(identity, self._clock(), recipe)
                self.filling = replace(self.filling, generation=generation, vectors=self._tables.open(generation))
                self._enqueue("fill", generation)

    def _begin_index_anew(self, path: Path, move_away: Callable[[], object]) -> None:
        """Nothing holds a table's files open, and the old mirror answers until the new one is there."""
        with self.changing:
            move_away()
            gone = [
                meaning
                for meaning in self.in_use()
                if self._tables.path_of(meaning.generation) == path or self._tables.is_lost(meaning.generation)
            ]
            for meaning in gone:
                meaning.vectors.on_damage = ignore_damage  # searches under way meet it still: it is known
                anew = replace(meaning, vectors=self._tables.open(meaning.generation))
                if meaning is self.serving:
                    self.serving = anew
                    self._enqueue("embed", meaning.generation)
                else:
                    self.filling = anew
                    self._enqueue("fill", meaning.generation)
