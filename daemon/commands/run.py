"""``memoryd run``: the daemon, in the foreground."""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.options import AddCommon, load
from memoryd.daemon.commands.output import plural, say

if TYPE_CHECKING:
    from memoryd.daemon.config import Config
    from memoryd.daemon.paths import Paths


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "run",
        help="run the daemon in the foreground",
        description="Watch the configured workspaces, keep their index current, and answer on the socket until "
        "SIGTERM or Ctrl-C. Without any configuration the current folder is served, if it holds a memory.",
    )
    parser.add_argument(
        "--workspace",
        dest="workspaces",
        action="append",
        type=Path,
        metavar="DIR",
        help="serve this folder instead of the configured ones (may be repeated)",
    )
    parser.add_argument(
        "--sample",
        nargs="?",
        const="",
        metavar="QUERY",
        help="when the index is current, show this query (default: one from the notes) and its hits",
    )
    parser.add_argument("--verbose", "-v", action="store_true", help="log every job and query on a terminal too")
    add_common(parser, json=False)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    from memoryd.daemon.app import serve
    from memoryd.daemon.crash_report import keep_crash_reports
    from memoryd.daemon.logs import configure_logs
    from memoryd.daemon.paths import find_paths

    def read_config() -> Config:
        return _quiet_on_terminal(load(arguments)[0], verbose=arguments.verbose)

    config = read_config()
    paths = find_paths(config, os.environ)
    configure_logs(config.log.level, config.log.format, include_text=config.log.include_text)
    keep_crash_reports(os.environ)
    for note in config.notes if config.workspaces else ():  # with none, the notes are the error
        say(note)

    async def welcome() -> None:
        await asyncio.to_thread(_welcome, paths, arguments.sample)

    somebody_looks = sys.stderr.isatty() or arguments.sample is not None
    asyncio.run(serve(config, paths, read_config, welcome if somebody_looks else None))
    _leave_others_behind()
    return 0


def _leave_others_behind() -> None:
    """End the process here if a thread is still at something that is not waited for, such as loading a model.

    Everything is closed. But Python would end such a thread wherever it is, and if that is in an import, whoever
    imports after it waits for ever.
    """
    import threading

    if any(thread.daemon for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _quiet_on_terminal(config: Config, *, verbose: bool) -> Config:
    """A person in front of a terminal wants to know that all is well, not every job; a log wants everything."""
    if verbose or not sys.stderr.isatty() or "log.level" in config.origin:
        return config
    return replace(config, log=replace(config.log, level="warning"))


def _welcome(paths: Paths, sample: str | None) -> None:
    """Say when the index is current, what is in it, and how to ask; all of it through the socket."""
    from memoryd.daemon.client import Client
    from memoryd.daemon.commands.hits import print_answer, print_caveats
    from memoryd.daemon.commands.progress import IndexProgress
    from memoryd.store.errors import MemorydError

    try:
        with Client(paths.socket, timeout=None) as probe, Client(paths.socket, timeout=None) as client:
            with IndexProgress(lambda: probe.call("status", {"brief": True})):
                client.call("index")
            brief = client.call("status", {"brief": True})
            say(
                f"Serving {plural(brief['documents'], 'file')} "
                f"({plural(brief['chunks'], 'chunk')}, {plural(brief['vectors'], 'vector')}) on {paths.socket}"
            )
            if sample is not None:
                query = sample or _query_from_notes(client)
                say(f"\n$ memoryd search {_quoted(query)}\n")
                answer = client.call("search", {"query": query, "limit": 3})
                print_answer(answer)
                print_caveats(answer)
                sys.stdout.flush()
            say(f'\nAsk it from another terminal:  {_program()} search "your question"')
            say(f"Look after it:                 {_program()} status\nStop it:                       Ctrl-C")
    except MemorydError as error:
        say(f"memoryd: {error.message}")


def _query_from_notes(client: Any) -> str:
    """A heading of the user's own that says something, so that the first query shows something of theirs."""
    hits = client.call("search", {"query": "decided learned plan", "limit": 20})["results"]
    titles = (hit["heading"].rpartition(" > ")[2] for hit in hits)
    return next((title for title in titles if " " in title and not re.search(r"\d", title)), "what did we decide")


def _program() -> str:
    """How this program was called, as it can be typed again."""
    called = Path(sys.argv[0])
    try:
        return str(called.absolute().relative_to(Path.cwd()))
    except ValueError:
        return "memoryd"


def _quoted(query: str) -> str:
    import shlex

    return shlex.quote(query)
