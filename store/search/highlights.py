"""Where a query's words stand in a text: what is marked in a snippet, and which passage shows most of them.

A word is found in any case, width and accent, and with other endings if it is English or of another alphabet; a word
that stands nowhere by itself is found inside others, as the trigram index finds it. What is joined ("no-cache",
"2026.4.10", "C++") is found as it was typed. Of scripts without spaces every pair of neighbours is found, and pairs
that overlap are one run. Function words count only in a query that has nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import regex

from memoryd.store.folding import UNSPACED, fold
from memoryd.store.search.function_words import FUNCTION_WORDS, function_words
from memoryd.store.search.stems import is_form_of, stem

_HANGUL = "\uac00-\ud7af"
_KANA_AND_SOUTH_EAST = "\u3040-\u30ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # a pair of these is not yet a word
_MOST_TERMS = 64  # of a pasted page its first words are enough
_SHORTEST_PART = 3

_WORD = regex.compile(rf"[[\p{{L}}\p{{N}}\p{{M}}]--[{UNSPACED}{_HANGUL}]]+", regex.V1)
_ASCII_WORD = re.compile(r"[a-z0-9]+")  # the same, of folded ASCII, in a third of the time
_RUN = regex.compile(rf"[{UNSPACED}{_HANGUL}]+")
_WEAK_RUN = regex.compile(rf"[{_KANA_AND_SOUTH_EAST}]+")
_JOINED = regex.compile(rf"[[\S]--[{UNSPACED}{_HANGUL}]]+", regex.V1)
_EDGES = regex.compile(r"^[^\p{L}\p{N}]+|[^\p{L}\p{N}\p{M}+#]+$|(?<=[\p{L}\p{N}\p{M}]{3})[+#]+$")
_PLAIN = regex.compile(r"[\p{L}\p{N}\p{M}]*")
_SYMBOLS = regex.compile(r"\p{So}[\p{M}\u200d\p{So}\p{Sk}]*")

_ACCENTS = regex.compile(r"[\u0300-\u036f]+")
# What folding leaves as many characters as it was, and what a reader sees as one.
_STEADY = r"[\x00-\x7f\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]"
_CLUSTERS = regex.compile(rf"{_STEADY}+(?![\p{{M}}\u200d\uff9e\uff9f])|\X")
_STEADY_RUN = regex.compile(rf"{_STEADY}+")


class Found(NamedTuple):
    """A term of the query in a folded text."""

    start: int
    end: int
    term: str


class Marker:
    """The words of one query."""

    def __init__(self, query: str) -> None:
        folded = plain(query)
        joined = [_EDGES.sub("", word) for word in _JOINED.findall(folded)]
        self._joined = _first(word for word in joined if not _PLAIN.fullmatch(word) and _says_something(word))
        self._symbols = _first(_SYMBOLS.findall(folded))
        self._runs = _first(_RUN.findall(folded))
        apart = set(joined)
        words = [  # and of what is joined, the parts that may be words
            word
            for word in _WORD.findall(folded)
            if word in apart or (len(word) >= _SHORTEST_PART and not word.isnumeric())
        ]
        functional = function_words(words)
        content = [word for word in words if word not in functional]
        if not (content or self._joined or self._symbols or self._runs):
            content = words or [word for word in folded.split() if word]
        self._words = _first(content)
        self._stems = {stem(word): word for word in reversed(self._words)}
        self._pairs = _first(run[at : at + 2] for run in self._runs for at in range(max(1, len(run) - 1)))

    def mark(self, text: str) -> tuple[tuple[int, int], ...]:
        """What was asked for, as [start, end) of the text: in order, apart from each other."""
        folded = _fold_in_place(text)
        found = [*self._standing(folded.text)]
        found.extend(self._inside(folded.text, {each.term for each in found}))
        spans: list[tuple[int, int]] = []
        for start, end in sorted((folded.starts[each.start], folded.ends[each.end - 1]) for each in found):
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((start, end))
        return tuple(spans)

    def find_terms(self, texts: Sequence[str]) -> list[list[str]]:
        """The terms that each of some texts has, as often as it has them."""
        folded = [plain(text) for text in texts]
        found = [[each.term for each in self._standing(text)] for text in folded]
        standing = {term for terms in found for term in terms}
        for text, terms in zip(folded, found, strict=True):
            terms.extend(each.term for each in self._inside(text, standing))
        return found

    def _standing(self, folded: str) -> Iterator[Found]:
        for literal in (*self._joined, *self._symbols):
            yield from _all(folded, literal)
        for key, word in self._stems.items():
            for start, token in _standing(folded, key):
                if token not in FUNCTION_WORDS or token in self._words:
                    yield Found(start, start + len(token), word)
        yield from self._pairs_in_runs(folded)

    def _pairs_in_runs(self, folded: str) -> Iterator[Found]:
        """Pairs where they make up a run that may be a word."""
        pairs = sorted((each for pair in self._pairs for each in _all(folded, pair)), key=lambda each: each.start)
        run: list[Found] = []
        for each in [*pairs, Found(len(folded) + 1, len(folded) + 1, "")]:
            if run and each.start >= run[-1].end:
                text = folded[run[0].start : run[-1].end]
                if len(text) > 2 or text in self._runs or not _WEAK_RUN.fullmatch(text):
                    yield from run
                run = []
            run.append(each)

    def _inside(self, folded: str, standing: set[str]) -> Iterator[Found]:
        """Words that stand nowhere by themselves."""
        for word in self._words:
            if word not in standing and (len(word) >= _SHORTEST_PART or not _PLAIN.fullmatch(word)):
                yield from _all(folded, word)


def _first(words: Iterator[str] | Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))[:_MOST_TERMS]


def _says_something(joined: str) -> bool:
    return any(len(part) > 1 and part not in FUNCTION_WORDS for part in _WORD.findall(joined)) or joined[-1:] in "+#"


def _all(text: str, term: str) -> Iterator[Found]:
    return (Found(start, end, term) for start, end in _occurrences(text, term))


def _occurrences(text: str, part: str) -> Iterator[tuple[int, int]]:
    at = text.find(part)
    while at >= 0:
        yield at, at + len(part)
        at = text.find(part, at + 1)


def begins(key: str) -> str:
    """How every word of a stem begins."""
    return key.removesuffix("y")


def stands_in(folded: str, key: str) -> bool:
    """Whether a text has a word of this stem."""
    return _find_word(folded, key) is not None


def _standing(folded: str, key: str) -> Iterator[tuple[int, str]]:
    """The words of a stem, and where they begin."""
    found = _find_word(folded, key)
    while found:
        yield found
        found = _find_word(folded, key, found[0] + 1)


def _find_word(folded: str, key: str, start: int = 0) -> tuple[int, str] | None:
    """The first word of a stem, and where it begins."""
    beginning = begins(key)
    word = _ASCII_WORD if folded.isascii() else _WORD
    # Looking for the beginning is much quicker than taking the text apart.
    at = folded.find(beginning, start)
    while at >= 0:
        match = word.match(folded, at)
        if match and not (at > 0 and word.match(folded, at - 1)) and is_form_of(match[0], key):
            return at, match[0]
        at = folded.find(beginning, at + 1)
    return None


def plain(text: str) -> str:
    """Folded, and without accents."""
    folded = fold(text)
    if folded.isascii():
        return folded
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", folded)))


@dataclass(frozen=True, slots=True)
class _Folded:
    text: str
    starts: Sequence[int]  # of each of its characters, where what it was made from begins
    ends: Sequence[int]


def _fold_in_place(text: str) -> _Folded:
    if text.isascii():
        return _Folded(plain(text), range(len(text)), range(1, len(text) + 1))
    folded: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for cluster in _CLUSTERS.finditer(text):
        start, end = cluster.span()
        letters = plain(cluster[0])
        folded.append(letters)
        if _STEADY_RUN.fullmatch(cluster[0]):
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
        else:
            starts.extend([start] * len(letters))
            ends.extend([end] * len(letters))
    return _Folded("".join(folded), starts, ends)
