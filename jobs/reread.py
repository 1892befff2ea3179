"""Reading again what did not change as far as a look at the disk can tell.

Some changes hide: a save in the same tick of the clock and of the same size, a file system that keeps no times, a bit
that flipped. So a few files are read at a time, those first that were not for longest: a round through the memory goes
by the documents' ids, and the ledger remembers how far it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from memoryd.jobs.index_text import IndexSettings, is_crashed
from memoryd.jobs.reading import read_file
from memoryd.jobs.workspace import Workspace
from memoryd.store.database import Database
from memoryd.store.documents import Documents
from memoryd.store.errors import FileUnreadable
from memoryd.store.queue import Queue

log = structlog.get_logger()

_FILES = 100  # in one go …
_BYTES = 4 * 2**20  # … and so much of them: milliseconds
_KEY = "reread_to"  # in meta: the id of the document that was read last


@dataclass(frozen=True, slots=True)
class Reread:
    files: int
    changed: int  # of which nobody had noticed


def reread(
    workspaces: Mapping[str, Workspace], database: Database, documents: Documents, queue: Queue, settings: IndexSettings
) -> Reread:
    """Read the next few files, and queue those that do not hold what the ledger says.

    What cannot be read is left to those who look at the disk; so are transcripts, which are told by their ends.
    """
    held = documents.after(int(database.recall(_KEY) or -1), _FILES)
    if not held:  # the round is over, and the next begins
        database.remember(_KEY, "-1")
        return Reread(0, 0)
    files, size, last, changed = 0, 0, -1, []
    for identity, name, path, content_hash in held:
        if size > _BYTES:
            break
        last = identity
        workspace = workspaces.get(name)
        if workspace is None or not workspace.covers(path) or is_crashed(content_hash):
            continue
        try:
            file = read_file(workspace.root / path, workspace.root, settings.max_file_bytes)
        except FileUnreadable:
            continue
        if file is None:
            continue
        files += 1
        size += len(file.data)
        if file.content_hash != content_hash:
            changed.append(("index", name, path))
    if changed:
        log.warning("changes_unnoticed", files=len(changed))
        queue.enqueue_all(changed)
    database.remember(_KEY, str(last))
    return Reread(files, len(changed))
