"""How much each phrase of a query weighs in this memory: rare ones much, common ones little.

Needed to say how much of a query a chunk answers, and to leave out the phrases that cost most and tell least: so a
query takes about as long in a large memory as in a small one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.store.search.noise import script_of
from memoryd.store.search.postings import Index


@dataclass(frozen=True, slots=True)
class Written:
    """The script that a query is written in, and the part of the memory that is in it too.

    In a memory that is Chinese for the most part, "what" is rare and still says nothing. So what an English question
    asks for is rare among the English chunks; a Latin name in a Chinese question is rare in the whole memory.
    """

    script: str
    part: float


ANYHOW = Written("", 1.0)

_LEAST = 1e-6  # FTS5's own floor, for phrases in half of all chunks or more
_K1 = 1.2  # FTS5's own
_GRAMMAR_LOSS = 0.7


@dataclass(frozen=True, slots=True)
class Phrase:
    """Quoted for FTS5, and how many of all chunks have it."""

    text: str
    having: int
    chunks: int  # of the whole memory
    peers: int  # of these, the ones that its rarity is measured among
    grammar: float = 0.0  # the part of it that is grammar rather than matter

    @property
    def weight(self) -> float:
        """Its inverse document frequency: even a phrase that most chunks have is worth something."""
        rarity = math.log(1 + (self.peers - self.having + 0.5) / (self.having + 0.5))
        return rarity * (1 - _GRAMMAR_LOSS * self.grammar)

    @property
    def correction(self) -> float:
        """From FTS5's score to ours. FTS5 takes what half of a memory says to be worth nothing: in a memory of two
        notes that is every word."""
        return self.weight / max(_LEAST, math.log((self.chunks - self.having + 0.5) / (self.having + 0.5)))


def count_phrases(index: Index, texts: Sequence[str], most: int, written: Written = ANYHOW) -> list[Phrase]:
    """How many chunks have each phrase. Those that more than ``most`` have are counted no further."""
    return [make_phrase(text, index.count(text, most + 1), index.chunks, written) for text in texts]


def make_phrase(text: str, having: int, chunks: int, written: Written = ANYHOW) -> Phrase:
    part = written.part if written.part < 1 and script_of(text) == written.script else 1.0
    return Phrase(text, having, chunks, max(having, round(chunks * part)), _grammar(text))


def _grammar(text: str) -> float:
    """The part of a phrase that is hiragana: Japanese writes what it talks about in other signs, and endings and
    particles in these. A question has so many of them that together they would outweigh what it is about."""
    if text.isascii():
        return 0.0
    letters = [letter for letter in text if letter.isalpha()]
    return sum("\u3041" <= letter <= "\u309f" for letter in letters) / len(letters) if letters else 0.0


def telling_phrases(phrases: Sequence[Phrase], most: int) -> list[Phrase]:
    """The rarest of them, as many as ``most`` places in chunks hold: what is common costs much and tells little.

    Those that no chunk has are among them. Where all others are common, all are.
    """
    kept: set[Phrase] = set()
    places = 0
    for phrase in sorted(phrases, key=lambda phrase: phrase.having):
        places += phrase.having
        if places > most and any(0 < each.having <= most for each in kept):
            break
        kept.add(phrase)
    return [phrase for phrase in phrases if phrase in kept]


def perfect_score(phrases: Sequence[Phrase]) -> float:
    """What a chunk nears that says nothing but these phrases, over and over."""
    return (_K1 + 1) * sum(phrase.weight for phrase in phrases)
