"""``memoryd index``: bring the index up to date now, through the daemon or without one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.options import AddCommon, load
from memoryd.daemon.commands.output import plural, print_json, say
from memoryd.daemon.commands.progress import IndexProgress
from memoryd.store.errors import NotRunning

if TYPE_CHECKING:
    from memoryd.daemon.config import Config
    from memoryd.daemon.paths import Paths


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "index",
        help="bring the index up to date and wait for it",
        description="Look at the files, index what changed, and return when the index is current. "
        "The daemon does this by itself; use it in scripts, or to index without a daemon.",
    )
    parser.add_argument(
        "path", nargs="*", metavar="PATH", help="only these files or folders, relative to the workspace"
    )
    parser.add_argument("--force", action="store_true", help="read and split everything again, changed or not")
    parser.add_argument("--workspace", action="append", default=[], metavar="NAME", help="only this workspace")
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    config, paths = load(arguments)
    params = {"force": arguments.force, "path": arguments.path, "workspace": arguments.workspace}
    try:
        result = _through_daemon(paths, params)
    except NotRunning:
        result = _in_process(config, paths, params)
    if arguments.json:
        print_json(result)
    else:
        _print_result(result)
    return 4 if result["failed"] or result["degraded"] else 0


def _through_daemon(paths: Paths, params: dict[str, Any]) -> dict[str, Any]:
    from memoryd.daemon.client import Client

    with Client(paths.socket) as probe:
        probe.call("ping")
        with IndexProgress(lambda: probe.call("status", {"brief": True})), Client(paths.socket, timeout=None) as client:
            result: dict[str, Any] = client.call("index", params)
    return result


def _in_process(config: Config, paths: Paths, params: dict[str, Any]) -> dict[str, Any]:
    """The same engine under the same lock, without socket and watcher."""
    import asyncio

    from memoryd.daemon.app import embedder_loader
    from memoryd.daemon.document_methods import DocumentMethods
    from memoryd.daemon.engine import Engine
    from memoryd.daemon.logs import configure_logs
    from memoryd.daemon.status import brief_status

    configure_logs("warning", config.log.format)
    engine = Engine(config, paths, embedder_loader(config, paths.models_dir))
    for note in config.notes:
        say(note)
    try:
        engine.start()
        with IndexProgress(lambda: brief_status(engine)):
            result: dict[str, Any] = asyncio.run(DocumentMethods(engine).index(params))
    finally:
        engine.stop(timeout=3.0)
    return result


def _print_result(result: dict[str, Any]) -> None:
    for workspace in result["workspaces"]:
        facts = [plural(workspace[key], key[:-1]) for key in ("documents", "chunks", "vectors")]
        say(f"{workspace['name']}: {', '.join(facts)}")
    for failure in result["failed"]:
        say(f"  failed: {failure['path'] or failure['workspace']}: {failure['reason']}")
        if failure["hint"]:
            say(f"    → {failure['hint']}")
    if result["degraded"]:
        say(f"  without vectors: {result['degraded']['reason']}")
        if result["degraded"]["hint"]:
            say(f"    → {result['degraded']['hint']}")
    if result["paused"]:
        say(f"  {result['paused']}; what is new is found by its words meanwhile")
    if result["complete"] and not result["failed"]:
        what = "Words are current" if result["paused"] else "The index is current"
        say(f"{what} ({result['took_ms'] / 1000:.1f} s).")
