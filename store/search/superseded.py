"""Which documents are out of date, by what front matter says (``superseded_by:``, ``supersedes:``)."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memoryd.store.model import document_id
from memoryd.store.scope import seen_from
from memoryd.store.search.answer import Hit
from memoryd.store.search.request import SearchQuery


@dataclass(frozen=True, slots=True)
class _Statement:
    older: int
    newer: int | None  # None = a document that does not exist
    path: str | None  # of the newer one; None = the query may not know it


def find_superseded(sql: sqlite3.Connection, query: SearchQuery) -> dict[int, str | None]:
    """The documents that are superseded, each with the path of the one that supersedes it, where that is known.

    Only what the query could see supersedes: a note of another scope, or dated after ``as_of``, hides nothing by
    saying ``supersedes``. Where notes supersede each other in a circle, none of them is superseded by another of it.
    """
    statements = list(_read_statements(sql, query))
    if not statements:
        return {}
    circles = _circles([(each.older, each.newer) for each in statements if each.newer is not None])
    superseded: dict[int, str | None] = {}
    for each in statements:
        if each.newer is None or circles.get(each.older, each.older) != circles.get(each.newer, each.newer):
            superseded[each.older] = superseded.get(each.older) or each.path
    return superseded


def mark_superseded(sql: sqlite3.Connection, hits: Sequence[Hit], query: SearchQuery) -> list[Hit]:
    """The hits of a query that includes what is superseded, with what is so marked."""
    superseded = find_superseded(sql, query) if query.include_superseded else {}
    if not superseded:
        return list(hits)
    marked = []
    for hit in hits:
        document = document_id(hit.workspace, hit.path)
        by = superseded.get(document)
        marked.append(replace(hit, superseded=True, superseded_by=by) if document in superseded else hit)
    return marked


def _read_statements(sql: sqlite3.Connection, query: SearchQuery) -> Iterator[_Statement]:
    """Each statement of a document, about the first of the places that it names at which there is one."""
    visible = None if query.scope is None else seen_from(query.scope)
    as_of = query.as_of.isoformat() if query.as_of else None
    rows = sql.execute(
        # With min(), SQLite takes the other columns from the row that has the minimum.
        """
        SELECT s.document_id, s.is_newer, own.path, own.date, own.scope, o.id, o.path, o.date, o.scope,
               min(CASE WHEN o.id IS NULL THEN NULL ELSE s.choice END)
          FROM superseding s JOIN documents own ON own.id = s.document_id
          LEFT JOIN documents o ON o.id = s.other_id AND o.skipped IS NULL
         GROUP BY s.document_id, s.ordinal
        """
    )
    for own, is_newer, *about_own, other, path, written, scope, _ in rows:
        if other is None:
            if not is_newer:
                yield _Statement(own, None, None)
            continue
        older, newer = (other, own) if is_newer else (own, other)
        if is_newer:
            path, written, scope = about_own
        is_seen = visible is None or scope in visible
        is_later = as_of is not None and written is not None and written > as_of
        if not is_later and (is_seen or not is_newer):
            yield _Statement(older, newer, path if is_seen else None)


def _circles(edges: Sequence[tuple[int, int]]) -> Mapping[int, int]:
    """A number for each node that may be in a circle, the same for those that lead to each other.

    These are the strongly connected components, by Kosaraju's algorithm, without recursion: a chain may be long.
    """
    inner = {start for start, _ in edges} & {end for _, end in edges}
    ahead: dict[int, list[int]] = defaultdict(list)
    back: dict[int, list[int]] = defaultdict(list)
    for start, end in edges:
        if start in inner and end in inner:
            ahead[start].append(end)
            back[end].append(start)
    order: list[int] = []
    seen: set[int] = set()
    for node in (*ahead, *back):
        order += _depth_first(node, ahead, seen)
    numbers: dict[int, int] = {}
    seen = set()
    for node in reversed(order):
        numbers.update(dict.fromkeys(_depth_first(node, back, seen), node))
    return numbers


def _depth_first(start: int, edges: Mapping[int, Sequence[int]], seen: set[int]) -> list[int]:
    """What is reached from a node and was not seen before, each after all that is reached from it."""
    if start in seen:
        return []
    seen.add(start)
    finished: list[int] = []
    path = [(start, iter(edges.get(start, ())))]
    while path:
        node, ends = path[-1]
        following = next((end for end in ends if end not in seen), None)
        if following is None:
            path.pop()
            finished.append(node)
        else:
            seen.add(following)
            path.append((following, iter(edges.get(following, ()))))
    return finished
