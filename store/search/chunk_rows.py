"""What the ledger says of some chunks: their places and their passages, read for all of them at once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from datetime import date
from typing import NamedTuple

from memoryd.store.search.answer import Lines, Origin
from memoryd.store.search.neighbours import Span


class PassageRow(NamedTuple):
    id: int
    text: str
    start_line: int


class ChunkRow(NamedTuple):
    key: str
    span: Span
    heading: str
    start_line: int
    end_line: int
    workspace: str
    path: str
    source: str
    date: date | None
    scope: str
    origin: Origin | None  # of a fact
    passages: dict[int, PassageRow]  # by ordinal, in order

    @property
    def text(self) -> str:
        return "".join(passage.text for passage in self.passages.values())


def read_chunks(
    sql: sqlite3.Connection, ids: Collection[int], known: Mapping[int, ChunkRow] | None = None
) -> dict[int, ChunkRow]:
    """Chunk id -> what the ledger says of it. ``known``: what was read before of some."""
    held = {identity: known[identity] for identity in ids if identity in known} if known else {}
    if len(held) == len(ids):
        return held
    wanted = json.dumps([identity for identity in ids if identity not in held])
    rows = sql.execute(
        """
        SELECT c.id, c.key, c.document_id, c.first_passage, c.last_passage, c.heading, c.start_line, c.end_line,
               d.workspace, d.path, d.source, d.date, d.scope,
               CASE d.source WHEN 'facts' THEN json_extract(d.front_matter, '$.origin') END
          FROM json_each(?) wanted JOIN chunks c ON c.id = wanted.value JOIN documents d ON d.id = c.document_id
        """,
        (wanted,),
    )
    chunks = {
        identity: ChunkRow(
            key=key,
            span=Span(document, first, last),
            heading=heading,
            start_line=start_line,
            end_line=end_line,
            workspace=workspace,
            path=path,
            source=source,
            date=date.fromisoformat(written) if written else None,
            scope=scope,
            origin=read_origin(origin),
            passages={},
        )
        for identity, key, document, first, last, heading, start_line, end_line, workspace, path, source, written,
            scope, origin
        in rows
    }  # fmt: skip
    passages = sql.execute(
        """
        SELECT c.id, p.ordinal, p.id, p.text, p.start_line
          FROM json_each(?) wanted CROSS JOIN chunks c ON c.id = wanted.value
         CROSS JOIN passages p ON p.document_id = c.document_id AND p.ordinal BETWEEN c.first_passage AND c.last_passage
        """,  # joined in this order, the passages of a chunk come in theirs: by the key of their table
        (wanted,),
    )
    for chunk, ordinal, *passage in passages.fetchall():
        chunks[chunk].passages[ordinal] = PassageRow(*passage)
    return chunks | held


def read_origin(stated: str | None) -> Origin | None:
    """Of a fact's front matter, in JSON. A person may have edited it: what is not whole is none."""
    origin = json.loads(stated) if stated else None
    if not isinstance(origin, dict):
        return None
    match origin.get("workspace"), origin.get("path"), origin.get("lines"):
        case str(workspace), str(path), [int(first), int(last)]:
            return Origin(workspace, path, Lines(first, last))
    return None
