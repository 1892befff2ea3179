"""The seams with two real implementations, and what each side may rely on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from memoryd.store.interruption import Interruption
from memoryd.store.model import EmbedderIdentity

Vectors = NDArray[np.float32]


class Clock(Protocol):
    """Wall-clock time, injected wherever behaviour depends on it."""

    def __call__(self) -> float:
        """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why an embedder is not asked for a while: its provider does not answer, or refuses."""

    reason: str
    hint: str | None
    lasting: bool  # trying again changes nothing until a person does
    until: float  # unix time
    queries: bool = True  # whether queries are held back too; else documents alone


class Embedder(Protocol):
    """Turns text into vectors.

    Guarantees: rows come back in the order of the texts, float32, of the identity's dimension and of length 1;
    the same text gives the same vector whatever it is batched with (to 1e-3 cosine); the empty string is
    survived; text longer than the model's context is cut, never refused. One thread at a time, unless it is
    ``concurrent``: then any number of queries may be embedded while documents are.
    Raises ``EmbedderUnavailable`` (try again), ``ModelCorrupt`` or ``EmbedderRefused`` (do not).
    """

    batch: int  # texts to hand over at once: more are no quicker, and hold up who waits
    concurrent: bool

    @property
    def identity(self) -> EmbedderIdentity: ...

    def hold(self) -> Hold | None:
        """Why it would refuse to be asked at this moment; None: it can be asked."""

    def try_again(self) -> None:
        """Ask once more what refused for good: a person may have put it right."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors: ...

    def embed_or_yield(self, texts: Sequence[str], interruption: Interruption) -> Vectors | None:
        """The same; None if it was let go of because that was wished for. What cannot be let go of is finished."""

    def embed_query(self, text: str) -> Vectors: ...

    def count_tokens(self, text: str) -> int: ...

    def close(self) -> None: ...


class Reranker(Protocol):
    """Reads a query and a passage together and says how well the one answers the other.

    Guarantees: a score a passage, in their order, higher is better; any text is read, and cut where it is too long for
    the model. It stops at the deadline (of ``time.monotonic``), so there may be fewer scores than passages, or none.
    Raises ``RerankerUnavailable`` (try again), ``ModelMissing`` or ``ModelCorrupt`` (do not).
    """

    def reads(self, script: str) -> bool:
        """Whether it was trained on texts in this script, as far as that is known."""

    def score(self, query: str, passages: Sequence[str], deadline: float) -> list[float]: ...

    def close(self) -> None: ...


class Match(NamedTuple):
    """A passage that the vector search found."""

    passage_id: int
    cosine: float


@dataclass(frozen=True, slots=True)
class VectorStats:
    """What a vector index holds on disk."""

    rows: int
    bytes: int
    versions: int
    fragments: int


class VectorIndex(Protocol):
    """The vectors of one generation, by passage id.

    Guarantees: ``upsert`` and ``delete`` are idempotent and durable when they return; what was written is seen
    by the next ``search``; matches come best first, ties in a fixed order; with ``documents`` the limit is
    filled from those documents alone. One writer, any number of searching threads.
    Raises ``StoreUnavailable``, ``StoreFull`` (try again) or ``StoreCorrupt`` (rebuild).
    """

    def upsert(self, ids: Sequence[int], documents: Sequence[int], vectors: Vectors) -> None: ...

    def delete(self, ids: Collection[int]) -> None: ...

    def search(self, vector: Vectors, limit: int, documents: Collection[int] | None = None) -> list[Match]: ...

    def vectors(self, ids: Collection[int]) -> dict[int, Vectors]:
        """The vectors of these passages, as far as they are held; copies, of length 1."""

    def cosines(self, ids: Sequence[int], vector: Vectors) -> Vectors:
        """How near each of these passages is, not a number if it is not held; equal vectors are equally near."""

    def ids(self) -> set[int]: ...

    def compact(self) -> None:
        """Merge small files and drop old versions."""

    def backlog(self) -> float:
        """How much there is to compact: 1 = it is due, more = it is overdue."""

    def rewrite(self) -> None:
        """Write all vectors anew and drop everything else: for when they cannot be compacted."""

    def reopen(self) -> None:
        """Look again at what is on disk, whatever was remembered of it."""

    def stats(self) -> VectorStats: ...
