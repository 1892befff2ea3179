"""Grouping the passages of a document into chunks.

``split_passages`` gives the units that are embedded; ``group_chunks`` the units that are keyword-indexed and
cited: runs of passages within a budget.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from memoryd.jobs.breaks import Rank, read_breaks
from memoryd.jobs.markdown import Kind
from memoryd.jobs.passages import split_passages
from memoryd.jobs.pieces import LARGEST
from memoryd.store.model import Chunk, Passage

__all__ = ["CHUNKER_VERSION", "group_chunks", "split_passages"]

CHUNKER_VERSION = "2"  # of how text is cut: with another, every document is split again

_NEVER = -1  # inside code that one chunk can hold


def group_chunks(passages: Sequence[Passage], *, budget: int = 400, overlap: int = 80) -> tuple[Chunk, ...]:
    """Group consecutive passages into chunks of at most `budget` tokens.

    A chunk that continues a section repeats the end of the chunk before: whole passages, as near to `overlap`
    tokens as they allow. One that begins with a heading repeats nothing: what went before is about something
    else.
    """
    if budget < LARGEST:
        raise ValueError(f"a chunk of {budget} tokens cannot hold a passage of {LARGEST}")
    sums = list(accumulate((passage.tokens for passage in passages), initial=0))
    breaks = _rank_breaks(passages, sums, budget)
    chunks: list[Chunk] = []
    start = previous = 0  # where the chunk's own passages begin, and those of the chunk before it
    while start < len(passages):
        first = _begin_overlap(breaks, sums, start, previous, overlap)
        end = _choose_end(breaks, sums, first, start, budget)
        if end is None:  # code fills the budget and leaves no room to repeat anything
            first = start
            end = _choose_end(breaks, sums, first, start, budget) or start + 1
        chunks.append(
            Chunk(
                ordinal=len(chunks),
                first_passage=first,
                last_passage=end - 1,
                heading=passages[start].heading,
                start_line=passages[first].start_line,
                end_line=passages[end - 1].end_line,
                tokens=sums[end] - sums[first],
            )
        )
        previous, start = start, end
    return tuple(chunks)


def _choose_end(breaks: list[int], sums: list[int], first: int, start: int, budget: int) -> int | None:
    """The end of a chunk: that of the document if in reach, else the best break in the chunk's last third.

    Among equals the later one, so that chunks are about as large as they may be.
    """
    best: int | None = None
    best_worth = (False, _NEVER)
    for end in range(start + 1, len(sums)):
        size = sums[end] - sums[first]
        if size > budget:
            return best
        worth = (size * 3 >= budget * 2 and breaks[end] > Rank.HELD, breaks[end])
        if breaks[end] != _NEVER and worth >= best_worth:
            best, best_worth = end, worth
    return len(sums) - 1


def _begin_overlap(breaks: list[int], sums: list[int], start: int, previous: int, overlap: int) -> int:
    """The first of the passages to repeat: whole ones of the same section, and code whole or not at all."""
    first = start
    for candidate in range(start, previous, -1):
        if breaks[candidate] != _NEVER:
            if abs(sums[start] - sums[candidate] - overlap) > abs(sums[start] - sums[first] - overlap):
                break
            first = candidate
        if breaks[candidate] >= Rank.SECTION:
            break
    return first


def _rank_breaks(passages: Sequence[Passage], sums: list[int], budget: int) -> list[int]:
    """The rank of the break before each passage and after the last; headings rank by their level."""
    offsets = list(accumulate((len(passage.text) for passage in passages), initial=0))
    index = {offset: i for i, offset in enumerate(offsets)}
    ranks = [int(Rank.SENTENCE)] * len(offsets)
    for found in read_breaks("".join(passage.text for passage in passages)):
        if (i := index.get(found.span.end)) is not None:
            ranks[i] = found.rank + (6 - found.next_level if found.next_level else 0)
        if found.span.kind is Kind.CODE:
            low, high = bisect_right(offsets, found.span.start), bisect_left(offsets, found.span.end)
            fits = sums[high] - sums[low - 1] <= budget
            ranks[low:high] = [_NEVER if fits else int(Rank.ROW)] * (high - low)
    return ranks
