"""``memoryd status``: first whether all is well, then what needs doing, then the facts, on one screen."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.options import AddCommon, connect
from memoryd.daemon.commands.output import ago, console, embedder_name, plural, print_json, size, span, until
from memoryd.daemon.commands.verdict import verdict_of
from memoryd.store.errors import NotRunning

if TYPE_CHECKING:
    from rich.console import RenderableType

_LISTED = 5


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "status",
        help="tell whether all is well, and what is indexed",
        description="Tell whether all is well, what needs doing, what is indexed, what is pending and what failed. "
        "Exit code 0: well; 3: not running; 4: degraded.",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--watch", "-w", action="store_true", help="keep the picture up to date until q or Ctrl-C")
    form.add_argument("--prometheus", action="store_true", help="print metrics in Prometheus' text format")
    form.add_argument("--json", action="store_true", help="print JSON alone on stdout, for programs")
    add_common(parser, json=False)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    out = None
    with connect(arguments) as client:
        try:
            status = client.call("status")
        except NotRunning:
            if arguments.prometheus:  # that it is down is what a monitor most wants to know
                _print_metrics(None)
            raise
        if arguments.json:
            print_json(status)
        elif arguments.prometheus:
            _print_metrics(status)
        elif arguments.watch and (out := console()).is_terminal:
            from memoryd.daemon.commands.watch import watch

            status = watch(out, status, lambda: dict(client.call("status")))
        else:
            console().print(render(status))
    return 4 if status["health"]["state"] == "degraded" else 0


def _print_metrics(status: dict[str, Any] | None) -> None:
    from memoryd.daemon.commands.prometheus import render_metrics

    sys.stdout.write(render_metrics(status))


def render(status: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    mark, colour, words = verdict_of(status)
    head = Text.assemble(
        (f"{mark} memoryd: {words}", f"bold {colour}"),
        (f"   version {status['version']}, pid {status['pid']}, up {span(status['uptime_s'])}", "dim"),
    )
    return Group(head, *_needs(status), Text(), _workspaces(status), Text(), _facts(status), *_files(status))


def _needs(status: dict[str, Any]) -> list[RenderableType]:
    """What is wrong, and the remedy on a line of its own that can be copied; then what is merely good to know."""
    from rich.text import Text

    lines: list[RenderableType] = []
    for reason in status["health"]["reasons"]:
        lines.append(Text(f"  {reason['message']}", style="yellow"))
        if reason["hint"]:
            lines.append(Text(f"    → {reason['hint']}"))
    lines += [Text(f"  note: {note}", style="dim") for note in status["notes"]]
    return lines


def _speed(measures: dict[str, Any]) -> str:
    search, process = measures["requests"].get("search"), measures["process"]
    speed = f"no query in the last {span(measures['window_s'])}"
    if search and search["in_window"] == 1:
        speed = f"one query in the last {span(measures['window_s'])}, {search['p50_ms']:.1f} ms"
    elif search and search["in_window"]:
        half, most, nearly_all = (f"{search[f'{name}_ms']:.1f} ms" for name in ("p50", "p95", "p99"))
        speed = f"half of {search['in_window']:,} queries within {half}, 95 % {most}, 99 % {nearly_all}"
    return f"{speed} · memory {size(process['resident_bytes'])} · CPU {span(process['cpu_s'])} since the start"


def _ingest(ingest: dict[str, Any] | None) -> str:
    """How many facts there are and how the last run went; nothing where nobody ingests."""
    if not ingest or not (ingest["facts"] or ingest["scheduled"] or ingest["running"] or ingest["last"]):
        return ""
    words = f"{ingest['facts']:,} from skills and docs"
    if progress := ingest["progress"]:
        done = f"{progress['answered']:,} of {progress['pieces']:,} pieces"
        return f"{words} · {'stopping after' if ingest['stopping'] else 'asking,'} {done}"
    if last := ingest["last"]:
        words += f" · last ingest {ago(last['at'])}{'' if last['complete'] else ', not finished'}"
    return words


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
    if told := [workspace["sessions"] for workspace in status["workspaces"] if workspace.get("sessions")]:
        facts.add_row("  sessions", _sessions(told))
    embedder, stores, queue = status["embedder"], status["stores"], status["queue"]
    model = f"{embedder_name(embedder)} · {embedder['state']}"
    if embedder["dimension"]:
        model += f" · {embedder['dimension']} dimensions · fingerprint {embedder['fingerprint']}"
    elif embedder["reason"]:
        model += f" · {embedder['reason']}"
    if asleep := embedder["asleep"]:
        since = datetime.fromisoformat(asleep["since"]).astimezone().strftime("%H:%M:%S")
        model += f" · asleep since {since}, wakes in about {asleep['wakes_in_ms']:,} ms"
    if paused := embedder["paused"]:
        model += f" · {describe_pause(paused)}"
    if hold := embedder["hold"]:
        model += f" · held back, asked again {until(hold['until'])}"
    facts.add_row("  embedder", model)
    if embedder["provider"] not in ("local", "none"):
        where = f"notes are sent to {embedder['sends_to']}" if embedder["sends_to"] else "on this machine"
        facts.add_row("  provider", f"{embedder['provider']} ({embedder['why']}) · {where}")
    if switching := embedder["switching"]:
        facts.add_row("  switching", _switching(switching))
    kept = [each for each in embedder["generations"] if each["state"] == "kept" and each["kept_until"]]
    if kept:
        words = ", ".join(f"{each['model']} until {each['kept_until'][:10]}" for each in kept)
        facts.add_row("  kept", f"vectors of {words} · 'memoryd model rollback' goes back to them")
    if words := _ingest(status.get("ingest")):
        facts.add_row("  facts", words)
    vectors = stores["vectors"]
    where = f" in {stores['vectors_place']}" if stores.get("vectors_remote") else ""
    held = (
        f"vectors {size(vectors['bytes'])}{where} ({plural(vectors['versions'], 'version')}, "
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
    facts.add_row("  speed", _speed(status["measures"]))
    server = status["server"]
    facts.add_row("  socket", f"{server['socket']} · {plural(server['connections'], 'connection')}")
    if changed := status["live_settings"]:
        words = " · ".join(
            f"search.{key} = {json.dumps(value['live'])} (configured: {json.dumps(value['configured'])})"
            for key, value in changed.items()
        )
        facts.add_row("  live settings", f"{words} · until a restart, or 'memoryd config set --reset'")
    if (reload := status["reload"]) and reload["needs_restart"]:
        facts.add_row("  restart for", f"{' · '.join(reload['needs_restart'])} · read only when memoryd starts")
    for incident in status["healed"]:
        facts.add_row("  healed", f"{incident['store']} {ago(incident['at'])}: {incident['reason']}")
    if status["last_errors"]:
        error = status["last_errors"][0]
        facts.add_row("  last error", f"{ago(error['at'])}: {error['job']}: {error['reason']}")
    return facts


def describe_pause(paused: dict[str, Any]) -> str:
    """As in: embedding paused: on battery; until 13:05:10 at most."""
    words = f"embedding paused: {paused['reason']}"
    if paused["until"]:
        words += f", until {datetime.fromisoformat(paused['until']).astimezone().strftime('%H:%M:%S')} at most"
    return words


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
    left_out = {"that failed": proof.get("failed", 0), "in hand then": proof["pending"]}
    if told := [f"{plural(count, 'file')} {why}" for why, count in left_out.items() if count]:
        words += f", but for {' and '.join(told)}"
    if proof["changed_since"]:
        words += f"; {plural(proof['changed_since'], 'file')} changed since"
    return words


def _sessions(told: list[dict[str, Any]]) -> str:
    """As in: 12 files · 345 turns · 6,789 lines of tools left out · 3 lines not understood."""
    files, turns, dropped, unknown = (
        sum(each[name] for each in told) for name in ("files", "turns", "dropped_lines", "unknown_lines")
    )
    words = f"{plural(files, 'file')} · {plural(turns, 'turn')} · {plural(dropped, 'line')} of tools left out"
    return words + (f" · {plural(unknown, 'line')} not understood" if unknown else "")


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
                (f"{'noted  ' if entry['indexed'] else 'skipped'}  {entry['path']}: {entry['reason']}", "yellow")
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
