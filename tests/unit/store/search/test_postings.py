from __future__ import annotations

import numpy as np
import pytest

from memoryd.store.search import postings
from memoryd.store.search.postings import Index, Postings, add_up
from tests.support.documents import make_document
from tests.support.ledger import Ledger


def read(ledger: Ledger, phrase: str) -> Postings:
    with ledger.database.read() as sql:
        return Index(sql, "chunk_words").postings(phrase)


def texts_with(ledger: Ledger, phrase: str) -> set[str]:
    chunks = set(read(ledger, phrase).chunks.tolist())
    return {text for text, chunk in ledger.chunk_ids().items() if chunk in chunks}


def test_every_chunk_that_has_the_phrase_is_there_with_a_score_that_grows(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "one boat here\n", "boat and boat\n", "no ship\n", "no raft\n", "no oar\n"))
    found = read(ledger, '"boat"')
    score = dict(zip(found.chunks.tolist(), found.scores.tolist(), strict=True))
    ids = ledger.chunk_ids()
    assert score.keys() == {ids["one boat here\n"], ids["boat and boat\n"]}
    assert 0 < score[ids["one boat here\n"]] < score[ids["boat and boat\n"]]


def test_it_is_read_once_while_the_index_is_the_same(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "one boat\n"))
    assert read(ledger, '"boat"') is read(ledger, '"boat"')


def test_it_follows_every_change_of_the_index(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "one boat\n", "a raft\n"))
    assert texts_with(ledger, '"boat"') == {"one boat\n"}
    ledger.put(make_document("b.md", "two boats\n"))
    assert texts_with(ledger, '"boat"') == {"one boat\n", "two boats\n"}
    ledger.put(make_document("b.md", "nothing afloat\n"))
    assert texts_with(ledger, '"boat"') == {"one boat\n"}


def test_of_many_those_stay_that_were_asked_for_last(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_MOST_BYTES", 4 * 16)
    ledger.put(make_document("a.md", "boat ship raft\n", "boat ship oar\n"))
    boat, ship = read(ledger, '"boat"'), read(ledger, '"ship"')
    assert read(ledger, '"boat"') is boat
    read(ledger, '"raft"')  # two places each, and one more: the ship goes
    assert read(ledger, '"boat"') is boat
    assert read(ledger, '"ship"') is not ship


def test_a_phrase_of_more_places_than_are_kept_is_answered_all_the_same(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "_MOST_BYTES", 16)
    ledger.put(make_document("a.md", "one boat\n", "two boats\n"))
    assert len(read(ledger, '"boat"').chunks) == 2
    assert len(read(ledger, '"boat"').chunks) == 2


def test_scores_of_a_chunk_add_up_by_their_factors() -> None:
    first = Postings(np.array([1, 2]), np.array([1.0, 2.0]))
    second = Postings(np.array([2, 7]), np.array([10.0, 20.0]))
    total = add_up([(first, 1.0), (second, 0.5)])
    assert dict(zip(total.chunks.tolist(), total.scores.tolist(), strict=True)) == {1: 1.0, 2: 7.0, 7: 10.0}
