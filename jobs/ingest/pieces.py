"""A file in pieces that a language model is asked about one by one.

Where a piece ends is told by the text around that place (``jobs/passages.py`` has the same idea): a section's end, a
paragraph's, among equals the one whose surroundings have the smallest hash. So an edit changes the pieces around it,
and no others are asked about again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from memoryd.jobs.breaks import Rank
from memoryd.jobs.pieces import read_pieces

_SURROUNDINGS = 32  # characters on each side of a break that decide between equals


@dataclass(frozen=True, slots=True)
class Piece:
    text: str  # exactly the characters of the file, those repeated from the piece before included
    heading: str  # breadcrumb of the headings above it
    start_line: int  # 1-based, of the repeated characters if there are any
    end_line: int  # inclusive
    own: int  # how many characters at the end are its own

    @property
    def hash(self) -> str:
        """Of what the model sees of it."""
        seen = f"{self.heading}\0{self.text}".encode(errors="surrogatepass")
        return blake2b(seen, digest_size=16).hexdigest()


class _Unit(NamedTuple):
    """What is not cut further: a line, a sentence, a part of a long one."""

    start: int
    end: int
    rank: Rank  # of the place after it
    heading: str


def split_pieces(text: str, chars: int = 800, overlap: int = 100) -> list[Piece]:
    """Pieces of at most ``chars`` characters, of which ``overlap`` may be the end of the piece before.

    Across a heading nothing is repeated. A piece without a letter or a digit is left out.
    """
    if not 0 <= overlap < chars:
        raise ValueError("pieces repeat less than they hold")
    units = list(_read_units(text, chars - overlap))
    pieces: list[Piece] = []
    first = 0
    while first < len(units):
        last = _choose_end(text, units, first, chars - overlap)
        begin = _begin_overlap(units, first, overlap)
        start, own, end = units[begin].start, units[first].start, units[last].end
        if any(character.isalnum() for character in text[own:end]):
            line = text.count("\n", 0, start) + 1
            last_line = line + text.count("\n", start, max(start, end - 1))
            pieces.append(Piece(text[start:end], units[first].heading, line, last_line, end - own))
        first = last + 1
    return pieces


def _read_units(text: str, most: int) -> Iterator[_Unit]:
    start = 0
    for piece in read_pieces(text):
        while piece.end - start > most:  # white space, or characters of many code points
            yield _Unit(start, start + most, Rank.CHARACTER, piece.heading)
            start += most
        if piece.end > start:
            yield _Unit(start, piece.end, piece.rank, piece.heading)
            start = piece.end


def _choose_end(text: str, units: list[_Unit], first: int, most: int) -> int:
    """The unit that ends the piece: the end of the text if in reach, else the best break in the second half."""
    start = units[first].start
    reach = first
    while reach + 1 < len(units) and units[reach + 1].end - start <= most:
        reach += 1
    if reach == len(units) - 1:
        return reach
    candidates = [i for i in range(first, reach + 1) if (units[i].end - start) * 2 >= most] or [reach]
    best = max(units[i].rank for i in candidates)
    return min((i for i in candidates if units[i].rank is best), key=lambda i: _hash(text, units[i].end))


def _begin_overlap(units: list[_Unit], first: int, overlap: int) -> int:
    begin = first
    while (
        begin > 0
        and units[begin - 1].rank is not Rank.SECTION
        and units[first].start - units[begin - 1].start <= overlap
    ):
        begin -= 1
    return begin


def _hash(text: str, at: int) -> int:
    around = text[max(0, at - _SURROUNDINGS) : at + _SURROUNDINGS]
    return zlib.crc32(around.encode("utf-8", "surrogatepass"))
