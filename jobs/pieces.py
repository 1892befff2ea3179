"""A text in pieces so small that passages can be put together from them.

A line that is short is one piece. A longer one falls into its sentences, a long sentence into its clauses,
and so on down to characters, where a cut never falls inside what a reader sees as one character.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import regex

from memoryd.jobs.breaks import Break, Rank, read_breaks
from memoryd.jobs.markdown import Kind
from memoryd.jobs.tokens import estimate_tokens, token_ends

LARGEST = 128  # tokens: no piece, and no passage, has more
# Tokens: what a passage has at least, if its section has as much. With a third of the largest, pieces of
# equal size always leave a choice. With a half, turns of 45 tokens each would pair up in one way only, and
# one turn inserted at the top would re-pair them all.
SMALLEST = LARGEST // 3

# Tokens: a line, sentence, clause or word with more is cut further. Pieces up to this size always leave a
# break between the smallest and the largest passage.
_GRAIN = LARGEST - SMALLEST

# The cuts of each level, best first. None falls before a mark that belongs to the character before it.
_MARK = r"[\p{GCB=EX}\p{GCB=ZWJ}\p{GCB=SM}]"
_CLOSERS = r"[\"'”’»)\]}）」』】》〉］｝*_]"
_LEVELS = (
    (
        Rank.SENTENCE,
        regex.compile(
            rf"[.!?…؟۔।॥։።။។]++{_CLOSERS}*+\s++(?!{_MARK})"
            rf"|[。！？；｡…]++{_CLOSERS}*+\s*+(?![。！？；｡…]|{_MARK})"
        ),
    ),
    (Rank.CLAUSE, regex.compile(rf"[,;:،؛–—]\s++(?!{_MARK})|[，、：；︰]\s*+(?!{_MARK})")),
    (Rank.WORD, regex.compile(rf"\s++(?!{_MARK})")),
)

_CLUSTER = regex.compile(r"\X")
_LONGEST_CLUSTER = 32  # code points: a longer one is not a character that anyone reads, and may be cut
_WINDOW = 8 * _LONGEST_CLUSTER


class Piece(NamedTuple):
    """A stretch of text that begins where the piece before it ends."""

    end: int  # offset in the text
    tokens: int  # estimated
    rank: Rank  # of the break after it
    heading: str  # breadcrumb in force


def read_pieces(text: str) -> Iterator[Piece]:
    """Yield the pieces of a text in order; together they are the whole text."""
    last: Piece | None = None
    begun = False  # whether anything but blank lines was read
    large = False  # whether the lines before the next break are code that needs several passages
    for found in read_breaks(text):
        tokens = estimate_tokens(text[found.span.start : found.span.end])
        if found.span.kind is not Kind.BLANK:
            large = found.span.kind is Kind.CODE and tokens > LARGEST
            # Such code shares its passages with nothing else, so that a chunk can hold it whole.
            if large and begun and last is not None:
                last = last._replace(rank=Rank.SECTION)
            begun = True
        rank = Rank.SECTION if large and found.rank is not Rank.HELD else found.rank
        for piece in _cut_span(text, found, tokens, rank):
            if last is not None:
                yield last
            last = piece
    if last is not None:
        yield last


def _cut_span(text: str, found: Break, tokens: int, rank: Rank) -> Iterator[Piece]:
    kind, start, end = found.span.kind, found.span.start, found.span.end
    if tokens <= _GRAIN or (kind is Kind.CODE and tokens <= LARGEST):
        yield Piece(end, tokens, rank, found.heading)
    elif kind is Kind.CODE or kind is Kind.FRONT_MATTER:
        yield from _cut_lines(text, start, end, rank, found.heading)
    else:
        yield from _cut(text, start, end, rank, found.heading)


def _cut_lines(text: str, start: int, end: int, rank: Rank, heading: str) -> Iterator[Piece]:
    """Cut code at its lines, but neither after the opening fence nor before the closing one."""
    held = Rank.HELD
    while start < end:
        line_end = text.find("\n", start, end) + 1 or end
        last_line = text.find("\n", line_end, end) + 1 in (0, end)
        between = Rank.HELD if last_line or held is Rank.HELD else Rank.ROW
        yield from _cut(text, start, line_end, rank if line_end == end else between, heading)
        held = Rank.ROW
        start = line_end


def _cut(text: str, start: int, end: int, rank: Rank, heading: str, level: int = 0) -> Iterator[Piece]:
    tokens = estimate_tokens(text[start:end])
    if tokens <= _GRAIN:
        yield Piece(end, tokens, rank, heading)
    elif level == len(_LEVELS):
        yield from _cut_characters(text, start, end, rank, heading)
    else:
        between, pattern = _LEVELS[level]
        for match in pattern.finditer(text, start, end):
            if match.end() < end:
                yield from _cut(text, start, match.end(), between, heading, level + 1)
                start = match.end()
        yield from _cut(text, start, end, rank, heading, level + 1)


def _cut_characters(text: str, start: int, end: int, rank: Rank, heading: str) -> Iterator[Piece]:
    """Cut wherever an estimated token and a character end together."""
    characters = _character_ends(text, start, end)
    character_end = start
    # In ASCII every character is one code point, but for a carriage return with its line feed.
    is_plain = text[start:end].isascii() and text.find("\r", start, end) < 0
    tokens = 0
    for token_end, ending in token_ends(text, start, end):
        tokens += ending
        while character_end < token_end:
            character_end = token_end if is_plain else next(characters)
        if token_end == character_end < end:
            yield Piece(token_end, tokens, Rank.CHARACTER, heading)
            tokens = 0
    yield Piece(end, tokens, rank, heading)


def _character_ends(text: str, start: int, end: int) -> Iterator[int]:
    """The offsets where a grapheme cluster ends, and all of those inside a cluster that is too long."""
    while start < end:
        # Window by window, because \X looks back over a whole run of regional indicators at each of them.
        window = text[start : min(end, start + _WINDOW)]
        base = start
        for cluster in _CLUSTER.finditer(window):
            first, last = cluster.span()
            if last == len(window) and base + last < end and first > 0:
                break  # it may go on in the next window
            yield from range(base + first + _LONGEST_CLUSTER, base + last)
            yield base + last
            start = base + last
