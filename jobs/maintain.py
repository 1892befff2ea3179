"""Keeping the stores sound and small: a look for damage, compaction, old versions, the write-ahead log, the cache."""

from __future__ import annotations

from memoryd.jobs.semantics import Semantics
from memoryd.store.cache import SqliteCache
from memoryd.store.database import Database
from memoryd.store.generations import Generations

_CACHE_DAYS = 30  # an embedding that no passage uses is kept so long, for the branch that is checked out again

_CHECK_SECONDS = 30.0  # for the look at each SQLite file: what is damaged heals before it is met


def maintain(database: Database, semantics: Semantics, generations: Generations, cache: SqliteCache) -> dict[str, int]:
    """Runs on the embed lane, the only writer of LanceDB. Returns facts for the log."""
    database.check(_CHECK_SECONDS)
    cache.check(_CHECK_SECONDS)
    removed = 0
    generation = semantics.generation()
    if generation is not None:
        semantics.index().ids()  # compacting alone does not notice that what there is nothing to do about is damaged
        orphans = generations.orphans(generation.id)
        if orphans:
            semantics.index().delete(orphans)
            generations.unmark(generation.id, orphans)
        removed = len(orphans)
        semantics.index().compact()
    dropped = cache.prune(generations.hashes_in_use(), _CACHE_DAYS)
    database.checkpoint()
    return {"orphans_removed": removed, "embeddings_dropped": dropped}
