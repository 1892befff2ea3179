"""What every embedder inside this process has in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from memoryd.store.interruption import Interruption
from memoryd.store.protocols import Hold, Vectors


class InProcess:
    """One thread at a time, in small batches for the sake of queries that wait; and nobody else to wait for."""

    batch = 4  # texts: enough to fill a pass of llama.cpp
    concurrent = False

    @abstractmethod
    def embed_documents(self, texts: Sequence[str]) -> Vectors: ...

    def embed_or_yield(self, texts: Sequence[str], interruption: Interruption) -> Vectors | None:  # noqa: ARG002
        return self.embed_documents(texts)

    def hold(self) -> Hold | None:
        return None

    def try_again(self) -> None:
        """There is nothing to be asked again."""
