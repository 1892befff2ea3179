"""LanceDB against the ledger: which vectors are wanted, marked and held, and whether they are the right ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from memoryd.jobs.look import Look, Place, Stores
from memoryd.store.errors import MemorydError, StoreCorrupt
from memoryd.store.generations import Generation
from memoryd.store.lance import stored_rows
from memoryd.store.precision import Small, are_sound, restore, shrink
from memoryd.store.protocols import Vectors
from memoryd.store.vector_ids import Column

_LOOKS = 3  # at files that are compacted away meanwhile

Wanted = dict[int, tuple[int, bytes]]  # passage -> its document, hash of its text


@dataclass(slots=True)
class Comparison:
    """Passages by what is wrong with their vectors."""

    held: dict[int, int] = field(default_factory=dict)  # in LanceDB at least once: passage -> document
    orphans: dict[int, int] = field(default_factory=dict)  # nobody wants them: passage -> document
    doubled: set[int] = field(default_factory=set)
    stale: set[int] = field(default_factory=set)
    missing: set[int] = field(default_factory=set)
    unmarked: set[int] = field(default_factory=set)
    overmarked: set[int] = field(default_factory=set)  # marked in the ledger, and wanted by nobody
    rows: int = 0

    @property
    def unfit(self) -> set[int]:
        """What must go from LanceDB before it is right."""
        return self.orphans.keys() | self.doubled | self.stale


def compare_vectors(
    stores: Stores, generation: Generation, wanted: Wanted, marks: dict[int, int], *, light: bool = False
) -> Comparison:
    """What LanceDB holds on disk against what is wanted and marked; ``light`` leaves the vectors themselves out."""
    found = Comparison()
    rows = stored_rows(stores.place, generation.fingerprint, generation.dimension, with_vectors=not light)
    for ids, documents, matrix in rows:
        found.rows += len(ids)
        for passage, document in zip(ids, documents, strict=True):
            if passage in found.held:
                found.doubled.add(passage)
            found.held[passage] = document
            if passage not in wanted:
                found.orphans[passage] = document
            elif wanted[passage][0] != document:
                found.stale.add(passage)
        if not light:
            found.stale.update(_stale(stores, generation, wanted, ids, matrix))
    found.missing = wanted.keys() - found.held.keys()
    found.unmarked = {p for p in wanted.keys() & found.held.keys() if marks.get(p) != wanted[p][0]}
    found.overmarked = marks.keys() - wanted.keys()
    return found


def _compare_again(
    stores: Stores, generation: Generation, wanted: Wanted, marks: dict[int, int], *, light: bool
) -> Comparison:
    """A compaction may take files away from under the comparison: what is damaged is so at the next look too."""
    for _ in range(_LOOKS - 1):
        try:
            return compare_vectors(stores, generation, wanted, marks, light=light)
        except StoreCorrupt:
            pass
    return compare_vectors(stores, generation, wanted, marks, light=light)


def _stale(
    stores: Stores, generation: Generation, wanted: Wanted, ids: list[int], matrix: Vectors | Small
) -> Iterator[int]:
    """The passages whose vector cannot have been written, or is not the one that was computed for their text."""
    sound = are_sound(matrix)
    ours = [(row, passage) for row, passage in enumerate(ids) if passage in wanted]
    kept = stores.cache.peek_numbers(generation.fingerprint, (wanted[passage][1] for _, passage in ours))
    for row, passage in ours:
        computed = kept.get(wanted[passage][1])
        if not sound[row] or (computed is not None and not _is_kept_as(matrix[row], computed)):
            yield passage


def _is_kept_as(numbers: Vectors | Small, computed: Vectors | Small) -> bool:
    """Where one of both has 8 bits only, the other one in 8 bits is the same."""
    if numbers.dtype != computed.dtype:
        numbers, computed = shrink(restore(numbers[None])), shrink(restore(computed[None]))
    return np.array_equal(numbers, computed)


def read_marks(stores: Stores, generation: Generation) -> dict[int, int]:
    with stores.database.read() as sql:
        return dict(sql.execute("SELECT passage_id, document_id FROM vectors WHERE generation = ?", (generation.id,)))


def look_at_vectors(stores: Stores, look: Look, *, light: bool = False) -> Generation | None:
    """Find what is wrong with the vectors of the active generation; returns it, None = there is none yet."""
    generation = stores.semantics.generation() or stores.generations.active()
    _tell_if_off(stores, look, generation)
    if generation is None:
        return None
    marks = read_marks(stores, generation)
    if not look.whole:
        marks = {passage: document for passage, document in marks.items() if document in look.places}
    try:
        found = _compare_again(stores, generation, look.wanted, marks, light=light)
    except MemorydError as error:
        look.find("unavailable", "vectors", ("", ""), 1, f"cannot look at its vectors: {error.message}")
        return generation
    owners = {**{passage: document for passage, (document, _) in look.wanted.items()}, **found.orphans}
    if not look.whole:
        found.orphans = {p: document for p, document in found.orphans.items() if document in look.places}
    look.vectors = sum(passage in look.wanted or passage in found.orphans for passage in found.held)
    for passage, (document, _) in look.wanted.items():
        if passage in found.held:
            look.know_vector(document, passage)
    _tell(look, "orphan", found.orphans, owners, "has vectors that no passage wants")
    _tell(look, "duplicate", found.doubled - found.orphans.keys(), owners, "has vectors that are there twice")
    _tell(look, "stale_vector", found.stale, owners)
    _tell(look, "missing_vector", found.missing, owners)
    _tell(look, "unmarked", found.unmarked - found.stale, owners)
    held = np.array(sorted(found.held.keys() & look.wanted.keys()), np.int64)
    _tell(look, "unsearched", unsearched(stores, generation, held), owners)
    left = {passage: marks[passage] for passage in found.overmarked - found.held.keys()}
    _tell(look, "orphan", left, left, "has marks of vectors that neither passage nor LanceDB has")
    return generation


def unsearched(stores: Stores, generation: Generation, passages: Column) -> list[int]:
    """Of passages that LanceDB holds, those that are not in the copy in memory, which is what answers."""
    serving = stores.semantics.lineup.serving
    if serving is None or serving.generation.id != generation.id:
        return []
    found: list[int] = serving.vectors.unsearched(passages).tolist()
    return found


def _tell(look: Look, kind: str, passages: Iterable[int], owners: dict[int, int], detail: str = "") -> None:
    """One drift a document; a document that is being worked on is pending instead."""
    counts: Counter[Place] = Counter()
    for passage in passages:
        document = owners[passage]
        place = look.places.get(document, ("", ""))
        if look.is_busy(document):
            if place != ("", ""):
                look.pending.add(place)
            continue
        counts[place] += 1
        if kind in ("orphan", "duplicate", "stale_vector", "unmarked"):
            look.strays.append(f"{kind}:{passage}")
    for place, count in sorted(counts.items()):
        look.find(kind, "vectors", place, count, detail)


def _tell_if_off(stores: Stores, look: Look, generation: Generation | None) -> None:
    """Documents that wait for an embedder that will not come are not being worked on."""
    if stores.semantics.off():  # nothing waits for it
        return
    status = stores.semantics.status()
    waiting = len({document for document, _ in look.wanted.values()} & look.work.vectors)
    off = status.state == "failed" or (status.state == "starting" and not stores.semantics.started())
    if off and generation is None and look.wanted:
        reason = status.reason if status.state == "failed" else "no model was ever used"
        look.find("unavailable", "vectors", ("", ""), len(look.wanted), f"has no vectors: {reason}")
    elif status.state == "failed" and waiting:
        look.find("unavailable", "vectors", ("", ""), waiting, f"cannot embed what changed: {status.reason}")
