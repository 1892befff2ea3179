"""An embedder for memories that are too large to embed in a benchmark.

Queries are embedded by the model itself, so they cost what they cost. A document gets the mean of its words'
vectors, each word embedded once: hundreds of times cheaper than the model, and still near the queries that share
its words, as a search wants it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from memoryd.jobs.embedders.in_process import InProcess
from memoryd.jobs.meaning import Choice, Models, Progress
from memoryd.store.folding import split_words
from memoryd.store.model import EmbedderIdentity
from memoryd.store.protocols import Embedder, Vectors

_DIGIT = re.compile(r"\d")  # numbers are most of the words that occur once
_PORTION = 512  # texts whose words are counted together


class WordsEmbedder(InProcess):
    """Keeps the promises of ``Embedder``: the vector of a text depends on nothing but the text.

    It goes by the model's own name, so that a daemon takes its vectors for the model's; they must not share a cache.
    """

    batch = 64

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self.identity: EmbedderIdentity = model.identity
        self.cpu_seconds = 0.0  # that documents have taken
        self._rows: dict[str, int] = {}
        self._words: Vectors = np.empty((0, self.identity.dimension), np.float32)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        began = time.thread_time()
        parts = [self._embed(texts[start : start + _PORTION]) for start in range(0, len(texts), _PORTION)]
        self.cpu_seconds += time.thread_time() - began
        return np.concatenate(parts) if parts else np.empty((0, self.identity.dimension), np.float32)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        bags = [[word for word in split_words(text) if not _DIGIT.search(word)] or [""] for text in texts]
        unknown = list({word: None for bag in bags for word in bag if word not in self._rows})
        if unknown:
            self._words = np.concatenate([self._words, self._model.embed_documents(unknown)])
            self._rows.update(zip(unknown, range(len(self._rows), len(self._words)), strict=True))
        owners = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags])
        rows, columns = np.unique([self._rows[word] for bag in bags for word in bag], return_inverse=True)
        counts = np.zeros((len(bags), len(rows)), np.float32)
        np.add.at(counts, (owners, columns), 1)
        sums = counts @ self._words[rows]
        return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), np.float32)

    def recall(self, file: Path) -> None:
        """The words that were embedded in an earlier run, by the same model."""
        if not file.is_file():
            return
        with np.load(file) as kept:
            if str(kept["fingerprint"]) == self.identity.fingerprint:
                words, self._words = kept["words"].tolist(), kept["vectors"]
                self._rows = dict(zip(words, range(len(words)), strict=True))

    def remember(self, file: Path) -> None:
        beside = file.with_suffix(".tmp.npz")
        np.savez(beside, fingerprint=self.identity.fingerprint, words=np.array(list(self._rows)), vectors=self._words)
        beside.replace(file)

    def embed_query(self, text: str) -> Vectors:
        return self._model.embed_query(text)

    def count_tokens(self, text: str) -> int:
        return self._model.count_tokens(text)

    def close(self) -> None:
        self._model.close()


@dataclass(frozen=True)
class WordsModels:
    """The configured model for queries; notes are not read by it."""

    models: Models
    loaded: list[WordsEmbedder] = field(default_factory=list)

    @property
    def recipe(self) -> str:
        return self.models.recipe

    @property
    def off(self) -> str | None:
        return self.models.off

    @property
    def choice(self) -> Choice:
        return self.models.choice

    def load(self, progress: Progress) -> WordsEmbedder:
        self.loaded.append(WordsEmbedder(self.models.load(progress)))
        return self.loaded[-1]

    def former(self, recipe: str) -> Models:
        return self.models.former(recipe)
