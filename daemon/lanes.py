"""What each kind of job does: the two lanes of an engine, over its stores.

*text* reads files and looks at the disk; *vectors* embeds, is the only writer of LanceDB and of the cache, and looks
after both. Before each round it puts right what is damaged, and flips to a generation that is filled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoryd.jobs.calibrate import calibrate
from memoryd.jobs.embed import Embedded
from memoryd.jobs.index_text import index_texts
from memoryd.jobs.index_transcript import index_transcript
from memoryd.jobs.meaning import Meaning
from memoryd.jobs.reclaim import reclaim
from memoryd.jobs.reconcile import reconcile
from memoryd.jobs.repair import repair_vectors
from memoryd.jobs.reread import reread
from memoryd.jobs.resplit import resplit
from memoryd.jobs.worker import Facts, Lane
from memoryd.jobs.workspace import Workspace
from memoryd.store.model import Job
from memoryd.store.native_thread import give_way

if TYPE_CHECKING:
    from memoryd.daemon.engine import Engine

INDEX_BATCH = 64  # files that are read and written together
EMBED_BATCH = 32  # documents whose passages are embedded and committed together …
FILL_BATCH = 4  # … and those of another generation: few, for what was just saved comes in between
LEAST_BATCH = {"embed": EMBED_BATCH, "fill": FILL_BATCH}
CACHED_BATCH = 4096  # of either at most, while few of their texts are not in the cache
FEW_TEXTS = 2  # for each document of the least batch: they are embedded in seconds
_PAUSED = frozenset({"embed", "fill", "resplit", "calibrate"})  # what embeds, and waits while that is paused
_DAY = 86_400


class Lanes:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._batch = {"index": INDEX_BATCH, **LEAST_BATCH}

    def text(self) -> Lane:
        return Lane(
            "text",
            {"index": self._index, "reconcile": self._reconcile, "reread": self._reread},
            batch=self._batch_of,
            ready=lambda _kind: True,
            alone=self._with_transcripts,
        )

    def vectors(self) -> Lane:
        return Lane(
            "vectors",
            {
                "embed": self._embed,
                "fill": self._fill,
                "resplit": self._resplit,
                "calibrate": self._calibrate,
                "repair": self._repair,
                "verify": self._verify,
                "maintain": self._maintain,
                "prune": self._prune,
            },
            batch=self._batch_of,
            ready=self._can_run,
            tend=self._tend,
            begin=lambda: give_way(self._engine.config.index.nice),
            wakes_at=self._wakes_at,
        )

    def _batch_of(self, kind: str) -> int:
        return self._batch.get(kind, 1)

    def _with_transcripts(self) -> set[str]:
        """A long transcript is read in parts, and what was saved meanwhile comes in between."""
        return {name for name, workspace in self._engine.workspaces.items() if workspace.transcripts is not None}

    def _can_run(self, kind: str) -> bool:
        if kind == "verify" and self._engine.first_look_due:
            return self._engine.is_indexed()
        if kind in ("maintain", "prune", "verify"):
            return True
        if kind in _PAUSED and self._engine.paused() is not None:
            return False
        if kind == "calibrate" and self._engine.semantics.nap() is not None:  # not worth waking the model for
            return False
        if kind == "resplit":  # without a model there is nothing to embed first
            return self._engine.semantics.settled()
        if kind == "fill":
            return self._engine.semantics.can_fill()
        if kind == "calibrate" and self._engine.queue.waiting_kinds() & {"index", "embed"}:  # of all that is there
            return False
        return self._engine.semantics.can_embed() or (kind == "embed" and self._engine.semantics.off())

    def _wakes_at(self) -> float | None:
        """When what cannot run now may: an embedder that is held back, a pause that may be over."""
        at = [self._engine.semantics.held_until()]
        if self._engine.queue.waiting_kinds() & _PAUSED:
            at.append(self._engine.pauses.looks_again_at())
        return min((each for each in at if each is not None), default=None)

    def _index(self, jobs: Sequence[Job]) -> Facts:
        outcomes: Counter[str] = Counter()
        for name in {job.workspace: None for job in jobs}:
            paths = [job.path for job in jobs if job.workspace == name]
            with self._engine.reading:
                workspace = self._engine.workspaces.get(name)
                if workspace is None:  # asked for just before it ceased to be served
                    outcomes["unserved"] += len(paths)
                    continue
                if workspace.transcripts is not None:
                    read = [self._index_transcript(workspace, job) for job in jobs if job.workspace == name]
                    if len(jobs) == 1:
                        return read[0]
                    outcomes.update(facts["outcome"] for facts in read)
                    continue
                found = index_texts(
                    workspace,
                    paths,
                    self._engine.documents,
                    self._engine.index_settings,
                    self._engine.clock,
                    self._engine.worker.stopping,
                )
            outcomes.update(found.values())
            for path, outcome in found.items():
                if outcome in ("indexed", "skipped", "forgotten"):
                    self._engine.verifier.proofs.note_change(name, path)
                    self._engine.events.tell("document", change=outcome, workspace=name, path=path)
        self._maintain_if_due()
        return {"outcome": next(iter(outcomes))} if len(jobs) == 1 else dict(outcomes)

    def _index_transcript(self, workspace: Workspace, job: Job) -> Facts:
        """A part of a long one at a time: what was saved meanwhile comes in between."""
        engine = self._engine
        read = index_transcript(workspace, job.path, engine.transcripts, engine.index_settings, engine.clock)
        if read.outcome in ("indexed", "skipped", "forgotten"):
            engine.verifier.proofs.note_change(job.workspace, job.path)
            if not read.more:
                engine.events.tell("document", change=read.outcome, workspace=job.workspace, path=job.path)
        if read.more:
            engine.index_files(job.workspace, [job.path])
        self._maintain_if_due()
        return {"outcome": read.outcome, "bytes": read.bytes_read, "more": read.more}

    def _reconcile(self, jobs: Sequence[Job]) -> Facts:
        (job,) = jobs
        with self._engine.reading:
            workspace = self._engine.workspaces.get(job.workspace)
            if workspace is None:
                return {"outcome": "unserved"}
            found = reconcile(workspace, self._engine.documents, self._engine.queue, job.path)
        proof, _ = self._engine.verifier.proofs.last()
        if proof is not None and not proof.in_sync:  # what was not may be now: a workspace that is back, for instance
            self._engine.queue.enqueue("verify", afresh=False)
        return {"files": found.files, "changed": found.changed, "gone": found.gone}

    def _reread(self, _jobs: Sequence[Job]) -> Facts:
        engine = self._engine
        with engine.reading:
            read = reread(engine.workspaces, engine.database, engine.documents, engine.queue, engine.index_settings)
        return {"files": read.files, "changed": read.changed}

    def _embed(self, jobs: Sequence[Job]) -> Facts:
        if self._engine.semantics.off():  # by words alone, on purpose: nothing is to be embedded
            return {"skipped": len(jobs)}
        self._engine.upkeep.check_room()
        done = self._embed_or_let_go(jobs, self._engine.semantics.serving())
        # What is saved during a switch is wanted in both generations.
        if self._engine.semantics.lineup.filling is not None:
            self._engine.queue.enqueue_all(("fill", job.workspace, job.path) for job in jobs)
        self._engine.queue.enqueue("calibrate", afresh=False)
        self._maintain_if_due()
        if self._engine.events.wanted("document"):
            for job in jobs:
                if self._engine.documents.indexed_in(job.path, [job.workspace]):  # else its vectors were removed
                    self._engine.events.tell("document", change="embedded", workspace=job.workspace, path=job.path)
        return {"passages": done.passages, "computed": done.computed, "removed": done.removed}

    def _embed_or_let_go(self, jobs: Sequence[Job], meaning: Meaning) -> Embedded:
        """Documents of which little is to be embedded come in larger batches, of others one would take minutes.

        Twice as large each time, sixteen times where the cache had everything: it is the commits that cost.
        """
        kind = jobs[0].kind
        least = self._batch[kind] = LEAST_BATCH[kind]
        few = FEW_TEXTS * least
        done = self._engine.vectorizer.run(jobs, meaning, few if len(jobs) > least else None)
        if done.computed <= few:
            growth = 2 if done.computed else 16
            self._batch[kind] = min(CACHED_BATCH, max(least, growth * len(jobs)))
        return done

    def _fill(self, jobs: Sequence[Job]) -> Facts:
        filling = self._engine.semantics.lineup.filling
        if filling is None:  # given up this very moment, and the jobs with it
            return {}
        done = self._embed_or_let_go(jobs, filling)
        return {"passages": done.passages, "computed": done.computed, "removed": done.removed}

    def _resplit(self, jobs: Sequence[Job]) -> Facts:
        (job,) = jobs
        settings, workspace = self._engine.index_settings, self._engine.workspaces.get(job.workspace)
        if workspace is None:
            return {"outcome": "unserved"}
        meaning = self._engine.semantics.serving() if self._engine.semantics.can_embed() else None
        facts = resplit(
            job, workspace, self._engine.documents, settings, self._engine.clock, self._engine.vectorizer, meaning
        )
        if self._engine.index_settings is not settings or self._engine.workspaces.get(job.workspace) is not workspace:
            self._engine.documents.expire(job.workspace, [job.path])  # the configuration changed meanwhile
            self._engine.index_files(job.workspace, [job.path])
        return facts

    def _calibrate(self, _jobs: Sequence[Job]) -> Facts:
        return {"measured": calibrate(self._engine.database, self._engine.semantics.serving())}

    def _maintain_if_due(self) -> None:
        if self._engine.upkeep.is_due():
            self._engine.queue.enqueue("maintain")
        elif self._engine.upkeep.is_worthwhile() and not self._engine.queue.due(("index", "embed", "fill")):
            self._engine.queue.enqueue("maintain", afresh=False)

    def _repair(self, _jobs: Sequence[Job]) -> Facts:
        return {**repair_vectors(self._engine.stores, self._engine.clock)}

    def _verify(self, _jobs: Sequence[Job]) -> Facts:
        verdict = self._engine.verifier.verify_lightly()
        return {"drift": len(verdict.drift), "repaired": len(verdict.repaired)} if verdict else {"skipped": True}

    def _maintain(self, _jobs: Sequence[Job]) -> Facts:
        facts = self._engine.upkeep.run()
        kept = self._engine.config.embedder.keep_generations_days * _DAY
        return {**facts, "generations_reclaimed": self._reclaim(self._engine.clock() - kept)}

    def _prune(self, _jobs: Sequence[Job]) -> Facts:
        return {"generations_reclaimed": self._reclaim(self._engine.clock())}

    def _reclaim(self, retired_before: float) -> int:
        lineup = self._engine.semantics.lineup
        with lineup.changing:  # or what is dropped might come back into use meanwhile
            in_use = lineup.in_use()
            gone = reclaim(self._engine.generations, self._engine.cache, self._engine.place, in_use, retired_before)
        return len(gone)

    def _tend(self) -> None:
        """Before each round of the vector lane: put right what is damaged, and flip to a generation that is filled."""
        self._engine.tend_stores()
        filling = self._engine.semantics.lineup.filling
        if (
            filling is not None
            and "fill" not in self._engine.queue.waiting_kinds()
            and self._engine.semantics.lineup.is_filled()
            and self._engine.semantics.can_fill()
        ):
            calibrate(self._engine.database, filling)  # first: what noise looks like is another thing for each model
            self._engine.semantics.lineup.finish_switch(filling)
