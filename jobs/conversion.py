"""Vectors into the precision that is configured: in place, from their own rows or from the embedding cache.

What a search is compared with differs by less than a thousandth, so it is the same generation. It is searched, by the
mirror, while its table is written anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from memoryd.jobs.meaning import Meaning
from memoryd.store.cache import SqliteCache
from memoryd.store.generations import Generations
from memoryd.store.protocols import Vectors

log = structlog.get_logger()


def convert_vectors(meaning: Meaning, generations: Generations, cache: SqliteCache) -> int:
    """Convert the generation's table; returns how many passages the cache does not know, and which are embedded again.

    Runs on the embed lane, the only writer of LanceDB and of the cache.
    """

    def read(passages: Sequence[int]) -> dict[int, Vectors]:
        hashes = generations.hashes(passages)
        kept = cache.find(meaning.generation.fingerprint, list(hashes.values()))
        return {passage: kept[text_hash] for passage, text_hash in hashes.items() if text_hash in kept}

    lost = meaning.vectors.convert(read)
    generations.unmark(meaning.generation.id, lost)
    log.info("vectors_converted", fingerprint=meaning.fingerprint, to_embed=len(lost))
    return len(lost)
