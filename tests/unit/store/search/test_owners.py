"""The document of each chunk is what the ledger says, whatever was asked and written before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.model import document_id
from memoryd.store.search.owners import owners_of, stretches_of
from tests.support.documents import make_document
from tests.support.ledger import Ledger, open_ledger

A, B = document_id("home", "a.md"), document_id("home", "b.md")


def owners(ledger: Ledger, *chunks: int) -> list[int]:
    with ledger.database.read() as sql:
        return [int(owner) for owner in owners_of(sql, np.array(chunks, np.int64))]


def test_each_chunk_is_of_its_document_and_what_is_none_of_no_document(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "boat\n", "ship\n"), make_document("b.md", "raft\n"))
    ids = ledger.chunk_ids()
    chunks = [ids["raft\n"], ids["boat\n"], 10**6, ids["ship\n"], ids["boat\n"]]
    assert owners(ledger, *chunks) == [B, A, 0, A, A]
    assert owners(ledger) == []


def test_what_is_known_is_not_read_again(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "boat\n", "ship\n"))
    boat, ship = (ledger.chunk_ids()[text] for text in ("boat\n", "ship\n"))
    asked: list[str] = []
    with ledger.database.read() as sql:
        owners_of(sql, np.array([boat]))
        sql.set_trace_callback(asked.append)
        try:
            assert owners_of(sql, np.array([boat, boat])).tolist() == [A, A]
            assert not any("json_each" in statement for statement in asked)
            assert owners_of(sql, np.array([boat, ship])).tolist() == [A, A]
            assert any(f"[{ship}]" in statement for statement in asked)
        finally:
            sql.set_trace_callback(None)


def test_chunk_whose_number_another_document_has_now_is_of_that_one(ledger: Ledger) -> None:
    """SQLite gives the number of a row that is gone to the next one."""
    ledger.put(make_document("a.md", "boat\n"))
    (boat,) = ledger.chunk_ids().values()
    assert owners(ledger, boat) == [A]
    ledger.documents.forget("home", "a.md", ledger.clock())
    assert owners(ledger, boat) == [0]
    ledger.put(make_document("b.md", "raft\n"))
    assert ledger.chunk_ids() == {"raft\n": boat}
    assert owners(ledger, boat) == [B]


def test_older_snapshot_knows_its_own(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "boat\n"))
    (boat,) = ledger.chunk_ids().values()
    with ledger.database.read() as sql:
        assert owners_of(sql, np.array([boat])).tolist() == [A]
        ledger.documents.forget("home", "a.md", ledger.clock())
        ledger.put(make_document("b.md", "raft\n"))
        assert owners_of(sql, np.array([boat])).tolist() == [A]
    assert owners(ledger, boat) == [B]


def test_documents_that_lie_together_are_one_stretch_and_others_are_not(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "boat\n", "ship\n"), make_document("between.md", "raft\n"))
    ledger.put(make_document("b.md", "oar\n"))
    ledger.put(make_document("long.md", *(f"number {number}\n" for number in range(400))))
    ledger.put(make_document("c.md", "sail\n"))
    ids = ledger.chunk_ids()
    with ledger.database.read() as sql:
        assert stretches_of(sql, []) == []
        assert stretches_of(sql, [A]) == [(ids["boat\n"], ids["ship\n"])]
        assert stretches_of(sql, [B, A]) == [(ids["boat\n"], ids["oar\n"])]
        far = document_id("home", "c.md")
        assert stretches_of(sql, [far, A]) == [(ids["boat\n"], ids["ship\n"]), (ids["sail\n"], ids["sail\n"])]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 4)), max_size=8), st.data())
def test_after_any_history_owners_are_those_of_the_ledger(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], data: st.DataObject
) -> None:
    with open_ledger(tmp_path_factory.mktemp("ledger") / "ledger.db") as ledger:
        for name, size in steps:
            ledger.put(make_document(f"{name}.md", *(f"{name} {number}\n" for number in range(size))))
            asked = data.draw(st.lists(st.integers(1, 20), max_size=6))
            names = data.draw(st.sets(st.sampled_from("abcd")))
            with ledger.database.read() as sql:
                known = dict(sql.execute("SELECT id, document_id FROM chunks").fetchall())
                assert owners_of(sql, np.array(asked, np.int64)).tolist() == [known.get(chunk, 0) for chunk in asked]
                documents = {document_id("home", f"{each}.md") for each in names}
                stretches = stretches_of(sql, documents)
            assert stretches == sorted(stretches)
            within = {chunk for first, last in stretches for chunk in range(first, last + 1)}
            assert {chunk for chunk, document in known.items() if document in documents} <= within
