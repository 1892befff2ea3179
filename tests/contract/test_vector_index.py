"""What every vector index promises: LanceDB (with and without its mirror, on disk and in S3) and the one in memory."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import lancedb
import numpy as np
import pytest

from memoryd.store.errors import StoreCorrupt, StoreFull, StoreUnavailable
from memoryd.store.failpoints import arm
from memoryd.store.lance import stored_rows, table_path
from memoryd.store.precision import enlarge, restore, shrink
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.vectors import LanceVectors
from tests.support.memory_vectors import MemoryVectors
from tests.support.s3 import S3Server, run_s3, s3_place

DIMENSION = 8

MakeIndex = Callable[[Path], VectorIndex]
LOCAL: dict[str, MakeIndex] = {
    "memory": lambda _folder: MemoryVectors(DIMENSION),
    "lance": lambda folder: LanceVectors(folder, "f1", DIMENSION),
    "lance-unmirrored": lambda folder: LanceVectors(folder, "f1", DIMENSION, mirror_rows=-1),
    "lance-int8": lambda folder: LanceVectors(folder, "f1", DIMENSION, precision="int8"),
    "lance-int8-unmirrored": lambda folder: LanceVectors(folder, "f1", DIMENSION, precision="int8", mirror_rows=-1),
}
PATIENT = {"client_max_retries": "3"}  # the server stumbles if files are deleted while they are listed
DURABLE = {name: make for name, make in LOCAL.items() if name != "memory"}


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(params=[*LOCAL, "s3"])
def make(request: pytest.FixtureRequest) -> MakeIndex:
    """Of each kind, in a folder; in the bucket the folder is called the same."""
    if request.param in LOCAL:
        return LOCAL[request.param]
    port = request.getfixturevalue("s3").port
    return lambda folder: LanceVectors(s3_place(port, str(folder), PATIENT), "f1", DIMENSION)


@pytest.fixture
def index(make: MakeIndex, tmp_path: Path) -> VectorIndex:
    return make(tmp_path / "vectors")


@pytest.fixture(params=[*DURABLE, "s3"])
def make_lasting(request: pytest.FixtureRequest) -> MakeIndex:
    """Those that outlive the process."""
    if request.param in DURABLE:
        return DURABLE[request.param]
    port = request.getfixturevalue("s3").port
    return lambda folder: LanceVectors(s3_place(port, str(folder), PATIENT), "f1", DIMENSION)


@pytest.fixture(params=list(DURABLE))
def make_durable(request: pytest.FixtureRequest) -> MakeIndex:
    """Those whose files can be damaged with a file manager."""
    return DURABLE[request.param]


def unit(rows: int, seed: int = 0) -> Vectors:
    """Vectors that lose nothing in 8 bits: every index gives them back to the last bit."""
    matrix = np.random.default_rng(seed).normal(size=(rows, DIMENSION)).astype(np.float32)
    return enlarge(shrink(matrix))


def fill(index: VectorIndex, rows: int = 20, document: int = 1, first: int = 0) -> Vectors:
    vectors = unit(rows)
    index.upsert(list(range(first, first + rows)), [document] * rows, vectors)
    return vectors


def found(index: VectorIndex, vector: Vectors, limit: int = 100, documents: set[int] | None = None) -> list[int]:
    return [match.passage_id for match in index.search(vector, limit, documents)]


# -- searching ------------------------------------------------------------------------------------------------


def test_nothing_is_found_in_an_empty_index(index: VectorIndex) -> None:
    assert index.search(unit(1)[0], 10) == []
    assert index.search(unit(1)[0], 10, documents={1}) == []
    assert index.ids() == set()


def test_matches_come_best_first_with_their_cosine(index: VectorIndex) -> None:
    vectors = fill(index)
    query = unit(1, seed=9)[0]
    matches = index.search(query, 100)
    expected = vectors @ query
    assert [match.passage_id for match in matches] == np.argsort(-expected).tolist()
    assert [match.cosine for match in matches] == pytest.approx(sorted(expected.tolist(), reverse=True), abs=1e-5)


def test_limit_cuts_the_tail_and_nothing_else(index: VectorIndex) -> None:
    fill(index)
    query = unit(1, seed=9)[0]
    assert found(index, query, 5) == found(index, query, 100)[:5]
    assert found(index, query, 0) == []


def test_ties_come_in_the_order_of_their_ids(index: VectorIndex) -> None:
    same = np.repeat(unit(1), 7, axis=0)
    index.upsert([5, 3, 9, 1, 7, 2, 8], [1] * 7, same)
    assert found(index, same[0]) == [1, 2, 3, 5, 7, 8, 9]


def test_filter_fills_the_limit_from_the_documents_alone(index: VectorIndex) -> None:
    vectors = fill(index, rows=50, document=1)
    index.upsert([1000, 1001, 1002], [2, 2, 3], -vectors[:3])  # as far from the query as can be
    assert set(found(index, vectors[0], 2, {2})) == {1000, 1001}
    assert set(found(index, vectors[0], 10, {2, 3, 77})) == {1000, 1001, 1002}
    assert found(index, vectors[0], 10, set()) == []
    assert found(index, vectors[0], 10, {77}) == []


def test_filter_may_name_thousands_of_documents(index: VectorIndex) -> None:
    vectors = fill(index, rows=20, document=2**62)
    assert len(found(index, vectors[0], 100, {2**62, *range(5000)})) == 20


# -- reading by id --------------------------------------------------------------------------------------------


def test_vectors_are_read_by_id(index: VectorIndex) -> None:
    vectors = fill(index)
    read = index.vectors([3, 17, 4])
    assert read.keys() == {3, 17, 4}
    for identity, vector in read.items():
        assert vector.dtype == np.float32
        assert vector.tolist() == vectors[identity].tolist()


def test_vectors_that_are_not_held_are_left_out(index: VectorIndex) -> None:
    assert index.vectors([1, 2]) == {}
    fill(index)
    index.delete([5])
    assert index.vectors([5, 6, 99]).keys() == {6}
    assert index.vectors([]) == {}


def test_vectors_of_hundreds_of_passages_are_all_read(index: VectorIndex) -> None:
    vectors = fill(index, rows=900)
    read = index.vectors(range(0, 900, 2))
    assert np.array_equal(np.array([read[identity] for identity in range(0, 900, 2)]), vectors[::2])


def test_vector_that_was_read_does_not_change_with_the_index(index: VectorIndex) -> None:
    vectors = fill(index, rows=3)
    read = index.vectors([0, 2])
    index.delete([0])  # the last row may take its place
    index.upsert([2], [1], -vectors[2:])
    assert read[0].tolist() == vectors[0].tolist()
    assert read[2].tolist() == vectors[2].tolist()
    assert index.vectors([2])[2].tolist() == (-vectors[2]).tolist()


def test_cosines_are_those_of_the_vectors_held(index: VectorIndex) -> None:
    vectors = fill(index, rows=300)
    index.delete([5])
    read = index.cosines([5, *range(0, 300, 3), 999], vectors[7])
    assert np.isnan(read[[0, -1]]).all()
    assert np.allclose(read[1:-1], vectors[::3] @ vectors[7], atol=1e-5)
    assert index.cosines([], vectors[0]).tolist() == []
    assert np.isnan(index.cosines([999], vectors[0])).all()


def test_equal_vectors_have_equal_cosines(index: VectorIndex) -> None:
    vectors = fill(index, rows=40)
    index.upsert(range(100, 131), [1] * 31, np.repeat(vectors[3:4], 31, axis=0))
    assert len(set(index.cosines(range(100, 131), vectors[9]).tolist())) == 1


# -- writing --------------------------------------------------------------------------------------------------


def test_written_vector_is_seen_by_the_next_search(index: VectorIndex) -> None:
    vectors = unit(2)
    index.upsert([1], [1], vectors[:1])
    assert found(index, vectors[1]) == [1]
    index.upsert([2], [1], vectors[1:])
    assert found(index, vectors[1]) == [2, 1]


def test_upserting_again_changes_nothing(index: VectorIndex) -> None:
    vectors = fill(index)
    before = index.search(vectors[0], 100)
    fill(index)
    assert index.search(vectors[0], 100) == before
    assert index.stats().rows == 20


def test_upsert_replaces_vector_and_document(index: VectorIndex) -> None:
    vectors = fill(index, rows=3)
    index.upsert([0], [2], -vectors[:1])
    assert found(index, -vectors[0])[0] == 0
    assert found(index, vectors[0], documents={2}) == [0]
    assert index.ids() == {0, 1, 2}


def test_id_given_twice_in_a_batch_is_held_once_as_given_last(index: VectorIndex) -> None:
    vectors = unit(3)
    for _ in range(2):
        index.upsert([1, 2, 1], [1, 1, 1], vectors)
        assert index.stats().rows == 2
        assert index.search(vectors[2], 1)[0].cosine == pytest.approx(1.0, abs=1e-5)


def test_deleted_vectors_are_not_found_and_deleting_again_is_harmless(index: VectorIndex) -> None:
    vectors = fill(index)
    for _ in range(2):
        index.delete([3, 4, 999])
        assert index.ids() == set(range(20)) - {3, 4}
        assert found(index, vectors[3], 1) != [3]
    index.upsert([3], [1], vectors[3:4])
    assert found(index, vectors[3], 1) == [3]


def test_thousands_are_deleted_at_once(index: VectorIndex) -> None:
    fill(index, rows=2500)
    index.delete(set(range(2499)))
    assert index.ids() == {2499}


def test_nothing_to_write_is_no_work(index: VectorIndex) -> None:
    before = index.stats().versions
    index.upsert([], [], np.empty((0, DIMENSION), np.float32))
    index.delete([])
    assert index.stats().versions == before


def test_largest_ids_are_kept_whole(index: VectorIndex) -> None:
    largest = 2**63 - 1
    index.upsert([largest, largest - 1], [largest, largest], unit(2))
    assert index.ids() == {largest, largest - 1}
    assert found(index, unit(2)[0], 1, {largest}) == [largest]


def test_searches_while_writing_see_whole_batches_of_rows(index: VectorIndex) -> None:
    vectors = unit(40)
    wrong: list[object] = []
    stop = threading.Event()

    def look() -> None:
        try:
            while not stop.is_set():
                matches = index.search(vectors[0], 100)
                cosines = [match.cosine for match in matches]
                if cosines != sorted(cosines, reverse=True):
                    wrong.append(matches)
        except Exception as error:
            wrong.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    for start in range(0, 40, 10):
        index.upsert(range(start, start + 10), [1] * 10, vectors[start : start + 10])
        index.delete([start])
    index.compact()
    stop.set()
    thread.join(60)
    assert wrong == []
    assert len(index.ids()) == 36


# -- maintenance ----------------------------------------------------------------------------------------------


def test_compacting_keeps_every_row(index: VectorIndex) -> None:
    vectors = unit(30)
    for row in range(30):
        index.upsert([row], [row % 3], vectors[row : row + 1])
    index.delete([0, 1])
    before = index.search(vectors[5], 100)
    index.compact()
    assert index.search(vectors[5], 100) == before
    assert index.ids() == set(range(2, 30))


def test_compacting_bounds_versions_and_fragments(index: VectorIndex, tmp_path: Path) -> None:
    for round_ in range(3):
        for row in range(8):
            index.upsert([row], [1], unit(1, seed=round_ * 8 + row))
        index.compact()
        assert index.stats().fragments <= 1
        assert index.stats().rows == 8
    if isinstance(index, LanceVectors):  # with a mirror nobody reads old versions, so none is kept
        index = LanceVectors(index.place, "f1", DIMENSION)
    index.compact()
    assert index.stats().versions <= 2


def test_search_is_not_disturbed_by_compacting(index: VectorIndex) -> None:
    """Without a mirror it reads files that compacting makes superfluous."""
    vectors = fill(index, 200)
    wrong: list[Exception] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            try:
                index.search(vectors[0], 100)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for row in range(25):
        index.upsert([row], [1], vectors[row : row + 1])
        index.compact()
    stop.set()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_stats_tell_rows_and_bytes(index: VectorIndex) -> None:
    fill(index)
    stats = index.stats()
    assert stats.rows == 20
    assert stats.bytes >= 20 * DIMENSION
    assert stats.versions >= 1
    assert stats.fragments >= 1


def test_writing_anew_and_reopening_keep_every_row(index: VectorIndex) -> None:
    vectors = unit(30)
    for row in range(30):
        index.upsert([row], [row % 3], vectors[row : row + 1])
    index.delete([0, 1])
    before = index.search(vectors[5], 100)
    index.rewrite()
    assert index.stats().fragments <= 1
    assert index.search(vectors[5], 100) == before
    index.reopen()
    assert index.search(vectors[5], 100) == before
    assert index.ids() == set(range(2, 30))
    fill(index)
    assert index.ids() == set(range(30))


# -- LanceDB alone --------------------------------------------------------------------------------------------


def test_rows_outlive_the_process(make_lasting: MakeIndex, tmp_path: Path) -> None:
    first = make_lasting(tmp_path)
    vectors = fill(first)
    first.delete([7])
    second = make_lasting(tmp_path)
    assert second.ids() == set(range(20)) - {7}
    assert second.search(vectors[0], 100) == first.search(vectors[0], 100)


def test_backlog_grows_with_commits_and_outlives_the_process(tmp_path: Path) -> None:
    def reopened() -> LanceVectors:
        return LanceVectors(tmp_path, "f1", DIMENSION, compact_after=10)

    index = reopened()
    assert index.backlog() < 1
    for row in range(10):
        fill(index, 1, first=row)
    assert index.backlog() >= 1
    assert reopened().backlog() >= 1
    index.compact()
    assert index.backlog() == 0
    assert reopened().backlog() < 1


def test_what_is_compacted_away_while_it_is_read_is_not_damage(tmp_path: Path) -> None:
    damage: list[StoreCorrupt] = []
    index = LanceVectors(tmp_path, "f1", DIMENSION, on_damage=damage.append)
    fill(index)
    done = threading.Event()

    def write_and_compact() -> None:
        for row in range(60):
            fill(index, 1, first=row)
            index.compact()
        done.set()

    writer = threading.Thread(target=write_and_compact)
    writer.start()
    looks = 0
    while not done.is_set():
        assert index.stats().rows >= 20
        assert len(index.ids()) >= 20
        looks += 1
    writer.join()
    assert looks > 0
    assert damage == []


def test_what_a_write_that_was_cut_off_has_left_is_taken_away(make_durable: MakeIndex, tmp_path: Path) -> None:
    index = make_durable(tmp_path)
    vectors = fill(index)
    (data,) = tmp_path.rglob("data")
    left = data / ".tmpnEaYoj"  # as LanceDB calls a file that it has not finished
    left.write_bytes(b"half")
    assert make_durable(tmp_path).search(vectors[5], 1) == index.search(vectors[5], 1)
    assert not left.exists()


def test_stored_rows_are_those_on_disk_and_not_those_remembered(make_lasting: MakeIndex, tmp_path: Path) -> None:
    index = make_lasting(tmp_path)
    assert isinstance(index, LanceVectors)
    vectors = fill(index)
    behind = make_lasting(tmp_path)
    behind.delete([3])
    ((ids, documents, matrix),) = stored_rows(index.place, "f1", DIMENSION)
    assert ids == [row for row in range(20) if row != 3]
    assert set(documents) == {1}
    assert np.array_equal(restore(matrix), np.delete(vectors, 3, axis=0))
    ((ids, _, matrix),) = stored_rows(index.place, "f1", DIMENSION, with_vectors=False)
    assert (len(ids), matrix.size) == (19, 0)
    index.reopen()
    assert 3 not in index.vectors([3])
    assert list(stored_rows(index.place, "f2", DIMENSION)) == []
    assert list(stored_rows(tmp_path / "nowhere", "f1", DIMENSION)) == []


def test_generations_do_not_mix(tmp_path: Path) -> None:
    for number in range(12):
        LanceVectors(tmp_path, f"f{number}", DIMENSION).upsert([number], [1], unit(1))
    assert all(LanceVectors(tmp_path, f"f{number}", DIMENSION).ids() == {number} for number in range(12))


def test_answers_are_the_same_beyond_the_mirror(tmp_path: Path) -> None:
    mirrored = LanceVectors(tmp_path / "small", "f1", DIMENSION)
    outgrown = LanceVectors(tmp_path / "large", "f1", DIMENSION, mirror_rows=100)
    vectors = unit(300)
    for index in (mirrored, outgrown):
        for start in range(0, 300, 75):  # the second batch is one too many
            ids = list(range(start, start + 75))
            index.upsert(ids, [identity % 4 for identity in ids], vectors[start : start + 75])
        index.delete(range(0, 300, 7))
    for query in unit(5, seed=4):
        for documents in (None, {1}, {2, 3}):
            expected = mirrored.search(query, 20, documents)
            matches = outgrown.search(query, 20, documents)
            assert [match.passage_id for match in matches] == [match.passage_id for match in expected]
            assert [m.cosine for m in matches] == pytest.approx([m.cosine for m in expected], abs=1e-5)


# -- another precision ----------------------------------------------------------------------------------------


def rough(rows: int) -> Vectors:
    """Vectors of which 8 bits lose something."""
    matrix = np.random.default_rng(8).normal(size=(rows, DIMENSION)).astype(np.float32)
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)


def nothing_known(_ids: Sequence[int]) -> dict[int, Vectors]:
    return {}


@pytest.mark.parametrize("mirror_rows", [1000, -1])
def test_converted_to_8_bits_and_back_every_row_is_there(tmp_path: Path, mirror_rows: int) -> None:
    vectors = rough(300)
    index = LanceVectors(tmp_path, "f1", DIMENSION, mirror_rows=mirror_rows)
    index.upsert(range(300), [identity % 3 for identity in range(300)], vectors)
    assert not index.is_convertible()
    index = LanceVectors(tmp_path, "f1", DIMENSION, precision="int8", mirror_rows=mirror_rows)
    assert index.is_convertible()
    assert index.vectors([7])[7].tolist() == vectors[7].tolist()
    assert index.convert(nothing_known) == set()
    assert not index.is_convertible()
    assert index.vectors([7])[7].tolist() == enlarge(shrink(vectors[7:8]))[0].tolist()
    index.upsert([300], [1], vectors[:1])
    index.delete([299])
    answered: list[int] = []

    def read(ids: Sequence[int]) -> dict[int, Vectors]:
        answered.append(len(found(index, vectors[5], 1000)))  # it is searched meanwhile
        return {identity: vectors[identity % 300] for identity in ids}

    index = LanceVectors(tmp_path, "f1", DIMENSION, mirror_rows=mirror_rows)
    assert index.convert(read) == set()
    assert answered == [300]
    assert index.ids() == {*range(299), 300}
    assert all(
        np.array_equal(vector, vectors[identity % 300]) for identity, vector in index.vectors(range(301)).items()
    )
    assert found(index, vectors[5], 5, {2}) == found(LanceVectors(tmp_path, "f1", DIMENSION), vectors[5], 5, {2})
    index.compact()
    assert index.stats().rows == 300


def test_what_nobody_knows_in_full_is_left_out_of_a_conversion(tmp_path: Path) -> None:
    vectors = rough(9)
    LanceVectors(tmp_path, "f1", DIMENSION, precision="int8").upsert(range(9), [1] * 9, vectors)
    index = LanceVectors(tmp_path, "f1", DIMENSION)
    assert index.convert(lambda ids: {identity: vectors[identity] for identity in ids if identity != 4}) == {4}
    assert index.ids() == set(range(9)) - {4}
    assert index.vectors([4, 5]).keys() == {5}


def test_empty_table_is_converted(tmp_path: Path) -> None:
    LanceVectors(tmp_path, "f1", DIMENSION)
    LanceVectors(tmp_path, "f1", DIMENSION, precision="int8").convert(nothing_known)
    index = LanceVectors(tmp_path, "f1", DIMENSION, precision="int8")
    assert not index.is_convertible()
    assert index.ids() == set()


def test_conversion_that_fails_changes_nothing(tmp_path: Path) -> None:
    vectors = rough(300)
    LanceVectors(tmp_path, "f1", DIMENSION).upsert(range(300), [1] * 300, vectors)
    index = LanceVectors(tmp_path, "f1", DIMENSION, precision="int8")
    arm("vectors.convert.begun=full@1-1")
    try:
        with pytest.raises(StoreFull):
            index.convert(nothing_known)
        for looked_at in (index, LanceVectors(tmp_path, "f1", DIMENSION, precision="int8")):
            assert looked_at.is_convertible()
            assert looked_at.vectors([7])[7].tolist() == vectors[7].tolist()
            assert looked_at.ids() == set(range(300))
        index.delete([299])
        assert index.convert(nothing_known) == set()
    finally:
        arm("")
    assert not LanceVectors(tmp_path, "f1", DIMENSION, precision="int8").is_convertible()
    assert index.ids() == set(range(299))


@pytest.mark.parametrize("when", ["before", "after"])
def test_write_that_failed_is_repeated_without_a_row_twice(tmp_path: Path, when: str) -> None:
    index = LanceVectors(tmp_path, "f1", DIMENSION)
    vectors = rough(30)
    index.upsert(range(10), [1] * 10, vectors[:10])
    arm(f"vectors.upsert.{when}=error@1-1")
    try:
        with pytest.raises(StoreUnavailable):
            index.upsert(range(10, 20), [1] * 10, vectors[10:20])
    finally:
        arm("")
    index.upsert(range(20, 30), [1] * 10, vectors[20:])
    index.upsert(range(10, 20), [1] * 10, vectors[10:20])
    stored = [identity for ids, _, _ in stored_rows(tmp_path, "f1", DIMENSION) for identity in ids]
    assert sorted(stored) == list(range(30))
    assert LanceVectors(tmp_path, "f1", DIMENSION).vectors([15])[15].tolist() == vectors[15].tolist()


def damage_manifests(table: Path) -> None:
    for file in (table / "_versions").glob("*.manifest"):
        file.write_bytes(b"garbage")


def damage_data(table: Path) -> None:
    for file in (table / "data").iterdir():
        file.write_bytes(b"garbage" * 10)


def lose_data(table: Path) -> None:
    shutil.rmtree(table / "data")


def lose_manifests(table: Path) -> None:
    shutil.rmtree(table / "_versions")


@pytest.mark.parametrize("damage", [damage_manifests, damage_data, lose_data, lose_manifests])
def test_damaged_table_is_corrupt_and_can_be_made_anew(
    make_durable: MakeIndex, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    folder = tmp_path / "vectors"
    fill(make_durable(folder))
    damage(folder / "vectors_f1.lance")

    def use() -> None:
        make_durable(folder).search(unit(1)[0], 10)

    with pytest.raises(StoreCorrupt) as caught:
        use()
    assert caught.value.path == table_path(folder, "f1")
    assert str(caught.value.path) in (caught.value.hint or "")
    shutil.rmtree(caught.value.path)
    fill(make_durable(folder))
    assert len(make_durable(folder).ids()) == 20


def test_table_that_vanishes_while_open_is_corrupt(make_durable: MakeIndex, tmp_path: Path) -> None:
    index = make_durable(tmp_path / "vectors")
    fill(index)
    shutil.rmtree(tmp_path / "vectors")
    with pytest.raises(StoreCorrupt):
        index.upsert([1], [1], unit(1))


def test_file_in_the_way_of_the_folder_is_unavailable(make_durable: MakeIndex, tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("in the way")
    with pytest.raises(StoreUnavailable) as caught:
        make_durable(tmp_path / "vectors")
    assert caught.value.retryable
    with pytest.raises(StoreUnavailable):
        make_durable(tmp_path / "vectors" / "below")


def test_damage_is_told_of_by_whatever_use_meets_it(tmp_path: Path) -> None:
    told: list[StoreCorrupt] = []
    index = LanceVectors(tmp_path, "f1", DIMENSION, mirror_rows=1, on_damage=told.append)
    fill(index)
    shutil.rmtree(table_path(tmp_path, "f1"))
    uses: list[Callable[[], object]] = [
        lambda: index.upsert([1], [1], unit(1)),
        lambda: index.delete([1]),
        lambda: index.search(unit(1)[0], 5),
        lambda: index.vectors([1]),
        index.ids,
    ]
    for number, use in enumerate(uses, start=1):
        with pytest.raises(StoreCorrupt):
            use()
        assert len(told) == number


def test_vectors_that_were_never_written_are_damage(tmp_path: Path) -> None:
    """Bytes that rot inside a data file are not noticed by LanceDB; that they make no vector of length 1 is."""
    LanceVectors(tmp_path, "f1", DIMENSION).upsert([1], [1], unit(1) * 3)
    with pytest.raises(StoreCorrupt, match="never written"):
        LanceVectors(tmp_path, "f1", DIMENSION)


def test_table_of_another_make_is_damage(tmp_path: Path) -> None:
    lancedb.connect(tmp_path).create_table("vectors_f1", data=[{"id": 1, "text": "another program's"}])
    with pytest.raises(StoreCorrupt, match="columns"):
        LanceVectors(tmp_path, "f1", DIMENSION)
