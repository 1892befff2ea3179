"""Which words of a query are names. Most words can be said in others; who asks for Melanie means Melanie."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise

from memoryd.store.folding import fold
from memoryd.store.search.day_words import MONTHS, WEEKDAYS
from memoryd.store.search.function_words import FUNCTION_WORDS

_WORD = re.compile(r"\w+")
_ENDS = frozenset(".?!:;…\n")  # a sentence, or what comes before another
_SHORTEST = 3  # letters: of fewer, it may as well be a part of something
# German gives every noun a capital letter. Words that no other language is likely to have in a question.
_GERMAN_WORDS = (
    "auf aus bei beim dem der des das ein eine einem einen einer für haben ich ist kann mein meine mit nach nicht "
    "sind und unser unsere vom von wann warum welche welcher welches wer wie wir wird wo zum zur"
)
_GERMAN = frozenset(_GERMAN_WORDS.split())
_DAYS = MONTHS.keys() | WEEKDAYS.keys()  # a note may write these as numbers


def names_of(query: str) -> list[str]:
    """Words with a capital letter where no sentence begins. Where each word has one, or each noun, capitals tell
    nothing; an acronym may be written out, and what has digits or capitals inside in another way."""
    words = list(_WORD.finditer(query))
    said = [word.group() for word in words]
    is_title = not any(word.islower() and word not in FUNCTION_WORDS for word in said)
    if is_title or not _GERMAN.isdisjoint(map(fold, said)):
        return []
    between = [query[before.end() : after.start()] for before, after in pairwise(words)]
    return [word for word, gap in zip(said[1:], between, strict=True) if _is_name(word) and _ENDS.isdisjoint(gap)]


def has_unknown_name(query: str, missing: Collection[str]) -> bool:
    """``missing``: the words of the query that stand nowhere, as they were typed."""
    return bool(missing) and any(name in missing for name in names_of(query))


def _is_name(word: str) -> bool:
    shaped = len(word) >= _SHORTEST and word.isalpha() and word[0].isupper() and word[1:].islower()
    return shaped and fold(word) not in _DAYS
