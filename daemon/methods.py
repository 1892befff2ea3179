"""What the socket answers: each method's parameters in, the object that the command line prints out."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from importlib.metadata import version
from pathlib import PurePosixPath
from typing import Any

import structlog

from memoryd.daemon.answers import answer_json, filters_json
from memoryd.daemon.config import Search
from memoryd.daemon.dispatch import Method
from memoryd.daemon.engine import Engine
from memoryd.daemon.fence import fence_document, fence_hits
from memoryd.daemon.ingest_methods import IngestMethods
from memoryd.daemon.introduction import introduce
from memoryd.daemon.limits import Limits
from memoryd.daemon.live_settings import LiveSettings
from memoryd.daemon.model_methods import ModelMethods
from memoryd.daemon.monitor import Monitor
from memoryd.daemon.openrpc import describe
from memoryd.daemon.params import parse_params
from memoryd.daemon.reloaded import Reloaded
from memoryd.daemon.requests import (
    CancelRequest,
    EventsSubscribeRequest,
    EventsUnsubscribeRequest,
    GetRequest,
    IndexRequest,
    InitializeRequest,
    PingRequest,
    ReloadRequest,
    RpcDiscoverRequest,
    SearchRequest,
    SettingsGetRequest,
    SettingsSetRequest,
    StatusRequest,
    VerifyRequest,
    WhyNotRequest,
)
from memoryd.daemon.server import Server
from memoryd.daemon.session import CANCEL, Session
from memoryd.daemon.status import brief_status, full_status
from memoryd.daemon.verification import verify
from memoryd.daemon.watcher import Watcher
from memoryd.daemon.why_not import finding_json, why_not
from memoryd.jobs.reading import decode_text, read_file
from memoryd.store.cancellation import check_cancelled
from memoryd.store.errors import (
    ConfigInvalid,
    InvalidParams,
    NotFound,
    PathRefused,
    StoreCorrupt,
    StoreUnavailable,
)
from memoryd.store.generations import Pending
from memoryd.store.search.answer import Degraded
from memoryd.store.search.filters import report_filters
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import Decay, Hyde, Mmr, SearchQuery, SearchSettings
from memoryd.store.search.visibility import name_pending

log = structlog.get_logger()

_POLL_S = 0.05
_LONGEST_PATH = 4096  # as the kernel takes them
_SHOWN_PATH = 100
_HEALING_S = 10.0

Answerer = Callable[[Mapping[str, Any]], dict[str, Any]]


class Methods:
    """The daemon's methods by name, over one engine."""

    def __init__(self, engine: Engine, watchers: dict[str, Watcher]) -> None:
        self._engine = engine
        self._watchers = watchers
        self.live = self._live = LiveSettings(engine.config, engine.paths.config_file)
        self._server: Server | None = None
        self._reload: Callable[[], Awaitable[Reloaded]] | None = None
        self._monitor = Monitor(
            engine.events,
            pulse=lambda: (engine.queue.changes(), engine.semantics.status(), engine.worker.ledger_trouble),
            progress=lambda: brief_status(engine),
            health=lambda: full_status(engine, watchers, self._server)["health"],
        )

    def observe(self, server: Server) -> None:
        """The server that these methods answer on, for ``status`` to tell of it."""
        self._server = server

    def reload_by(self, reload: Callable[[], Awaitable[Reloaded]]) -> None:
        """How the configuration is read again, where a daemon runs that can."""
        self._reload = reload

    @classmethod
    def names(cls) -> list[str]:
        """Of every method; no engine is needed to know them."""
        models, ingest = ModelMethods.__new__(ModelMethods), IngestMethods.__new__(IngestMethods)
        return [*cls.__new__(cls)._own_table(), *models.table(), *ingest.table()]

    def table(self) -> dict[str, Method]:
        return {**self._own_table(), **ModelMethods(self._engine).table(), **IngestMethods(self._engine).table()}

    def _own_table(self) -> dict[str, Method]:
        return {
            "initialize": Method(self.initialize),
            "ping": Method(self.ping),
            "search": Method(self._again_if_healed(self.search)),
            "why_not": Method(self._again_if_healed(self.why_not)),
            "get": Method(self._again_if_healed(self.get)),
            "status": Method(self._again_if_healed(self.status)),
            "index": Method(self.index, timeout_s=math.inf),
            "verify": Method(self.verify, timeout_s=math.inf),
            "settings.get": Method(self.get_settings),
            "settings.set": Method(self.set_settings),
            "reload": Method(self.reload, timeout_s=math.inf),
            "events.subscribe": Method(self.subscribe, session=True),
            "events.unsubscribe": Method(self.unsubscribe, session=True),
            CANCEL: Method(self.cancel, session=True),
            "rpc.discover": Method(self.discover),
        }

    def _again_if_healed(self, answer: Answerer) -> Answerer:
        """Who asks in the moment in which the ledger turns out damaged waits until it is begun anew."""

        def answer_or_wait(params: Mapping[str, Any]) -> dict[str, Any]:
            try:
                return answer(params)
            except (StoreCorrupt, StoreUnavailable):
                if not self._engine.healer.wait_for_healing(_HEALING_S):
                    raise
            return answer(params)

        return answer_or_wait

    async def initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(InitializeRequest, params)
        limits = self._server.limits if self._server else Limits()
        return introduce(request, self.table(), limits, self._engine.events.queue)

    async def ping(self, params: Mapping[str, Any]) -> dict[str, Any]:
        parse_params(PingRequest, params)
        return {"pong": True, "version": version("memoryd"), "pid": os.getpid()}

    def search(self, params: Mapping[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        request = parse_params(SearchRequest, params)
        engine = self._engine
        query = self._query(request)
        answer = search(
            query,
            search_settings(self._live.search(request.settings)),
            engine.database,
            engine.semantics.now(),
            lambda: self._pending(query.workspaces or tuple(engine.workspaces), request.scope),
            engine.hypotheses.imagine,
        )
        if answer.degraded is None:
            answer = replace(answer, degraded=self._rebuilding())
        took_ms = round((time.perf_counter() - began) * 1000, 2)
        engine.ingestion.note_hits(answer.hits)
        engine.measures.note_search(took_ms, answer.timings, len(answer.hits), degraded=answer.degraded is not None)
        log.info(
            "query_done",
            query=request.query,  # its length, unless log.include_text
            took_ms=took_ms,
            results=len(answer.hits),
            degraded=answer.degraded.leg if answer.degraded else None,
            hyde=answer.hyde.used if answer.hyde else None,
            **{f"{stage}_ms": round(ms, 2) for stage, ms in answer.timings.items()},
        )
        result = answer_json(answer, took_ms, explain=request.explain)
        if request.explain:
            with engine.database.read() as sql:
                result["filters"] = filters_json(report_filters(sql, query))
        return fence_hits(result) if request.fence else result

    def why_not(self, params: Mapping[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        request = parse_params(WhyNotRequest, params)
        path, line = _inside(request.passage), request.line or 1
        settings = search_settings(self._live.search(request.settings))
        workspace, finding = why_not(self._engine, path, line, self._query(request), settings)
        took_ms = round((time.perf_counter() - began) * 1000, 2)
        log.info("why_not_done", took_ms=took_ms, verdict=finding.verdict, remedies=len(finding.remedies))
        return finding_json(finding, request, workspace, path, line, took_ms)

    def get(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(GetRequest, params)
        path = _inside(request.path)
        names = self._check_workspaces((request.workspace,) if request.workspace else ())
        owners = self._engine.documents.indexed_in(path, names or self._engine.workspaces)
        if not owners:
            raise NotFound(
                f"No indexed document is called {path}",
                hint="Paths are relative to the workspace, as 'memoryd search' prints them",
            )
        if len(owners) > 1:
            raise InvalidParams(
                f"{path} is in several workspaces: {', '.join(owners)}", hint="Say which one with workspace"
            )
        workspace = self._engine.workspaces[owners[0]]
        file = read_file(workspace.root / path, workspace.root, self._engine.index_settings.max_file_bytes)
        text = None if file is None or file.too_large else decode_text(file.data)[0]
        if text is None:
            raise NotFound(f"{path} is no longer there", hint="It was indexed a moment ago; search again")
        lines = text.removesuffix("\n").split("\n")
        first = request.from_line or 1
        last = min(request.to_line or (first if request.from_line else len(lines)), len(lines))
        if first > len(lines):
            raise InvalidParams(f"{path} has {len(lines)} lines; line {first} is past its end")
        document = {
            "workspace": workspace.name,
            "path": path,
            "start_line": first,
            "end_line": last,
            "lines": len(lines),
            "text": "\n".join(lines[first - 1 : last]),
        }
        return fence_document(document) if request.fence else document

    def status(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if parse_params(StatusRequest, params).brief:
            return brief_status(self._engine)
        return full_status(self._engine, self._watchers, self._server, self._live.changes())

    async def index(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(IndexRequest, params)
        return await index(self._engine, request, self._check_workspaces(request.workspace))

    def verify(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(VerifyRequest, params)
        return verify(self._engine, self._check_workspaces(request.workspace), repair=request.repair)

    def get_settings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        parse_params(SettingsGetRequest, params)
        return self._live.describe()

    def set_settings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(SettingsSetRequest, params)
        self._live.change(request.settings or {}, reset=request.reset, persist=request.persist)
        described = self._live.describe()
        changed = {key: change["live"] for key, change in described["changed"].items()}
        log.info("settings_changed", persisted=request.persist, changed=changed)
        return described

    async def reload(self, params: Mapping[str, Any]) -> dict[str, Any]:
        parse_params(ReloadRequest, params)
        if self._reload is None:
            raise ConfigInvalid(("this memoryd cannot read its configuration again",), hint="Restart memoryd")
        outcome = await self._reload()
        if outcome.problems:
            hint = f"The former configuration is in force. {outcome.hint or ''}".rstrip()
            raise ConfigInvalid(outcome.problems, hint=hint)
        return {"changed": list(outcome.changed), "needs_restart": list(outcome.needs_restart)}

    async def subscribe(self, params: Mapping[str, Any], session: Session) -> dict[str, Any]:
        request = parse_params(EventsSubscribeRequest, params)
        subscription = self._engine.events.subscribe(request.events, self._check_workspaces(request.workspace))
        session.follow(self._engine.events, subscription)
        self._monitor.tell_all()
        return {"events": list(subscription.kinds), "queue": self._engine.events.queue}

    async def unsubscribe(self, params: Mapping[str, Any], session: Session) -> dict[str, Any]:
        parse_params(EventsUnsubscribeRequest, params)
        followed = session.subscription
        session.unfollow()
        return {"events": list(followed.kinds) if followed else []}

    async def cancel(self, params: Mapping[str, Any], session: Session) -> None:
        session.cancel(parse_params(CancelRequest, params).id)

    def discover(self, params: Mapping[str, Any]) -> dict[str, Any]:
        parse_params(RpcDiscoverRequest, params)
        return describe(self.table())

    def _query(self, request: SearchRequest) -> SearchQuery:
        return SearchQuery(
            text=request.query,
            today=request.as_of or datetime.fromtimestamp(self._engine.clock()).astimezone().date(),
            limit=request.limit,
            min_score=request.min_score,
            workspaces=self._check_workspaces(request.workspace),
            sources=request.source,
            paths=request.path,
            scope=request.scope,
            exclude=request.exclude,
            after=request.after,
            before=request.before,
            as_of=request.as_of,
            include_superseded=request.include_superseded,
            explain=request.explain,
            hyde=request.hyde,
        )

    def _pending(self, workspaces: tuple[str, ...], scope: str | None) -> list[Pending]:
        with self._engine.database.read() as sql:
            return name_pending(sql, self._engine.generations.pending(workspaces), scope)

    def _rebuilding(self) -> Degraded | None:
        """What an answer must say while a store that was damaged is not whole again."""
        rebuilding = self._engine.healer.rebuilding()
        if "ledger" in rebuilding:
            reason = "the ledger was damaged and is being rebuilt from your markdown: some notes are not found yet"
            return Degraded("ledger", reason, "'memoryd index' waits until it is whole")
        if "vectors" in rebuilding:
            reason = "the vectors were damaged and are being rebuilt: some notes are found by their words alone"
            return Degraded("vector", reason, "'memoryd index' waits until they are whole")
        return None

    def _check_workspaces(self, names: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in self._engine.workspaces]
        if unknown:
            served = ", ".join(self._engine.workspaces) or "none"
            raise InvalidParams(f"No workspace is called {', '.join(unknown)}", hint=f"Workspaces served: {served}")
        return names


async def index(engine: Engine, request: IndexRequest, workspaces: tuple[str, ...]) -> dict[str, Any]:
    """Look at the disk (at these paths, if any) and, if asked to, wait until everything found is indexed."""
    began = time.perf_counter()
    names = workspaces or tuple(engine.workspaces)
    paths = [_inside(path) for path in request.path]
    if request.force:
        for name in names:
            known = engine.documents.known(name)
            chosen = [p for p in known if any(p == path or p.startswith(f"{path}/") for path in paths)]
            engine.documents.expire(name, chosen if paths else None)
        engine.queue.requeue_parked(crashed=True)
        engine.semantics.retry_now()
    for path in paths or [""]:
        engine.look_at_disk(names, path)
    while request.wait and not engine.is_current():
        check_cancelled()
        await asyncio.sleep(_POLL_S)
    generation = engine.generations.active()
    failures = [failure for failure in engine.queue.failures() if failure.workspace in names]
    semantics = engine.semantics.status()
    return {
        "complete": engine.is_current(),
        "workspaces": [
            {"name": name, **asdict(engine.documents.totals(name, generation.id if generation else None))}
            for name in names
        ],
        "failed": [{"workspace": f.workspace, "path": f.path, "reason": f.reason, "hint": f.hint} for f in failures],
        "degraded": None
        if engine.semantics.ready()
        else {"leg": "vector", "reason": semantics.reason, "hint": semantics.hint},
        "took_ms": round((time.perf_counter() - began) * 1000, 2),
    }


def search_settings(config: Search) -> SearchSettings:
    return SearchSettings(
        limit=config.limit,
        min_score=config.min_score,
        candidates=config.candidates,
        fusion="rrf" if config.fusion == "rrf" else "weighted",
        adaptive=config.adaptive,
        weights=asdict(config.weights),
        rrf_k=config.rrf_k,
        decay=Decay(config.decay.half_life_days, config.decay.strength),
        mmr=Mmr(config.mmr.enabled, config.mmr.relevance),
        hyde=Hyde(config.hyde.enabled, "replace" if config.hyde.mode == "replace" else "average"),
        snippet_chars=config.snippet_chars,
    )


def _inside(path: str) -> str:
    """A path relative to a workspace that cannot leave it."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or len(path) > _LONGEST_PATH:
        shown = path if len(path) <= _SHOWN_PATH else f"{path[:_SHOWN_PATH]}…"
        raise PathRefused(
            f"{shown!r} is not a path inside a workspace", hint="Give it relative to the workspace's folder, without .."
        )
    return "/".join(parts)
