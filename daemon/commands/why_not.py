"""``memoryd why-not``: where a passage was lost on its way into the hits, and what would bring it back."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from memoryd.daemon.commands.options import AddCommon, connect
from memoryd.daemon.commands.output import console, print_json
from memoryd.daemon.commands.search import add_options, read_options
from memoryd.daemon.commands.snippets import inert

_MARKS = {True: "passed", False: "lost", None: "-"}


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "why-not",
        help="tell why a passage is not among the hits, and what would bring it back",
        description="Follow a passage on its way into the hits of a query: where it was lost, and the smallest "
        "setting that would bring it back. What is proposed was tried.",
        epilog="Takes the options of 'memoryd search': give those that the search had. Exit code 0, whatever the "
        "verdict; --json has it.",
    )
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what was searched for")
    parser.add_argument("passage", metavar="PATH:LINE", help="the passage, also as PATH#LLINE")
    add_options(parser)
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        answer = client.call("why_not", {**read_options(arguments), "passage": arguments.passage})
    if arguments.json:
        print_json(answer)
    elif sys.stdout.isatty():
        print_pretty(answer)
    else:
        sys.stdout.writelines(f"{line}\n" for line in plain_lines(answer))
    return 0


def plain_lines(answer: dict[str, Any]) -> list[str]:
    """One fact a line, with a tab after its name."""
    lines = [f"{answer['verdict']}\t{inert(answer['explanation'])}"]
    lines += [f"{stage['stage']}\t{_MARKS[stage['passed']]}\t{inert(stage['detail'])}" for stage in answer["stages"]]
    lines += [f"remedy\t{inert(remedy['command'])}" for remedy in answer["remedies"]]
    return [*lines, f"hint\t{inert(answer['hint'])}"] if answer["hint"] else lines


def print_pretty(answer: dict[str, Any]) -> None:
    from rich.text import Text

    out = console()
    passage = answer["passage"]
    out.print(
        Text.assemble(
            (inert(f"{passage['path']}:{passage['line']}"), "bold cyan"), (f"   {answer['verdict']}", "yellow")
        )
    )
    out.print(Text(inert(answer["explanation"]), style="green" if answer["verdict"] == "found" else "bold"))
    out.print()
    for stage in answer["stages"]:
        if stage["passed"] is not None:
            mark, style = ("✓", "green") if stage["passed"] else ("✗", "red")
            out.print(Text.assemble((f"  {mark} ", style), f"{stage['stage']:<11}", (inert(stage["detail"]), "dim")))
    if answer["remedies"]:
        out.print("\nFound with")
    for remedy in answer["remedies"]:
        place = f"hit {remedy['place']}" if remedy["place"] else ""
        # A command is copied: only the terminal may break it.
        out.print(Text.assemble((f"  {place:<7}", "dim"), (inert(remedy["command"]), "cyan")), soft_wrap=True)
    if answer["hint"]:
        out.print(Text(f"\n→ {inert(answer['hint'])}", style="dim"))
