"""The vectors by which facts are compared: those of the model that is searched by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import structlog

from memoryd.store.errors import MemorydError
from memoryd.store.model import embedding_hash
from memoryd.store.protocols import Vectors

if TYPE_CHECKING:
    from memoryd.daemon.engine import Engine

log = structlog.get_logger()

_BATCH = 16


def embed_texts(engine: Engine, texts: Sequence[str]) -> Mapping[str, Vectors]:
    """Of each text its vector, from the cache where it is there; nothing without a model."""
    if not engine.semantics.ready():
        return {}
    try:
        meaning = engine.semantics.serving()
        hashes = {embedding_hash(text): text for text in texts}
        held = engine.cache.peek(meaning.generation.fingerprint, hashes)
        found = {hashes[key]: vector for key, vector in held.items()}
        missing = [text for text in texts if text not in found]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            vectors = meaning.embed_or_yield(batch)
            if vectors is None:  # a query went first; not twice, for queries without end would keep it waiting
                vectors = meaning.embed_documents(batch)
            found.update(zip(batch, vectors, strict=True))
    except MemorydError as error:  # a duplicate too many is no reason to stop
        log.warning("ingest_without_vectors", code=error.code, reason=error.message)
        return {}
    return found
