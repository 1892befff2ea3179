from __future__ import annotations

import pytest

from memoryd.store.search.postings import Index
from memoryd.store.search.query import build_query
from memoryd.store.search.rarity import (
    Phrase,
    Written,
    count_phrases,
    make_phrase,
    perfect_score,
    telling_phrases,
)
from memoryd.store.search.visibility import Visible
from tests.support.documents import make_document
from tests.support.ledger import Ledger


def count(ledger: Ledger, *texts: str, most: int = 1000) -> dict[str, int]:
    with ledger.database.read() as sql:
        return {phrase.text: phrase.having for phrase in count_phrases(Index(sql, "chunk_words"), texts, most)}


def test_chunks_that_have_a_phrase_are_counted(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "one boat\n", "two boats\n", "no ship\n"))
    assert count(ledger, '"boat"', '"ship"', '"raft"') == {'"boat"': 2, '"ship"': 1, '"raft"': 0}


@pytest.mark.parametrize("chunks", [0, 1, 127, 128, 300])
def test_number_of_all_chunks_is_known(ledger: Ledger, chunks: int) -> None:
    ledger.put(make_document("a.md", *(f"text {number}\n" for number in range(chunks))))
    with ledger.database.read() as sql:
        assert [phrase.chunks for phrase in count_phrases(Index(sql, "chunk_words"), ['"x"'], 10)] == [chunks]


def test_common_phrase_is_counted_no_further_than_needed(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", *(f"boat {number}\n" for number in range(20)), "a rare ship\n"))
    assert count(ledger, '"boat"', '"ship"', most=5) == {'"boat"': 6, '"ship"': 1}
    assert count(ledger, '"boat"', most=5) == {'"boat"': 6}


def test_counts_follow_every_change_of_the_index(ledger: Ledger) -> None:
    """They are remembered, and one that is out of date would hide a note."""
    seen = []
    for text in ("one boat\n", "one raft\n", "two rafts\n", "no ship\n", "one boat\n"):
        ledger.put(make_document("a.md", text))
        seen.append(tuple(count(ledger, '"boat"', '"raft"').values()))
        assert tuple(count(ledger, '"boat"', '"raft"').values()) == seen[-1]
    assert seen == [(1, 0), (0, 1), (0, 1), (0, 0), (1, 0)]


def test_remembered_counts_are_of_one_snapshot(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "one boat\n"))
    with ledger.database.read() as before:
        assert count_phrases(Index(before, "chunk_words"), ['"boat"'], 10)[0].having == 1
        ledger.put(make_document("b.md", "two boats\n"))
        assert count_phrases(Index(before, "chunk_words"), ['"boat"'], 10)[0].having == 1
    assert count(ledger, '"boat"') == {'"boat"': 2}


def test_words_of_a_question_are_as_rare_as_among_notes_in_its_script() -> None:
    """In a memory that is Chinese for the most part "what" is rare, and still says nothing."""
    english = Written("latin", part=0.1)
    what, name = make_phrase('"what"', 90, 1000, english), make_phrase('"caroline"', 2, 1000, english)
    assert what.weight < 0.15 * name.weight
    assert make_phrase('"what"', 90, 1000).weight > 0.35 * make_phrase('"caroline"', 2, 1000).weight


def test_foreign_name_in_a_question_is_as_rare_as_in_the_whole_memory() -> None:
    chinese = Written("han", part=0.9)
    assert make_phrase('"docker"', 5, 1000, chinese).weight == make_phrase('"docker"', 5, 1000).weight


def test_more_chunks_may_have_a_phrase_than_are_in_its_script() -> None:
    assert make_phrase('"docker"', 500, 1000, Written("latin", part=0.1)).weight > 0


def test_what_is_hiragana_counts_less_than_what_a_question_is_about() -> None:
    matter, ending, grammar = (make_phrase(f'"{pair}"', 5, 1000).weight for pair in ("教皇", "皇は", "った"))
    assert matter > ending > grammar > 0
    assert make_phrase('"2012"', 5, 1000).weight == matter


def phrases(*having: int) -> list[Phrase]:
    return [make_phrase(f"{place}", each, 1000) for place, each in enumerate(having)]


@pytest.mark.parametrize(
    ("having", "kept"),
    [
        ((10, 900, 20), (10, 20)),  # what is common costs much and tells little
        ((900,), (900,)),  # but something is asked for
        ((900, 0, 800), (900, 0, 800)),  # where all that any chunk has is common, all of it
        ((0, 0), (0, 0)),
        ((), ()),
    ],
)
def test_telling_phrases_are_the_rarest(having: tuple[int, ...], kept: tuple[int, ...]) -> None:
    assert tuple(phrase.having for phrase in telling_phrases(phrases(*having), most=100)) == kept


def test_rare_phrases_weigh_more_and_every_phrase_weighs_something() -> None:
    weights = [phrase.weight for phrase in phrases(0, 1, 10, 500, 1000)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0


def test_correction_makes_up_for_what_fts5_leaves_out() -> None:
    assert make_phrase("x", 1, 1000).correction == pytest.approx(1.0, abs=0.01)
    assert make_phrase("x", 1, 2).correction > 1000


def test_perfect_score_is_never_reached_and_neared_by_what_says_nothing_else(ledger: Ledger) -> None:
    from memoryd.store.search.legs import words_leg

    ledger.put(make_document("a.md", "boat " * 200 + "\n", "a boat and much else\n", "nothing of the kind\n"))
    with ledger.database.read() as sql:
        first, second = words_leg(sql, build_query("boat"), 10, Visible()).ranking.values()
    assert 0.9 < first.share < 1
    assert second.share < first.share - 0.1


def test_perfect_score_counts_what_the_memory_lacks() -> None:
    assert perfect_score(phrases(10, 0)) > 2 * perfect_score(phrases(10))


def test_what_was_counted_is_counted_on_only_where_there_may_be_more(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", *(f"boat {number}\n" for number in range(20)), "a ship\n"))
    with ledger.database.read() as sql:
        index, asked = Index(sql, "chunk_words"), list[str]()
        sql.set_trace_callback(asked.append)
        assert [index.count('"ship"', end) for end in (5, 1, 9)] == [1, 1, 1]
        assert [index.count('"boat"', end) for end in (5, 3, 9, 30, 40, 7)] == [5, 3, 9, 20, 20, 7]
        assert [index.count('"raft"', end) for end in (1, 100)] == [0, 0]
        sql.set_trace_callback(None)
    matched = [statement for statement in asked if "MATCH" in statement]
    assert [sum(word in statement for statement in matched) for word in ("ship", "boat", "raft")] == [1, 3, 1]
