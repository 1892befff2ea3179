from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memoryd.store.mirror import Mirror
from memoryd.store.precision import enlarge, shrink
from memoryd.store.protocols import Match, Vectors
from tests.support.waiting import eventually


def unit(rows: int, dimension: int = 8, seed: int = 0) -> Vectors:
    matrix = np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)


def assert_nearest(
    matches: list[Match],
    held: dict[int, tuple[int, Vectors]],
    vector: Vectors,
    limit: int,
    documents: Collection[int] | None,
) -> None:
    """These matches are what a naive search finds, rank by rank; of rows that are the same, the lower id first."""
    cosines = {
        identity: float(np.multiply(row, vector, dtype=np.float64).sum())
        for identity, (document, row) in held.items()
        if documents is None or document in documents
    }
    wanted = sorted(cosines.values(), reverse=True)[:limit]
    assert [match.cosine for match in matches] == pytest.approx(wanted, abs=3e-7)
    assert [cosines[match.passage_id] for match in matches] == pytest.approx(wanted, abs=3e-7)
    assert len({match.passage_id for match in matches}) == len(matches)
    assert matches == sorted(matches, key=lambda match: (-match.cosine, match.passage_id))


IDS = st.integers(0, 25)
DOCUMENTS = st.integers(0, 3)
# Few directions, so that ties are common.
WAYS = [tuple(row) for row in unit(5, 4, seed=3).tolist()]
ROWS = st.sampled_from(WAYS)
# What is written first tells sketches how vectors differ, so there is one of each direction.
FIRST = [(100 + place, place % 4, row) for place, row in enumerate(WAYS)]
UPSERTS = st.lists(st.tuples(IDS, DOCUMENTS, ROWS), max_size=12)
DELETES = st.lists(IDS, max_size=8)


VARIANTS: dict[str, Callable[[int], Mirror]] = {
    "float32": Mirror,
    "float32 in a file": lambda dimension: Mirror(dimension, folder=Path(gettempdir())),
    "int8": lambda dimension: Mirror(dimension, "int8"),
    "by sketches first": lambda dimension: Mirror(dimension, exact_rows=0),
    "in cells": lambda dimension: Mirror(dimension, exact_rows=0, cell_rows=0),
}


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=60)
@given(
    steps=st.lists(st.tuples(UPSERTS, DELETES), max_size=5),
    query=hnp.arrays(np.float32, 4, elements=st.floats(-1, 1, width=32)),
    limit=st.integers(0, 30),
    documents=st.none() | st.frozensets(DOCUMENTS),
)
def test_mirror_answers_as_a_naive_search_does(
    variant: str,
    steps: list[tuple[list[tuple[int, int, tuple[float, ...]]], list[int]]],
    query: Vectors,
    limit: int,
    documents: frozenset[int] | None,
) -> None:
    mirror = VARIANTS[variant](4)
    held: dict[int, tuple[int, Vectors]] = {}
    for upserts, deletes in [(FIRST, []), *steps]:
        rows = np.array([row for _, _, row in upserts], np.float32).reshape(-1, 4)
        mirror.upsert([identity for identity, _, _ in upserts], [document for _, document, _ in upserts], rows)
        kept = enlarge(shrink(rows)) if variant == "int8" else rows
        held.update({identity: (document, row) for (identity, document, _), row in zip(upserts, kept, strict=True)})
        mirror.delete(deletes)
        for identity in deletes:
            held.pop(identity, None)
        assert len(mirror) == len(held)
        assert_nearest(mirror.search(query, limit, documents), held, query, limit, documents)
    if variant == "in cells":
        eventually(lambda: mirror.in_cells)
        assert_nearest(mirror.search(query, limit, documents), held, query, limit, documents)
    assert {identity: row.tolist() for identity, row in mirror.vectors(range(110)).items()} == {
        identity: row.tolist() for identity, (_, row) in held.items()
    }


def test_a_set_that_was_changed_since_is_another_filter() -> None:
    mirror = Mirror(8)
    mirror.upsert(range(4), [0, 1, 2, 3], unit(4))
    documents = {1}
    assert [match.passage_id for match in mirror.search(unit(1)[0], 4, documents)] == [1]
    documents.add(3)
    assert {match.passage_id for match in mirror.search(unit(1)[0], 4, documents)} == {1, 3}


def clustered(rows: int, dimension: int, seed: int) -> Vectors:
    """Some themes, and many vectors near each: nearer to each other than 8 bits can tell apart."""
    random = np.random.default_rng(seed)
    themes = random.normal(size=(max(1, rows // 100), dimension))
    matrix = themes[random.integers(0, len(themes), rows)] + random.normal(size=(rows, dimension)) * 0.4
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)


def test_answer_is_that_of_float32_rank_by_rank() -> None:
    vectors = clustered(4000, 384, seed=1)
    mirror = Mirror(384)
    mirror.upsert(range(4000), [identity % 50 for identity in range(4000)], vectors)
    held = {identity: (identity % 50, row) for identity, row in enumerate(vectors)}
    for query in clustered(8, 384, seed=1) + unit(8, 384, seed=2) * 0.2:
        for limit, documents in ((1, None), (10, None), (400, None), (100, {1, 2, 3}), (100, set(range(40)))):
            assert_nearest(mirror.search(query, limit, documents), held, query, limit, documents)


def test_8_bits_alone_would_not_give_that_answer() -> None:
    """Else the test above would prove nothing."""
    vectors = clustered(4000, 384, seed=1)
    small = enlarge(shrink(vectors))
    differing = 0
    for query in clustered(8, 384, seed=1) + unit(8, 384, seed=2) * 0.2:
        differing += np.argsort(-(vectors @ query))[:400].tolist() != np.argsort(-(small @ query))[:400].tolist()
    assert differing >= 6


def test_sketches_lose_next_to_nothing_of_the_nearest() -> None:
    vectors = clustered(30_000, 384, seed=3)
    documents = [identity % 2 for identity in range(30_000)]
    exact, quick = Mirror(384), Mirror(384, exact_rows=1000, alike=1000)
    for mirror in (exact, quick):
        mirror.upsert(range(30_000), documents, vectors)
    for within in (None, {1}):
        found = wanted = 0
        for query in clustered(20, 384, seed=3) + unit(20, 384, seed=4) * 0.5:
            best = {match.passage_id for match in exact.search(query, 10, within)}
            found += len(best & {match.passage_id for match in quick.search(query, 10, within)})
            wanted += len(best)
        assert found >= 0.98 * wanted


def test_order_of_writing_does_not_change_what_is_found_by_sketches() -> None:
    vectors = clustered(3000, 64, seed=5)
    answers = []
    for order in (range(3000), range(2999, -1, -1)):
        mirror = Mirror(64, exact_rows=100, alike=200)
        mirror.upsert(range(5000, 5500), [0] * 500, -vectors[:500])
        mirror.upsert(list(order), [0] * 3000, vectors[list(order)])
        mirror.delete(range(5000, 5500))
        answers.append([mirror.search(query, 4) for query in clustered(5, 64, seed=6)])
    assert answers[0] == answers[1]


def test_empty_mirror_finds_nothing() -> None:
    assert Mirror(4).search(unit(1, 4)[0], 10) == []
    assert Mirror(4).search(unit(1, 4)[0], 10, documents=set()) == []


def test_mirror_grows_past_its_first_size() -> None:
    vectors = unit(5000)
    mirror = Mirror(8)
    for start in range(0, 5000, 700):
        part = vectors[start : start + 700]
        mirror.upsert(range(start, start + len(part)), [0] * len(part), part)
    assert len(mirror) == 5000
    for identity in (0, 1023, 1024, 4999):
        assert mirror.search(vectors[identity], 1)[0].passage_id == identity


def test_equal_vectors_are_ties_wherever_they_stand() -> None:
    row, query = unit(1, 384, seed=1)[0], unit(1, 384, seed=2)[0]
    mirror = Mirror(384)
    ids = list(np.random.default_rng(5).permutation(37).tolist())
    mirror.upsert(ids, [0] * 37, np.repeat(row[None], 37, axis=0))
    matches = mirror.search(query, 20)
    assert [match.passage_id for match in matches] == list(range(20))
    assert len({match.cosine for match in matches}) == 1


def test_searches_and_writes_at_once_never_mix_rows() -> None:
    """Each vector's first number is its id's: an answer that pairs them otherwise was torn."""
    mirror = Mirror(2)
    stop = threading.Event()
    torn: list[Match] = []

    def search() -> None:
        while not stop.is_set():
            matches = mirror.search(np.array([1, 0], np.float32), 50)
            torn.extend(match for match in matches if match.cosine != match.passage_id)

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for round_ in range(30):
        ids = list(range(round_ * 50, round_ * 50 + 100))
        mirror.upsert(ids, ids, np.array([[identity, 0] for identity in ids], np.float32))
        mirror.delete(ids[::3])
    stop.set()
    for thread in threads:
        thread.join(30)
    assert torn == []
