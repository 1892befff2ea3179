from __future__ import annotations

import threading

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memoryd.store.mirror import Mirror
from memoryd.store.protocols import Match, Vectors


def unit(rows: int, dimension: int = 8, seed: int = 0) -> Vectors:
    matrix = np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)


def naive_search(
    held: dict[int, tuple[int, Vectors]], vector: Vectors, limit: int, documents: set[int] | None
) -> list[Match]:
    found = [
        Match(identity, float(np.multiply(row, vector, dtype=np.float64).sum()))
        for identity, (document, row) in held.items()
        if documents is None or document in documents
    ]
    return sorted(found, key=lambda match: (-match.cosine, match.passage_id))[:limit]


IDS = st.integers(0, 25)
DOCUMENTS = st.integers(0, 3)
# Few directions, so that ties are common.
ROWS = st.sampled_from([tuple(row) for row in unit(5, 4, seed=3).tolist()])
UPSERTS = st.lists(st.tuples(IDS, DOCUMENTS, ROWS), max_size=12)
DELETES = st.lists(IDS, max_size=8)


@settings(max_examples=60)
@given(
    steps=st.lists(st.tuples(UPSERTS, DELETES), max_size=5),
    query=hnp.arrays(np.float32, 4, elements=st.floats(-1, 1, width=32)),
    limit=st.integers(0, 30),
    documents=st.none() | st.sets(DOCUMENTS),
)
def test_mirror_answers_as_a_naive_search_does(
    steps: list[tuple[list[tuple[int, int, tuple[float, ...]]], list[int]]],
    query: Vectors,
    limit: int,
    documents: set[int] | None,
) -> None:
    mirror = Mirror(4)
    held: dict[int, tuple[int, Vectors]] = {}
    for upserts, deletes in steps:
        rows = np.array([row for _, _, row in upserts], np.float32).reshape(-1, 4)
        mirror.upsert([identity for identity, _, _ in upserts], [document for _, document, _ in upserts], rows)
        held.update({identity: (document, row) for (identity, document, _), row in zip(upserts, rows, strict=True)})
        mirror.delete(deletes)
        for identity in deletes:
            held.pop(identity, None)
    assert len(mirror) == len(held)
    assert mirror.search(query, limit, documents) == naive_search(held, query, limit, documents)


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
