"""Terms in an index that knows which trigrams a chunk has, and not where: what the text of the best has to tell."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from memoryd.store.model import document_id
from memoryd.store.search.answer import LegRank
from memoryd.store.search.legs import trigram_leg
from memoryd.store.search.query import build_query
from memoryd.store.search.rarity import make_phrase
from memoryd.store.search.visibility import Visible
from tests.support.documents import make_document
from tests.support.ledger import Ledger

FILLER = [f"something else entirely, number {number}\n" for number in range(30)]
SCATTERED = "kag, then aga and gar.\n"  # all trigrams of "kagar", and not the word


def find(ledger: Ledger, query: str, limit: int = 100, visible: Visible | None = None) -> dict[str, LegRank]:
    with ledger.database.read() as sql:
        ranking = trigram_leg(sql, build_query(query), limit, visible or Visible()).ranking
    texts = {identity: text for text, identity in ledger.chunk_ids().items()}
    return {texts[chunk]: place for chunk, place in ranking.items()}


def test_chunk_that_has_the_trigrams_and_not_the_term_is_not_found(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", SCATTERED, "The Tamkagar family\n", *FILLER))
    assert list(find(ledger, "kagar")) == ["The Tamkagar family\n"]


def test_trigrams_of_heading_and_text_make_no_term(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "gar and aga\n", *FILLER, heading="kag"))
    assert find(ledger, "kagar") == {}


def test_part_of_a_word_is_found_among_many_chunks_that_have_its_trigrams(ledger: Ledger) -> None:
    crowd = [f"{number} {SCATTERED}" for number in range(200)]
    long = "The Tamkagar family, in a chunk that is much longer than all the others: " + "and so on, " * 50 + "\n"
    ledger.put(make_document("a.md", *crowd[:100], long, *crowd[100:], *FILLER))
    assert list(find(ledger, "kagar", limit=10)) == [long]


def test_what_is_read_further_is_of_what_may_be_seen(ledger: Ledger) -> None:
    ledger.put(make_document("seen.md", *(f"{number} {SCATTERED}" for number in range(60))))
    ledger.put(make_document("hidden.md", "The Tamkagar family\n"))
    assert find(ledger, "kagar", visible=Visible(frozenset({document_id("home", "seen.md")}))) == {}
    assert list(find(ledger, "kagar", visible=Visible(frozenset({document_id("home", "hidden.md")})))) == [
        "The Tamkagar family\n"
    ]


def test_chunks_beyond_those_that_are_read_come_after_them(ledger: Ledger) -> None:
    some = [f"the ledger that is kept of day {number}\n" for number in range(60)]
    ledger.put(make_document("a.md", *some, "ledger beside ledger\n", *FILLER))
    found = find(ledger, "ledger")
    assert next(iter(found)) == "ledger beside ledger\n"
    assert set(found) == {*some, "ledger beside ledger\n"}
    assert [place.rank for place in found.values()] == list(range(1, 62))


def test_term_that_no_chunk_has_counts_as_missing_from_all(ledger: Ledger) -> None:
    """As a word of which not even the trigrams are there: the best hit has the smaller share of what was asked for."""
    ledger.put(make_document("a.md", SCATTERED, "the zeppelin\n", *FILLER))
    alone, beside = find(ledger, "zeppelin"), find(ledger, "zeppelin kagar")
    unheard = find(ledger, "zeppelin xyzzy")
    assert beside["the zeppelin\n"].share == pytest.approx(unheard["the zeppelin\n"].share)
    assert beside["the zeppelin\n"].share < alone["the zeppelin\n"].share


@pytest.mark.parametrize("term", ["ledger", "bereit", "straße"])
def test_score_is_bm25_as_fts5_has_it_with_places(ledger: Ledger, term: str) -> None:
    texts = ["A ledger, the ledger: LEDGER.\n", "Vorbereitung des Ledgers in der Straße\n", "bereit\n", *FILLER]
    ledger.put(make_document("a.md", *texts[:2], heading="Of ledgers"), make_document("b.md", *texts[2:]))
    query = build_query(term)
    with ledger.database.read() as sql, closing(sqlite3.connect(":memory:")) as placed:
        placed.execute("CREATE VIRTUAL TABLE places USING fts5 (heading, text, tokenize = 'trigram')")
        rows = sql.execute("SELECT id, heading, text FROM folded_chunks").fetchall()
        placed.executemany("INSERT INTO places (rowid, heading, text) VALUES (?, ?, ?)", rows)
        scores = "SELECT rowid, -bm25(places) FROM places WHERE places MATCH ?"
        expected = dict(placed.execute(scores, (f'"{query.terms[0]}"',)).fetchall())
        found = trigram_leg(sql, query, 100, Visible()).ranking
    correction = make_phrase(query.phrases[0], len(expected), len(texts)).correction
    assert expected
    assert {chunk: place.score for chunk, place in found.items()} == pytest.approx(
        {chunk: score * correction for chunk, score in expected.items()}, rel=1e-6
    )


def test_common_terms_of_filtered_documents_that_have_none_find_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.store.search.legs._MOST_TERMS", 6)
    ledger.put(make_document("a.md", *(f"the server, day {number}\n" for number in range(20))))
    ledger.put(make_document("b.md", "nothing of it\n"))
    assert find(ledger, "server", visible=Visible(frozenset({document_id("home", "b.md")}))) == {}
