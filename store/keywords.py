"""Whether the keyword indexes hold exactly the words of the chunks, which rows do not, and how those are put right.

FTS5 compares an index with its content in one pass and answers yes or no. Only where it says no is the index read
posting by posting and set against the same text, tokenised anew. Every function works inside the caller's writing
transaction: FTS5 takes its questions as INSERTs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from memoryd.store.varints import read_varints

Fault = Literal["missing", "wrong", "orphan"]
Posting = tuple[str | None, str, int | None]  # column, term, place; a trigram has neither column nor place

_VIEWS = {"chunks_fts": "folded_chunks", "chunk_words": "worded_chunks"}
_OPTIONS = {
    "chunks_fts": "tokenize = 'trigram', detail = none",
    "chunk_words": """tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'" """,
}
TABLES = tuple(_VIEWS)
_COOKIE = 4  # bytes that FTS5's record of an index begins with
_ENDINGS = ("", "e", "s", "ed", "es", "ing", "ly")


@dataclass(frozen=True, slots=True)
class KeywordFaults:
    """What is wrong with one keyword index."""

    table: str
    rows: dict[int, Fault] = field(default_factory=dict)  # by chunk id
    whole: bool = False  # damaged in a way that no row shows


def count_faults(sql: sqlite3.Connection, table: str) -> KeywordFaults:
    """The rows without a chunk and the chunks without a row: quick, and blind to what the rows say."""
    missing = sql.execute(f"SELECT id FROM chunks WHERE id NOT IN (SELECT id FROM {table}_docsize)")  # noqa: S608 - ours
    rows: dict[int, Fault] = {row[0]: "missing" for row in missing}
    orphans = sql.execute(f"SELECT id FROM {table}_docsize WHERE id NOT IN (SELECT id FROM chunks)")  # noqa: S608 - ours
    rows.update({row[0]: "orphan" for row in orphans})
    return KeywordFaults(table, rows)


def find_faults(sql: sqlite3.Connection, table: str) -> KeywordFaults:
    """Every row that does not hold exactly the words of its chunk."""
    if is_sound(sql, table):
        return count_faults(sql, table)
    rows = dict(count_faults(sql, table).rows)
    held = _digests(_postings(sql, table))
    expected = _digests(_tokenise(table, _texts(sql, table)))
    chunks = {row[0] for row in sql.execute("SELECT id FROM chunks")}
    for chunk in chunks - rows.keys():
        if held.get(chunk, 0) != expected.get(chunk, 0):
            rows[chunk] = "wrong"
    for stray in held.keys() - chunks:
        rows[stray] = "orphan"
    return KeywordFaults(table, rows, whole=not rows)


def is_sound(sql: sqlite3.Connection, table: str) -> bool:
    try:
        sql.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")  # noqa: S608 - ours
    except sqlite3.DatabaseError as error:
        if (getattr(error, "sqlite_errorcode", 0) & 0xFF) != sqlite3.SQLITE_CORRUPT:
            raise
        return False
    return True


def repair_keywords(sql: sqlite3.Connection, faults: KeywordFaults) -> bool:
    """Put these rows right and leave the others; returns whether the whole index had to be made anew after all."""
    table = faults.table
    if not faults.whole:
        _take_out(sql, table, [row for row, fault in faults.rows.items() if fault != "missing"])
        wanted = [row for row, fault in faults.rows.items() if fault != "orphan"]
        for text_row in _texts(sql, table, wanted):
            sql.execute(f"INSERT INTO {table} (rowid, heading, text) VALUES (?, ?, ?)", text_row)  # noqa: S608 - ours
        if is_sound(sql, table) and not count_faults(sql, table).rows:
            return False
    # A row goes only when FTS5 is told the very words it was given; where they cannot be told, nothing less will do.
    sql.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")  # noqa: S608 - ours
    return True


def count_segments(sql: sqlite3.Connection, table: str) -> int:
    """In how many pieces an index lies: deleted words stay in the older ones until they are merged."""
    return int(sql.execute(f"SELECT count(DISTINCT segid) FROM {table}_idx").fetchone()[0])  # noqa: S608 - ours


def index_state(sql: sqlite3.Connection, table: str = TABLES[0]) -> bytes:
    """FTS5's own record of how an index lies: another one after every write to it."""
    row = sql.execute(f"SELECT block FROM {table}_data WHERE id = 10").fetchone()  # noqa: S608 - ours
    return bytes(row[0]) if row and row[0] else b""  # damage may take it


def count_pages(sql: sqlite3.Connection, table: str) -> int:
    """In how many pages its words lie, the deleted ones too; 0 where that is damaged, which others find out."""
    record = read_varints(index_state(sql, table)[_COOKIE:])
    pages = 0
    try:
        levels, _segments, _written = islice(record, 3)
        for _level in range(levels):
            _merging, segments = islice(record, 2)
            for _segment in range(segments):
                _id, first, last = islice(record, 3)
                pages += last - first + 1 if last else 0
    except ValueError:  # it ends too soon
        return 0
    return pages


def merge_segments(sql: sqlite3.Connection, table: str, pages: int) -> bool:
    """Merge the pieces of an index by about so many pages of work; returns whether more is to be done.

    A negative number begins with all pieces, a positive one goes on.
    """
    before = sql.total_changes
    sql.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608 - ours
    return sql.total_changes - before >= 2  # as FTS5 documents it: its own bookkeeping is one


def _texts(sql: sqlite3.Connection, table: str, rows: Collection[int] | None = None) -> Iterator[tuple[int, str, str]]:
    query = f"SELECT id, heading, text FROM {_VIEWS[table]}"  # noqa: S608 - ours
    if rows is None:
        yield from sql.execute(query)
        return
    for row in rows:
        yield from sql.execute(f"{query} WHERE id = ?", (row,))


def _take_out(sql: sqlite3.Connection, table: str, rows: Collection[int]) -> None:
    """Have FTS5 forget rows, whatever words the index holds under them."""
    held: dict[int, list[Posting]] = {row: [] for row in rows}
    if not held:
        return
    for row, posting in _postings(sql, table):
        if row in held:
            held[row].append(posting)
    if table == "chunks_fts":
        for row, postings in held.items():
            _take_out_trigrams(sql, row, [term for _, term, _ in postings])
        return
    spelling = _spell({term for postings in held.values() for _, term, _ in postings})
    for row, postings in held.items():
        texts = []
        for column in ("heading", "text"):
            placed = sorted((place or 0, term) for name, term, place in postings if name == column)
            texts.append(" ".join(spelling.get(term, term) for _, term in placed))
        _delete(sql, table, row, *texts)


def _take_out_trigrams(sql: sqlite3.Connection, row: int, trigrams: Sequence[str]) -> None:
    """One by one, for no text is known that has these and no others. FTS5 takes each for a row, and counts how many
    trigrams it has forgotten: as many times as there were any, a trigram is taken out, and an empty row put back."""
    (sizes,) = sql.execute("SELECT sz FROM chunks_fts_docsize WHERE id = ?", (row,)).fetchone() or (b"",)
    taken = 0
    for column, times in enumerate(read_varints(sizes)):
        for _ in range(times):
            trigram = trigrams[taken % len(trigrams)] if trigrams else ""
            _delete(sql, "chunks_fts", row, *(("", trigram) if column else (trigram, "")))
            sql.execute("INSERT INTO chunks_fts (rowid, heading, text) VALUES (?, '', '')", (row,))
            taken += 1
    _delete(sql, "chunks_fts", row, "", "")


def _delete(sql: sqlite3.Connection, table: str, row: int, heading: str, text: str) -> None:
    sql.execute(
        f"INSERT INTO {table} ({table}, rowid, heading, text) VALUES ('delete', ?, ?, ?)",  # noqa: S608 - ours
        (row, heading, text),
    )


def _spell(terms: Collection[str]) -> dict[str, str]:
    """For each term a word that is indexed as it; not every stem is its own stem ("databas", of "databases")."""
    words = [(term, f"{term}{ending}") for term in sorted(terms) for ending in _ENDINGS]
    spelled: dict[str, str] = {}
    for row, (_, found, _) in _tokenise("chunk_words", ((row, "", word) for row, (_, word) in enumerate(words))):
        term, word = words[row]
        if found == term and (term not in spelled or len(word) < len(spelled[term])):
            spelled[term] = word
    return spelled


def _postings(sql: sqlite3.Connection, table: str) -> Iterator[tuple[int, Posting]]:
    with _vocabulary(sql, table) as vocabulary:
        for term, row, column, place in sql.execute(f"SELECT term, doc, col, offset FROM {vocabulary}"):  # noqa: S608 - ours
            yield row, (column, term, place)


def _tokenise(table: str, texts: Iterable[tuple[int, str, str]]) -> Iterator[tuple[int, Posting]]:
    """The postings that these texts give, from an index in memory that is made for the purpose."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as scratch:
        scratch.execute(f"CREATE VIRTUAL TABLE {table} USING fts5 (heading, text, content = '', {_OPTIONS[table]})")
        scratch.execute("BEGIN")
        scratch.executemany(f"INSERT INTO {table} (rowid, heading, text) VALUES (?, ?, ?)", texts)  # noqa: S608 - ours
        scratch.execute("COMMIT")
        yield from _postings(scratch, table)


def _digests(postings: Iterable[tuple[int, Posting]]) -> dict[int, int]:
    """One number a row for all its postings, whatever their order."""
    sums: dict[int, int] = {}
    for row, posting in postings:
        sums[row] = (sums.get(row, 0) + hash(posting)) & 0xFFFF_FFFF_FFFF_FFFF
    return sums


@contextmanager
def _vocabulary(sql: sqlite3.Connection, table: str) -> Iterator[str]:
    name = f"temp.{table}_postings"
    sql.execute(f"CREATE VIRTUAL TABLE {name} USING fts5vocab('main', '{table}', 'instance')")
    try:
        yield name
    finally:
        sql.execute(f"DROP TABLE {name}")
