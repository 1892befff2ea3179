"""llama.cpp's working memory for passes of one size: texts go in as tokens, and come out as pooled vectors."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from memoryd.jobs.embedders.llama_batch import LlamaBatch, Tokens
from memoryd.jobs.llama_library import complained, forget_complaints, keeping_lock, load_llama
from memoryd.jobs.models.gguf_file import REINSTALL
from memoryd.jobs.native_memory import release_pages
from memoryd.store.errors import EmbedderUnavailable, ModelCorrupt
from memoryd.store.interruption import Interruption
from memoryd.store.protocols import Vectors

_POOLINGS: Final = {"mean": 1, "cls": 2, "last": 3}
_ABORTED: Final = 2  # what llama.cpp answers then


class LetGo(Exception):
    """A pass was not finished, because that was wished for."""


class LlamaContext:
    """Passes of up to so many tokens and texts through a model that is in memory, one at a time."""

    def __init__(
        self, path: Path, model: Any, *, tokens: int, sequences: int, threads: int, pooling: str, flash: int
    ) -> None:
        llama = self._llama = load_llama()
        self._path = path
        self._sequences = sequences
        self._longest = 0
        self._words = int(llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model)))
        self._row = ctypes.c_float * int(llama.llama_model_n_embd_out(model))

        parameters = llama.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = tokens
        parameters.n_seq_max = sequences
        parameters.kv_unified = True  # sequences share the context instead of each getting a fixed slice
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.embeddings = True
        parameters.pooling_type = _POOLINGS[pooling]
        parameters.flash_attn_type = flash
        parameters.no_perf = True
        self.handle = llama.llama_init_from_model(model, parameters)
        if self.handle is None:
            raise ModelCorrupt(f"llama.cpp cannot run {path}{complained()}", hint=REINSTALL)
        # A function that tells whether a text is empty, without Python: it would wait for whoever holds its lock.
        self._is_wished = ctypes.cast(ctypes.CDLL(None).strlen, llama.ggml_abort_callback)
        self._never = llama.ggml_abort_callback()
        self._memory = llama.llama_get_memory(self.handle)
        # An encoder remembers nothing between passes and has its own entry point.
        self._run = llama.llama_decode if self._memory else llama.llama_encode
        self._embeddings_of = keeping_lock(llama.llama_get_embeddings_seq)
        self._batch = LlamaBatch(llama.llama_batch, tokens=tokens, sequences=sequences)

    def let_go_at(self, interruption: Interruption | None) -> None:
        """When passes are to be given up, from now on. llama.cpp looks after every step, some milliseconds apart."""
        if interruption:
            self._llama.llama_set_abort_callback(self.handle, self._is_wished, interruption.address)
        else:
            self._llama.llama_set_abort_callback(self.handle, self._never, None)

    def run(self, texts: Sequence[Tokens]) -> Vectors:
        """A row for each, as the model gives it. Raises ``LetGo``."""
        forget_complaints()
        if self._memory:
            self._llama.llama_memory_clear(self._memory, True)
        batch = self._batch.fill(texts)
        status = self._run(self.handle, batch)
        if status == _ABORTED:
            raise LetGo
        if status != 0:
            raise EmbedderUnavailable(
                f"llama.cpp answered {status}{complained()}", hint="Free some memory, or restart memoryd."
            )
        if batch.n_tokens > self._longest:
            self._longest = batch.n_tokens
            self._release_logits()
        return np.stack([self._pooled(sequence) for sequence in range(len(texts))])

    def _release_logits(self) -> None:
        """Give back the table of every token by every word that llama.cpp clears and an encoder never fills.

        It grows with the longest pass: 60 MB for this vocabulary, half a gigabyte for a multilingual one.
        """
        if self._memory or self._llama.llama_supports_gpu_offload():
            return
        if table := self._llama.llama_get_logits(self.handle):
            address = ctypes.cast(table, ctypes.c_void_p).value or 0
            release_pages(address, 4 * self._words * max(self._longest, self._sequences))

    def _pooled(self, sequence: int) -> Vectors:
        """llama.cpp's own memory: good until the next pass."""
        pointer = self._embeddings_of(self.handle, sequence)
        if not pointer:
            raise ModelCorrupt(f"{self._path} gave no embedding{complained()}", hint=REINSTALL)
        return np.frombuffer(memoryview(self._row.from_address(ctypes.addressof(pointer.contents))), np.float32)
