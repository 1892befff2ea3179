"""What a query's filters leave of the memory, for those who want to know."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from memoryd.store.search.request import SearchQuery
from memoryd.store.search.visibility import find_visible

# By the name of the option, the field of the query.
_FILTERS = {
    "workspace": "workspaces",
    "source": "sources",
    "path": "paths",
    "scope": "scope",
    "exclude": "exclude",
    "after": "after",
    "before": "before",
    "as_of": "as_of",
    "include_superseded": "include_superseded",
}


@dataclass(frozen=True, slots=True)
class FilterReport:
    on: dict[str, Any]  # option -> value
    documents: int  # that are left
    of: int | None  # None = how many there are is not the asker's to know


def report_filters(sql: sqlite3.Connection, query: SearchQuery) -> FilterReport:
    visible = find_visible(sql, query)
    (left,) = sql.execute(
        """
        SELECT count(*) FROM documents d
         WHERE skipped IS NULL AND (:documents IS NULL OR id IN (SELECT value FROM json_each(:documents)))
           AND (:hidden = '[]' OR EXISTS (SELECT 1 FROM chunks c WHERE c.document_id = d.id
                                             AND c.id NOT IN (SELECT value FROM json_each(:hidden))))
        """,
        {
            "documents": None if visible.documents is None else json.dumps(list(visible.documents)),
            "hidden": json.dumps(list(visible.hidden_chunks)),
        },
    ).fetchone()
    (everything,) = sql.execute("SELECT count(*) FROM documents WHERE skipped IS NULL").fetchone()
    on = {name: getattr(query, field) for name, field in _FILTERS.items() if getattr(query, field)}
    if unasked := query.unasked_sources():
        on["hidden_sources"] = unasked
    return FilterReport(on, left, everything if query.scope is None else None)
