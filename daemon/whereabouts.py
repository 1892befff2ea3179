"""Where a file is between the disk and the index, and if it is not indexed, why."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from memoryd.daemon.engine import Engine
from memoryd.jobs.workspace import Scan, Workspace, scan
from memoryd.store.errors import InvalidParams, MemorydError
from memoryd.store.globs import matches_any
from memoryd.store.job_rows import Failure
from memoryd.store.search.why_not.finding import Finding, Verdict, stages_to

_WAIT = "Wait: it is indexed in a moment. 'memoryd index' waits for it."


@dataclass(frozen=True, slots=True)
class Whereabouts:
    workspace: str
    indexed: bool  # as it is on disk, or as it was
    trouble: Finding | None = None  # why it is not indexed, or not as it is on disk


def find_file(engine: Engine, path: str, preferred: Sequence[str], *, suggest: bool) -> Whereabouts:
    """``preferred`` are workspaces to look in first; ``suggest``: whether other paths may be named."""
    served = engine.workspaces  # once: a reload replaces it
    owners = engine.documents.indexed_in(path, served)
    owners = [name for name in owners if name in preferred] or owners
    if len(owners) > 1:
        raise InvalidParams(
            f"{path} is in several workspaces: {', '.join(owners)}", hint="Say which one with workspace"
        )
    name = owners[0] if owners else _likeliest(served, path, preferred)
    workspace = served[name]
    trouble = _find_trouble(engine, workspace, path, indexed=bool(owners), suggest=suggest)
    return Whereabouts(name, bool(owners), trouble)


def find_failure(engine: Engine, workspace: str, path: str, kind: str) -> Failure | None:
    """The last failure of a file's own job that has not succeeded since."""
    failures = engine.queue.failures()
    return next((each for each in failures if (each.kind, each.workspace, each.path) == (kind, workspace, path)), None)


def _likeliest(served: Mapping[str, Workspace], path: str, preferred: Sequence[str]) -> str:
    """Of a file that is not indexed: the workspace that has it on disk, else that takes such files."""
    names = sorted(served, key=lambda name: name not in preferred)
    on_disk = [name for name in names if os.path.lexists(served[name].root / path)]
    taking = [name for name in names if served[name].covers(path)]
    return next(iter([*on_disk, *taking, *names]))


def _find_trouble(engine: Engine, workspace: Workspace, path: str, *, indexed: bool, suggest: bool) -> Finding | None:
    path = workspace.file_of(path)
    if failure := find_failure(engine, workspace.name, path, "index"):
        return _trouble("failed", f"{path} could not be read: {failure.reason}.", failure.hint)
    try:
        found = scan(workspace, path)
    except MemorydError as error:
        return None if indexed else _trouble("workspace_away", f"{error.message}.", error.hint)
    known = engine.documents.lookup(workspace.name, path)
    waits = known is None or known.signature != found.files.get(path)
    if indexed:
        return _trouble("pending", f"{path} has changed, and is not read again yet.", _WAIT) if waits else None
    if path in found.files:
        remarks = [each for each in engine.documents.remarks() if (each.workspace, each.path) == (workspace.name, path)]
        if remarks and not waits:
            return _trouble("skipped", f"{path} is skipped: {remarks[0].reason}.", None)
        return _trouble("pending", f"{path} is not read yet.", _WAIT)
    return _not_to_be_read(engine, workspace, path, found, suggest=suggest)


def _not_to_be_read(engine: Engine, workspace: Workspace, path: str, found: Scan, *, suggest: bool) -> Finding:
    looks = {**found.skipped, **found.unreadable}
    reason = next((looks[place] for place in _upwards(path) if place in looks), None)
    if reason:
        return _trouble("skipped", f"{path} is skipped: {reason}.", None)
    if not os.path.lexists(workspace.root / path):
        close = get_close_matches(path, engine.documents.known(workspace.name), n=3) if suggest else []
        hint = f"Did you mean {', '.join(close)}?" if close else "Paths are relative to the workspace's folder."
        return _trouble("no_such_file", f"There is no {path} in workspace {workspace.name}.", hint)
    ignoring = next(
        (each for place in _upwards(path) for each in workspace.ignore if matches_any(place, (each,))), None
    )
    if ignoring:
        return _trouble(
            "ignored",
            f"{path} is ignored: it matches {ignoring}.",
            f"Take {ignoring} out of the ignore of workspace {workspace.name} in the configuration.",
        )
    return _trouble(
        "not_included",
        f"{path} is not included: it matches none of {', '.join(workspace.include)}.",
        f"Add it to the include of workspace {workspace.name} in the configuration.",
    )


def _upwards(path: str) -> list[str]:
    """The path and every folder above it."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]


def _trouble(verdict: Verdict, explanation: str, hint: str | None) -> Finding:
    return Finding(verdict, explanation, stages=stages_to(verdict, {}), hint=hint)
