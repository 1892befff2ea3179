"""``memoryd eval``: how well the search finds what is known to be there."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.options import AddCommon
from memoryd.daemon.commands.output import print_json, say
from memoryd.daemon.commands.progress import IndexProgress
from memoryd.store.errors import InvalidParams

if TYPE_CHECKING:
    from memoryd.daemon.config import Config
    from memoryd.daemon.engine import Engine
    from memoryd.daemon.paths import Paths
    from memoryd.store.search.metrics import Span

SHOWN = ("hit@1", "hit@5", "hit@6", "hit@10", "recall@10", "mrr@10", "ndcg@10")


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "eval",
        help="measure the search on queries with known answers",
        description="Index a workspace beside the daemon's own, ask every query through the real pipeline, and "
        "compare the hits with the lines that hold the answer. The index is kept for the next run, so that only "
        "what changed is embedded.",
        epilog='A query is one JSON object a line: {"id", "query", "gold": [{"path", "start_line", "end_line", '
        '"grade"?}]}; results are written as {"id", "results": [{"path", "start_line", "end_line"}]}.',
    )
    parser.add_argument("--workspace", required=True, type=Path, metavar="DIR", help="the notes to search")
    parser.add_argument(
        "--queries", required=True, type=Path, metavar="FILE", help="the queries, one JSON object a line"
    )
    parser.add_argument(
        "--now", type=date.fromisoformat, metavar="DATE", help="the day to pretend it is (default: today)"
    )
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="hits asked for (default: 50)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the results here, one JSON object a line")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, e.g. search.rrf_k=20 (repeatable)"
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from memoryd.daemon.app import embedder_loader
    from memoryd.daemon.engine import Engine
    from memoryd.daemon.logs import configure_logs

    queries = read_queries(arguments.queries)
    config, paths = _settings(arguments)
    configure_logs("warning", config.log.format)
    engine = Engine(config, paths, embedder_loader(config, paths.models_dir))
    try:
        engine.start()
        with IndexProgress(lambda: _brief(engine)):
            engine.queue.wait_until(engine.is_current)
        if not engine.semantics.ready():
            say(f"By keywords alone: {engine.semantics.status().reason}.")
        answers, milliseconds = _ask(engine, queries, arguments.now or date.today(), arguments.limit)  # noqa: DTZ011
    finally:
        engine.stop(timeout=3.0)
    report = _report(queries, answers, milliseconds)
    if arguments.out:
        rows = zip(queries, answers, strict=True)
        arguments.out.write_text("".join(_result_line(query, hits) for query, hits in rows), encoding="utf-8")
    if arguments.json:
        print_json(report)
    else:
        _print_report(report)
    return 0


def read_queries(file: Path) -> list[dict[str, Any]]:
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
            query = json.loads(line)
            _gold(query)
            queries.append({"id": query["id"], "query": str(query["query"]), "gold": query["gold"]})
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidParams(
                f"{file}:{number} is not a query: {type(error).__name__} {error}", hint="See 'memoryd eval --help'"
            ) from error
    if not queries:
        raise InvalidParams(f"{file} has no queries")
    return queries


def _settings(arguments: argparse.Namespace) -> tuple[Config, Paths]:
    """The configuration with ``--set``, and a data folder of this workspace's own."""
    import os
    from dataclasses import replace

    from memoryd.daemon.config_file import load_config
    from memoryd.daemon.paths import ensure_private, find_paths
    from memoryd.store.model import stable_id

    pairs = [setting.partition("=") for setting in arguments.set]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise InvalidParams(f"--set {wrong[0]}: no value", hint="Write --set search.rrf_k=20")
    overrides = {key: value for key, _, value in pairs}
    folder = arguments.workspace.resolve()
    config = load_config(arguments.config, os.environ, Path.cwd(), overrides=overrides, workspaces=[folder])
    paths = find_paths(config, os.environ)
    scratch = paths.cache_dir / "eval"
    ensure_private(paths.cache_dir)
    ensure_private(scratch)
    own = replace(config.paths, data=str(scratch / f"{stable_id('eval', folder):016x}"))
    config = replace(config, paths=own)
    return config, find_paths(config, os.environ)


def _ask(engine: Engine, queries: list[dict[str, Any]], now: date, limit: int) -> tuple[list[list[Span]], list[float]]:
    import time

    from memoryd.daemon.methods import search_settings
    from memoryd.store.search.metrics import Span
    from memoryd.store.search.pipeline import search
    from memoryd.store.search.request import SearchQuery

    settings = search_settings(engine.config.search)
    answers, milliseconds = [], []
    for query in queries:
        began = time.perf_counter()
        asked = SearchQuery(query["query"], now, limit=limit)
        answer = search(asked, settings, engine.database, engine.semantics, lambda: [])
        milliseconds.append((time.perf_counter() - began) * 1000)
        answers.append([Span(hit.path, hit.start_line, hit.end_line) for hit in answer.hits])
    return answers, milliseconds


def _report(queries: list[dict[str, Any]], answers: list[list[Span]], milliseconds: list[float]) -> dict[str, Any]:
    from memoryd.store.search.metrics import mean, percentile, score_query

    rows = [score_query(_gold(query), hits) for query, hits in zip(queries, answers, strict=True)]
    return {
        "queries": len(rows),
        "empty": sum(1 for hits in answers if not hits),
        **{name: round(value, 4) for name, value in mean(rows).items()},
        "latency_ms": {f"p{share}": round(percentile(milliseconds, share / 100), 2) for share in (50, 95, 99)},
    }


def _gold(query: dict[str, Any]) -> list[Span]:
    from memoryd.store.search.metrics import Span

    return [
        Span(str(item["path"]), int(item["start_line"]), int(item["end_line"]), float(item.get("grade", 1)))
        for item in query["gold"]
    ]


def _brief(engine: Engine) -> dict[str, Any]:
    from memoryd.daemon.status import brief_status

    return brief_status(engine)


def _result_line(query: dict[str, Any], hits: list[Span]) -> str:
    results = [{"path": hit.path, "start_line": hit.start_line, "end_line": hit.end_line} for hit in hits]
    return json.dumps({"id": query["id"], "results": results}, ensure_ascii=False) + "\n"


def _print_report(report: dict[str, Any]) -> None:
    out = sys.stdout.write
    out(f"{report['queries']} queries, {report['empty']} without a hit, {report['lines_per_result']:.1f} lines a hit\n")
    out(f"{'':10}" + "".join(f"{name:>11}" for name in SHOWN) + "\n")
    for level, words in (("line", "lines"), ("doc", "documents")):
        out(f"{words:10}" + "".join(f"{report[f'{level}.{name}']:11.3f}" for name in SHOWN) + "\n")
    latency = report["latency_ms"]
    out(f"latency    p50 {latency['p50']:.1f} ms, p95 {latency['p95']:.1f} ms, p99 {latency['p99']:.1f} ms\n")
