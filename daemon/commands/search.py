"""``memoryd search``: ask the daemon."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from memoryd.daemon.commands.options import AddCommon, connect
from memoryd.daemon.commands.output import console, lines_of, plural, print_json, say


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "search",
        help="find notes by words and by meaning",
        description="Find the chunks of memory that answer a query, by their words and by their meaning.",
        epilog="The citation PATH:FROM-TO can be given to 'memoryd get' as it stands.",
    )
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what to look for, in any words and any script")
    parser.add_argument(
        "--limit", "-n", type=int, metavar="N", help="at most N hits (1 to 100; default from the config)"
    )
    parser.add_argument("--min-score", type=float, metavar="X", help="leave out hits that score less than X (0 to 1)")
    parser.add_argument("--source", action="append", default=[], metavar="S", help="only this source: memory or skills")
    parser.add_argument(
        "--path", action="append", default=[], metavar="GLOB", help="only files that match, e.g. 'memory/2026-*'"
    )
    parser.add_argument("--workspace", action="append", default=[], metavar="NAME", help="only this workspace")
    parser.add_argument("--explain", action="store_true", help="show how each score came about")
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    params: dict[str, Any] = {"query": " ".join(arguments.query), "explain": arguments.explain}
    for name in ("limit", "min_score", "source", "path", "workspace"):
        if getattr(arguments, name) not in (None, []):
            params[name] = getattr(arguments, name)
    with connect(arguments) as client:
        answer = client.call("search", params)
    if arguments.json:
        print_json(answer)
    else:
        print_answer(answer)
        print_caveats(answer)
    return 0


def print_answer(answer: dict[str, Any]) -> None:
    if sys.stdout.isatty():
        _print_pretty(answer)
        return
    for hit in answer["results"]:
        sys.stdout.write(f"{lines_of(hit)}\t{hit['score']:.3f}\t{hit['heading']}\n")
        sys.stdout.writelines(f"    {line}\n" for line in hit["snippet"].splitlines())
        if "explain" in hit:
            sys.stdout.write(f"    = {explained(hit)}\n")


def print_caveats(answer: dict[str, Any]) -> None:
    """What must be known to judge the answer; on stderr, where it does not disturb a pipe."""
    if not answer["results"]:
        say("Nothing found.")
    if answer["degraded"]:
        say(f"By keywords alone: {answer['degraded']['reason']}.")
        if answer["degraded"]["hint"]:
            say(f"  → {answer['degraded']['hint']}")
    late = [entry for entry in answer["pending"] if entry["phase"] == "text"]
    if late:
        say(f"Not searchable yet: {', '.join(entry['path'] for entry in late[:3])}{' …' if len(late) > 3 else ''}.")
    elif answer["pending_count"]:
        say(f"{plural(answer['pending_count'], 'file')} not yet searchable by meaning (found by words already).")


def explained(hit: dict[str, Any]) -> str:
    explain = hit["explain"]
    legs = [f"{leg} #{place['rank']} ({place['score']:.3f})" for leg, place in explain["legs"].items()]
    age = "evergreen" if explain["age_days"] is None else f"{plural(explain['age_days'], 'day')} old"
    return (
        f"{hit['score']:.3f} = {' + '.join(legs)} → fused {explain['fused']:.3f} × decay {explain['decay']:.3f} ({age})"
    )


def _print_pretty(answer: dict[str, Any]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    for number, hit in enumerate(answer["results"], start=1):
        title = Text.assemble(
            (f"{number:>2}  ", "dim"),
            (lines_of(hit), "bold cyan"),
            (f"   {hit['score']:.2f}", "green"),
        )
        if hit["heading"]:
            title.append(f"   {hit['heading']}", "yellow")
        out.print(title, overflow="ellipsis", no_wrap=True)
        out.print(Padding(Text(_shorten(hit["snippet"], 6)), (0, 0, 0, 4)))
        if "explain" in hit:
            out.print(Padding(Text(explained(hit), style="dim"), (0, 0, 0, 4)))
        out.print()
    if answer["results"]:
        out.print(f"[dim]{plural(len(answer['results']), 'hit')} in {answer['took_ms']:.0f} ms[/dim]")


def _shorten(snippet: str, most: int) -> str:
    lines = [line for line in snippet.splitlines() if line.strip()]
    return "\n".join(lines[:most]) + (" …" if len(lines) > most else "")
