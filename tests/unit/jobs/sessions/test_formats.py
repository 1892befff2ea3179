"""Each format's lines: what is a turn, what is left out, what is not understood."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.sessions.formats import FORMATS, detect, read_line
from memoryd.jobs.sessions.turn import Line
from tests.support import transcripts as made


def read(entry: Any, chosen: str = "") -> Line:
    return read_line(json.dumps(entry).encode(), chosen)[0]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (made.claude_entry("user", "hello"), "claude-code"),
        ({"type": "summary", "summary": "A talk", "leafUuid": "1"}, "claude-code"),
        ({"type": "file-history-snapshot", "messageId": "1", "snapshot": {}}, "claude-code"),
        (made.codex_meta(), "codex"),
        (made.codex_message("user", "hello"), "codex"),
        ({"record_type": "state"}, "codex"),
        ({"id": "c", "timestamp": made.stamp(0), "instructions": None}, "codex"),
        ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}, "codex"),
        (made.openclaw_header(), "openclaw"),
        (made.openclaw_message("user", "hello"), "openclaw"),
        ({"session_id": "1", "ts": 1, "text": "a line of history.jsonl"}, ""),
        ({}, ""),
    ],
)
def test_format_is_told_by_a_line(entry: dict[str, Any], expected: str) -> None:
    assert detect(entry) == expected


def test_turns_keep_role_time_and_session() -> None:
    at = datetime(2026, 11, 10, 9, 4, tzinfo=UTC)
    for entry, role, session in (
        (made.claude_entry("user", "The mast is loose", 4), "user", "claude-1"),
        (made.claude_entry("assistant", [{"type": "text", "text": "The mast is loose"}], 4), "assistant", "claude-1"),
        (made.codex_message("assistant", "The mast is loose", 4), "assistant", ""),
        (made.openclaw_message("user", "The mast is loose", 4), "user", ""),
    ):
        line = read(entry)
        assert line.turn is not None
        assert (line.turn.role, line.turn.at, line.turn.text) == (role, at, "The mast is loose")
        assert line.session == session


def test_header_lines_name_the_session() -> None:
    assert read(made.codex_meta("c-7")).session == "c-7"
    assert read(made.openclaw_header("o-7")).session == "o-7"
    assert read({"id": "old-7", "timestamp": made.stamp(0), "instructions": ""}).session == "old-7"


@pytest.mark.parametrize("odd", ["", "two\nlines", "x" * 1000, 7, None, ["a"], "\ud800"])
def test_what_cannot_be_an_id_is_none(odd: Any) -> None:
    assert read(made.codex_meta(odd)).session == ""
    assert read(made.claude_entry("user", "hi", session=odd)).session == ""


@pytest.mark.parametrize(
    "entry",
    [
        *made.claude_tool("ls: cannot access"),
        made.claude_entry("assistant", [{"type": "thinking", "thinking": "let me see", "signature": "x"}]),
        made.claude_entry("user", "Caveat: the messages below", isMeta=True),
        made.claude_entry("user", "explore the code", isSidechain=True),
        made.claude_entry("user", "This session is being continued", isCompactSummary=True),
        made.claude_entry("user", "<command-name>/clear</command-name>\n<command-args></command-args>"),
        made.claude_entry("user", "<local-command-stdout>Bye</local-command-stdout>"),
        made.claude_entry("user", [{"type": "image", "source": {"type": "base64", "data": "AAAA"}}]),
        {"type": "system", "subtype": "turn_duration", "sessionId": "claude-1", "content": "x"},
        made.codex_item({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "1"}),
        made.codex_item({"type": "function_call_output", "call_id": "1", "output": "a.txt"}),
        made.codex_item({"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}),
        made.codex_item({"type": "agent_message", "message": "said twice"}, kind="event_msg"),
        made.codex_item({"model": "gpt-5"}, kind="turn_context"),
        made.codex_message("developer", "You are a coding agent"),
        made.codex_message("user", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"),
        made.codex_message("user", "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>be kind</INSTRUCTIONS>"),
        made.openclaw_message("toolResult", "a.txt"),
        made.openclaw_message("assistant", [{"type": "toolCall", "name": "read", "arguments": {}}]),
        made.openclaw_message("assistant", "HEARTBEAT_OK"),
        {"type": "model_change", "id": "1", "parentId": None, "timestamp": made.stamp(0), "modelId": "m"},
    ],
)
def test_tools_and_the_harness_own_words_are_left_out(entry: dict[str, Any]) -> None:
    chosen = detect(entry) or ("openclaw" if entry.get("type") == "model_change" else "claude-code")
    line = read(entry, chosen)
    assert line.known
    assert line.turn is None


def test_what_a_person_says_around_a_reminder_stays() -> None:
    line = read(made.claude_entry("user", "Reef early.<system-reminder>Do not\nforget</system-reminder> And often."))
    assert line.turn is not None
    assert line.turn.text == "Reef early. And often."


@pytest.mark.parametrize(
    "data", [b"{", b"[1, 2]", b'"text"', b"null", b"\xff\xfe", b"[" * 100_000, b"1" * 5000, b'{"type": "new-thing"}']
)
def test_what_is_no_line_of_the_format_is_unknown(data: bytes) -> None:
    for chosen in FORMATS:
        assert read_line(data, chosen)[0] == Line(known=False)


def test_blank_line_is_nothing() -> None:
    assert read_line(b"  ", "codex")[0] == Line()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    "type",
    "message",
    "payload",
    "role",
    "content",
    "timestamp",
    "sessionId",
    "id",
    "isMeta",
    "text",
    "record_type",
)
NAMES = st.sampled_from(("user", "assistant", "message", "session", "response_item", "session_meta", "summary", "text"))


@given(st.binary(max_size=200))
def test_no_bytes_make_a_reader_raise(data: bytes) -> None:
    for chosen in ("", *FORMATS):
        read_line(data, chosen)


@given(
    st.dictionaries(
        st.sampled_from(KEYS),
        st.recursive(
            JSON | NAMES,
            lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=4) | st.lists(inner, max_size=2),
            max_leaves=8,
        ),
        max_size=8,
    )
)
def test_no_entry_makes_a_reader_raise(entry: dict[str, Any]) -> None:
    for each in FORMATS.values():
        each.recognises(entry)
        line = each.read_entry(entry)
        assert line.turn is None or line.turn.text.strip()
        assert isinstance(line.session, str)
