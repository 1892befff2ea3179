"""A cross-encoder as an ONNX graph, run by onnxruntime: of small quantised models the quicker way by far.

Needs the extra ``memoryd[rerank]``. The tokenizer is the ``tokenizer.json`` beside the graph.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from memoryd.jobs.rerankers.scripts import scripts_read
from memoryd.store.errors import ModelCorrupt, ModelMissing, RerankerUnavailable

EXTRA: Final = "pip install 'memoryd[rerank]'"
_CAPACITY: Final = 512  # tokens of query and passage together
_LONGEST_QUERY: Final = 1000  # characters


class OnnxReranker:
    """One model in memory. Not thread safe: one caller at a time."""

    def __init__(self, path: Path, *, threads: int = 0) -> None:
        self._path = path
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ModelMissing(
                f"{path.name} needs onnxruntime and tokenizers", hint=f"{EXTRA}, and restart."
            ) from error
        words = path.with_name("tokenizer.json")
        for file in (path, words):
            if not file.is_file():
                raise ModelMissing(f"there is no {file}", hint="'memoryd model install' brings it.")
        try:
            self._tokenizer = Tokenizer.from_file(str(words))
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = (
                threads or 1
            )  # a passage is short: two cost twice the CPU for a tenth of the time
            options.log_severity_level = 3
            # Of threads that wait for work, none spins: the machine belongs to others too.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            self._session: Any = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # both libraries raise what they like
            raise ModelCorrupt(
                f"{path} cannot be loaded: {str(error).splitlines()[0][:200]}", hint="Install it again."
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_CAPACITY)
        self._scripts = scripts_read(self._tokenizer.get_vocab())
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._read("warm", "up")

    def reads(self, script: str) -> bool:
        return script in self._scripts

    def score(self, query: str, passages: Sequence[str], deadline: float) -> list[float]:
        if self._session is None:
            raise RerankerUnavailable("the reranker is closed", hint="Ask again once memoryd runs.")
        scores: list[float] = []
        for passage in passages:
            if time.monotonic() >= deadline:
                break
            scores.append(self._read(query[:_LONGEST_QUERY], passage))
        return scores

    def close(self) -> None:
        self._session = None

    def _read(self, query: str, passage: str) -> float:
        try:
            pair = self._tokenizer.encode(query, passage)
            rows = {"input_ids": pair.ids, "attention_mask": pair.attention_mask, "token_type_ids": pair.type_ids}
            fed = {name: np.array([row], np.int64) for name, row in rows.items() if name in self._inputs}
            score = float(self._session.run(None, fed)[0].ravel()[0])
        except Exception as error:
            raise RerankerUnavailable(f"onnxruntime failed: {str(error).splitlines()[0][:200]}") from error
        if not np.isfinite(score):
            raise ModelCorrupt(f"{self._path} gives scores that are not numbers", hint="Install it again.")
        return score
