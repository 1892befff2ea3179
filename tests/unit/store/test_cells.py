"""Cells: rows that lie near each other lie together, and what is written meanwhile is not lost."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
import structlog

from memoryd.store.cells import Cells
from memoryd.store.directions import Directions
from memoryd.store.mirror import CELLS_THREAD, Mirror, put_into_cells
from memoryd.store.precision import Small, enlarge, shrink
from memoryd.store.protocols import Vectors
from tests.support.waiting import eventually

FAR = 10**9  # rows: none of these mirrors ever has so many


def unit(matrix: Vectors) -> Vectors:
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)


def themes(rows: int, dimension: int = 64, seed: int = 0) -> Vectors:
    """Vectors around themes, some close to theirs and some far out."""
    random = np.random.default_rng(seed)
    middles = np.random.default_rng(99).normal(size=(40, dimension))
    spread = random.choice([0.2, 1.2], size=(rows, 1))
    return unit((middles[random.integers(0, 40, rows)] + spread * random.normal(size=(rows, dimension))).astype("f4"))


def anyhow(rows: int, dimension: int = 48, seed: int = 0) -> Small:
    return shrink(np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32))


def cells_of(rows: Small, count: int | None = None) -> Cells:
    cells = Cells(Directions(rows), rows, count or len(rows))
    cells.write(np.arange(len(rows)), cells.directions.sketch(rows))
    return cells


def alike(cells: Cells, row: Small, wanted: int, count: int, part: float = 1.0) -> list[int]:
    return [int(each) for each in cells.most_alike(enlarge(row[None])[0], wanted, count, part)]


def test_a_row_is_most_like_itself_also_in_a_few_of_the_cells() -> None:
    rows = anyhow(4000)
    cells = cells_of(rows)
    for part in (1.0, 0.5):
        assert all(row in alike(cells, rows[row], 3, 4000, part) for row in range(0, 4000, 10))


def test_a_wide_cell_that_is_further_away_is_looked_at_before_a_narrow_one() -> None:
    """What is nearest lies far out in its cell. By how near its middle is alone, it would be looked at last."""
    random = np.random.default_rng(1)
    query = np.zeros(32, np.float32)
    query[0] = 1.0
    narrow, wide = np.zeros((2, 32), np.float32)
    narrow[[0, 1]], wide[[0, 2]] = (0.5, 0.87), (0.45, 0.9)
    near = unit(narrow + 0.01 * random.normal(size=(2000, 32)).astype(np.float32))
    out = unit(wide + 0.2 * random.normal(size=(2000, 32)).astype(np.float32))
    rows = shrink(np.concatenate([near, out]))
    assert narrow @ query > wide @ query
    best = int(np.argmax(enlarge(rows) @ query))
    assert best >= 2000
    cells = cells_of(rows, 500)  # two of them
    assert best in alike(cells, shrink(query[None])[0], 20, 4000, part=0.5)


def test_a_row_that_is_written_again_is_what_it_was_written_as_last() -> None:
    rows, others = anyhow(1000), anyhow(1000, seed=1)
    cells = cells_of(rows)
    changed = np.array([0, 31, 500, 999, 31])
    cells.write(changed, cells.directions.sketch(np.concatenate([others[changed[:4]], others[600:601]])))
    now = {0: others[0], 31: others[600], 500: others[500], 999: others[999]}
    for row, vector in now.items():
        assert row in alike(cells, vector, 3, 1000)
        assert row not in alike(cells, rows[row], 3, 1000)
    assert all(row in alike(cells, rows[row], 3, 1000) for row in (1, 30, 32, 998))


def test_as_many_rows_are_told_where_half_of_the_sketches_are_old_ones() -> None:
    rows = anyhow(1000)
    cells = cells_of(rows)
    assert len(alike(cells, rows[0], 100, 1000)) == 100
    cells.write(np.arange(1000), cells.directions.sketch(rows))
    assert len(alike(cells, rows[0], 100, 1000)) == 100


def test_of_rows_beyond_the_count_nothing_is_told() -> None:
    rows = anyhow(300)
    assert alike(cells_of(rows), rows[299], 300, 100) == list(range(100))


def test_cells_that_hold_much_that_was_written_anew_are_outgrown() -> None:
    rows = anyhow(600)
    cells = cells_of(rows)
    assert not cells.are_outgrown(600)
    assert cells.are_outgrown(1200)
    cells.write(np.arange(600), cells.directions.sketch(rows))
    assert cells.are_outgrown(600)


def test_cells_lose_next_to_nothing_of_the_nearest() -> None:
    vectors = themes(30_000, 384)
    documents = [identity % 2 for identity in range(30_000)]
    exact, quick = Mirror(384), Mirror(384, exact_rows=1000, alike=1000, cell_rows=30_000)
    for mirror in (exact, quick):
        mirror.upsert(range(30_000), documents, vectors)
    eventually(lambda: quick.in_cells)
    for within in (None, {1}):
        found = wanted = 0
        for query in unit(themes(30, 384, seed=5) + 0.03 * np.random.default_rng(6).normal(size=(30, 384))):
            best = {match.passage_id for match in exact.search(query.astype(np.float32), 10, within)}
            found += len(best & {match.passage_id for match in quick.search(query.astype(np.float32), 10, within)})
            wanted += len(best)
        assert found >= 0.98 * wanted


def found_by_themselves(mirror: Mirror, held: dict[int, Vectors]) -> bool:
    return [mirror.search(vector, 1)[0].passage_id for vector in held.values()] == list(held)


def test_what_is_written_while_rows_are_put_into_cells_is_there_afterwards() -> None:
    """A portion at a time, with new rows, changed ones and deletions in between, each before and after its turn."""
    random = np.random.default_rng(7)
    vectors = themes(40_000, seed=8)
    mirror, held = Mirror(64, exact_rows=100, cell_rows=FAR, part=1), dict(enumerate(vectors[:30_000]))
    mirror.upsert(list(held), [0] * len(held), vectors[:30_000])
    cells, place, fresh = mirror.make_cells(), 0, 30_000
    while place is not None:
        assert not mirror.in_cells
        place = mirror.put_into(cells, place)
        if place is None or fresh >= 38_000:
            continue
        changed = [*range(fresh, fresh + 500), *random.choice(list(held), 500, replace=False).tolist()]
        new = themes(1000, seed=fresh)
        mirror.upsert(changed, [0] * 1000, new)
        held.update(zip(changed, new, strict=True))
        gone = random.choice(list(held), 700, replace=False).tolist()
        mirror.delete(gone)
        for identity in gone:
            del held[identity]
        fresh += 500
    assert mirror.in_cells
    assert len(mirror) == len(held)
    asked = dict([*held.items()][::25])
    assert found_by_themselves(mirror, asked)


def test_after_any_history_in_cells_every_row_is_found_by_its_own_vector() -> None:
    """Cells are made anew while rows come, change and go."""
    random = np.random.default_rng(4)
    mirror, held = Mirror(64, exact_rows=100, alike=50, cell_rows=300, part=1), dict[int, Vectors]()
    for step in range(12):
        ids = random.choice(2000, 300, replace=False).tolist()
        vectors = themes(300, seed=step)
        mirror.upsert(ids, [0] * 300, vectors)
        held.update(zip(ids, vectors, strict=True))
        gone = random.choice(list(held), 90, replace=False).tolist()
        mirror.delete(gone)
        for identity in gone:
            del held[identity]
        if step % 3:
            eventually(lambda: mirror.in_cells)
    eventually(lambda: mirror.in_cells)
    assert found_by_themselves(mirror, held)


def test_rows_that_are_about_to_come_are_waited_for() -> None:
    """Else a memory that is read at a start would be put into cells three times."""
    vectors = themes(900)
    mirror = Mirror(64, exact_rows=100, cell_rows=200, capacity=900)
    mirror.upsert(range(600), [0] * 600, vectors[:600])
    assert not workers()
    assert not mirror.in_cells
    mirror.upsert(range(600, 900), [0] * 300, vectors[600:])
    eventually(lambda: mirror.in_cells)


def test_rows_that_are_all_deleted_meanwhile_are_put_into_cells_all_the_same() -> None:
    """Else nobody would put those into cells that come after them."""
    vectors = themes(600)
    mirror = Mirror(64, exact_rows=100, cell_rows=FAR, part=1)
    mirror.upsert(range(600), [0] * 600, vectors)
    mirror.delete(range(600))
    worker = threading.Thread(target=put_into_cells, args=[weakref.ref(mirror)])  # it makes itself nice
    worker.start()
    worker.join()
    assert mirror.in_cells
    mirror.upsert(range(600), [0] * 600, vectors)
    eventually(lambda: mirror.in_cells)
    assert found_by_themselves(mirror, dict(enumerate(vectors)))


class CountingMirror(Mirror):
    made = 0

    def make_cells(self) -> Cells:
        self.made += 1
        return super().make_cells()


def test_outgrown_cells_are_made_anew_also_where_fewer_rows_are_left_than_were_awaited() -> None:
    vectors = themes(900)
    mirror = CountingMirror(64, exact_rows=100, cell_rows=200, capacity=900, part=1)
    mirror.upsert(range(900), [0] * 900, vectors)
    eventually(lambda: mirror.in_cells)
    mirror.delete(range(800, 900))
    for _ in range(3):
        mirror.upsert(range(800), [0] * 800, vectors[:800])
    eventually(lambda: mirror.in_cells and mirror.made == 2)
    assert found_by_themselves(mirror, dict(enumerate(vectors[:800])))


def test_where_cells_cannot_be_made_sketches_are_looked_at_and_as_many_rows_again_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = themes(1200)
    mirror = Mirror(64, exact_rows=100, cell_rows=500, part=1)
    with monkeypatch.context() as patch, structlog.testing.capture_logs() as logs:
        patch.setattr(Cells, "__init__", no_memory)
        mirror.upsert(range(600), [0] * 600, vectors[:600])
        eventually(lambda: logs and not workers())
    assert [entry["event"] for entry in logs] == ["cells_failed"]
    mirror.upsert(range(600, 1199), [0] * 599, vectors[600:1199])
    assert not workers()
    assert found_by_themselves(mirror, dict(enumerate(vectors[:1199])))
    mirror.upsert([1199], [0], vectors[1199:])
    eventually(lambda: mirror.in_cells)
    assert found_by_themselves(mirror, dict(enumerate(vectors)))


def no_memory(*_: object) -> None:
    raise MemoryError


def test_nobody_works_for_a_mirror_that_is_gone() -> None:
    vectors = themes(60_000)
    mirror = Mirror(64, exact_rows=100, cell_rows=60_000)
    mirror.upsert(range(60_000), [0] * 60_000, vectors)
    assert workers()
    del mirror
    gc.collect()
    eventually(lambda: not workers())


@pytest.fixture(autouse=True)
def _nobody_works_for_an_earlier_test() -> None:
    eventually(lambda: not workers())


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == CELLS_THREAD]
