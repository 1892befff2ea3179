"""A turn as the text that is indexed: who spoke, when, and what, indented.

Indented by four, for then no line of what was said is a heading, a rule or a fence to the reader of markdown, and
nobody can write a line that looks like the beginning of another's turn.
"""

from __future__ import annotations

from memoryd.jobs.sessions.turn import Turn

_INDENT = "    "


def render_turn(turn: Turn, text: str) -> str:
    """Lines with their ends, a blank one last; the time is UTC."""
    when = f" ({turn.at:%Y-%m-%d %H:%M})" if turn.at else ""
    lines = (f"{_INDENT}{line}" if line.strip() else "" for line in text.split("\n"))
    return "\n".join([f"{turn.role}{when}:", *lines, "", ""])
