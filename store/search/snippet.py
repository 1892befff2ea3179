"""The part of a chunk that is shown: whole lines around the best passage."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import regex

from memoryd.store.search.answer import LegRank, Lines
from memoryd.store.search.highlights import Marker

ELLIPSIS = "…"
_CLUSTERS = regex.compile(r"\X")
_LOOK_BACK = 64  # characters; clusters are counted from there


def best_passage(passages: Sequence[str], first: int, legs: Mapping[str, LegRank], marker: Marker) -> int:
    """Which of a chunk's passages shows best why it was found; ``first`` is the ordinal of the first of them.

    Where the vector leg ranks the chunk above every keyword leg, the passage nearest in meaning. Else the one that
    has most of the query's words, a word counting the more the fewer of the passages have it. Of equals the one
    that a leg names, then the one that has the words most often, then the first.
    """
    vector = legs.get("vector")
    others = [place.rank for leg, place in legs.items() if leg != "vector"]
    if vector and vector.passage is not None and all(vector.rank < rank for rank in others):
        return vector.passage - first
    named = {place.passage for place in legs.values()}
    found = marker.find_terms(passages)
    holders = Counter(term for terms in found for term in set(terms))
    worth = {term: math.log(1 + len(passages) / count) for term, count in holders.items()}

    def merit(index: int) -> tuple[float, bool, int]:
        terms = found[index]
        return sum(worth[term] for term in sorted(set(terms))), first + index in named, len(terms)

    return max(range(len(passages)), key=merit)


def lines_of(passage: str, start_line: int) -> Lines:
    """The lines that a passage stands in, less the blank ones around it; ``start_line`` is that of its first
    character."""
    words = passage.strip()
    if not words:
        return Lines(start_line, start_line + passage.count("\n", 0, -1))
    before = passage.count("\n", 0, passage.index(words))
    return Lines(start_line + before, start_line + before + words.count("\n"))


def cut_snippet(text: str, best_start: int, best_end: int, limit: int) -> tuple[str, int]:
    """At most ``limit`` characters of the text, around best_start..best_end, cut between lines or words.

    Also where in the text they begin. But for a mark at either end, they are exactly the text's.
    """
    text_length = len(text)
    if text_length <= limit:
        return text.strip("\n"), text_length - len(text.lstrip("\n"))
    room = max(0, limit - (best_end - best_start))
    start = max(0, min(best_start - room // 4, text_length - limit))
    end = min(text_length, start + limit)
    if start > 0:
        start = _after_break(text, start, min(best_start, end))
    if end < text_length:
        end = _before_break(text, end, max(start, min(best_end, end - limit // 4)))
    cut = text[start:end].strip()
    shown = f"{ELLIPSIS if start > 0 else ''}{cut}{ELLIPSIS if end < text_length else ''}"
    return shown, end - len(text[start:end].lstrip())


def mark_snippet(snippet: str, marker: Marker) -> tuple[tuple[int, int], ...]:
    """Where the query's words stand in it: not in the marks of a cut, without which most snippets are ASCII and looked
    through in a third of the time."""
    words = snippet.lstrip(ELLIPSIS)
    before = len(snippet) - len(words)
    return tuple((before + start, before + end) for start, end in marker.mark(words.rstrip(ELLIPSIS)))


def _after_break(text: str, position: int, latest: int) -> int:
    for mark in ("\n", " "):
        found = text.find(mark, position, latest)
        if found >= 0:
            return found + 1
    torn = _cluster_at(text, position)
    return torn[1] if torn[0] < position and torn[1] <= latest else position


def _before_break(text: str, position: int, earliest: int) -> int:
    for mark in ("\n", " "):
        found = text.rfind(mark, earliest, position)
        if found > 0:
            return found
    torn = _cluster_at(text, position)
    return torn[0] if torn[0] > earliest else position


def _cluster_at(text: str, position: int) -> tuple[int, int]:
    """Start and end of the character, as a reader sees it, that stands here: an emoji, a letter with its accents."""
    for cluster in _CLUSTERS.finditer(text, max(0, position - _LOOK_BACK)):
        if cluster.end() > position:
            return cluster.span()
    return position, position
