"""Several texts in the form in which llama.cpp takes one pass: numpy arrays that it reads in place."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]


class LlamaBatch:
    """One set of arrays, filled anew for every pass. They must outlive the structure that points into them."""

    def __init__(self, structure: Any, *, tokens: int, sequences: int) -> None:
        self._tokens = np.zeros(tokens, np.int32)
        self._positions = np.zeros(tokens, np.int32)
        self._sequence_counts = np.ones(tokens, np.int32)  # every token belongs to one sequence
        self._outputs = np.ones(tokens, np.int8)  # every token takes part in the pooling
        self._sequence_ids = np.arange(sequences, dtype=np.int32)
        size = self._sequence_ids.itemsize
        self._id_addresses = self._sequence_ids.ctypes.data + size * np.arange(sequences, dtype=np.uintp)
        self._counted = np.arange(tokens, dtype=np.int32)
        self._sequence_pointers = np.zeros(tokens, np.uintp)  # of each token, to one of the ids above
        int32_pointer = ctypes.POINTER(ctypes.c_int32)
        self._structure = structure(
            n_tokens=0,
            token=self._tokens.ctypes.data_as(int32_pointer),
            pos=self._positions.ctypes.data_as(int32_pointer),
            n_seq_id=self._sequence_counts.ctypes.data_as(int32_pointer),
            seq_id=self._sequence_pointers.ctypes.data_as(ctypes.POINTER(int32_pointer)),
            logits=self._outputs.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )

    def fill(self, texts: Sequence[Tokens]) -> Any:
        """The structure for these texts, each a sequence of its own; good until the next call."""
        used = 0
        for place, tokens in enumerate(texts):
            end = used + len(tokens)
            self._tokens[used:end] = tokens
            self._positions[used:end] = self._counted[: len(tokens)]
            self._sequence_pointers[used:end] = self._id_addresses[place]
            used = end
        self._structure.n_tokens = used
        return self._structure
