"""The globs of [sessions]: what each of them matches."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.daemon.config import Sessions
from memoryd.daemon.doctor.finding import Finding, ok, warning
from memoryd.daemon.session_workspaces import roots_of
from memoryd.jobs.workspace import Workspace, scan
from memoryd.store.errors import MemorydError

_CHECK = "session transcripts"


@dataclass(frozen=True, slots=True)
class SessionFacts:
    enabled: bool
    files: dict[str, int]  # glob -> files that it matches


def gather_sessions(sessions: Sessions) -> SessionFacts:
    return SessionFacts(sessions.enabled, {glob: _count(glob) for glob in sessions.paths} if sessions.enabled else {})


def _count(glob: str) -> int:
    ((root, include),) = roots_of([glob]).items()
    try:
        return len(scan(Workspace("", root, include)).files)
    except MemorydError:  # there is no such folder, or none that can be looked into
        return 0


def check_sessions(facts: SessionFacts) -> Finding:
    if not facts.enabled:
        return ok(_CHECK, "not indexed; [sessions] in the configuration turns them on")
    if not facts.files:
        return warning(_CHECK, "enabled, but no glob says where they are", "Set sessions.paths; see docs/sessions.md")
    empty = tuple(glob for glob, count in facts.files.items() if not count)
    if empty:
        return warning(
            _CHECK,
            f"{len(empty)} of {len(facts.files)} globs match nothing",
            "Correct sessions.paths, or leave it if the sessions are yet to come",
            empty,
        )
    return ok(_CHECK, f"{sum(facts.files.values()):,} files")
