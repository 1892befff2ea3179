"""Whether a statement is about the text at all.

A weak model repeats the example that it was given, or makes things up. A fact keeps most of the text's own words: of
one that does not, nobody could say where it comes from.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from memoryd.jobs.ingest.answer import Parsed
from memoryd.jobs.ingest.pieces import Piece
from memoryd.store.folding import fold
from memoryd.store.search.function_words import FUNCTION_WORDS

_LEAST_SHARE: Final = 0.5  # of a statement's words that the text has
_STEM: Final = 4  # letters by which two forms of a word are one
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def keep_grounded(parsed: Parsed, piece: Piece) -> Parsed:
    """Without the statements that the piece does not support; they count as bad."""
    known = _marks(f"{piece.heading}\n{piece.text}")
    kept = tuple(each for each in parsed.statements if _share(each.text, known) >= _LEAST_SHARE)
    return replace(parsed, statements=kept, bad=parsed.bad + len(parsed.statements) - len(kept))


def _share(text: str, known: frozenset[str]) -> float:
    marks = _marks(text)
    return len(marks & known) / len(marks) if marks else 0.0


def _marks(text: str) -> frozenset[str]:
    """The words that say something, by their beginnings; of a script without spaces, every pair of characters."""
    marks: set[str] = set()
    for word in _WORD.findall(fold(text)):
        if _UNSPACED.search(word):
            marks.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif (len(word) > 2 or word.isdigit()) and word not in FUNCTION_WORDS:
            marks.add(word if any(char.isdigit() for char in word) else word[:_STEM])
    return frozenset(marks)
