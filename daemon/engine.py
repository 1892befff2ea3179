"""The index at work: stores, lanes, schedule and embedder, wired. The daemon and ``memoryd index`` both run it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from memoryd.daemon.config import Config
from memoryd.daemon.configured import (
    configured_hypotheses,
    configured_indexing,
    configured_pauses,
    configured_place,
    configured_precision,
    configured_workspaces,
)
from memoryd.daemon.events import Events
from memoryd.daemon.ingestion import Ingestion
from memoryd.daemon.instance import InstanceLock
from memoryd.daemon.lanes import Lanes
from memoryd.daemon.language_model import make_language_model
from memoryd.daemon.measures import Measures
from memoryd.daemon.paths import Paths, ensure_private
from memoryd.daemon.preparation import prepare_ledger, set_aside_crashed
from memoryd.daemon.reloaded import Reloaded
from memoryd.daemon.reranker import make_reranker
from memoryd.jobs.embed import Vectorizer
from memoryd.jobs.heal import Cure, Healer
from memoryd.jobs.ingest.folder import IGNORE, folder_name
from memoryd.jobs.look import Stores
from memoryd.jobs.maintain import Upkeep
from memoryd.jobs.meaning import Models
from memoryd.jobs.pauses import Pause, Pauses
from memoryd.jobs.schedule import Schedule
from memoryd.jobs.semantics import Semantics
from memoryd.jobs.spare_memory import SpareMemory, give_back
from memoryd.jobs.surroundings import look_around
from memoryd.jobs.verify import Verifier
from memoryd.jobs.worker import Facts, Worker
from memoryd.jobs.workspace import Workspace
from memoryd.store.cache import SqliteCache
from memoryd.store.database import Database
from memoryd.store.documents import Documents
from memoryd.store.errors import ConfigInvalid, MemorydError, StoreCorrupt, StoreUnavailable
from memoryd.store.generations import Generations
from memoryd.store.model import FACTS
from memoryd.store.protocols import Clock
from memoryd.store.quarantine import Quarantine
from memoryd.store.queue import Queue
from memoryd.store.transcripts import Transcripts

log = structlog.get_logger()

ANSWER_SECONDS = 1.0  # for an answer of the language model that is under way when memoryd is told to stop
CHECK_SECONDS = 2.0  # for the look at each SQLite file after a stop that was not in good order


class Engine:
    def __init__(
        self,
        config: Config,
        paths: Paths,
        models: Models,
        clock: Clock = time.time,
        surroundings: Path = Path("/"),  # below it, what Linux tells of the machine
    ) -> None:
        if not config.workspaces:  # with nothing to serve, everything known would be forgotten
            raise ConfigInvalid(config.notes or ("no workspace is configured",))
        self.config = config
        self.paths = paths
        self.clock = clock
        self.started_at = clock()
        self.events = Events(clock)
        self.last_reload: Reloaded | None = None  # what became of the last request to read the configuration again
        self.index_settings = configured_indexing(config)
        self.configuring = threading.RLock()  # of who changes the configuration: a reload, or a change of model
        self.reading = threading.Lock()  # while a file is indexed, what it is indexed by does not change
        ensure_private(paths.data_dir)
        self.ingestion = Ingestion(self)
        self.workspaces = self._served(config)
        self.on_served: Callable[[], object] = lambda: None  # told when another workspace is served from here on
        self.lock = InstanceLock(paths.lock_file)
        self.healer = Healer(Quarantine(paths.data_dir / "quarantine", clock), clock, wake=self._wake_lanes)
        check_s = CHECK_SECONDS if self.lock.was_cut_off else 0.0
        report = self.healer.report
        with ExitStack() as undo:  # of what was opened, if the rest cannot be
            undo.callback(self.lock.release)
            self.database = self.healer.open(
                "ledger", paths.database, lambda: Database(paths.database, report, check_s=check_s)
            )
            undo.callback(self.database.close)
            self.cache = self.healer.open(
                "embedding_cache",
                paths.embeddings,
                lambda: SqliteCache(
                    paths.embeddings, clock, report, precision=configured_precision(config), check_s=check_s
                ),
            )
            undo.pop_all()
        self._ledger_is_new = False  # begun anew while we run, and not told yet what there is
        self.documents = Documents(self.database)
        self.transcripts = Transcripts(self.database, self.documents)
        self.queue = Queue(self.database, clock)
        self.generations = Generations(self.database)
        self.place = configured_place(config, paths, os.environ, clock)
        self.semantics = Semantics(
            models,
            self.place,
            self.generations,
            self.queue,
            clock,
            self.healer,
            configured_precision(config),
            idle_unload_s=config.embedder.idle_unload_minutes * 60,
        )
        self.pauses = Pauses(configured_pauses(config), clock, partial(look_around, surroundings))
        self.llm = make_language_model(config.llm, os.environ)
        self.hypotheses = configured_hypotheses(config, self.llm)
        self.reranker = make_reranker(config, paths.models_dir)
        self.worker = Worker(self.queue, clock, config.index.max_attempts, self.healer.is_due)
        self.vectorizer = Vectorizer(
            self.generations,
            self.cache,
            self.semantics.lineup,
            lambda: self.worker.stopping() or self.healer.is_due() or self.paused() is not None,
        )
        self.upkeep = Upkeep(
            self.database,
            self.semantics.lineup,
            self.generations,
            self.cache,
            shared_cache=paths.embeddings.parent != paths.data_dir,
            stopping=self.worker.stopping,
        )
        self.schedule = Schedule(clock)
        self.stores = Stores(
            self.workspaces,
            self.index_settings,
            self.database,
            self.documents,
            self.queue,
            self.generations,
            self.semantics,
            self.cache,
            self.place,
        )
        self.verifier = Verifier(
            self.stores, clock, settle_s=config.index.settle_ms / 1000, stopping=self.worker.stopping
        )
        self.first_look_due = False  # at whether the stores are in step, once the index is current
        self.measures = Measures(clock)
        self.spare_memory = SpareMemory(give_back=self.rest)
        self.worker.on_jobs = self._note_jobs
        self.vectorizer.on_written = self.measures.note_vectors

    # -- life, in order: start goes down, stop goes up ----------------------------------------------------

    def start(self) -> None:
        try:
            prepare_ledger(self)
            set_aside_crashed(self, self.worker.recover())
            self._look_at_disk_by_itself()
            self.queue.enqueue("verify", afresh=False)
            self.first_look_due = True  # before a lane runs: a look at an index that is not up yet finds only drift
        except StoreCorrupt:  # it was opened, and is damaged all the same
            self.tend_stores()
        lanes = Lanes(self)
        self.worker.start([lanes.text(), lanes.vectors()])
        self.semantics.start()
        self._set_schedule()
        self.schedule.start()
        self.spare_memory.start()

    def stop(self, timeout: float) -> list[str]:
        """Stop at the next boundary; returns the lanes that did not reach one in time."""
        self.spare_memory.stop()
        self.schedule.stop()
        self.ingestion.stop(for_good=True)
        late = self.worker.stop(timeout)
        self.ingestion.wait(ANSWER_SECONDS)  # for a call in hand
        self.llm.close()
        self.reranker.close()
        if not self.ingestion.wait(ANSWER_SECONDS):
            late.append("ingest")
        self.semantics.stop(timeout=0.5)
        if not late:
            self.ingestion.close()
        if not late:  # a lane that still runs would find its stores closed under it, or another's writes among its own
            self.cache.close()
            self.database.close()
            self.lock.release(in_good_order=True)
        return late

    def reconfigure(self, config: Config) -> None:
        """Go on with another configuration, its embedder and paths aside. Raises and changes nothing if it cannot.

        ``look_at_disk`` is due afterwards, once the watchers follow.
        """
        if not config.workspaces:
            raise ConfigInvalid(config.notes or ("no workspace is configured",))
        with self.configuring:
            self._reconfigure(config)

    def _reconfigure(self, config: Config) -> None:
        with self.reading:
            before = self.config, self.workspaces, self.index_settings
            served = self._served(config)
            self.config, self.workspaces, self.index_settings = config, served, configured_indexing(config)
            try:
                prepare_ledger(self)
            except BaseException:  # what was forgotten already is found again by the next look at the disk
                self.config, self.workspaces, self.index_settings = before
                raise
            self.stores = replace(self.stores, workspaces=self.workspaces, settings=self.index_settings)
            self.verifier.follow(self.stores)
        self.worker.max_attempts = config.index.max_attempts
        self.pauses.follow(configured_pauses(config))
        self.semantics.unload_after(config.embedder.idle_unload_minutes * 60)
        self.queue.notify()  # what was paused may not be any more
        if (config.schedule, config.ingest) != (before[0].schedule, before[0].ingest):
            self._set_schedule()
        if config.llm != before[0].llm:
            self.ingestion.stop()  # it asks the one that goes
            self.llm.close()
            self.llm = make_language_model(config.llm, os.environ)
        self.hypotheses = configured_hypotheses(config, self.llm)
        if config.search.rerank.model != before[0].search.rerank.model:
            self.reranker.close()
            self.reranker = make_reranker(config, self.paths.models_dir)

    # -- what can be asked of it --------------------------------------------------------------------------

    def index_files(self, workspace: str, paths: Sequence[str]) -> None:
        self._enqueue([("index", workspace, path) for path in paths])

    def look_at_disk(self, workspaces: Sequence[str] = (), below: str = "") -> None:
        names = workspaces or tuple(self.workspaces)
        self._enqueue([("reconcile", name, below) for name in names])

    def _look_at_disk_by_itself(self) -> None:
        self._enqueue([("reconcile", name, "") for name in self.workspaces], afresh=False)

    def serve_facts(self) -> None:
        """From the first fact on: index them, and watch them like any workspace."""
        if FACTS in self.workspaces:
            return
        with self.reading:
            self.workspaces = self._served(self.config)
            prepare_ledger(self)
            self.stores = replace(self.stores, workspaces=self.workspaces)
            self.verifier.follow(self.stores)
        self._set_schedule()
        self.on_served()

    def retry_failures(self) -> None:
        self.queue.requeue_parked()
        self.semantics.retry_now()

    def rest(self) -> None:
        """A burst of work is over: give back what it took of memory and disk."""
        give_back()
        try:
            self.upkeep.fold_logs()
            if self.upkeep.is_wasteful():
                self.queue.enqueue("maintain", afresh=False)
        except MemorydError as error:  # it is not wanted at once, and maintenance tells if it cannot be done
            log.info("logs_not_folded", code=error.code, reason=error.message)

    def is_current(self) -> bool:
        """Whether nothing is left to do that can be done now: what failed before waits for its own time."""
        try:
            return self._has_nothing_to_do()
        except (StoreCorrupt, StoreUnavailable):
            if self.healer.is_due():  # the ledger is being begun anew this very moment
                return False
            raise

    def _has_nothing_to_do(self) -> bool:
        if self._ledger_is_new or self.healer.is_due():
            return False
        if "verify" not in self.queue.waiting_kinds():
            self.first_look_due = False
        return self.is_indexed() and not self.first_look_due

    def is_indexed(self) -> bool:
        if not self.semantics.settled():  # before the queue is read: a model that comes up puts its jobs there first
            return False
        waiting = self.queue.waiting_kinds()
        if waiting & {"reconcile", "index"}:
            return False
        if self.paused() is not None:
            return True
        if "resplit" in waiting:
            return False
        if self.semantics.lineup.convertible() and "maintain" in waiting:
            return False
        if self.semantics.can_fill() and ("fill" in waiting or self.semantics.lineup.is_filled()):
            return False
        if self.semantics.nap() is not None:
            waiting = waiting - {"calibrate"}  # it waits until the model is needed anyway
        return not self.semantics.can_embed() or not waiting & {"embed", "calibrate"}

    def paused(self) -> Pause | None:
        """Why nothing is embedded at the moment. What another machine embeds is no burden to this one."""
        return None if self.semantics.choice().sends_to else self.pauses.now()

    def _enqueue(self, jobs: Sequence[tuple[str, str, str]], *, afresh: bool = True) -> None:
        try:
            self.queue.enqueue_all(jobs, afresh=afresh)
        except MemorydError as error:  # no job can be written down that would tell of it
            self.worker.ledger_trouble = self.worker.remember("queue", error)
            raise
        self.worker.ledger_trouble = None

    # -- healing ------------------------------------------------------------------------------------------

    def tend_stores(self) -> None:
        """Put right what is damaged, and notice when what was begun anew is whole."""
        if self.healer.is_due():
            self.healer.heal(self._find_cure)
        if self._ledger_is_new:
            prepare_ledger(self)
            self.semantics.follow_ledger()
            self.look_at_disk()
            self._ledger_is_new = False
        if self.healer.rebuilding() and self._is_whole():
            self.healer.finish()

    def _is_whole(self) -> bool:
        """Whether every note is found again, by its words and as far as there is a model by its meaning."""
        if not self.semantics.settled():  # first, as above
            return False
        waiting = self.queue.waiting_kinds() & {"reconcile", "index", "embed"}
        return not waiting - ({"embed"} if not self.semantics.can_embed() else set())

    def _find_cure(self, path: Path) -> Cure | None:
        if path == self.paths.database:
            return Cure("ledger", self._begin_ledger_anew)
        if path == self.paths.ingest:
            return Cure("ingest", self.ingestion.answers().begin_anew)
        if path == self.paths.embeddings:
            return Cure("embedding_cache", self.cache.begin_anew)
        return self.semantics.lineup.find_cure(path)

    def _begin_ledger_anew(self, move_away: Callable[[], object]) -> None:
        self.database.begin_anew(move_away)
        self._ledger_is_new = True

    def _note_jobs(self, kind: str, count: int, seconds: float, facts: Facts | None) -> None:
        self.measures.note_jobs(kind, count, seconds, facts)
        self.spare_memory.note_work()

    def _wake_lanes(self) -> None:
        self.queue.notify()

    # -- what the configuration says ----------------------------------------------------------------------

    def _set_schedule(self) -> None:
        every = self.config.schedule
        self.schedule.every(every.reconcile_minutes, "reconcile", self._look_at_disk_by_itself)
        self.schedule.every(every.retry_minutes, "retry", self.retry_failures)
        self.schedule.every(every.maintain_minutes, "maintain", lambda: self.queue.enqueue("maintain", afresh=False))
        self.schedule.every(every.reread_minutes, "reread", lambda: self.queue.enqueue("reread", afresh=False))
        self.schedule.every(every.verify_minutes, "verify", lambda: self.queue.enqueue("verify", afresh=False))
        if FACTS in self.workspaces:
            self.schedule.every(every.maintain_minutes, "facts", self.ingestion.tend)
        if self.config.ingest.enabled:
            self.schedule.every(self.config.ingest.schedule_minutes, "ingest", self.ingestion.run_on_schedule)

    def _served(self, config: Config) -> dict[str, Workspace]:
        """The configured workspaces, and memoryd's own for the facts that were made of them, once there are any."""
        served = configured_workspaces(config)
        notes = [name for name, workspace in served.items() if workspace.transcripts is None]
        if config.ingest.enabled:
            self.ingestion.folder.create()
        if self.ingestion.folder.exists():
            include = tuple(f"{folder_name(name)}/*.md" for name in notes)
            served[FACTS] = Workspace(FACTS, self.ingestion.folder.root.resolve(), include, IGNORE, source=FACTS)
        return served
