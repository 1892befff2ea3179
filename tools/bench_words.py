"""An embedder for memories that are too large to embed in a benchmark.

Queries are embedded by the model itself, so they cost what they cost. A document gets the mean of its words'
vectors, each word embedded once: hundreds of times cheaper than the model, and still near the queries that share
its words, as a search wants it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memoryd.jobs.embedders.in_process import InProcess
from memoryd.store.folding import split_words
from memoryd.store.model import EmbedderIdentity
from memoryd.store.protocols import Embedder, Vectors

_DIGIT = re.compile(r"\d")  # numbers are most of the words that occur once


class WordsEmbedder(InProcess):
    """Keeps the promises of ``Embedder``: the vector of a text depends on nothing but the text."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self._known: dict[str, Vectors] = {}
        # Its vectors are not the model's, so they are another generation and are cached apart.
        self.identity: EmbedderIdentity = replace(model.identity, fingerprint=f"{model.identity.fingerprint}_words")

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        bags = [[word for word in split_words(text) if not _DIGIT.search(word)] or [""] for text in texts]
        unknown = list({word: None for bag in bags for word in bag if word not in self._known})
        if unknown:
            self._known.update(zip(unknown, self._model.embed_documents(unknown), strict=True))
        sums = np.array([np.sum([self._known[word] for word in bag], axis=0) for bag in bags], np.float32)
        return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), np.float32)

    def embed_query(self, text: str) -> Vectors:
        return self._model.embed_query(text)

    def count_tokens(self, text: str) -> int:
        return self._model.count_tokens(text)

    def close(self) -> None:
        self._model.close()
