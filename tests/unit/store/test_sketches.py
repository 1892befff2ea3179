"""Sketches: a first look at many rows, written in place."""

from __future__ import annotations

import numpy as np

from memoryd.store.directions import Directions
from memoryd.store.mirror import Mirror
from memoryd.store.precision import Small, enlarge, shrink
from memoryd.store.protocols import Vectors
from memoryd.store.sketches import Sketches


def small(rows: int, dimension: int = 48, seed: int = 0) -> Small:
    return shrink(np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32))


def alike(sketches: Sketches, row: Small, wanted: int, count: int) -> list[int]:
    return [int(each) for each in sketches.most_alike(enlarge(row[None])[0], wanted, count)]


def test_a_row_is_most_like_itself_wherever_it_is_written() -> None:
    rows = small(1000)
    sketches = Sketches(Directions(rows))
    order = np.random.default_rng(1).permutation(1000)
    for start in range(0, 1000, 77):  # across the blocks of 32
        part = order[start : start + 77]
        sketches.write(part, sketches.directions.sketch(rows[part]))
    assert all(row in alike(sketches, rows[row], 3, 1000) for row in range(1000))


def test_a_row_that_is_written_again_is_what_it_was_written_as_last() -> None:
    rows, others = small(500), small(500, seed=1)
    sketches = Sketches(Directions(rows))
    sketches.write(np.arange(500), sketches.directions.sketch(rows))
    changed = np.array([0, 31, 32, 63, 499, 200])
    sketches.write(changed, sketches.directions.sketch(others[changed]))
    for row in changed.tolist():
        assert row in alike(sketches, others[row], 3, 500)
        assert row not in alike(sketches, rows[row], 3, 500)
    assert all(row in alike(sketches, rows[row], 3, 500) for row in (1, 30, 33, 62, 64, 498))


def test_a_row_that_is_written_twice_at_once_leaves_the_others_of_its_block_alone() -> None:
    rows = small(64)
    sketches = Sketches(Directions(rows))
    sketches.write(np.arange(64), sketches.directions.sketch(rows))
    twice = np.array([*range(31), 0])  # as many as a block has, and not its last
    sketches.write(twice, sketches.directions.sketch(rows[twice]))
    assert all(row in alike(sketches, rows[row], 3, 64) for row in range(64))


def test_of_rows_beyond_the_count_nothing_is_told() -> None:
    rows = small(100)
    sketches = Sketches(Directions(rows))
    sketches.write(np.arange(100), sketches.directions.sketch(rows))
    assert alike(sketches, rows[99], 40, 40) == list(range(40))


def test_vectors_of_few_numbers_have_sketches_too() -> None:
    rows = small(200, dimension=3)
    sketches = Sketches(Directions(rows))
    sketches.write(np.arange(200), sketches.directions.sketch(rows))
    assert len(alike(sketches, rows[0], 20, 200)) == 20


def themes(rows: int, seed: int) -> tuple[Vectors, Vectors]:
    """Vectors around either of two opposite themes, and the themes."""
    random = np.random.default_rng(seed)
    both = random.normal(size=(2, 64)).astype(np.float32)
    both[1] = -both[0]
    noise = random.normal(size=(rows, 64)).astype(np.float32) * 0.5
    vectors = both[np.arange(rows) % 2] + noise
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), both / np.linalg.norm(both, axis=1, keepdims=True)


def test_a_filter_that_leaves_only_what_is_far_away_starves_no_query() -> None:
    """Whatever is near the query is in documents that it may not see."""
    vectors, (near, _) = themes(8000, seed=2)
    exact, quick = Mirror(64), Mirror(64, exact_rows=1000, alike=500)
    for mirror in (exact, quick):
        mirror.upsert(range(8000), [row % 2 for row in range(8000)], vectors)
    assert quick.search(near, 20, {1}) == exact.search(near, 20, {1})
    assert len(quick.search(near, 20, {1})) == 20


def test_what_is_deleted_is_not_found_and_what_took_its_place_is() -> None:
    vectors, _ = themes(3000, seed=3)
    mirror = Mirror(64, exact_rows=100, alike=100)
    mirror.upsert(range(3000), [0] * 3000, vectors)
    mirror.delete(range(0, 3000, 3))  # each hole is filled with a later row
    for row in (1, 2, 2998, 2999, 1500 + 1):
        assert mirror.search(vectors[row], 1)[0].passage_id == row
    assert all(match.passage_id % 3 for match in mirror.search(vectors[0], 200))


def test_after_any_history_every_row_is_found_by_its_own_vector() -> None:
    """Rows that came, changed and went: the sketch of each is that of the vector that it has now."""
    random = np.random.default_rng(4)
    mirror, held = Mirror(64, exact_rows=100, alike=50), dict[int, Vectors]()
    for _ in range(12):
        ids = random.choice(2000, 300, replace=False).tolist()
        vectors = enlarge(small(300, 64, seed=int(random.integers(1000))))
        mirror.upsert(ids, [0] * 300, vectors)
        held.update(zip(ids, vectors, strict=True))
        gone = random.choice(list(held), 90, replace=False).tolist()
        mirror.delete(gone)
        for identity in gone:
            del held[identity]
    assert len(mirror) == len(held) > 1000
    assert [mirror.search(vector, 1)[0].passage_id for vector in held.values()] == list(held)
