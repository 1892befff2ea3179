"""``memoryd ingest``: have the language model find facts in skills and docs."""

from __future__ import annotations

import argparse
import sys
import threading
from typing import Any

from memoryd.daemon.commands.options import AddCommon, connect
from memoryd.daemon.commands.output import console, plural, print_json, say
from memoryd.daemon.commands.snippets import inert
from memoryd.store.errors import MemorydError

_REFRESH_S = 0.2
_LISTED = 20


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "ingest",
        help="make facts of skills and docs, by a language model",
        description="Read skills and docs, ask the language model in [llm] for the facts in them, and store those: "
        "they are searched with everything else and cite what they were made of. Only what changed is asked about. "
        "Interrupted with Ctrl-C it stops after the call in hand; run again, it goes on there.",
    )
    parser.add_argument(
        "--paths", action="append", default=[], metavar="GLOB", help="only files that match (default: ingest.paths)"
    )
    parser.add_argument("--workspace", action="append", default=[], metavar="NAME", help="only this workspace")
    parser.add_argument(
        "--dry-run", action="store_true", help="ask nobody and store nothing: tell what would be asked and stored"
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    params = {"paths": arguments.paths, "workspace": arguments.workspace, "dry_run": arguments.dry_run}
    with connect(arguments) as probe, _Progress(probe), connect(arguments, timeout=None) as client:
        result: dict[str, Any] = client.call("ingest", params)
    if arguments.json:
        print_json(result)
    elif arguments.dry_run:
        _print_plan(result)
    else:
        _print_result(result)
    return 1 if result["error"] else 4 if result["failed"] else 0


def _print_result(result: dict[str, Any]) -> None:
    if not result["files"] and not result["error"]:
        say("No file matches ingest.paths.")
        say("  → Put skills into skills/, or name files with --paths or in [ingest]")
    else:
        read = f"{plural(result['files'], 'file')}, {plural(result['pieces'], 'piece')}"
        say(f"Read {read}: {result['asked']:,} asked about, {result['kept']:,} known already.")
    made = [f"{result[name]:,} {words}" for name, words in _OUTCOMES.items() if result[name]]
    say(f"{plural(result['facts'], 'fact')}{': ' if made else ''}{', '.join(made)} ({result['took_ms'] / 1000:.1f} s).")
    if result["tokens"]:
        say(f"About {result['tokens']:,} tokens.")
    _print_trouble(result)


_OUTCOMES = {
    "stored": "new",
    "changed": "updated",
    "superseded": "superseded",
    "duplicates": "left out as duplicates",
    "dismissed": "left out as forgotten or expired",
}


def _print_plan(result: dict[str, Any]) -> None:
    left = result["pieces"] - result["answered"]
    say(
        f"{plural(result['files'], 'file')}, {plural(result['pieces'], 'piece')}: {result['answered']:,} known already."
    )
    if left:
        say(f"{plural(left, 'piece')} would be asked about, for {result['tokens']:,} tokens at most.")
    for fact in result["planned"]:
        sys.stdout.write(f"{fact['origin']['citation']}\t{inert(fact['text'])}\n")
    made = [f"{result[name]:,} {words}" for name, words in _OUTCOMES.items() if result[name]]
    if made:
        say(f"By the answers that are known: {', '.join(made)}.")
    elif not left:
        say("Nothing would change.")
    _print_trouble(result)


def _print_trouble(result: dict[str, Any]) -> None:
    if result["bad_lines"]:
        say(f"Left out of the answers: {plural(result['bad_lines'], 'line')} that made no sense.")
    for kind in ("skipped", "failed"):
        for entry in result[kind][:_LISTED]:
            say(f"  {kind}: {entry['workspace']}: {inert(entry['path'])}: {entry['reason']}")
        if len(result[kind]) > _LISTED:
            say(f"  … and {len(result[kind]) - _LISTED:,} more {kind} (--json lists them)")
    if result["error"]:
        say(f"memoryd: {result['error']['message']}")
        if result["error"]["hint"]:
            say(f"  → {result['error']['hint']}")
        if result["asked"]:
            say("  What was answered is kept: the next run goes on there.")


class _Progress:
    """On a terminal, how far it is; asked on a connection of its own."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _show(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console(stderr=True), transient=True) as progress:
            task = progress.add_task("reading", total=None)
            while not self._done.wait(_REFRESH_S):
                try:
                    told = self._client.call("ingest.status")["progress"]
                except MemorydError:
                    return  # the command that waits beside us tells what is wrong
                if told:
                    words = f"{told['answered']:,} of {told['pieces']:,} pieces, {told['stored']:,} new facts"
                    progress.update(task, description=words, completed=told["answered"], total=told["pieces"] or None)
