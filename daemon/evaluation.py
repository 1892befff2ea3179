"""The search on queries whose answers are known: an index beside the daemon's own, and every query asked of it.

``memoryd eval`` and ``make quality`` measure through here, so both measure what a user gets: the same engine, the
same pipeline.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from memoryd.daemon.app import embedder_loader
from memoryd.daemon.config import Config, Sessions, Store
from memoryd.daemon.engine import Engine
from memoryd.daemon.paths import Paths, ensure_private, find_paths
from memoryd.daemon.status import brief_status
from memoryd.store.errors import InvalidParams
from memoryd.store.model import stable_id
from memoryd.store.search.metrics import Span, group, mean, overlap_slice, percentile, score_query, wilson
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import SearchQuery, SearchSettings, Semantics

ShowProgress = Callable[[Callable[[], dict[str, Any]]], AbstractContextManager[object]]

_STOP_SECONDS = 3.0
_LOADING_S = 600.0  # for a reranker that may have to be fetched first


@dataclass(frozen=True, slots=True)
class Query:
    """A question and the lines that answer it."""

    id: str | int
    text: str
    gold: tuple[Span, ...]
    labels: tuple[str, ...]  # its type, and the slice of its lexical overlap if that is known


@dataclass(frozen=True, slots=True)
class Asked:
    """What came back."""

    hits: list[Span]
    milliseconds: float
    cpu_ms: float  # of all threads together
    stages: Mapping[str, float]  # of these, by stage
    doubted: bool = False  # the hits, by the answer itself


def read_queries(file: Path) -> list[Query]:
    """The queries of a file. Raises ``InvalidParams`` that names the first line that is not one."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidParams(f"{file} cannot be read: {error}") from error
    queries = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            queries.append(_query(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidParams(
                f"{file}:{number} is not a query: {type(error).__name__} {error}", hint="See 'memoryd eval --help'"
            ) from error
    if not queries:
        raise InvalidParams(f"{file} has no queries")
    return queries


def _query(row: dict[str, Any]) -> Query:
    gold = tuple(
        Span(_plain(item["path"]), int(item["start_line"]), int(item["end_line"]), float(item.get("grade", 1)))
        for item in row["gold"]
    )
    labels = [str(row.get("type", "?"))]
    if "lex_overlap" in row:
        labels.append(overlap_slice(float(row["lex_overlap"])))
    return Query(row["id"], str(row["query"]), gold, tuple(labels))


def _plain(path: str) -> str:
    """A path as hits name it, relative to the workspace."""
    path = path.replace("\\", "/")
    while path.startswith("./"):
        path = path[2:]
    return path.lstrip("/")


def set_apart(config: Config, environ: Mapping[str, str], slot: str = "") -> tuple[Config, Paths]:
    """The configuration and paths for an index of the workspace's own, kept in the cache folder.

    ``slot`` tells two indexes of one workspace apart. All share one embedding cache: a text that several workspaces
    or several settings have in common is embedded once.
    """
    folders = [workspace.path for workspace in config.workspaces]
    cache = find_paths(config, environ).cache_dir
    scratch = cache / "eval"
    ensure_private(cache)
    ensure_private(scratch)
    data = scratch / f"{stable_id('eval', *folders):016x}{slot}"
    sessions = config.sessions if config.sessions.search_by_default else Sessions()  # what no query sees is not copied
    ingest = replace(config.ingest, enabled=False)
    index = replace(config.index, pause_on_battery=False, pause_on_pressure=0.0)  # somebody waits for it
    here = replace(config.paths, data=str(data))
    config = replace(config, paths=here, store=Store(), sessions=sessions, ingest=ingest, index=index)
    return config, replace(find_paths(config, environ), embeddings=scratch / "embeddings.db")


@contextmanager
def open_index(config: Config, paths: Paths, show_progress: ShowProgress) -> Iterator[Engine]:
    """An engine whose index is current. Whether it has vectors is for the caller to ask."""
    engine = Engine(config, paths, embedder_loader(config, paths.models_dir))
    try:
        engine.start()
        with show_progress(lambda: brief_status(engine)):
            engine.queue.wait_until(engine.is_current)
        yield engine
    finally:
        engine.stop(_STOP_SECONDS)


def ask(
    engine: Engine,
    queries: Sequence[Query],
    settings: SearchSettings,
    today: date,
    limit: int,
    semantics: Semantics | None = None,
) -> list[Asked]:
    """Every query through the pipeline; ``semantics`` stands in for the engine's own."""
    if settings.rerank.enabled:
        engine.reranker.wait(_LOADING_S)
    asked = []
    for query in queries:
        began, spent = time.perf_counter(), time.process_time()
        request = SearchQuery(query.text, today, limit=limit)
        answer = search(
            request,
            settings,
            engine.database,
            semantics or engine.semantics.now(),
            lambda: [],
            engine.hypotheses.imagine,
            engine.reranker,
        )
        took, cpu = ((time.perf_counter() - began) * 1000, (time.process_time() - spent) * 1000)
        hits = [Span(hit.path, hit.start_line, hit.end_line) for hit in answer.hits]
        asked.append(Asked(hits, took, cpu, answer.timings, answer.doubt is not None))
    return asked


def score(queries: Sequence[Query], asked: Sequence[Asked]) -> list[dict[str, float]]:
    """The measures of each query."""
    return [score_query(query.gold, answer.hits) for query, answer in zip(queries, asked, strict=True)]


def summarise(queries: Sequence[Query], asked: Sequence[Asked]) -> dict[str, Any]:
    """The measures over all queries and over each kind of them."""
    rows = score(queries, asked)
    means = _rounded(mean(rows))
    kinds = group((query.labels, row) for query, row in zip(queries, rows, strict=True))
    milliseconds, cpu = [answer.milliseconds for answer in asked], [answer.cpu_ms for answer in asked]
    return {
        "queries": len(rows),
        "empty": sum(1 for answer in asked if not answer.hits),
        **means,
        "ci95_line.hit@6": [round(bound, 4) for bound in wilson(means["line.hit@6"], len(rows))],
        "latency_ms": {f"p{share}": round(percentile(milliseconds, share / 100), 2) for share in (50, 95, 99)},
        "cpu_ms": {f"p{share}": round(percentile(cpu, share / 100), 2) for share in (50, 95, 99)},
        "by_type": {kind: {"queries": len(some), **_rounded(mean(some))} for kind, some in kinds.items()},
    }


def _rounded(measures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in measures.items()}
