"""Words that say nothing about a note, and when that must be known beforehand.

Rarity is what makes a word count, and it is measured in the memory itself. In a small one "why" and "did" are rare
by chance and outweigh the word that matters, so English function words are left out of its queries. In a larger
memory they look as common as they are and do no harm.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

_FUNCTION_WORDS = (
    "a about above after again all also am an and any are as at be because been before being below between both but "
    "by can could did do does doing down during each few for from further had has have having he her here hers him "
    "his how i if in into is it its itself just many me more most much my no nor not of off on once only or other our "
    "out over own same she should so some such than that the their them then there these they this those through to "
    "too under until up very was we were what when where which while who whom why will with would you your"
)
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
_SMALL_MEMORY = 200  # chunks


def chance_words(sql: sqlite3.Connection, words: Sequence[str]) -> set[str]:
    """Of a query's words, those that count for nothing in this memory. Never all of them."""
    functional = FUNCTION_WORDS.intersection(words)
    if not functional or len(functional) == len(words):
        return set()
    (chunks,) = sql.execute("SELECT count(*) FROM (SELECT 1 FROM chunks LIMIT ?)", (_SMALL_MEMORY,)).fetchone()
    return set(functional) if chunks < _SMALL_MEMORY else set()
