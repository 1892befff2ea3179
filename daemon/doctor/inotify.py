"""The kernel's limits on watching folders: what memoryd needs of them, and what others have taken."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memoryd.daemon.doctor.finding import Finding, ok, problem, warning
from memoryd.jobs.workspace import Workspace

_LIMITS = Path("/proc/sys/fs/inotify")
_SYSCTL = "echo {key}={value} | sudo tee -a /etc/sysctl.d/60-memoryd.conf && sudo sysctl --system"
_POLLING = "changes would be looked for every few seconds"
_NARROW = 0.8  # of a limit: fuller than that, a few new folders may be too many
_SMALL_QUEUE = 4096


@dataclass(frozen=True, slots=True)
class InotifyFacts:
    max_watches: int | None  # None: the kernel does not tell
    max_instances: int | None
    max_queued: int | None
    watches: int  # that this user's other programs hold
    instances: int
    folders: int  # that memoryd watches
    workspaces: int  # each takes an instance


def gather_inotify(workspaces: Sequence[Workspace], daemon_pid: int | None) -> InotifyFacts:
    instances, watches = _held_by_others(daemon_pid)
    return InotifyFacts(
        _limit("max_user_watches"),
        _limit("max_user_instances"),
        _limit("max_queued_events"),
        watches,
        instances,
        sum(_count_folders(workspace) for workspace in workspaces),
        len(workspaces),
    )


def check_watches(facts: InotifyFacts) -> Finding:
    return _check("inotify watches", "max_user_watches", facts.max_watches, facts.watches, facts.folders, "folders")


def check_instances(facts: InotifyFacts) -> Finding:
    limit, held, needed = facts.max_instances, facts.instances, facts.workspaces
    return _check("inotify instances", "max_user_instances", limit, held, needed, "workspaces")


def check_queue(facts: InotifyFacts) -> Finding:
    if facts.max_queued is not None and facts.max_queued < _SMALL_QUEUE:
        return warning(
            "inotify queue",
            f"the kernel keeps {facts.max_queued:,} events; when many files change at once some are lost, and the "
            "next comparison with the disk finds them",
            _SYSCTL.format(key="fs.inotify.max_queued_events", value=16384),
        )
    return ok("inotify queue", f"the kernel keeps {facts.max_queued or 0:,} events")


def _check(check: str, key: str, limit: int | None, held: int, needed: int, of_what: str) -> Finding:
    if limit is None:
        return warning(
            check, f"fs.inotify.{key} cannot be read; {_POLLING}", "Run memoryd on a kernel with inotify (any Linux)"
        )
    said = f"{needed:,} for the {of_what}, {held:,} held by your other programs, of {limit:,}"
    raised = max(2 * (needed + held), 2 * limit)
    fix = _SYSCTL.format(key=f"fs.inotify.{key}", value=raised)
    if needed + held > limit:
        return problem(check, f"{said}: not enough, {_POLLING}", fix)
    if needed and needed + held > _NARROW * limit:
        return warning(check, f"{said}: nearly used up", fix)
    return ok(check, said)


def _limit(name: str) -> int | None:
    try:
        return int((_LIMITS / name).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _count_folders(workspace: Workspace) -> int:
    """As the watcher does it: the root, and all below the folders that patterns with depth begin at."""
    deep = [workspace.root / folder for folder in workspace.folders() if workspace.is_deep(folder)]
    return 1 + sum(1 for folder in deep for _ in os.walk(folder))


def _held_by_others(daemon_pid: int | None) -> tuple[int, int]:
    """Instances and watches of this user's processes, the daemon aside."""
    instances = watches = 0
    for held in _instances_of(pid for pid in _processes() if pid != daemon_pid):
        instances += 1
        watches += held
    return instances, watches


def _processes() -> Iterable[int]:
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                yield int(entry.name)


def _instances_of(pids: Iterable[int]) -> Iterable[int]:
    """For every inotify instance, how many watches it has. A process may end while it is looked at."""
    for pid in pids:
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if str(descriptor.readlink()) == "anon_inode:inotify":
                        told = Path(f"/proc/{pid}/fdinfo/{descriptor.name}").read_text(encoding="ascii")
                        yield told.count("inotify wd:")
