"""Giving back the disk space of generations that are no longer in use."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.jobs.meaning import Meaning
from memoryd.store.cache import SqliteCache
from memoryd.store.generations import Generation, Generations
from memoryd.store.lance import drop_table, known_fingerprints
from memoryd.store.place import VectorPlace


def reclaim(
    generations: Generations,
    cache: SqliteCache,
    place: VectorPlace,
    in_use: Sequence[Meaning],
    retired_before: float,
) -> list[Generation]:
    """Drop the generations that were retired before a moment; runs on the embed lane. Returns them.

    The ledger's row goes last: whatever a crash leaves of a generation is dropped the next time.
    """
    kept = {meaning.generation.id for meaning in in_use}
    known = generations.all()
    active = generations.active()
    if active is not None:
        kept.add(active.id)
    gone = [
        each
        for each in known
        if each.id not in kept and each.retired_at is not None and each.retired_at <= retired_before
    ]
    for generation in gone:
        cache.forget(generation.fingerprint)
        drop_table(place, generation.fingerprint)
        generations.forget(generation)
    if in_use:  # else it is not known yet what is wanted
        for fingerprint in known_fingerprints(place) - {each.fingerprint for each in known}:
            drop_table(place, fingerprint)  # of a ledger that was lost
    return gone
