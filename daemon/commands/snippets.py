"""A hit's snippet on a terminal: its best lines, with what was asked for marked.

Notes are not ours: a control character in one must not reach the terminal, and none of it is markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from memoryd.daemon.commands.painting import ELLIPSIS, Painted

_MARKED = "bold underline"
# Each becomes one character, so that places in the text stay what they are.
_LINE = (
    {code: 0x2400 + code for code in range(0x20)}
    | {0x7F: 0x2421, 0x2028: 0x20, 0x2029: 0x20}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)
_LINES = {code: picture for code, picture in _LINE.items() if chr(code) not in "\t\n"}


def inert(words: str) -> str:
    """One line, with pictures for what would control a terminal."""
    return words.translate(_LINE)


def shorten_snippet(hit: dict[str, Any], most: int) -> Painted:
    """At most so many lines of the snippet, blank ones left out: those of the best passage, and others around it."""
    snippet = hit["snippet"].translate(_LINES)
    lines = snippet.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    marks = [[span for span in hit["highlights"] if start <= span[0] < end] for start, end in pairwise(starts)]
    filled = [number for number, line in enumerate(lines) if line.strip()]
    best = range(hit["best"]["start_line"] - hit["snippet_line"], hit["best"]["end_line"] - hit["snippet_line"] + 1)
    first = choose_window([number in best for number in filled], [len(marks[number]) for number in filled], most)
    shown = filled[first : first + most]
    text = Painted()
    if first > 0 and not lines[shown[0]].startswith(ELLIPSIS):
        text.append(f"{ELLIPSIS} ")
    for number in shown:
        offset = len(text.plain) - starts[number]
        text.append(f"{lines[number]}\n")
        for start, end in marks[number]:
            text.stylize(_MARKED, start + offset, min(end, starts[number + 1] - 1) + offset)
    text.plain = text.plain[:-1]
    if first + most < len(filled) and not text.plain.endswith(ELLIPSIS):
        text.append(f" {ELLIPSIS}")
    return text


def choose_window(is_best: Sequence[bool], marks: Sequence[int], most: int) -> int:
    """Where to begin so that the next lines show most of the best passage, then most marks, then what follows it."""

    def merit(first: int) -> tuple[int, int, int]:
        window = slice(first, first + most)
        return sum(is_best[window]), sum(marks[window]), first

    return max(range(max(0, len(is_best) - most) + 1), key=merit)
