"""Texts on their way into requests: made fit to be sent, and put into batches that a provider takes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from memoryd.jobs.tokens import estimate_tokens

_NOTHING: Final = "."  # services refuse a text of nothing


def fit_text(text: str, most_bytes: int) -> str:
    """Without what cannot be sent (lone halves of characters, NUL), not empty, and at most so many bytes long."""
    data = text.replace("\0", " ").encode("utf-8", "replace")[:most_bytes]
    fitted = data.decode("utf-8", "ignore")
    return fitted if fitted.strip() else _NOTHING


def split_batches(texts: Sequence[str], most_texts: int, most_tokens: int, most_bytes: int) -> Iterator[range]:
    """Runs of places in ``texts`` that one request takes; a text that is too large by itself goes alone."""
    first, tokens, size = 0, 0, 0
    for place, text in enumerate(texts):
        cost, length = estimate_tokens(text), len(text.encode())
        is_full = place - first >= most_texts or tokens + cost > most_tokens or size + length > most_bytes
        if place > first and is_full:
            yield range(first, place)
            first, tokens, size = place, 0, 0
        tokens += cost
        size += length
    if first < len(texts):
        yield range(first, len(texts))
