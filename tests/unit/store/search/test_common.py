from __future__ import annotations

from memoryd.store.search.common import chance_words
from memoryd.store.search.query import build_query
from tests.support.documents import make_document
from tests.support.ledger import Ledger


def left_out(ledger: Ledger, query: str) -> set[str]:
    with ledger.database.read() as sql:
        return chance_words(sql, build_query(query).words)


def test_function_words_count_for_nothing_in_a_small_memory(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "the ferry leaves at nine"))
    assert left_out(ledger, "where does the dog rest at night") == {"where", "does", "the", "at"}


def test_a_query_is_never_emptied(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "to be or not to be"))
    assert left_out(ledger, "to be or not to be") == set()
    assert left_out(ledger, "who") == set()


def test_large_memory_shows_by_itself_which_words_are_common(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", *(f"note number {number}" for number in range(200))))
    assert left_out(ledger, "where does the dog rest at night") == set()


def test_query_without_words_loses_them_in_every_leg() -> None:
    query = build_query("where is the dog")
    assert query.without({"where", "is", "the"}) == build_query("dog")
