"""The light look: stat against ledger, ids against ids. Reads no file, so that it can run all day."""

from __future__ import annotations

from memoryd.jobs.look import Look, Stores
from memoryd.jobs.look_documents import look_at_strays, scan_or_tell
from memoryd.jobs.look_keywords import look_at_keywords
from memoryd.jobs.look_vectors import look_at_vectors
from memoryd.store.keywords import TABLES, count_faults
from memoryd.store.model import document_id


def look_lightly(stores: Stores, look: Look) -> None:
    for name in look.names:
        _look_at_files(stores, look, name)
    with stores.database.read() as sql:
        rows = sql.execute("SELECT id, workspace, path FROM documents").fetchall()
        look.places.update({identity: (name, path) for identity, name, path in rows if name in look.names})
        look.wanted.update(
            {
                passage: (document, text_hash)
                for passage, document, text_hash in sql.execute(
                    "SELECT id, document_id, text_hash FROM passages WHERE text_hash IS NOT NULL"
                )
                if document in look.places
            }
        )
        (look.chunks,) = sql.execute("SELECT count(*) FROM chunks").fetchone()
        doubled = sql.execute(
            "SELECT document_id, count(*) - count(DISTINCT id) AS spare FROM passages GROUP BY 1 HAVING spare > 0"
        ).fetchall()
        faults = [count_faults(sql, table) for table in TABLES]
    look.documents = len(look.places)
    for document, count in doubled:
        if document in look.places and document not in look.work.texts:
            look.find("duplicate", "ledger", look.places[document], count)
    look_at_strays(stores, look)
    look_at_keywords(stores, look, faults)
    look_at_vectors(stores, look, light=True)


def _look_at_files(stores: Stores, look: Look, name: str) -> None:
    known = stores.documents.known(name)
    found = scan_or_tell(stores.workspaces[name], {path: seen.signature for path, seen in known.items()}, look)
    if found is None:
        return
    for path in sorted(known.keys() | found.files.keys()):
        held, seen = known.get(path), found.files.get(path)
        if held is not None and seen == held.signature:
            continue
        place = (name, path)
        look.seen[place] = seen or ""
        if document_id(name, path) in look.work.texts or look.work.covers(name, path):
            look.pending.add(place)
        elif seen is None and found.could_look(path):
            look.find("orphan", "ledger", place, 1, "is gone from disk, and still indexed")
        elif held is None:
            look.find("missing", "ledger", place)
        elif seen is not None:
            look.find("stale", "ledger", place, 1, "was touched on disk and not looked at again")
