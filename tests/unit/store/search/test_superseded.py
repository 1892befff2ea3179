"""Which documents are out of date."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.model import Document, Superseding
from memoryd.store.search.request import SearchQuery
from memoryd.store.search.superseded import _circles, find_superseded
from tests.support.documents import make_document
from tests.support.ledger import Ledger

TODAY = date(2026, 11, 15)


def note(
    path: str,
    *,
    supersedes: tuple[str, ...] = (),
    superseded_by: tuple[str, ...] = (),
    scope: str = "global",
    written: date | None = None,
    workspace: str = "home",
) -> Document:
    statements = [Superseding(True, (other,)) for other in supersedes]
    statements += [Superseding(False, (other,)) for other in superseded_by]
    document = make_document(path, f"words of {path}\n", written=written, workspace=workspace)
    return replace(document, scope=scope, superseding=tuple(statements))


def superseded(ledger: Ledger, **options: Any) -> dict[str, str | None]:
    """Path of what is superseded -> path of what supersedes it."""
    with ledger.database.read() as sql:
        found = find_superseded(sql, replace(SearchQuery("words", TODAY), **options))
        names = dict(sql.execute("SELECT id, path FROM documents").fetchall())
    return {names[identity]: by for identity, by in found.items() if identity in names}


def test_either_of_the_two_may_say_it(ledger: Ledger) -> None:
    ledger.put(note("a", superseded_by=("b",)), note("b"), note("c"), note("d", supersedes=("c",)))
    assert superseded(ledger) == {"a": "b", "c": "d"}


def test_chain_leaves_its_end(ledger: Ledger) -> None:
    ledger.put(note("a"), note("b", supersedes=("a",)), note("c", supersedes=("b",)))
    assert superseded(ledger) == {"a": "b", "b": "c"}


def test_order_in_which_notes_are_indexed_does_not_matter(ledger: Ledger) -> None:
    ledger.put(note("b", supersedes=("a",)))
    assert superseded(ledger) == {}
    ledger.put(note("a"))
    assert superseded(ledger) == {"a": "b"}


def test_claim_goes_with_the_note_that_makes_it(ledger: Ledger) -> None:
    ledger.put(note("a"), note("b", supersedes=("a",)))
    ledger.documents.forget("home", "b", 0)
    assert superseded(ledger) == {}
    ledger.put(note("b", supersedes=("a",)))
    ledger.put(note("b"))  # edited: it says so no more
    assert superseded(ledger) == {}
    ledger.put(note("b", supersedes=("a",)))
    ledger.documents.skip(note("b"), "not text", 0)
    assert superseded(ledger) == {}
    assert ledger.rows("superseding") == 0


def test_author_of_the_older_note_is_believed_though_the_newer_one_is_missing(ledger: Ledger) -> None:
    ledger.put(note("a", superseded_by=("gone",)), replace(note("b"), superseding=(Superseding(False, ()),)))
    assert superseded(ledger) == {"a": None, "b": None}


def test_first_place_at_which_there_is_a_note_counts(ledger: Ledger) -> None:
    statement = Superseding(True, ("memory/x", "memory/x.md", "x.md"))
    ledger.put(note("x.md"), replace(note("memory/new.md"), superseding=(statement,)))
    assert superseded(ledger) == {"x.md": "memory/new.md"}
    ledger.put(note("memory/x.md"))
    assert superseded(ledger) == {"memory/x.md": "memory/new.md"}


def test_workspaces_do_not_mix(ledger: Ledger) -> None:
    ledger.put(note("a", workspace="work"), note("b", supersedes=("a",)))
    assert superseded(ledger) == {}


# -- circles --------------------------------------------------------------------------------------------------


def test_note_that_names_itself_supersedes_nothing(ledger: Ledger) -> None:
    ledger.put(note("a", supersedes=("a",), superseded_by=("a",)))
    assert superseded(ledger) == {}


def test_nobody_in_a_circle_is_superseded_by_it(ledger: Ledger) -> None:
    ledger.put(note("a", supersedes=("b",)), note("b", supersedes=("c",)), note("c", supersedes=("a",)))
    assert superseded(ledger) == {}
    ledger.put(note("before"), note("a", supersedes=("b", "before")), note("after", supersedes=("c",)))
    assert superseded(ledger) == {"before": "a", "c": "after"}


def test_chain_of_thousands_is_followed(ledger: Ledger) -> None:
    edges = [(number, number + 1) for number in range(20_000)]
    assert len(set(_circles(edges).values())) == len(_circles(edges))
    assert len(set(_circles([*edges, (20_000, 0)]).values())) == 1


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14))
def test_same_circle_is_to_lead_to_each_other(edges: list[tuple[int, int]]) -> None:
    reach = {(node, node) for edge in edges for node in edge} | set(edges)
    for _ in range(7):
        reach |= {(a, d) for a, b in reach for c, d in reach if b == c}
    circles = _circles(edges)
    for start, end in edges:
        assert (circles.get(start, start) == circles.get(end, end)) == ((end, start) in reach)


# -- what the query can see -----------------------------------------------------------------------------------


def test_note_that_comes_later_supersedes_nothing_yet(ledger: Ledger) -> None:
    later = date(2026, 11, 1)
    ledger.put(note("a"), note("b", supersedes=("a",), written=later))
    ledger.put(note("c", superseded_by=("d",)), note("d", written=later))
    assert superseded(ledger) == superseded(ledger, as_of=later) == {"a": "b", "c": "d"}
    assert superseded(ledger, as_of=date(2026, 10, 31)) == {}


def test_circle_that_is_closed_later_is_none_yet(ledger: Ledger) -> None:
    ledger.put(note("a", superseded_by=("b",), written=date(2026, 11, 1)), note("b", superseded_by=("a",)))
    assert superseded(ledger) == {}
    assert superseded(ledger, as_of=date(2026, 10, 1)) == {"a": "b"}


def test_note_of_another_scope_hides_nothing_and_its_path_is_not_told(ledger: Ledger) -> None:
    ledger.put(note("public"), note("secret", supersedes=("public",), scope="user:bob"))
    ledger.put(note("moved", superseded_by=("secret",)))
    assert superseded(ledger) == superseded(ledger, scope="user:bob") == {"public": "secret", "moved": "secret"}
    assert superseded(ledger, scope="user:ana") == {"moved": None}


@pytest.mark.parametrize("scope", [None, "user:ana"])
def test_memory_without_such_notes_is_not_looked_through(ledger: Ledger, scope: str | None) -> None:
    ledger.put(*(note(f"memory/{number}.md") for number in range(50)))
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    with ledger.database.read() as sql:
        sql.set_progress_handler(count, 1)
        assert find_superseded(sql, SearchQuery("words", TODAY, scope=scope)) == {}
        sql.set_progress_handler(None, 1)
    assert steps < 50  # of SQLite's machine: less than one for each note
