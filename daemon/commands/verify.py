"""``memoryd verify``: prove that the index says what the files say, or tell where it does not."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.options import AddCommon, load
from memoryd.daemon.commands.output import plural, print_json, say
from memoryd.store.errors import NotRunning

if TYPE_CHECKING:
    from memoryd.daemon.config import Config
    from memoryd.daemon.paths import Paths

_LISTED = 50


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "verify",
        help="prove that the index is in sync with the files",
        description="Read every file again and compare it with every row of every store: the ledger, the keyword "
        "indexes, the vectors. Prints one digest over all of it; the same files and model give the same digest on "
        "any machine. Works with a daemon and without. Exit code 0: in sync; 4: not.",
    )
    parser.add_argument(
        "--repair", action="store_true", help="put right what is not in sync; unchanged text is not embedded again"
    )
    parser.add_argument("--workspace", action="append", default=[], metavar="NAME", help="only this workspace")
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    config, paths = load(arguments)
    params = {"repair": arguments.repair, "workspace": arguments.workspace}
    try:
        result = _through_daemon(paths, params)
    except NotRunning:
        result = _in_process(config, paths, params)
    if arguments.json:
        print_json(result)
    else:
        _print_result(result, repair=arguments.repair)
    return 0 if result["in_sync"] else 4


def _through_daemon(paths: Paths, params: dict[str, Any]) -> dict[str, Any]:
    from memoryd.daemon.client import Client

    with Client(paths.socket, timeout=None) as client:
        result: dict[str, Any] = client.call("verify", params)
    return result


def _in_process(config: Config, paths: Paths, params: dict[str, Any]) -> dict[str, Any]:
    """The same engine under the same lock. It is started only if there may be something to repair: a look alone
    leaves everything as it is, and what changed since the daemon stopped is told, not indexed on the way."""
    from memoryd.daemon.app import embedder_loader
    from memoryd.daemon.engine import Engine
    from memoryd.daemon.logs import configure_logs
    from memoryd.daemon.methods import Methods

    configure_logs("error", config.log.format)
    engine = Engine(config, paths, embedder_loader(config, paths.models_dir))
    for note in config.notes:
        say(note)
    try:
        if params["repair"]:
            engine.start()
            engine.queue.wait_until(engine.is_current)
        return Methods(engine, {}).verify(params)
    finally:
        engine.stop(timeout=3.0)


def _print_result(result: dict[str, Any], *, repair: bool) -> None:
    for entry in result["repaired"]:
        _print(f"  repaired  {_line(entry)}")
    for entry in result["drift"][:_LISTED]:
        _print(f"  {_line(entry)}")
    if len(result["drift"]) > _LISTED:
        _print(f"  … and {len(result['drift']) - _LISTED:,} more (--json lists them)")
    held = ", ".join(plural(result[key], key[:-1]) for key in ("documents", "chunks", "vectors"))
    pending = result["pending"]
    waiting = f" {plural(pending, 'file')} {'is' if pending == 1 else 'are'} still being worked on." if pending else ""
    if result["in_sync"]:
        _print(f"In sync: {held} ({result['took_ms'] / 1000:.1f} s).{waiting}")
        _print(f"  root {result['root']}")
        return
    differences = plural(len(result["drift"]), "difference")
    _print(f"Not in sync: {differences}; {held} ({result['took_ms'] / 1000:.1f} s).{waiting}")
    if not repair:
        say("  → 'memoryd verify --repair' puts it right")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _line(entry: dict[str, Any]) -> str:
    where = f"{entry['workspace']}: " if entry["workspace"] and entry["path"] else ""
    return f"{entry['kind']}  {where}{entry['message']}"
