"""``memoryd status``: first whether all is well, then everything else, on one screen."""

from __future__ import annotations

import argparse
import json
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.options import AddCommon, connect
from memoryd.daemon.commands.output import ago, console, plural, print_json, size, span, until

if TYPE_CHECKING:
    from rich.console import RenderableType

_REFRESH_S = 1.0
_LISTED = 5
_FACES = {
    "ok": ("●", "green", "all is well"),
    "indexing": ("◐", "cyan", "well, and indexing"),
    "degraded": ("▲", "yellow", "degraded"),
}


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "status",
        help="tell whether all is well, and what is indexed",
        description="Tell whether all is well, what is indexed, what is pending and what failed. "
        "Exit code 0: well; 3: not running; 4: degraded.",
    )
    parser.add_argument("--watch", "-w", action="store_true", help="keep the picture up to date until Ctrl-C")
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        status = client.call("status")
        if arguments.json and not arguments.watch:
            print_json(status)
        elif arguments.watch:
            _watch(client, status, as_json=arguments.json)
        else:
            console().print(render(status))
    return 4 if status["health"]["state"] == "degraded" else 0


def _watch(client: Any, status: dict[str, Any], *, as_json: bool) -> None:
    """On a terminal one picture that is kept up to date; elsewhere one report a second."""
    from rich.live import Live

    out = console()
    if as_json or not out.is_terminal:
        while True:
            print_json(status) if as_json else out.print(render(status))
            time.sleep(_REFRESH_S)
            status = client.call("status")
    with Live(render(status), console=out, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(_REFRESH_S)
            live.update(render(client.call("status")), refresh=True)


def render(status: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    mark, colour, words = _FACES[status["health"]["state"]]
    head = Text.assemble(
        (f"{mark} memoryd: {words}", f"bold {colour}"),
        (f"   version {status['version']}, pid {status['pid']}, up {span(status['uptime_s'])}", "dim"),
    )
    reasons = [
        line
        for reason in status["health"]["reasons"]
        for line in (Text(f"  {reason['message']}", style=colour), Text(f"    → {reason['hint']}", style="dim"))
        if reason["hint"] or not line.plain.lstrip().startswith("→")
    ]
    return Group(head, *reasons, Text(), _workspaces(status), Text(), _facts(status), *_files(status))


def _workspaces(status: dict[str, Any]) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("  workspace")
    for column in ("files", "indexed", "pending", "failed", "skipped", "chunks", "vectors"):
        table.add_column(column, justify="right")
    table.add_column("watcher")
    for workspace in status["workspaces"]:
        watcher = workspace["watcher"]
        seen = f", last event {ago(watcher['last_event'])}" if watcher["last_event"] else ""
        table.add_row(
            f"  {workspace['name']}",
            str(workspace["files_on_disk"]) if workspace["available"] else "away",
            str(workspace["indexed"]),
            str(workspace["pending"]),
            str(len(workspace["failed"])),
            str(workspace["skipped_count"]),
            str(workspace["chunks"]),
            f"{workspace['vectors']}/{workspace['passages']}",
            f"{watcher['mode']}{seen}",
        )
    return table


def _facts(status: dict[str, Any]) -> RenderableType:
    from rich.table import Table

    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    facts.add_row("  proof", describe_proof(status["proof"]))
    embedder, stores, queue = status["embedder"], status["stores"], status["queue"]
    model = f"{embedder['model'] or embedder['configured']} · {embedder['state']}"
    if embedder["dimension"]:
        model += f" · {embedder['dimension']} dimensions · fingerprint {embedder['fingerprint']}"
    elif embedder["reason"]:
        model += f" · {embedder['reason']}"
    facts.add_row("  embedder", model)
    if switching := embedder["switching"]:
        facts.add_row("  switching", _switching(switching))
    kept = [each for each in embedder["generations"] if each["state"] == "kept"]
    if kept:
        words = ", ".join(f"{each['model']} until {each['kept_until'][:10]}" for each in kept)
        facts.add_row("  kept", f"vectors of {words} · 'memoryd model rollback' goes back to them")
    vectors = stores["vectors"]
    held = (
        f"vectors {size(vectors['bytes'])} ({plural(vectors['versions'], 'version')}, "
        f"{plural(vectors['fragments'], 'fragment')})"
        if vectors
        else "vectors not open"
    )
    ledger = stores["ledger"]
    facts.add_row(
        "  stores",
        f"ledger {size(ledger['bytes'])} (schema {ledger['schema_version']}) · {held}"
        f" · embedding cache {size(stores['embedding_cache']['bytes'])}",
    )
    waiting = (
        f"{plural(queue['depth'], 'job')}, the oldest for {span(queue['oldest_s'] or 0)}" if queue["depth"] else "empty"
    )
    parked = f" · {plural(queue['parked'], 'job')} parked" if queue["parked"] else ""
    facts.add_row("  queue", waiting + parked)
    runs = " · ".join(f"{name} {until(at)}" for name, at in sorted(status["scheduler"].items(), key=lambda run: run[1]))
    facts.add_row("  schedule", runs)
    server = status["server"]
    facts.add_row("  socket", f"{server['socket']} · {plural(server['connections'], 'connection')}")
    if changed := status["live_settings"]:
        words = " · ".join(
            f"search.{key} = {json.dumps(value['live'])} (configured: {json.dumps(value['configured'])})"
            for key, value in changed.items()
        )
        facts.add_row("  live settings", f"{words} · until a restart, or 'memoryd config set --reset'")
    for incident in status["healed"]:
        facts.add_row("  healed", f"{incident['store']} {ago(incident['at'])}: {incident['reason']}")
    if status["last_errors"]:
        error = status["last_errors"][0]
        facts.add_row("  last error", f"{ago(error['at'])}: {error['job']}: {error['reason']}")
    return facts


def describe_proof(proof: dict[str, Any] | None) -> str:
    """Whether the stores were in step when somebody last looked, and what changed since."""
    if proof is None:
        return "nothing proven yet"
    at = datetime.fromisoformat(proof["at"]).astimezone().strftime("%H:%M:%S")
    if proof["in_sync"]:
        words = f"in sync, proven at {at}"
    else:
        kinds = ", ".join(f"{count} {kind}" for kind, count in proof["kinds"].items())
        words = f"not in sync at {at}: {kinds} ('memoryd verify' names them)"
    if proof["root"]:
        words += f" · root {proof['root'][:12]}"
    if proof["pending"]:
        words += f", but for {plural(proof['pending'], 'file')} in hand then"
    if proof["changed_since"]:
        words += f"; {plural(proof['changed_since'], 'file')} changed since"
    return words


def _switching(switching: dict[str, Any]) -> str:
    """As in: to bge-m3: 1,234 of 5,678 passages."""
    words = f"to {switching['model'] or 'another model'}"
    if switching["fingerprint"]:
        words += f": {switching['done']:,} of {switching['total']:,} passages"
    return f"{words} · {switching['reason']}" if switching["reason"] else words


def _files(status: dict[str, Any]) -> list[RenderableType]:
    """The files that want attention, a few of each kind; ``--json`` has them all."""
    from rich.text import Text

    lines: list[RenderableType] = []
    for workspace in status["workspaces"]:
        entries = [
            *((f"failed   {entry['path']}: {entry['reason']}", "red") for entry in workspace["failed"]),
            *(
                (f"{'noted' if entry['indexed'] else 'skipped'}  {entry['path']}: {entry['reason']}", "yellow")
                for entry in workspace["skipped"]
            ),
            *((f"pending  {entry['path']} ({entry['phase']})", "cyan") for entry in workspace["pending_files"]),
        ]
        shown = entries[:_LISTED]
        if shown:
            lines.append(Text(f"\n  {workspace['name']}", style="dim"))
            lines.extend(Text(f"    {words}", style=style, overflow="ellipsis", no_wrap=True) for words, style in shown)
        if len(entries) > len(shown):
            lines.append(Text(f"    … and {len(entries) - len(shown)} more (--json lists them)", style="dim"))
    return lines
