"""Words that say nothing about a note, and when that must be known beforehand.

Rarity is what makes a word count, and it is measured in the memory itself. In a small one "why" and "did" are rare
by chance and outweigh the word that matters, so function words are left out of its queries. In a larger
memory they look as common as they are and do no harm.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from memoryd.store.search.function_words import function_words

_SMALL_MEMORY = 200  # chunks


def chance_words(sql: sqlite3.Connection, words: Sequence[str]) -> set[str]:
    """Of a query's words, those that count for nothing in this memory. Never all of them."""
    functional = function_words(words)
    if not functional or len(functional) == len(words):
        return set()
    (chunks,) = sql.execute("SELECT count(*) FROM (SELECT 1 FROM chunks LIMIT ?)", (_SMALL_MEMORY,)).fetchone()
    return set(functional) if chunks < _SMALL_MEMORY else set()
