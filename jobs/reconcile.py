"""Disk against ledger: the look that needs no event to have been seen."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.jobs.workspace import Workspace, check_same_disk, scan
from memoryd.store.documents import Documents
from memoryd.store.queue import Queue


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a look at the disk led to."""

    files: int
    changed: int
    gone: int


def reconcile(workspace: Workspace, documents: Documents, queue: Queue, below: str = "") -> Reconciled:
    """Queue every file that is new, changed or gone since the ledger saw it.

    Raises ``WorkspaceUnavailable`` if the root cannot be looked at; a folder that cannot be looked at keeps
    what is known of it.
    """
    known = documents.known(workspace.name)
    if below:
        known = {path: seen for path, seen in known.items() if path == below or path.startswith(f"{below}/")}
    found = scan(workspace, below)
    if not found.files:
        check_same_disk(workspace, {path: seen.signature for path, seen in known.items()})
    changed = [
        path for path, signature in found.files.items() if path not in known or known[path].signature != signature
    ]
    gone = [path for path in known if path not in found.files and found.could_look(path)]
    queue.enqueue_all(("index", workspace.name, path) for path in (*changed, *gone))
    return Reconciled(len(found.files), len(changed), len(gone))
