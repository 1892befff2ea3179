"""``memoryd get``: read a document, or the lines that a hit cites."""

from __future__ import annotations

import sys

from memoryd.daemon.commands.options import connect
from memoryd.daemon.commands.output import print_json

TYPE_CHECKING = False  # see plain_words
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from memoryd.daemon.commands.options import AddCommon


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "get",
        help="print a document or some of its lines",
        description="Print an indexed document, or the lines that a hit cites, as they are on disk now; "
        "of a transcript, what is kept of it.",
    )
    parser.add_argument(
        "path",
        metavar="PATH[#LFROM[-LTO]]",
        help="as a hit cites it, or PATH[:FROM[-TO]]: relative to the workspace, lines from 1, inclusive",
    )
    parser.add_argument("--workspace", metavar="NAME", help="which workspace, where several have the path")
    parser.add_argument("--fence", action="store_true", help="put the text between lines that no note can write")
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    params: dict[str, Any] = {"path": arguments.path}
    if arguments.fence:
        params["fence"] = True
    if arguments.workspace:
        params["workspace"] = arguments.workspace
    with connect(arguments) as client:
        document = client.call("get", params)
        if arguments.json:
            print_json(document)
            return 0
        sys.stdout.write(f"{document['text']}\n")
        while document.get("next"):  # a long document comes in pages
            params |= _rest(arguments.path, document)
            document = client.call("get", params)
            sys.stdout.write(f"{document['text']}\n")
    return 0


def _rest(asked: str, document: dict[str, Any]) -> dict[str, Any]:
    """What of the lines asked for is still to come."""
    from memoryd.daemon.requests import GetRequest

    return {"path": document["path"], "from": document["next"], "to": GetRequest(asked).to_line or document["lines"]}
