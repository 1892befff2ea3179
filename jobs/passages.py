"""Cutting a text into passages so that an edit changes only the passages around it.

From where one passage ends, the next ends at the break of the highest rank within reach; among equals, at the
one whose surroundings have the smallest hash. That choice depends on the text near the break and hardly on
where the passage began, so after an edit the old and the new passages soon end at the same place again, even
in a log without a single heading or blank line.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from memoryd.jobs.breaks import Rank
from memoryd.jobs.pieces import LARGEST, SMALLEST, Piece, read_pieces
from memoryd.store.model import Passage

_SCRAP = 16  # tokens: a passage may be this small rather than end in the middle of a sentence
_SURROUNDINGS = 32  # characters on each side of a break that decide between equals


def split_passages(text: str) -> tuple[Passage, ...]:
    """Split a text into passages of about 40 to 128 tokens that, joined, are the text."""
    passages: list[Passage] = []
    start, line = 0, 1
    for pieces in _group(text, read_pieces(text)):
        end = pieces[-1].end
        passages.append(
            Passage(
                ordinal=len(passages),
                text=text[start:end],
                heading=pieces[-1].heading,
                start_line=line,
                end_line=line + text.count("\n", start, end - 1),
                tokens=sum(piece.tokens for piece in pieces),
            )
        )
        line += text.count("\n", start, end)
        start = end
    return tuple(passages)


def _group(text: str, pieces: Iterator[Piece]) -> Iterator[list[Piece]]:
    """Group pieces into passages, reading no further ahead than the choice of the next end needs."""
    window: list[Piece] = []
    total = 0
    for piece in pieces:
        window.append(piece)
        total += piece.tokens
        is_end = piece.rank is Rank.SECTION
        while total > LARGEST + SMALLEST or (is_end and total > LARGEST):
            # Near the end of a section, leave enough for the last passage.
            count = _choose(text, window, total - SMALLEST if is_end else LARGEST)
            yield window[:count]
            total -= sum(taken.tokens for taken in window[:count])
            del window[:count]
        if is_end:
            yield window
            window, total = [], 0


def _choose(text: str, window: list[Piece], reach: int) -> int:
    """How many pieces of the window make the next passage."""
    sizes: list[int] = []
    size = 0
    for piece in window:
        size += piece.tokens
        if size > LARGEST:
            break
        sizes.append(size)
    whole = [i for i, piece in enumerate(window[: len(sizes)]) if piece.rank >= Rank.SENTENCE]
    for candidates in (
        [i for i in whole if SMALLEST <= sizes[i] <= reach],
        [i for i in whole if sizes[i] >= SMALLEST],
        [i for i in whole if sizes[i] >= _SCRAP],
        [i for i in range(len(sizes)) if SMALLEST <= sizes[i] <= reach],
        range(len(sizes)),
    ):
        if candidates:
            best = max(window[i].rank for i in candidates)
            equals = [i for i in candidates if window[i].rank is best]
            return 1 + min(equals, key=lambda i: _hash(text, window[i].end))
    return 1


def _hash(text: str, at: int) -> int:
    around = text[max(0, at - _SURROUNDINGS) : at + _SURROUNDINGS]
    return zlib.crc32(around.encode("utf-8", "surrogatepass"))
