"""Codex: ``~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl``, each line an envelope with a payload.

Files of the first versions have the payloads without envelopes, after a line with the session's id.
"""

from __future__ import annotations

from memoryd.jobs.sessions.noise import strip_blocks
from memoryd.jobs.sessions.turn import NOISE, UNKNOWN, Entry, Line, make_line, text_of

_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_ITEMS = (  # what a response_item may be, besides a message
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
    "tool_search_output",
    "image_generation_call",
    "ghost_snapshot",
    "compaction",
    "compaction_summary",
)
_SPEECH = ("input_text", "output_text", "text")
# What the harness says in the user's name.
_TAGS = (
    "environment_context",
    "user_instructions",
    "permissions instructions",
    "collaboration_mode",
    "skills_instructions",
    "turn_aborted",
    "user_shell_command",
    "subagent_notification",
    "INSTRUCTIONS",
)
_INSTRUCTIONS = "# AGENTS.md instructions"


def recognises(entry: Entry) -> bool:
    if entry.get("type") in _ENVELOPES:
        return isinstance(entry.get("payload"), dict)
    return entry.get("record_type") == "state" or _is_header(entry) or _is_message(entry)


def read_entry(entry: Entry) -> Line:
    kind, payload = entry.get("type"), entry.get("payload")
    if kind in _ENVELOPES and isinstance(payload, dict):
        if kind == "session_meta":
            return make_line(None, None, "", payload.get("id"))
        return _read_item(payload, entry.get("timestamp")) if kind == "response_item" else NOISE
    if _is_header(entry):
        return make_line(None, None, "", entry.get("id"))
    return NOISE if entry.get("record_type") == "state" else _read_item(entry, entry.get("timestamp"))


def _read_item(item: Entry, at: object) -> Line:
    if item.get("type") != "message":
        return NOISE if item.get("type") in _ITEMS else UNKNOWN
    text = strip_blocks(text_of(item.get("content"), _SPEECH), _TAGS)
    if item.get("role") == "user" and text.lstrip().startswith(_INSTRUCTIONS):
        return NOISE
    return make_line(item.get("role"), at, text)


def _is_header(entry: Entry) -> bool:
    return "type" not in entry and isinstance(entry.get("id"), str) and "timestamp" in entry and "instructions" in entry


def _is_message(entry: Entry) -> bool:
    return entry.get("type") == "message" and "role" in entry and isinstance(entry.get("content"), list)
