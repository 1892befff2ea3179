from __future__ import annotations

from memoryd.store.model import document_id
from memoryd.store.search.missing import missing_words
from memoryd.store.search.query import build_query
from memoryd.store.search.visibility import Visible
from tests.support.documents import make_document
from tests.support.ledger import Ledger


def missing(ledger: Ledger, query: str, visible: Visible | None = None) -> list[str]:
    with ledger.database.read() as sql:
        return missing_words(sql, build_query(query), visible or Visible())


def test_words_that_stand_nowhere_are_missing(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "The queue is RabbitMQ.\n"))
    assert missing(ledger, "kafka or rabbitmq queues") == ["kafka", "or"]
    assert missing(ledger, "rabbitmq") == []


def test_a_word_that_stands_as_a_part_of_another_is_not_missing(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "Kubernetes upgrade\n"))
    assert missing(ledger, "kube nomad") == ["nomad"]


def test_what_is_asked_for_in_pairs_and_a_lone_letter_are_not_told_of(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "Biscuit eats\n"))
    assert missing(ledger, "签证什么时候 Biscuit's") == []


def test_words_of_notes_that_a_query_may_not_see_are_missing_to_it(ledger: Ledger) -> None:
    mine, theirs = make_document("a.md", "our boat\n"), make_document("b.md", "the surprise party\n")
    ledger.put(mine, theirs)
    own = Visible(frozenset({document_id("home", "a.md")}))
    assert missing(ledger, "boat surprise") == []
    assert missing(ledger, "boat surprise", own) == ["surprise"]


def test_words_of_chunks_that_are_left_out_are_missing(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "our boat\n", "the surprise party\n"))
    with ledger.database.read() as sql:
        (chunk,) = sql.execute("SELECT id FROM chunks WHERE ordinal = 1").fetchone()
    assert missing(ledger, "boat surprise", Visible(None, frozenset({chunk}))) == ["surprise"]


def test_word_that_stands_nearly_everywhere_is_known_to_all(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", *(f"boat {number}\n" for number in range(1000))), make_document("b.md", "ship\n"))
    assert missing(ledger, "boat", Visible(frozenset({document_id("home", "b.md")}))) == []


def test_a_word_whose_trigrams_stand_apart_is_missing(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "blocks on the floor are good\n"), make_document("b.md", "Blut ist dicker\n"))
    assert missing(ledger, "blood floor") == ["blood"]
    ledger.put(make_document("c.md", "a bloodhound\n"))
    assert missing(ledger, "blood floor") == []
    assert missing(ledger, "blood", Visible(frozenset({document_id("home", "a.md")}))) == ["blood"]


def test_a_word_that_a_heading_has_as_a_part_is_not_missing(ledger: Ledger) -> None:
    ledger.put(make_document("bloodhounds.md", "they bark\n"))
    assert missing(ledger, "blood") == []


def test_where_very_many_chunks_have_the_trigrams_one_is_taken_to_have_the_word(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", *(f"blocks {number} on the floor are good\n" for number in range(50))))
    assert missing(ledger, "blood") == ["blood"]
    ledger.put(make_document("b.md", "blocks on this floor are good\n"))
    assert missing(ledger, "blood") == []


def test_a_word_that_stands_in_another_case_is_not_missing(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "Бабушка варит борщ\n"))
    assert missing(ledger, "рецепт борща бабушки") == ["рецепт"]
    assert missing(ledger, "grandmother") == ["grandmother"]
