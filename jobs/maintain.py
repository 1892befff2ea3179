"""Keeping the stores sound and small: a look for damage, compaction, old versions, the log, the cache."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.jobs.meaning import Meaning
from memoryd.store.cache import SqliteCache
from memoryd.store.database import Database
from memoryd.store.generations import Generations

_CACHE_DAYS = 30  # an embedding that no passage uses is kept so long, for the branch that is checked out again
_CHECK_SECONDS = 30.0  # for the look at each SQLite file: what is damaged heals before it is met


def maintain(
    database: Database, in_use: Sequence[Meaning], generations: Generations, cache: SqliteCache
) -> dict[str, int]:
    """Runs on the embed lane, the only writer of LanceDB. Returns facts for the log."""
    database.check(_CHECK_SECONDS)
    cache.check(_CHECK_SECONDS)
    removed = 0
    for meaning in in_use:
        meaning.vectors.ids()  # compacting alone does not notice damage in what there is nothing to do about
        orphans = generations.orphans(meaning.generation.id)
        if orphans:
            meaning.vectors.delete(orphans)
            generations.unmark(meaning.generation.id, orphans)
        removed += len(orphans)
        meaning.vectors.compact()
    dropped = cache.prune(generations.hashes_in_use(), _CACHE_DAYS)
    database.checkpoint()
    return {"orphans_removed": removed, "embeddings_dropped": dropped}
