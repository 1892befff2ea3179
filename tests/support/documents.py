"""Documents as values, for tests of the store that need no markdown and no chunker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from memoryd.store.model import Chunk, Document, Passage


def make_passages(texts: Sequence[str], heading: str = "", first_line: int = 1) -> tuple[Passage, ...]:
    passages = []
    line = first_line
    for ordinal, text in enumerate(texts):
        lines = text.count("\n")
        last = line + max(0, lines - 1 if text.endswith("\n") else lines)
        passages.append(Passage(ordinal, text, heading, line, last, tokens=len(text.split())))
        line += lines
    return tuple(passages)


def make_document(
    path: str = "memory/note.md",
    *texts: str,
    chunks: Sequence[tuple[int, int]] | None = None,
    heading: str = "",
    first_line: int = 1,
    workspace: str = "home",
    source: str = "memory",
    written: date | None = None,
    title: str = "",
    front_matter: Mapping[str, Any] | None = None,
    notices: Sequence[str] = (),
    content_hash: str = "hash",
) -> Document:
    """A document of these passages; ``chunks`` names the first and last passage of each, by default one each."""
    passages = make_passages(texts, heading, first_line)
    spans = [(place, place) for place in range(len(texts))] if chunks is None else list(chunks)
    return Document(
        workspace=workspace,
        path=path,
        source=source,
        signature="signature",
        content_hash=content_hash,
        size=sum(len(text.encode()) for text in texts),
        date=written,
        evergreen=written is None,
        title=title,
        front_matter=front_matter or {},
        notices=tuple(notices),
        passages=passages,
        chunks=tuple(
            Chunk(
                ordinal,
                first,
                last,
                heading,
                passages[first].start_line,
                passages[last].end_line,
                sum(passage.tokens for passage in passages[first : last + 1]),
            )
            for ordinal, (first, last) in enumerate(spans)
        ),
    )
