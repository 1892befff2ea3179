"""OpenClaw: ``~/.openclaw/agents/<agent>/sessions/<session>.jsonl``, a header and then entries."""

from __future__ import annotations

from memoryd.jobs.sessions.noise import strip_blocks
from memoryd.jobs.sessions.turn import NOISE, UNKNOWN, Entry, Line, make_line, text_of

_OTHERS = (
    "model_change",
    "thinking_level_change",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "label",
    "leaf",
    "session_info",
)
_SILENT = ("NO_REPLY", "HEARTBEAT_OK")  # how the assistant says that it has nothing to say
_TAGS = ("system-reminder", "relevant-memories")


def recognises(entry: Entry) -> bool:
    if entry.get("type") == "session":
        return isinstance(entry.get("id"), str) and "timestamp" in entry
    message = entry.get("message")
    is_message = entry.get("type") == "message" and isinstance(message, dict) and "role" in message
    return is_message and "sessionId" not in entry


def read_entry(entry: Entry) -> Line:
    kind = entry.get("type")
    if kind == "session":
        return make_line(None, None, "", entry.get("id"))
    message = entry.get("message")
    if kind != "message" or not isinstance(message, dict):
        return NOISE if kind in _OTHERS else UNKNOWN
    text = strip_blocks(text_of(message.get("content")), _TAGS)
    if text.strip() in _SILENT:
        return NOISE
    return make_line(message.get("role"), entry.get("timestamp") or message.get("timestamp"), text)
