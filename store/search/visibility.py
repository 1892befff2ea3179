"""What a query may see. Filters are applied here and inside each leg, so that a filtered query is never starved."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryd.store.generations import Pending
from memoryd.store.globs import matches_any
from memoryd.store.model import document_id
from memoryd.store.scope import UNKNOWN, seen_from
from memoryd.store.search.owners import Column, owners_of
from memoryd.store.search.request import SearchQuery
from memoryd.store.search.superseded import find_superseded
from memoryd.store.sqlite_file import Connection

_FEW_CHUNKS = 100  # that the legs pass over one by one; more are left out by naming the documents that stay
_CHUNKS_OF_DOCUMENTS = f"""
    SELECT id FROM chunks WHERE document_id IN (SELECT value FROM json_each(?)) LIMIT {_FEW_CHUNKS + 1}
"""  # noqa: S608 - of constants
_FACTS_OF = (  # a fact is kept in a workspace of memoryd's own, and belongs to the one that it was made of
    "(source = 'facts' AND json_extract(front_matter, '$.origin.workspace') IN"
    " (SELECT value FROM json_each(:workspace)))"
)
_IN_SQL = ("workspaces", "sources", "scope", "after", "before", "as_of")  # filters that SQL alone can apply
_filters_of = attrgetter(*_IN_SQL, "paths", "exclude", "include_superseded", "hidden_sources")
_KEPT = "visible"
_MOST_KEPT = 8  # filters


@dataclass(frozen=True)
class Visible:
    documents: frozenset[int] | None = None  # None = all of them
    hidden_chunks: frozenset[int] = frozenset()  # of those documents

    def shows(self, document: int, chunk: int) -> bool:
        return (self.documents is None or document in self.documents) and chunk not in self.hidden_chunks

    def those_of(self, sql: sqlite3.Connection, chunks: Column) -> NDArray[np.bool_]:
        """Which of these chunks may be seen."""
        seen = np.ones(len(chunks), np.bool_)
        if self.documents is not None:
            owners = owners_of(sql, chunks)
            seen = self._ordered[np.searchsorted(self._ordered, owners)] == owners
        if self.hidden_chunks:
            seen &= np.isin(chunks, list(self.hidden_chunks), invert=True)
        return seen

    @cached_property
    def _ordered(self) -> Column:
        """The documents, the lowest first, and one that there never is: whatever is looked for has a place."""
        documents = np.fromiter(self.documents or (), np.int64)
        return np.append(np.sort(documents), np.iinfo(np.int64).max)


def find_visible(sql: sqlite3.Connection, query: SearchQuery) -> Visible:
    """The documents that the filters leave, and of them the chunks that are hidden one by one.

    Who asks mostly asks again by the same filters, so what was found is kept for as long as nobody writes.
    """
    if not isinstance(sql, Connection):
        return _find_visible(sql, query)
    (state,) = sql.execute("PRAGMA data_version").fetchone()  # another one when others have written
    of_state, kept = sql.kept.get(_KEPT, (None, {}))
    known: dict[object, Visible] = kept if of_state == state else {}
    filters = _filters_of(query)
    visible = known.pop(filters, None) or _find_visible(sql, query)
    if len(known) >= _MOST_KEPT:
        del known[next(iter(known))]
    known[filters] = visible  # what was asked for last comes last
    sql.kept[_KEPT] = state, known
    return visible


def _find_visible(sql: sqlite3.Connection, query: SearchQuery) -> Visible:
    """A scope is always kept by naming the documents, which the vector index applies before it looks for neighbours."""
    globs = [item for item in query.exclude if "*" in item or "?" in item or item.endswith("/")]
    patterns = set(globs)
    names = [item for item in query.exclude if item not in patterns]
    chunks = _first(sql, "SELECT id FROM chunks WHERE key IN (SELECT value FROM json_each(?))", names)
    documents = _first(sql, "SELECT id FROM documents WHERE path IN (SELECT value FROM json_each(?))", names)
    if not query.include_superseded:
        documents = documents.union(find_superseded(sql, query))
    filters = (query.paths, query.unasked_sources(), *(getattr(query, name) for name in _IN_SQL))
    if not globs and not any(filters):
        theirs = _first(sql, _CHUNKS_OF_DOCUMENTS, documents)
        if len(theirs) <= _FEW_CHUNKS:
            return Visible(None, chunks | theirs)
    return Visible(_find_documents(sql, query, globs, documents), chunks)


def hidden_by(sql: sqlite3.Connection, query: SearchQuery, document: int, chunk: int) -> list[str]:
    """The names of the query's filters that hide a chunk, each by itself; of the last, the option that shows it."""
    everything = SearchQuery(query.text, query.today, include_superseded=True)
    filters = [name for name in (*_IN_SQL, "paths", "exclude") if getattr(query, name)]
    alone = {name: replace(everything, **{name: getattr(query, name)}) for name in filters}
    found = [name for name, each in alone.items() if not find_visible(sql, each).shows(document, chunk)]
    if unasked := query.unasked_sources():
        alone_hidden = replace(everything, hidden_sources=unasked)
        found += [] if find_visible(sql, alone_hidden).shows(document, chunk) else ["hidden_sources"]
    if not query.include_superseded and document in find_superseded(sql, query):
        found.append("include_superseded")
    return found


def _find_documents(
    sql: sqlite3.Connection, query: SearchQuery, exclude: Sequence[str], hidden: Collection[int]
) -> frozenset[int] | None:
    """What no filter hides; None where that is everything."""
    conditions, values = _conditions(query)
    columns = "id, path" if query.paths or exclude else "id"
    where = " AND ".join(["skipped IS NULL", *conditions])
    found: Iterable[Any] = sql.execute(f"SELECT {columns} FROM documents WHERE {where}", values)  # noqa: S608 - of constants
    if query.paths:
        found = [row for row in found if matches_any(row[1], query.paths)]
    if exclude:
        found = [row for row in found if not matches_any(row[1], exclude)]
    documents = frozenset(map(itemgetter(0), found)).difference(hidden)
    (all_documents,) = sql.execute("SELECT count(*) FROM documents WHERE skipped IS NULL").fetchone()
    return None if len(documents) == all_documents else documents


def _conditions(query: SearchQuery) -> tuple[list[str], dict[str, str]]:
    """What SQL can tell of a document. After and before want a date of it; as_of takes it without one."""
    found: list[str] = []
    values: dict[str, str] = {}
    scopes = () if query.scope is None else seen_from(query.scope)
    for column, chosen in (("workspace", query.workspaces), ("source", query.sources), ("scope", scopes)):
        if chosen:
            condition = f"{column} IN (SELECT value FROM json_each(:{column}))"  # noqa: S608 - of constants
            found.append(f"({condition} OR {_FACTS_OF})" if column == "workspace" else condition)
            values[column] = json.dumps(chosen)
    if unasked := query.unasked_sources():
        found.append("source NOT IN (SELECT value FROM json_each(:unasked))")
        values["unasked"] = json.dumps(unasked)
    for name, day, condition in (
        ("after", query.after, "date >= :after"),
        ("before", query.before, "date <= :before"),
        ("as_of", query.as_of, "(date IS NULL OR date <= :as_of)"),
    ):
        if day is not None:
            found.append(condition)
            values[name] = day.isoformat()
    return found, values


def _first(sql: sqlite3.Connection, select: str, listed: Iterable[int | str]) -> frozenset[int]:
    """The first column of what is selected by a list; nothing by an empty one."""
    values = list(listed)
    return frozenset(map(itemgetter(0), sql.execute(select, (json.dumps(values),)))) if values else frozenset()


def name_pending(sql: sqlite3.Connection, pending: Sequence[Pending], scope: str | None) -> list[Pending]:
    """What is pending as far as a query with this scope may know: a path is a word about the note.

    What is another scope's is left out; what nobody has read yet, and may be, has "" for a path.
    """
    if scope is None:
        return list(pending)
    identities = [document_id(entry.workspace, entry.path) for entry in pending]
    rows = sql.execute(
        "SELECT id, scope FROM documents WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(identities),)
    )
    scopes = dict(rows.fetchall())
    named = []
    for identity, entry in zip(identities, pending, strict=True):
        its = scopes.get(identity, UNKNOWN)
        if its in seen_from(scope):
            named.append(entry)
        elif its == UNKNOWN:
            named.append(replace(entry, path=""))
    return named
