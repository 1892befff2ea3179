"""The answer to "why is this not among the hits": from the file on disk to its place in the ranking."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

from memoryd.daemon.command_line import search_command
from memoryd.daemon.engine import Engine
from memoryd.daemon.requests import WhyNotRequest
from memoryd.daemon.whereabouts import find_failure, find_file
from memoryd.store.errors import MemorydError
from memoryd.store.search.answer import Answer
from memoryd.store.search.hypothesis import Hypothesize
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import SearchQuery, SearchSettings
from memoryd.store.search.why_not.case import Case, Remembered
from memoryd.store.search.why_not.changes import Change
from memoryd.store.search.why_not.diagnosis import find_reason
from memoryd.store.search.why_not.finding import Finding, Remedy
from memoryd.store.search.why_not.target import read_target


def why_not(engine: Engine, path: str, line: int, query: SearchQuery, settings: SearchSettings) -> tuple[str, Finding]:
    """The workspace that the path is of, and what is found about the line."""
    place = find_file(engine, path, query.workspaces, suggest=query.scope is None)
    target = None
    if place.indexed:
        with engine.database.read() as sql:
            target = read_target(sql, place.workspace, path, line)
    if target is None:
        return place.workspace, place.trouble or _vanished(path)
    hypothesize = _once(engine.hypotheses.imagine)
    meaning = engine.semantics.now()  # one for every rerun

    def ask(query: SearchQuery, settings: SearchSettings) -> Answer:
        return search(query, settings, engine.database, meaning, lambda: [], hypothesize, engine.reranker)

    case = Case(target, query, settings, Remembered(ask), engine.database)
    finding = find_reason(case)
    if place.trouble and finding.verdict != "found" and not case.is_anothers():
        return place.workspace, place.trouble
    if finding.verdict == "vectors_pending" and (failure := find_failure(engine, place.workspace, path, "embed")):
        told = f"{finding.explanation} Its vectors could not be made: {failure.reason}."
        finding = replace(finding, explanation=told, hint=failure.hint)
    return place.workspace, finding


def _vanished(path: str) -> Finding:
    return Finding("no_such_file", f"{path} was forgotten this very moment.", hint="Ask again.")


def _once(hypothesize: Hypothesize) -> Hypothesize:
    """The first outcome counts for every rerun: a language model takes seconds, and may answer otherwise."""
    outcomes: dict[str, str | MemorydError] = {}

    def imagine(text: str) -> str:
        if text not in outcomes:
            try:
                outcomes[text] = hypothesize(text)
            except MemorydError as error:
                outcomes[text] = error
        outcome = outcomes[text]
        if isinstance(outcome, MemorydError):
            raise outcome
        return outcome

    return imagine


# -- as JSON ----------------------------------------------------------------------------------------------------


def finding_json(
    finding: Finding, request: WhyNotRequest, workspace: str, path: str, line: int, took_ms: float
) -> dict[str, Any]:
    chunk = finding.chunk
    return {
        "query": request.query,
        "passage": {
            "workspace": workspace,
            "path": path,
            "line": line,
            "start_line": chunk.start_line if chunk else None,
            "end_line": chunk.end_line if chunk else None,
            "id": chunk.key if chunk else None,
        },
        "verdict": finding.verdict,
        "explanation": finding.explanation,
        "place": finding.place,
        "stages": [{"stage": each.name, "passed": each.passed, "detail": each.detail} for each in finding.stages],
        "legs": {
            leg: place and {"rank": place.rank, "score": round(place.score, 4), "share": round(place.share, 4)}
            for leg, place in finding.legs.items()
        },
        "words": finding.words
        and {
            "has": list(finding.words.has),
            "lacks": list(finding.words.lacks),
            "ignored": list(finding.words.ignored),
        },
        "remedies": [_remedy_json(remedy, request) for remedy in finding.remedies],
        "hint": finding.hint,
        "took_ms": took_ms,
    }


def _remedy_json(remedy: Remedy, request: WhyNotRequest) -> dict[str, Any]:
    """The first change by itself, for most remedies have but one."""
    first, *rest = remedy.changes
    return {
        **_change_json(first),
        "with": [_change_json(change) for change in rest],
        "command": search_command(request, remedy.changes),
        "place": remedy.place,
    }


def _change_json(change: Change) -> dict[str, Any]:
    value = change.value
    if isinstance(value, tuple):
        value = list(value)
    return {"setting": change.setting, "value": value.isoformat() if isinstance(value, date) else value}
