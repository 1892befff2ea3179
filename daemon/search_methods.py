"""What the socket answers about finding: ``search`` and ``why_not``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import structlog

from memoryd.daemon.answers import answer_json, filters_json
from memoryd.daemon.config import Search
from memoryd.daemon.dispatch import Method
from memoryd.daemon.document_methods import paused_words
from memoryd.daemon.engine import Engine
from memoryd.daemon.fence import fence_hits
from memoryd.daemon.healed import again_if_healed
from memoryd.daemon.live_settings import LiveSettings
from memoryd.daemon.origins import add_origins
from memoryd.daemon.params import parse_params
from memoryd.daemon.requests import SearchRequest, WhyNotRequest
from memoryd.daemon.served import check_workspaces, inside
from memoryd.daemon.why_not import finding_json, why_not
from memoryd.jobs.meaning import Absence as Absent
from memoryd.jobs.meaning import Meaning
from memoryd.store.generations import Pending
from memoryd.store.model import SESSIONS
from memoryd.store.search.answer import Absence, Degraded
from memoryd.store.search.filters import report_filters
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import Decay, Hyde, Mmr, NamedDays, Rerank, SearchQuery, SearchSettings
from memoryd.store.search.visibility import name_pending

log = structlog.get_logger()

_ENABLE_SESSIONS = "Set sessions.enabled and sessions.paths in the configuration, then 'memoryd reload'"


class SearchMethods:
    def __init__(self, engine: Engine, live: LiveSettings) -> None:
        self._engine = engine
        self._live = live

    def table(self) -> dict[str, Method]:
        return {"search": Method(self.search), "why_not": Method(self.why_not)}

    @again_if_healed
    def search(self, params: Mapping[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        request = parse_params(SearchRequest, params)
        engine = self._engine
        query = self._query(request)
        answer = search(
            query,
            self._settings(request),
            engine.database,
            self._semantics(cached=request.cached),
            lambda: self._pending(query.workspaces or self._searched(query), request.scope),
            engine.hypotheses.imagine,
            engine.reranker,
        )
        if answer.degraded is None:
            answer = replace(answer, degraded=self._rebuilding() or self._away(answer.pending))
        if answer.absence and SESSIONS in request.source and not engine.config.sessions.enabled:
            answer = replace(answer, absence=Absence("transcripts are not indexed", _ENABLE_SESSIONS, 0.0))
        took_ms = round((time.perf_counter() - began) * 1000, 2)
        engine.ingestion.note_hits(answer.hits)
        engine.measures.note_search(took_ms, answer.timings, len(answer.hits), degraded=answer.degraded is not None)
        log.info(
            "query_done",
            query=request.query,  # its length, unless log.include_text
            took_ms=took_ms,
            results=len(answer.hits),
            degraded=answer.degraded.leg if answer.degraded else None,
            embedding=answer.embedding,
            hyde=answer.hyde.used if answer.hyde else None,
            reranked=answer.rerank.read if answer.rerank else None,
            **{f"{stage}_ms": round(ms, 2) for stage, ms in answer.timings.items()},
        )
        result = answer_json(answer, took_ms, explain=request.explain)
        result["paused"] = paused_words(engine) if any(each.phase == "vectors" for each in answer.pending) else None
        add_origins(engine.database, engine.workspaces, result["results"])
        if request.explain:
            with engine.database.read() as sql:
                result["filters"] = filters_json(report_filters(sql, query))
        return fence_hits(result) if request.fence else result

    @again_if_healed
    def why_not(self, params: Mapping[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        request = parse_params(WhyNotRequest, params)
        path, line = inside(request.passage), request.line or 1
        settings = self._settings(request)
        workspace, finding = why_not(self._engine, path, line, self._query(request), settings)
        took_ms = round((time.perf_counter() - began) * 1000, 2)
        log.info("why_not_done", took_ms=took_ms, verdict=finding.verdict, remedies=len(finding.remedies))
        return finding_json(finding, request, workspace, path, line, took_ms)

    def _semantics(self, *, cached: bool) -> Meaning | Absent:
        """``cached``: whether the vectors of earlier queries are used, and this one's is kept."""
        now = self._engine.semantics.now()
        return now if cached or isinstance(now, Absent) else now.forgetful()

    def _settings(self, request: SearchRequest) -> SearchSettings:
        """How a query is to be answered; without the vector leg where that is switched off."""
        settings = search_settings(self._live.search(request.settings))
        settings = replace(settings, candidates=max(settings.candidates, request.limit or settings.limit))
        if not self._engine.semantics.off():
            return settings
        return replace(settings, weights={**settings.weights, "vector": 0.0})

    def _query(self, request: SearchRequest) -> SearchQuery:
        return SearchQuery(
            text=request.query,
            today=request.as_of or datetime.fromtimestamp(self._engine.clock()).astimezone().date(),
            limit=request.limit,
            min_score=request.min_score,
            workspaces=check_workspaces(request.workspace, self._engine.workspaces),
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
            rerank=request.rerank,
            hidden_sources=self._hidden_sources(),
        )

    def _hidden_sources(self) -> tuple[str, ...]:
        sessions = self._engine.config.sessions
        return (SESSIONS,) if sessions.enabled and not sessions.search_by_default else ()

    def _searched(self, query: SearchQuery) -> tuple[str, ...]:
        """The workspaces in which a query that names none looks."""
        hidden = SESSIONS in query.unasked_sources()
        return tuple(name for name, each in self._engine.workspaces.items() if not (hidden and each.transcripts))

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

    def _away(self, pending: list[Pending]) -> Degraded | None:
        """What an answer must say while vectors wait to be written far away."""
        trouble = self._engine.place.outage.trouble()
        if trouble is None or not any(each.phase == "vectors" for each in pending):
            return None
        return Degraded("vector", f"what was saved since is found by its words alone: {trouble.reason}", trouble.hint)


def search_settings(config: Search) -> SearchSettings:
    return SearchSettings(
        limit=config.limit,
        min_score=config.min_score,
        abstain=config.abstain,
        doubt=config.doubt,
        candidates=config.candidates,
        fusion="rrf" if config.fusion == "rrf" else "weighted",
        adaptive=config.adaptive,
        weights=asdict(config.weights),
        concentration=config.concentration,
        rrf_k=config.rrf_k,
        decay=Decay(config.decay.half_life_days, config.decay.strength, config.decay.nearly),
        named_days=NamedDays(config.named_days.strength, config.named_days.half_life_days),
        mmr=Mmr(config.mmr.enabled, config.mmr.relevance),
        hyde=Hyde(config.hyde.enabled, "replace" if config.hyde.mode == "replace" else "average"),
        rerank=Rerank(config.rerank.enabled, config.rerank.budget_ms, config.rerank.weight),
        snippet_chars=config.snippet_chars,
    )
