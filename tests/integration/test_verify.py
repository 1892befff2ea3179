"""Each store damaged row by row behind memoryd's back: the damage is named, put right, and nothing else is touched."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pytest

from memoryd.daemon.methods import Methods
from tests.support.engine import Memory, ledger_of
from tests.support.ledger import check_ledger

Kinds = set[tuple[str, str, str]]  # kind, store, path

TEXTS = {
    "memory/goats.md": "# Goats\n\nThe goats like the northern meadow.\n\n## Milk\n\nRunning relational tests daily.\n",
    "memory/2026-11-15.md": "---\nscope: user:ann\n---\n# A day\n\nThe harbour lamp was copper.\n",
    "memory/letters.md": "# Letters\n\n胶圈 and Straße, filed under thistle.\n",
    "skills/ship.md": "# Shipping\n\nTag, build, publish.\n",
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(tmp_path)
    for path, text in TEXTS.items():
        memory.write(path, text)
    with memory.running():
        memory.settle()
        yield memory


def verify(memory: Memory, **params: Any) -> dict[str, Any]:
    return Methods(memory.live, {}).verify(params)


def kinds(result: dict[str, Any]) -> Kinds:
    return {(entry["kind"], entry["store"], entry["path"]) for entry in result["drift"]}


def lance(memory: Memory) -> Any:
    """LanceDB's table, through a connection of the test's own."""
    generation = memory.live.generations.active()
    assert generation is not None
    return lancedb.connect(memory.live.paths.vectors_dir).open_table(f"vectors_{generation.fingerprint}")


def lance_row(memory: Memory, path: str = "memory/goats.md") -> dict[str, Any]:
    with memory.live.database.read() as sql:
        (passage,) = sql.execute(
            "SELECT p.id FROM passages p JOIN documents d ON d.id = document_id"
            " WHERE path = ? AND text_hash IS NOT NULL ORDER BY ordinal",
            (path,),
        ).fetchone()
    (row,) = lance(memory).search().where(f"id = {passage}").to_list()
    return dict(row)


def run_sql(memory: Memory, *statements: str) -> None:
    with memory.live.database.write() as sql:
        for statement in statements:
            sql.execute(statement)


def run_sql_unchecked(memory: Memory, statement: str) -> None:
    """As another program would, without foreign keys."""
    with closing(sqlite3.connect(memory.live.database.path, isolation_level=None)) as sql:
        sql.execute(statement)


GOATS = "(SELECT id FROM documents WHERE path = 'memory/goats.md')"
A_CHUNK = f"(SELECT min(id) FROM chunks WHERE document_id = {GOATS})"


def forget_words(memory: Memory, table: str, function: str) -> None:
    run_sql(
        memory,
        f"INSERT INTO {table} ({table}, rowid, heading, text)"
        f" SELECT 'delete', id, {function}(heading), {function}(text) FROM chunk_texts WHERE id = {A_CHUNK}",
    )


def garble_words(memory: Memory, table: str, function: str) -> None:
    forget_words(memory, table, function)
    run_sql(
        memory,
        f"INSERT INTO {table} (rowid, heading, text) SELECT id, 'other', 'ghostly words here' FROM chunks"
        f" WHERE id = {A_CHUNK}",
    )


def change_vector(memory: Memory) -> None:
    row = lance_row(memory)
    other = np.roll(np.array(row["vector"], np.float32), 1).tolist()
    lance(memory).update(where=f"id = {row['id']}", values={"vector": other})


def shorten_vector(memory: Memory) -> None:
    row = lance_row(memory)
    lance(memory).update(where=f"id = {row['id']}", values={"vector": (np.array(row["vector"]) / 2).tolist()})


def add_rows(memory: Memory, **changes: Any) -> None:
    row = lance_row(memory)
    lance(memory).add([{key: value for key, value in (row | changes).items() if key in ("id", "document", "vector")}])


DAMAGES: dict[str, tuple[Callable[[Memory], object], Kinds]] = {
    "a row of the ledger says another title": (
        lambda m: run_sql(m, f"UPDATE documents SET title = 'x' WHERE id = {GOATS}"),
        {("wrong_rows", "ledger", "memory/goats.md")},
    ),
    "a scope is lost": (
        lambda m: run_sql(m, "UPDATE documents SET scope = 'global' WHERE path = 'memory/2026-11-15.md'"),
        {("wrong_rows", "ledger", "memory/2026-11-15.md")},
    ),
    "the ledger has another hash": (
        lambda m: run_sql(m, f"UPDATE documents SET content_hash = 'x' WHERE id = {GOATS}"),
        {("stale", "ledger", "memory/goats.md")},
    ),
    "a chunk has other lines": (
        lambda m: run_sql(m, f"UPDATE chunks SET start_line = start_line + 7 WHERE id = {A_CHUNK}"),
        {("wrong_lines", "ledger", "memory/goats.md")},
    ),
    "a passage has other lines": (
        lambda m: run_sql(m, f"UPDATE passages SET end_line = 99 WHERE document_id = {GOATS} AND ordinal = 0"),
        {("wrong_lines", "ledger", "memory/goats.md")},
    ),
    "a passage says something else": (
        lambda m: run_sql(m, f"UPDATE passages SET text = 'sheep' WHERE document_id = {GOATS} AND ordinal = 0"),
        {("wrong_rows", "ledger", "memory/goats.md"), ("wrong_keywords", "keywords", "memory/goats.md")},
    ),
    "a passage is doubled": (
        lambda m: run_sql(
            m,
            f"INSERT INTO passages SELECT document_id, ordinal + 50, id, text, text_hash, start_line, end_line"
            f" FROM passages WHERE document_id = {GOATS} AND ordinal = 0",
        ),
        {("duplicate", "ledger", "memory/goats.md")},
    ),
    "a chunk is lost with its keyword rows": (
        lambda m: (
            forget_words(m, "chunks_fts", "fold"),
            forget_words(m, "chunk_words", "words"),
            run_sql(m, f"DELETE FROM chunks WHERE id = {A_CHUNK}"),
        ),
        {("wrong_rows", "ledger", "memory/goats.md")},
    ),
    "all passages of a document are lost": (
        lambda m: run_sql(m, f"DELETE FROM passages WHERE document_id = {GOATS}"),
        {
            ("wrong_rows", "ledger", "memory/goats.md"),
            ("wrong_keywords", "keywords", "memory/goats.md"),
            ("orphan", "vectors", "memory/goats.md"),
        },
    ),
    "a document is forgotten without a word": (
        lambda m: (
            run_sql(m, f"DELETE FROM vectors WHERE document_id = {GOATS}"),
            m.live.documents.forget("notes", "memory/goats.md", 0.0),
            run_sql(m, "DELETE FROM jobs"),
        ),
        {("missing", "ledger", "memory/goats.md"), ("orphan", "vectors", "")},
    ),
    "chunks belong to no document": (
        lambda m: run_sql_unchecked(m, "INSERT INTO chunks VALUES (9999, 'key', 4711, 0, 0, 0, '', 1, 1)"),
        {("orphan", "ledger", ""), ("missing_keywords", "keywords", "")},
    ),
    "trigrams of a chunk are lost": (
        lambda m: forget_words(m, "chunks_fts", "fold"),
        {("missing_keywords", "keywords", "memory/goats.md")},
    ),
    "words of a chunk are lost": (
        lambda m: forget_words(m, "chunk_words", "words"),
        {("missing_keywords", "keywords", "memory/goats.md")},
    ),
    "trigrams of a chunk are those of another text": (
        lambda m: garble_words(m, "chunks_fts", "fold"),
        {("wrong_keywords", "keywords", "memory/goats.md")},
    ),
    "words of a chunk are those of another text": (
        lambda m: garble_words(m, "chunk_words", "words"),
        {("wrong_keywords", "keywords", "memory/goats.md")},
    ),
    "a keyword row has no chunk": (
        lambda m: run_sql(m, "INSERT INTO chunk_words (rowid, heading, text) VALUES (777, 'a', 'ghost running')"),
        {("orphan", "keywords", "")},
    ),
    "a keyword index has lost its sizes": (
        lambda m: run_sql(m, f"DELETE FROM chunks_fts_docsize WHERE id = {A_CHUNK}"),
        {("missing_keywords", "keywords", "memory/goats.md")},
    ),
    "a vector is lost": (
        lambda m: lance(m).delete(f"id = {lance_row(m)['id']}"),
        {("missing_vector", "vectors", "memory/goats.md")},
    ),
    "a vector and its mark are lost": (
        lambda m: (
            run_sql(m, f"DELETE FROM vectors WHERE passage_id = {lance_row(m)['id']}"),
            lance(m).delete(f"id = {lance_row(m)['id']}"),
        ),
        {("missing_vector", "vectors", "memory/goats.md")},
    ),
    "a mark is lost": (
        lambda m: run_sql(m, f"DELETE FROM vectors WHERE passage_id = {lance_row(m)['id']}"),
        {("unmarked", "vectors", "memory/goats.md")},
    ),
    "a mark has neither passage nor vector": (
        lambda m: run_sql(m, f"INSERT INTO vectors SELECT id, 4711, {GOATS} FROM generations WHERE active"),
        {("orphan", "vectors", "memory/goats.md")},
    ),
    "a vector is that of another text": (change_vector, {("stale_vector", "vectors", "memory/goats.md")}),
    "a vector is half as long": (shorten_vector, {("stale_vector", "vectors", "memory/goats.md")}),
    "a vector names another document": (
        lambda m: lance(m).update(where=f"id = {lance_row(m)['id']}", values={"document": 4711}),
        {("stale_vector", "vectors", "memory/goats.md")},
    ),
    "a vector is there twice": (add_rows, {("duplicate", "vectors", "memory/goats.md")}),
    "a vector belongs to no passage": (
        lambda m: add_rows(m, id=4711, document=4712),
        {("orphan", "vectors", "")},
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_and_repaired_without_embedding_anything(memory: Memory, damage: str) -> None:
    before = verify(memory)
    assert before["in_sync"], before["drift"]
    ledger = ledger_of(memory.live)

    harm, expected = DAMAGES[damage]
    harm(memory)
    found = verify(memory)
    assert kinds(found) == expected
    assert not found["in_sync"]
    assert found["root"] != before["root"]
    assert all(entry["message"] and entry["count"] >= 1 for entry in found["drift"])

    results: list[dict[str, Any]] = []
    assert memory.embedded_by(lambda: results.append(verify(memory, repair=True))) == []
    (repaired,) = results
    assert repaired["in_sync"], repaired["drift"]
    assert {entry["kind"] for entry in repaired["repaired"]} == {kind for kind, _, _ in expected}
    assert repaired["root"] == before["root"]
    memory.settle()
    again = verify(memory)
    assert again["in_sync"]
    assert again["root"] == before["root"]
    assert ledger_of(memory.live) == ledger
    check_ledger(memory.live.database)
    assert set(memory.found("northern meadow")) == {"memory/goats.md"}
