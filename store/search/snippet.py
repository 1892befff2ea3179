"""The part of a chunk that is shown: whole lines around the best passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import regex

from memoryd.store.folding import fold
from memoryd.store.search.answer import LegRank
from memoryd.store.search.query import KeywordQuery

ELLIPSIS = "…"
_CLUSTERS = regex.compile(r"\X")
_LOOK_BACK = 64  # characters; clusters are counted from there


def best_passage(passages: Sequence[str], first: int, legs: Mapping[str, LegRank], keywords: KeywordQuery) -> int:
    """Which of a chunk's passages shows best why it was found: the one that the leg that ranks it higher found."""
    vector = legs.get("vector")
    nearest = vector.passage - first if vector and vector.passage is not None else None
    if (
        nearest is not None
        and vector
        and all(vector.rank < place.rank for leg, place in legs.items() if leg != "vector")
    ):
        return nearest
    terms = (*keywords.terms, *keywords.short)
    matches = [sum(term in folded for term in terms) for folded in map(fold, passages)]
    most = max(matches)
    if nearest is not None and matches[nearest] == most:
        return nearest
    return matches.index(most)


def cut_snippet(text: str, best_start: int, best_end: int, limit: int) -> str:
    """At most ``limit`` characters of the text, around best_start..best_end, cut between lines or words."""
    text_length = len(text)
    if text_length <= limit:
        return text.strip("\n")
    room = max(0, limit - (best_end - best_start))
    start = max(0, min(best_start - room // 4, text_length - limit))
    end = min(text_length, start + limit)
    if start > 0:
        start = _after_break(text, start, min(best_start, end))
    if end < text_length:
        end = _before_break(text, end, max(start, min(best_end, end - limit // 4)))
    cut = text[start:end].strip()
    return f"{ELLIPSIS if start > 0 else ''}{cut}{ELLIPSIS if end < text_length else ''}"


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
