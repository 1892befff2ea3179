"""The local embedder: a GGUF model run by llama.cpp, on the CPU, inside this process.

llama.cpp's low-level functions are used directly: batches are numpy arrays that the library reads in place,
and many short texts share one pass, each as a sequence of its own.
"""

from __future__ import annotations

import ctypes
import os
import re
import unicodedata
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memoryd.jobs.embedders.fingerprint import fingerprint
from memoryd.jobs.embedders.packing import pack
from memoryd.jobs.models.disk import hash_file
from memoryd.jobs.models.gguf_file import REINSTALL, GgufFile, verify_gguf
from memoryd.store.errors import EmbedderUnavailable, ModelCorrupt
from memoryd.store.model import EmbedderIdentity
from memoryd.store.protocols import Vectors

BATCH_TOKENS: Final = 512
PACK_TOKENS: Final = 256  # tokens of several texts that share a pass; one long text may still fill the batch
MOST_SEQUENCES: Final = 64  # texts per pass
FLASH_ATTENTION: Final = 1
_POOLINGS: Final = {"mean": 1, "cls": 2, "last": 3}
_CHARACTERS_PER_TOKEN: Final = 32  # no text needs more of them to fill the context; the rest is not read
_HANGUL: Final = re.compile("[가-힣]+")
_LOG_LEVEL_WARNING: Final = 2
_LOG_LEVEL_ERROR: Final = 3

_complaints: deque[str] = deque(maxlen=8)
_log_callback: Any = None  # llama.cpp keeps the bare pointer: this reference keeps the function alive


def _library() -> Any:
    """llama.cpp, loaded once, with its log kept for error messages instead of written to stderr."""
    global _log_callback
    import llama_cpp

    if _log_callback is None:

        def keep_complaint(level: int, text: bytes, _: object) -> None:
            if level in (_LOG_LEVEL_WARNING, _LOG_LEVEL_ERROR) and text:
                _complaints.append(text.decode("utf-8", "replace").strip())

        _log_callback = llama_cpp.llama_log_callback(keep_complaint)
        llama_cpp.llama_log_set(_log_callback, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
    return llama_cpp


class LlamaEmbedder:
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
    ) -> None:
        self._path = path
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix
        self._model: Any = None
        self._context: Any = None
        facts = verify_gguf(path)
        self._strips_accents = facts.strips_accents
        self._limit = min(facts.context, batch_tokens)
        self._capacity = batch_tokens
        self._llama = _library()
        try:
            self._load(facts, threads or default_threads())
            self.identity = EmbedderIdentity(
                model=name or path.stem,
                fingerprint=fingerprint(
                    hash_file(path), facts.pooling, query_prefix, document_prefix, text_version
                ),
                dimension=self._dimension,
            )
            self._embed(["warm up"])
        except BaseException:
            self.close()
            raise

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row per text, in the order of the texts."""
        return self._embed([self._document_prefix + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """The vector of one query."""
        vector: Vectors = self._embed([self._query_prefix + text])[0]
        return vector

    def count_tokens(self, text: str) -> int:
        """How many tokens the text has for this model, its own marks not counted."""
        return len(self._tokenize(text, special=False))

    def close(self) -> None:
        """Free the model's memory; calling it again is harmless."""
        if self._context is not None:
            self._llama.llama_free(self._context)
            self._context = None
        if self._model is not None:
            self._llama.llama_model_free(self._model)
            self._model = None

    def _load(self, facts: GgufFile, threads: int) -> None:
        llama = self._llama
        _complaints.clear()
        parameters = llama.llama_model_default_params()
        parameters.n_gpu_layers = 0
        # Repacked weights are a second copy in memory, and the AMX kernels among them die of an illegal
        # instruction on virtual machines that announce AMX and do not grant it.
        parameters.use_extra_bufts = False
        self._model = llama.llama_model_load_from_file(os.fsencode(self._path), parameters)
        if self._model is None:
            raise ModelCorrupt(f"llama.cpp cannot load {self._path}{_complained()}", hint=REINSTALL)
        self._vocabulary = llama.llama_model_get_vocab(self._model)
        self._dimension = int(llama.llama_model_n_embd_out(self._model))

        parameters = llama.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = self._capacity
        parameters.n_seq_max = MOST_SEQUENCES
        parameters.kv_unified = True  # sequences share the context instead of each getting a fixed slice
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.embeddings = True
        parameters.pooling_type = _POOLINGS[facts.pooling]
        parameters.flash_attn_type = FLASH_ATTENTION
        parameters.no_perf = True
        self._context = llama.llama_init_from_model(self._model, parameters)
        if self._context is None:
            raise ModelCorrupt(f"llama.cpp cannot run {self._path}{_complained()}", hint=REINSTALL)
        self._memory = llama.llama_get_memory(self._context)
        # An encoder remembers nothing between passes and has its own entry point.
        self._run = llama.llama_decode if self._memory else llama.llama_encode

        self._tokens = np.zeros(self._capacity, np.int32)
        self._positions = np.zeros(self._capacity, np.int32)
        self._sequence_counts = np.ones(self._capacity, np.int32)
        self._outputs = np.ones(self._capacity, np.int8)
        self._sequence_ids = np.arange(MOST_SEQUENCES, dtype=np.int32)
        self._sequence_pointers = np.zeros(self._capacity, np.uintp)
        self._batch = llama.llama_batch(
            n_tokens=0,
            token=self._tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            pos=self._positions.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            n_seq_id=self._sequence_counts.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            seq_id=self._sequence_pointers.ctypes.data_as(ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
            logits=self._outputs.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )

    def _embed(self, texts: Sequence[str]) -> Vectors:
        if self._context is None:
            raise EmbedderUnavailable("the embedder is closed", hint="Ask again once memoryd runs.")
        vectors = np.empty((len(texts), self._dimension), np.float32)
        sequences = [self._cut(self._tokenize(text[: self._limit * _CHARACTERS_PER_TOKEN])) for text in texts]
        for group in pack([len(tokens) for tokens in sequences], PACK_TOKENS, MOST_SEQUENCES):
            vectors[group] = self._run_batch([sequences[index] for index in group])
        return vectors

    def _run_batch(self, sequences: Sequence[NDArray[np.int32]]) -> Vectors:
        lengths = [len(tokens) for tokens in sequences]
        used = sum(lengths)
        self._tokens[:used] = np.concatenate(sequences)
        self._positions[:used] = np.concatenate([np.arange(length, dtype=np.int32) for length in lengths])
        addresses = self._sequence_ids.ctypes.data + 4 * np.arange(len(sequences), dtype=np.uintp)
        self._sequence_pointers[:used] = np.repeat(addresses, lengths)
        self._batch.n_tokens = used
        _complaints.clear()
        if self._memory:
            self._llama.llama_memory_clear(self._memory, True)
        status = self._run(self._context, self._batch)
        if status != 0:
            raise EmbedderUnavailable(
                f"llama.cpp answered {status}{_complained()}", hint="Free some memory, or restart memoryd."
            )
        vectors = np.stack([self._pooled(sequence) for sequence in range(len(sequences))])
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise ModelCorrupt(f"{self._path} makes vectors that are not numbers", hint=REINSTALL)
        normalised: Vectors = vectors / norms
        return normalised

    def _pooled(self, sequence: int) -> Vectors:
        """llama.cpp's own memory: good until the next pass."""
        pointer = self._llama.llama_get_embeddings_seq(self._context, sequence)
        if not pointer:
            raise ModelCorrupt(f"{self._path} gave no embedding{_complained()}", hint=REINSTALL)
        return np.ctypeslib.as_array(pointer, (self._dimension,))

    def _tokenize(self, text: str, *, special: bool = True) -> NDArray[np.int32]:
        if self._strips_accents:
            # llama.cpp's own decomposition keeps only the first letter of a Korean syllable.
            text = _HANGUL.sub(lambda syllables: unicodedata.normalize("NFD", syllables[0]), text)
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        while True:
            buffer = (ctypes.c_int32 * room)()
            # The last argument: a mark of the model that stands in a note ("[SEP]") is text there.
            count = self._llama.llama_tokenize(
                self._vocabulary, data, len(data), buffer, room, special, False
            )
            if count >= 0:
                tokens: NDArray[np.int32] = np.ctypeslib.as_array(buffer)[:count]
                return tokens
            room = -count

    def _cut(self, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
        if len(tokens) == 0:
            return np.zeros(1, np.int32)
        if len(tokens) <= self._limit:
            return tokens
        # The last token is the model's end mark, where it has one.
        return np.append(tokens[: self._limit - 1], tokens[-1])


def default_threads() -> int:
    """Threads for one pass: short texts gain nothing from more, and the machine belongs to its user."""
    return max(1, min(4, len(os.sched_getaffinity(0)) // 2))


def _complained() -> str:
    return ": " + "; ".join(_complaints) if _complaints else ""
