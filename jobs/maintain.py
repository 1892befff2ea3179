"""Keeping the stores sound and small: damage, compaction, old versions, dead words, empty pages, logs, the cache.

On schedule, and as soon as enough has piled up. What fails is tried again, later each time, and turns health to
degraded; meanwhile the other steps go on, and nothing grows without end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import NamedTuple

import structlog

from memoryd.jobs.conversion import convert_vectors
from memoryd.jobs.lineup import Lineup
from memoryd.jobs.meaning import Meaning
from memoryd.store.cache import SqliteCache
from memoryd.store.database import Database
from memoryd.store.errors import MemorydError, StoreUnavailable
from memoryd.store.failpoints import failpoint
from memoryd.store.generations import Generations
from memoryd.store.keywords import TABLES, count_pages, count_segments, index_state, merge_segments
from memoryd.store.quarantine import folder_bytes
from memoryd.store.space import log_bytes

log = structlog.get_logger()

_CACHE_DAYS = 30  # an embedding that no passage uses is kept so long, for the branch that is checked out again
_CHECK_SECONDS = 30.0  # for the look at each SQLite file: what is damaged heals before it is met
_LOG_BYTES = 64 * 2**20  # a write-ahead log this long is folded back at once
_IDLE_SHARE = 0.5  # of the ledger's file that holds nothing: it is shortened at once
_DEAD_SHARE = 0.25  # of the chunks, written since the keyword indexes were merged: as many lie dead in them
_LEAST_DEAD = 50
_SPARE_SHARE = 0.15  # of the pages that they need; so many more are worth merging, whatever they hold,
_LEAST_SPARE_PAGES = 50  # of 4 KB, or as many as this
_MERGE_PAGES = 500  # in one transaction: tens of milliseconds
_OVERGROWN = 2.0  # backlog at which vectors that cannot be compacted are written anew
_TOO_MUCH = 8.0  # backlog at which no more are written
# What a burst may leave until the next run:
_LEAST_LEFT = 2**20  # bytes of either, and
_GROWN = 0.1  # of what LanceDB took when it was compacted
_IDLE_LEFT = 0.03  # of the ledger's file, beyond what was idle after the last run
_MERGED_KEY = "keywords_merged"  # in meta: the keyword indexes when they were merged last


class Keywords(NamedTuple):
    """The keyword indexes at some moment."""

    chunks: int = 0
    last: int = 0  # the chunk that was written last, mostly
    pages: int = 0

    def is_worth_merging(self, before: Keywords) -> bool:
        """``before``: when they were merged last."""
        if abs(self.last - before.last) >= max(_LEAST_DEAD, _DEAD_SHARE * self.chunks):
            return True
        # Ids of what is gone are given again: what came and went since is told by the room that it still takes.
        needed = before.pages * self.chunks / max(1, before.chunks)
        return self.pages >= needed + max(_LEAST_SPARE_PAGES, _SPARE_SHARE * needed)


class Upkeep:
    """Runs on the embed lane, the only writer of LanceDB and of the cache."""

    def __init__(
        self,
        database: Database,
        lineup: Lineup,
        generations: Generations,
        cache: SqliteCache,
        *,
        shared_cache: bool,
        stopping: Callable[[], bool],
    ) -> None:
        self._database = database
        self._lineup = lineup
        self._generations = generations
        self._cache = cache
        self._shared_cache = shared_cache
        self._stopping = stopping
        self._failing = False
        self._left = 0  # bytes in the logs after the last run: a reader that never ends keeps them from going
        self._idle = 0.0  # share of the ledger that was idle then
        self._compact: int | None = None  # bytes of LanceDB then; None = not known yet
        self._pruned: tuple[bytes, int] | None = None  # the keyword index and the day, when the cache was pruned last

    def is_due(self) -> bool:
        """Whether enough has piled up not to wait for the clock. While it fails, the queue says when to try again."""
        if self._failing:
            return False
        if any(meaning.vectors.backlog() >= 1 for meaning in self._lineup.in_use()):
            return True
        return self._log_bytes() > self._left + _LOG_BYTES or self._database.free_share() > self._idle + _IDLE_SHARE

    def is_worthwhile(self) -> bool:
        """Whether a burst that is over has left vectors that later changes are the cheaper for having compacted."""
        return not self._failing and any(meaning.vectors.is_scattered() for meaning in self._lineup.in_use())

    def fold_logs(self) -> None:
        """What a burst that is over has left in the write-ahead logs, from any thread. Nobody is waited for.

        Where somebody reads or writes at that moment, the rest is folded by the next run.
        """
        if log_bytes(self._database.path):
            self._database.checkpoint(patient=False)
        if log_bytes(self._cache.path):
            self._cache.checkpoint()

    def is_wasteful(self) -> bool:
        """Whether a burst that is over has left enough to be worth a run, from any thread: in LanceDB old versions and
        small files, in the ledger pages that hold nothing.
        """
        held, idle = self._vector_bytes(), self._database.free_share()
        if self._compact is None:
            self._compact = held
        grown = held - self._compact
        is_idle = idle > self._idle + _IDLE_LEFT and idle * self._database.bytes_on_disk() > _LEAST_LEFT
        return not self._failing and (is_idle or grown > max(_LEAST_LEFT, _GROWN * self._compact))

    def check_room(self) -> None:
        """Refuse to write vectors that have long been waiting to be compacted: words are found all the same."""
        serving = self._lineup.serving
        if self._failing and serving is not None and serving.vectors.backlog() >= _TOO_MUCH:
            raise StoreUnavailable(
                "The vectors cannot be compacted, and no more are written until they can be",
                hint="'memoryd status' says why; free space on the disk, or delete the vectors' folder and restart",
            )

    def run(self) -> dict[str, int]:
        """Every step, whatever happens to the others; raises the first failure. Returns facts for the log."""
        failpoint("maintain.begin")
        facts: dict[str, int] = {}
        failures: list[MemorydError] = []
        for step in (
            self._look_for_damage,
            self._convert_vectors,
            self._compact_vectors,
            self._merge_keywords,
            self._prune_cache,
            self._reclaim_ledger,
        ):
            try:
                facts.update(step())
            except MemorydError as error:
                failures.append(error)
        self._failing = bool(failures)
        self._left, self._idle = self._log_bytes(), self._database.free_share()
        self._compact = self._vector_bytes()
        if failures:
            raise failures[0]
        failpoint("maintain.end")
        return facts

    def _look_for_damage(self) -> dict[str, int]:
        self._database.check(_CHECK_SECONDS)
        self._cache.check(_CHECK_SECONDS)
        return {}

    def _convert_vectors(self) -> dict[str, int]:
        with self._lineup.changing:  # one that is just being opened asked for this: it is in use in a moment
            convertible = self._lineup.convertible()
        lost = 0
        for meaning in convertible:
            with self._lineup.writing(meaning):
                lost += convert_vectors(meaning, self._generations, self._cache)
            self._lineup.enqueue_missing(meaning)
        return {"vectors_to_embed_again": lost} if lost else {}

    def _compact_vectors(self) -> dict[str, int]:
        removed = 0
        for meaning in self._lineup.in_use():
            index = meaning.vectors
            if index.place.outage.hold():  # far away, and status says why
                continue
            index.count()  # compacting alone does not notice damage in what there is nothing to do about
            with self._lineup.writing(meaning):
                removed += self._remove_orphans(meaning)
                try:
                    index.compact()
                except MemorydError as error:
                    if index.backlog() >= _OVERGROWN:
                        log.warning("vectors_written_anew", reason=error.message)
                        index.rewrite()
                    raise
        return {"orphans_removed": removed}

    def _remove_orphans(self, meaning: Meaning) -> int:
        orphans = self._generations.orphans(meaning.generation.id)
        if orphans:
            meaning.vectors.delete(orphans)
            self._generations.unmark(meaning.generation.id, orphans)
        return len(orphans)

    def _merge_keywords(self) -> dict[str, int]:
        """Merge the keyword indexes once enough of them is dead, in steps between which others may write."""
        now, before = self._keywords(), self._keywords_merged()
        if not now.is_worth_merging(before):
            return {}
        for table in TABLES:
            pages = -_MERGE_PAGES
            more = True
            while more:
                if self._stopping():
                    return {}
                with self._database.write() as sql:
                    more = count_segments(sql, table) > 1 and merge_segments(sql, table, pages)
                pages = _MERGE_PAGES
        self._database.remember(_MERGED_KEY, json.dumps(self._keywords()))
        return {"keywords_merged": now.chunks}

    def _keywords(self) -> Keywords:
        with self._database.read() as sql:
            chunks, last = sql.execute("SELECT count(*), coalesce(max(id), 0) FROM chunks").fetchone()
            return Keywords(chunks, last, sum(count_pages(sql, table) for table in TABLES))

    def _keywords_merged(self) -> Keywords:
        """As they were when they were merged last."""
        with self._database.read() as sql:
            row = sql.execute("SELECT value FROM meta WHERE key = ?", (_MERGED_KEY,)).fetchone()
        return Keywords(*json.loads(row[0])) if row else Keywords()

    def _log_bytes(self) -> int:
        return max(log_bytes(self._database.path), log_bytes(self._cache.path))

    def _vector_bytes(self) -> int:
        """On this machine's disk, old versions and all."""
        held = 0
        for meaning in self._lineup.in_use():
            if not meaning.vectors.place.is_remote:
                held += folder_bytes(meaning.vectors.place.table_path(meaning.generation.fingerprint))
        return held

    def _prune_cache(self) -> dict[str, int]:
        with self._database.read() as sql:
            state = (index_state(sql), self._cache.day)
        prune = partial(self._cache.prune, unused_days=_CACHE_DAYS, is_shared=self._shared_cache)
        if state == self._pruned:  # every passage would be read to learn that nothing has changed
            return {"embeddings_dropped": prune(None)}
        with closing(self._generations.hashes_in_use()) as in_use:
            dropped = prune(in_use)
        self._pruned = state
        return {"embeddings_dropped": dropped}

    def _reclaim_ledger(self) -> dict[str, int]:
        return {"ledger_bytes_freed": self._database.reclaim()}
