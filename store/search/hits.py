"""From candidates to hits: which of them are returned, and what is shown of each."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import date

from memoryd.store.protocols import VectorIndex
from memoryd.store.search.answer import Candidate, Hit, Lines, Lost
from memoryd.store.search.query import KeywordQuery
from memoryd.store.search.request import SearchQuery, SearchSettings
from memoryd.store.search.snippet import best_passage, cut_snippet


def select_hits(
    sql: sqlite3.Connection,
    candidates: Sequence[Candidate],
    query: SearchQuery,
    keywords: KeywordQuery,
    settings: SearchSettings,
    vectors: VectorIndex | None,  # noqa: ARG001
) -> tuple[list[Hit], list[Lost]]:
    """The candidates, best first, that are returned, and those that are not. ``vectors``: None without the leg."""
    limit = settings.limit if query.limit is None else query.limit
    min_score = settings.min_score if query.min_score is None else query.min_score
    hits: list[Hit] = []
    lost: list[Lost] = []
    seen: dict[str, int] = {}
    for candidate in candidates:
        if len(hits) == limit:
            lost.append(Lost(candidate, "limit"))
            continue
        if candidate.score < min_score:
            lost.append(Lost(candidate, "min_score"))
            continue
        hit, text = read_hit(sql, candidate, keywords, settings.snippet_chars)
        same = seen.setdefault(text.casefold().strip(), candidate.chunk_id)
        if same != candidate.chunk_id:
            lost.append(Lost(candidate, "duplicate", same))
            continue
        hits.append(hit)
    return hits, lost


def read_hit(
    sql: sqlite3.Connection, candidate: Candidate, keywords: KeywordQuery, snippet_chars: int
) -> tuple[Hit, str]:
    key, first, last, heading, start_line, end_line, identity, workspace, path, source, written = sql.execute(
        """
        SELECT c.key, c.first_passage, c.last_passage, c.heading, c.start_line, c.end_line,
               d.id, d.workspace, d.path, d.source, d.date
          FROM chunks c JOIN documents d ON d.id = c.document_id WHERE c.id = ?
        """,
        (candidate.chunk_id,),
    ).fetchone()
    rows = sql.execute(
        "SELECT text, start_line, end_line FROM passages WHERE document_id = ? AND ordinal BETWEEN ? AND ?"
        " ORDER BY ordinal",
        (identity, first, last),
    ).fetchall()
    passages = [row[0] for row in rows]
    best = best_passage(passages, first, candidate.legs, keywords)
    before = sum(map(len, passages[:best]))
    text = "".join(passages)
    hit = Hit(
        id=key,
        workspace=workspace,
        path=path,
        start_line=start_line,
        end_line=end_line,
        heading=heading,
        source=source,
        date=date.fromisoformat(written) if written else None,
        score=candidate.score,
        snippet=cut_snippet(text, before, before + len(passages[best]), snippet_chars),
        best=Lines(*rows[best][1:]),
        candidate=candidate,
    )
    return hit, text
