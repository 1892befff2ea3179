"""How the daemon is, and whether it can be trusted: worked out from disk and stores each time it is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from memoryd.daemon.engine import Engine
from memoryd.daemon.ingest_methods import ingest_status
from memoryd.daemon.own_version import own_version
from memoryd.daemon.reloaded import Reloaded
from memoryd.daemon.server import Server
from memoryd.daemon.verification import last_proof
from memoryd.daemon.watcher import Watcher
from memoryd.jobs.language import language_notes
from memoryd.jobs.workspace import Scan, Workspace, scan
from memoryd.store.errors import MemorydError
from memoryd.store.generations import Pending
from memoryd.store.job_rows import Failure

LISTED = 20  # names of files in each list; the counts are always whole

Reason = dict[str, Any]


def brief_status(engine: Engine) -> dict[str, Any]:
    """How far indexing is."""
    generation = engine.generations.active()
    totals = [engine.documents.totals(name, generation.id if generation else None) for name in engine.workspaces]
    semantics = engine.semantics.status()
    return {
        "current": engine.is_current(),
        "documents": sum(total.documents for total in totals),
        "chunks": sum(total.chunks for total in totals),
        "passages": sum(total.passages for total in totals),
        "vectors": sum(total.vectors for total in totals),
        "pending": engine.generations.count_pending(tuple(engine.workspaces)),
        "embedder": {
            "state": semantics.state,
            "reason": semantics.reason,
            "stage": semantics.stage,
            "done": semantics.done,
            "total": semantics.total,
        },
    }


def full_status(
    engine: Engine,
    watchers: dict[str, Watcher],
    server: Server | None,
    live_settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    now = engine.clock()
    pending = engine.generations.pending(tuple(engine.workspaces))
    failures = engine.queue.failures()
    reasons: list[Reason] = []
    workspaces = [
        _workspace(engine, workspace, watchers.get(workspace.name), pending, failures, reasons)
        for workspace in engine.workspaces.values()
    ]
    embedder = _embedder(engine, reasons)
    stores = _stores(engine, reasons)
    reasons.extend(
        _reason(f"{failure.kind}_failing", failure.reason, failure.hint)
        for failure in failures
        if failure.kind in ("maintain", "reconcile")
    )
    reasons.extend(_healing(engine))
    if engine.config.ingest.enabled and engine.config.llm.provider == "none":
        reasons.append(_reason("language_model_missing", "ingest is enabled, and no model to ask", "Set [llm]"))
    if (ingested := engine.ingestion.last) and (failed := ingested.report.error) and failed.code != "cancelled":
        reasons.append(_reason("ingest_failing", f"facts could not be made: {failed.message}", failed.hint))
    if trouble := engine.worker.ledger_trouble:
        reasons.append(_reason(trouble.code, trouble.reason, trouble.hint))
    proof = last_proof(engine, workspaces)
    if proof and proof["kinds"].keys() - {"unavailable"}:  # what is away is told of above
        kinds = ", ".join(f"{count} {kind}" for kind, count in proof["kinds"].items())
        reasons.append(_reason("drift", f"not in sync: {kinds}", "Run 'memoryd verify --repair'"))
    if not engine.worker.alive():
        reasons.append(_reason("worker_dead", "the worker is not running", "Restart memoryd"))
    if (reloaded := engine.last_reload) and reloaded.problems:
        reasons.append(_reload_refused(reloaded))
    # What waits because it is paused, as somebody wished, is no work in hand.
    waits = ("text",) if engine.paused() else ("text", "vectors")
    busy = not engine.is_current() or any(workspace["waiting"][phase] for workspace in workspaces for phase in waits)
    return {
        "version": own_version(),
        "pid": os.getpid(),
        "started_at": _iso(engine.started_at),
        "uptime_s": round(now - engine.started_at, 1),
        "health": {"state": "degraded" if reasons else "indexing" if busy else "ok", "reasons": reasons},
        "proof": proof,
        "workspaces": workspaces,
        "embedder": embedder,
        "stores": stores,
        "healed": [{**asdict(incident), "at": _iso(incident.at)} for incident in engine.healer.incidents()],
        "ingest": ingest_status(engine),
        "queue": _queue(engine, now),
        "scheduler": {name: run.isoformat() for name, run in sorted(engine.schedule.next_runs().items())},
        "server": {
            "socket": str(engine.paths.socket),
            "connections": server.connections if server else 0,
            "in_flight": server.in_flight if server else 0,
        },
        "last_errors": [{**asdict(mishap), "at": _iso(mishap.at)} for mishap in reversed(list(engine.worker.mishaps))][
            :LISTED
        ],
        "config_file": str(engine.config.file) if engine.config.file else None,
        "reload": {**asdict(reloaded), "at": _iso(reloaded.at)} if reloaded else None,  # of the configuration
        "live_settings": {**(live_settings or {})},  # of [search], those that are not as configured
        "notes": [*engine.config.notes, *_embedder_notes(engine), *_place_notes(engine)],
        "measures": engine.measures.report(),
    }


def _workspace(
    engine: Engine,
    workspace: Workspace,
    watcher: Watcher | None,
    pending: list[Pending],
    failures: list[Failure],
    reasons: list[Reason],
) -> dict[str, Any]:
    name = workspace.name
    generation = engine.generations.active()
    totals = engine.documents.totals(name, generation.id if generation else None)
    try:
        found = scan(workspace)
    except MemorydError as error:
        reasons.append(_reason("workspace_unavailable", f"{name}: {error.message}", error.hint))
        found = None
    waiting = _waiting(engine, name, pending, found)
    failed = [failure for failure in failures if failure.workspace == name and failure.path]
    skipped = _skipped(engine, name, found)
    if failed:
        reasons.append(
            _reason(
                "files_failed",
                f"{name}: {len(failed)} files could not be indexed",
                "They are listed below, with reasons",
            )
        )
    seen = watcher.status() if watcher else None
    if watcher and not watcher.alive():
        reasons.append(_reason("watcher_dead", f"{name}: changes are not noticed at once", "Restart memoryd"))
    is_there = workspace.transcripts is None or workspace.root.is_dir()  # a harness that was never used has no folder
    if seen and seen.mode == "polling" and found is not None and is_there:
        reasons.append(
            _reason(
                "watcher_polling",
                f"{name}: changes are looked for every few seconds ({seen.reason})",
                "Raise fs.inotify.max_user_watches and max_user_instances (sysctl), then restart memoryd",
            )
        )
    return {
        "name": name,
        "root": str(workspace.root),
        "available": found is not None,
        "files_on_disk": len(found.files) if found else None,
        "indexed": totals.documents,
        "pending": len(waiting),
        "waiting": {phase: sum(entry.phase == phase for entry in waiting) for phase in ("text", "vectors")},
        "pending_files": [asdict(entry) for entry in waiting[:LISTED]],
        "failed": [_failure(failure) for failure in failed],
        "skipped": skipped[:LISTED],
        "skipped_count": len(skipped),
        "chunks": totals.chunks,
        "passages": totals.passages,
        "vectors": totals.vectors,
        "watcher": {
            "mode": seen.mode if seen else "off",
            "reason": seen.reason if seen else None,
            "last_event": _iso(seen.last_event) if seen and seen.last_event else None,
        },
        "sessions": asdict(engine.transcripts.totals(name)) if workspace.transcripts is not None else None,
    }


def _waiting(engine: Engine, name: str, pending: list[Pending], found: Scan | None) -> list[Pending]:
    """What is queued, and what the disk shows that nobody has noticed yet."""
    waiting = {entry.path: entry for entry in pending if entry.workspace == name}
    if found is not None:
        known = engine.documents.known(name)
        for path, signature in found.files.items():
            if path not in known or known[path].signature != signature:
                waiting[path] = Pending(name, path, "text")
    return sorted(waiting.values(), key=lambda entry: (entry.phase, entry.path))


def _skipped(engine: Engine, name: str, found: Scan | None) -> list[dict[str, Any]]:
    remarks = [
        {"path": remark.path, "reason": remark.reason, "indexed": not remark.skipped}
        for remark in engine.documents.remarks()
        if remark.workspace == name
    ]
    looks = {**found.skipped, **found.unreadable} if found else {}
    return remarks + [{"path": path, "reason": reason, "indexed": False} for path, reason in sorted(looks.items())]


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "path": failure.path,
        "phase": "text" if failure.kind == "index" else "vectors",
        "reason": failure.reason,
        "hint": failure.hint,
        "attempts": failure.attempts,
        "parked": failure.parked,
        "next_retry": _iso(failure.next_retry) if failure.next_retry else None,
    }


def _embedder(engine: Engine, reasons: list[Reason]) -> dict[str, Any]:
    status = engine.semantics.status()
    if status.state == "failed":
        message = f"search by meaning is off: {status.reason}"
        reasons.append(_reason("embedder_failed", message, status.hint))
    nap, pause = engine.semantics.nap(), engine.paused()
    hold = engine.semantics.hold()
    if hold:
        off = "search by meaning is off" if hold.queries else "what is new waits to be embedded"
        reasons.append(_reason("embedder_held", f"{off}: {hold.reason}", hold.hint))
    switching = engine.semantics.switching()
    if switching and switching.reason:
        message = f"the change of the model does not get on: {switching.reason}"
        reasons.append(_reason("switch_failing", message, switching.hint))
    return {
        **asdict(status),
        "switching": asdict(switching) if switching else None,
        "generations": _generations(engine),
        "configured": engine.config.embedder.model,
        **asdict(engine.semantics.choice()),
        "asleep": {"since": _iso(nap.since), "wakes_in_ms": round(nap.wakes_in_s * 1000)} if nap else None,
        "paused": {
            "reason": pause.reason,
            "since": _iso(pause.since),
            "until": None if pause.until is None else _iso(pause.until),
        }
        if pause
        else None,
        "hold": {**asdict(hold), "until": _iso(hold.until)} if hold else None,
        "next_retry": _iso(status.next_retry) if status.next_retry else None,
    }


def _embedder_notes(engine: Engine) -> list[str]:
    """What a person should know of the embedder: that notes leave the machine, or that it cannot read them."""
    choice = engine.semantics.choice()
    if choice.provider == "local":
        return language_notes(engine.database, engine.config.embedder.model)
    if choice.sends_to:
        return [f"Notes and queries are sent to {choice.sends_to} to be embedded ({choice.why})"]
    return []


def _place_notes(engine: Engine) -> list[str]:
    if not engine.place.is_remote:
        return []
    return [f"Vectors and the numbers of their passages are kept in {engine.place}; the text stays here"]


def _generations(engine: Engine) -> list[dict[str, Any]]:
    """Every set of vectors that is kept: the one that is searched first."""
    filling = engine.semantics.lineup.filling
    active = engine.generations.active()
    listed = []
    for each in engine.generations.all():
        state = "serving" if active and each.id == active.id else "kept"
        if filling and each.id == filling.generation.id:
            state = "filling"
        kept_until = None
        if each.retired_at is not None:
            kept_until = _iso(each.retired_at + engine.config.embedder.keep_generations_days * 86_400)
        listed.append({"model": each.model, "fingerprint": each.fingerprint, "state": state, "kept_until": kept_until})
    return listed


def _stores(engine: Engine, reasons: list[Reason]) -> dict[str, Any]:
    stores: dict[str, Any] = {
        "folder": str(engine.paths.data_dir),
        "ledger": {"bytes": engine.database.bytes_on_disk(), "schema_version": engine.database.schema_version()},
        "embedding_cache": {"bytes": engine.cache.bytes_on_disk()},
        "vectors": None,
        "vectors_place": str(engine.place),
        "vectors_remote": engine.place.is_remote,
    }
    if (trouble := engine.place.outage.trouble()) and engine.semantics.ready():  # else that is told above
        message = f"what is new is found by its words alone: {trouble.reason}"
        reasons.append(_reason("vectors_away", message, trouble.hint))
    if engine.semantics.ready():
        try:
            stores["vectors"] = asdict(engine.semantics.index().stats())
        except MemorydError as error:
            reasons.append(_reason(error.code, error.message, error.hint))
    return stores


def _reload_refused(reloaded: Reloaded) -> Reason:
    count = len(reloaded.problems)
    message = f"the new configuration has {count} problem{'s' * (count != 1)}, and the former one is in force"
    return _reason("config_invalid", f"{message}: {'; '.join(reloaded.problems)}", "Correct it, then 'memoryd reload'")


def _healing(engine: Engine) -> list[Reason]:
    """What is damaged, and what was and is not whole again yet."""
    begun = [
        _reason(f"{store}_rebuilding", f"{incident.reason}; it is being rebuilt", f"Kept in {incident.folder}")
        for store, incident in engine.healer.rebuilding().items()
    ]
    hint = "Check the disk (its journal, SMART), then restart memoryd"
    return begun + [
        _reason(damage.code, f"{damage.message}, again and again: it is left alone for now", hint)
        for damage in engine.healer.given_up()
    ]


def _queue(engine: Engine, now: float) -> dict[str, Any]:
    depths = engine.queue.depths()
    oldest = engine.queue.oldest()
    return {
        "depth": sum(count for (_, state), count in depths.items() if state != "parked"),
        "parked": sum(count for (_, state), count in depths.items() if state == "parked"),
        "by_kind": {f"{kind} {state}": count for (kind, state), count in sorted(depths.items())},
        "oldest_s": None if oldest is None else round(max(0.0, now - oldest), 1),
    }


def _reason(code: str, message: str, hint: str | None) -> Reason:
    return {"code": code, "message": message, "hint": hint}


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
