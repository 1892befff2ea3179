"""The local embedder: a GGUF model run by llama.cpp, on the CPU, inside this process.

llama.cpp's low-level functions are used directly: batches are numpy arrays that the library reads in place,
and many short texts share one pass, each as a sequence of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from memoryd.jobs.embedders.fingerprint import fingerprint
from memoryd.jobs.embedders.in_process import InProcess
from memoryd.jobs.embedders.llama_batch import LlamaBatch, Tokens
from memoryd.jobs.embedders.llama_tokens import LlamaTokenizer
from memoryd.jobs.embedders.packing import pack
from memoryd.jobs.embedders.shortening import normalise, shorten
from memoryd.jobs.llama_library import (
    complained,
    default_threads,
    forget_complaints,
    free_model,
    load_llama,
    load_model,
    threads_beside,
)
from memoryd.jobs.models.disk import hash_file
from memoryd.jobs.models.gguf_file import REINSTALL, GgufFile, verify_gguf
from memoryd.jobs.native_memory import release_pages
from memoryd.store.errors import EmbedderUnavailable, ModelCorrupt
from memoryd.store.interruption import Interruption
from memoryd.store.model import EmbedderIdentity
from memoryd.store.protocols import Vectors

BATCH_TOKENS: Final = 512
PACK_TOKENS: Final = 256  # tokens of several texts that share a pass; one long text may still fill the batch
MOST_SEQUENCES: Final = 64  # texts per pass
FEW_TOKENS: Final = 32  # of a question; its words are looked up on another core meanwhile
FLASH_ATTENTION: Final = 1
_POOLINGS: Final = {"mean": 1, "cls": 2, "last": 3}
_ABORTED: Final = 2  # what llama.cpp answers then


class _LetGo(Exception):
    """A pass was not finished, because that was wished for."""


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
        self._context: Any = None
        facts = verify_gguf(path)
        self._capacity = batch_tokens
        # llama.cpp aborts the process where a batch has room for fewer tokens than sequences.
        self._most_sequences = min(MOST_SEQUENCES, batch_tokens)
        self._llama = load_llama()
        try:
            self._threads = self._used_threads = threads or default_threads()
            self._few_threads = threads_beside(self._threads)
            self._load(facts)
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
        self._llama.llama_set_abort_callback(self._context, self._is_wished, interruption.address)
        try:
            return self.embed_documents(texts)
        except _LetGo:
            return None
        finally:
            self._llama.llama_set_abort_callback(self._context, self._never, None)

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
        model, context = self._model, self._context
        self._model = self._context = None
        free_model(model, context)

    def _load(self, facts: GgufFile) -> None:
        llama = self._llama
        self._model = load_model(self._path, quantized=facts.quantized, hint=REINSTALL, mapped=False)
        vocabulary = llama.llama_model_get_vocab(self._model)
        self._words = int(llama.llama_vocab_n_tokens(vocabulary))
        self._tokenizer = LlamaTokenizer(
            llama,
            vocabulary,
            context=min(facts.context, self._capacity),
            strips_accents=facts.strips_accents,
        )
        self._dimension = int(llama.llama_model_n_embd_out(self._model))
        self._shown = self._dimension
        self._row = ctypes.c_float * self._dimension
        self._longest_pass = 0

        parameters = llama.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = self._capacity
        parameters.n_seq_max = self._most_sequences
        parameters.kv_unified = True  # sequences share the context instead of each getting a fixed slice
        parameters.n_threads = parameters.n_threads_batch = self._threads
        parameters.embeddings = True
        parameters.pooling_type = _POOLINGS[facts.pooling]
        parameters.flash_attn_type = FLASH_ATTENTION
        parameters.no_perf = True
        self._context = llama.llama_init_from_model(self._model, parameters)
        if self._context is None:
            raise ModelCorrupt(f"llama.cpp cannot run {self._path}{complained()}", hint=REINSTALL)
        # A function that tells whether a text is empty, without Python: it would wait for whoever holds its lock.
        self._is_wished = ctypes.cast(ctypes.CDLL(None).strlen, llama.ggml_abort_callback)
        self._never = llama.ggml_abort_callback()
        self._memory = llama.llama_get_memory(self._context)
        # An encoder remembers nothing between passes and has its own entry point.
        self._run = llama.llama_decode if self._memory else llama.llama_encode

        self._batch = LlamaBatch(llama.llama_batch, tokens=self._capacity, sequences=self._most_sequences)

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
        for group in pack(
            [len(tokens) for tokens in sequences], min(PACK_TOKENS, self._capacity), self._most_sequences
        ):
            vectors[group] = self._run_batch([sequences[index] for index in group])
        return vectors

    def _check_open(self) -> None:
        if self._context is None:
            raise EmbedderUnavailable("the embedder is closed", hint="Ask again once memoryd runs.")

    def _run_batch(self, sequences: Sequence[Tokens]) -> Vectors:
        forget_complaints()
        if self._memory:
            self._llama.llama_memory_clear(self._memory, True)
        batch = self._batch.fill(sequences)
        self._use_threads(self._few_threads if batch.n_tokens <= FEW_TOKENS else self._threads)
        status = self._run(self._context, batch)
        if status == _ABORTED:
            raise _LetGo
        if status != 0:
            raise EmbedderUnavailable(
                f"llama.cpp answered {status}{complained()}", hint="Free some memory, or restart memoryd."
            )
        if batch.n_tokens > self._longest_pass:
            self._longest_pass = batch.n_tokens
            self._release_logits()
        vectors = np.stack([self._pooled(sequence) for sequence in range(len(sequences))])
        try:
            return normalise(vectors)
        except ValueError:
            raise ModelCorrupt(f"{self._path} makes vectors that are not numbers", hint=REINSTALL) from None

    def _use_threads(self, threads: int) -> None:
        if threads != self._used_threads:
            self._llama.llama_set_n_threads(self._context, threads, threads)
            self._used_threads = threads

    def _release_logits(self) -> None:
        """Give back the table of every token by every word that llama.cpp clears and an encoder never fills.

        It grows with the longest pass: 60 MB for this vocabulary, half a gigabyte for a multilingual one.
        """
        if self._memory or self._llama.llama_supports_gpu_offload():
            return
        if table := self._llama.llama_get_logits(self._context):
            address = ctypes.cast(table, ctypes.c_void_p).value or 0
            release_pages(address, 4 * self._words * max(self._longest_pass, self._most_sequences))

    def _pooled(self, sequence: int) -> Vectors:
        """llama.cpp's own memory: good until the next pass."""
        pointer = self._llama.llama_get_embeddings_seq(self._context, sequence)
        if not pointer:
            raise ModelCorrupt(f"{self._path} gave no embedding{complained()}", hint=REINSTALL)
        return np.frombuffer(memoryview(self._row.from_address(ctypes.addressof(pointer.contents))), np.float32)
