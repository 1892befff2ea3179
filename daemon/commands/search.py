"""``memoryd search``: ask the daemon."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from memoryd.daemon.commands.options import AddCommon, connect
from memoryd.daemon.commands.output import console, plural, print_json, say
from memoryd.daemon.commands.snippets import inert, shorten_snippet

VISIBILITY = ("scope", "exclude", "after", "before", "as_of", "include_superseded")

_SNIPPET_LINES = 6


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "search",
        help="find notes by words and by meaning",
        description="Find the chunks of memory that answer a query, by their words and by their meaning.",
        epilog="The citation PATH#LFROM-LTO can be given to 'memoryd get' as it stands.",
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
    parser.add_argument(
        "--scope", metavar="SCOPE", help="see what is global and what is this one's: user:ID, agent:ID or session:ID"
    )
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="X", help="not this hit (its id) or these files (a glob)"
    )
    parser.add_argument("--after", metavar="DAY", help="only notes dated this day (YYYY-MM-DD) or later")
    parser.add_argument("--before", metavar="DAY", help="only notes dated this day or earlier")
    parser.add_argument("--as-of", metavar="DAY", help="as if it were this day: without notes that are dated later")
    parser.add_argument("--include-superseded", action="store_true", help="show superseded notes too, marked")
    parser.add_argument(
        "--hyde",
        action=argparse.BooleanOptionalAction,
        help="search by a hypothetical answer of the language model in [llm], or not (default from the config)",
    )
    parser.add_argument("--explain", action="store_true", help="show how each score came about")
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    params: dict[str, Any] = {"query": " ".join(arguments.query), "explain": arguments.explain}
    for name in ("limit", "min_score", "source", "path", "workspace", *VISIBILITY):
        if getattr(arguments, name) not in (None, [], False):
            params[name] = getattr(arguments, name)
    if arguments.hyde is not None:
        params["hyde"] = arguments.hyde
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
        sys.stdout.write(f"{hit['citation']}\t{hit['score']:.3f}\t{hit['heading']}\n")
        if "superseded" in hit:
            sys.stdout.write(f"    {outdated(hit)}\n")
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
    print_hyde(answer["hyde"])
    late = [entry for entry in answer["pending"] if entry["phase"] == "text"]
    if late:
        say(f"Not searchable yet: {', '.join(entry['path'] for entry in late[:3])}{' …' if len(late) > 3 else ''}.")
    elif answer["pending_count"] and not answer["pending"]:
        say(f"{plural(answer['pending_count'], 'file')} not read yet.")
    elif answer["pending_count"]:
        say(f"{plural(answer['pending_count'], 'file')} not yet searchable by meaning (found by words already).")


def print_hyde(hyde: dict[str, Any] | None) -> None:
    if hyde is None:
        return
    if not hyde["used"]:
        say(f"Without a hypothetical answer: {hyde['reason']}.")
        if hyde["hint"]:
            say(f"  → {hyde['hint']}")
    elif "text" in hyde:
        say(f"Searched by the hypothetical answer: {hyde['text']}")


def outdated(hit: dict[str, Any]) -> str:
    return f"superseded by {hit['superseded_by']}" if hit["superseded_by"] else "superseded"


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
            (inert(hit["citation"]), "bold cyan"),
            (f"   {hit['score']:.2f}", "green"),
        )
        if hit["heading"]:
            title.append(f"   {inert(hit['heading'])}", "yellow")
        out.print(title, overflow="ellipsis", no_wrap=True)
        if "superseded" in hit:
            out.print(Padding(Text(outdated(hit), style="red"), (0, 0, 0, 4)))
        out.print(Padding(shorten_snippet(hit, _SNIPPET_LINES), (0, 0, 0, 4)))
        if "explain" in hit:
            out.print(Padding(Text(explained(hit), style="dim"), (0, 0, 0, 4)))
        out.print()
    if answer["results"]:
        out.print(f"[dim]{plural(len(answer['results']), 'hit')} in {answer['took_ms']:.0f} ms[/dim]")
