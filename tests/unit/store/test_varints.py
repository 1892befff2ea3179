from __future__ import annotations

import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.varints import add_varints, read_varints


def coded(number: int) -> bytes:
    last, rest = bytes([number & 0x7F]), number >> 7
    while rest:
        last, rest = bytes([rest & 0x7F | 0x80]) + last, rest >> 7
    return last


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40))))
def test_numbers_are_read_as_they_were_written(rows: list[tuple[int, int]]) -> None:
    records = [coded(first) + coded(second) for first, second in rows]
    assert [tuple(read_varints(record)) for record in records] == rows
    assert add_varints(records).tolist() == [first + second for first, second in rows]


def test_sizes_that_fts5_wrote_are_read() -> None:
    with closing(sqlite3.connect(":memory:")) as sql:
        sql.execute("CREATE VIRTUAL TABLE notes USING fts5 (heading, text, tokenize = 'trigram', detail = none)")
        for length in (0, 5, 129, 130, 20_000):
            sql.execute("INSERT INTO notes VALUES ('heading', ?)", ("x" * length,))
        records = [row[0] for row in sql.execute("SELECT sz FROM notes_docsize ORDER BY id")]
    assert add_varints(records).tolist() == [5.0, 8.0, 132.0, 133.0, 20_003.0]
