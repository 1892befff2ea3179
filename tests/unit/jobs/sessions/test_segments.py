"""Lines into segments: however the file grew, it is cut in the same places."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.chunking import split_passages
from memoryd.jobs.sessions.noise import clean_text
from memoryd.jobs.sessions.rules import SegmentRules
from memoryd.jobs.sessions.segments import Segment, Segmenter
from memoryd.jobs.sessions.tail import Tail
from tests.support.transcripts import claude_entry, claude_talk, claude_tool, codex_message, codex_meta, jsonl

SMALL = SegmentRules(max_turn_chars=300, turns=3, chars=400, bytes=1500)


def write(folder: Path, data: str | bytes) -> int:
    file = folder / "t.jsonl"
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return os.open(file, os.O_RDONLY)


def cut(folder: Path, data: str | bytes, rules: SegmentRules = SMALL) -> tuple[list[Segment], Segmenter]:
    descriptor = write(folder, data)
    try:
        segmenter = Segmenter("talks/t.jsonl", rules)
        lines = Tail(descriptor, 0, os.fstat(descriptor).st_size)
        full = [segment for line in lines if (segment := segmenter.take(line))]
        return [*full, *([segmenter.current] if segmenter.current.lines else [])], segmenter
    finally:
        os.close(descriptor)


def test_turn_is_who_when_and_what(tmp_path: Path) -> None:
    (segment,), segmenter = cut(tmp_path, jsonl(claude_talk("# Not a heading\n\n- nor a list", "ok")), SegmentRules())
    assert segment.text == (
        "user (2026-11-10 09:00):\n    # Not a heading\n\n    - nor a list\n\nassistant (2026-11-10 09:01):\n    ok\n\n"
    )
    assert segment.places == [[1, 1], [6, 2]]
    assert (segmenter.format, segmenter.session) == ("claude-code", "claude-1")
    assert segment.date is not None
    assert segment.date.isoformat() == "2026-11-10"


@pytest.mark.parametrize(
    "said", ["# Heading", "---\nscope: user:ana\n---", "Title\n=====", "```\ncode", "> quote\n---"]
)
def test_what_is_said_is_never_markdown(tmp_path: Path, said: str) -> None:
    (segment,), _ = cut(tmp_path, jsonl(claude_talk(said, f"You wrote {said}")), SegmentRules())
    assert {passage.heading for passage in split_passages(segment.text)} == {""}


def test_segment_ends_by_turns_text_or_bytes(tmp_path: Path) -> None:
    talk = claude_talk(*(f"word {number}" for number in range(7)))
    assert [each.turns for each in cut(tmp_path, jsonl(talk))[0]] == [3, 3, 1]
    long = claude_talk("x " * 140, "y " * 140, "z " * 140)
    assert [each.turns for each in cut(tmp_path, jsonl(long))[0]] == [2, 1]
    tools = [claude_talk("before")[0], *claude_tool("o" * 900), *claude_tool("o" * 900), claude_talk("after")[0]]
    assert [(each.turns, each.dropped) for each in cut(tmp_path, jsonl(tools))[0]] == [(1, 2), (0, 2), (1, 0)]


def test_segments_cover_the_file_without_gaps(tmp_path: Path) -> None:
    data = jsonl([*claude_talk(*"abcdefgh"), *claude_tool("out")]) + "garbage\n" + "half a li"
    segments, segmenter = cut(tmp_path, data)
    assert [each.start for each in segments] == [0, *(each.end for each in segments[:-1])]
    assert [each.first_line for each in segments] == [1, *(e.first_line + e.lines for e in segments[:-1])]
    assert segmenter.current.end == len(data) - len("half a li")
    assert sum(each.unknown for each in segments) == 1


def test_session_is_named_by_a_line_before_the_first_turn_or_by_the_file(tmp_path: Path) -> None:
    assert cut(tmp_path, jsonl([codex_meta("c-9"), codex_message("user", "hi")]))[1].session == "c-9"
    assert cut(tmp_path, jsonl([codex_message("user", "hi"), codex_meta("c-9")]))[1].session == "t"


@given(
    st.lists(st.sampled_from(["u", "a", "tool", "junk", "blank", "long"]), max_size=14),
    st.lists(st.integers(0, 4000), max_size=4),
)
def test_growing_file_is_cut_like_a_whole_one(kinds: list[str], stops: list[int]) -> None:
    """Read up to any byte, and on from the last whole line: nothing tells it from being read in one go."""
    made: dict[str, list[Any]] = {
        "u": claude_talk("what now"),
        "a": [claude_entry("assistant", [{"type": "text", "text": "reef"}])],
        "tool": claude_tool("out " * 50),
        "junk": ["no entry"],
        "blank": [],
        "long": claude_talk("w " * 200),
    }
    data = "".join(jsonl(made[kind]) if made[kind] else "\n" for kind in kinds).encode()
    whole, grown = Segmenter("t.jsonl", SMALL), Segmenter("t.jsonl", SMALL)
    descriptor = os.memfd_create("transcript")
    try:
        os.write(descriptor, data)
        expected = [segment for line in Tail(descriptor, 0, len(data)) if (segment := whole.take(line))]
        found: list[Segment] = []
        for stop in [*sorted(min(each, len(data)) for each in stops), len(data)]:
            lines = Tail(descriptor, grown.current.end, stop)
            found += [segment for line in lines if (segment := grown.take(line))]
        assert found == expected
        assert grown.current == whole.current
    finally:
        os.close(descriptor)


def test_endless_line_is_passed_over_and_what_follows_is_read(tmp_path: Path) -> None:
    data = jsonl([*claude_talk("before"), *claude_talk("x" * 20_000), *claude_talk("after")])
    descriptor = write(tmp_path, data)
    try:
        segmenter = Segmenter("t.jsonl", SegmentRules())
        for line in Tail(descriptor, 0, len(data), longest=5000, block=1024):
            segmenter.take(line)
        found = segmenter.current
        assert (found.turns, found.unknown, found.end) == (2, 1, len(data))
        assert Tail(descriptor, len(data), len(data)).holds(segmenter.anchor)
        assert not Tail(descriptor, len(data) - 1, len(data)).holds(segmenter.anchor)
    finally:
        os.close(descriptor)


def test_encoded_data_terminal_codes_and_the_end_of_long_turns_are_left_out() -> None:
    assert clean_text(f"see data:image/png;base64,{'iVBOR' * 40} there", 1000) == "see [encoded data omitted] there"
    assert clean_text("QUJD" * 100, 1000) == "[encoded data omitted]"
    wrapped = "\n".join(["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"] * 5)
    assert clean_text(f"file:\n{wrapped}\nend", 1000) == "file:\n[encoded data omitted]\nend"
    assert clean_text("\x1b[31mred\x1b[0m\x07 \x00line\r\nnext", 1000) == "red line\nnext"
    assert clean_text("abc " * 100, 10) == "abc abc ab\n[389 characters more]"
    assert clean_text("\ud800 half", 100) == "? half"


@given(st.text(), st.integers(1, 50))
def test_cleaned_text_can_be_stored(text: str, most: int) -> None:
    cleaned = clean_text(text, most)
    cleaned.encode()
    assert "\0" not in cleaned
    assert "\r" not in cleaned
