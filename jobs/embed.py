"""The second phase of indexing: passages become vectors, and LanceDB follows the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from memoryd.jobs.meaning import Meaning
from memoryd.store.cache import SqliteCache
from memoryd.store.generations import Generations, Wanted
from memoryd.store.model import Job
from memoryd.store.protocols import Vectors

_COMMIT_PASSAGES = 512  # so many vectors at most wait for one LanceDB commit …
_COMMIT_SECONDS = 2.0  # … and so long
_PATIENCE = 4  # batches of one text: before every so many, a burst of queries is waited for


class OnWritten(Protocol):
    """Told of every commit: how many vectors were written, and how many texts were embedded for it."""

    def __call__(self, passages: int, computed: int) -> None: ...


class Interrupted(Exception):
    """The lane is wanted for something else: to stop, or to heal. The jobs in hand go back to the queue."""


@dataclass(frozen=True, slots=True)
class Embedded:
    passages: int  # vectors written
    computed: int  # texts that were embedded for it
    removed: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A passage and the vector it gets."""

    passage: Wanted
    vector: Vectors
    computed: bool  # by the embedder, for this one; else it was in the cache, or is that of the same text elsewhere


class Vectorizer:
    """Brings the vectors of documents in step with the ledger. One thread: the only writer of LanceDB."""

    on_written: OnWritten | None = None

    def __init__(self, generations: Generations, cache: SqliteCache, is_wanted: Callable[[], bool]) -> None:
        """``is_wanted``: whether the lane is wanted for something else, and lets go of its jobs at the next batch."""
        self._generations = generations
        self._cache = cache
        self._is_wanted = is_wanted

    def run(self, jobs: Sequence[Job], meaning: Meaning) -> Embedded:
        generation = meaning.generation
        documents = [(job.workspace, job.path) for job in jobs]
        orphans = self._generations.orphans(generation.id, documents)
        if orphans:
            meaning.vectors.delete(orphans)
            self._generations.unmark(generation.id, orphans)
        wanted = self._generations.missing(generation.id, documents)
        return Embedded(len(wanted), self._write(wanted, meaning), len(orphans))

    def write_ahead(self, passages: Sequence[Wanted], meaning: Meaning) -> int:
        """Have the vectors of passages that the ledger is about to get; returns how many were embedded for it.

        Until it has them nothing finds these vectors. If it never gets them, they are orphans like any others.
        """
        return self._write(self._generations.without_vectors(meaning.generation.id, passages), meaning)

    def _write(self, wanted: Sequence[Wanted], meaning: Meaning) -> int:
        """LanceDB first, then the ledger's mark that it holds them."""
        computed = 0
        for commit in self.place(wanted, meaning):
            ids = [placed.passage.passage_id for placed in commit]
            owners = [placed.passage.document_id for placed in commit]
            matrix = np.stack([placed.vector for placed in commit])
            meaning.vectors.upsert(ids, owners, matrix)
            self._generations.mark(meaning.generation.id, zip(ids, owners, strict=True))
            new = sum(placed.computed for placed in commit)
            computed += new
            if self.on_written:
                self.on_written(len(commit), new)
        return computed

    def place(self, wanted: Sequence[Wanted], meaning: Meaning) -> Iterator[list[Placed]]:
        """Passages with their vectors, in portions that are written at once. The cache keeps every batch."""
        for start in range(0, len(wanted), _COMMIT_PASSAGES):
            portion = wanted[start : start + _COMMIT_PASSAGES]
            cached = self._cache.find(meaning.generation.fingerprint, [passage.text_hash for passage in portion])
            ready = [Placed(p, cached[p.text_hash], computed=False) for p in portion if p.text_hash in cached]
            rest: dict[bytes, list[Wanted]] = {}  # the same text in two places is embedded once
            for passage in portion:
                if passage.text_hash not in cached:
                    rest.setdefault(passage.text_hash, []).append(passage)
            # Texts of like length waste the least of a batch.
            texts = sorted(((key, same[0].text.strip()) for key, same in rest.items()), key=lambda pair: len(pair[1]))
            began = time.monotonic()
            first = 0
            while first < len(texts):
                batch = texts[first : first + meaning.batch()]
                for key, vector in self._embed(dict(batch), meaning, patient=first % _PATIENCE == 0).items():
                    ready.extend(Placed(p, vector, computed=p is rest[key][0]) for p in rest[key])
                first += len(batch)
                if time.monotonic() - began > _COMMIT_SECONDS:
                    yield ready
                    ready, began = [], time.monotonic()
            if ready:
                yield ready

    def _embed(self, texts: dict[bytes, str], meaning: Meaning, *, patient: bool) -> dict[bytes, Vectors]:
        if self._is_wanted():
            raise Interrupted
        matrix = meaning.embed_documents(list(texts.values()), patient=patient)
        vectors = dict(zip(texts, matrix, strict=True))
        self._cache.keep(meaning.generation.fingerprint, vectors)
        return vectors
