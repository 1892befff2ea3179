"""``memoryd eval --compare``: two configurations side by side, and what differs told apart from luck."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.evaluate import SHOWN, ask_all, measure, say_what_is_missing
from memoryd.daemon.commands.output import print_json

if TYPE_CHECKING:
    from memoryd.daemon.config import Config
    from memoryd.daemon.evaluation import Asked, Query

MEASURES = (*(f"line.{name}" for name in SHOWN), *(f"doc.{name}" for name in SHOWN))
PRINTED = (*(f"line.{name}" for name in SHOWN), "doc.ndcg@10")
LISTED = 20  # changed queries, on a terminal
_QUERY_WIDTH = 80


def run_comparison(arguments: argparse.Namespace, queries: Sequence[Query], a: Config, b: Config) -> int:
    one_index = replace(a, search=b.search) == b
    if one_index:
        asked = _ask_one_index(arguments, queries, a, b)
    else:
        asked = measure(arguments, queries, a), measure(arguments, queries, b, slot="-b")
    report = {
        "queries": len(queries),
        "one_index": one_index,
        **dict(zip(("a", "b"), map(str, arguments.compare), strict=True)),
        **compare_answers(queries, *asked),
    }
    if arguments.json:
        print_json(report)
    else:
        _print(report)
    return 0


def _ask_one_index(
    arguments: argparse.Namespace, queries: Sequence[Query], a: Config, b: Config
) -> tuple[list[Asked], list[Asked]]:
    from memoryd.daemon.commands.progress import IndexProgress
    from memoryd.daemon.evaluation import open_index, set_apart

    with open_index(*set_apart(a, os.environ), IndexProgress) as engine:
        say_what_is_missing(engine)
        return ask_all(arguments, queries, engine, a), ask_all(arguments, queries, engine, b)


def compare_answers(queries: Sequence[Query], a: Sequence[Asked], b: Sequence[Asked]) -> dict[str, Any]:
    """The measures of both with the interval of their difference, and the queries whose answer moved."""
    from memoryd.daemon.evaluation import score
    from memoryd.store.search.comparison import compare, find_changes
    from memoryd.store.search.metrics import first_rank, mean, percentile

    scored = [score(queries, asked) for asked in (a, b)]
    ranks = [
        [first_rank(query.gold, answer.hits) for query, answer in zip(queries, asked, strict=True)] for asked in (a, b)
    ]
    changes = find_changes(*ranks)
    sizes = [mean(rows)["lines_per_result"] for rows in scored]
    return {
        "measures": {
            difference.measure: {
                "a": round(difference.a, 4),
                "b": round(difference.b, 4),
                "difference": round(difference.b - difference.a, 4),
                "ci95": [round(difference.low, 4), round(difference.high, 4)],
                "verdict": difference.verdict,
            }
            for difference in compare(MEASURES, *scored)
        },
        "lines_per_result": dict(zip(("a", "b"), (round(size, 2) for size in sizes), strict=True)),
        "latency_p50_ms": {
            name: round(percentile([answer.milliseconds for answer in asked], 0.5), 2)
            for name, asked in (("a", a), ("b", b))
        },
        "changed": [
            {
                "id": queries[change.query].id,
                "query": queries[change.query].text,
                "a": change.a,
                "b": change.b,
                "outcome": change.outcome,
            }
            for change in changes
        ],
    }


def _print(report: dict[str, Any]) -> None:
    out = sys.stdout.write
    indexes = "one index" if report["one_index"] else "an index each"
    out(f"{report['queries']} queries on {indexes}\n")
    out(f"A  {report['a']}\nB  {report['b']}\n\n")
    out(f"{'':16}{'A':>8}{'B':>8}{'B - A':>9}   {'95 % interval':18}\n")
    for name in PRINTED:
        row = report["measures"][name]
        low, high = row["ci95"]
        out(f"{name:16}{row['a']:8.3f}{row['b']:8.3f}{row['difference']:+9.3f}")
        out(f"   {f'{low:+.3f} to {high:+.3f}':18} {row['verdict']}\n")
    for name, key in (("lines a hit", "lines_per_result"), ("latency p50, ms", "latency_p50_ms")):
        out(f"{name:16}{report[key]['a']:8.1f}{report[key]['b']:8.1f}\n")
    _print_changes(report["changed"])


def _print_changes(changed: Sequence[dict[str, Any]]) -> None:
    out = sys.stdout.write
    if not changed:
        out("\nEvery answer is found at the same rank.\n")
        return
    outcomes = [change["outcome"] for change in changed]
    counts = ", ".join(f"{outcomes.count(name)} {name}" for name in ("gained", "lost", "up", "down"))
    out(f"\n{len(changed)} answers moved (into or out of the first 6: gained, lost): {counts}\n")
    for change in changed[:LISTED]:
        a, b = (str(change[side] or "-") for side in ("a", "b"))
        text = " ".join(change["query"].split())
        shown = text if len(text) <= _QUERY_WIDTH else text[: _QUERY_WIDTH - 1] + "…"
        out(f"{a:>4} -> {b:<3} {change['outcome']:7} {change['id']}  {shown}\n")
    if len(changed) > LISTED:
        out(f"… and {len(changed) - LISTED} more; --json lists all\n")
