"""A proof as programs get it: what ``verify`` answers, and what ``status`` tells of the last one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from memoryd.daemon.engine import Engine
from memoryd.jobs.drift import count_kinds

LISTED = 20  # drifts that status names; ``verify`` lists every one


def verify(engine: Engine, workspaces: Sequence[str], *, repair: bool) -> dict[str, Any]:
    began = time.perf_counter()
    verdict = engine.verifier.verify(workspaces, repair=repair, live=engine.worker.alive())
    return {
        "in_sync": verdict.in_sync,
        "root": verdict.root,
        "drift": [asdict(entry) for entry in verdict.drift],
        "repaired": [asdict(entry) for entry in verdict.repaired],
        "pending": verdict.pending,
        "documents": verdict.documents,
        "chunks": verdict.chunks,
        "vectors": verdict.vectors,
        "took_ms": round((time.perf_counter() - began) * 1000, 2),
    }


def last_proof(engine: Engine, workspaces: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The last proof, for status, which has just looked at the workspaces; None = nothing was proven yet."""
    proof, changed = engine.verifier.proofs.last()
    if proof is None:
        return None
    unread = 0  # files that wait to be read, beyond those that status lists
    for workspace in workspaces:
        listed = [entry for entry in workspace["pending_files"] if entry["phase"] == "text"]
        changed.update((workspace["name"], entry["path"]) for entry in listed)
        if len(listed) == len(workspace["pending_files"]):
            unread += workspace["pending"] - len(listed)
    return {
        "in_sync": proof.in_sync,
        "at": datetime.fromtimestamp(proof.at, UTC).isoformat(timespec="seconds"),
        "root": proof.root,
        "light": proof.light,
        "drift": len(proof.drift),
        "kinds": count_kinds(proof.drift),
        "found": [asdict(entry) for entry in proof.drift[:LISTED]],
        "pending": proof.pending,
        "failed": proof.failed,
        "changed_since": len(changed) + unread,
    }
