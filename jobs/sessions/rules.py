"""How transcripts are cut."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SegmentRules:
    """A segment is full when it has so many turns, or characters, or bytes of the file: whatever comes first."""

    max_turn_chars: int = 8000  # what is kept of a turn
    turns: int = 40
    chars: int = 32_768
    bytes: int = 262_144
