"""One generation, whole: an embedder, the vectors that it made, and the name of both.

Handed out as one object, so that a query is never embedded by one model and compared with the vectors of another,
whatever is switched meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from memoryd.jobs.embedders.sleeper import Sleeper
from memoryd.jobs.query_vectors import QueryVectors
from memoryd.jobs.turns import Turns
from memoryd.store.errors import EmbedderUnavailable
from memoryd.store.generations import Generation
from memoryd.store.interruption import Interruption
from memoryd.store.protocols import Embedder, VectorIndex, Vectors
from memoryd.store.vectors import LanceVectors

Progress = Callable[[str, int, int | None], None]

QUERY_WAKE_S: Final = 3.0  # so long a query waits for a model that is asleep; then it is answered by words


@dataclass(frozen=True, slots=True)
class Choice:
    """Which embedder was chosen, for status and the doctor."""

    provider: str
    why: str
    sends_to: str | None = None  # the host that notes and queries are sent to; None: they stay on this machine


class Models(Protocol):
    """Where embedders come from."""

    @property
    def recipe(self) -> str:
        """What the embedder is made of: two with the same recipe and the same file are the same."""

    def load(self, progress: Progress) -> Embedder:
        """The embedder, its model installed first where that is allowed."""

    def former(self, recipe: str) -> Models:
        """Those of an earlier recipe, loaded only if they are still installed."""

    @property
    def off(self) -> str | None:
        """Why no embedder is wanted at all; None: one is."""

    @property
    def choice(self) -> Choice:
        """Which embedder it is, and why."""


@dataclass(frozen=True, slots=True)
class Meaning:
    generation: Generation
    embedder: Embedder
    vectors: LanceVectors
    turns: Turns
    queries: QueryVectors = field(default_factory=QueryVectors)

    @property
    def fingerprint(self) -> str | None:
        return self.generation.fingerprint

    @property
    def sleeper(self) -> Sleeper | None:
        """The embedder, if it is one that sleeps while nobody needs it."""
        return self.embedder if isinstance(self.embedder, Sleeper) else None

    def knows_query(self, text: str) -> bool:
        return self.queries.find(self.generation.fingerprint, text) is not None

    def embed_query(self, text: str) -> Vectors:
        if (known := self.queries.find(self.generation.fingerprint, text)) is not None:
            return known
        self._wake_for_query()
        with self._query_turn():
            vector = self.embedder.embed_query(text)
        self.queries.keep(self.generation.fingerprint, text, vector)
        return vector

    def forgetful(self) -> Meaning:
        """The same, for queries that nobody asked: they are not worth remembering."""
        return replace(self, queries=QueryVectors(0))

    def embed_passage(self, text: str) -> Vectors:
        """A text as the notes are embedded, but for a query that waits for it."""
        self._wake_for_query()
        with self._query_turn():
            vector: Vectors = self.embedder.embed_documents([text])[0]
            return vector

    def embed_documents(self, texts: Sequence[str], *, patient: bool = True) -> Vectors:
        """``patient``: after a query, wait a moment for the next one of its burst."""
        with self._indexing_turn(patient=patient):
            return self.embedder.embed_documents(texts)

    def embed_or_yield(self, texts: Sequence[str], *, patient: bool = True) -> Vectors | None:
        """The same; None if a query came in between, which goes first."""
        interruption = Interruption()
        with self._indexing_turn(patient=patient, interruption=interruption):
            return self.embedder.embed_or_yield(texts, interruption)

    def batch(self) -> int:
        """Passages to embed in one go. While queries wait for their turn, one: none of them waits for more."""
        if self.embedder.concurrent:
            return self.embedder.batch
        return 1 if self.turns.crowded() else self.embedder.batch

    def _wake_for_query(self) -> None:
        if self.sleeper:
            self.sleeper.wake(QUERY_WAKE_S)

    def _query_turn(self) -> AbstractContextManager[None]:
        """A provider far away serves several at once: a query does not wait for a batch that may take seconds."""
        return nullcontext() if self.embedder.concurrent else self.turns.query()

    def _indexing_turn(
        self, *, patient: bool, interruption: Interruption | None = None
    ) -> AbstractContextManager[None]:
        if self.embedder.concurrent:
            return nullcontext()
        if self.sleeper:
            self.sleeper.wake()  # before the turn: a query that needs no model does not wait for it
        return self.turns.indexing(patient=patient, interruption=interruption)

    def index(self) -> VectorIndex:
        return self.vectors


@dataclass(frozen=True, slots=True)
class Absence:
    """While there is no generation to search: why."""

    reason: str
    hint: str | None
    fingerprint: str | None = None

    def knows_query(self, _text: str) -> bool:
        return False

    def embed_query(self, _text: str) -> Vectors:
        raise self.error()

    def embed_passage(self, _text: str) -> Vectors:
        raise self.error()

    def index(self) -> VectorIndex:
        raise self.error()

    def error(self) -> EmbedderUnavailable:
        return EmbedderUnavailable(self.reason, hint=self.hint)
