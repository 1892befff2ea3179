"""What a query may see. Filters are applied here and inside each leg, so that a filtered query is never starved."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from memoryd.store.globs import matches_any
from memoryd.store.search.request import SearchQuery


@dataclass(frozen=True, slots=True)
class Visible:
    documents: frozenset[int] | None = None  # None = all of them
    hidden_chunks: frozenset[int] = frozenset()  # of those documents, what the caller has already


def find_visible(sql: sqlite3.Connection, query: SearchQuery) -> Visible:
    """The documents that the filters leave."""
    if not (query.workspaces or query.sources or query.paths):
        return Visible()
    rows = sql.execute("SELECT id, workspace, source, path FROM documents WHERE skipped IS NULL")
    return Visible(
        frozenset(
            identity
            for identity, workspace, source, path in rows
            if (not query.workspaces or workspace in query.workspaces)
            and (not query.sources or source in query.sources)
            and (not query.paths or matches_any(path, query.paths))
        )
    )
