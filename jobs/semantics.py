"""The vector side as one thing: which models are wanted, and how their generations come up.

Queries are answered by keywords from the first second; this comes up when it can, says why while it cannot, and
tries again by itself. Another model fills a generation of its own while the one before is searched on (``lineup``).
"""

from __future__ import annotations

import threading
import time

import structlog

from memoryd.jobs.embedders.sleeper import Nap
from memoryd.jobs.heal import Healer
from memoryd.jobs.lineup import Lineup
from memoryd.jobs.meaning import Absence, Choice, Meaning, Models
from memoryd.jobs.retry import backoff, unforeseen
from memoryd.jobs.semantics_status import SemanticsStatus, Switching
from memoryd.jobs.vector_tables import VectorTables
from memoryd.store.errors import EmbedderUnavailable, MemorydError, ModelCorrupt, NotFound
from memoryd.store.generations import Generation, Generations
from memoryd.store.native_thread import name_thread
from memoryd.store.place import VectorPlace
from memoryd.store.precision import Precision
from memoryd.store.protocols import Clock, Embedder, Hold, VectorIndex
from memoryd.store.queue import Queue

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
        self._idle_unload_s = idle_unload_s  # without a query or a job, so long a model stays in memory; 0: always
        self._concluded: Models | None = None  # those that came up, or failed to
        self._trouble: MemorydError | None = None  # why the generation that is wanted cannot be filled
        self._stop = threading.Event()
        self._again = threading.Event()
        tables = VectorTables(place, generations, queue, healer, precision)
        self.lineup = Lineup(tables, generations, queue, clock, healer, on_left=self._again.set)
        self._changing = self.lineup.changing  # the models as well
        self._status = SemanticsStatus("starting", "memoryd is starting")  # while nothing is searched
        self._thread = threading.Thread(target=self._run, name="semantics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        self._stop.set()
        self._again.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        with self.lineup.turns.last(timeout) as free:
            self._status = SemanticsStatus("stopped", reason="memoryd is stopping")
            left = self.lineup.clear()
            if free:  # one that is still at work goes with the process
                for embedder in left:
                    embedder.close()

    # -- what can be asked of it --------------------------------------------------------------------------

    def status(self) -> SemanticsStatus:
        serving = self.lineup.serving
        if serving is None:
            return self._status
        identity = serving.embedder.identity
        return SemanticsStatus(
            "ready", model=identity.model, fingerprint=identity.fingerprint, dimension=identity.dimension
        )

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
        for meaning in self.lineup.in_use():
            meaning.embedder.try_again()
        self.place.outage.release()
        self.retry_now()
        self._queue.notify()

    def ready(self) -> bool:
        return self.lineup.serving is not None

    def off(self) -> bool:
        """Whether no embedder is wanted at all."""
        return self._models.off is not None

    def choice(self) -> Choice:
        return self._models.choice

    def hold(self) -> Hold | None:
        """Why the embedder that is searched by is not asked at the moment."""
        serving = self.lineup.serving
        return serving.embedder.hold() if serving else None

    def can_embed(self) -> bool:
        return self.ready() and self.hold() is None and self.place.outage.hold() is None

    def can_fill(self) -> bool:
        filling = self.lineup.filling
        return filling is not None and filling.embedder.hold() is None and self.place.outage.hold() is None

    def nap(self) -> Nap | None:
        """Since when the model that is searched by is asleep; None: it is in memory, or not there at all."""
        serving = self.lineup.serving
        return serving.sleeper.nap() if serving and serving.sleeper else None

    def held_until(self) -> float | None:
        """When the first of those that are held back may be asked again (unix time)."""
        holds = [self.place.outage.hold(), *(meaning.embedder.hold() for meaning in self.lineup.in_use())]
        return min((hold.until for hold in holds if hold), default=None)

    def now(self) -> Meaning | Absence:
        """The generation to search, as one object; while there is none, one that says why."""
        return self.lineup.serving or Absence(self._status.reason or "the embedder is not ready", self._status.hint)

    def serving(self) -> Meaning:
        found = self.now()
        if isinstance(found, Absence):
            raise found.error()
        return found

    def generation(self) -> Generation | None:
        """The one that is searched, as far as it is open."""
        serving = self.lineup.serving
        return serving.generation if serving else None

    def index(self) -> VectorIndex:
        return self.now().index()

    def switching(self) -> Switching | None:
        """How far the change to another model is, or why there is no getting on."""
        filling, trouble = self.lineup.filling, self._trouble
        is_loading = self._concluded is not self._models
        if not self.ready() or (filling is None and trouble is None and not is_loading):
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
        former = self._former()
        models = self._models.former(former.recipe)
        embedder = self._load_as(former, models)
        with self._changing:
            try:
                self._former()  # it may have been pruned while the model was loaded
                former = self._generations.register(embedder.identity, self._clock(), models.recipe)
                self.lineup.serve(self._meaning(former, embedder))
            except BaseException:
                embedder.close()
                raise
            self._models = self._concluded = models
        log.info("rolled_back", model=former.model, fingerprint=former.fingerprint)
        return former

    def _former(self) -> Generation:
        former = self._generations.former()
        if former is None:
            hint = "A generation is kept for embedder.keep_generations_days after a switch, or until 'model prune'"
            raise NotFound("There is no generation to go back to", hint=hint)
        return former

    def _cancel_filling(self) -> bool:
        with self._changing:
            serving, filling = self.lineup.serving, self.lineup.filling
            if serving is None or (filling is None and self._trouble is None and self._concluded is self._models):
                return False
            self._models = self._concluded = self._models.former(serving.generation.recipe)
            self._stop_filling()
            return True

    def follow_ledger(self) -> None:
        """The ledger was begun anew: tell it which vectors there are, and look what it lacks."""
        self.lineup.follow_ledger()
        self.retry_now()

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
            recipes = [meaning.generation.recipe for meaning in self.lineup.in_use()]
            if models.recipe not in recipes[1:]:
                self._stop_filling()  # of what is not wanted any more
            if models.off is not None:
                self._go_off(models.off)
                return
            if models.recipe in recipes:
                return
        active = self._generations.active()
        if not self.ready() and active and active.recipe not in ("", models.recipe):
            self._bring_up_former(active, models)
        self.lineup.departures.close_due(at_once=True)  # two at most are in memory
        self._status = SemanticsStatus("loading", reason="the model is being loaded")
        embedder = models.load(self._report_progress)
        try:
            self._status = SemanticsStatus("loading", reason="the vectors are being opened")
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
        """By words alone, on purpose."""
        self._trouble = None
        self._status = SemanticsStatus("off", reason=reason)
        self.lineup.serve_none()
        log.info("semantics_off", reason=reason)

    def _take_up(self, embedder: Embedder, models: Models) -> None:
        generation = self._generations.register(embedder.identity, self._clock(), models.recipe)
        meaning = self._meaning(generation, embedder)
        self._stop_filling()
        serving = self.lineup.serving
        if serving is None or serving.fingerprint == generation.fingerprint:
            self.lineup.serve(meaning)
            log.info("semantics_ready", model=generation.model, fingerprint=generation.fingerprint)
            return
        waiting = self.lineup.fill(meaning)
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
                self.lineup.serve(self._meaning(active, embedder))
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
        meaning = self.lineup.open(generation, embedder)
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
            lineup = self.lineup
            if lineup.filling is not None and lineup.filling.embedder is embedder:
                self._stop_filling()
            if lineup.serving is not None and lineup.serving.embedder is embedder:
                self._status = SemanticsStatus(
                    "loading", reason=f"the model could not be loaded again: {error.message}", hint=error.hint
                )
                lineup.serving = None
            self._concluded = None
        self._again.set()

    def _stop_filling(self) -> None:
        with self._changing:
            self._trouble = None
            self.lineup.stop_filling()

    def _give_back(self, due: float | None) -> float | None:
        """What nobody needs: embedders that were left, models that are idle. Returns how long to wait for the next."""
        departures = self.lineup.departures
        at = departures.close_due() + ([] if due is None else [due])
        if self._idle_unload_s:
            sleepers = [meaning.sleeper for meaning in self.lineup.in_use() if meaning.sleeper]
            at += departures.put_to_sleep(sleepers, self._idle_unload_s)
        return max(0.0, min(at) - time.monotonic()) if at else None

    # -- what status says ---------------------------------------------------------------------------------

    def _tell_failure(self, error: MemorydError, wait: float | None) -> None:
        self._trouble = error
        next_retry = None if wait is None else self._clock() + wait
        self._status = SemanticsStatus("failed", reason=error.message, hint=error.hint, next_retry=next_retry)
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
        self._status = SemanticsStatus(
            "installing", reason=f"the model is being installed: {stage}{share}", stage=stage, done=done, total=total
        )

    def _check_not_stopping(self) -> None:
        if self._stop.is_set():
            raise EmbedderUnavailable("memoryd is stopping")
