"""Documents in the ledger: replaced and forgotten whole, in one transaction, with their keyword rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memoryd.store.database import Database
from memoryd.store.failpoints import failpoint
from memoryd.store.findings import Finding, Gone, Said, Skipped, Touched, write_finding
from memoryd.store.model import SESSIONS, Document, document_id

# The files behind the documents: a segment is none, its transcript is.
_FILES = f"""
    SELECT id, workspace, path, signature, content_hash FROM documents WHERE source != '{SESSIONS}'
    UNION ALL SELECT id, workspace, path, signature, '' FROM transcripts
"""  # noqa: S608 - of a constant


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger remembers of a file: enough to tell whether it must be read again."""

    signature: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A file that was skipped or read with difficulty, as status names it."""

    workspace: str
    path: str
    reason: str
    skipped: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """What is indexed of one workspace."""

    documents: int
    skipped: int
    chunks: int
    passages: int  # with something to embed
    vectors: int  # of those, how many the active generation holds


class Documents:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._totals: dict[tuple[str, int | None], tuple[object, Totals]] = {}  # with the ledger's state then

    # -- writing ------------------------------------------------------------------------------------------

    def keep(self, findings: Sequence[Finding], now: float) -> list[bool]:
        """Make the ledger say what was found, all of it or nothing: one commit, however many files there are.

        Returns of each whether that was news to the ledger.
        """
        with self._database.write() as sql:
            news = [write_finding(sql, finding, now) for finding in findings]
        if any(isinstance(finding, Said) for finding in findings):
            failpoint("document.replace.after")
        if any(isinstance(finding, Gone) for finding in findings):
            failpoint("document.forget.after")
        return news

    def replace(self, document: Document, now: float) -> None:
        """Make the ledger say exactly what this document says; queue the embedding of what is new in it."""
        self.keep([Said(document)], now)

    def skip(self, document: Document, reason: str, now: float) -> None:
        """Remember that a file was looked at and why it is not indexed."""
        self.keep([Skipped(document, reason)], now)

    def touch(self, workspace: str, path: str, signature: str) -> None:
        """The file was looked at again and holds what it held."""
        self.keep([Touched(workspace, path, signature)], 0.0)

    def expire(self, workspace: str, paths: Iterable[str] | None = None) -> None:
        """Make the next look at these files (None = all) read and split them again, changed or not."""
        with self._database.write() as sql:
            if paths is None:
                sql.execute("UPDATE documents SET signature = '', content_hash = '' WHERE workspace = ?", (workspace,))
                sql.execute("UPDATE transcripts SET signature = '', read_to = 0 WHERE workspace = ?", (workspace,))
                return
            ids = [(document_id(workspace, path),) for path in paths]
            sql.executemany("UPDATE documents SET signature = '', content_hash = '' WHERE id = ?", ids)
            sql.executemany("UPDATE transcripts SET signature = '', read_to = 0 WHERE id = ?", ids)

    def forget_workspace(self, workspace: str, now: float) -> int:
        """Forget a workspace that is no longer served."""
        with self._database.read() as sql:
            paths = [row[0] for row in sql.execute("SELECT path FROM documents WHERE workspace = ?", (workspace,))]
        for path in paths:
            self.forget(workspace, path, now)
        with self._database.write() as sql:
            sql.execute("DELETE FROM transcripts WHERE workspace = ?", (workspace,))
        return len(paths)

    def forget(self, workspace: str, path: str, now: float) -> bool:
        """The file is gone: it is not found from here on; its vectors are removed by the queued job."""
        return self.keep([Gone(workspace, path)], now)[0]

    # -- reading ------------------------------------------------------------------------------------------

    def known(self, workspace: str) -> dict[str, Known]:
        """The files of a workspace that were looked at."""
        with self._database.read() as sql:
            rows = sql.execute(
                f"SELECT path, signature, content_hash FROM ({_FILES}) WHERE workspace = ?",  # noqa: S608 - ours
                (workspace,),
            )
            return {path: Known(signature, content_hash) for path, signature, content_hash in rows}

    def lookup(self, workspace: str, path: str) -> Known | None:
        return self.lookup_all(workspace, [path]).get(path)

    def lookup_all(self, workspace: str, paths: Iterable[str]) -> dict[str, Known]:
        """Those of these files that were looked at."""
        one = f"SELECT signature, content_hash FROM ({_FILES}) WHERE id = ?"  # noqa: S608 - ours
        with self._database.read() as sql:
            rows = {path: sql.execute(one, (document_id(workspace, path),)).fetchone() for path in paths}
        return {path: Known(*row) for path, row in rows.items() if row}

    def after(self, identity: int, most: int) -> list[tuple[int, str, str, str]]:
        """The next documents that are files, by id: id, workspace, path, hash of what they held."""
        with self._database.read() as sql:
            return sql.execute(
                "SELECT id, workspace, path, content_hash FROM documents WHERE id > ? AND source != ?"
                " ORDER BY id LIMIT ?",
                (identity, SESSIONS, most),
            ).fetchall()

    def workspaces(self) -> list[str]:
        with self._database.read() as sql:
            both = "SELECT workspace FROM documents UNION SELECT workspace FROM transcripts ORDER BY 1"
            return [row[0] for row in sql.execute(both)]

    def indexed_in(self, path: str, workspaces: Iterable[str]) -> list[str]:
        """The workspaces that have this document indexed."""
        indexed = "SELECT 1 FROM documents WHERE id = ? AND skipped IS NULL"
        with self._database.read() as sql:
            return [name for name in workspaces if sql.execute(indexed, (document_id(name, path),)).fetchone()]

    def remarks(self) -> list[Remark]:
        with self._database.read() as sql:
            rows = sql.execute(
                "SELECT workspace, path, skipped, notices FROM documents WHERE skipped IS NOT NULL OR notices != '[]'"
                " UNION ALL SELECT workspace, path, skipped, '[]' FROM transcripts WHERE skipped IS NOT NULL"
                " ORDER BY workspace, path"
            ).fetchall()
        return [
            Remark(workspace, path, skipped or "; ".join(json.loads(notices)), skipped=skipped is not None)
            for workspace, path, skipped, notices in rows
        ]

    def totals(self, workspace: str, generation: int | None) -> Totals:
        """Counted anew once something was written: of a million chunks that takes seconds."""
        state = self._database.state()
        known = self._totals.get((workspace, generation))
        if known and known[0] == state:
            return known[1]
        totals = self._count(workspace, generation)
        if state:
            self._totals[workspace, generation] = state, totals
        return totals

    def _count(self, workspace: str, generation: int | None) -> Totals:
        count = """
            WITH d AS (SELECT skipped FROM documents INDEXED BY documents_by_filter WHERE workspace = :w)
            SELECT (SELECT count(*) FROM d WHERE skipped IS NULL), (SELECT count(*) FROM d WHERE skipped IS NOT NULL),
                   (SELECT count(*) FROM chunks c JOIN documents d ON d.id = c.document_id WHERE workspace = :w),
                   count(*), count(v.passage_id)
              FROM passages p JOIN documents d ON d.id = p.document_id
              LEFT JOIN vectors v ON v.passage_id = p.id AND v.generation = :g
             WHERE d.workspace = :w AND p.text_hash IS NOT NULL
        """
        with self._database.read() as sql:
            return Totals(*sql.execute(count, {"w": workspace, "g": generation}).fetchone())
