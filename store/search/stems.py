"""What words have in common that differ in their endings: "indexed", "indexing" and "index" are one.

For English only what is shown hangs on this, not what is found: the word index has a stemmer of its own. So it may be
simple, and where it is in doubt it takes two words for different. Words of other alphabets than the Latin one, most of
which inflect more, the index has as they are: they are found by how they begin.
"""

from __future__ import annotations

from functools import lru_cache

import regex

from memoryd.store.folding import is_unspaced
from memoryd.store.search.noise import LATIN, script_of

_INFLECTIONS = ("ings", "ing", "ed", "es", "s", "e")
_DERIVATIONS = ("ations", "ation", "ments", "ment", "ions", "ion", "ers", "er", "ly")
_SHORTEST, _SHORTEST_DERIVED = 3, 5  # letters that an ending must leave
_VOWELS = frozenset("aeiouy")
_LETTERS = regex.compile(r"[\p{L}\p{M}]+")
_SHORTEST_BEGINNING, _ENDING, _LONGEST_ENDING = 4, 2, 4  # letters of other alphabets


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A folded word without its endings; as it is if it is not English, nor of another alphabet."""
    if is_of_another_alphabet(word):
        return beginning(word)
    if not (word.isascii() and word.isalpha()):
        return word
    shorter = _without_ending(word)
    return word if shorter == word else stem(shorter)  # embeddings -> embedding -> embed


def is_form_of(word: str, key: str) -> bool:
    """Whether a folded word is one of those that have this stem."""
    if stem(word) == key:
        return True
    begins = word.startswith(key) and _SHORTEST_BEGINNING <= len(key) >= len(word) - _LONGEST_ENDING
    return begins and is_of_another_alphabet(key)


def is_of_another_alphabet(word: str) -> bool:
    """Written in letters and with spaces, and not Latin."""
    return (
        not word.isascii()
        and _LETTERS.fullmatch(word) is not None
        and not is_unspaced(word)
        and script_of(word) != LATIN
    )


def beginning(word: str) -> str:
    """Of a word of another alphabet, what its other cases and numbers begin with."""
    return word[: max(_SHORTEST_BEGINNING, len(word) - _ENDING)]


def _without_ending(word: str) -> str:
    for ending in ("ies", "ied"):
        if word.endswith(ending) and len(word) - 3 >= _SHORTEST:
            return f"{word[:-3]}y"
    for ending in _DERIVATIONS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_DERIVED:
            return _without_e(_undouble(word[: -len(ending)]))
    for ending in _INFLECTIONS:
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= _SHORTEST and not _VOWELS.isdisjoint(rest):
            if ending == "s" and rest[-1] in "sui":  # class, status, analysis
                return word
            return _undouble(rest) if ending in ("ing", "ings", "ed") else rest
    return word


def _undouble(rest: str) -> str:
    """planning -> plan, but billing -> bill."""
    return rest[:-1] if len(rest) > _SHORTEST and rest[-1] == rest[-2] and rest[-1] not in "aeioulsz" else rest


def _without_e(rest: str) -> str:
    return rest.removesuffix("e") if len(rest) > _SHORTEST else rest
