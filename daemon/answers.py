"""An answer as the socket sends it and the command line prints it with ``--json``."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import date
from typing import Any

from memoryd.store.search.answer import Answer, Doubt, Hit, HydeReport, RerankReport
from memoryd.store.search.filters import FilterReport
from memoryd.store.search.period import Period

PENDING_LISTED = 20


def answer_json(answer: Answer, took_ms: float, *, explain: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "query": answer.query,
        "results": [hit_json(hit, explain=explain) for hit in answer.hits],
        "pending": [asdict(entry) for entry in answer.pending if entry.path][:PENDING_LISTED],
        "pending_count": len(answer.pending),  # with those that the caller may not know by name
        "degraded": asdict(answer.degraded) if answer.degraded else None,
        "absence": asdict(answer.absence) if answer.absence else None,
        "doubt": doubt_json(answer.doubt) if answer.doubt else None,
        "missing": list(answer.missing),
        "hyde": hyde_json(answer.hyde, explain=explain) if answer.hyde else None,
        "rerank": rerank_json(answer.rerank) if answer.rerank else None,
        "period": period_json(answer.period) if answer.period else None,
        "took_ms": took_ms,
    }
    if explain:
        result["timings_ms"] = {stage: round(ms, 3) for stage, ms in answer.timings.items()}
        result["candidates"] = answer.candidates
        result["weights"] = {
            leg: {name: round(value, 4) for name, value in asdict(weight).items()}
            for leg, weight in answer.weights.items()
        }
        result["embedding"] = answer.embedding
        result["lost"] = dict(Counter(lost.stage for lost in answer.lost))
    return result


def filters_json(report: FilterReport) -> dict[str, Any]:
    """Which were on, and how many documents they leave."""
    plain = {name: value.isoformat() if isinstance(value, date) else value for name, value in report.on.items()}
    on = {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}
    return {"on": on, "documents": report.documents, "of": report.of}


def doubt_json(doubt: Doubt) -> dict[str, Any]:
    return {"reason": doubt.reason, "hint": doubt.hint, "relevance": round(doubt.relevance, 4)}


def hyde_json(report: HydeReport, *, explain: bool) -> dict[str, Any]:
    if not report.used:
        return {"used": False, "reason": report.reason, "hint": report.hint}
    return {"used": True, "text": report.text} if explain else {"used": True}


def rerank_json(report: RerankReport) -> dict[str, Any]:
    if not report.used:
        return {"used": False, "reason": report.reason, "hint": report.hint}
    return {"used": True, "read": report.read, "of": report.of}


def period_json(period: Period) -> dict[str, Any]:
    days = [{"first": first.isoformat(), "last": last.isoformat()} for first, last in period.spans]
    return {"said": period.said, "days": days}


def hit_json(hit: Hit, *, explain: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "workspace": hit.workspace,
        "path": hit.path,
        "start_line": hit.start_line,
        "end_line": hit.end_line,
        "citation": hit.citation,
        "score": round(hit.score, 4),
        "snippet": hit.snippet,
        "snippet_line": hit.snippet_line,
        "highlights": [list(span) for span in hit.highlights],
        "best": {"start_line": hit.best.start, "end_line": hit.best.end},
        "source": hit.source,
        "heading": hit.heading,
        "date": hit.date.isoformat() if hit.date else None,
        "scope": hit.scope,
        "id": hit.id,
        "merged": list(hit.merged),
    }
    if hit.origin:
        result["origin"] = {
            "workspace": hit.origin.workspace,
            "path": hit.origin.path,
            "start_line": hit.origin.lines.start,
            "end_line": hit.origin.lines.end,
            "citation": hit.origin.citation,
        }
    if hit.superseded:
        result |= {"superseded": True, "superseded_by": hit.superseded_by}
    if explain:
        candidate = hit.candidate
        result["explain"] = {
            "legs": {
                leg: {"rank": place.rank, "score": round(place.score, 4), "share": round(place.share, 4)}
                for leg, place in candidate.legs.items()
            },
            "fused": round(candidate.fused, 4),
            "relevance": round(candidate.relevance, 4),
            "decay": round(candidate.decay, 4),
            "age_days": candidate.age_days,
        }
        if candidate.named:
            without = round(candidate.named.relevance, 4)
            result["explain"]["named_days"] = {"days_away": candidate.named.days_away, "relevance": without}
        if candidate.best:
            result["explain"]["passage"] = {"share": round(candidate.best.share, 4), "part": candidate.best.part}
        if candidate.rerank:
            result["explain"]["rerank"] = {
                "score": round(candidate.rerank.score, 3),
                "confidence": round(candidate.rerank.confidence, 4),
                "place": candidate.rerank.place,
                "relevance": round(candidate.rerank.relevance, 4),
            }
        if candidate.newer:
            own = candidate.relevance * candidate.decay
            result["explain"]["newer"] = {"than": hit.newer_than, "own_score": round(own, 4)}
        if candidate.mmr:
            result["explain"]["mmr"] = {
                "place": candidate.mmr.place,
                "similarity": round(candidate.mmr.similarity, 4),
                "nearest": hit.nearest,
            }
    return result
