"""``memoryd search``: ask the daemon."""

from __future__ import annotations

from memoryd.daemon.commands.options import connect

TYPE_CHECKING = False  # see plain_words
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from memoryd.daemon.commands.options import AddCommon

VISIBILITY = ("scope", "exclude", "after", "before", "as_of", "include_superseded")


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "search",
        help="find notes by words and by meaning",
        description="Find the chunks of memory that answer a query, by their words and by their meaning.",
        epilog="The citation PATH#LFROM-LTO can be given to 'memoryd get' as it stands.",
    )
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what to look for, in any words and any script")
    add_options(parser)
    parser.add_argument("--explain", action="store_true", help="show how each score came about")
    parser.add_argument(
        "--fence", action="store_true", help="put the text of notes between lines that no note can write"
    )
    add_common(parser)
    parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What a search takes besides the query."""
    parser.add_argument(
        "--limit", "-n", type=int, metavar="N", help="at most N hits (1 to 100; default from the config)"
    )
    parser.add_argument("--min-score", type=float, metavar="X", help="leave out hits that score less than X (0 to 1)")
    parser.add_argument(
        "--source", action="append", default=[], metavar="S", help="only this source: memory, skills, facts or sessions"
    )
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
        action="switch",
        help="search by a hypothetical answer of the language model in [llm], or not (default from the config)",
    )
    parser.add_argument(
        "--rerank",
        action="switch",
        help="have a cross-encoder read the best passages, or not (default from the config)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of [search] for this query alone, e.g. fusion=rrf or weights.vector=0 (repeatable)",
    )


def read_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The query and its options as the daemon takes them."""
    params: dict[str, Any] = {"query": " ".join(arguments.query)}
    for name in ("limit", "min_score", "source", "path", "workspace", *VISIBILITY):
        value = getattr(arguments, name)
        if value is not None and value is not False and value != []:  # 0 is the daemon's to refuse
            params[name] = value
    if arguments.hyde is not None:
        params["hyde"] = arguments.hyde
    if arguments.rerank is not None:
        params["rerank"] = arguments.rerank
    if arguments.set:
        from memoryd.daemon.commands.assignments import search_table

        params["settings"] = search_table(arguments.set)
    return params


def run(arguments: argparse.Namespace) -> int:
    wishes = {name: True for name in ("explain", "fence") if getattr(arguments, name)}
    with connect(arguments) as client:
        meanwhile = None if arguments.json else _import_hits
        answer = client.call("search", {**read_options(arguments), **wishes}, meanwhile=meanwhile)
    if arguments.json:
        from memoryd.daemon.commands.output import print_json

        print_json(answer)
    else:
        from memoryd.daemon.commands.hits import print_answer, print_caveats

        print_answer(answer)
        print_caveats(answer)
    return 0


def _import_hits() -> None:
    """What shows them, while the daemon looks for them: on another core, and for about as long."""
    import memoryd.daemon.commands.hits  # noqa: F401
