"""Which scripts a model reads, told from its vocabulary: of those it has whole words, of others single letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from memoryd.store.search.noise import script_of

_FEWEST = 100  # tokens of two letters or more; an English vocabulary has 8 Cyrillic ones


def scripts_read(vocabulary: Iterable[str]) -> frozenset[str]:
    words = Counter(script_of(token) for token in vocabulary if sum(map(str.isalpha, token)) > 1)
    return frozenset(script for script, count in words.items() if count >= _FEWEST)
