"""The keyword indexes against the chunks: which rows are wrong, and that only those are written."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from memoryd.store.keywords import (
    TABLES,
    KeywordFaults,
    count_pages,
    find_faults,
    is_sound,
    merge_segments,
    repair_keywords,
)
from tests.support.documents import make_document
from tests.support.ledger import Ledger, open_ledger

TEXTS = ("The goats like the meadow.\n", "Databases were running.\n", "胶圈 and Straße.\n", "a\n")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    with open_ledger(tmp_path / "ledger.db") as ledger:
        ledger.put(make_document("memory/a.md", *TEXTS, heading="Heading"))
        yield ledger


@pytest.mark.parametrize("table", TABLES)
def test_index_as_it_was_written_has_no_faults(ledger: Ledger, table: str) -> None:
    with ledger.database.write() as sql:
        assert find_faults(sql, table) == KeywordFaults(table)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("text", TEXTS)
def test_row_with_other_words_is_the_only_one_found(ledger: Ledger, table: str, text: str) -> None:
    row = ledger.chunk_ids()[text]
    with ledger.database.write() as sql:
        _give_other_words(sql, table, row, "something else entirely")
        assert find_faults(sql, table) == KeywordFaults(table, {row: "wrong"})


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_put_right_one_by_one(ledger: Ledger, table: str) -> None:
    rows = ledger.chunk_ids()
    with ledger.database.write() as sql:
        _give_other_words(sql, table, rows[TEXTS[0]], "something else entirely")
        _forget(sql, table, rows[TEXTS[2]])
        sql.execute(f"INSERT INTO {table} (rowid, heading, text) VALUES (4711, 'no', 'such chunk')")
        faults = find_faults(sql, table)
        assert faults.rows == {rows[TEXTS[0]]: "wrong", rows[TEXTS[2]]: "missing", 4711: "orphan"}
        assert not repair_keywords(sql, faults)
        assert is_sound(sql, table)
        assert find_faults(sql, table) == KeywordFaults(table)


def test_stems_that_have_stems_of_their_own_are_taken_out_too(ledger: Ledger) -> None:
    row = ledger.chunk_ids()[TEXTS[0]]
    with ledger.database.write() as sql:
        _give_other_words(sql, "chunk_words", row, "databases agreed")  # "databas", which stems to "databa"
        assert not repair_keywords(sql, find_faults(sql, "chunk_words"))
        assert find_faults(sql, "chunk_words") == KeywordFaults("chunk_words")


@pytest.mark.parametrize("table", TABLES)
def test_index_is_made_anew_where_rows_cannot_be_put_right_one_by_one(ledger: Ledger, table: str) -> None:
    row = ledger.chunk_ids()[TEXTS[0]]
    with ledger.database.write() as sql:
        sql.execute(f"DELETE FROM {table}_docsize WHERE id = ?", (row,))
        assert repair_keywords(sql, find_faults(sql, table))
        assert find_faults(sql, table) == KeywordFaults(table)


def test_damage_that_no_row_shows_is_damage_of_the_whole(ledger: Ledger) -> None:
    with ledger.database.write() as sql:
        for (totals,) in sql.execute("SELECT block FROM chunks_fts_data WHERE id = 1").fetchall():
            sql.execute("UPDATE chunks_fts_data SET block = ? WHERE id = 1", (totals[:-1] + b"\x7f",))
    with open_ledger(ledger.database.path) as again, again.database.write() as sql:
        faults = find_faults(sql, "chunks_fts")
        assert faults == KeywordFaults("chunks_fts", whole=True)
        assert repair_keywords(sql, faults)
        assert find_faults(sql, "chunks_fts") == KeywordFaults("chunks_fts")


def _forget(sql: sqlite3.Connection, table: str, row: int) -> None:
    view = {"chunks_fts": "folded_chunks", "chunk_words": "worded_chunks"}[table]
    sql.execute(
        f"INSERT INTO {table} ({table}, rowid, heading, text) SELECT 'delete', id, heading, text FROM {view}"
        " WHERE id = ?",
        (row,),
    )


def _give_other_words(sql: sqlite3.Connection, table: str, row: int, text: str) -> None:
    _forget(sql, table, row)
    sql.execute(f"INSERT INTO {table} (rowid, heading, text) VALUES (?, 'heading', ?)", (row, text))


@pytest.mark.parametrize("table", TABLES)
def test_pages_are_counted_as_they_lie(ledger: Ledger, table: str) -> None:
    """FTS5's record says so; its table has each page as a row, and so has what it finds them by."""

    def told_and_lying() -> tuple[int, int]:
        with ledger.database.write() as sql:
            lying = sql.execute(f"SELECT count(*) FROM {table}_data WHERE id >> 37 > 0 AND id & (1 << 36) = 0")
            return count_pages(sql, table), int(lying.fetchone()[0])

    for number in range(20):
        ledger.put(make_document(f"memory/{number}.md", " ".join(f"w{number * 997 + n:05d}" for n in range(997))))
        told, lying = told_and_lying()
        assert told == lying > 0
    with ledger.database.write() as sql:
        while merge_segments(sql, table, -100):
            pass
    told, lying = told_and_lying()
    assert told == lying > 1


@pytest.mark.parametrize("record", [b"", b"\0\0\0\0", b"\0\0\0\0\x83", b"\0\0\0\0\x05\x01\x01\x00\x02\x01"])
def test_of_a_damaged_record_no_pages_are_told(ledger: Ledger, record: bytes) -> None:
    with ledger.database.write() as sql:
        sql.execute("UPDATE chunk_words_data SET block = ? WHERE id = 10", (record,))
        assert count_pages(sql, "chunk_words") == 0
        sql.execute("ROLLBACK")
        sql.execute("BEGIN")
