"""Whose chunks the faulty rows of the keyword indexes are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoryd.jobs.look import Look, Place, Stores
from memoryd.store.database import Database
from memoryd.store.keywords import KeywordFaults


def look_at_keywords(stores: Stores, look: Look, faults: Iterable[KeywordFaults]) -> None:
    """Tell whose chunks the faulty rows of the keyword indexes are."""
    for faulty in faults:
        look.keyword_faults.append(faulty)
        if faulty.whole and look.whole:
            look.find("wrong_keywords", "keywords", ("", ""), 1, f"has a damaged keyword index ({faulty.table})")
            look.strays.append(f"{faulty.table}:damaged")
        counts: dict[tuple[str, Place], int] = {}
        owners = _owners_of_chunks(stores.database, list(faulty.rows))
        for chunk, fault in faulty.rows.items():
            kind = {"missing": "missing_keywords", "wrong": "wrong_keywords", "orphan": "orphan"}[fault]
            document, key = owners.get(chunk, (0, ""))
            place = look.places.get(document, ("", ""))
            if document in look.work.texts or (place == ("", "") and not look.whole):
                continue
            if fault == "orphan":
                look.strays.append(f"{faulty.table}:orphan")
            else:
                look.know_keywords(document, f"{faulty.table}:{key}:{fault}")
            counts[kind, place] = counts.get((kind, place), 0) + 1
        for (kind, place), count in sorted(counts.items()):
            detail = f"has keyword rows of no chunk ({faulty.table})" if kind == "orphan" else ""
            look.find(kind, "keywords", place, count, detail)


def _owners_of_chunks(database: Database, chunks: Sequence[int]) -> dict[int, tuple[int, str]]:
    with database.read() as sql:
        rows = [
            sql.execute("SELECT document_id, key FROM chunks WHERE id = ?", (chunk,)).fetchone() for chunk in chunks
        ]
    return {chunk: row for chunk, row in zip(chunks, rows, strict=True) if row is not None}
