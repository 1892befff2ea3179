"""Where a markdown text may be cut, and how good each place is."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from memoryd.jobs.markdown import Kind, Span, read_spans


class Rank(IntEnum):
    """How good a place is to cut at; higher is better."""

    HELD = 0  # after a heading, inside the head of a table, before blank lines: only if nothing else is left
    CHARACTER = 1  # inside a word, or between the characters of a script without spaces
    WORD = 2
    CLAUSE = 3  # after a comma and its like
    WRAPPED = 4  # a line end in the middle of a sentence
    SENTENCE = 5
    ROW = 6  # between the rows of a table or the lines of code
    LINE = 7
    ITEM = 8  # before a list item, after a code block
    PARAGRAPH = 9
    SECTION = 10  # before a heading: always cut


class Break(NamedTuple):
    """The place after a span."""

    span: Span
    rank: Rank
    heading: str  # breadcrumb in force for the span
    next_level: int  # of the heading that follows; 0 where none does


_SENTENCE_ENDS = frozenset(".!?:;…。！？；：｡؟۔।॥։።။។")


def read_breaks(text: str) -> Iterator[Break]:
    """Yield every span of the text with the break that follows it, in order."""
    breadcrumb = _Breadcrumb()
    before: Span | None = None  # the last span that is not blank
    rows = 0  # of the table so far
    spans = read_spans(text)
    span = next(spans, None)
    while span is not None:
        following = next(spans, None)
        if span.kind is Kind.HEADING:
            breadcrumb.enter(span.level, span.title)
        if span.kind is not Kind.BLANK:
            before = span
        rows = rows + 1 if span.kind is Kind.TABLE else 0
        rank = _rank(text, span, before, following, rows)
        level = following.level if following is not None and following.kind is Kind.HEADING else 0
        yield Break(span, rank, breadcrumb.text, level)
        span = following


def _rank(text: str, span: Span, before: Span | None, following: Span | None, rows: int) -> Rank:
    if following is None:
        return Rank.SECTION
    # A heading belongs to what follows, be it another heading, and blank lines to what precedes.
    if before is None or before.kind is Kind.HEADING or following.kind is Kind.BLANK:
        return Rank.HELD
    if following.kind is Kind.HEADING:
        return Rank.SECTION
    if span.kind in (Kind.BLANK, Kind.FRONT_MATTER):
        return Rank.PARAGRAPH
    if span.kind is Kind.CODE or (following.kind is Kind.ITEM and following.level == 0):
        return Rank.ITEM
    if span.kind is Kind.TABLE and following.kind is Kind.TABLE:
        return Rank.ROW if rows > 2 else Rank.HELD  # the first two rows say what the columns are
    if following.kind is Kind.TEXT and _is_wrapped(text, span, following):
        return Rank.WRAPPED
    return Rank.LINE


def _is_wrapped(text: str, span: Span, following: Span) -> bool:
    """Whether the line end between two lines of text falls in the middle of a sentence."""
    beginning = text[following.start : following.start + 64].lstrip()[:1]
    ending = text[max(span.start, span.end - 64) : span.end].rstrip()[-1:]
    return beginning.islower() and ending not in _SENTENCE_ENDS


class _Breadcrumb:
    """The headings above the line that is being read."""

    def __init__(self) -> None:
        self.text = ""
        self._path: list[tuple[int, str]] = []

    def enter(self, level: int, title: str) -> None:
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, title))
        self.text = " > ".join(title for _, title in self._path if title)
