"""Markdown, read as far as splitting needs it: which lines are headings, code, lists, tables or text.

Lines end at "\\n" only. Code blocks and headings follow CommonMark; what would need a full parser (containers
inside containers, lazy continuation, link definitions) is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from memoryd.jobs.front_matter import FrontMatter, read_front_matter

__all__ = ["FrontMatter", "Kind", "Span", "document_title", "read_front_matter", "read_spans"]

_MAX_TITLE = 120  # characters of a heading that a breadcrumb repeats


class Kind(Enum):
    """What a span of whole lines is."""

    FRONT_MATTER = auto()  # all of it
    BLANK = auto()  # one or more empty lines
    HEADING = auto()  # one line, or two where the second underlines the first
    ITEM = auto()  # the line that begins a list item
    TABLE = auto()  # one row
    TEXT = auto()  # one line of anything else
    CODE = auto()  # a whole fenced block with its fences


class Span(NamedTuple):
    """Whole lines of one kind: text[start:end], the last line end included."""

    kind: Kind
    start: int
    end: int
    level: int = 0  # of a heading, 1 to 6; of a list item, its indentation
    title: str = ""  # of a heading


_LINE = re.compile(
    r"(?P<blank>[^\S\n]*+(?:\n|\Z))"
    r"|(?P<indent>[ \t]*+)"
    r"(?:(?P<hashes>\#{1,6})(?=[ \t\n]|\Z)"
    r"|(?P<marker>[-*+]|[0-9]{1,9}[.)])(?=[ \t])[ \t]+"
    r"|(?P<pipe>\|))?"
    r"(?P<fence>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})?"
)
_PARAGRAPHS = (Kind.TEXT, Kind.ITEM, Kind.TABLE)
_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+(?:[^\S\n]++\Z)?")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*(?:\n|\Z)")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")


def read_spans(text: str) -> Iterator[Span]:
    """Yield the spans of a text in order; together they are the whole text."""
    at = 0
    if lines := read_front_matter(text).lines:
        for _ in range(lines):
            at = _line_end(text, at)
        yield Span(Kind.FRONT_MATTER, 0, at)
    in_list = in_paragraph = False
    while at < len(text):
        span = _read_span(text, at, in_list=in_list, in_paragraph=in_paragraph)
        in_paragraph = span.kind in _PARAGRAPHS and text[at] not in "-="  # which begin rules and underlines
        if span.kind is Kind.ITEM:
            in_list = True
        elif span.kind is not Kind.BLANK and text[at] not in " \t":
            in_list = False
        yield span
        at = span.end


def document_title(text: str, front_matter: FrontMatter) -> str:
    """The title in the front matter, else the first heading of level 1, else ""."""
    title = front_matter.values.get("title")
    if isinstance(title, (str, int, float)) and not isinstance(title, bool) and str(title).strip():
        return _one_line(str(title))
    headings = (span for span in read_spans(text) if span.kind is Kind.HEADING)
    return next((heading.title for heading in headings if heading.level == 1), "")


def _read_span(text: str, at: int, *, in_list: bool, in_paragraph: bool) -> Span:
    line = _LINE.match(text, at)
    if line is None or line["blank"] is not None:
        return Span(Kind.BLANK, at, _end_of_blank_lines(text, at))
    end = _line_end(text, at)
    indent = len(line["indent"])
    # Four spaces make code, in which nothing else is recognised, but not inside a list item.
    if indent > 3 and not in_list:
        return Span(Kind.TEXT, at, end)
    if line["fence"] is not None and line["hashes"] is None and line["pipe"] is None:
        return Span(Kind.CODE, at, _end_of_code(text, end, line["fence"]))
    if line["hashes"] is not None and indent <= 3:
        title = _CLOSING_HASHES.sub("", text[line.end("hashes") : end].strip())
        return Span(Kind.HEADING, at, end, len(line["hashes"]), _one_line(title))
    if line["marker"] is not None:
        return Span(Kind.ITEM, at, end, indent)
    if line["pipe"] is not None:
        return Span(Kind.TABLE, at, end)
    # A rule under a longer paragraph is a rule that someone forgot to set off, not the end of a long heading.
    underline = None if in_paragraph else _UNDERLINE.match(text, end)
    if underline is not None and text[at] != ">" and not _UNDERLINE.match(text, at):
        level = 1 if underline[1].startswith("=") else 2
        return Span(Kind.HEADING, at, underline.end(), level, _one_line(text[at:end]))
    return Span(Kind.TEXT, at, end)


def _line_end(text: str, at: int) -> int:
    return text.find("\n", at) + 1 or len(text)


def _end_of_blank_lines(text: str, at: int) -> int:
    lines = _BLANK_LINES.match(text, at)
    return lines.end() if lines else at


def _end_of_code(text: str, at: int, fence: str) -> int:
    """Where the block ends that a fence opened: after a fence at least as long, or with the text."""
    closing = re.compile(rf"^[ \t]*{fence[0]}{{{len(fence)},}}[ \t]*(?:\n|\Z)", re.MULTILINE).search(text, at)
    return closing.end() if closing else len(text)


def _one_line(text: str) -> str:
    return " ".join(text[: 4 * _MAX_TITLE].split())[:_MAX_TITLE].rstrip()
