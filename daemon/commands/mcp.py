"""``memoryd mcp``: the memory as tools for an agent, over stdin and stdout."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from memoryd.daemon.commands.options import AddCommon, load
from memoryd.daemon.commands.output import say


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "mcp",
        help="serve agents over the Model Context Protocol (stdio)",
        description="Serve the tools memory_search, memory_get and memory_status on stdin and stdout, for an agent "
        "that starts this command. Each call goes to the daemon.",
        epilog="The README has the configuration of the usual agents, under 'Editors and agents'.",
    )
    parser.add_argument("--start", action="store_true", help="start the daemon where none is running")
    parser.add_argument(
        "--no-fence",
        dest="fence",
        action="store_false",
        help="give the notes' text as it is, without the marks that tell it from instructions",
    )
    parser.add_argument("--scope", metavar="SCOPE", help="who asks, where a call does not say: user:ID, agent:ID …")
    add_common(parser, json=False)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import asyncio
    import os

    from memoryd.daemon.mcp_server import serve_stdio
    from memoryd.daemon.starting import start_daemon

    config, paths = load(arguments)
    starting = asyncio.Lock()

    async def start() -> None:
        async with starting:  # several calls wait for one daemon
            await asyncio.to_thread(start_daemon, config, paths, arguments.config)

    if sys.stdin.isatty():
        say("An agent starts this command and speaks the Model Context Protocol with it; Ctrl-D ends it.")
    asyncio.run(
        serve_stdio(
            os.fspath(paths.socket),
            fence=arguments.fence,
            scope=arguments.scope,
            start=start if arguments.start else None,
        )
    )
    return 0
