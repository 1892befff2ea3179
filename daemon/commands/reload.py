"""``memoryd reload``: have the running daemon read its configuration again, and say what came of it."""

from __future__ import annotations

import argparse
from typing import Any

from memoryd.daemon.commands.options import AddCommon, connect
from memoryd.daemon.commands.output import print_json, say


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "reload",
        help="have the daemon read its configuration again",
        description="Have the running daemon read its configuration again, as SIGHUP does. What can change at once "
        "does (workspaces, search, index, the models, limits, schedule, log); what cannot is named. With problems "
        "in the configuration the former one stays in force, and the exit code is 2.",
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    with connect(arguments, timeout=None) as client:
        outcome = client.call("reload")
    if arguments.json:
        print_json(outcome)
        return 0
    for changed in outcome["changed"]:
        say(f"changed  {changed}")
    for waiting in outcome["needs_restart"]:
        say(f"waits    {waiting}: read only when memoryd starts")
    if not outcome["changed"] and not outcome["needs_restart"]:
        say("Nothing changed.")
    elif outcome["needs_restart"]:
        say("Restart memoryd for what waits ('memoryd service restart' if it is a service).")
    return 0
