"""A real ledger in a folder, its nouns at hand, and what must always be true of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memoryd.store.database import Database
from memoryd.store.documents import Documents
from memoryd.store.folding import fold
from memoryd.store.generations import Generation, Generations
from memoryd.store.model import Document, EmbedderIdentity
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.queue import Queue
from tests.support.clock import SetClock


@dataclass(frozen=True, slots=True)
class Ledger:
    database: Database
    documents: Documents
    generations: Generations
    queue: Queue
    clock: SetClock

    def put(self, *documents: Document) -> None:
        for document in documents:
            self.documents.replace(document, self.clock())

    def generation(self, dimension: int = 4, fingerprint: str = "f1") -> Generation:
        return self.generations.activate(EmbedderIdentity("model", fingerprint, dimension), self.clock())

    def rows(self, table: str) -> int:
        with self.database.read() as sql:
            return int(sql.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    def chunk_ids(self) -> dict[str, int]:
        """Text of each chunk -> its id."""
        with self.database.read() as sql:
            return dict(sql.execute("SELECT text, id FROM chunk_texts").fetchall())

    def passage_ids(self) -> dict[str, tuple[int, int]]:
        """Text of each passage -> its id and its document's."""
        with self.database.read() as sql:
            rows = sql.execute("SELECT text, id, document_id FROM passages").fetchall()
        return {text: (identity, document) for text, identity, document in rows}

    def embed(self, index: VectorIndex, vectors: dict[str, Vectors]) -> None:
        """Give passages, named by their text, these vectors, as the embed lane does."""
        generation = self.generations.active()
        assert generation is not None
        for text, vector in vectors.items():
            identity, document = self.passage_ids()[text]
            index.upsert([identity], [document], vector.reshape(1, -1))
            self.generations.mark(generation.id, [(identity, document)])


@contextmanager
def open_ledger(path: Path, clock: SetClock | None = None) -> Iterator[Ledger]:
    clock = clock or SetClock()
    database = Database(path)
    try:
        yield Ledger(database, Documents(database), Generations(database), Queue(database, clock), clock)
    finally:
        database.close()


def check_ledger(database: Database) -> None:
    """What must be true of every ledger at every moment."""
    with database.write() as sql:
        # With rank 1 FTS5 compares its index to the content, row by row.
        for index in ("chunks_fts", "chunk_words"):
            sql.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
        assert sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert sql.execute("PRAGMA foreign_key_check").fetchall() == []
        for index in ("chunks_fts", "chunk_words"):
            indexed = {row[0] for row in sql.execute(f"SELECT id FROM {index}_docsize")}
            assert indexed == {row[0] for row in sql.execute("SELECT id FROM chunks")}, index
        for table in ("chunks", "passages"):
            orphans = f"SELECT count(*) FROM {table} WHERE document_id NOT IN (SELECT id FROM documents)"
            assert sql.execute(orphans).fetchone() == (0,), table
        assert sql.execute("SELECT count(*) FROM chunks WHERE ordinal < 0").fetchone() == (0,)
        told = """
            SELECT passages, (SELECT packed(iif(text_hash IS NULL, 0, id))
                                FROM (SELECT id, text_hash FROM passages p
                                       WHERE p.document_id = c.document_id
                                         AND p.ordinal BETWEEN c.first_passage AND c.last_passage ORDER BY p.ordinal))
              FROM chunks c
        """
        assert all(own == held for own, held in sql.execute(told)), "a chunk names other passages than it has"
        for heading, text, folded_heading, folded_text in sql.execute(
            "SELECT t.heading, t.text, f.heading, f.text FROM chunk_texts t JOIN folded_chunks f USING (id)"
        ):
            assert (folded_heading, folded_text) == (fold(heading), fold(text))
