"""Keeping the stores sound and small: a look for damage, compaction, old versions, the write-ahead log, the cache."""

from __future__ import annotations

from memoryd.jobs.semantics import Semantics
from memoryd.store.cache import SqliteCache
from memoryd.store.database import Database
from memoryd.store.errors import StoreFull, StoreUnavailable
from memoryd.store.failpoints import failpoint
from memoryd.store.generations import Generations

_CACHE_DAYS = 30  # an embedding that no passage uses is kept so long, for the branch that is checked out again

MOST_VERSIONS = 500  # of LanceDB's table; each lists all its files, so they grow with the square of their number
_CHECK_SECONDS = 30.0  # for the look at each SQLite file: what is damaged heals before it is met


def maintain(database: Database, semantics: Semantics, generations: Generations, cache: SqliteCache) -> dict[str, int]:
    """Runs on the embed lane, the only writer of LanceDB. Returns facts for the log."""
    failpoint("maintain.begin")
    database.check(_CHECK_SECONDS)
    cache.check(_CHECK_SECONDS)
    removed = 0
    generation = semantics.generation()
    if generation is not None:
        orphans = generations.orphans(generation.id)
        if orphans:
            semantics.index().delete(orphans)
            generations.unmark(generation.id, orphans)
        removed = len(orphans)
        _compact(semantics)
    dropped = cache.prune(generations.hashes_in_use(), _CACHE_DAYS)
    database.checkpoint()
    failpoint("maintain.end")
    return {"orphans_removed": removed, "embeddings_dropped": dropped}


def _compact(semantics: Semantics) -> None:
    """Each write adds to LanceDB's files until it is compacted; what cannot be is begun anew, from the cache."""
    index = semantics.index()
    try:
        index.compact()
    except (StoreUnavailable, StoreFull) as error:
        versions = index.stats().versions
        if versions > MOST_VERSIONS:
            semantics.report_damage(f"{versions} versions cannot be compacted: {error.message}")
        raise
