"""``memoryd facts``: list, show and forget what ingest has made."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from memoryd.daemon.commands.options import AddCommon, connect
from memoryd.daemon.commands.output import ago, plural, print_json, say, until
from memoryd.daemon.commands.snippets import inert


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "facts",
        help="list, show and forget facts",
        description="The facts that 'memoryd ingest' has made of skills and docs.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    listing = actions.add_parser("list", help="list the facts", description="List the facts and where they come from.")
    listing.add_argument(
        "--workspace", action="append", default=[], metavar="NAME", help="only those of this workspace"
    )
    listing.add_argument("--path", action="append", default=[], metavar="GLOB", help="only those of files that match")
    listing.add_argument("--category", action="append", default=[], metavar="C", help="only this category")
    listing.add_argument("--superseded", action="store_true", help="those too whose source passage is gone")
    add_common(listing)
    listing.set_defaults(run=run_list)

    showing = actions.add_parser(
        "show", help="show a fact and the passage it was made of", description="Show a fact and what it was made of."
    )
    showing.add_argument("id", metavar="ID", help="its id, the beginning of it, or the path that a hit has")
    add_common(showing)
    showing.set_defaults(run=run_show)

    forgetting = actions.add_parser(
        "forget",
        help="remove facts for good",
        description="Remove facts. They are remembered as not wanted: the same files do not bring them back.",
    )
    forgetting.add_argument("id", nargs="+", metavar="ID", help="as for show")
    add_common(forgetting)
    forgetting.set_defaults(run=run_forget)


def run_list(arguments: argparse.Namespace) -> int:
    params = {name: getattr(arguments, name) for name in ("workspace", "path", "category", "superseded")}
    with connect(arguments) as client:
        result = client.call("facts.list", params)
    if arguments.json:
        print_json(result)
        return 0
    for fact in result["facts"]:
        marks = f"{fact['category']}, {fact['decay']}" + (", superseded" if fact["superseded_by"] else "")
        sys.stdout.write(
            f"{fact['id']}\t{inert(fact['origin']['citation'])}\t{inert(marks)}\n    {inert(fact['text'])}\n"
        )
    if not result["facts"]:
        say("There are no facts" + (" like that." if any(params.values()) else "."))
        say("  → 'memoryd ingest' makes them of skills and docs; 'memoryd ingest --dry-run' tells of what")
    else:
        say(plural(len(result["facts"]), "fact"))
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        fact = client.call("facts.show", {"id": arguments.id})
    if arguments.json:
        print_json(fact)
        return 0
    sys.stdout.write(f"{inert(fact['text'])}\n\n")
    lines = {
        "id": fact["id"],
        "from": f"{fact['origin']['workspace']}: {fact['origin']['citation']}",
        "category": fact["category"],
        "tags": ", ".join(fact["tags"]),
        "scope": fact["scope"],
        "made": ago(fact["created"]),
        "used": ago(fact["used"]) if fact["used"] else "",
        "decay": f"{fact['decay']}, expires {until(fact['expires'])}" if fact["expires"] else fact["decay"],
        "superseded by": fact["superseded_by"] or "",
    }
    sys.stdout.writelines(f"{name:<14}{inert(value)}\n" for name, value in lines.items() if value)
    if fact["passage"]:
        sys.stdout.write("\n")
        sys.stdout.writelines(f"    {inert(line)}\n" for line in fact["passage"].split("\n"))
    return 0


def run_forget(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        result = client.call("facts.forget", {"id": arguments.id})
    if arguments.json:
        print_json(result)
        return 0
    for fact in result["forgotten"]:
        say(f"Forgotten: {inert(fact['text'])}")
    return 0
