"""The light look: stat against ledger, ids against ids. Reads no file, so that it can run all day.

What is in step is told by columns of ids. Only if something is not, each passage is looked at by itself.
"""

from __future__ import annotations

from memoryd.jobs.look import Look, Stores
from memoryd.jobs.look_documents import look_at_strays, scan_or_tell
from memoryd.jobs.look_keywords import look_at_keywords
from memoryd.jobs.look_vectors import look_at_vectors, unsearched
from memoryd.store.errors import MemorydError
from memoryd.store.keywords import TABLES, count_faults
from memoryd.store.lance import stored_ids
from memoryd.store.model import document_id
from memoryd.store.vector_ids import marked_ids, wanted_ids

# In the order of an index, both: no text is read unless they differ.
_PASSAGES = "SELECT count(*) FROM passages"
_PASSAGES_OF_CHUNKS = "SELECT total(held) FROM (SELECT max(last_passage) + 1 AS held FROM chunks GROUP BY document_id)"
_LACKING = """
    SELECT document_id, max(last_passage) + 1 AS held FROM chunks c
     GROUP BY document_id HAVING held != (SELECT count(*) FROM passages p WHERE p.document_id = c.document_id)
"""


def look_lightly(stores: Stores, look: Look) -> None:
    for name in look.names:
        _look_at_files(stores, look, name)
    with stores.database.read() as sql:
        rows = sql.execute("SELECT id, workspace, path FROM documents").fetchall()
        look.places.update({identity: (name, path) for identity, name, path in rows if name in look.names})
        (look.chunks,) = sql.execute("SELECT count(*) FROM chunks").fetchone()
        doubled = sql.execute(  # in the order of an index: no text is read
            "SELECT document_id, sum(times - 1) FROM"
            " (SELECT document_id, count(*) AS times FROM passages GROUP BY id HAVING times > 1) GROUP BY document_id"
        ).fetchall()
        faults = [count_faults(sql, table) for table in TABLES]
        whole = sql.execute(_PASSAGES).fetchone() == sql.execute(_PASSAGES_OF_CHUNKS).fetchone()
        lacking = [] if whole else [document for document, _ in sql.execute(_LACKING)]
    look.documents = len(look.places)
    for document, count in doubled:
        if document in look.places and document not in look.work.texts:
            look.find("duplicate", "ledger", look.places[document], count)
    for document in lacking:
        if document in look.places and document not in look.work.texts:
            look.find("wrong_rows", "ledger", look.places[document])
    look_at_strays(stores, look)
    look_at_keywords(stores, look, faults)
    held = _count_if_in_step(stores) if whole else None
    if held is not None:
        look.vectors = held
        return
    with stores.database.read() as sql:
        passages = sql.execute("SELECT id, document_id, text_hash FROM passages WHERE text_hash IS NOT NULL")
        look.wanted.update(
            {passage: (document, text_hash) for passage, document, text_hash in passages if document in look.places}
        )
    look_at_vectors(stores, look, light=True)


def _count_if_in_step(stores: Stores) -> int | None:
    """How many vectors there are, if passages, marks, LanceDB and what is searched name the very same ones; None: they
    do not, or it cannot be told."""
    generation = stores.semantics.generation()
    if generation is None:
        return None
    with stores.database.read() as sql:
        wanted, marked = wanted_ids(sql), marked_ids(sql, generation.id)
    if not wanted.equals(marked):
        return None
    try:
        held = stored_ids(stores.place, generation.fingerprint)
    except MemorydError:  # whoever looks closer tells why
        return None
    if not held.equals(wanted) or unsearched(stores, generation, held.passages):
        return None
    return len(held.passages)


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
