"""What the ledger holds of a document, row by row, beside what it would hold if the document were written now."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from memoryd.store.digest import LedgerFacts
from memoryd.store.document_rows import Row, document_row, entries_of, passage_rows, superseding_rows
from memoryd.store.model import Document, document_id

_ABOUT = "source, size, date, evergreen, title, front_matter, notices, skipped, scope"
_DOCUMENT = f"SELECT workspace, path, content_hash, {_ABOUT} FROM documents WHERE id = ?"  # noqa: S608 - ours
_SUPERSEDING = "SELECT ordinal, choice, is_newer, other_id FROM superseding WHERE document_id = ? ORDER BY 1, 2"
_PASSAGES = """
    SELECT ordinal, id, text, text_hash, start_line, end_line FROM passages WHERE document_id = ? ORDER BY ordinal
"""
_CHUNKS = """
    SELECT ordinal, key, first_passage, last_passage, passages, heading, start_line, end_line FROM chunks
     WHERE document_id = ? ORDER BY ordinal
"""


@dataclass(frozen=True, slots=True)
class Rows:
    """A document as the ledger's rows, without row numbers and times."""

    workspace: str
    path: str
    content_hash: str
    about: Row
    superseding: tuple[Row, ...]
    passages: tuple[Row, ...]  # ordinal, id, text, hash of what is embedded, lines
    chunks: tuple[Row, ...]  # ordinal, key, first and last passage, ids of all of them, heading, lines

    def facts(self) -> LedgerFacts:
        """What of it goes into the digest: a passage's id stands for its text."""
        passages = tuple((o, identity, h is not None, *lines) for o, identity, _, h, *lines in self.passages)
        chunks = tuple((*row[:4], row[4].hex(), *row[5:]) for row in self.chunks)
        return LedgerFacts(self.workspace, self.path, self.content_hash, self.about, self.superseding, passages, chunks)

    def wanted(self) -> dict[int, bytes]:
        """The passages that want a vector, and the hash of what is embedded."""
        return {row[1]: row[3] for row in self.passages if row[3] is not None}


@dataclass(frozen=True, slots=True)
class Difference:
    """How rows differ from what they should be."""

    kind: str  # "wrong_lines", "duplicate" or "wrong_rows"
    count: int  # rows


def read_rows(sql: sqlite3.Connection, identity: int) -> Rows | None:
    row = sql.execute(_DOCUMENT, (identity,)).fetchone()
    if row is None:
        return None
    others = (tuple(sql.execute(query, (identity,))) for query in (_SUPERSEDING, _PASSAGES, _CHUNKS))
    return Rows(row[0], row[1], row[2], row[3:], *others)


def expected_rows(document: Document, skipped: str | None) -> Rows:
    identity = document_id(document.workspace, document.path)
    row = document_row(identity, document, skipped=skipped, now=0.0)
    about = (row[3], row[6], row[7], int(row[8]), *row[9:13], row[14])  # in the order of _ABOUT
    if skipped is not None:  # looked at, and nothing of it kept
        document_passages: list[Row] = []
        chunks: tuple[Row, ...] = ()
    else:
        document_passages = passage_rows(identity, document.passages)
        chunks = tuple(
            (c.ordinal, entry.key, c.first_passage, c.last_passage, entry.passages, c.heading, c.start_line, c.end_line)
            for entry in entries_of(identity, document, document_passages)
            for c in (entry.chunk,)
        )
    return Rows(
        document.workspace,
        document.path,
        document.content_hash,
        about,
        tuple(
            (ordinal, choice, int(newer), other)
            for _, ordinal, choice, newer, other in superseding_rows(identity, document)
        ),
        tuple(row[1:] for row in document_passages),
        chunks,
    )


def compare_rows(held: Rows, expected: Rows) -> list[Difference]:
    """What is wrong with the rows of a document whose file is the one that was read."""
    if (held.about, held.superseding) != (expected.about, expected.superseding):
        rows = [Difference("wrong_rows", 1)]
    else:
        rows = []
    for mine, theirs in ((held.passages, expected.passages), (held.chunks, expected.chunks)):
        rows.extend(_compare(mine, theirs))
    counts: Counter[str] = Counter()
    for difference in rows:
        counts[difference.kind] += difference.count
    return [Difference(kind, count) for kind, count in counts.items()]


def _compare(held: tuple[Row, ...], expected: tuple[Row, ...]) -> Iterable[Difference]:
    if held == expected:
        return
    if len(held) == len(expected) and _without_lines(held) == _without_lines(expected):
        yield Difference("wrong_lines", sum(a != b for a, b in zip(held, expected, strict=True)))
        return
    names, wanted = Counter(row[1] for row in held), Counter(row[1] for row in expected)
    doubled = sum((names - wanted)[name] for name in names - wanted if name in wanted)
    others = sum(count for name, count in (names - wanted).items() if name not in wanted)
    lacking = sum((wanted - names).values())
    if doubled:
        yield Difference("duplicate", doubled)
    if others or lacking or not doubled:
        yield Difference("wrong_rows", max(1, others + lacking))


def _without_lines(rows: tuple[Row, ...]) -> list[Row]:
    return [row[:-2] for row in rows]
