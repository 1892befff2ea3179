"""From what the user typed to what FTS5 is asked: every term quoted, OR-joined, never an FTS5 operator.

The word index matches words, in English by their stems, and pairs of characters where words are not spaced. The
trigram index matches substrings of three characters or more; runs of scripts written without spaces become
overlapping trigrams, so that words which are present but not adjacent are found. Terms that are too short for it
are kept apart, for a scan.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass

from memoryd.store.folding import UNSPACED, bare, fold, is_unspaced, split_words
from memoryd.store.search.function_words import FUNCTION_WORDS
from memoryd.store.search.stems import beginning, is_of_another_alphabet

_MIN_TERM = 3
_MAX_TERMS = 64  # a pasted page is a query too, but its first words are enough to find it
_MAX_CHARS = 128  # of one term: enough of a pasted token to find it

_WORDS = re.compile(rf"[{UNSPACED}]+|[^\s{UNSPACED}]+")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]+")
# Between kana an ideograph is a word of its own, and its pairs are that word and a particle.
_IDEOGRAPH = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LONE_IDEOGRAPH = re.compile(rf"(?<![{_IDEOGRAPH}])[{_IDEOGRAPH}](?![{_IDEOGRAPH}])")
_LAST_SIGNS = re.compile(r"[+#]*")
# What English draws together: "Melanie's" asks for Melanie, and "doesn" is no word.
_END = r"(?=[^\w\s]*(?:\s|$))"  # of what is typed without a space
_DRAWN_TOGETHER = tuple(
    (re.compile(rf"{together}{_END}", re.IGNORECASE), word)
    for together, word in (
        (r"(?<!\S)won['’]t", ""),
        (r"\b(can)['’]t", r"\1"),
        (r"\b(do|does|did|is|are|was|were|have|has|had|could|would|should|must|need)n['’]t", r"\1"),
        (r"(\w)['’](?:s|ve|re|ll|d|m)", r"\1"),
    )
)


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    terms: tuple[str, ...]  # folded, each of three characters or more
    short: tuple[str, ...]  # folded, of one or two characters
    words: tuple[str, ...]  # as the word index has them

    def without(self, words: Container[str]) -> KeywordQuery:
        """The query less some of its words."""
        return KeywordQuery(
            *(tuple(t for t in kept if bare(t) not in words) for kept in (self.terms, self.short, self.words))
        )

    @property
    def phrases(self) -> tuple[str, ...]:
        """The terms as the trigram index is asked for them: each as its trigrams, all of them. Empty where none is long
        enough."""
        return tuple(" ".join(map(_quoted, dict.fromkeys(_ngrams(term)))) for term in self.terms)

    @property
    def word_phrases(self) -> tuple[str, ...]:
        """The words as the word index is asked: a lone character of an unspaced script also as the first of a pair, and
        a word that may be inflected by how it begins."""
        return tuple(map(_word_phrase, self.words))


def _word_phrase(word: str) -> str:
    if is_unspaced(word):
        return f"{_quoted(word)} *" if len(word) == 1 else _quoted(word)
    if is_of_another_alphabet(word) and (begun := beginning(word)) != word:
        return f"{_quoted(begun)} *"
    return _quoted(word)


def _quoted(term: str) -> str:
    return f'"{term.replace(chr(34), chr(34) * 2)}"'


def any_of(terms: Iterable[str]) -> str:
    """What FTS5 is asked for chunks that have one of the terms."""
    return " OR ".join(map(_quoted, terms))


def build_query(text: str) -> KeywordQuery:
    terms: dict[str, None] = {}  # a set that keeps its order
    short: dict[str, None] = {}
    text = _draw_apart(text)
    for word in _WORDS.findall(fold(text)):
        pieces = _ngrams(word) if _UNSPACED_RUN.fullmatch(word) else [_bare(word)[:_MAX_CHARS]]
        for piece in pieces:
            (terms if len(piece) >= _MIN_TERM else short)[piece] = None
    words = dict.fromkeys(word[:_MAX_CHARS] for word in (*split_words(text), *_LONE_IDEOGRAPH.findall(fold(text))))
    return KeywordQuery(tuple(terms)[:_MAX_TERMS], tuple(short)[:_MAX_TERMS], tuple(words)[:_MAX_TERMS])


def _draw_apart(text: str) -> str:
    """As it is, if it has nothing but such words."""
    if "'" not in text and "’" not in text:
        return text
    apart = text
    for together, word in _DRAWN_TOGETHER:
        apart = together.sub(word, apart)
    return text if FUNCTION_WORDS.issuperset(split_words(apart)) else apart


def _ngrams(run: str) -> list[str]:
    if len(run) <= _MIN_TERM:
        return [run]
    return [run[start : start + _MIN_TERM] for start in range(len(run) - _MIN_TERM + 1)]


def _bare(word: str) -> str:
    """Without the punctuation around it; with it where there is nothing else, and in "C++" and "F#"."""
    start, end = 0, len(word)
    while start < end and not _is_of_word(word[start]):
        start += 1
    while end > start and not _is_of_word(word[end - 1]):
        end -= 1
    if start == end:
        return word
    if end - start < _MIN_TERM and (signs := _LAST_SIGNS.match(word, end)):
        end = signs.end()
    return word[start:end]


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"
