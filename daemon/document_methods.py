"""What the socket answers about documents: reading one, and bringing the index up to date with them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from memoryd.daemon.dispatch import Method
from memoryd.daemon.engine import Engine
from memoryd.daemon.fence import fence_document
from memoryd.daemon.healed import again_if_healed
from memoryd.daemon.origins import find_origin
from memoryd.daemon.params import parse_params
from memoryd.daemon.requests import GetRequest, IndexRequest
from memoryd.daemon.served import check_workspaces, inside
from memoryd.jobs.reading import decode_text, read_file
from memoryd.jobs.workspace import Workspace
from memoryd.store.cancellation import check_cancelled
from memoryd.store.errors import AnswerTooLarge, InvalidParams, NotFound

PAGE_BYTES = 1024 * 1024  # of text in one answer; ``next`` says where to go on
_POLL_S = 0.05


class DocumentMethods:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def table(self) -> dict[str, Method]:
        return {"get": Method(self.get), "index": Method(self.index, timeout_s=math.inf)}

    @again_if_healed
    def get(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(GetRequest, params)
        path = inside(request.path)
        served = self._engine.workspaces  # once: a reload replaces it
        names = check_workspaces((request.workspace,) if request.workspace else (), served)
        owners = self._engine.documents.indexed_in(path, names or served)
        if not owners:
            raise NotFound(f"No indexed document is called {path}", hint=self._hint_at(path))
        if len(owners) > 1:
            raise InvalidParams(
                f"{path} is in several workspaces: {', '.join(owners)}", hint="Say which one with workspace"
            )
        workspace = served[owners[0]]
        text = self._read(workspace, path)
        if text is None:
            raise NotFound(f"{path} is no longer there", hint="It was indexed a moment ago; search again")
        lines = text.removesuffix("\n").split("\n")
        first = request.from_line or 1
        last = min(request.to_line or (first if request.from_line else len(lines)), len(lines))
        if first > len(lines):
            raise InvalidParams(f"{path} has {len(lines)} lines; line {first} is past its end")
        page = _first_page(lines[first - 1 : last])
        if not page:
            raise AnswerTooLarge(
                f"Line {first} of {path} is longer than {PAGE_BYTES} bytes, and an answer holds whole lines",
                hint=f"Read the file itself: {workspace.root / path}",
            )
        end = first + len(page) - 1
        document = {
            "workspace": workspace.name,
            "path": path,
            "start_line": first,
            "end_line": end,
            "lines": len(lines),
            "text": "\n".join(page),
            "next": end + 1 if end < last else None,
        }
        if workspace.transcripts is not None:
            document["origin"] = find_origin(self._engine.database, workspace, path, first, end)
        return fence_document(document) if request.fence else document

    def _hint_at(self, path: str) -> str:
        """How a document that is called otherwise is called."""
        for name, workspace in self._engine.workspaces.items():
            if workspace.transcripts is not None:
                parts = list(self._engine.transcripts.documents_of(name, workspace.file_of(path)))
                if parts:
                    return f"It is a transcript; {parts[-1]} is its first part, {parts[0]} its last"
        return "Paths are relative to the workspace, as 'memoryd search' prints them"

    def _read(self, workspace: Workspace, path: str) -> str | None:
        """What a document says now: a note on disk; of a transcript, what is kept of it."""
        if workspace.transcripts is not None:
            segment = self._engine.transcripts.text(workspace.name, path)
            return segment.text if segment else None
        file = read_file(workspace.root / path, workspace.root, self._engine.index_settings.max_file_bytes)
        return None if file is None or file.too_large else decode_text(file.data)[0]

    async def index(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(IndexRequest, params)
        return await index(self._engine, request, check_workspaces(request.workspace, self._engine.workspaces))


async def index(engine: Engine, request: IndexRequest, workspaces: tuple[str, ...]) -> dict[str, Any]:
    """Look at the disk (at these paths, if any) and, if asked to, wait until everything found is indexed.

    The ledger is asked on threads: behind a large transaction it can take a while, and the loop serves everybody.
    """
    began = time.perf_counter()
    names = workspaces or tuple(engine.workspaces)
    await asyncio.to_thread(_begin_index, engine, request, names)
    while request.wait and not await asyncio.to_thread(engine.is_current):
        check_cancelled()
        await asyncio.sleep(_POLL_S)
    report = await asyncio.to_thread(_report_index, engine, names)
    return {**report, "took_ms": round((time.perf_counter() - began) * 1000, 2)}


def _begin_index(engine: Engine, request: IndexRequest, names: tuple[str, ...]) -> None:
    paths = [inside(path) for path in request.path]
    if request.force:
        for name in names:
            known = engine.documents.known(name)
            chosen = [p for p in known if any(p == path or p.startswith(f"{path}/") for path in paths)]
            engine.documents.expire(name, chosen if paths else None)
        engine.queue.requeue_parked(crashed=True)
        engine.semantics.ask_again()
    for path in paths or [""]:
        engine.look_at_disk(names, path)


def _report_index(engine: Engine, names: tuple[str, ...]) -> dict[str, Any]:
    generation = engine.generations.active()
    failures = [failure for failure in engine.queue.failures() if failure.workspace in names]
    return {
        "complete": engine.is_current(),
        "workspaces": [
            {"name": name, **asdict(engine.documents.totals(name, generation.id if generation else None))}
            for name in names
        ],
        "failed": [{"workspace": f.workspace, "path": f.path, "reason": f.reason, "hint": f.hint} for f in failures],
        "degraded": without_vectors(engine),
        "paused": paused_words(engine) if "embed" in engine.queue.waiting_kinds() else None,
    }


def paused_words(engine: Engine) -> str | None:
    """Why what is new is found by its words alone for now, though nothing is wrong."""
    pause = engine.paused()
    return f"embedding paused: {pause.reason}" if pause else None


def without_vectors(engine: Engine) -> dict[str, Any] | None:
    """Why what was indexed is not found by its meaning; None where it is, or is not meant to be."""
    held = engine.semantics.hold() or engine.place.outage.trouble()
    trouble = held if engine.semantics.ready() else engine.semantics.status()
    if engine.semantics.off() or trouble is None:
        return None
    return {"leg": "vector", "reason": trouble.reason, "hint": trouble.hint}


def _first_page(lines: list[str]) -> list[str]:
    """As many of the lines as fit an answer."""
    room = PAGE_BYTES
    for number, line in enumerate(lines):
        room -= len(line.encode("utf-8", "surrogatepass")) + 1
        if room < 0:
            return lines[:number]
    return lines
