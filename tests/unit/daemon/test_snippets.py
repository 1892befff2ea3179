from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.commands.painting import Painted, find_screen
from memoryd.daemon.commands.snippets import choose_window, inert, shorten_snippet
from memoryd.store.search.highlights import Marker


def hit(snippet: str, query: str = "", *, first: int = 1, best: tuple[int, int] = (1, 1)) -> dict[str, Any]:
    return {
        "snippet": snippet,
        "snippet_line": first,
        "highlights": [list(span) for span in Marker(query).mark(snippet)],
        "best": {"start_line": best[0], "end_line": best[1]},
    }


def marked(text: Painted) -> list[str]:
    return [text.plain[span.start : span.end] for span in text.spans]


def rendered(text: Painted) -> str:
    return "\n".join(find_screen({"TERM": "xterm", "COLUMNS": "100"}).lines(text)) + "\n"


LOG = "".join(f"line {number}\n\n" for number in range(1, 21)) + "the goat\nate it\n\nline 23"


def test_short_snippet_is_shown_whole_without_blank_lines() -> None:
    assert shorten_snippet(hit("one\n\n\ntwo"), 6).plain == "one\ntwo"
    assert shorten_snippet(hit(""), 6).plain == ""


def test_lines_that_are_shown_hold_the_best_passage() -> None:
    text = shorten_snippet(hit(LOG, "goat", first=101, best=(141, 142)), 3)
    assert text.plain == "… the goat\nate it\nline 23"
    assert marked(text) == ["goat"]
    text = shorten_snippet(hit(LOG, "goat", first=101, best=(103, 105)), 3)
    assert text.plain == "… line 2\nline 3\nline 4 …"


def test_of_a_long_passage_the_lines_with_most_marks_are_shown() -> None:
    lines = [f"line {number}" for number in range(20)]
    lines[11] = "goats and goats"
    text = shorten_snippet(hit("\n".join(lines), "goat", best=(1, 20)), 2)
    assert text.plain == "… goats and goats\nline 12 …"
    assert marked(text) == ["goats", "goats"]


def test_marks_of_an_ellipsis_are_not_doubled() -> None:
    assert shorten_snippet(hit("…one\ntwo\nthree…"), 2).plain == "…one\ntwo …"
    assert shorten_snippet(hit("…one\ntwo\nthree…", best=(3, 3)), 2).plain == "… two\nthree…"


def test_notes_cannot_speak_to_the_terminal() -> None:
    hostile = (
        "goat \x1b[31mred\x1b[0m \x07\x08\r\x9b1m\x7f [bold]goat[/bold] [link=http://x]y[/link]\n\tgoats\x1b]0;x\x07"
    )
    shown = rendered(shorten_snippet(hit(hostile, "goat"), 6))
    assert "[bold]" in shown
    assert "[link=http://x]y[/link]" in shown
    assert shown.count("\x1b[1;4mgoat") == 3
    assert set(shown) & {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} == {"\x1b", "\n"}
    left = shown.replace("\x1b[1;4m", "").replace("\x1b[0m", "")  # ours
    assert "\x1b" not in left
    assert inert("a\n\x1b[0mb\u2028") == "a␊␛[0mb "


@given(st.text(max_size=200), st.text("ab \n", max_size=40), st.integers(1, 8))
def test_marks_stand_where_they_stood(snippet: str, query: str, most: int) -> None:
    given_hit = hit(snippet, query)
    whole = [inert(line).replace("␉", "\t") for line in snippet.split("\n")]
    text = shorten_snippet(given_hit, most)
    shown = text.plain.split("\n")
    assert len(shown) <= most
    expected = {snippet[start:end] for start, end in given_hit["highlights"]}
    parts = {part for each in expected for part in (each, *each.split("\n"))}
    assert set(marked(text)) <= {inert(part).replace("␉", "\t") for part in parts}
    if sum(1 for line in whole if line.strip()) <= most:
        assert "\n".join(line for line in whole if line.strip()) == text.plain


@pytest.mark.parametrize(
    ("is_best", "marks", "expected"),
    [
        ([], [], 0),
        ([True], [0], 0),
        ([False] * 5, [0] * 5, 2),
        ([True, False, False, False, False], [0, 0, 0, 0, 9], 0),
        ([False, True, True, False, False], [0] * 5, 1),
        ([False, True, True, False, False], [1, 0, 0, 0, 0], 0),
        ([True] * 5, [0, 0, 1, 1, 1], 2),
    ],
)
def test_window_shows_the_best_then_the_marks_then_what_follows(
    is_best: list[bool], marks: list[int], expected: int
) -> None:
    assert choose_window(is_best, marks, 3) == expected
