"""What a search shows on a terminal fits it, in every script, and is coloured as the environment wants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from memoryd.daemon.commands.painting import Painted, find_screen


def shown(text: str, columns: int, *, crop: bool = False, indent: int = 0) -> list[str]:
    screen = find_screen({"TERM": "xterm", "COLUMNS": str(columns)})
    return list(screen.lines(Painted(text), crop=crop, indent=indent))


def test_lines_break_after_words_and_inside_of_what_is_too_long() -> None:
    assert shown("the goats eat the hedge", 10) == ["the goats", "eat the", "hedge"]
    assert shown("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert shown("a\n\nb", 4) == ["a", "", "b"]
    assert shown("the goats", 9, indent=4) == ["    the", "    goats"]
    assert shown("", 4) == [""]
    assert shown("山羊吃树篱", 4) == ["山羊", "吃树", "篱"]


def test_title_is_cut_where_the_line_ends() -> None:
    assert shown("memory/goats.md", 8, crop=True) == ["memory/…"]
    assert shown("memory", 6, crop=True) == ["memory"]
    assert shown("山羊吃树篱", 7, crop=True) == ["山羊吃…"]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm"}, "\x1b[1;36mgoats\x1b[0m \x1b[32m0.5\x1b[0m"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, "\x1b[1mgoats\x1b[0m 0.5"),
        ({"TERM": "dumb"}, "goats 0.5"),
        ({}, "goats 0.5"),
    ],
)
def test_colours_are_those_that_the_terminal_and_the_user_want(environ: dict[str, str], expected: str) -> None:
    text = Painted().append("goats", "bold cyan").append(" ").append("0.5", "green")
    assert list(find_screen(environ).lines(text)) == [expected]


@given(st.text("abc é山羊カが한\u0301\u3000.\n", max_size=60), st.integers(4, 40))
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(text: str, columns: int) -> None:
    lines = shown(text, columns)
    assert all(cell_len(line) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    (line,) = shown(text.replace("\n", " "), columns, crop=True)
    assert cell_len(line) <= columns
