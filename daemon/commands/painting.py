"""Text with colours on a terminal, in lines that fit. For a search, which is over before rich would be imported.

dataclasses takes a tenth of what a search takes, so there are none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

ELLIPSIS = "…"
_TAB = "    "
_USUAL_COLUMNS = 80
_CODES = {"dim": "2", "bold cyan": "1;36", "green": "32", "yellow": "33", "red": "31", "bold underline": "1;4"}
_WITHOUT_COLOUR = {"dim": "2", "bold cyan": "1", "bold underline": "1;4"}


class Span(NamedTuple):
    start: int
    end: int
    style: str


class Painted:
    """A text, and which parts of it are styled. Later parts do not reach into earlier ones."""

    def __init__(self, plain: str = "") -> None:
        self.plain = plain
        self.spans: list[Span] = []

    def append(self, words: str, style: str = "") -> Painted:
        start = len(self.plain)
        self.plain += words
        if style and words:
            self.spans.append(Span(start, len(self.plain), style))
        return self

    def stylize(self, style: str, start: int, end: int) -> None:
        if start < end:
            self.spans.append(Span(start, end, style))


class Screen(NamedTuple):
    """What stdout can show."""

    columns: int
    codes: Mapping[str, str]  # by style; a style without one is shown plain

    def show(self, text: Painted, *, indent: int = 0, crop: bool = False) -> None:
        """Writes the text, wrapped between words; or, with ``crop``, as much as fits one line."""
        sys.stdout.writelines(f"{line}\n" for line in self.lines(text, indent=indent, crop=crop))

    def lines(self, text: Painted, *, indent: int = 0, crop: bool = False) -> Iterator[str]:
        room = max(1, self.columns - indent)
        for start, end in [_cropped(text.plain, room)] if crop else _wrapped(text.plain, room):
            cut = ELLIPSIS if crop and end < len(text.plain) else ""
            yield " " * indent + self._paint(text, start, end) + cut

    def _paint(self, text: Painted, start: int, end: int) -> str:
        parts, at = [], start
        for span in sorted(text.spans):
            first, last = max(span.start, at), min(span.end, end)
            if first >= last:
                continue
            words, code = text.plain[first:last], self.codes.get(span.style)
            parts += [text.plain[at:first], f"\x1b[{code}m{words}\x1b[0m" if code else words]
            at = last
        return "".join([*parts, text.plain[at:end]]).replace("\t", _TAB)


def find_screen(environ: Mapping[str, str] = os.environ) -> Screen:
    codes = _WITHOUT_COLOUR if environ.get("NO_COLOR") else _CODES
    return Screen(count_columns(environ), {} if environ.get("TERM", "") in ("", "dumb", "unknown") else codes)


def count_columns(environ: Mapping[str, str]) -> int:
    told = environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


def _wrapped(text: str, room: int) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends: at newlines, after a space where one fits, inside of a word otherwise."""
    begin = 0
    for line in text.split("\n"):
        end = begin + len(line)
        while begin < end:
            fits = _fitting(text, begin, end, room)
            if fits < end and (space := text.rfind(" ", begin, fits + 1)) > begin:
                yield begin, space
                begin = space + 1
            else:
                yield begin, fits
                begin = fits
        if not line:
            yield begin, end
        begin = end + 1


def _cropped(text: str, room: int) -> tuple[int, int]:
    """The part of it that fits, with room for an ellipsis if that is not all."""
    fits = _fitting(text, 0, len(text), room)
    return 0, fits if fits == len(text) else _fitting(text, 0, len(text), room - 1)


def _fitting(text: str, begin: int, end: int, room: int) -> int:
    """The end of what fits; one character always does."""
    for at in range(begin, end):
        room -= _cells(text[at])
        if room < 0:
            return max(at, begin + 1)
    return end


def _cells(char: str) -> int:
    """How many columns of a terminal it takes."""
    if char < "\u0300":
        return len(_TAB) if char == "\t" else 1
    import unicodedata

    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
