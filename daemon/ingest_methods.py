"""What the socket answers about ingest and about facts."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from memoryd.daemon.dispatch import Method
from memoryd.daemon.engine import Engine
from memoryd.daemon.ingestion import Underway, Wish
from memoryd.daemon.params import parse_params
from memoryd.daemon.requests import (
    FactsForgetRequest,
    FactsListRequest,
    FactsShowRequest,
    IngestRequest,
    IngestStatusRequest,
)
from memoryd.jobs.ingest.fact import Fact
from memoryd.jobs.ingest.folder import fact_path
from memoryd.jobs.ingest.run import Report
from memoryd.jobs.reading import decode_text, read_file
from memoryd.store.cancellation import check_cancelled
from memoryd.store.errors import InvalidParams, MemorydError, NotFound
from memoryd.store.globs import matches_any
from memoryd.store.model import FACTS

_POLL_S = 0.05
_INDEXING_S = 5.0  # so long the answer waits for what was stored to be found by its words
_COUNTS = (
    "files", "pieces", "answered", "kept", "asked", "bad_lines", "facts", "stored", "changed", "superseded",
    "duplicates", "dismissed", "tokens",
)  # fmt: skip

_COUNT = """
    SELECT count(*), coalesce(sum(EXISTS (SELECT 1 FROM superseding s WHERE s.document_id = d.id)), 0)
      FROM documents d WHERE d.workspace = ? AND d.skipped IS NULL
"""


class IngestMethods:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def table(self) -> dict[str, Method]:
        return {
            "ingest": Method(self.ingest, timeout_s=math.inf),
            "ingest.status": Method(self.status),
            "facts.list": Method(self.list),
            "facts.show": Method(self.show),
            "facts.forget": Method(self.forget),
        }

    async def ingest(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(IngestRequest, params)
        began = time.perf_counter()
        wish = Wish(request.paths, self._check_workspaces(request.workspace))
        ingestion = self._engine.ingestion
        if request.dry_run:
            report = await asyncio.to_thread(ingestion.plan, wish)
            return _report_json(report, began, dry_run=True)
        while (before := ingestion.current()) and before.stopping.is_set():  # somebody interrupted it a moment ago
            check_cancelled()
            await asyncio.sleep(_POLL_S)
        underway = ingestion.start(wish)
        try:
            while not underway.done.is_set():
                check_cancelled()
                await asyncio.sleep(_POLL_S)
        finally:
            ingestion.leave(underway)
        deadline = time.monotonic() + _INDEXING_S
        while "index" in self._engine.queue.waiting_kinds() and time.monotonic() < deadline:
            check_cancelled()
            await asyncio.sleep(_POLL_S)
        return _report_json(underway.report, began, dry_run=False)

    def status(self, params: Mapping[str, Any]) -> dict[str, Any]:
        parse_params(IngestStatusRequest, params)
        return ingest_status(self._engine)

    def list(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(FactsListRequest, params)
        names = self._check_workspaces(request.workspace)
        chosen = [
            fact
            for fact in self._engine.ingestion.folder.read_all()
            if (request.superseded or not fact.superseded_by)
            and (not names or fact.origin.workspace in names)
            and (not request.path or matches_any(fact.origin.path, request.path))
            and (not request.category or fact.category in request.category)
        ]
        chosen.sort(key=lambda fact: (fact.origin.workspace, fact.origin.path, fact.origin.start_line, fact.text))
        return {"facts": [fact_json(fact) for fact in chosen]}

    def show(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(FactsShowRequest, params)
        fact = self._find(request.id)
        return {**fact_json(fact), "passage": self._read_passage(fact)}

    def forget(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(FactsForgetRequest, params)
        facts = list({fact.id: fact for fact in map(self._find, request.id)}.values())
        self._engine.ingestion.forget(facts)
        return {"forgotten": [fact_json(fact) for fact in facts]}

    def _find(self, named: str) -> Fact:
        """The fact of an id, of the beginning of one, or of the path that a hit has."""
        wanted = PurePosixPath(named.partition("#")[0]).name.removesuffix(".md").lower()
        found = [fact for fact in self._engine.ingestion.folder.read_all() if wanted and fact.id.startswith(wanted)]
        if len(found) > 1:
            raise InvalidParams(f"{len(found)} facts begin with {wanted[:16]}", hint="Give more of the id")
        if not found:
            raise NotFound(f"There is no fact {named[:40]!r}", hint="'memoryd facts list' names them")
        return found[0]

    def _read_passage(self, fact: Fact) -> str | None:
        """The lines that the fact was made of, as they are now; None where they are gone."""
        workspace = self._engine.workspaces.get(fact.origin.workspace)
        parts = PurePosixPath(fact.origin.path).parts
        if workspace is None or fact.superseded_by or not parts or ".." in parts:
            return None
        try:
            file = read_file(
                workspace.root.joinpath(*parts), workspace.root, self._engine.index_settings.max_file_bytes
            )
        except MemorydError:
            return None
        text = None if file is None or file.too_large else decode_text(file.data)[0]
        lines = [] if text is None else text.split("\n")[fact.origin.start_line - 1 : fact.origin.end_line]
        return "\n".join(lines) or None

    def _check_workspaces(self, names: tuple[str, ...]) -> tuple[str, ...]:
        served = self._engine.ingestion.sources()
        unknown = [name for name in names if name not in served]
        if unknown:
            raise InvalidParams(f"No workspace is called {', '.join(unknown)}", hint=f"Served: {', '.join(served)}")
        return names


def ingest_status(engine: Engine) -> dict[str, Any]:
    """Whether facts are made, how far that is, and what came of the last time."""
    ingestion, llm = engine.ingestion, engine.config.llm
    with engine.database.read() as sql:  # as far as they are indexed: reading each file would be dear
        facts, superseded = sql.execute(_COUNT, (FACTS,)).fetchone()
    current, last = ingestion.current(), ingestion.last
    return {
        "model": llm.model if llm.provider != "none" else None,
        "scheduled": engine.config.ingest.enabled,
        "facts": facts - superseded,
        "superseded": superseded,
        "running": current is not None,
        "stopping": current is not None and current.stopping.is_set(),
        "progress": _counts(current.report) if current else None,
        "last": _last_json(last) if last else None,
    }


def _last_json(last: Underway) -> dict[str, Any]:
    return {"at": _iso(last.at), **_counts(last.report), **_outcome(last.report)}


def _counts(report: Report) -> dict[str, Any]:
    return {name: getattr(report, name) for name in _COUNTS}


def _outcome(report: Report) -> dict[str, Any]:
    error = report.error
    told = None if error is None else {"code": error.code, "message": error.message, "hint": error.hint}
    return {"complete": report.complete, "error": told}


def _report_json(report: Report, began: float, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        **_outcome(report),
        **_counts(report),
        "skipped": [{"workspace": name, "path": path, "reason": why} for name, path, why in report.skipped],
        "failed": [{"workspace": name, "path": path, "reason": why} for name, path, why in report.failed],
        "planned": [fact_json(fact) for fact in report.planned],
        "took_ms": round((time.perf_counter() - began) * 1000, 2),
    }


def fact_json(fact: Fact) -> dict[str, Any]:
    origin = fact.origin
    return {
        "id": fact.id,
        "text": fact.text,
        "path": fact_path(fact),
        "origin": {
            "workspace": origin.workspace,
            "path": origin.path,
            "start_line": origin.start_line,
            "end_line": origin.end_line,
            "citation": f"{origin.path}#L{origin.start_line}-L{origin.end_line}",
        },
        "category": fact.category,
        "tags": ["ingest", *fact.tags],
        "decay": fact.decay,
        "scope": fact.scope,
        "created": _iso(fact.created),
        "used": _iso(fact.used) if fact.used else None,
        "expires": _iso(fact.expires) if fact.expires else None,
        "superseded_by": fact.superseded_by,
    }


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
