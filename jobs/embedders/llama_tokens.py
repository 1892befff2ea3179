"""Text as the model's tokens, by llama.cpp's tokenizer."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from typing import Any, Final

import numpy as np

from memoryd.jobs.embedders.llama_batch import Tokens
from memoryd.jobs.llama_library import keeping_lock

_SHORT: Final = 512  # bytes, which take microseconds: no other thread is let in for these
_CHARACTERS_PER_TOKEN: Final = 32  # no text needs more of them to fill the context; the rest is not read
_HANGUL: Final = re.compile("[가-힣]+")


class LlamaTokenizer:
    """The vocabulary of one model, and how much of a text it can read."""

    def __init__(self, llama: Any, vocabulary: Any, *, context: int, strips_accents: bool) -> None:
        self._tokenize_long = llama.llama_tokenize
        self._tokenize_short = keeping_lock(llama.llama_tokenize)
        self._vocabulary = vocabulary
        self._context = context
        self._strips_accents = strips_accents

    def count(self, text: str) -> int:
        """The tokens of the whole text, without the model's own marks."""
        return len(self._tokenize(text, special=False))

    def encode(self, text: str) -> Tokens:
        """At least one token, at most the context, with the model's own marks."""
        tokens = self._tokenize(text[: self._context * _CHARACTERS_PER_TOKEN], special=True)
        if len(tokens) == 0:
            return np.zeros(1, np.int32)
        if len(tokens) <= self._context:
            return tokens
        # The last token is the model's end mark, where it has one.
        return np.append(tokens[: self._context - 1], tokens[-1])

    def _tokenize(self, text: str, *, special: bool) -> Tokens:
        if self._strips_accents:
            # llama.cpp's own decomposition keeps only the first letter of a Korean syllable.
            text = _HANGUL.sub(lambda syllables: unicodedata.normalize("NFD", syllables[0]), text)
        data = text.encode("utf-8", "replace")
        tokenize = self._tokenize_short if len(data) <= _SHORT else self._tokenize_long
        room = len(data) + 8
        while True:
            buffer = (ctypes.c_int32 * room)()
            # The last argument: a mark of the model that stands in a note ("[SEP]") is text there.
            count = tokenize(self._vocabulary, data, len(data), buffer, room, special, False)
            if count >= 0:
                tokens: Tokens = np.ctypeslib.as_array(buffer)[:count]
                return tokens
            room = -count
