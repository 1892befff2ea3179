"""A cross-encoder as a GGUF with rank pooling, run by llama.cpp inside this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from memoryd.jobs.embedders.llama_batch import LlamaBatch, Tokens
from memoryd.jobs.embedders.llama_tokens import LlamaTokenizer
from memoryd.jobs.llama_library import (
    complained,
    default_threads,
    forget_complaints,
    free_model,
    load_llama,
    load_model,
)
from memoryd.jobs.models.gguf_file import verify_reranker
from memoryd.jobs.rerankers.scripts import scripts_read
from memoryd.store.errors import ModelCorrupt, RerankerUnavailable

_CAPACITY: Final = 512  # tokens of query and passage together
_RANK: Final = 4  # llama.cpp's number of the pooling that gives a score
_HINT: Final = "Set search.rerank.model to a reranker; 'memoryd model list' names some."


class LlamaReranker:
    """One model in memory. Not thread safe: one caller at a time."""

    def __init__(self, path: Path, *, threads: int = 0) -> None:
        self._path = path
        self._model: Any = None
        self._context: Any = None
        facts = verify_reranker(path)
        self._capacity = min(_CAPACITY, facts.context)
        self._llama = llama = load_llama()
        try:
            self._model = load_model(path, quantized=facts.quantized, hint=_HINT, mapped=False)
            vocabulary = llama.llama_model_get_vocab(self._model)
            self._tokenizer = LlamaTokenizer(
                llama, vocabulary, context=self._capacity, strips_accents=facts.strips_accents
            )
            # RoBERTa's kind puts two marks between the texts, BERT's one, which ends the first text anyway.
            doubled = llama.llama_vocab_get_add_eos(vocabulary) and llama.llama_vocab_get_add_sep(vocabulary)
            self._between = np.array([llama.llama_vocab_sep(vocabulary)] if doubled else [], np.int32)
            self._starts = int(bool(llama.llama_vocab_get_add_bos(vocabulary)))
            words = (
                llama.llama_vocab_get_text(vocabulary, token) for token in range(llama.llama_vocab_n_tokens(vocabulary))
            )
            self._scripts = scripts_read(word.decode("utf-8", "replace") for word in words)
            self._context = self._open_context(threads or default_threads())
            self._batch = LlamaBatch(llama.llama_batch, tokens=self._capacity, sequences=1)
            self._read("warm", "up")
        except BaseException:
            self.close()
            raise

    def reads(self, script: str) -> bool:
        return script in self._scripts

    def score(self, query: str, passages: Sequence[str], deadline: float) -> list[float]:
        if self._context is None:
            raise RerankerUnavailable("the reranker is closed", hint="Ask again once memoryd runs.")
        scores: list[float] = []
        for passage in passages:
            if time.monotonic() >= deadline:
                break
            scores.append(self._read(query, passage))
        return scores

    def close(self) -> None:
        model, context = self._model, self._context
        self._model = self._context = None
        free_model(model, context)

    def _open_context(self, threads: int) -> Any:
        parameters = self._llama.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = self._capacity
        parameters.n_seq_max = 1
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.embeddings = True
        parameters.pooling_type = _RANK
        parameters.flash_attn_type = 1
        parameters.no_perf = True
        context = self._llama.llama_init_from_model(self._model, parameters)
        if context is None:
            raise ModelCorrupt(f"llama.cpp cannot run {self._path}{complained()}", hint=_HINT)
        memory = self._llama.llama_get_memory(context)
        self._memory = memory
        self._run = self._llama.llama_decode if memory else self._llama.llama_encode
        return context

    def _read(self, query: str, passage: str) -> float:
        forget_complaints()
        if self._memory:
            self._llama.llama_memory_clear(self._memory, True)
        status = self._run(self._context, self._batch.fill([self._pair(query, passage)]))
        if status != 0:
            raise RerankerUnavailable(
                f"llama.cpp answered {status}{complained()}", hint="Free some memory, or restart memoryd."
            )
        pointer = self._llama.llama_get_embeddings_seq(self._context, 0)
        score = float(pointer[0]) if pointer else float("nan")
        if not np.isfinite(score):
            raise ModelCorrupt(f"{self._path} gives scores that are not numbers", hint=_HINT)
        return score

    def _pair(self, query: str, passage: str) -> Tokens:
        """Both texts with the model's own marks; the query may take half of the room, the passage gets the rest."""
        asked = self._tokenizer.encode(query)
        if len(asked) > self._capacity // 2:
            asked = np.append(asked[: self._capacity // 2 - 1], asked[-1:])
        told = self._tokenizer.encode(passage)[self._starts :]
        room = self._capacity - len(asked) - len(self._between)
        if len(told) > room:
            told = np.append(told[: room - 1], told[-1:])
        pair: Tokens = np.concatenate([asked, self._between, told]).astype(np.int32)
        return pair
