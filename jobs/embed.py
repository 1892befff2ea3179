"""The second phase of indexing: passages become vectors, and LanceDB follows the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple, Protocol

import numpy as np

from memoryd.jobs.interrupted import Interrupted
from memoryd.jobs.lineup import Lineup
from memoryd.jobs.meaning import Meaning
from memoryd.store.cache import SqliteCache
from memoryd.store.generations import Generations, Wanted
from memoryd.store.model import Job, document_id
from memoryd.store.protocols import Vectors

_COMMIT_PASSAGES = 512  # so many texts at most are embedded before a LanceDB commit …
_COMMIT_SECONDS = 2.0  # … or for so long
_CACHED_PASSAGES = 16_384  # so many vectors from the cache are written in one: 25 MB of them
_PATIENCE = 4  # batches of one text: before every so many, a burst of queries is waited for


class OnWritten(Protocol):
    """Told of every commit: how many vectors were written, and how many texts were embedded for it."""

    def __call__(self, passages: int, computed: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Embedded:
    passages: int  # vectors written
    computed: int  # texts that were embedded for it
    removed: int


class Placed(NamedTuple):
    """A passage and the vector it gets."""

    passage: Wanted
    vector: Vectors
    computed: bool  # by the embedder, for this one; else it was in the cache, or is that of the same text elsewhere


class Vectorizer:
    """Brings the vectors of documents in step with the ledger. One thread: the only writer of LanceDB."""

    on_written: OnWritten | None = None

    def __init__(
        self, generations: Generations, cache: SqliteCache, lineup: Lineup, is_wanted: Callable[[], bool]
    ) -> None:
        """``is_wanted``: whether the lane is wanted for something else, and lets go of its jobs at the next batch."""
        self._generations = generations
        self._cache = cache
        self._lineup = lineup
        self._is_wanted = is_wanted

    def run(self, jobs: Sequence[Job], meaning: Meaning, most: int | None = None) -> Embedded:
        """``most``: the cache is thought to have nearly all of many documents. What it has is written in few commits;
        if more texts than so many are left to be embedded, the jobs are let go.
        """
        generation = meaning.generation
        documents = [(job.workspace, job.path) for job in jobs]
        orphans = self._generations.orphans(generation.id, documents)
        if orphans:
            with self._lineup.writing(meaning):
                meaning.vectors.delete(orphans)
                self._generations.unmark(generation.id, orphans)
        restored = 0
        if most is not None:
            restored, documents = self._restore(documents, meaning)
        wanted = self._generations.missing(generation.id, documents)
        if most is not None and len({passage.text_hash for passage in wanted}) > most:
            raise Interrupted
        return Embedded(restored + len(wanted), self._write(wanted, meaning), len(orphans))

    def _restore(self, documents: Sequence[tuple[str, str]], meaning: Meaning) -> tuple[int, list[tuple[str, str]]]:
        """Write what the cache has; returns how many vectors that were, and the documents that lack others still."""
        restored = 0
        rest: set[int] = set()
        by_id = {document_id(workspace, path): (workspace, path) for workspace, path in documents}
        for lacking in self._generations.lacking(meaning.generation.id, list(by_id), _CACHED_PASSAGES):
            if self._is_wanted():
                raise Interrupted
            found, matrix = self._cache.find_all(meaning.generation.fingerprint, lacking.hashes)
            ids, owners = list(compress(lacking.passages, found)), list(compress(lacking.documents, found))
            rest.update(owner for owner, is_found in zip(lacking.documents, found, strict=True) if not is_found)
            self._commit(ids, owners, matrix, 0, meaning)
            restored += len(ids)
        return restored, [by_id[identity] for identity in rest]

    def write_ahead(self, passages: Sequence[Wanted], meaning: Meaning) -> int:
        """Have the vectors of passages that the ledger is about to get; returns how many were embedded for it.

        Until it has them nothing finds these vectors. If it never gets them, they are orphans like any others.
        """
        return self._write(self._generations.without_vectors(meaning.generation.id, passages), meaning)

    def _write(self, wanted: Sequence[Wanted], meaning: Meaning) -> int:
        computed = 0
        for commit in filter(None, self.place(wanted, meaning)):
            ids = [placed.passage.passage_id for placed in commit]
            owners = [placed.passage.document_id for placed in commit]
            new = sum(placed.computed for placed in commit)
            self._commit(ids, owners, np.stack([placed.vector for placed in commit]), new, meaning)
            computed += new
        return computed

    def _commit(self, ids: Sequence[int], owners: Sequence[int], matrix: Vectors, new: int, meaning: Meaning) -> None:
        """LanceDB first, then the ledger's mark that it holds them."""
        if not ids:
            return
        with self._lineup.writing(meaning):
            meaning.vectors.upsert(ids, owners, matrix)
            self._generations.mark(meaning.generation.id, zip(ids, owners, strict=True))
        if self.on_written:
            self.on_written(len(ids), new)

    def place(self, wanted: Sequence[Wanted], meaning: Meaning) -> Iterator[list[Placed]]:
        """Passages with their vectors, in portions that are written at once: those that the cache has come first."""
        ready: list[Placed] = []
        rest: dict[bytes, list[Wanted]] = {}  # by text: the same one in two places is embedded once
        for start in range(0, len(wanted), _CACHED_PASSAGES):
            if ready:
                yield ready
            portion = wanted[start : start + _CACHED_PASSAGES]
            cached = self._cache.find(meaning.generation.fingerprint, [passage.text_hash for passage in portion])
            ready = [Placed(p, cached[p.text_hash], computed=False) for p in portion if p.text_hash in cached]
            for passage in portion:
                if passage.text_hash not in cached:
                    rest.setdefault(passage.text_hash, []).append(passage)
        texts = list(rest.values())
        for start in range(0, len(texts), _COMMIT_PASSAGES):
            began = time.monotonic()
            for placed in self._compute(texts[start : start + _COMMIT_PASSAGES], meaning):
                ready.extend(placed)
                if time.monotonic() - began > _COMMIT_SECONDS:
                    yield ready
                    ready, began = [], time.monotonic()
            yield ready
            ready = []
        if ready:
            yield ready

    def _compute(self, wanted: Sequence[Sequence[Wanted]], meaning: Meaning) -> Iterator[list[Placed]]:
        """The passages of each text, a batch of texts at a time. The cache keeps every batch."""
        same = {each[0].text_hash: each for each in wanted}
        # Texts of like length waste the least of a batch.
        texts = sorted(((key, each[0].text.strip()) for key, each in same.items()), key=lambda pair: len(pair[1]))
        first, may_yield = 0, True
        while first < len(texts):
            batch = dict(texts[first : first + meaning.batch()])
            vectors = self._embed(batch, meaning, patient=first % _PATIENCE == 0, may_yield=may_yield)
            may_yield = vectors is not None  # not twice in a row: queries may come without end
            if vectors is None:
                continue
            yield [Placed(p, vectors[key], computed=p is same[key][0]) for key in batch for p in same[key]]
            first += len(batch)

    def _embed(
        self, texts: dict[bytes, str], meaning: Meaning, *, patient: bool, may_yield: bool
    ) -> dict[bytes, Vectors] | None:
        """``may_yield``: to a query, and then there is none."""
        if self._is_wanted():
            raise Interrupted
        embed = meaning.embed_or_yield if may_yield else meaning.embed_documents
        matrix = embed(list(texts.values()), patient=patient)
        if matrix is None:
            return None
        vectors = dict(zip(texts, matrix, strict=True))
        self._cache.keep(meaning.generation.fingerprint, vectors)
        return vectors
