from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.vector_ids import Column, Owned, in_order, lacking, marked_ids, wanted_ids
from tests.support.documents import make_document
from tests.support.ledger import Ledger


def column(*ids: int) -> Column:
    return np.array(ids, np.int64)


def wanted(ledger: Ledger) -> Owned:
    with ledger.database.read() as sql:
        return wanted_ids(sql)


def test_passages_that_are_embedded_are_wanted_once_each_with_their_documents(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "one\n", "two\n", "---\n"), make_document("memory/b.md", "one\n"))
    with ledger.database.read() as sql:
        rows = sql.execute("SELECT id, document_id FROM passages WHERE text_hash IS NOT NULL ORDER BY id").fetchall()
    assert list(zip(*(each.tolist() for each in wanted(ledger)), strict=True)) == rows
    assert len(rows) == 3


def test_nothing_is_wanted_of_an_empty_ledger(ledger: Ledger) -> None:
    assert [len(each) for each in wanted(ledger)] == [0, 0]


def test_marks_equal_what_is_wanted_once_all_are_there(ledger: Ledger) -> None:
    generation = ledger.generation()
    ledger.put(make_document("memory/a.md", "one\n", "two\n"))
    for text in ("one\n", "two\n"):
        with ledger.database.read() as sql:
            assert not marked_ids(sql, generation.id).equals(wanted_ids(sql))
        ledger.generations.mark(generation.id, [ledger.passage_ids()[text]])
    with ledger.database.read() as sql:
        assert marked_ids(sql, generation.id).equals(wanted_ids(sql))


def test_what_is_there_twice_or_of_another_document_is_not_the_same() -> None:
    one = in_order(column(5, 3), column(1, 2))
    assert one.equals(Owned(column(3, 5), column(2, 1)))
    assert not one.equals(in_order(column(5, 3, 3), column(1, 2, 2)))
    assert not one.equals(in_order(column(5, 3), column(1, 1)))


@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30)))
def test_what_is_lacking_is_the_difference(ids: list[int], others: list[int]) -> None:
    """Also where one is there twice."""
    found = lacking(column(*sorted(ids)), column(*sorted(others)))
    assert found.tolist() == [each for each in sorted(ids) if each not in others]
