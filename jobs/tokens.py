"""How many tokens a text costs, estimated without a tokenizer.

Passages and chunks must be sized before any model is loaded, and must not change when the model does, so this
counts the matches of a regular expression, about one per token of the default model's WordPiece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Letters that count as Latin. The tokenizer strips an accent, composed or combining, so it costs nothing.
_LATIN = "a-z\u00df-\u024f\u0300-\u036f\u1e00-\u1eff"

# Alphabets other than Latin. MiniLM spells them out (~0.9 tokens a letter) or gives up on the word (one
# unknown); a multilingual model needs ~0.3 a letter. Half a token is at most twice off for either.
_ALPHABETS = "\u0370-\u10ff\u1200-\u139f\u1780-\u18af\u1f00-\u1fff"

# What follows an emoji or an ideograph to modify it: joiners, variation selectors, keycaps, skin tones.
_MODIFIERS = "\u200d\ufe00-\ufe0f\u20e3\U0001f3fb-\U0001f3ff"

_TOKEN = re.compile(
    # A word of up to eight letters is one token; a longer one is rare and falls into pieces of about three.
    # A capital starts a new piece, which reads camelCase as words and base64 as the noise it is.
    rf"[A-Z]?[{_LATIN}]{{1,8}}+(?![{_LATIN}])"
    rf"|[A-Z]?[{_LATIN}]{{3}}"
    r"|[A-Z]{1,4}"
    r"|[0-9]{1,2}"
    # White space is free, but not without end: a passage must stay bounded in a file of blank lines.
    r"|\n{32}|[^\S\n]{32}"
    rf"|[{_ALPHABETS}]{{1,2}}"
    # Everything else is one each: punctuation, ideographs, kana, emoji, symbols, single jamo. A syllable is one more.
    rf"|\S[{_MODIFIERS}]{{0,3}}"
)
_SYLLABLE = re.compile("[\uac00-\ud7a3]")  # spelled out by the tokenizer: two or three letters, some of them joined


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text; the estimate is additive where a text is cut between words."""
    tokens = len(_TOKEN.findall(text))
    return tokens if text.isascii() else tokens + len(_SYLLABLE.findall(text))


def token_ends(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The offsets in text[start:end] where estimated tokens end, in order, and how many end there."""
    for match in _TOKEN.finditer(text, start, end):
        yield match.end(), 2 if _SYLLABLE.match(text, match.start()) else 1
