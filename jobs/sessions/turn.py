"""What a line of a transcript comes to: a turn, or nothing that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

Entry = Mapping[str, Any]  # a line, parsed
ROLES = ("user", "assistant")
_LONGEST_ID = 100  # characters


@dataclass(frozen=True, slots=True)
class Turn:
    role: str  # one of ROLES
    at: datetime | None  # UTC
    text: str  # as it stands in the transcript


class Line(NamedTuple):
    turn: Turn | None = None
    session: str = ""  # the session's id, where the line names it
    known: bool = True  # False: not a line of this format, or none at all


UNKNOWN = Line(known=False)
NOISE = Line()  # a line of the format that says nothing to remember: a tool's call or result, a change of the model


class Format(Protocol):
    """One harness' transcripts, as a module: none of its functions raises, whatever the line holds."""

    def recognises(self, entry: Entry) -> bool:
        """Whether the line is unmistakably one of this format."""

    def read_entry(self, entry: Entry) -> Line: ...


def make_line(role: object, at: object, text: str, session: object = "") -> Line:
    """The line of a turn; of noise where nobody speaks or nothing is said."""
    name = session_of(session)
    if role not in ROLES or not text.strip():
        return Line(session=name)
    return Line(Turn(str(role), read_time(at), text), name)


def session_of(value: object) -> str:
    """A session's id; "" for what cannot be one."""
    fits = isinstance(value, str) and 0 < len(value) <= _LONGEST_ID and value.isprintable()
    return str(value) if fits else ""


def read_time(value: object) -> datetime | None:
    """ISO 8601, or milliseconds since 1970; without a zone, UTC."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def text_of(content: object, kinds: tuple[str, ...] = ("text",)) -> str:
    """What is said in a message's content: a text, or blocks of which only those of these kinds are speech."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [
        block["text"]
        for block in content
        if isinstance(block, dict) and block.get("type") in kinds and isinstance(block.get("text"), str)
    ]
    return "\n\n".join(text for text in texts if text.strip())
