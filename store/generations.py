"""Which vectors are wanted, which LanceDB holds, and what is missing between the two."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memoryd.store.database import Database
from memoryd.store.failpoints import failpoint
from memoryd.store.job_rows import add_job
from memoryd.store.model import EmbedderIdentity, document_id
from memoryd.store.vector_ids import Column, lacking, marked_ids, wanted_ids

_GENERATION = "SELECT id, fingerprint, model, dimension, recipe, created_at, retired_at FROM generations"


@dataclass(frozen=True, slots=True)
class Generation:
    """The vectors of one fingerprint."""

    id: int
    fingerprint: str
    model: str
    dimension: int
    recipe: str = ""  # what its embedder is made of; empty where that was not written down
    created_at: float = 0.0
    retired_at: float | None = None  # since when it is neither searched nor filled


class Wanted(NamedTuple):
    """A passage that has no vector yet."""

    passage_id: int
    document_id: int
    text_hash: bytes
    text: str  # as it stands in the document; ``embedding_text`` says what of it is embedded


class Lacking(NamedTuple):
    """Many such passages, in columns."""

    passages: Sequence[int]
    documents: Sequence[int]
    hashes: Sequence[bytes]


_LACKING_BATCH = 256  # documents that are looked at in one statement
_TEXTS_PENDING = "FROM jobs job WHERE kind = 'index'"
_VECTORS_PENDING = """
    FROM jobs job JOIN documents d ON d.workspace = job.workspace AND d.path = job.path
    WHERE kind = 'embed' AND skipped IS NULL
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE key = 'index:' || job.workspace || ':' || job.path)
"""


@dataclass(frozen=True, slots=True)
class Pending:
    """A document that is not wholly searchable yet."""

    workspace: str
    path: str
    phase: str  # "text": its words are not found yet; "vectors": its meaning is not


class Generations:
    def __init__(self, database: Database) -> None:
        self._database = database

    def activate(self, identity: EmbedderIdentity, now: float, recipe: str = "") -> Generation:
        """Make the identity's generation the one that is searched, filled or not."""
        with self._database.write():
            generation = self.register(identity, now, recipe)
            self.flip(generation.id, now)
        return generation

    def register(self, identity: EmbedderIdentity, now: float, recipe: str = "") -> Generation:
        """The identity's generation, begun if there is none; one that was retired is in use again."""
        with self._database.write() as sql:
            sql.execute(
                "INSERT OR IGNORE INTO generations (fingerprint, model, dimension, created_at) VALUES (?, ?, ?, ?)",
                (identity.fingerprint, identity.model, identity.dimension, now),
            )
            sql.execute(
                "UPDATE generations SET retired_at = NULL, recipe = iif(? = '', recipe, ?) WHERE fingerprint = ?",
                (recipe, recipe, identity.fingerprint),
            )
            row = sql.execute(f"{_GENERATION} WHERE fingerprint = ?", (identity.fingerprint,)).fetchone()
            failpoint("generation.register.before")
        failpoint("generation.register.after")
        return Generation(*row)

    def flip(self, generation: int, now: float) -> None:
        """From here on this one is searched: one row says so. The one before is kept, and retired."""
        with self._database.write() as sql:
            sql.execute(
                "UPDATE generations SET retired_at = iif(active AND id != :id, :now, iif(id = :id, NULL, retired_at)),"
                " active = (id = :id)",
                {"id": generation, "now": now},
            )
            failpoint("generation.flip.before")
        failpoint("generation.flip.after")

    def deactivate(self, now: float) -> None:
        """From here on none is searched. The one before is kept, and retired."""
        with self._database.write() as sql:
            sql.execute("UPDATE generations SET retired_at = ?, active = 0 WHERE active", (now,))

    def serve(self, generation: int, in_use: Iterable[int], now: float) -> None:
        """Flip to it, queue what it lacks, and note what is no longer in use: all of it or nothing."""
        with self._database.write():
            self.flip(generation, now)
            self.enqueue_incomplete(generation, now)
            self.retire_unused(in_use, now)
            failpoint("generation.serve.before")
        failpoint("generation.serve.after")

    def retire_unused(self, in_use: Iterable[int], now: float) -> None:
        """Note since when a generation is not in use: one whose filling was given up, for instance."""
        kept = list(in_use)
        marks = ",".join("?" * len(kept))
        with self._database.write() as sql:
            sql.execute(
                f"UPDATE generations SET retired_at = ?"  # noqa: S608 - marks are "?"
                f" WHERE retired_at IS NULL AND NOT active AND id NOT IN ({marks})",
                (now, *kept),
            )
            failpoint("generation.retire.before")
        failpoint("generation.retire.after")

    def forget(self, generation: Generation) -> None:
        """Its vectors are gone from disk: forget that there were any, and what noise was in it."""
        with self._database.write() as sql:
            sql.execute("DELETE FROM generations WHERE id = ? AND NOT active", (generation.id,))
            sql.execute("DELETE FROM meta WHERE key = ?", (f"noise:{generation.fingerprint}",))
            failpoint("generation.forget.before")
        failpoint("generation.forget.after")

    def active(self) -> Generation | None:
        with self._database.read() as sql:
            row = sql.execute(f"{_GENERATION} WHERE active").fetchone()
        return Generation(*row) if row else None

    def all(self) -> list[Generation]:
        """The one that is searched first, then the one that is filled, then by how long they were used."""
        with self._database.read() as sql:
            rows = sql.execute(f"{_GENERATION} ORDER BY active DESC, retired_at IS NOT NULL, retired_at DESC, id DESC")
            return [Generation(*row) for row in rows]

    def former(self) -> Generation | None:
        """The one that was retired last, to which there is a way back."""
        with self._database.read() as sql:
            row = sql.execute(
                f"{_GENERATION} WHERE NOT active AND retired_at IS NOT NULL ORDER BY retired_at DESC, id DESC LIMIT 1"
            ).fetchone()
        return Generation(*row) if row else None

    def count(self, generation: int) -> tuple[int, int]:
        """Passages that have their vector in the generation, and passages that want one."""
        with self._database.read() as sql:
            have, want = sql.execute(
                "SELECT count(v.passage_id), count(*) FROM passages p"
                " LEFT JOIN vectors v ON v.passage_id = p.id AND v.generation = ? WHERE p.text_hash IS NOT NULL",
                (generation,),
            ).fetchone()
        return int(have), int(want)

    def enqueue_incomplete(self, generation: int, now: float, kind: str = "embed", *, failed: bool = True) -> int:
        """Queue a job for each document whose vectors are not the ones that its passages want. Those whose job has
        ``failed`` are tried again at once, or left to the queue."""
        with self._database.write() as sql:
            if not len(lacking(wanted_ids(sql).passages, marked_ids(sql, generation).passages)):
                return 0  # mostly, and told without the passages' rows, which have all texts
            rows = sql.execute(
                """
                SELECT DISTINCT d.workspace, d.path FROM passages p JOIN documents d ON d.id = p.document_id
                 WHERE p.text_hash IS NOT NULL
                   AND p.id NOT IN (SELECT passage_id FROM vectors WHERE generation = :generation)
                   AND (:failed OR NOT EXISTS (SELECT 1 FROM jobs j
                                                WHERE j.key = :kind || ':' || d.workspace || ':' || d.path
                                                  AND (j.attempts > 0 OR j.state = 'parked')))
                """,
                {"generation": generation, "kind": kind, "failed": failed},
            ).fetchall()
            for workspace, path in rows:
                add_job(sql, kind, workspace, path, now, afresh=False)
        return len(rows)

    def missing(self, generation: int, documents: Sequence[tuple[str, str]]) -> list[Wanted]:
        """The passages of these documents that have no vector in the generation."""
        wanted: list[Wanted] = []
        with self._database.read() as sql:
            for workspace, path in documents:
                rows = sql.execute(
                    """
                    SELECT p.id, p.document_id, p.text_hash, p.text FROM passages p
                     WHERE p.document_id = ? AND p.text_hash IS NOT NULL
                       AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.generation = ? AND v.passage_id = p.id)
                     ORDER BY p.ordinal
                    """,
                    (document_id(workspace, path), generation),
                )
                wanted.extend(map(Wanted._make, rows))
        return wanted

    def lacking(self, generation: int, documents: Sequence[int], most: int) -> Iterator[Lacking]:
        """The same of many documents, by their ids: without the texts, in portions of about so many passages."""
        rows: list[tuple[int, int, bytes]] = []
        for start in range(0, len(documents), _LACKING_BATCH):
            portion = documents[start : start + _LACKING_BATCH]
            marks = ",".join("?" * len(portion))
            with self._database.read() as sql:
                rows += sql.execute(
                    f"""
                    SELECT p.id, p.document_id, p.text_hash FROM passages p
                     WHERE p.document_id IN ({marks}) AND p.text_hash IS NOT NULL
                       AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.generation = ? AND v.passage_id = p.id)
                    """,  # noqa: S608 - marks are "?"
                    (*portion, generation),
                ).fetchall()
            if len(rows) >= most:
                yield Lacking(*zip(*rows, strict=True))
                rows = []
        if rows:
            yield Lacking(*zip(*rows, strict=True))

    def without_vectors(self, generation: int, passages: Sequence[Wanted]) -> list[Wanted]:
        """Those of these passages, known to the ledger or not, that have no vector in the generation."""
        marked = "SELECT 1 FROM vectors WHERE generation = ? AND passage_id = ?"
        with self._database.read() as sql:
            return [each for each in passages if not sql.execute(marked, (generation, each.passage_id)).fetchone()]

    def orphans(self, generation: int, documents: Sequence[tuple[str, str]] | None = None) -> list[int]:
        """Vectors whose passage is gone, of these documents or (None) of all."""
        gone = (
            "SELECT v.passage_id FROM vectors v WHERE v.generation = ?"
            " AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.id = v.passage_id)"
        )
        with self._database.read() as sql:
            if documents is None:
                return [row[0] for row in sql.execute(gone, (generation,))]
            found: list[int] = []
            for workspace, path in documents:
                rows = sql.execute(f"{gone} AND v.document_id = ?", (generation, document_id(workspace, path)))
                found.extend(row[0] for row in rows)
            return found

    def mark(self, generation: int, vectors: Iterable[tuple[int, int]]) -> None:
        """LanceDB holds these (passage, document) now."""
        with self._database.write() as sql:
            sql.executemany(
                "INSERT OR REPLACE INTO vectors (generation, passage_id, document_id) VALUES (?, ?, ?)",
                [(generation, passage, document) for passage, document in vectors],
            )
            failpoint("generation.mark.before")
        failpoint("generation.mark.after")

    def unmark(self, generation: int, passages: Iterable[int] | None) -> None:
        """LanceDB does not hold these any more; None: none at all."""
        with self._database.write() as sql:
            if passages is None:
                sql.execute("DELETE FROM vectors WHERE generation = ?", (generation,))
            else:
                sql.executemany(
                    "DELETE FROM vectors WHERE generation = ? AND passage_id = ?", [(generation, p) for p in passages]
                )
            failpoint("generation.unmark.before")
        failpoint("generation.unmark.after")

    def marked(self, generation: int) -> Column:
        """The passages whose vectors LanceDB holds, as far as the ledger knows."""
        with self._database.read() as sql:
            return marked_ids(sql, generation).passages

    def hashes(self, passages: Sequence[int]) -> dict[int, bytes]:
        """Of which text each of these passages wants the vector."""
        one = "SELECT text_hash FROM passages WHERE id = ? AND text_hash IS NOT NULL"
        with self._database.read() as sql:
            found = {passage: sql.execute(one, (passage,)).fetchone() for passage in passages}
        return {passage: row[0] for passage, row in found.items() if row}

    def hashes_in_use(self) -> Generator[bytes]:
        """One by one, for there may be millions, and some of them twice."""
        with self._database.read() as sql:
            for (text_hash,) in sql.execute("SELECT text_hash FROM passages WHERE text_hash IS NOT NULL"):
                yield text_hash

    def pending(self, workspaces: Sequence[str]) -> list[Pending]:
        """Documents with work before them, those whose words are missing first."""
        with self._database.read() as sql:
            texts = sql.execute(f"SELECT job.workspace, job.path {_TEXTS_PENDING} ORDER BY run_after").fetchall()
            vectors = sql.execute(f"SELECT job.workspace, job.path {_VECTORS_PENDING} ORDER BY run_after").fetchall()
        phases = (("text", texts), ("vectors", vectors))
        return [Pending(name, path, phase) for phase, rows in phases for name, path in rows if name in workspaces]

    def count_pending(self, workspaces: Sequence[str]) -> int:
        with self._database.read() as sql:
            counts = [
                sql.execute(f"SELECT job.workspace, count(*) {pending} GROUP BY 1").fetchall()
                for pending in (_TEXTS_PENDING, _VECTORS_PENDING)
            ]
        return sum(count for rows in counts for name, count in rows if name in workspaces)
