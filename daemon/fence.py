"""Text of notes between two lines that no note can write: the agent that reads it knows where data begins and ends.

Both lines carry a nonce that is drawn for each answer, after the notes were read, so a note that imitates a fence
cannot close the one around it. The first line says where the text is from, as JSON on one line of ASCII, so that the
name of a file cannot break out of it either.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NONCE_BYTES = 16


@dataclass(frozen=True, slots=True)
class Fence:
    """One answer's fence."""

    nonce: str

    @property
    def begin(self) -> str:
        """What the first line begins with; the origin follows."""
        return f"<<<memoryd {self.nonce}"

    @property
    def end(self) -> str:
        """The whole last line."""
        return f">>>memoryd {self.nonce}"

    def open(self, origin: Mapping[str, Any]) -> str:
        """The first line, with its newline."""
        return f"{self.begin} {json.dumps(origin, ensure_ascii=True, separators=(',', ':'))}\n"

    def wrap(self, text: str, origin: Mapping[str, Any]) -> str:
        return f"{self.open(origin)}{text}\n{self.end}"

    def describe(self) -> dict[str, str]:
        """As it stands in the answer, for the reader's instructions."""
        return {"nonce": self.nonce, "begin": self.begin, "end": self.end}


def make_fence(texts: Iterable[str]) -> Fence:
    """A fence that none of these texts holds."""
    texts = tuple(texts)
    while True:
        nonce = secrets.token_hex(NONCE_BYTES)
        if not any(nonce in text for text in texts):
            return Fence(nonce)


def fence_hits(answer: dict[str, Any]) -> dict[str, Any]:
    """A search's answer with the text of notes (``snippet``, ``heading``) fenced; highlights still fit the snippet."""
    hits = answer["results"]
    fence = make_fence(hit[field] for hit in hits for field in ("snippet", "heading"))
    return {**answer, "results": [_fence_hit(hit, fence) for hit in hits], "fence": fence.describe()}


def fence_document(document: dict[str, Any]) -> dict[str, Any]:
    """The answer of ``get`` with its ``text`` fenced."""
    fence = make_fence([document["text"]])
    return {**document, "text": fence.wrap(document["text"], _origin(document)), "fence": fence.describe()}


def _fence_hit(hit: dict[str, Any], fence: Fence) -> dict[str, Any]:
    origin = _origin(hit)
    moved = len(fence.open(origin))
    return {
        **hit,
        "snippet": fence.wrap(hit["snippet"], origin),
        "heading": hit["heading"] and fence.wrap(hit["heading"], origin),
        "highlights": [[start + moved, end + moved] for start, end in hit["highlights"]],
    }


def _origin(place: Mapping[str, Any]) -> dict[str, Any]:
    return {name: place[name] for name in ("workspace", "path", "start_line", "end_line")}
