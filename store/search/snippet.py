"""The part of a chunk that is shown: whole lines around the best passage."""

from __future__ import annotations

ELLIPSIS = "…"


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
        end = _before_break(text, end, max(start, min(best_end, end - 1)))
    cut = text[start:end].strip()
    return f"{ELLIPSIS if start > 0 else ''}{cut}{ELLIPSIS if end < text_length else ''}"


def _after_break(text: str, position: int, latest: int) -> int:
    for mark in ("\n", " "):
        found = text.find(mark, position, latest)
        if found >= 0:
            return found + 1
    return position


def _before_break(text: str, position: int, earliest: int) -> int:
    for mark in ("\n", " "):
        found = text.rfind(mark, earliest, position)
        if found > 0:
            return found
    return position
