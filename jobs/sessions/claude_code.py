"""Claude Code: ``~/.claude/projects/<project>/<session>.jsonl``, a line a message or part of one."""

from __future__ import annotations

from memoryd.jobs.sessions.noise import strip_blocks
from memoryd.jobs.sessions.turn import UNKNOWN, Entry, Line, make_line, session_of, text_of

_TOLD = ("user", "assistant")
# Lines of the format that hold no speech.
_OTHERS = (
    "summary",
    "system",
    "file-history-snapshot",
    "progress",
    "queue-operation",
    "attachment",
    "last-prompt",
    "custom-title",
    "ai-title",
    "agent-name",
    "mode",
    "permission-mode",
)
# Written by the harness, not by anybody: caveats, summaries of what was said before, errors, the talk of sub-agents.
_NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
_TAGS = (
    "system-reminder",
    "command-name",
    "command-message",
    "command-args",
    "command-contents",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "task-notification",
)


def recognises(entry: Entry) -> bool:
    kind = entry.get("type")
    if kind in _TOLD:
        return isinstance(entry.get("message"), dict) and ("sessionId" in entry or "parentUuid" in entry)
    if kind == "summary":
        return "leafUuid" in entry
    return kind == "file-history-snapshot" or (kind in _OTHERS and "sessionId" in entry)


def read_entry(entry: Entry) -> Line:
    kind, name = entry.get("type"), session_of(entry.get("sessionId"))
    if kind in _OTHERS:
        return Line(session=name)
    message = entry.get("message")
    if kind not in _TOLD or not isinstance(message, dict):
        return UNKNOWN
    if any(entry.get(mark) for mark in _NOT_SAID):
        return Line(session=name)
    text = strip_blocks(text_of(message.get("content")), _TAGS)
    return make_line(message.get("role", kind), entry.get("timestamp"), text, name)
