"""Transcripts in the shapes that OpenClaw, Claude Code and Codex write, made by hand: nobody ever said this."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

BEGIN = datetime(2026, 11, 10, 9, 0, tzinfo=UTC)


def stamp(minute: int) -> str:
    return (BEGIN + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def jsonl(entries: Iterable[Any]) -> str:
    return "".join(f"{json.dumps(entry)}\n" for entry in entries)


# -- Claude Code --------------------------------------------------------------------------------------------------


def claude_entry(role: str, content: Any, minute: int = 0, session: str = "claude-1", **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/ana/boat",
        "sessionId": session,
        "version": "2.0.1",
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": f"00000000-0000-4000-8000-{minute:012}",
        "timestamp": stamp(minute),
    } | more


def claude_talk(*texts: str, session: str = "claude-1", first: int = 0) -> list[dict[str, Any]]:
    """User and assistant in turns."""
    return [
        claude_entry("user", text, first + place, session)
        if place % 2 == 0
        else claude_entry("assistant", [{"type": "text", "text": text}], first + place, session)
        for place, text in enumerate(texts)
    ]


def claude_tool(output: str, minute: int = 0) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "cat boat.log"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": output}
    return [claude_entry("assistant", [call], minute), claude_entry("user", [result], minute)]


# -- Codex --------------------------------------------------------------------------------------------------------


def codex_meta(session: str = "codex-1") -> dict[str, Any]:
    payload = {"id": session, "timestamp": stamp(0), "cwd": "/home/ana/boat", "originator": "codex_cli", "git": {}}
    return {"timestamp": stamp(0), "type": "session_meta", "payload": payload}


def codex_item(payload: dict[str, Any], minute: int = 0, kind: str = "response_item") -> dict[str, Any]:
    return {"timestamp": stamp(minute), "type": kind, "payload": payload}


def codex_message(role: str, text: str, minute: int = 0) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_item({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}, minute)


# -- OpenClaw -----------------------------------------------------------------------------------------------------


def openclaw_header(session: str = "openclaw-1") -> dict[str, Any]:
    return {
        "type": "session",
        "version": 3,
        "id": session,
        "timestamp": stamp(0),
        "cwd": "/home/ana/.openclaw/workspace",
    }


def openclaw_message(role: str, content: Any, minute: int = 0) -> dict[str, Any]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {
        "type": "message",
        "id": f"{minute:08x}",
        "parentId": None,
        "timestamp": stamp(minute),
        "message": {"role": role, "content": blocks, "timestamp": 1_770_364_143_489},
    }
