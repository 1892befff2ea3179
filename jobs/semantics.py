"""The vector side as one thing: which generation is searched, which one is filled beside it, and how they come up.

Queries are answered by keywords from the first second; this comes up when it can, says why while it cannot, and
tries again by itself. Another model fills a generation of its own while the one before is searched on; then one row
flips. At most two embedders are in use: the one that is searched by and the one that fills.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from memoryd.jobs.departures import Departures
from memoryd.jobs.embedders.sleeper import Nap
from memoryd.jobs.heal import Cure, Healer
from memoryd.jobs.meaning import Absence, Choice, Meaning, Models
from memoryd.jobs.native_thread import name_thread
from memoryd.jobs.query_vectors import QueryVectors
from memoryd.jobs.retry import backoff, unforeseen
from memoryd.jobs.semantics_status import SemanticsStatus, State, Switching
from memoryd.jobs.turns import Turns
from memoryd.jobs.vector_tables import VectorTables
from memoryd.store.errors import EmbedderUnavailable, MemorydError, ModelCorrupt, NotFound, StoreCorrupt
from memoryd.store.generations import Generation, Generations
from memoryd.store.place import VectorPlace
from memoryd.store.precision import Precision
from memoryd.store.protocols import Clock, Embedder, Hold, VectorIndex
from memoryd.store.queue import Queue
from memoryd.store.sqlite_file import ignore_damage

log = structlog.get_logger()


class Semantics:
    def __init__(
        self,
        models: Models,
        place: VectorPlace,
        generations: Generations,
        queue: Queue,
        clock: Clock,
        healer: Healer,
        precision: Precision = "float32",
        idle_unload_s: float = 0.0,
    ) -> None:
        self._models = models
        self.place = place
        self._generations = generations
        self._queue = queue
        self._clock = clock
        self._healer = healer
        self._idle_unload_s = idle_unload_s  # without a query or a job, so long a model stays in memory; 0: always
        self._queries = QueryVectors()
        self._tables = VectorTables(place, generations, queue, healer, precision)
        self._changing = threading.RLock()  # of what follows: by the semantics thread, the embed lane, and requests
        self._serving: Meaning | None = None
        self._filling: Meaning | None = None
        self._concluded: Models | None = None  # those that came up, or failed to
        self._trouble: MemorydError | None = None  # why the generation that is wanted cannot be filled
        self._turns = Turns()
        self._departures = Departures(self._turns)
        self._stop = threading.Event()
        self._again = threading.Event()
        self._status = SemanticsStatus("starting", "memoryd is starting")
        self._thread = threading.Thread(target=self._run, name="semantics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        self._stop.set()
        self._again.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        with self._turns.last(timeout) as free:
            in_use = [meaning.embedder for meaning in (self._serving, self._filling) if meaning]
            self._serving = self._filling = None
            self._set("stopped", reason="memoryd is stopping")
            if free:  # one that is still at work goes with the process
                for embedder in (*in_use, *self._departures.embedders()):
                    embedder.close()

    # -- what can be asked of it --------------------------------------------------------------------------

    def status(self) -> SemanticsStatus:
        return self._status

    def started(self) -> bool:
        """Whether anybody is bringing it up, or has."""
        return self._thread.ident is not None

    def settled(self) -> bool:
        """Whether waiting changes nothing: it came up, or it failed and tries again only later."""
        return self._status.state == "stopped" or self._concluded is self._models

    def retry_now(self) -> None:
        """Try again at once what failed, for instance because a model was installed meanwhile."""
        self._again.set()

    def ask_again(self) -> None:
        """The same, and also what a provider refused for good: a person says that it is worth another try."""
        for meaning in self.in_use():
            meaning.embedder.try_again()
        self.place.outage.release()
        self.retry_now()
        self._queue.notify()

    def ready(self) -> bool:
        return self._serving is not None

    def off(self) -> bool:
        """Whether no embedder is wanted at all."""
        return self._models.off is not None

    def choice(self) -> Choice:
        return self._models.choice

    def hold(self) -> Hold | None:
        """Why the embedder that is searched by is not asked at the moment."""
        serving = self._serving
        return serving.embedder.hold() if serving else None

    def can_embed(self) -> bool:
        return self._serving is not None and self.hold() is None and self.place.outage.hold() is None

    def can_fill(self) -> bool:
        filling = self._filling
        return filling is not None and filling.embedder.hold() is None and self.place.outage.hold() is None

    def nap(self) -> Nap | None:
        """Since when the model that is searched by is asleep; None: it is in memory, or not there at all."""
        serving = self._serving
        return serving.sleeper.nap() if serving and serving.sleeper else None

    def held_until(self) -> float | None:
        """When the first of those that are held back may be asked again (unix time)."""
        holds = [self.place.outage.hold(), *(meaning.embedder.hold() for meaning in self.in_use())]
        return min((hold.until for hold in holds if hold), default=None)

    def now(self) -> Meaning | Absence:
        """The generation to search, as one object; while there is none, one that says why."""
        return self._serving or Absence(self._status.reason or "the embedder is not ready", self._status.hint)

    def serving(self) -> Meaning:
        found = self.now()
        if isinstance(found, Absence):
            raise found.error()
        return found

    def filling(self) -> Meaning | None:
        """The generation that is filled beside the one that is searched."""
        return self._filling

    def generation(self) -> Generation | None:
        """The one that is searched, as far as it is open."""
        return self._serving.generation if self._serving else None

    def index(self) -> VectorIndex:
        return self.now().index()

    def switching(self) -> Switching | None:
        """How far the change to another model is, or why there is no getting on."""
        filling, trouble = self._filling, self._trouble
        is_loading = self._concluded is not self._models
        if self._serving is None or (filling is None and trouble is None and not is_loading):
            return None
        reason, hint = (trouble.message, trouble.hint) if trouble else (None, None)
        if filling is None:
            return Switching(None, None, 0, 0, reason, hint)
        if hold := filling.embedder.hold():
            reason, hint = hold.reason, hold.hint
        done, total = self._generations.count(filling.generation.id)
        return Switching(filling.generation.model, filling.fingerprint, done, total, reason, hint)

    def use(self, models: Models) -> None:
        """Go over to other models, in the background; what is searched now is searched until they are ready."""
        with self._changing:
            self._models = models
        self._again.set()

    def unload_after(self, idle_s: float) -> None:
        """Give the models' memory back after so long without a query or a job; 0: never."""
        self._idle_unload_s = idle_s
        self._again.set()

    def roll_back(self) -> Generation:
        """Search the generation before again, at once; or go on with this one, if another was being filled.

        Raises ``NotFound`` where none is kept, and what its embedder raises where that cannot be loaded.
        """
        if self._cancel_filling():
            return self.serving().generation
        former = self._generations.former()
        if former is None:
            hint = "A generation is kept for embedder.keep_generations_days after a switch, or until 'model prune'"
            raise NotFound("There is no generation to go back to", hint=hint)
        models = self._models.former(former.recipe)
        embedder = self._load_as(former, models)
        with self._changing:
            try:
                former = self._generations.register(embedder.identity, self._clock(), models.recipe)
                self._serve(self._meaning(former, embedder))
            except BaseException:
                embedder.close()
                raise
            self._models = self._concluded = models
        log.info("rolled_back", model=former.model, fingerprint=former.fingerprint)
        return former

    def _cancel_filling(self) -> bool:
        with self._changing:
            serving, filling = self._serving, self._filling
            if serving is None or (filling is None and self._trouble is None and self._concluded is self._models):
                return False
            self._models = self._concluded = self._models.former(serving.generation.recipe)
            self._stop_filling()
            return True

    # -- for the embed lane -------------------------------------------------------------------------------

    def is_filled(self) -> bool:
        """Whether the generation that is filled lacks no more than the one that is searched."""
        with self._changing:
            if self._filling is None or self._serving is None:
                return False
            done, total = self._generations.count(self._filling.generation.id)
            return done == total or done >= self._generations.count(self._serving.generation.id)[0]

    def finish_switch(self, filling: Meaning) -> None:
        """Flip to it, unless it was given up meanwhile: one row, and one object handed out from here on."""
        with self._changing:
            if self._filling is not filling:
                return
            self._serve(filling)
            self._filling = None
        self._queue.drop("fill")
        log.info("switched", model=filling.generation.model, fingerprint=filling.fingerprint)

    def in_use(self) -> list[Meaning]:
        return [meaning for meaning in (self._serving, self._filling) if meaning]

    def convertible(self) -> list[Meaning]:
        """Those whose vectors are kept in another precision than the configured one."""
        return [meaning for meaning in self.in_use() if meaning.vectors.is_convertible()]

    def enqueue_missing(self, meaning: Meaning) -> None:
        """Queue what a generation lacks of the passages that there are."""
        filling = self._filling
        is_filling = filling is not None and filling.generation.id == meaning.generation.id
        self._enqueue("fill" if is_filling else "embed", meaning.generation)

    # -- for the healing, on the embed lane ---------------------------------------------------------------

    def find_cure(self, path: Path) -> Cure | None:
        """How damaged vectors are begun anew; None where they are not in use."""
        for meaning in self.in_use():
            if path == self._tables.path_of(meaning.generation):
                return Cure("vectors", partial(self._begin_index_anew, path))
        return None

    def report_damage(self, reason: str) -> None:
        """Have the vectors that are searched begun anew at the lane's next boundary."""
        if self._serving is not None:
            path = self._tables.path_of(self._serving.generation)
            self._healer.report(StoreCorrupt(f"The vector store is given up: {reason}", path=path))

    def follow_ledger(self) -> None:
        """The ledger was begun anew: tell it which vectors there are."""
        with self._changing:
            if self._serving is not None:
                recipe, identity = self._serving.generation.recipe, self._serving.embedder.identity
                generation = self._generations.activate(identity, self._clock(), recipe)
                self._serving = replace(self._serving, generation=generation, vectors=self._tables.open(generation))
                self._enqueue("embed", generation)
            if self._filling is not None:
                recipe, identity = self._filling.generation.recipe, self._filling.embedder.identity
                generation = self._generations.register(identity, self._clock(), recipe)
                self._filling = replace(self._filling, generation=generation, vectors=self._tables.open(generation))
                self._enqueue("fill", generation)
        self.retry_now()

    def _begin_index_anew(self, path: Path, move_away: Callable[[], object]) -> None:
        """Nothing holds a table's files open, and the old mirror answers until the new one is there."""
        with self._changing:
            move_away()
            gone = [
                meaning
                for meaning in self.in_use()
                if self._tables.path_of(meaning.generation) == path or self._tables.is_lost(meaning.generation)
            ]
            for meaning in gone:
                meaning.vectors.on_damage = ignore_damage  # searches under way meet it still: it is known
                anew = replace(meaning, vectors=self._tables.open(meaning.generation))
                if meaning is self._serving:
                    self._serving = anew
                    self._enqueue("embed", meaning.generation)
                else:
                    self._filling = anew
                    self._enqueue("fill", meaning.generation)

    # -- coming up ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        name_thread()
        failures = 0
        while not self._stop.is_set():
            models = self._models
            wait: float | None = None
            try:
                self._bring_up(models)
                failures, self._trouble = 0, None
            except Exception as failure:  # noqa: BLE001 - whatever it is, status must tell of it
                if self._stop.is_set():
                    return
                error = failure if isinstance(failure, MemorydError) else unforeseen(failure)
                failures += 1
                wait = backoff(failures + 3) if error.retryable else None
                self._tell_failure(error, wait)
            if self._models is not models:  # changed meanwhile
                continue
            self._concluded = models
            self._queue.notify()
            due = None if wait is None else time.monotonic() + wait
            while not self._again.wait(self._give_back(due)) and (due is None or time.monotonic() < due):
                pass
            self._again.clear()

    def _bring_up(self, models: Models) -> None:
        """Have the models' generation searched or, beside another one, filled."""
        with self._changing:
            if self._models is not models:  # changed or rolled back meanwhile
                return
            recipes = [meaning.generation.recipe for meaning in self.in_use()]
            if models.recipe not in recipes[1:]:
                self._stop_filling()  # of what is not wanted any more
            if models.off is not None:
                self._go_off(models.off)
                return
            if models.recipe in recipes:
                return
        active = self._generations.active()
        if self._serving is None and active and active.recipe not in ("", models.recipe):
            self._bring_up_former(active, models)
        self._departures.close_due(at_once=True)  # two at most are in memory
        self._set_unless_serving("loading", reason="the model is being loaded")
        embedder = models.load(self._report_progress)
        try:
            self._set_unless_serving("loading", reason="the vectors are being opened")
            self._check_not_stopping()
            with self._changing:
                if self._models is not models:  # changed or rolled back while it was loading
                    embedder.close()
                    return
                self._take_up(embedder, models)
        except BaseException:
            embedder.close()
            raise
        self._queue.enqueue("calibrate", afresh=False)

    def _go_off(self, reason: str) -> None:
        """By words alone, on purpose. The vectors are kept as those of a model that was left."""
        self._stop_filling()
        serving, self._serving = self._serving, None
        if serving is not None:
            self._leave(serving.embedder)
        self._generations.deactivate(self._clock())
        for kind in ("embed", "calibrate"):
            self._queue.drop(kind)
        self._set("off", reason=reason)
        log.info("semantics_off", reason=reason)

    def _take_up(self, embedder: Embedder, models: Models) -> None:
        now = self._clock()
        generation = self._generations.register(embedder.identity, now, models.recipe)
        meaning = self._meaning(generation, embedder)
        if self._serving is None or self._serving.fingerprint == generation.fingerprint:
            self._stop_filling()
            self._serve(meaning)
            log.info("semantics_ready", model=generation.model, fingerprint=generation.fingerprint)
            return
        self._stop_filling()
        self._generations.retire_unused([generation.id], now)
        waiting = self._enqueue("fill", generation)
        self._filling = meaning
        self._queue.notify()
        log.info("switch_begun", model=generation.model, fingerprint=generation.fingerprint, documents=waiting)

    def _bring_up_former(self, active: Generation, models: Models) -> None:
        """Search by what was searched by before, while another model is got ready; without it, by words."""
        try:
            embedder = self._load_as(active, models.former(active.recipe))
        except MemorydError as error:
            log.warning("former_model_gone", model=active.model, reason=error.message)
            return
        with self._changing:
            try:
                self._serve(self._meaning(active, embedder))
            except BaseException:
                embedder.close()
                raise

    def _load_as(self, generation: Generation, models: Models) -> Embedder:
        """The embedder that made a generation."""
        if not generation.recipe:
            raise ModelCorrupt(f"It is not known any more what {generation.model} was made of")
        embedder = models.load(lambda _stage, _done, _total: None)
        if embedder.identity.fingerprint != generation.fingerprint:
            embedder.close()
            raise ModelCorrupt(
                f"The file of {generation.model} is not the one that its vectors were made with",
                hint="Choose a model with 'memoryd model use': its vectors are made anew",
            )
        return embedder

    def _meaning(self, generation: Generation, embedder: Embedder) -> Meaning:
        meaning = Meaning(generation, embedder, self._tables.open(generation), self._turns, self._queries)
        if meaning.sleeper:
            meaning.sleeper.on_woken = self._note_woken
            meaning.sleeper.on_lost = lambda error: self._lose(embedder, error)
        return meaning

    def _note_woken(self) -> None:
        self._queue.notify()  # what waited for it can run now
        self._again.set()  # it will be idle again

    def _lose(self, embedder: Embedder, error: MemorydError) -> None:
        """A model that was asleep cannot be loaded any more: bring it up anew, as at the start."""
        log.warning("model_lost", code=error.code, reason=error.message)
        with self._changing:
            if self._filling is not None and self._filling.embedder is embedder:
                self._stop_filling()
            if self._serving is not None and self._serving.embedder is embedder:
                self._serving = None
                self._set("loading", reason=f"the model could not be loaded again: {error.message}", hint=error.hint)
            self._concluded = None
        self._again.set()

    def _serve(self, meaning: Meaning) -> None:
        """One transaction of the ledger, then one object: from here on this is searched. All of it or nothing."""
        before = self._serving
        in_use = [each.generation.id for each in (meaning, self._filling) if each]
        self._generations.serve(meaning.generation.id, in_use, self._clock())
        self._departures.take_back(meaning.embedder)
        self._serving = meaning
        self._queue.notify()
        self._set("ready")
        if before is not None:
            self._leave(before.embedder)

    def _stop_filling(self) -> None:
        with self._changing:
            filling, self._filling, self._trouble = self._filling, None, None
            if filling is not None:
                self._leave(filling.embedder)
                self._generations.retire_unused([each.generation.id for each in self.in_use()], self._clock())
        self._queue.drop("fill")

    def _leave(self, embedder: Embedder) -> None:
        self._departures.add(embedder)
        self._again.set()

    def _give_back(self, due: float | None) -> float | None:
        """What nobody needs: embedders that were left, models that are idle. Returns how long to wait for the next."""
        at = self._departures.close_due() + ([] if due is None else [due])
        if self._idle_unload_s:
            sleepers = [meaning.sleeper for meaning in self.in_use() if meaning.sleeper]
            at += self._departures.put_to_sleep(sleepers, self._idle_unload_s)
        return max(0.0, min(at) - time.monotonic()) if at else None

    def _enqueue(self, kind: str, generation: Generation) -> int:
        waiting = self._generations.enqueue_incomplete(generation.id, self._clock(), kind)
        self._queue.notify()
        return waiting

    # -- what status says ---------------------------------------------------------------------------------

    def _tell_failure(self, error: MemorydError, wait: float | None) -> None:
        self._trouble = error
        next_retry = None if wait is None else self._clock() + wait
        self._set_unless_serving("failed", reason=error.message, hint=error.hint, next_retry=next_retry)
        log.warning(
            "semantics_failed",
            code=error.code,
            reason=error.message,
            retry_s=wait,
            exc_info=error.__cause__ if error.code == "internal" else None,
        )

    def _report_progress(self, stage: str, done: int, total: int | None) -> None:
        self._check_not_stopping()
        share = f" ({done * 100 // total} %)" if total else ""
        self._set_unless_serving(
            "installing", reason=f"the model is being installed: {stage}{share}", stage=stage, done=done, total=total
        )

    def _check_not_stopping(self) -> None:
        if self._stop.is_set():
            raise EmbedderUnavailable("memoryd is stopping")

    def _set_unless_serving(self, state: State, **facts: object) -> None:
        if self._serving is None:
            self._set(state, **facts)

    def _set(self, state: State, **facts: object) -> None:
        identity = self._serving.embedder.identity if self._serving else None
        self._status = SemanticsStatus(
            state=state,
            model=identity.model if identity else None,
            fingerprint=identity.fingerprint if identity else None,
            dimension=identity.dimension if identity else None,
            **facts,  # type: ignore[arg-type]
        )
