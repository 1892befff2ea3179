"""Disk against ledger: every file read and split again, and set against every row that the ledger holds of it."""

from __future__ import annotations

from memoryd.jobs.index_text import make_document
from memoryd.jobs.look import Look, Stores
from memoryd.jobs.look_transcripts import look_at_transcripts
from memoryd.jobs.reading import read_file
from memoryd.jobs.workspace import Scan, Workspace, check_same_disk, scan
from memoryd.store.errors import FileUnreadable, WorkspaceUnavailable
from memoryd.store.held import Rows, compare_rows, expected_rows, read_rows
from memoryd.store.model import document_id


def look_at_documents(stores: Stores, look: Look) -> None:
    """Disk against ledger, file by file; each in a moment of its own, so that nothing is held up."""
    for name in look.names:
        workspace = stores.workspaces[name]
        known = stores.documents.known(name)
        found = scan_or_tell(workspace, {path: seen.signature for path, seen in known.items()}, look)
        if workspace.transcripts is not None:
            look_at_transcripts(stores, look, workspace, set(known), found)
            continue
        for path in sorted(known.keys() | (found.files.keys() if found else set())):
            _look_at_document(stores, look, workspace, path, found)


def scan_or_tell(workspace: Workspace, known: dict[str, str], look: Look) -> Scan | None:
    """What is on disk; None, and a drift that says so, where that cannot be told."""
    try:
        found = scan(workspace)
        if not found.files:
            check_same_disk(workspace, known)
    except WorkspaceUnavailable as error:
        look.find("unavailable", "disk", (workspace.name, ""), len(known) or 1, f"cannot be looked at: {error.message}")
        return None
    for blind, reason in sorted(found.unreadable.items()):
        count = sum(path == blind or path.startswith(f"{blind}/") or not blind for path in known)
        look.find("unavailable", "disk", (workspace.name, blind), max(1, count), f"cannot be looked at: {reason}")
    return found


def _look_at_document(stores: Stores, look: Look, workspace: Workspace, path: str, found: Scan | None) -> None:
    place, identity = (workspace.name, path), document_id(workspace.name, path)
    with stores.database.read() as sql:
        held = read_rows(sql, identity)
    if held is not None:
        look.know(identity, held)
    if identity in look.work.texts or look.work.covers(*place):
        look.pending.add(place)
    elif found is not None and found.could_look(path):
        _compare_with_file(stores, look, workspace, path, held)


def _compare_with_file(stores: Stores, look: Look, workspace: Workspace, path: str, held: Rows | None) -> None:
    place = (workspace.name, path)
    try:
        file = read_file(workspace.root / path, workspace.root, stores.settings.max_file_bytes)
    except FileUnreadable as error:
        look.find("unavailable", "disk", place, 1, f"could not be looked at: {error.message}")
        return
    look.seen[place] = file.signature if file else ""
    if file is None or not workspace.covers(path):
        if held is not None:
            look.find("orphan", "ledger", place, 1, "is gone from disk, and still indexed")
    elif held is None:
        look.find("missing", "ledger", place)
    elif held.content_hash != file.content_hash:
        look.find("stale", "ledger", place)
    else:
        document, skipped = make_document(workspace, path, file, stores.settings)
        for difference in compare_rows(held, expected_rows(document, skipped)):
            look.find(difference.kind, "ledger", place, difference.count)


def look_at_strays(stores: Stores, look: Look) -> None:
    """Rows of the ledger that belong to no document that is served."""
    with stores.database.read() as sql:
        for table in ("passages", "chunks", "superseding"):
            (count,) = sql.execute(
                f"SELECT count(*) FROM {table} WHERE document_id NOT IN (SELECT id FROM documents)"  # noqa: S608 - ours
            ).fetchone()
            if count:
                look.strays.append(f"{table}:{count}")
                look.find("orphan", "ledger", ("", ""), count, f"has {table} of no document")
        rows = sql.execute("SELECT workspace, path, id FROM documents").fetchall()
    misplaced = [(name, path) for name, path, identity in rows if identity != document_id(name, path)]
    for place in misplaced:
        look.find("orphan", "ledger", place, 1, "has a row under an id that is not its own")
    unserved = sorted({name for name, _, _ in rows if name not in stores.workspaces})
    for name in unserved:
        count = sum(workspace == name for workspace, _, _ in rows)
        look.find("orphan", "ledger", (name, ""), count, "is not served any more, and still indexed")
    look.strays.extend(f"document:{name}:{path}" for name, path in misplaced)
    look.strays.extend(f"workspace:{name}" for name in unserved)
