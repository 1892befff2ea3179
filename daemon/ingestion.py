"""Ingest inside the daemon: one run at a time, on a thread of its own, so that no lane waits for a language model."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from memoryd.daemon.fact_vectors import embed_texts
from memoryd.daemon.language_model import model_name
from memoryd.daemon.served import check_workspaces
from memoryd.jobs.ingest.aging import Uses, age_facts
from memoryd.jobs.ingest.asking import Asking, AskSettings
from memoryd.jobs.ingest.fact import Fact
from memoryd.jobs.ingest.folder import FactFolder, fact_path
from memoryd.jobs.ingest.forgetting import forget_facts
from memoryd.jobs.ingest.run import IngestRun, Report, RunSettings
from memoryd.jobs.llm.absent import AbsentModel
from memoryd.jobs.retry import unforeseen
from memoryd.store.answers import Answers
from memoryd.store.errors import Busy, LanguageModelMissing, MemorydError
from memoryd.store.lifespans import DEFAULT_CLASS, decay_class
from memoryd.store.model import FACTS
from memoryd.store.search.answer import Hit

if TYPE_CHECKING:
    from memoryd.daemon.engine import Engine

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be read; nothing named: all that is configured."""

    paths: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()


class Underway:
    """A run, from its beginning on; ``report`` tells how far it is."""

    def __init__(self, wish: Wish, at: float) -> None:
        self.wish = wish
        self.at = at
        self.report = Report()
        self.done = threading.Event()
        self.stopping = threading.Event()
        self.waiting = 0  # clients that wait for it; of one that nobody has to wait for, -1


class Ingestion:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # of who changes facts: a run, or what looks after them
        self._closed = False
        self._answers: Answers | None = None
        self._current: Underway | None = None
        self._aging: threading.Thread | None = None
        self.last: Underway | None = None  # the run that ended last
        self.folder = FactFolder(engine.paths.facts_dir)
        self.uses = Uses()

    # -- runs -------------------------------------------------------------------------------------------------

    def sources(self) -> list[str]:
        """The workspaces that facts are made of: those of notes."""
        served = self._engine.workspaces.items()
        return [name for name, workspace in served if name != FACTS and workspace.transcripts is None]

    def check(self) -> None:
        """Raises ``LanguageModelMissing``, which says what to set, where there is nobody to ask."""
        if isinstance(self._engine.llm, AbsentModel):
            raise LanguageModelMissing(
                "no language model is configured, and facts are written by one",
                hint='Set [llm]: provider = "local" and a .gguf as model, "ollama" and a model\'s name, or '
                "\"openai-compatible\" with base_url and model; then 'memoryd reload'. See docs/ingest.md",
            )

    def start(self, wish: Wish, *, scheduled: bool = False) -> Underway:
        """Begin a run; or, where one of the same wish is under way, that one. The caller waits for ``done``."""
        self.check()
        with self._lock:
            current = self._current
            if self._closed:
                raise Busy("memoryd is about to stop", hint="Ask again once it runs")
            if current is None:
                current = self._current = Underway(wish, self._engine.clock())
                if scheduled:
                    current.waiting = -1
                threading.Thread(target=self._work, args=(current,), name="ingest", daemon=True).start()
            elif current.stopping.is_set():
                raise Busy("the ingest before this one is ending", hint="It waits for its last answer; run it again")
            elif current.wish != wish:
                raise Busy("another ingest is under way", hint="Wait for it: 'memoryd status' tells how far it is")
            if current.waiting >= 0:
                current.waiting += 1
            return current

    def leave(self, underway: Underway) -> None:
        """A client waits no more. What nobody waits for stops after the call in hand; its answer is kept."""
        with self._lock:
            if underway.waiting > 0:
                underway.waiting -= 1
                if underway.waiting == 0:
                    underway.stopping.set()

    def plan(self, wish: Wish) -> Report:
        """What a run would do, without asking anybody and without writing anything."""
        return self._make_run(wish, Underway(wish, self._engine.clock())).work(dry=True)

    def run_on_schedule(self) -> None:
        if not self._engine.config.ingest.enabled:  # not any more
            return
        try:
            self.start(Wish(), scheduled=True)
        except Busy:
            log.info("ingest_skipped", reason="another ingest is under way")

    def current(self) -> Underway | None:
        return self._current

    def stop(self, *, for_good: bool = False) -> None:
        """Let what runs end after the call in hand. ``for_good``: and nothing new begin."""
        with self._lock:
            self._closed = self._closed or for_good
            if self._current is not None:
                self._current.stopping.set()

    def wait(self, timeout: float) -> bool:
        """Whether nothing runs any more."""
        deadline = time.monotonic() + timeout
        current, aging = self._current, self._aging
        if aging is not None:
            aging.join(timeout)
        is_over = current is None or current.done.wait(max(0.0, deadline - time.monotonic()))
        return is_over and not (aging is not None and aging.is_alive())

    def close(self) -> None:
        """Nothing runs any more, and nothing begins: ``stop`` for good and ``wait`` came before."""
        if self.folder.exists() and (used := self.uses.take()):
            try:
                age_facts(self.folder, self.answers(), used, self._engine.clock())
            except MemorydError as error:  # a full disk: what was used lately is forgotten, and the stop goes on
                log.warning("facts_aging_failed", code=error.code, reason=error.message)
        if self._answers is not None:
            self._answers.close()

    # -- facts ------------------------------------------------------------------------------------------------

    def answers(self) -> Answers:
        """The store of what was answered, opened when it is first needed."""
        with self._lock:
            if self._answers is None:
                engine, path = self._engine, self._engine.paths.ingest
                report = engine.healer.report
                self._answers = engine.healer.open("ingest", path, lambda: Answers(path, engine.clock, report))
            return self._answers

    def forget(self, facts: Sequence[Fact]) -> None:
        """Remove facts for good: their statements are not stored again from these files."""
        forget_facts(self.folder, self.answers(), facts)
        self._engine.index_files(FACTS, [fact_path(fact) for fact in facts])

    def note_hits(self, hits: Sequence[Hit]) -> None:
        if paths := [hit.path for hit in hits if hit.origin]:
            self.uses.note(paths, self._engine.clock())

    def tend(self) -> None:
        """On schedule: remove what has expired, refresh what was used."""
        with self._lock:
            if self._closed or self._current is not None or not self.folder.exists():
                return
            self._aging = threading.Thread(target=self._age, name="ingest-aging", daemon=True)
            self._aging.start()

    # -- how --------------------------------------------------------------------------------------------------

    def _work(self, underway: Underway) -> None:
        try:
            with self._turn:
                run = self._make_run(underway.wish, underway)
                underway.report = run.report
                run.work()
        except Exception as met:  # policy lives here: whatever a run meets, the daemon goes on and says so
            if isinstance(met, MemorydError):
                underway.report.error = met
            else:
                underway.report.error = unforeseen(met)
                log.exception("ingest_failed")
        report, error = underway.report, underway.report.error
        with self._lock:
            self._current, self.last = None, underway
        if error is not None and error.code != "cancelled":
            self._engine.worker.remember("ingest", error)
        log.info(
            "ingest_done",
            took_s=round(self._engine.clock() - underway.at, 1),
            **{
                name: getattr(report, name)
                for name in ("files", "pieces", "asked", "stored", "superseded", "bad_lines")
            },
            error=error.code if error else None,
        )
        underway.done.set()

    def _make_run(self, wish: Wish, underway: Underway) -> IngestRun:
        engine = self._engine
        with engine.configuring:  # or the answers of one model would be kept as those of another
            config, model, served = engine.config.ingest, engine.llm, engine.workspaces
            name = model_name(engine.config.llm)
            names = check_workspaces(wish.workspaces, served) or tuple(self.sources())
        ask = AskSettings(name, config.max_tokens, config.timeout_s, config.daily_tokens)
        asking = Asking(model, self.answers(), ask, underway.stopping.is_set, underway.stopping.wait)
        settings = RunSettings(
            globs=wish.paths or config.paths,
            everything=not wish.paths,
            chunk_chars=config.chunk_chars,
            overlap_chars=config.overlap_chars,
            decay=decay_class(config.decay) or DEFAULT_CLASS,
            similarity=config.similarity,
            max_tokens=config.max_tokens,
            max_file_bytes=engine.config.index.max_file_bytes,
        )
        return IngestRun(
            [served[name] for name in names],
            self.folder,
            self.answers(),
            asking,
            partial(embed_texts, engine),
            settings,
            engine.clock,
            self._index,
        )

    def _index(self, paths: Sequence[str]) -> None:
        self._engine.serve_facts()
        self._engine.index_files(FACTS, paths)

    def _age(self) -> None:
        if not self._turn.acquire(blocking=False):  # there will be another time
            return
        try:
            aged = age_facts(self.folder, self.answers(), self.uses.take(), self._engine.clock())
            if aged.paths:
                self._engine.index_files(FACTS, aged.paths)
            log.info("facts_aged", expired=aged.expired, refreshed=aged.refreshed)
        except MemorydError as error:
            self._engine.worker.remember("facts", error)
            log.warning("facts_aging_failed", code=error.code, reason=error.message)
        finally:
            self._turn.release()
