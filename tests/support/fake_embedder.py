"""An embedder without a model: texts that share words and letter groups are near each other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from memoryd.jobs.embedders.in_process import InProcess
from memoryd.store.errors import EmbedderUnavailable, MemorydError
from memoryd.store.model import EmbedderIdentity
from memoryd.store.protocols import Vectors

CONTEXT = 512  # words that are read; the rest is cut


class FakeEmbedder(InProcess):
    """Deterministic, quick, and held to the same contract as the real ones; it counts what it is asked."""

    def __init__(self, *, dimension: int = 128, fingerprint: str = "fake") -> None:
        self.identity = EmbedderIdentity(model="fake", fingerprint=fingerprint, dimension=dimension)
        self.document_calls = 0
        self.query_calls = 0
        self.texts: list[str] = []  # every document embedded, in order
        self.failure: MemorydError | None = None  # raised by the next calls while set
        self.closed = False

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.document_calls += 1
        self._check()
        self.texts.extend(texts)
        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), self.identity.dimension)

    def embed_query(self, text: str) -> Vectors:
        self.query_calls += 1
        self._check()
        return self._vector(text)

    def count_tokens(self, text: str) -> int:
        self._check()
        return len(_words(text))

    def close(self) -> None:
        self.closed = True

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.closed:
            raise EmbedderUnavailable("the embedder is closed", hint="Ask again once memoryd runs.")

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self.identity.dimension, np.float32)
        for word in _words(text)[:CONTEXT]:
            self._add(vector, word, 1.0)
            for start in range(len(word) - 2):
                self._add(vector, word[start : start + 3], 0.3)
        if not vector.any():
            vector[0] = 1.0
        return vector / np.linalg.norm(vector)

    def _add(self, vector: Vectors, feature: str, weight: float) -> None:
        digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest()
        place = int.from_bytes(digest[:4], "little") % self.identity.dimension
        vector[place] += weight if digest[4] & 1 else -weight


class DenseEmbedder(FakeEmbedder):
    """Ten thousand texts in a second: each has a vector that is drawn by its hash, and none is near another."""

    def _vector(self, text: str) -> Vectors:
        seed = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")
        vector = np.random.default_rng(seed).normal(size=self.identity.dimension).astype(np.float32)
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


def _words(text: str) -> list[str]:
    # A CJK character is a word of its own: those scripts write no spaces.
    return re.findall(r"[぀-ヿ㐀-鿿가-힣]|[^\W_]+", text.casefold())
