"""The local embedder: a GGUF model run by llama.cpp, on the CPU, inside this process.

llama.cpp's low-level functions are used directly: batches are numpy arrays that the library reads in place,
and many short texts share one pass, each as a sequence of its own. There are two contexts for passes: llama.cpp's flash
attention takes its time for a few tokens, and its plain attention for many.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from memoryd.jobs.embedders.fingerprint import fingerprint
from memoryd.jobs.embedders.in_process import InProcess
from memoryd.jobs.embedders.llama_batch import Tokens
from memoryd.jobs.embedders.llama_context import LetGo, LlamaContext
from memoryd.jobs.embedders.llama_tokens import LlamaTokenizer
from memoryd.jobs.embedders.packing import pack
from memoryd.jobs.embedders.shortening import normalise, shorten
from memoryd.jobs.llama_library import default_threads, free_model, load_llama, load_model, threads_beside
from memoryd.jobs.models.disk import hash_file
from memoryd.jobs.models.gguf_file import REINSTALL, GgufFile, verify_gguf
from memoryd.store.errors import EmbedderUnavailable, ModelCorrupt
from memoryd.store.interruption import Interruption
from memoryd.store.model import EmbedderIdentity
from memoryd.store.protocols import Vectors

BATCH_TOKENS: Final = 512
PACK_TOKENS: Final = 256  # tokens of several texts that share a pass; one long text may still fill the batch
MOST_SEQUENCES: Final = 64  # texts per pass
PLAIN_TOKENS: Final = 63  # of a pass without flash attention, whose quick code takes 64 tokens at a time
FLASH_ATTENTION: Final = 1


class LlamaEmbedder(InProcess):
    """One model in memory. Not thread safe: one caller at a time."""

    def __init__(
        self,
        path: Path,
        *,
        name: str | None = None,
        threads: int = 0,
        batch_tokens: int = BATCH_TOKENS,
        query_prefix: str = "",
        document_prefix: str = "",
        text_version: str = "",
        dimension: int = 0,
    ) -> None:
        self._path = path
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix
        self._model: Any = None
        self._contexts: list[LlamaContext] = []  # for a few tokens, and for as many as a batch has
        facts = verify_gguf(path)
        self._capacity = batch_tokens
        self._llama = load_llama()
        try:
            self._load(facts, threads or default_threads())
            parts = [hash_file(path), facts.pooling, query_prefix, document_prefix, text_version]
            if dimension and dimension != self._dimension:
                parts.append(f"{self._cut(dimension)} numbers")
            self.identity = EmbedderIdentity(
                model=name or path.stem, fingerprint=fingerprint(*parts), dimension=self._shown
            )
            self._embed(["warm up"])
        except BaseException:
            self.close()
            raise

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row per text, in the order of the texts."""
        return shorten(self._embed([self._document_prefix + text for text in texts]), self._shown)

    def embed_or_yield(self, texts: Sequence[str], interruption: Interruption) -> Vectors | None:
        """The same. llama.cpp looks after every step of a pass whether it is to go on: some milliseconds apart."""
        self._check_open()
        try:
            self._let_go_at(interruption)
            return self.embed_documents(texts)
        except LetGo:
            return None
        finally:
            self._let_go_at(None)

    def embed_query(self, text: str) -> Vectors:
        """The vector of one query."""
        vector: Vectors = shorten(self._embed([self._query_prefix + text]), self._shown)[0]
        return vector

    def count_tokens(self, text: str) -> int:
        """How many tokens the text has for this model, its own marks not counted."""
        self._check_open()
        return self._tokenizer.count(text)

    def close(self) -> None:
        """Free the model's memory; calling it again is harmless."""
        model, contexts = self._model, self._contexts
        self._model, self._contexts = None, []
        free_model(model, *(context.handle for context in contexts))

    def _load(self, facts: GgufFile, threads: int) -> None:
        llama = self._llama
        self._model = load_model(self._path, quantized=facts.quantized, hint=REINSTALL, mapped=False)
        self._tokenizer = LlamaTokenizer(
            llama,
            llama.llama_model_get_vocab(self._model),
            context=min(facts.context, self._capacity),
            strips_accents=facts.strips_accents,
        )
        self._dimension = int(llama.llama_model_n_embd_out(self._model))
        self._shown = self._dimension
        # A few tokens are a question: its words are looked up on another core meanwhile.
        few = min(PLAIN_TOKENS, self._capacity), threads_beside(threads), 0
        many = self._capacity, threads, FLASH_ATTENTION
        for tokens, cores, flash in (few, many):
            context = LlamaContext(
                self._path,
                self._model,
                tokens=tokens,
                sequences=min(MOST_SEQUENCES, tokens),  # llama.cpp aborts the process where there is room for more
                threads=cores,
                pooling=facts.pooling,
                flash=flash,
            )
            self._contexts.append(context)

    def _cut(self, dimension: int) -> int:
        """Give out so many numbers of each vector."""
        if dimension > self._dimension:
            raise ModelCorrupt(
                f"{self._path} makes vectors of {self._dimension} numbers, not of {dimension}",
                hint="Set embedder.dimension to less, or to 0: the model's own",
            )
        self._shown = dimension
        return dimension

    def _embed(self, texts: Sequence[str]) -> Vectors:
        self._check_open()
        vectors = np.empty((len(texts), self._dimension), np.float32)
        sequences = [self._tokenizer.encode(text) for text in texts]
        room = min(PACK_TOKENS, self._capacity)
        for group in pack([len(tokens) for tokens in sequences], room, min(MOST_SEQUENCES, self._capacity)):
            vectors[group] = self._run_batch([sequences[index] for index in group])
        return vectors

    def _check_open(self) -> None:
        if not self._contexts:
            raise EmbedderUnavailable("the embedder is closed", hint="Ask again once memoryd runs.")

    def _run_batch(self, sequences: Sequence[Tokens]) -> Vectors:
        plain, flash = self._contexts
        vectors = (plain if sum(map(len, sequences)) <= PLAIN_TOKENS else flash).run(sequences)
        try:
            return normalise(vectors)
        except ValueError:
            raise ModelCorrupt(f"{self._path} makes vectors that are not numbers", hint=REINSTALL) from None

    def _let_go_at(self, interruption: Interruption | None) -> None:
        for context in self._contexts:
            context.let_go_at(interruption)
