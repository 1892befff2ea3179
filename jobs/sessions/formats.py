"""Which format a transcript is in, told by its lines and not by its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from memoryd.jobs.sessions import claude_code, codex, openclaw
from memoryd.jobs.sessions.turn import NOISE, UNKNOWN, Entry, Format, Line

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "openclaw": cast("Format", openclaw),
        "claude-code": cast("Format", claude_code),
        "codex": cast("Format", codex),
    }
)


def detect(entry: Entry) -> str:
    """The format that a line is unmistakably in; "" where it is not."""
    return next((name for name, each in FORMATS.items() if each.recognises(entry)), "")


def read_line(data: bytes, chosen: str) -> tuple[Line, str]:
    """What a line comes to in the chosen format, and the format: where none is chosen yet, the line may tell it."""
    if not data.strip():
        return NOISE, chosen
    try:
        entry = json.loads(data)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return UNKNOWN, chosen
    if not isinstance(entry, dict):
        return UNKNOWN, chosen
    chosen = chosen or detect(entry)
    return (FORMATS[chosen].read_entry(entry) if chosen else UNKNOWN), chosen
