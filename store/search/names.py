"""Which words of a query are names. Most words can be said in others; who asks for Melanie means Melanie."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from memoryd.store.folding import fold
from memoryd.store.search.common import FUNCTION_WORDS
from memoryd.store.search.day_words import MONTHS, WEEKDAYS

_WORD = re.compile(r"\w+")
_BEGINS = re.compile(r"(?:^|[.?!:;…\n])\W*$")  # what stands before the first word of a sentence
_SHORTEST = 3  # letters: of fewer, it may as well be a part of something
_DAYS = MONTHS.keys() | WEEKDAYS.keys()  # a note may write these as numbers


def names_of(query: str) -> Iterator[str]:
    """Words with a capital letter where no sentence begins. Where each word has one, capitals tell nothing; an acronym
    may be written out, and what has digits in another way."""
    words = list(_WORD.finditer(query))
    if any(word.islower() and word not in FUNCTION_WORDS for word in map(re.Match.group, words)):
        yield from (word.group() for word in words if _is_name(word.group(), query[: word.start()]))


def has_unknown_name(query: str, missing: Collection[str]) -> bool:
    """``missing``: the words of the query that stand nowhere, as they were typed."""
    return bool(missing) and any(name in missing for name in names_of(query))


def _is_name(word: str, before: str) -> bool:
    shaped = len(word) >= _SHORTEST and word.isalpha() and word[0].isupper() and not word.isupper()
    return shaped and fold(word) not in _DAYS and not _BEGINS.search(before)
