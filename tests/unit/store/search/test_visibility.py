"""What a query may see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.generations import Pending
from memoryd.store.model import Superseding, document_id
from memoryd.store.search.request import SearchQuery
from memoryd.store.search.visibility import Visible, find_visible, hidden_by, name_pending
from memoryd.store.sqlite_file import Connection
from tests.support.documents import make_document
from tests.support.ledger import Ledger, open_ledger

TODAY = date(2026, 11, 15)

# Path -> scope, date, source
NOTES = {
    "MEMORY.md": ("global", None, "memory"),
    "memory/2026-11-01.md": ("global", date(2026, 11, 1), "memory"),
    "memory/2026-11-10.md": ("user:ana", date(2026, 11, 10), "memory"),
    "memory/bob.md": ("user:bob", None, "memory"),
    "memory/broken.md": ("unknown", None, "memory"),
    "skills/deploy.md": ("agent:coder", None, "skills"),
}
ALL = set(NOTES)


def put_notes(ledger: Ledger) -> None:
    for path, (scope, written, source) in NOTES.items():
        texts = (f"first words of {path}\n", f"more words of {path}\n")
        ledger.put(replace(make_document(path, *texts, written=written, source=source), scope=scope))


@pytest.fixture
def notes(ledger: Ledger) -> Ledger:
    put_notes(ledger)
    return ledger


@pytest.fixture(scope="module")
def same_notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """For properties, which must not change them."""
    with open_ledger(tmp_path_factory.mktemp("ledger") / "ledger.db") as ledger:
        put_notes(ledger)
        yield ledger


def look(ledger: Ledger, **options: Any) -> Visible:
    with ledger.database.read() as sql:
        return find_visible(sql, replace(SearchQuery("words", TODAY), **options))


def seen(ledger: Ledger, **options: Any) -> set[str]:
    """The paths of the documents of which at least one chunk is visible."""
    visible = look(ledger, **options)
    with ledger.database.read() as sql:
        rows = sql.execute(
            "SELECT d.path, d.id, c.id FROM documents d JOIN chunks c ON c.document_id = d.id"
        ).fetchall()
    return {path for path, document, chunk in rows if visible.shows(document, chunk)}


def key_of(ledger: Ledger, text: str) -> str:
    with ledger.database.read() as sql:
        (key,) = sql.execute("SELECT key FROM chunks WHERE id = ?", (ledger.chunk_ids()[text],)).fetchone()
    return str(key)


# -- scope ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "own"),
    [
        ("user:ana", {"memory/2026-11-10.md"}),
        ("user:bob", {"memory/bob.md"}),
        ("agent:coder", {"skills/deploy.md"}),
        ("agent:ana", set()),
        ("global", set()),
    ],
)
def test_scope_sees_what_is_global_and_its_own(notes: Ledger, scope: str, own: set[str]) -> None:
    assert seen(notes, scope=scope) == {"MEMORY.md", "memory/2026-11-01.md"} | own


def test_without_a_scope_everything_is_seen_at_no_cost(notes: Ledger) -> None:
    assert look(notes) == Visible()


def test_filter_that_hides_nothing_is_no_filter(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "words\n"), make_document("b.md", "words\n"))
    ledger.documents.skip(make_document("c.md"), "not text", 0)
    assert look(ledger, scope="user:ana", sources=("memory",), as_of=TODAY) == Visible()


def test_what_is_hidden_by_scope_is_left_to_the_vector_index_too(notes: Ledger) -> None:
    visible = look(notes, scope="user:ana")
    assert visible.documents is not None
    assert document_id("home", "memory/bob.md") not in visible.documents


def test_scope_of_nobody_sees_nothing_of_its_own(ledger: Ledger) -> None:
    ledger.put(replace(make_document("a.md", "words\n"), scope="unknown"))
    assert look(ledger, scope="user:ana").documents == frozenset()


# -- what is kept ---------------------------------------------------------------------------------------------


def test_what_was_found_is_kept_until_somebody_writes(notes: Ledger) -> None:
    first = look(notes, scope="user:ana")
    assert look(notes, scope="user:ana") is first
    assert look(notes, scope="user:bob") != first
    assert look(notes, scope="user:ana") is first
    notes.put(replace(make_document("MEMORY.md", "first words of MEMORY.md\n"), scope="user:bob"))
    assert first.documents is not None
    assert look(notes, scope="user:ana").documents == first.documents - {document_id("home", "MEMORY.md")}


def test_snapshot_sees_what_it_saw(notes: Ledger) -> None:
    query = SearchQuery("words", TODAY, scope="user:ana")
    with notes.database.read() as sql:
        before = find_visible(sql, query)
        notes.put(replace(make_document("memory/new.md", "new words\n"), scope="user:ana"))
        assert find_visible(sql, query) == before
    after = look(notes, scope="user:ana")
    assert before.documents is not None
    assert after.documents == before.documents | {document_id("home", "memory/new.md")}


def test_of_many_filters_the_last_are_kept(notes: Ledger) -> None:
    first, *_, last = (look(notes, scope=f"user:{number}") for number in range(20))
    assert look(notes, scope="user:19") is last
    assert look(notes, scope="user:0") is not first
    with notes.database.read() as sql:
        assert isinstance(sql, Connection)
        assert len(sql.kept["visible"][1]) == 8


@pytest.mark.parametrize(
    "options",
    [{}, {"scope": "user:ana"}, {"scope": "user:nobody", "sources": ("skills",)}, {"exclude": ("MEMORY.md",)}],
)
def test_chunks_are_told_apart_as_one_by_one(notes: Ledger, options: dict[str, Any]) -> None:
    visible = look(notes, **options)
    with notes.database.read() as sql:
        rows = sql.execute("SELECT document_id, id FROM chunks").fetchall()
        told = visible.those_of(sql, np.array([chunk for _, chunk in rows], np.int64))
    assert told.tolist() == [visible.shows(document, chunk) for document, chunk in rows]
    assert len(rows) > 0


# -- exclude --------------------------------------------------------------------------------------------------


def test_chunk_is_excluded_by_the_id_that_its_hit_has(notes: Ledger) -> None:
    first = key_of(notes, "first words of MEMORY.md\n")
    more = key_of(notes, "more words of MEMORY.md\n")
    assert look(notes, exclude=(first,)) == Visible(None, frozenset({notes.chunk_ids()["first words of MEMORY.md\n"]}))
    assert seen(notes, exclude=(first,)) == ALL
    assert seen(notes, exclude=(first, more)) == ALL - {"MEMORY.md"}


@pytest.mark.parametrize(
    ("exclude", "gone"),
    [
        (("MEMORY.md",), {"MEMORY.md"}),
        (("MEMORY.md", "memory/bob.md"), {"MEMORY.md", "memory/bob.md"}),
        (("skills/",), {"skills/deploy.md"}),
        (("memory/2026-*",), {"memory/2026-11-01.md", "memory/2026-11-10.md"}),
        (("**",), ALL),
        (("unknown.md", "0123456789abcdef"), set()),
    ],
)
def test_documents_are_excluded_by_path_or_glob(notes: Ledger, exclude: tuple[str, ...], gone: set[str]) -> None:
    assert seen(notes, exclude=exclude) == ALL - gone


def test_large_document_is_excluded_by_naming_the_others(ledger: Ledger) -> None:
    """The legs pass over a few chunks one by one; for many, the pool of candidates would have to grow with them."""
    ledger.put(make_document("large.md", *(f"words {number}\n" for number in range(101))), make_document("a.md", "a\n"))
    assert look(ledger, exclude=("large.md",)) == Visible(frozenset({document_id("home", "a.md")}))
    assert look(ledger, exclude=("a.md",)) == Visible(None, frozenset({ledger.chunk_ids()["a\n"]}))


# -- dates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        ({"after": date(2026, 11, 1)}, {"memory/2026-11-01.md", "memory/2026-11-10.md"}),
        ({"after": date(2026, 11, 2)}, {"memory/2026-11-10.md"}),
        ({"before": date(2026, 11, 10)}, {"memory/2026-11-01.md", "memory/2026-11-10.md"}),
        ({"before": date(2026, 11, 9)}, {"memory/2026-11-01.md"}),
        ({"after": date(2026, 11, 2), "before": date(2026, 11, 9)}, set()),
    ],
)
def test_after_and_before_take_dated_notes_alone_and_their_own_day(
    notes: Ledger, options: dict[str, date], paths: set[str]
) -> None:
    assert seen(notes, **options) == paths


def test_as_of_hides_what_is_dated_later_and_nothing_else(notes: Ledger) -> None:
    assert seen(notes, as_of=date(2026, 11, 10)) == ALL
    assert seen(notes, as_of=date(2026, 11, 9)) == ALL - {"memory/2026-11-10.md"}


# -- superseded -----------------------------------------------------------------------------------------------


def supersede(ledger: Ledger, path: str, by: str) -> None:
    document = make_document(by, f"newer words of {by}\n")
    ledger.put(replace(document, superseding=(Superseding(True, (path,)),)))


def test_superseded_is_invisible_unless_it_is_asked_for(notes: Ledger) -> None:
    supersede(notes, "memory/bob.md", "memory/bob2.md")
    assert seen(notes) == (ALL | {"memory/bob2.md"}) - {"memory/bob.md"}
    assert seen(notes, include_superseded=True) == ALL | {"memory/bob2.md"}
    assert look(notes, include_superseded=True) == Visible()
    assert look(notes).documents is None  # a few are passed over: the others need not be listed


def test_superseding_note_that_is_filtered_out_still_supersedes(notes: Ledger) -> None:
    supersede(notes, "memory/bob.md", "new.md")
    assert seen(notes, exclude=("new.md",)) == ALL - {"memory/bob.md"}
    assert "memory/bob.md" not in seen(notes, paths=("memory/**",))


# -- together -------------------------------------------------------------------------------------------------


FILTERS = st.tuples(
    st.sampled_from([{}, {"scope": "user:ana"}, {"scope": "user:bob"}]),
    st.sampled_from([{}, {"sources": ("memory",)}, {"sources": ("skills", "facts")}]),
    st.sampled_from([{}, {"paths": ("memory/**",)}, {"workspaces": ("home",)}, {"workspaces": ("work",)}]),
    st.sampled_from([{}, {"exclude": ("MEMORY.md",)}, {"exclude": ("memory/2026-*", "skills/")}]),
    st.sampled_from([{}, {"after": date(2026, 11, 5)}, {"before": date(2026, 11, 5)}, {"as_of": date(2026, 11, 5)}]),
)


@given(filters=FILTERS)
def test_filters_combine_by_all_of_them(same_notes: Ledger, filters: tuple[dict[str, Any], ...]) -> None:
    each = [seen(same_notes, **options) for options in filters]
    together = {name: value for options in filters for name, value in options.items()}
    assert seen(same_notes, **together) == set.intersection(*each)


def test_the_filters_that_hide_a_chunk_are_named(notes: Ledger) -> None:
    supersede(notes, "memory/2026-11-10.md", "new.md")
    document = document_id("home", "memory/2026-11-10.md")
    chunk = notes.chunk_ids()["first words of memory/2026-11-10.md\n"]

    def named(**options: Any) -> list[str]:
        with notes.database.read() as sql:
            return hidden_by(sql, replace(SearchQuery("words", TODAY), **options), document, chunk)

    assert named() == ["include_superseded"]
    assert named(include_superseded=True, scope="user:ana", sources=("memory",), after=date(2026, 11, 1)) == []
    everything = named(
        scope="user:bob",
        sources=("skills",),
        workspaces=("work",),
        paths=("skills/**",),
        exclude=("memory/**",),
        before=date(2026, 11, 9),
        as_of=date(2026, 11, 9),
    )
    assert set(everything) == {
        "scope", "sources", "workspaces", "paths", "exclude", "before", "as_of", "include_superseded"
    }  # fmt: skip


# -- pending --------------------------------------------------------------------------------------------------


def test_pending_notes_are_named_only_to_those_who_may_know_of_them(notes: Ledger) -> None:
    paths = ["MEMORY.md", "memory/bob.md", "memory/2026-11-10.md", "memory/broken.md", "memory/unread.md"]
    pending = [Pending("home", path, "text") for path in paths]
    with notes.database.read() as sql:
        assert name_pending(sql, pending, None) == pending
        named = [entry.path for entry in name_pending(sql, pending, "user:ana")]
    assert named == ["MEMORY.md", "memory/2026-11-10.md", "", ""]
