"""``memoryd eval``: how well the search finds what is known to be there."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.assignments import split_assignments
from memoryd.daemon.commands.options import AddCommon
from memoryd.daemon.commands.output import plural, print_json, say
from memoryd.store.errors import InvalidParams

if TYPE_CHECKING:
    from memoryd.daemon.config import Config
    from memoryd.daemon.engine import Engine
    from memoryd.daemon.evaluation import Asked, Query

SHOWN = ("hit@1", "hit@5", "hit@6", "hit@10", "recall@10", "mrr@10", "ndcg@10")


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "eval",
        help="measure the search on queries with known answers",
        description="Index a workspace beside the daemon's own, ask every query through the real pipeline, and "
        "compare the hits with the lines that hold the answer. The index is kept for the next run, and embeddings "
        "are shared by all workspaces, so that only what changed is embedded. With --compare, two configurations "
        "are measured on the same queries, and what differs is told apart from luck.",
        epilog='A query is one JSON object a line: {"id", "query", "gold": [{"path", "start_line", "end_line", '
        '"grade"?}], "type"?, "lex_overlap"?}; results are written as {"id", "results": [{"path", "start_line", '
        '"end_line"}]}.',
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
    parser.add_argument("--by-type", action="store_true", help="also by the queries' types and lexical overlap")
    parser.add_argument(
        "--compare",
        nargs=2,
        type=Path,
        metavar=("A.toml", "B.toml"),
        help="two configurations, each as little as a [search] table, instead of --config",
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from memoryd.daemon.evaluation import read_queries
    from memoryd.daemon.logs import configure_logs

    if arguments.compare and (arguments.config or arguments.out or arguments.by_type):
        raise InvalidParams("--compare does not go with --config, --out or --by-type", hint="See 'memoryd eval --help'")
    queries = read_queries(arguments.queries)
    configs = [load(arguments, file) for file in arguments.compare or [arguments.config]]
    configure_logs("warning", configs[0].log.format)
    if arguments.compare:
        from memoryd.daemon.commands.comparison import run_comparison

        return run_comparison(arguments, queries, *configs)
    asked = measure(arguments, queries, configs[0])
    if arguments.out:
        rows = zip(queries, asked, strict=True)
        arguments.out.write_text("".join(_result_line(query, answer) for query, answer in rows), encoding="utf-8")
    _print(arguments, queries, asked)
    return 0


def load(arguments: argparse.Namespace, file: Path | None) -> Config:
    """A configuration file with ``--set`` over it, for the workspace to measure."""
    from memoryd.daemon.config_file import load_config

    overrides = split_assignments(arguments.set)
    return load_config(file, os.environ, Path.cwd(), overrides=overrides, workspaces=[arguments.workspace.resolve()])


def measure(arguments: argparse.Namespace, queries: Sequence[Query], config: Config, slot: str = "") -> list[Asked]:
    """Index, then ask."""
    from memoryd.daemon.commands.progress import IndexProgress
    from memoryd.daemon.evaluation import open_index, set_apart

    with open_index(*set_apart(config, os.environ, slot), IndexProgress) as engine:
        say_what_is_missing(engine)
        return ask_all(arguments, queries, engine, config)


def ask_all(arguments: argparse.Namespace, queries: Sequence[Query], engine: Engine, config: Config) -> list[Asked]:
    from memoryd.daemon.evaluation import ask
    from memoryd.daemon.search_methods import search_settings

    today = arguments.now or date.today()  # noqa: DTZ011  the user's own day
    return ask(engine, queries, search_settings(config.search), today, arguments.limit)


def say_what_is_missing(engine: Engine) -> None:
    if not engine.semantics.ready():
        say(f"By keywords alone: {engine.semantics.status().reason}.")
    if failures := engine.queue.failures():
        first = failures[0]
        say(f"{plural(len(failures), 'job')} failed; the first, {first.kind} {first.path}: {first.reason}")


def _result_line(query: Query, answer: Asked) -> str:
    results = [{"path": hit.path, "start_line": hit.start_line, "end_line": hit.end_line} for hit in answer.hits]
    return json.dumps({"id": query.id, "results": results}, ensure_ascii=False) + "\n"


def _print(arguments: argparse.Namespace, queries: Sequence[Query], asked: Sequence[Asked]) -> None:
    from memoryd.daemon.evaluation import summarise

    report = summarise(queries, asked)
    if arguments.json:
        print_json(report)
        return
    out = sys.stdout.write
    out(f"{report['queries']} queries, {report['empty']} without a hit, {report['lines_per_result']:.1f} lines a hit\n")
    out(f"{'':10}" + "".join(f"{name:>11}" for name in SHOWN) + "\n")
    for level, words in (("line", "lines"), ("doc", "documents")):
        out(f"{words:10}" + "".join(f"{report[f'{level}.{name}']:11.3f}" for name in SHOWN) + "\n")
    low, high = report["ci95_line.hit@6"]
    out(f"hit@6      {low:.3f} to {high:.3f} with 95 % confidence\n")
    latency = report["latency_ms"]
    out(f"latency    p50 {latency['p50']:.1f} ms, p95 {latency['p95']:.1f} ms, p99 {latency['p99']:.1f} ms\n")
    if arguments.by_type:
        width = max(map(len, report["by_type"]))
        out(f"\n{'lines':{width}}    queries" + "".join(f"{name:>11}" for name in SHOWN) + "\n")
        for kind, measures in report["by_type"].items():
            shown = "".join(f"{measures[f'line.{name}']:11.3f}" for name in SHOWN)
            out(f"{kind:{width}} {measures['queries']:10}{shown}\n")
